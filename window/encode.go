package window

import "encoding/binary"

// chunkVersion is the first byte of each chunk. docs/format/facts.md has the
// layout.
const chunkVersion = 1

// The flags of a fact in a chunk. With neither of flagOne and flagMany the
// record holds no fact any more.
const (
	flagRelation = 1 << iota // the number of the relation follows
	flagRecord               // the record is not the one after the last
	flagOne                  // one contribution without value and ID
	flagMany                 // a list of contributions
	flagTime                 // with flagOne: the time differs from the last
	flagSeq                  // with flagOne: the sequence number does not follow the last
	flagsAll     = 1<<iota - 1
)

// The flags of a contribution in a list.
const (
	copyTime = 1 << iota // as flagTime
	copySeq              // as flagSeq
	copyValue
	copyID
	copyAll = 1<<iota - 1
)

// codec is what the next fact of a chunk is told relative to.
type codec struct {
	rel   int64 // -1 = none
	rec   uint32
	tuple []uint64
	time  int64
	seq   uint64
}

func (c *codec) reset() {
	c.rel, c.rec, c.time, c.seq = -1, 0, 0, 0
}

// enter goes on with another relation.
func (c *codec) enter(rel uint32, arity int) {
	c.rel, c.rec = int64(rel), 0
	if cap(c.tuple) < arity {
		c.tuple = make([]uint64, arity)
	}
	c.tuple = c.tuple[:arity]
	clear(c.tuple)
}

// encoder writes one chunk at a time.
type encoder struct {
	codec
	buf   []byte
	start int // of the chunk in buf
}

// begin starts a chunk behind dst.
func (e *encoder) begin(dst []byte) {
	e.reset()
	e.start = len(dst)
	e.buf = append(dst, chunkVersion)
}

// end returns what begin was given, with the chunk behind it unless it is empty.
func (e *encoder) end() []byte {
	if len(e.buf) == e.start+1 {
		e.buf = e.buf[:e.start]
	}
	return e.buf
}

// head writes the flags of a record and its number.
func (e *encoder) head(flags byte, r *relation, rel, rec uint32) {
	if e.rel != int64(rel) {
		flags |= flagRelation
		e.enter(rel, r.arity)
	}
	delta := int64(rec) - int64(e.rec)
	if delta != 0 {
		flags |= flagRecord
	}
	b := append(e.buf, flags)
	if flags&flagRelation != 0 {
		b = binary.AppendUvarint(b, uint64(rel))
	}
	if delta != 0 {
		b = binary.AppendVarint(b, delta)
	}
	e.buf, e.rec = b, rec+1
}

// gone writes that a record holds no fact.
func (e *encoder) gone(r *relation, rel, rec uint32) { e.head(0, r, rel, rec) }

// fact writes a fact and returns the number of its contributions.
func (e *encoder) fact(s *Store, r *relation, rel, rec uint32, w []uint64) int {
	tail := w[r.arity:]
	if tail[2]&formMask != formOne || tail[1]&1 != 0 {
		e.head(flagMany, r, rel, rec)
		e.words(w[:r.arity])
		return e.list(s, tail)
	}
	flags := byte(flagOne)
	time, seq := int64(tail[0]), tail[1]>>1
	if time != e.time {
		flags |= flagTime
	}
	if seq != e.seq {
		flags |= flagSeq
	}
	e.head(flags, r, rel, rec)
	e.words(w[:r.arity])
	e.stamp(time, seq)
	return 1
}

// words writes a tuple.
func (e *encoder) words(tuple []uint64) {
	b, last := e.buf, e.tuple[:len(tuple)]
	for i, w := range tuple {
		b = binary.AppendVarint(b, int64(w-last[i]))
		last[i] = w
	}
	e.buf = b
}

// stamp writes of time and sequence number what differs from what is expected.
func (e *encoder) stamp(time int64, seq uint64) {
	if time != e.time {
		e.buf = binary.AppendVarint(e.buf, time-e.time)
	}
	if seq != e.seq {
		e.buf = binary.AppendVarint(e.buf, int64(seq-e.seq))
	}
	e.time, e.seq = time, seq+1
}

// list writes all contributions of a fact and returns their number.
func (e *encoder) list(s *Store, tail []uint64) int {
	n := s.copies.count(tail[2])
	e.buf = binary.AppendUvarint(e.buf, uint64(n))
	s.copies.each(tail, func(x entry) bool {
		flags, id := byte(0), ""
		if x.time != e.time {
			flags |= copyTime
		}
		if x.seq>>1 != e.seq {
			flags |= copySeq
		}
		if x.value != 0 {
			flags |= copyValue
		}
		if x.seq&1 != 0 {
			flags |= copyID
			id = s.named[name{uint64(e.rel), x.seq}].id
		}
		e.buf = append(e.buf, flags)
		e.stamp(x.time, x.seq>>1)
		if x.value != 0 {
			e.buf = binary.AppendUvarint(e.buf, x.value)
		}
		if flags&copyID != 0 {
			e.buf = append(binary.AppendUvarint(e.buf, uint64(len(id))), id...)
		}
		return true
	})
	return int(n)
}
