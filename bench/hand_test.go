package bench

import (
	"slices"
	"testing"
)

// TestHand compares the programs by hand with the degrees, step by step on
// small dense domains where cycles and loops occur, and on larger ones.
func TestHand(t *testing.T) {
	for _, w := range Workloads() {
		for _, size := range []struct {
			window, slides, every int
			scale                 float64
		}{{60, 200, 1, 0.0002}, {3000, 4000, 1000, 0.002}} {
			s := w.Stream(size.window, size.slides, size.scale)
			for _, vertices := range []int{0, s.Vertices()} {
				p := newHand(w, vertices)
				for _, e := range s.Live(0) {
					p.change(true, e)
				}
				for i := range s.Slides() + 1 {
					if i%size.every == 0 {
						var out sink
						if p.enumerate(&out); out.n != uint64(s.Answers(i)) {
							t.Fatalf("%s, %d vertices, slide %d: %d answers, want %d", w.Name, vertices, i, out.n, s.Answers(i))
						}
					}
					if i < s.Slides() {
						p.change(true, s.Edges[size.window+i])
						p.change(false, s.Edges[i])
					}
				}
			}
		}
	}
}

// TestListsOfHubs grows and shrinks one list over the length at which it gets
// an index.
func TestListsOfHubs(t *testing.T) {
	l := newLists(0)
	var want []uint32
	r := splitmix(1)
	for _, target := range []int{2 * hubDegree, hubDegree - 1, hubDegree + 9, hubDegree / 4, hubDegree, 0} {
		for len(want) != target {
			if len(want) < target {
				v := uint32(r.next())
				l.add(7, v)
				want = append(want, v)
				continue
			}
			i := r.below(len(want))
			l.remove(7, want[i])
			want = slices.Delete(want, i, i+1)
		}
		got := slices.Clone(l.of(7))
		slices.Sort(got)
		sorted := slices.Clone(want)
		slices.Sort(sorted)
		if !slices.Equal(got, sorted) {
			t.Fatalf("a list of %d differs", target)
		}
	}
	if len(l.sparse) > 0 || len(l.hubs) > 0 {
		t.Errorf("%d lists and %d indexes are left", len(l.sparse), len(l.hubs))
	}
}
