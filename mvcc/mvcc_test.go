package mvcc

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestReclaimAgainstDefinition drives random pins, retirements and collections
// and compares what comes free with the rule [born, retired).
func TestReclaimAgainstDefinition(t *testing.T) {
	type life struct {
		born, retired Version
		freed         bool
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var (
			r         Reclaimer
			pins      Pins
			blocks    []life
			alive     []uint32
			published Version
			pinned    []Version
		)
		for v := Version(1); v < 80; v++ {
			for range rng.IntN(4) {
				alive = append(alive, uint32(len(blocks)))
				blocks = append(blocks, life{born: v})
			}
			for range rng.IntN(4) {
				if len(alive) == 0 {
					break
				}
				i := rng.IntN(len(alive))
				ref := alive[i]
				if blocks[ref].born == v {
					continue
				}
				alive = slices.Delete(alive, i, i+1)
				blocks[ref].retired = v
				r.Retire(ref, 2, blocks[ref].born)
			}
			if rng.IntN(10) == 0 {
				for i := range blocks {
					if blocks[i].retired == v {
						blocks[i].retired = 0
						alive = append(alive, uint32(i))
					}
				}
				r.Discard()
			}
			r.Seal(v)
			for published < v && rng.IntN(3) > 0 {
				published++
				if rng.IntN(3) == 0 {
					pins.Add(published)
					pinned = append(pinned, published)
				}
			}
			if len(pinned) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(pinned))
				pins.Drop(pinned[i])
				pinned = slices.Delete(pinned, i, i+1)
			}
			vs := pins.Versions(nil)
			r.Collect(published, vs, func(ref uint32) {
				if blocks[ref].freed {
					t.Fatalf("seed %d: block %d freed twice", seed, ref)
				}
				blocks[ref].freed = true
			})
			var waiting int64
			for ref, b := range blocks {
				needed := b.retired == 0 || b.retired > published ||
					slices.ContainsFunc(vs, func(p Version) bool { return b.born <= p && p < b.retired })
				if b.freed == needed {
					t.Fatalf("seed %d version %d: block %d born %d retired %d freed %v, pins %v published %d",
						seed, v, ref, b.born, b.retired, b.freed, vs, published)
				}
				if b.retired != 0 && !b.freed {
					waiting += 2
				}
			}
			if p, h := r.Retained(); p+h != waiting {
				t.Fatalf("seed %d version %d: retained %d+%d words, want %d", seed, v, p, h, waiting)
			}
		}
	}
}

func TestPins(t *testing.T) {
	var p Pins
	if !p.Add(5) || p.Add(5) || !p.Add(3) || !p.Add(9) {
		t.Fatal("first pins are not reported right")
	}
	if v, ok := p.Oldest(); !ok || v != 3 || p.Len() != 3 {
		t.Fatalf("oldest %d of %d", v, p.Len())
	}
	if p.Drop(5) || !p.Drop(5) || !p.Drop(3) {
		t.Fatal("last pins are not reported right")
	}
	if got := p.Versions(nil); !slices.Equal(got, []Version{9}) {
		t.Fatalf("pinned %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Fatal("releasing what is not pinned went unnoticed")
		}
	}()
	p.Drop(5)
}

// BenchmarkCollectPinned is an epoch while 30000 before it are kept, each of which a
// block waits for.
func BenchmarkCollectPinned(b *testing.B) {
	const kept = 30_000
	var r Reclaimer
	var pins []Version
	free := func(uint32) {}
	for v := range Version(kept) {
		r.Retire(uint32(v), 1, v)
		r.Seal(v + 1)
		pins = append(pins, v)
	}
	r.Collect(kept, pins, free)
	for b.Loop() {
		r.Collect(kept, pins, free)
	}
}
