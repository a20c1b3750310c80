package semiring

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// why is the algebra of the sets of witnesses, each a set of tokens that together
// derive an answer. A value is the numbers of its witnesses, ascending; One has
// the empty witness only. A state counts each witness.
type why struct{ lists }

func (*why) Name() string { return "why" }

func (*why) Traits() Traits {
	return Traits{Positive: true, Idempotent: true, Exact: true, State: "O(size)"}
}

func (*why) One(dst []uint64) []uint64 { return append(dst, 0) }

// Lift takes any term as a token, which is the only one of the only witness.
func (k *why) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	return append(dst, k.id([]uint64{k.tokens.id(t)})), nil
}

// Mul costs O(|a| |b|) unions.
func (k *why) Mul(dst, a, b []uint64) ([]uint64, error) {
	switch {
	case len(a) == 1 && a[0] == 0:
		return append(dst, b...), nil
	case len(b) == 1 && b[0] == 0:
		return append(dst, a...), nil
	}
	start := len(dst)
	var union []uint64
	for _, x := range a {
		for _, y := range b {
			union = append(append(union[:0], k.get(x)...), k.get(y)...)
			slices.Sort(union)
			dst = append(dst, k.id(slices.Compact(union)))
		}
	}
	slices.Sort(dst[start:])
	return dst[:start+len(slices.Compact(dst[start:]))], nil
}

func (*why) Times(dst, a []uint64, _ int64) ([]uint64, error) { return append(dst, a...), nil }

func (*why) Spread(dst []Part, a []uint64) []Part {
	for _, witness := range a {
		dst = append(dst, Part{Component{0, witness}, 1})
	}
	return dst
}

func (*why) Collect(dst []uint64, s State) ([]uint64, error) {
	start := len(dst)
	for s.Next() {
		dst = append(dst, s.Part().At.Low)
	}
	if len(dst) == start {
		return dst, errEmpty
	}
	return dst, nil
}

// Export gives a [][]string: the witnesses in order, the tokens of each in order.
func (k *why) Export(a []uint64) any {
	witnesses := make([][]string, len(a))
	for i, w := range a {
		witnesses[i] = []string{}
		for _, token := range k.get(w) {
			witnesses[i] = append(witnesses[i], k.text(token))
		}
		slices.Sort(witnesses[i])
	}
	slices.SortFunc(witnesses, slices.Compare[[]string])
	return witnesses
}

// Len is the number of witnesses.
func (*why) Len(a []uint64) int { return len(a) }

// poly is the algebra of the polynomials over tokens with natural coefficients in
// int64 (Green, Karvounarakis and Tannen): how often each combination of tokens
// derives an answer. A value has two words for each monomial, ascending: its
// number and its coefficient. A monomial is a list of tokens, with repeats. A
// state holds the coefficient of each monomial.
type poly struct{ lists }

func (*poly) Name() string { return "poly" }

func (*poly) Traits() Traits { return Traits{Positive: true, Exact: true, State: "O(size)"} }

func (*poly) One(dst []uint64) []uint64 { return append(dst, 0, 1) }

// Lift takes any term as a token.
func (k *poly) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	return append(dst, k.id([]uint64{k.tokens.id(t)}), 1), nil
}

// Mul costs O(|a| |b|) products of monomials.
func (k *poly) Mul(dst, a, b []uint64) ([]uint64, error) {
	var list []uint64
	product := make([]Part, 0, len(a)/2*len(b)/2)
	for i := 0; i < len(a); i += 2 {
		for j := 0; j < len(b); j += 2 {
			n, ok := Mul(int64(a[i+1]), int64(b[j+1]))
			if !ok {
				return dst, fmt.Errorf("%w: a coefficient %d * %d", errs.ErrOverflow, a[i+1], b[j+1])
			}
			list = append(append(list[:0], k.get(a[i])...), k.get(b[j])...)
			slices.Sort(list)
			product = append(product, Part{Component{0, k.id(list)}, n})
		}
	}
	slices.SortFunc(product, func(x, y Part) int { return cmp.Compare(x.At.Low, y.At.Low) })
	start := len(dst)
	for _, p := range product {
		if last := len(dst) - 2; last >= start && dst[last] == p.At.Low {
			n, ok := Add(int64(dst[last+1]), p.N)
			if !ok {
				return dst[:start], fmt.Errorf("%w: a coefficient %d + %d", errs.ErrOverflow, dst[last+1], p.N)
			}
			dst[last+1] = uint64(n)
			continue
		}
		dst = append(dst, p.At.Low, uint64(p.N))
	}
	return dst, nil
}

func (*poly) Times(dst, a []uint64, n int64) ([]uint64, error) {
	start := len(dst)
	for i := 0; i < len(a); i += 2 {
		c, ok := Mul(int64(a[i+1]), n)
		if !ok {
			return dst[:start], fmt.Errorf("%w: a coefficient %d * %d", errs.ErrOverflow, a[i+1], n)
		}
		dst = append(dst, a[i], uint64(c))
	}
	return dst, nil
}

func (*poly) Spread(dst []Part, a []uint64) []Part {
	for i := 0; i < len(a); i += 2 {
		dst = append(dst, Part{Component{0, a[i]}, int64(a[i+1])})
	}
	return dst
}

func (*poly) Collect(dst []uint64, s State) ([]uint64, error) {
	start := len(dst)
	for s.Next() {
		p := s.Part()
		dst = append(dst, p.At.Low, uint64(p.N))
	}
	if len(dst) == start {
		return dst, errEmpty
	}
	return dst, nil
}

// Len is the number of monomials.
func (*poly) Len(a []uint64) int { return len(a) / 2 }

// Export gives the polynomial as text, the same for equal ones: "3 + 2*a*b^2 +
// c". The monomials are in the order of their texts, the constant first, and so
// are the factors; a token that is no name stands in quotes, as in N-Triples.
func (k *poly) Export(a []uint64) any {
	type monomial struct {
		text  string
		count uint64
	}
	monomials := make([]monomial, 0, len(a)/2)
	for i := 0; i < len(a); i += 2 {
		monomials = append(monomials, monomial{k.product(k.get(a[i])), a[i+1]})
	}
	slices.SortFunc(monomials, func(x, y monomial) int { return cmp.Compare(x.text, y.text) })
	var sb strings.Builder
	for i, m := range monomials {
		if i > 0 {
			sb.WriteString(" + ")
		}
		switch {
		case m.text == "":
			sb.WriteString(strconv.FormatUint(m.count, 10))
		case m.count > 1:
			sb.WriteString(strconv.FormatUint(m.count, 10) + "*" + m.text)
		default:
			sb.WriteString(m.text)
		}
	}
	return sb.String()
}

// product is the text of a monomial.
func (k *poly) product(list []uint64) string {
	var factors []string
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[0] {
			n++
		}
		text := k.text(list[0])
		if !isIdentifier(text) {
			t, _ := k.tokens.get(list[0])
			text = t.String()
		}
		if n > 1 {
			text += "^" + strconv.Itoa(n)
		}
		factors = append(factors, text)
		list = list[n:]
	}
	slices.Sort(factors)
	return strings.Join(factors, "*")
}
