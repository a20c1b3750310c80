package semiring

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// bag is a state in memory: a vector, and a cursor into it.
type bag struct {
	parts []Part
	next  int
}

func (b *bag) Next() bool {
	b.next++
	return b.next <= len(b.parts)
}

func (b *bag) Part() Part { return b.parts[b.next-1] }

// add adds a vector n times, with the check that an engine makes.
func (b *bag) add(parts []Part, n int64) {
	for _, p := range parts {
		i, found := slices.BinarySearchFunc(b.parts, p.At, func(q Part, at Component) int { return order(q.At, at) })
		if !found {
			b.parts = slices.Insert(b.parts, i, Part{p.At, 0})
		}
		sum, ok := Add(b.parts[i].N, p.N*n)
		if !ok {
			panic("a component does not fit")
		}
		if b.parts[i].N = sum; sum == 0 {
			b.parts = slices.Delete(b.parts, i, i+1)
		}
	}
}

func order(a, b Component) int {
	return cmp.Or(cmp.Compare(a.High, b.High), cmp.Compare(a.Low, b.Low))
}

func (b *bag) collect(k Algebra) ([]uint64, error) {
	b.next = 0
	return k.Collect(nil, b)
}

// dictionary is a Resolver; the id of a term is its index and one more.
type dictionary []term.Term

func (d dictionary) Term(id uint64) term.Term { return d[id-1] }

// subject is an algebra under test with terms that are values of it.
type subject struct {
	spec   string
	values []term.Term
	extra  map[string]Definition
}

func ints(values ...int64) []term.Term {
	var ts []term.Term
	for _, v := range values {
		ts = append(ts, term.Int(v))
	}
	return ts
}

func floats(values ...float64) []term.Term {
	var ts []term.Term
	for _, v := range values {
		ts = append(ts, term.Float(v))
	}
	return ts
}

func strs(values ...string) []term.Term {
	var ts []term.Term
	for _, v := range values {
		ts = append(ts, term.String(v))
	}
	return ts
}

// viterbi multiplies probabilities and takes the likeliest, by Order; plain is the
// same without; naturals is neither selective nor idempotent.
var definitions = map[string]Definition{
	"viterbi": {One: term.Float(1), Mul: timesFloat, Add: maxFloat, Lift: wantFloat, Positive: true, Order: func(t term.Term) uint64 {
		f, _ := t.AsFloat()
		return ^math.Float64bits(math.Floor(f * 4)) // coarse, so that Add has to decide as well
	}},
	"plain":    {One: term.Float(1), Mul: timesFloat, Add: maxFloat, Idempotent: true, Positive: true},
	"naturals": {One: term.Int(1), Mul: onInts(Mul), Add: onInts(Add), Positive: true, Exact: true},
}

func timesFloat(a, b term.Term) (term.Term, error) {
	x, _ := a.AsFloat()
	y, _ := b.AsFloat()
	return term.Float(x * y), nil
}

func maxFloat(a, b term.Term) (term.Term, error) {
	x, _ := a.AsFloat()
	y, _ := b.AsFloat()
	return term.Float(max(x, y)), nil
}

func wantFloat(t term.Term) (term.Term, error) {
	if t.Kind() != term.KindFloat {
		return t, errors.New("no float")
	}
	return t, nil
}

func onInts(f func(a, b int64) (int64, bool)) func(a, b term.Term) (term.Term, error) {
	return func(a, b term.Term) (term.Term, error) {
		x, _ := a.AsInt()
		y, _ := b.AsInt()
		r, ok := f(x, y)
		if !ok {
			return term.Term{}, errs.ErrOverflow
		}
		return term.Int(r), nil
	}
}

// subjects have values for which no product of a few rounds, since rounding is
// outside of the laws.
func subjects() []subject {
	numbers := append(ints(0, 1, -1, 2, 7, -7, 1000, 1<<40), floats(0.5, -0.25, 3, 0, 1000)...)
	edges := append(slices.Clone(numbers), append(ints(math.MaxInt64, math.MinInt64, math.MaxInt64-1, 1<<53, 1<<53+1, -1<<53-1),
		floats(1<<53, 1<<63, -1<<63, 5e-324, -5e-324, math.MaxFloat64, math.Copysign(0, -1))...)...)
	tokens := append(strs("a", "b", "c", "d e", ""), term.IRI("a"), term.Int(3))
	return []subject{
		{spec: "bool", values: []term.Term{term.Bool(true), term.Bool(false)}},
		{spec: "count", values: ints(0, 1, 2, 3, 7, 50)},
		{spec: "int", values: ints(0, 1, -1, 2, -3, 50, -50)},
		{spec: "real", values: append(floats(0, 1, -1, 0.5, 1.5, -3), ints(2, -4)...)},
		{spec: "cap(1)", values: ints(0, 1, 5)},
		{spec: "cap(10)", values: ints(0, 1, 2, 3, 9, 10, 11, math.MaxInt64)},
		{spec: "maxplus", values: numbers},
		{spec: "minplus", values: numbers},
		{spec: "maxmax", values: edges},
		{spec: "maxmin", values: edges},
		{spec: "fuzzy", values: append(floats(0, 1, 0.5, 0.1, 5e-324), ints(0, 1)...)},
		{spec: "access(public < internal < secret)", values: strs("public", "internal", "secret")},
		{spec: "topk(1)", values: numbers},
		{spec: "topk(3)", values: numbers},
		{spec: "topk(8)", values: numbers},
		{spec: "why", values: tokens},
		{spec: "poly", values: tokens},
		{spec: "cap(3) * minplus", values: strs("1|2", "2|-7", "3|0.5", "|3", "2|", "|")},
		{spec: "why * access(a < b) * int", values: strs("x|a|1", "y|b|-1", `"x|y"|b|0`, "z||2", "||")},
		{spec: "viterbi", values: floats(1, 0.5, 0.25, 0.375, 0.125), extra: definitions},
		{spec: "plain", values: floats(1, 0.5, 0.25, 0.375, 0.125), extra: definitions},
		{spec: "naturals", values: ints(1, 2, 3, 10), extra: definitions},
		{spec: "naturals * viterbi", values: strs("2|0.5", "3|0.25", "|0.125", "7|"), extra: definitions},
		{spec: "top(4)", values: numbers},
	}
}

// columns are the aggregates that are no semirings for all values.
func columns() []subject {
	terms := slices.Concat(ints(1, 2, 1<<53+1), floats(1, 2.5, 1<<53, 0, math.Copysign(0, -1), math.NaN(), math.Inf(1)),
		strs("a", "aaaaaaaaaaaaa", "aaaaaaaaaaaab"), []term.Term{
			term.Bool(true), term.Time(time.Unix(3, 1)), term.Time(time.Unix(3, 2)), term.Blank("b"), term.IRI("http://example.org/1"),
			term.IRI("http://example.org/2"), term.Typed("1.5", term.XSDDecimal), term.LangString("a", "en"), term.Typed("x", "y"),
		})
	return []subject{
		{spec: "min", values: terms},
		{spec: "max", values: terms},
		{spec: "distinct", values: terms},
		{spec: "sum", values: slices.Concat(ints(0, 1, -5, 1<<40), floats(0, 0.1, -1e300, 5e-324, 1e10))},
	}
}

func (s *subject) algebra(t *testing.T) Algebra {
	t.Helper()
	k, err := Parse(s.spec, Env{Terms: dictionary(s.values), Extra: s.extra})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// laws checks with values of an algebra; any error or difference is fatal.
type laws struct {
	*testing.T
	k      Algebra
	values []term.Term
	rng    *rand.Rand
}

func (l laws) must(v []uint64, err error) []uint64 {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
	return v
}

func (l laws) lift() []uint64 {
	l.Helper()
	i := l.rng.IntN(len(l.values) + 1)
	if i == len(l.values) {
		return l.k.One(nil)
	}
	return l.must(l.k.Lift(nil, uint64(i+1), l.values[i]))
}

// draw makes a value of up to three liftings, by sums and products.
func (l laws) draw(products bool) []uint64 {
	l.Helper()
	v := l.lift()
	for range l.rng.IntN(3) {
		if products && l.rng.IntN(2) == 0 {
			v = l.must(l.k.Mul(nil, v, l.lift()))
		} else {
			v = l.sum(v, l.lift())
		}
	}
	return v
}

func (l laws) sum(values ...[]uint64) []uint64 {
	l.Helper()
	var b bag
	for _, v := range values {
		b.add(l.k.Spread(nil, v), 1)
	}
	return l.must(b.collect(l.k))
}

func (l laws) mul(a, b []uint64) []uint64 {
	l.Helper()
	return l.must(l.k.Mul(nil, a, b))
}

func (l laws) same(law string, a, b []uint64) {
	l.Helper()
	if !slices.Equal(a, b) {
		l.Fatalf("%s: %v (%x) and %v (%x)", law, l.k.Export(a), a, l.k.Export(b), b)
	}
}

// additive checks the laws of sums alone.
func (l laws) additive(a, b, c []uint64) {
	l.Helper()
	l.same("a+b = b+a", l.sum(a, b), l.sum(b, a))
	l.same("(a+b)+c = a+b+c", l.sum(l.sum(a, b), c), l.sum(a, b, c))
	l.same("a+(b+c) = a+b+c", l.sum(a, l.sum(b, c)), l.sum(a, b, c))
	l.same("a read off its own vector", l.sum(a), a)
	n := l.rng.IntN(12) + 1
	l.same("n times a", l.must(l.k.Times(nil, a, int64(n))), l.sum(slices.Repeat([][]uint64{a}, n)...))
	if l.k.Traits().Idempotent {
		l.same("a+a = a", l.sum(a, a), a)
	}
	l.same("1*a = a", l.mul(l.k.One(nil), a), a)
	l.same("a*1 = a", l.mul(a, l.k.One(nil)), a)
	parts := l.k.Spread(nil, a)
	for i, p := range parts {
		if p.N == 0 || i > 0 && order(parts[i-1].At, p.At) >= 0 {
			l.Fatalf("the vector of %v is %v", l.k.Export(a), parts)
		}
	}
}

func (l laws) multiplicative(a, b, c []uint64) {
	l.Helper()
	l.same("a*b = b*a", l.mul(a, b), l.mul(b, a))
	l.same("(a*b)*c = a*(b*c)", l.mul(l.mul(a, b), c), l.mul(a, l.mul(b, c)))
	l.same("a*(b+c) = a*b + a*c", l.mul(a, l.sum(b, c)), l.sum(l.mul(a, b), l.mul(a, c)))
}

func eachSubject(t *testing.T, list []subject, run func(laws)) {
	for i, s := range list {
		t.Run(s.spec, func(t *testing.T) {
			run(laws{t, s.algebra(t), s.values, rand.New(rand.NewPCG(11, uint64(i)))})
		})
	}
}

func TestLaws(t *testing.T) {
	eachSubject(t, subjects(), func(l laws) {
		for range 1000 {
			a, b, c := l.draw(true), l.draw(true), l.draw(true)
			l.additive(a, b, c)
			l.multiplicative(a, b, c)
		}
	})
}

// TestAggregateLaws multiplies with sums of ones only.
func TestAggregateLaws(t *testing.T) {
	eachSubject(t, columns(), func(l laws) {
		for range 1000 {
			a, b, c := l.draw(false), l.draw(false), l.draw(false)
			l.additive(a, b, c)
			n := l.rng.Int64N(1000) + 1
			ones := l.must(l.k.Times(nil, l.k.One(nil), n))
			l.same("n*a = a, n times", l.mul(ones, a), l.must(l.k.Times(nil, a, n)))
			l.same("n*(a+b) = n*a + n*b", l.mul(ones, l.sum(a, b)), l.sum(l.mul(ones, a), l.mul(ones, b)))
		}
	})
}

// TestExactDeletion plays random insertions and deletions against a state made of
// what is left: the components must be the same, and so the value.
func TestExactDeletion(t *testing.T) {
	eachSubject(t, append(subjects(), columns()...), func(l laws) {
		for range 30 {
			var b bag
			var alive [][]uint64
			for range 200 {
				if i := l.rng.IntN(100); i < len(alive) {
					b.add(l.k.Spread(nil, alive[i]), -1)
					alive = slices.Delete(alive, i, i+1)
				} else {
					v := l.draw(false)
					alive = append(alive, v)
					b.add(l.k.Spread(nil, v), 1)
				}
				if len(alive) == 0 && len(b.parts) > 0 {
					l.Fatalf("nothing is left, but %v", b.parts)
				}
			}
			var want bag
			for _, v := range alive {
				want.add(l.k.Spread(nil, v), 1)
			}
			if !slices.Equal(b.parts, want.parts) {
				l.Fatalf("%v, want %v", b.parts, want.parts)
			}
			if len(alive) > 0 {
				l.same("what is left", l.must(b.collect(l.k)), l.sum(alive...))
			}
		}
	})
}

// TestPositive checks the flag: only where it is not set may a sum of values leave
// no component, or one that reads as the absence of them all.
func TestPositive(t *testing.T) {
	for _, s := range subjects() {
		k := s.algebra(t)
		want := k.Name() != "int" && k.Name() != "real" && !strings.HasSuffix(k.Name(), " * int")
		if got := k.Traits().Positive; got != want {
			t.Errorf("%s: positive is %v", s.spec, got)
		}
	}
}

// TestNothingAllocates pins the cost of values of one and two words.
func TestNothingAllocates(t *testing.T) {
	for _, s := range append(subjects(), columns()...) {
		if strings.Contains(s.spec, "*") || s.extra != nil || s.spec == "why" || s.spec == "poly" {
			continue
		}
		t.Run(s.spec, func(t *testing.T) {
			l := laws{t, s.algebra(t), s.values, rand.New(rand.NewPCG(1, 1))}
			values := make([][]uint64, len(s.values))
			for i, v := range s.values {
				values[i] = l.must(l.k.Lift(nil, uint64(i+1), v))
			}
			one := l.k.One(nil)
			dst, parts := make([]uint64, 0, 128), make([]Part, 0, 128)
			b := &bag{}
			for _, v := range values {
				b.add(l.k.Spread(nil, v), 1)
			}
			var err error
			n := testing.AllocsPerRun(50, func() {
				for i, v := range values {
					_, e1 := l.k.Lift(dst, uint64(i+1), s.values[i])
					_, e2 := l.k.Mul(dst, v, one)
					_, e3 := l.k.Times(dst, v, 3)
					l.k.Spread(parts, v)
					l.k.One(dst)
					err = errors.Join(err, e1, e2, e3)
				}
				b.next = 0
				_, e4 := l.k.Collect(dst, b)
				err = errors.Join(err, e4)
			})
			if n != 0 && err == nil {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// TestConcurrentUse makes values from several goroutines; the race detector looks
// on, and equal values must come out with equal words.
func TestConcurrentUse(t *testing.T) {
	for _, s := range subjects() {
		k := s.algebra(t)
		results := make(chan string)
		const workers = 4
		for range workers {
			go func() {
				l := laws{t, k, s.values, rand.New(rand.NewPCG(5, 5))}
				var text strings.Builder
				defer func() { results <- text.String() }()
				for range 20 {
					v := l.draw(true)
					fmt.Fprint(&text, v, k.Export(v))
				}
			}()
		}
		first := <-results
		for range workers - 1 {
			if other := <-results; other != first {
				t.Errorf("%s: two goroutines got different values", s.spec)
			}
		}
	}
}
