package oracle

import (
	"math/big"
	"strings"
)

// Arg is one argument of an atom: a variable, or a constant when Var is empty.
type Arg struct {
	Var   string
	Const string
}

// Atom is one occurrence of a relation in the body of a query.
type Atom struct {
	Relation string
	Args     []Arg
	Window   Window
	// Annotated says that the values of the contributions annotate the facts, in
	// the semiring of the query.
	Annotated bool
}

// Filter decides on a valuation of all variables of a query.
type Filter func(val map[string]string) bool

// Values is an inline table: a row that occurs n times multiplies the weight
// of each valuation that agrees with it by n.
type Values struct {
	Vars []string
	Rows [][]string
}

// Query is a positive conjunctive query. A variable outside Head is summed
// over.
type Query struct {
	Head     []string
	Atoms    []Atom
	Filters  []Filter
	Values   []Values
	Distinct bool // every answer counts 1
	Set      bool // every fact weighs 1 while it has a contribution
	// Aggregates are the values of a row in their order (see Rows).
	Aggregates []Aggregate
	// Semiring is the algebra of the annotations as a query text spells it, ""
	// for plain counts; a query has aggregates or a semiring (see Rows).
	Semiring string
}

// Answer is an output tuple and its annotation.
type Answer struct {
	Tuple []string
	Count *big.Int
}

// Answers maps the Key of an output tuple to its answer. No count is zero.
type Answers map[string]Answer

// Key is the text of a tuple, one term after the other with tabs between; no
// N-Triples text holds a raw tab.
func Key(tuple []string) string { return strings.Join(tuple, "\t") }

// Total is the sum of all counts.
func (a Answers) Total() *big.Int {
	sum := new(big.Int)
	for _, ans := range a {
		sum.Add(sum, ans.Count)
	}
	return sum
}

// Eval gives the answers of q over s at its logical time, with their
// multiplicities alone. Its cost is that of nested loops over the atoms in the
// order in which they stand.
func (q *Query) Eval(s *Store) Answers {
	out := Answers{}
	q.valuations(s, func(v *valuation) {
		tuple := v.project(q.Head)
		key := Key(tuple)
		ans, ok := out[key]
		if !ok {
			ans = Answer{Tuple: tuple, Count: new(big.Int)}
		}
		ans.Count.Add(ans.Count, v.weight)
		if q.Distinct {
			ans.Count.SetInt64(1)
		}
		out[key] = ans
	})
	return out
}

// valuation is one way to make every atom a fact.
type valuation struct {
	val    map[string]string
	facts  []fact   // that the atoms became
	copies int64    // in which the rows of the inline tables multiply it
	weight *big.Int // copies times the weights of the facts
}

// project gives the terms of some variables.
func (v *valuation) project(vars []string) []string {
	tuple := make([]string, len(vars))
	for i, name := range vars {
		tuple[i] = v.val[name]
	}
	return tuple
}

// evaluation is one run of the nested loops.
type evaluation struct {
	q     *Query
	facts [][]fact // that each atom sees
	now   valuation
	visit func(v *valuation)
}

// valuations calls visit for every valuation that has a weight. The valuation is
// the visitor's until it returns.
func (q *Query) valuations(s *Store, visit func(v *valuation)) {
	e := evaluation{q: q, facts: make([][]fact, len(q.Atoms)), visit: visit}
	e.now = valuation{val: map[string]string{}, facts: make([]fact, len(q.Atoms))}
	for i, a := range q.Atoms {
		e.facts[i] = s.facts(a.Relation, a.Window)
		if q.Set {
			for j := range e.facts[i] {
				e.facts[i][j].Weight = 1
			}
		}
	}
	e.atom(0, big.NewInt(1))
}

// atom extends the valuation in every way by which atom i becomes a fact.
func (e *evaluation) atom(i int, weight *big.Int) {
	if i == len(e.q.Atoms) {
		e.complete(weight)
		return
	}
	a := &e.q.Atoms[i]
	for _, f := range e.facts[i] {
		bound, ok := match(e.now.val, a.Args, f.Tuple)
		if ok {
			e.now.facts[i] = f
			w := big.NewInt(int64(f.Weight))
			e.atom(i+1, w.Mul(w, weight))
		}
		for _, v := range bound {
			delete(e.now.val, v)
		}
	}
}

// match binds the variables of args to tuple in val. It returns the ones that
// were free before, also when it fails half-way.
func match(val map[string]string, args []Arg, tuple []string) (bound []string, ok bool) {
	if len(args) != len(tuple) {
		return nil, false
	}
	for i, a := range args {
		if a.Var == "" {
			if a.Const != tuple[i] {
				return bound, false
			}
			continue
		}
		if was, known := val[a.Var]; known {
			if was != tuple[i] {
				return bound, false
			}
			continue
		}
		val[a.Var] = tuple[i]
		bound = append(bound, a.Var)
	}
	return bound, true
}

// complete hands on a valuation of all variables.
func (e *evaluation) complete(weight *big.Int) {
	for _, f := range e.q.Filters {
		if !f(e.now.val) {
			return
		}
	}
	e.now.copies = 1
	for _, v := range e.q.Values {
		e.now.copies *= v.copies(e.now.val)
	}
	if e.now.copies == 0 {
		return
	}
	e.now.weight = new(big.Int).Mul(weight, big.NewInt(e.now.copies))
	e.visit(&e.now)
}

// copies counts the rows that agree with a valuation.
func (v *Values) copies(val map[string]string) int64 {
	n := int64(0)
rows:
	for _, row := range v.Rows {
		for i, name := range v.Vars {
			if val[name] != row[i] {
				continue rows
			}
		}
		n++
	}
	return n
}
