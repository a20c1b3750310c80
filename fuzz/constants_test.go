package fuzz

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/triegs/triegs"
)

// threeHops are the facts of a, b and d, with multiplicities, for a reference by nested
// loops.
type threeHops map[string]map[[2]int]int64

// ends are the numbers of ways from x by any y and z to k, by x and z.
func (h threeHops) ends(k int) map[string]int64 {
	out := map[string]int64{}
	for a, n := range h["a"] {
		for b, m := range h["b"] {
			if p := n * m * h["d"][[2]int{b[1], k}]; a[1] == b[0] && p > 0 {
				out[fmt.Sprintf("%v\t%v", literal(a[0]), literal(b[1]))] += p
			}
		}
	}
	return out
}

// change is an event that puts a fact in or takes one out that is there.
func (h threeHops) change(rng *rand.Rand, constants int) triegs.Event {
	rel, to := "a", 5
	switch rng.IntN(3) {
	case 0:
		rel = "b"
	case 1:
		rel, to = "d", constants
	}
	key := [2]int{rng.IntN(5), rng.IntN(to)}
	e := fact(nil, rel, key[0], key[1])
	if h[rel][key] > 0 && rng.IntN(3) > 0 {
		e.Op = triegs.Delete
		h[rel][key]--
	} else {
		h[rel][key]++
	}
	return e
}

// TestManyConstants: many queries with kept answers that differ in one constant, some
// of which come and go, are what nested loops find, also after a restart.
func TestManyConstants(t *testing.T) {
	t.Parallel()
	const constants = 40
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	rng := rand.New(rand.NewPCG(61, 62))
	h := threeHops{"a": {}, "b": {}, "d": {}}
	live := map[int]bool{}
	name := func(k int) string { return fmt.Sprint("q", k) }
	for step := range sized(400, 60, 30) {
		for range 1 + rng.IntN(4) {
			switch k := rng.IntN(constants); {
			case !live[k]:
				w.register(name(k), fmt.Sprintf("q(x, z) :- a(x, y), b(y, z), d(z, %d).", k))
				live[k] = true
			case step/20%2 == 1 || rng.IntN(4) == 0:
				if err := w.db.Drop(w.ctx, name(k)); err != nil {
					t.Fatal(err)
				}
				delete(live, k)
			}
		}
		var batch triegs.Batch
		for range 1 + rng.IntN(12) {
			batch.Events = append(batch.Events, h.change(rng, constants))
		}
		w.append(batch)
		if step%25 == 24 {
			w.reopen(dir, nil)
		}
		s, err := w.db.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for k := range live {
			rows, err := gatherRows(s.Answers(name(k)), 2)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			for key, g := range rows {
				got[key] = g.n
			}
			if want := h.ends(k); !maps.Equal(got, want) {
				t.Fatalf("step %d, %d queries, constant %d: got %v, want %v", step, len(live), k, got, want)
			}
		}
		s.Close()
	}
}
