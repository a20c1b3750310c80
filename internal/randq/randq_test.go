package randq

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/oracle"
	querytext "github.com/triegs/triegs/query/text"
)

var size = Size{Queries: 4, AtomsMax: 6, Epochs: 50}

// TestRoundTrip checks that a case is read back from its text as it was, and
// that a seed gives the same case twice.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		c := New(seed, size)
		text := c.String()
		again := New(seed, size)
		if again.String() != text {
			t.Fatalf("seed %d gives two cases", seed)
		}
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if got.String() != text {
			t.Fatalf("seed %d: read back as\n%s\nfrom\n%s", seed, got.String(), text)
		}
		// The answers of what was read are those of what was drawn.
		store := load(c)
		for i := range c.Queries {
			want, have := c.Queries[i].Oracle().Eval(store), got.Queries[i].Oracle().Eval(store)
			if !reflect.DeepEqual(keys(want), keys(have)) {
				t.Fatalf("seed %d: %s reads back with other answers", seed, c.Queries[i].Text())
			}
		}
	}
}

// load applies the batches of a case; those that must be refused are.
func load(c Case) *oracle.Store {
	s := new(oracle.Store)
	for _, b := range c.Epochs {
		s.Apply(b.Events, b.IgnoreMissing)
	}
	return s
}

// keys gives answers in a form that can be compared.
func keys(a oracle.Answers) map[string]string {
	out := map[string]string{}
	for k, ans := range a {
		out[k] = ans.Count.String()
	}
	return out
}

// windowed asks for windows too.
var windowed = Size{Queries: 4, AtomsMax: 6, Epochs: 12, Windows: true}

// TestWindows checks that cases with windows are read back as they were, that
// every kind of window occurs, and that without them a seed gives no window.
func TestWindows(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(200) {
		c := New(seed, windowed)
		text := c.String()
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := New(seed, windowed); got.String() != text || again.String() != text {
			t.Fatalf("seed %d: read back as\n%s\nfrom\n%s", seed, got.String(), text)
		}
		for i, q := range c.Queries {
			if q.Window != got.Queries[i].Window {
				t.Fatalf("seed %d: window %+v of %s is read back as %+v", seed, q.Window, q.Text(), got.Queries[i].Window)
			}
			for j, a := range q.Atoms {
				if a.Window != got.Queries[i].Atoms[j].Window {
					t.Fatalf("seed %d: window %+v in %s is read back as %+v", seed, a.Window, q.Text(), got.Queries[i].Atoms[j].Window)
				}
				count(seen, q, a)
			}
			parsed, err := querytext.Parse(q.Text())
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, q.Text(), err)
			}
			for j, a := range parsed.Atoms {
				if w := q.Atoms[j].Window; w != oracle.Window(a.Window) {
					t.Fatalf("seed %d: the parser reads %+v in %s, want %+v", seed, a.Window, q.Text(), w)
				}
			}
		}
		for _, q := range New(seed, size).Queries {
			if text := q.Text(); strings.ContainsAny(text, "[]") || strings.Contains(text, " window ") || strings.Contains(text, "last") {
				t.Fatalf("seed %d: %s has a window", seed, text)
			}
		}
	}
	for _, want := range strings.Split("all range slide last own-all own rule sparql long-slide", " ") {
		if seen[want] < 20 {
			t.Errorf("%q occurs %d times", want, seen[want])
		}
	}
	t.Logf("windows %v", seen)
}

// count notes the kind of an atom's window.
func count(seen map[string]int, q Query, a oracle.Atom) {
	for name, is := range map[string]bool{
		"all": a.Window == (oracle.Window{}), "range": a.Window.Range > 0, "slide": a.Window.Slide > 0, "last": a.Window.Last > 0,
		"own": a.Window != q.Window, "own-all": a.Window == (oracle.Window{}) && a.Window != q.Window,
		"rule": !q.SPARQL && q.Window != (oracle.Window{}), "sparql": q.SPARQL && q.Window != (oracle.Window{}),
		"long-slide": a.Window.Slide > a.Window.Range,
	} {
		if is {
			seen[name]++
		}
	}
}

// TestWindowVariant checks that a variant sees through the same windows.
func TestWindowVariant(t *testing.T) {
	differ := 0
	for seed := range uint64(60) {
		c := New(seed, windowed)
		store := load(c)
		store.Advance(int64(windowed.Epochs) * 10)
		for _, q := range c.Queries {
			v := q.Variant(newRand(seed), "w")
			want := keys(q.Oracle().Eval(store))
			if got := keys(v.Oracle().Eval(store)); !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d: %s and its variant %s differ", seed, q.Text(), v.Text())
			}
			all := q
			all.Atoms = slices.Clone(q.Atoms)
			for i := range all.Atoms {
				all.Atoms[i].Window = oracle.Window{}
			}
			if !reflect.DeepEqual(want, keys(all.Oracle().Eval(store))) {
				differ++
			}
		}
	}
	if differ < 30 {
		t.Errorf("in %d queries only do the windows hide anything", differ)
	}
}

// TestShrinkWindows checks that windows that do not matter are taken away.
func TestShrinkWindows(t *testing.T) {
	last := func(c Case) bool {
		return slices.ContainsFunc(c.Queries, func(q Query) bool {
			return slices.ContainsFunc(q.Atoms, func(a oracle.Atom) bool { return a.Window.Last > 0 })
		})
	}
	shrunk := 0
	for seed := range uint64(20) {
		c := New(seed, windowed)
		if !last(c) {
			continue
		}
		small := Shrink(c, last)
		if !last(small) || small.parts() > 3 {
			t.Fatalf("seed %d: shrunk to %d parts:\n%s", seed, small.parts(), small.String())
		}
		shrunk++
	}
	if shrunk < 10 {
		t.Errorf("only %d cases hold a count window", shrunk)
	}
}

// TestWindowRefused checks that a damaged window is no window.
func TestWindowRefused(t *testing.T) {
	for _, text := range []string{
		"query q(x1) :- U1(x1)[10ns.", "query q(x1) :- U1(x1)[].", "query q(x1) :- U1(x1)[last].", "query q(x1) :- U1(x1)[10ns slide].",
		"query q(x1) :- U1(x1) window.", "query q(x1) :- U1(x1)[xns].", "query q(x1) :- U1(x1) last y.",
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s: read", text)
		}
	}
}

// TestVariant checks that a variant has the answers of its query.
func TestVariant(t *testing.T) {
	for seed := range uint64(100) {
		c := New(seed, size)
		store := load(c)
		for _, q := range c.Queries {
			v := q.Variant(newRand(seed), "w")
			if want, got := keys(q.Oracle().Eval(store)), keys(v.Oracle().Eval(store)); !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d: %s and its variant %s differ", seed, q.Text(), v.Text())
			}
		}
	}
}

// shapes are the features that a run of cases has to show.
func shapes(q *Query) (out []string) {
	add := func(ok bool, name string) {
		if ok {
			out = append(out, name)
		}
	}
	occurs := map[string]int{}
	rels := map[string]int{}
	for _, a := range q.Atoms {
		rels[a.Relation]++
		vars := named(a)
		for _, v := range vars {
			occurs[v]++
		}
		all, consts := 0, 0
		for _, arg := range a.Args {
			add(anonymous(arg.Var), "anonymous")
			add(arg.Var == "", "constant")
			if arg.Var == "" {
				consts++
			} else if !anonymous(arg.Var) {
				all++
			}
		}
		add(all > len(vars), "repeated")
		add(consts == len(a.Args), "ground")
		add(rels[a.Relation] > 1, "self-join")
		add(len(a.Args) == 4, "arity 4")
	}
	joined := 0
	for v, n := range occurs {
		add(n == 1 && !slices.Contains(q.Head, v), "private")
		if n > 1 {
			joined++
		}
	}
	add(len(q.Atoms) > 1 && joined == 0, "product")
	add(len(q.Head) == 0, "nullary")
	add(len(q.Atoms) == 6, "six atoms")
	add(len(q.Filters) > 0, "filter")
	add(len(q.Values) > 0, "values")
	add(q.Distinct, "distinct")
	add(q.Set, "set")
	add(q.SPARQL, "sparql")
	return out
}

// TestShapes checks that every feature occurs, that joins are full, and that
// most queries have answers, but not too many.
func TestShapes(t *testing.T) {
	seen := map[string]int{}
	events := map[string]int{}
	nonempty, queries, largest := 0, 0, 0
	for seed := range uint64(250) {
		c := New(seed, size)
		store := load(c)
		for i := range c.Queries {
			q := &c.Queries[i]
			for _, s := range shapes(q) {
				seen[s]++
			}
			checkFull(t, q)
			n := len(q.Oracle().Eval(store))
			largest = max(largest, n)
			queries++
			if n > 0 {
				nonempty++
			}
		}
		for _, b := range c.Epochs {
			countEvents(b, events)
		}
	}
	for _, want := range strings.Split("anonymous constant repeated ground self-join private product nullary filter values distinct set sparql", " ") {
		if seen[want] < 20 {
			t.Errorf("%q occurs %d times in %d queries", want, seen[want], queries)
		}
	}
	for _, want := range strings.Split("insert by-id by-value by-fact refused ignoring", " ") {
		if events[want] < 20 {
			t.Errorf("%q occurs %d times", want, events[want])
		}
	}
	if nonempty*100 < queries*40 || largest > 100_000 {
		t.Errorf("%d of %d queries have answers, the largest %d", nonempty, queries, largest)
	}
	t.Logf("shapes %v, events %v, %d of %d queries with answers, at most %d", seen, events, nonempty, queries, largest)
}

// checkFull checks that a variable of two atoms is put out.
func checkFull(t *testing.T, q *Query) {
	t.Helper()
	occurs := map[string]int{}
	for _, a := range q.Atoms {
		for _, v := range named(a) {
			occurs[v]++
		}
	}
	for v, n := range occurs {
		if n > 1 && !slices.Contains(q.Head, v) {
			t.Errorf("%s hides the join variable %s", q.Text(), v)
		}
	}
}

// countEvents sorts the events of a batch by what they are.
func countEvents(b Batch, into map[string]int) {
	for _, e := range b.Events {
		switch {
		case !e.Delete:
			into["insert"]++
		case e.ID == "never" || e.Value == integer(99):
			into["refused"]++
		case e.ID != "":
			into["by-id"]++
		case e.Value != "":
			into["by-value"]++
		default:
			into["by-fact"]++
		}
	}
	if b.IgnoreMissing {
		into["ignoring"]++
	}
}

// TestHolds checks the order of filters.
func TestHolds(t *testing.T) {
	one, oneFloat := integer(1), `"1.0E0`+xsdDouble
	for _, tc := range []struct {
		left, op, right string
		want            bool
	}{
		{one, "=", oneFloat, true}, {one, "!=", oneFloat, false}, {one, "<=", oneFloat, true}, {one, "<", oneFloat, false},
		{integer(-4), "<", one, true}, {one, "<", `"a"`, false}, {one, ">=", `"a"`, false}, {one, "!=", `"a"`, true},
		{`"a"`, "<", `"b"`, true}, {`""`, "<", `"a"`, true}, {`"1"`, "=", one, false}, {`"a"@en`, "=", `"a"`, false},
		{`"a"@en`, "<", `"b"`, false}, {`"a"@en`, "=", `"a"@en`, true}, {`_:a`, ">=", `"a"`, false},
	} {
		if got := holds(tc.left, tc.op, tc.right); got != tc.want {
			t.Errorf("%s %s %s: got %v", tc.left, tc.op, tc.right, got)
		}
	}
}

// TestShrink checks that a planted fault is reduced to what shows it.
func TestShrink(t *testing.T) {
	c := New(11, size)
	fails := func(c Case) bool {
		deletes, loops := false, false
		for _, b := range c.Epochs {
			for _, e := range b.Events {
				deletes = deletes || e.Delete && e.ID != ""
			}
		}
		for i := range c.Queries {
			loops = loops || slices.Contains(shapes(&c.Queries[i]), "constant")
		}
		return deletes && loops
	}
	if !fails(c) {
		t.Fatal("the case does not show the planted fault")
	}
	small := Shrink(c, fails)
	if !fails(small) || small.parts() > 4 {
		t.Fatalf("shrunk to %d parts:\n%s", small.parts(), small.String())
	}
}

// TestFromBytes checks that any bytes give a case, and others another.
func TestFromBytes(t *testing.T) {
	a, b := FromBytes([]byte("abcdefghijkl"), size), FromBytes([]byte("abcdXfghijkl"), size)
	if a.String() == b.String() {
		t.Fatal("a changed byte changed nothing")
	}
	if c := FromBytes(nil, size); len(c.Queries) != size.Queries {
		t.Fatalf("no bytes gave %d queries", len(c.Queries))
	}
}

// newRand gives a generator that is fixed by its seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
