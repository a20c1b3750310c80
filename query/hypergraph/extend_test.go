package hypergraph

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestExtend(t *testing.T) {
	for _, tc := range []struct{ atoms, out, want string }{
		{"ab bc", "ac", "b"},
		{"ab bc", "ab", ""},
		{"ab bc", "", ""},
		{"ab bc cd de", "ae", "bcd"},
		{"ab bc cd de", "ad", "bc"},
		{"ab bc cd de", "abd", "c"},
		// All three ends hang on x, which is enough, though it has side ways.
		{"ax bx cx xy yz", "abc", "x"},
		// Two paths, far from each other.
		{"ax xb cy yd", "abcd", "xy"},
		// What hangs at a path needs not be shown.
		{"ax xb xy yz z", "ab", "x"},
		// The two hidden ones stand together in one atom with an end.
		{"axy xyb", "ab", "xy"},
		{"axy yb", "ab", "y"},
	} {
		if got := Extend(parse(tc.atoms), letters(tc.out)); !slices.Equal(got, letters(tc.want)) {
			t.Errorf("%s -> %q: %v, want %v", tc.atoms, tc.out, got, letters(tc.want))
		}
	}
}

// TestExtendLeast looks at every set of hidden variables: those that make the
// query free-connex are the ones that hold the result, and themselves or more.
func TestExtendLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	needed := 0
	for range 4000 {
		atoms := make([][]int, 1+rng.IntN(6))
		for i := range atoms {
			for range rng.IntN(4) {
				atoms[i] = append(atoms[i], rng.IntN(7))
			}
		}
		var out []int
		for v := range 7 {
			if rng.IntN(3) == 0 {
				out = append(out, v)
			}
		}
		if !Analyze(atoms, out).Class.Acyclic {
			continue
		}
		least := Extend(atoms, out)
		if len(least) > 0 {
			needed++
		}
		if c := Analyze(atoms, append(slices.Clone(out), least...)).Class; !c.FreeConnex {
			t.Fatalf("%v -> %v and %v is no free-connex query", atoms, out, least)
		}
		for set := range uint(1 << 7) {
			var more []int
			for v := range 7 {
				if set&(1<<v) != 0 && !slices.Contains(out, v) {
					more = append(more, v)
				}
			}
			if len(more) != bits.OnesCount(set) || !Analyze(atoms, append(slices.Clone(out), more...)).Class.FreeConnex {
				continue
			}
			for _, v := range least {
				if !slices.Contains(more, v) {
					t.Fatalf("%v -> %v: %v will do without %d of %v", atoms, out, more, v, least)
				}
			}
		}
	}
	if needed < 100 {
		t.Errorf("only %d queries needed more output", needed)
	}
	t.Logf("%d queries needed more output", needed)
}
