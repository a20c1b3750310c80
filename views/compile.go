package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/trie"
)

// compiler turns one plan into a Query.
type compiler struct {
	s *Store
	q *Query
	r Resolver
	p *plan.Plan

	sign strings.Builder // of the view that is being made
}

// met notes a relation of the plan. The order depends on the plan alone.
func (c *compiler) met(r *Relation) {
	c.s.supply.meet(len(c.q.met), r)
	c.q.met = append(c.q.met, r)
}

// compile makes the query and fills its tries, children before parents. On
// error (also the first one of check) the query lists what has been taken so
// far.
func (s *Store) compile(p *plan.Plan, r Resolver, check func() error) (*Query, error) {
	s.check, s.stopped = check, check()
	b := &body{uses: 1, unit: p.Query.Distinct, flat: len(p.Payload.Outputs) > 0 && !p.Payload.Counted}
	q := &Query{Plan: p, body: b, making: new(making)}
	s.terms = r
	c := &compiler{s: s, q: q, r: r, p: p}
	if err := c.algebras(); err != nil {
		return q, err
	}
	q.nodes = make([]node, len(p.Nodes))
	q.clusters = make([][]clusterNode, len(p.Clusters))
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		if err := c.node(i); err != nil {
			return q, err
		}
	}
	if len(p.Extra) > 0 && s.stopped == nil {
		if err := c.materialise(); err != nil {
			return q, err
		}
	}
	return q, s.stopped
}

// algebras finds the algebra of each track.
func (c *compiler) algebras() error {
	for _, t := range c.p.Payload.Tracks {
		a, err := c.r.Algebra(t.Algebra)
		if pos := c.p.Query.SemiringPos; err != nil && pos != (query.Pos{}) {
			err = fmt.Errorf("%v: %w", pos, err)
		}
		if err != nil {
			return err
		}
		c.q.algebras = append(c.q.algebras, a)
	}
	return nil
}

func (c *compiler) node(i int) error {
	pn, n := &c.p.Nodes[i], &c.q.nodes[i]
	*n = node{view: &view{columns: len(pn.Vars)}, parent: pn.Parent, children: pn.Children, key: pn.Key}
	n.rest = pn.Vars[len(pn.Key):]
	n.unit = c.q.unit || c.p.Query.Set
	var column map[query.Var]int
	var err error
	switch {
	case pn.Alias >= 0:
		column, err = c.alias(n, &c.p.Aliases[pn.Alias])
	case pn.Cluster >= 0:
		column, err = c.cluster(n, pn.Cluster)
	default:
		n.unit = true
		c.generalized(i)
		return nil
	}
	if err != nil {
		return err
	}
	if len(n.children) == 0 {
		c.leaf(n, column)
	} else {
		c.inner(i, column)
	}
	if pn.Cluster >= 0 { // its root is read by this node alone
		c.q.clusters[pn.Cluster][0].index = n.used[0].index
	}
	return nil
}

// base is the relation that an alias reads.
func (c *compiler) base(a *plan.Alias) *Relation {
	base := c.s.baseOf(a, c.r)
	if !slices.Contains(c.q.bases, base) {
		c.q.bases, c.q.names = append(c.q.bases, base), append(c.q.names, a.Relation)
	}
	c.met(base)
	return base
}

// baseOf is the relation that an alias reads.
func (s *Store) baseOf(a *plan.Alias, r Resolver) *Relation {
	if a.Valued {
		return s.relations[r.ValuedRelation(a.Relation, a.Window)]
	}
	return s.relations[r.RelationNumber(a.Relation, a.Window)]
}

// alias sets the relation of a node, its own or a derived one, and returns the
// column in it of each variable.
func (c *compiler) alias(n *node, a *plan.Alias) (map[query.Var]int, error) {
	if !a.Direct() {
		d, err := c.derivedAlias(a)
		if err != nil {
			return nil, err
		}
		// The weights have set mode in them already: with folded columns they are
		// numbers of facts, not of contributions.
		n.relation, n.vars, n.unit = &d.Relation, a.Vars, c.q.unit
		return columnsOf(a.Vars), nil
	}
	n.relation = c.base(a)
	n.consts = c.consts(a)
	column := make(map[query.Var]int, len(a.Vars))
	for i, v := range a.Vars {
		column[v] = a.Cols[i]
	}
	return column, nil
}

func columnsOf(vars []query.Var) map[query.Var]int {
	column := make(map[query.Var]int, len(vars))
	for i, v := range vars {
		column[v] = i
	}
	return column
}

func (c *compiler) consts(a *plan.Alias) (consts []constCol) {
	for _, k := range a.Consts {
		consts = append(consts, constCol{k.Col, c.r.TermID(k.Term)})
	}
	return consts
}

// derivedAlias makes the relation of an alias that is no relation of the store.
func (c *compiler) derivedAlias(a *plan.Alias) (*derived, error) {
	base := c.base(a)
	d := &derived{keep: a.Cols, unit: c.p.Query.Set, width: base.arity, weighted: true}
	d.match = newMatch(a, c.p.Query.Atoms[a.Atom].Args, c.consts(a), c.r)
	d.operands = []operand{{relation: base, cols: ascending(base.arity)}}
	d.lifts = make([][]int, len(c.q.algebras))
	for _, l := range a.Lifts {
		d.lifts[l.Track] = append(d.lifts[l.Track], l.Col)
	}
	d.tracks = c.tracks(func(i int) bool { return len(d.lifts[i]) > 0 })
	return c.share(d)
}

// tracks makes the tracks that are active; they have no slots yet.
func (c *compiler) tracks(active func(i int) bool) []*track {
	var list []*track
	for i, a := range c.q.algebras {
		if list == nil && !active(i) {
			continue
		}
		for len(list) < i {
			list = append(list, nil)
		}
		if active(i) {
			list = append(list, &track{algebra: a, traits: a.Traits()})
		} else {
			list = append(list, nil)
		}
	}
	return list
}

// share returns the relation that computes what d does: d itself, filled, or one
// that is there already.
func (c *compiler) share(d *derived) (*derived, error) {
	d.arity = len(d.keep)
	d.signature = d.sign()
	if e := c.s.derivedBy[d.signature]; e != nil {
		c.met(&e.Relation)
		c.fed(e)
		return e, nil
	}
	d.serial = c.s.serial()
	c.met(&d.Relation)
	for i := range d.operands {
		if op := &d.operands[i]; i > 0 && len(op.cols) < d.width {
			op.wake = c.take(d, d.operands[0].relation, op.cols)
		}
	}
	for i := range d.operands {
		d.operands[i].index = c.takeAny(d, d.operands[i].relation)
	}
	d.route()
	x := &Index{slot: c.s.takeSlot(), cols: ascending(d.arity)}
	d.indexes = []*Index{x}
	c.q.made = append(c.q.made, use{&d.Relation, x})
	for _, t := range d.tracks {
		if t != nil {
			t.slot = c.s.takeSlot()
			c.q.slots = append(c.q.slots, t.slot)
		}
	}
	c.s.derivedBy[d.signature] = d
	if d.match != nil && len(d.match.consts) > 0 {
		d.reader = &reader{consts: d.match.consts}
		d.operands[0].relation.readers.add(d.reader)
	}
	if d.answers == nil {
		c.s.derived = append(c.s.derived, d)
	} else {
		c.s.answers = append(c.s.answers, d)
	}
	if len(d.tracks) > 0 {
		c.s.annotated = append(c.s.annotated, d)
	}
	c.fed(d)
	if c.s.supply.derived(c.s, d) {
		return d, nil
	}
	return d, c.s.fillDerived(d)
}

// fed notes that the query needs d, and what d reads.
func (c *compiler) fed(d *derived) {
	if slices.Contains(c.q.fed, d) {
		return
	}
	d.uses++
	c.q.fed = append(c.q.fed, d)
}

// take takes a reference for d on the index of r ordered by the columns lead.
func (c *compiler) take(d *derived, r *Relation, lead []int) *Index {
	x := c.find(r, lead)
	x.refs++
	d.used = append(d.used, use{r, x})
	return x
}

// takeAny takes a reference for d on an index of r in any order: one that is needed
// anyway, if there is one.
func (c *compiler) takeAny(d *derived, r *Relation) *Index {
	x := r.indexes[max(0, slices.IndexFunc(r.indexes, (*Index).used))]
	x.refs++
	d.used = append(d.used, use{r, x})
	return x
}

// sign describes what is computed.
func (d *derived) sign() string {
	var b strings.Builder
	if d.answers != nil {
		d.answers.sign(&b)
	}
	for i := range d.operands {
		op := &d.operands[i]
		fmt.Fprint(&b, op.relation.serial, op.unit, op.cols, " ")
	}
	fmt.Fprint(&b, d.width, d.keep, d.unit, d.support, d.weighted)
	if d.match != nil {
		b.WriteString(d.match.signature())
	}
	for i, t := range d.tracks {
		if t != nil {
			fmt.Fprintf(&b, " %d:%s", i, t.algebra.Name())
			if d.lifts != nil {
				fmt.Fprint(&b, d.lifts[i])
			}
		}
	}
	return b.String()
}

// folded is a node of the tree of a cluster while it is compiled: a relation with
// the variable of each of its columns.
type folded struct {
	relation *Relation
	vars     []query.Var
	unit     bool
}

// cluster sets the relation of a node to that of a cluster and returns the column
// in it of each variable.
func (c *compiler) cluster(n *node, number int) (map[query.Var]int, error) {
	cl := &c.p.Clusters[number]
	done := make([]folded, len(cl.Nodes))
	for i := len(cl.Nodes) - 1; i >= 0; i-- {
		var err error
		if done[i], err = c.fold(cl, i, done); err != nil {
			return nil, err
		}
	}
	c.q.clusters[number] = c.standing(done)
	n.relation, n.vars, n.unit = done[0].relation, done[0].vars, c.q.unit
	return columnsOf(done[0].vars), nil
}

// standing lists what stands for the nodes of a cluster, each relation with an index
// that a node above reads.
func (c *compiler) standing(done []folded) []clusterNode {
	nodes := make([]clusterNode, len(done))
	for i, f := range done {
		nodes[i].relation = f.relation
		for _, d := range c.q.fed {
			for j := range d.operands {
				if op := &d.operands[j]; op.relation == f.relation {
					nodes[i].index = op.index
				}
			}
		}
	}
	return nodes
}

// fold makes the relation of a node of a cluster.
func (c *compiler) fold(cl *plan.Cluster, i int, done []folded) (folded, error) {
	pn := &cl.Nodes[i]
	vars := pn.Vars
	d := &derived{support: !c.p.Payload.Counted, weighted: c.p.Payload.Counted}
	if pn.Alias >= 0 {
		own, err := c.folded(&c.p.Aliases[pn.Alias])
		if err != nil || len(pn.Children) == 0 {
			return own, err
		}
		vars = own.vars
		d.operands = append(d.operands, operand{relation: own.relation, cols: ascending(len(vars)), unit: own.unit})
	}
	d.width = len(vars)
	for _, child := range pn.Children {
		op := operand{relation: done[child].relation, unit: done[child].unit}
		for _, v := range done[child].vars {
			op.cols = append(op.cols, slices.Index(vars, v))
		}
		d.operands = append(d.operands, op)
	}
	for _, v := range pn.Key {
		d.keep = append(d.keep, slices.Index(vars, v))
	}
	d.tracks = c.tracks(func(t int) bool {
		return c.p.Payload.Tracks[t].Everywhere || slices.ContainsFunc(d.operands, func(op operand) bool { return op.relation.track(t) != nil })
	})
	for _, t := range d.tracks {
		d.weighted = d.weighted || t != nil && !t.traits.Idempotent
	}
	shared, err := c.share(d)
	if err != nil {
		return folded{}, err
	}
	return folded{relation: &shared.Relation, vars: pn.Key}, nil
}

// folded is the relation of an alias in a cluster.
func (c *compiler) folded(a *plan.Alias) (folded, error) {
	if !a.Direct() || len(a.Consts) > 0 {
		d, err := c.derivedAlias(a)
		if err != nil {
			return folded{}, err
		}
		return folded{relation: &d.Relation, vars: a.Vars}, nil
	}
	f := folded{relation: c.base(a), vars: make([]query.Var, len(a.Vars)), unit: c.p.Query.Set}
	for i, v := range a.Vars {
		f.vars[a.Cols[i]] = v
	}
	return f, nil
}

// find returns an index of r whose order starts with the columns lead.
func (c *compiler) find(r *Relation, lead []int) *Index {
	n := len(r.indexes)
	x := c.s.index(r, lead)
	if len(r.indexes) > n {
		c.q.made = append(c.q.made, use{r, x})
	}
	return x
}

func constColumns(consts []constCol) (cols []int, ids []uint64) {
	for _, k := range consts {
		cols = append(cols, k.col)
		ids = append(ids, k.id)
	}
	return cols, ids
}

func (c *compiler) leaf(n *node, column map[query.Var]int) {
	v := n.view
	cols, ids := constColumns(v.consts)
	v.lead = ids
	for _, x := range n.key {
		cols = append(cols, column[x])
	}
	v.leaf = c.find(v.relation, cols)
	v.used = []use{{v.relation, v.leaf}}
	v.columns = v.relation.arity
	varAt := make(map[int]query.Var, len(column))
	for x, col := range column {
		varAt[col] = x
	}
	rest := make([]query.Var, 0, v.columns-len(cols))
	for _, col := range v.leaf.cols[len(cols):] {
		rest = append(rest, varAt[col])
	}
	n.rest = rest
	fmt.Fprint(&c.sign, "leaf ", v.relation.serial, " ", v.leaf.cols, v.lead, len(n.key), v.unit, n.parent >= 0)
	if c.shareView(n) {
		if n.parent >= 0 {
			n.changed = c.s.subscribe(n.leaf, len(cols))
		}
		c.s.enlist(n.view)
	}
}

// shareView makes the view of n, whose signature has been written, one that is
// there already, or reports that it is a new one, which is still to be enlisted.
func (c *compiler) shareView(n *node) (fresh bool) {
	n.signature = c.sign.String()
	c.sign.Reset()
	if v := c.s.viewBy[n.signature]; v != nil {
		n.view = v
		v.uses++
		return false
	}
	n.uses = 1
	n.serial = c.s.serial()
	for _, u := range n.used {
		u.index.refs++
	}
	return true
}

// ownTrie gives an inner or generalized node its slot.
func (c *compiler) ownTrie(n *node) {
	n.slot = c.s.takeSlot()
	c.q.slots = append(c.q.slots, n.slot)
	if n.parent >= 0 {
		n.changed = &toggles{width: len(n.key), refs: 1}
	}
	c.s.enlist(n.view)
	c.join(n.view)
}

func (c *compiler) inner(i int, column map[query.Var]int) {
	n := &c.q.nodes[i]
	v := n.view
	for _, x := range c.p.Nodes[i].Vars {
		v.order = append(v.order, column[x])
	}
	fmt.Fprint(&c.sign, "inner ", v.relation.serial, " ", v.consts, v.order, len(n.key), v.unit, n.parent >= 0)
	lead, ids := constColumns(v.consts)
	for _, child := range n.children {
		w := wake{child: c.q.nodes[child].view, lead: ids}
		cols := slices.Clone(lead)
		for _, x := range c.q.nodes[child].key {
			w.key = append(w.key, column[x])
		}
		w.index = c.find(v.relation, append(cols, w.key...))
		v.used = append(v.used, use{v.relation, w.index})
		v.wakes = append(v.wakes, w)
		fmt.Fprint(&c.sign, " below ", w.child.serial, w.key)
	}
	c.own(i, c.s.fillInner)
}

func (c *compiler) generalized(i int) {
	n := &c.q.nodes[i]
	vars := c.p.Nodes[i].Vars
	fmt.Fprint(&c.sign, "generalized ", len(vars), len(n.key), n.parent >= 0)
	for _, child := range n.children {
		w := wake{child: c.q.nodes[child].view}
		for _, x := range c.q.nodes[child].key {
			w.key = append(w.key, slices.Index(vars, x))
		}
		n.wakes = append(n.wakes, w)
		fmt.Fprint(&c.sign, " below ", w.child.serial, w.key)
	}
	c.own(i, c.s.fillGeneralized)
}

// own gives node i the view that it describes: one that is there already, or a new
// one, which is filled.
func (c *compiler) own(i int, fill func(*view)) {
	n := &c.q.nodes[i]
	if !c.shareView(n) {
		return
	}
	c.ownTrie(n)
	if !c.s.supply.node(c.s, i, n.slot) {
		fill(n.view)
	}
}

// fillInner loads the live tuples of an inner node from its relation. They come
// in groups with the same partners in the first child, which is asked once for
// each group.
func (s *Store) fillInner(n *view) {
	first := &n.wakes[0]
	x := first.index
	space, root := s.at(x)
	var c trie.Cursor
	c.Seek(space, root, len(x.cols), first.lead)
	most := 0
	if len(first.lead) == 0 {
		most = space.Count(root, len(x.cols))
	}
	out := s.newRows(n.columns, most)
	tuple := make([]uint64, len(x.cols))
	group, begun, partners := make([]uint64, len(first.key)), false, false
	for s.filling(&c) {
		for i, col := range x.cols {
			tuple[col] = c.Col(i)
		}
		for i, col := range first.key {
			if group[i] != tuple[col] {
				group[i], begun = tuple[col], false
			}
		}
		if !begun {
			begun, partners = true, s.hasGroup(first.child, group)
		}
		if !partners || !s.alive(n, tuple, first) {
			continue
		}
		for _, col := range n.order {
			out.words = append(out.words, tuple[col])
		}
		out.words = append(out.words, n.weigh(uint64(c.Weight())))
	}
	out.sort()
	s.roots[n.slot] = s.build(out)
}

// fillGeneralized loads the keys that every child has.
func (s *Store) fillGeneralized(n *view) {
	w := &n.wakes[0]
	child := w.child
	space, root := s.trieOf(child)
	var c trie.Cursor
	c.Seek(space, root, child.columns, child.lead)
	out := s.newRows(n.columns, 0)
	tuple := make([]uint64, n.columns)
	from := len(child.lead)
	for s.filling(&c) {
		for i, at := range w.key {
			tuple[at] = c.Col(from + i)
		}
		if m := out.Len(); m > 0 && slices.Equal(out.row(m - 1)[:n.columns], tuple) {
			continue
		}
		if s.alive(n, tuple, w) {
			out.words = append(append(out.words, tuple...), 1)
		}
	}
	if out.Len() > 0 {
		out.sort()
		for i := range out.Len() {
			out.row(i)[n.columns] = 1
		}
	}
	s.roots[n.slot] = s.build(out)
}
