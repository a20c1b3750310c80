package hypergraph

// graph is a hypergraph over dense variable numbers, held both ways round.
type graph struct {
	nv    int
	edges [][]int // variables of each atom, ascending, each once
	occ   [][]int // atoms of each variable, ascending
}

func newGraph(nv int, edges [][]int) *graph {
	g := &graph{nv: nv, edges: edges, occ: make([][]int, nv)}
	for e, vs := range edges {
		for _, v := range vs {
			g.occ[v] = append(g.occ[v], e)
		}
	}
	return g
}

// reduction is the state of the procedure of Graham and of Yu and Ozsoyoglu
// (GYO): edges lose vertices that no other edge holds, and an edge that is
// contained in another one is absorbed by it.
type reduction struct {
	g     *graph
	alive []bool // the edge is not absorbed
	left  int    // number of alive edges
	holds []bitset
	size  []int // vertices left in each edge
	deg   []int // number of alive edges that still hold the vertex
	queue []int
	inQ   []bool
}

func newReduction(g *graph) *reduction {
	m := len(g.edges)
	r := &reduction{
		g: g, alive: make([]bool, m), left: m, holds: make([]bitset, m),
		size: make([]int, m), deg: make([]int, g.nv), inQ: make([]bool, m),
	}
	for e, vs := range g.edges {
		r.alive[e] = true
		r.holds[e] = newBitset(g.nv)
		r.size[e] = len(vs)
		for _, v := range vs {
			r.holds[e].add(v)
			r.deg[v]++
		}
	}
	return r
}

// run applies both rules until none applies, where only vertices with mayDrop
// are dropped for being in a single edge. It can be run again with another
// mayDrop: the rules go on from where they stopped.
//
// An edge is looked at again only when it has lost a vertex or when one of its
// vertices has become its own: nothing else can make a rule apply to it. Only
// the edge at hand is ever absorbed, so the queue holds alive edges.
func (r *reduction) run(mayDrop func(v int) bool) {
	for e := range r.alive {
		if r.alive[e] {
			r.push(e)
		}
	}
	for len(r.queue) > 0 {
		e := r.queue[0]
		r.queue = r.queue[1:]
		r.inQ[e] = false
		r.dropOwn(e, mayDrop)
		if r.left > 1 && r.absorbed(e) {
			r.absorb(e)
		}
	}
}

func (r *reduction) push(e int) {
	if !r.inQ[e] {
		r.inQ[e] = true
		r.queue = append(r.queue, e)
	}
}

func (r *reduction) dropOwn(e int, mayDrop func(v int) bool) {
	for _, v := range r.g.edges[e] {
		if r.holds[e].has(v) && r.deg[v] == 1 && mayDrop(v) {
			r.holds[e].remove(v)
			r.size[e]--
			r.deg[v] = 0
		}
	}
}

// absorbed reports whether another alive edge holds all of e.
func (r *reduction) absorbed(e int) bool {
	if r.size[e] == 0 {
		return true // any other edge does.
	}
	rare := -1
	for _, v := range r.g.edges[e] {
		if r.holds[e].has(v) && (rare < 0 || r.deg[v] < r.deg[rare]) {
			rare = v
		}
	}
	if r.deg[rare] == 1 {
		return false
	}
	for _, f := range r.g.occ[rare] {
		if f != e && r.alive[f] && r.holds[e].subsetOf(r.holds[f]) {
			return true
		}
	}
	return false
}

func (r *reduction) absorb(e int) {
	r.alive[e] = false
	r.left--
	for _, v := range r.g.edges[e] {
		if !r.holds[e].has(v) {
			continue
		}
		r.deg[v]--
		if r.deg[v] != 1 {
			continue
		}
		for _, f := range r.g.occ[v] {
			if r.alive[f] && r.holds[f].has(v) {
				r.push(f)
			}
		}
	}
}

func always(int) bool { return true }

// acyclic is GYO to the end: one edge is left.
func acyclic(g *graph) (bool, *reduction) {
	r := newReduction(g)
	r.run(always)
	return r.left <= 1, r
}

// freeConnex is GYO in two stages: first only vertices that are not output are
// dropped; then every edge left must be output, and what is left acyclic.
func freeConnex(g *graph, out []bool) bool {
	r := newReduction(g)
	r.run(func(v int) bool { return !out[v] })
	for e := range r.alive {
		if !r.alive[e] {
			continue
		}
		for _, v := range g.edges[e] {
			if r.holds[e].has(v) && !out[v] {
				return false
			}
		}
	}
	r.run(always)
	return r.left <= 1
}
