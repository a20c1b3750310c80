package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/triegs/triegs/query"
)

// compare is the order by which trees are chosen.
func (s Score) compare(t Score) int {
	if s.Bounded != t.Bounded {
		if t.Bounded {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(s.Churn, t.Churn), cmp.Compare(s.SumDepth, t.SumDepth), cmp.Compare(s.Height, t.Height),
		cmp.Compare(s.Nodes, t.Nodes), cmp.Compare(s.Orders, t.Orders))
}

// order names an index over the facts of the alias, sorted by the given
// variables. An alias that does more than select by constants has its own, and so
// has a cluster.
func (a *Alias) order(cluster int, vars []query.Var) string {
	var b strings.Builder
	switch {
	case cluster >= 0:
		fmt.Fprintf(&b, "{%d}", cluster)
	case a.Direct():
		fmt.Fprintf(&b, "%q %v", a.Relation, a.Window)
		for _, c := range a.Consts {
			fmt.Fprintf(&b, " %d=%s", c.Col, c.Term)
		}
	default:
		fmt.Fprintf(&b, "#%d", a.Atom)
	}
	b.WriteString(" by")
	for _, v := range vars {
		fmt.Fprintf(&b, " %d", a.Cols[slices.Index(a.Vars, v)])
	}
	return b.String()
}

// AliasName names an alias as trees and messages do: by its relation, with #1,
// #2, ... behind it when the relation occurs more than once. A relation name
// that is more than letters, digits and underscores is quoted.
func (p *Plan) AliasName(i int) string {
	name := p.Aliases[i].Relation
	nth, all := 0, 0
	for j := range p.Aliases {
		if p.Aliases[j].Relation == name {
			all++
			if j <= i {
				nth++
			}
		}
	}
	name = quoteName(name)
	if all > 1 {
		name = fmt.Sprintf("%s#%d", name, nth)
	}
	return name
}

// label names a node of the tree of the query or of a cluster: an alias, a
// cluster, or the schema of a generalized node.
func (p *Plan) label(n *Node) string {
	switch {
	case n.Alias >= 0:
		return p.AliasName(n.Alias)
	case n.Cluster >= 0:
		return p.ClusterName(n.Cluster)
	}
	return "[" + p.names(slices.Sorted(slices.Values(n.Vars))) + "]"
}

// ClusterName names a cluster by its aliases and its output variables:
// "{R, S#1}(x, y)".
func (p *Plan) ClusterName(i int) string {
	c := &p.Clusters[i]
	names := make([]string, len(c.Aliases))
	for j, a := range c.Aliases {
		names[j] = p.AliasName(a)
	}
	return "{" + strings.Join(names, ", ") + "}(" + p.names(c.Vars) + ")"
}

// names joins the names of variables by commas.
func (p *Plan) names(vars []query.Var) string { return strings.Join(p.nameList(vars), ", ") }

// varName names a kept variable, which always has a name.
func (p *Plan) varName(v query.Var) string { return p.Query.Vars[v] }

// Tree writes the tree as "parent → child, child", where the arrow binds tighter
// than the comma: in "[z] → R → S, T" the root has the children R and T. Several
// children of a node below the root stand in braces. A cluster is one node here,
// whose own tree ClusterTree writes. CompileWithTree reads the tree of a full
// query.
func (p *Plan) Tree() string { return p.tree(p.Nodes) }

// ClusterTree writes the tree of a cluster as Tree does.
func (p *Plan) ClusterTree(i int) string { return p.tree(p.Clusters[i].Nodes) }

func (p *Plan) tree(nodes []Node) string {
	var b strings.Builder
	var write func(i int)
	write = func(i int) {
		b.WriteString(p.label(&nodes[i]))
		children := nodes[i].Children
		if len(children) == 0 {
			return
		}
		b.WriteString(" → ")
		braces := i > 0 && len(children) > 1
		if braces {
			b.WriteByte('{')
		}
		for j, c := range children {
			if j > 0 {
				b.WriteString(", ")
			}
			write(c)
		}
		if braces {
			b.WriteByte('}')
		}
	}
	write(0)
	return b.String()
}
