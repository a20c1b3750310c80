package oracle

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/term"
)

// value reads a word of a test: a number, or a plain string.
func value(word string) string {
	if i, err := strconv.ParseInt(word, 10, 64); err == nil {
		return term.Int(i).String()
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil {
		return term.Float(f).String()
	}
	return term.String(word).String()
}

// events reads "+R(a,5) -R(a,5)=7": values stand behind the facts, numbers are
// numbers, all else is a plain string.
func events(text string) (out []Event) {
	for _, f := range strings.Fields(text) {
		fact, val, valued := strings.Cut(f[1:], "=")
		e := Event{Delete: f[0] == '-'}
		for _, a := range atoms(fact) {
			e.Relation = a.Relation
			for _, arg := range a.Args {
				e.Tuple = append(e.Tuple, value(arg.Var))
			}
		}
		if valued {
			e.Value = value(val)
		}
		out = append(out, e)
	}
	return out
}

// body is atoms, of which those that end in @ are annotated.
func body(text string) []Atom {
	var out []Atom
	for _, f := range strings.Fields(text) {
		a := atoms(strings.TrimSuffix(f, "@"))[0]
		a.Annotated = strings.HasSuffix(f, "@")
		out = append(out, a)
	}
	return out
}

// state applies events.
func state(t *testing.T, text string) *Store {
	t.Helper()
	s := new(Store)
	if _, err := s.Apply(events(text), false); err != nil {
		t.Fatal(err)
	}
	return s
}

// show prints rows as "a,b x2: 5 2.5; ...".
func show(rows []Row) string {
	var out []string
	for _, r := range rows {
		var cols, vals []string
		for _, c := range r.Tuple {
			t, _ := term.Parse(c)
			cols = append(cols, t.Lexical())
		}
		for _, v := range r.Values {
			vals = append(vals, showValue(v))
		}
		out = append(out, fmt.Sprintf("%s x%v: %s", strings.Join(cols, ","), r.Multiplicity, strings.Join(vals, " ")))
	}
	return strings.Join(out, "; ")
}

// showValue tells floats by a point or an exponent.
func showValue(v any) string {
	switch v := v.(type) {
	case float64:
		return term.Float(v).Lexical()
	case term.Term:
		return v.String()
	case Number:
		s := v.Exact.RatString()
		if v.Int {
			s += "i"
		}
		if v.Float {
			s += "f"
		}
		return s
	case Overflow:
		return "overflow"
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, showValue(e))
		}
		return "[" + strings.Join(out, " ") + "]"
	}
	return fmt.Sprint(v)
}

// TestAggregates checks aggregates against values worked out by hand.
func TestAggregates(t *testing.T) {
	of := func(list ...Func) (out []Aggregate) {
		for _, f := range list {
			out = append(out, Aggregate{Func: f, Var: "a", K: 2})
		}
		return out
	}
	all := of(Count, CountDistinct, Sum, Avg, TopK)
	for _, tc := range []struct {
		name, facts, body, head string
		aggregates              []Aggregate
		want                    string
	}{
		{"bag", "+P(x,5) +P(x,5) +P(x,2) +P(y,1)", "P(g,a)", "g", all, "x x3: 3 2 12 4f [5 5]; y x1: 1 1 1 1f [1]"},
		{"weights of other atoms", "+P(x,5) +P(x,2) +Q(x) +Q(x) +Q(x)", "P(g,a) Q(g)", "g", all, "x x6: 6 2 21 7/2f [5 5]"},
		{"nullary", "+P(x,5) +P(y,6)", "P(g,a)", "", all, " x2: 2 2 11 11/2f [6 5]"},
		{"nullary, empty", "+P(x,5) -P(x,5)", "P(g,a)", "", all, ""},
		{"floats", "+P(x,0.1) +P(x,0.2) +P(x,0.3)", "P(g,a)", "g", of(Sum, TopK), "x x3: 6.0E-1 [3.0E-1 2.0E-1]"},
		{"a float makes a float", "+P(x,1) +P(x,2.0e0)", "P(g,a)", "g", of(Sum, TopK), "x x2: 3.0E0 [2.0E0 1]"},
		{"floats cancel", "+P(x,1e16) +P(x,1) +P(x,-1e16)", "P(g,a)", "g", of(Sum, Avg), "x x3: 1.0E0 1/3f"},
		{"beyond 2^53", "+P(x,9007199254740993) +P(x,9007199254740992.0)", "P(g,a)", "g", of(Min, Max, TopK),
			`x x2: "9.007199254740992E15"^^<http://www.w3.org/2001/XMLSchema#double> "9007199254740993"^^<http://www.w3.org/2001/XMLSchema#integer> [9007199254740993 9.007199254740992E15]`},
		{"terms", "+P(x,b) +P(x,a) +P(x,7)", "P(g,a)", "g", of(Min, Max, CountDistinct),
			`x x3: "7"^^<http://www.w3.org/2001/XMLSchema#integer> "b" 3`},
		{"sum too large", "+P(x,9223372036854775807) +P(x,1)", "P(g,a)", "g", of(Sum, Avg, Count), "x x2: overflow overflow 2"},
		{"sum that fits again", "+P(x,9223372036854775807) +P(x,1) +P(x,-1)", "P(g,a)", "g", of(Sum), "x x3: 9223372036854775807"},
		{"float too large", "+P(x,1.7e308) +P(x,1.7e308)", "P(g,a)", "g", of(Sum, TopK), "x x2: overflow [1.7E308 1.7E308]"},
		{"equal by value", "+P(x,2) +P(x,2.0e0)", "P(g,a)", "g", of(CountDistinct, TopK), "x x2: 2 [2if 2if]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := Query{Atoms: body(tc.body), Aggregates: tc.aggregates, Head: strings.Fields(tc.head)}
			r, err := q.Rows(state(t, tc.facts))
			if err != nil {
				t.Fatal(err)
			}
			if got := show(r.Rows); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if overflow := strings.Contains(tc.want, "overflow"); overflow && r.Safe || overflow != (len(r.Rows) > 0 && r.Rows[0].Overflows()) {
				t.Errorf("overflow expected: %v; safe: %v", overflow, r.Safe)
			}
		})
	}
}

// TestSetModes checks what set mode and distinct leave of weights.
func TestSetModes(t *testing.T) {
	s := state(t, "+P(x,5)=1 +P(x,5)=1 +P(x,5)=2 +P(x,2)=4")
	sum := []Aggregate{{Func: Sum, Var: "a"}, {Func: Count}}
	for _, tc := range []struct {
		q    Query
		want string
	}{
		{Query{Aggregates: sum}, "x x4: 17 4"},
		{Query{Aggregates: sum, Set: true}, "x x2: 7 2"},
		{Query{Semiring: "int"}, "x x4: 8"},
		{Query{Semiring: "int", Set: true}, "x x2: 7"},
		{Query{Distinct: true}, "x x1: "},
		{Query{Semiring: "bool"}, "x x1: "},
		{Query{Semiring: "count"}, "x x4: "},
	} {
		tc.q.Head, tc.q.Atoms = []string{"g"}, body("P(g,a)")
		tc.q.Atoms[0].Annotated = tc.q.Semiring == "int"
		r, err := tc.q.Rows(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(r.Rows); got != tc.want {
			t.Errorf("%+v: got %s, want %s", tc.q, got, tc.want)
		}
	}
}

// TestMinUnderDeletes is case SEM-16.
func TestMinUnderDeletes(t *testing.T) {
	s := state(t, "+R(a,5) +R(a,3) +R(a,3)")
	q := Query{Head: []string{"x"}, Atoms: body("R(x,w)"), Aggregates: []Aggregate{{Func: Min, Var: "w"}}}
	for _, tc := range []struct {
		events string
		want   any // nil for no group
		err    error
	}{
		{"", term.Int(3), nil},
		{"-R(a,3)", term.Int(3), nil},
		{"-R(a,7)", term.Int(3), ErrNoSuchFact},
		{"-R(a,3)", term.Int(5), nil},
		{"-R(a,5)", nil, nil},
	} {
		if _, err := s.Apply(events(tc.events), false); !errors.Is(err, tc.err) {
			t.Fatalf("%s: got error %v, want %v", tc.events, err, tc.err)
		}
		r, err := q.Rows(s)
		if err != nil || (len(r.Rows) == 0) != (tc.want == nil) {
			t.Fatalf("%s: got %v, error %v", tc.events, r, err)
		}
		if tc.want != nil && !SameValue(tc.want, r.Rows[0].Values[0]) {
			t.Errorf("%s: got %v, want %v", tc.events, r.Rows[0].Values, tc.want)
		}
	}
}

// TestCountsTooLarge is case SEM-08.
func TestCountsTooLarge(t *testing.T) {
	q := Query{Head: []string{"x"}, Atoms: body("R(x,p) R(x,q) R(x,r) R(x,s)")}
	for _, tc := range []struct {
		copies   int
		want     string
		overflow bool
	}{{55108, "9222710978872688896", false}, {55109, "9223380425197538161", true}, {65536, "18446744073709551616", true}} {
		s := new(Store)
		for range tc.copies {
			s.live = append(s.live, contribution{relation: "R", tuple: []string{"a", "b"}})
		}
		r, err := q.Rows(s)
		if err != nil || len(r.Rows) != 1 {
			t.Fatalf("got %v, error %v", r, err)
		}
		if got := r.Rows[0]; got.Multiplicity.String() != tc.want || got.Overflows() != tc.overflow || r.Safe {
			t.Errorf("%d copies: got %+v, safe: %v; want %s", tc.copies, got, r.Safe, tc.want)
		}
	}
}

// TestSemirings checks annotations against values worked out by hand.
func TestSemirings(t *testing.T) {
	const fuzzyPath = "+R(a,b)=0.5 +R(a,c)=1 +S(b,z)=0.25 +S(c,z)=0 +S(b,z)"
	const path = "+R(a,b)=2 +R(a,b)=3 +R(a,c)=1 +S(b,z)=10 +S(c,z)=20 +S(c,z)"
	const tokens = "+R(a,b)=p +R(a,b)=q +R(a,c)=p +S(b,z)=r +S(c,z) +S(c,z)=r"
	for _, tc := range []struct{ semiring, facts, body, want string }{
		{"int", path, "R(x,y)@ S(y,w)@", "a x4: 71"}, // (2+3)*10 + 1*(20+1)
		{"int", path, "R(x,y)@ S(y,w)", "a x4: 7"},   // (2+3)*1 + 1*2
		{"int", "+R(a,b)=1 +R(a,c)=-1", "R(x,y)@", "a x2: 0"},
		{"int", "+R(a,b)=9223372036854775807 +R(a,c)=1", "R(x,y)@", "a x2: overflow"},
		{"cap(10)", path, "R(x,y)@ S(y,w)@", "a x4: 10"},
		{"cap( 6 )", "+R(a,b)=2 +R(a,c)=3", "R(x,y)@", "a x2: 5"},
		{"real", "+R(a,b)=0.5 +R(a,c)=3 +S(b,z)=0.5 +S(c,z)", "R(x,y)@ S(y,w)@", "a x2: 13/4f"},
		{"maxplus", path, "R(x,y)@ S(y,w)@", "a x4: 21"},
		{"maxplus", path, "R(x,y)@ S(y,w)", "a x4: 3"},
		{"maxplus", "+R(a,b)=1.5 +S(b,z)=2", "R(x,y)@ S(y,w)@", "a x1: 7/2f"},
		{"maxplus", "+R(a,b)=2 +R(a,c)=2.0e0", "R(x,y)@", "a x2: 2if"},
		{"minplus", path, "R(x,y)@ S(y,w)@", "a x4: 1"},
		{"minplus", "+R(a,b)=9223372036854775807 +S(b,z)=1", "R(x,y)@ S(y,w)@", "a x1: overflow"},
		{"maxmax", path, "R(x,y)@ S(y,w)@", "a x4: 20"},
		{"maxmax", path, "R(x,y) S(y,w)", "a x4: -INF"},
		{"maxmin", path, "R(x,y)@ S(y,w)@", "a x4: 3"},
		{"maxmin", path, "R(x,y) S(y,w)", "a x4: INF"},
		{"fuzzy", fuzzyPath, "R(x,y)@ S(y,w)@", "a x3: 5.0E-1"},
		{"fuzzy", fuzzyPath, "R(x,y)@ S(y,w)", "a x3: 1.0E0"},
		{"access(open < inner<secret)", "+R(a,b)=inner +R(a,c)=open +S(b,z)=open +S(c,z)=secret", "R(x,y)@ S(y,w)@", "a x2: inner"},
		{`access("<" < b)`, "+R(a,b)=b +S(b,z)", "R(x,y)@ S(y,w)@", "a x1: b"},
		{`access("<" < b)`, "+R(a,b) +S(b,z)", "R(x,y)@ S(y,w)@", "a x1: <"},
		{"topk(3)", path, "R(x,y)@ S(y,w)@", "a x4: [21 13 12]"},
		{"topk(9)", path, "R(x,y)@ S(y,w)", "a x4: [3 2 1 1]"},
		{"why", tokens, "R(x,y)@ S(y,w)@", "a x4: [[p] [p r] [q r]]"},
		{"why", tokens, "R(x,y) S(y,w)", "a x4: [[]]"},
		{"poly", tokens, "R(x,y)@ S(y,w)@", "a x4: p + 2*p*r + q*r"},
		{"poly", tokens, "R(x,y)@ R(x,y)@", "a x5: 2*p*q + 2*p^2 + q^2"}, // (p+q)^2 + p^2
		{"poly", "+R(a,b) +R(a,c) +R(a,b)=5 +R(a,c)=5 +R(a,d)=b", "R(x,y)@",
			`a x5: 2 + 2*"5"^^<http://www.w3.org/2001/XMLSchema#integer> + b`},
		{"maxplus * count", "+R(a,b)=5|2 +R(a,c)=|3 +R(a,c)=2.5|", "R(x,y)@", "a x3: [5 6]"},
		{"bool*access(a<b)", "+R(a,b)=|b +R(a,c)=true|b", "R(x,y)@", ""},
	} {
		q := Query{Head: []string{"x"}, Atoms: body(tc.body), Semiring: tc.semiring}
		r, err := q.Rows(state(t, tc.facts))
		if tc.want == "" {
			if !errors.Is(err, ErrValue) {
				t.Errorf("%s: got error %v, want ErrValue", tc.semiring, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.semiring, err)
			continue
		}
		if got := show(r.Rows); got != tc.want {
			t.Errorf("%s over %s: got %s, want %s", tc.semiring, tc.body, got, tc.want)
		}
		if r.Safe == strings.Contains(tc.want, "overflow") {
			t.Errorf("%s: safe: %v", tc.semiring, r.Safe)
		}
	}
}

// TestProducts is test vector TV2 in two semirings.
func TestProducts(t *testing.T) {
	steps := []struct{ events, ints, maxplus string }{
		{"+R1(a1,b1)=2 +R2(b1,c1)=3 +R2(b1,c2)=5 +R3(c1,d1)=7 +R3(c2,d2)=11 +R4(d1,e1)=13 +R4(d2,e2)=17",
			"c1,d1 x1: 546; c2,d2 x1: 1870", "c1,d1 x1: 25; c2,d2 x1: 35"},
		{"+R1(a2,b1)=19", "c1,d1 x2: 5733; c2,d2 x2: 19635", "c1,d1 x2: 42; c2,d2 x2: 52"},
		{"-R1(a1,b1)=2", "c1,d1 x1: 5187; c2,d2 x1: 17765", "c1,d1 x1: 42; c2,d2 x1: 52"},
		{"+R4(d1,e3)=23", "c1,d1 x2: 14364; c2,d2 x1: 17765", "c1,d1 x2: 52; c2,d2 x1: 52"},
		{"-R4(d2,e2)=17", "c1,d1 x2: 14364", "c1,d1 x2: 52"},
		{"-R1(a2,b1)=19", "", ""},
	}
	s := new(Store)
	for _, step := range steps {
		if _, err := s.Apply(events(step.events), false); err != nil {
			t.Fatal(err)
		}
		for semiring, want := range map[string]string{"int": step.ints, "maxplus": step.maxplus} {
			q := Query{Head: []string{"z", "w"}, Atoms: body("R1(x,y)@ R2(y,z)@ R3(z,w)@ R4(w,v)@"), Semiring: semiring}
			r, err := q.Rows(s)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(r.Rows); got != want {
				t.Errorf("%s, %s: got %s, want %s", semiring, step.events, got, want)
			}
		}
	}
}

// TestRefused checks which values and names are refused.
func TestRefused(t *testing.T) {
	sum := []Aggregate{{Func: Sum, Var: "a"}}
	for _, tc := range []struct {
		semiring, facts, body string
		aggregates            []Aggregate
		err                   error
		safe                  bool
	}{
		{"int", "+R(a,b)=1.5", "R(x,a)@", nil, ErrValue, false},
		{"int", "+R(a,b)=x", "R(x,a)@", nil, ErrValue, false},
		{"int", "+R(a,b)=x", "R(x,a)@ S(a)", nil, nil, false}, // no answer is made of it
		{"int", "+R(a,b)=x", "R(x,'c')@", nil, nil, true},
		{"cap(3)", "+R(a,b)=-1", "R(x,a)@", nil, ErrValue, false},
		{"cap(3)", "+R(a,b)=0", "R(x,a)@", nil, nil, true},
		{"real", "+R(a,b)=NaN", "R(x,a)@", nil, ErrValue, false},
		{"fuzzy", "+R(a,b)=2", "R(x,a)@", nil, ErrValue, false},
		{"access(a < b)", "+R(a,b)=c", "R(x,a)@", nil, ErrValue, false},
		{"maxplus * maxplus", "+R(a,b)=3", "R(x,a)@", nil, ErrValue, false},
		{"why", "+R(a,b)=3", "R(x,a)@", nil, nil, true},
		{"", "+R(a,b)", "R(x,a)", sum, ErrValue, false},
		{"", "+R(a,1)=x", "R(x,a)", sum, nil, true},
		{"", "+R(a,b)", "R(x,a)", []Aggregate{{Func: Min, Var: "a"}}, nil, true},
		{"other", "", "R(x,a)@", nil, ErrSemiring, false},
		{"cap(x)", "", "R(x,a)@", nil, ErrSemiring, false},
		{"count", "", "R(x,a)@", nil, ErrSemiring, false},
	} {
		q := Query{Head: []string{"x"}, Atoms: body(tc.body), Aggregates: tc.aggregates, Semiring: tc.semiring}
		r, err := q.Rows(state(t, tc.facts))
		if !errors.Is(err, tc.err) || tc.err == nil && err != nil {
			t.Errorf("%+v: got error %v", tc, err)
		}
		if err == nil && r.Safe != tc.safe {
			t.Errorf("%+v: safe: %v", tc, r.Safe)
		}
	}
}

// TestInlineTables checks that rows of inline tables multiply values.
func TestInlineTables(t *testing.T) {
	s := state(t, "+R(a,5)=3 +R(b,7)=4")
	a := value("a")
	table := []Values{{[]string{"x"}, [][]string{{a}, {a}, {value("c")}}}}
	for _, tc := range []struct {
		q    Query
		want string
	}{
		{Query{Semiring: "int", Atoms: body("R(x,y)@")}, "a x2: 6"},
		{Query{Semiring: "topk(5)", Atoms: body("R(x,y)@")}, "a x2: [3 3]"},
		{Query{Aggregates: []Aggregate{{Func: Sum, Var: "y"}}, Atoms: body("R(x,y)")}, "a x2: 10"},
	} {
		tc.q.Head, tc.q.Values = []string{"x"}, table
		r, err := tc.q.Rows(s)
		if err != nil || show(r.Rows) != tc.want {
			t.Errorf("got %s, error %v; want %s", show(r.Rows), err, tc.want)
		}
	}
}

// TestSafe checks where the promise that nothing overflows ends.
func TestSafe(t *testing.T) {
	const path = "R(x,y)@ S(y,z)@"
	for _, tc := range []struct {
		semiring, facts, body string
		safe                  bool
	}{
		{"int", "+R(a,b)=1000000000 +S(b,c)=1000000000", path, true},
		{"int", "+R(a,b)=10000000000 +S(b,c)=1000000000", path, false},
		{"int", "+R(a,b)=-10000000000 +S(q,c)=1000000000", path, false}, // before the join
		{"int", "+R(a,b)=10000000000 +S(b,c)=0", path, true},
		{"real", "+R(a,b)=1e200 +S(b,c)=1e-200", path, true},
		{"real", "+R(a,b)=1e200 +S(b,c)=1e200", path, false},
		{"real", "+R(a,b)=1e-200 +S(b,c)=1e-200", path, false},
		{"real", "+R(a,b)=0 +S(b,c)=1e-200", path, true},
		{"maxplus", "+R(a,b)=9223372036854775807 +S(b,c)", path, false},
		{"maxplus", "+R(a,b)=1e200 +S(b,c)=9007199254740993", path, true},
		{"poly", "+R(a,b)=9223372036854775807 +S(b,c)=1e300", path, true},
		{"maxplus * int", "+R(a,b)=1e200|5 +S(b,c)=|7", path, true},
		{"maxplus * int", "+R(a,b)=1|9000000000000000000 +S(b,c)=|7", path, false},
	} {
		q := Query{Head: []string{"x"}, Atoms: body(tc.body), Semiring: tc.semiring}
		r, err := q.Rows(state(t, tc.facts))
		if err != nil || r.Safe != tc.safe {
			t.Errorf("%s, %s: %+v, error %v; want safe: %v", tc.semiring, tc.facts, r, err, tc.safe)
		}
	}
}

// TestTolerance checks that what a float64 evaluation in any order gives is
// within the slack of real, and what has lost a summand is not.
func TestTolerance(t *testing.T) {
	q := Query{Atoms: body("R(x,y)@ S(y,z)@"), Semiring: "real"}
	r, err := q.Rows(state(t, "+R(a,b)=0.1 +R(c,b)=1e16 +R(d,b)=-1e16 +S(b,c)=0.3 +S(b,d)=0.7"))
	if err != nil {
		t.Fatal(err)
	}
	want := r.Rows[0].Values[0]
	for got, same := range map[float64]bool{0.1: true, 0: true, -2: true, 1000: false, 1e16: false} {
		if SameValue(got, want) != same {
			t.Errorf("%v for %v: want %v", got, want, same)
		}
	}
}

// TestWindowedValues checks that a window hides values with their contributions.
func TestWindowedValues(t *testing.T) {
	s := new(Store)
	for i, v := range []string{"7", "3", "5"} {
		e := Event{Relation: "R", Tuple: []string{`"a"`}, Time: int64(i), Value: value(v)}
		if _, err := s.Apply([]Event{e}, false); err != nil {
			t.Fatal(err)
		}
	}
	q := Query{Head: []string{"x"}, Atoms: body("R(x)@"), Semiring: "maxplus"}
	q.Atoms[0].Window = Window{Range: 3}
	for now, want := range []string{2: "a x3: 7", 3: "a x2: 5", 4: "a x1: 5", 5: ""} {
		if now < 2 {
			continue
		}
		s.Advance(int64(now))
		r, err := q.Rows(s)
		if err != nil || show(r.Rows) != want {
			t.Errorf("at %d: got %s, error %v; want %s", now, show(r.Rows), err, want)
		}
	}
}

// TestChanges checks deltas between two results.
func TestChanges(t *testing.T) {
	q := Query{Head: []string{"x"}, Atoms: body("R(x,y)"), Aggregates: []Aggregate{{Func: Max, Var: "y"}}}
	rows := func(facts string) *Result {
		r, err := q.Rows(state(t, facts))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	side := func(r *Row) string {
		if r == nil {
			return "-"
		}
		return show([]Row{*r})
	}
	var got []string
	for _, c := range Changes(rows("+R(a,1) +R(b,2) +R(c,3) +R(d,4)"), rows("+R(a,1) +R(b,2.0e0) +R(d,4) +R(d,4) +R(e,5)")) {
		got = append(got, side(c.Old)+" > "+side(c.New))
	}
	const i, f = `"%s"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"2.0E0"^^<http://www.w3.org/2001/XMLSchema#double>`
	n := func(s string) string { return fmt.Sprintf(i, s) }
	want := []string{
		"b x1: " + n("2") + " > b x1: " + f,
		"c x1: " + n("3") + " > -",
		"d x1: " + n("4") + " > d x2: " + n("4"),
		"- > e x1: " + n("5"),
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// TestSameValue checks what passes for a wanted value.
func TestSameValue(t *testing.T) {
	third := Number{Exact: whole(1).exact, Slack: slack(whole(1).exact), Float: true}
	both := Number{Exact: whole(2).exact, Slack: whole(0).exact, Int: true, Float: true}
	for _, tc := range []struct {
		got, want any
		same      bool
	}{
		{int64(2), int64(2), true},
		{2.0, int64(2), false},
		{int64(2), 2.0, false},
		{2, int64(2), false},
		{math.Inf(1), math.Inf(1), true},
		{"a", "a", true},
		{term.Int(2), term.Int(2), true},
		{term.Float(2), term.Int(2), false},
		{int64(2), both, true},
		{2.0, both, true},
		{math.Nextafter(2, 3), both, false},
		{1 + 0x1p-50, third, true},
		{1 + 0x1p-45, third, false},
		{int64(1), third, false},
		{math.NaN(), third, false},
		{nil, third, false},
		{[]any{int64(2), 1.0}, []any{both, third}, true},
		{[]any{int64(2)}, []any{both, third}, false},
		{[]int64{2}, []any{int64(2)}, true},
		{[]float64{1}, []any{third}, true},
		{[][]string{{"b", "a"}, {"a"}}, [][]string{{"a"}, {"a", "b"}}, true},
		{[][]string{{"a"}, {"a"}}, [][]string{{"a"}}, false},
		{int64(0), Overflow{}, false},
	} {
		if got := SameValue(tc.got, tc.want); got != tc.same {
			t.Errorf("%v for %v: %v", tc.got, tc.want, got)
		}
	}
}

// TestTermOrder checks the order of Min and Max; the list ascends.
func TestTermOrder(t *testing.T) {
	x := func(lexical, datatype string) term.Term { return term.Typed(lexical, term.XSD+datatype) }
	list := []term.Term{
		term.Blank("z"), term.IRI("a"), term.IRI("b"),
		term.Float(math.NaN()), term.Float(math.Inf(-1)), term.Int(-3), x("-2.5", "decimal"),
		x("00", "integer"), term.Int(0), term.Float(math.Copysign(0, -1)), term.Float(0),
		x("0.1", "decimal"), term.Float(0.1), x("7", "byte"), x("7.5", "float"),
		term.Float(1 << 53), term.Int(1<<53 + 1), x("9223372036854775808", "integer"), x("INF", "float"), term.Float(math.Inf(1)),
		term.Bool(false), term.Bool(true),
		x("1999-01-01T00:00:00Z", "dateTime"), x("2020-01-01T01:00:00+01:00", "dateTime"), x("1999-01-01T00:00:00", "dateTime"),
		x("1990-01-01", "date"), x("1980-01-01Z", "date"),
		term.String(""), term.String("a"), term.LangString("a", "de"), term.LangString("a", "en"), term.LangString("b", "de"),
		term.Bytes(nil), x("x", "integer"), x("z", "duration"),
	}
	for i, a := range list {
		for j, b := range list {
			if got := compareTerms(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v against %v: got %d", a, b, got)
			}
		}
	}
}
