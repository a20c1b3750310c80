package oracle

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/semiring"
)

// vector is a state of the engine's algebras in memory; it iterates over itself.
type vector struct {
	parts []semiring.Part
	next  int
}

func (v *vector) Next() bool {
	v.next++
	return v.next <= len(v.parts)
}

func (v *vector) Part() semiring.Part { return v.parts[v.next-1] }

// add adds the vector of a value.
func (v *vector) add(parts []semiring.Part) {
	for _, p := range parts {
		i, found := slices.BinarySearchFunc(v.parts, p, func(a, b semiring.Part) int {
			return cmp.Or(cmp.Compare(a.At.High, b.At.High), cmp.Compare(a.At.Low, b.At.Low))
		})
		if !found {
			v.parts = slices.Insert(v.parts, i, semiring.Part{At: p.At})
		}
		if v.parts[i].N += p.N; v.parts[i].N == 0 {
			v.parts = slices.Delete(v.parts, i, i+1)
		}
	}
}

// twin evaluates in an algebra of the engine and in the one of this package at
// the same time.
type twin struct {
	t     *testing.T
	rng   *rand.Rand
	fast  semiring.Algebra
	plain algebra
	terms []term.Term // the values; the id of one is its index and one more
}

// Term resolves an id.
func (w *twin) Term(id uint64) term.Term { return w.terms[id-1] }

// must fails at an error.
func (w *twin) must(words []uint64, err error) []uint64 {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", w.fast.Name(), err)
	}
	return words
}

// sum adds up some draws, each a few times.
func (w *twin) sum(draw func() ([]uint64, any)) (fast []uint64, plain any) {
	var state vector
	for range 1 + w.rng.IntN(4) {
		x, y := draw()
		n := 1 + w.rng.Int64N(3)
		state.add(w.fast.Spread(nil, w.must(w.fast.Times(nil, x, n))))
		for range n {
			plain = plus(w.plain, plain, y)
		}
	}
	return w.must(w.fast.Collect(nil, &state)), plain
}

// value draws a value or one.
func (w *twin) value() ([]uint64, any) {
	i := w.rng.IntN(len(w.terms) + 1)
	if i == len(w.terms) {
		return w.fast.One(nil), w.plain.one()
	}
	v, err := w.plain.lift(w.terms[i])
	if err != nil {
		w.t.Fatal(err)
	}
	return w.must(w.fast.Lift(nil, uint64(i+1), w.terms[i])), v
}

// product multiplies sums of values.
func (w *twin) product() ([]uint64, any) {
	fast, plain := w.sum(w.value)
	for range w.rng.IntN(3) {
		x, y := w.sum(w.value)
		fast, plain = w.must(w.fast.Mul(nil, fast, x)), w.plain.mul(plain, y)
	}
	return fast, plain
}

// TestSemiringsAgree checks sums of products of sums in the algebras of the engine
// against those of this package, and with that what a row shows of them.
func TestSemiringsAgree(t *testing.T) {
	numbers := []string{"0", "1", "-1", "2", "2.0e0", "-0.0", "0.1", "-7.25", "9007199254740993", "9007199254740992.0", "1e17", "-1e17"}
	for spec, words := range map[string][]string{
		"int":                    {"0", "1", "-1", "2", "-3", "40", "-50"},
		"real":                   numbers,
		"cap(50)":                {"0", "1", "2", "7", "60"},
		"maxplus":                numbers,
		"minplus":                numbers,
		"maxmax":                 numbers,
		"maxmin":                 numbers,
		"fuzzy":                  {"0", "1", "0.5", "0.25", "1.0e0", "1e-9"},
		"topk(4)":                numbers,
		`access(a < "b c" < d)`:  {"a", "b c", "d"},
		"why":                    {"a", "b", "c d", "3", "b2"},
		"poly":                   {"a", "b", "c d", "3", "_x", "é"},
		"maxplus*count * poly":   {"1|2|a", "|5|b", "2.5||a", "||", `-3|0|"x|y"`},
		"bool * real * minplus":  {"|0.5|3", "||-4", "|2|"},
		"access(x < y) * fuzzy":  {"x|0.5", "y|1", "|0"},
		"maxmax*maxmin* topk(2)": {"1|2|3", "||", "3||2.5", "|1.5e0|0"},
	} {
		t.Run(spec, func(t *testing.T) {
			w := &twin{t: t, rng: rand.New(rand.NewPCG(5, 5))}
			for _, word := range words {
				v, _ := term.Parse(value(word))
				w.terms = append(w.terms, v)
			}
			var err error
			if w.fast, err = semiring.Parse(spec, semiring.Env{Terms: w}); err != nil {
				t.Fatal(err)
			}
			if w.plain, err = algebraOf(spec); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				fast, plain := w.sum(w.product)
				if got, want := w.fast.Export(fast), w.plain.export(plain); !SameValue(got, want) {
					t.Fatalf("got %v, want %s", got, showValue(want))
				}
			}
		})
	}
}

// TestAggregatesAgree checks the algebras behind aggregates against those of this
// package.
func TestAggregatesAgree(t *testing.T) {
	x := func(lexical, datatype string) term.Term { return term.Typed(lexical, term.XSD+datatype) }
	numbers := []term.Term{
		term.Int(0), term.Int(-5), term.Int(1<<53 + 1), term.Int(math.MaxInt64 >> 12), term.Float(1 << 53), term.Float(0.1),
		term.Float(-0.1), term.Float(1e300), term.Float(5e-324), x("0.1", "decimal"), x("007", "integer"), x("1.5", "float"),
	}
	terms := append(slices.Clone(numbers), term.String("a"), term.String("abcdefgh1"), term.String("abcdefgh2"),
		term.IRI("http://example.org/1"), term.IRI("http://example.org/2"), term.Blank("b"), term.Bool(true),
		term.Float(math.NaN()), term.Float(math.Inf(1)), x("2020-01-01", "date"), x("?", "date"), term.LangString("a", "en"))
	for _, tc := range []struct {
		name  string
		f     Func
		terms []term.Term
	}{
		{"sum", Sum, numbers[:4]}, {"sum", Sum, numbers}, {"top(3)", TopK, numbers},
		{"min", Min, terms}, {"max", Max, terms}, {"distinct", CountDistinct, terms},
	} {
		w := &twin{t: t, rng: rand.New(rand.NewPCG(6, 6)), terms: tc.terms}
		var err error
		if w.fast, err = semiring.Parse(tc.name, semiring.Env{Terms: w}); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			var state vector
			a := newAggregate(Aggregate{Func: tc.f, Var: "a", K: 3})
			for range 1 + w.rng.IntN(5) {
				i, n := w.rng.IntN(len(w.terms)), 1+w.rng.Int64N(4)
				v := w.must(w.fast.Lift(nil, uint64(i+1), w.terms[i]))
				state.add(w.fast.Spread(nil, w.must(w.fast.Times(nil, v, n))))
				err := a.add(&valuation{val: map[string]string{"a": w.terms[i].String()}, weight: big.NewInt(n)})
				if err != nil {
					t.Fatal(err)
				}
			}
			got, want := w.fast.Export(w.must(w.fast.Collect(nil, &state))), a.value()
			if !SameValue(got, want) {
				t.Fatalf("%s: got %v, want %s", tc.name, got, showValue(want))
			}
			if tc.f != Sum {
				continue
			}
			if got, want := semiring.Average(got, a.count.Int64()), (&aggregate{Aggregate{Func: Avg}, a.count, a.seen}).value(); !SameValue(got, want) {
				t.Fatalf("average: got %v, want %s", got, showValue(want))
			}
		}
	}
}
