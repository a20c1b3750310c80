package views

import "slices"

// propagate brings the inner nodes of all queries up to date, children before
// parents, in one pass: Wang and Hu's annotated CROWN in its epoch form. Every tuple
// that was touched in the relation, or whose partner group in a child became empty
// or non-empty, is recomputed from the final states of the children, so neither
// the order of changes nor repeated visits matter, and inserts and deletes that
// cancel inside the epoch wake nobody.
func (s *Store) propagate() {
	for _, v := range s.views {
		switch {
		case v.leaf != nil:
		case s.clearing && v.emptied():
			v.gone = true
			s.clearTrie(v.slot, v.columns)
		case !v.affected():
		default:
			began := s.start()
			if v.relation == nil {
				s.visitGeneralized(v)
			} else {
				s.visitInner(v)
			}
			v.work.stop(s, began)
		}
	}
}

// affected reports whether something that the view is made of has changed.
func (v *view) affected() bool {
	if v.relation != nil && v.relation.touched {
		return true
	}
	for i := range v.wakes {
		if v.wakes[i].child.changed.n > 0 {
			return true
		}
	}
	return false
}

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
	arity := n.relation.arity
	changes := n.relation.changes
	for i := 0; i < len(changes) && s.goOn(); i += arity + 2 {
		tuple, weight := changes[i:i+arity], changes[i+arity+1]
		if !n.selects(tuple) {
			continue
		}
		if weight != 0 && !s.alive(n, tuple, nil) {
			weight = 0
		}
		s.writeLive(n, tuple, n.weigh(weight))
	}
	for i := range n.wakes {
		w := &n.wakes[i]
		for j := range w.child.toggledKeys() {
			if key, ok := w.child.toggledKey(j); ok && s.goOn() {
				s.wake(n, w, key)
			}
		}
	}
}

// toggledKeys is the number of groups of a child that came or went, net over the
// epoch, those with other constants included.
func (n *view) toggledKeys() int {
	n.changed.settle()
	return n.changed.n
}

// toggledKey is the key of group j of those; it is false for a group that an
// index shared with other nodes has and this node does not.
func (n *view) toggledKey(j int) (key []uint64, ok bool) {
	prefix := n.changed.at(j)
	lead := len(n.lead)
	return prefix[lead:], slices.Equal(prefix[:lead], n.lead)
}

// selects reports whether a tuple of the relation has the node's constants.
func (n *view) selects(tuple []uint64) bool {
	for _, k := range n.consts {
		if tuple[k.col] != k.id {
			return false
		}
	}
	return true
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
		for j := range child.toggledKeys() {
			key, ok := child.toggledKey(j)
			if !ok {
				continue
			}
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
