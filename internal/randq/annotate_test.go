package randq

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/query"
	querytext "github.com/triegs/triegs/query/text"
)

// annotated asks for all that queries may have.
var annotated = Size{Queries: 4, AtomsMax: 5, Epochs: 25, Windows: true, Heads: true, Aggregates: true, Semirings: true}

// unwindowed is the same without windows, which hide most of a stream.
var unwindowed = Size{Queries: 4, AtomsMax: 5, Epochs: 25, Heads: true, Aggregates: true, Semirings: true}

// funcs are the functions as the parsers call them.
var funcs = map[oracle.Func]query.Func{
	oracle.Count: query.Count, oracle.CountDistinct: query.CountDistinct, oracle.Sum: query.Sum,
	oracle.Avg: query.Avg, oracle.Min: query.Min, oracle.Max: query.Max, oracle.TopK: query.TopK,
}

// TestAnnotatedRoundTrip checks that cases are read back as they were, and that
// the parsers read of the text what was drawn.
func TestAnnotatedRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		c := New(seed, annotated)
		text := c.String()
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := New(seed, annotated); got.String() != text || again.String() != text {
			t.Fatalf("seed %d: read back as\n%s\nfrom\n%s", seed, got.String(), text)
		}
		for i := range c.Queries {
			q, back := &c.Queries[i], &got.Queries[i]
			if !slices.Equal(q.Aggregates, back.Aggregates) || !slices.Equal(q.Head, back.Head) || q.Semiring != back.Semiring {
				t.Fatalf("seed %d: %s is read back as %s", seed, q.Text(), back.Text())
			}
			checkParsed(t, seed, q)
		}
		for i, b := range c.Epochs {
			if !reflect.DeepEqual(b.Events, got.Epochs[i].Events) {
				t.Fatalf("seed %d: events read back as\n%v\nfrom\n%v", seed, got.Epochs[i].Events, b.Events)
			}
		}
	}
}

// checkParsed compares a query with what the parser of its text says.
func checkParsed(t *testing.T, seed uint64, q *Query) {
	t.Helper()
	p, err := querytext.Parse(q.Text())
	if err != nil {
		t.Fatalf("seed %d: %s: %v", seed, q.Text(), err)
	}
	if p.Semiring != q.Semiring || p.Distinct != q.Distinct || !slices.Equal(p.Columns, q.Head) || len(p.Aggregates) != len(q.Aggregates) {
		t.Fatalf("seed %d: the parser reads %s as %s", seed, q.Text(), p.Canonical())
	}
	for i, a := range p.Aggregates {
		want, name := q.Aggregates[i], ""
		if a.Var != query.NoVar {
			name = p.Vars[a.Var]
		}
		if a.Func != funcs[want.Func] || name != want.Var || a.K != want.K {
			t.Fatalf("seed %d: the parser reads %+v in %s, want %+v", seed, a, q.Text(), want)
		}
	}
	for i, a := range p.Atoms {
		if a.Annotated != q.Atoms[i].Annotated {
			t.Fatalf("seed %d: the parser reads atom %d of %s as annotated: %v", seed, i, q.Text(), a.Annotated)
		}
	}
}

// rows evaluates a query; every value that it reads must be one.
func rows(t *testing.T, q *Query, s *oracle.Store) *oracle.Result {
	t.Helper()
	res, err := q.Oracle().Rows(s)
	if err != nil {
		t.Fatalf("%s: %v", q.Text(), err)
	}
	return res
}

// notes tells what a query has.
func notes(q *Query, seen map[string]int) {
	for _, a := range q.Aggregates {
		seen[string(a.Func)]++
	}
	if name, _, _ := strings.Cut(q.Semiring, "("); name != "" {
		seen[name]++
	}
	kind := "rule "
	switch {
	case q.SPARQL:
		kind = "sparql "
	case q.Semiring != "":
		kind = "semiring "
	}
	if len(q.Aggregates) > 0 {
		kind += "aggregates "
	}
	switch {
	case len(q.Head) == 0:
		seen[kind+"nullary"]++
	case q.projected():
		seen[kind+"projected"]++
	default:
		seen[kind+"full"]++
	}
	for _, a := range q.Atoms {
		if a.Annotated {
			seen["annotated"]++
		} else if q.Semiring != "" {
			seen["beside"]++
		}
	}
}

// TestAnnotatedShapes checks that every function, semiring and kind of head
// occurs, that every value can be read, and that there are answers, most of them
// in epochs that must not be refused.
func TestAnnotatedShapes(t *testing.T) {
	seen := map[string]int{}
	queries, nonempty, safe, largest := 0, 0, 0, 0
	for seed := range uint64(200) {
		c := New(seed, unwindowed)
		store := load(c)
		for i := range c.Queries {
			q := &c.Queries[i]
			notes(q, seen)
			res := rows(t, q, store)
			queries++
			largest = max(largest, len(res.Rows))
			if len(res.Rows) > 0 {
				nonempty++
			}
			if res.Safe {
				safe++
			}
		}
	}
	want := "annotated,beside,count,count distinct,sum,avg,min,max,topk,int,real,maxplus,minplus,maxmax,maxmin,cap,fuzzy,access,why,poly," +
		"rule nullary,rule projected,rule full,rule aggregates nullary,rule aggregates projected,sparql aggregates projected," +
		"semiring nullary,semiring projected,semiring full"
	for _, w := range strings.Split(want, ",") {
		if seen[w] < 8 {
			t.Errorf("%q occurs %d times in %d queries", w, seen[w], queries)
		}
	}
	if nonempty*100 < queries*35 || safe*100 < queries*90 {
		t.Errorf("%d of %d queries have answers, %d are safe", nonempty, queries, safe)
	}
	t.Logf("%v; %d of %d queries have answers, at most %d, %d are safe", seen, nonempty, queries, largest, safe)
}

// TestAnnotatedVariant checks that a variant has the rows of its query.
func TestAnnotatedVariant(t *testing.T) {
	for seed := range uint64(60) {
		c := New(seed, annotated)
		store := load(c)
		store.Advance(int64(annotated.Epochs) * 10)
		for i := range c.Queries {
			q := &c.Queries[i]
			v := q.Variant(newRand(seed), "w")
			a, b := rows(t, q, store), rows(t, &v, store)
			if ch := oracle.Changes(a, b); len(ch) > 0 {
				t.Fatalf("seed %d: %s and its variant %s differ: %+v", seed, q.Text(), v.Text(), ch)
			}
			checkParsed(t, seed, &v)
		}
	}
}

// TestShrinkAnnotated checks that what does not matter is taken away, and what
// matters stays.
func TestShrinkAnnotated(t *testing.T) {
	for name, has := range map[string]func(Query) bool{
		"aggregate": func(q Query) bool {
			return slices.ContainsFunc(q.Aggregates, func(a oracle.Aggregate) bool { return a.Func == oracle.Sum })
		},
		"annotation": func(q Query) bool {
			return q.Semiring != "" && slices.ContainsFunc(q.Atoms, func(a oracle.Atom) bool { return a.Annotated })
		},
		"projection": func(q Query) bool { return q.projected() },
	} {
		fails := func(c Case) bool { return slices.ContainsFunc(c.Queries, has) }
		shrunk := 0
		for seed := range uint64(30) {
			c := New(seed, annotated)
			if !fails(c) {
				continue
			}
			small := Shrink(c, fails)
			if !fails(small) || small.parts() > 4 {
				t.Fatalf("%s, seed %d: shrunk to %d parts:\n%s", name, seed, small.parts(), small.String())
			}
			checkParsed(t, seed, &small.Queries[0])
			shrunk++
		}
		if shrunk < 8 {
			t.Errorf("%s: only %d cases have it", name, shrunk)
		}
	}
}

// TestAnnotationRefused checks that damaged annotations are none.
func TestAnnotationRefused(t *testing.T) {
	for _, text := range []string{
		"query q(sum(x1) :- U1(x1).", "query q(sum()) :- U1(x1).", "query q(topk(x1)) :- U1(x1).", "query q(topk(x1, y)) :- U1(x1).",
		"query q(count(x1)) :- U1(x1).", "query q(median(x1)) :- U1(x1).", "query q(x1) :- U1(x1) semiring.", "query q(x1) :- U1(x1) semiring cap(3.",
		"query q(x1) :- @.",
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s: read", text)
		}
	}
}
