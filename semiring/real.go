package semiring

import (
	"fmt"
	"math"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// real is the ring of finite float64 numbers. A value is one word, the bits,
// never those of -0. Integers are lifted to the nearest float.
//
// Sums are exact and rounded once, in Collect: they depend neither on order nor
// on what has been taken away. Products and multiples round each time, so a value
// depends on how the plan groups its factors, and where a sum was rounded between
// two products, on the plan too; always in the last bits only, unless large terms
// cancel.
type real struct{}

func (real) Name() string { return "real" }

func (real) Traits() Traits { return Traits{Chain: -1, Overflows: true, State: "O(1)"} }

func (real) One(dst []uint64) []uint64 { return append(dst, math.Float64bits(1)) }

func (real) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	n, err := liftNumber(t)
	if err != nil {
		return dst, err
	}
	return append(dst, math.Float64bits(n.float())), nil
}

func (real) Mul(dst, a, b []uint64) ([]uint64, error) {
	x, y := math.Float64frombits(a[0]), math.Float64frombits(b[0])
	return finite(dst, x*y, x, y)
}

func (real) Times(dst, a []uint64, n int64) ([]uint64, error) {
	x := math.Float64frombits(a[0])
	if n <= 1<<53 {
		return finite(dst, x*float64(n), x, float64(n))
	}
	// n is rounded as a float, so the product is taken exactly.
	var w wide
	var buf [3]Part
	for _, p := range spreadFloat(buf[:0], 0, x) {
		w.addProduct(p.At.Low, p.N, n)
	}
	w.normal()
	f, err := w.round()
	if err != nil {
		return dst, err
	}
	return append(dst, math.Float64bits(f)), nil
}

func finite(dst []uint64, product, x, y float64) ([]uint64, error) {
	if math.IsInf(product, 0) {
		return dst, fmt.Errorf("%w: %v * %v is beyond float64", errs.ErrOverflow, x, y)
	}
	return append(dst, math.Float64bits(product+0)), nil
}

func (real) Spread(dst []Part, a []uint64) []Part {
	return spreadFloat(dst, 0, math.Float64frombits(a[0]))
}

func (real) Collect(dst []uint64, s State) ([]uint64, error) {
	var w wide
	for s.Next() {
		p := s.Part()
		w.add(p.At.Low, p.N)
	}
	w.normal()
	f, err := w.round()
	if err != nil {
		return dst, err
	}
	return append(dst, math.Float64bits(f)), nil
}

func (real) Export(a []uint64) any { return math.Float64frombits(a[0]) }
