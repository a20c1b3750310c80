package turns

import "testing"

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		figures []float64
		want    float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{7, 1, 2}, 2}, {[]float64{4, 3, 2, 1}, 2.5}} {
		if got := Median(tc.figures); got != tc.want {
			t.Errorf("the median of %v is %v, want %v", tc.figures, got, tc.want)
		}
	}
}
