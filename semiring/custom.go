package semiring

import (
	"errors"
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// Definition is a semiring of a user, whose values are terms. Add and Mul must be
// commutative and associative, and Mul must distribute over Add; otherwise answers
// depend on the plan and on the order of updates. The functions must depend on
// their arguments only, because values are computed again after a restart, and may
// be called from several goroutines at once. There is no zero: it is what absent
// facts have, and no function is asked about it.
//
// An error is returned to whoever appends or reads. It should match ErrValue or
// ErrOverflow with errors.Is; another one is wrapped in ErrValue. A function that
// panics has given ErrValue: the store goes on.
type Definition struct {
	// One is neutral for Mul: what a contribution without a value has.
	One term.Term
	// Add gives the sum of two values.
	Add func(a, b term.Term) (term.Term, error)
	// Mul gives the product of two values.
	Mul func(a, b term.Term) (term.Term, error)
	// Lift makes a value of the Value of a contribution. Nil takes it as it is.
	Lift func(t term.Term) (term.Term, error)
	// Order may be set if Add always gives one of its two arguments: it numbers
	// the values so that Add gives the one with the lesser number. Add is asked
	// between values with equal numbers only. A sum then costs O(log n) and not O(n),
	// n being the number of different values that are summed up.
	Order func(t term.Term) uint64
	// Positive, Idempotent, Chain and Exact are as in Traits. Order implies that
	// Add is idempotent.
	Positive   bool
	Idempotent bool
	Chain      int
	Exact      bool
}

// Validate reports with ErrValue what is missing, and a One that is not neutral for
// Mul even with itself.
func (d *Definition) Validate() error {
	switch {
	case d.Add == nil || d.Mul == nil:
		return fmt.Errorf("%w: a semiring needs Add and Mul", errs.ErrValue)
	case d.One.IsZero():
		return fmt.Errorf("%w: a semiring needs a One", errs.ErrValue)
	case d.Chain < -1:
		return fmt.Errorf("%w: the chain of a semiring is %d long", errs.ErrValue, d.Chain)
	}
	one := &custom{def: *d}
	if _, err := one.order(d.One); err != nil {
		return fmt.Errorf("%w: Order of One: %w", errs.ErrValue, err)
	}
	square, err := guarded(d.Mul, d.One, d.One)
	switch {
	case err != nil:
		return fmt.Errorf("%w: One times One: %w", errs.ErrValue, err)
	case square != d.One:
		return fmt.Errorf("%w: One is %v, and One times One %v", errs.ErrValue, d.One, square)
	}
	return nil
}

// guarded calls a function of the user. A panic in it must not leave an epoch half
// made and the writer's lock held, so it is an error like any other.
func guarded(f func(a, b term.Term) (term.Term, error), a, b term.Term) (v term.Term, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = term.Term{}, fmt.Errorf("%w: panic: %v", errs.ErrValue, r)
		}
	}()
	return f(a, b)
}

// custom is the algebra of a Definition. A value is one word, the number of its
// term; a state is the multiset of the values, ordered by Order.
type custom struct {
	name string
	def  Definition
	tokens
	one uint64
}

func newCustom(name string, def Definition) (*custom, error) {
	if err := def.Validate(); err != nil {
		return nil, fmt.Errorf("semiring %s: %w", name, err)
	}
	k := &custom{name: name, def: def}
	k.one = k.id(def.One)
	return k, nil
}

func (k *custom) Name() string { return k.name }

func (k *custom) Traits() Traits {
	t := Traits{
		Positive: k.def.Positive, Idempotent: k.def.Idempotent || k.def.Order != nil,
		Chain: k.def.Chain, Exact: k.def.Exact, State: "O(size)",
	}
	if k.def.Order != nil {
		t.State = "O(log n)"
	}
	return t
}

func (k *custom) One(dst []uint64) []uint64 { return append(dst, k.one) }

func (k *custom) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	v, err := t, error(nil)
	if k.def.Lift != nil {
		v, err = guarded(func(a, _ term.Term) (term.Term, error) { return k.def.Lift(a) }, t, term.Term{})
	}
	if err = k.check(v, err); err != nil {
		return dst, err
	}
	return append(dst, k.id(v)), nil
}

// check turns what a function of the user has returned into an error of ours.
func (k *custom) check(v term.Term, err error) error {
	switch {
	case err == nil && v.IsZero():
		return fmt.Errorf("%w: semiring %s gave no value", errs.ErrValue, k.name)
	case err == nil:
		// Spread cannot fail, so what Order makes of the value is seen to here.
		if _, err = k.order(v); err == nil {
			return nil
		}
		return fmt.Errorf("semiring %s: Order: %w", k.name, err)
	case errors.Is(err, errs.ErrValue), errors.Is(err, errs.ErrOverflow):
		return fmt.Errorf("semiring %s: %w", k.name, err)
	}
	return fmt.Errorf("%w: semiring %s: %w", errs.ErrValue, k.name, err)
}

// order calls Order, 0 where there is none.
func (k *custom) order(v term.Term) (high uint64, err error) {
	if k.def.Order == nil {
		return 0, nil
	}
	_, err = guarded(func(a, _ term.Term) (term.Term, error) {
		high = k.def.Order(a)
		return a, nil
	}, v, term.Term{})
	return high, err
}

// apply calls Add or Mul.
func (k *custom) apply(f func(a, b term.Term) (term.Term, error), a, b term.Term) (term.Term, error) {
	v, err := guarded(f, a, b)
	return v, k.check(v, err)
}

func (k *custom) value(word uint64) term.Term {
	t, _ := k.get(word)
	return t
}

func (k *custom) Mul(dst, a, b []uint64) ([]uint64, error) {
	v, err := k.apply(k.def.Mul, k.value(a[0]), k.value(b[0]))
	if err != nil {
		return dst, err
	}
	return append(dst, k.id(v)), nil
}

func (k *custom) Times(dst, a []uint64, n int64) ([]uint64, error) {
	v, err := k.multiple(k.value(a[0]), n)
	if err != nil {
		return dst, err
	}
	return append(dst, k.id(v)), nil
}

// multiple is the sum of n > 0 equal values, by doubling: O(log n) sums.
func (k *custom) multiple(v term.Term, n int64) (sum term.Term, err error) {
	if k.Traits().Idempotent {
		return v, nil
	}
	for ; ; n >>= 1 {
		if n&1 == 1 {
			if sum.IsZero() {
				sum = v
			} else if sum, err = k.apply(k.def.Add, sum, v); err != nil {
				return sum, err
			}
		}
		if n == 1 {
			return sum, nil
		}
		if v, err = k.apply(k.def.Add, v, v); err != nil {
			return sum, err
		}
	}
}

func (k *custom) Spread(dst []Part, a []uint64) []Part {
	high, _ := k.order(k.value(a[0]))
	return append(dst, Part{Component{high, a[0]}, 1})
}

func (k *custom) Collect(dst []uint64, s State) ([]uint64, error) {
	if !s.Next() {
		return dst, errEmpty
	}
	first := s.Part()
	sum, err := k.multiple(k.value(first.At.Low), first.N)
	for err == nil && s.Next() {
		p := s.Part()
		if k.def.Order != nil && p.At.High != first.At.High {
			break
		}
		var v term.Term
		if v, err = k.multiple(k.value(p.At.Low), p.N); err == nil {
			sum, err = k.apply(k.def.Add, sum, v)
		}
	}
	if err != nil {
		return dst, err
	}
	return append(dst, k.id(sum)), nil
}

// Export gives the term.
func (k *custom) Export(a []uint64) any { return k.value(a[0]) }

// Size is the number of terms.
func (k *custom) Size() int { return k.size() }

// Sweep is that of Sweeper.
func (k *custom) Sweep(live func(mark func(word uint64))) {
	k.advance()
	marked := map[uint64]struct{}{k.one: {}}
	live(func(word uint64) { marked[word] = struct{}{} })
	k.sweep(marked, nil)
}
