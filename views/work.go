package views

import (
	"time"

	"github.com/triegs/triegs/trie"
)

// sampled is how many versions there are to one whose work is timed.
const sampled = 16

// work is what has been done for a view or a derived relation.
type work struct {
	writes uint64        // tuples
	timed  time.Duration // in the versions that are timed
}

// NodeWork is what a node of a query costs and has cost since the query was
// registered.
type NodeWork struct {
	Writes uint64 // tuples written, each once whatever the number of orders
	// Took is the time that bringing the node up to date took, estimated from one
	// version in sixteen. It is 0 without a clock, and for a node that is nothing but
	// an index.
	Took time.Duration
}

// QueryWork is what a query costs.
type QueryWork struct {
	Updates  uint64       // changed facts of its base relations
	Nodes    []NodeWork   // of the tree of the plan
	Clusters [][]NodeWork // by cluster, of its tree
}

// Clock gives the store a clock to time its work by.
func (s *Store) Clock(now func() time.Time) { s.now = now }

// start begins the timing of some work in a version that is timed.
func (s *Store) start() time.Time {
	if s.now == nil || s.applied%sampled != 0 {
		return time.Time{}
	}
	return s.now()
}

// stop ends what start began.
func (w *work) stop(s *Store, began time.Time) {
	if !began.IsZero() {
		w.timed += s.now().Sub(began)
	}
}

// Work tells what q has cost since it was registered. It belongs to the writer.
func (s *Store) Work(q *Query) QueryWork {
	w := s.workOf(q)
	w.Updates -= q.before.Updates
	sub := func(list, from []NodeWork) {
		for i := range list {
			list[i].Writes -= from[i].Writes
			list[i].Took -= from[i].Took
		}
	}
	sub(w.Nodes, q.before.Nodes)
	for i := range w.Clusters {
		sub(w.Clusters[i], q.before.Clusters[i])
	}
	return w
}

// workOf is the work since the store began.
func (s *Store) workOf(q *Query) (w QueryWork) {
	for _, r := range q.bases {
		w.Updates += r.work.writes
	}
	tree := q.tree()
	for i := range tree {
		n := &tree[i]
		if n.leaf != nil {
			w.Nodes = append(w.Nodes, n.relation.work.told())
			continue
		}
		w.Nodes = append(w.Nodes, n.work.told())
	}
	for _, c := range q.clusters {
		var list []NodeWork
		for _, f := range c {
			list = append(list, f.relation.work.told())
		}
		w.Clusters = append(w.Clusters, list)
	}
	return w
}

func (w *work) told() NodeWork { return NodeWork{w.writes, w.timed * sampled} }

// Sizes counts the tuples of the nodes of the plan's tree, and of the trees of its
// clusters. Its cost is that of a walk over the tries, at most.
func (b *Bound) Sizes() (nodes []int64, clusters [][]int64) {
	tree := b.q.tree()
	for i := range tree {
		n := &tree[i]
		at := boundNode{b.space, 0}
		if n.leaf != nil {
			at = b.at(n.leaf)
		} else {
			at.root = b.roots[n.slot]
		}
		nodes = append(nodes, countFrom(at, n.columns, n.lead))
	}
	for _, c := range b.q.clusters {
		var list []int64
		for _, f := range c {
			list = append(list, countFrom(b.at(f.index), f.relation.arity, nil))
		}
		clusters = append(clusters, list)
	}
	return nodes, clusters
}

// countFrom counts the tuples of a trie that start with lead.
func countFrom(at boundNode, columns int, lead []uint64) (n int64) {
	if len(lead) == 0 {
		return int64(at.space.Count(at.root, columns))
	}
	var c trie.Cursor
	for c.Seek(at.space, at.root, columns, lead); c.Next(); {
		n++
	}
	return n
}
