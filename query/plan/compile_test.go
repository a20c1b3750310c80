package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// describe writes an alias as "vars@cols const=... equal=... private=...".
func describe(p *Plan, i int) string {
	a := p.Aliases[i]
	var b strings.Builder
	for j, v := range a.Vars {
		fmt.Fprintf(&b, "%s@%d ", p.Query.Vars[v], a.Cols[j])
	}
	for _, c := range a.Consts {
		fmt.Fprintf(&b, "%d=%s ", c.Col, c.Term)
	}
	for _, e := range a.Equal {
		fmt.Fprintf(&b, "%d~%d ", e[0], e[1])
	}
	for _, c := range a.Private {
		fmt.Fprintf(&b, "-%d ", c)
	}
	fmt.Fprintf(&b, "f%d v%d", len(a.Filters), len(a.Values))
	if a.Direct() {
		b.WriteString(" direct")
	}
	return b.String()
}

func TestNormalise(t *testing.T) {
	for _, tc := range []struct {
		query string
		want  []string
		never bool
	}{
		{"q(x, y) :- r(x, y)", []string{"x@0 y@1 f0 v0 direct"}, false},
		{"q(y, x) :- r(x, 7, y)", []string{`x@0 y@2 1="7"^^<http://www.w3.org/2001/XMLSchema#integer> f0 v0 direct`}, false},
		{"q(x) :- r(x, x)", []string{"x@0 0~1 f0 v0"}, false},
		// A private variable has one column, also when it is repeated, and so
		// has one that has a name.
		{"q(x) :- r(a, x, a, x, a, _)", []string{"x@1 0~2 1~3 0~4 -0 -5 f0 v0"}, false},
		{"q() :- r(a, a)", []string{"0~1 -0 f0 v0"}, false},
		// What is output, or in two atoms, is kept.
		{"q(x, y, z) :- r(x, y), s(y, z)", []string{"x@0 y@1 f0 v0 direct", "y@0 z@1 f0 v0 direct"}, false},
		// Filters and tables go to the first atom that holds all they need, a
		// conjunction in parts, and do not keep a variable from being private.
		{"q(x, y) :- r(x, y), s(y, a), t(a2, y)\nfilter x < y && a = 3\nfilter y > 1\nvalues y a | 1 2",
			[]string{"x@0 y@1 f2 v0", "y@0 -1 f1 v1", "y@1 -0 f0 v0"}, false},
		{"q(x) :- r(x)\nfilter 1 < 2", []string{"x@0 f0 v0 direct"}, false},
		{"q(x) :- r(x)\nfilter 2 < 1", []string{"x@0 f0 v0 direct"}, true},
		{"q(x) :- r(x)\nfilter x > 1 && 2 < 1", []string{"x@0 f1 v0"}, true},
		// A table without columns still multiplies by its rows.
		{"q(x) :- r(x), s(1)\nvalues | |", []string{"x@0 f0 v1", `0="1"^^<http://www.w3.org/2001/XMLSchema#integer> f0 v0 direct`}, false},
	} {
		q := read(t, tc.query)
		before := read(t, tc.query)
		p, err := Compile(q)
		if err != nil {
			t.Errorf("%s: %v", tc.query, err)
			continue
		}
		var got []string
		for i, a := range p.Aliases {
			got = append(got, describe(p, i))
			if a.Atom != i || a.Relation != q.Atoms[i].Relation || a.Arity != len(q.Atoms[i].Args) {
				t.Errorf("%s: alias %d is %+v", tc.query, i, a)
			}
		}
		if !slices.Equal(got, tc.want) || p.Never != tc.never {
			t.Errorf("%s:\n got %q, never %v\nwant %q", tc.query, got, p.Never, tc.want)
		}
		if !reflect.DeepEqual(q, before) {
			t.Errorf("%s: Compile changed the query", tc.query)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		query, want string
		is          error
	}{
		{"q(x, z) :- r(x, y), r(y, z), r(z, x)", "1:1: not supported: the query is cyclic, and only acyclic queries are evaluated: r#3, r#2 and r#1 close a cycle", errs.ErrUnsupported},
		{"q(x, y) :- r(x, y), s(y), r(x)", "1:27: wrong arity", errs.ErrArity},
		{"q(x, z) :- r(x, y), s(y, z)\n" + "filter x < z", "2:1: not supported", errs.ErrUnsupported},
	} {
		_, err := Compile(read(t, tc.query))
		if !errors.Is(err, tc.is) || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.query, err)
		}
	}
	_, err := Compile(&query.Query{HeadPos: query.Pos{Line: 1, Col: 1}})
	if !errors.Is(err, errs.ErrSyntax) {
		t.Errorf("an empty body: %v", err)
	}
}

const running = "q(x,y,v,z,w) :- hasCreator(v,x), hasReply(v,z), hasCreator(z,y), likedBy(z,w)"

func TestForcedTree(t *testing.T) {
	q := read(t, running)
	for _, tc := range []struct {
		tree, want string
		score      Score
	}{
		// Plan B of the running example is one level deeper than plan A.
		{"[z] -> hasReply -> hasCreator#1, hasCreator#2 -> likedBy",
			"[z] → hasReply → hasCreator#1, hasCreator#2 → likedBy", Score{SumDepth: 2, Height: 2, Nodes: 5, Orders: 4}},
		{"hasReply->hasCreator#1,hasCreator#2,likedBy", "hasReply → hasCreator#1, hasCreator#2, likedBy",
			Score{SumDepth: 3, Height: 2, Nodes: 4, Orders: 4}},
		{"hasCreator#1 → hasReply → {hasCreator#2, likedBy}", "hasCreator#1 → hasReply → {hasCreator#2, likedBy}",
			Score{SumDepth: 5, Height: 3, Nodes: 4, Orders: 4}},
		{" [ v ] → hasCreator#1 , hasReply → [z] → { likedBy, hasCreator#2 } ", "", Score{}},
		{"[v] → hasCreator#1, hasReply → likedBy → hasCreator#2", "[v] → hasCreator#1, hasReply → likedBy → hasCreator#2",
			Score{SumDepth: 3, Height: 3, Nodes: 5, Orders: 4}},
	} {
		p, err := CompileWithTree(q, tc.tree)
		if err != nil {
			t.Errorf("%s: %v", tc.tree, err)
			continue
		}
		if tc.want == "" {
			tc.want, tc.score = "[v] → hasCreator#1, hasReply → [z] → {likedBy, hasCreator#2}", Score{SumDepth: 2, Height: 2, Nodes: 6, Orders: 4}
		}
		if p.Tree() != tc.want || p.Score != tc.score {
			t.Errorf("%s: got %s %+v", tc.tree, p.Tree(), p.Score)
		}
		if err := validate(p); err != nil {
			t.Errorf("%s: %v", tc.tree, err)
		}
	}
}

// TestForcedTreeNames reads back names that are no plain names.
func TestForcedTreeNames(t *testing.T) {
	q := read(t, "q(a, b, c) :- http://x/#r(a, b), http://x/#r(b, c), s→t(b), é_1(b)")
	p, err := Compile(q)
	if err != nil {
		t.Fatal(err)
	}
	const tree = `[b] → "http://x/#r"#1, "http://x/#r"#2, "s→t", é_1`
	forced, err := CompileWithTree(q, tree)
	if err != nil || p.Tree() != tree || forced.Tree() != tree {
		t.Errorf("%s: %s, %v", p.Tree(), forced.Tree(), err)
	}
}

// TestLongCore names only a part of a cycle that was not made minimal.
func TestLongCore(t *testing.T) {
	ring := manyAtoms("path", 299)
	ring = ring + ", E(x299, x0)"
	_, err := Compile(read(t, ring))
	const want = "E#1, E#2, E#3, E#4, E#5, E#6, E#7 and 293 more close a cycle"
	if !errors.Is(err, errs.ErrUnsupported) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestForcedTreeErrors(t *testing.T) {
	q := read(t, running)
	for tree, want := range map[string]string{
		"": "no alias", "hasReply": "in the tree 0 times", "nope": "no alias", "[z": "] expected", "[z,": "] expected", "[q] → likedBy": "no variable",
		"[z z] → likedBy": "no variable", "[z, → likedBy": "] expected",
		"[z] →":                                  "no alias",
		"hasReply → {hasCreator#1":               "} expected",
		"hasReply → hasCreator#1 } ":             "left over",
		"hasCreator → hasReply":                  "no alias",
		"[z] → hasReply → hasCreator#1, likedBy": "in the tree 0 times",
		"[z] → hasReply → hasCreator#1, hasCreator#2, likedBy, likedBy": "in the tree 2 times",
		// z is lost between likedBy and hasReply.
		"hasReply → hasCreator#1 → likedBy, hasCreator#2": "not connected",
		"[z] → hasReply → hasCreator#1 → likedBy":         "in the tree 0 times",
		"hasCreator#1 → hasReply, hasCreator#2, likedBy":  "not connected",
		// Generalized nodes: one child, a child without the key, a schema that
		// no alias has, a leaf.
		"[v] → hasReply → {hasCreator#1, hasCreator#2, likedBy}":  "two children",
		"[z] → hasReply, hasCreator#1, hasCreator#2, likedBy":     "all of the schema",
		"[v, z] → hasReply → hasCreator#1, hasCreator#2, likedBy": "all of the schema",
		"hasReply → hasCreator#1, hasCreator#2, likedBy, []":      "two children",
		"[x] → hasCreator#1, hasReply → {hasCreator#2, likedBy}":  "all of the schema",
	} {
		_, err := CompileWithTree(q, tree)
		ok := errors.Is(err, errs.ErrValue)
		if ok {
			ok = strings.Contains(err.Error(), want)
		}
		if !ok {
			t.Errorf("%s: got %v, want %q", tree, err, want)
		}
	}
	if _, err := CompileWithTree(read(t, "q(x) :- r(x, y), s(y)"), "r → s"); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("a query that is not full: %v", err)
	}
}

// TestCheck breaks a good plan in every way that check looks for.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(p *Plan)
	}{
		{"no nodes", func(p *Plan) { p.Nodes = nil }},
		{"root has a parent", func(p *Plan) { p.Nodes[0].Parent = 0 }},
		{"child of another", func(p *Plan) { p.Nodes[2].Parent = 0 }},
		{"child out of order", func(p *Plan) { slices.Reverse(p.Nodes[0].Children) }},
		{"node cut off", func(p *Plan) { p.Nodes[0].Children = p.Nodes[0].Children[:2] }},
		{"alias twice", func(p *Plan) { p.Nodes[4].Alias = p.Nodes[3].Alias }},
		{"key too short", func(p *Plan) { p.Nodes[1].Key = nil }},
		{"key not in front", func(p *Plan) { slices.Reverse(p.Nodes[1].Vars) }},
		{"variable lost", func(p *Plan) { p.Nodes[1].Vars = p.Nodes[1].Vars[:1] }},
	} {
		p, err := Compile(read(t, running))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		tc.spoil(p)
		if err := p.check(); err == nil {
			t.Errorf("%s: not noticed", tc.name)
		}
	}
}

// TestCheckClusters does the same with clusters.
func TestCheckClusters(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(p *Plan)
	}{
		{"no clusters", func(p *Plan) { p.Clusters = nil }},
		{"another alias", func(p *Plan) { p.Clusters[0].Aliases[0]++ }},
		{"other output", func(p *Plan) { p.Clusters[0].Vars = p.Clusters[0].Vars[:1] }},
		{"more output", func(p *Plan) { p.Extra = []query.Var{2} }},
		{"no tree", func(p *Plan) { p.Clusters[0].Nodes = nil }},
		{"tree of another cluster", func(p *Plan) { p.Clusters[0].Nodes = p.Clusters[1].Nodes }},
		{"root folded over nothing", func(p *Plan) { p.Clusters[0].Nodes[0].Key = nil }},
		{"leaf folded away", func(p *Plan) { n := &p.Clusters[0].Nodes[1]; n.Key = n.Key[:1] }},
		{"generalized node with one child", func(p *Plan) { n := &p.Clusters[0].Nodes[0]; n.Children = n.Children[:1] }},
		{"count of edges", func(p *Plan) { p.Clusters[1].NonStrong++ }},
		{"score", func(p *Plan) { p.Clusters[1].Score.Height++ }},
		{"cluster not in the tree", func(p *Plan) { p.Nodes[len(p.Nodes)-1].Cluster = 0 }},
		{"alias of a cluster in the tree", func(p *Plan) { n := &p.Nodes[len(p.Nodes)-1]; n.Alias, n.Cluster = 0, -1 }},
	} {
		p, err := Compile(read(t, "q(a, b) :- r(a, b, x), s(a, b, x), t(a, c), u(a), v(c)"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(); err != nil || len(p.Clusters) != 2 {
			t.Fatalf("%v: %v", p.Explain(), err)
		}
		tc.spoil(p)
		if err := p.check(); err == nil {
			t.Errorf("%s: not noticed", tc.name)
		}
	}
}

// TestKeyOrder: keys ascend by variable on both sides of an edge, whatever the
// columns are, and the rest follows by column.
func TestKeyOrder(t *testing.T) {
	p, err := Compile(read(t, "q(a, b, c, d, e) :- r(e, b, a, c), s(b, d, a)"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, n := range p.Nodes {
		names := func(vs []query.Var) (s string) {
			for _, v := range vs {
				s += p.varName(v)
			}
			return s
		}
		got = append(got, p.label(&p.Nodes[i])+" "+names(n.Key)+" "+names(n.Vars))
	}
	want := []string{"[a, b]  ab", "r ab abec", "s ab abd"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
