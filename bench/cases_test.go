package bench

import (
	"slices"
	"testing"

	"github.com/triegs/triegs"
)

// TestCases measures the cases of every subject at a small size; each compares
// what it finds with a reference.
func TestCases(t *testing.T) {
	for _, subject := range Subjects() {
		cases, err := Cases(subject, .004)
		if err != nil || len(cases) == 0 {
			t.Fatalf("%s: %d cases, %v", subject, len(cases), err)
		}
		dirs := make(map[string]string)
		for _, c := range cases {
			if dirs[c.Name] == "" {
				dirs[c.Name] = t.TempDir()
			}
			figures, err := c.Measure(dirs[c.Name])
			if err != nil {
				t.Error(err)
			}
			for _, f := range figures {
				if f.Value < 0 {
					t.Errorf("%s, %s, %s: %s is %v", c.Subject, c.Name, c.Contender, f.Name, f.Value)
				}
			}
			if i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == "syncs an epoch" }); i >= 0 && figures[i].Value > 1 {
				t.Errorf("%s: %v syncs an epoch", c.Name, figures[i].Value)
			}
		}
	}
	if _, err := Cases("weather", 1); err == nil {
		t.Error("there are cases of the weather")
	}
}

// TestSteps counts the moves of cursors between two answers, at sizes that
// differ by a factor of a thousand: they are bounded by the number of nodes of
// the join tree, whatever the data.
func TestSteps(t *testing.T) {
	sizes := []int{1000, 10_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, w := range Workloads() {
		x, err := triegs.Explain(w.Query)
		if err != nil {
			t.Fatal(err)
		}
		// From an answer to the next the cursors of all nodes but the root may
		// end, the one before moves, and those behind it move to their first.
		limit := 2*x.Score.Nodes - 1
		for _, edges := range sizes {
			p, err := startEngine(w.Stream(edges, 0, float64(edges)/200_000))
			if err == nil {
				err = p.load()
			}
			if err != nil {
				t.Fatal(err)
			}
			b, _, end := p.(*byEngine).pinned()
			most, before, n := 0, 0, 0
			for a := b.Answers(); a.Next() && n < 300_000; n++ {
				most = max(most, a.Steps-before)
				before = a.Steps
			}
			end()
			if n == 0 || most > limit {
				t.Errorf("%s, %d edges: up to %d steps to an answer of %d, want at most %d", w.Name, edges, most, n, limit)
			}
			t.Logf("%s, %d edges: at most %d steps to an answer of %d", w.Name, edges, most, n)
		}
	}
}

// BenchmarkAnswers enumerates all answers of a workload, for profiles; an
// operation is one answer.
func BenchmarkAnswers(b *testing.B) {
	for _, w := range Workloads() {
		for _, reader := range []string{readSlices, readViews, readRows, readTerms} {
			b.Run(w.Name+"/"+reader, func(b *testing.B) {
				e, err := startEnumeration(w, 200_000, reader)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for done := int64(0); done < int64(b.N); {
					n, err := e.read()
					if err != nil || n == 0 {
						b.Fatalf("%d answers, %v", n, err)
					}
					done += n
				}
				b.StopTimer()
				if err := e.end(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
