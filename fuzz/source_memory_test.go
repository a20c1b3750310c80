package fuzz

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// fullVar asks for the sizes that the cases name, which take minutes.
const fullVar = "TRIEGS_FULL"

// sized gives the size of a case: what it names where that was asked for, else
// one that fits into every run.
func sized(full, usual, short int) int {
	if os.Getenv(fullVar) != "" {
		return full
	}
	return scaled(usual, short)
}

// held is a snapshot that is kept open, with what it must go on to read.
type held struct {
	*triegs.Snapshot
	answers map[string]map[string]int64 // by query
	adhoc   map[string]int64
	digest  triegs.Digest
	born    int
}

const heldAdhoc = "p(y, x, z) :- S(y, x), R(x, z)."

func hold(w *world, born int) *held {
	w.Helper()
	h := &held{Snapshot: w.snapshot(), born: born, answers: map[string]map[string]int64{}}
	for _, q := range w.db.Queries() {
		got, err := gather(h.Answers(q.Name()))
		if err != nil {
			w.Fatal(err)
		}
		h.answers[q.Name()] = got
	}
	h.adhoc, h.digest = h.other(w)
	return h
}

func (h *held) other(w *world) (map[string]int64, triegs.Digest) {
	w.Helper()
	adhoc, err := gather(h.Select(w.ctx, heldAdhoc))
	if err != nil {
		w.Fatal(err)
	}
	digest, err := h.Digest()
	if err != nil {
		w.Fatal(err)
	}
	return adhoc, digest
}

// check reads everything again.
func (h *held) check(w *world, now int) {
	w.Helper()
	what := fmt.Sprintf("the snapshot of step %d at step %d", h.born, now)
	for name, want := range h.answers {
		got, err := gather(h.Answers(name))
		if err != nil || !maps.Equal(got, want) {
			w.Fatalf("%s: %d answers of %s (%v), want %d", what, len(got), name, err, len(want))
		}
		distinct, total, err := h.Count(w.ctx, name)
		sum := int64(0)
		for _, n := range want {
			sum += n
		}
		if err != nil || distinct != int64(len(want)) || total != sum {
			w.Fatalf("%s: count of %s is %d, %d (%v), want %d, %d", what, name, distinct, total, err, len(want), sum)
		}
	}
	adhoc, digest := h.other(w)
	if !maps.Equal(adhoc, h.adhoc) || digest != h.digest {
		w.Fatalf("%s: %d ad hoc answers and digest %v, want %d and %v", what, len(adhoc), digest, len(h.adhoc), h.digest)
	}
}

// heldTexts are queries that need different orders of the same relations.
var heldTexts = []string{
	"q(x, y, z) :- R(x, y), S(y, z).",
	"q(x, y, z) :- R(y, x), S(z, y).",
	"q(x, y, z) :- R(x, y), R(y, z).",
	"q(x, y, z, u) :- R(x, y), S(x, z), T(x, u).",
	"q(x, y) :- R(x, y), S(y, x) distinct.",
	"q(x, y, u, v) :- S(x, y), T(u, v), U(y) set.",
	"q(x, y) :- R(x, 1), S(y, 2).",
}

// Snapshots that are held over ten thousand epochs, in which queries, relations
// and orders come and go, read their own state and nothing else, and what they
// kept is given back.
func TestHeldSnapshots(t *testing.T) {
	w := newWorld(t, "", nil)
	rng := rand.New(rand.NewPCG(21, 1))
	steps := sized(1_000_000, 60_000, 12_000)
	there := map[int]bool{}
	var live []triegs.Event
	var pins []*held
	node := func() triegs.Term { return triegs.Int(int64(rng.IntN(25))) }
	for step := range steps {
		switch {
		case step%83 == 1:
			i := rng.IntN(len(heldTexts))
			if name := fmt.Sprint("q", i); there[i] {
				w.drop(name)
			} else {
				w.register(name, heldTexts[i])
			}
			there[i] = !there[i]
		case step%211 == 7: // a relation that nobody asks for
			w.append(triegs.Batch{Events: []triegs.Event{{Relation: fmt.Sprint("new", step), Tuple: []triegs.Term{node()}}}})
		}
		var b triegs.Batch
		for range 1 + rng.IntN(4) {
			if len(live) > 150 || len(live) > 50 && rng.IntN(2) == 0 {
				i := rng.IntN(len(live))
				e := live[i]
				e.Op = triegs.Delete
				b.Events = append(b.Events, e)
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				continue
			}
			e := triegs.Edge([]string{"R", "S", "T"}[rng.IntN(3)], node(), node())
			if rng.IntN(9) == 0 {
				e = triegs.Event{Relation: "U", Tuple: []triegs.Term{node()}}
			}
			b.Events = append(b.Events, e)
			live = append(live, e)
		}
		w.append(b)
		if step == 100 || step > 100 && rng.IntN(steps/12) == 0 {
			pins = append(pins, hold(w, step))
		}
		if step%(steps/10) == steps/10-1 {
			for _, h := range pins {
				h.check(w, step)
			}
		}
		if len(pins) > 6 { // never the first
			i := 1 + rng.IntN(len(pins)-1)
			pins[i].Close()
			pins = append(pins[:i], pins[i+1:]...)
		}
	}
	t.Logf("%d snapshots open at the end, the oldest of step %d; %+v", len(pins), pins[0].born, w.db.Metrics())
	for _, h := range pins {
		h.check(w, steps)
		h.Close()
	}
	wantPins(t, w.db, 0)
}

// Insert, delete, again: what the store holds is that of an empty one each time.
func TestMEM03Rounds(t *testing.T) {
	n, rounds := sized(1_000_000, 50_000, 10_000), sized(10, 4, 3)
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.register("p", "p(x, y, z) :- R(x, y), R(y, z).")
	empty, start := heap(), w.db.Metrics()
	fill := func(op triegs.Op) {
		b := triegs.Batch{Events: edges("R", n, func(i int) int { return (i * 7) % n }), Time: time.Unix(1, 0)}
		for i := range b.Events {
			b.Events[i].Op = op
		}
		w.append(b)
	}
	var bytes []int64
	var accounts []triegs.Metrics
	for range rounds {
		fill(triegs.Insert)
		s := w.snapshot()
		w.wantCount(s, "q", int64(n), int64(n))
		s.Close()
		fill(triegs.Delete)
		w.want("q", "")
		w.want("p", "")
		w.append(triegs.Batch{}) // what the deletion freed is pending until the next epoch
		bytes, accounts = append(bytes, heap()), append(accounts, w.db.Metrics())
	}
	first, last := accounts[0], accounts[rounds-1]
	if m := last; m.Facts != 0 || m.Contributions != 0 || m.RetainedBytes != 0 {
		t.Errorf("after the last round: %d facts, %d contributions, %d bytes retained", m.Facts, m.Contributions, m.RetainedBytes)
	}
	if a, b := bytes[0], bytes[rounds-1]; b > a+a/5+1<<20 {
		t.Errorf("%d bytes in use after the first round, %d after the last", a, b)
	}
	// Terms stay; nothing else does.
	if kept := bytes[rounds-1] - empty - last.DictionaryBytes; kept > 16<<20 {
		t.Errorf("%d bytes in use beyond the dictionary, of an empty store %d", kept, empty)
	}
	if last.LiveBytes > start.LiveBytes+1<<20 || last.FactBytes > first.FactBytes+first.FactBytes/5+1<<20 {
		t.Errorf("accounts: at the start %+v, at the end %+v", start, last)
	}
	t.Logf("%d edges, bytes in use: %d empty, after the rounds %v", n, empty, bytes)
	t.Logf("dictionary %d, facts %d, tries %d live, %d reusable", last.DictionaryBytes, last.FactBytes, last.LiveBytes, last.ReusableBytes)
}

// One epoch larger than a segment of the log is committed whole, and is there
// after a restart.
func TestDEL08Size(t *testing.T) {
	n := sized(5_000_000, 200_000, 50_000)
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(y) :- R(x, y).")
	before := w.epoch()
	start := time.Now()
	if e := w.append(triegs.Batch{Source: "s", Events: edges("R", n, func(i int) int { return i % 1000 })}); e != before+1 {
		t.Fatalf("epoch %d after %d", e, before)
	}
	took := time.Since(start)
	log := w.db.Metrics().LogBytes
	for range 2 {
		s := w.snapshot()
		w.wantCount(s, "q", 1000, int64(n))
		for r, err := range s.Answers("q") {
			if err != nil || r.Multiplicity() != int64(n/1000) {
				t.Fatalf("%s x%d, error %v; want x%d", lexical(r), r.Multiplicity(), err, n/1000)
			}
		}
		s.Close()
		w.wantNext("s", uint64(n), true)
		w.reopen(dir, nil)
	}
	t.Logf("%d edges in one epoch: %s, %d bytes of log, replay %s", n, took.Round(time.Millisecond), log, w.db.Recovery().Replay.Round(time.Millisecond))
}
