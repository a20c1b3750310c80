package semiring

import (
	"fmt"
	"math"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// errEmpty is what Collect says of a state without components where no sum of
// values has one.
var errEmpty = fmt.Errorf("%w: the state of an annotation is empty", errs.ErrCorrupt)

// ordered is the algebra of numbers whose sum is the greater of two values, or
// the lesser. A product is the sum of the numbers, or again one of the two. A
// value is a number in two words; where no number is neutral for products, One
// is a value without words, an infinity beyond all numbers.
//
// A state is the ordered multiset of the values, best first.
type ordered struct {
	name     string
	greatest bool // the sum is the greater of two
	product  productKind
}

type productKind uint8

const (
	productPlus productKind = iota // numbers are added, One is 0
	productSame                    // the one that the sum takes, One is the worst value
	productBoth                    // the other one, One is the best value
)

func (k *ordered) Name() string { return k.name }

// Traits calls sums of numbers not exact because those of floats are not.
func (k *ordered) Traits() Traits {
	return Traits{Positive: true, Idempotent: true, Exact: k.product != productPlus, State: "O(log n)"}
}

func (k *ordered) One(dst []uint64) []uint64 {
	if k.product != productPlus {
		return dst
	}
	high, low := number{}.words()
	return append(dst, high, low)
}

func (k *ordered) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	n, err := liftNumber(t)
	if err != nil {
		return dst, err
	}
	high, low := n.words()
	return append(dst, high, low), nil
}

func (k *ordered) Mul(dst, a, b []uint64) ([]uint64, error) {
	switch {
	case len(a) == 0:
		return append(dst, b...), nil
	case len(b) == 0:
		return append(dst, a...), nil
	case k.product == productPlus:
		n, err := numberOf(a[0], a[1]).plus(numberOf(b[0], b[1]))
		if err != nil {
			return dst, err
		}
		high, low := n.words()
		return append(dst, high, low), nil
	}
	if better := (compareWords(a, b) > 0) == k.greatest; better == (k.product == productSame) {
		return append(dst, a...), nil
	}
	return append(dst, b...), nil
}

func (k *ordered) Times(dst, a []uint64, _ int64) ([]uint64, error) { return append(dst, a...), nil }

// worst is the component behind those of all numbers; best is the zero one.
var worst = Component{math.MaxUint64, lowMax}

func (k *ordered) Spread(dst []Part, a []uint64) []Part {
	var at Component
	switch {
	case len(a) > 0:
		at = turned(Component{a[0], a[1]}, k.greatest)
	case k.product == productSame:
		at = worst
	}
	return append(dst, Part{at, 1})
}

func (k *ordered) Collect(dst []uint64, s State) ([]uint64, error) {
	if !s.Next() {
		return dst, errEmpty
	}
	at := s.Part().At
	if at == worst || at == (Component{}) {
		return dst, nil
	}
	at = turned(at, k.greatest)
	return append(dst, at.High, at.Low), nil
}

func (k *ordered) Export(a []uint64) any {
	if len(a) > 0 {
		return numberOf(a[0], a[1]).export()
	}
	if k.greatest == (k.product == productSame) {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// turned reverses the order of the components of numbers if asked to.
func turned(c Component, reverse bool) Component {
	if reverse {
		return Component{^c.High, lowMax - c.Low}
	}
	return c
}

// fuzzy is the algebra of the numbers from 0 to 1, all taken as float64, with max
// and min. A value is one word, the bits of the float.
type fuzzy struct{}

func (fuzzy) Name() string { return "fuzzy" }

func (fuzzy) Traits() Traits {
	return Traits{Positive: true, Idempotent: true, Exact: true, State: "O(log n)"}
}

func (fuzzy) One(dst []uint64) []uint64 { return append(dst, math.Float64bits(1)) }

func (fuzzy) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	n, err := liftNumber(t)
	if err != nil {
		return dst, err
	}
	f := n.float()
	if f < 0 || f > 1 {
		return dst, fmt.Errorf("%w: %v is not between 0 and 1, as semiring fuzzy wants it", errs.ErrValue, t)
	}
	return append(dst, math.Float64bits(f)), nil
}

func (fuzzy) Mul(dst, a, b []uint64) ([]uint64, error) { return append(dst, min(a[0], b[0])), nil }

func (fuzzy) Times(dst, a []uint64, _ int64) ([]uint64, error) { return append(dst, a...), nil }

func (fuzzy) Spread(dst []Part, a []uint64) []Part {
	return append(dst, Part{Component{^a[0], 0}, 1})
}

func (fuzzy) Collect(dst []uint64, s State) ([]uint64, error) {
	if !s.Next() {
		return dst, errEmpty
	}
	return append(dst, ^s.Part().At.High), nil
}

func (fuzzy) Export(a []uint64) any { return math.Float64frombits(a[0]) }

// access is the algebra of levels of access from the least to the most
// restrictive: a sum is as open as one of its values, a product as closed. A value
// is one word, the number of the level; a state counts the values of each level.
type access struct {
	name   string
	levels []string
}

func (k *access) Name() string { return k.name }

func (k *access) Traits() Traits {
	return Traits{Positive: true, Idempotent: true, Chain: len(k.levels), Exact: true, State: "O(1)"}
}

func (k *access) One(dst []uint64) []uint64 { return append(dst, 0) }

func (k *access) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	level := -1
	if t.Kind() == term.KindString {
		level = slices.Index(k.levels, t.Lexical())
	}
	if level < 0 {
		return dst, fmt.Errorf("%w: %v is no level of %s", errs.ErrValue, t, k.name)
	}
	return append(dst, uint64(level)), nil
}

func (k *access) Mul(dst, a, b []uint64) ([]uint64, error) { return append(dst, max(a[0], b[0])), nil }

func (k *access) Times(dst, a []uint64, _ int64) ([]uint64, error) { return append(dst, a...), nil }

func (k *access) Spread(dst []Part, a []uint64) []Part {
	return append(dst, Part{Component{0, a[0]}, 1})
}

func (k *access) Collect(dst []uint64, s State) ([]uint64, error) {
	if !s.Next() {
		return dst, errEmpty
	}
	return append(dst, s.Part().At.Low), nil
}

func (k *access) Export(a []uint64) any { return k.levels[a[0]] }
