package trie

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/mvcc"
)

const maxK = 5

type tuple [maxK]uint64

// world is a set of versions of one trie beside plain maps.
type world struct {
	k     int
	arena *Arena
	root  uint64
	model map[tuple]int64
	old   []version
	pins  mvcc.Pins
}

type version struct {
	v     mvcc.Version
	root  uint64
	space Space
	model map[tuple]int64
}

func (w *world) check(t *testing.T, what string, space Space, root uint64, model map[tuple]int64) {
	t.Helper()
	n, err := space.Check(root, w.k)
	if err != nil || n != int64(len(model)) {
		t.Fatalf("%s: %d tuples, want %d (%v)", what, n, len(model), err)
	}
	if n := space.Count(root, w.k); n != len(model) {
		t.Fatalf("%s: counted %d tuples, want %d", what, n, len(model))
	}
	var c Cursor
	c.Seek(space, root, w.k, nil)
	for c.Next() {
		var row tuple
		c.Columns(row[:w.k], 0)
		if model[row] != c.Weight() {
			t.Fatalf("%s: %v has weight %d, want %d", what, row, c.Weight(), model[row])
		}
	}
	for row, weight := range model {
		if got := space.Get(root, row[:w.k]); got != weight {
			t.Fatalf("%s: get %v = %d, want %d", what, row, got, weight)
		}
	}
}

// prefixCount counts the model's tuples that share the first p columns.
func prefixCount(model map[tuple]int64, row tuple, p int) (n int) {
	for other := range model {
		if slices.Equal(other[:p], row[:p]) {
			n++
		}
	}
	return n
}

func (w *world) checkPrefix(t *testing.T, row tuple, p int) {
	t.Helper()
	space := w.arena.Space()
	want := prefixCount(w.model, row, p)
	if got := space.HasPrefix(w.root, row[:p]); got != (want > 0) {
		t.Fatalf("prefix %v: %v, want %d tuples", row[:p], got, want)
	}
	var c Cursor
	c.Seek(space, w.root, w.k, row[:p])
	last, n := tuple{}, 0
	for c.Next() {
		var at tuple
		c.Columns(at[:w.k], 0)
		if !slices.Equal(at[:p], row[:p]) || w.model[at] != c.Weight() || n > 0 && !lessRows(last[:], at[:]) {
			t.Fatalf("prefix %v: met %v weight %d after %v", row[:p], at, c.Weight(), last)
		}
		last = at
		n++
	}
	if n != want {
		t.Fatalf("prefix %v: %d tuples, want %d", row[:p], n, want)
	}
	// Rewound, at the end or in the middle, the cursor walks the same again.
	c.Rewind()
	for range n / 2 {
		c.Next()
	}
	c.Rewind()
	again := 0
	for ; c.Next(); again++ {
		var at tuple
		if c.Columns(at[:w.k], 0); !slices.Equal(at[:p], row[:p]) {
			t.Fatalf("prefix %v: rewound, met %v", row[:p], at)
		}
	}
	if again != n {
		t.Fatalf("prefix %v: %d tuples, rewound %d", row[:p], n, again)
	}
}

func (w *world) checkDiff(t *testing.T, from, to version) {
	t.Helper()
	want := map[tuple][2]int64{}
	for row, weight := range from.model {
		if to.model[row] != weight {
			want[row] = [2]int64{weight, to.model[row]}
		}
	}
	for row, weight := range to.model {
		if from.model[row] == 0 {
			want[row] = [2]int64{0, weight}
		}
	}
	got := map[tuple][2]int64{}
	Diff(from.space, from.root, to.space, to.root, w.k, func(row []uint64, a, b int64) bool {
		var at tuple
		copy(at[:], row)
		if _, twice := got[at]; twice {
			t.Fatalf("diff %d..%d reports %v twice", from.v, to.v, at)
		}
		got[at] = [2]int64{a, b}
		return true
	})
	if !maps.Equal(got, want) {
		t.Fatalf("diff %d..%d: %v, want %v", from.v, to.v, got, want)
	}
	// One that is stopped ends there.
	stop, seen := (len(want)+1)/2, 0
	Diff(from.space, from.root, to.space, to.root, w.k, func([]uint64, int64, int64) bool {
		seen++
		return seen < stop
	})
	if seen != stop {
		t.Fatalf("diff %d..%d: stopped at %d, went on to %d", from.v, to.v, stop, seen)
	}
}

// drawID draws ids from domains that are dense, sparse and clustered.
func drawID(rng *rand.Rand, domain int) uint64 {
	switch rng.IntN(12) {
	case 0:
		return rng.Uint64N(1 << 62)
	case 1:
		return 1<<40 - 2 + rng.Uint64N(4)
	case 2:
		return ^uint64(0) - rng.Uint64N(3)
	}
	return rng.Uint64N(uint64(domain)) + 1
}

func drawWeight(rng *rand.Rand) int64 {
	switch rng.IntN(8) {
	case 0:
		return rng.Int64N(1<<40) + 1
	case 1:
		return rng.Int64N(5) + 1
	}
	return 1
}

// TestVersionsAgainstMaps writes random versions, keeps some pinned, aborts
// some, and compares every version with a map of its own.
func TestVersionsAgainstMaps(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 15
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := &world{k: 1 + int(seed)%maxK, arena: NewArena(1), model: map[tuple]int64{}}
		domain := []int{3, 12, 100, 4000}[rng.IntN(4)]
		t.Run(fmt.Sprintf("seed=%d k=%d domain=%d", seed, w.k, domain), func(t *testing.T) { w.run(t, rng, domain) })
	}
}

func (w *world) run(t *testing.T, rng *rand.Rand, domain int) {
	var rows []tuple
	for v := mvcc.Version(1); v < 40; v++ {
		before, beforeModel := w.root, maps.Clone(w.model)
		live := w.arena.Bytes().Live
		grow := rng.IntN(3) > 0
		for range rng.IntN(200) * (1 + 9*rng.IntN(2)*rng.IntN(2)) {
			w.write(t, rng, domain, grow, &rows)
		}
		if rng.IntN(6) == 0 {
			w.arena.Abort()
			w.root, w.model = before, beforeModel
			if got := w.arena.Bytes().Live; got != live {
				t.Fatalf("version %d: %d bytes live after an abort, %d before", v, got, live)
			}
		}
		now := version{v, w.root, w.arena.Space(), maps.Clone(w.model)}
		w.check(t, "new version", now.space, now.root, now.model)
		w.arena.Seal(v + 1)
		w.pins.Add(v)
		w.old = append(w.old, now)
		w.arena.Collect(v, &w.pins)
		for _, o := range w.old {
			if rng.IntN(4) == 0 {
				w.checkDiff(t, o, now)
				w.checkDiff(t, now, o)
				w.checkPrefixDiff(t, rng, o, now, rows)
				w.checkPrefixDiff(t, rng, now, o, rows)
			}
		}
		for len(w.old) > 5 || len(w.old) > 1 && rng.IntN(3) == 0 {
			i := rng.IntN(len(w.old) - 1)
			w.check(t, "pinned version", w.old[i].space, w.old[i].root, w.old[i].model)
			w.pins.Drop(w.old[i].v)
			w.old = slices.Delete(w.old, i, i+1)
		}
	}
	w.arena.Clear(w.root, w.k)
	w.arena.Seal(100)
	for _, o := range w.old {
		w.check(t, "pinned version", o.space, o.root, o.model)
		w.pins.Drop(o.v)
	}
	w.arena.Collect(99, &w.pins)
	if b := w.arena.Bytes(); b.Live != 0 || b.Pending != 0 || b.Held != 0 || b.Total > int64(len(classes))*8*slabSize {
		t.Fatalf("blocks are left after everything was cleared: %+v", b)
	}
}

func (w *world) write(t *testing.T, rng *rand.Rand, domain int, grow bool, rows *[]tuple) {
	t.Helper()
	var row tuple
	for i := range w.k {
		row[i] = drawID(rng, domain)
	}
	weight := drawWeight(rng)
	if n := len(*rows); n > 0 && (rng.IntN(4) == 0 || !grow) {
		row = (*rows)[rng.IntN(n)]
		if !grow || rng.IntN(2) == 0 {
			weight = 0
		}
	} else {
		*rows = append(*rows, row)
	}
	p := rng.IntN(w.k + 1)
	old := w.model[row]
	if len(w.model) > 300 && rng.IntN(8) > 0 {
		p = -1 // counting what shares the prefix is slow in the model
	}
	rest := false
	if p >= 0 {
		n := prefixCount(w.model, row, p)
		rest = n > 1 || n == 1 && old == 0
	}
	got, now, ok := Change{}, weight, true
	if rng.IntN(3) == 0 {
		got, now, ok = w.arena.Add(&w.root, row[:w.k], weight-old, p)
	} else {
		got = w.arena.Set(&w.root, row[:w.k], weight, p)
	}
	if got.Old != old || got.Rest != rest || now != weight || !ok {
		t.Fatalf("%v to %d with prefix %d: %+v, %d, %v, want old %d rest %v", row, weight, p, got, now, ok, old, rest)
	}
	if weight == 0 {
		delete(w.model, row)
	} else {
		w.model[row] = weight
	}
	if p >= 0 && rng.IntN(8) == 0 {
		w.checkPrefix(t, row, p)
	}
}

// TestBuild compares a bulk-built trie with one written tuple by tuple.
func TestBuild(t *testing.T) {
	for k := 1; k <= maxK; k++ {
		for _, n := range []int{0, 1, 2, 31, 32, 33, 500, 20000} {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(k)))
			w := &world{k: k, arena: NewArena(1), model: map[tuple]int64{}}
			for range n {
				var row tuple
				for i := range k {
					row[i] = drawID(rng, max(n, 2))
				}
				w.model[row] = drawWeight(rng)
			}
			keys := slices.SortedFunc(maps.Keys(w.model), func(a, b tuple) int { return slices.Compare(a[:], b[:]) })
			var rows []uint64
			for _, key := range keys {
				rows = append(append(rows, key[:k]...), uint64(w.model[key]))
			}
			w.root = w.arena.Build(rows, k)
			w.check(t, fmt.Sprintf("k=%d n=%d", k, n), w.arena.Space(), w.root, w.model)
		}
	}
}

// TestMemoryComesBack is MEM-03 at the level of the arena: rounds of filling
// and emptying leave no slabs behind.
func TestMemoryComesBack(t *testing.T) {
	a := NewArena(1)
	var root uint64
	var first int64
	v := mvcc.Version(1)
	for round := range 5 {
		for i := range uint64(100_000) {
			a.Set(&root, []uint64{i * 7 % 1000, i}, 1, 1)
			if i%1000 == 0 {
				v++
				a.Seal(v)
				a.CollectVersions(v-1, nil)
			}
		}
		full := a.Bytes()
		if round == 0 {
			first = full.Total
		}
		for i := range uint64(100_000) {
			a.Set(&root, []uint64{i * 7 % 1000, i}, 0, 1)
		}
		v++
		a.Seal(v)
		a.CollectVersions(v-1, nil)
		if b := a.Bytes(); root != 0 || b.Live != 0 || b.Total > int64(len(classes))*8*slabSize {
			t.Fatalf("round %d: root %x, %+v", round, root, b)
		}
		if full.Total > first*11/10 {
			t.Fatalf("round %d: %d bytes of slabs when full, %d in the first round", round, full.Total, first)
		}
	}
}

func TestWritesAllocateNothing(t *testing.T) {
	a := NewArena(1)
	var root uint64
	row := make([]uint64, 2)
	v := mvcc.Version(1)
	rng := rand.New(rand.NewPCG(1, 1))
	epoch := func() {
		for range 100 {
			row[0], row[1] = rng.Uint64N(5000), rng.Uint64N(50)
			a.Set(&root, row, int64(rng.IntN(2)), 1)
		}
		v++
		a.Seal(v)
		a.CollectVersions(v-1, nil)
	}
	for range 5000 {
		epoch()
	}
	// Slabs come and go with the random population; everything else is reused.
	if n := testing.AllocsPerRun(2000, epoch); n > 0.2 {
		t.Fatalf("%v allocations an epoch of 100 writes", n)
	}
	var c Cursor
	if n := testing.AllocsPerRun(100, func() {
		c.Seek(a.Space(), root, 2, nil)
		for c.Next() {
		}
	}); n != 0 {
		t.Fatalf("%v allocations a scan", n)
	}
}

// TestAddTooMuch: a sum that does not fit is not written, wherever the tuple stands.
func TestAddTooMuch(t *testing.T) {
	for _, tuples := range []uint64{1, 5, 500} {
		for k := range 3 {
			a, root := NewArena(1), uint64(0)
			tuple := []uint64{7, 8}[:k]
			for i := range tuples * uint64(min(k, 1)) {
				a.Set(&root, []uint64{100 + i, i}[:k], 1, -1)
			}
			a.Set(&root, tuple, math.MaxInt64-1, -1)
			for _, step := range []struct {
				change, now int64
				ok          bool
			}{{2, math.MaxInt64 - 1, false}, {1, math.MaxInt64, true}, {1, math.MaxInt64, false}, {-math.MaxInt64, 0, true}} {
				ch, now, ok := a.Add(&root, tuple, step.change, -1)
				if now != step.now || ok != step.ok || a.Space().Get(root, tuple) != step.now || ch.Old < math.MaxInt64-1 {
					t.Fatalf("%d columns, %d tuples beside: adding %d to %d gives %d, %v", k, tuples, step.change, ch.Old, now, ok)
				}
			}
		}
	}
}
