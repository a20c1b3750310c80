package text

import (
	"errors"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

func TestChoice(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"SELECT ?x { ?x :r ?y }", "q(v0) :- <r>(v0, v1)."},
		{"# c\n select*{ ?x :r ?y }", "q(v0, v1) :- <r>(v0, v1)."},
		{"PrEfIx : <http://a/> SELECT ?x { ?x :r ?y }", "q(v0) :- <http://a/r>(v0, v1)."},
		{"base <http://a/> SELECT ?x { ?x <r> ?y }", "q(v0) :- <http://a/r>(v0, v1)."},
		{"% c\n # d\nq(x) :- r(x)", "q(v0) :- <r>(v0)."},
		{"selected(x) :- r(x)", "selected(v0) :- <r>(v0)."},
		{"base_2(x) :- r(x)", "base_2(v0) :- <r>(v0)."},
		{"ask(x) :- r(x)", "ask(v0) :- <r>(v0)."},
		{"SELECT (COUNT(*) AS ?n) ?x { ?x :r ?y } GROUP BY ?x", "q(v0, count()) :- <r>(v0, v1)."},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if got := q.Canonical(); got != c.want {
			t.Errorf("%q: got %s, want %s", c.text, got, c.want)
		}
	}
	for _, c := range []struct {
		text, want string
		is         error
	}{
		{"ASK { ?x :r ?y }", "1:1: not supported: ASK", errs.ErrUnsupported},
		{"\nCONSTRUCT WHERE { ?x :r ?y }", "2:1: not supported: CONSTRUCT", errs.ErrUnsupported},
		{"select(x) :- r(x)", "1:7: not supported", errs.ErrUnsupported},
		{"", "1:1: syntax error", errs.ErrSyntax},
		{"\xff", "1:1: syntax error", errs.ErrSyntax},
		{"WITH <g> DELETE", "1:6: syntax error", errs.ErrSyntax},
	} {
		if _, err := Parse(c.text); !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

// FuzzText checks that the normal form of a query in either form is a text of
// the same normal form.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		`q(x) :- r(x, _, -1.5, "a"@en), <s>(x, y), x <= y, y != <b> distinct set.`,
		"select distinct * { [ :q ?x ; a 'é'@en ] . _:b <c> \"\"\"d\"\"\"^^:t, 1.5, -1e3 ; }",
		"q(x) :- r(x)[10m], s(x, x)[all], t(x)[last 3] window 1h30m slide 1.5s",
		"SELECT ?x { ?x :q ?y VALUES ?y { 1 } } WINDOW [RANGE PT10M STEP 250ms]",
		"SELECT ?x { ?x :q ?y } WINDOW [LAST 10]",
		"SELECT ?x { ?x :q ?y . ?x :q_ [] FILTER (?x < 1) FILTER(?y != 'a') }",
		"SELECT ?x { ?x :p ?y FILTER (?x < 1 && !(?y NOT IN (1, <b>)) || ?y>=true) } VALUES (?x ?y) { (1 2) }",
		"q(x, count(), topk(a, 3), count(distinct a)) :- r(x, a)[1m]", "q(x) :- r(x)@[1m] semiring access(a < \"b c\") * why set",
		"SELECT ?x (COUNT(*) AS ?n) (MIN(?y) AS ?m) { ?x :q ?y } WINDOW [LAST 3] GROUP BY ?x",
		"SELECT (COUNT(*) AS ?n) (COUNT(?x) AS ?m) (SUM(?y) AS ?s) { ?x :q ?y FILTER (?y IN (1, 2)) }",
		"PREFIX a: <http://a/> SELECT ?x { ?x a:b%20c\\~d ?y, ?x }",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			if !errors.Is(err, errs.ErrSyntax) && !errors.Is(err, errs.ErrUnsupported) {
				t.Fatalf("%q: untyped error %v", text, err)
			}
			return
		}
		form := q.Canonical()
		again, err := Parse(form)
		if err != nil || again.Canonical() != form {
			t.Fatalf("%q: %s does not parse back: %v", text, form, err)
		}
	})
}
