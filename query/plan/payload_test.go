package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// describePayload writes a payload with the lifts of the aliases:
// "counted; sum: s.1; -> 0, 0/count, count".
func describePayload(p *Plan) string {
	var b strings.Builder
	if p.Payload.Counted {
		b.WriteString("counted; ")
	}
	for t, k := range p.Payload.Tracks {
		b.WriteString(k.Algebra)
		if k.Everywhere {
			b.WriteString(" everywhere")
		}
		b.WriteString(":")
		for i, a := range p.Aliases {
			for _, l := range a.Lifts {
				if l.Track == t {
					fmt.Fprintf(&b, " %s.%d", p.AliasName(i), l.Col)
				}
			}
		}
		b.WriteString("; ")
	}
	b.WriteString("->")
	for _, o := range p.Payload.Outputs {
		switch {
		case o.Track < 0:
			b.WriteString(" count")
		case o.Average:
			fmt.Fprintf(&b, " %d/count", o.Track)
		default:
			fmt.Fprintf(&b, " %d", o.Track)
		}
	}
	return b.String()
}

func TestPayload(t *testing.T) {
	for _, tc := range []struct{ query, want string }{
		{"q(x) :- r(x, y), s(y)", "counted; ->"},
		{"q(x) :- r(x, y), s(y)\nset", "counted; ->"},
		{"q(x) :- r(x, y), s(y)\ndistinct", "->"},
		{"q(x) :- r(x, y), s(y)\nsemiring count", "counted; ->"},
		{"q(x) :- r(x, y), s(y)\nsemiring bool", "->"},
		{"q(x, count()) :- r(x, y), s(y)", "counted; -> count"},
		// Of two atoms with the variable only the first lifts it.
		{"q(x, sum(y)) :- r(x, y), s(y)", "counted; sum: r.1; -> 0"},
		{"q(x, avg(a)) :- r(x, y), s(7, y, a)", "counted; sum: s.2; -> 0/count"},
		{"q(x, min(a), max(a)) :- r(x, y), s(y, a)", "min: s.1; max: s.1; -> 0 1"},
		{"q(x, distinct(a)) :- r(x, y), s(y, a)", "distinct: s.1; -> 0"},
		// Repeats count, so the other atoms must say how many.
		{"q(x, top(a 3)) :- r(x, y), s(y, a)", "counted; top(3): s.1; -> 0"},
		// Equal aggregates share a track, and a sum is that of the average; other
		// variables and other numbers of values do not.
		{"q(sum(a), count(), avg(a), sum(b), min(b), min(b), top(b 2), top(b 3)) :- r(a, b)",
			"counted; sum: r.0; sum: r.1; min: r.1; top(2): r.1; top(3): r.1; -> 0 count 0/count 1 2 2 3 4"},
		// An output variable may be aggregated.
		{"q(a, max(a)) :- r(a), s(a)", "max: r.0; -> 0"},
		{"q(x) :- r@(x, y), s(y), t@(y, z)\nsemiring minplus", "minplus everywhere: r.2 t.2; -> 0"},
		{"q(x) :- r(x, y), s(y)\nsemiring why", "why everywhere:; -> 0"},
		{"q(x) :- r@(x, y), s(y)\nsemiring cap(10)", "cap(10) everywhere: r.2; -> 0"},
		// Values that are read are a track in the semirings that need none otherwise.
		{"q(x) :- r@(x, y), s(y)", "count everywhere: r.2; -> 0"},
		{"q(x) :- r@(x, y), s(y)\nsemiring count", "count everywhere: r.2; -> 0"},
		{"q(x) :- r@(x, y), s(y)\ndistinct", "bool everywhere: r.2; -> 0"},
		{"q(x) :- r@(x, y), s(y)\nsemiring bool", "bool everywhere: r.2; -> 0"},
	} {
		p, err := Compile(read(t, tc.query))
		if err != nil {
			t.Errorf("%s: %v", tc.query, err)
			continue
		}
		if got := describePayload(p); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.query, got, tc.want)
		}
		for i, a := range p.Aliases {
			if a.Valued != p.Query.Atoms[i].Annotated || a.Direct() && (a.Valued || len(a.Lifts) > 0) {
				t.Errorf("%s: alias %d is %+v", tc.query, i, a)
			}
		}
	}
}

// TestLiftedIsFolded: a variable that is aggregated and in one atom only is folded
// away like any other, and its column is lifted.
func TestLiftedIsFolded(t *testing.T) {
	p, err := Compile(read(t, "q(x, sum(a)) :- r(x, a, y), s(y)"))
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(p, 0); got != "x@0 y@2 -1 f0 v0" || p.Aliases[0].Lifts[0] != (Lift{Track: 0, Col: 1}) {
		t.Errorf("got %s, %+v", got, p.Aliases[0])
	}
}

func TestAggregateUnbound(t *testing.T) {
	q := read(t, "q(x) :- r(x)")
	q.Vars = append(q.Vars, "z")
	q.Aggregates = []query.Aggregate{{Func: query.Sum, Var: 1, Pos: query.Pos{Line: 1, Col: 6}}}
	const want = "1:6: syntax error: aggregated variable z occurs in no atom"
	if _, err := Compile(q); !errors.Is(err, errs.ErrSyntax) || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
