package rule

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

func TestCanonicalForm(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"running example",
			"replies(x, y, v, z, w) :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).",
			`replies(v0, v1, v2, v3, v4) :- <hasCreator>(v2, v0), <hasCreator>(v3, v1), <hasReply>(v2, v3), <likedBy>(v3, v4).`},
		{"constants and anonymous variables",
			`people(n) :- name("p17", n), age("p17", 42), knows(_, "p17").`,
			`people(v0) :- <name>("p17", v0), <age>("p17", 42), <knows>(_, "p17").`},
		{"no dot, comments, comparisons",
			"% first\nq(x,y) # head\n :- pay(x,y,a), a>10, x!=y % end",
			`q(v0, v1) :- <pay>(v0, v1, v2), v2 > 10, v0 != v1.`},
		{"empty head", "q() :- r(x, x).", "q() :- <r>(v0, v0)."},
		{"every kind of constant",
			`q(x) :- r(x, -1, +2, 1.5, 1e3, true, false, <http://a/b>, _:b1, "x"@EN-GB, "x"^^<d>, "\u00e9\n", "7"^^<http://www.w3.org/2001/XMLSchema#integer>)`,
			`q(v0) :- <r>(v0, -1, 2, "1.5E0"^^<http://www.w3.org/2001/XMLSchema#double>, "1.0E3"^^<http://www.w3.org/2001/XMLSchema#double>, true, false, <http://a/b>, _:b1, "x"@en-gb, "x"^^<d>, "é\n", 7).`},
		{"integer beyond int64", "q(x) :- r(x, 0099999999999999999999)",
			`q(v0) :- <r>(v0, "99999999999999999999"^^<http://www.w3.org/2001/XMLSchema#integer>).`},
		{"relation by IRI", "q(x) :- <http://a/p>(x, y), <r>(y)", "q(v0) :- <http://a/p>(v0, v1), <r>(v1)."},
		{"operators without blanks", "q(x) :- r(x,y,z,w), x<y, z>w, x<=-5, x=<a>, <b>!=y.",
			"q(v0) :- <r>(v0, v1, v2, v3), v0 < v1, v2 > v3, v0 <= -5, v0 = <a>, <b> != v1."},
		{"number before the dot", "q(x) :- r(x), x >= 10.", "q(v0) :- <r>(v0), v0 >= 10."},
		{"options", "q(x) :- r(x) set semiring bool.", "q(v0) :- <r>(v0) distinct set."},
		{"counting is the default", "q(x) :- r(x) semiring count", "q(v0) :- <r>(v0)."},
		{"distinct twice over", "q(x) :- r(x) distinct semiring bool", "q(v0) :- <r>(v0) distinct."},
		{"option words as variables", "q(set) :- r(set, last), last < set", "q(v0) :- <r>(v0, v1), v1 < v0."},
		{"letters of any script", "réponse(é) :- été(é, _x)", "réponse(v0) :- <été>(v0, v1)."},
		{"byte order mark", "\ufeffq(x) :- r(x)", "q(v0) :- <r>(v0)."},
		{"window", "q(x) :- r(x) window 600s", "q(v0) :- <r>(v0) window 10m."},
		{"window with a slide", "q(x) :- r(x)\n window PT1H30M slide 0.5m % c", "q(v0) :- <r>(v0) window 1h30m slide 30s."},
		{"slide greater than the window", "q(x) :- r(x) window 1s slide 1d.", "q(v0) :- <r>(v0) window 1s slide 24h."},
		{"count window", "q(x) :- r(x), x > 3 last 005.", "q(v0) :- <r>(v0), v0 > 3 last 5."},
		{"window among options", "q(x) :- r(x) set window 1w distinct .", "q(v0) :- <r>(v0) distinct set window 168h."},
		{"the longest window", "q(x) :- r(x) window 9223372036854775807ns", "q(v0) :- <r>(v0) window 2562047h47m16.854775807s."},
		{"windows of atoms",
			"q(x) :- r(x)[10m], s(x) [ 1d slide PT1H ], t(x)[last 7], u(x)[all], r(x) window 1m.",
			"q(v0) :- <r>(v0)[10m], <s>(v0)[24h slide 1h], <t>(v0)[last 7], <u>(v0)[all], <r>(v0) window 1m."},
		{"windows of atoms, none of the query", "q(x) :- r(x)[last% c\n3], s(x), t(x)[all].", "q(v0) :- <r>(v0)[last 3], <s>(v0), <t>(v0)[all]."},
		{"own window as that of the query", "q(x) :- r(x)[10m], s(x)[10m slide 1s] window 10m", "q(v0) :- <r>(v0), <s>(v0)[10m slide 1s] window 10m."},
		{"window words as names", "window(last, slide) :- all(last, slide)[all], last(slide) last 2",
			"window(v0, v1) :- <all>(v0, v1)[all], <last>(v1) last 2."},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := q.Canonical(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		again, err := Parse(q.Canonical())
		if err != nil || again.Canonical() != q.Canonical() {
			t.Errorf("%s: the canonical form does not parse back: %v", c.name, err)
		}
		if q.Text != c.text {
			t.Errorf("%s: text is %q", c.name, q.Text)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		text, at string
		is       error
		says     string
	}{
		{"", "1:1", errs.ErrSyntax, "name of the head"},
		{"% only a comment\n", "2:1", errs.ErrSyntax, "name of the head"},
		{"q", "1:2", errs.ErrSyntax, `"("`},
		{"q(x)", "1:5", errs.ErrSyntax, `":-"`},
		{"q(x) :- ", "1:9", errs.ErrSyntax, "a variable or a constant"},
		{"q(x) :- .", "1:9", errs.ErrSyntax, "a variable or a constant"},
		{"q(x) :- x > 3.", "1:1", errs.ErrSyntax, "no atom"},
		{"q(x) :- r(y).", "1:3", errs.ErrSyntax, `head variable "x"`},
		{"q(x,\n y, x) :- r(x, y)", "2:5", errs.ErrSyntax, `variable "x" stands twice`},
		{"q(x) :- r(x),\n  y > 3", "2:3", errs.ErrSyntax, `variable "y" of a comparison`},
		{"q(_) :- r(x)", "1:3", errs.ErrSyntax, "anonymous"},
		{"q(x) :- r(x), _ > 3", "1:15", errs.ErrSyntax, "anonymous"},
		{"q(x) :- r(x), 3 < _", "1:19", errs.ErrSyntax, "anonymous"},
		{"q(x) :- r()", "1:11", errs.ErrSyntax, "needs an argument"},
		{"q(x) :- r(x", "1:12", errs.ErrSyntax, `text ends where "," or ")"`},
		{"q(x) :- r(x y)", "1:13", errs.ErrSyntax, `"y"`},
		{"q(x) :- r(x),", "1:14", errs.ErrSyntax, "text ends"},
		{`q(x) :- r(x, "é`, "1:14", errs.ErrSyntax, "not closed"},
		{`q(x) :- r("é\q", x)`, "1:13", errs.ErrSyntax, `unknown escape \q`},
		{"q(x) :- r(x, 'a')", "1:14", errs.ErrSyntax, "a variable or a constant"},
		{"q(x) :- r(x, <a b>)", "1:16", errs.ErrSyntax, "in IRI"},
		{"q(x) :- r(x, _:)", "1:16", errs.ErrSyntax, "needs a label"},
		{`q(x) :- r(x, "a"@1)`, "1:18", errs.ErrSyntax, "language tag"},
		{"q(x) :- r(x, 10m)", "1:16", errs.ErrSyntax, "a number cannot end"},
		{"q(x) :- r(x, 1e999)", "1:14", errs.ErrSyntax, "out of range"},
		{"q(x) :- <>(x)", "1:9", errs.ErrSyntax, "needs a name"},
		{"q(x) :- r(x). r", "1:15", errs.ErrSyntax, "end of the rule"},
		{"q(x) :- r(x) wibble", "1:14", errs.ErrSyntax, `"wibble"`},
		{"q(x) :- r(x) distinct distinct", "1:23", errs.ErrSyntax, "twice"},
		{"q(x) :- r(x) distinct semiring count", "1:23", errs.ErrSyntax, "contradicts"},
		{"q(x) :- r(x) semiring count distinct", "1:29", errs.ErrSyntax, "contradicts"},
		{"q(x) :- r(x) semiring", "1:22", errs.ErrSyntax, "name of a semiring"},
		{"q(x) :- r(x), é\xff", "1:16", errs.ErrSyntax, "not UTF-8"},
		{"q(x) :- r(x) window", "1:20", errs.ErrSyntax, "text ends where a span of time"},
		{"q(x) :- r(x) window .", "1:21", errs.ErrSyntax, "a span of time should come"},
		{"q(x) :- r(x)\n window 10", "2:9", errs.ErrSyntax, `window: "10" is not a span of time`},
		{"q(x) :- r(x) window 0m", "1:21", errs.ErrSyntax, `the span "0m" is not positive`},
		{"q(x) :- r(x) window -5m", "1:21", errs.ErrSyntax, "not a span of time"},
		{"q(x) :- r(x) window PT0S", "1:21", errs.ErrSyntax, "not positive"},
		{"q(x) :- r(x) window 106752d", "1:21", errs.ErrSyntax, "longer than int64 nanoseconds"},
		{"q(x) :- r(x) window 1h slide 0s", "1:30", errs.ErrSyntax, "slide: the span"},
		{"q(x) :- r(x) window 1h slide", "1:29", errs.ErrSyntax, "text ends where a span of time"},
		{"q(x) :- r(x) window 1h, s(x)", "1:23", errs.ErrSyntax, "end of the rule"},
		{"q(x) :- r(x) slide 1m", "1:14", errs.ErrSyntax, "slide stands behind"},
		{"q(x) :- r(x) window 1h set slide 1m", "1:28", errs.ErrSyntax, "slide stands behind"},
		{"q(x) :- r(x) slide 1m window 10m", "1:14", errs.ErrSyntax, "slide stands behind"},
		{"q(x) :- r(x) window 1h slide 1m slide 1m", "1:33", errs.ErrSyntax, "slide stands behind"},
		{"q(x) :- r(x) window 1h window 1h", "1:24", errs.ErrSyntax, "option window is given twice"},
		{"q(x) :- r(x) last 5 last 5", "1:21", errs.ErrSyntax, "option last is given twice"},
		{"q(x) :- r(x) window 1h last 5", "1:24", errs.ErrSyntax, "not both"},
		{"q(x) :- r(x) last 5 window 1h", "1:21", errs.ErrSyntax, "not both"},
		{"q(x) :- r(x) last 5 slide 1h", "1:21", errs.ErrSyntax, "slide stands behind"},
		{"q(x) :- r(x) last", "1:18", errs.ErrSyntax, "text ends where a number"},
		{"q(x) :- r(x) last 0", "1:19", errs.ErrSyntax, `a positive number, not "0"`},
		{"q(x) :- r(x) last -1", "1:19", errs.ErrSyntax, "a positive number"},
		{"q(x) :- r(x) last +1", "1:19", errs.ErrSyntax, "a positive number"},
		{"q(x) :- r(x) last 1.5", "1:19", errs.ErrSyntax, "a positive number"},
		{"q(x) :- r(x) last 9223372036854775808", "1:19", errs.ErrSyntax, "a positive number"},
		{"q(x) :- r(x)[]", "1:14", errs.ErrSyntax, "a span of time should come"},
		{"q(x) :- r(x)[", "1:14", errs.ErrSyntax, "text ends where a span of time"},
		{"q(x) :- r(x)[10m", "1:17", errs.ErrSyntax, `text ends where "]"`},
		{"q(x) :- r(x)[10m, s(x)", "1:17", errs.ErrSyntax, `"]" after the window`},
		{"q(x) :- r(x)[\n0m]", "2:1", errs.ErrSyntax, "not positive"},
		{"q(x) :- r(x)[last]", "1:18", errs.ErrSyntax, "a number of contributions"},
		{"q(x) :- r(x)[last 0]", "1:19", errs.ErrSyntax, "a positive number"},
		{"q(x) :- r(x)[all slide 1m]", "1:18", errs.ErrSyntax, `"]" after the window`},
		{"q(x) :- r(x)[last 5 slide 1m]", "1:21", errs.ErrSyntax, `"]" after the window`},
		{"q(x) :- r(x)[10m slide 0s]", "1:24", errs.ErrSyntax, "slide: the span"},
		{"q(x) :- r(x)[10m slide 1m slide 1m]", "1:27", errs.ErrSyntax, `"]" after the window`},
		{"q(x) :- r(x)[10m][10m]", "1:18", errs.ErrSyntax, "end of the rule"},
		{"q(x) :- r(x)[10m) ]", "1:17", errs.ErrSyntax, `"]" after the window`},
		{"q(x) :- r(x)[window 10m]", "1:14", errs.ErrSyntax, "not a span of time"},
		{"q(x)[10m] :- r(x)", "1:5", errs.ErrSyntax, `":-"`},
		{"q(x, 3) :- r(x)", "1:6", errs.ErrUnsupported, "constant in the head"},
		{"q(true) :- r(x)", "1:3", errs.ErrUnsupported, "constant in the head"},
		{"q(_:b) :- r(x)", "1:3", errs.ErrUnsupported, "constant in the head"},
		{"q(x) :- r(x), not s(x)", "1:15", errs.ErrUnsupported, "negation"},
		{"q(x) :- r(x), !s(x)", "1:15", errs.ErrUnsupported, "negation"},
		{`q(x) :- r(x), \+ s(x)`, "1:15", errs.ErrUnsupported, "negation"},
		{"path(x, y) :- edge(x, z), path(z, y)", "1:27", errs.ErrUnsupported, "recursion"},
		{"q(x) :- r(x). q(x) :- s(x).", "1:15", errs.ErrUnsupported, "second rule"},
		{"q(x) :- r(x); s(x)", "1:13", errs.ErrUnsupported, "disjunction"},
		{"q(x) :- r(x), x + 1 < 3", "1:17", errs.ErrUnsupported, "arithmetic"},
		{"q(x) :- r(x), 3 < x * 2", "1:21", errs.ErrUnsupported, "arithmetic"},
		{"q(x) :- r(x), x < abs(x)", "1:19", errs.ErrUnsupported, `function "abs"`},
		{"q(x) :- r(x), 1 < 2", "1:15", errs.ErrUnsupported, "without a variable"},
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

func TestVariables(t *testing.T) {
	q, err := Parse("q(y, x) :- r(x, _, y, _), s(z).")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%q %v %q", q.Vars, q.Head, q.Columns); got != `["y" "x" "" "" "z"] [0 1] ["y" "x"]` {
		t.Errorf("variables, head, columns: %s", got)
	}
	if q.Name != "q" || q.HeadPos != (query.Pos{Line: 1, Col: 1}) || q.Atoms[1].Pos != (query.Pos{Line: 1, Col: 27}) {
		t.Errorf("name %q, head at %v, second atom at %v", q.Name, q.HeadPos, q.Atoms[1].Pos)
	}
}

// TestLanguageTags is TERM-03: the letter case of a tag makes no difference.
func TestLanguageTags(t *testing.T) {
	q, err := Parse(`q(x) :- r(x, "chat"@en), r(x, "chat"@En), r(x, "chat"@fr), r(x, "chat")`)
	if err != nil {
		t.Fatal(err)
	}
	c := func(i int) term.Term { return q.Atoms[i].Args[1].Const }
	if c(0) != c(1) || c(0) == c(2) || c(0) == c(3) || c(3) != term.String("chat") {
		t.Errorf("constants: %v %v %v %v", c(0), c(1), c(2), c(3))
	}
}

// TestLarge is QRY-05: large texts are read exactly and quickly, or refused.
func TestLarge(t *testing.T) {
	atoms := func(n int) string {
		var sb strings.Builder
		sb.WriteString("q(x0) :- ")
		for i := range n {
			if i > 0 {
				sb.WriteString(", ")
			}
			fmt.Fprintf(&sb, "r(x%d, x%d)", i, i+1)
		}
		return sb.String()
	}
	q, err := Parse(atoms(10_000))
	if err != nil || len(q.Atoms) != 10_000 || len(q.Vars) != 10_001 {
		t.Errorf("10,000 atoms: %v", err)
	}
	if _, err := Parse(atoms(query.MaxAtoms + 1)); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("too many atoms: %v", err)
	}
	big := strings.Repeat("x", 1<<20)
	q, err = Parse(`q(x) :- r(x, "` + big + `").`)
	if err != nil || q.Atoms[0].Args[1].Const != term.String(big) {
		t.Errorf("1 MiB constant: %v", err)
	}
	for _, deep := range []string{"(", "q(", "q(x) :- (", "<", "!", "{"} {
		if _, err := Parse("q(x) :- r(x), " + strings.Repeat(deep, 1<<20)); err == nil {
			t.Errorf("%q over and over was accepted", deep)
		} else if len(err.Error()) > 300 {
			t.Errorf("%q over and over: the message has %d bytes", deep, len(err.Error()))
		}
	}
}

// TestLargeSemirings: the message of a long semiring is short.
func TestLargeSemirings(t *testing.T) {
	for _, deep := range []string{"(", "access(a < ", "access(", "a < ", "a*", "\"b\"<", "é", "cap(3)", "<"} {
		for _, start := range []string{"", "access(", "cap(", "access(a < ", "minplus "} {
			for _, end := range []string{"", ")", "cap(0)", "a < a)", "a)"} {
				_, err := Parse("q(x) :- r(x) semiring " + start + strings.Repeat(deep, 1<<12) + end)
				if err == nil && deep != "é" {
					t.Errorf("%q, %q over and over and %q was accepted", start, deep, end)
				} else if err != nil && len(err.Error()) > 300 {
					t.Errorf("%q, %q over and over and %q: the message has %d bytes: %.200v", start, deep, end, len(err.Error()), err)
				}
			}
		}
	}
}

// TestCutTexts reads every beginning of some texts; none may panic.
func TestCutTexts(t *testing.T) {
	for _, text := range []string{
		"q(é) :- r(é, -1.5e+3, _, _:b.c, \"a\\u00e9\\n\"@en-gb, true), <s>(é, y), é <= y, 2 != y semiring bool set. % c",
		"q(x) :- r(x)[10m slide 1.5s], s(x)[last 5], t(x)[all] window PT1H slide 0.5m.", "q(x) :- r(x) last 100.",
		"q(count(), count(distinct x), sum(a), topk(a, 12)) :- r(x, a)[1m]", "q(x)  :- r(x)@[1m] semiring access(a < \"b\\n\"@en, 3) * why.",
		"q() :- r(x, 1e-", "q() :- r(x, 1.", "q() :- r(x, -", "q() :- r(x), not",
	} {
		for n := range len(text) + 1 {
			_, err := Parse(text[:n])
			if err != nil && !errors.Is(err, errs.ErrSyntax) && !errors.Is(err, errs.ErrUnsupported) {
				t.Fatalf("%q: %v", text[:n], err)
			}
		}
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{
		"replies(x, y, v) :- hasCreator(v, x), hasReply(v, y).",
		`people(n) :- name("p17", n), age("p17", 42), knows(_, "p17"), n != "x"@en distinct set.`,
		"q() :- <http://a/p>(x, _:b, -1.5e3, true), x<=<y>, x > 10. % c",
		"q(x) :- r(x)[10m slide P1DT12H], s(x)[last 5], t(x)[all] set window 1h30m slide 1.5s", "q(x) :- r(x)[2d], s(x) last 007.",
		"q(x) :- r(x) semiring bool", "q(x) :- r(x)@ window 10m slide 1m", `q(x) :- r(x, "é\u00e9\"`,
		"busy(x, count(), sum( a), topk(a,3), count(distinct a), avg(a), min(a), max(a)) :- pay(x, y, a), x != y window 10m.",
		"n(count()) :- r(_)[last 3]", "reach(x, z) :- road(x, y)@[10m], road(y, z) @ set semiring minplus % c\n.",
		`q() :- r(x)@ semiring access ( public<"a b" % c` + "\n<c)", "q(x) :- r(x)@ semiring cap(010)", "q(x) :- r(x)@ semiring mine last 2",
		"q(x) :- r(x)@ semiring why * topk(3)", "q(sum(x), x) :- r(x) semiring count",
		"q(x) :- q(x), not r(x); s(x + 1)", "q(x, count()) :- r(x, 99999999999999999999). q",
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
		for i := range q.Atoms {
			if q.Atoms[i].Annotated != again.Atoms[i].Annotated {
				t.Fatalf("%q: atom %d is annotated: %v, read back %v", text, i, q.Atoms[i].Annotated, !q.Atoms[i].Annotated)
			}
			if w := q.Atoms[i].Window; w != again.Atoms[i].Window || w.Check() != nil {
				t.Fatalf("%q: atom %d sees %v, read back %v", text, i, w, again.Atoms[i].Window)
			}
		}
		if again.Semiring != q.Semiring || again.Distinct != q.Distinct || len(again.Aggregates) != len(q.Aggregates) {
			t.Fatalf("%q: %s reads back with another annotation", text, form)
		}
	})
}

// FuzzSpan writes and reads positive spans, and reads texts: what is read is
// positive and is read back from how it is written.
func FuzzSpan(f *testing.F) {
	for _, ns := range []int64{1, 999, 1_001, 60e9, 3600e9, 3600e9 + 1, 36_610e8, 86_400e9, math.MaxInt64, math.MaxInt64 - 7} {
		f.Add(ns, "P1DT12H")
	}
	for _, s := range []string{"1h30m", "1.5s", "0.000000001s", "10\u00b5s", "1w2d3h4m5s6ms7us8ns", "PT0.5S", "1e3s", "-1m", "0d"} {
		f.Add(int64(1), s)
	}
	f.Fuzz(func(t *testing.T, ns int64, text string) {
		back := func(ns int64) {
			if again, err := query.ParseSpan(query.FormatSpan(ns)); again != ns || err != nil {
				t.Fatalf("%d is written %q and read as %d, %v", ns, query.FormatSpan(ns), again, err)
			}
		}
		if ns > 0 {
			back(ns)
		}
		if ns, err := query.ParseSpan(text); err == nil {
			if ns <= 0 {
				t.Fatalf("%q is read as %d", text, ns)
			}
			back(ns)
		}
	})
}

// TestWindowsOfAtoms checks which window each atom sees, and which is its own.
func TestWindowsOfAtoms(t *testing.T) {
	const m = int64(60e9)
	for _, c := range []struct {
		text string
		want []query.Window
		own  string // a mark for each atom
	}{
		{"q(x) :- r(x), s(x)", []query.Window{{}, {}}, ".."},
		{"q(x) :- r(x), s(x) window 10m slide 1m", []query.Window{{Range: 10 * m, Slide: m}, {Range: 10 * m, Slide: m}}, ".."},
		{"q(x) :- r(x)[5m], s(x), t(x)[all], u(x)[last 2] window 10m",
			[]query.Window{{Range: 5 * m}, {Range: 10 * m}, {}, {Last: 2}}, "o.oo"},
		{"q(x) :- r(x)[5m], s(x), t(x)[5m] last 9", []query.Window{{Range: 5 * m}, {Last: 9}, {Range: 5 * m}}, "o.o"},
		{"q(x) :- r(x)[5m], s(x)", []query.Window{{Range: 5 * m}, {}}, "o."},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		for i, a := range q.Atoms {
			if a.Window != c.want[i] || a.Own != (c.own[i] == 'o') {
				t.Errorf("%q: atom %d sees %+v, own %v", c.text, i, a.Window, a.Own)
			}
		}
	}
}
