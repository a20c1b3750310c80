package oracle

import (
	"fmt"
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
	// magnitudes are the numbers whose growth may overflow.
	magnitudes(a any) []number
}

// plain are the algebras without an argument.
var plain = map[string]algebra{
	"count":   integers{natural: true},
	"bool":    truths{},
	"int":     integers{},
	"real":    reals{},
	"maxplus": ordered{sign: 1, times: sum, unit: whole(0)},
	"minplus": ordered{sign: -1, times: sum, unit: whole(0)},
	"maxmax":  ordered{sign: 1, times: greater, unit: infinite(-1)},
	"maxmin":  ordered{sign: 1, times: lesser, unit: infinite(1)},
	"fuzzy":   ordered{sign: 1, times: lesser, unit: floating(whole(1)), unitInterval: true},
	"why":     witnesses{},
	"poly":    polynomials{},
}

// algebraOf reads the name of a semiring; nil is that of plain counts and of
// plain presence.
func algebraOf(spec string) (algebra, error) {
	switch spec = strings.TrimSpace(spec); spec {
	case "", "count", "bool":
		return nil, nil
	}
	var factors product
	for _, f := range split(spec, '*') {
		k, err := factorOf(f)
		if err != nil {
			return nil, err
		}
		factors = append(factors, k)
	}
	if len(factors) == 1 {
		return factors[0], nil
	}
	return factors, nil
}

// factorOf reads the name of a semiring that is no product.
func factorOf(spec string) (algebra, error) {
	if k, ok := plain[spec]; ok {
		return k, nil
	}
	name, args, _ := strings.Cut(spec, "(")
	args, closed := strings.CutSuffix(args, ")")
	n, err := strconv.ParseInt(strings.TrimSpace(args), 10, 64)
	switch name = strings.TrimSpace(name); {
	case closed && name == "access":
		var k levels
		for _, l := range split(args, '<') {
			if t, err := term.Parse(l); err == nil {
				l = t.Lexical() // in quotes
			}
			k = append(k, l)
		}
		return k, nil
	case closed && name == "cap" && err == nil && n > 0:
		return capped{big.NewInt(n)}, nil
	case closed && name == "topk" && err == nil && n > 0:
		return best{int(n)}, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrSemiring, spec)
}

// split cuts a text at a sign outside of quotes.
func split(text string, at rune) []string {
	quoted, escaped := false, false
	parts := strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' && !escaped {
			quoted = !quoted
		}
		escaped = r == '\\' && !escaped
		return r == at && !quoted
	})
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
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

// integers are Z, or the natural numbers.
type integers struct{ natural bool }

func (integers) one() any { return big.NewInt(1) }

func (k integers) lift(t term.Term) (any, error) {
	n, err := numberOf(t)
	if err != nil || !n.int || k.natural && n.exact.Sign() < 0 {
		return nil, fmt.Errorf("%w: %v is no integer of the semiring", ErrValue, t)
	}
	return n.exact.Num(), nil
}

func (integers) add(a, b any) any { return new(big.Int).Add(a.(*big.Int), b.(*big.Int)) }
func (integers) mul(a, b any) any { return new(big.Int).Mul(a.(*big.Int), b.(*big.Int)) }
func (integers) export(a any) any { return integer(a.(*big.Int)) }

func (integers) magnitudes(a any) []number {
	return []number{{exact: new(big.Rat).SetInt(a.(*big.Int)), int: true}}
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
	v, err := integers{natural: true}.lift(t)
	if err != nil {
		return nil, err
	}
	return k.trim(v.(*big.Int)), nil
}

func (k capped) add(a, b any) any      { return k.trim(integers{}.add(a, b).(*big.Int)) }
func (k capped) mul(a, b any) any      { return k.trim(integers{}.mul(a, b).(*big.Int)) }
func (k capped) export(a any) any      { return integer(a.(*big.Int)) }
func (capped) magnitudes(any) []number { return nil }

// reals are the real numbers, of which a row shows a float64.
type reals struct{}

func (reals) one() any { return floating(whole(1)) }

func (reals) lift(t term.Term) (any, error) {
	n, err := numberOf(t)
	if err != nil {
		return nil, err
	}
	return floating(n), nil
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

func (reals) magnitudes(a any) []number { return []number{a.(number)} }

// ordered are numbers of which the best is taken: the greatest, or the least if
// sign is -1.
type ordered struct {
	sign         int
	times        func(a, b number) number
	unit         number
	unitInterval bool // only numbers from 0 to 1 are values, as floats
}

func sum(a, b number) number     { return a.plus(b) }
func greater(a, b number) number { return better(a, b, 1) }
func lesser(a, b number) number  { return better(a, b, -1) }

// floating is the nearest float64 of a number.
func floating(n number) number {
	f, _ := n.exact.Float64()
	r := new(big.Rat).SetFloat64(f)
	return number{exact: r, size: new(big.Rat).Abs(r), float: true}
}

func (k ordered) one() any { return k.unit }

func (k ordered) lift(t term.Term) (any, error) {
	n, err := numberOf(t)
	if err != nil || !k.unitInterval {
		return n, err
	}
	if n.compare(whole(0)) < 0 || n.compare(whole(1)) > 0 {
		return nil, fmt.Errorf("%w: %v is not between 0 and 1", ErrValue, t)
	}
	return floating(n), nil
}

func (k ordered) add(a, b any) any { return better(a.(number), b.(number), k.sign) }
func (k ordered) mul(a, b any) any { return k.times(a.(number), b.(number)) }
func (k ordered) export(a any) any { return a.(number).export() }

func (ordered) magnitudes(a any) []number { return []number{a.(number)} }

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

func (best) magnitudes(a any) []number { return a.(bag) }

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

func (levels) add(a, b any) any        { return min(a.(int), b.(int)) }
func (levels) mul(a, b any) any        { return max(a.(int), b.(int)) }
func (k levels) export(a any) any      { return k[a.(int)] }
func (levels) magnitudes(any) []number { return nil }

// truths are the Booleans.
type truths struct{}

func (truths) one() any { return true }

func (truths) lift(t term.Term) (any, error) {
	for _, b := range []bool{false, true} {
		if term.Equal(t, term.Bool(b)) {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: %v is no truth value", ErrValue, t)
}

func (truths) add(a, b any) any        { return a.(bool) || b.(bool) }
func (truths) mul(a, b any) any        { return a.(bool) && b.(bool) }
func (truths) export(a any) any        { return term.Bool(a.(bool)) }
func (truths) magnitudes(any) []number { return nil }
