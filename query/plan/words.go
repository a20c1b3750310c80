package plan

import (
	"fmt"
	"strings"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/hypergraph"
)

// coreSentence says in words what keeps the query from being full and acyclic.
func (p *Plan) coreSentence() string {
	c := p.Core
	if c == nil {
		return p.hiddenSentence()
	}
	v := func(i int) string { return p.varName(query.Var(c.Vars[i])) }
	a := func(i int) string { return p.AliasName(c.Atoms[i]) }
	last := len(c.Vars) - 1
	switch c.Kind {
	case hypergraph.QCore:
		return fmt.Sprintf("variable %s is shared by %s and %s and is not output, but of the two only %s has output %s",
			v(0), a(0), a(1), a(0), v(1))
	case hypergraph.ExistsHierarchyCore:
		return fmt.Sprintf("variables %s and %s are not output and overlap: %s has only %s, %s has both, %s has only %s",
			v(0), v(1), a(0), v(0), a(1), a(2), v(1))
	case hypergraph.FreePathCore:
		between := c.Vars[1:last]
		word := "variable"
		if len(between) > 1 {
			word = "variables"
		}
		return fmt.Sprintf("outputs %s and %s share no atom, and %s link them through %s %s, not output",
			v(0), v(last), p.atomList(c.Atoms), word, p.varList(vars(between)))
	case hypergraph.CycleCore:
		return p.cycleSentence(c)
	}
	return c.Kind.String()
}

func (p *Plan) cycleSentence(c *hypergraph.Core) string {
	switch {
	case c.Unreduced:
		return fmt.Sprintf("%s close a cycle", p.atomList(c.Atoms))
	case c.Ring:
		return fmt.Sprintf("%s close a cycle through the variables %s", p.atomList(c.Atoms), p.varList(vars(c.Vars)))
	}
	return fmt.Sprintf("no atom has all of the variables %s, but each of %s has all but one",
		p.varList(vars(c.Vars)), p.atomList(c.Atoms))
}

// hiddenSentence names the first variable that links two atoms and is not
// output.
func (p *Plan) hiddenSentence() string {
	out := make(map[query.Var]bool)
	for _, v := range p.Query.Head {
		out[v] = true
	}
	for i := range p.Aliases {
		for _, v := range p.Aliases[i].Vars {
			if out[v] {
				continue
			}
			for j := i + 1; j < len(p.Aliases); j++ {
				for _, w := range p.Aliases[j].Vars {
					if v == w {
						return fmt.Sprintf("variable %s is shared by %s and %s but is not output", p.varName(v), p.AliasName(i), p.AliasName(j))
					}
				}
			}
		}
	}
	return ""
}

func vars(ints []int) []query.Var {
	vs := make([]query.Var, len(ints))
	for i, n := range ints {
		vs[i] = query.Var(n)
	}
	return vs
}

func (p *Plan) varList(vs []query.Var) string {
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = p.varName(v)
	}
	return list(names)
}

func (p *Plan) atomList(atoms []int) string {
	// AliasName is linear, so only what will be shown is named.
	names := make([]string, len(atoms))
	for i, a := range atoms {
		if i < listMax {
			names[i] = p.AliasName(a)
		}
	}
	return list(names)
}

// listMax is the number of names that a message lists before it only counts.
const listMax = 8

// list joins names as in a sentence.
func list(names []string) string {
	n := len(names)
	switch {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n > listMax:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:listMax-1], ", "), n-listMax+1)
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}
