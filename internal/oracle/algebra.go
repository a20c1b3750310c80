package oracle

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/term"
)

// algebra is a commutative semiring on values of Go. It has no zero: what is not
// there is not added.
type algebra interface {
	one() any
	// lift reads the value of a contribution; ErrValue if it is none.
	lift(t term.Term) (any, error)
	add(a, b any) any
	mul(a, b any) any
	// export is what a row shows.
	export(a any) any
	// magnitude is the number whose growth may overflow, if there is one.
	magnitude(a any) (n number, ok bool)
}

// plain are the algebras without an argument.
var plain = map[string]algebra{
	"int":     integers{},
	"real":    reals{},
	"maxplus": ordered{sign: 1, times: sum, unit: whole(0)},
	"minplus": ordered{sign: -1, times: sum, unit: whole(0)},
	"maxmax":  ordered{sign: 1, times: greater, unit: infinite(-1)},
	"maxmin":  ordered{sign: 1, times: lesser, unit: infinite(1)},
	"fuzzy":   ordered{sign: 1, times: lesser, unit: either(1), unitInterval: true},
	"why":     witnesses{},
	"poly":    polynomials{},
}

// algebraOf reads the name of a semiring; nil is that of plain counts and of
// plain presence.
func algebraOf(spec string) (algebra, error) {
	name, args, _ := strings.Cut(strings.TrimSpace(spec), "(")
	name, args = strings.TrimSpace(name), strings.TrimSpace(args)
	if name == "" || name == "count" || name == "bool" {
		return nil, nil
	}
	if k, ok := plain[name]; ok {
		return k, nil
	}
	args, closed := strings.CutSuffix(args, ")")
	n, err := strconv.ParseInt(strings.TrimSpace(args), 10, 64)
	switch {
	case closed && name == "access":
		var k levels
		for _, l := range strings.Split(args, "<") {
			k = append(k, strings.Trim(strings.TrimSpace(l), `"`))
		}
		return k, nil
	case closed && name == "cap" && err == nil && n > 0:
		return capped{big.NewInt(n)}, nil
	case closed && name == "topk" && err == nil && n > 0:
		return best{int(n)}, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrSemiring, spec)
}

// lift reads the text of a value, which is the one where there is none.
func lift(k algebra, text string) (any, error) {
	if text == "" {
		return k.one(), nil
	}
	t, err := term.Parse(text)
	if err != nil {
		return nil, err
	}
	return k.lift(t)
}

// integers are Z.
type integers struct{}

func (integers) one() any { return big.NewInt(1) }

func (integers) lift(t term.Term) (any, error) {
	i, ok := t.AsInt()
	if !ok {
		return nil, fmt.Errorf("%w: %v is no integer", ErrValue, t)
	}
	return big.NewInt(i), nil
}

func (integers) add(a, b any) any { return new(big.Int).Add(a.(*big.Int), b.(*big.Int)) }
func (integers) mul(a, b any) any { return new(big.Int).Mul(a.(*big.Int), b.(*big.Int)) }
func (integers) export(a any) any { return integer(a.(*big.Int)) }

func (integers) magnitude(a any) (number, bool) {
	r := new(big.Rat).SetInt(a.(*big.Int))
	return number{exact: r, int: true}, true
}

// capped are the naturals up to a cap.
type capped struct{ cap *big.Int }

func (k capped) trim(a *big.Int) any {
	if a.Cmp(k.cap) > 0 {
		return k.cap
	}
	return a
}

func (k capped) one() any { return big.NewInt(1) }

func (k capped) lift(t term.Term) (any, error) {
	if i, ok := t.AsInt(); ok && i > 0 {
		return k.trim(big.NewInt(i)), nil
	}
	return nil, fmt.Errorf("%w: %v is no natural number above 0", ErrValue, t)
}

func (k capped) add(a, b any) any               { return k.trim(integers{}.add(a, b).(*big.Int)) }
func (k capped) mul(a, b any) any               { return k.trim(integers{}.mul(a, b).(*big.Int)) }
func (k capped) export(a any) any               { return integer(a.(*big.Int)) }
func (k capped) magnitude(a any) (number, bool) { return integers{}.magnitude(a) }

// reals are the real numbers, of which a row shows a float64.
type reals struct{}

func (reals) one() any { return either(1) }

func (reals) lift(t term.Term) (any, error) {
	n, err := numberOf(t)
	return n, err
}

func (reals) add(a, b any) any { return a.(number).plus(b.(number)) }

func (reals) mul(a, b any) any {
	n, m := a.(number), b.(number)
	return number{exact: new(big.Rat).Mul(n.exact, m.exact), size: new(big.Rat).Mul(n.size, m.size)}
}

func (reals) export(a any) any {
	n := a.(number)
	if f := rounded(n.exact); f == any(Overflow{}) {
		return f
	}
	return Number{Exact: n.exact, Slack: slack(n.size), Float: true}
}

// magnitude takes integers as floats, because an engine does.
func (reals) magnitude(a any) (number, bool) {
	n := a.(number)
	return number{exact: n.exact, float: true}, true
}

// ordered are numbers of which the best is taken: the greatest, or the least if
// sign is -1.
type ordered struct {
	sign         int
	times        func(a, b number) number
	unit         number
	unitInterval bool // only numbers from 0 to 1 are values
}

func sum(a, b number) number     { return a.plus(b) }
func greater(a, b number) number { return better(a, b, 1) }
func lesser(a, b number) number  { return better(a, b, -1) }

// either is an integer that may be a float as well.
func either(i int64) number {
	n := whole(i)
	n.float = true
	return n
}

func (k ordered) one() any { return k.unit }

func (k ordered) lift(t term.Term) (any, error) {
	n, err := numberOf(t)
	if err == nil && k.unitInterval && (n.compare(whole(0)) < 0 || n.compare(whole(1)) > 0) {
		err = fmt.Errorf("%w: %v is not between 0 and 1", ErrValue, t)
	}
	return n, err
}

func (k ordered) add(a, b any) any { return better(a.(number), b.(number), k.sign) }
func (k ordered) mul(a, b any) any { return k.times(a.(number), b.(number)) }
func (k ordered) export(a any) any { return a.(number).export() }

func (k ordered) magnitude(a any) (number, bool) { return a.(number), a.(number).inf == 0 }

// best keeps the multiset of all numbers and shows the k greatest.
type best struct{ k int }

func (best) one() any { return bag{whole(0)} }

func (best) lift(t term.Term) (any, error) {
	n, err := numberOf(t)
	return bag{n}, err
}

func (best) add(a, b any) any { return slices.Concat(a.(bag), b.(bag)) }

func (best) mul(a, b any) any {
	var out bag
	for _, n := range a.(bag) {
		for _, m := range b.(bag) {
			out = append(out, n.plus(m))
		}
	}
	return out
}

func (k best) export(a any) any { return a.(bag).top(k.k) }

func (best) magnitude(a any) (number, bool) { return a.(bag)[0], true }

// levels are access levels, the least restrictive one first. A value is an index.
type levels []string

func (levels) one() any { return 0 }

func (k levels) lift(t term.Term) (any, error) {
	i := slices.Index(k, t.Lexical())
	if t.Kind() != term.KindString || i < 0 {
		return nil, fmt.Errorf("%w: %v is no level", ErrValue, t)
	}
	return i, nil
}

func (levels) add(a, b any) any                  { return min(a.(int), b.(int)) }
func (levels) mul(a, b any) any                  { return max(a.(int), b.(int)) }
func (k levels) export(a any) any                { return k[a.(int)] }
func (levels) magnitude(any) (n number, ok bool) { return n, false }

// token is the name of a value in provenance.
func token(t term.Term) string {
	if t.Kind() == term.KindString {
		return t.Lexical()
	}
	return t.String()
}

// witnesses are sets of sets of tokens, by the text of the inner set.
type witnesses struct{}

func (witnesses) one() any { return map[string][]string{"": {}} }

func (witnesses) lift(t term.Term) (any, error) {
	return map[string][]string{token(t): {token(t)}}, nil
}

func (witnesses) add(a, b any) any {
	out := maps.Clone(a.(map[string][]string))
	maps.Copy(out, b.(map[string][]string))
	return out
}

func (witnesses) mul(a, b any) any {
	out := map[string][]string{}
	for _, v := range a.(map[string][]string) {
		for _, w := range b.(map[string][]string) {
			both := slices.Compact(slices.Sorted(slices.Values(slices.Concat(v, w))))
			out[strings.Join(both, "\x00")] = both
		}
	}
	return out
}

func (witnesses) export(a any) any {
	return slices.SortedFunc(maps.Values(a.(map[string][]string)), slices.Compare[[]string])
}

func (witnesses) magnitude(any) (n number, ok bool) { return n, false }

// monomial is a product of tokens, in order, with repeats.
type monomial struct {
	tokens []string
	times  *big.Int
}

// polynomials are N[X], by the text of the monomial.
type polynomials struct{}

func (polynomials) one() any { return map[string]monomial{"": {nil, big.NewInt(1)}} }

func (polynomials) lift(t term.Term) (any, error) {
	return map[string]monomial{token(t): {[]string{token(t)}, big.NewInt(1)}}, nil
}

// gather adds a monomial to a polynomial.
func gather(p map[string]monomial, m monomial) {
	key := strings.Join(m.tokens, "\x00")
	if was, ok := p[key]; ok {
		m.times = new(big.Int).Add(was.times, m.times)
	}
	p[key] = m
}

func (polynomials) add(a, b any) any {
	out := maps.Clone(a.(map[string]monomial))
	for _, m := range b.(map[string]monomial) {
		gather(out, m)
	}
	return out
}

func (polynomials) mul(a, b any) any {
	out := map[string]monomial{}
	for _, m := range a.(map[string]monomial) {
		for _, n := range b.(map[string]monomial) {
			gather(out, monomial{
				slices.Sorted(slices.Values(slices.Concat(m.tokens, n.tokens))),
				new(big.Int).Mul(m.times, n.times),
			})
		}
	}
	return out
}

func (polynomials) export(a any) any {
	var out []string
	for _, m := range a.(map[string]monomial) {
		if !m.times.IsInt64() {
			return Overflow{}
		}
		factors := powers(m.tokens)
		if len(factors) == 0 || m.times.Cmp(big.NewInt(1)) != 0 {
			factors = slices.Insert(factors, 0, m.times.String())
		}
		out = append(out, strings.Join(factors, "*"))
	}
	slices.Sort(out)
	return strings.Join(out, " + ")
}

// powers writes repeats as exponents.
func powers(tokens []string) (out []string) {
	for i := 0; i < len(tokens); {
		n := 1
		for i+n < len(tokens) && tokens[i+n] == tokens[i] {
			n++
		}
		f := tokens[i]
		if n > 1 {
			f += "^" + strconv.Itoa(n)
		}
		out = append(out, f)
		i += n
	}
	return out
}

func (polynomials) magnitude(any) (n number, ok bool) { return n, false }
