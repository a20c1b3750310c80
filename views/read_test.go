package views

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
)

// TestAnswersOrder enumerates a path of three edges whose groups are single
// tuples, leaves, and tries, with and without weights: inner nodes are the outer
// loops, so that the groups of one leaf stay where they are while those of the
// other are walked, and answers ascend along the levels.
func TestAnswersOrder(t *testing.T) {
	for _, heavy := range []bool{false, true} {
		l := newLab(t)
		rng := rand.New(rand.NewPCG(7, 7))
		facts := map[string]bool{}
		var updates []string
		add := func(rel string, x, y int) {
			f := fmt.Sprintf("+%s n%d n%d", rel, x, y)
			if heavy && rng.IntN(5) == 0 {
				updates = append(updates, f)
			} else if facts[f] {
				return
			}
			facts[f] = true
			updates = append(updates, f)
		}
		for y := range 12 {
			for range []int{1, 3, 40, 150}[y%4] {
				add("a", rng.IntN(1000), y)
			}
			for range 1 + y%3 {
				add("b", y, rng.IntN(12))
			}
			for range []int{150, 1, 2, 40}[y%4] {
				add("c", y, rng.IntN(1000))
			}
		}
		l.epoch(updates...)
		p, err := plan.Compile(l.parse("Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w)."))
		if err != nil {
			t.Fatal(err)
		}
		q := l.register(p)
		l.seal()
		a := l.bind(q).Answers()
		var order []query.Var
		leaf := false
		for i := range a.levels {
			n := a.levels[i].node
			if leaf && len(n.children) > 0 {
				t.Fatalf("level %d is an inner node behind a leaf", i)
			}
			leaf = len(n.children) == 0
			order = append(order, n.rest...)
		}
		var before []uint64
		rows := 0
		for ; a.Next(); rows++ {
			var row []uint64
			for _, v := range order {
				row = append(row, a.Value(v))
			}
			if rows > 0 && slices.Compare(before, row) >= 0 {
				t.Fatalf("answer %d is %v after %v", rows, row, before)
			}
			before = row
		}
		if distinct, _, err := l.bind(q).Count(t.Context()); err != nil || distinct != int64(rows) || rows < 10_000 {
			t.Fatalf("%d answers, %d are counted (%v)", rows, distinct, err)
		}
	}
}
