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

// BenchmarkUpkeep measures a whole search with its sweep: ns for each term held.
func BenchmarkUpkeep(b *testing.B) {
	for _, n := range []uint64{10_000, 1_000_000} {
		for _, every := range []uint64{2, 100} { // one of so many dies
			b.Run(fmt.Sprintf("terms=%d/dead=1of%d", n, every), func(b *testing.B) {
				d := New()
				for i := range n {
					d.Intern(nth(i))
				}
				var mark, finish, sweep, held int64
				clock := func(f func()) int64 {
					start := b.Elapsed()
					f()
					return int64(b.Elapsed() - start)
				}
				for b.Loop() {
					b.StopTimer()
					held += int64(d.Live())
					b.StartTimer()
					mark += clock(func() {
						d.StartMark()
						for id := uint64(1); id <= d.Len(); id++ {
							if id%every != 0 {
								d.Mark(id)
							}
						}
					})
					finish += clock(func() { d.FinishMark() })
					sweep += clock(func() { d.Sweep() })
					b.StopTimer()
					d = New()
					for i := range n {
						d.Intern(nth(i))
					}
					b.StartTimer()
				}
				b.ReportMetric(float64(mark)/float64(held), "mark-ns/term")
				b.ReportMetric(float64(finish)/float64(held), "finish-ns/term")
				b.ReportMetric(float64(sweep)/float64(held), "sweep-ns/term")
			})
		}
	}
}

// BenchmarkRestore measures the loading of a dictionary: ns for each term.
func BenchmarkRestore(b *testing.B) {
	const n = 1_000_000
	for _, gap := range []uint64{1, 20} {
		for _, name := range []string{"short", "iri"} {
			forms := make([][]byte, n)
			for i := range forms {
				x := term.String(fmt.Sprint("p", i))
				if name == "iri" {
					x = term.IRI(fmt.Sprint("http://example.org/resource/", i))
				}
				forms[i] = term.AppendBinary(nil, x)
			}
			b.Run(fmt.Sprintf("%s/gap=%d", name, gap), func(b *testing.B) {
				for b.Loop() {
					d := New()
					d.Reserve(n)
					for i, form := range forms {
						if err := d.Restore(uint64(i+1)*gap, form); err != nil {
							b.Fatal(err)
						}
					}
					d.SetLen(n * gap)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/n, "ns/term")
			})
		}
	}
}

// BenchmarkSpilled measures terms that are not in memory: with all of them in
// the cache, a tenth, none. The backing is a map, so that what it adds is what a
// store would add to.
func BenchmarkSpilled(b *testing.B) {
	const n = 100_000
	for _, cacheBytes := range []int64{-1, 100 << 20, 3 << 20, 0} {
		d, backing := New(), &mapBacking{forms: map[uint64][]byte{}}
		terms := make([]term.Term, n)
		for i := range terms {
			terms[i] = term.IRI(fmt.Sprint("http://example.org/resource/", i))
			d.Intern(terms[i])
			backing.forms[uint64(i+1)] = term.AppendBinary(nil, terms[i])
		}
		if err := d.Spill(n, backing, cacheBytes); err != nil {
			b.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range 3 * n {
			if d.Term(uint64(i%n + 1)); i%1000 == 0 && cacheBytes > 0 {
				d.state.Load().store.cache.forms.Wait()
			}
		}
		b.Run(fmt.Sprintf("term/cache=%d", cacheBytes), func(b *testing.B) {
			b.ReportAllocs()
			before := backing.reads.Load()
			for b.Loop() {
				d.Term(1 + rng.Uint64N(n))
			}
			b.ReportMetric(float64(backing.reads.Load()-before)/float64(b.N), "reads/op")
		})
		b.Run(fmt.Sprintf("intern/cache=%d", cacheBytes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d.Intern(terms[rng.IntN(n)])
			}
		})
		d.Close()
	}
}
