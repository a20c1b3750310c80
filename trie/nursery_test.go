package trie

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/mvcc"
)

// grove is an arena with several tries, beside plain maps, that nurseries add to.
type grove struct {
	k     int
	arena *Arena
	trees []tree
	rows  []tuple // that some tree had
	old   []grown
	pins  mvcc.Pins
	next  mvcc.Version
}

type tree struct {
	root  uint64
	model map[tuple]int64
}

type grown struct {
	v     mvcc.Version
	space Space
	trees []tree
}

// copied is a nursery with the first tree of a pinned version in the opposite
// order of its columns.
type copied struct {
	arena *Arena
	root  uint64
	at    grown
	done  chan struct{}
}

func cloneTrees(trees []tree) []tree {
	all := slices.Clone(trees)
	for i := range all {
		all[i].model = maps.Clone(all[i].model)
	}
	return all
}

func opposite(row []uint64) []uint64 {
	row = slices.Clone(row)
	slices.Reverse(row)
	return row
}

func oppositeModel(k int, model map[tuple]int64) map[tuple]int64 {
	out := make(map[tuple]int64, len(model))
	for row, w := range model {
		var to tuple
		copy(to[:], opposite(row[:k]))
		out[to] = w
	}
	return out
}

// fill is what a hydrating goroutine does: it reads the pinned version and writes
// the nursery, part of it in bulk and part tuple by tuple.
func (c *copied) fill(k int) {
	defer close(c.done)
	var (
		rows []uint64
		cur  Cursor
		n    int
	)
	for cur.Seek(c.at.space, c.at.trees[0].root, k, nil); cur.Next(); n++ {
		row := make([]uint64, k)
		cur.Columns(row, 0)
		rows = append(append(rows, opposite(row)...), uint64(cur.Weight()))
	}
	chunks := slices.Collect(slices.Chunk(rows, k+1))
	slices.SortFunc(chunks, func(a, b []uint64) int { return slices.Compare(a[:k], b[:k]) })
	c.root = c.arena.Build(slices.Concat(chunks[:n/2]...), k)
	c.arena.Seal(c.arena.Version() + 1)
	for i, row := range chunks[n/2:] {
		if c.arena.Set(&c.root, row[:k], int64(row[k]), -1); i%50 == 0 {
			c.arena.Seal(c.arena.Version() + 1)
			c.arena.CollectVersions(c.arena.Version()-1, nil)
		}
	}
}

// catchUp applies what has changed between the version that was copied and
// another one.
func (c *copied) catchUp(k int, to grown) {
	c.arena.Seal(c.arena.Version() + 1)
	Diff(c.at.space, c.at.trees[0].root, to.space, to.trees[0].root, k, func(row []uint64, _, after int64) bool {
		c.arena.Set(&c.root, opposite(row), after, -1)
		return true
	})
	c.at = to
}

func (g *grove) check(t *testing.T, what string, space Space, trees []tree) {
	t.Helper()
	for i, tr := range trees {
		w := world{k: g.k}
		w.check(t, fmt.Sprintf("%s, tree %d", what, i), space, tr.root, tr.model)
	}
}

func (g *grove) now() grown { return grown{g.arena.Version(), g.arena.Space(), cloneTrees(g.trees)} }

func (g *grove) write(rng *rand.Rand, domain int) {
	for range rng.IntN(300) {
		tr := &g.trees[rng.IntN(len(g.trees))]
		var row tuple
		for i := range g.k {
			row[i] = drawID(rng, domain)
		}
		if rng.IntN(3) > 0 || len(g.rows) == 0 {
			g.rows = append(g.rows, row)
			g.arena.Set(&tr.root, row[:g.k], drawWeight(rng), -1)
			tr.model[row] = g.arena.Space().Get(tr.root, row[:g.k])
			continue
		}
		row = g.rows[rng.IntN(len(g.rows))]
		g.arena.Set(&tr.root, row[:g.k], 0, -1)
		delete(tr.model, row)
	}
}

// seal ends the version under construction and pins it.
func (g *grove) seal() grown {
	now := g.now()
	g.next++
	g.arena.Seal(g.next)
	g.pins.Add(now.v)
	g.old = append(g.old, now)
	g.arena.Collect(now.v, &g.pins)
	return now
}

func (g *grove) begin(v grown) *copied {
	g.pins.Add(v.v)
	c := &copied{arena: g.arena.Nursery(), at: v, done: make(chan struct{})}
	go c.fill(g.k)
	return c
}

// end takes a nursery over, or discards it. An adoption may be aborted.
func (g *grove) end(t *testing.T, rng *rand.Rand, c *copied, domain int) {
	<-c.done
	from := c.at.v
	if rng.IntN(2) == 0 {
		mid := g.old[len(g.old)-1]
		c.catchUp(g.k, mid)
	}
	defer g.pins.Drop(from)
	if rng.IntN(4) == 0 {
		c.arena.Discard()
		return
	}
	before, trees := g.arena.Bytes(), cloneTrees(g.trees)
	if rng.IntN(2) == 0 {
		g.write(rng, domain)
	}
	c.catchUp(g.k, g.now())
	g.arena.Adopt(c.arena)
	g.trees = append(g.trees, tree{c.root, oppositeModel(g.k, g.trees[0].model)})
	g.check(t, "adopted", g.arena.Space(), g.trees)
	g.write(rng, domain)
	g.check(t, "adopted and written", g.arena.Space(), g.trees)
	if rng.IntN(3) == 0 {
		g.arena.Abort()
		g.trees = trees
		if after := g.arena.Bytes(); after.Live != before.Live || after.Held != before.Held || after.Pending != before.Pending {
			t.Fatalf("after an aborted adoption %+v, before %+v", after, before)
		}
		g.check(t, "aborted", g.arena.Space(), g.trees)
	}
}

// slabs compares the accounts with the slabs that are there.
func (g *grove) slabs(t *testing.T, nurseries bool) {
	t.Helper()
	tab := g.arena.table
	tab.mu.Lock()
	defer tab.mu.Unlock()
	there := int64(0)
	for i, s := range tab.space {
		if s != nil {
			there++
		}
		for _, old := range tab.olds {
			if i < len(old) && old[i] != nil && s == nil {
				t.Fatalf("slab %d has gone and an older array has it", i)
			}
		}
	}
	b := g.arena.Bytes()
	if !nurseries && (there*8*slabSize != b.Total || b.Nurseries != 0) {
		t.Fatalf("%d slabs, %+v", there, b)
	}
	if b.Reusable < 0 {
		t.Fatalf("accounts do not add up: %+v", b)
	}
}

// TestNurseries builds tries beside a writer from its pinned versions, catches up,
// and has them adopted, discarded or aborted, with readers on all of it. The race
// detector sees both goroutines.
func TestNurseries(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			g := &grove{k: 1 + rng.IntN(maxK), arena: NewArena(1), next: 1}
			g.trees = []tree{{0, map[tuple]int64{}}}
			g.run(t, rng, []int{12, 100, 4000}[rng.IntN(3)])
		})
	}
}

func (g *grove) run(t *testing.T, rng *rand.Rand, domain int) {
	var under []*copied
	for range 60 {
		g.write(rng, domain)
		now := g.seal()
		if len(under) < 2 && rng.IntN(4) == 0 {
			under = append(under, g.begin(now))
		}
		if n := len(under); n > 0 && rng.IntN(5) == 0 {
			g.end(t, rng, under[0], domain)
			under = under[1:]
			g.slabs(t, n > 1)
		}
		for len(g.old) > 6 {
			i := rng.IntN(len(g.old))
			g.check(t, "pinned", g.old[i].space, g.old[i].trees)
			g.pins.Drop(g.old[i].v)
			g.old = slices.Delete(g.old, i, i+1)
		}
	}
	for _, c := range under {
		<-c.done
		c.arena.Discard()
		g.pins.Drop(c.at.v)
	}
	for _, tr := range g.trees {
		g.arena.Clear(tr.root, g.k)
	}
	g.arena.Seal(g.next + 1)
	for _, o := range g.old {
		g.check(t, "pinned to the end", o.space, o.trees)
		g.pins.Drop(o.v)
	}
	g.arena.Collect(g.next, &g.pins)
	g.slabs(t, false)
	if b := g.arena.Bytes(); b.Live != 0 || b.Held != 0 || b.Pending != 0 || b.Total > int64(len(classes))*8*slabSize {
		t.Fatalf("blocks are left: %+v", b)
	}
}

// TestAdoptedBlocksAreOfTheirVersion: a pin before the adoption holds nothing of
// what was adopted, one behind it all that it reads.
func TestAdoptedBlocksAreOfTheirVersion(t *testing.T) {
	a := NewArena(1)
	var pins mvcc.Pins
	pins.Add(1)
	a.Seal(2)
	n := a.Nursery()
	var rows []uint64
	for i := range uint64(10_000) {
		rows = append(rows, i, i*i, 1)
	}
	root := n.Build(rows, 2)
	a.Adopt(n)
	live, space := a.Bytes().Live, a.Space()
	a.Seal(3)
	pins.Add(2)
	a.Clear(root, 2)
	a.Seal(4)
	a.Collect(3, &pins)
	if held := a.HeldBy(2); held != live || a.HeldBy(1) != 0 {
		t.Fatalf("version 2 holds %d bytes, want %d; version 1 holds %d", held, live, a.HeldBy(1))
	}
	if n, err := space.Check(root, 2); n != 10_000 || err != nil {
		t.Fatalf("%d tuples in a pinned version (%v)", n, err)
	}
	pins.Drop(2)
	a.Collect(3, &pins)
	if b := a.Bytes(); b.Held != 0 || b.Live != 0 || a.HeldBy(1) != 0 {
		t.Fatalf("%+v, version 1 holds %d bytes", b, a.HeldBy(1))
	}
}
