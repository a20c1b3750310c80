package summary

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/term"
)

// wide is an integer of 128 bits in two's complement. It wraps, which does no harm
// on the way to a value that fits: the sums of a group have their count below 2^63
// when they are read, and so are below 2^126.
type wide struct {
	high int64
	low  uint64
}

// add adds n * v.
func (w *wide) add(n, v int64) {
	high, low := bits.Mul64(magnitude(n), magnitude(v))
	if (n < 0) != (v < 0) {
		var carry uint64
		low, carry = bits.Add64(^low, 1, 0)
		high = ^high + carry
	}
	var carry uint64
	w.low, carry = bits.Add64(w.low, low, 0)
	w.high += int64(high + carry)
}

// int is the integer, if it fits.
func (w *wide) int() (int64, bool) { return int64(w.low), w.high == int64(w.low)>>63 }

// big sets x to the integer.
func (w *wide) big(x *big.Int) *big.Int {
	x.SetInt64(w.high)
	x.Lsh(x, 64)
	return x.Add(x, new(big.Int).SetUint64(w.low))
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// unit is the exponent of the least float64: each finite one is an integer times
// 2^unit, and sums of them are kept as such integers, without rounding.
const unit = -1074

// total is the exact sum of the numbers of a group, of which some may be floats.
type total struct {
	ints   wide
	floats *floats // nil before the first float
}

// floats is an exact sum of floats.
type floats struct {
	sum  big.Int // in units of 2^unit
	n    int64   // how many floats there are
	x, y big.Int // scratch
}

// add adds a number n times, or takes it away.
func (t *total) add(v triegs.Term, n int64) {
	i, f, integer, _ := term.Numeric(v)
	if integer {
		t.ints.add(n, i)
		return
	}
	if t.floats == nil {
		t.floats = new(floats)
	}
	t.floats.add(f, n)
}

func (s *floats) add(f float64, n int64) {
	// A float has at most 53 bits, so that this makes an integer of its fraction.
	fraction, exponent := math.Frexp(f)
	s.x.SetInt64(int64(math.Ldexp(fraction, 53)))
	if shift := exponent - 53 - unit; shift >= 0 {
		s.x.Lsh(&s.x, uint(shift))
	} else {
		s.x.Rsh(&s.x, uint(-shift)) // of a float near 0, whose last bits are zeros
	}
	s.x.Mul(&s.x, s.y.SetInt64(n))
	s.sum.Add(&s.sum, &s.x)
	s.n += n
}

// real reports whether there are floats in the sum.
func (t *total) real() bool { return t.floats != nil && t.floats.n != 0 }

// value is the sum: an int64, or a float64 if there are floats in it.
func (t *total) value() (any, error) {
	if !t.real() {
		if i, ok := t.ints.int(); ok {
			return i, nil
		}
		return nil, fmt.Errorf("%w: the sum", triegs.ErrOverflow)
	}
	x := t.ints.big(new(big.Int))
	x.Add(x.Lsh(x, -unit), &t.floats.sum)
	sum := new(big.Float).SetInt(x)
	f, _ := sum.SetMantExp(sum, unit).Float64()
	if math.IsInf(f, 0) {
		return nil, fmt.Errorf("%w: the sum, which is beyond float64,", triegs.ErrOverflow)
	}
	return f, nil
}

// average is the sum by a count above 0.
func (t *total) average(n int64) (float64, error) {
	if t.real() {
		sum, err := t.value()
		if err != nil {
			return 0, err
		}
		return sum.(float64) / float64(n), nil
	}
	const exact = 1 << 53 // integers up to here are floats, so that one rounding is left
	if i, ok := t.ints.int(); ok && max(magnitude(i), uint64(n)) <= exact {
		return float64(i) / float64(n), nil
	}
	f, _ := new(big.Rat).SetFrac(t.ints.big(new(big.Int)), big.NewInt(n)).Float64()
	return f, nil
}

// number checks that a term can be added.
func number(t triegs.Term) error {
	_, f, integer, ok := term.Numeric(t)
	switch {
	case !ok:
		return fmt.Errorf("%w: %v is not a number", triegs.ErrValue, t)
	case !integer && (math.IsNaN(f) || math.IsInf(f, 0)):
		return fmt.Errorf("%w: %v is not a finite number", triegs.ErrValue, t)
	}
	return nil
}
