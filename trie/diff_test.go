package trie

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// checkPrefixDiff walks what differs behind prefixes of some rows, of all
// lengths, and compares it with the models.
func (w *world) checkPrefixDiff(t *testing.T, rng *rand.Rand, from, to version, rows []tuple) {
	t.Helper()
	var d Differ
	for range 5 {
		if len(rows) == 0 {
			return
		}
		row, p := rows[rng.IntN(len(rows))], rng.IntN(w.k+1)
		want := map[tuple][2]int64{}
		for _, model := range []map[tuple]int64{from.model, to.model} {
			for at := range model {
				if slices.Equal(at[:p], row[:p]) && from.model[at] != to.model[at] {
					want[at] = [2]int64{from.model[at], to.model[at]}
				}
			}
		}
		if len(want) > 0 && SamePrefix(from.space, from.root, to.space, to.root, row[:p]) {
			t.Fatalf("diff %d..%d: %v is the same, but %v differ", from.v, to.v, row[:p], want)
		}
		var last tuple
		n := 0
		for d.Seek(from.space, from.root, to.space, to.root, w.k, row[:p]); d.Next(); n++ {
			var at tuple
			copy(at[:], d.Tuple())
			if n > 0 && slices.Compare(last[:], at[:]) >= 0 {
				t.Fatalf("diff %d..%d behind %v: %v after %v", from.v, to.v, row[:p], at, last)
			}
			last = at
			if got := [2]int64{d.Before(), d.After()}; got != want[at] {
				t.Fatalf("diff %d..%d behind %v: %v weighs %v, want %v", from.v, to.v, row[:p], at, got, want[at])
			}
		}
		if n != len(want) || d.Next() {
			t.Fatalf("diff %d..%d behind %v: %d tuples, want %d", from.v, to.v, row[:p], n, len(want))
		}
	}
}

// TestSamePrefix: groups that nobody has written are known to be the same, and
// only the one that was written is walked.
func TestSamePrefix(t *testing.T) {
	a := NewArena(1)
	var root uint64
	for group := range uint64(1000) {
		for id := range uint64(100) {
			a.Set(&root, []uint64{group, id, 7}, 1, -1)
		}
	}
	old, space := root, a.Space()
	a.Seal(2)
	a.Set(&root, []uint64{500, 50, 7}, 3, -1)
	a.Set(&root, []uint64{2000, 1, 7}, 1, -1)
	differ := 0
	for group := range uint64(1000) {
		if !SamePrefix(space, old, a.Space(), root, []uint64{group}) {
			differ++
		}
	}
	if differ != 1 || SamePrefix(space, old, a.Space(), root, []uint64{2000}) {
		t.Fatalf("%d groups differ, want that of 500 and the new one of 2000", differ)
	}
	var d Differ
	if n := testing.AllocsPerRun(10, func() {
		d.Seek(space, old, a.Space(), root, 3, []uint64{500})
		if !d.Next() || !slices.Equal(d.Tuple(), []uint64{500, 50, 7}) || d.Before() != 1 || d.After() != 3 || d.Next() {
			t.Fatal("the tuple that was written is not what differs in its group")
		}
	}); n != 0 {
		t.Fatalf("walking allocates %v times", n)
	}
}
