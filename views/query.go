package views

import (
	"slices"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/trie"
)

// Query is a plan that is maintained: each node of the tree with the trie that
// readers walk. What readers use never changes after Register.
type Query struct {
	Plan  *plan.Plan
	nodes []node // pre-order, as in the plan
	unit  bool   // weights do not count: every answer has multiplicity 1
	used  []use  // indexes to give back
	own   []own  // tries of inner nodes
	made  []use  // indexes that did not exist before, while it is being made
	fed   []*derived
	bases []*Relation
}

type use struct {
	relation *Relation
	index    *Index
}

type own struct{ slot, columns int }

// node is one node of the tree. The trie it is read from is ordered by lead
// (constants), then the variables shared with the parent, then the rest.
type node struct {
	parent   int
	children []int
	relation *Relation // nil for a generalized node
	leaf     *Index    // of a leaf, nil for other nodes
	slot     int       // of the trie, for nodes other than leaves
	columns  int       // of the trie
	lead     []uint64
	key      []query.Var // shared with the parent, in the order of the trie
	rest     []query.Var // the other variables, in the order of the trie
	unit     bool        // weights read from the trie count as 1
	changed  *toggles    // prefixes lead+key; nil at the root

	// For inner nodes: how a tuple of the relation becomes one of the trie, and
	// where the partners of a tuple are found.
	consts []constCol
	order  []int // columns of the relation in the order of the trie
	wakes  []wake
}

// wake ties an inner node to one child.
type wake struct {
	child int
	// index has the node's relation ordered by lead, then the key of the
	// child; nil below a generalized node.
	index *Index
	lead  []uint64
	// key are the positions of the child's key in a tuple of the relation (of
	// the node, for a generalized one).
	key []int
}

// Resolver finds what a plan names.
type Resolver interface {
	Terms
	// RelationNumber is the number of the relation that holds what a window shows
	// of a base relation.
	RelationNumber(name string, w query.Window) int
	// TermID is the id of a constant, 0 if no fact can have it.
	TermID(t term.Term) uint64
}

// Register compiles a plan into views, fills them from the facts that are
// there, and maintains them from then on. It belongs to the version under
// construction, behind its Apply if there is one. check is called now and then.
// On error (ErrOverflow, ErrBudget, that of check) the store is as before that
// version.
//
// Cost is that of sorting the facts of each relation for which a new order is
// needed.
func (s *Store) Register(p *plan.Plan, r Resolver, check func() error) (*Query, error) {
	s.begin()
	q, err := s.compile(p, r, check)
	if !s.loading {
		s.spare = spareRows{}
	}
	if err == nil {
		err = s.checkBudget()
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		s.forget(q)
		s.unmake(q)
		s.restore()
		return nil, err
	}
	q.made = nil
	for _, rel := range q.bases {
		s.trim(rel)
	}
	for _, d := range q.fed {
		s.trim(&d.Relation)
		d.primary = d.indexes[0]
	}
	s.queries = append(s.queries, q)
	return q, nil
}

// unmake takes back the slots and indexes that a query brought which is refused
// in the end. Their blocks go with the version.
func (s *Store) unmake(q *Query) {
	for _, u := range q.made {
		u.relation.indexes = slices.DeleteFunc(u.relation.indexes, func(x *Index) bool { return x == u.index })
		s.free = append(s.free, u.index.slot)
	}
	for _, o := range q.own {
		s.free = append(s.free, o.slot)
	}
}

// Drop ends the maintenance of q and gives its memory back. It belongs to the
// version under construction.
func (s *Store) Drop(q *Query) {
	s.begin()
	s.forget(q)
	for _, o := range q.own {
		s.dropSlot(o.slot, o.columns)
	}
	for _, d := range q.fed {
		if d.uses == 0 {
			s.dropIndexes(&d.Relation)
			continue
		}
		s.trim(&d.Relation)
		d.primary = d.indexes[0]
	}
	for _, rel := range q.bases {
		s.trim(rel)
	}
}

// forget takes q out of all lists. It leaves the tries themselves alone.
func (s *Store) forget(q *Query) {
	for _, n := range q.nodes {
		if n.leaf != nil && n.changed != nil {
			n.leaf.unsubscribe(n.changed)
		}
	}
	for _, u := range q.used {
		u.index.refs--
	}
	for _, d := range q.fed {
		if d.uses--; d.uses == 0 {
			d.base.derived = slices.DeleteFunc(d.base.derived, func(e *derived) bool { return e == d })
		}
	}
	s.queries = slices.DeleteFunc(s.queries, func(o *Query) bool { return o == q })
}

// affected reports whether a relation of q has changed.
func (q *Query) affected() bool {
	if len(q.nodes) == 1 {
		return false
	}
	for _, r := range q.bases {
		if r.touched {
			return true
		}
	}
	return false
}

// trieOf is where the trie of node n stands in the version under construction.
func (s *Store) trieOf(n *node) (trie.Space, uint64) {
	if n.leaf != nil {
		return s.at(n.leaf)
	}
	return s.arena.Space(), s.roots[n.slot]
}
