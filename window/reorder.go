package window

import "math"

// Waiting is an event of event-time mode, as [Store.Wait] takes it: an insertion
// of a contribution, or the deletion of one.
type Waiting struct {
	Delete bool
	Rel    uint32   // of no meaning without a tuple
	Tuple  []uint64 // nil in a deletion by ID alone
	Time   int64    // event time in nanoseconds
	Value  uint64   // 0 = none; in a deletion by fact it chooses among the contributions
	ID     string   // "" = none; a deletion with an ID is by ID, as with [Store.DeleteID]
}

// Released says what became of the events that [Store.Release] has applied. An
// event counts once, when it is released, as what it did then.
type Released struct {
	Applied   uint64 // insertions, refreshes and deletions that took effect
	Missing   uint64 // deletions that found nothing
	Conflicts uint64 // insertions that were left out: their ID is taken, or they fit no relation
	Columns   uint64 // columns of the facts of all contributions that were taken away
}

// reorder holds the events of event-time mode that wait for logical time to
// reach them, and the history: those that are applied and not yet final, since
// an event that belongs before them may still come.
//
// Both are ordered by what is called the place of an event: its event time,
// insertions before deletions, its number of arrival. An event that was older
// than settle when it arrived has its place behind all that were applied by
// then.
type reorder struct {
	clock
	arrivals uint64 // number of the next event
	refused  uint64 // events of the running epoch that fit no relation

	events           events
	names            names
	blocks           slab // of the two queues
	waiting, history queue

	// What makes the order of insertions matter: deletions by fact in the history,
	// by hash of the fact, and its insertions with an ID, by relation.
	deletions     map[uint64]int
	deletionsMost int // since the map was made
	named         []int

	// By relation with windows of the newest contributions: the number behind
	// the last append that is final.
	floors map[uint32]uint64

	log      reorderLog
	was      clock // at Begin, if moved
	moved    bool
	released []entry // by the running Release
	tangle   tangle
}

// clock is the logical time of event-time mode.
type clock struct {
	used   bool  // Release has been called
	now    int64 // logical time of the last Release
	settle int64 // events before it are final
}

// The place of an event among those with the same time is a phase and, below
// it, the number of arrival.
const (
	phaseShift  = 62
	phaseInsert = 0 << phaseShift
	phaseDelete = 1 << phaseShift
	phaseLate   = 2 << phaseShift
)

// open makes room at the first event.
func (q *reorder) open() {
	if q.blocks.width == 0 {
		q.blocks = newSlab(copyWords * blockMax)
	}
}

// Wait adds an event to those that wait for logical time; the tuple is copied.
// It belongs to the running epoch. An event whose tuple does not fit its
// relation is left out and counted by the next [Store.Release]. An event in
// order costs O(1), another one O(log n) of those that wait.
func (s *Store) Wait(w Waiting) {
	q := &s.reorder
	if !s.fits(&w) {
		q.refused++
		return
	}
	q.open()
	head, phase := uint64(w.Rel)<<relShift, uint64(phaseInsert)
	if w.Delete {
		head, phase = head|evDelete, phaseDelete
	}
	at := w.Time
	if q.used && w.Time < q.settle {
		head, phase, at = head|evLate, phaseLate, q.now
	}
	if w.Tuple == nil {
		head = head&(1<<relShift-1) | evBare
	}
	ref := q.events.alloc(len(w.Tuple))
	ev := q.events.at(ref)
	ev[evHead], ev[evTime], ev[evValue] = head, uint64(w.Time), w.Value
	ev[evID], ev[evSeq], ev[evOld] = q.names.add(w.ID), 0, 0
	copy(ev.tuple(), w.Tuple)
	e := entry{at, phase | q.arrivals, ref}
	q.arrivals++
	q.waiting.add(&q.blocks, e)
	q.log.add(logWaited, e)
}

// fits reports whether an event is one of its relation.
func (s *Store) fits(w *Waiting) bool {
	if w.Tuple == nil {
		return w.Delete && w.ID != ""
	}
	return w.Rel < uint32(len(s.rels)) && len(w.Tuple) == s.rels[w.Rel].arity
}

// Release moves the logical time to t, never back, and applies what waits with
// event time up to it, in the order of event times; of equal times insertions
// come before deletions, then the order of arrival decides. It comes in the
// running epoch after all calls of Wait and before Advance(t), also when nothing
// waits.
//
// The state is then the one that all events so far would give if they had come
// in that order, each at a logical time that is its event time: contributions
// that the windows and retentions set now do not keep at that time are gone for
// it. That holds for events up to settle back, which is the logical time less
// the allowed lateness; the history is kept for them, and Advance keeps what
// they may find. An event that is older when it comes is applied at the place
// where it comes. A window of the newest contributions that is set later takes
// the appends before in the order in which they were applied.
//
// In order the cost is that of applying the events. What has its place before
// events that are applied already costs O(log n) of the history if it is an
// insertion without an ID, into a relation without windows of the newest
// contributions, and the history has neither a deletion by fact of its fact nor
// an insertion with an ID into its relation. Otherwise the history behind it is
// scanned, and those of its events are done again that have to do with it, by
// their fact or by their ID; in a relation with windows of the newest
// contributions, all.
func (s *Store) Release(t, settle int64) (r Released) {
	q := &s.reorder
	q.open()
	if !q.moved {
		q.was, q.moved = q.clock, true
	}
	if q.used {
		t, settle = max(t, q.now), max(settle, q.settle)
	}
	r.Conflicts, q.refused = q.refused, 0
	batch := q.take(t)
	late := q.countLate(batch)
	q.clock = clock{true, t, settle}
	s.applyLate(batch[:late], &r)
	for _, e := range batch[late:] {
		s.applyNew(e, &r)
	}
	s.settle()
	return r
}

// take takes what waits up to logical time t.
func (q *reorder) take(t int64) []entry {
	batch := q.released[:0]
	for q.waiting.n > 0 {
		e := q.waiting.front(&q.blocks)
		if e.time > t {
			break
		}
		q.waiting.take(&q.blocks, place{q.waiting.head, 0})
		batch = append(batch, e)
	}
	q.released = batch
	return batch
}

// countLate is how many of the events have their place before the end of the
// history.
func (q *reorder) countLate(batch []entry) (n int) {
	if q.history.n == 0 {
		return 0
	}
	last := q.history.last(&q.blocks)
	for n < len(batch) && batch[n].before(last) {
		n++
	}
	return n
}

// before reports whether the place of an event is before that of another.
func (e entry) before(other entry) bool {
	if e.time != other.time {
		return e.time < other.time
	}
	return e.seq < other.seq
}

// last returns the last entry of a list that is not empty.
func (l *list) last(blocks *slab) entry {
	k := len(l.dir) - 1
	return read(l.words(blocks, k), int(l.dir[k].n)-1)
}

// applyNew applies an event for the first time. It goes into the history unless
// it is final.
func (s *Store) applyNew(e entry, r *Released) {
	q := &s.reorder
	final := e.time < q.settle
	out, columns := s.apply(e.value, e.time, !final)
	r.Columns += columns
	switch out {
	case outMissing:
		r.Missing++
	case outConflict:
		r.Conflicts++
	default:
		r.Applied++
	}
	if final {
		q.log.add(logDone, e)
		s.raiseFloor(q.events.at(e.value))
		return
	}
	q.history.add(&q.blocks, e)
	q.note(s, e.value, 1)
	q.log.add(logKept, e)
}

// settle drops the events of the history that are final.
func (s *Store) settle() {
	q := &s.reorder
	for q.history.n > 0 {
		e := q.history.front(&q.blocks)
		if e.time >= q.clock.settle {
			break
		}
		q.history.take(&q.blocks, place{q.history.head, 0})
		q.note(s, e.value, -1)
		q.log.add(logDropped, e)
		s.raiseFloor(q.events.at(e.value))
	}
}

// raiseFloor notes that an event is final.
func (s *Store) raiseFloor(ev event) {
	q := &s.reorder
	if ev.outcome() != outAppended || !s.counted(ev.rel()) {
		return
	}
	old, next := q.floors[ev.rel()], ev[evSeq]>>1+1
	if next > old {
		q.log.floor(ev.rel(), old)
		q.setFloor(ev.rel(), next)
	}
}

func (q *reorder) setFloor(rel uint32, floor uint64) {
	if q.floors == nil {
		q.floors = map[uint32]uint64{}
	}
	if q.floors[rel] = floor; floor == 0 {
		delete(q.floors, rel)
	}
}

// note counts a deletion by fact, or an insertion with an ID, that enters or
// leaves the history.
func (q *reorder) note(s *Store, ref uint64, by int) {
	ev := q.events.at(ref)
	if ev.deletes() == (ev[evID] != 0) {
		return
	}
	if rel := int(ev.rel()); !ev.deletes() {
		if rel >= len(q.named) {
			q.named = append(q.named, make([]int, rel+1-len(q.named))...)
		}
		q.named[rel] += by
		return
	}
	if q.deletions == nil {
		q.deletions = map[uint64]int{}
	}
	key := s.hash.fact(ev.rel(), ev.tuple())
	if q.deletions[key] += by; q.deletions[key] == 0 {
		delete(q.deletions, key)
	}
	q.deletionsMost = max(q.deletionsMost, len(q.deletions))
}

// reach is the logical time and the number of appends of a relation by which
// Advance tells what is no longer needed: those of the oldest event that may
// still come, or of the present if none may.
func (s *Store) reach(rel uint32, at int64) (t int64, next uint64) {
	q, next := &s.reorder, s.rels[rel].seq
	if !q.used || at > q.now {
		// Time has moved without a Release: it is not that of events.
		return at, next
	}
	return min(at, q.settle), min(next, q.floors[rel])
}

// WaitingLen is the number of events that wait.
func (s *Store) WaitingLen() int { return int(s.reorder.waiting.n) }

// Held is the number of events that are applied and not yet final.
func (s *Store) Held() int { return int(s.reorder.history.n) }

// NextWaiting is the least event time among the events that wait; ok is false
// if none does.
func (s *Store) NextWaiting() (t int64, ok bool) {
	q := &s.reorder
	if q.waiting.n == 0 {
		return 0, false
	}
	return q.waiting.front(&q.blocks).time, true
}

// Insertions calls visit for the insertions that wait, in the order of their event
// times, until it returns false. The tuple is the store's own memory.
func (s *Store) Insertions(visit func(rel uint32, tuple []uint64, at int64, value uint64) bool) {
	q := &s.reorder
	for e := range q.waiting.all(&q.blocks, entry{time: math.MinInt64}) {
		ev := q.events.at(e.value)
		if !ev.deletes() && !visit(ev.rel(), ev.tuple(), int64(ev[evTime]), ev[evValue]) {
			return
		}
	}
}

// WalkWaiting calls visit for the terms of the events that wait or are not yet
// final: the words of their tuples and their values other than 0, those of the
// contributions that an event took away included, the same term as often as it
// is used. It is for the time between two epochs.
func (s *Store) WalkWaiting(visit func(id uint64)) {
	q := &s.reorder
	for _, l := range [...]*queue{&q.history, &q.waiting} {
		for e := range l.all(&q.blocks, entry{time: math.MinInt64}) {
			ev := q.events.at(e.value)
			ev.terms(visit)
			if old := ev[evOld]; old != 0 {
				q.events.at(old - 1).terms(visit)
			}
		}
	}
}
