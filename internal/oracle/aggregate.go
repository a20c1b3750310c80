package oracle

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/triegs/triegs/internal/term"
)

// Func tells what an Aggregate computes, in the words of a rule text.
type Func string

// The aggregate functions.
const (
	Count         Func = "count"          // the valuations with their multiplicities: int64
	CountDistinct Func = "count distinct" // the different terms of the variable: int64
	Sum           Func = "sum"            // int64 while all are integers, else float64
	Avg           Func = "avg"            // float64
	Min           Func = "min"            // the least: term.Term
	Max           Func = "max"            // the greatest: term.Term
	TopK          Func = "topk"           // the K greatest numbers, descending: []any
)

// Aggregate is a value of a row that is computed over the valuations of a group,
// each as often as it weighs.
type Aggregate struct {
	Func Func
	Var  string // "" for Count
	K    int    // of TopK
}

// numeric tells whether the function reads numbers only.
func (a *Aggregate) numeric() bool { return a.Func == Sum || a.Func == Avg || a.Func == TopK }

// aggregate holds what a group has seen of a variable.
type aggregate struct {
	Aggregate
	count *big.Int
	seen  map[string]*occurrence // by the text of the term
}

// occurrence is a term with the weight of the valuations that have it.
type occurrence struct {
	term   term.Term
	weight *big.Int
}

func newAggregate(a Aggregate) *aggregate {
	return &aggregate{a, new(big.Int), map[string]*occurrence{}}
}

// add takes up the term that a valuation has.
func (a *aggregate) add(v *valuation) error {
	a.count.Add(a.count, v.weight)
	if a.Func == Count {
		return nil
	}
	text := v.val[a.Var]
	o, ok := a.seen[text]
	if !ok {
		t, err := term.Parse(text)
		if err == nil && a.numeric() {
			_, err = numberOf(t)
		}
		if err != nil {
			return fmt.Errorf("%s(%s): %w", a.Func, a.Var, err)
		}
		o = &occurrence{t, new(big.Int)}
		a.seen[text] = o
	}
	o.weight.Add(o.weight, v.weight)
	return nil
}

// value is the aggregate of what the group has seen.
func (a *aggregate) value() any {
	switch a.Func {
	case Count:
		return integer(a.count)
	case CountDistinct:
		return int64(len(a.seen))
	case Sum:
		return a.sum()
	case Avg:
		return a.average()
	case TopK:
		return a.top()
	}
	return a.best()
}

// total is the exact sum, and whether there is a float in it.
func (a *aggregate) total() (sum *big.Rat, float bool) {
	sum = new(big.Rat)
	for _, o := range a.seen {
		n, _ := numberOf(o.term)
		sum.Add(sum, new(big.Rat).Mul(n.exact, new(big.Rat).SetInt(o.weight)))
		float = float || n.float
	}
	return sum, float
}

// sum is rounded once if there are floats.
func (a *aggregate) sum() any {
	total, float := a.total()
	if float {
		return rounded(total)
	}
	return integer(total.Num())
}

// average is the quotient of the exact sum and the count. An engine may round
// more than once.
func (a *aggregate) average() any {
	if a.sum() == any(Overflow{}) || !a.count.IsInt64() {
		return Overflow{}
	}
	mean, _ := a.total()
	mean.Quo(mean, new(big.Rat).SetInt(a.count))
	return Number{Exact: mean, Slack: slack(mean), Float: true}
}

// top lists the greatest numbers, each as often as it occurs.
func (a *aggregate) top() any {
	var all bag
	for _, o := range a.seen {
		n, _ := numberOf(o.term)
		for i := int64(0); i < int64(a.K) && big.NewInt(i).Cmp(o.weight) < 0; i++ {
			all = append(all, n)
		}
	}
	return all.top(a.K)
}

// best is the least or greatest term.
func (a *aggregate) best() any {
	var all []term.Term
	for _, o := range a.seen {
		all = append(all, o.term)
	}
	if a.Func == Min {
		return slices.MinFunc(all, compareTerms)
	}
	return slices.MaxFunc(all, compareTerms)
}

// integer is an int64 if it is one.
func integer(i *big.Int) any {
	if !i.IsInt64() {
		return Overflow{}
	}
	return i.Int64()
}

// rounded is the nearest float64, of two the one with an even mantissa.
func rounded(r *big.Rat) any {
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		return Overflow{}
	}
	return f
}
