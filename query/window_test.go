package query

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

func TestParseSpan(t *testing.T) {
	const s, m, h, d = int64(1e9), int64(60e9), int64(3600e9), int64(24 * 3600e9)
	for _, tc := range []struct {
		text string
		want int64 // 0 = refused
	}{
		{"10m", 10 * m}, {"1h30m", h + 30*m}, {"1.5s", 3 * s / 2}, {"250ms", s / 4}, {"1ns", 1}, {"3us", 3000},
		{"2d", 2 * d}, {"1w", 7 * d}, {"1w2d3h", 9*d + 3*h}, {"0.5d", d / 2}, {"36h", 36 * h},
		{"PT10M", 10 * m}, {"P1D", d}, {"P1DT12H", d + 12*h}, {"PT1H30M5S", h + 30*m + 5*s}, {"PT0.5S", s / 2},
		{"P2W", 14 * d}, {"pt10m", 10 * m}, {"2562047h47m16.854775807s", math.MaxInt64}, {"106751d", 106751 * d},
		{"", 0}, {"10", 0}, {"m", 0}, {"0m", 0}, {"-5m", 0}, {"PT0S", 0}, {"P", 0}, {"PT", 0}, {"P1M", 0}, {"P1Y", 0},
		{"PT5", 0}, {"P1H", 0}, {"PT1M1H", 0}, {"1d1w", 0}, {"106752d", 0}, {"2562047h47m16.854775808s", 0},
		{"1e3s", 0}, {"d", 0}, {".d", 0}, {"1.d", 0}, {"10m ", 0}, {"9223372036854775808ns", 0}, {"P1D1D", 0},
		{"1d-1h", 0}, {"1d+1h", 0}, {"+1h", 0}, {"1m1h", 0}, {"1h1h", 0}, {"1h30", 0}, {".5s", 0}, {"1.s", 0}, {"1..5s", 0},
		{"1h 30m", 0}, {"1H", 0}, {"10M", 0}, {"1M", 0}, {"1y", 0}, {"P1.5W", 21 * d / 2}, {"P", 0}, {"P1W2DT3H4M5S", 9*d + 3*h + 4*m + 5*s},
		{"PT1D", 0}, {"P1DT", 0}, {"PTT1H", 0}, {"P1DT1HT1M", 0}, {"PT-1H", 0}, {"-PT1H", 0}, {"PT1MS", 0}, {"PT1m", m}, {"PT5\u017f", 0},
		{"1w2d3h4m5s6ms7us8ns", 9*d + 3*h + 4*m + 5*s + 6_007_008}, {"10\u00b5s", 10_000}, {"10\u03bcs", 10_000}, {"10\u00b5", 0},
		{"0.000000001s", 1}, {"0.0000000010s", 1}, {"0.0000000001s", 0}, {"0.1ns", 0}, {"1.0ns", 1}, {"0.1us", 100}, {"0.3w", 7 * d * 3 / 10},
		{"0.0000152587890625w", 9_228_515_625}, {"0.00000762939453125w", 0}, {"0.00000000001w", 6048}, {"0.99999999999999999h", 0},
		{"106751.99d", 106751*d + d*99/100}, {"1.00000000000000000000000000000000000d", d},
		{"9223372036.854775807s", math.MaxInt64}, {"9223372036.854775808s", 0}, {"18446744073709551617s", 0},
		{"1d-1h", 0}, {"106751d23h47m16.854775807s", math.MaxInt64}, {"106751d23h47m16.854775808s", 0},
	} {
		got, err := ParseSpan(tc.text)
		if (err != nil) != (tc.want == 0) || got != tc.want {
			t.Errorf("ParseSpan(%q) = %d, %v; want %d", tc.text, got, err, tc.want)
		}
		if err == nil {
			if again, err := ParseSpan(FormatSpan(got)); again != got {
				t.Errorf("%q is written %q and read as %d, %v", tc.text, FormatSpan(got), again, err)
			}
		}
	}
}

func TestWindowBorders(t *testing.T) {
	const lo, hi = math.MinInt64, math.MaxInt64
	for _, tc := range []struct {
		w     Window
		at, t int64
		want  bool
	}{
		{Window{Range: 10}, 0, 0, true}, {Window{Range: 10}, 0, 9, true}, {Window{Range: 10}, 0, 10, false},
		{Window{Range: 10}, 1, 0, false}, {Window{Range: 10}, -15, -15, true}, {Window{Range: 10}, -15, -6, true},
		{Window{Range: 10}, -15, -5, false}, {Window{}, lo, hi, true}, {Window{}, hi, lo, false},
		{Window{Range: hi}, lo, hi, true}, {Window{Range: 1}, hi, hi, true}, {Window{Range: hi - 1}, lo, hi, false},
		{Window{Range: 10}, hi - 9, hi, true}, {Window{Range: 10}, hi - 10, hi, false}, {Window{Range: 10}, lo, lo + 9, true},
		{Window{Range: 10, Slide: 5}, 3, 4, false}, {Window{Range: 10, Slide: 5}, 3, 5, true},
		{Window{Range: 10, Slide: 5}, 3, 14, true}, {Window{Range: 10, Slide: 5}, 3, 15, false},
	} {
		if got := tc.w.Sees(tc.at, tc.w.At(tc.t)); got != tc.want {
			t.Errorf("%v at %d sees %d: %v", tc.w, tc.t, tc.at, got)
		}
	}
	w := Window{Range: 10, Slide: 5}
	for at, want := range map[int64]int64{-15: -15, -11: -15, -1: -5, 0: 0, 4: 0, 5: 5, lo: lo, hi: hi - 2} {
		if got := w.At(at); got != want {
			t.Errorf("bucket of %d: %d, want %d", at, got, want)
		}
	}
}

// TestFormatSpan writes and reads random spans of every size, and those around
// which the writing changes.
func TestFormatSpan(t *testing.T) {
	back := func(ns int64) {
		if got, err := ParseSpan(FormatSpan(ns)); got != ns || err != nil {
			t.Fatalf("%d is written %q and read as %d, %v", ns, FormatSpan(ns), got, err)
		}
	}
	for _, unit := range []int64{1, 1e3, 1e6, 1e9, 60e9, 600e9, 3600e9, 36_000e9, 86_400e9, 604_800e9, math.MaxInt64 - 1} {
		for d := int64(-3); d <= 1; d++ {
			if ns := unit + d; ns > 0 {
				back(ns)
			}
		}
		for n := int64(2); n <= 120 && n <= math.MaxInt64/unit; n++ {
			back(n * unit)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		back(1 + rng.Int64()>>rng.IntN(63))
	}
	for ns, want := range map[int64]string{
		600e9: "10m", 3600e9: "1h", 5400e9: "1h30m", 36_000e9: "10h", 3605e9: "1h0m5s", 1: "1ns", 1500e6: "1.5s", 1_209_600e9: "336h",
	} {
		if got := FormatSpan(ns); got != want {
			t.Errorf("%d is written %q, want %q", ns, got, want)
		}
	}
}

// TestFrom holds the least time in a window against Sees.
func TestFrom(t *testing.T) {
	const lo, hi = math.MinInt64, math.MaxInt64
	for _, tc := range []struct{ size, end, want int64 }{
		{10, 0, -9}, {1, 5, 5}, {10, lo, lo}, {10, lo + 9, lo}, {10, lo + 10, lo + 1}, {hi, hi, lo}, {hi, 0, lo}, {hi - 1, hi, 2},
		{hi - 1, -2, lo + 1}, {hi - 1, -3, lo}, {hi - 1, -4, lo}, {0, 7, lo},
	} {
		w := Window{Range: tc.size}
		got := w.From(tc.end)
		if got != tc.want {
			t.Errorf("%+v with the end %d: from %d, want %d", w, tc.end, got, tc.want)
		}
		if !w.Sees(got, tc.end) || got > lo && w.Sees(got-1, tc.end) {
			t.Errorf("%+v with the end %d: %d is not the least it sees", w, tc.end, got)
		}
	}
}

func TestWindowCheck(t *testing.T) {
	for _, tc := range []struct {
		w    Window
		ok   bool
		spec string
	}{
		{Window{}, true, "all"}, {Window{Range: 1}, true, "1ns"}, {Window{Range: 60e9, Slide: 3600e9}, true, "1m slide 1h"},
		{Window{Last: 7}, true, "last 7"}, {Window{Range: -1}, false, ""}, {Window{Last: -1}, false, ""},
		{Window{Range: 1, Slide: -1}, false, ""}, {Window{Slide: 1}, false, ""}, {Window{Last: 1, Slide: 1}, false, ""},
		{Window{Last: 1, Range: 1}, false, ""},
	} {
		if err := tc.w.Check(); (err == nil) != tc.ok || err != nil && !errors.Is(err, errs.ErrValue) {
			t.Errorf("%+v: %v", tc.w, err)
		}
		if tc.ok && tc.w.Spec() != tc.spec {
			t.Errorf("%+v is written %q, want %q", tc.w, tc.w.Spec(), tc.spec)
		}
	}
}

// TestSetWindow checks that an option gives a window to the atoms that have none
// of their own, and leaves the query that was parsed alone.
func TestSetWindow(t *testing.T) {
	ten, five := Window{Range: 10}, Window{Range: 5}
	for _, tc := range []struct {
		name       string
		text, sets Window
		own        Window // of the second atom
		fails      bool
		first      Window
	}{
		{"none", Window{}, Window{}, five, false, Window{}},
		{"from the option", Window{}, ten, five, false, ten},
		{"an own window of everything", Window{}, ten, Window{}, false, ten},
		{"from the text", ten, Window{}, five, false, ten},
		{"the same twice", ten, ten, five, false, ten},
		{"a contradiction", ten, five, five, true, ten},
		{"no window", Window{}, Window{Range: -1}, five, true, Window{}},
	} {
		atoms := []Atom{{Relation: "r"}, {Relation: "s", Window: tc.own, Own: true}}
		q := Query{Atoms: atoms, Window: tc.text}
		q.ShareWindow()
		with := q
		err := with.SetWindow(tc.sets)
		if (err != nil) != tc.fails || err != nil && !errors.Is(err, errs.ErrValue) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if with.Atoms[0].Window != tc.first || with.Atoms[1].Window != tc.own || with.Window != tc.first {
			t.Errorf("%s: the query sees %v, its atoms %v and %v", tc.name, with.Window, with.Atoms[0].Window, with.Atoms[1].Window)
		}
		if q.Window != tc.text || q.Atoms[0].Window != tc.text {
			t.Errorf("%s: the query that was parsed has changed", tc.name)
		}
	}
}

// TestCanonicalWindows checks that queries that differ in a window only differ
// in their form, also where the form is SPARQL, which knows one window.
func TestCanonicalWindows(t *testing.T) {
	pattern := func(w Window, own bool) Atom {
		return Atom{Relation: "r", Args: []Arg{{Var: 0}, {Var: 1}}, Window: w, Own: own}
	}
	for _, values := range [][]Values{nil, {{Vars: []Var{0}, Rows: [][]term.Term{{term.Int(1)}}}}} {
		seen := map[string]int{}
		for i, q := range []Query{
			{Atoms: []Atom{pattern(Window{}, false)}},
			{Atoms: []Atom{pattern(Window{}, true)}},
			{Atoms: []Atom{pattern(Window{Range: 10}, true)}},
			{Atoms: []Atom{pattern(Window{Last: 10}, true)}},
			{Atoms: []Atom{pattern(Window{Range: 10}, false)}, Window: Window{Range: 10}},
			{Atoms: []Atom{pattern(Window{Range: 10, Slide: 2}, false)}, Window: Window{Range: 10, Slide: 2}},
			{Atoms: []Atom{pattern(Window{}, true)}, Window: Window{Range: 10}},
		} {
			q.Vars, q.Head, q.Columns, q.Values = []string{"x", "y"}, []Var{0}, []string{"x"}, values
			form := q.Canonical()
			if other, ok := seen[form]; ok {
				t.Errorf("queries %d and %d have the form %s", other, i, form)
			}
			seen[form] = i
		}
	}
}
