package triegs

import (
	"slices"

	"github.com/triegs/triegs/dict"
)

// Row is one answer. A row that an enumeration yields is valid until the next
// step and belongs to the goroutine of the loop; Clone keeps it, and makes a row
// that many may read.
type Row struct {
	columns      []string // those of values behind those of ids
	ids          []uint64
	values       []any
	terms        *dict.Dict
	multiplicity int64
	known        []knownTerm // by column, nil where nothing is remembered
}

// knownTerm is the term that a column had when it was asked for last. From one answer
// to the next most columns stay as they are.
type knownTerm struct {
	id   uint64 // 0 for none
	term Term
}

// Columns names the columns: those of the output variables, then those of the
// aggregates. The slice must not be changed.
func (r *Row) Columns() []string { return r.columns }

// Term is the value of column i, counted from 0. It panics when there is no
// such column, as indexing a slice does. The term is read from the dictionary
// when it is asked for, and not again while the column has the same one in the rows
// that follow. Where its text has left the memory and cannot be read (see
// Options.DictionaryCacheBytes) it is the absent Term, and the next step of the
// enumeration is an error. An aggregate that is one number or one term is that
// term, any other the absent one.
func (r *Row) Term(i int) Term {
	if i < len(r.ids) {
		return r.term(i)
	}
	if i >= len(r.columns) {
		panic("triegs: no such column")
	}
	switch v := r.values[i-len(r.ids)].(type) {
	case int64:
		return Int(v)
	case float64:
		return Float(v)
	case string:
		return String(v)
	case Term:
		return v
	}
	return Term{}
}

// term is the term of an id column.
func (r *Row) term(i int) Term {
	if r.known == nil {
		return r.terms.Term(r.ids[i])
	}
	k := &r.known[i]
	if k.id != r.ids[i] {
		if k.term = r.terms.Term(r.ids[i]); k.term.IsZero() { // it could not be read
			k.id = 0
			return Term{}
		}
		k.id = r.ids[i]
	}
	return k.term
}

// Get is the value of the column with the given name.
func (r *Row) Get(name string) (Term, bool) {
	if i := slices.Index(r.columns, name); i >= 0 {
		return r.Term(i), true
	}
	return Term{}, false
}

// Multiplicity is the exact multiplicity of the answer: the sum over all
// valuations of the product of the weights of the facts. It is 1 for a query
// with distinct answers, and for one whose aggregates or semiring do not depend on
// multiplicities; it is 0 in a row that comes with ErrOverflow because the
// multiplicity does not fit.
func (r *Row) Multiplicity() int64 { return r.multiplicity }

// Value is aggregate i of the answer, counted from 0: int64 for counts and for
// sums of integers, float64 for averages and other sums, the term for min and max,
// a slice of numbers for topk. Without aggregates Value(0) is the annotation: the
// multiplicity as an int64, or a value of the query's semiring (int64, float64, a
// string for levels and polynomials, slices for topk and why). It is nil where
// there is no such value and in a row that comes with ErrOverflow.
func (r *Row) Value(i int) any {
	if r.values == nil && i == 0 && r.multiplicity != 0 {
		return r.multiplicity
	}
	if i < 0 || i >= len(r.values) {
		return nil
	}
	return r.values[i]
}

// Clone returns a row that stays valid.
func (r *Row) Clone() *Row {
	c := *r
	c.known = nil
	c.ids = slices.Clone(r.ids)
	c.values = slices.Clone(r.values)
	return &c
}

// remembering makes r one that remembers the terms of the rows before, for a loop.
func (r *Row) remembering() *Row {
	r.known = make([]knownTerm, len(r.ids))
	return r
}
