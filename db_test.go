package triegs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

func open(t *testing.T, dir string, o *triegs.Options) *triegs.DB {
	t.Helper()
	db, err := triegs.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // a second Close is nil
	return db
}

func fact(op triegs.Op, rel string, x int64) triegs.Event {
	return triegs.Event{Op: op, Relation: rel, Tuple: []triegs.Term{triegs.Int(x)}}
}

// An empty batch below the position of its source is a replay, at the position
// it is an epoch.
func TestEmptyBatchOfSource(t *testing.T) {
	db := open(t, "", nil)
	ctx := t.Context()
	for i, step := range []struct {
		batch triegs.Batch
		epoch triegs.Epoch
	}{
		{triegs.Batch{Source: "s", Events: []triegs.Event{fact(triegs.Insert, "R", 1), fact(triegs.Insert, "R", 2)}}, 1},
		{triegs.Batch{Source: "s", Offset: 1}, 1},
		{triegs.Batch{Source: "s", Offset: 2}, 2},
		{triegs.Batch{}, 3},
	} {
		if e, err := db.Append(ctx, step.batch); err != nil || e != step.epoch {
			t.Errorf("step %d: epoch %d, %v, want %d", i, e, err, step.epoch)
		}
	}
}

// Events without a time have that of their own batch, so a retraction takes the
// copy whose batch is the earlier one, wherever it stands in the call.
func TestAppendAllKeepsTimes(t *testing.T) {
	db := open(t, "", nil)
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	later, earlier := fact(triegs.Insert, "R", 1), fact(triegs.Insert, "R", 1)
	later.ID, earlier.ID = "later", "earlier"
	if _, err := db.AppendAll(t.Context(),
		triegs.Batch{Time: at(10), Events: []triegs.Event{later}},
		triegs.Batch{Time: at(5), Events: []triegs.Event{earlier}},
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Append(t.Context(), triegs.Batch{Time: at(11), Events: []triegs.Event{fact(triegs.Delete, "R", 1)}}); err != nil {
		t.Fatal(err)
	}
	gone := triegs.Event{Op: triegs.Delete, ID: "earlier"}
	if _, err := db.Append(t.Context(), triegs.Batch{Events: []triegs.Event{gone}}); !errors.Is(err, triegs.ErrNoSuchFact) {
		t.Errorf("the copy of the earlier batch is still there: %v", err)
	}
	gone.ID = "later"
	if _, err := db.Append(t.Context(), triegs.Batch{Events: []triegs.Event{gone}}); err != nil {
		t.Errorf("the copy of the later batch: %v", err)
	}
}

// A context ends the wait for another writer, a registration, and an ad hoc
// query, without trace.
func TestContextEndsWaits(t *testing.T) {
	db := open(t, "", nil)
	var events []triegs.Event
	for i := range int64(300_000) {
		events = append(events, triegs.Edge("R", triegs.Int(i), triegs.Int(i%1000)))
	}
	if _, err := db.Append(t.Context(), triegs.Batch{Events: events}); err != nil {
		t.Fatal(err)
	}
	before := db.Metrics()
	const text = "q(x, y, z) :- R(x, y), R(y, z), R(_, z)."
	ctx, cancel := context.WithCancel(t.Context())
	// After this many looks at the context it has ended.
	if _, err := db.Register(&countdown{Context: ctx, left: 20, cancel: cancel}, "q", text); !errors.Is(err, context.Canceled) {
		t.Fatalf("register: %v", err)
	}
	if after := db.Metrics(); after.LiveBytes != before.LiveBytes || after.Epoch != before.Epoch || after.Queries != 0 {
		t.Errorf("a cancelled registration left a trace: %+v, before %+v", after, before)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	ctx, cancel = context.WithCancel(t.Context())
	for _, err := range snap.Select(&countdown{Context: ctx, left: 20, cancel: cancel}, text) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("select: %v", err)
		}
	}
	if err := db.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// countdown is a context that is cancelled after some looks at it.
type countdown struct {
	context.Context
	left   int
	cancel func()
}

func (c *countdown) Err() error {
	if c.left--; c.left == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// A waiting writer gives up when its context ends, although the other goes on.
func TestContextEndsWaitForWriter(t *testing.T) {
	stop, held := make(chan struct{}), make(chan struct{})
	db := open(t, "", nil)
	slow := &stalled{Context: t.Context(), held: held, stop: stop}
	done := make(chan error, 1)
	go func() {
		_, err := db.Register(slow, "q", "q(x) :- R(x, _).")
		done <- err
	}()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Append(ctx, triegs.Batch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := db.Append(ctx, triegs.Batch{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled while waiting: %v", err)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// stalled is a context that holds up whoever looks at it for the third time.
type stalled struct {
	context.Context
	looks      int
	held, stop chan struct{}
}

func (c *stalled) Err() error {
	if c.looks++; c.looks == 3 {
		close(c.held)
		<-c.stop
	}
	return c.Context.Err()
}

// A store that was above a budget once, and no longer is, opens under it.
func TestBudgetCountsFromOpening(t *testing.T) {
	dir := t.TempDir() + "/db"
	db := open(t, dir, nil)
	for _, op := range []triegs.Op{triegs.Insert, triegs.Delete} {
		var events []triegs.Event
		for i := range int64(20_000) {
			events = append(events, fact(op, "R", i))
		}
		if _, err := db.Append(t.Context(), triegs.Batch{Events: events}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir, &triegs.Options{MemoryBudget: 10_000})
	if _, err := db.Append(t.Context(), triegs.Batch{Events: []triegs.Event{fact(triegs.Insert, "R", 1)}}); err != nil {
		t.Fatal(err)
	}
	var many []triegs.Event
	for i := range int64(5_000) {
		many = append(many, triegs.Edge(fmt.Sprint("S", i), triegs.Int(i), triegs.Int(i)))
	}
	if _, err := db.Append(t.Context(), triegs.Batch{Events: many}); !errors.Is(err, triegs.ErrBudget) {
		t.Errorf("far above the budget: %v", err)
	}
}

// A read-only store keeps the digest that was logged, and Verify compares it.
func TestReadOnlyVerify(t *testing.T) {
	dir := t.TempDir() + "/db"
	db := open(t, dir, nil)
	if _, err := db.Append(t.Context(), triegs.Batch{Events: []triegs.Event{fact(triegs.Insert, "R", 1), fact(triegs.Insert, "R", 2)}}); err != nil {
		t.Fatal(err)
	}
	digest := func(db *triegs.DB) triegs.Digest {
		s, err := db.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		d, err := s.Digest()
		if err != nil || d == (triegs.Digest{}) {
			t.Fatalf("digest %v, %v", d, err)
		}
		return d
	}
	want := digest(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir, &triegs.Options{ReadOnly: true})
	if got := digest(db); got != want {
		t.Errorf("read-only digest %v, want %v", got, want)
	}
	if err := db.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	memory := open(t, "", nil)
	if _, err := memory.Append(t.Context(), triegs.Batch{Events: []triegs.Event{fact(triegs.Insert, "R", 2), fact(triegs.Insert, "R", 1)}}); err != nil {
		t.Fatal(err)
	}
	if got := digest(memory); got != want {
		t.Errorf("digest of the same facts in memory %v, want %v", got, want)
	}
}

// Open snapshots are listed with what they keep.
func TestSnapshotsAreListed(t *testing.T) {
	db := open(t, "", &triegs.Options{Clock: func() time.Time { return time.Unix(100, 0) }})
	var in, out []triegs.Event
	for i := range int64(1000) {
		in = append(in, fact(triegs.Insert, "R", i))
		out = append(out, fact(triegs.Delete, "R", i))
	}
	if _, err := db.Append(t.Context(), triegs.Batch{Events: in}); err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]triegs.Event{out, nil} {
		if _, err := db.Append(t.Context(), triegs.Batch{Events: batch}); err != nil {
			t.Fatal(err)
		}
	}
	list := db.Snapshots()
	if len(list) != 1 || list[0].Epoch != 1 || list[0].Age != 0 || list[0].RetainedBytes < 8*1000 {
		t.Errorf("open snapshots %+v, want one of epoch 1 that keeps the facts", list)
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	if list := db.Snapshots(); len(list) != 0 {
		t.Errorf("open snapshots %+v, want none", list)
	}
	if m := db.Metrics(); m.RetainedBytes != 0 {
		t.Errorf("%d bytes are still retained", m.RetainedBytes)
	}
}
