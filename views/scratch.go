package views

import (
	"fmt"

	"github.com/triegs/triegs/internal/errs"
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

// PinnedRelation is a relation of a pinned epoch: its arity and indexes, none if
// it has no facts in that epoch. Its facts may be in two parts; then the weights
// in both add up, and Rest has the indexes of the second part.
type PinnedRelation struct {
	Arity         int
	Indexes, Rest []PinnedIndex
}

// Evaluate answers a plan on pinned facts, building what the plan needs beyond
// the pinned indexes in memory of its own. The result may be read while the
// epoch is pinned. check is called now and then and its first error returned.
// Cost is linear in the relations of the plan, up to sorting.
func Evaluate(p *plan.Plan, f Facts, r Resolver, check func() error) (*Bound, error) {
	s := NewStore(1)
	s.begin()
	for i := range f.Relations {
		rel, err := s.pinned(&f, &f.Relations[i], check)
		if err != nil {
			return nil, err
		}
		s.relations = append(s.relations, rel)
	}
	q, err := s.compile(p, r, check)
	if err != nil {
		return nil, err
	}
	return q.Bind(s.arena.Space(), s.roots), nil
}

// pinned makes a relation of one of a pinned epoch.
func (s *Store) pinned(f *Facts, pr *PinnedRelation, check func() error) (*Relation, error) {
	rel := &Relation{arity: pr.Arity, serial: s.serial()}
	parts := [][]PinnedIndex{pr.Indexes}
	if len(pr.Rest) > 0 && f.Roots[pr.Rest[0].Slot] != 0 {
		parts = append(parts, pr.Rest)
	}
	if len(pr.Indexes) == 0 || len(parts) > 1 {
		x := &Index{slot: s.takeSlot(), cols: ascending(pr.Arity), refs: 1}
		rel.indexes = []*Index{x}
		if len(pr.Indexes) > 0 {
			return rel, s.merge(x, f, parts, check)
		}
		return rel, nil
	}
	for _, x := range pr.Indexes {
		rel.indexes = append(rel.indexes, &Index{cols: x.Cols, refs: 1, pinned: true, space: f.Space, root: f.Roots[x.Slot]})
	}
	return rel, nil
}

// merge fills an index in column order with the sum of pinned relations.
func (s *Store) merge(to *Index, f *Facts, parts [][]PinnedIndex, check func() error) error {
	s.check, s.stopped = check, check()
	k := len(to.cols)
	out, row := s.newRows(k, 0), make([]uint64, k+1)
	for _, part := range parts {
		x := part[0]
		var c trie.Cursor
		c.Seek(f.Space, f.Roots[x.Slot], k, nil)
		for s.filling(&c) {
			at := len(out.words)
			out.words = append(out.words, row...)
			for i, col := range x.Cols {
				out.words[at+col] = c.Col(i)
			}
			out.words[at+k] = uint64(c.Weight())
		}
	}
	if s.stopped != nil {
		return s.stopped
	}
	if !out.sort() {
		return fmt.Errorf("%w: multiplicity of a fact", errs.ErrOverflow)
	}
	s.roots[to.slot] = s.build(out)
	return nil
}
