package fuzz

import (
	"context"
	"errors"
	"testing"

	"github.com/triegs/triegs"
)

// registerAnything registers a text on a store that holds a few facts, and
// demands a sentinel or a query that answers. An accepted text must say the
// same when it is registered again.
func registerAnything(t *testing.T, text string) {
	ctx := context.Background()
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	facts := events("+R(a,b) +R(b,c)*2 +S(b,c) +S(c,a) +U(a) +T(a,b,c)")
	if _, err := db.Append(ctx, triegs.Batch{Events: facts}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Register(ctx, "q", text); err != nil {
		for _, known := range []error{triegs.ErrSyntax, triegs.ErrUnsupported, triegs.ErrArity, triegs.ErrValue, triegs.ErrOverflow} {
			if errors.Is(err, known) {
				return
			}
		}
		t.Fatalf("%q: error without a sentinel: %v", text, err)
	}
	if _, err := db.Register(ctx, "again", text); err != nil {
		t.Fatalf("%q: refused the second time: %v", text, err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	read := func(name string) (map[string]int64, bool) {
		// A product of many atoms can have more answers than can be walked.
		if n, _, err := snap.Count(ctx, name); err != nil || n > 10_000 {
			return nil, false
		}
		got, err := gather(snap.Answers(name))
		if err != nil && !errors.Is(err, triegs.ErrOverflow) {
			t.Fatalf("%q: %v", text, err)
		}
		return got, err == nil
	}
	one, ok := read("q")
	two, _ := read("again")
	if ok && len(one) != len(two) {
		t.Fatalf("%q: %v, then %v", text, one, two)
	}
	if err := db.Verify(ctx); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// FuzzRuleText registers any text in rule form.
func FuzzRuleText(f *testing.F) {
	for _, s := range []string{
		"q(x, y) :- R(x, y).", "q(x) :- R(x, _), x != \"a\" distinct set.", "q() :- U(\"a\")", "q(x, y, z) :- R(x, y), S(y, z), T(x, y, z).",
		"q(x) :- <http://example.org/p>(x, 1), x < 2.5e3 % comment\n.", `q(x) :- R(x, "a\u00e9\"")`, "q(x, y, z) :- R(x, y), R(y, z), R(z, x).",
		"q(x, count()) :- R(x, y) window 10m slide 1m.", "q(x) :- R(x, y)@ semiring minplus.", `q(x) :- R(x, "a"@en), R(x, "1"^^<http://e/t>), R(x, _:b).`,
	} {
		f.Add(s)
	}
	f.Fuzz(registerAnything)
}

// FuzzSPARQLText registers any text in SPARQL form.
func FuzzSPARQLText(f *testing.F) {
	for _, s := range []string{
		"SELECT ?x WHERE { ?x :R ?y }", "SELECT DISTINCT * WHERE { ?x :R ?y ; :S ?z , ?w . FILTER(?x != ?y) }",
		"PREFIX e: <http://example.org/> SELECT ?x { ?x e:p \"a\"@en ; a e:C . VALUES (?x) { (1) (\"b\") } }",
		"SELECT ?x WHERE { ?x :R _:b . VALUES ?x { \"a\" \"a\" } }", "BASE <http://e/> SELECT ?x WHERE { ?x <p> 1.5 }",
		"SELECT (COUNT(?x) AS ?n) WHERE { ?x :R ?y } GROUP BY ?y", "SELECT ?x WHERE { ?x :R ?y OPTIONAL { ?y :S ?z } }",
	} {
		f.Add(s)
	}
	f.Fuzz(registerAnything)
}
