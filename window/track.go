package window

import "github.com/triegs/triegs/internal/invariant"

// bitmap is a set of record numbers, one bit for each up to the largest.
type bitmap []uint64

// set puts a number into the set.
func (b *bitmap) set(i uint32) {
	w := int(i >> 6)
	if w >= len(*b) {
		*b = append(*b, make(bitmap, w+1-len(*b))...)
	}
	(*b)[w] |= 1 << (i & 63)
}

// setRange puts the numbers from lo up to but not including hi into the set.
func (b *bitmap) setRange(lo, hi uint64) {
	if n := int((hi + 63) >> 6); n > len(*b) {
		*b = append(*b, make(bitmap, n-len(*b))...)
	}
	for lo < hi {
		if lo&63 == 0 && hi-lo >= 64 {
			(*b)[lo>>6] = ^uint64(0)
			lo += 64
			continue
		}
		(*b)[lo>>6] |= 1 << (lo & 63)
		lo++
	}
}

// add puts the numbers of another set into the set.
func (b *bitmap) add(other bitmap) {
	if n := len(other); n > len(*b) {
		*b = append(*b, make(bitmap, n-len(*b))...)
	}
	for i, w := range other {
		(*b)[i] |= w
	}
}

// has reports whether a number is in the set.
func (b bitmap) has(i uint32) bool {
	w := int(i >> 6)
	return w < len(b) && b[w]>>(i&63)&1 != 0
}

// Track has the store note from now on which facts change, at one bit a fact,
// so that [Store.Capture] can tell them. It is called once on a store without
// facts, before the first of them or before [Store.Restore].
func (s *Store) Track() {
	invariant.Check(s.live == 0, "tracking begins with %d contributions unnoted", s.live)
	s.tracking = true
}

// Sequence returns the number that the next append to a relation gets.
func (s *Store) Sequence(rel uint32) uint64 { return s.rels[rel].seq }

// note remembers that a record changes, before it does. A running capture that
// still has to read it gets its state as it is.
func (s *Store) note(r *relation, rel, rec uint32) {
	r.changed.set(rec)
	if r.pending.has(rec) {
		s.capture.save(r, rel, rec)
	}
}

// record returns the words of a record if it holds a fact, else nil. It is for
// the time between two epochs, and takes any number.
func (r *relation) record(rec uint32) []uint64 {
	page, at := int(rec>>r.facts.shift), int(rec&(1<<r.facts.shift-1))*r.facts.width
	if page >= len(r.facts.pages) || at >= len(r.facts.pages[page]) {
		return nil
	}
	w := r.facts.pages[page][at : at+r.facts.width]
	if w[r.arity+2] == 0 {
		return nil
	}
	return w
}
