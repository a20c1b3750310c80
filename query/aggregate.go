package query

import (
	"fmt"
	"strconv"

	"github.com/triegs/triegs/internal/errs"
)

// String is the function as rule text calls it; count(distinct) has the name of
// Count, from which its argument tells it.
func (f Func) String() string {
	names := [...]string{"count", "count", "sum", "avg", "min", "max", "topk"}
	if int(f) < len(names) {
		return names[f]
	}
	return "?"
}

// Rule writes the aggregate as rule text has it, over a variable of that name:
// count(), count(distinct a), sum(a), topk(a, 3).
func (a *Aggregate) Rule(variable string) string {
	switch a.Func {
	case Count:
		return "count()"
	case CountDistinct:
		return "count(distinct " + variable + ")"
	case TopK:
		return "topk(" + variable + ", " + strconv.Itoa(a.K) + ")"
	}
	return a.Func.String() + "(" + variable + ")"
}

// SetDistinct asks for every answer once, as Distinct in a text does. It is
// ErrValue where the text asks for another semiring or for aggregates.
func (q *Query) SetDistinct() error {
	switch {
	case len(q.Aggregates) > 0:
		return fmt.Errorf("%w: the text has aggregates, which take multiplicities, the option says distinct", errs.ErrValue)
	case q.Semiring != "":
		return fmt.Errorf("%w: the text says semiring %s, the option distinct", errs.ErrValue, q.Semiring)
	}
	q.Distinct = true
	return nil
}

// repeatsAggregate reports whether two columns hold the same aggregate.
func (q *Query) repeatsAggregate() bool {
	type meaning struct {
		f Func
		v Var
		k int
	}
	seen := make(map[meaning]bool, len(q.Aggregates))
	for _, a := range q.Aggregates {
		seen[meaning{a.Func, a.Var, a.K}] = true
	}
	return len(seen) < len(q.Aggregates)
}
