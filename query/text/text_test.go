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
