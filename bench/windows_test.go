package bench

import (
	"fmt"
	"testing"

	"github.com/triegs/triegs/epoch/record"
)

// BenchmarkSlides is for profiles: windows of 200,000 edges that slide by
// retraction and by expiry. An operation is one update.
func BenchmarkSlides(b *testing.B) {
	const window, slides = 200_000, 200_000
	for _, w := range workloads[:3] {
		b.Run(w.Name, func(b *testing.B) {
			s := w.Stream(window, slides, 1)
			for _, how := range []string{byRetraction, byExpiry} {
				for _, updates := range []int{2, 200, 2000} {
					b.Run(fmt.Sprint(how, "/", updates), func(b *testing.B) {
						start := func() (program, error) { return startWindow(s, how) }
						benchmarkProgram(b, start, s, updates)
					})
				}
			}
		})
	}
}

func loaded(b *testing.B, s *Stream, how string) program {
	b.Helper()
	p, err := startWindow(s, how)
	if err == nil {
		err = p.load()
	}
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkBulk is for profiles: a million edges expire in one epoch. An operation
// is all of them.
func BenchmarkBulk(b *testing.B) {
	const edges = 1_000_000
	for _, w := range append([]*Workload{single}, workloads[:3]...) {
		b.Run(w.Name, func(b *testing.B) {
			s := w.Stream(edges, 0, edges/200_000)
			for range b.N {
				b.StopTimer()
				p := loaded(b, s, byExpiry).(byWindow)
				b.StartTimer()
				if err := p.epoch(record.Batch, 3*edges, p.apply); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*edges/b.Elapsed().Seconds()/mega, "M/s")
		})
	}
}
