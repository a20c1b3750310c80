package views

import "slices"

// propagate brings the inner nodes of q up to date, children before parents, in
// one pass: Wang and Hu's annotated CROWN in its epoch form. Every tuple that
// was touched in the relation, or whose partner group in a child became empty
// or non-empty, is recomputed from the final states of the children, so neither
// the order of changes nor repeated visits matter, and inserts and deletes that
// cancel inside the epoch wake nobody.
func (s *Store) propagate(q *Query) {
	gone := s.goneNodes(q)
	for i := len(q.nodes) - 1; i >= 0; i-- {
		n := &q.nodes[i]
		switch {
		case n.leaf != nil:
		case gone != nil && gone[i]:
			s.clearTrie(n.slot, n.columns)
		case n.relation == nil:
			s.visitGeneralized(q, n)
		default:
			s.visitInner(q, n)
		}
	}
	for i := range q.nodes {
		if n := &q.nodes[i]; n.leaf == nil && n.changed != nil {
			n.changed.reset()
		}
	}
}

// goneNodes says which nodes are empty because a relation was cleared: those over
// it, and all above them, since a tuple needs partners in every child. Nobody has
// to be woken by their groups. It is nil if there are none.
func (s *Store) goneNodes(q *Query) []bool {
	if !slices.ContainsFunc(q.bases, func(r *Relation) bool { return r.cleared }) {
		return nil
	}
	s.gone = append(s.gone[:0], make([]bool, len(q.nodes))...)
	for i := len(q.nodes) - 1; i >= 0; i-- {
		n := &q.nodes[i]
		if n.relation != nil && n.relation.cleared {
			s.gone[i] = true
		}
		if n.parent >= 0 && s.gone[i] {
			s.gone[n.parent] = true
		}
	}
	return s.gone
}

func (s *Store) visitInner(q *Query, n *node) {
	arity := n.relation.arity
	changes := n.relation.changes
	for i := 0; i < len(changes); i += arity + 2 {
		tuple, weight := changes[i:i+arity], changes[i+arity+1]
		if !n.selects(tuple) {
			continue
		}
		if weight != 0 && !s.alive(q, n, tuple, -1) {
			weight = 0
		}
		s.writeLive(n, tuple, n.weigh(weight))
	}
	for i := range n.wakes {
		w := &n.wakes[i]
		child := &q.nodes[w.child]
		for j := range child.toggledKeys() {
			if key, ok := child.toggledKey(j); ok {
				s.wake(q, n, w, key)
			}
		}
	}
}

// toggledKeys is the number of groups of a child that came or went, net over the
// epoch, those with other constants included.
func (n *node) toggledKeys() int {
	n.changed.settle()
	return n.changed.n
}

// toggledKey is the key of group j of those; it is false for a group that an
// index shared with other nodes has and this node does not.
func (n *node) toggledKey(j int) (key []uint64, ok bool) {
	prefix := n.changed.at(j)
	lead := len(n.lead)
	return prefix[lead:], slices.Equal(prefix[:lead], n.lead)
}

// selects reports whether a tuple of the relation has the node's constants.
func (n *node) selects(tuple []uint64) bool {
	for _, k := range n.consts {
		if tuple[k.col] != k.id {
			return false
		}
	}
	return true
}

// weigh is the weight that a live tuple carries in the node's trie.
func (n *node) weigh(weight uint64) uint64 {
	if n.unit && weight != 0 {
		return 1
	}
	return weight
}

// wake recomputes the tuples of n that have the given key in one child, whose
// group there has just become empty or non-empty.
func (s *Store) wake(q *Query, n *node, w *wake, key []uint64) {
	child := &q.nodes[w.child]
	on := s.hasGroup(child, key)
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
		if on && s.alive(q, n, tuple, w.child) {
			weight = n.weigh(uint64(s.cursor.Weight()))
		}
		s.writeLive(n, tuple, weight)
	}
}

// alive reports whether tuple has partners in all children but except.
func (s *Store) alive(q *Query, n *node, tuple []uint64, except int) bool {
	for i := range n.wakes {
		w := &n.wakes[i]
		if w.child == except {
			continue
		}
		child := &q.nodes[w.child]
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
func (s *Store) hasGroup(n *node, key []uint64) bool {
	s.probe = append(append(s.probe[:0], n.lead...), key...)
	space, root := s.trieOf(n)
	return space.HasPrefix(root, s.probe)
}

// writeLive gives a tuple of the relation its weight in the node's trie, 0 if
// it is not live, and notes when that empties or opens a group.
func (s *Store) writeLive(n *node, tuple []uint64, weight uint64) {
	key := s.key[:0]
	for _, col := range n.order {
		key = append(key, tuple[col])
	}
	s.key = key
	s.set(n, key, int64(weight))
}

func (s *Store) set(n *node, key []uint64, weight int64) {
	width := -1
	if n.changed != nil {
		width = n.changed.width
	}
	ch := s.arena.Set(&s.roots[n.slot], key, weight, width)
	if ch.Old == weight {
		return
	}
	s.writes++
	if width >= 0 && !ch.Rest && (ch.Old == 0) != (weight == 0) {
		n.changed.add(key[:width])
	}
}

// visitGeneralized recomputes the keys that toggled in a child: a key stands in
// the node when every child has it.
func (s *Store) visitGeneralized(q *Query, n *node) {
	for i := range n.wakes {
		w := &n.wakes[i]
		child := &q.nodes[w.child]
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
			if s.hasGroup(child, key) && s.alive(q, n, tuple, w.child) {
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
