package semiring

import (
	"cmp"
	"fmt"
	"math"
	"math/big"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// number is an int64, or a finite float64 that is not -0.
type number struct {
	i       int64
	f       float64
	isFloat bool
}

// As two words, numbers are in their exact order: the first is the nearest
// float64 as an order-preserving integer, the second the distance from it, which
// is at most half a step between floats of 2^63, and the kind. An integer stands
// right before the float of the same value.
const (
	distanceBias = 1 << 10
	lowMax       = 1<<24 - 1 // more than any second word
)

// liftNumber takes a numeric term as a number. NaN and the infinities are none.
// What is neither int64 nor float64 (a decimal) is rounded to a float64.
func liftNumber(t term.Term) (number, error) {
	i, f, integer, ok := term.Numeric(t)
	switch {
	case !ok:
		return number{}, fmt.Errorf("%w: %v is not a number", errs.ErrValue, t)
	case integer:
		return number{i: i}, nil
	case math.IsNaN(f) || math.IsInf(f, 0):
		return number{}, fmt.Errorf("%w: %v is not a finite number", errs.ErrValue, t)
	}
	return float(f), nil
}

func float(f float64) number { return number{f: f + 0, isFloat: true} } // -0 + 0 is 0

func (n number) words() (high, low uint64) {
	if n.isFloat {
		return floatKey(n.f), distanceBias<<1 | 1
	}
	f := float64(n.i)
	return floatKey(f), uint64(n.i-wrapped(f)+distanceBias) << 1
}

func numberOf(high, low uint64) number {
	f := keyFloat(high)
	if low&1 == 1 {
		return number{f: f, isFloat: true}
	}
	return number{i: wrapped(f) + int64(low>>1) - distanceBias}
}

// wrapped is the integer f modulo 2^64, for 2^63 as well.
func wrapped(f float64) int64 {
	if f == 1<<63 {
		return math.MinInt64
	}
	return int64(f)
}

// floatKey maps floats to integers in the same order.
func floatKey(f float64) uint64 {
	b := math.Float64bits(f)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func keyFloat(key uint64) float64 {
	if key>>63 == 1 {
		return math.Float64frombits(key &^ (1 << 63))
	}
	return math.Float64frombits(^key)
}

// plus is checked between integers; with a float, the integer is rounded to a
// float and so is the sum.
func (n number) plus(o number) (number, error) {
	if !n.isFloat && !o.isFloat {
		sum, ok := Add(n.i, o.i)
		if !ok {
			return number{}, fmt.Errorf("%w: %d + %d", errs.ErrOverflow, n.i, o.i)
		}
		return number{i: sum}, nil
	}
	f := n.float() + o.float()
	if math.IsInf(f, 0) {
		return number{}, fmt.Errorf("%w: %v + %v is beyond float64", errs.ErrOverflow, n.float(), o.float())
	}
	return float(f), nil
}

func (n number) float() float64 {
	if n.isFloat {
		return n.f
	}
	return float64(n.i)
}

// export is the number as a caller sees it.
func (n number) export() any {
	if n.isFloat {
		return n.f
	}
	return n.i
}

// compareWords compares two values of as many words.
func compareWords(a, b []uint64) int {
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// Average divides what "sum" exports by a count n > 0 and gives the nearest
// float64. It allocates only if one of them is beyond 2^53.
func Average(sum any, n int64) float64 {
	const exact = 1 << 53
	switch s := sum.(type) {
	case int64:
		if max(magnitude(s), uint64(n)) > exact {
			f, _ := big.NewRat(s, n).Float64()
			return f
		}
		return float64(s) / float64(n)
	case float64:
		if r := new(big.Rat).SetFloat64(s); n > exact && r != nil {
			f, _ := r.Quo(r, new(big.Rat).SetInt64(n)).Float64()
			return f
		}
		return s / float64(n)
	}
	return math.NaN()
}
