package plan

import (
	"cmp"
	"slices"

	"github.com/triegs/triegs/query"
)

// The search for the best tree.
//
// A tree is built top-down. A part is a set of aliases that hangs below a key:
// the variables that it shares with everything else. To build a part, choose an
// alias p that holds the key as its top, and hang the components of the rest
// below p: what is connected by variables outside p has to stay together, what
// is not gains nothing from it. Above p a chain of generalized nodes
// [k1], [k2], ... may stand, each ki holding the key of the part and contained
// in the next one and in p; components whose key is some ki hang under [ki]
// instead of under p, and are so rid of one alias above them.
//
// A component of the rest is the component of the whole query, cut at its own
// key, that some alias of it lies in. So there are no more parts than twice the
// number of tree edges, each is solved once, and the tree with the least sum of
// depths, and among those of the least height, is found exactly in polynomial
// time. (A search over spanning trees of the intersection graph, as CROWN does
// it, sees the same trees many times over and explodes on stars.)
//
// With windows the aliases above an alias do not weigh the same (churn), but
// they still add up, and the same search finds the least sum. It can be told to
// look only at trees in which windows cost amortised O(1): no window above a
// shorter one, and facts with windows pass so many levels only. Then a part is
// solved for each number of levels that are left to it, and what hangs under a
// top has one less, what is lifted above it has not.
//
// The tree of a cluster hangs below its output variables as a part below its key.
// Its edges carry annotations, and what a tree is chosen by first is on how many
// ways one tuple below may change many above. Parts that hang under one top by the
// same key are one such way, so that keeping them together gains nothing here
// either.

// exhaustiveMax is the number of aliases up to which all trees of the least
// depth sum are compared in every entry of their score.
const exhaustiveMax = 6

// tiedMax bounds the number of equally good subtrees that are kept for a part of
// a small query, and of equally heavy chains that are tried above an alias of
// any. What lies beyond could only win by a lesser height or fewer nodes.
const tiedMax = 256

// shape is a subtree before its nodes are numbered. Shapes are shared between
// candidates and never written after they are made.
type shape struct {
	alias    int         // -1 for a generalized node
	schema   []query.Var // of a generalized node, ascending
	children []*shape
	order    int // by which siblings are sorted: the alias, or that of the first child
}

// candidate is a subtree for a part with the entries of its score that add up
// from the bottom.
type candidate struct {
	*shape
	cost   cost // of the edges, and the aliases above others, within the subtree
	height int  // aliases on the longest way down
	nodes  int
}

// better is the lexicographic order of candidates for the same part.
func (c candidate) better(d candidate) bool {
	return cmp.Or(c.cost.compare(d.cost), cmp.Compare(c.height, d.height), cmp.Compare(c.nodes, d.nodes)) < 0
}

// part is a set of aliases to be hung below a key.
type part struct {
	key     []query.Var
	keyID   int
	aliases []int // ascending
	in      []bool
	windows bool // some alias has a window
	// best holds, by the levels that are left for facts with windows, the
	// subtrees of the least cost; none where these do not suffice.
	best   [free + 1][]candidate
	solved [free + 1]bool
}

// Levels for facts with windows.
const (
	windowLevels = 2 // over these a window costs amortised O(1)
	free         = windowLevels + 1
)

// cost is what trees are compared by first. It adds up, entry by entry, and is
// ordered like a pair.
type cost struct {
	// loose counts what Cluster.NonStrong does, 0 where edges are Boolean.
	loose int64
	// rest is the churn, above a sum of depths.
	rest int64
}

// impossible is more than the cost of any tree, and a thousand times as much is
// still an int64.
var impossible = cost{loose: 1 << 52}

func (c cost) plus(d cost) cost  { return cost{c.loose + d.loose, c.rest + d.rest} }
func (c cost) minus(d cost) cost { return cost{c.loose - d.loose, c.rest - d.rest} }

func (c cost) compare(d cost) int {
	return cmp.Or(cmp.Compare(c.loose, d.loose), cmp.Compare(c.rest, d.rest))
}

func (c cost) less(d cost) bool { return c.compare(d) < 0 }

// search holds what is known of one query, or of one cluster.
type search struct {
	*ground
	schemas [][]query.Var // of each alias, ascending
	occ     [][]int       // by variable: the aliases that hold it
	parts   []*part
	partIDs map[string]int // by key and least alias
	keys    [][]query.Var
	keyIDs  map[string]int
	within  [][]bool // within[j][k]: key j is contained in key k
	rest    [][]int  // by alias: the parts that the others fall into when it is the top
	costs   [][]cost // by alias and part of rest: what it costs the part to have it above
	longer  [][]bool // likewise: the alias holds facts longer than some alias of the part
	keep    int      // tied candidates kept for each part
	name    []byte   // scratch
}

// bestTrees returns the trees of the least cost, in a fixed order: all of them
// for few aliases, else one of the least height. The hypergraph is acyclic, also
// with the key as an atom. The cost is what Cluster.NonStrong counts; where that is
// equal (as it is for Boolean edges, which do not count), the sum of churn; then the
// depth sum. Levels, if not free, bounds how many aliases may stand above
// each other on the way of a fact with a window, and lets none stand above a
// shorter window; there may then be no tree.
//
// Cost: O(m s) to find the parts of m aliases of total arity s, O(m^2) to weigh
// them, then one step for each part, each alias that may be its top and each
// part below that.
func bestTrees(g *ground, levels int) []candidate {
	if len(g.rels) <= exhaustiveMax {
		return bestTreesKeeping(g, levels, tiedMax)
	}
	return bestTreesKeeping(g, levels, 1)
}

func bestTreesKeeping(g *ground, levels, keep int) []candidate {
	s := &search{
		ground: g, schemas: make([][]query.Var, len(g.rels)),
		partIDs: make(map[string]int), keyIDs: make(map[string]int), keep: keep,
	}
	for a := range g.rels {
		s.schemas[a] = slices.Sorted(slices.Values(g.rels[a].Vars))
		for _, v := range s.schemas[a] {
			for int(v) >= len(s.occ) {
				s.occ = append(s.occ, nil)
			}
			s.occ[v] = append(s.occ[v], a)
		}
	}
	all := make([]int, len(s.schemas))
	for a := range all {
		all[a] = a
	}
	// The whole is no component, though it has the empty key like the
	// components of a product, or that of a cluster its output.
	root := s.addPart(s.keyID(g.key), all)
	s.rest = make([][]int, len(s.schemas))
	c := newCutter(s)
	for p := range s.schemas {
		s.rest[p] = c.cut(p)
	}
	s.within = make([][]bool, len(s.keys))
	for j := range s.keys {
		s.within[j] = make([]bool, len(s.keys))
		for k := range s.keys {
			s.within[j][k] = contains(s.keys[k], s.keys[j])
		}
	}
	s.weigh()
	return s.solve(root, levels)
}

// weigh finds what each top costs each part that may hang below it.
func (s *search) weigh() {
	life := longest(s.rels)
	s.costs, s.longer = make([][]cost, len(s.rest)), make([][]bool, len(s.rest))
	for top, parts := range s.rest {
		s.costs[top], s.longer[top] = make([]cost, len(parts)), make([]bool, len(parts))
		for i, r := range parts {
			sub, c := s.parts[r], &s.costs[top][i]
			c.rest = int64(len(sub.aliases))
			if !sub.windows {
				continue
			}
			for _, a := range sub.aliases {
				churn := life.churn(&s.rels[top], &s.rels[a])
				c.rest += churn << depthBits
				s.longer[top][i] = s.longer[top][i] || churn > 1
			}
		}
	}
}

// part returns the number of the part with this key and these aliases, of which
// the first is the least.
func (s *search) part(key []query.Var, aliases []int) int {
	s.name = appendInt(keyName(s.name[:0], key), aliases[0])
	if n, ok := s.partIDs[string(s.name)]; ok {
		return n
	}
	id := string(s.name)
	n := s.addPart(s.keyID(key), slices.Sorted(slices.Values(aliases)))
	s.partIDs[id] = n
	return n
}

func (s *search) keyID(key []query.Var) int {
	s.name = keyName(s.name[:0], key)
	id, ok := s.keyIDs[string(s.name)]
	if !ok {
		id = len(s.keys)
		s.keyIDs[string(s.name)] = id
		s.keys = append(s.keys, slices.Clone(key))
	}
	return id
}

func (s *search) addPart(keyID int, aliases []int) int {
	p := &part{key: s.keys[keyID], keyID: keyID, aliases: aliases, in: make([]bool, len(s.schemas))}
	for _, a := range aliases {
		p.in[a] = true
		p.windows = p.windows || !s.rels[a].Window.IsZero()
	}
	s.parts = append(s.parts, p)
	return len(s.parts) - 1
}

func keyName(dst []byte, key []query.Var) []byte {
	for _, v := range key {
		dst = appendInt(dst, int(v))
	}
	return dst
}

func appendInt(dst []byte, n int) []byte {
	return append(dst, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// cutter finds what the rest of a query falls into when one alias is taken as
// the top. Its slices are stamped, so that they need no clearing.
type cutter struct {
	s       *search
	top     int
	comp    int
	reached []int // by alias: the top for which it was reached
	passed  []int // by variable: the top for which it was walked along
	held    []int // by variable: the last top that holds it
	inKey   []int // by variable: the last component that has it in its key
}

func newCutter(s *search) *cutter {
	n := len(s.occ)
	return &cutter{
		s: s, reached: make([]int, len(s.schemas)),
		passed: make([]int, n), held: make([]int, n), inKey: make([]int, n),
	}
}

// cut returns the parts below the top, ordered by their least alias.
func (c *cutter) cut(top int) []int {
	c.top = top + 1 // Stamps start at 1.
	for _, v := range c.s.schemas[top] {
		c.held[v] = c.top
	}
	c.reached[top] = c.top
	var parts []int
	for a := range c.s.schemas {
		if c.reached[a] != c.top {
			parts = append(parts, c.component(a))
		}
	}
	return parts
}

// component walks from alias a along variables that the top does not hold.
func (c *cutter) component(a int) int {
	c.comp++
	var key []query.Var
	found := []int{a}
	c.reached[a] = c.top
	for i := 0; i < len(found); i++ {
		for _, v := range c.s.schemas[found[i]] {
			if c.held[v] == c.top {
				if c.inKey[v] != c.comp {
					c.inKey[v] = c.comp
					key = append(key, v)
				}
				continue
			}
			if c.passed[v] == c.top {
				continue
			}
			c.passed[v] = c.top
			for _, b := range c.s.occ[v] {
				if c.reached[b] != c.top {
					c.reached[b] = c.top
					found = append(found, b)
				}
			}
		}
	}
	slices.Sort(key)
	return c.s.part(key, found)
}

// solve returns the best subtrees of a part that has so many levels left, none
// if there is no such subtree. The parts below any of its tops have fewer
// aliases, so the recursion ends.
func (s *search) solve(n, levels int) []candidate {
	pt := s.parts[n]
	if !pt.windows {
		levels = free
	}
	if pt.solved[levels] {
		return pt.best[levels]
	}
	var best []candidate
	for _, top := range pt.aliases {
		if levels == 0 || !contains(s.schemas[top], pt.key) {
			continue
		}
		below, sum := s.below(pt, top, levels)
		chains, saved := s.chains(pt.keyID, below)
		sum = sum.minus(saved)
		if s.annotated && n == 0 && len(chains[0]) == 0 {
			sum.loose++ // for the edge above the root
		}
		if !sum.less(impossible) || len(best) > 0 && best[0].cost.less(sum) {
			continue
		}
		if len(best) > 0 && sum.less(best[0].cost) {
			best = best[:0]
		}
		for _, chain := range chains {
			best = s.assemble(best, top, chain, below, sum)
		}
	}
	pt.best[levels], pt.solved[levels] = best, true
	return best
}

// hanging is a part that hangs below a top, or is lifted above it.
type hanging struct {
	*part
	under, lifted []candidate
	saved         cost // what lifting it saves
}

// from returns the subtrees among which the part chooses.
func (h *hanging) from(chain []int) []candidate {
	if slices.Contains(chain, h.keyID) {
		return h.lifted
	}
	return h.under
}

// below solves the parts below a top, and tells what they cost when all hang
// under it: impossible or more when it cannot be.
func (s *search) below(pt *part, top, levels int) (below []hanging, sum cost) {
	under := levels
	if levels < free {
		under--
	}
	var keys []int
	for i, r := range s.rest[top] {
		sub := s.parts[r]
		if !pt.in[sub.aliases[0]] {
			continue
		}
		h := hanging{part: sub, under: s.solve(r, under), lifted: s.solve(r, levels)}
		down := impossible
		if len(h.under) > 0 && (levels == free || !s.longer[top][i]) {
			down = h.under[0].cost.plus(s.costs[top][i])
			// A key that holds all of the top counts as well, but what hangs by it is
			// lifted, which is better in everything.
			if s.annotated && !slices.Contains(keys, sub.keyID) {
				keys = append(keys, sub.keyID)
				down.loose++
			}
		}
		if len(h.lifted) > 0 {
			h.saved = down.minus(h.lifted[0].cost)
		}
		sum = sum.plus(down)
		below = append(below, h)
	}
	return below, sum
}

// contains reports whether all of key is in schema; both ascend.
func contains(schema, key []query.Var) bool {
	if len(key) > len(schema) {
		return false
	}
	for _, v := range key {
		i, ok := slices.BinarySearch(schema, v)
		if !ok {
			return false
		}
		schema = schema[i+1:]
	}
	return true
}

// chains returns the chains of keys, ascending under inclusion, each key
// holding base, that save the most, and how much that is. Ties come in a fixed
// order and up to tiedMax of them. The empty chain is returned only when there
// is nothing to lift.
func (s *search) chains(base int, below []hanging) (chains [][]int, saved cost) {
	weight := make(map[int]cost)
	var keys []int
	for i := range below {
		sub := &below[i]
		if !s.within[base][sub.keyID] || sub.saved == (cost{}) {
			continue
		}
		if weight[sub.keyID] == (cost{}) {
			keys = append(keys, sub.keyID)
		}
		weight[sub.keyID] = weight[sub.keyID].plus(sub.saved)
	}
	slices.SortFunc(keys, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(s.keys[a]), len(s.keys[b])), slices.Compare(s.keys[a], s.keys[b]))
	})
	total := make([]cost, len(keys)) // of the best chain that ends here
	under := make([][]int, len(keys))
	for i, k := range keys {
		var top cost
		for j := range i {
			if !s.within[keys[j]][k] {
				continue
			}
			if top.less(total[j]) {
				top, under[i] = total[j], under[i][:0]
			}
			if total[j] == top {
				under[i] = append(under[i], j)
			}
		}
		total[i] = top.plus(weight[k])
		if saved.less(total[i]) {
			saved = total[i]
		}
	}
	if len(keys) == 0 {
		return [][]int{nil}, cost{}
	}
	var walk func(i int, tail []int)
	walk = func(i int, tail []int) {
		tail = append([]int{keys[i]}, tail...)
		if len(under[i]) == 0 {
			chains = append(chains, tail)
		}
		for _, j := range under[i] {
			if len(chains) < tiedMax {
				walk(j, tail)
			}
		}
	}
	for i := range keys {
		if total[i] == saved && len(chains) < tiedMax {
			walk(i, nil)
		}
	}
	return chains, saved
}

// assemble adds to best the subtrees with the given top and chain over all
// choices of the subtrees below. When one candidate is kept, only a better one
// replaces it.
func (s *search) assemble(best []candidate, top int, chain []int, below []hanging, sum cost) []candidate {
	pick := make([]int, len(below))
	for {
		c := candidate{cost: sum, height: 1, nodes: 1 + len(chain)}
		for i := range below {
			b := below[i].from(chain)[pick[i]]
			h := b.height
			if !slices.Contains(chain, below[i].keyID) {
				h++
			}
			c.height = max(c.height, h)
			c.nodes += b.nodes
		}
		switch {
		case s.keep > 1 && len(best) < s.keep:
			c.shape = s.join(top, chain, below, pick)
			best = append(best, c)
		case s.keep == 1 && (len(best) == 0 || c.better(best[0])):
			c.shape = s.join(top, chain, below, pick)
			best = append(best[:0], c)
		}
		if s.keep == 1 || len(best) >= s.keep || !next(pick, chain, below) {
			return best
		}
	}
}

// next steps the choice of subtrees like a counter.
func next(pick, chain []int, below []hanging) bool {
	for i := range pick {
		if pick[i]++; pick[i] < len(below[i].from(chain)) {
			return true
		}
		pick[i] = 0
	}
	return false
}

// join hangs the chosen subtrees under the chain and the top.
func (s *search) join(top int, chain []int, below []hanging, pick []int) *shape {
	lifted := make(map[int][]*shape)
	var own []*shape
	for i := range below {
		b := below[i].from(chain)[pick[i]].shape
		if key := below[i].keyID; slices.Contains(chain, key) {
			lifted[key] = append(lifted[key], b)
		} else {
			own = append(own, b)
		}
	}
	t := newShape(top, nil, own)
	for _, k := range slices.Backward(chain) {
		t = newShape(-1, s.keys[k], append(lifted[k], t))
	}
	return t
}

func newShape(alias int, schema []query.Var, children []*shape) *shape {
	slices.SortStableFunc(children, func(a, b *shape) int { return cmp.Compare(a.order, b.order) })
	t := &shape{alias: alias, schema: schema, children: children, order: alias}
	if alias < 0 {
		t.order = children[0].order
	}
	return t
}
