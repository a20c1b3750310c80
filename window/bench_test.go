package window

import (
	"math/rand/v2"
	"testing"
)

const benchLive = 200_000

// pairs draws n random edges; with ids dense from 1, as the dictionary gives.
func pairs(n int) [][2]uint64 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([][2]uint64, n)
	for i := range out {
		out[i] = [2]uint64{1 + rng.Uint64N(100_000), 1 + rng.Uint64N(100_000)}
	}
	return out
}

// BenchmarkSlide inserts one fact and deletes the oldest of 200,000, in epochs
// of 200 events whose net changes are read. One operation is one event.
func BenchmarkSlide(b *testing.B) {
	edges := pairs(1 << 20)
	b.Run("store", func(b *testing.B) {
		s := NewStore()
		rel := s.AddRelation(2)
		s.Begin()
		for i := range benchLive {
			insert(b, s, rel, edges[i][:], int64(i))
		}
		s.Commit()
		b.ReportAllocs()
		b.ResetTimer()
		sum := int64(0)
		for i := 0; i < b.N; i += 2 {
			if i%200 == 0 {
				for c := s.Changes(rel); c.Next(); {
					sum += c.New() - c.Old() + int64(c.Tuple()[0]&1)
				}
				s.Commit()
				s.Begin()
			}
			k := i/2 + benchLive
			insert(b, s, rel, edges[k&(1<<20-1)][:], int64(k))
			if err := s.Delete(rel, edges[(k-benchLive)&(1<<20-1)][:], 0); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(s.Bytes())/float64(s.Len(rel)), "B/fact")
	})
	b.Run("map", func(b *testing.B) {
		m := map[[2]uint64]int64{}
		for i := range benchLive {
			m[edges[i]]++
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := 0; i < b.N; i += 2 {
			k := i/2 + benchLive
			m[edges[k&(1<<20-1)]]++
			old := edges[(k-benchLive)&(1<<20-1)]
			if n := m[old]; n == 1 {
				delete(m, old)
			} else {
				m[old] = n - 1
			}
		}
	})
}

func insert(t testing.TB, s *Store, rel uint32, tuple []uint64, time int64) {
	if err := s.Insert(rel, tuple, time, 0, ""); err != nil {
		t.Fatal(err)
	}
}
