package views

import (
	"slices"

	"github.com/triegs/triegs/trie"
)

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
	leaf   *node    // nil while the tries are walked
	rows   []uint64 // of the leaf's relation, behind the current one
	of     *node    // the node that is walked
	shifts []uint64 // of the node's relation, behind the current one
	same   int64    // weight of the shift moved to, 0 if it is no shift
	tuple  []uint64
	row    []uint64
	number int  // of the node that is walked
	open   bool // its tries differ

	key         []uint64 // a tuple in the order of a relation
	value, then []uint64
	cursor      trie.Cursor
	state       stateReader
}

func (c *noted) seek(node int) bool {
	n := &c.q.nodes[node]
	c.of, c.number, c.shifts, c.same = n, node, nil, 0
	if n.relation != nil {
		c.shifts = n.relation.shifts
	}
	if n.leaf == nil || n.relation.cleared {
		c.leaf = nil
		c.open = c.structural.seek(node)
		return c.open || len(c.shifts) > 0
	}
	c.leaf, c.rows = n, n.relation.changes
	return len(c.rows)+len(c.shifts) > 0
}

func (c *noted) next() bool {
	if c.leaf == nil {
		return c.open && c.structural.next() || c.nextShift()
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
	return c.nextShift()
}

// nextShift moves to the next tuple of the node of which only a value has changed.
// One that came to life or died meanwhile is among the changes.
func (c *noted) nextShift() bool {
	stride := c.of.columns
	for len(c.shifts) > 0 {
		row := c.shifts[:stride]
		c.shifts = c.shifts[stride:]
		c.tuple = c.tuple[:0]
		for _, col := range c.of.columnsOfTrie() {
			c.tuple = append(c.tuple, row[col])
		}
		old, now := c.old.nodes[c.number], c.now.nodes[c.number]
		was := old.space.Get(old.root, c.tuple)
		c.same = now.space.Get(now.root, c.tuple)
		if was != 0 && c.same != 0 {
			return true
		}
	}
	return false
}

func (c *noted) change() (tuple []uint64, before, after int64) {
	switch {
	case c.same != 0:
		return c.tuple, c.same, c.same
	case c.leaf == nil:
		return c.structural.change()
	}
	n := len(c.row)
	return c.tuple, int64(c.row[n-2]), int64(c.row[n-1])
}

// columnsOfTrie are the columns of the node's relation in the order of its trie.
func (n *node) columnsOfTrie() []int {
	if n.leaf != nil {
		return n.leaf.cols
	}
	return n.order
}

func (c *noted) valued(node int) bool {
	r := c.q.nodes[node].relation
	return r != nil && slices.ContainsFunc(r.tracks, func(t *track) bool { return t != nil })
}

func (c *noted) revalued(node int, tuple []uint64) bool {
	n := &c.q.nodes[node]
	if !n.relation.touched {
		return false
	}
	c.key = slices.Grow(c.key[:0], len(tuple))[:len(tuple)]
	for i, col := range n.columnsOfTrie() {
		c.key[col] = tuple[i]
	}
	for _, t := range n.relation.tracks {
		if t == nil || c.old.roots[t.slot] == c.now.roots[t.slot] {
			continue
		}
		was, is := c.collect(&c.then, c.old, t), c.collect(&c.value, c.now, t)
		if !was || !is || !slices.Equal(c.then, c.value) {
			return true
		}
	}
	return false
}

// collect reads the value of a track at the key, and reports whether it has one
// that fits.
func (c *noted) collect(dst *[]uint64, b *Bound, t *track) bool {
	c.cursor.Seek(b.space, b.roots[t.slot], len(c.key)+stateColumns, c.key)
	c.state = stateReader{&c.cursor, len(c.key)}
	var err error
	*dst, err = t.algebra.Collect((*dst)[:0], &c.state)
	return err == nil
}
