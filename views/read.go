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
// Answers come in lexicographic order of the ids along the variables of the
// levels: those of the inner nodes in pre-order, then those of the leaves.
type Answers struct {
	b       *Bound
	levels  []level  // inner nodes, then leaves
	binding []uint64 // by variable
	started bool
	open    bool // all levels stand on a tuple
	// Steps counts the moves of cursors, for tests of constant delay.
	Steps int
}

// level is the enumeration at one node.
type level struct {
	cursor trie.Cursor
	node   *node
	at     boundNode
	rest   []query.Var // variables that a tuple of the group binds
	from   int         // column of the first of them
	unit   bool
	weight int64    // product down to here; -1 once it does not fit
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
			a.levels = append(a.levels, level{
				node: n, at: b.nodes[j], rest: n.rest, from: n.columns - len(n.rest), unit: n.unit,
			})
		}
	}
	return a
}

// Next moves to the next answer and reports whether there is one.
func (a *Answers) Next() bool {
	// Most answers differ from the one before in the last node only, and stand
	// beside it in memory.
	last := len(a.levels) - 1
	if l := &a.levels[last]; a.open && l.cursor.Step() {
		a.Steps++
		if len(l.rest) == 1 && (l.unit || l.cursor.Unit()) && l.weight >= 0 && last > 0 {
			a.binding[l.rest[0]] = l.cursor.Last()
			l.weight = a.levels[last-1].weight
			return true
		}
		a.take(last)
		return true
	}
	return a.next(last)
}

func (a *Answers) next(last int) bool {
	j := last
	if !a.open {
		if a.started || a.b.q.Plan.Never {
			return false
		}
		a.started = true
		j = 0
		a.seek(0)
	}
	for {
		a.Steps++
		if !a.levels[j].cursor.Next() {
			if j == 0 {
				a.open = false
				return false
			}
			j--
			continue
		}
		a.take(j)
		if j == last {
			a.open = true
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
	l := &a.levels[j]
	n := l.node
	same := l.sought != nil
	if !same {
		l.sought = append(make([]uint64, 0, len(n.lead)+len(n.key)), n.lead...)
		l.sought = l.sought[:cap(l.sought)]
	}
	key := l.sought[len(n.lead):]
	for i, v := range n.key {
		if key[i] != a.binding[v] {
			key[i], same = a.binding[v], false
		}
	}
	if same {
		l.cursor.Rewind()
		return
	}
	l.cursor.Seek(l.at.space, l.at.root, n.columns, l.sought)
	if invariant.Enabled && n.parent >= 0 && !l.at.space.HasPrefix(l.at.root, l.sought) {
		invariant.Check(false, "node %d has no tuple with key %v: a dead end", j, l.sought)
	}
}

// take binds the variables of the tuple that node j stands on.
func (a *Answers) take(j int) {
	l := &a.levels[j]
	for i, v := range l.rest {
		a.binding[v] = l.cursor.Col(l.from + i)
	}
	w := int64(1)
	if j > 0 {
		w = a.levels[j-1].weight
	}
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
	w := a.levels[len(a.levels)-1].weight
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
