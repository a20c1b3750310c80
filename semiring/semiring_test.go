package semiring

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestAgainstBigIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	edge := []int64{0, 1, 2, 55108, 55109, 65536, 3037000499, 3037000500, math.MaxInt64 - 1, math.MaxInt64}
	draw := func() int64 {
		if rng.IntN(2) == 0 {
			return edge[rng.IntN(len(edge))]
		}
		return rng.Int64() >> rng.IntN(63)
	}
	for range 100_000 {
		a, b := draw(), draw()
		check(t, "+", a, b, new(big.Int).Add(big.NewInt(a), big.NewInt(b)), Add)
		check(t, "+", a, -b, new(big.Int).Sub(big.NewInt(a), big.NewInt(b)), Add)
		check(t, "*", a, b, new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), Mul)
	}
}

func check(t *testing.T, op string, a, b int64, want *big.Int, f func(a, b int64) (int64, bool)) {
	t.Helper()
	got, ok := f(a, b)
	if ok != want.IsInt64() || ok && got != want.Int64() {
		t.Fatalf("%d %s %d = %d, %v; want %v", a, op, b, got, ok, want)
	}
}
