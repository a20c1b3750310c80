package text

import (
	"math"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

// condition reads a FILTER over ?x, ?y and ?z, which are the variables 0 to 2.
func condition(t *testing.T, text string) *query.Filter {
	t.Helper()
	q, err := Parse("SELECT * { ?x :r ?y . ?y :r ?z FILTER (" + text + ") }")
	if err != nil {
		t.Fatal(err)
	}
	return &q.Filters[0]
}

func TestEval(t *testing.T) {
	values := []term.Term{term.Int(3), term.Float(3.5), term.String("a")}
	get := func(v query.Var) term.Term { return values[v] }
	for text, want := range map[string]bool{
		"?x = 3": true, "?x = 4": false, "?x = 3.0": true, "?x = '3'": false, "?x != '3'": true, "?x != 3.0": false,
		"?x < ?y": true, "?x > ?y": false, "?x <= 3": true, "?x >= 3": true, "?x < 3": false, "?x > 3": false,
		"?x <= 2": false, "?x >= 4": false, "?y = 3.5": true, "?z = 'a'": true, "?z < 'b'": true, "?z = 'a'@en": false,
		"?x < ?z": false, "?x > ?z": false, "?x <= ?z": false, "?x >= ?z": false, "?x != ?z": true, "?x = ?z": false,
		"!(?x < ?z)": true, "!(?x = 3)": false, "!!(?x = 3)": true,
		"?x = 3 && ?y = 3.5": true, "?x = 3 && ?y = 4": false, "?x = 4 && ?y = 3.5": false,
		"?x = 4 || ?y = 3.5": true, "?x = 3 || ?y = 4": true, "?x = 4 || ?y = 4": false,
		"?x = 3 || ?x = 4 && ?y = 4": true, "(?x = 3 || ?x = 4) && ?y = 4": false,
		"?x IN (1, 2, 3.0)": true, "?x IN (1, '3')": false, "?x IN (?z, ?x)": true, "?x IN ()": false,
		"?x NOT IN (1, 2)": true, "?x NOT IN (3)": false, "3 = ?x": true, "1 IN (?x)": false,
	} {
		if got := condition(t, text).Eval(get); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	values[0] = term.Float(math.NaN())
	for text, want := range map[string]bool{"?x = ?x": false, "?x != ?x": true, "?x <= ?x": false, "?x IN (?x)": false} {
		if got := condition(t, text).Eval(get); got != want {
			t.Errorf("NaN, %s: got %v, want %v", text, got, want)
		}
	}
}

func TestFilterVars(t *testing.T) {
	for text, want := range map[string][]query.Var{
		"?y < ?x":                           {1, 0},
		"3 < ?x":                            {0},
		"?z IN (?y, 1, ?z)":                 {2, 1},
		"?y = 1 && !(?x = ?y) || ?z = ?x":   {1, 0, 2},
		"?x NOT IN (1) && (?x = 1 || 2=?x)": {0},
	} {
		if got := condition(t, text).Vars(); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestEvalAllocatesNothing(t *testing.T) {
	values := []term.Term{term.Int(3), term.Float(3.5), term.String("a")}
	get := func(v query.Var) term.Term { return values[v] }
	f := condition(t, "(?x < ?y && !(?z = 'b') || ?y = 1.25) && ?x NOT IN (1, 2.5, 'a'@en) && ?y >= 1e0")
	if n := testing.AllocsPerRun(100, func() { f.Eval(get) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestCanonicalTellsApart checks that what differs in meaning differs in form.
func TestCanonicalTellsApart(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"SELECT ?x ?y { ?x :r ?y }", "SELECT ?y ?x { ?x :r ?y }", "SELECT ?x { ?x :r ?y }", "SELECT ?x { ?x :r ?x }",
		"SELECT ?x { ?x :s ?y }", "SELECT ?x { ?x :r 1 }", "SELECT ?x { ?x :r '1' }", "SELECT ?x { ?x :r <1> }",
		"SELECT DISTINCT ?x { ?x :r ?y }", "SELECT ?x { ?x :r ?y FILTER (?y < 1) }", "SELECT ?x { ?x :r ?y FILTER (?y <= 1) }",
		"SELECT ?x { ?x :r ?y FILTER (?x < 1) }", "SELECT ?x { ?x :r ?y FILTER (!(?x < 1)) }",
		"SELECT ?x { ?x :r ?y FILTER (?x < 1 && ?y < 1) }", "SELECT ?x { ?x :r ?y FILTER (?x < 1 || ?y < 1) }",
		"SELECT ?x { ?x :r ?y FILTER (?x IN (1)) }", "SELECT ?x { ?x :r ?y VALUES ?x { 1 } }",
		"SELECT ?x { ?x :r ?y VALUES ?x { 1 1 } }", "SELECT ?x { ?x :r ?y VALUES ?y { 1 } }",
	} {
		for _, set := range []bool{false, true} {
			q, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			q.Set = set
			form := q.Canonical()
			if other, ok := seen[form]; ok {
				t.Errorf("%s and %s have the form %s", other, text, form)
			}
			seen[form] = text
		}
	}
	a, errA := Parse("SELECT ?x { ?x :r ?y . ?y :s ?z }")
	b, errB := Parse("PREFIX : <>\nSELECT ?m WHERE { ?m <r> ?a . # c\n ?a :s ?b . }")
	if errA != nil || errB != nil || a.Canonical() != b.Canonical() {
		t.Errorf("renamed variables: %v, %v", errA, errB)
	}
}
