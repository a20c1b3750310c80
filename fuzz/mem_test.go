package fuzz

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// One long reader keeps what its epoch needs, not every version in between.
func TestMEM01(t *testing.T) {
	n, epochs := scaled(10_000, 3_000), scaled(1_000_000, 20_000)
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.append(triegs.Batch{Events: edges("R", n, func(i int) int { return i })})
	at := make([]int, n)
	for i := range at {
		at[i] = i
	}
	r := rand.New(rand.NewPCG(1, 1))
	churn := func(epochs int) {
		for range epochs {
			i := r.IntN(n)
			next := r.IntN(1 << 20)
			old := triegs.Edge("R", triegs.Int(int64(i)), triegs.Int(int64(at[i])))
			old.Op = triegs.Delete
			w.append(triegs.Batch{Time: time.Unix(1, 0), Events: []triegs.Event{old, triegs.Edge("R", triegs.Int(int64(i)), triegs.Int(int64(next)))}})
			at[i] = next
		}
	}
	s := w.snapshot()
	before := storage(w.db)
	pinnedSum := checksum(t, s)
	churn(epochs / 2)
	half := storage(w.db)
	churn(epochs / 2)
	full := storage(w.db)
	if got := checksum(t, s); got != pinnedSum {
		t.Errorf("the pinned answers changed")
	}
	// The pinned version plus the live one, and room to spare; a version an
	// epoch would be hundreds of times that.
	if full > 4*before+1<<20 {
		t.Errorf("%d bytes at the start, %d and %d while pinned", before, half, full)
	}
	wantPins(t, w.db, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantPins(t, w.db, 0)
	churn(200)
	if after := storage(w.db); after > 2*before+1<<20 {
		t.Errorf("%d bytes at the start, %d after the release", before, after)
	}
	t.Logf("bytes: %d at the start, %d and %d while pinned, %d after", before, half, full, storage(w.db))
}

// checksum folds all answers of q into one number, whatever their order.
func checksum(t *testing.T, s *triegs.Snapshot) (sum uint64) {
	t.Helper()
	for r, err := range s.Answers("q") {
		if err != nil {
			t.Fatal(err)
		}
		x, _ := r.Term(0).AsInt()
		y, _ := r.Term(1).AsInt()
		h := uint64(x)*0x9e3779b97f4a7c15 ^ uint64(y)*0xc2b2ae3d27d4eb4f
		sum += (h ^ h>>29) * uint64(r.Multiplicity())
	}
	return sum
}

// A hub of many edges on both sides has a product of answers that is never
// built: counting, the first answers and a delete are all cheap.
func TestMEM02(t *testing.T) {
	n := scaled(100_000, 10_000)
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y, z) :- R(x, y), S(y, z).")
	w.register("all", "q() :- R(x, y), S(y, z).")
	w.register("hub", "q(y, count(), count(distinct x)) :- R(x, y), S(y, z).")
	var b triegs.Batch
	hub := triegs.String("h")
	for i := range n {
		b.Events = append(b.Events, triegs.Edge("R", triegs.Int(int64(i)), hub), triegs.Edge("S", hub, triegs.Int(int64(i))))
	}
	w.append(b)
	square := int64(n) * int64(n)
	s := w.snapshot()
	w.wantCount(s, "q", square, square)
	w.want("all", fmt.Sprintf("():%d", square))
	w.wantValues("hub", fmt.Sprintf("(h)=%d,%d", square, n))
	rows := 0
	within(t, time.Second, "the first ten answers", func() {
		for _, err := range s.Answers("q") {
			if rows++; err != nil || rows == 10 {
				break
			}
		}
	})
	s.Close()
	gone := triegs.Edge("S", hub, triegs.Int(1))
	gone.Op = triegs.Delete
	within(t, time.Second, "the delete", func() { w.append(triegs.Batch{Events: []triegs.Event{gone}}) })
	s = w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", square-int64(n), square-int64(n))
	w.want("all", fmt.Sprintf("():%d", square-int64(n)))
	w.wantValues("hub", fmt.Sprintf("(h)=%d,%d", square-int64(n), n))
	if bytes := storage(w.db); bytes > int64(n)*2*400 {
		t.Errorf("%d bytes for %d edges", bytes, 2*n)
	}
}

// What is deleted is given back, round after round.
func TestMEM03(t *testing.T) {
	n, rounds := scaled(100_000, 20_000), scaled(6, 3)
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.register("p", "p(x, y, z) :- R(x, y), R(y, z).")
	empty := heap()
	var first int64
	for round := range rounds {
		// The same terms every round: ids are never freed, so others would add
		// to the dictionary.
		in := triegs.Batch{Events: edges("R", n, func(i int) int { return (i * 7) % n })}
		w.append(in)
		out := triegs.Batch{Events: edges("R", n, func(i int) int { return (i * 7) % n })}
		for i := range out.Events {
			out.Events[i].Op = triegs.Delete
		}
		w.append(out)
		w.want("q", "")
		w.want("p", "")
		in, out = triegs.Batch{}, triegs.Batch{}
		if round == 0 {
			first = heap()
		}
	}
	last := heap()
	if last > first+first/5+1<<20 {
		t.Errorf("%d bytes in use after the first round, %d after the last (%d when empty)", first, last, empty)
	}
	t.Logf("bytes in use: %d empty, %d after the first round, %d after the last", empty, first, last)
}

// Counting keeps nothing, whatever the number of answers.
func TestMEM07(t *testing.T) {
	n := scaled(3163, 1000)
	w := product(t, n)
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", int64(n*n), int64(n*n)) // warm
	before := heap()
	for range 3 {
		w.wantCount(s, "q", int64(n*n), int64(n*n))
	}
	rows := 0
	for _, err := range s.Answers("q") {
		if rows++; err != nil || rows == 1000 {
			break
		}
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes over counts of %d answers", grown, n*n)
	}
}
