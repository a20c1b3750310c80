package window

// Place is how far a walk has come. The zero Place is before the first fact.
type Place struct{ rel, rec uint64 }

// Walk calls visit for the terms of about limit facts from a place on: the
// words of the tuple and the values of its contributions other than 0, the same
// term as often as it is used. It returns the place to go on from and whether
// that is the end. The writer calls it between two epochs; others may run
// between two calls, and a fact that lives through all of them is visited, since
// records do not move. The cost is linear in limit and in the contributions
// with values, of which one fact may have many.
func (s *Store) Walk(from Place, limit int, visit func(id uint64)) (next Place, done bool) {
	for ; from.rel < uint64(len(s.rels)); from = (Place{rel: from.rel + 1}) {
		r := s.rels[from.rel]
		facts := &r.facts
		for page := from.rec >> facts.shift; page < uint64(len(facts.pages)); page++ {
			first := page << facts.shift
			if limit <= 0 {
				return Place{from.rel, max(from.rec, first)}, false
			}
			if facts.info[page].used == 0 {
				continue
			}
			end := first + uint64(facts.info[page].fresh)
			for rec := max(from.rec, first); rec < end; rec++ {
				if limit <= 0 {
					return Place{from.rel, rec}, false
				}
				limit--
				if w := r.record(uint32(rec)); w != nil {
					limit -= s.terms(w, r.arity, visit)
				}
			}
		}
	}
	return from, true
}

// terms visits the terms of one fact, and returns how many contributions it has
// looked at.
func (s *Store) terms(w []uint64, arity int, visit func(id uint64)) (n int) {
	for _, id := range w[:arity] {
		visit(id)
	}
	if w[arity+2]&formMask == formOne {
		return 0
	}
	s.copies.each(w[arity:], func(e entry) bool {
		n++
		if e.value != 0 {
			visit(e.value)
		}
		return true
	})
	return n
}
