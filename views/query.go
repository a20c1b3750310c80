package views

import (
	"slices"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// Query is a plan that is maintained: each node of the tree with the trie that
// readers walk. What readers use never changes after Register.
type Query struct {
	Plan *plan.Plan
	*body
	*making
	before QueryWork // when it was registered
}

// body is what a plan has been compiled into, for all queries that have that plan.
type body struct {
	uses     int             // queries
	nodes    []node          // pre-order, as in the plan
	unit     bool            // weights do not count: every answer has multiplicity 1
	flat     bool            // weights are no multiplicities: every answer is given 1
	clusters [][]clusterNode // by cluster of the plan, the nodes of its tree
	inner    *Query          // whose answers, folded, are those of this one; nil if it has none
	fed      []*derived
	// algebras are those of the tracks of the payload.
	algebras []semiring.Algebra
	bases    []*Relation
	names    []string // of the bases
}

// making is what is known of a query while it is being made.
type making struct {
	made  []use       // indexes that did not exist before
	slots []int       // that were not in use before
	met   []*Relation // in the order of compile
}

type use struct {
	relation *Relation
	index    *Index
}

// node is one node of the tree of a query: a view, with the variables that stand
// in its columns.
type node struct {
	*view
	parent   int
	children []int
	key      []query.Var // shared with the parent, in the order of the trie
	rest     []query.Var // the other variables, in the order of the trie
	vars     []query.Var // of the columns of the relation, where it is a derived one
}

// view is what is kept for a node of a tree, whatever its variables are called:
// nodes for which the same is kept, of one query or of several, share it. The trie
// it is read from is ordered by lead (constants), then the columns shared with the
// parent, then the rest.
type view struct {
	signature string  // of what is kept
	serial    uint64  // no two views of a store have the same
	at        int     // in the list of views
	parents   []*view // once for each time that it is their child, but for those in crowds
	crowds    []*crowd
	reader    *reader   // of its relation, or of the toggles of its index; nil if it has none
	uses      int       // nodes
	used      []use     // indexes that it reads
	relation  *Relation // nil for a generalized node
	leaf      *Index    // of a leaf, nil for other nodes
	slot      int       // of the trie, for nodes other than leaves
	columns   int       // of the trie
	lead      []uint64
	work      work
	unit      bool      // weights read from the trie count as 1
	changed   *toggles  // prefixes of lead and key; nil at a root
	interest  *interest // of kept answers, nil if it has none
	gone      bool      // empty in the version under construction since a relation was cleared

	// For inner nodes: how a tuple of the relation becomes one of the trie, and
	// where the partners of a tuple are found.
	consts []constCol
	order  []int // columns of the relation in the order of the trie
	wakes  []wake
}

// clusterNode is what stands for a node of the tree of a cluster.
type clusterNode struct {
	relation *Relation
	index    *Index
}

// wake ties an inner node to one child.
type wake struct {
	child *view
	// index has the node's relation ordered by lead, then the key of the
	// child; nil below a generalized node.
	index *Index
	lead  []uint64
	// key are the positions of the child's key in a tuple of the relation (of
	// the node, for a generalized one).
	key []int
	// crowd is where the view is told of the groups of the child that concern it,
	// which reader has; nil if all do.
	crowd  *crowd
	reader *reader
}

// Resolver finds what a plan names.
type Resolver interface {
	Terms
	// RelationNumber is the number of the relation that holds what a window shows
	// of a base relation.
	RelationNumber(name string, w query.Window) int
	// ValuedRelation is the number of the relation that holds the same facts with
	// the value of each contribution in a further column: the id of its term, 0 if
	// it has none.
	ValuedRelation(name string, w query.Window) int
	// Algebra is the one with a name as semiring.Parse reads it, the same each time.
	Algebra(name string) (semiring.Algebra, error)
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
// needed, and next to nothing where a query with the same plan is there.
func (s *Store) Register(p *plan.Plan, r Resolver, check func() error) (*Query, error) {
	s.begin()
	q, err := s.copyOf(p, r), error(nil)
	if q == nil {
		q, err = s.compile(p, r, check)
	}
	if !s.loading {
		s.spare = spareRows{}
		// An epoch needs little of what filling a query has taken.
		s.folding.counts, s.folding.states = rows{}, nil
	}
	if err == nil {
		s.supply.rest(s)
		err = s.checkBudget()
	}
	if err == nil {
		err = check()
	}
	if err == nil && s.finally != nil {
		err = s.finally()
	}
	if err != nil {
		s.forget(q)
		s.unmake(q)
		s.restore()
		return nil, err
	}
	q.making = nil
	for _, rel := range q.bases {
		s.trim(rel)
	}
	s.trimDerived()
	q.before = s.workOf(q)
	s.queries = append(s.queries, q)
	return q, nil
}

// copyOf is a further query with a plan that one is registered with, nil if there is
// none, or one that the names of relations meant others to.
func (s *Store) copyOf(p *plan.Plan, r Resolver) *Query {
	i := slices.IndexFunc(s.queries, func(q *Query) bool { return q.Plan == p })
	if i < 0 {
		return nil
	}
	b := s.queries[i].body
	for j := range p.Aliases {
		if !slices.Contains(b.bases, s.baseOf(&p.Aliases[j], r)) {
			return nil
		}
	}
	b.uses++
	return &Query{Plan: p, body: b, making: new(making)}
}

// Finally sets what Register and Adopt ask once a query is filled and can still be
// refused; nil asks nobody.
func (s *Store) Finally(check func() error) { s.finally = check }

// unmake takes back the slots and indexes that a query brought which is refused
// in the end. Their blocks go with the version.
func (s *Store) unmake(q *Query) {
	for _, u := range q.made {
		u.relation.indexes = slices.DeleteFunc(u.relation.indexes, func(x *Index) bool { return x == u.index })
		s.free = append(s.free, u.index.slot)
	}
	s.free = append(s.free, q.slots...)
}

// Drop ends the maintenance of q and gives its memory back. It belongs to the
// version under construction.
func (s *Store) Drop(q *Query) {
	s.begin()
	for _, v := range s.forget(q) {
		if v.leaf == nil {
			s.dropSlot(v.slot, v.columns)
		}
	}
	for _, d := range q.fed {
		if d.uses > 0 {
			continue
		}
		s.dropIndexes(&d.Relation)
		for _, t := range d.tracks {
			if t != nil {
				s.dropSlot(t.slot, d.arity+stateColumns)
			}
		}
	}
	for _, rel := range q.bases {
		s.trim(rel)
	}
	s.trimDerived()
}

// trimDerived drops the indexes of derived relations that nobody uses.
func (s *Store) trimDerived() {
	for _, d := range s.derived {
		s.trim(&d.Relation)
	}
	for _, d := range s.answers {
		s.trim(&d.Relation)
	}
}

// forget takes q out of all lists, and returns the views that nobody uses any
// more. It leaves the tries themselves alone.
func (s *Store) forget(q *Query) (unused []*view) {
	s.queries = slices.DeleteFunc(s.queries, func(o *Query) bool { return o == q })
	if q.uses--; q.uses > 0 {
		return nil
	}
	// What past versions have noted must not keep it.
	clear(s.visited[:cap(s.visited)])
	clear(s.served[:cap(s.served)])
	clear(s.toggled[:cap(s.toggled)])
	clear(s.stirred[:cap(s.stirred)])
	clear(s.owed[:cap(s.owed)])
	nodes := q.nodes
	if q.inner != nil {
		nodes = slices.Concat(nodes, q.inner.nodes)
	}
	for i := range nodes {
		if v := nodes[i].view; v != nil && v.uses > 0 && s.release(v) {
			unused = append(unused, v)
		}
	}
	if len(unused) > 0 {
		s.views = slices.DeleteFunc(s.views, func(v *view) bool { return v.uses == 0 })
		for i, v := range s.views {
			v.at = i
		}
	}
	needed := true
	for _, d := range q.fed {
		if d.uses--; d.uses > 0 {
			continue
		}
		for _, u := range d.used {
			u.index.refs--
		}
		delete(s.derivedBy, d.signature)
		if d.reader != nil {
			d.operands[0].relation.readers.remove(d.reader)
		}
		if d.answers != nil {
			s.giveUp(d)
		}
		needed = false
	}
	unneeded := func(d *derived) bool { return d.uses == 0 }
	if !needed {
		s.derived, s.answers = slices.DeleteFunc(s.derived, unneeded), slices.DeleteFunc(s.answers, unneeded)
		s.annotated = slices.DeleteFunc(s.annotated, unneeded)
	}
	return unused
}

// release gives back what a node has of a view, and reports whether nobody uses it
// any more.
func (s *Store) release(v *view) bool {
	if v.uses--; v.uses > 0 {
		return false
	}
	s.delist(v)
	if v.leaf != nil && v.changed != nil {
		v.leaf.unsubscribe(v.changed)
	}
	for _, u := range v.used {
		u.index.refs--
	}
	return true
}

// trieOf is where the trie of a view stands in the version under construction.
func (s *Store) trieOf(n *view) (trie.Space, uint64) {
	if n.leaf != nil {
		return s.at(n.leaf)
	}
	return s.arena.Space(), s.roots[n.slot]
}
