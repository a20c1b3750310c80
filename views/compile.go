package views

import (
	"slices"

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
}

// compile makes the query and fills its tries, children before parents. On
// error (also the first one of check) the query lists what has been taken so
// far.
func (s *Store) compile(p *plan.Plan, r Resolver, check func() error) (*Query, error) {
	s.check, s.stopped = check, check()
	q := &Query{Plan: p, unit: p.Query.Distinct}
	c := &compiler{s, q, r, p}
	q.nodes = make([]node, len(p.Nodes))
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		if err := c.node(i); err != nil {
			return q, err
		}
	}
	return q, s.stopped
}

func (c *compiler) node(i int) error {
	pn, n := &c.p.Nodes[i], &c.q.nodes[i]
	*n = node{parent: pn.Parent, children: pn.Children, key: pn.Key, columns: len(pn.Vars)}
	n.rest = pn.Vars[len(pn.Key):]
	n.unit = c.q.unit || c.p.Query.Set
	if pn.Alias < 0 {
		n.unit = true
		c.generalized(i)
		return nil
	}
	a := &c.p.Aliases[pn.Alias]
	column, err := c.alias(n, a)
	if err != nil {
		return err
	}
	if len(n.children) == 0 {
		c.leaf(n, column)
		return nil
	}
	c.inner(i, column)
	return nil
}

// alias sets the relation of a node, its own or a derived one, and returns the
// column in it of each variable.
func (c *compiler) alias(n *node, a *plan.Alias) (map[query.Var]int, error) {
	base := c.s.relations[c.r.RelationNumber(a.Relation, a.Window)]
	if !slices.Contains(c.q.bases, base) {
		c.q.bases = append(c.q.bases, base)
	}
	var consts []constCol
	for _, k := range a.Consts {
		consts = append(consts, constCol{k.Col, c.r.TermID(k.Term)})
	}
	column := make(map[query.Var]int, len(a.Vars))
	if a.Direct() {
		n.relation, n.consts = base, consts
		for i, v := range a.Vars {
			column[v] = a.Cols[i]
		}
		return column, nil
	}
	d, err := c.derived(base, a, consts)
	if err != nil {
		return nil, err
	}
	n.relation = &d.Relation
	for i, v := range a.Vars {
		column[v] = i
	}
	// A derived relation has set mode in its weights already: with folded
	// columns a weight is a number of facts, not of contributions.
	n.unit = c.q.unit
	return column, nil
}

// derived makes the relation of an alias that is no plain selection, or shares
// one that is the same.
func (c *compiler) derived(base *Relation, a *plan.Alias, consts []constCol) (*derived, error) {
	for _, d := range base.derived {
		if d.same(a, consts, c.p.Query.Set) {
			d.uses++
			c.q.fed = append(c.q.fed, d)
			return d, nil
		}
	}
	d := &derived{base: base, keep: a.Cols, unit: c.p.Query.Set, uses: 1}
	d.arity = len(a.Cols)
	d.match = newMatch(a, c.p.Query.Atoms[a.Atom].Args, consts, c.r)
	x := &Index{slot: c.s.takeSlot(), cols: ascending(d.arity)}
	d.indexes, d.primary = []*Index{x}, x
	c.q.made = append(c.q.made, use{&d.Relation, x})
	base.derived = append(base.derived, d)
	c.q.fed = append(c.q.fed, d)
	filled, err := c.s.derive(d, base.indexes[0])
	if err != nil {
		return nil, err
	}
	c.s.roots[x.slot] = c.s.build(filled)
	return d, nil
}

// same reports whether the alias of another query would derive the same facts.
func (d *derived) same(a *plan.Alias, consts []constCol, unit bool) bool {
	m := d.match
	return len(m.filters)+len(m.values)+len(a.Filters)+len(a.Values) == 0 && d.unit == unit &&
		slices.Equal(d.keep, a.Cols) && slices.Equal(m.consts, consts) && slices.Equal(m.equal, a.Equal)
}

// use takes a reference on the index of r ordered by the columns lead.
func (c *compiler) use(r *Relation, lead []int) *Index {
	n := len(r.indexes)
	x := c.s.index(r, lead)
	if len(r.indexes) > n {
		c.q.made = append(c.q.made, use{r, x})
	}
	c.q.used = append(c.q.used, use{r, x})
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
	cols, ids := constColumns(n.consts)
	n.lead = ids
	for _, v := range n.key {
		cols = append(cols, column[v])
	}
	n.leaf = c.use(n.relation, cols)
	n.columns = n.relation.arity
	varAt := make(map[int]query.Var, len(column))
	for v, col := range column {
		varAt[col] = v
	}
	rest := make([]query.Var, 0, n.columns-len(cols))
	for _, col := range n.leaf.cols[len(cols):] {
		rest = append(rest, varAt[col])
	}
	n.rest = rest
	if n.parent >= 0 {
		n.changed = n.leaf.subscribe(len(cols))
	}
}

// ownTrie gives an inner or generalized node its slot.
func (c *compiler) ownTrie(n *node) {
	n.slot = c.s.takeSlot()
	c.q.own = append(c.q.own, own{n.slot, n.columns})
	if n.parent >= 0 {
		n.changed = &toggles{width: len(n.key), refs: 1}
	}
}

func (c *compiler) inner(i int, column map[query.Var]int) {
	n := &c.q.nodes[i]
	c.ownTrie(n)
	for _, v := range c.p.Nodes[i].Vars {
		n.order = append(n.order, column[v])
	}
	lead, ids := constColumns(n.consts)
	for _, child := range n.children {
		w := wake{child: child, lead: ids}
		cols := slices.Clone(lead)
		for _, v := range c.q.nodes[child].key {
			w.key = append(w.key, column[v])
		}
		w.index = c.use(n.relation, append(cols, w.key...))
		n.wakes = append(n.wakes, w)
	}
	c.s.fillInner(c.q, n)
}

func (c *compiler) generalized(i int) {
	n := &c.q.nodes[i]
	c.ownTrie(n)
	vars := c.p.Nodes[i].Vars
	for _, child := range n.children {
		w := wake{child: child}
		for _, v := range c.q.nodes[child].key {
			w.key = append(w.key, slices.Index(vars, v))
		}
		n.wakes = append(n.wakes, w)
	}
	c.s.fillGeneralized(c.q, n)
}

// fillInner loads the live tuples of an inner node from its relation. They come
// in groups with the same partners in the first child, which is asked once for
// each group.
func (s *Store) fillInner(q *Query, n *node) {
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
			begun, partners = true, s.hasGroup(&q.nodes[first.child], group)
		}
		if !partners || !s.alive(q, n, tuple, first.child) {
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
func (s *Store) fillGeneralized(q *Query, n *node) {
	w := &n.wakes[0]
	child := &q.nodes[w.child]
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
		if s.alive(q, n, tuple, w.child) {
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
