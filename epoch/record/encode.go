package record

import (
	"encoding/binary"

	"github.com/triegs/triegs/internal/term"
)

// The first byte of an event: the op in the low bits, then what follows. What
// does not follow is as in the event before; before the first one that is
// relation 0, the epoch's time and two words.
const (
	opMask      = 0x07 // opMask itself: the op follows as a byte
	hasRelation = 0x08
	hasTime     = 0x10
	hasValue    = 0x20
	hasID       = 0x40
	hasLength   = 0x80

	firstLength = 2

	// prefixMax bounds the bytes that an ID takes from the ID before it, so
	// that few bytes cannot decode to many.
	prefixMax = 64
)

// Flags of what only some epochs have. One byte tells that there is nothing.
const (
	queryPresent = 1 << iota
	querySet
	queryDistinct
	queryWindow
	retainPresent
	eventTime
	clocked
	extrasEnd
)

// Flags of a source. The second one goes with the first.
const (
	watermarkPresent  = 1
	watermarkExplicit = 2
)

// Append appends the stored form of r and returns the longer slice; a caller
// that passes the last result cut to length 0 allocates nothing. Cost: linear
// in the result; an event whose terms, relation and time are near those of the
// event before takes 3 to 6 bytes.
func (r *Record) Append(dst []byte) []byte {
	dst = append(dst, Version, byte(r.Kind))
	dst = binary.AppendUvarint(dst, r.Epoch)
	dst = binary.AppendVarint(dst, r.Time)
	dst = binary.LittleEndian.AppendUint64(dst, r.Digest[0])
	dst = binary.LittleEndian.AppendUint64(dst, r.Digest[1])

	dst = binary.AppendUvarint(dst, uint64(len(r.Terms)))
	if len(r.Terms) > 0 {
		dst = binary.AppendUvarint(dst, r.FirstTerm)
	}
	for i := range r.Terms {
		dst = term.AppendBinary(dst, r.Terms[i])
	}

	dst = binary.AppendUvarint(dst, uint64(len(r.Relations)))
	if len(r.Relations) > 0 {
		dst = binary.AppendUvarint(dst, uint64(r.FirstRelation))
	}
	for i := range r.Relations {
		dst = appendString(dst, r.Relations[i].Name)
		dst = binary.AppendUvarint(dst, uint64(r.Relations[i].Arity))
	}

	dst = binary.AppendUvarint(dst, uint64(len(r.Sources)))
	for i := range r.Sources {
		s := &r.Sources[i]
		dst = appendString(dst, s.Name)
		dst = appendString(dst, s.Incarnation)
		dst = binary.AppendUvarint(dst, s.Next)
		dst = binary.AppendUvarint(dst, s.Skipped)
		switch {
		case !s.HasWatermark:
			dst = append(dst, 0)
			continue
		case s.Explicit:
			dst = append(dst, watermarkPresent|watermarkExplicit)
		default:
			dst = append(dst, watermarkPresent)
		}
		dst = binary.AppendVarint(dst, s.Watermark-r.Time) // wraps; so does Decode
	}
	dst = appendExtras(dst, r)
	return appendEvents(dst, r.Events, r.Time)
}

// appendString appends a length and the bytes.
func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// appendExtras appends a byte of flags, then what they announce.
func appendExtras(dst []byte, r *Record) []byte {
	head := len(dst)
	dst = append(dst, 0)
	var flags byte
	if q := r.Query; q != nil {
		flags |= queryPresent
		if q.Set {
			flags |= querySet
		}
		if q.Distinct {
			flags |= queryDistinct
		}
		dst = appendString(dst, q.Name)
		dst = appendString(dst, q.Text)
		if w := q.Window; w != (Window{}) {
			flags |= queryWindow
			for _, v := range [...]int64{w.Range, w.Slide, w.Last} {
				dst = binary.AppendUvarint(dst, uint64(v))
			}
		}
	}
	if r.Retain != nil {
		flags |= retainPresent
		dst = appendString(dst, r.Retain.Relation)
		dst = binary.AppendUvarint(dst, uint64(r.Retain.Span))
	}
	if r.EventTime {
		flags |= eventTime
		dst = binary.AppendUvarint(dst, uint64(r.Lateness))
	}
	if r.Clocked {
		flags |= clocked
	}
	dst[head] = flags
	return dst
}

// appendEvents appends the number of events and of their words, then each
// event as its difference from the one before.
func appendEvents(dst []byte, events []Event, epochTime int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(events)))
	if len(events) == 0 {
		return dst
	}
	words := 0
	for i := range events {
		words += len(events[i].Tuple)
	}
	dst = binary.AppendUvarint(dst, uint64(words))

	relation, at, length := uint32(0), epochTime, firstLength
	var tuple []uint64
	var id string
	for i := range events {
		e := &events[i]
		head := len(dst)
		flags := min(e.Op, opMask)
		dst = append(dst, 0)
		if e.Op >= opMask {
			dst = append(dst, e.Op)
		}
		if e.Relation != relation {
			flags |= hasRelation
			relation = e.Relation
			dst = binary.AppendUvarint(dst, uint64(relation))
		}
		if e.Time != at {
			flags |= hasTime
			dst = binary.AppendVarint(dst, e.Time-at) // wraps; so does Decode
			at = e.Time
		}
		if e.Value != 0 {
			flags |= hasValue
			dst = binary.AppendUvarint(dst, e.Value)
		}
		if e.ID != "" {
			flags |= hasID
			shared := sharedPrefix(id, e.ID)
			dst = binary.AppendUvarint(dst, uint64(shared))
			dst = appendString(dst, e.ID[shared:])
			id = e.ID
		}
		if len(e.Tuple) != length {
			flags |= hasLength
			length = len(e.Tuple)
			dst = binary.AppendUvarint(dst, uint64(length))
		}
		dst[head] = flags
		dst = appendTuple(dst, e.Tuple, tuple)
		if length > 0 {
			tuple = e.Tuple
		}
	}
	return dst
}

// appendTuple appends each word as its difference from the word in the same
// place of prev, the last tuple that was not empty.
func appendTuple(dst []byte, tuple, prev []uint64) []byte {
	for i, w := range tuple {
		if i < len(prev) {
			w -= prev[i]
		}
		dst = binary.AppendVarint(dst, int64(w))
	}
	return dst
}

// sharedPrefix is the number of bytes that id takes from prev.
func sharedPrefix(prev, id string) int {
	n := min(len(prev), len(id), prefixMax)
	for i := range n {
		if prev[i] != id[i] {
			return i
		}
	}
	return n
}
