package term

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestOrder gives terms in their order, each behind the one before.
func TestOrder(t *testing.T) {
	want := []Term{
		{}, Blank("a"), IRI("a"), IRI("b"),
		Float(math.NaN()), Float(math.Inf(-1)), Int(math.MinInt64), Float(math.MinInt64), Int(-1), Float(-0.5),
		Int(0), Float(math.Copysign(0, -1)), Float(0), Float(5e-324),
		Typed("0.1000000000000000055511151231257827021181583404541015625", XSDDecimal), Float(0.1),
		Typed("0.10000000000000000556", XSDDecimal),
		Typed("1.5", XSDDecimal), xsd("1.5", "float"), xsd("+2", "byte"), Int(2),
		Int(1 << 53), Float(1 << 53), Int(1<<53 + 1), Int(1<<53 + 2), Float(1<<53 + 2),
		Int(math.MaxInt64), xsd("9223372036854775807.5", "decimal"), xsd("9223372036854775808", "integer"), Float(1 << 63),
		Float(math.MaxFloat64), Typed("1"+string(slices.Repeat([]byte("0"), 400)), XSDDecimal), Float(math.Inf(1)),
		xsd("0", "boolean"), Bool(false), Bool(true),
		xsd("-0400-01-01T00:00:00Z", "dateTime"), Time(time.Unix(-5, 7)), Time(time.Unix(0, 1)), Time(time.Unix(0, 2)),
		xsd("1970-01-01T01:00:00+00:30", "dateTime"), xsd("9999-01-01T00:00:00Z", "dateTime"),
		xsd("1970-01-01T00:00:00", "dateTime"), xsd("1970-01-02T00:00:00", "dateTime"),
		xsd("1970-01-01", "date"), xsd("1970-01-02", "date"), xsd("1970-01-01Z", "date"),
		String(""), String("a"), String("abcdefgh"), String("abcdefgi"),
		LangString("a", "de"), LangString("a", "en"), LangString("b", "de"),
		Bytes(nil), Bytes([]byte{255}), Typed("a", "d"), Typed("a", "e"), Typed("b", "d"),
	}
	for i, a := range want {
		for j, b := range want {
			if got := Order(a, b); sign(got) != sign(i-j) {
				t.Errorf("Order(%v, %v) = %d, want the sign of %d", a, b, got, i-j)
			}
			if i < j && OrderKey(a) > OrderKey(b) {
				t.Errorf("the keys of %v and %v are %x and %x", a, b, OrderKey(a), OrderKey(b))
			}
		}
	}
}

func sign(i int) int { return min(1, max(-1, i)) }

func TestOrderIsATotalOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	var terms []Term
	for range 100 {
		terms = append(terms, randomTerm(r))
	}
	for _, s := range []string{"0.1", "0.10000000000000001", "0.5", "1", "9007199254740993", "9007199254740993.0"} {
		f, _ := new(big.Float).SetString(s)
		near, _ := f.Float64()
		terms = append(terms, xsd(s, "decimal"), Float(near), xsd(s, "float"))
	}
	for _, a := range terms {
		for _, b := range terms {
			ab := Order(a, b)
			if ab != -Order(b, a) || (ab == 0) != (a == b) {
				t.Fatalf("Order(%v, %v) = %d", a, b, ab)
			}
			if ab < 0 && OrderKey(a) > OrderKey(b) {
				t.Fatalf("%v < %v, but the keys are %x and %x", a, b, OrderKey(a), OrderKey(b))
			}
			for _, c := range terms {
				if ab <= 0 && Order(b, c) <= 0 && Order(a, c) > 0 {
					t.Fatalf("%v <= %v <= %v, but not the first and the last", a, b, c)
				}
			}
		}
	}
}

// TestOrderAgreesWithLess leaves out decimals, which Less rounds.
func TestOrderAgreesWithLess(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for range 100_000 {
		a, b := randomTerm(r), randomTerm(r)
		if Less(a, b) && Order(a, b) >= 0 {
			t.Fatalf("%v is less than %v, but Order says %d", a, b, Order(a, b))
		}
	}
}

func TestNumeric(t *testing.T) {
	for _, tc := range []struct {
		t       Term
		i       int64
		f       float64
		integer bool
		ok      bool
	}{
		{Int(-7), -7, 0, true, true},
		{Float(2.5), 0, 2.5, false, true},
		{xsd("+07", "short"), 7, 0, true, true},
		{xsd("3.0", "decimal"), 3, 0, true, true},
		{xsd("3.25", "decimal"), 0, 3.25, false, true},
		{xsd("9223372036854775808", "integer"), 0, 1 << 63, false, true},
		{xsd("1"+string(slices.Repeat([]byte("0"), 400)), "decimal"), 0, math.Inf(1), false, true},
		{xsd("INF", "float"), 0, math.Inf(1), false, true},
		{xsd("1.5", "integer"), 0, 0, false, false},
		{String("1"), 0, 0, false, false},
		{Bool(true), 0, 0, false, false},
		{Term{}, 0, 0, false, false},
	} {
		i, f, integer, ok := Numeric(tc.t)
		if ok != tc.ok || ok && (i != tc.i || f != tc.f || integer != tc.integer) {
			t.Errorf("Numeric(%v) = %d, %v, %v, %v", tc.t, i, f, integer, ok)
		}
	}
}
