package summary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/triegs/triegs"
)

// hard are numbers at the ends of their kinds.
var hard = []triegs.Term{
	triegs.Int(0), triegs.Int(1), triegs.Int(-1), triegs.Int(math.MaxInt64), triegs.Int(math.MinInt64),
	triegs.Int(1<<53 + 1), triegs.Float(0), triegs.Float(math.Copysign(0, -1)), triegs.Float(0.1), triegs.Float(-0.1),
	triegs.Float(math.SmallestNonzeroFloat64), triegs.Float(-3 * math.SmallestNonzeroFloat64),
	triegs.Float(0x1p-1022), triegs.Float(0x1.fffffffffffffp-1023), triegs.Float(math.MaxFloat64), triegs.Float(-math.MaxFloat64),
	triegs.Float(1 << 63), triegs.Float(1e-300), triegs.Float(1e300), triegs.Float(math.Pi),
	triegs.Typed("0.1", "http://www.w3.org/2001/XMLSchema#decimal"),
}

// rational is a number by itself.
func rational(t *testing.T, v triegs.Term) (r *big.Rat, float bool) {
	t.Helper()
	if i, ok := v.AsInt(); ok {
		return new(big.Rat).SetInt64(i), false
	}
	f, ok := v.AsFloat()
	if !ok {
		f = 0.1 // the decimal
	}
	return new(big.Rat).SetFloat64(f), true
}

// A total is the nearest number to the exact sum, whatever has come and gone.
func TestTotal(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	sums, overflows := 0, 0
	for range 3000 {
		pool := make([]triegs.Term, 1+rng.IntN(6))
		for i := range pool {
			switch pool[i] = hard[rng.IntN(len(hard))]; rng.IntN(4) {
			case 0:
				pool[i] = triegs.Int(rng.Int64N(2000) - 1000)
			case 1:
				pool[i] = triegs.Float(rng.NormFloat64())
			}
		}
		var got total
		exact := new(big.Rat)
		copies := make([]int64, len(pool))
		for range 20 {
			i := rng.IntN(len(pool))
			n := rng.Int64N(5) - copies[i] // as many as there will be, less those that are there
			copies[i] += n
			got.add(pool[i], n)
			r, _ := rational(t, pool[i])
			exact.Add(exact, r.Mul(r, new(big.Rat).SetInt64(n)))
			if checkTotal(t, &got, exact, pool, copies) {
				sums++
			} else {
				overflows++
			}
		}
	}
	if sums < 10_000 || overflows < 1000 {
		t.Errorf("%d sums fit and %d do not", sums, overflows)
	}
}

// checkTotal compares a total with the exact sum, and reports whether it fits.
func checkTotal(t *testing.T, got *total, exact *big.Rat, pool []triegs.Term, copies []int64) bool {
	t.Helper()
	float, n := false, int64(0)
	for i, c := range copies {
		if _, f := rational(t, pool[i]); f && c > 0 {
			float = true
		}
		n += c
	}
	var want any
	fits := true
	if f, _ := exact.Float64(); float {
		want, fits = f, !math.IsInf(f, 0)
	} else {
		want, fits = exact.Num().Int64(), exact.Num().IsInt64()
	}
	v, err := got.value()
	if (err == nil) != fits || fits && v != want {
		t.Fatalf("%v times %v: got %v, %v, want %v", pool, copies, v, err, want)
	}
	if n == 0 {
		return fits
	}
	mean, err := got.average(n)
	nearest, _ := new(big.Rat).Quo(exact, new(big.Rat).SetInt64(n)).Float64()
	if float && fits {
		nearest = want.(float64) / float64(n)
	}
	if (err == nil) != (fits || !float) || err == nil && mean != nearest {
		t.Fatalf("%v times %v: the average is %v, %v, want %v", pool, copies, mean, err, nearest)
	}
	return fits
}

// Products of large numbers of answers with large values leave no trace when they
// go, although they wrap on the way.
func TestWideWraps(t *testing.T) {
	t.Parallel()
	var w wide
	ends := []int64{math.MaxInt64, math.MinInt64, 1, -1, 12345}
	for range 9 {
		for _, n := range ends {
			for _, v := range ends {
				w.add(n, v)
			}
		}
	}
	w.add(3, 14)
	for range 9 {
		for _, n := range ends {
			for _, v := range ends {
				w.add(n, v)
				w.add(n, v)
				w.add(n, v)
			}
		}
	}
	want := new(big.Int)
	for _, n := range ends {
		for _, v := range ends {
			p := new(big.Int).Mul(big.NewInt(n), big.NewInt(v))
			want.Add(want, p.Mul(p, big.NewInt(36)))
		}
	}
	want.Add(want, big.NewInt(42))
	mod := new(big.Int).Lsh(big.NewInt(1), 128)
	if got := w.big(new(big.Int)); new(big.Int).Mod(new(big.Int).Sub(got, want), mod).Sign() != 0 {
		t.Errorf("got %v, want %v modulo 2^128", got, want)
	}
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		w = wide{}
		w.add(n, 1)
		if got, ok := w.int(); !ok || got != n {
			t.Errorf("%d comes back as %d, %v", n, got, ok)
		}
	}
	if w.add(-1, 1); w.high != -1 || w.low != math.MaxInt64 {
		t.Errorf("one below the least int64 is %+v", w)
	}
	if _, ok := w.int(); ok {
		t.Error("one below the least int64 fits")
	}
}
