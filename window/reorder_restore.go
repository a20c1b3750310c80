package window

import (
	"encoding/binary"
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
)

// waitingReader reads an encoded reorder buffer.
type waitingReader struct {
	waitingCodec
	s     *Store
	data  []byte
	at    int
	tuple []uint64
	place entry // of the event before in its queue
}

// RestoreWaiting fills the empty reorder buffer of a store from what
// [Store.AppendWaiting] gave, after [Restorer.Finish] and before the first
// epoch. Nothing restores an empty buffer. The error wraps ErrCorrupt if the
// bytes are damaged or do not fit the relations and their contributions; the
// store is good for nothing then. The memory is linear in the bytes.
func (s *Store) RestoreWaiting(data []byte) error {
	q := &s.reorder
	invariant.Check(!q.used && q.arrivals == 0 && !s.running, "a buffer is restored into one that is in use")
	if len(data) == 0 {
		return nil
	}
	q.open()
	r := &waitingReader{s: s, data: data}
	if data[0] != waitingVersion {
		return r.damaged("version")
	}
	r.at = 1
	if err := r.clock(); err != nil {
		return err
	}
	if err := r.floors(); err != nil {
		return err
	}
	history, waiting := r.uvarint(), r.uvarint()
	if r.broken() || history > uint64(len(data)) || waiting > uint64(len(data)) {
		return r.damaged("number of events")
	}
	for range history {
		if err := r.event(&q.history); err != nil {
			return err
		}
	}
	r.place = entry{}
	for range waiting {
		if err := r.event(&q.waiting); err != nil {
			return err
		}
	}
	if r.at != len(data) {
		return r.damaged("bytes behind the end")
	}
	return nil
}

func (r *waitingReader) damaged(what string) error {
	return fmt.Errorf("%w: events that wait, at byte %d of %d: %s", errs.ErrCorrupt, min(r.at, len(r.data)), len(r.data), what)
}

// uvarint reads a number; after bytes that are none the position is behind the
// data.
func (r *waitingReader) uvarint() uint64 {
	if r.at > len(r.data) {
		return 0
	}
	x, n := binary.Uvarint(r.data[r.at:])
	if n <= 0 {
		r.at = len(r.data) + 1
		return 0
	}
	r.at += n
	return x
}

func (r *waitingReader) varint() int64 {
	x := r.uvarint()
	return int64(x>>1 ^ -(x & 1))
}

func (r *waitingReader) byte() byte {
	if r.at >= len(r.data) {
		r.at = len(r.data) + 1
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

func (r *waitingReader) broken() bool { return r.at > len(r.data) }

func (r *waitingReader) clock() error {
	q := &r.s.reorder
	switch r.byte() {
	case 0:
	case clockUsed:
		now := r.varint()
		q.clock = clock{true, now, now + r.varint()}
	default:
		return r.damaged("flags")
	}
	if r.broken() {
		return r.damaged("logical time")
	}
	return nil
}

func (r *waitingReader) floors() error {
	rel := uint64(0)
	n := r.uvarint()
	if r.broken() || n > uint64(len(r.s.rels)) {
		return r.damaged("number of relations")
	}
	for i := range n {
		step, floor := r.uvarint(), r.uvarint()
		if r.broken() || step == 0 && i > 0 || step >= uint64(len(r.s.rels)) {
			return r.damaged("relation")
		}
		if rel += step; rel >= uint64(len(r.s.rels)) {
			return r.damaged("relation")
		}
		if floor == 0 || floor > r.s.rels[rel].seq {
			return r.damaged("final appends")
		}
		r.s.reorder.setFloor(uint32(rel), floor)
	}
	return nil
}

// event reads an event into a queue.
func (r *waitingReader) event(to *queue) error {
	q := &r.s.reorder
	flags := r.byte()
	if r.broken() || flags&^flagsWaiting != 0 || flags&flagBare != 0 && flags&(flagDelete|flagID|flagOther) != flagDelete|flagID {
		return r.damaged("flags")
	}
	if flags&flagAt != 0 {
		r.waitingCodec.at += r.varint()
	}
	time := r.waitingCodec.at
	if flags&flagLate != 0 {
		time += r.varint()
	}
	if flags&flagOther != 0 {
		rel := r.uvarint()
		if rel >= uint64(len(r.s.rels)) {
			return r.damaged("relation")
		}
		r.rel = uint32(rel)
	}
	head := uint64(flags & (flagDelete | flagBare | flagLate))
	var tuple []uint64
	if flags&flagBare == 0 {
		if int(r.rel) >= len(r.s.rels) {
			return r.damaged("relation")
		}
		head |= uint64(r.rel) << relShift
		tuple = r.words(r.rel)
	}
	value, id, err := r.terms(flags&flagValue != 0, flags&flagID != 0)
	if err != nil {
		return err
	}
	e := entry{r.waitingCodec.at, r.phase(flags) | q.arrivals, q.events.alloc(len(tuple))}
	q.arrivals++
	ev := q.events.at(e.value)
	ev[evHead], ev[evTime], ev[evValue] = head, uint64(time), value
	ev[evID], ev[evSeq], ev[evOld] = q.names.add(id), 0, 0
	copy(ev.tuple(), tuple)
	if to.n > 0 && e.before(r.place) {
		return r.damaged("events out of order")
	}
	r.place = e
	to.add(&q.blocks, e)
	if to == &q.waiting {
		return nil
	}
	q.note(r.s, e.value, 1)
	return r.done(e)
}

// phase is the upper part of the place of an event.
func (r *waitingReader) phase(flags byte) uint64 {
	switch {
	case flags&flagLate != 0:
		return phaseLate
	case flags&flagDelete != 0:
		return phaseDelete
	}
	return phaseInsert
}

// words reads a tuple of a relation, which is good until the next one.
func (r *waitingReader) words(rel uint32) []uint64 {
	n := r.s.rels[rel].arity
	if n > len(r.data)-r.at {
		r.at = len(r.data) + 1
		return nil
	}
	r.tuple = r.tuple[:0]
	for range n {
		r.tuple = append(r.tuple, r.uvarint())
	}
	return r.tuple
}

// terms reads a value and an ID if they are there. Whatever was broken before is
// found here.
func (r *waitingReader) terms(hasValue, hasID bool) (value uint64, id string, err error) {
	if hasValue {
		if value = r.uvarint(); value == 0 {
			return 0, "", r.damaged("value")
		}
	}
	if hasID {
		n := r.uvarint()
		if r.broken() || n == 0 || n > uint64(len(r.data)-r.at) {
			return 0, "", r.damaged("ID")
		}
		id = string(r.data[r.at : r.at+int(n)])
		r.at += int(n)
	}
	if r.broken() {
		return 0, "", r.damaged("event")
	}
	return value, id, nil
}

// done reads what an event of the history has done.
func (r *waitingReader) done(e entry) error {
	q := &r.s.reorder
	done := r.byte()
	outcome, old := uint64(done&doneMask)<<outShift, done&doneOld != 0
	if ev := q.events.at(e.value); r.broken() || done&^doneAll != 0 || !q.used || !possible(ev, outcome, old) {
		return r.damaged("outcome")
	}
	seq, was := uint64(0), uint64(0)
	if outcome == outAppended || outcome == outRefreshed {
		ev := q.events.at(e.value)
		var err error
		if seq, err = r.number(ev.rel(), ev[evID] != 0); err != nil {
			return err
		}
	}
	if old {
		var err error
		if was, err = r.old(e.value); err != nil {
			return err
		}
	}
	q.events.at(e.value).effect(outcome, seq, was)
	return nil
}

// possible reports whether an event can have an outcome.
func possible(ev event, outcome uint64, old bool) bool {
	hasID := ev[evID] != 0
	if ev.deletes() {
		return outcome == outTaken && old || outcome == outMissing && !old
	}
	switch outcome {
	case outAppended, outConflict:
		return hasID || !old
	case outRefreshed:
		return hasID && old
	}
	return false
}

// number reads a sequence number and returns its word.
func (r *waitingReader) number(rel uint32, hasID bool) (word uint64, err error) {
	seq := r.seq + uint64(r.varint())
	if r.broken() || seq >= r.s.rels[rel].seq {
		return 0, r.damaged("sequence number")
	}
	r.seq = seq + 1
	if hasID {
		return seq<<1 | 1, nil
	}
	return seq << 1, nil
}

// old reads the contribution that an event has taken or refreshed.
func (r *waitingReader) old(ref uint64) (old uint64, err error) {
	q := &r.s.reorder
	ev := q.events.at(ref)
	flags := r.byte()
	if r.broken() || flags&^oldAll != 0 || ev.bare() && flags&oldFact == 0 {
		return 0, r.damaged("flags of a contribution")
	}
	x := entry{time: r.waitingCodec.at + r.varint()}
	delta := uint64(r.varint())
	rel, tuple := ev.rel(), ev.tuple()
	if flags&oldFact != 0 {
		n := r.uvarint()
		if r.broken() || n >= uint64(len(r.s.rels)) {
			return 0, r.damaged("relation")
		}
		rel = uint32(n)
		tuple = r.words(rel)
	}
	value, id, err := r.terms(flags&oldValue != 0, flags&oldID != 0)
	if err != nil {
		return 0, err
	}
	if x.seq = r.seq + delta; x.seq >= r.s.rels[rel].seq {
		return 0, r.damaged("sequence number")
	}
	r.seq = x.seq + 1
	if x.seq, x.value = x.seq<<1, value; id != "" {
		x.seq |= 1
	}
	return q.remember(rel, tuple, x, id), nil
}
