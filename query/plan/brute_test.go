package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/triegs/triegs/query"
)

// brute looks at every join tree that the design names: each spanning tree of
// the aliases in which the nodes of each variable are connected, each root, and
// at each node each chain of child keys that hold the key of the node. It
// shares nothing with the search.
type brute struct {
	schemas [][]query.Var
	out     map[query.Var]bool
	// key, if it is not nil, is what the root has to hold; it stands instead of the
	// output.
	key   []query.Var
	visit func(t *bruteTree)
}

// bruteTree is a rooted tree with lifted children.
type bruteTree struct {
	alias    int // -1 for a generalized node
	schema   []query.Var
	children []*bruteTree
}

// run calls visit for every tree that is connex for the output.
func (b *brute) run() {
	m := len(b.schemas)
	edges := make([][2]int, 0, m)
	if m == 1 {
		b.roots(edges)
		return
	}
	// All labelled trees by their Pruefer codes.
	code := make([]int, m-2)
	for {
		edges = prueferTree(edges[:0], code, m)
		if b.connected(edges) {
			b.roots(edges)
		}
		i := 0
		for ; i < len(code); i++ {
			if code[i]++; code[i] < m {
				break
			}
			code[i] = 0
		}
		if i == len(code) {
			return
		}
	}
}

func prueferTree(edges [][2]int, code []int, m int) [][2]int {
	degree := make([]int, m)
	for i := range degree {
		degree[i] = 1
	}
	for _, c := range code {
		degree[c]++
	}
	for _, c := range code {
		leaf := slices.Index(degree, 1)
		edges = append(edges, [2]int{leaf, c})
		degree[leaf]--
		degree[c]--
	}
	u := slices.Index(degree, 1)
	v := u + 1 + slices.Index(degree[u+1:], 1)
	return append(edges, [2]int{u, v})
}

func meet(a, b []query.Var) (both []query.Var) {
	for _, v := range a {
		if slices.Contains(b, v) {
			both = append(both, v)
		}
	}
	return both
}

// connected uses that a tree is a join tree when the sizes of its edges add up
// to the total arity less the number of variables.
func (b *brute) connected(edges [][2]int) bool {
	sum := 0
	all := map[query.Var]bool{}
	for _, s := range b.schemas {
		sum += len(s)
		for _, v := range s {
			all[v] = true
		}
	}
	for _, e := range edges {
		sum -= len(meet(b.schemas[e[0]], b.schemas[e[1]]))
	}
	return sum == len(all)
}

func (b *brute) roots(edges [][2]int) {
	next := make([][]int, len(b.schemas))
	for _, e := range edges {
		next[e[0]] = append(next[e[0]], e[1])
		next[e[1]] = append(next[e[1]], e[0])
	}
	for r := range b.schemas {
		for _, t := range b.trees(r, -1, next) {
			if b.key == nil && b.connex(t) || b.key != nil && len(meet(b.schemas[r], b.key)) == len(b.key) {
				b.visit(t)
			}
		}
	}
}

// trees returns the subtrees at alias p for all choices of chains.
func (b *brute) trees(p, parent int, next [][]int) []*bruteTree {
	key := b.key
	if parent >= 0 {
		key = meet(b.schemas[p], b.schemas[parent])
	}
	combos := [][]*bruteTree{nil} // choices of the subtrees of the children
	for _, c := range next[p] {
		if c == parent {
			continue
		}
		var more [][]*bruteTree
		for _, t := range b.trees(c, p, next) {
			for _, done := range combos {
				more = append(more, append(slices.Clone(done), t))
			}
		}
		combos = more
	}
	var keys [][]query.Var
	for _, c := range next[p] {
		if c == parent {
			continue
		}
		k := meet(b.schemas[p], b.schemas[c])
		if len(meet(k, key)) == len(key) && !slices.ContainsFunc(keys, func(l []query.Var) bool { return slices.Equal(k, l) }) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b []query.Var) int { return cmp.Compare(len(a), len(b)) })
	var out []*bruteTree
	for set := range 1 << len(keys) {
		var chain [][]query.Var
		ok := true
		for i, k := range keys {
			if set&(1<<i) != 0 {
				if n := len(chain); n > 0 {
					ok = ok && len(chain[n-1]) < len(k) && len(meet(chain[n-1], k)) == len(chain[n-1])
				}
				chain = append(chain, k)
			}
		}
		for _, children := range combos {
			if ok {
				out = append(out, b.lift(p, chain, children))
			}
		}
	}
	return out
}

func (b *brute) lift(p int, chain [][]query.Var, children []*bruteTree) *bruteTree {
	own := &bruteTree{alias: p, schema: b.schemas[p]}
	for _, c := range children {
		if !slices.ContainsFunc(chain, func(k []query.Var) bool { return slices.Equal(k, meet(b.schemas[p], c.schema)) }) {
			own.children = append(own.children, c)
		}
	}
	top := own
	for _, k := range slices.Backward(chain) {
		g := &bruteTree{alias: -1, schema: k, children: []*bruteTree{top}}
		for _, c := range children {
			if slices.Equal(k, meet(b.schemas[p], c.schema)) {
				g.children = append(g.children, c)
			}
		}
		top = g
	}
	return top
}

// connex tells whether the nodes that are reached from the root over keys of
// output variables hold all the output.
func (b *brute) connex(root *bruteTree) bool {
	held := map[query.Var]bool{}
	var walk func(t *bruteTree)
	walk = func(t *bruteTree) {
		for _, v := range t.schema {
			held[v] = true
		}
		for _, c := range t.children {
			if !slices.ContainsFunc(meet(c.schema, t.schema), func(v query.Var) bool { return !b.out[v] }) {
				walk(c)
			}
		}
	}
	walk(root)
	for v := range b.out {
		if !held[v] {
			return false
		}
	}
	return true
}

// measure counts what a Score counts, but for the index orders, below the
// aliases of the given way.
func (t *bruteTree) measure(aliases []Alias, life lives, above []int) Score {
	s := Score{Nodes: 1, Bounded: true}
	if t.alias >= 0 {
		s.SumDepth, s.Height = len(above), len(above)+1
		if !aliases[t.alias].Window.IsZero() {
			s.WindowHeight = s.Height
		}
		for _, a := range above {
			c := life.churn(&aliases[a], &aliases[t.alias])
			s.Churn += c
			s.Bounded = s.Bounded && c <= 1
		}
		above = append(slices.Clone(above), t.alias)
	}
	for _, c := range t.children {
		d := c.measure(aliases, life, above)
		s.Bounded = s.Bounded && d.Bounded
		s.SumDepth += d.SumDepth
		s.Churn += d.Churn
		s.Height = max(s.Height, d.Height)
		s.WindowHeight = max(s.WindowHeight, d.WindowHeight)
		s.Nodes += d.Nodes
	}
	return s
}

// loose counts for each node the different keys of children that do not hold all of
// it, and the root if it is an alias of more than the key.
func (t *bruteTree) loose(key []query.Var) (n int) {
	if t.alias >= 0 && len(t.schema) > len(key) {
		n++
	}
	var walk func(t *bruteTree)
	walk = func(t *bruteTree) {
		keys := map[string]bool{}
		for _, c := range t.children {
			if k := meet(t.schema, c.schema); len(k) < len(t.schema) {
				keys[fmt.Sprint(k)] = true
			}
			walk(c)
		}
		n += len(keys)
	}
	walk(t)
	return n
}

// bruteCluster returns the least number of loose ways, and the least score of the
// trees that have so many.
func bruteCluster(schemas [][]query.Var, aliases []Alias, key []query.Var) (loose int, best Score) {
	b := &brute{schemas: schemas, key: append([]query.Var{}, key...)}
	ok := false
	b.visit = func(t *bruteTree) {
		s, n := t.whole(aliases), t.loose(key)
		if !ok || n < loose || n == loose && lessScore(s, best) {
			loose, best, ok = n, s, true
		}
	}
	b.run()
	return loose, best
}

// whole measures a tree from its root.
func (t *bruteTree) whole(aliases []Alias) Score {
	s := t.measure(aliases, longest(aliases), nil)
	s.Bounded = s.Bounded && s.WindowHeight > 0 && s.WindowHeight <= 2
	return s
}

// lessScore says here again, from the design, which of two scores is the lesser.
func lessScore(s, t Score) bool {
	if s.Bounded != t.Bounded {
		return s.Bounded
	}
	return slices.Compare(
		[]int{int(s.Churn), s.SumDepth, s.Height, s.Nodes},
		[]int{int(t.Churn), t.SumDepth, t.Height, t.Nodes}) < 0
}

// bruteBest returns the least score and the least height, ok false when there
// is no tree. Of the aliases only the windows matter.
func bruteBest(schemas [][]query.Var, aliases []Alias, out []query.Var) (best Score, height int, ok bool) {
	b := &brute{schemas: schemas, out: map[query.Var]bool{}}
	for _, v := range out {
		b.out[v] = true
	}
	b.visit = func(t *bruteTree) {
		s := t.whole(aliases)
		if !ok || lessScore(s, best) {
			best = s
		}
		if !ok || s.Height < height {
			height = s.Height
		}
		ok = true
	}
	b.run()
	return best, height, ok
}
