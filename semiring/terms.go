package semiring

import (
	"slices"

	"github.com/triegs/triegs/internal/term"
)

// Resolver gives back the term of an id that was handed to Lift.
type Resolver interface {
	Term(id uint64) term.Term
}

// extreme is the least or the greatest term of a column, in the order of
// term.Order. A value is the order key of the term and its id; One is no term at
// all and has no words. A product is the same as a sum, for factors of which
// all but one are sums of ones.
//
// A state is the ordered multiset of the terms, best first. Terms whose keys are
// equal stand there by id, so Collect compares all that share the first key.
type extreme struct {
	name     string
	greatest bool
	terms    Resolver
}

func (k *extreme) Name() string { return k.name }

func (k *extreme) Traits() Traits {
	return Traits{Positive: true, Idempotent: true, Exact: true, State: "O(log n)"}
}

func (k *extreme) One(dst []uint64) []uint64 { return dst }

// Lift takes any term, and an id that is not 0 and below 2^56.
func (k *extreme) Lift(dst []uint64, id uint64, t term.Term) ([]uint64, error) {
	return append(dst, k.key(term.OrderKey(t)), id), nil
}

// key stands in ascending order of what is better; no term has the key of One.
func (k *extreme) key(order uint64) uint64 {
	if k.greatest {
		return ^order
	}
	return order
}

func (k *extreme) Mul(dst, a, b []uint64) ([]uint64, error) {
	if len(b) == 0 || len(a) > 0 && k.better(a, b) {
		return append(dst, a...), nil
	}
	return append(dst, b...), nil
}

// better tells whether a value comes before another; both are terms.
func (k *extreme) better(a, b []uint64) bool {
	if a[0] != b[0] {
		return a[0] < b[0]
	}
	if a[1] == b[1] {
		return false
	}
	return (term.Order(k.terms.Term(a[1]), k.terms.Term(b[1])) > 0) == k.greatest
}

func (k *extreme) Times(dst, a []uint64, _ int64) ([]uint64, error) { return append(dst, a...), nil }

func (k *extreme) Spread(dst []Part, a []uint64) []Part {
	if len(a) == 0 {
		return append(dst, Part{worst, 1})
	}
	return append(dst, Part{Component{a[0], a[1]}, 1})
}

func (k *extreme) Collect(dst []uint64, s State) ([]uint64, error) {
	if !s.Next() {
		return dst, errEmpty
	}
	best := s.Part().At
	if best == worst {
		return dst, nil
	}
	for s.Next() && s.Part().At.High == best.High {
		at := s.Part().At
		if k.better([]uint64{at.High, at.Low}, []uint64{best.High, best.Low}) {
			best = at
		}
	}
	return append(dst, best.High, best.Low), nil
}

// Export gives the term; that of One is absent.
func (k *extreme) Export(a []uint64) any {
	if len(a) == 0 {
		return term.Term{}
	}
	return k.terms.Term(a[1])
}

// distinct is the algebra of the sets of terms of a column: sums and products
// are unions, One is the empty set. A value is the ids, ascending; a state counts
// the occurrences of each.
type distinct struct{}

func (distinct) Name() string { return "distinct" }

func (distinct) Traits() Traits {
	return Traits{Positive: true, Idempotent: true, Exact: true, State: "O(size)"}
}

func (distinct) One(dst []uint64) []uint64 { return dst }

func (distinct) Lift(dst []uint64, id uint64, _ term.Term) ([]uint64, error) {
	return append(dst, id), nil
}

func (distinct) Mul(dst, a, b []uint64) ([]uint64, error) {
	start := len(dst)
	dst = append(append(dst, a...), b...)
	if len(a) > 0 && len(b) > 0 {
		slices.Sort(dst[start:])
		dst = dst[:start+len(slices.Compact(dst[start:]))]
	}
	return dst, nil
}

func (distinct) Times(dst, a []uint64, _ int64) ([]uint64, error) { return append(dst, a...), nil }

func (distinct) Spread(dst []Part, a []uint64) []Part {
	for _, id := range a {
		dst = append(dst, Part{Component{0, id}, 1})
	}
	return dst
}

func (distinct) Collect(dst []uint64, s State) ([]uint64, error) {
	for s.Next() {
		dst = append(dst, s.Part().At.Low)
	}
	return dst, nil
}

// Export gives the number of terms, an int64.
func (distinct) Export(a []uint64) any { return int64(len(a)) }
