package views

import "slices"

// Match calls visit for the tuples of a relation that agree with a pattern, in
// which 0 agrees with everything, as of the last version. The tuple may be used
// until visit returns. Where no index begins with the columns that the pattern
// binds, one is made, in the version under construction, and kept from then on:
// that costs once what sorting the relation does, and made reports it. Then cost
// is that of the tuples that agree.
func (s *Store) Match(relation int, pattern []uint64, visit func(tuple []uint64)) (made bool) {
	r := s.relations[relation]
	var bound []int
	for col, id := range pattern {
		if id != 0 {
			bound = append(bound, col)
		}
	}
	x := r.leading(bound)
	if x == nil {
		x, made = s.keepIndex(r, bound), true
	}
	prefix := make([]uint64, len(bound))
	for i := range bound {
		prefix[i] = pattern[x.cols[i]]
	}
	space, root := s.at(x)
	s.cursor.Seek(space, root, len(x.cols), prefix)
	tuple := make([]uint64, len(x.cols))
	for s.cursor.Next() {
		for i, col := range x.cols {
			tuple[col] = s.cursor.Col(i)
		}
		visit(tuple)
	}
	return made
}

// leading finds an index whose order begins with the given columns, in any order.
func (r *Relation) leading(cols []int) *Index {
	for _, x := range r.indexes {
		all := true
		for _, col := range x.cols[:len(cols)] {
			all = all && slices.Contains(cols, col)
		}
		if all {
			return x
		}
	}
	return nil
}

// keepIndex makes an index that stays as long as its relation.
func (s *Store) keepIndex(r *Relation, lead []int) *Index {
	s.begin()
	s.check, s.stopped = func() error { return nil }, nil
	x := s.index(r, lead)
	x.refs++
	s.kept = append(s.kept, use{r, x})
	return x
}

// dropKept takes the indexes back that the version under construction has brought
// for Match. Their blocks go with the version.
func (s *Store) dropKept() {
	for _, u := range s.kept {
		u.relation.indexes = slices.DeleteFunc(u.relation.indexes, func(x *Index) bool { return x == u.index })
		s.free = append(s.free, u.index.slot)
	}
	s.kept = s.kept[:0]
}
