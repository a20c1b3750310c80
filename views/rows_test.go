package views

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/trie"
)

// sortedNaively is what rows.sort has to make of the rows.
func sortedNaively(in *rows) (out []uint64) {
	var list [][]uint64
	for i := range in.Len() {
		list = append(list, slices.Clone(in.row(i)))
	}
	slices.SortStableFunc(list, func(a, b []uint64) int { return slices.Compare(a[:in.k], b[:in.k]) })
	for i, row := range list {
		if i > 0 && slices.Equal(list[i-1][:in.k], row[:in.k]) {
			out[len(out)-1] += row[in.k]
			continue
		}
		out = append(out, row...)
	}
	return out
}

// TestRowsSort sorts rows of all widths: few and many, with ids close together,
// spread out and of 64 bits, in no order, in order, and ascending by their last
// columns only.
func TestRowsSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{0, 1, 2, 3, 4, 7, 20, 70} {
		for _, n := range []int{0, 1, 2, 13, 40, 100, 300, 3000} {
			for _, ids := range []uint64{1, 3, 1000, 1 << 20, math.MaxUint64} {
				for _, ascending := range []int{0, min(1, k), k / 2, k} {
					in := &rows{k: k}
					for range n {
						for range k {
							in.words = append(in.words, rng.Uint64N(ids)<<min(8, 64-min(64, ids>>56)))
						}
						in.words = append(in.words, rng.Uint64N(5)+1)
					}
					var order [][]uint64
					for i := range n {
						order = append(order, slices.Clone(in.row(i)))
					}
					slices.SortStableFunc(order, func(a, b []uint64) int {
						return slices.Compare(a[k-ascending:k], b[k-ascending:k])
					})
					in.words = slices.Concat(order...)
					want := sortedNaively(in)
					if !in.sort() || !slices.Equal(in.words, want) {
						t.Fatalf("%d columns, %d rows, ids below %d, ascending by the last %d:\n got %v\nwant %v",
							k, n, ids, ascending, in.words, want)
					}
				}
			}
		}
	}
}

// TestRowsOverflow: the sum of the weights of equal rows has to fit.
func TestRowsOverflow(t *testing.T) {
	in := &rows{k: 1}
	in.words = []uint64{3, 1, 2, 1, 3, math.MaxInt64}
	if in.sort() {
		t.Fatalf("sorted to %v", in.words)
	}
}

// TestSurvey: what is sorted is found out in one pass, and nothing is moved.
func TestSurvey(t *testing.T) {
	for _, tc := range []struct {
		k     int
		words []uint64
		from  int
	}{
		{2, nil, 0},
		{2, []uint64{5, 5, 1}, 0},
		{2, []uint64{1, 2, 1, 1, 2, 1, 1, 3, 1, 2, 0, 1}, 0},
		{2, []uint64{2, 1, 1, 1, 2, 1, 2, 2, 1}, 1},
		{2, []uint64{2, 2, 1, 1, 1, 1}, 2},
		{3, []uint64{2, 1, 7, 1, 1, 2, 1, 1}, 1},
		{3, []uint64{2, 9, 7, 1, 2, 1, 8, 1}, 2},
	} {
		in := &rows{k: tc.k, words: tc.words}
		if from, _ := in.survey(); from != tc.from {
			t.Errorf("%v ascend from column %d on, want %d", tc.words, from, tc.from)
		}
	}
	sorted := &rows{k: 2}
	for i := range uint64(5000) {
		sorted.words = append(sorted.words, i/7, i, 1)
	}
	if n := testing.AllocsPerRun(5, func() { sorted.sort() }); n > 1 {
		t.Fatalf("sorting sorted rows allocates %v times", n)
	}
}

// edgesOf draws n edges between the given number of vertices, in random order.
func edgesOf(n int, vertices uint64) []uint64 {
	rng := rand.New(rand.NewPCG(7, 8))
	words := make([]uint64, 0, 3*n)
	for range n {
		words = append(words, 1+rng.Uint64N(vertices), 1+rng.Uint64N(vertices), 1)
	}
	return words
}

// distinct returns edges without the repeated ones, in random order.
func distinct(edges []uint64) []uint64 {
	seen := make(map[[2]uint64]bool, len(edges)/3)
	n := 0
	for i := 0; i < len(edges); i += 3 {
		if key := [2]uint64(edges[i:]); !seen[key] {
			seen[key] = true
			n += copy(edges[n:], edges[i:i+3])
		}
	}
	return edges[:n]
}

func (s *Store) loadEdges(relation int, edges []uint64) {
	s.Load(relation, len(edges)/3, func(yield func([]uint64, int64) bool) {
		for i := 0; i < len(edges) && yield(edges[i:i+2], int64(edges[i+2])); i += 3 {
		}
	})
}

// path3 is the query of the first paper over one relation of edges.
func (l *lab) path3() *plan.Plan {
	l.t.Helper()
	p, err := plan.Compile(l.parse("Q(x,y,z,w) :- e(x,y), e(y,z), e(z,w)."))
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// TestLoad: a relation that is loaded, and a query that is filled from it,
// answer and go on as if all facts had come one by one after the query.
func TestLoad(t *testing.T) {
	for _, n := range []int{0, 1, 40, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			edges := distinct(edgesOf(n, uint64(n/4+2)))
			for i := 2; i < len(edges); i += 3 {
				edges[i] = uint64(i%3 + 1)
			}
			written, loaded := newLab(t), newLab(t)
			rel := written.relation("e", 2)
			a := written.register(written.path3())
			for i := 0; i < len(edges); i += 3 {
				written.s.Change(rel, edges[i:i+2], 0, int64(edges[i+2]))
			}
			if err := written.s.Apply(); err != nil {
				t.Fatal(err)
			}
			written.seal()
			loaded.s.loadEdges(loaded.relation("e", 2), edges)
			loaded.seal()
			b := loaded.register(loaded.path3())
			same := func() {
				t.Helper()
				if err := loaded.bind(b).Compare(t.Context(), written.bind(a)); err != nil {
					t.Fatal(err)
				}
				for _, l := range []*lab{written, loaded} {
					roots, space := l.s.Copy(nil)
					if err := CompareIndexes(t.Context(), space, roots, l.s.Indexes(rel), func([]uint64, int64) {}); err != nil {
						t.Fatal(err)
					}
				}
			}
			same()
			for i := 0; i < len(edges); i += 9 {
				for _, l := range []*lab{written, loaded} {
					l.s.Change(rel, edges[i:i+2], int64(edges[i+2]), int64(i%2))
				}
			}
			for _, l := range []*lab{written, loaded} {
				if err := l.s.Apply(); err != nil {
					t.Fatal(err)
				}
				l.seal()
			}
			same()
		})
	}
}

// TestRowsMemory: relations and queries that are loaded in a row hand the memory
// of their rows on, and nothing of it is kept behind the last one, or behind a
// query that is registered alone.
func TestRowsMemory(t *testing.T) {
	l := newLab(t)
	edges := edgesOf(5000, 1000)
	l.s.loadEdges(l.relation("f", 2), edges)
	first := l.s.spare
	if cap(first.words) < len(edges) || cap(first.other) < len(edges) {
		t.Fatalf("%d and %d words are kept, %d were used", cap(first.words), cap(first.other), len(edges))
	}
	l.s.loadEdges(l.relation("e", 2), distinct(edges))
	l.register(l.path3())
	kept := map[*uint64]bool{&l.s.spare.words[:1][0]: true, &l.s.spare.other[:1][0]: true}
	if !kept[&first.words[:1][0]] || !kept[&first.other[:1][0]] {
		t.Error("the memory of the rows was not used again")
	}
	l.s.Loaded()
	alone := func() {
		t.Helper()
		if s := l.s.spare; cap(s.words)+cap(s.other) > 0 {
			t.Errorf("%d and %d words are kept", cap(s.words), cap(s.other))
		}
	}
	alone()
	l.register(l.path3())
	alone()
}

// BenchmarkSort sorts edges: in no order, by their second column, and sorted.
func BenchmarkSort(b *testing.B) {
	for _, n := range []int{1_000_000, 5_000_000} {
		edges := edgesOf(n, uint64(n/5))
		turned := (&rows{k: 2, words: slices.Clone(edges)})
		turned.sort()
		sorted := slices.Clone(turned.words)
		for i := 0; i < len(turned.words); i += 3 {
			turned.words[i], turned.words[i+1] = turned.words[i+1], turned.words[i]
		}
		for _, in := range []struct {
			name  string
			words []uint64
		}{{"random", edges}, {"turned", turned.words}, {"sorted", sorted}} {
			b.Run(fmt.Sprint(n, "/", in.name), func(b *testing.B) {
				b.ReportAllocs()
				words := make([]uint64, len(in.words))
				for range b.N {
					b.StopTimer()
					r := &rows{k: 2, words: words[:copy(words, in.words)]}
					b.StartTimer()
					if !r.sort() {
						b.Fatal("overflow")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in.words)/3), "ns/row")
			})
		}
	}
}

// tries lists the rows of all indexes and node views.
func (l *lab) tries(q *Query) (all []*rows) {
	read := func(space trie.Space, root uint64, k int) {
		out := &rows{k: k}
		var c trie.Cursor
		for c.Seek(space, root, k, nil); c.Next(); {
			for i := range k {
				out.words = append(out.words, c.Col(i))
			}
			out.words = append(out.words, uint64(c.Weight()))
		}
		all = append(all, out)
	}
	roots, space := l.s.Copy(nil)
	for _, x := range l.s.Indexes(0) {
		read(space, roots[x.Slot], len(x.Cols))
	}
	for _, n := range q.nodes {
		if n.leaf == nil {
			read(space, roots[n.slot], n.columns)
		}
	}
	return all
}

// BenchmarkRebuild compares what it takes to rebuild the indexes and views of a
// path of three edges from a million base facts with the least that loading
// them ready-made would take: building a trie from rows that are in memory and
// in order.
func BenchmarkRebuild(b *testing.B) {
	edges := distinct(edgesOf(1_000_000, 200_000))
	var q *Query
	var l *lab
	b.Run("facts", func(b *testing.B) {
		for range b.N {
			l = newLab(&testing.T{})
			l.s.loadEdges(l.relation("e", 2), edges)
			q = l.register(l.path3())
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(edges)/3), "ns/fact")
	})
	all := l.tries(q)
	words := 0
	for _, r := range all {
		words += len(r.words)
	}
	b.Run("ready", func(b *testing.B) {
		for range b.N {
			arena := trie.NewArena(1)
			for _, r := range all {
				arena.Build(r.words, r.k)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(edges)/3), "ns/fact")
		b.ReportMetric(float64(len(all)), "tries")
		b.ReportMetric(float64(words)/float64(len(edges)/3), "words/fact")
	})
}
