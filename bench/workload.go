package bench

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Edge is one base tuple: the number of its relation in the workload, and its
// two columns.
type Edge struct{ Rel, Src, Dst uint32 }

// Workload is a query over binary relations and the law that its edges follow.
type Workload struct {
	Name      string
	Query     string   // rule text
	Relations []string // by number
	Aliases   []int    // how many atoms of the query a relation feeds, by number
	Columns   int      // variables of an answer
	seed      uint64
	law       func(scale float64) law
	count     func(live []Edge) int64 // answers, or what groups add up to
	counts    bool                    // the last column of an answer is a count, see group
}

// law draws one edge.
type law func(r *splitmix) Edge

// The workloads. path3, star and snb are skewed windows whose relations have
// domains of their own; hop4 walks four times through one relation.
var workloads = []*Workload{
	{
		Name: "path3", Query: "path3(x, y, z, w) :- a(x, y), b(y, z), c(z, w).",
		Relations: []string{"a", "b", "c"}, Aliases: []int{1, 1, 1}, Columns: 4,
		seed: 1000, law: path3Law, count: countPath3,
	},
	{
		Name: "star", Query: "star(c, p, q, s, t) :- r0(c, p), r1(c, q), r2(c, s), r3(c, t).",
		Relations: []string{"r0", "r1", "r2", "r3"}, Aliases: []int{1, 1, 1, 1}, Columns: 5,
		seed: 1001, law: starLaw, count: countStar,
	},
	{
		Name: "snb", Query: "snb(v, x, z, y, w) :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).",
		Relations: []string{"hasCreator", "hasReply", "likedBy"}, Aliases: []int{2, 1, 1}, Columns: 5,
		seed: 1002, law: snbLaw, count: countSNB,
	},
	{
		Name: "hop4", Query: hop4Query, Relations: []string{"r"}, Aliases: []int{4}, Columns: 5,
		seed: 1003, law: hop4Uniform, count: countHop4,
	},
	{
		Name: "hop4zipf", Query: hop4Query, Relations: []string{"r"}, Aliases: []int{4}, Columns: 5,
		seed: 1004, law: hop4Zipf, count: countHop4,
	},
}

// counted are queries with counts, over the edges of path3. Their answers are no
// combinations of edges, so enumerations of them are not compared with the others.
var counted = []*Workload{
	{
		Name: "path3cnt", Query: "path3cnt(x, count()) :- a(x, y), b(y, z), c(z, w).",
		Relations: []string{"a", "b", "c"}, Aliases: []int{1, 1, 1}, Columns: 1,
		seed: 1000, law: path3Law, count: countPath3Groups, counts: true,
	},
	{
		Name: "path3all", Query: "path3all(count()) :- a(x, y), b(y, z), c(z, w).",
		Relations: []string{"a", "b", "c"}, Aliases: []int{1, 1, 1}, Columns: 0,
		seed: 1000, law: path3Law, count: func(live []Edge) int64 { return group(0, countPath3(live)) }, counts: true,
	},
}

// group is what a group and its count add to the number that stands for all answers
// of a query with counts: none of them can be wrong without a wrong sum, but by
// chance.
func group(x uint32, n int64) int64 { return (int64(x) + 1) * n }

const hop4Query = "hop4(a, b, c, d, e) :- r(a, b), r(b, c), r(c, d), r(d, e)."

// Workloads lists the workloads.
func Workloads() []*Workload { return slices.Concat(workloads, counted) }

// Find finds a workload by name.
func Find(name string) (*Workload, error) {
	for _, w := range Workloads() {
		if w.Name == name {
			return w, nil
		}
	}
	return nil, fmt.Errorf("no workload %q", name)
}

// Stream is a sliding window over the edges of a workload: the first Window
// edges are there at the beginning, and slide i inserts edge Window+i and
// deletes edge i. No edge is twice in a window.
type Stream struct {
	*Workload
	Window int
	Edges  []Edge
	ids    []uint64 // of the edges, two each
}

// reuse is the number of slides that must pass after the deletion of an edge
// before it may come again, so that an epoch never cancels out.
const reuse = 2000

// Stream draws a stream of the given size. The sizes of the domains of the
// vertices are made for a window of 200,000 edges; scale multiplies them.
func (w *Workload) Stream(window, slides int, scale float64) *Stream {
	s := &Stream{Workload: w, Window: window, Edges: make([]Edge, 0, window+slides)}
	draw, r := w.law(scale), splitmix(w.seed)
	last := make(map[Edge]int, window+slides)
	for len(s.Edges) < cap(s.Edges) {
		e := draw(&r)
		if at, seen := last[e]; seen && len(s.Edges)-at <= window+reuse {
			continue
		}
		last[e] = len(s.Edges)
		s.Edges = append(s.Edges, e)
	}
	s.ids = idsOf(s)
	return s
}

// Slides is the number of slides in the stream.
func (s *Stream) Slides() int { return len(s.Edges) - s.Window }

// Live is the window after some slides.
func (s *Stream) Live(slides int) []Edge { return s.Edges[slides : slides+s.Window] }

// Answers is the number of answers after some slides, or what the groups of a query
// with counts add up to, from the degrees of the
// vertices of the window: no program that is measured has a part in it.
func (s *Stream) Answers(slides int) int64 { return s.count(s.Live(slides)) }

// Vertices is one more than the largest vertex.
func (s *Stream) Vertices() int {
	n := uint32(0)
	for _, e := range s.Edges {
		n = max(n, e.Src+1, e.Dst+1)
	}
	return int(n)
}

// AliasesPerUpdate is the number of atoms that an edge of the stream feeds, on
// average: the least number of view tuples that an update must write.
func (s *Stream) AliasesPerUpdate() float64 {
	n := 0
	for _, e := range s.Edges {
		n += s.Aliases[e.Rel]
	}
	return float64(n) / float64(len(s.Edges))
}

// splitmix is the SplitMix64 generator (Steele, Lea, Flood 2014), whose stream
// is fixed for ever by its seed.
type splitmix uint64

func (r *splitmix) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	x := uint64(*r)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit is uniform in [0, 1).
func (r *splitmix) unit() float64 { return float64(r.next()>>11) * 0x1p-53 }

// below is uniform in [0, n) up to a bias of n/2^64.
func (r *splitmix) below(n int) int { return int(r.next() % uint64(n)) }

// zipf draws vertices by the law of Zipf and Mandelbrot: the one of rank k
// (from 1) has weight (k+shift)^-exponent. Ranks are dealt to vertices at
// random, so that a number says nothing of a degree.
type zipf struct {
	sums   []float64 // running sums of the weights
	vertex []uint32  // by rank
}

func newZipf(n int, exponent, shift float64, seed uint64) *zipf {
	z := &zipf{make([]float64, n), make([]uint32, n)}
	sum := 0.0
	for k := range n {
		sum += math.Pow(float64(k+1)+shift, -exponent)
		z.sums[k], z.vertex[k] = sum, uint32(k)
	}
	r := splitmix(seed)
	for k := n - 1; k > 0; k-- {
		j := r.below(k + 1)
		z.vertex[k], z.vertex[j] = z.vertex[j], z.vertex[k]
	}
	return z
}

func (z *zipf) draw(r *splitmix) uint32 {
	return z.vertex[sort.SearchFloat64s(z.sums, r.unit()*z.sums[len(z.sums)-1])]
}

// scaled is a number of vertices at a scale.
func scaled(n int, scale float64) int { return max(2, int(float64(n)*scale)) }

func path3Law(scale float64) law {
	y := newZipf(scaled(120000, scale), .75, 150, 1)
	z := newZipf(scaled(120000, scale), .75, 150, 2)
	x := newZipf(scaled(50000, scale), .75, 50, 3)
	w := newZipf(scaled(50000, scale), .75, 50, 4)
	ends := [3][2]*zipf{{x, y}, {y, z}, {z, w}}
	return func(r *splitmix) Edge {
		rel := r.below(3)
		src := ends[rel][0].draw(r)
		return Edge{uint32(rel), src, ends[rel][1].draw(r)}
	}
}

func starLaw(scale float64) law {
	center := newZipf(scaled(50000, scale), .4, 200, 5)
	leaf := newZipf(scaled(100000, scale), .75, 50, 6)
	return func(r *splitmix) Edge {
		rel := r.below(4)
		src := center.draw(r)
		return Edge{uint32(rel), src, leaf.draw(r)}
	}
}

// snbLaw has messages with creators (4 in 10 edges), replies (3) and likes (3).
// A message does not reply to itself.
func snbLaw(scale float64) law {
	message := newZipf(scaled(120000, scale), .6, 200, 7)
	person := newZipf(scaled(50000, scale), .75, 50, 8)
	return func(r *splitmix) Edge {
		k := r.below(10)
		src := message.draw(r)
		switch {
		case k < 4:
			return Edge{0, src, person.draw(r)}
		case k >= 7:
			return Edge{2, src, person.draw(r)}
		}
		dst := message.draw(r)
		for src == dst {
			src, dst = message.draw(r), message.draw(r)
		}
		return Edge{1, src, dst}
	}
}

// hop4Vertices is a mean degree of two each way.
const hop4Vertices = 100000

func hop4Uniform(scale float64) law {
	n := scaled(hop4Vertices, scale)
	return func(r *splitmix) Edge {
		src := uint32(r.below(n))
		return Edge{0, src, uint32(r.below(n))}
	}
}

// hop4Zipf has hubs of both kinds: a vertex that many edges leave is not one
// that many edges enter, or the number of answers would know no bounds.
func hop4Zipf(scale float64) law {
	n := scaled(hop4Vertices, scale)
	from, to := newZipf(n, 1, 0, 9), newZipf(n, 1, 0, 10)
	return func(r *splitmix) Edge {
		src := from.draw(r)
		return Edge{0, src, to.draw(r)}
	}
}

// degrees counts, in each relation, the edges by source and by target.
func degrees(live []Edge) (out, in map[[2]uint32]int64) {
	out, in = make(map[[2]uint32]int64), make(map[[2]uint32]int64)
	for _, e := range live {
		out[[2]uint32{e.Rel, e.Src}]++
		in[[2]uint32{e.Rel, e.Dst}]++
	}
	return out, in
}

func countPath3(live []Edge) (n int64) {
	out, in := degrees(live)
	for _, e := range live {
		if e.Rel == 1 {
			n += in[[2]uint32{0, e.Src}] * out[[2]uint32{2, e.Dst}]
		}
	}
	return n
}

func countPath3Groups(live []Edge) (n int64) {
	out, _ := degrees(live)
	tails := make(map[uint32]int64) // ways from y through b and c
	for _, e := range live {
		if e.Rel == 1 {
			tails[e.Src] += out[[2]uint32{2, e.Dst}]
		}
	}
	for _, e := range live {
		if e.Rel == 0 {
			n += group(e.Src, tails[e.Dst])
		}
	}
	return n
}

func countStar(live []Edge) (n int64) {
	out, _ := degrees(live)
	for k, d := range out {
		if k[0] == 0 {
			n += d * out[[2]uint32{1, k[1]}] * out[[2]uint32{2, k[1]}] * out[[2]uint32{3, k[1]}]
		}
	}
	return n
}

func countSNB(live []Edge) (n int64) {
	out, _ := degrees(live)
	for _, e := range live {
		if e.Rel == 1 {
			n += out[[2]uint32{0, e.Src}] * out[[2]uint32{0, e.Dst}] * out[[2]uint32{2, e.Dst}]
		}
	}
	return n
}

func countHop4(live []Edge) (n int64) {
	out, in := degrees(live)
	entering := make(map[uint32]int64) // paths of two edges into a vertex
	for _, e := range live {
		entering[e.Dst] += in[[2]uint32{0, e.Src}]
	}
	for _, e := range live {
		n += entering[e.Src] * out[[2]uint32{0, e.Dst}]
	}
	return n
}
