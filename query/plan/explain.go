package plan

import (
	"fmt"
	"strings"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/hypergraph"
)

// Explanation tells what a query is and what it costs. Bounds are those of the
// maintenance as a function of the data; the query counts as fixed. No lower
// bounds are told: those known hold for queries without self-joins only.
type Explanation struct {
	// Name is the head's name, empty for SPARQL text.
	Name string `json:"name,omitempty"`
	// Class names the class, with what else is worth knowing of it; Flags has
	// all decisions.
	Class string           `json:"class"`
	Flags hypergraph.Class `json:"flags"`
	// Core says which variables and atoms keep the query out of the full
	// acyclic class; empty when it is in it. CoreKind is the term of the
	// literature, empty when a variable that is not output is all there is.
	Core     string `json:"core,omitempty"`
	CoreKind string `json:"core_kind,omitempty"`
	// Evaluable tells whether Compile accepts the query. The costs of a query
	// that it refuses are those of its class.
	Evaluable bool `json:"evaluable"`
	// Empty tells that a condition without variables is false, so that there
	// are never answers.
	Empty bool `json:"empty,omitempty"`
	// Structure, Update and Delay are the row of the cost contract.
	Structure string `json:"structure"`
	Update    string `json:"update"`
	Delay     string `json:"delay"`
	// Tree and Score are there when the query is evaluable.
	Tree  string `json:"tree,omitempty"`
	Score *Score `json:"score,omitempty"`
	// Aliases tells for each atom what it keeps and folds away.
	Aliases []ExplainedAlias `json:"aliases"`
}

// ExplainedAlias is what an atom contributes.
type ExplainedAlias struct {
	Name      string   `json:"name"`
	Keeps     []string `json:"keeps"`
	Constants int      `json:"constants,omitempty"`
	Equal     int      `json:"equal,omitempty"`
	Folded    int      `json:"folded,omitempty"`
	Filters   int      `json:"filters,omitempty"`
	Tables    int      `json:"tables,omitempty"`
	// Window is what rule text has in the brackets behind the atom, all where it
	// has no window; empty when no atom of the query has one.
	Window string `json:"window,omitempty"`
}

// Explain explains a query of any class. It fails only on what Compile refuses
// for another reason than the class.
func Explain(q *query.Query) (*Explanation, error) {
	p, refused, err := prepare(q)
	if err != nil && !refused {
		return nil, err
	}
	if !refused {
		p.choose()
	}
	return p.Explain(), nil
}

// Explain explains a plan.
func (p *Plan) Explain() *Explanation {
	x := &Explanation{
		Name: p.Query.Name, Class: p.Class.String(), Flags: p.Class,
		Evaluable: p.Nodes != nil, Empty: p.Never,
	}
	if x.Evaluable {
		s := p.Score
		x.Tree, x.Score = p.Tree(), &s
	}
	if !p.Class.FullAcyclic() {
		x.Core = p.coreSentence()
		if p.Core != nil {
			x.CoreKind = p.Core.Kind.String()
		}
	}
	x.Structure, x.Update, x.Delay = p.costs()
	for i := range p.Aliases {
		a := &p.Aliases[i]
		keeps := make([]string, len(a.Vars))
		for j, v := range a.Vars {
			keeps[j] = p.varName(v)
		}
		e := ExplainedAlias{
			Name: p.AliasName(i), Keeps: keeps, Constants: len(a.Consts), Equal: len(a.Equal),
			Folded: len(a.Private), Filters: len(a.Filters), Tables: len(a.Values),
		}
		if p.windowed() {
			e.Window = a.Window.Spec()
		}
		x.Aliases = append(x.Aliases, e)
	}
	return x
}

// costs is the row of the cost contract for the class and the tree. Lambda is
// the enclosureness of CROWN: how many lifetimes of disjoint tuples below fit
// into that of one tuple, on average.
func (p *Plan) costs() (structure, update, delay string) {
	const views = "output views only, never the answer"
	switch {
	case !p.Class.Acyclic:
		return "bags of a hypertree decomposition, filled by a worst-case-optimal join, and an acyclic skeleton over them",
			"that of the bags and of the skeleton", "O(1) on the skeleton"
	case !p.Class.FreeConnex:
		return "the answer, over the smallest free-connex extension of the query", "depends on the size of the output", "O(1)"
	case p.Class.Full && p.Class.QHierarchical:
		return "no answer materialised", "O(1) under any updates", "O(1)"
	case p.Class.Full && p.windowed():
		return "no answer materialised", p.windowUpdate(), "O(1)"
	case p.Class.Full && p.Score.Height <= 2:
		return "no answer materialised",
			"amortised O(1) under insertions only and under FIFO windows of one length (tree height 2), O(lambda) in general", "O(1)"
	case p.Class.Full:
		return "no answer materialised",
			fmt.Sprintf("amortised O(1) under insertions only, O(lambda) in general (tree height %d: the bound for FIFO windows needs 2)", p.Score.Height), "O(1)"
	case p.Class.QHierarchical:
		return views, "O(1) under any updates for deletable aggregates, O(log) for min and max kinds", "O(1)"
	case p.Class.StrongConnex:
		return views, "amortised O(1) under insertions only, for every semiring, times the cost of the aggregate", "O(1)"
	default:
		return views, "O(affected)", "O(1)"
	}
}

// String writes the explanation as lines of "what: text".
func (x *Explanation) String() string {
	var b strings.Builder
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", what, text)
		}
	}
	line("query", x.Name)
	line("class", x.Class)
	core := x.Core
	if x.CoreKind != "" {
		core += " (" + x.CoreKind + ")"
	}
	line("core", core)
	if !x.Evaluable {
		line("evaluated", "no, only acyclic queries are; the costs are those of the class")
	}
	if x.Empty {
		line("answers", "none ever, a condition without variables is false")
	}
	line("structure", x.Structure)
	line("update", x.Update)
	line("delay", x.Delay)
	line("tree", x.Tree)
	if s := x.Score; s != nil {
		windows := ""
		if s.WindowHeight > 0 {
			windows = fmt.Sprintf("height of windows %d, churn %d, ", s.WindowHeight, s.Churn)
		}
		line("score", fmt.Sprintf("%sdepth sum %d, height %d, nodes %d, index orders %d", windows, s.SumDepth, s.Height, s.Nodes, s.Orders))
	}
	for _, a := range x.Aliases {
		line("alias", a.String())
	}
	return b.String()
}

// String writes the alias as its name, what it keeps and what it does.
func (a ExplainedAlias) String() string {
	s := a.Name + " keeps nothing"
	if len(a.Keeps) > 0 {
		s = a.Name + " keeps " + strings.Join(a.Keeps, ", ")
	}
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{a.Constants, "constant", "constants"},
		{a.Equal, "equality", "equalities"},
		{a.Folded, "column folded away", "columns folded away"},
		{a.Filters, "filter", "filters"},
		{a.Tables, "table", "tables"},
	} {
		switch {
		case c.n == 1:
			s += "; 1 " + c.one
		case c.n > 1:
			s += fmt.Sprintf("; %d %s", c.n, c.many)
		}
	}
	if a.Window != "" {
		s += "; window " + a.Window
	}
	return s
}
