package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/query"
)

// TestChurn holds how often what is below comes and goes.
func TestChurn(t *testing.T) {
	span := func(n int64) query.Window { return query.Window{Range: n} }
	last := func(n int64) query.Window { return query.Window{Last: n} }
	for _, tc := range []struct {
		above, below query.Window
		sameRelation bool
		want         int64
	}{
		{query.Window{}, query.Window{}, false, 0},
		{span(10), query.Window{}, false, 0},
		// Longer than the longest of 50, whatever it is above.
		{query.Window{}, span(10), false, 20},
		{query.Window{}, span(50), false, 4},
		{query.Window{}, span(1), false, 200},
		{query.Window{}, last(10), true, 12},
		{query.Window{}, last(30), true, 4},
		{query.Window{}, query.Window{Range: 10, Slide: 25}, false, 8},
		{span(10), span(10), false, 1},
		{span(10), span(11), false, 1},
		{span(11), span(10), false, 2},
		{span(20), span(10), true, 2},
		{span(21), span(10), true, 3},
		{span(math.MaxInt64), span(1), false, maxChurn},
		{span(math.MaxInt64), span(math.MaxInt64), false, 1},
		{span(1), span(math.MaxInt64), false, 1},
		{query.Window{Range: 10, Slide: 30}, span(10), false, 3},
		{span(30), query.Window{Range: 10, Slide: 30}, false, 1},
		{query.Window{Range: 10, Slide: 5}, span(10), false, 1},
		{last(10), last(10), true, 1},
		{last(30), last(10), true, 3},
		{last(10), last(30), true, 1},
		{last(10), last(10), false, 2},
		{last(50), last(10), false, 5},
		{last(10), last(50), false, 2},
		{last(10), span(10), true, 2},
		{span(10), last(10), true, 2},
		{last(10), query.Window{}, true, 0},
	} {
		above, below := Alias{Relation: "r", Window: tc.above}, Alias{Relation: "s", Window: tc.below}
		if tc.sameRelation {
			below.Relation = "r"
		}
		life := longest([]Alias{{Window: span(50)}, {}, {Window: last(30)}, {Window: query.Window{Range: 5, Slide: 45}}})
		if got := life.churn(&above, &below); got != tc.want {
			t.Errorf("%+v above %+v, of the same relation %v: %d, want %d", tc.above, tc.below, tc.sameRelation, got, tc.want)
		}
	}
}

// addWindows gives most atoms of a query a window, of few different kinds.
func addWindows(rng *rand.Rand, q *query.Query) *query.Query {
	kinds := []query.Window{{}, {}, {Range: 10}, {Range: 10}, {Range: 25, Slide: 5}, {Range: 1000}, {Last: 5}, {Last: 50}}
	if rng.IntN(3) == 0 {
		kinds = kinds[2:3] // one window for all
	}
	for i := range q.Atoms {
		q.Atoms[i].Window = kinds[rng.IntN(len(kinds))]
	}
	return q
}

// randomPath makes a full query in which each atom shares one variable with one
// of the last two before it: a path, or one with short side ways, in any order.
func randomPath(rng *rand.Rand, atoms int) *query.Query {
	q := &query.Query{Name: "q", HeadPos: query.Pos{Line: 1, Col: 1}, Vars: []string{"x0"}}
	for i := range atoms {
		v := query.Var(max(0, len(q.Vars)-1-rng.IntN(2)))
		a := query.Atom{Relation: fmt.Sprintf("R%d", i), Args: []query.Arg{{Var: v}}}
		if i+1 < atoms || rng.IntN(2) == 0 {
			a.Args = append(a.Args, query.Arg{Var: query.Var(len(q.Vars))})
			q.Vars = append(q.Vars, fmt.Sprintf("x%d", len(q.Vars)))
		}
		q.Atoms = append(q.Atoms, a)
	}
	for v := range q.Vars {
		q.Head = append(q.Head, query.Var(v))
	}
	rng.Shuffle(len(q.Atoms), func(i, j int) { q.Atoms[i], q.Atoms[j] = q.Atoms[j], q.Atoms[i] })
	return q
}

// TestWindowsAgreeBruteForce compares the chosen score with that of all trees,
// also where no tree is as low as windows want it.
func TestWindowsAgreeBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	moved, bound, unbound := 0, 0, 0
	for i := range rounds(4000) {
		q := randomQuery(rng, 5)
		if i%8 == 0 {
			q = randomPath(rng, 4+rng.IntN(3))
		}
		addWindows(rng, q)
		p, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(p); err != nil {
			t.Fatalf("%s: %v", p.Tree(), err)
		}
		want, _, _ := bruteBest(sortedSchemas(p.Aliases), p.Aliases, q.Head)
		got := p.Score
		got.Orders = 0
		if got != want {
			t.Fatalf("%v: chose %s with %+v, best is %+v", p.Explain(), p.Tree(), got, want)
		}
		again, err := CompileWithTree(q, p.Tree())
		if err != nil || again.Score != p.Score {
			t.Fatalf("%s read back: %+v, %v", p.Tree(), again.Score, err)
		}
		for i := range q.Atoms {
			q.Atoms[i].Window = query.Window{}
		}
		plain, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		if plain.Tree() != p.Tree() {
			moved++
		}
		aliases := slices.Clone(plain.Aliases)
		for i := range aliases {
			aliases[i].Window = p.Aliases[i].Window
		}
		was := (&Plan{Query: q, Aliases: aliases}).top().score(plain.Nodes)
		switch {
		case p.Score.Bounded && !was.Bounded:
			bound++
		case p.Score.WindowHeight > 0 && !p.Score.Bounded:
			unbound++
		}
	}
	if n := rounds(4000); moved < n/100 || bound < n/100 || unbound < n/100 {
		t.Errorf("too few cases show what windows do")
	}
	t.Logf("windows change %d trees and bound the cost in %d of them; in %d no tree does", moved, bound, unbound)
}

// TestWindowsLargeSearchAgrees runs the search of many aliases on few.
func TestWindowsLargeSearchAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range rounds(4000) {
		p, err := Compile(addWindows(rng, randomQuery(rng, exhaustiveMax)))
		if err != nil {
			t.Fatal(err)
		}
		levels := windowLevels
		if p.windowed() && !p.Score.Bounded {
			if c := bestTreesKeeping(p.top(), levels, 1); len(c) != 0 {
				t.Fatalf("%s is not bounded, and yet there is %+v", p.Tree(), c[0])
			}
			levels = free
		}
		c := bestTreesKeeping(p.top(), levels, 1)
		if len(c) != 1 || c[0].cost != (cost{rest: p.Score.Churn<<depthBits + int64(p.Score.SumDepth)}) || c[0].height != p.Score.Height {
			t.Fatalf("%s %+v, one by one %+v", p.Tree(), p.Score, c)
		}
	}
}

// TestWindowsFingerprint checks that plans that see other contributions are told
// apart.
func TestWindowsFingerprint(t *testing.T) {
	seen := map[uint64]string{}
	for _, text := range []string{
		"q(a,b,c) :- r(a,b), r(b,c)", "q(a,b,c) :- r(a,b)[10m], r(b,c)", "q(a,b,c) :- r(a,b), r(b,c)[10m]",
		"q(a,b,c) :- r(a,b)[10m], r(b,c)[10m]", "q(a,b,c) :- r(a,b)[10m slide 1m], r(b,c)[10m]",
		"q(a,b,c) :- r(a,b)[last 10], r(b,c)[last 10]", "q(a,b,c) :- r(a,b)[10ns], r(b,c)[10ns]",
	} {
		p, err := Compile(read(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[p.Fingerprint()]; ok {
			t.Errorf("%s and %s have one fingerprint", other, text)
		}
		seen[p.Fingerprint()] = text
	}
}

// TestWindowsManyAtoms plans the greatest number of atoms in bounded time.
func TestWindowsManyAtoms(t *testing.T) {
	slower := time.Duration(1)
	if invariant.Enabled {
		slower = 20
	}
	for _, shape := range []string{"path", "star", "equal", "binary", "apart", "comb"} {
		q := addWindows(rand.New(rand.NewPCG(20, 20)), read(t, manyAtoms(shape, MaxAtoms)))
		start := time.Now()
		p, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		x := p.Explain()
		d := time.Since(start)
		t.Logf("%s: %v, %+v, update %s", shape, d, p.Score, x.Update)
		if err := p.check(); err != nil {
			t.Errorf("%s: %v", shape, err)
		}
		if d > slower*20*time.Second {
			t.Errorf("%s took %v", shape, d)
		}
	}
}
