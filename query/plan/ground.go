package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/triegs/triegs/query"
)

// ground is what one tree is made of: the tree of a query, or that of a cluster.
type ground struct {
	p *Plan
	// rels are the aliases of the tree and, as relations over their output
	// variables, its clusters. Of a cluster there is only what the search and the
	// score ask for, and its Atom is -1.
	rels []Alias
	refs []ref // by index into rels
	// clusters is the index into rels of the first cluster.
	clusters int
	// key is what the root is folded over, ascending; nil in the tree of a query.
	key []query.Var
	// annotated tells that keys hold variables that are not output, so that
	// annotations have to pass the edges.
	annotated bool
}

// ref tells what a node stands for, as Node does: one of them is -1, both are for
// a generalized node.
type ref struct{ alias, cluster int }

// top is the ground of the full query over the clusters and the other aliases.
func (p *Plan) top() *ground {
	inCluster := make([]bool, len(p.Aliases))
	for i := range p.Clusters {
		for _, a := range p.Clusters[i].Aliases {
			inCluster[a] = true
		}
	}
	g := &ground{p: p}
	for a := range p.Aliases {
		if !inCluster[a] {
			g.rels = append(g.rels, p.Aliases[a])
			g.refs = append(g.refs, ref{a, -1})
		}
	}
	g.clusters = len(g.rels)
	for i := range p.Clusters {
		g.rels = append(g.rels, p.summed(&p.Clusters[i]))
		g.refs = append(g.refs, ref{-1, i})
	}
	return g
}

// inside is the ground of the tree of a cluster.
func (p *Plan) inside(c *Cluster) *ground {
	g := &ground{p: p, key: c.Vars, annotated: true, clusters: len(c.Aliases)}
	for _, a := range c.Aliases {
		g.rels = append(g.rels, p.Aliases[a])
		g.refs = append(g.refs, ref{a, -1})
	}
	return g
}

// summed is a cluster seen as one relation. A tuple of it comes and goes with the
// facts of all its aliases, so at least as often as those that stay for the
// shortest time: it has the window of their alias, none if no alias has one. A time
// and a number of appends do not compare; of such the first alias decides.
func (p *Plan) summed(c *Cluster) Alias {
	s := Alias{Atom: -1, Vars: c.Vars}
	for i := range c.Vars {
		s.Cols = append(s.Cols, i)
	}
	shortest := int64(math.MaxInt64)
	for _, i := range c.Aliases {
		a := &p.Aliases[i]
		switch {
		case a.Window.IsZero():
			continue
		case !s.Window.IsZero() && (a.Window.Last > 0) != (s.Window.Last > 0):
			continue
		}
		if l := lifetime(a.Window); s.Window.IsZero() || l < shortest {
			shortest, s.Window, s.Relation = l, a.Window, a.Relation
		}
	}
	return s
}

// rel returns what an alias or cluster node stands for, nil for a generalized
// node.
func (g *ground) rel(n *Node) *Alias {
	switch {
	case n.Alias >= 0:
		return &g.p.Aliases[n.Alias]
	case n.Cluster >= 0:
		return &g.rels[g.clusters+n.Cluster]
	}
	return nil
}

// choose returns the first of the best trees. Where none of the least cost bounds
// what windows cost, one of a greater cost may.
func (g *ground) choose() chosen {
	var c chosen
	c.from(g, bestTrees(g, free))
	if c.score.WindowHeight > 0 && !c.score.Bounded {
		c.from(g, bestTrees(g, windowLevels))
	}
	return c
}

// chosen is a numbered tree with what it is chosen by.
type chosen struct {
	nodes []Node
	loose int
	score Score
	// deep adds up how many nodes stand above each alias with constants. Of equally
	// good trees the one with less is chosen: what lies below constants is the same
	// for all queries that differ in them.
	deep int
}

// from replaces the tree by a better one among those given.
func (c *chosen) from(g *ground, trees []candidate) {
	for _, t := range trees {
		nodes := g.number(t.shape)
		d := chosen{nodes, g.loose(nodes), g.score(nodes), g.deep(nodes)}
		if c.nodes == nil || cmp.Or(cmp.Compare(d.loose, c.loose), d.score.compare(c.score), cmp.Compare(d.deep, c.deep)) < 0 {
			*c = d
		}
	}
}

// number lays a shape out in pre-order.
func (g *ground) number(root *shape) []Node {
	var nodes []Node
	var add func(t *shape, parent int) int
	add = func(t *shape, parent int) int {
		n := Node{Alias: -1, Cluster: -1, Parent: parent}
		vars := t.schema
		if t.alias >= 0 {
			r := g.refs[t.alias]
			n.Alias, n.Cluster, vars = r.alias, r.cluster, g.rels[t.alias].Vars
		}
		if parent < 0 {
			n.Key = slices.Clone(g.key)
		} else {
			n.Key = shared(vars, nodes[parent].Vars)
		}
		n.Vars = slices.Clone(n.Key)
		for _, v := range vars {
			if !slices.Contains(n.Key, v) {
				n.Vars = append(n.Vars, v)
			}
		}
		i := len(nodes)
		nodes = append(nodes, n)
		for _, c := range t.children {
			nodes[i].Children = append(nodes[i].Children, add(c, i))
		}
		return i
	}
	add(root, -1)
	return nodes
}

// shared returns the variables that are in both, ascending.
func shared(a, b []query.Var) (both []query.Var) {
	for _, v := range a {
		if slices.Contains(b, v) {
			both = append(both, v)
		}
	}
	slices.Sort(both)
	return both
}

// loose counts what Cluster.NonStrong tells.
func (g *ground) loose(nodes []Node) (n int) {
	if !g.annotated {
		return 0
	}
	for i := range nodes {
		var keys [][]query.Var
		for _, c := range nodes[i].Children {
			k := nodes[c].Key
			if !strong(nodes, c) && !slices.ContainsFunc(keys, func(l []query.Var) bool { return slices.Equal(k, l) }) {
				keys = append(keys, k)
			}
		}
		n += len(keys)
	}
	if !strong(nodes, 0) {
		n++
	}
	return n
}

// strong reports of a node of a cluster whether one of its tuples changes no more
// than one above: whether it holds all of its parent, and whether the root itself
// is folded from keys that all its children have (or is not folded at all).
func strong(nodes []Node, i int) bool {
	n := &nodes[i]
	if n.Parent < 0 {
		return n.Alias < 0 || len(n.Key) == len(n.Vars)
	}
	return len(n.Key) == len(nodes[n.Parent].Vars)
}

// deep measures how deep constants stand.
func (g *ground) deep(nodes []Node) (n int) {
	depth := make([]int, len(nodes))
	for i := range nodes {
		if nodes[i].Parent >= 0 {
			depth[i] = depth[nodes[i].Parent] + 1
		}
		if a := g.rel(&nodes[i]); a != nil && len(a.Consts) > 0 {
			n += depth[i]
		}
	}
	return n
}

// score measures a numbered tree.
func (g *ground) score(nodes []Node) Score {
	s := Score{Nodes: len(nodes)}
	above := make([]int, len(nodes)) // aliases on the way to the node
	orders := make(map[string]bool)
	for i := range nodes {
		n := &nodes[i]
		if n.Parent >= 0 {
			above[i] = above[n.Parent]
			if g.rel(&nodes[n.Parent]) != nil {
				above[i]++
			}
		}
		a := g.rel(n)
		if a == nil {
			continue
		}
		s.SumDepth += above[i]
		s.Height = max(s.Height, above[i]+1)
		if !a.Window.IsZero() {
			s.WindowHeight = max(s.WindowHeight, above[i]+1)
		}
		for _, o := range g.orders(nodes, i) {
			orders[a.order(n.Cluster, o)] = true
		}
	}
	s.Orders = len(orders)
	if s.WindowHeight > 0 {
		s.scoreWindows(g, nodes)
	}
	return s
}

// orders returns the orders, each as the variables that lead it, in which the
// relation of an alias or cluster node has to be indexed: by its key and the rest,
// and by the key of each child unless the first order begins with it. In a cluster
// only the second are needed: tuples of a node are looked for whole, or from below.
func (g *ground) orders(nodes []Node, i int) (orders [][]query.Var) {
	n := &nodes[i]
	if !g.annotated {
		orders = append(orders, n.Vars)
	}
	for _, c := range n.Children {
		if k := nodes[c].Key; g.annotated || !slices.Equal(k, n.Vars[:len(k)]) {
			orders = append(orders, k)
		}
	}
	return orders
}

// scoreWindows measures what windows cost, once their height is known.
func (s *Score) scoreWindows(g *ground, nodes []Node) {
	s.Bounded = s.WindowHeight <= windowLevels
	life := longest(g.rels)
	for i := range nodes {
		below := g.rel(&nodes[i])
		if below == nil {
			continue
		}
		for up := nodes[i].Parent; up >= 0; up = nodes[up].Parent {
			above := g.rel(&nodes[up])
			if above == nil {
				continue
			}
			c := life.churn(above, below)
			s.Churn += c
			s.Bounded = s.Bounded && c <= 1
		}
	}
}
