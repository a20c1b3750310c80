package rule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// shown writes the aggregates of a query with their columns.
func shown(q *query.Query) string {
	var out []string
	for _, a := range q.Aggregates {
		v := "-"
		if a.Var != query.NoVar {
			v = q.Vars[a.Var]
		}
		out = append(out, fmt.Sprintf("%d %s %d %q %v", a.Func, v, a.K, a.Column, a.Pos))
	}
	return strings.Join(out, "; ")
}

func TestAggregates(t *testing.T) {
	for _, c := range []struct{ text, columns, aggregates, form string }{
		{"busy(x, count(), sum(a), min(a)) :- pay(x, y, a), a > 10, x != y  window 10m slide 1m.",
			"x", `0 - 0 "count()" 1:9; 2 a 0 "sum(a)" 1:18; 4 a 0 "min(a)" 1:26`,
			"busy(v0, count(), sum(v1), min(v1)) :- <pay>(v0, v2, v1), v1 > 10, v0 != v2 window 10m slide 1m."},
		{"q(count ( ), y, max(\n a ), x, count( distinct% c\n b)) :- r(x, y, a, b)",
			"y x", `0 - 0 "count()" 1:3; 5 a 0 "max(a)" 1:17; 1 b 0 "count(distinct b)" 2:10`,
			"q(v0, v1, count(), max(v2), count(distinct v3)) :- <r>(v1, v0, v2, v3)."},
		{"n(count()) :- r(_).", "", `0 - 0 "count()" 1:3`, "n(count()) :- <r>(_)."},
		{"q(topk( a ,003 ), avg(a), topk(a, 4)) :- r(a)", "",
			`6 a 3 "topk(a, 3)" 1:3; 3 a 0 "avg(a)" 1:19; 6 a 4 "topk(a, 4)" 1:27`,
			"q(topk(v0, 3), avg(v0), topk(v0, 4)) :- <r>(v0)."},
		{"sum(x, sum(x)) :- count(x, distinct), distinct > 3 set semiring count",
			"x", `2 x 0 "sum(x)" 1:8`, "sum(v0, sum(v0)) :- <count>(v0, v1), v1 > 3 set."},
		{"q(count, sum, count(distinct distinct)) :- r(count, sum, distinct)",
			"count sum", `1 distinct 0 "count(distinct distinct)" 1:15`,
			"q(v0, v1, count(distinct v2)) :- <r>(v0, v1, v2)."},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := strings.Join(q.Columns, " "); got != c.columns || shown(q) != c.aggregates {
			t.Errorf("%q:\n got %s; %s\nwant %s; %s", c.text, got, shown(q), c.columns, c.aggregates)
		}
		form := q.Canonical()
		if form != c.form {
			t.Errorf("%q:\n got %s\nwant %s", c.text, form, c.form)
		}
		if again, err := Parse(form); err != nil || again.Canonical() != form {
			t.Errorf("%q: %s does not parse back: %v", c.text, form, err)
		}
	}
}

func TestSemirings(t *testing.T) {
	for _, c := range []struct{ text, semiring, form string }{
		{"reach(x, z) :- road(x, y)@, road(y, z)@  semiring minplus.  % c", "minplus",
			"reach(v0, v1) :- <road>(v0, v2)@, <road>(v2, v1)@ semiring minplus."},
		{"q(x) :- r(x) @ [10m slide 1m], s(x)[last 3], t(x)@[all] semiring maxplus window 1h", "maxplus",
			"q(v0) :- <r>(v0)@[10m slide 1m], <s>(v0)[last 3], <t>(v0)@[all] semiring maxplus window 1h."},
		{"q() :- r(x)@ set semiring access(public<internal % c\n < \"top secret\")", `access(public < internal < "top secret")`,
			`q() :- <r>(v0)@ semiring access(public < internal < "top secret") set.`},
		{"q(x) :- r(x)@ semiring cap ( 010 )", "cap(10)", "q(v0) :- <r>(v0)@ semiring cap(10)."},
		{"q(x) :- r(x)@ semiring topk(3) last 4", "topk(3)", "q(v0) :- <r>(v0)@ semiring topk(3) last 4."},
		{"q(x) :- r(x)@ semiring why*topk( 3 )*bool set", "why * topk(3) * bool", "q(v0) :- <r>(v0)@ semiring why * topk(3) * bool set."},
		{"q(x) :- r(x) semiring why", "why", "q(v0) :- <r>(v0) semiring why."},
		{"q(x) :- r(x)@ semiring of_mine set", "of_mine", "q(v0) :- <r>(v0)@ semiring of_mine set."},
		{"q(x) :- r(x)@ semiring set set", "set", "q(v0) :- <r>(v0)@ semiring set set."},
		{"q(x) :- r(x) semiring count", "", "q(v0) :- <r>(v0)."},
		{"q(x) :- r(x) semiring bool", "", "q(v0) :- <r>(v0) distinct."},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		form := q.Canonical()
		if q.Semiring != c.semiring || form != c.form {
			t.Errorf("%q:\n got %q, %s\nwant %q, %s", c.text, q.Semiring, form, c.semiring, c.form)
		}
		if again, err := Parse(form); err != nil || again.Canonical() != form || again.Semiring != q.Semiring {
			t.Errorf("%q: %s does not parse back: %v", c.text, form, err)
		}
	}
}

func TestAnnotationErrors(t *testing.T) {
	for _, c := range []struct {
		text, at string
		is       error
		says     string
	}{
		{"q(x, sum(a)) :- r(x)", "1:6", errs.ErrSyntax, `variable "a" of sum`},
		{"q(x,\n count(distinct a)) :- r(x)", "2:2", errs.ErrSyntax, `variable "a" of count`},
		{"q(sum(a), b) :- r(a)", "1:11", errs.ErrSyntax, `head variable "b"`},
		{"q(x, count(x)) :- r(x)", "1:12", errs.ErrUnsupported, `count of "x": count()`},
		{"q(x, count(*)) :- r(x)", "1:12", errs.ErrUnsupported, `count of "*": count()`},
		{"q(x, count(distinct)) :- r(x)", "1:20", errs.ErrSyntax, "a variable should come"},
		{"q(x, count(3)) :- r(x)", "1:12", errs.ErrSyntax, `"distinct" or ")"`},
		{"q(x, count(", "1:12", errs.ErrSyntax, "text ends"},
		{"q(x, sum()) :- r(x)", "1:10", errs.ErrSyntax, "a variable should come"},
		{"q(x, sum(_)) :- r(x)", "1:10", errs.ErrSyntax, "anonymous"},
		{"q(x, sum(3)) :- r(x)", "1:10", errs.ErrUnsupported, "aggregate of a constant"},
		{"q(x, sum(true)) :- r(x)", "1:10", errs.ErrUnsupported, "aggregate of a constant"},
		{"q(x, sum(x + 1)) :- r(x)", "1:12", errs.ErrUnsupported, "arithmetic (+)"},
		{"q(x, sum(abs(x))) :- r(x)", "1:10", errs.ErrUnsupported, `function "abs"`},
		{"q(x, sum(x, x)) :- r(x)", "1:11", errs.ErrSyntax, `")" after the aggregate`},
		{"q(x, sum(distinct x)) :- r(x)", "1:19", errs.ErrSyntax, `")" after the aggregate`},
		{"q(x, sum(x) :- r(x)", "1:13", errs.ErrSyntax, `"," or ")"`},
		{"q(x, topk(x)) :- r(x)", "1:12", errs.ErrSyntax, `"," and the number`},
		{"q(x, topk(x,)) :- r(x)", "1:13", errs.ErrSyntax, "the number of values should come"},
		{"q(x, topk(x, 0)) :- r(x)", "1:14", errs.ErrSyntax, `topk wants a positive number, not "0"`},
		{"q(x, topk(x, 2147483648)) :- r(x)", "1:14", errs.ErrSyntax, "a positive number"},
		{"q(x, topk(x, 1048577)) :- r(x)", "1:14", errs.ErrSyntax, "whole number from 1 to 1048576"},
		{"q(x, topk(x, y)) :- r(x)", "1:14", errs.ErrSyntax, "a positive number"},
		{"q(x, median(x)) :- r(x)", "1:6", errs.ErrUnsupported, `aggregate "median"`},
		{"q(x, Sum(x)) :- r(x)", "1:6", errs.ErrUnsupported, `aggregate "Sum"`},
		{"q(sum(x), x, sum( x )) :- r(x)", "1:14", errs.ErrSyntax, "aggregate sum(x) stands twice"},
		{"q(sum(x), x, x) :- r(x)", "1:14", errs.ErrSyntax, `variable "x" stands twice`},
		{"q(x) :- r(x, count())", "1:14", errs.ErrUnsupported, `function "count"`},
		{"q(x) :- r(x), count() > 3", "1:21", errs.ErrSyntax, "an atom needs an argument"},

		{"q(x, sum(a)) :- r(x, a) distinct", "1:25", errs.ErrUnsupported, "aggregates together with distinct"},
		{"q(x, sum(a)) :- r(x, a) semiring bool", "1:25", errs.ErrUnsupported, "aggregates together with distinct"},
		{"q(x, sum(a)) :- r(x, a) set semiring minplus", "1:29", errs.ErrUnsupported, "aggregates together with semiring minplus"},
		{"q(x) :- r(x) distinct semiring minplus", "1:23", errs.ErrSyntax, "semiring minplus contradicts distinct"},
		{"q(x) :- r(x) semiring minplus distinct", "1:31", errs.ErrSyntax, "semiring minplus contradicts distinct"},
		{"q(x) :- r(x) semiring minplus semiring why", "1:31", errs.ErrSyntax, "twice"},
		{"q(x) :- r(x), s(x)@", "1:19", errs.ErrSyntax, "which counting does not read: name a semiring"},
		{"q(x) :- r(x)@, s(x)@ semiring count", "1:13", errs.ErrSyntax, "which counting does not read"},
		{"q(x) :- r(x)@ distinct", "1:13", errs.ErrSyntax, "which distinct does not read"},
		{"q(x) :- r(x)@ semiring bool", "1:13", errs.ErrSyntax, "which distinct does not read"},
		{"q(x, sum(a)) :- r(x, a)@", "1:24", errs.ErrSyntax, "which aggregates do not read"},
		{"reach(x, z) :- road(x, y)[10m]@, road(y, z) semiring minplus", "1:31", errs.ErrSyntax, "@ of an atom stands before its window"},
		{"q(x) :- r(x)@@ semiring minplus", "1:14", errs.ErrSyntax, "end of the rule"},
		{"q(x)@ :- r(x) semiring minplus", "1:5", errs.ErrSyntax, `":-"`},

		{"q(x) :- r(x) semiring access", "1:23", errs.ErrSyntax, "access"},
		{"q(x) :- r(x) semiring access()", "1:23", errs.ErrSyntax, "access"},
		{"q(x) :- r(x) semiring access(a, b)", "1:23", errs.ErrSyntax, "access"},
		{"q(x) :- r(x) semiring access(a < b < a)", "1:23", errs.ErrSyntax, "access"},
		{"q(x) :- r(x) semiring access(a < b", "1:35", errs.ErrSyntax, `")" after the parameters`},
		{`q(x) :- r(x) semiring access(a < "b\q")`, "1:36", errs.ErrSyntax, `unknown escape \q`},
		{`q(x) :- r(x) semiring access(a < "b"@en)`, "1:34", errs.ErrSyntax, "a plain string"},
		{"q(x) :- r(x) semiring cap", "1:23", errs.ErrSyntax, "cap"},
		{"q(x) :- r(x) semiring cap(0)", "1:23", errs.ErrSyntax, "cap"},
		{"q(x) :- r(x) semiring cap(-1)", "1:23", errs.ErrSyntax, "cap"},
		{"q(x) :- r(x) semiring topk(a)", "1:23", errs.ErrSyntax, "topk"},
		{"q(x) :- r(x) semiring minplus(3)", "1:23", errs.ErrSyntax, "minplus"},
		{"q(x) :- r(x) semiring 3", "1:23", errs.ErrSyntax, "name of a semiring"},
		{"q(x) :- r(x) semiring why *", "1:28", errs.ErrSyntax, "name of a semiring"},
		{"q(x) :- r(x) semiring of_mine(3)", "1:23", errs.ErrSyntax, `"of_mine" takes no argument`},
		{"q(x) :- r(x) semiring sum", "1:23", errs.ErrSyntax, "sum is an aggregate"},
		{"q(x) :- r(x) semiring why * bool(3)", "1:23", errs.ErrSyntax, `"bool" takes no argument`},
	} {
		q, err := Parse(c.text)
		if q != nil || !errors.Is(err, c.is) {
			t.Errorf("%q: got %v, want %v", c.text, err, c.is)
			continue
		}
		if !strings.HasPrefix(err.Error(), c.at+": ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %q, want %s and %q", c.text, err, c.at, c.says)
		}
	}
}
