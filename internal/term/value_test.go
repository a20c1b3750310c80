package term

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

func xsd(lexical, name string) Term { return Typed(lexical, XSD+name) }

func TestCompareValues(t *testing.T) {
	const none = 2 // no order
	nan := Float(math.NaN())
	for _, c := range []struct {
		a, b Term
		want int
	}{
		{Int(1), Int(2), -1},
		{Int(2), Float(2), 0},
		{Int(2), Float(2.5), -1},
		{Int(-2), Float(-2.5), 1},
		{Int(1<<53 + 1), Float(1 << 53), 1},
		{Int(math.MaxInt64), Float(1 << 63), -1},
		{Int(math.MinInt64), Float(-1 << 63), 0},
		{Int(math.MinInt64), Float(-1.1 * (1 << 63)), 1},
		{Int(0), Float(math.Inf(1)), -1},
		{Int(0), Float(math.Inf(-1)), 1},
		{Float(0), Float(math.Copysign(0, -1)), 0},
		{Int(0), Float(5e-324), -1},
		{nan, nan, none},
		{nan, Int(1), none},
		{nan, xsd("NaN", "float"), none},
		{Int(1), xsd("01", "int"), 0},
		{Int(1), xsd("1.00", "decimal"), 0},
		{Int(1), xsd("1.01", "decimal"), -1},
		{Int(-1), xsd("-1.01", "decimal"), 1},
		{Int(0), xsd("-0.5", "decimal"), 1},
		{Int(0), xsd("-0.0", "decimal"), 0},
		{Int(math.MaxInt64), xsd("9223372036854775808", "integer"), -1},
		{Int(math.MinInt64), xsd("-9223372036854775808.1", "decimal"), 1},
		{Int(math.MinInt64), xsd("-9223372036854775808.0", "decimal"), 0},
		{xsd("99999999999999999999", "integer"), xsd("100000000000000000000", "unsignedLong"), -1},
		{xsd("-99999999999999999999", "integer"), xsd("-100000000000000000000", "integer"), 1},
		{xsd("0.10", "decimal"), xsd(".1", "decimal"), 0},
		{xsd("0.1", "decimal"), xsd("0.1000000000000000000001", "decimal"), -1},
		{xsd("-0.1", "decimal"), xsd("0.05", "decimal"), -1},
		{xsd("0.1", "decimal"), Float(0.1), 0},
		{xsd("0.1", "decimal"), xsd("0.1", "float"), 0},
		{Float(0.1), xsd("0.1", "float"), -1},
		{xsd("1.5", "double"), Float(1.5), 0},
		{xsd("9223372036854775808", "integer"), Float(1 << 63), 0},
		{xsd("9223372036854775809", "integer"), Float(1 << 63), 1},
		{xsd("-9223372036854775809", "integer"), Float(-1 << 63), -1},
		{xsd("99999999999999991611392", "integer"), Float(1e23), 0},
		{xsd("100000000000000000000000", "integer"), Float(1e23), 1},
		{xsd("1"+string(slices.Repeat([]byte("0"), 400)), "integer"), Float(math.MaxFloat64), 1},
		{xsd("1"+string(slices.Repeat([]byte("0"), 400)), "integer"), Float(math.Inf(1)), -1},
		{xsd("1e999", "double"), Float(math.Inf(1)), 0},
		{xsd("abc", "int"), xsd("abc", "int"), 0},
		{xsd("abc", "int"), Int(1), none},
		{xsd("1.5", "int"), Float(1.5), none},
		{xsd(".5", "int"), Float(0.5), none},
		{xsd("0x10", "double"), Int(16), none},
		{xsd("1_0", "double"), Int(10), none},
		{xsd("1e", "double"), Int(1), none},
		{xsd("", "decimal"), Int(0), none},
		{xsd(".", "decimal"), Int(0), none},

		{Bool(false), Bool(true), -1},
		{Bool(true), xsd("1", "boolean"), 0},
		{xsd("0", "boolean"), xsd("1", "boolean"), -1},
		{Bool(true), Int(1), none},
		{Bool(true), String("true"), none},

		{Time(time.Unix(1, 5)), Time(time.Unix(1, 6)), -1},
		{Time(time.Unix(-1, 0)), Time(time.Unix(0, 0)), -1},
		{Time(time.Unix(0, 0)), xsd("1970-01-01T01:00:00+01:00", "dateTime"), 0},
		{Time(time.Unix(0, -1)), xsd("1969-12-31T23:59:59.9999999990Z", "dateTime"), 0},
		{Time(time.Unix(0, -1)), xsd("1969-12-31T23:59:59.9999999991Z", "dateTime"), -1},
		{Time(time.Unix(0, 0)), xsd("1969-12-31T24:00:00Z", "dateTime"), 0},
		{Time(time.Unix(0, 0)), xsd("9999-01-01T00:00:00Z", "dateTime"), -1},
		{Time(time.Unix(0, 0)), xsd("1970-01-01T00:00:00", "dateTime"), none},
		{xsd("2020-01-01T00:00:00", "dateTime"), xsd("2020-01-01T00:00:00.5", "dateTime"), -1},
		{xsd("2020-01-02", "date"), xsd("2020-01-10", "date"), -1},
		{xsd("2020-01-02Z", "date"), xsd("2020-01-02+14:00", "date"), 1},
		{xsd("2020-01-02Z", "date"), xsd("2020-01-02T00:00:00Z", "dateTime"), none},
		{xsd("-0001-01-01", "date"), xsd("0001-01-01", "date"), -1},
		{xsd("2020-02-30", "date"), xsd("2020-03-01", "date"), none},
		{xsd("20200-01-01", "date"), xsd("2021-01-01", "date"), 1},
		{xsd("02020-01-01", "date"), xsd("2021-01-01", "date"), none},
		{xsd("2020-01-01+15:00", "date"), xsd("2020-01-01Z", "date"), none},
		{xsd("2020-01-01+14:01", "date"), xsd("2020-01-01Z", "date"), none},
		{xsd("2020-01-01-00:60", "date"), xsd("2020-01-01Z", "date"), none},
		{xsd("2020-01-01-00:30", "date"), xsd("2020-01-01Z", "date"), 1},
		{xsd("999-01-01", "date"), xsd("2020-01-01", "date"), none},
		{xsd("999999999-01-01", "date"), xsd("2020-01-01", "date"), 1},
		{xsd("1000000000-01-01", "date"), xsd("2020-01-01", "date"), none},
		{xsd("2020-00-01", "date"), xsd("2020-01-01", "date"), none},
		{xsd("2020-13-01", "date"), xsd("2020-01-01", "date"), none},
		{xsd("2020-01-00", "date"), xsd("2020-01-01", "date"), none},
		{xsd("2020-01-01T23:59:59", "dateTime"), xsd("2020-01-02T00:00:00", "dateTime"), -1},
		{xsd("2020-01-01T23:60:00", "dateTime"), xsd("2020-01-02T00:00:00", "dateTime"), none},
		{xsd("2020-01-01T23:00:60", "dateTime"), xsd("2020-01-02T00:00:00", "dateTime"), none},
		{xsd("2020-01-01T24:00:00.5", "dateTime"), xsd("2020-01-02T00:00:00", "dateTime"), none},
		{xsd("2020-01-01T25:00:00", "dateTime"), xsd("2020-01-02T00:00:00", "dateTime"), none},
		{xsd("2020-01-01T00:00:00.", "dateTime"), xsd("2020-01-02T00:00:00", "dateTime"), none},
		{xsd("2020-01-01T00:00", "dateTime"), xsd("2020-01-02T00:00:00", "dateTime"), none},

		{String("a"), String("b"), -1},
		{String(""), String(""), 0},
		{String("1"), Int(1), none},
		{String("a"), LangString("a", "en"), none},
		{LangString("a", "en"), LangString("b", "en"), -1},
		{LangString("a", "en"), LangString("b", "fr"), none},
		{IRI("a"), IRI("b"), -1},
		{IRI("a"), String("a"), none},
		{Blank("a"), Blank("b"), -1},
		{Bytes([]byte{1}), Bytes([]byte{2}), -1},
		{Typed("a", "d"), Typed("a", "d"), 0},
		{Typed("a", "d"), Typed("b", "d"), none},
		{Typed("a", "d"), Typed("a", "e"), none},
		{Typed("2020-01-01", "d"), xsd("2020-01-02", "date"), none},
		{xsd("P1D", "duration"), Int(1), none},
	} {
		for _, flip := range []int{1, -1} {
			a, b, want := c.a, c.b, c.want*flip
			if flip < 0 {
				a, b = b, a
			}
			got, ok := CompareValues(a, b)
			if ok != (c.want != none) || ok && got != want {
				t.Errorf("CompareValues(%v, %v) = %d, %v, want %d", a, b, got, ok, want)
			}
			if Equal(a, b) != (c.want == 0) || Less(a, b) != (c.want != none && want < 0) {
				t.Errorf("Equal or Less of %v, %v is wrong", a, b)
			}
		}
	}
}

// TestNumbersAgainstBig compares random numbers of all kinds with exact
// rational arithmetic.
func TestNumbersAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func() (Term, *big.Rat) {
		near := int64(1)<<(r.IntN(64)) + r.Int64N(5) - 2
		if r.IntN(2) == 0 {
			near = -near
		}
		switch r.IntN(3) {
		case 0:
			return Int(near), new(big.Rat).SetInt64(near)
		case 1:
			f := float64(near)
			return Float(f), new(big.Rat).SetFloat64(f)
		}
		s := strconv.FormatInt(near, 10) + []string{"", "0", "00", "7"}[r.IntN(4)]
		v, _ := new(big.Rat).SetString(s)
		return xsd(s, "decimal"), v
	}
	for range 200_000 {
		a, va := draw()
		b, vb := draw()
		if c, ok := CompareValues(a, b); !ok || c != va.Cmp(vb) {
			t.Fatalf("CompareValues(%v, %v) = %d, %v, want %d", a, b, c, ok, va.Cmp(vb))
		}
	}
}

func TestCompareIsATotalOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	terms := []Term{{}, Float(math.NaN()), Float(0), Float(math.Copysign(0, -1)), Float(math.Inf(-1))}
	for range 150 {
		terms = append(terms, randomTerm(r))
	}
	for _, a := range terms {
		for _, b := range terms {
			ab := Compare(a, b)
			if ab != -Compare(b, a) || (ab == 0) != (a == b) {
				t.Fatalf("Compare(%v, %v) = %d", a, b, ab)
			}
			for _, c := range terms {
				if ab <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
					t.Fatalf("%v <= %v <= %v, but not the first and the last", a, b, c)
				}
			}
		}
	}
	want := []Term{{}, IRI("a"), String("a"), String("b"), LangString("z", "de"), LangString("a", "en"),
		Typed("a", "d"), Int(-1), Int(1), Float(-1), Float(math.Copysign(0, -1)), Float(0), Float(math.Inf(1)),
		Float(math.NaN()), Bool(false), Bool(true), Time(time.Unix(-1, 0)), Time(time.Unix(1, 0)), Bytes(nil), Blank("a")}
	got := slices.Clone(want)
	r.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	if slices.SortFunc(got, Compare); !slices.Equal(got, want) {
		t.Errorf("sorted: %v", got)
	}
}

func TestComparingAllocatesNothing(t *testing.T) {
	terms := []Term{Int(7), Float(2.5), xsd("1.5", "decimal"), xsd("7.25", "double"), String("a"), LangString("a", "en"),
		Bool(true), Time(time.Unix(1, 2)), xsd("2020-01-01T00:00:00+01:00", "dateTime"), xsd("9223372036854775808", "integer"),
		Float(1e30), IRI("x"), Typed("x", "y")}
	n := testing.AllocsPerRun(100, func() {
		for _, a := range terms {
			for _, b := range terms {
				CompareValues(a, b)
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
