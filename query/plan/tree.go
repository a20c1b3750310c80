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

// number lays a shape out in pre-order.
func number(aliases []Alias, root *shape) []Node {
	var nodes []Node
	var add func(t *shape, parent int) int
	add = func(t *shape, parent int) int {
		n := Node{Alias: t.alias, Cluster: -1, Parent: parent}
		vars := t.schema
		if t.alias >= 0 {
			vars = aliases[t.alias].Vars
		}
		if parent >= 0 {
			for _, v := range vars {
				if slices.Contains(nodes[parent].Vars, v) {
					n.Key = append(n.Key, v)
				}
			}
			slices.Sort(n.Key)
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

// score measures a numbered tree.
func score(aliases []Alias, nodes []Node) Score {
	s := Score{Nodes: len(nodes)}
	above := make([]int, len(nodes)) // aliases on the way to the node
	orders := make(map[string]bool)
	for i, n := range nodes {
		if n.Parent >= 0 {
			above[i] = above[n.Parent]
			if nodes[n.Parent].Alias >= 0 {
				above[i]++
			}
		}
		if n.Alias < 0 {
			continue
		}
		s.SumDepth += above[i]
		s.Height = max(s.Height, above[i]+1)
		a := &aliases[n.Alias]
		if !a.Window.IsZero() {
			s.WindowHeight = max(s.WindowHeight, above[i]+1)
		}
		orders[a.order(n.Vars)] = true
		for _, c := range n.Children {
			if k := nodes[c].Key; !slices.Equal(k, n.Vars[:len(k)]) {
				orders[a.order(k)] = true
			}
		}
	}
	s.Orders = len(orders)
	if s.WindowHeight > 0 {
		s.scoreWindows(aliases, nodes)
	}
	return s
}

// scoreWindows measures what windows cost, once their height is known.
func (s *Score) scoreWindows(aliases []Alias, nodes []Node) {
	s.Bounded = s.WindowHeight <= windowLevels
	life := longest(aliases)
	for _, n := range nodes {
		if n.Alias < 0 {
			continue
		}
		for up := n.Parent; up >= 0; up = nodes[up].Parent {
			if nodes[up].Alias < 0 {
				continue
			}
			c := life.churn(&aliases[nodes[up].Alias], &aliases[n.Alias])
			s.Churn += c
			s.Bounded = s.Bounded && c <= 1
		}
	}
}

// order names an index over the facts of the alias, sorted by the given
// variables. An alias that does more than select by constants has its own.
func (a *Alias) order(vars []query.Var) string {
	var b strings.Builder
	if a.Direct() {
		fmt.Fprintf(&b, "%q %v", a.Relation, a.Window)
		for _, c := range a.Consts {
			fmt.Fprintf(&b, " %d=%s", c.Col, c.Term)
		}
	} else {
		fmt.Fprintf(&b, "#%d", a.Atom)
	}
	b.WriteString(" by")
	for _, v := range vars {
		fmt.Fprintf(&b, " %d", a.Cols[slices.Index(a.Vars, v)])
	}
	return b.String()
}

// check reports what is wrong with the tree of a plan: every promise of the
// package comment and of [Node] is tested.
func (p *Plan) check() error {
	if err := p.checkShape(); err != nil {
		return err
	}
	tops := make(map[query.Var]int)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if err := p.checkNode(i); err != nil {
			return fmt.Errorf("node %d, %s: %w", i, p.label(i), err)
		}
		for _, v := range n.Vars {
			if n.Parent < 0 || !slices.Contains(p.Nodes[n.Parent].Vars, v) {
				tops[v]++
			}
		}
	}
	for v := range p.Query.Vars {
		if tops[query.Var(v)] > 1 {
			return fmt.Errorf("the nodes of variable %s are not connected", p.varName(query.Var(v)))
		}
	}
	return nil
}

// checkShape tests pre-order, the links both ways, and that each alias is there
// once.
func (p *Plan) checkShape() error {
	if len(p.Nodes) == 0 || p.Nodes[0].Parent != -1 {
		return fmt.Errorf("node 0 is not a root")
	}
	seen := make([]int, len(p.Aliases))
	next := 1
	var walk func(i int) error
	walk = func(i int) error {
		if a := p.Nodes[i].Alias; a >= 0 {
			seen[a]++
		}
		for _, c := range p.Nodes[i].Children {
			if c != next || c >= len(p.Nodes) || p.Nodes[c].Parent != i {
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
	if next != len(p.Nodes) {
		return fmt.Errorf("%d of %d nodes hang together", next, len(p.Nodes))
	}
	for a, n := range seen {
		if n != 1 {
			return fmt.Errorf("alias %s is in the tree %d times", p.AliasName(a), n)
		}
	}
	return nil
}

func (p *Plan) checkNode(i int) error {
	n := &p.Nodes[i]
	schema := slices.Clone(n.Vars)
	if n.Alias >= 0 {
		schema = p.Aliases[n.Alias].Vars
	} else {
		slices.Sort(schema)
	}
	var key []query.Var
	if n.Parent >= 0 {
		for _, v := range schema {
			if slices.Contains(p.Nodes[n.Parent].Vars, v) {
				key = append(key, v)
			}
		}
		slices.Sort(key)
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
	if n.Alias < 0 {
		return p.checkGeneralized(n)
	}
	return nil
}

func (p *Plan) checkGeneralized(n *Node) error {
	if len(n.Children) < 2 {
		return fmt.Errorf("a generalized node needs two children")
	}
	for _, c := range n.Children {
		if len(p.Nodes[c].Key) != len(n.Vars) {
			return fmt.Errorf("child %s does not hold all of the schema", p.label(c))
		}
	}
	holds := 0
	for i := range p.Aliases {
		if !slices.ContainsFunc(n.Vars, func(v query.Var) bool { return !slices.Contains(p.Aliases[i].Vars, v) }) {
			holds++
		}
	}
	if holds < 2 && len(n.Vars) > 0 {
		return fmt.Errorf("the schema is in %d aliases, it must be in two", holds)
	}
	return nil
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

// label names a node: an alias, or the schema of a generalized node.
func (p *Plan) label(i int) string {
	n := &p.Nodes[i]
	if n.Alias >= 0 {
		return p.AliasName(n.Alias)
	}
	names := make([]string, len(n.Vars))
	for i, v := range slices.Sorted(slices.Values(n.Vars)) {
		names[i] = p.varName(v)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// varName names a kept variable, which always has a name.
func (p *Plan) varName(v query.Var) string { return p.Query.Vars[v] }

// Tree writes the tree as "parent → child, child", where the arrow binds tighter
// than the comma: in "[z] → R → S, T" the root has the children R and T. Several
// children of a node below the root stand in braces. CompileWithTree reads it.
func (p *Plan) Tree() string {
	var b strings.Builder
	var write func(i int)
	write = func(i int) {
		b.WriteString(p.label(i))
		children := p.Nodes[i].Children
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
