package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// BenchmarkWriter measures epochs of 100 changes beside clients that are stuck in the
// middle of an event, and beside clients that take each update.
func BenchmarkWriter(b *testing.B) {
	for _, tc := range []struct{ stuck, reading int }{{0, 0}, {1, 0}, {8, 0}, {64, 0}, {0, 1}, {0, 8}} {
		b.Run(fmt.Sprintf("stuck=%d/reading=%d", tc.stuck, tc.reading), func(b *testing.B) {
			s := smallSite(b, Options{WriteTimeout: time.Hour})
			s.wide(0, 10_000)
			for range tc.stuck {
				defer s.stick("/queries/q/updates?snapshot=1").Close()
			}
			for range tc.reading {
				e := s.follow("/queries/q/updates", "")
				defer e.close()
				go func() {
					for {
						if _, err := e.read(); err != nil {
							return
						}
					}
				}()
			}
			eventually(b, "all follow", func() bool { return s.handler.Usage().Streams == tc.stuck+tc.reading })
			// Each epoch puts 50 answers in the place of 50 others.
			epoch, events := 0, make([]triegs.Event, 0, 100)
			for b.Loop() {
				epoch++
				was, is := triegs.Int(int64(epoch-1)), triegs.Int(int64(epoch))
				events = events[:0]
				for j := range 50 {
					x := triegs.Int(int64(j))
					events = append(events, triegs.Edge("R", x, is))
					if epoch > 1 {
						events = append(events, triegs.Event{Op: triegs.Delete, Relation: "R", Tuple: []triegs.Term{x, was}})
					}
				}
				if _, err := s.db.Append(b.Context(), triegs.Batch{Events: events}); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(epoch)/b.Elapsed().Seconds(), "epochs/s")
			if got := s.handler.Usage().Streams; got != tc.stuck+tc.reading {
				b.Errorf("%d streams are left", got)
			}
		})
	}
}
