package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// observation is one pinned state as a reader saw it, twice.
type observation struct {
	epoch  triegs.Epoch
	after  triegs.Epoch // the newest epoch that was acknowledged before the pin
	first  []map[string]int64
	again  []map[string]int64
	broken string // what the state contradicts by itself
}

// workload is a list of batches with the queries to read, and what must hold in
// every single state of it.
type workload struct {
	queries []randq.Query
	batches [][]oracle.Event
	holds   func(answers []map[string]int64) string
}

// readersMax is the number of readers beside the one writer.
const readersMax = 8

// record lets readers and a writer run freely and gives what each reader saw.
// The writer begins once all queries are registered, so that state i of the
// history is the one after i batches, at epoch base+i.
func record(t *testing.T, w workload, seed uint64) (seen [][]observation, base triegs.Epoch) {
	t.Helper()
	ctx := context.Background()
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.queries {
		q, err := db.Register(ctx, w.queries[i].Name, w.queries[i].Text())
		if err != nil {
			t.Fatal(err)
		}
		base = q.Epoch()
	}
	var acked sync.Map // "epoch" -> the newest acknowledged epoch
	acked.Store("epoch", base)
	seen = make([][]observation, readersMax)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for i := range readersMax {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				after, _ := acked.Load("epoch")
				o, err := observe(db, w, r)
				if err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
				o.after = after.(triegs.Epoch)
				seen[i] = append(seen[i], o)
			}
		})
	}
	pace := rand.New(rand.NewPCG(seed, 99))
	for i, events := range w.batches {
		if i%4 == 0 {
			// A pause, so that readers meet many epochs even where an append
			// takes a few microseconds.
			time.Sleep(time.Duration(pace.IntN(400)) * time.Microsecond)
		}
		e, err := db.Append(ctx, batch(events, 1))
		if err != nil {
			t.Errorf("batch %d: %v", i, err)
			break
		}
		acked.Store("epoch", e)
	}
	close(done)
	readers.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	return seen, base
}

// observe pins a state, reads all queries in it, waits a moment, and reads them
// again in another order.
func observe(db *triegs.DB, w workload, r *rand.Rand) (observation, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return observation{}, err
	}
	o := observation{epoch: snap.Epoch()}
	for _, into := range []*[]map[string]int64{&o.first, &o.again} {
		*into = make([]map[string]int64, len(w.queries))
		for _, i := range r.Perm(len(w.queries)) {
			if (*into)[i], err = gather(snap.Answers(w.queries[i].Name)); err != nil {
				return o, errors.Join(err, snap.Close())
			}
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
	}
	o.broken = w.holds(o.first)
	return o, snap.Close()
}

// judge checks what the readers saw against the oracle at each epoch.
func judge(t *testing.T, w workload, seen [][]observation, base triegs.Epoch) {
	t.Helper()
	want := map[triegs.Epoch][]oracle.Answers{} // of the epochs that were seen
	for _, list := range seen {
		for _, o := range list {
			want[o.epoch] = nil
		}
	}
	var model oracle.Store
	for i := range len(w.batches) + 1 {
		if i > 0 {
			if _, err := model.Apply(w.batches[i-1], false); err != nil {
				t.Fatal(err)
			}
		}
		e := base + triegs.Epoch(i)
		if _, ok := want[e]; !ok {
			continue
		}
		for q := range w.queries {
			want[e] = append(want[e], w.queries[q].Oracle().Eval(&model))
		}
	}
	reads := 0
	for reader, list := range seen {
		last := triegs.Epoch(0)
		for _, o := range list {
			reads++
			at := fmt.Sprintf("reader %d at epoch %d", reader, o.epoch)
			switch {
			case o.epoch < last:
				t.Fatalf("%s: went back from %d", at, last)
			case o.epoch < o.after:
				t.Fatalf("%s: stale, %d was acknowledged before", at, o.after)
			case o.broken != "":
				t.Fatalf("%s: fractured: %s", at, o.broken)
			}
			last = o.epoch
			for q := range w.queries {
				if err := differ(o.first[q], want[o.epoch][q]); err != nil {
					t.Fatalf("%s, query %d: %v", at, q, err)
				}
				if err := differ(o.again[q], want[o.epoch][q]); err != nil {
					t.Fatalf("%s, query %d, read again: %v", at, q, err)
				}
			}
		}
	}
	t.Logf("%d reads of %d epochs of %d", reads, len(want), len(w.batches)+1)
	if len(want) < 5 {
		t.Errorf("the readers saw %d epochs: this history shows nothing", len(want))
	}
}

// rules reads queries in rule text.
func rules(t *testing.T, texts ...string) (out []randq.Query) {
	t.Helper()
	for _, text := range texts {
		c, err := randq.Parse("query " + text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c.Queries...)
	}
	return out
}

// add and remove make events over plain strings.
func add(rel string, tuple ...string) oracle.Event {
	return oracle.Event{Relation: rel, Tuple: quoted(tuple)}
}

func remove(rel string, tuple ...string) oracle.Event {
	return oracle.Event{Delete: true, Relation: rel, Tuple: quoted(tuple)}
}

func quoted(tuple []string) []string {
	out := make([]string, len(tuple))
	for i, s := range tuple {
		out[i] = `"` + s + `"`
	}
	return out
}

// total adds up multiplicities.
func total(answers map[string]int64) (n int64) {
	for _, m := range answers {
		n += m
	}
	return n
}

// epochsOfHistory is the length of a recorded history.
func epochsOfHistory() int {
	if testing.Short() {
		return 300
	}
	return 1500
}

// coins moves one coin an epoch between ten accounts. Every state holds each of
// the hundred coins once, seen from three sides.
func coins(t *testing.T, r *rand.Rand) workload {
	w := workload{queries: rules(t,
		"held(a, c) :- Holds(a, c), Coin(c, _).",
		"twice(a, c) :- Holds(a, c), Holds(a, c).",
		"coins(c) :- Holds(_, c), Coin(c, _).",
		"accounts(a) :- Holds(a, c), Coin(c, _).",
		"all() :- Holds(a, c), Coin(c, _).",
		"sorts(a, u) :- Holds(a, c), Coin(c, u).")}
	w.holds = func(answers []map[string]int64) string {
		for i, a := range answers {
			if n := total(a); n != 100 {
				return fmt.Sprintf("query %d sums to %d of 100 coins", i, n)
			}
		}
		if fmt.Sprint(answers[0]) != fmt.Sprint(answers[1]) {
			return "two uses of one relation disagree"
		}
		return ""
	}
	holder := make([]int, 100)
	name := func(prefix string, i int) string { return fmt.Sprintf("%s%d", prefix, i) }
	var first []oracle.Event
	for c := range holder {
		holder[c] = c % 10
		first = append(first, add("Coin", name("c", c), "x"), add("Holds", name("a", holder[c]), name("c", c)))
	}
	w.batches = append(w.batches, first)
	for range epochsOfHistory() {
		c, to := r.IntN(100), r.IntN(10)
		w.batches = append(w.batches, []oracle.Event{
			remove("Holds", name("a", holder[c]), name("c", c)),
			add("Holds", name("a", to), name("c", c)),
		})
		holder[c] = to
	}
	return w
}

// ring keeps a permutation of ten nodes and swaps the successors of two of them
// in each epoch: there are always ten edges, ten paths of two, and each node has
// one successor and one predecessor.
func ring(t *testing.T, r *rand.Rand) workload {
	w := workload{queries: rules(t,
		"paths(x, y, z) :- Next(x, y), Next(y, z).",
		"long(x, y, z, u) :- Next(x, y), Next(y, z), Next(z, u).",
		"sides(x, y, z) :- Next(x, y), Next(z, y).")}
	w.holds = func(answers []map[string]int64) string {
		for i, a := range answers {
			if len(a) != 10 || total(a) != 10 {
				return fmt.Sprintf("query %d has %d answers, %d in all, of 10", i, len(a), total(a))
			}
		}
		return ""
	}
	next := r.Perm(10)
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	var first []oracle.Event
	for i, n := range next {
		first = append(first, add("Next", name(i), name(n)))
	}
	w.batches = append(w.batches, first)
	for range epochsOfHistory() {
		i, j := r.IntN(10), r.IntN(10)
		if i == j {
			j = (i + 1) % 10
		}
		w.batches = append(w.batches, []oracle.Event{
			remove("Next", name(i), name(next[i])), remove("Next", name(j), name(next[j])),
			add("Next", name(i), name(next[j])), add("Next", name(j), name(next[i])),
		})
		next[i], next[j] = next[j], next[i]
	}
	return w
}

// TestHistory records what eight readers see while one writer runs, and judges
// it afterwards: no fractured state, no epoch that goes back or lags behind
// what was acknowledged before, every read equal to the oracle at its epoch,
// and the second read of a pin equal to the first.
func TestHistory(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(*testing.T, *rand.Rand) workload
	}{{"coins", coins}, {"ring", ring}} {
		t.Run(tc.name, func(t *testing.T) {
			const seed = 9
			w := tc.make(t, rand.New(rand.NewPCG(seed, 3)))
			// The invariant speaks of states after the load.
			holds := w.holds
			w.holds = func(answers []map[string]int64) string {
				if total(answers[0]) == 0 {
					return ""
				}
				return holds(answers)
			}
			seen, base := record(t, w, seed)
			judge(t, w, seen, base)
		})
	}
}
