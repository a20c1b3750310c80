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

// BenchmarkTracking is one insertion and one deletion of BenchmarkSlide with
// and without the noting of changed records. One operation is one event.
func BenchmarkTracking(b *testing.B) {
	edges := pairs(1 << 20)
	for _, track := range []bool{false, true} {
		b.Run(map[bool]string{false: "off", true: "on"}[track], func(b *testing.B) {
			s := NewStore()
			if track {
				s.Track()
			}
			rel := s.AddRelation(2)
			s.Begin()
			for i := range benchLive {
				insert(b, s, rel, edges[i][:], int64(i))
			}
			s.Commit()
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += 2 {
				if i%200 == 0 {
					s.Commit()
					s.Begin()
				}
				k := i/2 + benchLive
				insert(b, s, rel, edges[k&(1<<20-1)][:], int64(k))
				if err := s.Delete(rel, edges[(k-benchLive)&(1<<20-1)][:], 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchFacts is the size of the captures that are measured.
const benchFacts = 2_000_000

// benchStore holds random edges; a quarter of them was deleted and others put
// in their records, so that records are not in the order of time.
func benchStore(b *testing.B) (*Store, uint32) {
	s := NewStore()
	s.Track()
	rel := s.AddRelation(2)
	rng := rand.New(rand.NewPCG(3, 4))
	s.Begin()
	for i := range benchFacts {
		insert(b, s, rel, []uint64{1 + rng.Uint64N(benchFacts/2), uint64(i)}, int64(i)*1_000_003)
	}
	s.Commit()
	var old [][]uint64
	i := 0
	for f := s.Facts(rel); f.Next(); i++ {
		if i%4 == 0 {
			old = append(old, []uint64{f.Tuple()[0], f.Tuple()[1]})
		}
	}
	s.Begin()
	for _, e := range old {
		remove(b, s, rel, e...)
	}
	s.Commit()
	s.Begin()
	for i := range old {
		insert(b, s, rel, []uint64{1 + rng.Uint64N(benchFacts/2), uint64(benchFacts + i)}, int64(benchFacts+i)*1_000_003)
	}
	s.Commit()
	return s, rel
}

// BenchmarkCapture captures a store and restores it. One operation is all of it.
func BenchmarkCapture(b *testing.B) {
	s, rel := benchStore(b)
	var chunks [][]byte
	size := 0
	b.Run("begin", func(b *testing.B) {
		for range b.N {
			s.Capture(true).Done(false)
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			c := s.Capture(true)
			chunks, size = chunks[:0], 0
			for more := true; more; {
				var chunk []byte
				chunk, more = c.Next(make([]byte, 0, 64<<10), 4096)
				chunks, size = append(chunks, chunk), size+len(chunk)
			}
			c.Done(true)
		}
		facts := float64(s.Len(rel))
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/facts, "ns/fact")
		b.ReportMetric(float64(size)/facts, "B/fact")
	})
	b.Run("restore", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			t := NewStore()
			t.Track()
			t.AddRelation(2)
			r := t.Restore()
			for _, chunk := range chunks {
				if err := r.Add(chunk); err != nil {
					b.Fatal(err)
				}
			}
			if err := r.Finish([]uint64{s.Sequence(rel)}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Len(rel)), "ns/fact")
	})
}
