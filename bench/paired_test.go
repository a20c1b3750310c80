package bench

import (
	"fmt"
	"testing"
)

// BenchmarkPaired runs every contender on every workload in this process, an
// operation being one update; the command paired does the same in processes of
// their own and makes the table of README.md. It is meant for profiles:
//
//	go test ./bench -run '^$' -bench Paired/path3/engine/200 -cpuprofile cpu.out
func BenchmarkPaired(b *testing.B) {
	const window, slides = 200000, 200000
	for _, w := range Workloads() {
		b.Run(w.Name, func(b *testing.B) {
			s := w.Stream(window, slides, 1)
			for _, c := range Contenders() {
				b.Run(string(c), func(b *testing.B) {
					for _, updates := range []int{2, 200, 2000} {
						b.Run(fmt.Sprint(updates), func(b *testing.B) { benchmarkStream(b, c, s, updates) })
						if c.byHand() {
							break // it knows no epochs
						}
					}
				})
			}
		})
	}
}

func benchmarkStream(b *testing.B, c Contender, s *Stream, updates int) {
	benchmarkProgram(b, func() (program, error) { return start(c, s) }, s, updates)
}

// benchmarkProgram slides along a stream and starts over at its end, which is
// not on the clock.
func benchmarkProgram(b *testing.B, start func() (program, error), s *Stream, updates int) {
	b.ReportAllocs()
	var p program
	at := s.Slides()
	for done := 0; done < b.N; {
		if at == s.Slides() {
			b.StopTimer()
			var err error
			if p, err = start(); err == nil {
				err = p.load()
			}
			if err != nil {
				b.Fatal(err)
			}
			at = 0
			b.StartTimer()
		}
		to := min(at+updates/2, at+(b.N-done+1)/2, s.Slides())
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
}

// TestMeasure measures every contender on small streams; a wrong number of
// answers is an error.
func TestMeasure(t *testing.T) {
	for _, w := range Workloads() {
		for _, c := range Contenders() {
			for _, updates := range []int{2, 200} {
				r, err := Measure(Run{Workload: w.Name, Contender: c, Updates: updates, Window: 2000, Warm: 100, Slides: 1050, Scale: .01})
				if err != nil {
					t.Error(err)
					continue
				}
				if r.PerSecond <= 0 || (c == Engine || c == API) && r.Writes == 0 {
					t.Errorf("%s by %s: %.0f updates/s, %.2f writes an update", w.Name, c, r.PerSecond, r.Writes)
				}
			}
		}
	}
	if _, err := Measure(Run{Workload: "star", Contender: Maps, Updates: 3, Window: 10, Slides: 10, Scale: 1}); err == nil {
		t.Error("an epoch of one and a half slides was measured")
	}
}
