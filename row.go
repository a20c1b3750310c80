package triegs

import (
	"slices"

	"github.com/triegs/triegs/dict"
)

// Row is one answer. A row that an enumeration yields is valid until the next
// step; Clone keeps it.
type Row struct {
	columns      []string
	ids          []uint64
	terms        *dict.Dict
	multiplicity int64
}

// Columns names the columns. The slice must not be changed.
func (r *Row) Columns() []string { return r.columns }

// Term is the value of column i, counted from 0. It panics when there is no
// such column, as indexing a slice does. The term is read from the dictionary
// at each call. Where its text has left the memory and cannot be read (see
// Options.DictionaryCacheBytes) it is the absent Term, and the next step of the
// enumeration is an error.
func (r *Row) Term(i int) Term { return r.terms.Term(r.ids[i]) }

// Get is the value of the column with the given name.
func (r *Row) Get(name string) (Term, bool) {
	if i := slices.Index(r.columns, name); i >= 0 {
		return r.Term(i), true
	}
	return Term{}, false
}

// Multiplicity is the exact multiplicity of the answer: the sum over all
// valuations of the product of the weights of the facts. It is 1 for a query
// with distinct answers, and 0 in a row that comes with ErrOverflow.
func (r *Row) Multiplicity() int64 { return r.multiplicity }

// Value is the annotation of the answer: Value(0) is the multiplicity as an
// int64. It is nil for any other i.
func (r *Row) Value(i int) any {
	if i != 0 {
		return nil
	}
	return r.multiplicity
}

// Clone returns a row that stays valid.
func (r *Row) Clone() *Row {
	c := *r
	c.ids = slices.Clone(r.ids)
	return &c
}
