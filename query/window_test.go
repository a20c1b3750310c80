package query

import (
	"math"
	"testing"
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
