package views

import (
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/trie"
)

// Fix makes d walk only the answers in which variables have given ids: fixed is by
// variable of the query, 0 leaves one free. It belongs before the first Next, and the
// slice must stay as it is.
//
// Where a trie has the fixed variables right behind what it is searched by, the
// others are not met; elsewhere they are passed over one by one, as soon as they are
// bound. So the cost is that of the answers with the ids where each node whose tuples
// have changed is ordered by them, and never more steps than without.
func (d *Deltas) Fix(fixed []uint64) {
	d.fixed = fixed
	copy(d.binding, fixed)
	if f, ok := d.from.(*structural); ok {
		f.fixed = fixed
	}
}

// fits reports whether a variable may have an id.
func (d *Deltas) fits(v query.Var, id uint64) bool {
	return d.fixed == nil || d.fixed[v] == 0 || d.fixed[v] == id
}

// bind binds variables to the columns of a tuple. It is false, with some of them
// bound, where one is fixed to another id.
func (d *Deltas) bind(vars []query.Var, tuple []uint64) bool {
	for i, v := range vars {
		if !d.fits(v, tuple[i]) {
			return false
		}
		d.binding[v] = tuple[i]
	}
	return true
}

// fixedPrefix is how many of the variables, from the first on, are fixed.
func fixedPrefix(vars []query.Var, fixed []uint64) int {
	if fixed == nil {
		return 0
	}
	n := 0
	for n < len(vars) && fixed[vars[n]] != 0 {
		n++
	}
	return n
}

// appendFixed appends the ids of the variables that a prefix of the list has fixed.
func appendFixed(dst []uint64, vars []query.Var, fixed []uint64) []uint64 {
	for _, v := range vars[:fixedPrefix(vars, fixed)] {
		dst = append(dst, fixed[v])
	}
	return dst
}

// lookup is what the tuples of a node are searched by where variables are fixed: the
// constants, and the ids of those that come next in its trie.
func (n *node) lookup(fixed []uint64) []uint64 {
	if fixed == nil {
		return n.lead
	}
	prefix := append([]uint64(nil), n.lead...)
	prefix = appendFixed(prefix, n.key, fixed)
	if len(prefix) == len(n.lead)+len(n.key) {
		prefix = appendFixed(prefix, n.rest, fixed)
	}
	return prefix
}

// Matching starts a walk over the answers of one version, as what a walk from nothing
// would give: each is new. fixed is as in Fix, or nil.
//
// It begins at the node whose trie is ordered by the most of the fixed variables, and
// goes up and down from its tuples, so that the others are not met. Cost: as that of
// Fix; where no trie is ordered by them that of all answers.
func (q *Query) Matching(b *Bound, fixed []uint64) *Deltas {
	all := &everything{structural: structural{q: q, old: b, now: b}, fixed: fixed}
	best := 0
	for i := range q.nodes {
		if n := len(q.nodes[i].lookup(fixed)) - len(q.nodes[i].lead); n > best {
			all.start, best = i, n
		}
	}
	d := new(Deltas)
	d.reset(q, b, b, all)
	d.Fix(fixed)
	return d
}

// everything tells that all tuples of one node are new, and no others.
type everything struct {
	structural
	start  int
	fixed  []uint64
	sought []uint64
	cursor trie.Cursor
}

func (c *everything) seek(node int) bool {
	if node != c.start || c.begun {
		return false
	}
	c.begun = true
	n, b := &c.q.nodes[node], c.now.nodes[node]
	c.sought = n.lookup(c.fixed)
	c.cursor.Seek(b.space, b.root, n.columns, c.sought)
	return true
}

func (c *everything) next() bool { return c.cursor.Next() }

func (c *everything) change() (tuple []uint64, before, after int64) {
	n := &c.q.nodes[c.start]
	c.tuple = append(c.tuple[:0], c.sought...)
	for i := len(c.sought); i < n.columns; i++ {
		c.tuple = append(c.tuple, c.cursor.Col(i))
	}
	return c.tuple, 0, c.cursor.Weight()
}
