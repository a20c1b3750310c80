package dict

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triegs/triegs/internal/term"
)

// BenchmarkDict measures lookups of known terms drawn at random, and of new
// ones, against a Go map.
func BenchmarkDict(b *testing.B) {
	forms := []struct {
		name string
		make func(i int) term.Term
	}{
		{"int", func(i int) term.Term { return term.Int(int64(i)) }},
		{"short", func(i int) term.Term { return term.String(fmt.Sprint("p", i)) }},
		{"iri", func(i int) term.Term { return term.IRI(fmt.Sprint("http://example.org/resource/", i)) }},
	}
	for _, n := range []int{10_000, 1_000_000} {
		order := make([]uint32, 1<<16)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range order {
			order[i] = uint32(rng.IntN(n))
		}
		for _, form := range forms {
			terms := make([]term.Term, n)
			for i := range terms {
				terms[i] = form.make(i)
			}
			drawn := make([]term.Term, len(order))
			for i, k := range order {
				drawn[i] = form.make(int(k)) // read a moment ago, as in a stream
			}
			d, m := New(), map[term.Term]uint64{}
			for i, x := range terms {
				d.Intern(x)
				m[x] = uint64(i)
			}
			name := fmt.Sprintf("%s/terms=%d", form.name, n)
			b.Run("intern/"+name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					d.Intern(drawn[i&(1<<16-1)])
				}
				b.ReportMetric(float64(d.Bytes())/float64(n), "B/term")
			})
			b.Run("all/"+name, func(b *testing.B) {
				ids := make([]uint64, 256)
				for i := 0; i < b.N; i += len(ids) {
					d.InternAll(ids, drawn[i&(1<<16-1):][:len(ids)])
				}
			})
			b.Run("map/"+name, func(b *testing.B) {
				sum := uint64(0)
				for i := 0; b.Loop(); i++ {
					sum += m[drawn[i&(1<<16-1)]]
				}
			})
			b.Run("find/"+name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					d.Find(drawn[i&(1<<16-1)], uint64(n))
				}
			})
			b.Run("term/"+name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					d.Term(uint64(order[i&(1<<16-1)]) + 1)
				}
			})
			b.Run("hash/"+name, func(b *testing.B) {
				sum := uint64(0)
				for i := 0; b.Loop(); i++ {
					a, _ := d.Hash(uint64(order[i&(1<<16-1)]) + 1)
					sum += a
				}
			})
			b.Run("new/"+name, func(b *testing.B) {
				d, k := New(), 0
				for b.Loop() {
					if k == n {
						d, k = New(), 0
					}
					d.Intern(terms[k])
					k++
				}
			})
		}
	}
}
