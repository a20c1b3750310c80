package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triegs/triegs/query"
)

// costs is the row of the cost contract for the class, the tree and the payload.
// Lambda is the enclosureness of CROWN: how many lifetimes of disjoint tuples below
// fit into that of one tuple, on average.
func (p *Plan) costs() (structure, update, delay string) {
	const views = "output views only, never the answer"
	times := p.stateCost()
	switch {
	case !p.Class.Acyclic:
		return "bags of a hypertree decomposition, filled by a worst-case-optimal join, and an acyclic skeleton over them",
			"that of the bags and of the skeleton", "O(1) on the skeleton"
	case !p.Class.FreeConnex:
		return "the answer, over the smallest free-connex extension of the query", "depends on the size of the output" + times, "O(1)"
	case p.Class.Full:
		return "no answer materialised", p.fullUpdate() + times, "O(1)"
	case p.Class.QHierarchical:
		return views, "O(1) under any updates" + times, "O(1)"
	case p.Class.StrongConnex:
		return views, "amortised O(1) under insertions only, O(lambda) in general" + times, "O(1)"
	case p.presenceOnly():
		// Each edge is crossed once by a key that comes and stays (Wang and Hu, lemma
		// 18).
		return views, "amortised O(1) under insertions only, since only presence crosses the edges, O(affected) in general", "O(1)"
	default:
		return views, "O(affected): one tuple may change many above it" + times, "O(1)"
	}
}

// presenceOnly reports whether what is kept above a tuple changes only when one
// comes or goes.
func (p *Plan) presenceOnly() bool { return !p.Payload.Counted && len(p.Payload.Tracks) == 0 }

// fullUpdate is the update bound of a full acyclic query.
func (p *Plan) fullUpdate() string {
	switch {
	case p.Class.QHierarchical:
		return "O(1) under any updates"
	case p.windowed():
		return p.windowUpdate()
	case p.Score.Height <= 2:
		return "amortised O(1) under insertions only and under FIFO windows of one length (tree height 2), O(lambda) in general"
	}
	return fmt.Sprintf("amortised O(1) under insertions only, O(lambda) in general (tree height %d: the bound for FIFO windows needs 2)", p.Score.Height)
}

// stateCost tells by what the states of tracks multiply an update, for those that
// do so by more than a constant.
func (p *Plan) stateCost() string {
	by := make(map[string][]string)
	var costs []string
	for i := range p.Payload.Tracks {
		t := p.explainTrack(i)
		cost := t.State
		if !t.Known {
			cost = "the cost of the user's semiring"
		}
		if cost == "O(1)" {
			continue
		}
		if by[cost] == nil {
			costs = append(costs, cost)
		}
		by[cost] = append(by[cost], t.Name)
	}
	var b strings.Builder
	for _, c := range costs {
		fmt.Fprintf(&b, ", times %s for %s", c, list(by[c]))
	}
	return b.String()
}

// ExplainedView is a trie over which the query is kept up or read.
type ExplainedView struct {
	// Kind is one of the View constants.
	Kind string `json:"kind"`
	// Of is the alias, the cluster or the generalized node that the view is of, and
	// By the variables that lead its order.
	Of string   `json:"of"`
	By []string `json:"by"`
	// Also are further aliases that the same view serves.
	Also []string `json:"also,omitempty"`
	// States are the tracks of which the tuples have a state.
	States []string `json:"states,omitempty"`
}

// Kinds of views.
const (
	// ViewIndex is an order of the facts of an alias, or of the tuples of a cluster.
	ViewIndex = "index"
	// ViewFolded are the facts of an alias as they are after conditions, with the
	// sums over the columns that are folded away.
	ViewFolded = "folded facts"
	// ViewLive are the tuples of an inner node that have a partner in each child.
	ViewLive = "live tuples"
	// ViewSums are the sums of a node of a cluster for each key.
	ViewSums = "sums"
	// ViewAnswers is the materialised answer.
	ViewAnswers = "answers"
)

// String writes the view as "index of R by x, y".
func (v ExplainedView) String() string {
	s := v.Kind
	if v.Of != "" {
		s += " of " + v.Of
	}
	if len(v.By) > 0 {
		s += " by " + strings.Join(v.By, ", ")
	}
	if len(v.Also) > 0 {
		s += ", also for " + list(v.Also)
	}
	if len(v.States) > 0 {
		s += ", with states of " + list(v.States)
	}
	return s
}

// viewList collects views, each order once.
type viewList struct {
	p     *Plan
	views []ExplainedView
	at    map[string]int // by the name of an order
	names []string       // of tracks
}

// views lists what is kept: for each alias that is no plain selection its folded
// facts; for each leaf an index by its key; for each inner node its live tuples, and
// an index by the key of each child, by which the tuples are found that a change
// below concerns. In a cluster inner nodes keep their sums instead, and leaves, whose
// tuples are looked for whole, nothing; a constant counts as a condition there.
func (p *Plan) views() []ExplainedView {
	l := &viewList{p: p, at: make(map[string]int)}
	for i := range p.Payload.Tracks {
		l.names = append(l.names, p.explainTrack(i).Name)
	}
	inside := make([]bool, len(p.Aliases))
	for i := range p.Clusters {
		for _, a := range p.Clusters[i].Aliases {
			inside[a] = true
		}
	}
	for i := range p.Aliases {
		if a := &p.Aliases[i]; !a.Direct() || inside[i] && len(a.Consts) > 0 {
			l.at[a.order(-1, a.Vars)] = len(l.views)
			l.views = append(l.views, ExplainedView{
				Kind: ViewFolded, Of: p.AliasName(i), By: p.nameList(a.Vars), States: l.states(func(t int) bool { return a.lifts(t) }),
			})
		}
	}
	for i := range p.Clusters {
		// The sums of the root are the tuples of the cluster.
		s := p.summed(&p.Clusters[i])
		l.at[s.order(i, s.Vars)] = len(l.views)
		l.tree(p.inside(&p.Clusters[i]), p.Clusters[i].Nodes)
	}
	l.tree(p.top(), p.Nodes)
	if len(p.Extra) > 0 {
		l.views = append(l.views, ExplainedView{
			Kind: ViewAnswers, By: p.nameList(p.Query.Head), States: l.states(func(int) bool { return true }),
		})
	}
	return l.views
}

func (a *Alias) lifts(track int) bool {
	return slices.ContainsFunc(a.Lifts, func(l Lift) bool { return l.Track == track })
}

// states names the tracks for which on holds.
func (l *viewList) states(on func(track int) bool) (names []string) {
	for t, name := range l.names {
		if on(t) {
			names = append(names, name)
		}
	}
	return names
}

// tree adds the views of the nodes of one tree.
func (l *viewList) tree(g *ground, nodes []Node) {
	for i := range nodes {
		n := &nodes[i]
		own := ExplainedView{Kind: ViewLive, Of: l.p.label(n), By: l.p.nameList(n.Vars)}
		if g.annotated {
			own.Kind, own.By = ViewSums, l.p.nameList(n.Key)
			own.States = l.states(func(t int) bool { return l.p.Payload.Tracks[t].Everywhere || g.carries(nodes, i, t) })
		}
		a := g.rel(n)
		switch {
		case len(n.Children) > 0:
			l.views = append(l.views, own)
		case !g.annotated:
			l.index(n, a, n.Vars)
		}
		for _, c := range n.Children {
			if a != nil {
				l.index(n, a, nodes[c].Key)
			}
		}
	}
}

// carries reports whether a node of a cluster, or one below it, lifts values of a
// track.
func (g *ground) carries(nodes []Node, i, track int) bool {
	if a := g.rel(&nodes[i]); a != nil && a.lifts(track) {
		return true
	}
	return slices.ContainsFunc(nodes[i].Children, func(c int) bool { return g.carries(nodes, c, track) })
}

// index adds an index of what a node stands for, unless one like it is there.
func (l *viewList) index(n *Node, a *Alias, by []query.Var) {
	order := a.order(n.Cluster, by)
	name := l.p.label(n)
	if i, ok := l.at[order]; ok {
		if v := &l.views[i]; v.Of != name && !slices.Contains(v.Also, name) {
			v.Also = append(v.Also, name)
		}
		return
	}
	l.at[order] = len(l.views)
	l.views = append(l.views, ExplainedView{Kind: ViewIndex, Of: name, By: l.p.nameList(by)})
}
