package bench

import (
	"testing"

	"github.com/triegs/triegs/epoch/record"
)

// BenchmarkSlides is for profiles: windows of 200,000 edges that slide in epochs
// of 200 updates, by retraction and by expiry. An operation is one update.
func BenchmarkSlides(b *testing.B) {
	const window, slides = 200_000, 200_000
	for _, w := range workloads[:3] {
		for _, how := range []string{byRetraction, byExpiry} {
			b.Run(w.Name+"/"+how, func(b *testing.B) {
				s := w.Stream(window, slides, 1)
				b.ReportAllocs()
				var p program
				at := slides
				for done := 0; done < b.N; {
					if at == slides {
						b.StopTimer()
						p = loaded(b, s, how)
						at = 0
						b.StartTimer()
					}
					to := min(at+100, at+(b.N-done+1)/2, slides)
					if err := p.slide(at, to); err != nil {
						b.Fatal(err)
					}
					done += 2 * (to - at)
					at = to
				}
				b.StopTimer()
				if n, err := p.answers(); err != nil || n != s.Answers(at) {
					b.Fatalf("%d answers, %v, want %d", n, err, s.Answers(at))
				}
			})
		}
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
