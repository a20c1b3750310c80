package hypergraph

import "slices"

// CoreKind tells what a Core proves.
type CoreKind int

// The kinds of cores.
const (
	// CycleCore proves that a query is cyclic. Restricted to Vars, the atoms
	// are either a ring without chords (each Atoms[i] holds Vars[i] and
	// Vars[i+1], the last one the last and the first) or, for four and more
	// variables, all the sets that miss exactly one of them (Atoms[i] misses
	// Vars[i]); see Ring.
	CycleCore CoreKind = iota + 1
	// FreePathCore proves that an acyclic query is not free-connex. Vars is a
	// path without chords: its ends are output, what lies between is not.
	// Atoms[i] holds Vars[i] and Vars[i+1]. No atom holds both ends.
	FreePathCore
	// QCore: Atoms[0] and Atoms[1] share Vars[0], which is not output, and of
	// the two only Atoms[0] holds the output variable Vars[1].
	QCore
	// ExistsHierarchyCore: neither Vars[0] nor Vars[1] is output; Atoms[0]
	// holds only the first of them, Atoms[1] both, Atoms[2] only the second.
	ExistsHierarchyCore
)

// String names the kind as in the papers.
func (k CoreKind) String() string {
	switch k {
	case CycleCore:
		return "cycle"
	case FreePathCore:
		return "free path"
	case QCore:
		return "q-core"
	case ExistsHierarchyCore:
		return "exists-hierarchy-core"
	default:
		return "none"
	}
}

// Core is a small part of a query that keeps it out of a class. What Vars and
// Atoms hold, and in which order, is told at each kind. Numbers are those of
// the input of Analyze.
type Core struct {
	Kind  CoreKind
	Vars  []int
	Atoms []int
	// Ring tells that a CycleCore is a ring.
	Ring bool
	// Unreduced marks a CycleCore of so many variables that it was not made
	// minimal: it is just the part of the query that the reduction could not
	// dissolve, in ascending order.
	Unreduced bool
}

// minimiseMax bounds the number of variables up to which a cycle is made
// minimal, which takes one reduction for each of them. A sentence about more
// variables than this helps nobody.
const minimiseMax = 256

// cycle returns a witness of cyclicity. Being acyclic is inherited by the
// restriction to fewer variables (but not by the removal of atoms), so
// variables are taken away one after another while the rest stays cyclic. What
// remains is by Beeri, Fagin, Maier and Yannakakis (JACM 1983) a ring, or all
// but one of n variables in each of n sets.
func (q *problem) cycle(rest *reduction) *Core {
	kept := newBitset(q.nv)
	var vars []int
	for v, d := range rest.deg {
		if d > 0 {
			kept.add(v)
			vars = append(vars, v)
		}
	}
	if len(vars) > minimiseMax {
		c := &Core{Kind: CycleCore, Vars: vars, Unreduced: true}
		for e, alive := range rest.alive {
			if alive {
				c.Atoms = append(c.Atoms, e)
			}
		}
		return c
	}
	for _, v := range vars {
		kept.remove(v)
		if ok, _ := acyclic(q.restrict(kept)); ok {
			kept.add(v)
		}
	}
	vars = slices.DeleteFunc(vars, func(v int) bool { return !kept.has(v) })
	return q.cycleOver(vars, q.restrict(kept))
}

// restrict returns the hypergraph on the kept variables, atoms numbered as
// before.
func (q *problem) restrict(kept bitset) *graph {
	edges := make([][]int, len(q.edges))
	for e, vs := range q.edges {
		for _, v := range vs {
			if kept.has(v) {
				edges[e] = append(edges[e], v)
			}
		}
	}
	return newGraph(q.nv, edges)
}

// cycleOver puts a minimal cycle into the order in which CycleCore promises it.
func (q *problem) cycleOver(vars []int, g *graph) *Core {
	c := &Core{Kind: CycleCore}
	if len(vars) > 3 {
		for _, v := range vars {
			if e := atomMissing(g, vars, v); e >= 0 {
				c.Atoms = append(c.Atoms, e)
			}
		}
		if len(c.Atoms) == len(vars) {
			c.Vars = vars
			return c
		}
	}
	// A ring: walk it from the least variable towards its lesser neighbour.
	c.Ring, c.Atoms = true, nil
	c.Vars = []int{vars[0]}
	for at, last := vars[0], -1; ; {
		e, next := ringStep(g, at, last, c.Vars[0], len(c.Vars) == len(vars))
		if e < 0 {
			break
		}
		c.Atoms = append(c.Atoms, e)
		if next == c.Vars[0] {
			break
		}
		c.Vars = append(c.Vars, next)
		at, last = next, at
	}
	return c
}

// atomMissing finds an atom of the restricted graph that holds all of vars but
// v, or returns -1.
func atomMissing(g *graph, vars []int, v int) int {
	for e, vs := range g.edges {
		if len(vs) == len(vars)-1 && !slices.Contains(vs, v) {
			return e
		}
	}
	return -1
}

// ringStep finds the way on from variable at of a ring: to the start when closing
// is set, else to the least neighbour that is neither last nor the start.
func ringStep(g *graph, at, last, start int, closing bool) (atom, next int) {
	atom, next = -1, -1
	for _, e := range g.occ[at] {
		for _, w := range g.edges[e] {
			if w == at || w == last || (w == start) != closing {
				continue
			}
			if next < 0 || w < next {
				atom, next = e, w
			}
		}
	}
	return atom, next
}

// freePath finds a shortest path between two output variables that share no
// atom, through variables that are not output. An acyclic query has one exactly
// when it is not free-connex (Bagan, Durand and Grandjean, CSL 2007). The
// search runs from each output variable in turn and never passes through one.
func (q *problem) freePath() *Core {
	w := q.newWalk()
	for x, out := range q.out {
		if !out {
			continue
		}
		if z := q.walkFrom(x, w); z >= 0 {
			return q.pathTo(z, x, w)
		}
	}
	return nil
}

// walk is the state of one breadth-first search after another. What an earlier
// search has written is told by its number, so nothing is cleared.
type walk struct {
	number int
	met    []int // by variable: the last search that met it
	spent  []int // by atom: the last search that went through it
	from   []int // the variable before
	via    []int // the atom that holds both
	dist   []int // steps from the start
	queue  []int
}

func (q *problem) newWalk() *walk {
	return &walk{
		from: make([]int, q.nv), via: make([]int, q.nv), dist: make([]int, q.nv),
		met: make([]int, q.nv), spent: make([]int, len(q.edges)),
	}
}

// walkFrom returns the output variable nearest to x, through variables that are
// not output, that is in no atom with x, or -1.
func (q *problem) walkFrom(x int, w *walk) int {
	w.number++
	w.met[x], w.dist[x] = w.number, 0
	w.queue = append(w.queue[:0], x)
	for i := 0; i < len(w.queue); i++ {
		v := w.queue[i]
		if q.out[v] && v != x {
			if w.dist[v] > 1 {
				return v
			}
			continue
		}
		for _, e := range q.occ[v] {
			if w.spent[e] == w.number {
				continue
			}
			// All of e is at most one step from v, so e is spent.
			w.spent[e] = w.number
			for _, u := range q.edges[e] {
				if w.met[u] != w.number {
					w.met[u], w.dist[u], w.from[u], w.via[u] = w.number, w.dist[v]+1, v, e
					w.queue = append(w.queue, u)
				}
			}
		}
	}
	return -1
}

func (q *problem) pathTo(z, x int, w *walk) *Core {
	c := &Core{Kind: FreePathCore, Vars: []int{z}}
	for v := z; v != x; v = w.from[v] {
		c.Vars = append(c.Vars, w.from[v])
		c.Atoms = append(c.Atoms, w.via[v])
	}
	slices.Reverse(c.Vars)
	slices.Reverse(c.Atoms)
	return c
}
