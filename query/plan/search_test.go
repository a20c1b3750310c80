package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

// TestBestTrees holds the published best trees, and some with more than one
// generalized node.
func TestBestTrees(t *testing.T) {
	for _, tc := range []struct {
		query, tree           string
		height, sum, generals int
	}{
		{"q(a,b,c,d) :- R0(a,b), R1(b,c), R2(c,d)", "[b] → R0, R1 → R2", 2, 1, 1},
		{"q(a,b,x3,d,e) :- R0(a,b), R1(b,x3), R2(x3,d), R3(d,e)", "[x3] → R1 → R0, R2 → R3", 2, 2, 1},
		{"q(x1,x2,x3,x4) :- R1(x1), R2(x1,x2), R3(x2,x3), R4(x3,x4), R5(x4)", "[x2] → R2 → R1, R3 → R4 → R5", 3, 4, 1},
		{"q(a,b,c) :- R0(a,b), R1(b,c), R2(c,1)", "[c] → R1 → R0, R2", 2, 1, 1}, // constants high up
		{"q(a,b,c) :- R0(1,a), R1(a,b), R2(b,c)", "[a] → R0, R1 → R2", 2, 1, 1},
		{"q(a,b,c,d,e) :- R0(a,b), R1(a,c), R2(a,d), R3(a,e)", "[a] → R0, R1, R2, R3", 1, 0, 1},
		{"q(x,y,v,z,w) :- hasCreator(v,x), hasReply(v,z), hasCreator(z,y), likedBy(z,w)",
			"[z] → hasReply → hasCreator#1, hasCreator#2, likedBy", 2, 1, 1},
		{"q(a,b,c,d) :- R(a,b), S(c,d)", "[] → R, S", 1, 0, 1},
		{"q(a,b) :- R(a,b)", "R", 1, 0, 0},
		{"q() :- R(1), S(_)", "[] → R, S", 1, 0, 1},
		{"q() :- R(1), R(2), R(_)", "[] → R#1, R#2, R#3", 1, 0, 1},
		{"q(a,b,c,d) :- R(a), S(a,b,c), T(a,b,d), U(1)", "[] → [a] → {R, [a, b] → {S, T}}, U", 1, 0, 3},
		{"q(y,z,a,b,c) :- A(z,a), B(z,y,b), C(z,y,c)", "[z] → A, [y, z] → {B, C}", 1, 0, 2},
		{"q(a,b) :- R(a,b), R(a,b), R(b,a)", "[a, b] → R#1, R#2, R#3", 1, 0, 1},
		{"q(a,b,c,d,e,f) :- A(a,b), B(b,c), C(d,e), D(e,f)", "[] → [b] → {A, B}, [e] → {C, D}", 1, 0, 3},
	} {
		p, err := Compile(read(t, tc.query))
		if err != nil {
			t.Errorf("%s: %v", tc.query, err)
			continue
		}
		if got := p.Tree(); got != tc.tree || p.Score.Height != tc.height || p.Score.SumDepth != tc.sum || p.Score.Nodes != len(p.Aliases)+tc.generals {
			t.Errorf("%s:\n got %s %+v\nwant %s", tc.query, got, p.Score, tc.tree)
		}
	}
}

// randomQuery makes a full acyclic query: each atom takes some variables of an
// earlier one and some new ones, then everything is shuffled. Some atoms share
// a relation, some hold a constant, some a repeated or a private variable.
func randomQuery(rng *rand.Rand, atomsMax int) *query.Query {
	var schemas [][]query.Var
	n := 0
	for range 1 + rng.IntN(atomsMax) {
		var s []query.Var
		if len(schemas) > 0 {
			for _, v := range schemas[rng.IntN(len(schemas))] {
				if rng.IntN(2) == 0 {
					s = append(s, v)
				}
			}
		}
		for len(s) < 4 && rng.IntN(3) > 0 {
			s = append(s, query.Var(n))
			n++
		}
		schemas = append(schemas, s)
	}
	names := rng.Perm(n)
	q := &query.Query{Name: "q", Vars: make([]string, n), HeadPos: query.Pos{Line: 1, Col: 1}}
	for v := range n {
		q.Vars[v] = fmt.Sprintf("x%d", v)
		q.Head = append(q.Head, query.Var(v))
	}
	rng.Shuffle(len(schemas), func(i, j int) { schemas[i], schemas[j] = schemas[j], schemas[i] })
	rng.Shuffle(n, func(i, j int) { q.Head[i], q.Head[j] = q.Head[j], q.Head[i] })
	for _, s := range schemas {
		var a query.Atom
		for _, v := range s {
			a.Args = append(a.Args, query.Arg{Var: query.Var(names[v])})
		}
		switch rng.IntN(6) {
		case 0:
			a.Args = append(a.Args, query.Arg{Var: query.NoVar, Const: term.Int(7)})
		case 1:
			q.Vars = append(q.Vars, "")
			a.Args = append(a.Args, query.Arg{Var: query.Var(len(q.Vars) - 1)})
		case 2:
			if len(a.Args) > 0 {
				a.Args = append(a.Args, a.Args[0])
			}
		}
		if len(a.Args) == 0 {
			a.Args = append(a.Args, query.Arg{Var: query.NoVar, Const: term.Int(1)})
		}
		rng.Shuffle(len(a.Args), func(i, j int) { a.Args[i], a.Args[j] = a.Args[j], a.Args[i] })
		a.Relation = fmt.Sprintf("R%d_%d", rng.IntN(3), len(a.Args))
		q.Atoms = append(q.Atoms, a)
	}
	return q
}

// rounds is the number of random cases, a tenth under the slow checks.
func rounds(n int) int {
	if invariant.Enabled {
		return n / 10
	}
	return n
}

// validate is the definition of a plan: what its clusters are, and that each tree
// is a generalized join tree. It is written apart from the check that the package
// makes of its own plans.
func validate(p *Plan) error {
	shown := slices.Concat(p.Query.Head, p.Extra)
	group := make([]int, len(p.Aliases)) // aliases of one group hang together
	for i := range group {
		group[i] = i
	}
	for range p.Aliases {
		for i := range p.Aliases {
			for j := range p.Aliases {
				for _, v := range meet(p.Aliases[i].Vars, p.Aliases[j].Vars) {
					if !slices.Contains(shown, v) {
						group[i], group[j] = min(group[i], group[j]), min(group[i], group[j])
					}
				}
			}
		}
	}
	tree := treeRules{p: p}
	next := 0
	for i := range p.Aliases {
		var members []int
		for j, g := range group {
			if g == i {
				members = append(members, j)
			}
		}
		switch {
		case len(members) == 1:
			tree.aliases = append(tree.aliases, i)
		case len(members) > 1:
			if next >= len(p.Clusters) || !slices.Equal(p.Clusters[next].Aliases, members) {
				return fmt.Errorf("cluster %d is not %v", next, members)
			}
			c := &p.Clusters[next]
			var out []query.Var
			for _, a := range members {
				out = append(out, meet(p.Aliases[a].Vars, shown)...)
			}
			slices.Sort(out)
			if !slices.Equal(c.Vars, slices.Compact(out)) {
				return fmt.Errorf("cluster %d has output %v, want %v", next, c.Vars, out)
			}
			inner := treeRules{p: p, nodes: c.Nodes, key: c.Vars, aliases: members, folded: true}
			if err := inner.validate(); err != nil {
				return fmt.Errorf("cluster %d: %w", next, err)
			}
			tree.clusters = append(tree.clusters, next)
			next++
		}
	}
	if next != len(p.Clusters) {
		return fmt.Errorf("%d clusters, want %d", len(p.Clusters), next)
	}
	tree.nodes = p.Nodes
	return tree.validate()
}

// treeRules are what a tree has to hold and what it is folded over.
type treeRules struct {
	p                 *Plan
	nodes             []Node
	key               []query.Var
	aliases, clusters []int
	folded            bool
}

func (r *treeRules) validate() error {
	p, nodes := r.p, r.nodes
	path := func(i int) (up []int) {
		for ; i >= 0; i = nodes[i].Parent {
			up = append(up, i)
		}
		return up
	}
	has := func(i int, v query.Var) bool { return slices.Contains(nodes[i].Vars, v) }
	var aliases, clusters []int
	for i, n := range nodes {
		if (i == 0) != (n.Parent < 0) || n.Parent >= i {
			return fmt.Errorf("node %d has parent %d", i, n.Parent)
		}
		switch {
		case n.Alias >= 0 && n.Cluster >= 0:
			return fmt.Errorf("node %d is two things", i)
		case n.Alias >= 0:
			aliases = append(aliases, n.Alias)
			if !slices.Equal(slices.Sorted(slices.Values(n.Vars)), slices.Sorted(slices.Values(p.Aliases[n.Alias].Vars))) {
				return fmt.Errorf("node %d has other variables than its alias", i)
			}
			// Behind the key the variables stand in the order of their columns.
			last := -1
			for _, v := range n.Vars[len(n.Key):] {
				a := p.Aliases[n.Alias]
				c := a.Cols[slices.Index(a.Vars, v)]
				if c < last {
					return fmt.Errorf("node %d is not in column order", i)
				}
				last = c
			}
		case n.Cluster >= 0:
			clusters = append(clusters, n.Cluster)
			if !slices.Equal(slices.Sorted(slices.Values(n.Vars)), p.Clusters[n.Cluster].Vars) {
				return fmt.Errorf("node %d has other variables than its cluster", i)
			}
		default:
			if len(n.Children) < 2 {
				return fmt.Errorf("generalized node %d has %d children", i, len(n.Children))
			}
			for _, c := range n.Children {
				if !slices.Equal(nodes[c].Key, slices.Sorted(slices.Values(n.Vars))) {
					return fmt.Errorf("child %d of generalized node %d provides no candidates", c, i)
				}
			}
		}
		key := r.key
		if n.Parent >= 0 {
			key = meet(slices.Sorted(slices.Values(n.Vars)), nodes[n.Parent].Vars)
		}
		if !slices.Equal(n.Key, key) || !slices.Equal(n.Vars[:len(key)], key) {
			return fmt.Errorf("node %d has key %v, want %v in front", i, n.Key, key)
		}
		for _, v := range n.Vars[len(key):] {
			if r.folded && !slices.ContainsFunc(n.Children, func(c int) bool { return has(c, v) }) {
				return fmt.Errorf("%s is for nobody in node %d", p.varName(v), i)
			}
		}
		for _, c := range n.Children {
			if nodes[c].Parent != i {
				return fmt.Errorf("node %d is no child of %d", c, i)
			}
		}
		// Connect: what two nodes share is on all of the way between them.
		for j := range i {
			up, vp := path(i), path(j)
			for _, v := range n.Vars {
				if !has(j, v) {
					continue
				}
				for _, k := range append(up, vp...) {
					between := !(slices.Contains(up, k) && slices.Contains(vp, k)) || k == lowestCommon(up, vp)
					if between && !has(k, v) {
						return fmt.Errorf("%s is in nodes %d and %d but not in %d between them", p.varName(v), i, j, k)
					}
				}
			}
		}
	}
	slices.Sort(aliases)
	slices.Sort(clusters)
	if !slices.Equal(aliases, r.aliases) || !slices.Equal(clusters, r.clusters) {
		return fmt.Errorf("aliases in the tree: %v, clusters: %v", aliases, clusters)
	}
	return nil
}

func lowestCommon(a, b []int) int {
	for _, i := range a {
		if slices.Contains(b, i) {
			return i
		}
	}
	return -1
}

func sortedSchemas(aliases []Alias) (s [][]query.Var) {
	for _, a := range aliases {
		s = append(s, slices.Sorted(slices.Values(a.Vars)))
	}
	return s
}

// TestRandomTrees checks every tree against the definition, that its text reads
// back to the same plan, and that the same query gives the same plan.
func TestRandomTrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range rounds(6000) {
		q := randomQuery(rng, 8)
		p, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(p); err != nil {
			t.Fatalf("%s: %v", p.Tree(), err)
		}
		if err := p.check(); err != nil {
			t.Fatalf("%s: %v", p.Tree(), err)
		}
		again, err := Compile(q)
		if err != nil || again.Tree() != p.Tree() {
			t.Fatalf("%s, then %s: %v", p.Tree(), again.Tree(), err)
		}
		forced, err := CompileWithTree(q, p.Tree())
		if err != nil || forced.Tree() != p.Tree() || forced.Score != p.Score {
			t.Fatalf("%s read back: %v", p.Tree(), err)
		}
	}
}

// TestAgreeBruteForce compares the chosen score with that of all trees, and the
// height with q-hierarchical: height 1 exactly then.
func TestAgreeBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	higher, total := 0, 0
	for range rounds(3000) {
		p, err := Compile(randomQuery(rng, 5))
		if err != nil {
			t.Fatal(err)
		}
		want, height, _ := bruteBest(sortedSchemas(p.Aliases), p.Aliases, p.Query.Head)
		got := p.Score
		got.Orders = 0
		if got != want {
			t.Fatalf("%v: chose %s with %+v, best is %+v", sortedSchemas(p.Aliases), p.Tree(), got, want)
		}
		if (height == 1) != p.Class.QHierarchical || (height == 1) != (got.Height == 1) {
			t.Fatalf("%s: height %d, class %v", p.Tree(), height, p.Class)
		}
		total++
		if got.Height > height {
			higher++
		}
	}
	t.Logf("%d of %d trees are higher than the lowest, for a lesser depth sum", higher, total)
}

// TestLargeSearchAgrees runs the search of many aliases, which keeps one
// candidate a part, on few: depth sum, height and class must be the same.
func TestLargeSearchAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range rounds(3000) {
		p, err := Compile(randomQuery(rng, exhaustiveMax))
		if err != nil {
			t.Fatal(err)
		}
		c := bestTreesKeeping(p.top(), free, 1)
		if len(c) != 1 || c[0].cost != (cost{rest: int64(p.Score.SumDepth)}) || c[0].height != p.Score.Height {
			t.Fatalf("%s %+v, one by one %+v", p.Tree(), p.Score, c[0])
		}
	}
}

// TestVectorHeights compares the least height over all trees that are connex
// for the output with the vectors, of every class, and that of the plan where
// the query is full.
func TestVectorHeights(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "vectors", "classes.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the shared class vectors are not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	var vs []struct {
		Atoms         []string
		Out           string
		Acyclic       bool
		QHierarchical bool `json:"q_hierarchical"`
		MinHeight     *int `json:"min_height"`
	}
	if err := json.Unmarshal(b, &vs); err != nil {
		t.Fatal(err)
	}
	searched, planned := 0, 0
	for i, v := range vs {
		q := vectorQuery(v.Atoms, v.Out)
		p, err := Compile(q)
		height := 0
		if err == nil {
			planned++
			height = p.Score.Height
			for _, c := range p.Clusters {
				height = max(height, c.Score.Height)
			}
			// The height of the extension of a query is no matter of its own class.
			if p.Extra == nil && (height == 1) != v.QHierarchical {
				t.Errorf("vector %d, %v: %s has height %d", i, v.Atoms, p.Tree(), height)
			}
		}
		if (err == nil) != v.Acyclic || err != nil && !errors.Is(err, errs.ErrUnsupported) {
			t.Errorf("vector %d: %v", i, err)
		}
		if v.MinHeight == nil {
			continue
		}
		searched++
		var schemas [][]query.Var
		for _, a := range q.Atoms {
			var s []query.Var
			for _, arg := range a.Args {
				s = append(s, arg.Var)
			}
			schemas = append(schemas, slices.Sorted(slices.Values(s)))
		}
		_, least, ok := bruteBest(schemas, make([]Alias, len(schemas)), q.Head)
		if !ok || least != *v.MinHeight || (least == 1) != v.QHierarchical {
			t.Errorf("vector %d, %v -> %q: least height %d, want %d", i, v.Atoms, v.Out, least, *v.MinHeight)
		}
		if err == nil && p.Class.Full && p.Score.Height < *v.MinHeight {
			t.Errorf("vector %d, %v: height %d is less than the least", i, v.Atoms, p.Score.Height)
		}
	}
	t.Logf("%d searched, %d planned, of %d", searched, planned, len(vs))
}

func vectorQuery(atoms []string, out string) *query.Query {
	q := &query.Query{Name: "q", HeadPos: query.Pos{Line: 1, Col: 1}}
	variable := func(c rune) query.Var {
		v := slices.Index(q.Vars, string(c))
		if v < 0 {
			v = len(q.Vars)
			q.Vars = append(q.Vars, string(c))
		}
		return query.Var(v)
	}
	for i, s := range atoms {
		a := query.Atom{Relation: fmt.Sprintf("R%d", i)}
		for _, c := range s {
			a.Args = append(a.Args, query.Arg{Var: variable(c)})
		}
		q.Atoms = append(q.Atoms, a)
	}
	for _, c := range out {
		q.Head = append(q.Head, variable(c))
	}
	return q
}

// shapes of many atoms, by name.
func manyAtoms(shape string, n int) string {
	var head, body []string
	for i := range n {
		switch shape {
		case "path":
			body = append(body, fmt.Sprintf("E(x%d,x%d)", i, i+1))
		case "star":
			body = append(body, fmt.Sprintf("E(x0,x%d)", i+1))
		case "equal":
			body = append(body, "E(x0,x1)")
		case "binary":
			body = append(body, fmt.Sprintf("E(x%d,x%d)", i/2, i+1))
		case "stars":
			body = append(body, fmt.Sprintf("E(x%d,x%d)", i-i%10, i+1))
		case "apart":
			body = append(body, fmt.Sprintf("E(x%d,y%d)", i, i))
		}
	}
	if shape == "nested" {
		// Every atom holds all variables of the one before it.
		for i := range n {
			var vs []string
			for j := range i + 1 {
				vs = append(vs, fmt.Sprintf("x%d", j))
			}
			body = append(body, fmt.Sprintf("R%d(%s)", i, strings.Join(vs, ",")))
		}
	}
	if shape == "comb" {
		// One wide atom, and a tooth on each of its variables.
		var wide []string
		for i := range n - 1 {
			wide = append(wide, fmt.Sprintf("x%d", i))
			body = append(body, fmt.Sprintf("E(x%d,y%d)", i, i))
		}
		body = append(body, "W("+strings.Join(wide, ",")+")")
	}
	seen := map[string]bool{}
	for _, v := range strings.FieldsFunc(strings.Join(body, ","), func(r rune) bool { return strings.ContainsRune("(),", r) }) {
		if (v[0] == 'x' || v[0] == 'y') && !seen[v] {
			seen[v] = true
			head = append(head, v)
		}
	}
	return "q(" + strings.Join(head, ",") + ") :- " + strings.Join(body, ", ")
}

// TestManyAtoms plans 200 atoms quickly, the greatest number in bounded time,
// and refuses more.
func TestManyAtoms(t *testing.T) {
	// Under the race detector the machine is some ten times slower.
	slower := time.Duration(1)
	if invariant.Enabled {
		slower = 20
	}
	for _, tc := range []struct {
		shape     string
		n, height int
		limit     time.Duration
	}{
		{"path", 200, 100, time.Second}, {"star", 200, 1, time.Second}, {"equal", 200, 1, time.Second},
		{"binary", 200, 8, time.Second}, {"stars", 200, 11, time.Second}, {"apart", 200, 1, time.Second},
		{"nested", 100, 1, 10 * time.Second}, {"comb", 200, 2, time.Second}, {"comb", MaxAtoms, 2, 20 * time.Second},
		{"path", MaxAtoms, 500, 20 * time.Second}, {"star", MaxAtoms, 1, 20 * time.Second},
		{"equal", MaxAtoms, 1, 20 * time.Second}, {"binary", MaxAtoms, 0, 20 * time.Second},
		{"apart", MaxAtoms, 1, 20 * time.Second},
	} {
		q := read(t, manyAtoms(tc.shape, tc.n))
		start := time.Now()
		p, err := Compile(q)
		d := time.Since(start)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d atoms, %s: %v, %+v", tc.n, tc.shape, d, p.Score)
		if err := p.check(); err != nil {
			t.Errorf("%s: %v", tc.shape, err)
		}
		if d > slower*tc.limit || (tc.height > 0 && p.Score.Height != tc.height) {
			t.Errorf("%d atoms, %s: %v, height %d, want %d", tc.n, tc.shape, d, p.Score.Height, tc.height)
		}
	}
	for _, tc := range []struct {
		shape, want string
		n           int
	}{
		{"path", "not supported: the query has 10000 atoms, at most 1000 are supported", 10_000},
		{"nested", "not supported: the atoms have more than 16384 arguments together", 181},
	} {
		q := read(t, manyAtoms(tc.shape, tc.n))
		start := time.Now()
		_, err := Compile(q)
		_, err2 := Explain(q)
		if !errors.Is(err, errs.ErrUnsupported) || !errors.Is(err2, errs.ErrUnsupported) ||
			!strings.Contains(err.Error(), tc.want) || time.Since(start) > slower*10*time.Second {
			t.Errorf("%d atoms, %s: %v after %v", tc.n, tc.shape, err, time.Since(start))
		}
	}
}
