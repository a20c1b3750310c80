package plan

import (
	"fmt"
	"slices"

	"github.com/triegs/triegs/query"
)

// check reports what is wrong with the trees of a plan: every promise of the
// package comment, of [Cluster] and of [Node] is tested.
func (p *Plan) check() error {
	if err := p.checkClusters(); err != nil {
		return err
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if err := p.inside(c).check(c.Nodes); err != nil {
			return fmt.Errorf("cluster %s: %w", p.ClusterName(i), err)
		}
		if g := p.inside(c); c.NonStrong != g.loose(c.Nodes) || c.Score != g.score(c.Nodes) {
			return fmt.Errorf("cluster %s is not what its score tells", p.ClusterName(i))
		}
	}
	return p.top().check(p.Nodes)
}

// checkClusters tests that the clusters are what variables that are no output
// hold together, and that each has its output variables.
func (p *Plan) checkClusters() error {
	found := p.findClusters()
	if len(found) != len(p.Clusters) {
		return fmt.Errorf("%d clusters, want %d", len(p.Clusters), len(found))
	}
	for i, c := range found {
		if d := p.Clusters[i]; !slices.Equal(c.Aliases, d.Aliases) || !slices.Equal(c.Vars, d.Vars) {
			return fmt.Errorf("cluster %d has aliases %v and output %v, want %v and %v", i, d.Aliases, d.Vars, c.Aliases, c.Vars)
		}
	}
	return nil
}

func (g *ground) check(nodes []Node) error {
	if err := g.checkShape(nodes); err != nil {
		return err
	}
	tops := make(map[query.Var]int)
	for i := range nodes {
		n := &nodes[i]
		if err := g.checkNode(nodes, i); err != nil {
			return fmt.Errorf("node %d, %s: %w", i, g.p.label(n), err)
		}
		for _, v := range n.Vars {
			if n.Parent < 0 || !slices.Contains(nodes[n.Parent].Vars, v) {
				tops[v]++
			}
		}
	}
	for v := range g.p.Query.Vars {
		if tops[query.Var(v)] > 1 {
			return fmt.Errorf("the nodes of variable %s are not connected", g.p.varName(query.Var(v)))
		}
	}
	return nil
}

// checkShape tests pre-order, the links both ways, and that each alias and each
// cluster is there once.
func (g *ground) checkShape(nodes []Node) error {
	if len(nodes) == 0 || nodes[0].Parent != -1 {
		return fmt.Errorf("node 0 is not a root")
	}
	seen := make(map[ref]int)
	next := 1
	var walk func(i int) error
	walk = func(i int) error {
		n := &nodes[i]
		seen[ref{n.Alias, n.Cluster}]++
		for _, c := range n.Children {
			if c != next || c >= len(nodes) || nodes[c].Parent != i {
				return fmt.Errorf("node %d: child %d is out of place", i, c)
			}
			next++
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(0); err != nil {
		return err
	}
	if next != len(nodes) {
		return fmt.Errorf("%d of %d nodes hang together", next, len(nodes))
	}
	delete(seen, ref{-1, -1})
	for _, r := range g.refs {
		n := seen[r]
		delete(seen, r)
		switch {
		case n == 1:
		case r.alias >= 0:
			return fmt.Errorf("alias %s is in the tree %d times", g.p.AliasName(r.alias), n)
		default:
			return fmt.Errorf("cluster %s is in the tree %d times", g.p.ClusterName(r.cluster), n)
		}
	}
	if len(seen) > 0 {
		return fmt.Errorf("the tree has nodes that it should not have")
	}
	return nil
}

func (g *ground) checkNode(nodes []Node, i int) error {
	n := &nodes[i]
	schema := slices.Clone(n.Vars)
	if a := g.rel(n); a != nil {
		schema = a.Vars
	} else {
		slices.Sort(schema)
	}
	key := g.key
	if n.Parent >= 0 {
		key = shared(schema, nodes[n.Parent].Vars)
	}
	want := slices.Clone(key)
	for _, v := range schema {
		if !slices.Contains(key, v) {
			want = append(want, v)
		}
	}
	if !slices.Equal(n.Key, key) || !slices.Equal(n.Vars, want) {
		return fmt.Errorf("key %v and variables %v, want %v and %v", n.Key, n.Vars, key, want)
	}
	if g.annotated {
		if err := g.checkFolded(nodes, i); err != nil {
			return err
		}
	}
	if n.Alias < 0 && n.Cluster < 0 {
		return g.checkGeneralized(nodes, n)
	}
	return nil
}

// checkFolded tests that what a node of a cluster folds away is shared with its
// children.
func (g *ground) checkFolded(nodes []Node, i int) error {
	n := &nodes[i]
	if len(n.Key) > len(n.Vars) {
		return fmt.Errorf("the root does not hold the output %v", n.Key)
	}
	for _, v := range n.Vars[len(n.Key):] {
		if !slices.ContainsFunc(n.Children, func(c int) bool { return slices.Contains(nodes[c].Vars, v) }) {
			return fmt.Errorf("variable %s is folded away, and no child has it", g.p.varName(v))
		}
	}
	return nil
}

func (g *ground) checkGeneralized(nodes []Node, n *Node) error {
	if len(n.Children) < 2 {
		return fmt.Errorf("a generalized node needs two children")
	}
	for _, c := range n.Children {
		if len(nodes[c].Key) != len(n.Vars) {
			return fmt.Errorf("child %s does not hold all of the schema", g.p.label(&nodes[c]))
		}
	}
	holds := 0
	for i := range g.rels {
		if !slices.ContainsFunc(n.Vars, func(v query.Var) bool { return !slices.Contains(g.rels[i].Vars, v) }) {
			holds++
		}
	}
	if holds < 2 && len(n.Vars) > 0 {
		return fmt.Errorf("the schema is in %d aliases, it must be in two", holds)
	}
	return nil
}
