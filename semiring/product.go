package semiring

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// product is the algebra of tuples, component by component. A value is for each
// factor the number of its words and the words.
//
// The components of a state are those of the factors, with the index of the
// factor in front: High and Low of a factor, the latter below 2^56, become the 4
// bits of the index and the upper 60 bits of High; the lower 4 bits of High, the
// index again, so that Low says alone what it belongs to, and Low.
type product struct {
	name    string
	factors []Algebra
}

const (
	tagBits    = 4
	factorsMax = 1 << tagBits
	lowBits    = 64 - 2*tagBits
)

func (k *product) Name() string { return k.name }

// Traits are those that all factors share. Values of which a component is a zero
// and another is not do not occur, so that a product of positive algebras is one.
func (k *product) Traits() Traits {
	t := Traits{Positive: true, Idempotent: true, Exact: true, State: "O(size)"}
	for _, f := range k.factors {
		u := f.Traits()
		t.Positive = t.Positive && u.Positive
		t.Idempotent = t.Idempotent && u.Idempotent
		t.Exact = t.Exact && u.Exact
		t.Overflows = t.Overflows || u.Overflows
	}
	for i, f := range k.factors {
		switch u := f.Traits(); {
		case u.Chain == -1 || t.Chain == -1:
			t.Chain = -1
		case u.Chain == 0 || i > 0 && t.Chain == 0:
			t.Chain = 0
		default:
			if sum := t.Chain + u.Chain; sum > 0 {
				t.Chain = sum
			}
		}
	}
	return t
}

// each appends for each factor what f appends, with its length in front.
func (k *product) each(dst []uint64, f func(dst []uint64, i int, k Algebra) ([]uint64, error)) ([]uint64, error) {
	start := len(dst)
	for i, factor := range k.factors {
		at := len(dst)
		var err error
		if dst, err = f(append(dst, 0), i, factor); err != nil {
			return dst[:start], err
		}
		dst[at] = uint64(len(dst) - at - 1)
	}
	return dst, nil
}

// cut takes the first component off a value.
func cut(a []uint64) (first, rest []uint64) { return a[1 : 1+a[0]], a[1+a[0]:] }

func (k *product) One(dst []uint64) []uint64 {
	dst, _ = k.each(dst, func(dst []uint64, _ int, f Algebra) ([]uint64, error) { return f.One(dst), nil })
	return dst
}

// Lift takes a string with as many parts as there are factors, between bars:
// `2.5|secret`. A part that begins with a quote, a < or _: is a term in N-Triples
// syntax; another one is a number if it parses as one, else a string; an empty
// one is the factor's one.
func (k *product) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	if t.Kind() != term.KindString {
		return dst, fmt.Errorf("%w: %v is no string of values, as semiring %s wants it", errs.ErrValue, t, k.name)
	}
	rest := t.Lexical()
	return k.each(dst, func(dst []uint64, i int, f Algebra) ([]uint64, error) {
		part, n, err := productPart(rest)
		if err != nil {
			return dst, err
		}
		last := n == len(rest)
		if last != (i == len(k.factors)-1) {
			return dst, fmt.Errorf("%w: %v has not one part for each factor of %s", errs.ErrValue, t, k.name)
		}
		if !last {
			rest = rest[n+1:]
		}
		if part.IsZero() {
			return f.One(dst), nil
		}
		return f.Lift(dst, 0, part)
	})
}

// productPart reads the first part of s, which ends at a bar or the end; it is
// absent if it is empty.
func productPart(s string) (t term.Term, n int, err error) {
	if s != "" && (s[0] == '"' || s[0] == '<') || strings.HasPrefix(s, "_:") {
		t, n, err = term.ParsePrefix(s)
		if err == nil && n < len(s) && s[n] != '|' {
			err = fmt.Errorf("a bar has to follow %q", s[:n])
		}
		if err != nil {
			return t, n, fmt.Errorf("%w: part of a value: %v", errs.ErrValue, err)
		}
		return t, n, nil
	}
	n = strings.IndexByte(s, '|')
	if n < 0 {
		n = len(s)
	}
	text := s[:n]
	switch {
	case text == "":
		return t, n, nil
	case strings.IndexByte("0123456789+-.", text[0]) < 0: // such as NaN
		return term.String(text), n, nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return term.Int(i), n, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return term.Float(f), n, nil
	}
	return term.String(text), n, nil
}

func (k *product) Mul(dst, a, b []uint64) ([]uint64, error) {
	return k.each(dst, func(dst []uint64, _ int, f Algebra) ([]uint64, error) {
		var x, y []uint64
		x, a = cut(a)
		y, b = cut(b)
		return f.Mul(dst, x, y)
	})
}

func (k *product) Times(dst, a []uint64, n int64) ([]uint64, error) {
	return k.each(dst, func(dst []uint64, _ int, f Algebra) ([]uint64, error) {
		var x []uint64
		x, a = cut(a)
		return f.Times(dst, x, n)
	})
}

func (k *product) Spread(dst []Part, a []uint64) []Part {
	for i, f := range k.factors {
		var x []uint64
		x, a = cut(a)
		start := len(dst)
		dst = f.Spread(dst, x)
		for j := start; j < len(dst); j++ {
			dst[j].At = tagged(uint64(i), dst[j].At)
		}
	}
	return dst
}

func tagged(tag uint64, c Component) Component {
	return Component{
		High: tag<<(64-tagBits) | c.High>>tagBits,
		Low:  c.High<<(64-tagBits) | tag<<lowBits | c.Low,
	}
}

func untagged(c Component) (tag uint64, inner Component) {
	return c.High >> (64 - tagBits), Component{
		High: c.High<<tagBits | c.Low>>(64-tagBits),
		Low:  c.Low & (1<<lowBits - 1),
	}
}

func (k *product) Collect(dst []uint64, s State) ([]uint64, error) {
	in := &part{in: s}
	return k.each(dst, func(dst []uint64, i int, f Algebra) ([]uint64, error) {
		in.tag = uint64(i)
		dst, err := f.Collect(dst, in)
		for in.Next() { // a factor need not read all that it has
		}
		return dst, err
	})
}

// part is the state of one factor inside of that of the product.
type part struct {
	in    State
	tag   uint64
	at    Part
	ahead bool // in has moved to a component that was not handed out
	end   bool
}

// Next reads on unless the next component is that of another factor.
func (p *part) Next() bool {
	if !p.ahead && !p.end {
		p.ahead = p.in.Next()
		p.end = !p.ahead
	}
	if p.end {
		return false
	}
	tag, c := untagged(p.in.Part().At)
	if tag != p.tag {
		return false
	}
	p.at, p.ahead = Part{c, p.in.Part().N}, false
	return true
}

// Part is the component of the factor.
func (p *part) Part() Part { return p.at }

// Export gives a []any with what each factor exports.
func (k *product) Export(a []uint64) any {
	list := make([]any, len(k.factors))
	for i, f := range k.factors {
		var x []uint64
		x, a = cut(a)
		list[i] = f.Export(x)
	}
	return list
}

// Len is the sum of the lengths in the factors.
func (k *product) Len(a []uint64) int {
	n := 0
	for _, f := range k.factors {
		var x []uint64
		x, a = cut(a)
		if s, ok := f.(Sized); ok {
			n += s.Len(x)
		} else {
			n++
		}
	}
	return n
}

// Size adds up what the factors hold.
func (k *product) Size() int {
	n := 0
	for _, f := range k.factors {
		if s, ok := f.(Sweeper); ok {
			n += s.Size()
		}
	}
	return n
}

// Sweep is that of Sweeper. It calls live once for all factors.
func (k *product) Sweep(live func(mark func(word uint64))) {
	words := make([]map[uint64]struct{}, len(k.factors))
	for i := range words {
		words[i] = map[uint64]struct{}{}
	}
	live(func(word uint64) {
		tag := word >> lowBits & (factorsMax - 1)
		if tag < uint64(len(words)) {
			words[tag][word&(1<<lowBits-1)] = struct{}{}
		}
	})
	for i, f := range k.factors {
		if s, ok := f.(Sweeper); ok {
			s.Sweep(func(mark func(uint64)) {
				for w := range words[i] {
					mark(w)
				}
			})
		}
	}
}
