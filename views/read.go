package views

import (
	"fmt"

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
}

type boundNode struct {
	space trie.Space
	root  uint64
}

// Bind ties q to the roots of a root vector.
func (q *Query) Bind(space trie.Space, roots []uint64) *Bound {
	b := &Bound{q: q, nodes: make([]boundNode, len(q.nodes))}
	for i := range q.nodes {
		n := &q.nodes[i]
		switch {
		case n.leaf == nil:
			b.nodes[i] = boundNode{space, roots[n.slot]}
		case n.leaf.pinned:
			b.nodes[i] = boundNode{n.leaf.space, n.leaf.root}
		default:
			b.nodes[i] = boundNode{space, roots[n.leaf.slot]}
		}
	}
	return b
}

// Vars is the number of variables of the query text, private ones included.
func (q *Query) vars() int { return len(q.Plan.Query.Vars) }

// Answers is a cursor over the answers of a bound query. The work between two
// answers depends on the query, not on the data: one move of a cursor at each
// node, all of which succeed below the root, because a tuple of a node has
// partners in every child.
//
// Answers come in lexicographic order of the ids along the nodes' variables in
// pre-order.
type Answers struct {
	b       *Bound
	cursors []trie.Cursor
	binding []uint64   // by variable
	weights []int64    // product down to each node; -1 once it does not fit
	sought  [][]uint64 // prefix of the open group of each node
	depth   int        // nodes that stand on a tuple
	started bool
	// Steps counts the moves of cursors, for tests of constant delay.
	Steps int
}

// Answers starts an enumeration before the first answer.
func (b *Bound) Answers() *Answers {
	return &Answers{
		b:       b,
		cursors: make([]trie.Cursor, len(b.nodes)),
		binding: make([]uint64, b.q.vars()),
		weights: make([]int64, len(b.nodes)),
		sought:  make([][]uint64, len(b.nodes)),
	}
}

// Next moves to the next answer and reports whether there is one.
func (a *Answers) Next() bool {
	// Most answers differ from the one before in the last node only, and stand
	// beside it in memory.
	if last := len(a.cursors) - 1; a.depth > 0 && a.cursors[last].Step() {
		a.Steps++
		a.take(last)
		return true
	}
	return a.next()
}

func (a *Answers) next() bool {
	j := len(a.cursors) - 1
	switch {
	case a.b.q.Plan.Never:
		return false
	case !a.started:
		a.started = true
		j = 0
		a.seek(0)
	case a.depth == 0:
		return false
	}
	for {
		a.Steps++
		if !a.cursors[j].Next() {
			if j == 0 {
				a.depth = 0
				return false
			}
			j--
			continue
		}
		a.take(j)
		if j == len(a.cursors)-1 {
			a.depth = len(a.cursors)
			return true
		}
		j++
		a.seek(j)
	}
}

// seek opens the group of node j that the binding selects. When it is the group
// that is open already, because only nodes that j does not depend on have moved
// since, the cursor goes back to its start.
func (a *Answers) seek(j int) {
	n := &a.b.q.nodes[j]
	sought := a.sought[j]
	same := sought != nil
	if !same {
		sought = append(append(make([]uint64, 0, len(n.lead)+len(n.key)), n.lead...), make([]uint64, len(n.key))...)
		a.sought[j] = sought
	}
	key := sought[len(n.lead):]
	for i, v := range n.key {
		if key[i] != a.binding[v] {
			key[i], same = a.binding[v], false
		}
	}
	if same {
		a.cursors[j].Rewind()
		return
	}
	at := &a.b.nodes[j]
	a.cursors[j].Seek(at.space, at.root, n.columns, sought)
	if invariant.Enabled && n.parent >= 0 && !at.space.HasPrefix(at.root, sought) {
		invariant.Check(false, "node %d has no tuple with key %v: a dead end", j, sought)
	}
}

// take binds the variables of the tuple that node j stands on.
func (a *Answers) take(j int) {
	n := &a.b.q.nodes[j]
	c := &a.cursors[j]
	from := n.columns - len(n.rest)
	for i, v := range n.rest {
		a.binding[v] = c.Col(from + i)
	}
	w := int64(1)
	if j > 0 {
		w = a.weights[j-1]
	}
	if !n.unit && w >= 0 {
		if own := c.Weight(); own != 1 {
			var ok bool
			if w, ok = semiring.Mul(w, own); !ok {
				w = -1
			}
		}
	}
	a.weights[j] = w
}

// Value is the id of a variable in the current answer.
func (a *Answers) Value(v query.Var) uint64 { return a.binding[v] }

// Multiplicity is the multiplicity of the current answer, or ErrOverflow.
func (a *Answers) Multiplicity() (int64, error) {
	w := a.weights[len(a.weights)-1]
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
		key = append(key[:0], n.lead...)
		for _, v := range n.key {
			key = append(key, value(v))
		}
		for _, v := range n.rest {
			key = append(key, value(v))
		}
		w := b.nodes[i].space.Get(b.nodes[i].root, key)
		if w == 0 {
			return 0, nil
		}
		if n.unit || over {
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
