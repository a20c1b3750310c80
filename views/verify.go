package views

import (
	"context"
	"fmt"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/trie"
)

// Compare returns an error that names the first difference between the views of
// b and those of o, which belongs to the same plan: the node, the tuple by ids,
// and both weights. It returns ctx's error when that ends.
func (b *Bound) Compare(ctx context.Context, o *Bound) error {
	for i, d := range b.q.fed {
		if err := b.compareDerived(ctx, d, o, o.q.fed[i]); err != nil {
			return fmt.Errorf("derived relation %d: %w", i, err)
		}
	}
	for i := range b.nodes {
		if err := b.compareNode(ctx, i, o); err != nil {
			return err
		}
	}
	return nil
}

// compareDerived compares the tracks of a derived relation, and the relations that
// it is made of as far as they are derived themselves. (Those that nodes read are
// compared there.)
func (b *Bound) compareDerived(ctx context.Context, d *derived, o *Bound, e *derived) error {
	for i, t := range d.tracks {
		if t == nil {
			continue
		}
		k := d.arity + stateColumns
		if _, err := b.space.Check(b.roots[t.slot], k); err != nil {
			return fmt.Errorf("track %d: %w", i, err)
		}
		if err := compareTries(ctx, trieAt{b.space, b.roots[t.slot], nil}, trieAt{o.space, o.roots[e.tracks[i].slot], nil}, k); err != nil {
			return fmt.Errorf("track %d: %w", i, err)
		}
	}
	for i := range d.operands {
		op, other := &d.operands[i], &e.operands[i]
		if op.index.pinned || other.index.pinned || d.match != nil {
			continue
		}
		mine := trieAt{b.space, b.roots[op.index.slot], op.index.cols}
		if err := compareTries(ctx, mine, trieAt{o.space, o.roots[other.index.slot], other.index.cols}, op.relation.arity); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	return nil
}

// trieAt is a trie of one epoch; cols are the columns of the relation in its
// order, nil where they are the same.
type trieAt struct {
	space trie.Space
	root  uint64
	cols  []int
}

// compareTries compares the tuples of two tries over k columns.
func compareTries(ctx context.Context, a, b trieAt, k int) error {
	if a.cols == nil {
		a.cols, b.cols = ascending(k), ascending(k)
	}
	tuple, key := make([]uint64, k), make([]uint64, k)
	var c trie.Cursor
	n := 0
	for c.Seek(a.space, a.root, k, nil); c.Next(); n++ {
		if n&0xfff == 0xfff && ctx.Err() != nil {
			return ctx.Err()
		}
		for i, col := range a.cols {
			tuple[col] = c.Col(i)
		}
		for i, col := range b.cols {
			key[i] = tuple[col]
		}
		if w := b.space.Get(b.root, key); w != c.Weight() {
			return fmt.Errorf("tuple %v weighs %d, recomputed %d", tuple, c.Weight(), w)
		}
	}
	if m := b.space.Count(b.root, k); m != n {
		return fmt.Errorf("%d tuples, recomputed %d", n, m)
	}
	return nil
}

func (b *Bound) compareNode(ctx context.Context, i int, o *Bound) error {
	n, m := &b.q.nodes[i], &o.q.nodes[i]
	if _, err := b.nodes[i].space.Check(b.nodes[i].root, n.columns); err != nil {
		return fmt.Errorf("node %d: %w", i, err)
	}
	var c trie.Cursor
	c.Seek(b.nodes[i].space, b.nodes[i].root, n.columns, n.lead)
	binding := make([]uint64, b.q.vars())
	var key []uint64
	mine := 0
	for ; c.Next(); mine++ {
		if mine&0xfff == 0xfff && ctx.Err() != nil {
			return ctx.Err()
		}
		n.bind(&c, binding)
		key = m.tuple(key[:0], binding)
		if other := o.nodes[i].space.Get(o.nodes[i].root, key); other != c.Weight() {
			return fmt.Errorf("node %d: tuple %v weighs %d, recomputed %d", i, key, c.Weight(), other)
		}
	}
	theirs := 0
	for c.Seek(o.nodes[i].space, o.nodes[i].root, m.columns, m.lead); c.Next(); theirs++ {
	}
	if mine != theirs {
		return fmt.Errorf("node %d: %d tuples, recomputed %d", i, mine, theirs)
	}
	return nil
}

// tuple appends the tuple of the node's trie that the binding selects.
func (n *node) tuple(dst []uint64, binding []uint64) []uint64 {
	dst = append(dst, n.lead...)
	for _, vars := range [2][]query.Var{n.key, n.rest} {
		for _, v := range vars {
			dst = append(dst, binding[v])
		}
	}
	return dst
}

// CompareIndexes checks that all indexes of a relation hold the same facts, and
// calls visit for each fact, in column order, with its weight.
func CompareIndexes(ctx context.Context, space trie.Space, roots []uint64, list []PinnedIndex, visit func(fact []uint64, weight int64)) error {
	first := list[0]
	k := len(first.Cols)
	count := int64(-1)
	for _, x := range list {
		n, err := space.Check(roots[x.Slot], k)
		if err != nil {
			return fmt.Errorf("index by columns %v: %w", x.Cols, err)
		}
		if count >= 0 && n != count {
			return fmt.Errorf("index by columns %v has %d facts, that by %v has %d", x.Cols, n, first.Cols, count)
		}
		count = n
	}
	var c trie.Cursor
	c.Seek(space, roots[first.Slot], k, nil)
	fact, key := make([]uint64, k), make([]uint64, k)
	for steps := 0; c.Next(); steps++ {
		if steps&0xfff == 0xfff && ctx.Err() != nil {
			return ctx.Err()
		}
		for i, col := range first.Cols {
			fact[col] = c.Col(i)
		}
		for _, x := range list[1:] {
			for i, col := range x.Cols {
				key[i] = fact[col]
			}
			if w := space.Get(roots[x.Slot], key); w != c.Weight() {
				return fmt.Errorf("fact %v weighs %d in the index by columns %v, %d in that by %v", fact, c.Weight(), first.Cols, w, x.Cols)
			}
		}
		visit(fact, c.Weight())
	}
	return nil
}
