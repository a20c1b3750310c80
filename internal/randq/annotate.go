package randq

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/triegs/triegs/internal/oracle"
)

// kind is what the values of the contributions to a relation are, and the
// semirings that can read all of them.
type kind struct {
	values    []string
	semirings []string
}

// kinds are the kinds of values. Those of floats are binary fractions, so that
// sums and products of a few are exact.
var kinds = []kind{
	{[]string{integer(0), integer(1), integer(1), integer(2), integer(3)},
		[]string{"int", "int", "real", "maxplus", "minplus", "maxmax", "maxmin", "cap(1)", "cap(3)", "cap(1000)", "topk(1)", "topk(3)"}},
	{[]string{integer(-2), integer(-1), integer(0), integer(1), integer(2)},
		[]string{"int", "real", "maxplus", "minplus", "maxmax", "maxmin", "topk(2)"}},
	{[]string{double("-1.5E0"), double("5.0E-1"), double("2.5E0"), double("1.0E0"), integer(1), integer(-2)},
		[]string{"real", "maxplus", "minplus", "maxmax", "maxmin", "topk(3)"}},
	{[]string{double("2.5E-1"), double("5.0E-1"), double("7.5E-1"), double("1.0E0"), double("0.0E0")},
		[]string{"fuzzy", "fuzzy", "real", "maxmin"}},
	{[]string{`"public"`, `"internal"`, `"secret"`},
		[]string{"access(public < internal < secret)", "access(secret < internal < public)", "why"}},
	{[]string{`"t1"`, `"t2"`, `"t3"`, `"t4"`}, []string{"why", "poly"}},
}

// hugeKinds are those of Size.Huge.
var hugeKinds = []kind{
	{[]string{integer(0), integer(1), integer(2), integer(1 << 31), integer(1 << 62), integer(math.MaxInt64)},
		[]string{"int", "int", "real", "maxplus", "minplus", "maxmax", "cap(3)", "cap(9223372036854775807)", "topk(2)"}},
	{[]string{integer(math.MinInt64), integer(-1), integer(1), integer(3), integer(1 << 40), integer(-1 << 62)},
		[]string{"int", "int", "maxplus", "minplus", "maxmin", "topk(3)"}},
	{[]string{double("1.0E300"), double("-1.0E300"), double("1.0E308"), double("1.0E10"), double("1.0E-10"), integer(2)},
		[]string{"real", "real", "maxplus", "minplus", "topk(2)"}},
}

// numeric are the relations whose last column holds numbers only, where there are
// aggregates.
var numeric = []string{"U2", "B3", "T2", "F1"}

// someNumbers are what the terms of those columns are drawn from; some of them are
// equal by value.
var someNumbers = []string{integer(0), integer(1), integer(2), integer(-4), double("2.5E0"), double("1.0E0")}

// hugeNumbers are those of Size.Huge.
var hugeNumbers = []string{integer(1), integer(1 << 40), integer(1 << 62), integer(math.MaxInt64), integer(math.MinInt64), double("1.0E308"), double("2.5E0")}

// numberColumn tells whether a column of a relation is one of numbers.
func numberColumn(rel string, col int) bool {
	return col == arities[rel]-1 && slices.Contains(numeric, rel)
}

// numericVars lists the variables that occur in columns of numbers only, so that
// whichever atom gives a variable its value, it is a number.
func numericVars(atoms []oracle.Atom) (out []string) {
	var other []string
	for _, a := range atoms {
		for i, arg := range a.Args {
			if arg.Var == "" || anonymous(arg.Var) {
				continue
			}
			if !numberColumn(a.Relation, i) {
				other = append(other, arg.Var)
			} else if !slices.Contains(out, arg.Var) {
				out = append(out, arg.Var)
			}
		}
	}
	return slices.DeleteFunc(out, func(v string) bool { return slices.Contains(other, v) })
}

// allVars lists the named variables of the atoms, each once.
func allVars(atoms []oracle.Atom) (out []string) {
	for _, a := range atoms {
		for _, v := range named(a) {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// anyHead draws a head that may leave out variables of several atoms, or all.
func (g *generator) anyHead(atoms []oracle.Atom) (out []string) {
	keep := pick(g.r, []int{0, 30, 30, 50, 50, 70})
	for _, v := range allVars(atoms) {
		if chance(g.r, keep) {
			out = append(out, v)
		}
	}
	g.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// aggregates draws up to three aggregates, each another one. SPARQL has no topk.
func (g *generator) aggregates(atoms []oracle.Atom, sparql bool) (out []oracle.Aggregate) {
	all, nums := allVars(atoms), numericVars(atoms)
	for range 1 + g.r.IntN(3) {
		a := oracle.Aggregate{Func: oracle.Count}
		switch p := g.r.IntN(100); {
		case p < 60 && len(nums) > 0:
			a.Func, a.Var = pick(g.r, []oracle.Func{oracle.Sum, oracle.Sum, oracle.Avg, oracle.TopK}), pick(g.r, nums)
			if a.Func == oracle.TopK && sparql {
				a.Func = oracle.Sum
			}
		case p < 85 && len(all) > 0:
			a.Func, a.Var = pick(g.r, []oracle.Func{oracle.Min, oracle.Max, oracle.CountDistinct}), pick(g.r, all)
		}
		if a.Func == oracle.TopK {
			a.K = 1 + g.r.IntN(4)
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// annotate gives a query a semiring that reads the values of one of its atoms,
// and annotates that atom and most of the others that it can read.
func (q *Query) annotate(r *rand.Rand, of map[string]kind) {
	first := r.IntN(len(q.Atoms))
	q.Semiring = pick(r, of[q.Atoms[first].Relation].semirings)
	for i := range q.Atoms {
		a := &q.Atoms[i]
		a.Annotated = i == first || slices.Contains(of[a.Relation].semirings, q.Semiring) && chance(r, 75)
	}
	if chance(r, 5) { // the ones alone
		for i := range q.Atoms {
			q.Atoms[i].Annotated = false
		}
	}
}

// schema tells what the columns of the relations and the values of their
// contributions are drawn from.
type schema struct {
	domain  []string
	numbers []string        // of the columns of numbers, nil if there are none
	kinds   map[string]kind // of values, nil for the plain ones
}

// column lists the terms of a column.
func (s *schema) column(rel string, col int) []string {
	if s.numbers != nil && numberColumn(rel, col) {
		return s.numbers
	}
	return s.domain
}

// drawKinds gives each relation one of some kinds of values.
func drawKinds(r *rand.Rand, from []kind) map[string]kind {
	of := map[string]kind{}
	for _, rel := range relations {
		of[rel] = pick(r, from)
	}
	return of
}

// headText writes the columns of a head as rule text has them.
func (q *Query) headText() string {
	columns := slices.Clone(q.Head)
	for _, a := range q.Aggregates {
		columns = append(columns, aggregateText(a))
	}
	return strings.Join(columns, ", ")
}

func aggregateText(a oracle.Aggregate) string {
	switch a.Func {
	case oracle.CountDistinct:
		return "count(distinct " + a.Var + ")"
	case oracle.TopK:
		return fmt.Sprintf("topk(%s, %d)", a.Var, a.K)
	}
	return fmt.Sprintf("%s(%s)", a.Func, a.Var)
}

// selectText writes the columns of a SELECT clause.
func (q *Query) selectText() string {
	var s strings.Builder
	for _, v := range q.Head {
		s.WriteString("?" + v + " ")
	}
	for i, a := range q.Aggregates {
		arg := "?" + a.Var
		switch a.Func {
		case oracle.Count:
			arg = "*"
		case oracle.CountDistinct:
			arg = "DISTINCT " + arg
		}
		name, _, _ := strings.Cut(string(a.Func), " ")
		fmt.Fprintf(&s, "(%s(%s) AS ?a%d) ", strings.ToUpper(name), arg, i)
	}
	return s.String()
}

// groupText writes the GROUP BY clause that the aggregates of SPARQL want.
func (q *Query) groupText() string {
	if len(q.Aggregates) == 0 || len(q.Head) == 0 {
		return ""
	}
	return " GROUP BY ?" + strings.Join(q.Head, " ?")
}

// parseHead reads the words between the brackets of a head.
func (q *Query) parseHead(ts []string) error {
	for len(ts) > 0 {
		switch {
		case ts[0] == ",":
			ts = ts[1:]
		case len(ts) > 1 && ts[1] == "(":
			end := slices.Index(ts, ")")
			if end < 0 {
				return fmt.Errorf("aggregate %s has no end", ts[0])
			}
			a, err := parseAggregate(ts[0], ts[2:end])
			if err != nil {
				return err
			}
			q.Aggregates = append(q.Aggregates, a)
			ts = ts[end+1:]
		default:
			q.Head = append(q.Head, ts[0])
			ts = ts[1:]
		}
	}
	return nil
}

// parseAggregate reads an aggregate from its name and the words in its brackets.
func parseAggregate(name string, args []string) (a oracle.Aggregate, err error) {
	a.Func = oracle.Func(name)
	switch {
	case a.Func == oracle.Count && len(args) == 0:
	case a.Func == oracle.Count && len(args) == 2 && args[0] == "distinct":
		a.Func, a.Var = oracle.CountDistinct, args[1]
	case a.Func == oracle.TopK && len(args) == 3:
		a.Var = args[0]
		_, err = fmt.Sscanf(args[2], "%d", &a.K)
	case slices.Contains([]oracle.Func{oracle.Sum, oracle.Avg, oracle.Min, oracle.Max}, a.Func) && len(args) == 1:
		a.Var = args[0]
	default:
		err = fmt.Errorf("unknown aggregate %s%q", name, args)
	}
	return a, err
}

// parseSemiring reads the name of a semiring off the front.
func parseSemiring(ts []string) (name string, rest []string, err error) {
	if len(ts) == 0 {
		return "", nil, fmt.Errorf("a semiring wants a name")
	}
	if len(ts) < 2 || ts[1] != "(" {
		return ts[0], ts[1:], nil
	}
	end := slices.Index(ts, ")")
	if end < 0 {
		return "", nil, fmt.Errorf("semiring %s has no end", ts[0])
	}
	return ts[0] + "(" + strings.Join(ts[2:end], " ") + ")", ts[end+1:], nil
}
