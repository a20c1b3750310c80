package plan

import (
	"fmt"
	"strings"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/hypergraph"
)

// coreSentence says in words what the core of the query is, if it has one.
func (p *Plan) coreSentence() string {
	c := p.Core
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

// windowUpdate is the update bound of a full query some of whose atoms have
// windows, with the reason where the good one does not hold.
//
// In a tree of height 2 a fact can wait only for facts at the leaves, each of
// which stays as long as its window. So no more of these come and go while it
// lives than fit into its own window: a constant number when that is no longer
// than theirs. What has no window is never gone, which is fine at the leaves and
// bad above them. (CROWN, Lemma 6.9, has the case of one window.)
func (p *Plan) windowUpdate() string {
	reason := p.longAboveShort()
	if p.Score.WindowHeight > windowLevels {
		high := fmt.Sprintf("tree height of windows %d, the bound for FIFO windows needs %d", p.Score.WindowHeight, windowLevels)
		reason = strings.TrimSuffix(high+"; "+reason, "; ")
	}
	if reason != "" {
		return "O(lambda): " + reason
	}
	kind, rest := "one length", ""
	for i := range p.Aliases {
		switch w := p.Aliases[i].Window; {
		case w.IsZero():
			rest = ", while relations without a window stay as they are"
		case w != p.firstWindow():
			kind = "several lengths, none above a shorter one"
		}
	}
	if p.Score.WindowHeight == 1 {
		// Nothing waits for a fact with a window.
		return "O(1) under any updates of relations with windows, O(lambda) under those of the others"
	}
	return fmt.Sprintf("amortised O(1) under FIFO windows of %s (tree height of windows %d)%s, O(lambda) in general", kind, p.Score.WindowHeight, rest)
}

// longAboveShort names the first two of the tree of which the upper one holds its
// facts for longer, or may do so; empty when there are none.
func (p *Plan) longAboveShort() string {
	g := p.top()
	life := longest(g.rels)
	for i := range p.Nodes {
		b := g.rel(&p.Nodes[i])
		if b == nil {
			continue
		}
		for up := p.Nodes[i].Parent; up >= 0; up = p.Nodes[up].Parent {
			a := g.rel(&p.Nodes[up])
			if a == nil || life.churn(a, b) <= 1 {
				continue
			}
			above := p.label(&p.Nodes[up])
			lower := fmt.Sprintf("stands above %s (%s)", p.label(&p.Nodes[i]), b.Window.Spec())
			switch {
			case a.Window.IsZero():
				return fmt.Sprintf("%s, which has no window, %s", above, lower)
			case (a.Window.Last > 0) != (b.Window.Last > 0), a.Window.Last > 0 && a.Relation != b.Relation:
				return fmt.Sprintf("%s (%s) %s, and which facts stay longer is not known", above, a.Window.Spec(), lower)
			}
			return fmt.Sprintf("%s (%s) %s, which is shorter", above, a.Window.Spec(), lower)
		}
	}
	return ""
}

// windowed reports whether some atom has a window.
func (p *Plan) windowed() bool { return !p.firstWindow().IsZero() }

func (p *Plan) firstWindow() query.Window {
	for i := range p.Aliases {
		if w := p.Aliases[i].Window; !w.IsZero() {
			return w
		}
	}
	return query.Window{}
}

func vars(ints []int) []query.Var {
	vs := make([]query.Var, len(ints))
	for i, n := range ints {
		vs[i] = query.Var(n)
	}
	return vs
}

func (p *Plan) varList(vs []query.Var) string { return list(p.nameList(vs)) }

// nameList names variables; it is not nil.
func (p *Plan) nameList(vs []query.Var) []string {
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = p.varName(v)
	}
	return names
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
