package fuzz

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// arc is an edge of a real graph.
type arc struct{ label, from, to string }

// arcs reads the edges of a shared file in its order, at most most of them.
func arcs(t *testing.T, name string, most int) (out []arc) {
	t.Helper()
	z, err := gzip.NewReader(sharedFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(z)
	for in.Scan() && len(out) < most {
		f := strings.Split(in.Text(), "\t")
		if len(f) != 4 {
			t.Fatalf("%s, line %d: %d columns", name, len(out)+1, len(f))
		}
		out = append(out, arc{f[1], f[2], f[3]})
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// paths counts the paths of three labelled steps by degrees: of each middle
// edge, the ways to come to its start times its copies times the ways to leave
// its end. Its only state are the copies of each edge.
type paths struct {
	steps  [3]string
	copies map[arc]int64
}

func (p *paths) count() (distinct, total *big.Int) {
	type degree struct{ edges, copies int64 }
	in, out := map[string]degree{}, map[string]degree{}
	for a, n := range p.copies {
		if a.label == p.steps[0] {
			d := in[a.to]
			in[a.to] = degree{d.edges + 1, d.copies + n}
		}
		if a.label == p.steps[2] {
			d := out[a.from]
			out[a.from] = degree{d.edges + 1, d.copies + n}
		}
	}
	distinct, total = new(big.Int), new(big.Int)
	term := new(big.Int)
	product := func(sum *big.Int, factors ...int64) {
		term.SetInt64(1)
		for _, f := range factors {
			term.Mul(term, big.NewInt(f))
		}
		sum.Add(sum, term)
	}
	for a, n := range p.copies {
		if a.label == p.steps[1] {
			b, c := in[a.from], out[a.to]
			product(distinct, b.edges, c.edges)
			product(total, b.copies, n, c.copies)
		}
	}
	return distinct, total
}

// text is the query as a rule.
func (p *paths) text() string {
	return fmt.Sprintf("q(a, b, c, d) :- %s(a, b), %s(b, c), %s(c, d).", p.steps[0], p.steps[1], p.steps[2])
}

// graph is a store that real edges go in and out of, with the counts that it
// must show.
type graph struct {
	*world
	copies  map[arc]int64
	queries []*paths
	checks  int
	last    string // the counts at the last check, for the log
}

func newGraph(t *testing.T, steps ...[3]string) *graph {
	g := &graph{world: newWorld(t, "", nil), copies: map[arc]int64{}}
	for i, s := range steps {
		p := &paths{s, g.copies}
		g.queries = append(g.queries, p)
		g.register(fmt.Sprint("q", i), p.text())
	}
	return g
}

// apply appends arcs in batches of mixed sizes and looks at some of the states
// in between.
func (g *graph) apply(arcs []arc, op triegs.Op, rng *rand.Rand, looks int) {
	g.Helper()
	sizes := []int{1, 2, 50, 1_000, 20_000}
	if looks++; len(arcs) < 100_000 {
		sizes[4] = len(arcs) / 8
	}
	since, every := 0, len(arcs)/looks+1
	for len(arcs) > 0 {
		n := min(1+rng.IntN(sizes[rng.IntN(len(sizes))]), len(arcs))
		b := triegs.Batch{Time: time.Unix(1, 0)}
		for _, a := range arcs[:n] {
			e := triegs.Edge(a.label, triegs.String(a.from), triegs.String(a.to))
			e.Op = op
			b.Events = append(b.Events, e)
			if op == triegs.Insert {
				g.copies[a]++
			} else if g.copies[a]--; g.copies[a] == 0 {
				delete(g.copies, a)
			}
		}
		g.append(b)
		arcs = arcs[n:]
		if since += n; since >= every || len(arcs) == 0 {
			since = 0
			s := g.snapshot()
			g.same(s, g.counts())
			s.Close()
		}
	}
}

// counts computes what Count must say, for each query.
func (g *graph) counts() (out [][2]*big.Int) {
	for _, p := range g.queries {
		distinct, total := p.count()
		out = append(out, [2]*big.Int{distinct, total})
	}
	return out
}

// same compares Count in a snapshot with what was computed.
func (g *graph) same(s *triegs.Snapshot, want [][2]*big.Int) {
	g.Helper()
	g.last = ""
	for i := range g.queries {
		distinct, total, err := s.Count(g.ctx, fmt.Sprint("q", i))
		if err != nil {
			g.Fatal(err)
		}
		if big.NewInt(distinct).Cmp(want[i][0]) != 0 || big.NewInt(total).Cmp(want[i][1]) != 0 {
			g.Fatalf("%s at epoch %d: count %d, %d, want %v, %v", g.queries[i].text(), s.Epoch(), distinct, total, want[i][0], want[i][1])
		}
		g.last += fmt.Sprintf(" %d/%d", distinct, total)
	}
	g.checks++
}

// lookups asks for paths along edges that are there, and for their weights.
func (g *graph) lookups(rng *rand.Rand) (found int) {
	g.Helper()
	s := g.snapshot()
	defer s.Close()
	var all []arc
	next := map[[2]string][]arc{} // by label and start
	for a := range g.copies {
		all = append(all, a)
		next[[2]string{a.label, a.from}] = append(next[[2]string{a.label, a.from}], a)
	}
	for range 20_000 {
		i := rng.IntN(len(g.queries))
		p := g.queries[i]
		a := all[rng.IntN(len(all))]
		if a.label != p.steps[0] {
			continue
		}
		bs := next[[2]string{p.steps[1], a.to}]
		if len(bs) == 0 {
			continue
		}
		b := bs[rng.IntN(len(bs))]
		cs := next[[2]string{p.steps[2], b.to}]
		if len(cs) == 0 {
			continue
		}
		c := cs[rng.IntN(len(cs))]
		row, err := s.Lookup(fmt.Sprint("q", i), triegs.String(a.from), triegs.String(a.to), triegs.String(b.to), triegs.String(c.to))
		if err != nil {
			g.Fatalf("the path %v %v %v: %v", a, b, c, err)
		}
		if want := g.copies[a] * g.copies[b] * g.copies[c]; row.Multiplicity() != want {
			g.Fatalf("the path %v %v %v has multiplicity %d, want %d", a, b, c, row.Multiplicity(), want)
		}
		found++
	}
	return found
}

// run loads a graph, deletes a random half of it, and reads in between and
// afterwards.
func (g *graph) run(all []arc) {
	g.Helper()
	start := time.Now()
	rng := rand.New(rand.NewPCG(11, 13))
	g.apply(all, triegs.Insert, rng, 4)
	loaded, then := g.last, g.snapshot()
	wanted := g.counts()
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	g.apply(all[:len(all)/2], triegs.Delete, rng, 2)
	halved := g.last
	found := g.lookups(rng)
	g.same(then, wanted) // the whole graph, still pinned
	then.Close()
	g.Logf("%d edges in %d epochs, %s: distinct/total%s, of a half%s; %d states counted, %d paths looked up",
		len(all), g.epoch(), time.Since(start).Round(time.Millisecond), loaded, halved, g.checks, found)
	if found == 0 || g.checks < 7 {
		g.Errorf("%d paths looked up, %d states counted: this shows nothing", found, g.checks)
	}
}

// Paths of three steps over the repeated edges of real graphs are as many as
// their degrees say, while they grow, and after a half is gone.
func TestRealPaths(t *testing.T) {
	t.Run("collegemsg", func(t *testing.T) {
		all := arcs(t, "data/collegemsg.tsv.gz", scaled(1<<30, 20_000))
		newGraph(t, [3]string{"sent", "sent", "sent"}).run(all)
	})
	t.Run("sx-mathoverflow", func(t *testing.T) {
		all := arcs(t, "data/sx-mathoverflow.tsv.gz", scaled(1<<30, 50_000))
		newGraph(t, [3]string{"c2q", "a2q", "c2a"}, [3]string{"a2q", "a2q", "a2q"}).run(all)
	})
	t.Run("sx-mathoverflow as one label", func(t *testing.T) {
		all := arcs(t, "data/sx-mathoverflow.tsv.gz", scaled(150_000, 20_000))
		for i := range all {
			all[i].label = "any"
		}
		newGraph(t, [3]string{"any", "any", "any"}).run(all)
	})
}
