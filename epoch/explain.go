package epoch

import (
	"context"
	"time"

	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// Clock gives the engine a clock to time the work of views by; nothing depends on
// what it says.
func (e *Engine) Clock(now func() time.Time) { e.views.Clock(now) }

// Explain completes the explanation of a plan from a store whose pinned vector is
// v: relations that have never had a fact, and if the query is registered under
// name in v, what its nodes hold and what they have cost since it was registered or
// the store was opened. A writer waits while the figures are read, not while tuples
// are counted.
func (e *Engine) Explain(ctx context.Context, v *rootvec.Vector, x *plan.Explanation, p *plan.Plan, name string) error {
	if err := e.hold(ctx); err != nil {
		return err
	}
	s := v.Catalog.(*Schema)
	q := s.Views[name]
	var w views.QueryWork
	if q != nil && e.schema.Views[name] == q {
		w = e.views.Work(q)
	}
	seen := make(map[string]bool)
	for i := range p.Aliases {
		relation := p.Aliases[i].Relation
		if n, _, ok := e.schema.Relation(relation); (!ok || !e.facts.Seen(uint32(n))) && !seen[relation] {
			x.Unseen = append(x.Unseen, relation)
		}
		seen[relation] = true
	}
	e.free()
	if q == nil {
		return nil
	}
	x.Updates = int64(w.Updates)
	nodes, clusters := q.Bind(v.Space, v.Roots).Sizes()
	complete(x.Nodes, nodes, w.Nodes, w.Updates)
	for i := range clusters {
		var work []views.NodeWork
		if w.Clusters != nil {
			work = w.Clusters[i]
		}
		complete(x.Clusters[i].Nodes, clusters[i], work, w.Updates)
	}
	return nil
}

// complete sets the live figures of nodes.
func complete(nodes []plan.ExplainedNode, sizes []int64, work []views.NodeWork, updates uint64) {
	for i := range nodes {
		live := &plan.LiveNode{Tuples: sizes[i]}
		if work != nil && updates > 0 {
			live.Writes = float64(work[i].Writes) / float64(updates)
			live.Nanoseconds = float64(work[i].Took) / float64(updates)
		}
		nodes[i].Live = live
	}
}
