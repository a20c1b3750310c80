package views

// Annotated reports whether some query has aggregates or annotations, for which a
// fact can hold a bad value.
func (s *Store) Annotated() bool { return len(s.annotated) > 0 }

// Admits returns the error with which the values in a fact of a relation would be
// refused, if it came now: that of an algebra, mostly ErrValue. It is for facts that
// come later and could not be refused then. Cost: linear in the relations that are
// computed with values, of all queries.
func (s *Store) Admits(number int, fact []uint64) error {
	base := s.relations[number]
	for _, d := range s.annotated {
		if d.match == nil || len(d.operands) == 0 || d.operands[0].relation != base || d.match.factor(fact) == 0 {
			continue
		}
		for i, t := range d.tracks {
			if t == nil {
				continue
			}
			if _, err := s.lift(t, d.lifts[i], fact); err != nil {
				return err
			}
		}
	}
	return nil
}
