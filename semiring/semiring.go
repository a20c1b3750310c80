package semiring

import "math/bits"

// Add returns a+b and whether it fits in int64.
func Add(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// Mul returns a*b and whether it fits in int64. Both must not be negative.
func Mul(a, b int64) (product int64, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(lo), hi == 0 && lo>>63 == 0
}
