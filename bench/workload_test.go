package bench

import "testing"

// TestStreams pins the streams by the number of answers at both ends of the
// full size. Those of path3, star and snb were also found by other code.
func TestStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("draws 400,000 edges a workload")
	}
	for _, tc := range []struct {
		name        string
		first, last int64
	}{
		{"path3", 550251, 546724},
		{"star", 324378, 318682},
		{"snb", 558254, 510414},
		{"hop4", 1595671, 1601216},
		{"hop4zipf", 5712762, 4624278},
	} {
		w, err := Find(tc.name)
		if err != nil {
			t.Fatal(err)
		}
		s := w.Stream(200000, 200000, 1)
		if first, last := s.Answers(0), s.Answers(s.Slides()); first != tc.first || last != tc.last {
			t.Errorf("%s: %d answers at first and %d at last, want %d and %d", tc.name, first, last, tc.first, tc.last)
		}
	}
}
