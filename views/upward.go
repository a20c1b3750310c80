package views

import (
	"slices"

	"github.com/triegs/triegs/query"
)

// hop is how the tuples of the parent of a node are found that have a given key
// in common with the node.
type hop struct {
	parent int
	// index has the relation of the parent ordered by the key. It is the one by
	// which the parent is woken, so it costs no update anything; its tuples may be
	// dead in the parent. It is nil where the trie of the parent itself begins with
	// the key, as that of a generalized node does, whose tuples are the keys.
	index   *Index
	columns int
	lead    []uint64
	key     []query.Var // in the order of the trie
	rest    []query.Var // what the columns behind the key bind
}

// hops are the ways up from all nodes but the root.
func (q *Query) hops() []hop {
	list := make([]hop, len(q.nodes))
	for i := range q.nodes {
		for j, child := range q.nodes[i].children {
			list[child] = q.hop(i, &q.nodes[i].wakes[j], q.nodes[child].key)
		}
	}
	return list
}

// hop is the way up to node i from the child of one of its wakes, which has the
// given key.
func (q *Query) hop(i int, w *wake, key []query.Var) hop {
	n := &q.nodes[i]
	vars := slices.Concat(n.key, n.rest)
	width := len(key)
	prefix := !slices.ContainsFunc(vars[:width], func(v query.Var) bool { return !slices.Contains(key, v) })
	if prefix {
		return hop{parent: i, columns: n.columns, lead: n.lead, key: vars[:width], rest: vars[width:]}
	}
	h := hop{parent: i, index: w.index, columns: len(w.index.cols), lead: w.lead, key: key}
	for _, col := range w.index.cols[len(w.lead)+width:] {
		h.rest = append(h.rest, vars[slices.Index(n.order, col)])
	}
	return h
}
