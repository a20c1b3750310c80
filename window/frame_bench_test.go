package window

import (
	"math"
	"testing"

	"github.com/triegs/triegs/query"
)

// BenchmarkWindow is BenchmarkSlide with an expiry in the place of each
// deletion: one fact comes and one goes, of 200,000, in epochs of 200 events
// whose net changes are read for each window. One operation is one event.
func BenchmarkWindow(b *testing.B) {
	edges := pairs(1 << 20)
	ten := make([]query.Window, 10)
	for i := range ten {
		ten[i] = query.Window{Range: benchLive * int64(i+1) / 10}
	}
	for _, bench := range []struct {
		name    string
		windows []query.Window
		keep    int64
	}{
		{"range", []query.Window{{Range: benchLive}}, 0},
		{"last", []query.Window{{Last: benchLive}}, 0},
		{"both", []query.Window{{Range: benchLive}, {Last: benchLive}}, 0},
		{"slide", []query.Window{{Range: benchLive, Slide: 100}}, 0},
		{"ten", ten, 0},
		{"forever", []query.Window{{Range: benchLive}}, Forever},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := NewStore()
			rel := s.AddRelation(2)
			s.SetWindows(rel, 0, bench.windows, bench.keep)
			s.Begin()
			for i := range benchLive {
				insert(b, s, rel, edges[i][:], int64(i))
			}
			s.Advance(benchLive - 1)
			s.Commit()
			s.Begin()
			b.ReportAllocs()
			b.ResetTimer()
			sum := int64(0)
			for i := 0; i < b.N; i += 2 {
				if i%200 == 0 {
					s.Advance(int64(i/2 + benchLive - 1))
					for c := s.Crossings(rel); c.Next(); {
						sum += c.New() - c.Old() + int64(c.Tuple()[0]&1)
					}
					s.Commit()
					s.Begin()
				}
				k := i/2 + benchLive
				insert(b, s, rel, edges[k&(1<<20-1)][:], int64(k))
			}
			b.StopTimer()
			b.ReportMetric(float64(s.Bytes())/float64(s.Contributions()), "B/contribution")
		})
	}
}

// BenchmarkExpiry expires a million contributions in one epoch. One operation is
// one of them.
func BenchmarkExpiry(b *testing.B) {
	const n = 1_000_000
	edges := pairs(n)
	for _, bench := range []struct {
		name    string
		windows []query.Window
	}{
		{"range", []query.Window{{Range: 10}}},
		{"last", []query.Window{{Last: 1}}},
		{"both", []query.Window{{Range: 10}, {Last: 1}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for done := 0; done < b.N; done += n {
				b.StopTimer()
				s := NewStore()
				rel := s.AddRelation(2)
				s.SetWindows(rel, math.MinInt64, bench.windows, 0)
				s.Begin()
				for i := range edges {
					insert(b, s, rel, edges[i][:], int64(i))
				}
				s.Commit()
				s.Begin()
				b.StartTimer()
				if expired, _ := s.Advance(n + 10); expired < n-1 {
					b.Fatalf("%d expired", expired)
				}
				for c := s.Changes(rel); c.Next(); {
				}
				s.Commit()
			}
		})
	}
}

// BenchmarkFill sets the first window of a relation of a million contributions,
// which come in no order. One operation is one of them.
func BenchmarkFill(b *testing.B) {
	const n = 1_000_000
	s := NewStore()
	rel := s.AddRelation(2)
	s.Begin()
	for i, e := range pairs(n) {
		insert(b, s, rel, e[:], int64(i*7919%n))
	}
	s.Commit()
	b.ResetTimer()
	for done := 0; done < b.N; done += n {
		s.SetWindows(rel, n, []query.Window{{Range: n}}, Forever)
		s.SetWindows(rel, n, nil, Forever)
	}
}
