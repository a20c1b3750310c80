package bench

import (
	"context"
	"fmt"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
)

// hop2 is a query that joins one relation with itself.
var hop2 = &Workload{
	Name: "hop2", Query: "hop2(x, y, z) :- r(x, y), r(y, z).", Relations: []string{"r"}, Aliases: []int{2}, Columns: 3,
	seed: 1006, law: hop4Uniform, count: countHop2,
}

func countHop2(live []Edge) (n int64) {
	out, in := degrees(live)
	for k, d := range in {
		n += d * out[k]
	}
	return n
}

// manyQueries are queries over one relation with windows of their own: query i
// sees the share windows[i] of the window of the stream.
type manyQueries struct {
	w       *Workload
	name    string
	windows []float64
}

var (
	oneWindow  = []float64{1}
	sameWindow = []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	tenWindows = []float64{1, .9, .8, .7, .6, .5, .4, .3, .2, .1}
)

var manyWindows = []*manyQueries{
	{single, "one query", oneWindow},
	{single, "ten, one window", sameWindow},
	{single, "ten, ten windows", tenWindows},
	{hop2, "one query", oneWindow},
	{hop2, "ten, one window", sameWindow},
	{hop2, "ten, ten windows", tenWindows},
}

// share is the number of edges that query i sees.
func (m *manyQueries) share(window, i int) int { return int(m.windows[i] * float64(window)) }

// start makes an engine with the queries; that of the stream is the first.
func (m *manyQueries) start(s *Stream) (b byWindow, err error) {
	p, err := startWindow(s, byExpiry)
	if err != nil {
		return byWindow{}, err
	}
	b = p.(byWindow)
	for i := 1; i < len(m.windows); i++ {
		name := fmt.Sprint(m.w.Name, i)
		text := withWindow(m.w.Query, m.share(s.Window, i))
		err := b.epoch(record.Register, 0, func() error {
			plan, err := catalog.Compile(text, catalog.Options{})
			if err != nil {
				return err
			}
			return b.e.Register(context.Background(), &catalog.Query{Name: name, Text: text, Plan: plan})
		})
		if err != nil {
			return byWindow{}, err
		}
	}
	return b, nil
}

// measure is what an event takes that enters and leaves all windows, 100 in an
// epoch.
func (m *manyQueries) measure(window int) ([]Figure, error) {
	r := Run{Contender: Engine, Updates: 200, Window: window, Warm: window / 4, Slides: window}
	s := m.w.Stream(r.Window, r.Warm+r.Slides, float64(window)/200_000)
	heap, resident := inUse()
	b, err := m.start(s)
	if err != nil {
		return nil, err
	}
	x := &measurement{Result: Result{Run: r}, s: s, p: b}
	if err := x.run(); err != nil {
		return nil, err
	}
	if err := x.finish(heap, resident); err != nil {
		return nil, err
	}
	for i := range m.windows {
		live := s.Live(r.Warm + r.Slides)
		live = live[len(live)-m.share(window, i):]
		name := m.w.Name
		if i > 0 {
			name = fmt.Sprint(name, i)
		}
		if n, err := countOf(b.e, name); err != nil || n != m.w.count(live) {
			return nil, fmt.Errorf("%s: %d answers (%w), the reference is %d", name, n, err, m.w.count(live))
		}
	}
	return []Figure{
		{"event", 2e9 / x.PerCPU, "ns"},
		{"writes", 2 * x.Writes, "an event"},
		{"contributions MB", float64(x.Internals.Facts) / mega, ""},
		{"tries MB", float64(x.Internals.TrieLive) / mega, ""},
	}, nil
}

// countOf is the number of answers of a query.
func countOf(e *epoch.Engine, name string) (int64, error) {
	v := e.Current.Pin()
	defer e.Current.Unpin(v)
	q := v.Catalog.(*epoch.Schema).Views[name]
	n, _, err := q.Bind(v.Space, v.Roots).Count(context.Background())
	return n, err
}
