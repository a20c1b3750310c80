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
	// revalues reports whether tuples of a node may have other values.
	revalues(node int) bool
	// revalued reports whether a tuple of such a node, which is there in both
	// versions, has another value in one of the tracks. Its weight may have changed
	// or not.
	revalued(node int, tuple []uint64) bool
}

// structural finds the changes of a node by walking its two tries together, past
// what they have in common, and then those of the states of its tracks. The
// versions may be far apart.
type structural struct {
	q        *Query
	old, now *Bound
	diff     trie.Differ
	node     int
	fixed    []uint64 // as in Deltas
	prefix   []uint64 // of the facts whose states are walked

	track  int      // whose state is walked, -1 while the node's own tries are
	fact   []uint64 // that the state belongs to, in the order of the relation
	begun  bool     // there is one
	tuple  []uint64 // the same in the order of the node's trie
	weight int64
	values versions
}

// versions are the values of a tuple in both versions.
type versions struct {
	read     valueReader
	fact     []uint64
	old, now []uint64
}

func (c *structural) seek(node int) bool {
	c.node, c.track = node, -1
	x, y := c.old.nodes[node], c.now.nodes[node]
	if x.root == y.root {
		return c.seekTrack()
	}
	n := &c.q.nodes[node]
	c.diff.Seek(x.space, x.root, y.space, y.root, n.columns, n.lookup(c.fixed))
	return true
}

// tracks are those of the relation of a node.
func (c *structural) tracks(node int) []*track {
	if r := c.q.nodes[node].relation; r != nil {
		return r.tracks
	}
	return nil
}

// seekTrack goes before the first change of the next track with one.
func (c *structural) seekTrack() bool {
	tracks := c.tracks(c.node)
	for c.track++; c.track < len(tracks); c.track++ {
		if t := tracks[c.track]; c.shifts(t) {
			c.begun = false
			n := &c.q.nodes[c.node]
			c.prefix = appendFixed(c.prefix[:0], n.vars, c.fixed)
			c.diff.Seek(c.old.space, c.old.roots[t.slot], c.now.space, c.now.roots[t.slot],
				n.relation.arity+stateColumns, c.prefix)
			return true
		}
	}
	return false
}

// shifts reports whether the state of a track has changed.
func (c *structural) shifts(t *track) bool {
	return t != nil && c.old.roots[t.slot] != c.now.roots[t.slot]
}

func (c *structural) next() bool {
	for c.track < 0 {
		if c.diff.Next() {
			return true
		}
		if !c.seekTrack() {
			return false
		}
	}
	for c.track < len(c.tracks(c.node)) {
		if !c.diff.Next() {
			c.seekTrack()
			continue
		}
		fact := c.diff.Tuple()[:len(c.diff.Tuple())-stateColumns]
		if c.begun && slices.Equal(fact, c.fact) {
			continue // another component of the same state
		}
		c.fact, c.begun = append(c.fact[:0], fact...), true
		if c.takeFact() {
			return true
		}
	}
	return false
}

// takeFact makes the fact whose state has changed the current one. It is false for
// one that has come already, because its weight has changed or an earlier track,
// that has no part in an answer, or whose value is the same.
func (c *structural) takeFact() bool {
	c.place(c.fact)
	x, y := c.old.nodes[c.node], c.now.nodes[c.node]
	c.weight = y.space.Get(y.root, c.tuple)
	if c.weight == 0 || x.space.Get(x.root, c.tuple) != c.weight {
		return false
	}
	for i, t := range c.tracks(c.node)[:c.track+1] {
		if c.shifts(t) && c.revaluedIn(c.node, t, c.fact) {
			return i == c.track
		}
	}
	return false
}

// place brings a tuple of the relation of the node into the order of its trie.
func (c *structural) place(fact []uint64) {
	c.tuple = c.tuple[:0]
	for _, col := range c.q.nodes[c.node].columnOrder() {
		c.tuple = append(c.tuple, fact[col])
	}
}

// columnOrder is the column of the relation for each column of the trie.
func (v *view) columnOrder() []int {
	if v.leaf != nil {
		return v.leaf.cols
	}
	return v.order
}

func (c *structural) change() (tuple []uint64, before, after int64) {
	if c.track >= 0 {
		return c.tuple, c.weight, c.weight
	}
	return c.diff.Tuple(), c.diff.Before(), c.diff.After()
}

func (c *structural) revalues(node int) bool {
	return slices.ContainsFunc(c.tracks(node), c.shifts)
}

func (c *structural) revalued(node int, tuple []uint64) bool {
	order := c.q.nodes[node].columnOrder()
	fact := slices.Grow(c.values.fact[:0], len(order))[:len(order)]
	c.values.fact = fact
	for i, col := range order {
		fact[col] = tuple[i]
	}
	return slices.ContainsFunc(c.tracks(node), func(t *track) bool {
		return c.shifts(t) && c.revaluedIn(node, t, fact)
	})
}

// revaluedIn reports whether a track has another value at a fact of the relation
// of a node. One that cannot be read passes for another.
func (c *structural) revaluedIn(node int, t *track, fact []uint64) bool {
	if trie.SamePrefix(c.old.space, c.old.roots[t.slot], c.now.space, c.now.roots[t.slot], fact) {
		return false
	}
	v := &c.values
	var failed, fails error
	v.old, failed = v.read.value(v.old[:0], c.old.space, c.old.roots[t.slot], t, fact)
	v.now, fails = v.read.value(v.now[:0], c.now.space, c.now.roots[t.slot], t, fact)
	return failed != nil || fails != nil || !slices.Equal(v.old, v.now)
}

// noted are the changes in the version under construction. Those of relations have
// been noted, which saves the walk at the leaves over them.
type noted struct {
	structural
	stakes []*stake // by node, nil if changes have not been dealt out
	dealt  dealt
	leaf   *node    // nil while tries are walked
	rows   []uint64 // of the leaf's relation, behind the current one
	shifts []uint64 // and those whose weight is the same
	row    []uint64 // the current one, nil for a shift
}

// dealt are changes that have been dealt out to a stake.
type dealt struct {
	on     bool // they are walked
	stake  *stake
	stride int
	at, n  int
}

// change is the current one, with both weights.
func (d *dealt) change() []uint64 {
	i := d.at - 1
	if !d.stake.all {
		i = int(d.stake.rows[i])
	}
	return d.stake.of.changes[i*d.stride : (i+1)*d.stride]
}

// open goes before the first of the changes dealt out to st.
func (d *dealt) open(st *stake, stride int) {
	*d = dealt{on: true, stake: st, stride: stride, n: len(st.rows)}
	if st.all {
		d.n = len(st.of.changes) / stride
	}
}

func (c *noted) seek(node int) bool {
	n := &c.q.nodes[node]
	c.dealt.on = false
	if c.stakes != nil {
		switch st := c.stakes[node]; {
		case st.of.gathered:
			c.node = node
			c.dealt.open(st, n.columns+2)
			return c.dealt.n > 0
		case !st.all:
			return false
		}
	}
	// The one tuple without columns leaves no trace in a list of shifts.
	if n.leaf == nil || n.relation.cleared || n.relation.arity == 0 {
		c.leaf = nil
		return c.structural.seek(node)
	}
	c.node, c.leaf, c.rows, c.shifts = node, n, n.relation.changes, n.relation.shifts
	return len(c.rows)+len(c.shifts) > 0
}

func (c *noted) next() bool {
	if d := &c.dealt; d.on {
		d.at++
		return d.at <= d.n
	}
	if c.leaf == nil {
		return c.structural.next()
	}
	arity := c.leaf.relation.arity
	for stride := arity + 2; len(c.rows) > 0; {
		c.row, c.rows = c.rows[:stride], c.rows[stride:]
		if c.row[arity] != c.row[arity+1] && has(c.row, c.leaf.consts) {
			c.place(c.row)
			return true
		}
	}
	if len(c.shifts) == 0 {
		return false
	}
	c.row = nil
	c.place(c.shifts[:arity])
	c.shifts = c.shifts[arity:]
	return true
}

func (c *noted) change() (tuple []uint64, before, after int64) {
	switch {
	case c.dealt.on:
		row := c.dealt.change()
		n := len(row) - 2
		return row[:n], int64(row[n]), int64(row[n+1])
	case c.leaf == nil:
		return c.structural.change()
	case c.row == nil:
		b := c.now.nodes[c.node]
		w := b.space.Get(b.root, c.tuple)
		return c.tuple, w, w
	}
	n := len(c.row)
	return c.tuple, int64(c.row[n-2]), int64(c.row[n-1])
}
