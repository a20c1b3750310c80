package hypergraph

import (
	"slices"
	"strings"
)

// Class tells which structural classes a query is in. All flags are decided on
// their own. Every q-hierarchical query is strong-connex, every strong-connex one
// free-connex, every free-connex one acyclic; what is full and acyclic is
// strong-connex.
type Class struct {
	// Acyclic: the atoms have a join tree.
	Acyclic bool `json:"acyclic"`
	// FreeConnex: acyclic, and still so when the output is added as an atom.
	FreeConnex bool `json:"free_connex"`
	// StrongConnex: free-connex, exists-hierarchical and head-cluster.
	StrongConnex bool `json:"strong_connex"`
	// QHierarchical: the atom sets of any two variables are nested or
	// disjoint, and a variable whose set lies above that of an output variable
	// is output.
	QHierarchical bool `json:"q_hierarchical"`
	// ExistsHierarchical: the atom sets of any two variables that are not
	// output are nested or disjoint.
	ExistsHierarchical bool `json:"exists_hierarchical"`
	// HeadCluster: two atoms that share a variable that is not output hold the
	// same output variables.
	HeadCluster bool `json:"head_cluster"`
	// Full: every variable is output.
	Full bool `json:"full"`
}

// FullAcyclic reports whether the query is full and acyclic.
func (c Class) FullAcyclic() bool { return c.Full && c.Acyclic }

// Name returns the one class that the cost contract speaks of: "full acyclic",
// "q-hierarchical", "strong-connex", "free-connex", "acyclic" (and not
// free-connex) or "cyclic". A full acyclic query may be q-hierarchical as well;
// String tells.
func (c Class) Name() string {
	switch {
	case !c.Acyclic:
		return "cyclic"
	case c.Full:
		return "full acyclic"
	case c.QHierarchical:
		return "q-hierarchical"
	case c.StrongConnex:
		return "strong-connex"
	case c.FreeConnex:
		return "free-connex"
	default:
		return "acyclic"
	}
}

// String returns the name with what else is worth knowing, like "full acyclic,
// q-hierarchical" or "free-connex, not strong-connex".
func (c Class) String() string {
	s := c.Name()
	switch s {
	case "full acyclic":
		if c.QHierarchical {
			s += ", q-hierarchical"
		}
	case "strong-connex":
		s += ", not q-hierarchical"
	case "free-connex":
		s += ", not strong-connex"
	case "acyclic":
		s += ", not free-connex"
	}
	return s
}

// Analysis is what Analyze finds. The variables and atoms of cores are numbered
// as in the input.
type Analysis struct {
	Class Class
	// Core is the first thing that keeps the query out of the strong-connex
	// class: the cycle, else the path that is not free-connex, else the q-core,
	// else the exists-hierarchy core. It is nil for a strong-connex query.
	Core *Core
	// Q and ExistsHierarchy are the cores of their kind, nil when there is
	// none. They are looked for in cyclic queries too.
	Q, ExistsHierarchy *Core
}

// Analyze decides the classes of the query with the given atoms, each a list of
// variables (non-negative integers, which may repeat), and output variables. An
// output variable that is in no atom is ignored.
//
// The decisions are those of Graham, Yu and Ozsoyoglu (acyclic), of the
// two-stage form of the same reduction (free-connex), of Berkholz, Keppeler and
// Schweikardt (q-hierarchical) and of Wang and Hu (strong-connex and its
// cores).
//
// Cost, for m atoms, n variables and total arity s, in time; space is O(m n/64).
// The hierarchical tests take O(m/64) for each pair of variables that meet in an
// atom. A reduction takes at most O(n/64) for each vertex that is dropped and
// each atom that shares the rarest variable of its edge. A query that is not
// free-connex costs up to O(n s) more for its path, a cyclic one up to 256
// reductions more for its cycle.
func Analyze(atoms [][]int, out []int) Analysis {
	q := normalise(atoms, out)
	var a Analysis
	a.Class.Full = !slices.Contains(q.out, false)
	a.Q = q.qCore()
	a.Class.HeadCluster = a.Q == nil
	a.ExistsHierarchy, a.Class.QHierarchical = q.hierarchies()
	a.Class.ExistsHierarchical = a.ExistsHierarchy == nil

	ok, rest := acyclic(q.graph)
	a.Class.Acyclic = ok
	switch {
	case !ok:
		a.Core = q.cycle(rest)
	case !freeConnex(q.graph, q.out):
		a.Core = q.freePath()
	default:
		a.Class.FreeConnex = true
		a.Class.StrongConnex = a.Class.HeadCluster && a.Class.ExistsHierarchical
		a.Core = a.Q
		if a.Core == nil {
			a.Core = a.ExistsHierarchy
		}
	}
	for _, c := range []*Core{a.Q, a.ExistsHierarchy} {
		q.rename(c)
	}
	if a.Core != a.Q && a.Core != a.ExistsHierarchy {
		q.rename(a.Core)
	}
	return a
}

// problem is the input with dense variable numbers and sorted atoms.
type problem struct {
	*graph
	names []int  // the caller's number of each variable, ascending
	out   []bool // by variable
	in    []bitset
}

func normalise(atoms [][]int, out []int) *problem {
	var names []int
	for _, a := range atoms {
		names = append(names, a...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	edges := make([][]int, len(atoms))
	for i, a := range atoms {
		for _, v := range a {
			d, _ := slices.BinarySearch(names, v)
			edges[i] = append(edges[i], d)
		}
		slices.Sort(edges[i])
		edges[i] = slices.Compact(edges[i])
	}
	q := &problem{graph: newGraph(len(names), edges), names: names, out: make([]bool, len(names))}
	for _, v := range out {
		if d, ok := slices.BinarySearch(names, v); ok {
			q.out[d] = true
		}
	}
	// in[v] is the set of atoms of v, written E_v in the papers.
	q.in = make([]bitset, len(names))
	for v, es := range q.occ {
		q.in[v] = newBitset(len(atoms))
		for _, e := range es {
			q.in[v].add(e)
		}
	}
	return q
}

func (q *problem) rename(c *Core) {
	if c == nil {
		return
	}
	for i, v := range c.Vars {
		c.Vars[i] = q.names[v]
	}
}

// hierarchies looks at each pair of variables that meet in an atom; pairs that
// never meet are disjoint and break nothing. It returns an exists-hierarchy
// core, if any, and whether the query is q-hierarchical.
func (q *problem) hierarchies() (core *Core, qHierarchical bool) {
	qHierarchical = true
	for _, vs := range q.edges {
		for i, x := range vs {
			for _, y := range vs[i+1:] {
				xy, yx := q.in[x].subsetOf(q.in[y]), q.in[y].subsetOf(q.in[x])
				switch {
				case !xy && !yx:
					qHierarchical = false
					if core == nil && !q.out[x] && !q.out[y] {
						core = q.existsCore(x, y)
					}
				case xy && !yx && q.out[x] && !q.out[y], yx && !xy && q.out[y] && !q.out[x]:
					qHierarchical = false
				}
			}
		}
		if core != nil {
			return core, false
		}
	}
	return nil, qHierarchical
}

func (q *problem) existsCore(x, y int) *Core {
	return &Core{
		Kind: ExistsHierarchyCore,
		Vars: []int{x, y},
		Atoms: []int{
			q.in[x].firstNotIn(q.in[y]),
			q.in[x].firstCommon(q.in[y]),
			q.in[y].firstNotIn(q.in[x]),
		},
	}
}

// qCore looks for two atoms that share a variable that is not output and hold
// different output variables. Comparing all atoms of a variable with the first
// one is enough, since equality is transitive.
func (q *problem) qCore() *Core {
	head := make([]bitset, len(q.edges))
	for e, vs := range q.edges {
		head[e] = newBitset(q.nv)
		for _, v := range vs {
			if q.out[v] {
				head[e].add(v)
			}
		}
	}
	for v, es := range q.occ {
		if q.out[v] {
			continue
		}
		for _, f := range es[1:] {
			e := es[0]
			if head[e].equal(head[f]) {
				continue
			}
			x := head[e].firstNotIn(head[f])
			if x < 0 {
				e, f = f, e
				x = head[e].firstNotIn(head[f])
			}
			return &Core{Kind: QCore, Vars: []int{v, x}, Atoms: []int{e, f}}
		}
	}
	return nil
}

// Flags lists the names of all classes that hold, for tests and machines.
func (c Class) Flags() string {
	var s []string
	for _, f := range []struct {
		on   bool
		name string
	}{
		{c.Full, "full"}, {c.Acyclic, "acyclic"}, {c.FreeConnex, "free-connex"},
		{c.StrongConnex, "strong-connex"}, {c.QHierarchical, "q-hierarchical"},
		{c.ExistsHierarchical, "exists-hierarchical"}, {c.HeadCluster, "head-cluster"},
	} {
		if f.on {
			s = append(s, f.name)
		}
	}
	return strings.Join(s, " ")
}
