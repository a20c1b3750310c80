package views

import (
	"github.com/triegs/triegs/mvcc"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// sweepFrom is how many things an algebra holds before it is asked to forget some.
const sweepFrom = 1024

// sweepWrites is how often everything is written, about, between two sweeps.
const sweepWrites = 8

// sweepRounds is how many sweeps in a row it takes to forget everything: the first
// two keep what has been used since the one before.
const sweepRounds = 3

// swept is what is known of an algebra since its last sweep.
type swept struct {
	left   int  // things that it held then
	states int  // components that its states had
	writes int  // components written since
	rounds int  // sweeps still to do
	needed bool // some state has a component
}

// sweep lets algebras forget the witnesses, monomials and terms that no state holds
// any more. It is due when an algebra holds twice as many as were left the last
// time, or when several times as many components of states have been written since,
// deletes among them, so that its cost, one pass over the states, is a part of that of
// those; and when there is no state left, or no query. It is done only while no epoch but
// the published one is pinned, since the states of others are not looked at.
func (s *Store) sweep(published mvcc.Version, pinned []mvcc.Version) {
	if len(s.annotated) == 0 && len(s.swept) == 0 {
		return
	}
	if s.hydrations.Load() > 0 {
		return // the states of a query that is filled beside are not looked at
	}
	for _, v := range pinned {
		if v != published {
			return
		}
	}
	s.meetAlgebras()
	for a, w := range s.swept {
		s.sweepOne(a, w)
		if !w.needed && w.rounds == 0 {
			delete(s.swept, a)
		}
		w.needed = false
	}
}

// meetAlgebras notes what has been done in the algebras of all states.
func (s *Store) meetAlgebras() {
	for _, d := range s.annotated {
		for _, t := range d.tracks {
			if t == nil {
				continue
			}
			a, ok := t.algebra.(semiring.Sweeper)
			if !ok {
				continue
			}
			w, empty := s.swept[a], s.roots[t.slot] == 0
			if w == nil && empty {
				continue
			}
			if w == nil {
				if s.swept == nil {
					s.swept = make(map[semiring.Sweeper]*swept)
				}
				w = &swept{}
				s.swept[a] = w
			}
			w.needed = w.needed || !empty
			w.writes += t.writes
			t.writes = 0
		}
	}
}

// sweepOne sweeps an algebra if that is due.
func (s *Store) sweepOne(a semiring.Sweeper, w *swept) {
	size := a.Size()
	if !w.needed && size > 0 || size > max(sweepFrom, 2*w.left) || w.writes > sweepWrites*max(sweepFrom, size, w.states) {
		w.rounds = max(w.rounds, sweepRounds)
	}
	if w.rounds == 0 {
		return
	}
	w.states = 0
	a.Sweep(func(mark func(word uint64)) { w.states = s.markStates(a, mark) })
	w.left, w.writes = a.Size(), 0
	if w.rounds--; w.left <= 2*w.states+sweepFrom && w.needed || w.left == 0 {
		w.rounds = 0
	}
}

// markStates marks everything that a state of an algebra holds, and counts it.
func (s *Store) markStates(a semiring.Sweeper, mark func(word uint64)) (n int) {
	var c trie.Cursor
	for _, d := range s.annotated {
		for _, t := range d.tracks {
			if t == nil || t.algebra != semiring.Algebra(a) {
				continue
			}
			k := d.arity + stateColumns
			for c.Seek(s.arena.Space(), s.roots[t.slot], k, nil); c.Next(); {
				mark(c.Col(k - 1))
				n++
			}
		}
	}
	return n
}
