package semiring

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/triegs/triegs/internal/errs"
)

// Every finite float64 is a whole number of units of 2^-1074. Sums of floats are
// kept as such numbers, in digits to the base 2^32, and so are exact, deletable
// and independent of order; they are rounded when they are read (the long
// accumulator of Kulisch). The largest float has 66 digits.
const (
	unitExponent = -1074
	digitBits    = 32
	digitMask    = 1<<digitBits - 1
	digitsMax    = 70 // that a state or value may have; 2^90 largest floats
)

// spreadFloat appends the digits of f, which is finite, as components with the
// given High and the place of the digit as Low.
func spreadFloat(dst []Part, high uint64, f float64) []Part {
	b := math.Float64bits(f)
	exponent := int(b >> 52 & 0x7FF)
	mantissa := b & (1<<52 - 1)
	if exponent > 0 {
		mantissa |= 1 << 52
		exponent--
	}
	shift := uint(exponent % digitBits)
	top, rest := mantissa>>1>>(63-shift), mantissa<<shift
	place := uint64(exponent / digitBits)
	for i, digit := range [3]uint64{rest & digitMask, rest >> digitBits, top} {
		if digit == 0 {
			continue
		}
		n := int64(digit)
		if b>>63 == 1 {
			n = -n
		}
		dst = append(dst, Part{Component{high, place + uint64(i)}, n})
	}
	return dst
}

// wide is a whole number of units. After normal, the digits are those of its
// magnitude.
type wide struct {
	digits   [digitsMax + 2]int64
	negative bool
}

// add adds n at a place below digitsMax. Up to 2^30 calls are exact.
func (w *wide) add(place uint64, n int64) {
	place = min(place, digitsMax-1) // which it is, unless the state is no sum of vectors
	w.digits[place] += n & digitMask
	w.digits[place+1] += n >> digitBits
}

// addInt adds n * 2^(32*half) as a number, not in units: a number's lowest bit
// is 18 bits up in place 33, as 1074 = 33*32 + 18.
func (w *wide) addInt(half uint64, n int64) {
	const place, shift = -unitExponent / digitBits, -unitExponent % digitBits
	w.add(place+half, n&digitMask<<shift)
	w.add(place+half+1, n>>digitBits<<shift)
}

// addProduct adds the product of a digit, of either sign, with n > 0 at a place.
func (w *wide) addProduct(place uint64, digit, n int64) {
	high, low := bits.Mul64(magnitude(digit), uint64(n))
	for i, d := range [3]uint64{low & digitMask, low >> digitBits, high} {
		if digit < 0 {
			w.add(place+uint64(i), -int64(d))
		} else {
			w.add(place+uint64(i), int64(d))
		}
	}
}

// normal carries, and takes the sign off.
func (w *wide) normal() {
	if w.carry() < 0 {
		w.negative = !w.negative
		for i := range w.digits {
			w.digits[i] = -w.digits[i]
		}
		w.carry()
	}
}

// carry brings the digits into range and returns what is left over: 0, or -1
// for a negative number.
func (w *wide) carry() int64 {
	carry := int64(0)
	for i, d := range w.digits {
		d += carry
		w.digits[i], carry = d&digitMask, d>>digitBits
	}
	return carry
}

// round is the nearest float64 (to even between two) to the number, which is
// normal. A number beyond the floats is ErrOverflow.
func (w *wide) round() (float64, error) {
	top := len(w.digits) - 1
	for top >= 0 && w.digits[top] == 0 {
		top--
	}
	if top < 0 {
		return 0, nil
	}
	digit := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return uint64(w.digits[i])
	}
	lead := digit(top)
	zeros := uint(bits.LeadingZeros32(uint32(lead)))
	high := lead<<digitBits | digit(top-1)
	m := high<<zeros | digit(top-2)>>(digitBits-zeros)
	sticky := digit(top-2)<<zeros&digitMask != 0
	for i := top - 3; i >= 0 && !sticky; i-- {
		sticky = digit(i) != 0
	}
	const extra = 64 - 53
	const half = 1 << (extra - 1)
	mantissa, rest := m>>extra, m&(1<<extra-1)
	if rest > half || rest == half && (sticky || mantissa&1 == 1) {
		mantissa++
	}
	// Bits below the unit are zeros, so that Ldexp does not round a second time.
	bit := top*digitBits + digitBits - 1 - int(zeros)
	f := math.Ldexp(float64(mantissa), bit-52+unitExponent)
	if math.IsInf(f, 0) {
		return 0, fmt.Errorf("%w: a sum of floats is beyond float64", errs.ErrOverflow)
	}
	if w.negative {
		f = -f
	}
	return f, nil
}
