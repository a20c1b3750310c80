package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/query"
)

// project gives a query a head of some of its variables.
func project(rng *rand.Rand, q *query.Query) *query.Query {
	keep := rng.IntN(4)
	q.Head = slices.DeleteFunc(q.Head, func(query.Var) bool { return rng.IntN(4) >= keep })
	return q
}

// TestClusters holds the trees of clusters, with the edges that are not strong.
func TestClusters(t *testing.T) {
	for _, tc := range []struct {
		query, tree string
		clusters    []string
		loose       []int
	}{
		// The smallest: one tuple of the first may have many of the second.
		{"q(a) :- r(a,b), s(b)", "{r, s}(a)", []string{"r → s"}, []int{2}},
		{"q(b) :- r(a,b), s(b,c)", "[b] → r, s", nil, nil},
		// The sum over what both hold: no tuple changes more than one other.
		{"q(a) :- r(a,b), s(a,b)", "{r, s}(a)", []string{"[a, b] → r, s"}, []int{0}},
		{"q() :- r(b), s(b)", "{r, s}()", []string{"[b] → r, s"}, []int{0}},
		{"q() :- r(a), s(a,b), t(b)", "{r, s, t}()", []string{"[a] → r, s → t"}, []int{1}},
		// The projection of the running example that wants counts.
		{"q(z) :- hasCreator(v,x), hasReply(v,z), hasCreator(z,y), likedBy(z,w)",
			"[z] → hasCreator#2, likedBy, {hasCreator#1, hasReply}(z)", []string{"hasReply → hasCreator#1"}, []int{2}},
		// Wang and Hu, F.3: the root has two output children below the cluster.
		{"q(x3,x4) :- R1(x1,x2), R2(x2,x3), R3(x3,x4), R4(x4,x5)", "[x3] → R3 → R4, {R1, R2}(x3)", []string{"R2 → R1"}, []int{2}},
		// Generalized nodes in a chain, below the output and above leaves.
		{"q(y) :- R(y,h,a), T(y,h,a), S(y,h), U(y,h,b), V(y,h,b), W(y,z)", "[y] → W, {R, T, S, U, V}(y)",
			[]string{"[y, h] → [y, h, a] → {R, T}, S, [y, h, b] → {U, V}"}, []int{0}},
		// Two clusters that share output, one without any.
		{"q(a,b) :- r(a,b,x), s(a,b,x), t(a,y), u(a,y), v(z), w(z)", "[] → [a] → {{r, s}(a, b), {t, u}(a)}, {v, w}()",
			[]string{"[a, b, x] → r, s", "[a, y] → t, u", "[z] → v, w"}, []int{0, 0, 0}},
		// Not free-connex: b and c are shown, d is not.
		{"q(a,e) :- r(a,b), s(b,c), t(c,d), u(d), v(c,e)", "[c] → s → r, v, {t, u}(c)", []string{"t → u"}, []int{2}},
	} {
		p, err := Compile(read(t, tc.query))
		if err != nil {
			t.Errorf("%s: %v", tc.query, err)
			continue
		}
		var trees []string
		var loose []int
		for i := range p.Clusters {
			trees = append(trees, p.ClusterTree(i))
			loose = append(loose, p.Clusters[i].NonStrong)
		}
		if p.Tree() != tc.tree || !slices.Equal(trees, tc.clusters) || !slices.Equal(loose, tc.loose) {
			t.Errorf("%s:\n got %s, %q, loose %v\nwant %s, %q, loose %v", tc.query, p.Tree(), trees, loose, tc.tree, tc.clusters, tc.loose)
		}
	}
}

// TestExtra names the variables that are treated as output.
func TestExtra(t *testing.T) {
	for _, tc := range []struct {
		query string
		want  []string
	}{
		{"q(a,c) :- r(a,b), s(b,c)", []string{"b"}},
		{"q(a,b) :- r(a,b), s(b,c)", nil},
		{"q(a,d,f) :- r(a,b), s(b,c), t(c,d), u(d,e), v(e,f)", []string{"b", "c", "e"}},
		{"q(a,b) :- r(a,x), s(x,b), t(x,y), u(y,z), v(z)", []string{"x"}},
	} {
		p, err := Compile(read(t, tc.query))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range p.Extra {
			got = append(got, p.varName(v))
		}
		if !slices.Equal(got, tc.want) || p.Class.FreeConnex != (tc.want == nil) {
			t.Errorf("%s: extra %q, class %s, want %q", tc.query, got, p.Class, tc.want)
		}
	}
}

// strongEverywhere reports whether every parent within a cluster is contained in
// its children, and whether leaves have only their key.
func strongEverywhere(p *Plan) (strong, bare bool) {
	strong, bare = true, true
	for _, c := range p.Clusters {
		for _, n := range c.Nodes {
			if len(n.Children) == 0 && len(n.Vars) > len(n.Key) {
				bare = false
			}
			for _, d := range n.Children {
				strong = strong && len(meet(n.Vars, c.Nodes[d].Vars)) == len(n.Vars)
			}
		}
		if strong != (c.NonStrong == 0) {
			return false, bare
		}
	}
	return strong, bare
}

// TestRandomClusters checks every plan of queries with any head against the
// definition, and against all trees: the least number of edges that are not strong,
// then the least score.
func TestRandomClusters(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	classes := map[string]int{}
	for i := range rounds(8000) {
		q := project(rng, randomQuery(rng, 5+i%4))
		if i%3 == 0 {
			addWindows(rng, q)
		}
		p, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(p); err != nil {
			t.Fatalf("%v: %v", p.Explain(), err)
		}
		if err := p.check(); err != nil {
			t.Fatalf("%v: %v", p.Explain(), err)
		}
		again, err := Compile(q)
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%v, then %v: %v", p.Explain(), again.Explain(), err)
		}
		if len(p.Clusters) > 0 {
			classes[p.Class.Name()]++
		}
		strong, bare := strongEverywhere(p)
		if p.Extra == nil && strong != p.Class.StrongConnex || !bare {
			t.Fatalf("strong %v, leaves without more than their key %v: %v", strong, bare, p.Explain())
		}
		if g := p.top(); len(g.rels) <= 5 {
			want, _, _ := bruteBest(sortedSchemas(g.rels), g.rels, slices.Concat(q.Head, p.Extra))
			got := p.Score
			got.Orders = 0
			if got != want {
				t.Fatalf("chose %s with %+v, best is %+v", p.Tree(), got, want)
			}
		}
		for i := range p.Clusters {
			c := &p.Clusters[i]
			if len(c.Aliases) > 5 {
				continue
			}
			g := p.inside(c)
			schemas := sortedSchemas(g.rels)
			loose, want := bruteCluster(schemas, g.rels, c.Vars)
			got := c.Score
			got.Orders = 0
			if c.NonStrong != loose || got != want {
				t.Fatalf("%v: chose %s with %d loose and %+v, best is %d and %+v", schemas, p.ClusterTree(i), c.NonStrong, got, loose, want)
			}
		}
	}
	for _, name := range []string{"q-hierarchical", "free-connex", "acyclic"} {
		if classes[name] < rounds(8000)/200 {
			t.Errorf("only %d queries with clusters are %s", classes[name], name)
		}
	}
	t.Logf("with clusters: %v", classes)
}

// strongQuery makes a strong-connex query: a full acyclic one in which some atoms
// stand for several with the same output variables, each with the hidden ones on a
// way down a tree.
func strongQuery(rng *rand.Rand) *query.Query {
	q := randomQuery(rng, 4)
	var atoms []query.Atom
	for i, a := range q.Atoms {
		if rng.IntN(2) == 0 {
			atoms = append(atoms, a)
			continue
		}
		var up []int // by hidden variable: the one above
		first := len(q.Vars)
		for j := range 1 + rng.IntN(5) {
			up = append(up, -1)
			if j > 0 {
				up[j] = rng.IntN(j)
			}
			q.Vars = append(q.Vars, fmt.Sprintf("h%d_%d", i, j))
		}
		for j := range 2 + rng.IntN(4) {
			b := query.Atom{Relation: fmt.Sprintf("S%d_%d", i, j), Args: slices.Clone(a.Args)}
			for h := rng.IntN(len(up)); h >= 0; h = up[h] {
				b.Args = append(b.Args, query.Arg{Var: query.Var(first + h)})
			}
			rng.Shuffle(len(b.Args), func(i, j int) { b.Args[i], b.Args[j] = b.Args[j], b.Args[i] })
			atoms = append(atoms, b)
		}
	}
	q.Atoms = atoms
	return q
}

// TestStrong: the trees of strong-connex queries have strong edges only, in few
// atoms and in many, and so every cluster is of height 1.
func TestStrong(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	names := map[string]int{}
	for range rounds(4000) {
		p, err := Compile(strongQuery(rng))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Clusters) > 0 {
			names[p.Class.Name()]++
		}
		strong, bare := strongEverywhere(p)
		if !p.Class.StrongConnex || !strong || !bare {
			t.Fatalf("class %s, strong %v, leaves without more than their key %v: %v", p.Class, strong, bare, p.Explain())
		}
		if err := validate(p); err != nil {
			t.Fatalf("%v: %v", p.Explain(), err)
		}
		for _, c := range p.Clusters {
			if c.Score.Height != 1 {
				t.Fatalf("height %d: %v", c.Score.Height, p.Explain())
			}
		}
	}
	if names["strong-connex"] < rounds(4000)/20 || names["q-hierarchical"] < rounds(4000)/20 {
		t.Errorf("too few of a class: %v", names)
	}
	t.Logf("with clusters: %v", names)
}

// TestVectorClusters plans the shared class vectors.
func TestVectorClusters(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "vectors", "classes.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the shared class vectors are not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	var vs []struct {
		Atoms        []string
		Out          string
		Acyclic      bool
		FreeConnex   bool `json:"free_connex"`
		StrongConnex bool `json:"strong_connex"`
	}
	if err := json.Unmarshal(b, &vs); err != nil {
		t.Fatal(err)
	}
	planned, loose := 0, 0
	for i, v := range vs {
		if !v.Acyclic {
			continue
		}
		planned++
		p, err := Compile(vectorQuery(v.Atoms, v.Out))
		if err != nil {
			t.Errorf("vector %d: %v", i, err)
			continue
		}
		if err := validate(p); err != nil {
			t.Errorf("vector %d, %v: %v", i, p.Explain(), err)
		}
		strong, bare := strongEverywhere(p)
		if !strong {
			loose++
		}
		if (p.Extra == nil) != v.FreeConnex || v.FreeConnex && strong != v.StrongConnex || !bare {
			t.Errorf("vector %d, %v -> %q: extra %v, strong %v, bare leaves %v", i, v.Atoms, v.Out, p.Extra, strong, bare)
		}
	}
	t.Logf("%d planned of %d, %d with edges that are not strong", planned, len(vs), loose)
}

// TestClustersLargeSearchAgrees runs the search of many aliases on few.
func TestClustersLargeSearchAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	for range rounds(4000) {
		p, err := Compile(project(rng, randomQuery(rng, exhaustiveMax)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Clusters {
			d := &p.Clusters[i]
			c := bestTreesKeeping(p.inside(d), free, 1)
			if len(c) != 1 || c[0].cost != (cost{int64(d.NonStrong), int64(d.Score.SumDepth)}) || c[0].height != d.Score.Height {
				t.Fatalf("%s %d %+v, one by one %+v", p.ClusterTree(i), d.NonStrong, d.Score, c)
			}
		}
	}
}

// TestClustersManyAtoms plans the greatest number of atoms without most of their
// variables in bounded time.
func TestClustersManyAtoms(t *testing.T) {
	slower := time.Duration(1)
	if invariant.Enabled {
		slower = 20
	}
	for _, shape := range []string{"path", "star", "equal", "binary", "stars", "apart", "comb"} {
		for _, head := range []int{0, 1, 300} {
			q := read(t, manyAtoms(shape, MaxAtoms))
			q.Head = q.Head[:min(head, len(q.Head))]
			start := time.Now()
			p, err := Compile(q)
			if err != nil {
				t.Fatal(err)
			}
			x := p.Explain()
			d := time.Since(start)
			t.Logf("%s, %d output: %v, %s, %d clusters, %d extra", shape, head, d, x.Class, len(p.Clusters), len(p.Extra))
			if err := p.check(); err != nil {
				t.Errorf("%s: %v", shape, err)
			}
			if d > slower*20*time.Second {
				t.Errorf("%s took %v", shape, d)
			}
		}
	}
}

// TestSummedWindow: a cluster seen from outside has the window of the alias whose
// facts stay for the shortest time.
func TestSummedWindow(t *testing.T) {
	for _, tc := range []struct {
		query string
		want  query.Window
	}{
		{"q(a) :- r(a,b), s(b)", query.Window{}},
		{"q(a) :- r(a,b)[10ns], s(b)", query.Window{Range: 10}},
		{"q(a) :- r(a,b), s(b)[7ns], t(b)[5ns], u(b)[9ns]", query.Window{Range: 5}},
		{"q(a) :- r(a,b)[10ns], s(b)[last 3]", query.Window{Range: 10}},
		{"q(a) :- r(a,b)[last 5], s(b)[3ns], t(b)[last 4]", query.Window{Last: 4}},
	} {
		p, err := Compile(read(t, tc.query))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.summed(&p.Clusters[0]).Window; got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.query, got, tc.want)
		}
	}
	// The short-lived cluster stands above the long window, not below it.
	p, err := Compile(read(t, "q(a,b,c,d) :- r(a,b)[1h], s(b,c)[1h], t(c,d,x)[1h], u(x,c)[1m]"))
	if err != nil || p.Tree() != "[c] → s → r, {t, u}(c, d)" {
		t.Errorf("%s, %v", p.Tree(), err)
	}
}
