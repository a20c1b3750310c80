package semiring

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

var hardInts = []int64{0, 1, -1, 2, 1<<31 - 1, 1 << 31, -1 << 31, -1<<31 - 1, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1,
	-1<<53 - 1, 1<<62 + 257, math.MaxInt64 - 511, math.MaxInt64 - 512, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1}

var hardFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 0.5, 5e-324, -5e-324, 0x1p-1022, 0x1.fffffffffffffp-1022,
	0x0.fffffffffffffp-1022, 1 << 31, 1 << 53, 1<<53 + 2, -1 << 53, 1 << 62, 1 << 63, -1 << 63, 0x1.fffffffffffffp62, 1e16, -1e16,
	1e300, -1e300, math.MaxFloat64, -math.MaxFloat64}

func drawInt(r *rand.Rand) int64 {
	if r.IntN(3) == 0 {
		return hardInts[r.IntN(len(hardInts))]
	}
	return int64(r.Uint64()) >> r.IntN(64)
}

func drawFloat(r *rand.Rand) float64 {
	switch r.IntN(4) {
	case 0:
		return hardFloats[r.IntN(len(hardFloats))]
	case 1:
		return float64(drawInt(r))
	}
	for {
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

// TestNumbersAsWords checks the order of the words against exact numbers, and that
// numbers come back as they were.
func TestNumbersAsWords(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	draw := func() (number, *big.Rat) {
		if r.IntN(2) == 0 {
			i := drawInt(r)
			return number{i: i}, new(big.Rat).SetInt64(i)
		}
		f := drawFloat(r)
		if r.IntN(2) == 0 {
			f = float64(drawInt(r)) // near to the integers
		}
		return float(f), new(big.Rat).SetFloat64(f)
	}
	for range 300_000 {
		a, exactA := draw()
		b, exactB := draw()
		aHigh, aLow := a.words()
		bHigh, bLow := b.words()
		if numberOf(aHigh, aLow) != a || aLow >= lowMax {
			t.Fatalf("%v came back as %v", a, numberOf(aHigh, aLow))
		}
		want := exactA.Cmp(exactB)
		if want == 0 && a.isFloat != b.isFloat {
			want = -1
			if a.isFloat {
				want = 1
			}
		}
		if got := order(Component{aHigh, aLow}, Component{bHigh, bLow}); got != want {
			t.Fatalf("%v against %v: %d, want %d", a, b, got, want)
		}
		if turnedA := turned(Component{aHigh, aLow}, true); turned(turnedA, true) != (Component{aHigh, aLow}) || order(turnedA, worst) >= 0 ||
			order(turnedA, turned(Component{bHigh, bLow}, true)) != -want {
			t.Fatalf("%v and %v do not turn", a, b)
		}
	}
}

// add lifts a term into a state, n times.
func add(t *testing.T, k Algebra, b *bag, v term.Term, n int64) {
	t.Helper()
	a, err := k.Lift(nil, 1, v)
	if err == nil && max(n, -n) > 1 {
		a, err = k.Times(nil, a, max(n, -n))
	}
	if err != nil {
		t.Fatal(err)
	}
	b.add(k.Spread(nil, a), int64(cmp.Compare(n, 0)))
}

// TestSumsAgainstBig adds and takes away random numbers, and compares what is
// read with the exact sum, rounded once.
func TestSumsAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for _, tc := range []struct {
		k      Algebra
		ints   bool
		floats bool
	}{{&integers{name: "int", negative: true}, true, false}, {real{}, false, true}, {sum{}, true, false}, {sum{}, true, true}} {
		overflows := 0
		for range 3000 {
			var b bag
			exact := new(big.Rat)
			float := false
			for range r.IntN(8) + 1 {
				v, size := term.Float(drawFloat(r)), new(big.Rat)
				if tc.ints && (!tc.floats || r.IntN(2) == 0) {
					v = term.Int(drawInt(r))
				}
				if i, ok := v.AsInt(); ok {
					size.SetInt64(i)
				} else {
					f, _ := v.AsFloat()
					size.SetFloat64(f)
					float = true
				}
				add(t, tc.k, &b, v, 1)
				exact.Add(exact, size)
				if r.IntN(3) == 0 { // something comes and goes
					other := term.Float(drawFloat(r))
					if !tc.floats {
						other = term.Int(drawInt(r))
					}
					add(t, tc.k, &b, other, 1)
					add(t, tc.k, &b, other, -1)
				}
			}
			if !checkSum(t, tc.k, &b, exact, float) {
				overflows++
			}
		}
		if overflows == 0 || overflows > 1500 {
			t.Errorf("%s: %d overflows", tc.k.Name(), overflows)
		}
	}
}

// checkSum compares a state with its exact sum, and reports whether that fits.
func checkSum(t *testing.T, k Algebra, b *bag, exact *big.Rat, float bool) (fits bool) {
	t.Helper()
	a, err := b.collect(k)
	var want any
	if float {
		f, _ := exact.Float64()
		want, fits = f, !math.IsInf(f, 0)
	} else {
		want, fits = exact.Num().Int64(), exact.Num().IsInt64()
	}
	switch {
	case !fits && !errors.Is(err, errs.ErrOverflow):
		t.Fatalf("%s: %v, %v, want an overflow", k.Name(), k.Export(a), err)
	case !fits:
		return false
	case err != nil || k.Export(a) != want:
		t.Fatalf("%s: %v, %v, want %v", k.Name(), a, err, want)
	}
	if f, ok := want.(float64); ok && f == 0 && math.Signbit(k.Export(a).(float64)) {
		t.Fatalf("%s gave -0", k.Name())
	}
	return true
}

// TestMultiplesAgainstBig takes numbers many times.
func TestMultiplesAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	for range 20_000 {
		n := r.Int64()>>r.IntN(63) + 1
		i, f := drawInt(r), drawFloat(r)
		var b bag
		for _, tc := range []struct {
			k     Algebra
			v     term.Term
			exact *big.Rat
		}{
			{&integers{name: "int", negative: true}, term.Int(i), new(big.Rat).SetInt64(i)},
			{sum{}, term.Int(i), new(big.Rat).SetInt64(i)},
			{sum{}, term.Float(f), new(big.Rat).SetFloat64(f)},
			{real{}, term.Float(f), new(big.Rat).SetFloat64(f)},
		} {
			a, err := tc.k.Lift(nil, 1, tc.v)
			if err != nil {
				t.Fatal(err)
			}
			exact := tc.exact.Mul(tc.exact, new(big.Rat).SetInt64(n))
			float := tc.v.Kind() == term.KindFloat
			if a, err = tc.k.Times(nil, a, n); err != nil {
				rounded, _ := exact.Float64()
				fits := float && !math.IsInf(rounded, 0) || !float && exact.Num().IsInt64()
				if !errors.Is(err, errs.ErrOverflow) || fits {
					t.Fatalf("%s: %v, %d times: %v", tc.k.Name(), tc.v, n, err)
				}
				continue
			}
			b.parts = b.parts[:0]
			b.add(tc.k.Spread(nil, a), 1)
			if !checkSum(t, tc.k, &b, exact, float) {
				t.Fatalf("%s: %v, %d times: no error", tc.k.Name(), tc.v, n)
			}
		}
	}
}

// TestRealProducts checks that a product is the nearest float, and its bounds.
func TestRealProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	for range 20_000 {
		x, y := drawFloat(r), drawFloat(r)
		a, _ := real{}.Lift(nil, 1, term.Float(x))
		b, _ := real{}.Lift(nil, 1, term.Float(y))
		exact := new(big.Rat).SetFloat64(x)
		want, _ := exact.Mul(exact, new(big.Rat).SetFloat64(y)).Float64()
		got, err := real{}.Mul(nil, a, b)
		if math.IsInf(want, 0) {
			if !errors.Is(err, errs.ErrOverflow) {
				t.Fatalf("%v * %v = %v, %v", x, y, got, err)
			}
			continue
		}
		if err != nil || real.Export(real{}, got) != want || got[0] == 1<<63 {
			t.Fatalf("%v * %v = %v, %v, want %v", x, y, got, err, want)
		}
	}
}

// TestIntProducts is against math/big, over the whole range.
func TestIntProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 30))
	k := &integers{name: "int", negative: true}
	capped := &integers{name: "cap", bound: 1000}
	for range 50_000 {
		x, y := drawInt(r), drawInt(r)
		exact := new(big.Int).Mul(big.NewInt(x), big.NewInt(y))
		got, err := k.Mul(nil, []uint64{uint64(x)}, []uint64{uint64(y)})
		if exact.IsInt64() != (err == nil) || err == nil && int64(got[0]) != exact.Int64() {
			t.Fatalf("%d * %d = %v, %v, want %v", x, y, got, err, exact)
		}
		if x < 0 || y < 0 {
			continue
		}
		want := int64(1000)
		if exact.Cmp(big.NewInt(want)) < 0 {
			want = exact.Int64()
		}
		if got, err := capped.Mul(nil, []uint64{uint64(x)}, []uint64{uint64(y)}); err != nil || int64(got[0]) != want {
			t.Fatalf("up to 1000, %d * %d = %v, %v, want %v", x, y, got, err, want)
		}
	}
}

// TestFloatsComeAndGo is the case that plain floats get wrong, and the kind of a
// sum after its floats have left.
func TestFloatsComeAndGo(t *testing.T) {
	for _, tc := range []struct {
		k    Algebra
		in   []term.Term
		out  []term.Term
		want any
	}{
		{sum{}, floats(1e16, 1), floats(1e16), 1.0},
		{real{}, floats(1e16, 1), floats(1e16), 1.0},
		{sum{}, append(ints(3), floats(0.5, 0.25)...), floats(0.5, 0.25), int64(3)},
		{sum{}, append(ints(math.MaxInt64, math.MaxInt64, -5), floats(0.5)...), nil, float64(1 << 64)},
		{sum{}, ints(math.MaxInt64, math.MaxInt64, math.MinInt64), nil, int64(math.MaxInt64 - 1)},
		{sum{}, append(ints(5), floats(-5)...), nil, 0.0},
		{sum{}, floats(0.1, 0.2, 0.3, 0.4), floats(0.4), 0.6},
		{sum{}, floats(math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64), nil, math.MaxFloat64},
		{sum{}, floats(math.Copysign(0, -1)), nil, 0.0},
		{&integers{name: "int", negative: true}, ints(1, -1), nil, int64(0)},
		{real{}, floats(0.1, -0.1), nil, 0.0},
	} {
		var b bag
		for _, v := range tc.in {
			add(t, tc.k, &b, v, 1)
		}
		for _, v := range tc.out {
			add(t, tc.k, &b, v, -1)
		}
		a, err := b.collect(tc.k)
		if err != nil || tc.k.Export(a) != tc.want {
			t.Errorf("%s of %v without %v: %v, %v, want %v", tc.k.Name(), tc.in, tc.out, a, err, tc.want)
		}
	}
}

func TestSumMultipliesWithCounts(t *testing.T) {
	var k sum
	half, err := k.Lift(nil, 1, term.Float(0.5))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		a, b []uint64
		want any // nil for ErrValue
	}{
		{half, []uint64{6}, 3.0},
		{[]uint64{6}, half, 3.0},
		{[]uint64{6}, []uint64{7}, int64(42)},
		{half, half, nil},
		{half, []uint64{0}, nil},
		{half, []uint64{math.MaxUint64}, nil},
	} {
		a, err := k.Mul(nil, tc.a, tc.b)
		if tc.want == nil && !errors.Is(err, errs.ErrValue) || tc.want != nil && (err != nil || k.Export(a) != tc.want) {
			t.Errorf("%v * %v = %v, %v, want %v", tc.a, tc.b, a, err, tc.want)
		}
	}
}

func TestAverage(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for range 50_000 {
		n := r.Int64()>>r.IntN(63) + 1
		i, f := drawInt(r), drawFloat(r)
		want, _ := new(big.Rat).SetFrac(big.NewInt(i), big.NewInt(n)).Float64()
		if got := Average(i, n); got != want {
			t.Fatalf("the average of %d over %d is %v, want %v", i, n, got, want)
		}
		exact := new(big.Rat).SetFloat64(f)
		want, _ = exact.Quo(exact, new(big.Rat).SetInt64(n)).Float64()
		if got := Average(f, n); got != want {
			t.Fatalf("the average of %v over %d is %v, want %v", f, n, got, want)
		}
	}
	if got := Average(nil, 1); got == got {
		t.Errorf("the average of nothing is %v", got)
	}
}

// TestDamagedStates hands components to Collect that no algebra has made: it may
// answer anything, but has to come back.
func TestDamagedStates(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, s := range slices.Concat(subjects(), columns()) {
		if s.spec == "min" || s.spec == "max" {
			continue // what a Resolver does with an id that it does not know is its own affair
		}
		k := s.algebra(t)
		for range 300 {
			var b bag
			for range r.IntN(4) {
				at := Component{r.Uint64() >> r.IntN(64), r.Uint64() >> r.IntN(64)}
				b.add([]Part{{at, int64(r.Uint64()>>1)>>r.IntN(63) | 1}}, 1)
			}
			_, _ = b.collect(k) // either is fine
		}
	}
}
