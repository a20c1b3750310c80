package window

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// waitingVersion is the first byte of an encoded reorder buffer.
// docs/format/waiting.md has the layout.
const waitingVersion = 1

// clockUsed is the flag of a buffer that has a clock.
const clockUsed = 1

// The flags of an event.
const (
	flagDelete = 1 << iota
	flagBare
	flagLate     // its own time follows
	flagOther    // the relation follows
	flagValue    // a value follows
	flagID       // an ID follows
	flagAt       // the time of its place follows
	flagsWaiting = 1<<iota - 1
)

// The byte behind an event of the history: the outcome and a flag.
const (
	doneMask = 7
	doneOld  = 8 // the contribution that it has taken or refreshed follows
	doneAll  = 15
)

// The flags of a contribution.
const (
	oldValue = 1 << iota
	oldID
	oldFact // its relation and tuple follow; else they are those of the event
	oldAll  = 1<<iota - 1
)

// waitingCodec is what the next event is told relative to.
type waitingCodec struct {
	rel uint32
	at  int64
	seq uint64
}

// AppendWaiting appends to dst the reorder buffer as a checkpoint keeps it: what
// waits, what is not yet final, and the logical time of event-time mode. It
// appends nothing if that mode was never used. It is for the time between two
// epochs; the cost is linear in the events.
func (s *Store) AppendWaiting(dst []byte) []byte {
	q := &s.reorder
	if !q.used && q.waiting.n == 0 {
		return dst
	}
	dst = append(dst, waitingVersion)
	if q.used {
		dst = append(dst, clockUsed)
		dst = binary.AppendVarint(dst, q.now)
		dst = binary.AppendVarint(dst, q.clock.settle-q.now)
	} else {
		dst = append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(q.floors)))
	last := uint32(0)
	for _, rel := range slices.Sorted(maps.Keys(q.floors)) {
		dst = binary.AppendUvarint(dst, uint64(rel-last))
		dst = binary.AppendUvarint(dst, q.floors[rel])
		last = rel
	}
	dst = binary.AppendUvarint(dst, uint64(q.history.n))
	dst = binary.AppendUvarint(dst, uint64(q.waiting.n))
	var c waitingCodec
	for e := range q.history.all(&q.blocks, entry{time: math.MinInt64}) {
		dst = c.event(dst, q, e)
		dst = c.done(dst, q, q.events.at(e.value))
	}
	for e := range q.waiting.all(&q.blocks, entry{time: math.MinInt64}) {
		dst = c.event(dst, q, e)
	}
	return dst
}

// event writes an event without what it has done.
func (c *waitingCodec) event(b []byte, q *reorder, e entry) []byte {
	ev := q.events.at(e.value)
	id := q.names.of(ev[evID])
	flags := byte(ev[evHead] & (evDelete | evBare | evLate))
	if !ev.bare() && ev.rel() != c.rel {
		flags |= flagOther
		c.rel = ev.rel()
	}
	if ev[evValue] != 0 {
		flags |= flagValue
	}
	if id != "" {
		flags |= flagID
	}
	if e.time != c.at {
		flags |= flagAt
	}
	b = append(b, flags)
	if flags&flagAt != 0 {
		b = binary.AppendVarint(b, e.time-c.at)
		c.at = e.time
	}
	if flags&flagLate != 0 {
		b = binary.AppendVarint(b, int64(ev[evTime])-e.time)
	}
	if flags&flagOther != 0 {
		b = binary.AppendUvarint(b, uint64(c.rel))
	}
	return appendTerms(b, ev.tuple(), ev[evValue], id)
}

// appendTerms writes a tuple, and a value and an ID if they are there.
func appendTerms(b []byte, tuple []uint64, value uint64, id string) []byte {
	for _, w := range tuple {
		b = binary.AppendUvarint(b, w)
	}
	if value != 0 {
		b = binary.AppendUvarint(b, value)
	}
	if id != "" {
		b = append(binary.AppendUvarint(b, uint64(len(id))), id...)
	}
	return b
}

// done writes what an event has done.
func (c *waitingCodec) done(b []byte, q *reorder, ev event) []byte {
	old := ev[evOld]
	done := byte(ev.outcome() >> outShift)
	if old != 0 {
		done |= doneOld
	}
	b = append(b, done)
	if out := ev.outcome(); out == outAppended || out == outRefreshed {
		b = c.number(b, ev[evSeq]>>1)
	}
	if old == 0 {
		return b
	}
	was := q.events.at(old - 1)
	id := q.names.of(was[evID])
	flags := byte(0)
	if was[evValue] != 0 {
		flags |= oldValue
	}
	if id != "" {
		flags |= oldID
	}
	tuple := []uint64(nil)
	if ev.bare() || was.rel() != ev.rel() || !slices.Equal(was.tuple(), ev.tuple()) {
		flags |= oldFact
		tuple = was.tuple()
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, int64(was[evTime])-c.at)
	b = c.number(b, was[evSeq]>>1)
	if flags&oldFact != 0 {
		b = binary.AppendUvarint(b, uint64(was.rel()))
	}
	return appendTerms(b, tuple, was[evValue], id)
}

// number writes a sequence number.
func (c *waitingCodec) number(b []byte, seq uint64) []byte {
	b = binary.AppendVarint(b, int64(seq-c.seq))
	c.seq = seq + 1
	return b
}
