package views

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/triegs/triegs/query/plan"
)

// TestChildrenThatShareAView: two children of a node are one view, asked with
// different keys, and a tuple with a partner for one key alone is not live. The
// query is registered before the facts, between them, and behind them.
func TestChildrenThatShareAView(t *testing.T) {
	for _, text := range []string{
		"q(v, w, x, y, z) :- T(x, y, z), T(v, w, z), U(x), U(y).",
	} {
		facts := []string{
			"+T 1 2 3", "+U 1", "+T 2 1 3", "+T 1 1 3",
			"+U 2", "-U 1", "+U 1", "-U 2",
		}
		for at := range len(facts) + 1 {
			l := newLab(t)
			p, err := plan.Compile(l.parse(text))
			if err != nil {
				t.Fatal(err)
			}
			var q *Query
			for i := range len(facts) + 1 {
				if i == at {
					q = l.register(p)
				}
				if i < len(facts) {
					l.epoch(facts[i])
				}
				if q != nil {
					l.recompute(q)
				}
			}
			if !slices.ContainsFunc(q.nodes, func(n node) bool { return len(n.wakes) > 1 && n.wakes[0].child == n.wakes[1].child }) {
				t.Fatalf("%s has no children that share a view", p.Tree())
			}
		}
	}
}

// recompute compares the tuples of a query with what they are by definition: those
// which stand in an answer, since every tuple of a node has a partner in each child
// and the root has no parent.
func (l *lab) recompute(q *Query) {
	l.t.Helper()
	b := l.bind(q)
	space := l.s.arena.Space()
	for i := range q.nodes {
		n := &q.nodes[i]
		if n.leaf != nil {
			continue
		}
		c := newCursor(b, i)
		for tuple := make([]uint64, n.columns); c.Next(); {
			c.Columns(tuple, 0)
			for k := range n.wakes {
				w := &n.wakes[k]
				key := append([]uint64(nil), w.child.lead...)
				for _, col := range w.key {
					if n.relation != nil {
						col = slices.Index(n.order, col)
					}
					key = append(key, tuple[col])
				}
				if _, root := l.s.trieOf(w.child); !space.HasPrefix(root, key) {
					l.t.Fatalf("%s: node %d has %v, child %d has no %v", q.Plan.Tree(), i, tuple, k, key)
				}
			}
		}
	}
}

// TestCopies: queries with one plan are compiled once, are maintained until the last
// of them goes, and one that is refused in the end takes nothing with it.
func TestCopies(t *testing.T) {
	for _, text := range []string{
		"Q(x, y, z) :- a(x, y), b(y, z).",
		"Q(y, count()) :- a(x, y), b(y, z).",
		"Q(x, z) :- a(x, y), b(y, z).",
	} {
		l := newLab(t)
		p, err := plan.Compile(l.parse(text))
		if err != nil {
			t.Fatal(err)
		}
		l.relation("a", 2)
		l.relation("b", 2)
		l.epoch("+a 1 2", "+b 2 3")
		all := []*Query{l.register(p), l.register(p), l.register(p)}
		views, relations := len(l.s.views), len(l.s.derivedBy)
		if all[0].body != all[1].body || all[0] == all[1] {
			t.Fatalf("%s: the copy has views of its own", text)
		}
		refused := errors.New("refused")
		if _, err := l.s.Register(p, l, func() error { return refused }); !errors.Is(err, refused) {
			t.Fatalf("%s: %v", text, err)
		}
		for i, q := range all {
			l.epoch(fmt.Sprintf("+a %d 2", 10+i))
			l.recomputed(q)
			if len(l.s.queries) != len(all)-i || len(l.s.views) != views || len(l.s.derivedBy) != relations {
				t.Fatalf("%s: %d queries, %d views, %d relations", text, len(l.s.queries), len(l.s.views), len(l.s.derivedBy))
			}
			if n := l.s.Work(q).Updates; n != uint64(i)+1 {
				t.Errorf("%s: %d updates since copy %d was registered", text, n, i)
			}
			l.s.Drop(q)
			l.seal()
		}
		if len(l.s.queries)+len(l.s.views)+len(l.s.derivedBy) > 0 {
			t.Errorf("%s: %d queries, %d views, %d relations are left", text, len(l.s.queries), len(l.s.views), len(l.s.derivedBy))
		}
	}
}
