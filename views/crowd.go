package views

import "slices"

// crowdFrom is how many views a crowd has before its index pays for itself.
const crowdFrom = 16

// crowd is views that one child wakes, and that differ in constants: in those of
// their relation, or of another child, an index that these choose a part of. A view is
// concerned by a group of the child only where there are tuples with its constants
// that go with the group, or have just gone. What goes brings a view word by itself.
// So the views to wake are found among the tuples that go with the group, whatever
// their constants, and not by asking each view.
type crowd struct {
	readers
	members  []*reader
	relation *Relation
	cols     []int  // those that go with the group, then those of the constants
	at       []int  // where the former stand in the key of the child
	index    *Index // ordered by cols; nil while the crowd is small
}

// gate is what chooses whether a wake concerns a view.
type gate struct {
	relation *Relation
	cols, at []int // as those of a crowd
	ids      []uint64
}

// gate finds that of wake i, nil if it has none.
func (v *view) gate(i int) *gate {
	w := &v.wakes[i]
	if len(w.child.lead) > 0 {
		return nil
	}
	if len(v.consts) > 0 {
		cols, ids := constColumns(v.consts)
		return &gate{v.relation, slices.Concat(w.key, cols), ascending(len(w.key)), ids}
	}
	for j := range v.wakes {
		other := &v.wakes[j]
		lead := len(other.child.lead)
		if lead == 0 || slices.ContainsFunc(other.key, func(col int) bool { return !slices.Contains(w.key, col) }) {
			continue
		}
		order := other.child.leaf.cols
		g := &gate{relation: other.child.relation, ids: other.child.lead}
		g.cols = slices.Concat(order[lead:lead+len(other.key)], order[:lead])
		for _, col := range other.key {
			g.at = append(g.at, slices.Index(w.key, col))
		}
		return g
	}
	return nil
}

// join has the children of a new view wake it.
func (c *compiler) join(v *view) {
	for i := range v.wakes {
		w := &v.wakes[i]
		g := v.gate(i)
		if g == nil {
			w.child.parents = append(w.child.parents, v)
			continue
		}
		w.crowd = w.child.crowdOf(g)
		w.reader = &reader{view: v}
		for j, id := range g.ids {
			w.reader.consts = append(w.reader.consts, constCol{len(g.at) + j, id})
		}
		w.crowd.add(w.reader)
		w.crowd.members = append(w.crowd.members, w.reader)
		if len(w.crowd.members) == crowdFrom {
			w.crowd.index = c.find(g.relation, g.cols)
			w.crowd.index.refs++
		}
	}
}

// crowdOf is the crowd of a child that has the gate, a new one if there is none.
func (v *view) crowdOf(g *gate) *crowd {
	for _, c := range v.crowds {
		if c.relation == g.relation && slices.Equal(c.cols, g.cols) && slices.Equal(c.at, g.at) {
			return c
		}
	}
	c := &crowd{relation: g.relation, cols: g.cols, at: g.at}
	v.crowds = append(v.crowds, c)
	return c
}

// leave takes back what join has done.
func (v *view) leave() {
	for i := range v.wakes {
		w := &v.wakes[i]
		if w.crowd == nil {
			at := slices.Index(w.child.parents, v)
			w.child.parents = slices.Delete(w.child.parents, at, at+1)
			continue
		}
		w.crowd.remove(w.reader)
		at := slices.Index(w.crowd.members, w.reader)
		w.crowd.members = slices.Delete(w.crowd.members, at, at+1)
		if n := len(w.crowd.members); n < crowdFrom && w.crowd.index != nil {
			w.crowd.index.refs--
			w.crowd.index = nil
		}
		if len(w.crowd.members) == 0 {
			w.child.crowds = slices.DeleteFunc(w.child.crowds, func(c *crowd) bool { return c == w.crowd })
		}
	}
}

// markAbove has the views looked at that the groups concern which came or went in
// their child v.
func (s *Store) markAbove(v *view) {
	for _, p := range v.parents {
		s.mark(p)
	}
	for _, c := range v.crowds {
		if c.index == nil {
			for _, r := range c.members {
				s.mark(r.view)
			}
			continue
		}
		for j := range v.toggledKeys() {
			s.called = s.concerned(s.called[:0], c, v.toggledKey(j))
			for _, r := range s.called {
				s.handRow(r, int32(j))
			}
		}
	}
}

// concerned appends the members of a crowd that a group with the given key concerns,
// some more than once. It looks at no more tuples than there are members, and
// takes all members if there are more.
func (s *Store) concerned(dst []*reader, c *crowd, key []uint64) []*reader {
	s.prefix = s.prefix[:0]
	for _, at := range c.at {
		s.prefix = append(s.prefix, key[at])
	}
	space, root := s.at(c.index)
	s.cursor.Seek(space, root, len(c.index.cols), s.prefix)
	tuple := s.scratch(len(c.cols))
	group := c.groups[0]
	for n := 0; s.cursor.Next(); n++ {
		if n == len(c.members) {
			return append(dst, c.members...)
		}
		s.cursor.Columns(tuple, 0)
		for _, r := range group.of(tuple) {
			if has(tuple, r.consts) {
				dst = append(dst, r)
			}
		}
	}
	return dst
}

// calls is how many groups of the child may concern the view.
func (w *wake) calls() int {
	if w.crowd != nil && w.crowd.index != nil {
		return len(w.reader.rows)
	}
	return w.child.toggledKeys()
}

// call is the key of group j of those.
func (w *wake) call(j int) []uint64 {
	if w.crowd != nil && w.crowd.index != nil {
		j = int(w.reader.rows[j])
	}
	return w.child.toggledKey(j)
}
