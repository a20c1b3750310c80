package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// partsEvery is the number of epochs after which a new partition appears.
const partsEvery = 40

// partEvent is event n of a partition: it depends on nothing else. Every third
// event of A takes back the one two before it.
func partEvent(source string, n uint64) triegs.Event {
	i := func(x uint64) triegs.Term { return triegs.Int(int64(x)) }
	switch {
	case source == "A" && n%3 == 2:
		e := partEvent("A", n-2)
		e.Op = triegs.Delete
		return e
	case source == "A":
		return triegs.Edge("A", i(n%53), i(n%7))
	case source == "B":
		return triegs.Edge("B", i(n%7), i(n%11))
	}
	return triegs.Edge("C", triegs.String(source), i(n))
}

// partBatch gives the next n events of a partition from where the store is.
func partBatch(db *triegs.DB, source string, n int) triegs.Batch {
	next, _ := db.Offset(source)
	b := triegs.Batch{Source: source, Offset: next, Time: time.Unix(1, 0)}
	for i := range n {
		b.Events = append(b.Events, partEvent(source, next+uint64(i)))
	}
	return b
}

// partStep appends one epoch over three partitions, one of which is new now and
// then.
func partStep(ctx context.Context, db *triegs.DB) (triegs.Epoch, error) {
	step, _ := db.Offset("B")
	return db.AppendAll(ctx, partBatch(db, "A", 2), partBatch(db, "B", 1), partBatch(db, fmt.Sprintf("C%d", step/partsEvery), 1))
}

const partQuery = "q(x, y, z) :- A(x, y), B(y, z)."

// appendParts is the child of TestSRC05.
func appendParts(dir string, stop uint64, _ *rand.Rand, r reporter) error {
	ctx := context.Background()
	db, err := triegs.Open(dir, nil)
	if err != nil {
		return err
	}
	if _, err := db.Query("q"); err != nil {
		if _, err := db.Register(ctx, "q", partQuery); err != nil {
			return err
		}
	}
	for {
		step, _ := db.Offset("B")
		if stop > 0 && step >= stop {
			return db.Close()
		}
		if _, err := partStep(ctx, db); err != nil {
			return err
		}
		r.say("ack %d", step+1)
	}
}

// Epochs over several sources are killed in between; each source is fed again
// from its own position, and positions and data never part.
func TestSRC05(t *testing.T) {
	crashChild(t, appendParts)
	ctx := context.Background()
	ref := newWorld(t, "", nil)
	ref.register("q", partQuery)
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 6)) // moments, not inputs
	start := time.Now()
	n, acked, torn := kills(t), uint64(0), 0
	for i := range n + 1 {
		stop := uint64(0)
		if i == n {
			stop = max(1000, acked+5)
		}
		for _, line := range kill(t, t.Name(), dir, stop, rng).lines {
			if text, ok := strings.CutPrefix(line, "ack "); ok {
				acked, _ = strconv.ParseUint(text, 10, 64)
			}
		}
		db, err := triegs.Open(dir, nil)
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		step, _ := db.Offset("B")
		if step < acked || step > acked+1 {
			t.Fatalf("kill %d: position %d of B, %d acknowledged", i, step, acked)
		}
		acked = step
		if db.Recovery().CutBytes > 0 {
			torn++
		}
		for at, _ := ref.db.Offset("B"); at < step; at++ {
			if _, err := partStep(ctx, ref.db); err != nil {
				t.Fatal(err)
			}
		}
		compareParts(t, db, ref.db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills in %s, %d torn; %d epochs over %d sources", n, time.Since(start).Round(time.Millisecond), torn, acked, 2+(acked+partsEvery-1)/partsEvery)
}

// compareParts compares positions, content and answers of two stores.
func compareParts(t *testing.T, got, want *triegs.DB) {
	t.Helper()
	g, err := got.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	w, err := want.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if a, b := fmt.Sprint(g.Offsets()), fmt.Sprint(w.Offsets()); a != b {
		t.Fatalf("positions %s, want %s", a, b)
	}
	if a, b := digestOf(t, got), digestOf(t, want); a != b {
		t.Fatalf("digest %v at %v, want %v", a, g.Offsets(), b)
	}
	if _, err := got.Query("q"); err != nil {
		if g.Epoch() > 0 {
			t.Fatalf("at epoch %d: %v", g.Epoch(), err)
		}
		return
	}
	gd, gt, err := g.Count(context.Background(), "q")
	if err != nil {
		t.Fatal(err)
	}
	wd, wt, err := w.Count(context.Background(), "q")
	if err != nil {
		t.Fatal(err)
	}
	if gd != wd || gt != wt {
		t.Fatalf("count %d, %d, want %d, %d", gd, gt, wd, wt)
	}
	if err := got.Verify(context.Background()); err != nil {
		t.Fatal(err)
	}
}
