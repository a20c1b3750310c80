package views

import (
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// Terms gives the meaning of ids. Both methods are used by the writer and, on
// ids of a published epoch, by readers.
type Terms interface {
	Term(id uint64) term.Term
}

// match is the part of an alias that a fact must satisfy, on ids.
type match struct {
	consts []constCol
	equal  [][2]int
	// conditions are evaluated on terms: filters and inline tables.
	filters []query.Filter
	values  []query.Values
	column  map[query.Var]int // of the variables that conditions use
	terms   Terms
	tuple   []uint64                  // the fact under test, for get
	get     func(query.Var) term.Term // reads tuple; made once, to allocate nothing
}

type constCol struct {
	col int
	id  uint64
}

func newMatch(a *plan.Alias, args []query.Arg, consts []constCol, terms Terms) *match {
	m := &match{consts: consts, equal: a.Equal, filters: a.Filters, values: a.Values, terms: terms}
	m.column = make(map[query.Var]int)
	for c, arg := range args {
		if _, seen := m.column[arg.Var]; arg.Var != query.NoVar && !seen {
			m.column[arg.Var] = c
		}
	}
	m.get = func(v query.Var) term.Term { return m.terms.Term(m.tuple[m.column[v]]) }
	return m
}

// factor is 0 if the fact does not match, otherwise the number of times it
// counts: more than 1 only if a row stands several times in an inline table.
func (m *match) factor(tuple []uint64) int64 {
	for _, c := range m.consts {
		if tuple[c.col] != c.id {
			return 0
		}
	}
	for _, e := range m.equal {
		if tuple[e[0]] != tuple[e[1]] {
			return 0
		}
	}
	m.tuple = tuple
	for i := range m.filters {
		if !m.filters[i].Eval(m.get) {
			return 0
		}
	}
	n := int64(1)
	for i := range m.values {
		n *= m.rows(&m.values[i])
	}
	return n
}

// rows counts the rows of an inline table that agree with the fact.
func (m *match) rows(v *query.Values) (n int64) {
next:
	for _, row := range v.Rows {
		for i, x := range v.Vars {
			if m.get(x) != row[i] {
				continue next
			}
		}
		n++
	}
	return n
}

// derived is a relation made from a base relation by the alias of a query that
// is more than a selection by constants: its facts are the kept columns of the
// matching base facts, the weights of those that fall together added up
// (algorithm: normalisation of a query before any tree is built, folding of
// anonymous variables).
type derived struct {
	Relation
	base  *Relation
	uses  int // aliases that read it
	match *match
	keep  []int // columns of the base relation, in the order of the alias
	unit  bool  // a base fact weighs 1, whatever its multiplicity
	// primary is the index in which weights are added up.
	primary *Index
	row     []uint64
}

// weight is what a base fact with the given multiplicity counts.
func (d *derived) weight(multiplicity, factor int64) (int64, bool) {
	if d.unit && multiplicity > 0 {
		multiplicity = 1
	}
	return semiring.Mul(multiplicity, factor)
}

// fold brings a derived relation up to date with the changes of its base.
func (s *Store) fold(d *derived, base *Relation) error {
	stride := base.arity + 2
	for i := 0; i < len(base.changes); i += stride {
		row := base.changes[i : i+stride]
		factor := d.match.factor(row[:base.arity])
		if factor == 0 {
			continue
		}
		before, _ := d.weight(int64(row[base.arity]), factor)
		after, ok := d.weight(int64(row[base.arity+1]), factor)
		if !ok {
			return d.overflow(base)
		}
		if before == after {
			continue
		}
		if err := s.foldOne(d, base, row, after-before); err != nil {
			return err
		}
	}
	return nil
}

func (d *derived) overflow(base *Relation) error {
	return fmt.Errorf("%w: sum over the facts of a relation with %d columns that agree on %d", errs.ErrOverflow, base.arity, d.arity)
}

func (s *Store) foldOne(d *derived, base *Relation, row []uint64, delta int64) error {
	d.row = d.row[:0]
	for _, c := range d.keep {
		d.row = append(d.row, row[c])
	}
	key := s.reorderInto(d.primary, d.row)
	old := s.arena.Space().Get(s.roots[d.primary.slot], key)
	now, ok := semiring.Add(old, delta)
	if !ok {
		return d.overflow(base)
	}
	for _, x := range d.indexes {
		key := s.reorderInto(x, d.row)
		s.writeIndex(x, &s.roots[x.slot], key, now)
		s.writes++
	}
	d.touched = true
	d.changes = append(append(d.changes, d.row...), uint64(old), uint64(now))
	return nil
}

// reorderInto writes tuple in the order of x into scratch.
func (s *Store) reorderInto(x *Index, tuple []uint64) []uint64 {
	key := s.key[:0]
	for _, c := range x.cols {
		key = append(key, tuple[c])
	}
	s.key = key
	return key
}

// derive collects the rows of d, in column order, from an index of its base
// relation. A row that overflows is an error.
func (s *Store) derive(d *derived, x *Index) (*rows, error) {
	space, root := s.at(x)
	cols := x.cols
	out := s.newRows(d.arity, 0)
	var c trie.Cursor
	c.Seek(space, root, len(cols), nil)
	fact := make([]uint64, len(cols))
	for s.filling(&c) {
		for i, col := range cols {
			fact[col] = c.Col(i)
		}
		factor := d.match.factor(fact)
		if factor == 0 {
			continue
		}
		w, ok := d.weight(c.Weight(), factor)
		if !ok {
			return nil, fmt.Errorf("%w: a fact times the rows of an inline table", errs.ErrOverflow)
		}
		for _, col := range d.keep {
			out.words = append(out.words, fact[col])
		}
		out.words = append(out.words, uint64(w))
	}
	if !out.sort() {
		return nil, fmt.Errorf("%w: sum over facts that agree on %d kept columns", errs.ErrOverflow, d.arity)
	}
	return out, nil
}
