package semiring

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// integers is the algebra of int64 numbers with + and *: of all of them, or of
// those that are not negative, then perhaps with an upper bound at which sums and
// products stop. A value is one word.
//
// A state is the exact sum in two components, the low half (signed) and the high
// one, so that it does not overflow on the way to a sum that fits. A bound
// applies in Collect only: what is kept is the sum of the bounded values, from
// which each can be taken away again.
type integers struct {
	name     string
	negative bool
	bound    int64 // 0 for none
}

func (k *integers) Name() string { return k.name }

func (k *integers) Traits() Traits {
	t := Traits{Positive: !k.negative, Exact: true, Overflows: k.bound == 0, State: "O(1)"}
	t.Chain = int(min(k.bound, math.MaxInt))
	if k.negative {
		t.Chain = -1
	}
	t.Idempotent = k.bound == 1
	return t
}

func (k *integers) One(dst []uint64) []uint64 { return append(dst, 1) }

func (k *integers) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	i, _, integer, _ := term.Numeric(t)
	switch {
	case !integer:
		return dst, fmt.Errorf("%w: %v is not an integer of int64, as semiring %s wants it", errs.ErrValue, t, k.name)
	case i < 0 && !k.negative:
		return dst, fmt.Errorf("%w: %d is negative, which semiring %s excludes", errs.ErrValue, i, k.name)
	case k.bound > 0:
		i = min(i, k.bound)
	}
	return append(dst, uint64(i)), nil
}

func (k *integers) Mul(dst, a, b []uint64) ([]uint64, error) {
	product, ok := MulSigned(int64(a[0]), int64(b[0]))
	if k.bound > 0 && (!ok || product > k.bound) {
		product, ok = k.bound, true
	}
	if !ok {
		return dst, fmt.Errorf("%w: %d * %d", errs.ErrOverflow, int64(a[0]), int64(b[0]))
	}
	return append(dst, uint64(product)), nil
}

func (k *integers) Times(dst, a []uint64, n int64) ([]uint64, error) {
	factor := [1]uint64{uint64(n)}
	return k.Mul(dst, a, factor[:])
}

func (k *integers) Spread(dst []Part, a []uint64) []Part { return spreadInt(dst, int64(a[0])) }

func (k *integers) Collect(dst []uint64, s State) ([]uint64, error) {
	var low, high int64
	for s.Next() {
		p := s.Part()
		if p.At.Low == 0 {
			low = p.N
		} else {
			high = p.N
		}
	}
	sum, ok := joinInt(low, high)
	if k.bound > 0 && (!ok || sum > k.bound) {
		sum, ok = k.bound, true // the sum is not negative, so it is too large
	}
	if !ok {
		return dst, fmt.Errorf("%w: a sum", errs.ErrOverflow)
	}
	return append(dst, uint64(sum)), nil
}

func (k *integers) Export(a []uint64) any { return int64(a[0]) }

// spreadInt splits i = high*2^32 + low with low in int32, so that numbers of
// that range have one component.
func spreadInt(dst []Part, i int64) []Part {
	low := int64(int32(i))
	high := i >> 32
	if low < 0 {
		high++
	}
	if low != 0 {
		dst = append(dst, Part{Component{0, 0}, low})
	}
	if high != 0 {
		dst = append(dst, Part{Component{0, 1}, high})
	}
	return dst
}

// joinInt is high*2^32 + low and whether it fits in int64.
func joinInt(low, high int64) (sum int64, ok bool) {
	high, ok = Add(high, low>>32)
	return high<<32 | low&math.MaxUint32, ok && high == int64(int32(high))
}

// MulSigned is Mul for numbers of any sign.
func MulSigned(a, b int64) (product int64, ok bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if (a < 0) != (b < 0) {
		return -int64(lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo>>63 == 0
}

// magnitude is |i|, which int64 does not hold for the least of its values.
func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}

// truth is the Boolean semiring. A value is one word, 0 or 1; a state counts the
// truths.
type truth struct{}

func (truth) Name() string { return "bool" }

func (truth) Traits() Traits {
	return Traits{Positive: true, Idempotent: true, Chain: 1, Exact: true, State: "O(1)"}
}

func (truth) One(dst []uint64) []uint64 { return append(dst, 1) }

func (truth) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	b := term.Equal(t, term.Bool(true))
	if !b && !term.Equal(t, term.Bool(false)) {
		return dst, fmt.Errorf("%w: %v is not a truth value", errs.ErrValue, t)
	}
	if b {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (truth) Mul(dst, a, b []uint64) ([]uint64, error) { return append(dst, a[0]&b[0]), nil }

func (truth) Times(dst, a []uint64, _ int64) ([]uint64, error) { return append(dst, a...), nil }

func (truth) Spread(dst []Part, a []uint64) []Part {
	if a[0] == 0 {
		return dst
	}
	return append(dst, Part{Component{}, 1})
}

func (truth) Collect(dst []uint64, s State) ([]uint64, error) {
	if s.Next() {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (truth) Export(a []uint64) any { return term.Bool(a[0] == 1) }
