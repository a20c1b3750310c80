package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch/record"
)

// alike are queries over one stream that are the same, or differ in one constant.
type alike struct {
	name string
	w    *Workload // whose query is not registered
	text string    // of query i; %d is the number of its constant, if it has one
	// answers are those of the query with the constant k, from the edges alone.
	answers func(live []Edge, k uint32) int64
}

var alikes = []*alike{
	{"the same, path3", workloads[0], workloads[0].Query, func(live []Edge, _ uint32) int64 { return countPath3(live) }},
	{"the same, counts", workloads[0], "q(y, count()) :- a(x, y), b(y, z), c(z, w).", func(live []Edge, _ uint32) int64 { return countMiddles(live) }},
	{"a constant, one atom", single, "q(x) :- r(x, %d).", countInto},
	{"a constant, two atoms", workloads[0], "q(x, y) :- a(x, y), b(y, %d).", countHops},
	{"a constant, three atoms", workloads[0], "q(x, y, z) :- a(x, y), b(y, z), c(z, %d).", countPathsTo},
	{"a constant, kept answers", workloads[0], "q(x, z) :- a(x, y), b(y, z), c(z, %d).", countEndsOfPathsTo},
	{"a constant, counts", workloads[0], "q(y, count()) :- a(x, y), b(y, %d).", countHopEnds},
}

func countMiddles(live []Edge) (n int64) {
	out, in := degrees(live)
	seen := make(map[uint32]bool)
	for _, e := range live {
		if e.Rel == 1 && !seen[e.Src] && in[[2]uint32{0, e.Src}] > 0 && out[[2]uint32{2, e.Dst}] > 0 {
			seen[e.Src] = true
			n++
		}
	}
	return n
}

func countInto(live []Edge, k uint32) (n int64) {
	for _, e := range live {
		if e.Dst == k {
			n++
		}
	}
	return n
}

func countHops(live []Edge, k uint32) (n int64) {
	_, in := degrees(live)
	for _, e := range live {
		if e.Rel == 1 && e.Dst == k {
			n += in[[2]uint32{0, e.Src}]
		}
	}
	return n
}

func countHopEnds(live []Edge, k uint32) (n int64) {
	_, in := degrees(live)
	for _, e := range live {
		if e.Rel == 1 && e.Dst == k && in[[2]uint32{0, e.Src}] > 0 {
			n++
		}
	}
	return n
}

func countPathsTo(live []Edge, k uint32) (n int64) {
	_, in := degrees(live)
	ends := make(map[uint32]bool)
	for _, e := range live {
		if e.Rel == 2 && e.Dst == k {
			ends[e.Src] = true
		}
	}
	for _, e := range live {
		if e.Rel == 1 && ends[e.Dst] {
			n += in[[2]uint32{0, e.Src}]
		}
	}
	return n
}

func countEndsOfPathsTo(live []Edge, k uint32) int64 {
	starts, ends := make(map[uint32][]uint32), make(map[uint32]bool)
	for _, e := range live {
		switch {
		case e.Rel == 0:
			starts[e.Dst] = append(starts[e.Dst], e.Src)
		case e.Rel == 2 && e.Dst == k:
			ends[e.Src] = true
		}
	}
	pairs := make(map[[2]uint32]bool)
	for _, e := range live {
		if e.Rel == 1 && ends[e.Dst] {
			for _, x := range starts[e.Src] {
				pairs[[2]uint32{x, e.Dst}] = true
			}
		}
	}
	return int64(len(pairs))
}

// register registers so many of the queries, and tells the CPU seconds that it took.
func (a *alike) register(b *byEngine, n int) (seconds float64, err error) {
	t := cpuSeconds()
	for i := range n {
		text := a.textOf(i)
		p, err := catalog.Compile(text, catalog.Options{})
		if err == nil {
			err = b.epoch(record.Register, 0, func() error {
				return b.e.Register(context.Background(), &catalog.Query{Name: a.nameOf(i), Text: text, Plan: p})
			})
		}
		if err != nil {
			return 0, err
		}
	}
	return cpuSeconds() - t, nil
}

func (a *alike) nameOf(i int) string { return fmt.Sprint("q", i) }

func (a *alike) textOf(i int) string {
	return strings.Replace(a.text, "%d", strconv.Itoa(i), 1)
}

// same reports whether the queries do not differ.
func (a *alike) same() bool { return a.textOf(0) == a.text }

// measure is what an event takes with so many of the queries, registering one and
// dropping one, and the memory of all.
func (a *alike) measure(window, queries, updates int) ([]Figure, error) {
	slides := min(window, window*updates/20)
	r := Run{Contender: Engine, Updates: updates, Window: window, Warm: slides / 4, Slides: slides}
	s := a.w.Stream(r.Window, r.Warm+r.Slides, float64(window)/200_000)
	heap, _ := inUse()
	b, err := newEngine(s)
	if err != nil {
		return nil, err
	}
	took, err := a.register(b, queries)
	if err != nil {
		return nil, err
	}
	x := &measurement{Result: Result{Run: r}, s: s, p: b}
	if err := x.run(); err != nil {
		return nil, err
	}
	h, _ := inUse()
	live := s.Live(r.Warm + r.Slides)
	for i := range queries {
		if n, err := countOf(b.e, a.nameOf(i)); err != nil || n != a.answers(live, uint32(i)) {
			return nil, fmt.Errorf("%s: %d answers (%w), the reference is %d", a.textOf(i), n, err, a.answers(live, uint32(i)))
		}
		if a.same() {
			break // all are the same
		}
	}
	t := cpuSeconds()
	for i := range queries {
		if err := b.epoch(record.Drop, 0, func() error { return b.e.Drop(a.nameOf(i)) }); err != nil {
			return nil, err
		}
	}
	dropped := cpuSeconds() - t
	return []Figure{
		{"event", 1e9 / x.PerCPU, "ns"},
		{"writes", x.Writes, "an event"},
		{"heap MB", float64(h-heap) / mega, "MB"},
		{"register", took * 1e6 / float64(queries), "µs"},
		{"drop", dropped * 1e6 / float64(queries), "µs"},
	}, nil
}

// queryCases are the measurements of queries that are alike.
func queryCases(window int) (cases []*Case) {
	for _, a := range alikes {
		numbers := []int{1, 300}
		if a.same() {
			numbers = []int{1, 1000}
		}
		for _, updates := range []int{2, 200} {
			for _, n := range numbers {
				cases = append(cases, &Case{"queries", fmt.Sprintf("%s, %d events an epoch", a.name, updates), fmt.Sprintf("%d queries", n), func(string) ([]Figure, error) {
					return a.measure(window, n, updates)
				}})
			}
		}
	}
	return cases
}
