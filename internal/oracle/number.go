package oracle

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/triegs/triegs/internal/term"
)

// number is an exact number that knows whether an engine would hold it as an
// int64 or as a float64; of equal numbers of both kinds it is either.
type number struct {
	exact      *big.Rat
	inf        int      // -1 and 1 are the infinities, the neutral elements of orders
	size       *big.Rat // the sum of the magnitudes of which it was added up
	summed     bool     // of more than one that is not 0
	int, float bool
}

// numberOf reads a term: an integer of int64, or the nearest float64 of any other
// number, if that is finite.
func numberOf(t term.Term) (number, error) {
	refused := fmt.Errorf("%w: %v is no finite number", ErrValue, t)
	x, ok := exactOf(t)
	if !ok || x.rank != 2 {
		return number{}, refused
	}
	if x.whole {
		return number{exact: x.value, size: new(big.Rat).Abs(x.value), int: true}, nil
	}
	f, ok := rounded(x.value).(float64)
	if !ok {
		return number{}, refused
	}
	r := new(big.Rat).SetFloat64(f)
	return number{exact: r, size: new(big.Rat).Abs(r), float: true}, nil
}

// whole is an integer as a number.
func whole(i int64) number {
	r := new(big.Rat).SetInt64(i)
	return number{exact: r, size: new(big.Rat).Abs(r), int: true}
}

// infinite is an infinity.
func infinite(sign int) number {
	return number{exact: new(big.Rat), size: new(big.Rat), inf: sign, int: true, float: true}
}

// compare is the order of the exact values.
func (n number) compare(m number) int {
	if n.inf != m.inf {
		return cmp.Compare(n.inf, m.inf)
	}
	return n.exact.Cmp(m.exact)
}

// plus is the exact sum, an integer only if both are.
func (n number) plus(m number) number {
	return number{
		exact:  new(big.Rat).Add(n.exact, m.exact),
		size:   new(big.Rat).Add(n.size, m.size),
		summed: n.summed || m.summed || n.exact.Sign() != 0 && m.exact.Sign() != 0,
		int:    n.int && m.int,
		float:  n.float || m.float,
	}
}

// slack is by how much an engine may miss the number.
func (n number) slack() *big.Rat {
	if !n.float || !n.summed {
		return new(big.Rat)
	}
	return slack(n.size)
}

// near tells whether an engine may take one for the other.
func (n number) near(m number) bool {
	if n.inf != 0 || m.inf != 0 {
		return n.inf == m.inf
	}
	d := new(big.Rat).Sub(n.exact, m.exact)
	return d.Abs(d).Cmp(new(big.Rat).Add(n.slack(), m.slack())) <= 0
}

// or gives n with the kinds of m as well, if an engine may take m for it.
func (n number) or(m number) number {
	if !n.near(m) {
		return n
	}
	n.int, n.float, n.summed = n.int || m.int, n.float || m.float, n.summed || m.summed
	if n.size.Cmp(m.size) < 0 {
		n.size = m.size
	}
	return n
}

// better gives the greater of two numbers, or the lesser one if sign is -1.
func better(n, m number, sign int) number {
	if n.compare(m)*sign < 0 {
		n, m = m, n
	}
	return n.or(m)
}

// export is what a row shows of the number.
func (n number) export() any {
	switch {
	case n.inf != 0:
		return math.Inf(n.inf)
	case !n.float && n.int:
		if !n.exact.Num().IsInt64() {
			return Overflow{}
		}
		return n.exact.Num().Int64()
	}
	f := rounded(n.exact)
	if n.slack().Sign() == 0 && !n.int || f == any(Overflow{}) {
		return f
	}
	return Number{Exact: n.exact, Slack: n.slack(), Int: n.int, Float: n.float}
}

// slackBits bounds what rounding may do: an engine rounds each product and each
// sum, fewer than 64 of them in a row, by a part of 2^-53 at most each. Terms so
// small that products lose digits at the lower end of float64 are not covered.
const slackBits = 46

// slack is the tolerance for a number that was made of numbers with this sum of
// magnitudes.
func slack(size *big.Rat) *big.Rat {
	part := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), slackBits))
	return part.Mul(part, new(big.Rat).Abs(size))
}

// bag is a multiset of numbers.
type bag []number

// top gives what a row shows of the k greatest, descending.
func (b bag) top(k int) any {
	all := slices.Clone(b)
	slices.SortFunc(all, func(n, m number) int { return m.compare(n) })
	out := []any{}
	for _, n := range all[:min(k, len(all))] {
		for _, m := range all {
			n = n.or(m)
		}
		v := n.export()
		if _, ok := v.(Overflow); ok {
			return v
		}
		out = append(out, v)
	}
	return out
}
