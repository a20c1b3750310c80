package views

import (
	"slices"

	"github.com/triegs/triegs/trie"
)

// climber finds the kept answers that one change of a view may be part of.
type climber struct {
	in     *interest
	row    int32 // of its changes
	left   int   // stakes that do not have it
	levels []*climbLevel
}

// climbLevel is the walk over the tuples of a view that go with one below.
type climbLevel struct {
	cursor trie.Cursor
	prefix []uint64
	tuple  []uint64 // of the relation, or the generalized node
	key    []uint64 // columns that go with the parents of the view, in the order of its trie
	called []*reader
}

// climb hands the change to the kept answers over v that it may be part of by a
// tuple of v with the given key.
func (s *Store) climb(v *view, key []uint64, height int) {
	if v.changed == nil || len(v.interest.stakes) <= fewStakes() {
		s.hand(v.interest)
		return
	}
	if height == len(s.climber.levels) {
		s.climber.levels = append(s.climber.levels, new(climbLevel))
	}
	for i, p := range v.parents {
		if i == 0 || p != v.parents[i-1] {
			s.climbTo(p, v, nil, key, height)
		}
	}
	for _, c := range v.crowds {
		called := c.members
		if c.index != nil {
			l := s.climber.levels[height]
			l.called = s.concerned(l.called[:0], c, key)
			called = l.called
		}
		for _, r := range called {
			s.climbTo(r.view, v, c, key, height)
		}
	}
}

// hand hands the change to all that have a stake in a view.
func (s *Store) hand(in *interest) {
	c := &s.climber
	for _, o := range in.stakes {
		st := o.answers.answers.stakeIn(c.in)
		if n := len(st.rows); n == 0 || st.rows[n-1] != c.row {
			st.rows = append(st.rows, c.row)
			c.left--
			s.owe(o.answers)
		}
	}
}

// climbTo climbs from a key of v to its partners in p, which v wakes, in a crowd
// or not.
func (s *Store) climbTo(p, v *view, in *crowd, key []uint64, height int) {
	if p.interest == nil || s.climber.left == 0 {
		return
	}
	if len(p.interest.stakes) <= fewStakes() {
		s.hand(p.interest)
		return
	}
	for i := range p.wakes {
		if w := &p.wakes[i]; w.child == v && w.crowd == in {
			s.climbAlong(p, w, key, height)
		}
	}
}

// climbAlong climbs to the partners in p of a key of one of its children, once for
// those that have the same partners above.
func (s *Store) climbAlong(p *view, w *wake, key []uint64, height int) {
	l := s.climber.levels[height]
	if w.index == nil { // a generalized node, all columns of which its children have
		l.tuple = slices.Grow(l.tuple[:0], p.columns)[:p.columns]
		for i, at := range w.key {
			l.tuple[at] = key[i]
		}
		if s.alive(p, l.tuple, w) {
			s.climb(p, l.tuple[:p.width()], height+1)
		}
		return
	}
	l.prefix = append(append(l.prefix[:0], w.lead...), key...)
	space, root := s.at(w.index)
	l.cursor.Seek(space, root, len(w.index.cols), l.prefix)
	l.tuple = slices.Grow(l.tuple[:0], p.relation.arity)[:p.relation.arity]
	above := p.order[:p.width()]
	for first := true; s.climber.left > 0 && l.cursor.Next() && s.goOn(); {
		for i, col := range w.index.cols {
			l.tuple[col] = l.cursor.Col(i)
		}
		if !first && l.keyIs(above) || len(p.wakes) > 1 && !s.alive(p, l.tuple, w) {
			continue
		}
		first, l.key = false, l.key[:0]
		for _, col := range above {
			l.key = append(l.key, l.tuple[col])
		}
		s.climb(p, l.key, height+1)
	}
}

// keyIs reports whether the tuple has the key in the given columns.
func (l *climbLevel) keyIs(cols []int) bool {
	for i, col := range cols {
		if l.key[i] != l.tuple[col] {
			return false
		}
	}
	return true
}

// width is how many columns of the trie of an inner node go with its parents.
func (v *view) width() int {
	if v.changed == nil {
		return 0
	}
	return v.changed.width
}
