package views

import "slices"

// emptied reports whether the view is empty because a relation was cleared: its
// own, or that of a node below, since a tuple needs partners in every child. Nobody
// has to be woken by its groups.
func (v *view) emptied() bool {
	if v.gone || v.relation != nil && v.relation.cleared {
		return true
	}
	return slices.ContainsFunc(v.wakes, func(w wake) bool { return w.child.emptied() })
}

func (s *Store) visitInner(n *view) {
	stride, changes := n.relation.arity+2, n.relation.changes
	if len(n.consts) > 0 {
		for _, i := range n.reader.rows {
			s.visitChange(n, changes[int(i)*stride:(int(i)+1)*stride])
		}
	} else {
		for i := 0; i < len(changes) && s.goOn(); i += stride {
			s.visitChange(n, changes[i:i+stride])
		}
	}
	for i := range n.wakes {
		w := &n.wakes[i]
		for j := range w.calls() {
			if !s.goOn() {
				return
			}
			s.wake(n, w, w.call(j))
		}
	}
}

// visitChange recomputes a tuple that has changed in the relation.
func (s *Store) visitChange(n *view, change []uint64) {
	arity := n.relation.arity
	tuple, weight := change[:arity], change[arity+1]
	if weight != 0 && !s.alive(n, tuple, nil) {
		weight = 0
	}
	s.writeLive(n, tuple, n.weigh(weight))
}

// toggledKeys is the number of groups of a child that came or went, net over the
// epoch.
func (n *view) toggledKeys() int {
	if len(n.lead) > 0 {
		return len(n.reader.rows)
	}
	n.changed.settle()
	return n.changed.n
}

// toggledKey is the key of group j of those. An index may have other groups, which
// begin with other constants.
func (n *view) toggledKey(j int) []uint64 {
	if len(n.lead) > 0 {
		j = int(n.reader.rows[j])
	}
	return n.changed.at(j)[len(n.lead):]
}

// weigh is the weight that a live tuple carries in the node's trie.
func (n *view) weigh(weight uint64) uint64 {
	if n.unit && weight != 0 {
		return 1
	}
	return weight
}

// wake recomputes the tuples of n that have the given key in one child, whose
// group there has just become empty or non-empty.
func (s *Store) wake(n *view, w *wake, key []uint64) {
	on := s.hasGroup(w.child, key)
	s.prefix = append(append(s.prefix[:0], w.lead...), key...)
	space, root := s.at(w.index)
	s.cursor.Seek(space, root, len(w.index.cols), s.prefix)
	tuple := s.scratch(n.relation.arity)
	for s.cursor.Next() {
		s.Woken++
		for i, col := range w.index.cols {
			tuple[col] = s.cursor.Col(i)
		}
		weight := uint64(0)
		if on && s.alive(n, tuple, w) {
			weight = n.weigh(uint64(s.cursor.Weight()))
		}
		s.writeLive(n, tuple, weight)
	}
}

// alive reports whether tuple has partners in all children but except.
func (s *Store) alive(n *view, tuple []uint64, except *wake) bool {
	for i := range n.wakes {
		w := &n.wakes[i]
		if w == except {
			continue
		}
		child := w.child
		key := append(s.probe[:0], child.lead...)
		for _, col := range w.key {
			key = append(key, tuple[col])
		}
		s.probe = key
		space, root := s.trieOf(child)
		if !space.HasPrefix(root, key) {
			return false
		}
	}
	return true
}

// hasGroup reports whether node n has tuples with the given key.
func (s *Store) hasGroup(n *view, key []uint64) bool {
	s.probe = append(append(s.probe[:0], n.lead...), key...)
	space, root := s.trieOf(n)
	return space.HasPrefix(root, s.probe)
}

// writeLive gives a tuple of the relation its weight in the node's trie, 0 if
// it is not live, and notes when that empties or opens a group.
func (s *Store) writeLive(n *view, tuple []uint64, weight uint64) {
	key := s.key[:0]
	for _, col := range n.order {
		key = append(key, tuple[col])
	}
	s.key = key
	s.set(n, key, int64(weight))
}

func (s *Store) set(n *view, key []uint64, weight int64) {
	width := -1
	if n.changed != nil {
		width = n.changed.width
	}
	ch := s.arena.Set(&s.roots[n.slot], key, weight, width)
	if ch.Old == weight {
		return
	}
	s.writes++
	n.work.writes++
	if width >= 0 && !ch.Rest && (ch.Old == 0) != (weight == 0) {
		n.changed.add(key[:width])
	}
}

// visitGeneralized recomputes the keys that toggled in a child: a key stands in
// the node when every child has it.
func (s *Store) visitGeneralized(n *view) {
	for i := range n.wakes {
		w := &n.wakes[i]
		child := w.child
		for j := range w.calls() {
			key := w.call(j)
			tuple := s.scratch(n.columns)
			for k, at := range w.key {
				tuple[at] = key[k]
			}
			// Half of all toggles close a group, which one probe can tell.
			weight := int64(0)
			if s.hasGroup(child, key) && s.alive(n, tuple, w) {
				weight = 1
			}
			s.set(n, tuple, weight)
		}
	}
}

// scratch is room for one tuple of n columns, until the next call.
func (s *Store) scratch(n int) []uint64 {
	if cap(s.tuple) < n {
		s.tuple = make([]uint64, n)
	}
	return s.tuple[:n]
}
