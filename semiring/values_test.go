package semiring

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// TestWorkedValues takes sums of products of terms; the absent term is the one.
func TestWorkedValues(t *testing.T) {
	none := term.Term{}
	s, i, f := term.String, term.Int, term.Float
	for _, tc := range []struct {
		spec string
		sum  [][]term.Term
		want any
	}{
		{"bool", [][]term.Term{{term.Bool(true), term.Bool(false)}}, term.Bool(false)},
		{"bool", [][]term.Term{{term.Bool(false)}, {term.Typed("1", term.XSDBoolean)}}, term.Bool(true)},
		{"count", [][]term.Term{{i(2), i(3)}, {none}, {i(0), i(9)}}, int64(7)},
		{"count", [][]term.Term{{term.Typed("3.0", term.XSDDecimal)}}, int64(3)},
		{"int", [][]term.Term{{i(2), i(-3)}, {i(4)}}, int64(-2)},
		{"real", [][]term.Term{{i(2), f(0.25)}, {none}}, 1.5},
		{"cap(10)", [][]term.Term{{i(4), i(2)}, {i(1)}}, int64(9)},
		{"cap(10)", [][]term.Term{{i(4), i(2)}, {i(5)}}, int64(10)},
		{"maxplus", [][]term.Term{{i(2), i(3)}, {i(4)}, {i(1), none}}, int64(5)},
		{"maxplus", [][]term.Term{{f(2), i(3)}, {i(5)}}, 5.0},
		{"minplus", [][]term.Term{{f(2), i(3)}, {i(5)}}, int64(5)},
		{"minplus", [][]term.Term{{i(2), i(3)}, {f(4.5)}}, 4.5},
		{"minplus", [][]term.Term{{none, none}, {i(4)}}, int64(0)},
		{"minplus", [][]term.Term{{i(math.MinInt64), i(math.MaxInt64)}, {i(4)}}, int64(-1)},
		{"maxplus", [][]term.Term{{i(1<<53 + 1)}, {f(1 << 53)}}, int64(1<<53 + 1)},
		{"maxplus", [][]term.Term{{i(math.MaxInt64)}, {f(1 << 63)}}, float64(1 << 63)},
		{"minplus", [][]term.Term{{f(5e-324)}, {f(math.Copysign(0, -1))}}, 0.0},
		{"maxmax", [][]term.Term{{i(2), i(7)}, {i(4)}}, int64(7)},
		{"maxmax", [][]term.Term{{none, i(-7)}}, int64(-7)},
		{"maxmax", [][]term.Term{{none}, {none}}, math.Inf(-1)},
		{"maxmin", [][]term.Term{{i(2), i(7)}, {i(3), none}}, int64(3)},
		{"maxmin", [][]term.Term{{i(2), i(7)}, {none}}, math.Inf(1)},
		{"fuzzy", [][]term.Term{{f(0.5), f(0.75)}, {f(0.25), none}}, 0.5},
		{"fuzzy", [][]term.Term{{i(1)}}, 1.0},
		{"fuzzy", [][]term.Term{{none}}, 1.0},
		{"access(public < internal < secret)", [][]term.Term{{s("public"), s("secret")}, {s("internal"), none}}, "internal"},
		{"access(public < internal < secret)", [][]term.Term{{none}}, "public"},
		{`access("" < "a b")`, [][]term.Term{{s("a b")}}, "a b"},
		{"topk(3)", [][]term.Term{{i(1), i(2)}, {f(9)}, {i(3)}, {none}}, []any{9.0, int64(3), int64(3)}},
		{"topk(3)", [][]term.Term{{none}}, []any{int64(0)}},
		{"why", [][]term.Term{{s("b"), s("a"), s("a")}, {s("c")}, {s("c"), none}}, [][]string{{"a", "b"}, {"c"}}},
		{"why", [][]term.Term{{none}, {s("a")}}, [][]string{{}, {"a"}}},
		{"poly", [][]term.Term{{s("b"), s("a"), s("a")}, {s("c")}, {s("c"), none}, {none}, {none}}, "2 + a^2*b + 2*c"},
		{"poly", [][]term.Term{{s("a*b"), term.IRI("x")}, {i(3)}}, `"3"^^<http://www.w3.org/2001/XMLSchema#integer> + "a*b"*<x>`},
		{"cap(3) * access(a < b)", [][]term.Term{{s("2|b"), s("|a")}, {s("5|b")}}, []any{int64(3), "b"}},
		{"why * maxplus", [][]term.Term{{s(`"5"|5`), s("5|2.5")}}, []any{[][]string{{`"5"^^<http://www.w3.org/2001/XMLSchema#integer>`, "5"}}, 7.5}},
		{"why * why", [][]term.Term{{s("NaN|_:b")}}, []any{[][]string{{"NaN"}}, [][]string{{"_:b"}}}},
		{"naturals", [][]term.Term{{i(2), i(3)}, {none}}, i(7)},
	} {
		k, err := Parse(tc.spec, Env{Extra: definitions})
		if err != nil {
			t.Fatal(err)
		}
		var b bag
		for _, factors := range tc.sum {
			product := k.One(nil)
			for _, v := range factors {
				factor := k.One(nil)
				if !v.IsZero() {
					if factor, err = k.Lift(nil, 1, v); err != nil {
						t.Fatalf("%s of %v: %v", tc.spec, v, err)
					}
				}
				if product, err = k.Mul(nil, product, factor); err != nil {
					t.Fatal(err)
				}
			}
			b.add(k.Spread(nil, product), 1)
		}
		a, err := b.collect(k)
		if err != nil || !reflect.DeepEqual(k.Export(a), tc.want) {
			t.Errorf("%s of %v: %#v, %v, want %#v", tc.spec, tc.sum, k.Export(a), err, tc.want)
		}
	}
}

func TestNoValues(t *testing.T) {
	nan, inf := term.Float(math.NaN()), term.Float(math.Inf(1))
	text := term.String("x")
	decimal := term.Typed("1.5", term.XSDDecimal)
	for spec, bad := range map[string][]term.Term{
		"bool":           {term.Int(1), text},
		"count":          {term.Int(-1), term.Float(1), text, decimal},
		"int":            {term.Float(1), text, term.Typed("9223372036854775808", term.XSDInteger)},
		"real":           {nan, inf, text},
		"cap(3)":         {term.Int(-1), text},
		"maxplus":        {nan, inf, text, term.Typed("INF", term.XSD+"float")},
		"maxmin":         {nan, inf, text},
		"fuzzy":          {term.Int(2), term.Float(-0.1), term.Float(math.Nextafter(1, 2)), nan, text},
		"access(a < b)":  {text, term.IRI("a"), term.LangString("a", "en"), term.Int(0)},
		"topk(3)":        {nan, text},
		"sum":            {nan, inf, text},
		"viterbi":        {text},
		"cap(2) * fuzzy": {text, term.Int(1), term.String("1"), term.String("1|0.5|2"), term.String("1|2"), term.String("<a|1"), term.String(`"a"b|1`)},
		"real * viterbi": {term.String("1e999|0.5"), term.String("1|x")},
	} {
		k, err := Parse(spec, Env{Extra: definitions})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range bad {
			if dst, err := k.Lift([]uint64{7}, 1, v); !errors.Is(err, errs.ErrValue) || errors.Is(err, errs.ErrSyntax) || len(dst) != 1 {
				t.Errorf("%s of %v: %v, %v", spec, v, dst, err)
			}
		}
	}
}

func TestOverflows(t *testing.T) {
	huge, most := term.Float(math.MaxFloat64), term.Int(math.MaxInt64)
	for _, tc := range []struct {
		spec  string
		value term.Term
		op    string
	}{
		{"count", most, "mul"}, {"count", most, "times"}, {"count", most, "sum"},
		{"int", term.Int(math.MinInt64), "mul"}, {"int", term.Int(math.MinInt64), "times"}, {"int", term.Int(math.MinInt64), "sum"},
		{"real", huge, "mul"}, {"real", huge, "times"}, {"real", huge, "sum"},
		{"maxplus", huge, "mul"}, {"minplus", most, "mul"}, {"topk(2)", most, "mul"}, {"topk(2)", huge, "mul"},
		{"sum", most, "times"}, {"sum", most, "sum"}, {"sum", huge, "times"}, {"sum", huge, "sum"},
		{"naturals", most, "mul"}, {"naturals", most, "times"}, {"naturals", most, "sum"},
		{"bool * count", term.String("|9223372036854775807"), "mul"}, {"bool * count", term.String("|9223372036854775807"), "sum"},
	} {
		k, err := Parse(tc.spec, Env{Extra: definitions})
		if err != nil {
			t.Fatal(err)
		}
		a, err := k.Lift(nil, 1, tc.value)
		if err != nil {
			t.Fatal(err)
		}
		dst := []uint64{7}
		switch tc.op {
		case "mul":
			dst, err = k.Mul(dst, a, a)
		case "times":
			dst, err = k.Times(dst, a, 2)
		case "sum":
			var b bag
			b.add(k.Spread(nil, a), 1)
			b.add(k.Spread(nil, a), 1)
			dst, err = k.Collect(dst, &b)
		}
		if !errors.Is(err, errs.ErrOverflow) || len(dst) != 1 {
			t.Errorf("%s of %v and itself in %s: %v, %v", tc.op, tc.value, tc.spec, dst, err)
		}
	}
	k := &poly{}
	a, _ := k.Lift(nil, 1, term.String("a"))
	a, _ = k.Times(nil, a, math.MaxInt64)
	if _, err := k.Times(nil, a, 2); !errors.Is(err, errs.ErrOverflow) {
		t.Errorf("a coefficient of 2^64: %v", err)
	}
	if _, err := k.Mul(nil, a, a); !errors.Is(err, errs.ErrOverflow) {
		t.Errorf("a coefficient of 2^126: %v", err)
	}
	// (x+y)(x+y), where the coefficients of xy add up to 2^63.
	x, _ := k.Lift(nil, 1, term.String("x"))
	y, _ := k.Lift(nil, 1, term.String("y"))
	x, _ = k.Times(nil, x, 1<<31)
	y, _ = k.Times(nil, y, 1<<31)
	if _, err := k.Mul(nil, append(slices.Clone(x), y...), append(slices.Clone(x), y...)); !errors.Is(err, errs.ErrOverflow) {
		t.Errorf("a coefficient of 2^63: %v", err)
	}
}

// TestTopKAgainstAll compares products with all pairs, sorted.
func TestTopKAgainstAll(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for range 3000 {
		k := &topK{"topk", r.IntN(12) + 1}
		draw := func() (a []uint64, all []int64) {
			for range r.IntN(k.k) + 1 {
				all = append(all, r.Int64N(20)-10)
			}
			slices.Sort(all)
			slices.Reverse(all)
			for _, i := range all {
				high, low := number{i: i}.words()
				a = append(a, high, low)
			}
			return a, all
		}
		a, allA := draw()
		b, allB := draw()
		var want []any
		var sums []int64
		for _, x := range allA {
			for _, y := range allB {
				sums = append(sums, x+y)
			}
		}
		slices.Sort(sums)
		slices.Reverse(sums)
		for _, x := range sums[:min(k.k, len(sums))] {
			want = append(want, x)
		}
		got, err := k.Mul(nil, a, b)
		if err != nil || !reflect.DeepEqual(k.Export(got), any(want)) {
			t.Fatalf("the %d greatest sums of %v and %v: %v, %v, want %v", k.k, allA, allB, k.Export(got), err, want)
		}
	}
}

// TestExtremes takes the least and the greatest of random sets of terms, many of
// which have the same key.
func TestExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	var terms dictionary
	for i := range 40 {
		terms = append(terms, term.IRI(fmt.Sprintf("http://example.org/%d", i*7%40)), term.Int(int64(i)<<57|int64(i)),
			term.Float(float64(i)), term.Time(time.Unix(0, int64(40-i))), term.String(fmt.Sprint("long common prefix ", i)))
	}
	for _, name := range []string{"min", "max"} {
		k, err := Parse(name, Env{Terms: terms})
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			var b bag
			var present []term.Term
			for range r.IntN(10) + 1 {
				i := r.IntN(len(terms))
				if r.IntN(2) == 0 {
					i -= i%5 - r.IntN(2) // a class with close keys
				}
				present = append(present, terms[i])
				a, err := k.Lift(nil, uint64(i+1), terms[i])
				if err != nil {
					t.Fatal(err)
				}
				b.add(k.Spread(nil, a), 1)
				b.add(k.Spread(nil, k.One(nil)), 1) // loses against all
			}
			want := slices.MinFunc(present, term.Order)
			if name == "max" {
				want = slices.MaxFunc(present, term.Order)
			}
			if a, err := b.collect(k); err != nil || k.Export(a) != any(want) {
				t.Fatalf("%s of %v: %v, %v, want %v", name, present, k.Export(a), err, want)
			}
		}
		if one := k.Export(k.One(nil)); one != any(term.Term{}) {
			t.Errorf("the one of %s is %v", name, one)
		}
	}
}

func TestDistinctCounts(t *testing.T) {
	var k distinct
	var b bag
	for _, id := range []uint64{3, 1, 3, 2, 1} {
		a, _ := k.Lift(nil, id, term.Term{})
		b.add(k.Spread(nil, a), 1)
	}
	for _, step := range []struct {
		gone uint64
		want int64
	}{{3, 3}, {3, 2}, {2, 1}, {1, 1}, {1, 0}} {
		b.add([]Part{{Component{0, step.gone}, 1}}, -1)
		a, err := b.collect(k)
		if err != nil || k.Export(a) != any(step.want) {
			t.Errorf("without %d: %v, %v, want %d", step.gone, k.Export(a), err, step.want)
		}
	}
}

func TestTraitsOfProducts(t *testing.T) {
	for spec, want := range map[string]Traits{
		"bool * access(a < b < c)": {true, true, 4, true, false, "O(size)"},
		"cap(5) * cap(6)":          {true, false, 11, true, false, "O(size)"},
		"count * access(a < b)":    {true, false, 0, true, true, "O(size)"},
		"cap(5) * count":           {true, false, 0, true, true, "O(size)"},
		"minplus * bool":           {true, true, 0, false, false, "O(size)"},
		"int * cap(5)":             {false, false, -1, true, true, "O(size)"},
		"count * real":             {false, false, -1, false, true, "O(size)"},
		"cap(9223372036854775807)": {true, false, math.MaxInt64, true, false, "O(1)"},
		"cap(9223372036854775807) * cap(9223372036854775807)": {true, false, math.MaxInt64, true, false, "O(size)"},
		"viterbi":  {true, true, 0, false, false, "O(log n)"},
		"naturals": {true, false, 0, true, false, "O(size)"},
	} {
		k, err := Parse(spec, Env{Extra: definitions})
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Traits(); got != want {
			t.Errorf("%s: %+v, want %+v", spec, got, want)
		}
	}
}

// TestUserErrors checks what comes of errors, and of no value, from a user's
// functions.
func TestUserErrors(t *testing.T) {
	cause := errors.New("cause")
	fail := func(err error) func(a, b term.Term) (term.Term, error) {
		return func(term.Term, term.Term) (term.Term, error) { return term.Term{}, err }
	}
	first := func(a, _ term.Term) (term.Term, error) { return a, nil }
	for _, tc := range []struct {
		add  func(a, b term.Term) (term.Term, error)
		want error
	}{
		{fail(cause), cause}, {fail(cause), errs.ErrValue}, {fail(nil), errs.ErrValue},
		{fail(fmt.Errorf("%w: so", errs.ErrOverflow)), errs.ErrOverflow},
	} {
		k, err := Parse("mine", Env{Extra: map[string]Definition{"mine": {One: term.Int(1), Add: tc.add, Mul: first}}})
		if err != nil {
			t.Fatal(err)
		}
		one := k.One(nil)
		if _, err := k.Times(nil, one, 2); !errors.Is(err, tc.want) {
			t.Errorf("twice: %v, want %v", err, tc.want)
		}
		b := bag{parts: []Part{{Component{0, one[0]}, 1}, {Component{0, one[0] + 1}, 1}}}
		if _, err := b.collect(k); !errors.Is(err, tc.want) {
			t.Errorf("a sum: %v, want %v", err, tc.want)
		}
		if _, err := k.Lift(nil, 1, term.Int(5)); err != nil {
			t.Errorf("a lift without a function: %v", err)
		}
	}
	for _, d := range []Definition{{}, {Add: first, Mul: first}, {One: term.Int(1), Add: first}, {One: term.Int(1), Mul: first}, {One: term.Int(1), Add: first, Mul: first, Chain: -2},
		{One: term.Int(1), Add: first, Mul: func(_, _ term.Term) (term.Term, error) { return term.Int(2), nil }},
		{One: term.Int(1), Add: first, Mul: func(_, _ term.Term) (term.Term, error) { panic("no product") }},
		{One: term.Int(1), Add: first, Mul: first, Order: func(term.Term) uint64 { panic("no order") }}} {
		if err := d.Validate(); !errors.Is(err, errs.ErrValue) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

// TestCustomPanics has functions of a user that panic at 7, which is ErrValue.
func TestCustomPanics(t *testing.T) {
	seven := func(a term.Term) term.Term {
		if a == term.Int(7) {
			panic("seven")
		}
		return a
	}
	first := func(a, _ term.Term) (term.Term, error) { return a, nil }
	fails := func(a, _ term.Term) (term.Term, error) { return seven(a), nil }
	for name, d := range map[string]Definition{
		"add":   {One: term.Int(1), Add: fails, Mul: first},
		"mul":   {One: term.Int(1), Add: first, Mul: fails},
		"lift":  {One: term.Int(1), Add: first, Mul: first, Lift: func(a term.Term) (term.Term, error) { return seven(a), nil }},
		"order": {One: term.Int(1), Add: first, Mul: first, Order: func(a term.Term) uint64 { seven(a); return 0 }},
	} {
		k, err := Parse("mine", Env{Extra: map[string]Definition{"mine": d}})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, v := range []int64{6, 7} {
			a, err := k.Lift(nil, 1, term.Int(v))
			if err == nil {
				_, err = k.Mul(nil, a, k.One(nil))
			}
			if err == nil {
				_, err = k.Times(nil, a, 2)
			}
			if errors.Is(err, errs.ErrValue) != (v == 7) || v != 7 && err != nil {
				t.Errorf("%s of %d: %v", name, v, err)
			}
		}
	}
}

// TestSweep forgets what is in no state, keeps what is, and keeps for one more
// round what has just been made.
func TestSweep(t *testing.T) {
	for _, s := range subjects() {
		k, ok := s.algebra(t).(Sweeper)
		if !ok {
			continue
		}
		t.Run(s.spec, func(t *testing.T) {
			l := laws{t, k, s.values, rand.New(rand.NewPCG(51, 52))}
			var b bag
			var kept [][]uint64
			var shown []any
			for i := range 60 {
				v := l.draw(true)
				if i%4 == 0 {
					b.add(k.Spread(nil, v), 1)
					kept, shown = append(kept, v), append(shown, k.Export(v))
				}
			}
			live := func(mark func(uint64)) {
				for _, p := range b.parts {
					mark(p.At.Low)
				}
			}
			before := k.Size()
			k.Sweep(live)
			if k.Size() != before {
				t.Errorf("%d of %d left after the first sweep", k.Size(), before)
			}
			k.Sweep(live)
			after := k.Size()
			if after > before {
				t.Errorf("%d, then %d", before, after)
			}
			for i, v := range kept {
				if !reflect.DeepEqual(k.Export(v), shown[i]) {
					t.Fatalf("%v has become %v", shown[i], k.Export(v))
				}
				l.same("a value read again", l.sum(v), v)
			}
			b.parts = nil
			k.Sweep(live)
			k.Sweep(live)
			if k.Size() > 2 { // at most a one for each of two factors
				t.Errorf("%d things are left of nothing", k.Size())
			}
			l.additive(l.draw(true), l.draw(true), l.draw(true)) // all is made anew
		})
	}
}

// TestSweepForgets counts exactly.
func TestSweepForgets(t *testing.T) {
	k := &why{}
	var values [][]uint64
	for _, token := range []string{"a", "b", "c"} {
		v, _ := k.Lift(nil, 1, term.String(token))
		values = append(values, v)
	}
	ab, _ := k.Mul(nil, values[0], values[1])
	live := func(mark func(uint64)) { mark(ab[0]) }
	if k.Size() != 7 { // {a}, {b}, {c}, {a, b} and three tokens
		t.Fatalf("%d things", k.Size())
	}
	k.Sweep(live)
	again, _ := k.Lift(nil, 1, term.String("c"))
	k.Sweep(live)
	if k.Size() != 5 || !slices.Equal(again, values[2]) { // {a, b}, {c} and three tokens
		t.Errorf("%d things, {c} is %v and was %v", k.Size(), again, values[2])
	}
	k.Sweep(live)
	if k.Size() != 3 { // {a, b} and two tokens
		t.Errorf("%d things", k.Size())
	}
	if a, _ := k.Lift(nil, 1, term.String("a")); slices.Equal(a, values[0]) {
		t.Errorf("the word %v was used a second time", a)
	}
}

func TestLen(t *testing.T) {
	for spec, want := range map[string]int{"why": 3, "poly": 3, "count * why": 4} {
		k, err := Parse(spec, Env{})
		if err != nil {
			t.Fatal(err)
		}
		var b bag
		for _, token := range []string{"a", "b", "c", "a"} {
			if spec == "count * why" {
				token = "1|" + token
			}
			add(t, k, &b, term.String(token), 1)
		}
		if a, err := b.collect(k); err != nil || k.(Sized).Len(a) != want {
			t.Errorf("%s: a length of %d, %v, want %d", spec, k.(Sized).Len(a), err, want)
		}
	}
}

// TestColumnsMultiply covers what no plan asks for: products of two columns are
// what sums are, so that the laws hold all the same.
func TestColumnsMultiply(t *testing.T) {
	for _, s := range columns() {
		if s.spec == "sum" {
			continue
		}
		l := laws{t, s.algebra(t), s.values, rand.New(rand.NewPCG(53, 54))}
		if l.k.Name() != s.spec {
			t.Errorf("%s is named %s", s.spec, l.k.Name())
		}
		for range 500 {
			a, b, c := l.draw(true), l.draw(true), l.draw(true)
			l.multiplicative(a, b, c)
			l.same("a*b = a+b", l.mul(a, b), l.sum(a, b))
		}
	}
}

// TestTableShrinks sweeps most of a table: what stays keeps its number, and the
// room of the others is given back.
func TestTableShrinks(t *testing.T) {
	var tab table[int, int]
	const n, kept = 4096, 100
	marked := map[uint64]struct{}{}
	for i := range n {
		if id := tab.put(i, -i); i < kept {
			marked[id] = struct{}{}
		}
	}
	for range 3 {
		tab.advance()
		tab.sweep(marked, nil)
	}
	if tab.size() != kept || tab.most != kept {
		t.Errorf("%d entries in room for %d, want %d", tab.size(), tab.most, kept)
	}
	for i := range kept {
		id, ok := tab.find(i)
		if v, there := tab.get(id); !ok || !there || v != -i {
			t.Errorf("entry %d: %d, %v", i, v, there)
		}
	}
	if id := tab.put(n, -n); id <= n {
		t.Errorf("number %d is used again", id)
	}
}
