package oracle

import (
	"math"

	"github.com/triegs/triegs/internal/term"
)

// The bounds within which nothing can overflow or lose digits at the lower end.
const (
	intBound   = 1 << 61
	floatBound = 0x1p900
	tinyBound  = 0x1p-900
)

// safe gives Result.Safe from a bound that holds for whatever order the atoms are
// joined and summed in: the product over the atoms of all that each can bring in.
// A filter takes nothing off it.
func (q *Query) safe(s *Store, k algebra) bool {
	whole := bound{1, 1, 1}
	for i := range q.Atoms {
		b, ok := q.atomBound(s, k, &q.Atoms[i])
		if !ok {
			return false
		}
		whole.ints *= max(1, b.ints)
		whole.floats *= max(1, b.floats)
		whole.tiny *= b.tiny
	}
	for _, v := range q.Values {
		whole.ints *= float64(max(1, len(v.Rows)))
		whole.floats *= float64(max(1, len(v.Rows)))
	}
	return whole.ints <= intBound && whole.floats <= floatBound && whole.tiny >= tinyBound
}

// bound is how large integers and floats can get, and how small the latter.
type bound struct{ ints, floats, tiny float64 }

// take multiplies by a number.
func (b *bound) take(n number) {
	f, _ := n.exact.Float64()
	f = math.Abs(f)
	if n.int {
		b.ints *= max(1, f)
	}
	if n.float {
		b.floats *= max(1, f)
		if f > 0 {
			b.tiny = min(b.tiny, f)
		}
	}
}

// atomBound adds up what the facts of an atom can bring in; it fails at a term
// that is no value.
func (q *Query) atomBound(s *Store, k algebra, a *Atom) (all bound, ok bool) {
	all.tiny = 1
	for _, f := range s.facts(a.Relation, a.Window) {
		val := map[string]string{}
		if _, ok := match(val, a.Args, f.Tuple); !ok {
			continue
		}
		one := bound{1, 1, 1}
		for _, g := range q.Aggregates {
			if text, here := val[g.Var]; here && g.numeric() {
				t, _ := term.Parse(text)
				n, err := numberOf(t)
				if err != nil {
					return all, false
				}
				one.take(n)
			}
		}
		for _, text := range f.values {
			of := one
			if a.Annotated && k != nil {
				v, err := lift(k, text)
				if err != nil {
					return all, false
				}
				for _, n := range k.magnitudes(v) {
					of.take(n)
				}
			}
			all.ints, all.floats, all.tiny = all.ints+of.ints, all.floats+of.floats, min(all.tiny, of.tiny)
		}
	}
	return all, true
}
