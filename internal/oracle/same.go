package oracle

import (
	"fmt"
	"math/big"
	"slices"
)

// Number is a value of a row that is right within a tolerance, or in more than
// one kind, because the order of operations decides about rounding and ties.
type Number struct {
	Exact *big.Rat
	Slack *big.Rat // how far from Exact a value may be
	Int   bool     // an int64 is right, when it is within the tolerance
	Float bool     // a float64 is right
}

// String is the exact value.
func (n Number) String() string {
	return fmt.Sprintf("%s ± %s", n.Exact.RatString(), n.Slack.FloatString(20))
}

// SameValue tells whether a value of a row of the engine is one that the oracle
// wants.
func SameValue(got, want any) bool {
	switch want := want.(type) {
	case Number:
		return want.matches(got)
	case []any:
		return sameList(got, want)
	case [][]string:
		return sameWitnesses(got, want)
	case Overflow:
		return false
	}
	return got == want
}

// matches tells whether a number is close enough and of a right kind.
func (n Number) matches(got any) bool {
	d := new(big.Rat)
	switch got := got.(type) {
	case int64:
		if !n.Int {
			return false
		}
		d.SetInt64(got)
	case float64:
		if !n.Float || d.SetFloat64(got) == nil {
			return false
		}
	default:
		return false
	}
	d.Sub(d, n.Exact)
	return d.Abs(d).Cmp(n.tolerance(got)) <= 0
}

// tolerance is at least the distance to the next float64 where the exact value is
// none.
func (n Number) tolerance(got any) *big.Rat {
	if _, ok := got.(float64); !ok {
		return n.Slack
	}
	f, _ := n.Exact.Float64()
	off := new(big.Rat).SetFloat64(f)
	off.Abs(off.Sub(off, n.Exact))
	if off.Cmp(n.Slack) < 0 {
		return n.Slack
	}
	return off
}

// sameList compares lists of numbers in order; the engine may give a list of one
// kind.
func sameList(got any, want []any) bool {
	var list []any
	switch got := got.(type) {
	case []any:
		list = got
	case []int64:
		for _, v := range got {
			list = append(list, v)
		}
	case []float64:
		for _, v := range got {
			list = append(list, v)
		}
	default:
		return false
	}
	return slices.EqualFunc(list, want, SameValue)
}

// sameWitnesses compares sets of sets.
func sameWitnesses(got any, want [][]string) bool {
	list, ok := got.([][]string)
	if !ok {
		return false
	}
	sorted := make([][]string, len(list))
	for i, w := range list {
		sorted[i] = slices.Sorted(slices.Values(w))
	}
	slices.SortFunc(sorted, slices.Compare[[]string])
	return slices.EqualFunc(sorted, want, slices.Equal[[]string])
}
