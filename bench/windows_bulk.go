package bench

import (
	"fmt"
	"runtime"
	"time"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
)

// single is a query that shows one relation.
var single = &Workload{
	Name: "single", Query: "single(x, y) :- r(x, y).", Relations: []string{"r"}, Aliases: []int{1}, Columns: 2,
	seed: 1005, law: hop4Uniform, count: func(live []Edge) int64 { return int64(len(live)) },
}

// measureBulk is what it takes that the first so many edges go in one epoch, and
// what the epoch behind it takes, which gives back the memory of their tries.
func measureBulk(w *Workload, edges, gone int, how string) ([]Figure, error) {
	s := w.Stream(edges, 0, float64(edges)/200_000)
	p, err := startWindow(s, how)
	if err != nil {
		return nil, err
	}
	if err := p.load(); err != nil {
		return nil, err
	}
	if n, err := p.answers(); err != nil || n != s.Answers(0) {
		return nil, fmt.Errorf("%d answers (%w), the reference is %d", n, err, s.Answers(0))
	}
	b, ok := p.(*byEngine)
	if !ok {
		b = p.(byWindow).byEngine
	}
	// The window of the edges ends with the last of them.
	later := int64(edges - 1 + gone)
	if how == byRetraction {
		for i := range gone {
			b.event(epoch.OpDelete, i, later)
		}
	}
	runtime.GC()
	writes := b.e.Stats().Writes
	wall, cpu := time.Now(), cpuSeconds()
	if err := b.epoch(record.Batch, later, b.apply); err != nil {
		return nil, err
	}
	took, cpu1 := time.Since(wall), cpuSeconds()
	if err := b.epoch(record.Batch, later, b.apply); err != nil {
		return nil, err
	}
	cpu2 := cpuSeconds()
	st := b.e.Stats()
	want := s.count(s.Edges[gone:])
	if n, err := b.answers(); err != nil || n != want || st.Contributions != int64(edges-gone) {
		return nil, fmt.Errorf("%d answers (%w) of %d contributions, the reference is %d of %d", n, err, st.Contributions, want, edges-gone)
	}
	each := 1e9 / float64(gone)
	return []Figure{
		{"contribution", (cpu1 - cpu) * each, "ns"},
		{"behind it", (cpu2 - cpu1) * each, "ns"},
		{"millions/CPU s", float64(gone) / (cpu1 - cpu) / mega, ""},
		{"millions/s", float64(gone) / took.Seconds() / mega, ""},
		{"writes each", float64(st.Writes-writes) / float64(gone), ""},
	}, nil
}
