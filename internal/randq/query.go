package randq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/triegs/triegs/internal/oracle"
)

// Query is an acyclic query, a full one unless Size asks for other heads. A
// variable whose name begins with an underscore is anonymous.
type Query struct {
	Name     string
	Head     []string
	Atoms    []oracle.Atom
	Filters  []Compare
	Values   []oracle.Values // SPARQL only
	Distinct bool
	Set      bool
	SPARQL   bool // Text gives the SPARQL form; every atom is binary then
	// Aggregates stand behind the variables of the head. A query has these, a
	// Semiring, or neither; of annotated atoms it has some only with the latter,
	// which rule text alone can say.
	Aggregates []oracle.Aggregate
	Semiring   string
	// Window is that of the query. The text gives an atom a window of its own
	// where the atom's differs from it, which in SPARQL it never does.
	Window oracle.Window
}

// Compare is a filter: a variable, an operator, and a variable or constant.
type Compare struct {
	Left  string
	Op    string // = != < <= > >=
	Right oracle.Arg
}

// arities is the schema that all cases share.
var arities = map[string]int{"U1": 1, "U2": 1, "B1": 2, "B2": 2, "B3": 2, "T1": 3, "T2": 3, "F1": 4}

// relations lists the schema in a fixed order.
var relations = []string{"U1", "U2", "B1", "B2", "B3", "T1", "T2", "F1"}

// pick draws one element.
func pick[T any](r *rand.Rand, s []T) T { return s[r.IntN(len(s))] }

// chance is true in percent of a hundred draws.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// nameable stands in for a domain of blank nodes, which SPARQL cannot name.
const nameable = `"a"`

// newQuery draws a query over the terms of the schema.
func newQuery(r *rand.Rand, name string, size Size, in schema) Query {
	q := Query{Name: name, SPARQL: chance(r, 25), Distinct: chance(r, 15), Set: chance(r, 15)}
	aggregates := size.Aggregates && chance(r, 50)
	semiring := size.Semirings && !aggregates && chance(r, 70)
	q.Distinct = q.Distinct && !aggregates && !semiring
	q.SPARQL = q.SPARQL && !semiring
	g := &generator{r: r, schema: in}
	pool := relations
	if q.SPARQL {
		pool = []string{"B1", "B2", "B3"}
		g.domain = slices.DeleteFunc(slices.Clone(in.domain), func(t string) bool { return strings.HasPrefix(t, "_:") })
		if len(g.domain) == 0 {
			g.domain = []string{nameable}
		}
	}
	// A small pool of relations makes self-joins common.
	g.pool = make([]string, 1+r.IntN(4))
	for i := range g.pool {
		g.pool[i] = pick(r, pool)
	}
	if aggregates {
		g.pool[0] = pick(r, slices.DeleteFunc(slices.Clone(numeric), func(rel string) bool { return !slices.Contains(pool, rel) }))
	}
	for range 1 + r.IntN(size.AtomsMax) {
		q.Atoms = append(q.Atoms, g.atom(q.Atoms))
	}
	if size.Heads && chance(r, 70) {
		q.Head = g.anyHead(q.Atoms)
	} else {
		q.Head = g.head(q.Atoms)
	}
	if aggregates {
		q.Aggregates = g.aggregates(q.Atoms, q.SPARQL)
	}
	if semiring {
		q.annotate(r, in.kinds)
	}
	if q.SPARQL && len(q.Head)+len(q.Aggregates) == 0 {
		q.SPARQL = false // SELECT needs a variable
	}
	if chance(r, 30) {
		q.Filters = g.filters(q.Atoms)
	}
	if q.SPARQL && chance(r, 30) {
		q.Values = g.values(q.Atoms)
	}
	return q
}

// generator draws the parts of one query.
type generator struct {
	schema
	r     *rand.Rand
	pool  []string
	fresh int // variables made so far
}

// atom hangs one more atom under one of those that are there.
func (g *generator) atom(have []oracle.Atom) oracle.Atom {
	a := oracle.Atom{Relation: pick(g.r, g.pool)}
	n := arities[a.Relation]
	a.Args = make([]oracle.Arg, n)
	if chance(g.r, 6) {
		for i := range a.Args {
			a.Args[i].Const = pick(g.r, g.column(a.Relation, i))
		}
		return a
	}
	places := g.r.Perm(n)
	if len(have) > 0 && !chance(g.r, 12) {
		shared := named(pick(g.r, have))
		g.r.Shuffle(len(shared), func(i, j int) { shared[i], shared[j] = shared[j], shared[i] })
		if len(shared) > 0 {
			k := 1 + g.r.IntN(min(n, len(shared)))
			for i, v := range shared[:k] {
				a.Args[places[i]].Var = v
			}
			places = places[k:]
		}
	}
	for _, p := range places {
		a.Args[p] = g.argument(a, p)
	}
	return a
}

// argument draws what stands in a column that joins with no other atom.
func (g *generator) argument(a oracle.Atom, col int) oracle.Arg {
	mine := named(a)
	switch p := g.r.IntN(100); {
	case p < 8:
		return oracle.Arg{Const: pick(g.r, g.column(a.Relation, col))}
	case p < 16:
		g.fresh++
		return oracle.Arg{Var: fmt.Sprintf("_%d", g.fresh)}
	case p < 28 && len(mine) > 0:
		return oracle.Arg{Var: pick(g.r, mine)}
	}
	g.fresh++
	return oracle.Arg{Var: fmt.Sprintf("x%d", g.fresh)}
}

// head puts out every variable of two atoms and most of the others.
func (g *generator) head(atoms []oracle.Atom) (out []string) {
	occurs := map[string]int{}
	var order []string
	for _, a := range atoms {
		for _, v := range named(a) {
			if occurs[v] == 0 {
				order = append(order, v)
			}
			occurs[v]++
		}
	}
	keep := 85
	if chance(g.r, 10) {
		keep = 0
	}
	for _, v := range order {
		if occurs[v] > 1 || chance(g.r, keep) {
			out = append(out, v)
		}
	}
	g.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// filters draws one or two comparisons, each over the variables of one atom.
func (g *generator) filters(atoms []oracle.Atom) (out []Compare) {
	for range 1 + g.r.IntN(2) {
		vars := named(pick(g.r, atoms))
		if len(vars) == 0 {
			continue
		}
		c := Compare{Left: pick(g.r, vars)}
		if len(vars) > 1 && chance(g.r, 50) {
			c.Op, c.Right.Var = pick(g.r, []string{"=", "!="}), pick(g.r, vars)
		} else {
			c.Op, c.Right.Const = pick(g.r, []string{"=", "!=", "<", "<=", ">", ">="}), pick(g.r, ordered)
		}
		out = append(out, c)
	}
	return out
}

// values draws an inline table over the variables of one atom.
func (g *generator) values(atoms []oracle.Atom) []oracle.Values {
	vars := named(pick(g.r, atoms))
	if len(vars) == 0 {
		return nil
	}
	v := oracle.Values{Vars: vars[:1+g.r.IntN(len(vars))]}
	for range 1 + g.r.IntN(4) {
		row := make([]string, len(v.Vars))
		for i := range row {
			row[i] = pick(g.r, g.domain)
		}
		v.Rows = append(v.Rows, row)
	}
	return []oracle.Values{v}
}

// anonymous tells whether a name stands for a variable without one.
func anonymous(v string) bool { return strings.HasPrefix(v, "_") }

// named lists the named variables of an atom, each once.
func named(a oracle.Atom) (out []string) {
	for _, arg := range a.Args {
		if arg.Var != "" && !anonymous(arg.Var) && !slices.Contains(out, arg.Var) {
			out = append(out, arg.Var)
		}
	}
	return out
}

// Oracle gives q in the form of the reference evaluator.
func (q *Query) Oracle() *oracle.Query {
	o := &oracle.Query{Head: q.Head, Atoms: q.Atoms, Values: q.Values, Distinct: q.Distinct, Set: q.Set,
		Aggregates: q.Aggregates, Semiring: q.Semiring}
	for _, c := range q.Filters {
		o.Filters = append(o.Filters, func(val map[string]string) bool {
			right := c.Right.Const
			if c.Right.Var != "" {
				right = val[c.Right.Var]
			}
			return holds(val[c.Left], c.Op, right)
		})
	}
	return o
}

// Variant is the same query with its atoms and filters in another order and
// its variables under other names; the columns keep their order.
func (q *Query) Variant(r *rand.Rand, name string) Query {
	rename := map[string]string{}
	as := func(v string) string {
		if v == "" || anonymous(v) {
			return v
		}
		if rename[v] == "" {
			rename[v] = fmt.Sprintf("v%d", 100-len(rename))
		}
		return rename[v]
	}
	all := func(vs []string) []string {
		out := slices.Clone(vs)
		for i := range out {
			out[i] = as(out[i])
		}
		return out
	}
	w := *q
	w.Name = name
	w.Atoms = nil
	for _, i := range r.Perm(len(q.Atoms)) {
		a := oracle.Atom{Relation: q.Atoms[i].Relation, Window: q.Atoms[i].Window, Annotated: q.Atoms[i].Annotated}
		for _, arg := range q.Atoms[i].Args {
			a.Args = append(a.Args, oracle.Arg{Var: as(arg.Var), Const: arg.Const})
		}
		w.Atoms = append(w.Atoms, a)
	}
	w.Head = all(q.Head)
	w.Aggregates = slices.Clone(q.Aggregates)
	for i := range w.Aggregates {
		w.Aggregates[i].Var = as(w.Aggregates[i].Var)
	}
	w.Filters = nil
	for _, i := range r.Perm(len(q.Filters)) {
		c := q.Filters[i]
		w.Filters = append(w.Filters, Compare{as(c.Left), c.Op, oracle.Arg{Var: as(c.Right.Var), Const: c.Right.Const}})
	}
	w.Values = nil
	for _, v := range q.Values {
		w.Values = append(w.Values, oracle.Values{Vars: all(v.Vars), Rows: v.Rows})
	}
	return w
}
