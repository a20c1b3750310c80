package window

import (
	"fmt"
	"testing"

	"github.com/triegs/triegs/query"
)

// BenchmarkReorder sends edges through a window of 200,000 in epochs of 100,
// directly and through the reorder buffer: in order without lateness, in order
// with a history of 50,000, and with every tenth event late by up to 20,000. One
// operation is one event.
func BenchmarkReorder(b *testing.B) {
	edges := pairs(1 << 20)
	open := func() (*Store, uint32) {
		s := NewStore()
		rel := s.AddRelation(2)
		s.SetWindows(rel, 0, []query.Window{{Range: benchLive}}, 0)
		return s, rel
	}
	b.Run("direct", func(b *testing.B) {
		s, rel := open()
		b.ReportAllocs()
		for i := 0; i < b.N; {
			s.Begin()
			for range 100 {
				insert(b, s, rel, edges[i&(1<<20-1)][:], int64(i))
				i++
			}
			s.Advance(int64(i))
			s.Commit()
		}
	})
	for _, c := range []struct {
		name     string
		lateness int64
		late     int
		ids      bool
		deletes  bool
	}{
		{"in-order", 0, 0, false, false},
		{"history", 50_000, 0, false, false},
		{"late", 50_000, 20_000, false, false},
		{"late-deletes", 50_000, 20_000, false, true},
		{"history-ids", 50_000, 0, true, false},
		{"late-ids", 50_000, 20_000, true, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, rel := open()
			b.ReportAllocs()
			for i := 0; i < b.N; {
				s.Begin()
				for range 100 {
					w := Waiting{Rel: rel, Tuple: edges[i&(1<<20-1)][:], Time: int64(i)}
					if c.late > 0 && i%10 == 0 {
						w.Time = max(0, w.Time-int64(i*7919%c.late))
						w.Delete = c.deletes && i%20 == 0
					}
					if c.ids {
						w.ID = fmt.Sprint(i)
					}
					s.Wait(w)
					i++
				}
				s.Release(int64(i), int64(i)-c.lateness)
				s.Advance(int64(i))
				s.Commit()
			}
			b.StopTimer()
			b.ReportMetric(float64(s.reorder.size())/float64(max(1, s.Held())), "B/held")
		})
	}
}
