package window

import (
	"cmp"
	"math"
	"slices"
)

// Advance moves the ends of all windows to logical time t, none back, and
// retracts what neither a window nor a retention needs any more. It comes once
// in an epoch, after its events and before its changes are read, and belongs to
// the epoch. It returns how many contributions have expired, and how many
// columns their facts had. The cost is that of the contributions that enter or
// leave a window or expire, whatever the span of time, and O(1) for each window.
func (s *Store) Advance(t int64) (expired, columns uint64) {
	for _, rel := range s.framed {
		r := s.rels[rel]
		f := r.frames
		f.at = max(f.at, t)
		if f.quiet() && !s.reorder.used {
			f.follow(r.seq)
			r.followValued()
			continue
		}
		f.advanced = true
		keeps := f.horizon(s.reach(rel, f.at))
		s.slide(r, rel, keeps)
		n := s.expire(r, rel, keeps)
		s.slideValued(r, rel)
		expired += n
		columns += n * uint64(r.arity)
	}
	return expired, columns
}

// quiet reports whether nothing enters, leaves or expires up to the logical time:
// no fact has changed since Due has looked, and what it has found is later.
func (f *frames) quiet() bool {
	return f.settled && !f.full && f.next.known && !(f.next.some && f.next.at <= f.at)
}

// follow brings all windows to the logical time.
func (f *frames) follow(next uint64) {
	for i := range f.list {
		f.list[i].now = spanAt(f.list[i].win, f.at, next)
	}
}

// slide moves the windows of a relation to its logical time, and touches the
// facts with contributions that enter or leave one. What expires for sure is
// left to expire.
func (s *Store) slide(r *relation, rel uint32, keeps horizon) {
	f := r.frames
	from := int64(math.MinInt64)
	switch {
	case f.byTime && !f.byNumber:
		from = keeps.time
	case f.byNumber && !f.byTime:
		from = keeps.number
	}
	for _, x := range [...]*index{f.times, f.numbers} {
		if x == nil {
			continue
		}
		s.ranges = f.moves(s.ranges[:0], x.byNumber, r.seq, from)
		for _, m := range merge(s.ranges) {
			s.touchAll(r, rel, x, m)
		}
	}
}

// moves brings the windows of one kind to the logical time and appends the
// ranges that enter or leave one, as far as they are not below a bound.
func (f *frames) moves(ranges []span, byNumber bool, next uint64, from int64) []span {
	note := func(lo, hi int64) {
		if hi >= from {
			ranges = append(ranges, span{max(lo, from), hi})
		}
	}
	for i := range f.list {
		w := &f.list[i]
		if w.win.IsZero() || w.win.Last > 0 != byNumber {
			continue
		}
		old, now := w.now, spanAt(w.win, f.at, next)
		if old == now {
			continue
		}
		w.now = now
		if now.lo > old.lo {
			note(old.lo, min(now.lo-1, old.hi))
		}
		if now.lo < old.lo {
			// Appends that were undone, since events came out of order.
			note(now.lo, old.lo-1)
		}
		if now.hi > old.hi {
			note(max(old.hi+1, now.lo), now.hi)
		}
	}
	return ranges
}

// merge sorts ranges and joins those that overlap.
func merge(ranges []span) []span {
	if len(ranges) < 2 {
		return ranges
	}
	slices.SortFunc(ranges, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	n := 0
	for _, m := range ranges[1:] {
		if m.lo <= ranges[n].hi {
			ranges[n].hi = max(ranges[n].hi, m.hi)
		} else {
			n++
			ranges[n] = m
		}
	}
	return ranges[:n+1]
}

// touchAll touches the facts of the contributions in a range of an index.
func (s *Store) touchAll(r *relation, rel uint32, x *index, in span) {
	blocks := &s.copies.blocks[classes-1]
	at, ok := x.seek(blocks, entry{time: in.lo})
	for ok && at.chunk < len(x.dir) {
		words := x.words(blocks, at.chunk)[copyWords*at.i : copyWords*int(x.dir[at.chunk].n)]
		n := 0
		for ; n < len(words) && int64(words[n]) <= in.hi; n += copyWords {
			s.warmed += r.facts.at(uint32(words[n+2]))[r.arity+2]
		}
		for i := 0; i < n; i += copyWords {
			s.touchOne(r, rel, uint32(words[i+2]))
		}
		ok = n == len(words)
		at = place{at.chunk + 1, 0}
	}
}

// touchOne touches the fact of a record.
func (s *Store) touchOne(r *relation, rel, rec uint32) {
	if w := r.facts.at(rec); w[r.arity+2]&touchedBit == 0 {
		s.touch(r, rel, rec, s.hash.sum(w[:r.arity]), w[r.arity:], s.copies.count(w[r.arity+2]))
	}
}

// horizon is what is needed at a logical time, when the next append has number
// next: with a retention by time the least event time, with one by number the
// least number.
func (f *frames) horizon(at int64, next uint64) (h horizon) {
	h = horizon{math.MaxInt64, int64(min(next, math.MaxInt64))}
	for i := range f.list {
		if w := f.list[i].win; w.Last > 0 {
			h.number = min(h.number, spanAt(w, at, next).lo)
		} else {
			h.time = min(h.time, spanAt(w, at, next).lo)
		}
	}
	if f.keep > 0 && f.keep < Forever {
		h.time = min(h.time, newerThan(at, f.keep))
	}
	return h
}

// newerThan is the least time that is newer than t less a span.
func newerThan(t, span int64) int64 {
	if t < math.MinInt64+span {
		return math.MinInt64
	}
	return t - span + 1
}

// expire retracts what is no longer needed, and returns how many contributions.
func (s *Store) expire(r *relation, rel uint32, keeps horizon) (n uint64) {
	f := r.frames
	switch {
	case f.byTime && f.byNumber:
		return s.expireBoth(r, rel, keeps)
	case f.byTime:
		return s.popBelow(r, rel, f.times, keeps.time)
	case f.byNumber:
		return s.popBelow(r, rel, f.numbers, keeps.number)
	}
	return 0
}

// popBelow retracts the contributions at the front of an index that are below a
// bound.
func (s *Store) popBelow(r *relation, rel uint32, x *index, bound int64) (n uint64) {
	blocks := &s.copies.blocks[classes-1]
	for whole := true; whole; {
		k := x.below(blocks, bound)
		if k == 0 {
			break
		}
		if whole = k == int(x.dir[x.head].n); whole && n == 0 && x.n > roomFrom {
			s.room(r, x.upTo(blocks, bound))
		}
		some := x.first(blocks, k, &s.some)
		s.warm(r, some)
		for _, e := range some {
			s.drop(r, rel, x, e)
		}
		x.cut(blocks, k)
		n += uint64(k)
	}
	return n
}

// roomFrom is how many contributions an epoch may retract before it is worth while
// to make room for what it notes of them all at once.
const roomFrom = 1 << 12

// room makes room for n retractions from a relation: slices that grow as they are
// filled copy what is in them several times.
func (s *Store) room(r *relation, n int) {
	if n < roomFrom {
		return
	}
	s.undo.words = slices.Grow(s.undo.words, undoRemoved*n)
	n = min(n, r.facts.live-len(r.touched))
	r.touched = slices.Grow(r.touched, n)
	r.frames.olds = slices.Grow(r.frames.olds, n*len(r.frames.list))
}

// warm has the records of entries fetched side by side.
func (s *Store) warm(r *relation, some []entry) {
	sum := uint64(0)
	for _, e := range some {
		sum += r.facts.at(uint32(e.value))[r.arity+2]
	}
	s.warmed = sum
}

// drop retracts the contribution of an entry of an index, which the caller takes
// out of there.
func (s *Store) drop(r *relation, rel uint32, x *index, e entry) {
	rec, time, seq := x.contribution(e)
	w := r.facts.at(rec)
	tail := w[r.arity:]
	s.retract(r, rel, rec, s.hash.sum(w[:r.arity]), tail, s.copies.exact(tail, entry{time, seq, 0}))
	for _, other := range [...]*index{r.frames.times, r.frames.numbers} {
		if other != nil && other != x {
			other.remove(&s.copies.blocks[classes-1], other.key(rec, time, seq))
		}
	}
}

// expireBoth retracts what lies below both bounds: where one of them has moved,
// or the time of a contribution.
func (s *Store) expireBoth(r *relation, rel uint32, keeps horizon) (n uint64) {
	f := r.frames
	old := f.need
	f.need = keeps
	if f.full {
		f.full, f.late = false, f.late[:0]
		return s.dropUnneeded(r, rel, f.times, everything)
	}
	for _, e := range f.late {
		// It may have been refreshed again, or retracted.
		at, ok := s.named[name{uint64(rel), e.seq}]
		if ok && !keeps.has(at.time, e.seq) {
			gone := f.times.key(at.rec, at.time, e.seq)
			s.drop(r, rel, f.times, gone)
			f.times.remove(&s.copies.blocks[classes-1], gone)
			n++
		}
	}
	f.late = f.late[:0]
	if keeps.time > old.time {
		n += s.dropUnneeded(r, rel, f.times, span{old.time, keeps.time - 1})
	}
	if keeps.number > old.number {
		n += s.dropUnneeded(r, rel, f.numbers, span{old.number, keeps.number - 1})
	}
	return n
}

// dropUnneeded retracts the contributions in a range of an index that are not
// needed.
func (s *Store) dropUnneeded(r *relation, rel uint32, x *index, in span) (n uint64) {
	for at, more := (entry{time: in.lo}), true; more; {
		k := x.read(&s.copies.blocks[classes-1], at, in.hi, &s.some)
		if k == 0 {
			break
		}
		for _, e := range s.some[:k] {
			if _, time, seq := x.contribution(e); !r.frames.need.has(time, seq) {
				s.drop(r, rel, x, e)
				x.remove(&s.copies.blocks[classes-1], e)
				n++
			}
		}
		at, more = s.some[k-1].after()
	}
	return n
}
