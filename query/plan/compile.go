package plan

import (
	"fmt"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/hypergraph"
)

// Limits of a query that is planned. Planning takes time and memory in the
// square of the atoms (a star of 1,000 atoms takes a quarter of a second), and
// no known workload comes near.
const (
	MaxAtoms = 1000
	MaxArgs  = 1 << 14 // arguments of all atoms together
)

// Compile plans an acyclic query. A cyclic query, one beyond MaxAtoms or MaxArgs,
// and one with a filter or an inline table that no single atom covers are
// errs.ErrUnsupported; a relation used with two arities is errs.ErrArity; an output
// or aggregated variable that no atom holds is errs.ErrSyntax. All name the line
// and column.
func Compile(q *query.Query) (*Plan, error) {
	p, _, err := prepare(q)
	if err != nil {
		return nil, err
	}
	p.choose()
	if invariant.Enabled {
		err := p.check()
		invariant.Check(err == nil, "tree of %s: %v", q.Text, err)
	}
	return p, nil
}

// prepare does all of Compile but for the trees. When the class of the query is
// the only thing that stands against it, the plan is returned with the error,
// and refused is set.
func prepare(q *query.Query) (p *Plan, refused bool, err error) {
	if len(q.Atoms) > MaxAtoms {
		return nil, false, q.Atoms[MaxAtoms].Pos.Unsupported("the query has %d atoms, at most %d are supported", len(q.Atoms), MaxAtoms)
	}
	args := 0
	for i := range q.Atoms {
		if args += len(q.Atoms[i].Args); args > MaxArgs {
			return nil, false, q.Atoms[i].Pos.Unsupported("the atoms have more than %d arguments together", MaxArgs)
		}
	}
	p = &Plan{Query: q}
	if err := p.normalise(); err != nil {
		return nil, false, err
	}
	if err := p.setPayload(); err != nil {
		return nil, false, err
	}
	p.classify()
	if !p.Class.Acyclic {
		return p, true, q.HeadPos.Unsupported("the query is %s, and only acyclic queries are evaluated: %s", p.Class, p.coreSentence())
	}
	p.extend()
	return p, false, nil
}

// classify decides the class of the query as it is after folding.
func (p *Plan) classify() {
	a := hypergraph.Analyze(p.schemas(), ints(p.Query.Head))
	p.Class, p.Core = a.Class, a.Core
}

func ints(vars []query.Var) []int {
	n := make([]int, len(vars))
	for i, v := range vars {
		n[i] = int(v)
	}
	return n
}

// normalise makes the aliases and gives each filter and table to one of them.
func (p *Plan) normalise() error {
	q := p.Query
	if err := checkUse(q); err != nil {
		return err
	}
	atoms := make([]int, len(q.Vars)) // in how many atoms each variable occurs
	for i := range q.Atoms {
		for v := range firstCols(&q.Atoms[i]) {
			atoms[v]++
		}
	}
	kept := make([]bool, len(q.Vars))
	for v, n := range atoms {
		kept[v] = n > 1
	}
	for _, v := range q.Head {
		kept[v] = true
	}
	p.Aliases = make([]Alias, len(q.Atoms))
	for i := range q.Atoms {
		p.Aliases[i] = fold(i, &q.Atoms[i], kept)
	}
	for i := range q.Filters {
		if err := p.addFilter(q.Filters[i]); err != nil {
			return err
		}
	}
	for _, t := range q.Values {
		a := p.covering(t.Vars)
		if a < 0 {
			return t.Pos.Unsupported("no single atom holds all variables of the VALUES table (%s)", p.varList(t.Vars))
		}
		p.Aliases[a].Values = append(p.Aliases[a].Values, t)
	}
	return nil
}

// checkUse checks that each relation has one arity and each output variable an
// atom.
func checkUse(q *query.Query) error {
	if len(q.Atoms) == 0 {
		return q.HeadPos.Syntax("the body is empty")
	}
	arity := make(map[string]int)
	for _, a := range q.Atoms {
		n, ok := arity[a.Relation]
		if ok && n != len(a.Args) {
			return fmt.Errorf("%v: %w: %s has %d arguments here and %d before", a.Pos, errs.ErrArity, a.Relation, len(a.Args), n)
		}
		arity[a.Relation] = len(a.Args)
	}
	bound := q.Bound()
	for _, v := range q.Head {
		if !bound[v] {
			return q.HeadPos.Syntax("output variable %s occurs in no atom", q.Vars[v])
		}
	}
	return nil
}

// firstCols maps each variable of an atom to its first column.
func firstCols(a *query.Atom) map[query.Var]int {
	first := make(map[query.Var]int)
	for col, arg := range a.Args {
		if _, ok := first[arg.Var]; !ok && arg.Var != query.NoVar {
			first[arg.Var] = col
		}
	}
	return first
}

// fold makes the alias of one atom.
func fold(atom int, a *query.Atom, kept []bool) Alias {
	al := Alias{Atom: atom, Relation: a.Relation, Arity: len(a.Args), Window: a.Window}
	first := firstCols(a)
	for col, arg := range a.Args {
		switch {
		case arg.Var == query.NoVar:
			al.Consts = append(al.Consts, ConstCol{Col: col, Term: arg.Const})
		case first[arg.Var] != col:
			al.Equal = append(al.Equal, [2]int{first[arg.Var], col})
		case kept[arg.Var]:
			al.Vars = append(al.Vars, arg.Var)
			al.Cols = append(al.Cols, col)
		default:
			al.Private = append(al.Private, col)
		}
	}
	return al
}

// addFilter gives a filter to the first atom that holds all of its variables.
// A conjunction is taken apart, since each part may find an atom of its own;
// what holds no variable is decided here.
func (p *Plan) addFilter(f query.Filter) error {
	if f.Expr.Op == query.OpAnd {
		for _, e := range f.Expr.Subs {
			if err := p.addFilter(query.Filter{Pos: f.Pos, Expr: e}); err != nil {
				return err
			}
		}
		return nil
	}
	vars := f.Vars()
	if len(vars) == 0 {
		if !f.Eval(func(query.Var) term.Term { return term.Term{} }) {
			p.Never = true
		}
		return nil
	}
	a := p.covering(vars)
	if a < 0 {
		return f.Pos.Unsupported("no single atom holds all variables of the filter (%s)", p.varList(vars))
	}
	p.Aliases[a].Filters = append(p.Aliases[a].Filters, f)
	return nil
}

// covering returns the first atom that holds all of vars, or -1.
func (p *Plan) covering(vars []query.Var) int {
	return slices.IndexFunc(p.Query.Atoms, func(a query.Atom) bool {
		return !slices.ContainsFunc(vars, func(v query.Var) bool {
			return !slices.ContainsFunc(a.Args, func(arg query.Arg) bool { return arg.Var == v })
		})
	})
}
