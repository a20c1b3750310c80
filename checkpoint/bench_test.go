package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// edges makes chunks that look like encoded contributions: ascending record
// numbers, two term ids of a skewed graph, a count and a time, as uvarints.
func edges(n int) (chunks [][]byte, facts int) {
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.3, 8, 1<<22)
	var c []byte
	for range n {
		c = append(c, 1)
		for _, v := range []uint64{z.Uint64(), r.Uint64N(1 << 22), 1, r.Uint64N(1 << 14)} {
			for v >= 0x80 {
				c = append(c, byte(v)|0x80)
				v >>= 7
			}
			c = append(c, byte(v))
		}
		if len(c) > 64<<10 {
			chunks, c = append(chunks, c), nil
		}
	}
	return append(chunks, c), n
}

// BenchmarkFull writes a full element of a million edges and 200,000 terms.
func BenchmarkFull(b *testing.B) {
	chunks, n := edges(1_000_000)
	s, err := Open(b.Context(), b.TempDir()+"/checkpoint", Options{Reserve: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	form := []byte("http://www.ldbc.eu/ldbc_socialnet/1.0/data/pers00000000000000000000")
	for b.Loop() {
		s.RequireFull()
		w, err := s.Begin(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range chunks {
			if err := w.Facts(c); err != nil {
				b.Fatal(err)
			}
		}
		for id := range uint64(200_000) {
			form = fmt.Appendf(form[:48], "%020d", id*7919)
			if err := w.Term(id+1, form); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Commit(b.Context(), Header{LastTerm: 1 << 20}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.List()[0].Bytes)/float64(n), "B/edge")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/edge")
}

// BenchmarkLoad reads what BenchmarkFull writes, without making state of it.
func BenchmarkLoad(b *testing.B) {
	chunks, n := edges(1_000_000)
	s := benchStore(b, Options{Reserve: -1}, chunks, 200_000)
	for b.Loop() {
		r, err := s.Load(b.Context(), s.List()[0])
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Facts(b.Context(), func([]byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
		if err := r.Terms(b.Context(), func(uint64, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/edge")
}

// benchStore makes a store with one full element.
func benchStore(b *testing.B, o Options, chunks [][]byte, terms int) *Store {
	s, err := Open(b.Context(), b.TempDir()+"/checkpoint", o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	w, err := s.Begin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range chunks {
		if err := w.Facts(c); err != nil {
			b.Fatal(err)
		}
	}
	for id := range terms {
		if err := w.Term(uint64(id+1), fmt.Appendf(nil, "http://example.org/resource/%d", id*7919)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit(b.Context(), Header{LastTerm: uint64(terms)}); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkForm looks single terms up: near each other, and anywhere among
// 200,000, whose blocks fit in the cache, and among two million, whose do not.
func BenchmarkForm(b *testing.B) {
	for _, terms := range []int{200_000, 2_000_000} {
		s := benchStore(b, Options{KeepOpen: true}, nil, terms)
		for _, span := range []int{50, terms} {
			b.Run(fmt.Sprintf("%d of %d", span, terms), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				var dst []byte
				var err error
				for b.Loop() {
					if dst, err = s.Form(1+r.Uint64N(uint64(span)), dst[:0]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSmall measures the fixed costs: opening, and a small increment, with
// Pebble kept open, lingering and not.
func BenchmarkSmall(b *testing.B) {
	for name, o := range openings {
		dir := b.TempDir() + "/checkpoint"
		s, err := Open(b.Context(), dir, o)
		if err != nil {
			b.Fatal(err)
		}
		commit := func() {
			w, err := s.Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if err := w.Facts(make([]byte, 1000)); err != nil {
				b.Fatal(err)
			}
			if err := w.Commit(b.Context(), Header{}); err != nil {
				b.Fatal(err)
			}
		}
		commit()
		b.Run("commit/"+name, func(b *testing.B) {
			for b.Loop() {
				commit()
			}
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run("open/"+name, func(b *testing.B) {
			for b.Loop() {
				s, err := Open(b.Context(), dir, o)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
