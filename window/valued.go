package window

import (
	"slices"

	"github.com/triegs/triegs/internal/invariant"
)

// The contributions to a relation by their values: where somebody reads them, the
// relation has a shadow, which is a relation of its own with one column more, the
// value (0 = none). Each contribution is in both, with the same time and number;
// whatever puts one into the relation or takes one out of it, undoing included, does
// the same to the shadow, so that it needs no entries in the undo log. It has the same
// windows, which stand where those of the relation stand, and retracts nothing by
// itself. Captures, walks and scans know of the relation only.

// SetValued says whether somebody reads the facts of a relation together with the
// values of their contributions, as the cursors from [Store.ValuedChanges] to
// [Store.ValuedFactsIn] give them. Without it values cost nothing beyond their
// storage; with it each contribution is held twice.
//
// Inside of an epoch it belongs to it; the changes are those since it was set. The
// cost is that of an insertion for each contribution when it is switched on, and
// linear in the pairs of fact and value when it is switched off. The error wraps
// ErrBudget (a relation is limited to 2^32-2 such pairs) and changes nothing.
func (s *Store) SetValued(rel uint32, on bool) error {
	r := s.rels[rel]
	if (r.valued != nil) == on {
		return nil
	}
	var next *relation
	if on {
		var err error
		if next, err = s.shadow(r, rel); err != nil {
			return err
		}
	}
	if s.running {
		s.undo.shadowed(rel, r.valued)
	} else if r.valued != nil {
		s.dissolve(r.valued, r.valued.frames)
	}
	r.valued = next
	return nil
}

// Valued reports what SetValued has set.
func (s *Store) Valued(rel uint32) bool { return s.rels[rel].valued != nil }

// ValuedLen returns the number of pairs of a fact and a value that a contribution
// to a relation has, each counted once. SetValued has been called.
func (s *Store) ValuedLen(rel uint32) int { return s.rels[rel].valued.live }

// ValuedChanges is [Store.Changes] by fact and value: a tuple has the value behind
// its columns, the multiplicity is the number of contributions with it. SetValued
// has been called.
func (s *Store) ValuedChanges(rel uint32) Changes {
	return Changes{r: s.rels[rel].valued, copies: &s.copies}
}

// ValuedCrossings is [Store.Crossings] by fact and value.
func (s *Store) ValuedCrossings(rel uint32) Crossings {
	return s.crossings(s.rels[rel].valued)
}

// ValuedFacts is [Store.Facts] by fact and value.
func (s *Store) ValuedFacts(rel uint32) Facts {
	return Facts{r: s.rels[rel].valued, copies: &s.copies}
}

// ValuedFactsIn is [Store.FactsIn] by fact and value.
func (s *Store) ValuedFactsIn(rel uint32, w int) Facts {
	return Facts{r: s.rels[rel].valued, copies: &s.copies, view: view{inside, w}}
}

// shadow makes the shadow of a relation as it is now.
func (s *Store) shadow(r *relation, rel uint32) (*relation, error) {
	v := &relation{arity: r.arity + 1, facts: newSlab(r.arity + 1 + tailWords), seq: r.seq, shadow: true}
	for _, w := range r.facts.all() {
		if w[r.arity+2]&formMask == 0 {
			continue
		}
		full := !s.copies.each(w[r.arity:], func(e entry) bool {
			key := s.valuedKey(w[:r.arity], e.value)
			hash := s.hash.sum(key)
			rec, ok := v.find(key, hash)
			if !ok {
				if v.facts.live >= factsMax {
					return false
				}
				rec = v.add(key, hash)
				v.live++
			}
			s.copies.insert(v.facts.at(rec)[v.arity:], entry{e.time, e.seq, 0})
			return true
		})
		if full {
			s.dissolve(v, nil)
			return nil, errFacts
		}
	}
	if f := r.frames; f != nil && len(f.list) > 0 {
		v.frames = newFrames(f.at, r.seq, f.windows, Forever)
		for i := range f.list {
			now := f.list[i].now
			v.frames.list[i].now, v.frames.list[i].was = now, now
		}
		v.frames.order(s, rel, v, nil)
	}
	return v, nil
}

// valuedKey is the tuple of a shadow, valid until the next one.
func (s *Store) valuedKey(tuple []uint64, value uint64) []uint64 {
	s.key = append(append(s.key[:0], tuple...), value)
	return s.key
}

// roomByValue reports whether one more pair of fact and value fits.
func (r *relation) roomByValue() bool { return r.valued == nil || r.valued.facts.live < factsMax }

// putValued adds a contribution to a fact, which is in a record, to the shadow.
func (s *Store) putValued(r *relation, rel, rec uint32, e entry) {
	v, key := r.valued, s.valuedKey(r.facts.at(rec)[:r.arity], e.value)
	hash := s.hash.sum(key)
	at, ok := v.find(key, hash)
	if !ok {
		at = v.add(key, hash)
	}
	tail := v.facts.at(at)[v.arity:]
	n := s.copies.count(tail[2])
	s.touch(v, rel, at, hash, tail, n)
	if n == 0 {
		v.live++
	}
	s.copies.insert(tail, entry{e.time, e.seq, 0})
	if v.frames != nil {
		v.frames.add(&s.copies, at, e.time, e.seq)
	}
}

// takeValued takes a contribution out of the shadow.
func (s *Store) takeValued(r *relation, rel, rec uint32, e entry) {
	v, key := r.valued, s.valuedKey(r.facts.at(rec)[:r.arity], e.value)
	hash := s.hash.sum(key)
	at, ok := v.find(key, hash)
	invariant.Check(ok, "a contribution with value %d is not in the shadow", e.value)
	tail := v.facts.at(at)[v.arity:]
	n := s.copies.count(tail[2])
	s.touch(v, rel, at, hash, tail, n)
	if n == 1 {
		v.live--
	}
	s.copies.take(tail, s.copies.exact(tail, e))
	if v.frames != nil {
		v.frames.remove(&s.copies, at, e.time, e.seq)
	}
}

// slideValued brings the windows of a shadow to where those of its relation are.
// What has expired is gone there already.
func (s *Store) slideValued(r *relation, rel uint32) {
	v := r.valued
	if v == nil || v.frames == nil {
		return
	}
	v.seq, v.frames.at = r.seq, r.frames.at
	s.slide(v, rel, horizon{})
	invariant.Check(len(v.touched) == 0 || len(r.touched) > 0, "values of relation %d have moved without their facts", rel)
}

// followValued does it where nothing enters or leaves a window.
func (r *relation) followValued() {
	if v := r.valued; v != nil && v.frames != nil {
		v.seq, v.frames.at = r.seq, r.frames.at
		v.frames.follow(r.seq)
	}
}

// dissolve gives back what a shadow and frames of it hold. A second time does
// nothing.
func (s *Store) dissolve(v *relation, f *frames) {
	for _, w := range v.facts.all() {
		s.copies.release(w[v.arity:])
	}
	v.facts, v.slots, v.touched, v.live = newSlab(v.facts.width), nil, nil, 0
	f.release(&s.copies, nil)
}

// release gives back what a fact holds of blocks and lists.
func (c *copies) release(tail []uint64) {
	switch state := tail[2]; state & formMask {
	case formRun:
		block, class, _ := run(state)
		c.blocks[class].release(block)
	case formBig:
		number := uint32(state)
		for _, ch := range c.lists[number].chunks() {
			c.blocks[classes-1].release(ch.block)
		}
		c.lists[number] = list{}
		c.unused = append(c.unused, number)
	}
	tail[2] = 0
}

// shadowing is the shadow that a relation had, with its windows.
type shadowing struct {
	rel    uint32
	shadow *relation // nil = none
	frames *frames
}

// shadowed is for another shadow of a relation, or other windows of it.
func (u *undoLog) shadowed(rel uint32, was *relation) {
	old := shadowing{rel: rel, shadow: was}
	if was != nil {
		old.frames = was.frames
	}
	u.shadows = append(u.shadows, old)
	u.words = append(u.words, head(opShadowed, rel, 0))
}

// unshadow gives a relation the shadow back that it had.
func (s *Store) unshadow(old *shadowing) {
	r := s.rels[old.rel]
	now := r.valued
	r.valued = old.shadow
	switch {
	case now == nil:
	case now != old.shadow:
		s.dissolve(now, now.frames)
	default:
		now.frames.release(&s.copies, old.frames)
	}
	if old.shadow != nil {
		old.shadow.frames = old.frames
	}
}

// dropShadows lets go of the shadows, and the windows of shadows, that the epoch
// has replaced.
func (s *Store) dropShadows() {
	for _, old := range s.undo.shadows {
		switch now := s.rels[old.rel].valued; {
		case old.shadow == nil:
		case old.shadow != now:
			s.dissolve(old.shadow, old.frames)
		default:
			old.frames.release(&s.copies, now.frames)
		}
	}
}

// reshadow makes the shadows anew of relations that were filled under them.
func (s *Store) reshadow(rels []*relation) error {
	for i, r := range rels {
		if r.valued == nil {
			continue
		}
		if err := s.SetValued(uint32(i), false); err != nil {
			return err
		}
		if err := s.SetValued(uint32(i), true); err != nil {
			return err
		}
	}
	return nil
}

// settleAll ends the epoch for all touched facts of a relation.
func (s *Store) settleAll(r *relation) {
	for some := range slices.Chunk(r.touched, blockMax) {
		s.warmed += r.warmSlots(some)
		r.settle(some)
	}
	r.trim()
}
