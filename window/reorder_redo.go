package window

import (
	"cmp"
	"math/bits"
	"slices"
)

// tangle is what the search for the events that have to be done again has met:
// facts, and IDs by a mark at the name. Most events of the history have to do
// with none of them, which filters tell without a look at the map or the names.
type tangle struct {
	facts   map[uint64]struct{} // by hash
	round   uint64              // number of the search
	counted []bool              // by relation
	grown   bool
	picked  []entry

	factFilter, nameFilter filter
}

// filter tells most numbers that are not in a set.
type filter [64]uint64

func (f *filter) add(x uint64) { f[x>>6&63] |= 1 << (x & 63) }

func (f *filter) has(x uint64) bool { return f[x>>6&63]>>(x&63)&1 != 0 }

// fact is a hash of a fact, in 64 bits.
func (h *hasher) fact(rel uint32, tuple []uint64) uint64 {
	hi, lo := bits.Mul64(uint64(rel)^h.c, h.a|1)
	x := hi ^ lo
	for _, w := range tuple {
		hi, lo = bits.Mul64(w^h.b, x^h.c)
		x = hi ^ lo
	}
	return x
}

// tangleKey is what events have in common that a fact ties together: the fact,
// or the whole relation where numbers of appends matter.
func (s *Store) tangleKey(rel uint32, tuple []uint64) uint64 {
	if s.reorder.tangle.counted[rel] {
		tuple = nil
	}
	return s.hash.fact(rel, tuple)
}

// applyLate applies events whose places are before the end of the history.
func (s *Store) applyLate(late []entry, r *Released) {
	first := 0
	for first < len(late) && s.standsAlone(late[first].value) {
		first++
	}
	if first == len(late) {
		for _, e := range late {
			s.applyNew(e, r)
		}
		return
	}
	s.entangle(late, late[first])
	picked := s.reorder.tangle.picked
	for i := len(picked) - 1; i >= 0; i-- {
		s.unapply(picked[i].value)
	}
	for _, e := range late {
		for len(picked) > 0 && picked[0].before(e) {
			s.reapply(picked[0], r)
			picked = picked[1:]
		}
		s.applyNew(e, r)
	}
	for _, e := range picked {
		s.reapply(e, r)
	}
}

// reapply applies an event of the history again.
func (s *Store) reapply(e entry, r *Released) {
	_, columns := s.apply(e.value, e.time, true)
	r.Columns += columns
}

// standsAlone reports whether no event in the history can have to do with an
// event, so that it may be applied at any place: an insertion without an ID to a
// fact from which no event in the history deletes the oldest. There, which of two
// contributions was appended first matters only for one with an ID that gets the
// time of the other, so there must be none either.
func (s *Store) standsAlone(ref uint64) bool {
	q := &s.reorder
	ev := q.events.at(ref)
	rel := int(ev.rel())
	if ev.deletes() || ev[evID] != 0 || s.counted(ev.rel()) || rel < len(q.named) && q.named[rel] > 0 {
		return false
	}
	return len(q.deletions) == 0 || q.deletions[s.hash.fact(ev.rel(), ev.tuple())] == 0
}

// entangle finds the events of the history behind the first late one that have
// to do with late ones, directly or through others, in their order: those to the
// same fact or with the same ID, by what they say or by what they did.
func (s *Store) entangle(late []entry, first entry) {
	q := &s.reorder
	t := &q.tangle
	t.start(s)
	for _, e := range late {
		if !s.standsAlone(e.value) {
			s.meet(q.events.at(e.value))
		}
	}
	for t.grown = true; t.grown; {
		t.grown = false
		for e := range q.history.all(&q.blocks, first) {
			ev := q.events.at(e.value)
			if s.touches(ev) && ev[evHead]&evPicked == 0 {
				ev[evHead] |= evPicked
				t.picked = append(t.picked, e)
				s.meet(ev)
			}
		}
	}
	for _, e := range t.picked {
		q.events.at(e.value)[evHead] &^= evPicked
	}
	slices.SortFunc(t.picked, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.seq, b.seq))
	})
}

// start begins a search.
func (t *tangle) start(s *Store) {
	if t.facts == nil {
		t.facts = map[uint64]struct{}{}
	}
	clear(t.facts)
	t.factFilter, t.nameFilter = filter{}, filter{}
	t.round++
	t.picked, t.counted = t.picked[:0], t.counted[:0]
	for rel := range s.rels {
		t.counted = append(t.counted, s.counted(uint32(rel)))
	}
}

// touches reports whether an event has to do with what the search has met.
func (s *Store) touches(ev event) bool {
	if s.met(ev) || ev[evOld] != 0 && s.met(s.reorder.events.at(ev[evOld]-1)) {
		return true
	}
	out := ev.outcome()
	return ev[evID] != 0 && (out == outConflict || out == outMissing) && s.yields(ev)
}

// met reports whether the search has met the fact or the ID of an event.
func (s *Store) met(ev event) bool {
	q := &s.reorder
	t := &q.tangle
	if id := ev[evID]; id != 0 && t.nameFilter.has(id) && q.names.list[id-1].mark == t.round {
		return true
	}
	return !ev.bare() && t.has(s.tangleKey(ev.rel(), ev.tuple()))
}

func (t *tangle) has(key uint64) bool {
	if !t.factFilter.has(key) {
		return false
	}
	_, ok := t.facts[key]
	return ok
}

// yields reports whether the ID of an event is that of a contribution to another
// fact, which the search has met. For an event that did nothing because of that
// nothing else tells that it may do something now.
func (s *Store) yields(ev event) bool {
	known, live := s.ids[s.reorder.names.of(ev[evID])]
	if !live {
		return false
	}
	r := s.rels[known.rel]
	return s.reorder.tangle.has(s.tangleKey(uint32(known.rel), r.facts.at(s.named[known].rec)[:r.arity]))
}

// meet adds the fact and the ID of an event, and of the contribution that it
// took away, to what the search has met.
func (s *Store) meet(ev event) {
	q := &s.reorder
	t := &q.tangle
	if !ev.bare() {
		t.meet(s.tangleKey(ev.rel(), ev.tuple()))
	}
	if id := ev[evID]; id != 0 && q.names.list[id-1].mark != t.round {
		q.names.list[id-1].mark = t.round
		t.nameFilter.add(id)
		t.grown = true
		if known, live := s.ids[q.names.of(id)]; live {
			r := s.rels[known.rel]
			t.meet(s.tangleKey(uint32(known.rel), r.facts.at(s.named[known].rec)[:r.arity]))
		}
	}
	if old := ev[evOld]; old != 0 {
		s.meet(q.events.at(old - 1))
	}
}

func (t *tangle) meet(key uint64) {
	if _, ok := t.facts[key]; !ok {
		t.facts[key] = struct{}{}
		t.factFilter.add(key)
		t.grown = true
	}
}
