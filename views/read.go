package views

import (
	"fmt"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// Bound is a query bound to the roots of one epoch. It may be read from any
// goroutine while that epoch is pinned.
type Bound struct {
	q     *Query
	nodes []boundNode
	// What the indexes are read through that only some readers need.
	space trie.Space
	roots []uint64
	// earlier says that pinned indexes are read where they stood before.
	earlier bool
}

type boundNode struct {
	space trie.Space
	root  uint64
}

// Bind ties q to the roots of a root vector, which is not copied.
func (q *Query) Bind(space trie.Space, roots []uint64) *Bound {
	b := new(Bound)
	b.bind(q, space, roots)
	return b
}

// Rebind ties b to another root vector, in the memory that it has.
func (b *Bound) Rebind(space trie.Space, roots []uint64) { b.bind(b.q, space, roots) }

// bind makes b what Bind returns, in the memory that b has.
func (b *Bound) bind(q *Query, space trie.Space, roots []uint64) {
	b.q, b.space, b.roots = q, space, roots
	b.nodes = slices.Grow(b.nodes[:0], len(q.nodes))[:len(q.nodes)]
	for i := range q.nodes {
		n := &q.nodes[i]
		if n.leaf == nil {
			b.nodes[i] = boundNode{space, roots[n.slot]}
		} else {
			b.nodes[i] = b.at(n.leaf)
		}
	}
}

// at is where the trie of an index stands.
func (b *Bound) at(x *Index) boundNode {
	if x.pinned && b.earlier {
		return boundNode(x.was)
	}
	if x.pinned {
		return boundNode{x.space, x.root}
	}
	return boundNode{b.space, b.roots[x.slot]}
}

// Vars is the number of variables of the query text, private ones included.
func (q *Query) vars() int { return len(q.Plan.Query.Vars) }

// Answers is a cursor over the answers of a bound query. The work between two
// answers depends on the query, not on the data: one move of a cursor at each
// node, all of which succeed below the root, because a tuple of a node has
// partners in every child.
//
// Answers come in lexicographic order of the ids along the variables of the
// levels: those of the inner nodes in pre-order, then those of the leaves.
type Answers struct {
	b       *Bound
	last    *level   // of levels
	levels  []level  // inner nodes, then leaves
	binding []uint64 // by variable
	started bool
	open    bool // the end was not met
	// Steps counts the moves of cursors, for tests of constant delay.
	Steps int
}

// level is the enumeration at one node.
type level struct {
	// ids is the current run of tuples when they bind one variable and weigh 1:
	// its values, of which those before at are done. Most tuples are in such
	// runs, so most moves are steps along a slice.
	ids   []uint64
	at    int
	value *uint64 // where the value of that variable goes, nil if there are more
	whole bool    // ids is all of the group

	weight int64 // product down to here; -1 once it does not fit
	cursor trie.Cursor
	node   *node
	trie   boundNode
	rest   []query.Var // variables that a tuple of the group binds
	from   int         // column of the first of them
	// key and lead are those of the node, which lie elsewhere than the level: how many
	// ids come before the key.
	key    []query.Var
	lead   int
	unit   bool
	sought []uint64 // prefix of the open group, nil before the first
}

// Answers starts an enumeration before the first answer.
func (b *Bound) Answers() *Answers {
	a := &Answers{b: b, levels: make([]level, 0, len(b.nodes)), binding: make([]uint64, b.q.vars())}
	// A group of a leaf that stays open while another leaf moves is gone back
	// to; below an inner node that moves, every group is another one and has to
	// be sought. So the nodes that others depend on are the outer loops.
	for _, leaves := range []bool{false, true} {
		for j := range b.q.nodes {
			n := &b.q.nodes[j]
			if leaf := len(n.children) == 0; leaf != leaves {
				continue
			}
			l := level{
				node: n, trie: b.nodes[j], rest: n.rest, from: n.columns - len(n.rest),
				key: n.key, lead: len(n.lead), unit: n.unit || b.q.flat,
			}
			if len(n.rest) == 1 {
				l.value = &a.binding[n.rest[0]]
			}
			a.levels = append(a.levels, l)
		}
	}
	a.last = &a.levels[len(a.levels)-1]
	return a
}

// Next moves to the next answer and reports whether there is one.
func (a *Answers) Next() bool {
	// Most answers differ from the one before in the last node only, and stand
	// beside it in memory.
	if l := a.last; l.at < len(l.ids) {
		*l.value = l.ids[l.at]
		l.at++
		a.Steps++
		return true
	}
	return a.next()
}

func (a *Answers) next() bool {
	last := len(a.levels) - 1
	j := last
	if !a.open {
		if a.started || a.b.q.Plan.Never {
			return false
		}
		a.started, a.open = true, true
		j = 0
		a.seek(0)
	}
	for {
		a.Steps++
		if !a.move(j) {
			if j == 0 {
				a.open = false
				return false
			}
			j--
			continue
		}
		if j == last {
			return true
		}
		j++
		a.seek(j)
	}
}

// move goes to the next tuple of the group at level j and binds its variables.
func (a *Answers) move(j int) bool {
	l := &a.levels[j]
	if l.at < len(l.ids) {
		*l.value = l.ids[l.at]
		l.at++
		return true
	}
	if l.whole || !l.cursor.Next() {
		return false
	}
	l.ids = nil
	if l.value != nil {
		if ids, weights := l.cursor.Run(); ids != nil && (l.unit || weights == nil) {
			l.ids, l.whole = ids, l.cursor.Alone()
			l.cursor.Skip()
			*l.value, l.at = ids[0], 1
			l.weight = a.above(j)
			return true
		}
	}
	a.take(j)
	return true
}

// above is the product of the weights over level j.
func (a *Answers) above(j int) int64 {
	if j == 0 {
		return 1
	}
	return a.levels[j-1].weight
}

// seek opens the group of level j that the binding selects. When it is the group
// that is open already, because only nodes that j does not depend on have moved
// since, the level goes back to its start.
func (a *Answers) seek(j int) {
	l := &a.levels[j]
	same := l.sought != nil
	if !same {
		l.sought = make([]uint64, l.lead+len(l.key))
		copy(l.sought, l.node.lead)
	}
	key := l.sought[l.lead:]
	for i, v := range l.key {
		if key[i] != a.binding[v] {
			key[i], same = a.binding[v], false
		}
	}
	switch {
	case same && l.whole:
		l.at, l.weight = 0, a.above(j)
	case same:
		l.ids, l.at = nil, 0
		l.cursor.Rewind()
	default:
		l.ids, l.at, l.whole = nil, 0, false
		l.cursor.Seek(l.trie.space, l.trie.root, l.from+len(l.rest), l.sought)
		if invariant.Enabled && l.node.parent >= 0 && !l.trie.space.HasPrefix(l.trie.root, l.sought) {
			invariant.Check(false, "level %d has no tuple with key %v: a dead end", j, l.sought)
		}
	}
}

// take binds the variables of the tuple that level j stands on.
func (a *Answers) take(j int) {
	l := &a.levels[j]
	for i, v := range l.rest {
		a.binding[v] = l.cursor.Col(l.from + i)
	}
	w := a.above(j)
	if !l.unit && w >= 0 {
		if own := l.cursor.Weight(); own != 1 {
			var ok bool
			if w, ok = semiring.Mul(w, own); !ok {
				w = -1
			}
		}
	}
	l.weight = w
}

// Value is the id of a variable in the current answer.
func (a *Answers) Value(v query.Var) uint64 { return a.binding[v] }

// Multiplicity is the multiplicity of the current answer, or ErrOverflow.
func (a *Answers) Multiplicity() (int64, error) {
	w := a.last.weight
	if w < 0 {
		return 0, fmt.Errorf("%w: the multiplicity of an answer", errs.ErrOverflow)
	}
	return w, nil
}

// Lookup returns the multiplicity of the answer in which each variable has the
// id that value gives, 0 if there is none. Cost: one probe a node.
func (b *Bound) Lookup(value func(query.Var) uint64) (int64, error) {
	if b.q.Plan.Never {
		return 0, nil
	}
	product, over := int64(1), false
	var key []uint64
	for i := range b.q.nodes {
		n := &b.q.nodes[i]
		key = n.appendKey(key[:0], value)
		w := b.nodes[i].space.Get(b.nodes[i].root, key)
		if w == 0 {
			return 0, nil
		}
		if n.unit || b.q.flat || over {
			continue
		}
		var ok bool
		product, ok = semiring.Mul(product, w)
		over = over || !ok
	}
	if over {
		return 0, fmt.Errorf("%w: the multiplicity of an answer", errs.ErrOverflow)
	}
	return product, nil
}
