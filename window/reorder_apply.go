package window

// limits is what a relation keeps at some logical time.
type limits struct {
	horizon
	all, byTime, byNumber bool
}

// limitsAt returns what a relation keeps at a logical time, when the next append
// has the number that it has now.
func (r *relation) limitsAt(at int64) limits {
	f := r.frames
	if f == nil || !f.byTime && !f.byNumber {
		return limits{all: true}
	}
	return limits{f.horizon(at, r.seq), false, f.byTime, f.byNumber}
}

func (l *limits) keeps(time int64, seq uint64) bool {
	return l.all || l.byTime && time >= l.time || l.byNumber && int64(seq>>1) >= l.number
}

// counted reports whether a relation has windows of the newest contributions,
// for which the numbers of the appends have to be in the order of the events.
func (s *Store) counted(rel uint32) bool {
	f := s.rels[rel].frames
	if f == nil {
		return false
	}
	for _, w := range f.windows {
		if w.Last > 0 {
			return true
		}
	}
	return false
}

// apply applies an event at a logical time and notes in it what it has done;
// with note also what it has taken away, so that it can be unapplied. It returns
// the outcome, and the columns of the facts of contributions that are gone.
func (s *Store) apply(ref uint64, at int64, note bool) (outcome, columns uint64) {
	q := &s.reorder
	ev := q.events.at(ref)
	id := q.names.of(ev[evID])
	var seq, old uint64
	switch {
	case !ev.deletes():
		outcome, seq, old, columns = s.applyInsertion(ev, id, at, note)
	case id != "":
		outcome, old, columns = s.applyDeletionID(ev, id, at, note)
	default:
		outcome, old, columns = s.applyDeletion(ev, at, note)
	}
	// The event may have moved when a contribution was remembered.
	q.events.at(ref).effect(outcome, seq, old)
	return outcome, columns
}

// applyInsertion appends a contribution, or refreshes that with the ID. One that
// has the ID and is expired at this time goes first.
func (s *Store) applyInsertion(ev event, id string, at int64, note bool) (outcome, seq, old, columns uint64) {
	rel, tuple := ev.rel(), ev.tuple()
	r := s.rels[rel]
	if known, live := s.ids[id]; live {
		where := s.named[known]
		owner := s.rels[known.rel]
		limits := owner.limitsAt(at)
		same := known.rel == uint64(rel) && equal(r.facts.at(where.rec), tuple)
		switch {
		case !limits.keeps(where.time, known.seq):
			old = s.withdraw(uint32(known.rel), where.rec, entry{where.time, known.seq, 0}, note)
			columns = uint64(owner.arity)
		case !same:
			return outConflict, 0, 0, 0
		default:
			if note {
				e := s.copies.exactly(r.facts.at(where.rec)[r.arity:], entry{where.time, known.seq, 0})
				old = s.reorder.remember(rel, tuple, e, id)
			}
			// It is to this fact, so nothing refuses it.
			_ = s.refresh(known, rel, tuple, int64(ev[evTime]), ev[evValue])
			return outRefreshed, known.seq, old, 0
		}
	}
	seq = r.seq << 1
	if id != "" {
		seq |= 1
	}
	if err := s.Insert(rel, tuple, int64(ev[evTime]), ev[evValue], id); err != nil {
		return outConflict, 0, old, columns
	}
	if r.frames != nil {
		r.frames.passed(int64(ev[evTime]), seq)
	}
	return outAppended, seq, old, columns
}

// passed has Advance look at all contributions if one has come, under a number
// that was given out before, which Advance may have passed: events that do not
// wait have moved the time on then.
func (f *frames) passed(time int64, seq uint64) {
	if f.byTime && f.byNumber && !f.need.has(time, seq) {
		f.full = true
	}
}

// applyDeletionID deletes the contribution with an ID unless it is expired.
func (s *Store) applyDeletionID(ev event, id string, at int64, note bool) (outcome, old, columns uint64) {
	known, live := s.ids[id]
	if !live {
		return outMissing, 0, 0
	}
	where := s.named[known]
	r := s.rels[known.rel]
	limits := r.limitsAt(at)
	matches := ev.bare() || known.rel == uint64(ev.rel()) && equal(r.facts.at(where.rec), ev.tuple())
	if !matches || !limits.keeps(where.time, known.seq) {
		return outMissing, 0, 0
	}
	old = s.withdraw(uint32(known.rel), where.rec, entry{where.time, known.seq, 0}, note)
	return outTaken, old, uint64(r.arity)
}

// applyDeletion deletes one contribution of a fact that is not expired.
func (s *Store) applyDeletion(ev event, at int64, note bool) (outcome, old, columns uint64) {
	r := s.rels[ev.rel()]
	rec, ok := r.find(ev.tuple(), s.hash.sum(ev.tuple()))
	if !ok {
		return outMissing, 0, 0
	}
	limits := r.limitsAt(at)
	e, ok := s.copies.oldestKept(r.facts.at(rec)[r.arity:], ev[evValue], &limits)
	if !ok {
		return outMissing, 0, 0
	}
	old = s.withdraw(ev.rel(), rec, e, note)
	return outTaken, old, uint64(r.arity)
}

// withdraw retracts the contribution with the time and number of e, and with
// note returns a memory of it.
func (s *Store) withdraw(rel, rec uint32, e entry, note bool) (old uint64) {
	r := s.rels[rel]
	w := r.facts.at(rec)
	tuple, tail := w[:r.arity], w[r.arity:]
	if note {
		e = s.copies.exactly(tail, e)
		id := ""
		if e.seq&1 != 0 {
			id = s.named[name{uint64(rel), e.seq}].id
		}
		old = s.reorder.remember(rel, tuple, e, id)
	}
	s.retract(r, rel, rec, s.hash.sum(tuple), tail, s.copies.exact(tail, e))
	if r.frames != nil {
		r.frames.remove(&s.copies, rec, e.time, e.seq)
	}
	return old
}

// unapply undoes what an applied event has done. What cannot come back is passed
// over: contributions may have been changed by events that do not wait.
func (s *Store) unapply(ref uint64) {
	q := &s.reorder
	ev := q.events.at(ref)
	q.log.effect(ref, ev)
	outcome, old := ev.outcome(), ev[evOld]
	switch {
	case outcome == outAppended:
		s.cancel(ev)
	case outcome == outRefreshed && s.unrefresh(ev, q.events.at(old-1)):
		old = 0
	}
	if old != 0 {
		s.bringBack(q.events.at(old - 1))
	}
	q.events.at(ref).effect(outNone, 0, 0)
}

// unrefresh gives a contribution its old time and value, and reports whether it
// was there. One that was refreshed to a time long ago may have expired since.
func (s *Store) unrefresh(ev, was event) bool {
	at, ok := s.named[name{uint64(ev.rel()), ev[evSeq]}]
	if ok && at.time == int64(ev[evTime]) {
		// A contribution to another fact is an error that leaves it alone.
		_ = s.refresh(name{uint64(ev.rel()), ev[evSeq]}, ev.rel(), ev.tuple(), int64(was[evTime]), was[evValue])
	}
	return ok
}

// cancel takes away the contribution that an event has appended. Its number is
// free again if it is the last.
func (s *Store) cancel(ev event) {
	rel, e := ev.rel(), ev.entry()
	r := s.rels[rel]
	rec, ok := r.find(ev.tuple(), s.hash.sum(ev.tuple()))
	if !ok || !s.copies.holds(r.facts.at(rec)[r.arity:], e) {
		return
	}
	s.withdraw(rel, rec, e, false)
	if e.seq>>1 == r.seq-1 {
		r.seq--
		s.undo.returned(rel)
	}
}

// bringBack puts a contribution back that an event has taken away, under its
// number, unless its ID or its number has gone to another one since.
func (s *Store) bringBack(was event) {
	rel, tuple, e, id := was.rel(), was.tuple(), was.entry(), s.reorder.names.of(was[evID])
	r := s.rels[rel]
	if _, taken := s.ids[id]; taken {
		return
	}
	if _, taken := s.named[name{uint64(rel), e.seq}]; taken {
		return
	}
	hash := s.hash.sum(tuple)
	rec, ok := r.find(tuple, hash)
	if !ok {
		if r.facts.live >= factsMax || !r.roomByValue() {
			return
		}
		rec = r.add(tuple, hash)
	}
	tail := r.facts.at(rec)[r.arity:]
	old := s.copies.count(tail[2])
	s.touch(r, rel, rec, hash, tail, old)
	if old == 0 {
		r.live++
	}
	if id != "" {
		s.name(name{uint64(rel), e.seq}, named{id, e.time, rec})
	}
	if s.returned != nil {
		was.terms(s.returned)
	}
	s.copies.insert(tail, e)
	if f := r.frames; f != nil {
		f.add(&s.copies, rec, e.time, e.seq)
		f.passed(e.time, e.seq)
	}
	if r.valued != nil {
		s.putValued(r, rel, rec, e)
	}
	s.live++
	s.undo.put(rel, rec, e)
}

// peek returns the contribution at a place of a fact that has some.
func (c *copies) peek(tail []uint64, at place) entry {
	state := tail[2]
	switch state & formMask {
	case formRun:
		block, class, _ := run(state)
		return read(c.blocks[class].at(block), at.i)
	case formBig:
		return read(c.lists[uint32(state)].words(&c.blocks[classes-1], at.chunk), at.i)
	}
	return entry{time: int64(tail[0]), seq: tail[1]}
}

// exactly returns the contribution with the time and number of e, which is there.
func (c *copies) exactly(tail []uint64, e entry) entry { return c.peek(tail, c.exact(tail, e)) }

// holds reports whether a fact has the contribution with the time and number of
// e.
func (c *copies) holds(tail []uint64, e entry) bool {
	if tail[2]&formMask == 0 {
		return false
	}
	at := c.exact(tail, e)
	if at.i < 0 {
		return false
	}
	x := c.peek(tail, at)
	return x.time == e.time && x.seq == e.seq
}

// oldestKept returns the first contribution that is within the limits and has
// this value, any for value 0. The cost is linear in those that are passed over;
// with limits by time alone whole blocks are.
func (c *copies) oldestKept(tail []uint64, value uint64, l *limits) (found entry, ok bool) {
	look := func(e entry) bool {
		if ok = (value == 0 || e.value == value) && l.keeps(e.time, e.seq); ok {
			found = e
		}
		return !ok
	}
	if tail[2]&formMask != formBig || l.all || l.byNumber {
		c.each(tail, look)
		return found, ok
	}
	big, blocks := &c.lists[uint32(tail[2])], &c.blocks[classes-1]
	for k := big.chunkOf(blocks, entry{time: l.time}); k < len(big.dir); k++ {
		if !eachOf(big.words(blocks, k), int(big.dir[k].n), look) {
			break
		}
	}
	return found, ok
}
