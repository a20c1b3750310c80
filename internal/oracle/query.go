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

// Eval gives the answers of q over s at its logical time. Its cost is that of
// nested loops over the atoms in the order in which they stand.
func (q *Query) Eval(s *Store) Answers {
	e := evaluation{q: q, facts: make([][]Weighted, len(q.Atoms)), val: map[string]string{}, out: Answers{}}
	for i, a := range q.Atoms {
		e.facts[i] = s.In(a.Relation, a.Window)
	}
	e.atom(0, big.NewInt(1))
	return e.out
}

// evaluation is one run of the nested loops.
type evaluation struct {
	q     *Query
	facts [][]Weighted // that each atom sees
	val   map[string]string
	out   Answers
}

// atom extends the valuation in every way by which atom i becomes a fact.
func (e *evaluation) atom(i int, weight *big.Int) {
	if i == len(e.q.Atoms) {
		e.valuation(weight)
		return
	}
	a := &e.q.Atoms[i]
	for _, f := range e.facts[i] {
		bound, ok := e.match(a.Args, f.Tuple)
		if ok {
			w := big.NewInt(int64(f.Weight))
			if e.q.Set {
				w.SetInt64(1)
			}
			e.atom(i+1, w.Mul(w, weight))
		}
		for _, v := range bound {
			delete(e.val, v)
		}
	}
}

// match binds the variables of args to tuple. It returns the ones that were
// free before, also when it fails half-way.
func (e *evaluation) match(args []Arg, tuple []string) (bound []string, ok bool) {
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
		if was, known := e.val[a.Var]; known {
			if was != tuple[i] {
				return bound, false
			}
			continue
		}
		e.val[a.Var] = tuple[i]
		bound = append(bound, a.Var)
	}
	return bound, true
}

// valuation adds one complete valuation to the answers.
func (e *evaluation) valuation(weight *big.Int) {
	for _, f := range e.q.Filters {
		if !f(e.val) {
			return
		}
	}
	w := new(big.Int).Set(weight)
	for _, v := range e.q.Values {
		w.Mul(w, big.NewInt(v.copies(e.val)))
	}
	if w.Sign() == 0 {
		return
	}
	tuple := make([]string, len(e.q.Head))
	for i, v := range e.q.Head {
		tuple[i] = e.val[v]
	}
	key := Key(tuple)
	ans, ok := e.out[key]
	if !ok {
		ans = Answer{Tuple: tuple, Count: new(big.Int)}
	}
	ans.Count.Add(ans.Count, w)
	if e.q.Distinct {
		ans.Count.SetInt64(1)
	}
	e.out[key] = ans
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
