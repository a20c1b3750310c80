package bench

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
)

// Ways in which what is old leaves a query.
const (
	// byRetraction deletes each edge when its time has come.
	byRetraction = "retraction"
	// byExpiry has the query see a window of time.
	byExpiry = "window"
)

// windowCases are the measurements of windows.
func windowCases(edges int) (cases []*Case) {
	add := func(name, contender string, measure func(dir string) ([]Figure, error)) {
		cases = append(cases, &Case{"windows", name, contender, measure})
	}
	window := edges / 5
	for _, w := range workloads[:3] {
		for _, updates := range []int{2, 200, 2000} {
			for _, how := range []string{byRetraction, byExpiry} {
				add(fmt.Sprintf("slides, %s, %d updates an epoch", w.Name, updates), how, func(string) ([]Figure, error) {
					return measureSlides(w, window, updates, how)
				})
			}
		}
	}
	for _, w := range append([]*Workload{single}, workloads[:3]...) {
		for _, how := range []string{byRetraction, byExpiry} {
			add("all at once, "+w.Name, how, func(string) ([]Figure, error) { return measureBulk(w, edges, edges, how) })
			add("half at once, "+w.Name, how, func(string) ([]Figure, error) { return measureBulk(w, 2*edges, edges, how) })
		}
	}
	for _, m := range manyWindows {
		add("many queries, "+m.w.Name, m.name, func(string) ([]Figure, error) { return m.measure(window) })
	}
	add("soak", "logged", func(dir string) ([]Figure, error) { return measureSoak(dir, 10*edges) })
	return cases
}

// windowed is a stream whose query sees so many of the newest edges: edge i is
// from the time i.
func windowed(s *Stream, edges int) *Stream {
	w := *s.Workload
	w.Query = withWindow(w.Query, edges)
	c := *s
	c.Workload = &w
	return &c
}

// withWindow gives the text of a query a window of time.
func withWindow(text string, ns int) string {
	return fmt.Sprintf("%s window %dns.", strings.TrimSuffix(text, "."), ns)
}

// byWindow drives an epoch.Engine whose queries have windows: the edges are
// inserted, and expire.
type byWindow struct{ *byEngine }

// startWindow makes an engine ready for a stream, with or without a window.
func startWindow(s *Stream, how string) (program, error) {
	if how == byRetraction {
		return startEngine(s)
	}
	p, err := startEngine(windowed(s, s.Window))
	if err != nil {
		return nil, err
	}
	return byWindow{p.(*byEngine)}, nil
}

// insert inserts edges as one epoch, which is as late as the last of them.
func (b byWindow) insert(from, to int) error {
	return b.epoch(record.Batch, int64(to-1), func() error {
		for i := from; i < to; i++ {
			b.event(epoch.OpInsert, i, int64(i))
		}
		return b.apply()
	})
}

func (b byWindow) load() error {
	for i := 0; i < b.s.Window; i += loadEpoch {
		if err := b.insert(i, min(i+loadEpoch, b.s.Window)); err != nil {
			return err
		}
	}
	return nil
}

func (b byWindow) slide(from, to int) error { return b.insert(b.s.Window+from, b.s.Window+to) }

// measureSlides is what an update takes when a window slides by one edge in and
// one out, two updates.
func measureSlides(w *Workload, window, updates int, how string) ([]Figure, error) {
	r := Run{Workload: w.Name, Contender: Engine, Updates: updates, Window: window, Warm: window / 4, Slides: window, Scale: float64(window) / 200_000}
	s := w.Stream(r.Window, r.Warm+r.Slides, r.Scale)
	heap, resident := inUse()
	p, err := startWindow(s, how)
	if err != nil {
		return nil, err
	}
	m := &measurement{Result: Result{Run: r}, s: s, p: p}
	if err := m.run(); err != nil {
		return nil, err
	}
	err = m.finish(heap, resident)
	runtime.KeepAlive(s)
	return []Figure{
		{"update", 1e9 / m.PerCPU, "ns"},
		{"writes an update", m.Writes, ""},
		{"woken an update", m.Woken, ""},
		{"bytes an update", m.Allocated, ""},
		{"heap MB", max(0, float64(m.Heap)/mega), ""}, // of few edges it is lost in chance
	}, err
}
