package query

import (
	"errors"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// TestSetDistinct: an option asks for distinct only where the text leaves the
// annotation open.
func TestSetDistinct(t *testing.T) {
	for _, c := range []struct {
		q  Query
		is error
	}{
		{Query{}, nil},
		{Query{Distinct: true, Set: true}, nil},
		{Query{Aggregates: []Aggregate{{Func: Count, Var: NoVar}}}, errs.ErrValue},
		{Query{Semiring: "minplus"}, errs.ErrValue},
	} {
		err := c.q.SetDistinct()
		if !errors.Is(err, c.is) || c.q.Distinct != (c.is == nil) {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
}

// TestCanonicalComments: what SPARQL text has no word for tells forms apart too.
func TestCanonicalComments(t *testing.T) {
	form := func(semiring string, annotated bool) string {
		q := Query{Vars: []string{"x", "y"}, Head: []Var{0}, Semiring: semiring}
		q.Atoms = []Atom{{Relation: "r", Args: []Arg{{Var: 0}, {Var: 1}}, Annotated: annotated}}
		q.Filters = []Filter{{Expr: Expr{Op: OpIn, Left: Arg{Var: 1}}}}
		return q.Canonical()
	}
	const plain = "SELECT ?v0 WHERE { ?v0 <r> ?v1 . FILTER (?v1 IN ()) }"
	for _, c := range []struct{ got, want string }{
		{form("", false), plain},
		{form("why", false), plain + " # semiring why"},
		{form("why", true), plain + " # semiring why # 0@"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}
