package views

import (
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/trie"
)

// PinnedIndex is an index of a relation in a published epoch.
type PinnedIndex struct {
	Cols []int // order of the columns
	Slot int   // of the root in the root vector
}

// Indexes lists the indexes that a base relation has now, at least one.
func (s *Store) Indexes(relation int) []PinnedIndex {
	var list []PinnedIndex
	for _, x := range s.relations[relation].indexes {
		list = append(list, PinnedIndex{x.cols, x.slot})
	}
	return list
}

// Facts is what an ad hoc query reads: base relations of one pinned epoch.
type Facts struct {
	Space     trie.Space
	Roots     []uint64
	Relations []PinnedRelation
}

// PinnedRelation is a base relation of a pinned epoch: its arity and indexes,
// none if it has no facts in that epoch.
type PinnedRelation struct {
	Arity   int
	Indexes []PinnedIndex
}

// Evaluate answers a plan on pinned facts, building what the plan needs beyond
// the pinned indexes in memory of its own. The result may be read while the
// epoch is pinned. check is called now and then and its first error returned.
// Cost is linear in the relations of the plan, up to sorting.
func Evaluate(p *plan.Plan, f Facts, r Resolver, check func() error) (*Bound, error) {
	s := NewStore(1)
	for _, pr := range f.Relations {
		rel := &Relation{arity: pr.Arity}
		for _, x := range pr.Indexes {
			rel.indexes = append(rel.indexes, &Index{cols: x.Cols, refs: 1, pinned: true, space: f.Space, root: f.Roots[x.Slot]})
		}
		if len(rel.indexes) == 0 {
			rel.indexes = []*Index{{slot: s.takeSlot(), cols: ascending(pr.Arity), refs: 1}}
		}
		s.relations = append(s.relations, rel)
	}
	s.begin()
	q, err := s.compile(p, r, check)
	if err != nil {
		return nil, err
	}
	return q.Bind(s.arena.Space(), s.roots), nil
}
