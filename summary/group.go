package summary

import (
	"fmt"
	"strings"

	"github.com/tidwall/btree"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/term"
)

// group is what is kept of the answers of a group.
type group struct {
	key    string
	terms  []triegs.Term
	n      wide     // answers
	sums   []total  // by measure
	orders []*order // by measure, nil where nothing asks for it
	values []any    // as told last, nil if it was not there
	next   []any    // as they will be told

	touched bool // by what is being applied
}

// order is an ordered multiset of terms.
type order struct {
	*btree.BTreeG[ranked]
	probe copies // scratch
}

// ranked are copies with a number that grows with their term: comparing these is
// mostly enough, and needs no look at the terms, which lie elsewhere.
type ranked struct {
	key uint64
	*copies
}

type copies struct {
	of triegs.Term
	n  int64
}

func (a ranked) less(b ranked) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return term.Order(a.of, b.of) < 0
}

func newOrder() *order {
	return &order{BTreeG: btree.NewBTreeGOptions(ranked.less, btree.Options{NoLocks: true})}
}

// add adds n copies, or takes them away. A number below 0 may stand there until the
// rest of an update is added.
func (o *order) add(t triegs.Term, n int64) {
	o.probe.of = t
	r := ranked{term.OrderKey(t), &o.probe}
	if c, ok := o.Get(r); !ok {
		r.copies = &copies{t, n}
		o.Set(r)
	} else if c.n += n; c.n == 0 {
		o.Delete(r)
	}
	o.probe.of = triegs.Term{}
}

// add adds n answers with the given values.
func (g *group) add(l *layout, values []triegs.Term, n int64) {
	g.n.add(n, 1)
	for i := range l.measured {
		if l.measured[i].sums {
			g.sums[i].add(values[i], n)
		}
		if l.measured[i].order {
			g.orders[i].add(values[i], n)
		}
	}
}

// tell forms the values that are to be told, nil for a group without answers.
func (g *group) tell(l *layout) error {
	g.next = nil
	n, ok := g.n.int()
	switch {
	case g.n.high < 0:
		return fmt.Errorf("%w: group %s loses answers that it does not have, by updates of another subscription or an Expiry that is not a function of the row", triegs.ErrValue, g)
	case !ok:
		return fmt.Errorf("%w: the number of answers of group %s", triegs.ErrOverflow, g)
	case n == 0:
		return nil
	}
	next := make([]any, len(l.told))
	for i, a := range l.told {
		v, err := g.aggregate(a, n)
		if err != nil {
			return fmt.Errorf("group %s: %w of column %q", g, err, l.measured[a.measure].name)
		}
		next[i] = v
	}
	g.next = next
	return nil
}

// aggregate is one value of a group of n answers.
func (g *group) aggregate(a told, n int64) (any, error) {
	switch a.kind {
	case sum:
		return g.sums[a.measure].value()
	case avg:
		return g.sums[a.measure].average(n)
	case least:
		c, _ := g.orders[a.measure].Min()
		return c.of, nil
	case most:
		c, _ := g.orders[a.measure].Max()
		return c.of, nil
	}
	return n, nil
}

// String is the terms of a group: ("a", 1).
func (g *group) String() string {
	parts := make([]string, len(g.terms))
	for i, t := range g.terms {
		parts[i] = t.String()
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// compare orders groups by their terms.
func compare(a, b []triegs.Term) int {
	for i := range a {
		if c := term.Order(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}
