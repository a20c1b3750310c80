package oracle

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// ErrSemiring is the refusal of a text that names no semiring.
var ErrSemiring = errors.New("oracle: no such semiring")

// Row is an answer as a caller of the engine sees it.
type Row struct {
	Tuple []string
	// Multiplicity is the number of valuations with their multiplicities, 1 if the
	// query is distinct. It is never 0: an answer is there by its support, whatever
	// its values are.
	Multiplicity *big.Int
	// Values are those of the aggregates in their order, or the one of the
	// semiring, for SameValue: int64, float64, string, term.Term, [][]string,
	// []any of those, a Number where more than one value is right, or Overflow where
	// none is.
	Values []any
}

// Overflows tells whether the multiplicity or a value does not fit. An engine
// that keeps the row refuses the epoch, one that multiplies it out fails at it.
func (r *Row) Overflows() bool {
	return !r.Multiplicity.IsInt64() || slices.Contains(r.Values, any(Overflow{}))
}

// Overflow is the value of what does not fit: an integer in int64, a float in the
// finite float64s.
type Overflow struct{}

// Result is the answer of a query.
type Result struct {
	Rows []Row // by the Key of their tuples
	// Safe promises that nothing that any plan may keep overflows and that every
	// term that any plan may read as a value is one, so that the epoch must not be
	// refused. Without it an engine may refuse an epoch although every row is right:
	// there may be a fact of which no answer is made.
	Safe bool
}

// Rows gives the answers of q over s at its logical time with all their values.
// ErrValue says that an answer is made of a term that has no value; the epoch
// must have been refused.
//
// In a semiring the annotation of a fact is, for an annotated atom, the sum of
// the values of its contributions, of which one without a value has the one; for
// another atom it is the sum of as many ones as the fact weighs. In set mode each
// different value counts once, and so does a fact. That of a valuation is the
// product over the atoms, that of an answer the sum over its valuations.
func (q *Query) Rows(s *Store) (*Result, error) {
	k, err := algebraOf(q.Semiring)
	if err != nil {
		return nil, err
	}
	if k == nil && slices.ContainsFunc(q.Atoms, func(a Atom) bool { return a.Annotated }) {
		return nil, fmt.Errorf("%w: an annotated atom in one without values", ErrSemiring)
	}
	groups := map[string]group{}
	q.valuations(s, func(v *valuation) {
		tuple := v.project(q.Head)
		g, ok := groups[Key(tuple)]
		if !ok {
			g = q.newGroup(tuple, k)
			groups[Key(tuple)] = g
		}
		g.weight.Add(g.weight, v.weight)
		for _, a := range g.columns {
			if e := a.add(v); e != nil {
				err = fmt.Errorf("answer %q: %w", tuple, e)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	out := &Result{Safe: q.safe(s, k)}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		if q.Distinct || q.Semiring == "bool" {
			g.weight.SetInt64(1)
		}
		row := Row{Tuple: g.tuple, Multiplicity: g.weight}
		for _, a := range g.columns {
			row.Values = append(row.Values, a.value())
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// group collects the valuations that agree on the head.
type group struct {
	tuple   []string
	weight  *big.Int
	columns []column
}

// column collects the valuations of a group for one value.
type column interface {
	add(v *valuation) error
	value() any
}

// newGroup makes an empty group.
func (q *Query) newGroup(tuple []string, k algebra) group {
	g := group{tuple: tuple, weight: new(big.Int)}
	for _, a := range q.Aggregates {
		g.columns = append(g.columns, newAggregate(a))
	}
	if k != nil {
		g.columns = append(g.columns, &annotation{q: q, k: k})
	}
	return g
}

// annotation sums the values of valuations in an algebra.
type annotation struct {
	q   *Query
	k   algebra
	sum any // nil before the first
}

// add adds the value of a valuation.
func (a *annotation) add(v *valuation) error {
	product := a.k.one()
	for i, f := range v.facts {
		w, err := a.q.annotate(a.k, &a.q.Atoms[i], f)
		if err != nil {
			return err
		}
		product = a.k.mul(product, w)
	}
	for range v.copies {
		a.sum = plus(a.k, a.sum, product)
	}
	return nil
}

// value is what a row shows of the sum.
func (a *annotation) value() any { return a.k.export(a.sum) }

// annotate gives the annotation of a fact in an atom.
func (q *Query) annotate(k algebra, a *Atom, f fact) (sum any, err error) {
	if !a.Annotated {
		for range f.Weight {
			sum = plus(k, sum, k.one())
		}
		return sum, nil
	}
	values := f.values
	if q.Set {
		values = slices.Compact(slices.Sorted(slices.Values(values)))
	}
	for _, text := range values {
		v, err := lift(k, text)
		if err != nil {
			return nil, err
		}
		sum = plus(k, sum, v)
	}
	return sum, nil
}

// plus adds b to a sum that may not have begun.
func plus(k algebra, sum, b any) any {
	if sum == nil {
		return b
	}
	return k.add(sum, b)
}

// Change is an answer that is not the same in two results.
type Change struct {
	Tuple    []string
	Old, New *Row // nil where there is none
}

// Changes gives what is different in a later result, by the Key of the tuples.
func Changes(old, now *Result) (out []Change) {
	before := map[string]*Row{}
	for i := range old.Rows {
		before[Key(old.Rows[i].Tuple)] = &old.Rows[i]
	}
	for i := range now.Rows {
		r := &now.Rows[i]
		was := before[Key(r.Tuple)]
		delete(before, Key(r.Tuple))
		if was == nil || was.text() != r.text() {
			out = append(out, Change{r.Tuple, was, r})
		}
	}
	for _, r := range before {
		out = append(out, Change{r.Tuple, r, nil})
	}
	slices.SortFunc(out, func(a, b Change) int { return slices.Compare(a.Tuple, b.Tuple) })
	return out
}

// text tells rows of one query and tuple apart.
func (r *Row) text() string { return r.Multiplicity.String() + text(r.Values) }

// text writes a value with its kind.
func text(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("%T %v", v, v)
	}
	var out strings.Builder
	for _, e := range list {
		out.WriteString(" (" + text(e) + ")")
	}
	return out.String()
}
