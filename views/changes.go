package views

import "github.com/triegs/triegs/trie"

// changes tells in which tuples the nodes of a query differ between two versions.
// It walks one node at a time.
type changes interface {
	// seek goes before the first changed tuple of a node; it is false if there is
	// none.
	seek(node int) bool
	// next moves to the next changed tuple, each of which comes once, in any order.
	next() bool
	// change is the tuple moved to, in the order of the node's trie with its
	// constants, and its weights in both versions, 0 for absent. Both are the same
	// where only a value has changed.
	change() (tuple []uint64, before, after int64)
	// valued reports whether the tuples of a node have values beside the weights.
	// Answers of a query with such a node are taken to have changed wherever one of
	// their tuples has.
	valued(node int) bool
	// revalued reports whether the value of a tuple of a valued node, which is there
	// in both versions, differs between them. Its weight may have changed or not.
	revalued(node int, tuple []uint64) bool
}

// structural finds the changes of a node by walking its two tries together, past
// what they have in common. The versions may be far apart.
type structural struct {
	q        *Query
	old, now *Bound
	diff     trie.Differ
}

func (c *structural) seek(node int) bool {
	x, y := c.old.nodes[node], c.now.nodes[node]
	if x.root == y.root {
		return false
	}
	n := &c.q.nodes[node]
	c.diff.Seek(x.space, x.root, y.space, y.root, n.columns, n.lead)
	return true
}

func (c *structural) next() bool { return c.diff.Next() }

func (c *structural) change() (tuple []uint64, before, after int64) {
	return c.diff.Tuple(), c.diff.Before(), c.diff.After()
}

func (c *structural) valued(int) bool { return false }

func (c *structural) revalued(int, []uint64) bool { return false }

// noted are the changes in the version under construction. Those of relations have
// been noted, which saves the walk at the leaves over them.
type noted struct {
	structural
	leaf  *node    // nil while the tries are walked
	rows  []uint64 // of the leaf's relation, behind the current one
	tuple []uint64
	row   []uint64
}

func (c *noted) seek(node int) bool {
	n := &c.q.nodes[node]
	if n.leaf == nil || n.relation.cleared {
		c.leaf = nil
		return c.structural.seek(node)
	}
	c.leaf, c.rows = n, n.relation.changes
	return len(c.rows) > 0
}

func (c *noted) next() bool {
	if c.leaf == nil {
		return c.structural.next()
	}
	stride := c.leaf.relation.arity + 2
	for len(c.rows) > 0 {
		c.row, c.rows = c.rows[:stride], c.rows[stride:]
		if c.row[stride-2] == c.row[stride-1] || !c.leaf.selects(c.row) {
			continue
		}
		c.tuple = c.tuple[:0]
		for _, col := range c.leaf.leaf.cols {
			c.tuple = append(c.tuple, c.row[col])
		}
		return true
	}
	return false
}

func (c *noted) change() (tuple []uint64, before, after int64) {
	if c.leaf == nil {
		return c.structural.change()
	}
	n := len(c.row)
	return c.tuple, int64(c.row[n-2]), int64(c.row[n-1])
}
