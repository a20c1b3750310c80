package views

import (
	"github.com/triegs/triegs/mvcc"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// sweepFrom is how many things an algebra holds before it is asked to forget some.
const sweepFrom = 1024

// sweep lets algebras forget the witnesses, monomials and terms that no state holds
// any more. It is done when an algebra holds twice as many as were left the last
// time, so that its cost, one pass over the states, is a constant for each new
// thing; and only while no epoch but the published one is pinned, since the states
// of others are not looked at.
func (s *Store) sweep(published mvcc.Version, pinned []mvcc.Version) {
	if s.hydrations.Load() > 0 {
		return // the states of a query that is filled beside are not looked at
	}
	for _, v := range pinned {
		if v != published {
			return
		}
	}
	for _, d := range s.annotated {
		for _, t := range d.tracks {
			if t == nil {
				continue
			}
			if a, ok := t.algebra.(semiring.Sweeper); ok && a.Size() > max(sweepFrom, 2*s.swept[a]) {
				a.Sweep(func(mark func(word uint64)) { s.markStates(a, mark) })
				if s.swept == nil {
					s.swept = make(map[semiring.Sweeper]int)
				}
				s.swept[a] = a.Size()
			}
		}
	}
}

// markStates marks everything that a state of an algebra holds.
func (s *Store) markStates(a semiring.Sweeper, mark func(word uint64)) {
	var c trie.Cursor
	for _, d := range s.annotated {
		for _, t := range d.tracks {
			if t == nil || t.algebra != semiring.Algebra(a) {
				continue
			}
			k := d.arity + stateColumns
			for c.Seek(s.arena.Space(), s.roots[t.slot], k, nil); c.Next(); {
				mark(c.Col(k - 1))
			}
		}
	}
}
