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

// measureBulk is what it takes that all edges go in one epoch, and what the epoch
// behind it takes, which gives back the memory of their tries.
func measureBulk(w *Workload, edges int, how string) ([]Figure, error) {
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
	later := int64(3 * edges)
	if how == byRetraction {
		for i := range edges {
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
	if n, err := b.answers(); err != nil || n != 0 || st.Contributions != 0 {
		return nil, fmt.Errorf("%d answers (%w) and %d contributions are left", n, err, st.Contributions)
	}
	each := 1e9 / float64(edges)
	return []Figure{
		{"contribution", (cpu1 - cpu) * each, "ns"},
		{"behind it", (cpu2 - cpu1) * each, "ns"},
		{"millions/CPU s", float64(edges) / (cpu1 - cpu) / mega, ""},
		{"millions/s", float64(edges) / took.Seconds() / mega, ""},
		{"writes each", float64(st.Writes-writes) / float64(edges), ""},
	}, nil
}
