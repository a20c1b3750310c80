package views

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// sums is the number of answers below a group, and the sum of their
// multiplicities; a negative number does not fit in int64.
type sums struct{ distinct, total int64 }

// times multiplies counts, keeping track of what does not fit: all counts are
// positive, so a product with a factor too large is too large.
func (s sums) times(o sums) sums {
	return sums{multiply(s.distinct, o.distinct), multiply(s.total, o.total)}
}

func (s sums) plus(o sums) sums {
	return sums{plus(s.distinct, o.distinct), plus(s.total, o.total)}
}

func multiply(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	if p, ok := semiring.Mul(a, b); ok {
		return p
	}
	return -1
}

func plus(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	if s, ok := semiring.Add(a, b); ok {
		return s
	}
	return -1
}

// groups maps the key of a group to its sums.
type groups struct {
	one  map[uint64]sums // keys of one column
	many map[string]sums // other keys
	buf  []byte
}

func newGroups(width int) *groups {
	if width == 1 {
		return &groups{one: make(map[uint64]sums)}
	}
	return &groups{many: make(map[string]sums)}
}

func (g *groups) encode(key []uint64) []byte {
	g.buf = g.buf[:0]
	for _, id := range key {
		g.buf = binary.LittleEndian.AppendUint64(g.buf, id)
	}
	return g.buf
}

func (g *groups) get(key []uint64) (s sums, ok bool) {
	if g.one != nil {
		s, ok = g.one[key[0]]
		return s, ok
	}
	s, ok = g.many[string(g.encode(key))]
	return s, ok
}

func (g *groups) put(key []uint64, s sums) {
	if g.one != nil {
		g.one[key[0]] = s
		return
	}
	g.many[string(g.encode(key))] = s
}

// Count returns the number of distinct answers and the sum of their
// multiplicities in one pass over the node tries, children before parents: it
// is linear in the tries and never looks at answers. The context is looked at
// every few thousand tuples. A number that does not fit is ErrOverflow.
func (b *Bound) Count(ctx context.Context) (distinct, total int64, err error) {
	if b.q.Plan.Never {
		return 0, 0, ctx.Err()
	}
	done := make([]*groups, len(b.nodes))
	var all sums
	for i := len(b.nodes) - 1; i >= 0; i-- {
		if done[i], all, err = b.countNode(ctx, i, done); err != nil {
			return 0, 0, err
		}
		for _, child := range b.q.nodes[i].children {
			done[child] = nil
		}
	}
	if all.distinct < 0 {
		return 0, 0, fmt.Errorf("%w: the number of answers", errs.ErrOverflow)
	}
	if all.total < 0 {
		return 0, 0, fmt.Errorf("%w: the sum of the multiplicities of all answers", errs.ErrOverflow)
	}
	return all.distinct, all.total, nil
}

// countNode sums up the groups of node i, of which there is one at the root.
func (b *Bound) countNode(ctx context.Context, i int, done []*groups) (*groups, sums, error) {
	n := &b.q.nodes[i]
	var c trie.Cursor
	c.Seek(b.nodes[i].space, b.nodes[i].root, n.columns, n.lead)
	out := newGroups(len(n.key))
	binding := make([]uint64, b.q.vars())
	key, probe := make([]uint64, len(n.key)), []uint64(nil)
	var group sums
	for steps := 0; c.Next(); steps++ {
		if steps&0xfff == 0xfff && ctx.Err() != nil {
			return nil, sums{}, ctx.Err()
		}
		if at := len(n.lead); steps == 0 || !sameKey(&c, at, key) {
			if steps > 0 {
				out.put(key, group)
			}
			c.Columns(key, at)
			group = sums{}
		}
		n.bind(&c, binding)
		one := sums{1, 1}
		if !n.unit && len(b.q.Plan.Payload.Outputs) == 0 {
			one.total = c.Weight()
		}
		for _, child := range n.children {
			probe = probe[:0]
			for _, v := range b.q.nodes[child].key {
				probe = append(probe, binding[v])
			}
			below, _ := done[child].get(probe)
			one = one.times(below)
		}
		group = group.plus(one)
	}
	if group != (sums{}) && n.parent >= 0 {
		out.put(key, group)
	}
	return out, group, ctx.Err()
}

// bind sets the variables of the tuple under the cursor.
func (n *node) bind(c *trie.Cursor, binding []uint64) {
	at := len(n.lead)
	for _, v := range n.key {
		binding[v] = c.Col(at)
		at++
	}
	for _, v := range n.rest {
		binding[v] = c.Col(at)
		at++
	}
}

// sameKey reports whether the tuple under the cursor has key at the columns
// from at on.
func sameKey(c *trie.Cursor, at int, key []uint64) bool {
	for i, id := range key {
		if c.Col(at+i) != id {
			return false
		}
	}
	return true
}
