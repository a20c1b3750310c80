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
	// Core says which variables and atoms keep the query out of the next better
	// class, so that the good bounds do not hold: the cycle, the free path, else what
	// makes it not strong-connex. CoreKind is its term in the literature. Both are
	// empty for a strong-connex query.
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
	// Extension are the variables that are treated as output, so that the query is
	// free-connex; its answers are then projected and kept.
	Extension []string `json:"extension,omitempty"`
	// Tree, Score and Nodes are there when the query is evaluable. The nodes are
	// those of Plan.Nodes.
	Tree  string          `json:"tree,omitempty"`
	Score *Score          `json:"score,omitempty"`
	Nodes []ExplainedNode `json:"nodes,omitempty"`
	// Clusters are those of Plan.Clusters.
	Clusters []ExplainedCluster `json:"clusters,omitempty"`
	// Weights tells what the weight of a tuple is, empty where it is the number of
	// its valuations.
	Weights string `json:"weights,omitempty"`
	// Values are the values of a row, Tracks what they are read off.
	Values []ExplainedValue `json:"values,omitempty"`
	Tracks []ExplainedTrack `json:"tracks,omitempty"`
	// Aliases tells for each atom what it keeps and folds away.
	Aliases []ExplainedAlias `json:"aliases"`
	// Views are the tries over which the query is kept up and read. Equal ones of
	// several queries are one, and an index in the order of the columns is the
	// relation itself.
	Views []ExplainedView `json:"views,omitempty"`
	// Unseen names the relations of the query that have never had a fact: mistyped,
	// maybe. Updates is the number of updates over which the live figures of nodes
	// are averaged. Both are left to whoever has a store.
	Unseen  []string `json:"unseen,omitempty"`
	Updates int64    `json:"updates,omitempty"`
}

// ExplainedNode is a node of the tree of the query or of a cluster.
type ExplainedNode struct {
	// Name is an alias, a cluster, or the schema of a generalized node.
	Name string `json:"name"`
	// Parent is an index into the same nodes, -1 for the root.
	Parent int `json:"parent"`
	// Key is what the node shares with what is above, and Edge what crosses to
	// there: EdgeBoolean, EdgeStrong or EdgeLoose, empty at the root of the query.
	Key  []string `json:"key,omitempty"`
	Edge string   `json:"edge,omitempty"`
	// Live is there when someone who has a store has set it.
	Live *LiveNode `json:"live,omitempty"`
}

// What crosses an edge. Across a Boolean one only presence does, across others the
// sums of what is below: a changed sum changes one tuple above if the edge is
// strong, else any number of them.
const (
	EdgeBoolean = "Boolean"
	EdgeStrong  = "annotated, strong"
	EdgeLoose   = "annotated, not strong"
)

// LiveNode is what a node of a registered query has and does.
type LiveNode struct {
	// Tuples is the number of its tuples at the epoch of the explanation.
	Tuples int64 `json:"tuples"`
	// Writes is the mean number of its tuples written for an update of the query's
	// relations, Nanoseconds the mean time that its propagation took.
	Writes      float64 `json:"writes_per_update"`
	Nanoseconds float64 `json:"nanoseconds_per_update"`
}

// ExplainedCluster is a set of aliases that is summed to one relation.
type ExplainedCluster struct {
	Name      string          `json:"name"`
	Output    []string        `json:"output"`
	Tree      string          `json:"tree"`
	NonStrong int             `json:"non_strong"`
	Score     Score           `json:"score"`
	Nodes     []ExplainedNode `json:"nodes"`
}

// ExplainedValue is a value of a row and where it is from.
type ExplainedValue struct {
	Column string `json:"column"`
	From   string `json:"from"`
}

// ExplainedTrack is an annotation, with the properties of its algebra
// (semiring.Traits).
type ExplainedTrack struct {
	Name    string `json:"name"`
	Algebra string `json:"algebra"`
	// Lifted are the aliases that lift a value, and the variable; or the alias with
	// an @, for the values of its contributions.
	Lifted []string `json:"lifted"`
	// Known tells whether the algebra is one of this library. Of one of the user
	// nothing more is known here.
	Known      bool   `json:"known"`
	Positive   bool   `json:"positive"`
	Idempotent bool   `json:"idempotent"`
	Exact      bool   `json:"exact"`
	Chain      int    `json:"chain"`
	State      string `json:"state,omitempty"`
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

// aggregateName writes the algebra of an aggregate with its variable: "sum(a)",
// "top(a, 3)".
func aggregateName(algebra, v string) string {
	name, arg, ok := strings.Cut(algebra, "(")
	if ok {
		return name + "(" + v + ", " + arg
	}
	return name + "(" + v + ")"
}

// Explain explains a plan.
func (p *Plan) Explain() *Explanation {
	x := &Explanation{
		Name: p.Query.Name, Class: p.Class.String(), Flags: p.Class,
		Evaluable: p.Nodes != nil, Empty: p.Never,
	}
	if p.Core != nil {
		x.Core, x.CoreKind = p.coreSentence(), p.Core.Kind.String()
	}
	x.Structure, x.Update, x.Delay = p.costs()
	x.Extension = p.nameList(p.Extra)
	if x.Evaluable {
		p.explainTrees(x)
		x.Views = p.views()
	}
	p.explainPayload(x)
	for i := range p.Aliases {
		a := &p.Aliases[i]
		e := ExplainedAlias{
			Name: p.AliasName(i), Keeps: p.nameList(a.Vars), Constants: len(a.Consts), Equal: len(a.Equal),
			Folded: len(a.Private), Filters: len(a.Filters), Tables: len(a.Values),
		}
		if p.windowed() {
			e.Window = a.Window.Spec()
		}
		x.Aliases = append(x.Aliases, e)
	}
	return x
}

func (p *Plan) explainTrees(x *Explanation) {
	s := p.Score
	x.Tree, x.Score, x.Nodes = p.Tree(), &s, p.explainNodes(p.Nodes, false)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		x.Clusters = append(x.Clusters, ExplainedCluster{
			Name: p.ClusterName(i), Output: p.nameList(c.Vars), Tree: p.ClusterTree(i),
			NonStrong: c.NonStrong, Score: c.Score, Nodes: p.explainNodes(c.Nodes, true),
		})
	}
}

func (p *Plan) explainNodes(nodes []Node, annotated bool) []ExplainedNode {
	var all []ExplainedNode
	for i := range nodes {
		n := ExplainedNode{Name: p.label(&nodes[i]), Parent: nodes[i].Parent, Key: p.nameList(nodes[i].Key)}
		switch {
		case !annotated && n.Parent < 0:
		case !annotated:
			n.Edge = EdgeBoolean
		case strong(nodes, i):
			n.Edge = EdgeStrong
		default:
			n.Edge = EdgeLoose
		}
		all = append(all, n)
	}
	return all
}

// explainPayload tells what is computed for each answer.
func (p *Plan) explainPayload(x *Explanation) {
	switch {
	case p.Query.Distinct || p.Query.Semiring == semiringBool:
		x.Weights = "every answer once"
	case !p.Payload.Counted && len(p.Payload.Tracks) > 0 && len(p.Clusters) > 0:
		x.Weights = "clusters keep no numbers of valuations"
	}
	if p.Query.Set {
		x.Weights = strings.TrimPrefix(x.Weights+"; every fact once", "; ")
	}
	for i := range p.Payload.Tracks {
		x.Tracks = append(x.Tracks, p.explainTrack(i))
	}
	for i, o := range p.Payload.Outputs {
		v := ExplainedValue{Column: "value", From: "the count"}
		if len(p.Query.Aggregates) > 0 {
			v.Column = p.Query.Aggregates[i].Column
		}
		if o.Track >= 0 {
			v.From = x.Tracks[o.Track].Name
		}
		if o.Average {
			v.From += " / the count"
		}
		x.Values = append(x.Values, v)
	}
}

func (p *Plan) explainTrack(i int) ExplainedTrack {
	t := ExplainedTrack{Algebra: p.Payload.Tracks[i].Algebra, Lifted: []string{}}
	t.Name = t.Algebra
	for j := range p.Aliases {
		a := &p.Aliases[j]
		for _, l := range a.Lifts {
			switch {
			case l.Track != i:
			case l.Col == a.Arity:
				t.Lifted = append(t.Lifted, p.AliasName(j)+"@")
			default:
				v := p.varName(p.Query.Atoms[a.Atom].Args[l.Col].Var)
				t.Name = aggregateName(t.Algebra, v)
				t.Lifted = append(t.Lifted, p.AliasName(j)+"."+v)
			}
		}
	}
	if k, ok := p.Payload.Tracks[i].traits(); ok {
		t.Known, t.Positive, t.Idempotent, t.Exact, t.Chain, t.State = true, k.Positive, k.Idempotent, k.Exact, k.Chain, k.State
	}
	return t
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
	if x.Core != "" {
		line("core", x.Core+" ("+x.CoreKind+")")
	}
	if !x.Evaluable {
		line("evaluated", "no, only acyclic queries are; the costs are those of the class")
	}
	if x.Empty {
		line("answers", "none ever, a condition without variables is false")
	}
	line("structure", x.Structure)
	line("extension", strings.Join(x.Extension, ", "))
	line("update", x.Update)
	line("delay", x.Delay)
	line("never seen", strings.Join(x.Unseen, ", "))
	x.writeTrees(line)
	line("weights", x.Weights)
	line("values", x.valueList())
	for _, t := range x.Tracks {
		line("track", t.String())
	}
	for _, a := range x.Aliases {
		line("alias", a.String())
	}
	for _, v := range x.Views {
		line("keeps", v.String())
	}
	return b.String()
}

// valueList writes the values of a row, as formulas where they are no track alone.
func (x *Explanation) valueList() string {
	values := make([]string, len(x.Values))
	for i, v := range x.Values {
		if values[i] = v.Column; v.From != v.Column {
			values[i] += " = " + v.From
		}
	}
	return strings.Join(values, "; ")
}

// writeTrees writes the tree of the query and those of its clusters, with all
// edges that are not Boolean, and the live figures where there are any.
func (x *Explanation) writeTrees(line func(what, text string)) {
	line("tree", x.Tree)
	if x.Score != nil {
		line("score", x.Score.String())
	}
	if len(x.Nodes) > 1 {
		line("edges", EdgeBoolean)
	}
	for _, c := range x.Clusters {
		line("cluster", c.Name+" is the sum over "+c.Tree)
		line("score", fmt.Sprintf("not strong %d, %v", c.NonStrong, c.Score))
		for _, n := range c.Nodes {
			above := c.Name
			if n.Parent >= 0 {
				above = c.Nodes[n.Parent].Name
			}
			by := "without a key"
			if len(n.Key) > 0 {
				by = "by " + strings.Join(n.Key, ", ")
			}
			line("edge", fmt.Sprintf("%s → %s %s, %s", above, n.Name, by, n.Edge))
		}
	}
	x.eachNode(func(n *ExplainedNode) {
		if n.Live != nil {
			line("live", fmt.Sprintf("%s has %d tuples, %.3g writes and %.3g ns for each of %d updates",
				n.Name, n.Live.Tuples, n.Live.Writes, n.Live.Nanoseconds, x.Updates))
		}
	})
}

// eachNode visits all nodes, those of the query first.
func (x *Explanation) eachNode(visit func(n *ExplainedNode)) {
	for i := range x.Nodes {
		visit(&x.Nodes[i])
	}
	for i := range x.Clusters {
		for j := range x.Clusters[i].Nodes {
			visit(&x.Clusters[i].Nodes[j])
		}
	}
}

// String writes the entries that a tree is chosen by, the first one first.
func (s Score) String() string {
	windows := ""
	if s.WindowHeight > 0 {
		windows = fmt.Sprintf("height of windows %d, churn %d, ", s.WindowHeight, s.Churn)
	}
	return fmt.Sprintf("%sdepth sum %d, height %d, nodes %d, index orders %d", windows, s.SumDepth, s.Height, s.Nodes, s.Orders)
}

// String writes the track as its name, where its values are from and its traits.
func (t ExplainedTrack) String() string {
	s := t.Name + " of ones"
	if len(t.Lifted) > 0 {
		s = t.Name + " of " + list(t.Lifted)
	}
	if !t.Known {
		return s + "; a semiring of the user"
	}
	for _, is := range []struct {
		on       bool
		yes, not string
	}{{t.Positive, "positive", "not positive"}, {t.Idempotent, "idempotent", ""}, {t.Exact, "exact", "rounded"}} {
		switch {
		case is.on:
			s += "; " + is.yes
		case is.not != "":
			s += "; " + is.not
		}
	}
	if t.Chain > 0 {
		s += fmt.Sprintf("; chains of at most %d", t.Chain)
	}
	return s + "; state " + t.State
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
