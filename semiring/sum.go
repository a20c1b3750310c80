package semiring

import (
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// sum is the algebra of the sums of a column. Its values are exact sums of
// integers and floats together with the number of floats in them: while there is
// none, one word, an int64; else the sign (1 if negative), the number of floats,
// and the digits of the magnitude that are not 0, in ascending places, as place
// and digit in one word each. So they are rounded in Export only, and neither the
// order of updates nor the grouping of the plan shows.
//
// It is a module over the counts rather than a semiring: a value multiplies with
// integers, which is what Times does as well. Mul is for factors of which all but
// one are sums of ones; that of two values with floats is ErrValue, and so is that
// of floats with an integer that is no count, below 1.
//
// A state has the integers in two halves, the number of floats, and the digits.
type sum struct{}

// The Highs of the components of sum.
const (
	sumInts = iota
	sumFloats
	sumDigits
)

func (sum) Name() string { return "sum" }

func (sum) Traits() Traits { return Traits{Chain: -1, Exact: true, Overflows: true, State: "O(1)"} }

func (sum) One(dst []uint64) []uint64 { return append(dst, 1) }

func (sum) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	n, err := liftNumber(t)
	if err != nil {
		return dst, err
	}
	if !n.isFloat {
		return append(dst, uint64(n.i)), nil
	}
	var buf [3]Part
	sign := uint64(0)
	if n.f < 0 {
		sign = 1
	}
	dst = append(dst, sign, 1)
	for _, p := range spreadFloat(buf[:0], 0, n.f) {
		dst = append(dst, p.At.Low<<digitBits|magnitude(p.N))
	}
	return dst, nil
}

func (k sum) Mul(dst, a, b []uint64) ([]uint64, error) {
	if len(a) > 1 {
		a, b = b, a
	}
	n := int64(a[0])
	switch {
	case len(a) > 1:
		return dst, fmt.Errorf("%w: a product of two sums of floats", errs.ErrValue)
	case len(b) > 1 && n < 1:
		return dst, fmt.Errorf("%w: a sum of floats, %d times", errs.ErrValue, n)
	}
	return k.scale(dst, b, n)
}

func (k sum) Times(dst, a []uint64, n int64) ([]uint64, error) { return k.scale(dst, a, n) }

// scale multiplies with n, which is positive if a has floats.
func (k sum) scale(dst, a []uint64, n int64) ([]uint64, error) {
	if n == 1 {
		return append(dst, a...), nil
	}
	if len(a) == 1 {
		product, ok := MulSigned(int64(a[0]), n)
		if !ok {
			return dst, fmt.Errorf("%w: %d * %d", errs.ErrOverflow, int64(a[0]), n)
		}
		return append(dst, uint64(product)), nil
	}
	floats, ok := MulSigned(int64(a[1]), n)
	if !ok {
		return dst, fmt.Errorf("%w: %d numbers, %d times", errs.ErrOverflow, int64(a[1]), n)
	}
	w := wide{negative: a[0] == 1}
	for _, word := range a[2:] {
		w.addProduct(word>>digitBits, int64(word&digitMask), n)
	}
	return k.value(dst, &w, floats)
}

// value appends the value of a sum with floats.
func (sum) value(dst []uint64, w *wide, floats int64) ([]uint64, error) {
	w.normal()
	if _, err := w.round(); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, 0, uint64(floats))
	for place, digit := range w.digits {
		if digit != 0 {
			dst = append(dst, uint64(place)<<digitBits|uint64(digit))
		}
	}
	if w.negative { // and so not 0
		dst[start] = 1
	}
	return dst, nil
}

func (sum) Spread(dst []Part, a []uint64) []Part {
	if len(a) == 1 {
		return spreadInt(dst, int64(a[0]))
	}
	dst = append(dst, Part{Component{sumFloats, 0}, int64(a[1])})
	for _, word := range a[2:] {
		digit := int64(word & digitMask)
		if a[0] == 1 {
			digit = -digit
		}
		dst = append(dst, Part{Component{sumDigits, word >> digitBits}, digit})
	}
	return dst
}

func (k sum) Collect(dst []uint64, s State) ([]uint64, error) {
	var halves [2]int64
	more := s.Next()
	for ; more && s.Part().At.High == sumInts; more = s.Next() {
		halves[s.Part().At.Low&1] = s.Part().N
	}
	if !more {
		total, ok := joinInt(halves[0], halves[1])
		if !ok {
			return dst, fmt.Errorf("%w: a sum", errs.ErrOverflow)
		}
		return append(dst, uint64(total)), nil
	}
	floats := s.Part().N
	if s.Part().At.High != sumFloats {
		return dst, errEmpty // digits, but no float that they are of
	}
	var w wide
	for half, n := range halves {
		w.addInt(uint64(half), n)
	}
	for s.Next() {
		w.add(s.Part().At.Low, s.Part().N)
	}
	return k.value(dst, &w, floats)
}

// Export gives an int64 while no float is in the sum, else the nearest float64.
func (sum) Export(a []uint64) any {
	if len(a) == 1 {
		return int64(a[0])
	}
	w := wide{negative: a[0] == 1}
	for _, word := range a[2:] {
		w.add(word>>digitBits, int64(word&digitMask))
	}
	f, _ := w.round() // value has seen to it
	return f
}
