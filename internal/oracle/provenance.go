package oracle

import (
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/term"
)

// token is the name of a value in a witness: a plain string as it is, another
// term in N-Triples syntax.
func token(t term.Term) string {
	if t.Kind() == term.KindString {
		return t.Lexical()
	}
	return t.String()
}

// name is a form of tokens that needs no quotes in a polynomial.
var name = regexp.MustCompile(`^[_\pL][_\pL\p{Mn}0-9]*$`)

// factor is the name of a value in a polynomial.
func factor(t term.Term) string {
	if text := token(t); name.MatchString(text) {
		return text
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

func (witnesses) magnitudes(any) []number { return nil }

// monomial is a product of tokens, in order, with repeats.
type monomial struct {
	tokens []string
	times  *big.Int
}

// polynomials are N[X], by the text of the monomial.
type polynomials struct{}

func (polynomials) one() any { return map[string]monomial{"": {nil, big.NewInt(1)}} }

func (polynomials) lift(t term.Term) (any, error) {
	return map[string]monomial{factor(t): {[]string{factor(t)}, big.NewInt(1)}}, nil
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

// export writes "3 + 2*a*b^2 + c": the monomials in the order of their texts
// without coefficients, and so the factors.
func (polynomials) export(a any) any {
	times := map[string]*big.Int{}
	for _, m := range a.(map[string]monomial) {
		times[powers(m.tokens)] = m.times
	}
	var out []string
	for _, text := range slices.Sorted(maps.Keys(times)) {
		n := times[text]
		switch {
		case !n.IsInt64():
			return Overflow{}
		case text == "":
			text = n.String()
		case n.Cmp(big.NewInt(1)) != 0:
			text = n.String() + "*" + text
		}
		out = append(out, text)
	}
	return strings.Join(out, " + ")
}

// powers writes a product with repeats as exponents.
func powers(tokens []string) string {
	times := map[string]int{}
	for _, t := range tokens {
		times[t]++
	}
	var out []string
	for t, n := range times {
		if n > 1 {
			t += "^" + strconv.Itoa(n)
		}
		out = append(out, t)
	}
	slices.Sort(out)
	return strings.Join(out, "*")
}

func (polynomials) magnitudes(any) []number { return nil }
