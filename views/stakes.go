package views

import (
	"slices"

	"github.com/triegs/triegs/internal/invariant"
)

// Kept answers change with the tuples of any node below them, so that each of many
// queries would have to be asked about each change, were changes not dealt out. An
// answer of the extension belongs to the first of its tuples in pre-order that has
// changed, so the tuples above that one are live in the version under construction,
// and a change matters only where a way of such tuples leads up from it. What queries
// share is climbed once for all of them, to the views that few have; which of those
// that differ in constants lie on the way a crowd tells.

// stake is what kept answers have in a view below them: which of its changes in the
// version under construction may be part of an answer that differs.
type stake struct {
	answers *derived
	of      *interest
	all     bool    // each of them
	rows    []int32 // these, if not
}

// interest is what all kept answers have in a view.
type interest struct {
	view    *view
	stakes  []*stake
	reader  *reader // of the changes with the constants of a leaf, nil if it has none
	stirred bool    // there are changes
	// changes are tuples in the order of the trie, with both weights, if they have
	// been gathered.
	changes  []uint64
	gathered bool
}

// fewStakes is how many kept answers are asked without choosing among them. Checked
// builds always choose.
func fewStakes() int {
	if invariant.Enabled {
		return 0
	}
	return crowdFrom - 1
}

// stakeOut has kept answers told of the changes of what is below them.
func (s *Store) stakeOut(d *derived) {
	m := d.answers
	for i := range m.of.nodes {
		v := m.of.nodes[i].view
		if v.interest == nil {
			s.interestIn(v)
		}
		st := m.stakeIn(v.interest)
		if st == nil {
			st = &stake{answers: d, of: v.interest}
			v.interest.stakes = append(v.interest.stakes, st)
		}
		m.stakes = append(m.stakes, st)
	}
}

// stakeIn is the stake in a view, nil if there is none.
func (m *materialised) stakeIn(in *interest) *stake {
	for _, st := range m.stakes {
		if st.of == in {
			return st
		}
	}
	return nil
}

// interestIn makes the interest in a view. That of an inner node without tracks is told
// by its trie.
func (s *Store) interestIn(v *view) {
	in := &interest{view: v}
	v.interest = in
	switch {
	case v.leaf != nil && len(v.lead) > 0:
		in.reader = &reader{of: in}
		for i, id := range v.lead {
			in.reader.consts = append(in.reader.consts, constCol{v.leaf.cols[i], id})
		}
		v.relation.readers.add(in.reader)
	case v.leaf != nil || v.relation != nil && len(v.relation.tracks) > 0:
		v.relation.interests = append(v.relation.interests, in)
	}
}

// giveUp takes back what stakeOut has done.
func (s *Store) giveUp(d *derived) {
	for _, st := range d.answers.stakes {
		in := st.of
		n := len(in.stakes)
		in.stakes = slices.DeleteFunc(in.stakes, func(o *stake) bool { return o == st })
		if n == 0 || len(in.stakes) > 0 {
			continue // a view that stands for two nodes has one stake
		}
		in.view.interest = nil
		switch r := in.view.relation; {
		case in.reader != nil:
			r.readers.remove(in.reader)
		case r != nil:
			r.interests = slices.DeleteFunc(r.interests, func(o *interest) bool { return o == in })
		}
	}
	d.answers.stakes = nil
}

// stir notes that a view with kept answers above it has changed.
func (s *Store) stir(in *interest) {
	if !in.stirred {
		in.stirred = true
		s.stirred = append(s.stirred, in)
	}
}

// refoldAll brings the kept answers up to date that may have changed.
func (s *Store) refoldAll() error {
	if len(s.answers) == 0 {
		return nil
	}
	if s.clearing {
		for _, d := range s.answers {
			if err := s.refoldAnswers(d, nil); err != nil {
				return s.refusal(d, err)
			}
		}
		return nil
	}
	for _, v := range s.visited {
		if v.interest != nil && s.roots[v.slot] != s.before[v.slot] {
			s.stir(v.interest)
		}
	}
	for _, in := range s.stirred {
		s.dealChanges(in)
	}
	if err := s.halted(); err != nil {
		return err
	}
	for _, d := range s.owed {
		if err := s.refoldAnswers(d, d.answers.stakes); err != nil {
			return s.refusal(d, err)
		}
	}
	return nil
}

// owe has kept answers brought up to date in this version.
func (s *Store) owe(d *derived) {
	if !d.answers.owed {
		d.answers.owed = true
		s.owed = append(s.owed, d)
	}
}

// settleStakes forgets what has been dealt out in the version.
func (s *Store) settleStakes() {
	for _, in := range s.stirred {
		in.stirred, in.gathered, in.changes = false, false, shrink(in.changes)
	}
	for _, d := range s.owed {
		d.answers.owed = false
		for _, st := range d.answers.stakes {
			st.all, st.rows = false, st.rows[:0]
		}
	}
	s.stirred, s.owed = s.stirred[:0], s.owed[:0]
}

// gather lists the changes of a view.
func (s *Store) gather(in *interest) {
	in.gathered = true
	v, from := in.view, s.noted(in.stakes[0].answers)
	if in.reader == nil {
		node := slices.IndexFunc(from.q.nodes, func(n node) bool { return n.view == v })
		if !from.seek(node) {
			return
		}
		for from.next() && s.goOn() {
			tuple, before, after := from.change()
			in.changes = append(append(in.changes, tuple...), uint64(before), uint64(after))
		}
		return
	}
	stride := v.columns + 2
	for _, i := range in.reader.rows {
		row := v.relation.changes[int(i)*stride : (int(i)+1)*stride]
		for _, col := range v.leaf.cols {
			in.changes = append(in.changes, row[col])
		}
		in.changes = append(in.changes, row[v.columns:]...)
	}
}

// noted are all changes of the tree below kept answers.
func (s *Store) noted(d *derived) *noted {
	s.deltas(d.answers.of, &d.answers.walk)
	return d.answers.walk.from.(*noted)
}

// dealChanges deals the changes of a view out to the kept answers that they may concern.
func (s *Store) dealChanges(in *interest) {
	many := len(in.stakes) > fewStakes()
	if many || in.reader != nil {
		s.gather(in)
	}
	if !many {
		for _, st := range in.stakes {
			st.all = true
			s.owe(st.answers)
		}
		return
	}
	v, c := in.view, &s.climber
	c.in = in
	stride := v.columns + 2
	for i := 0; i < len(in.changes) && s.goOn(); i += stride {
		c.row, c.left = int32(i/stride), len(in.stakes)
		row := in.changes[i : i+stride]
		key := row[min(len(v.lead), v.width()):v.width()]
		// Where a group goes with its last tuple, so do the tuples above.
		if row[stride-1] == 0 && v.changed != nil && !s.hasGroup(v, key) {
			continue
		}
		s.climb(v, key, 0)
	}
}
