package views

import (
	"slices"

	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/trie"
)

// Hydration is a query that is filled beside the store that is going to maintain
// it, while the writer of the store goes on: a small store of its own, in a
// nursery of the arena, whose base relations are those of a pinned version.
//
// Fill computes everything that the query needs and that the pinned version does
// not have. Advance moves all of it to a later version by the net changes between
// the two, as an epoch. Adopt, in the version under construction of the store,
// does the rest and registers the query: whatever the store then lacks is taken
// from here, and what is not found here either (because it was dropped in the
// meantime) is made on the spot. So the writer waits for the last changes alone.
//
// NewHydration and Adopt belong to the writer; one goroutine at a time calls the
// others. Exactly one of Adopt and Discard ends a hydration.
type Hydration struct {
	of *Store
	s  *Store
	q  *Query
}

// NewHydration makes room beside the store, of as many bytes as the budget of the
// store leaves.
func (s *Store) NewHydration() *Hydration {
	b := s.arena.Bytes()
	s.hydrations.Add(1)
	return &Hydration{of: s, s: &Store{
		arena:     s.arena.Nursery(),
		viewBy:    make(map[string]*view),
		derivedBy: make(map[string]*derived),
		beside:    true,
		pace:      0x3ff,
		budget:    max(s.budget-(b.Total-b.Reusable), 1),
	}}
}

// Discard drops everything without a trace.
func (h *Hydration) Discard() {
	h.s.arena.Discard()
	h.of.hydrations.Add(-1)
}

// Bytes are the memory accounts of what is kept beside the store.
func (h *Hydration) Bytes() trie.Bytes { return h.s.arena.Bytes() }

// Fill compiles a plan on pinned facts and fills it. r gives relations their
// numbers in f. check is called now and then, and its first error returned; other
// errors are those of Register. Cost is that of Register.
func (h *Hydration) Fill(p *plan.Plan, f Facts, r Resolver, check func() error) error {
	s := h.s
	for i := range f.Relations {
		rel := &Relation{arity: f.Relations[i].Arity, serial: s.serial()}
		s.anchor(rel, &f, &f.Relations[i])
		s.relations = append(s.relations, rel)
	}
	s.begin()
	q, err := s.compile(p, r, h.checking(check))
	s.spare = spareRows{}
	if err == nil {
		err = s.checkBudget()
	}
	if err != nil {
		return err
	}
	h.q, s.queries = q, []*Query{q}
	h.seal()
	return nil
}

// checking is check, and that the budget is kept.
func (h *Hydration) checking(check func() error) func() error {
	return func() error {
		if err := check(); err != nil {
			return err
		}
		return h.s.checkBudget()
	}
}

// seal ends a version of the nursery, of which nobody reads an older one.
func (h *Hydration) seal() {
	h.s.Seal()
	h.s.Collect(h.s.arena.Version()-1, nil)
}

// Covers reports whether f has every index that the hydration reads, so that
// Advance to f costs no more than the changes.
func (h *Hydration) Covers(f Facts) bool {
	for i, r := range h.s.relations {
		anchored := len(f.Relations[i].Indexes) == 0
		for _, x := range r.indexes {
			if !x.pinned {
				continue
			}
			there := anchored || f.Relations[i].find(x.cols) != nil
			if !there && x.used() {
				return false
			}
			anchored = anchored || there
		}
		if !anchored {
			return false
		}
	}
	return true
}

// used reports whether something reads x beside the relation itself.
func (x *Index) used() bool { return x.refs > 0 }

// find is the index in an order, nil if there is none.
func (pr *PinnedRelation) find(cols []int) *PinnedIndex {
	for i := range pr.Indexes {
		if slices.Equal(pr.Indexes[i].Cols, cols) {
			return &pr.Indexes[i]
		}
	}
	return nil
}

// Advance moves the hydration from the facts that it stands on, whose version
// must still be pinned, to those of a later version, with the relations in the
// same order, and returns how many facts differ. Errors are those of Apply and the
// first one of check; the hydration can only be discarded then. Cost is that of an
// epoch with these changes.
func (h *Hydration) Advance(f Facts, check func() error) (changes int, err error) {
	s := h.s
	s.check, s.stopped = h.checking(check), check()
	for i, r := range s.relations {
		s.detach(r, &f.Relations[i])
	}
	h.seal()
	s.begin()
	for i, r := range s.relations {
		changes += s.move(i, r, &f, &f.Relations[i])
	}
	if s.stopped == nil {
		err = s.Apply()
	}
	if s.stopped != nil {
		err = s.stopped
	}
	if err != nil {
		return 0, err
	}
	for i, r := range s.relations {
		s.anchor(r, &f, &f.Relations[i])
	}
	h.seal()
	return changes, nil
}

// anchor adds a pinned index of a relation where it has none: changes are found
// by it. A relation that does not exist yet has an empty one.
func (s *Store) anchor(r *Relation, f *Facts, pr *PinnedRelation) {
	if len(r.indexes) == 0 {
		for i := range pr.Indexes {
			x := &pr.Indexes[i]
			r.indexes = append(r.indexes, pinnedIndex(f, x))
		}
		if len(pr.Indexes) == 0 {
			r.indexes = []*Index{{cols: ascending(r.arity), pinned: true}}
		}
		return
	}
	if !slices.ContainsFunc(r.indexes, func(x *Index) bool { return x.pinned }) && len(pr.Indexes) > 0 {
		r.indexes = append(r.indexes, pinnedIndex(f, &pr.Indexes[0]))
	}
}

func pinnedIndex(f *Facts, x *PinnedIndex) *Index {
	root := f.Roots[x.Slot]
	return &Index{cols: x.Cols, pinned: true, space: f.Space, root: root, was: pinnedTrie{f.Space, root}}
}

// detach makes indexes of its own where something reads a pinned one that the next
// version does not have any more.
func (s *Store) detach(r *Relation, next *PinnedRelation) {
	if len(next.Indexes) == 0 {
		return // nothing there yet
	}
	for _, x := range r.indexes {
		if x.pinned && x.used() && next.find(x.cols) == nil {
			root := s.reorder(x, x.cols)
			*x = Index{slot: s.takeSlot(), cols: x.cols, refs: x.refs, subs: x.subs}
			s.roots[x.slot] = root
		}
	}
}

// move notes the changes of a relation between the pinned version and the next,
// and pins the next. It returns how many there are.
func (s *Store) move(number int, r *Relation, f *Facts, next *PinnedRelation) (changes int) {
	if len(next.Indexes) == 0 {
		return 0
	}
	from, to := s.common(r, next)
	fact := make([]uint64, r.arity)
	space, root := s.at(from)
	trie.Diff(space, root, f.Space, f.Roots[to.Slot], r.arity, func(key []uint64, before, after int64) bool {
		for i, col := range to.Cols {
			fact[col] = key[i]
		}
		s.Change(number, fact, before, after)
		changes++
		return s.goOn()
	})
	if !from.pinned { // it was made for this alone
		s.dropSlot(from.slot, r.arity)
	}
	kept := r.indexes[:0]
	for _, x := range r.indexes {
		if x.pinned {
			y := next.find(x.cols)
			if y == nil {
				continue // nothing reads it
			}
			x.was = pinnedTrie{x.space, x.root}
			x.space, x.root = f.Space, f.Roots[y.Slot]
		}
		kept = append(kept, x)
	}
	clear(r.indexes[len(kept):])
	r.indexes = kept
	return changes
}

// common finds a pinned index of r that the next version has as well. If there is
// none the facts are brought into an order that it has.
func (s *Store) common(r *Relation, next *PinnedRelation) (from *Index, to *PinnedIndex) {
	for _, x := range r.indexes {
		if x.pinned {
			if to = next.find(x.cols); to != nil {
				return x, to
			}
		}
	}
	to = &next.Indexes[0]
	from = &Index{slot: s.takeSlot(), cols: to.Cols}
	s.roots[from.slot] = s.reorder(r.indexes[0], to.Cols)
	return from, to
}

// pinnedTrie is where a pinned index stood before the version under construction.
type pinnedTrie struct {
	space trie.Space
	root  uint64
}

// turn notes the subscribed prefixes of a pinned index whose groups came or went
// with the version under construction.
func (s *Store) turn(x *Index) {
	for _, t := range x.subs {
		seen, last := false, make([]uint64, t.width)
		trie.Diff(x.was.space, x.was.root, x.space, x.root, len(x.cols), func(key []uint64, _, _ int64) bool {
			prefix := key[:t.width]
			if seen && slices.Equal(prefix, last) {
				return true
			}
			seen, last = true, append(last[:0], prefix...)
			if x.was.space.HasPrefix(x.was.root, prefix) != x.space.HasPrefix(x.root, prefix) {
				t.add(prefix)
			}
			return s.goOn()
		})
	}
}

// goOn asks now and then whether a hydration is still wanted.
func (s *Store) goOn() bool { return !s.beside || s.wanted() }

func (s *Store) wanted() bool {
	if s.steps++; s.steps&s.pace == 0 && s.stopped == nil {
		s.stopped = s.check()
	}
	return s.stopped == nil
}

// halted is why a hydration is not wanted any more: what it has then is in between,
// and nothing may be computed from it.
func (s *Store) halted() error {
	if !s.beside {
		return nil
	}
	return s.stopped
}

// Adopt is Register of a query that h has filled. f are the facts of the version
// under construction, behind its Apply, in the order of h; r gives numbers of the
// store. The hydration is over afterwards, whatever is returned.
//
// Cost is that of the changes since the last Advance.
func (s *Store) Adopt(h *Hydration, p *plan.Plan, f Facts, r Resolver, check func() error) (*Query, error) {
	s.begin()
	f.Space, f.Roots = s.arena.Space(), s.roots
	if _, err := h.Advance(f, check); err != nil {
		h.Discard()
		s.restore()
		return nil, err
	}
	s.arena.Adopt(h.s.arena)
	defer s.hydrations.Add(-1)
	s.supply = &supply{from: h, twins: make(map[*Relation]*Relation), taken: make(map[int]bool)}
	defer func() { s.supply = nil }()
	return s.Register(p, r, check)
}

// supply is a hydration whose tries a query takes over while it is compiled. Both
// compilations come to the same relations in the same order, so those of the one
// stand for those of the other. A nil supply has nothing.
type supply struct {
	from  *Hydration
	twins map[*Relation]*Relation // of relations of the store
	taken map[int]bool            // slots of the hydration
}

// meet notes the relation number n that the compilation comes to.
func (p *supply) meet(n int, r *Relation) {
	if p != nil {
		p.twins[r] = p.from.q.met[n]
	}
}

// take returns the trie in a slot of the hydration.
func (p *supply) take(slot int) (root uint64, ok bool) {
	if p.taken[slot] {
		return 0, false
	}
	p.taken[slot] = true
	return p.from.s.roots[slot], true
}

// index is an index of r that starts with lead: its order and its trie.
func (p *supply) index(r *Relation, lead []int) (cols []int, root uint64, ok bool) {
	if p == nil || p.twins[r] == nil {
		return nil, 0, false
	}
	for _, x := range p.twins[r].indexes {
		if !x.pinned && slices.Equal(x.cols[:len(lead)], lead) && !p.taken[x.slot] {
			root, ok = p.take(x.slot)
			return x.cols, root, ok
		}
	}
	return nil, 0, false
}

// derived puts the tries of a derived relation in their places, and reports whether
// it could.
func (p *supply) derived(s *Store, d *derived) bool {
	if p == nil || p.twins[&d.Relation] == nil {
		return false
	}
	t := p.twins[&d.Relation]
	root, ok := p.take(t.indexes[0].slot)
	if !ok {
		return false
	}
	s.roots[d.indexes[0].slot] = root
	for i, tr := range t.tracks {
		if tr != nil {
			s.roots[d.tracks[i].slot], _ = p.take(tr.slot)
		}
	}
	return true
}

// node puts the trie of node i of the query in its place.
func (p *supply) node(s *Store, i, slot int) bool {
	if p == nil {
		return false
	}
	root, ok := p.take(p.from.q.tree()[i].slot)
	if ok {
		s.roots[slot] = root
	}
	return ok
}

// rest clears the tries that the store did not need, because it has them.
func (p *supply) rest(s *Store) {
	if p == nil {
		return
	}
	h := p.from.s
	clearTrie := func(slot, columns int) {
		if root, ok := p.take(slot); ok {
			s.arena.Clear(root, columns)
		}
	}
	relations := slices.Clone(h.relations)
	for _, d := range slices.Concat(h.derived, h.answers) {
		relations = append(relations, &d.Relation)
		for _, t := range d.tracks {
			if t != nil {
				clearTrie(t.slot, d.arity+stateColumns)
			}
		}
	}
	for _, r := range relations {
		for _, x := range r.indexes {
			if !x.pinned {
				clearTrie(x.slot, r.arity)
			}
		}
	}
	for _, v := range h.views {
		if v.leaf == nil {
			clearTrie(v.slot, v.columns)
		}
	}
}
