package oracle

import (
	"errors"
	"math/big"
	"strings"
	"testing"
)

// atoms reads "R(x,y) S(y,'c')": names are variables, quoted ones constants.
func atoms(text string) (out []Atom) {
	for _, f := range strings.Fields(text) {
		rel, args, _ := strings.Cut(strings.TrimSuffix(f, ")"), "(")
		a := Atom{Relation: rel}
		for _, s := range strings.Split(args, ",") {
			if c, ok := strings.CutPrefix(s, "'"); ok {
				a.Args = append(a.Args, Arg{Const: strings.TrimSuffix(c, "'")})
				continue
			}
			a.Args = append(a.Args, Arg{Var: s})
		}
		out = append(out, a)
	}
	return out
}

// facts loads "R(a,b) R(a,b) S(b,c)".
func facts(t *testing.T, text string) *Store {
	t.Helper()
	s := new(Store)
	for _, a := range atoms(text) {
		e := Event{Relation: a.Relation}
		for _, arg := range a.Args {
			e.Tuple = append(e.Tuple, arg.Var)
		}
		if _, err := s.Apply([]Event{e}, false); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestEval checks the evaluator against answers worked out by hand.
func TestEval(t *testing.T) {
	unequal := func(v map[string]string) bool { return v["x"] != v["z"] }
	for _, tc := range []struct {
		name, facts string
		q           Query
		want        map[string]string
	}{
		{"path", "R(a,b) R(b,c) R(b,c)", Query{Head: []string{"x", "z"}, Atoms: atoms("R(x,y) R(y,z)")}, map[string]string{"a\tc": "2"}},
		{"star of three", "R(a,b) R(a,b) R(a,c)", Query{Head: []string{"x"}, Atoms: atoms("R(x,p) R(x,q) R(x,r)")}, map[string]string{"a": "27"}},
		{"atom twice", "R(a,b) R(a,b) R(a,b)", Query{Head: []string{"x", "y"}, Atoms: atoms("R(x,y) R(x,y)")}, map[string]string{"a\tb": "9"}},
		{"atom twice, set", "R(a,b) R(a,b)", Query{Head: []string{"x", "y"}, Atoms: atoms("R(x,y) R(x,y)"), Set: true}, map[string]string{"a\tb": "1"}},
		{"set counts valuations", "R(a,b) R(a,b) R(a,c)", Query{Head: []string{"x"}, Atoms: atoms("R(x,y)"), Set: true}, map[string]string{"a": "2"}},
		{"distinct", "R(a,b) R(a,b) R(a,c)", Query{Head: []string{"x"}, Atoms: atoms("R(x,y)"), Distinct: true}, map[string]string{"a": "1"}},
		{"loop", "R(a,b) R(b,b) R(b,b)", Query{Head: []string{"x"}, Atoms: atoms("R(x,x)")}, map[string]string{"b": "2"}},
		{"constant", "R(a,b) R(c,b) R(c,d)", Query{Head: []string{"y"}, Atoms: atoms("R('c',y)")}, map[string]string{"b": "1", "d": "1"}},
		{"ground, nullary", "R(a,b) R(a,b)", Query{Atoms: atoms("R('a','b')")}, map[string]string{"": "2"}},
		{"product", "A(p) A(q) B(r) B(r)", Query{Head: []string{"x", "y"}, Atoms: atoms("A(x) B(y)")}, map[string]string{"p\tr": "2", "q\tr": "2"}},
		{"empty factor", "A(p)", Query{Head: []string{"x", "y"}, Atoms: atoms("A(x) B(y)")}, map[string]string{}},
		{"triangle", "R(a,b) R(b,c) R(b,c) R(c,a)", Query{Head: []string{"x", "y", "z"}, Atoms: atoms("R(x,y) R(y,z) R(z,x)")},
			map[string]string{"a\tb\tc": "2", "b\tc\ta": "2", "c\ta\tb": "2"}},
		{"filter", "R(a,b) R(b,a) R(b,c)", Query{Head: []string{"x", "z"}, Atoms: atoms("R(x,y) R(y,z)"), Filters: []Filter{unequal}}, map[string]string{"a\tc": "1"}},
		{"values", "R(a,b) R(b,c)", Query{Head: []string{"x"}, Atoms: atoms("R(x,y)"), Values: []Values{{[]string{"x"}, [][]string{{"a"}, {"a"}, {"z"}}}}}, map[string]string{"a": "2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.q.Eval(facts(t, tc.facts))
			if len(got) != len(tc.want) {
				t.Fatalf("got %d answers %v, want %v", len(got), got, tc.want)
			}
			for k, n := range tc.want {
				if ans, ok := got[k]; !ok || ans.Count.String() != n {
					t.Errorf("answer %q: got %v, want %s", k, got[k].Count, n)
				}
			}
		})
	}
}

// TestEvalLarge checks that counts beyond int64 stay exact.
func TestEvalLarge(t *testing.T) {
	s := facts(t, strings.Repeat("R(a,b) ", 256))
	q := Query{Head: []string{"x"}, Atoms: atoms(strings.TrimSpace(strings.Repeat("R(x,y) ", 9)))}
	want := new(big.Int).Exp(big.NewInt(256), big.NewInt(9), nil)
	if got := q.Eval(s).Total(); got.Cmp(want) != 0 {
		t.Fatalf("got %v, want 256^9 = %v", got, want)
	}
}

// TestRetract checks which contribution goes, and when a batch is refused.
func TestRetract(t *testing.T) {
	ab := []string{"a", "b"}
	in := func(id, value string, at int64) Event {
		return Event{Relation: "R", Tuple: ab, ID: id, Value: value, Time: at}
	}
	out := func(id, value string) Event {
		e := Event{Delete: true, Relation: "R", Tuple: ab, ID: id, Value: value}
		if id != "" {
			e.Tuple = nil
		}
		return e
	}
	other := Event{Relation: "R", Tuple: []string{"a", "c"}, ID: "e"}
	wrong := Event{Delete: true, Relation: "R", Tuple: []string{"a", "c"}, ID: "e"}
	for _, tc := range []struct {
		name    string
		batches [][]Event
		want    string // ids or values of what is left
		err     error  // of the last batch
	}{
		{"least time first", [][]Event{{in("e", "", 5), in("f", "", 3), out("", "")}}, "e", nil},
		{"ties: earliest appended", [][]Event{{in("e", "", 5), in("f", "", 5), out("", "")}}, "f", nil},
		{"by id", [][]Event{{in("e", "", 1), in("f", "", 2)}, {out("f", "")}}, "e", nil},
		{"by value", [][]Event{{in("e", "7", 1), in("f", "8", 2)}, {out("", "8")}}, "e", nil},
		{"absent value", [][]Event{{in("e", "7", 1)}, {out("", "8")}}, "e", ErrNoSuchFact},
		{"before its insertion", [][]Event{{out("", ""), in("e", "", 1)}}, "", ErrNoSuchFact},
		{"refused whole", [][]Event{{in("e", "", 1)}, {out("e", ""), out("e", "")}}, "e", ErrNoSuchFact},
		{"id and another tuple", [][]Event{{in("e", "", 1)}, {wrong}}, "e", ErrNoSuchFact},
		{"id of another fact", [][]Event{{in("e", "", 1)}, {other}}, "e", ErrValue},
		{"refresh", [][]Event{{in("e", "", 1), in("f", "", 2)}, {in("e", "", 3), out("", "")}}, "e", nil},
		{"id free again", [][]Event{{in("e", "", 1), out("e", ""), other}}, "e", nil},
		{"arity", [][]Event{{in("e", "", 1)}, {{Relation: "R", Tuple: []string{"a"}}}}, "e", ErrArity},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := new(Store)
			var err error
			for _, b := range tc.batches {
				_, err = s.Apply(b, false)
			}
			if !errors.Is(err, tc.err) || (tc.err == nil && err != nil) {
				t.Errorf("got error %v, want %v", err, tc.err)
			}
			var left []string
			for _, c := range s.live {
				left = append(left, c.id)
			}
			if got := strings.Join(left, ","); got != tc.want {
				t.Errorf("left %q, want %q", got, tc.want)
			}
		})
	}
}

// TestIgnoreMissing checks that only the missing retraction is skipped.
func TestIgnoreMissing(t *testing.T) {
	s := facts(t, "R(a,b)")
	gone := Event{Delete: true, Relation: "R", Tuple: []string{"a", "b"}}
	n, err := s.Apply([]Event{gone, gone, {Relation: "R", Tuple: []string{"c", "d"}}}, true)
	if n != 1 || err != nil || s.Len() != 1 {
		t.Fatalf("skipped %d, error %v, %d left; want 1, nil, 1", n, err, s.Len())
	}
}
