package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/internal/errs"
)

// headerVersion is the first byte of an encoded header.
const headerVersion = 1

// Header is what a checkpoint binds to its facts and terms: the epoch and
// everything that must belong to the same epoch.
type Header struct {
	Epoch    uint64
	Time     int64  // Logical time, ns.
	LogIndex uint64 // Of the last log entry that is contained.
	LastTerm uint64 // The highest term id ever given out, alive or not.

	// Sequence numbers the checkpoints of a store from 1. Commit sets it.
	Sequence uint64

	StoreID  [16]byte
	Timeline [16]byte // Changes when a backup is restored.

	Relations []Relation
	Queries   []Query
	Sources   []Source

	Digest [2]uint64 // Of all facts, as the log records it.
	Flags  uint64    // Options that must be the same when it is loaded.

	// Lateness is the allowed lateness that was in force, ns, 0 for none.
	Lateness int64
	// EventTime says that logical time is that of events, Clocked that it was
	// taken from a clock.
	EventTime, Clocked bool
	// Waiting are the events that wait for their time, and those applied that
	// are not final yet, as the store of contributions writes them. They may be
	// megabytes, and every element of a chain has those of its epoch: a trailer
	// is read whole.
	Waiting []byte
}

// Relation is one relation with what loading it must give. Its id is its place.
type Relation struct {
	Name   string
	Arity  int
	Facts  int64
	Digest [2]uint64
	Next   uint64 // The number that the next contribution gets.
	Keep   int64  // The retention that was set, ns, 0 for none.
}

// Query is one registered query.
type Query struct {
	Name, Text    string
	Set, Distinct bool
	Window        Window // Of the option at its registration, not of the text.
	Epoch         uint64 // Of its registration.
	Plan          uint64 // Fingerprint of the plan that was in use.
}

// Window has the fields of query.Window, none of which is negative. The zero
// Window is none.
type Window struct {
	Range, Slide, Last int64
}

// Source is the position of one event source.
type Source struct {
	Name, Incarnation string
	Next, Skipped     uint64
	Watermark         int64 // ns; counts only with HasWatermark.
	HasWatermark      bool
	Explicit          bool // Told by the source; only with HasWatermark.
}

// AppendTo appends the encoding of h to dst.
func (h *Header) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, headerVersion)
	dst = binary.AppendUvarint(dst, h.Epoch)
	dst = binary.AppendVarint(dst, h.Time)
	for _, v := range []uint64{h.LogIndex, h.LastTerm, h.Sequence, h.Flags} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = append(dst, h.StoreID[:]...)
	dst = append(dst, h.Timeline[:]...)
	dst = appendDigest(dst, h.Digest)
	dst = binary.AppendUvarint(dst, uint64(len(h.Relations)))
	for i := range h.Relations {
		r := &h.Relations[i]
		dst = appendText(dst, r.Name)
		dst = binary.AppendUvarint(dst, uint64(r.Arity))
		dst = binary.AppendUvarint(dst, uint64(r.Facts))
		dst = appendDigest(dst, r.Digest)
		dst = binary.AppendUvarint(dst, r.Next)
		dst = binary.AppendUvarint(dst, uint64(r.Keep))
	}
	dst = binary.AppendUvarint(dst, uint64(len(h.Queries)))
	for i := range h.Queries {
		dst = h.Queries[i].appendTo(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(h.Sources)))
	for i := range h.Sources {
		s := &h.Sources[i]
		dst = appendText(appendText(dst, s.Name), s.Incarnation)
		dst = binary.AppendUvarint(dst, s.Next)
		dst = binary.AppendUvarint(dst, s.Skipped)
		switch {
		case !s.HasWatermark:
			dst = append(dst, 0)
			continue
		case s.Explicit:
			dst = append(dst, sourceWatermark|sourceExplicit)
		default:
			dst = append(dst, sourceWatermark)
		}
		dst = binary.AppendVarint(dst, s.Watermark)
	}
	dst = binary.AppendUvarint(dst, uint64(h.Lateness))
	var kind byte
	if h.Clocked {
		kind |= timeClocked
	}
	if h.EventTime {
		kind |= timeOfEvents
	}
	dst = append(dst, kind)
	dst = append(binary.AppendUvarint(dst, uint64(len(h.Waiting))), h.Waiting...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// Flags of a query in an encoded header, and the one of a source.
const (
	querySet      = 1
	queryDistinct = 2
	queryWindow   = 4

	sourceWatermark = 1
	sourceExplicit  = 2

	timeClocked  = 1
	timeOfEvents = 2
)

func (q *Query) appendTo(dst []byte) []byte {
	var flags byte
	if q.Set {
		flags |= querySet
	}
	if q.Distinct {
		flags |= queryDistinct
	}
	if q.Window != (Window{}) {
		flags |= queryWindow
	}
	dst = append(appendText(appendText(dst, q.Name), q.Text), flags)
	if flags&queryWindow != 0 {
		for _, v := range [...]int64{q.Window.Range, q.Window.Slide, q.Window.Last} {
			dst = binary.AppendUvarint(dst, uint64(v))
		}
	}
	dst = binary.AppendUvarint(dst, q.Epoch)
	return binary.LittleEndian.AppendUint64(dst, q.Plan)
}

// DecodeHeader reads what AppendTo wrote, all of p and nothing else. Another
// version is errs.ErrFormat, anything else that is not such a header
// errs.ErrCorrupt. The header shares no memory with p.
func DecodeHeader(p []byte) (Header, error) {
	var h Header
	if len(p) > 0 && p[0] != headerVersion {
		return h, fmt.Errorf("checkpoint header: %w: version %d, this is %d", errs.ErrFormat, p[0], headerVersion)
	}
	d, err := checked(p, "checkpoint header")
	if err != nil {
		return h, err
	}
	d.byte()
	h.Epoch = d.uvarint()
	h.Time = d.varint()
	for _, v := range []*uint64{&h.LogIndex, &h.LastTerm, &h.Sequence, &h.Flags} {
		*v = d.uvarint()
	}
	copy(h.StoreID[:], d.take(16))
	copy(h.Timeline[:], d.take(16))
	h.Digest = d.digest()
	h.Relations = many(d, (*decoder).relation)
	h.Queries = many(d, (*decoder).query)
	h.Sources = many(d, (*decoder).source)
	h.Lateness = d.int63()
	kind := d.byte()
	if kind > timeClocked|timeOfEvents {
		d.fail("unknown kind of time")
	}
	h.Clocked, h.EventTime = kind&timeClocked != 0, kind&timeOfEvents != 0
	h.Waiting = append([]byte(nil), d.take(d.uvarint())...)
	if err := d.end(); err != nil {
		return Header{}, err
	}
	return h, nil
}

func (d *decoder) relation() (r Relation) {
	r.Name = d.text()
	arity := d.uvarint()
	if arity > math.MaxInt32 {
		d.fail("number out of range")
	}
	r.Arity, r.Facts = int(arity), d.int63()
	r.Digest = d.digest()
	r.Next, r.Keep = d.uvarint(), d.int63()
	return r
}

// int63 reads a number that an int64 holds and that is not negative.
func (d *decoder) int63() int64 {
	v := d.uvarint()
	if v > math.MaxInt64 {
		d.fail("number out of range")
		return 0
	}
	return int64(v)
}

func (d *decoder) query() (q Query) {
	q.Name, q.Text = d.text(), d.text()
	flags := d.byte()
	if flags&^(querySet|queryDistinct|queryWindow) != 0 {
		d.fail("unknown flag of a query")
	}
	if flags&queryWindow != 0 {
		q.Window = Window{Range: d.int63(), Slide: d.int63(), Last: d.int63()}
		if q.Window == (Window{}) {
			d.fail("an absent window that is there")
		}
	}
	q.Set, q.Distinct = flags&querySet != 0, flags&queryDistinct != 0
	q.Epoch = d.uvarint()
	q.Plan = d.uint64()
	return q
}

func (d *decoder) source() (s Source) {
	s.Name, s.Incarnation = d.text(), d.text()
	s.Next, s.Skipped = d.uvarint(), d.uvarint()
	flags := d.byte()
	if flags == sourceExplicit || flags > sourceWatermark|sourceExplicit {
		d.fail("unknown flag of a source")
	}
	if s.HasWatermark = flags != 0; s.HasWatermark {
		s.Explicit = flags&sourceExplicit != 0
		s.Watermark = d.varint()
	}
	return s
}
