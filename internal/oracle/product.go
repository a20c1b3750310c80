package oracle

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/term"
)

// product are the tuples of values of several algebras.
type product []algebra

// each makes a tuple.
func (k product) each(f func(i int) any) any {
	out := make([]any, len(k))
	for i := range k {
		out[i] = f(i)
	}
	return out
}

func (k product) one() any { return k.each(func(i int) any { return k[i].one() }) }

// lift reads the parts of a string between bars. A part is a term in N-Triples
// syntax, a number, or else a plain string; an empty one is the one.
func (k product) lift(t term.Term) (any, error) {
	parts := partsOf(t.Lexical())
	if t.Kind() != term.KindString || len(parts) != len(k) {
		return nil, fmt.Errorf("%w: %v has not %d parts", ErrValue, t, len(k))
	}
	out := make([]any, len(k))
	for i, text := range parts {
		if text != "" {
			text = partOf(text).String()
		}
		v, err := lift(k[i], text)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// partsOf cuts a text at the bars, except in literals.
func partsOf(text string) (parts []string) {
	for {
		n := 0
		if strings.HasPrefix(text, `"`) {
			_, n, _ = term.ParsePrefix(text)
		}
		i := strings.IndexByte(text[n:], '|')
		if i < 0 {
			return append(parts, text)
		}
		parts = append(parts, text[:n+i])
		text = text[n+i+1:]
	}
}

// partOf reads a part that is not empty.
func partOf(text string) term.Term {
	if t, err := term.Parse(text); err == nil {
		return t
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return term.Int(i)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && doubleForm.MatchString(text) {
		return term.Float(f)
	}
	return term.String(text)
}

func (k product) add(a, b any) any {
	return k.each(func(i int) any { return k[i].add(a.([]any)[i], b.([]any)[i]) })
}

func (k product) mul(a, b any) any {
	return k.each(func(i int) any { return k[i].mul(a.([]any)[i], b.([]any)[i]) })
}

// export lists what the factors show.
func (k product) export(a any) any {
	out := k.each(func(i int) any { return k[i].export(a.([]any)[i]) }).([]any)
	for _, v := range out {
		if v == any(Overflow{}) {
			return v
		}
	}
	return out
}

func (k product) magnitudes(a any) (all []number) {
	for i := range k {
		all = append(all, k[i].magnitudes(a.([]any)[i])...)
	}
	return all
}
