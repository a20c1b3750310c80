package epoch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query/plan"
)

// held is a log that keeps its entries until it is told what became of them.
type held struct {
	entries [][]byte
	done    []func(error)
	refuse  error
}

func (h *held) Enqueue(payload []byte, done func(error)) error {
	if h.refuse != nil {
		return h.refuse
	}
	h.entries = append(h.entries, append([]byte(nil), payload...))
	h.done = append(h.done, done)
	return nil
}

// settle tells the first n entries what became of them.
func (h *held) settle(n int, err error) {
	for _, done := range h.done[:n] {
		done(err)
	}
	h.done = h.done[n:]
}

// edge applies the insertion or retraction of rel(x, y) as one epoch.
func edge(t *testing.T, e *Engine, op uint8, rel, x, y string) (Ticket, error) {
	t.Helper()
	if err := e.Begin(context.Background()); err != nil {
		return Ticket{}, err
	}
	r, err := e.Relation(rel, 2)
	if err != nil {
		t.Fatal(err)
	}
	ids := e.Words(2)
	for i, s := range []string{x, y} {
		if ids[i], err = e.Intern(term.String(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Event(&record.Event{Op: op, Relation: r, Tuple: ids}); err != nil {
		e.Rollback()
		return Ticket{}, err
	}
	return e.Commit(context.Background(), record.Batch, 0)
}

func register(t *testing.T, e *Engine, name, text string) {
	t.Helper()
	p, err := catalog.Compile(text, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := e.Register(context.Background(), &catalog.Query{Name: name, Text: text, Plan: p}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Commit(context.Background(), record.Register, 0); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, e *Engine, name string) (epoch uint64, answers int64) {
	t.Helper()
	v := e.Current.Pin()
	defer e.Current.Unpin(v)
	q := v.Catalog.(*Schema).Views[name]
	if q == nil {
		return v.Epoch, -1
	}
	n, _, err := q.Bind(v.Space, v.Roots).Count(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return v.Epoch, n
}

const pairs = "q(x, y, z) :- R(x, y), S(y, z)."

// TestPublishedBehindTheLog is REC-12: however far the working version runs
// ahead while a sync is held back, readers see what is durable, whole.
func TestPublishedBehindTheLog(t *testing.T) {
	e, log := New(), &held{}
	e.Logged(log)
	register(t, e, "q", pairs)
	for i := range 200 {
		for _, f := range [][3]string{{"R", fmt.Sprint(i), "h"}, {"S", "h", fmt.Sprint(i)}} {
			if _, err := edge(t, e, OpInsert, f[0], f[1], f[2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if at, n := count(t, e, "q"); at != 0 || n != -1 {
		t.Fatalf("epoch %d with %d answers is visible before anything is durable", at, n)
	}
	log.settle(1+2*100, nil)
	if at, n := count(t, e, "q"); at != 201 || n != 100*100 {
		t.Fatalf("epoch %d with %d answers, want 201 with 10000", at, n)
	}
	log.settle(len(log.done), nil)
	if at, n := count(t, e, "q"); at != 401 || n != 200*200 {
		t.Fatalf("epoch %d with %d answers, want 401 with 40000", at, n)
	}
	v := e.Current.Pin()
	defer e.Current.Unpin(v)
	if err := e.Verify(context.Background(), v); err != nil {
		t.Fatal(err)
	}
}

// TestFailedLogEndsTheWriting is REC-09 at the level of epochs: what was not
// durable is never published, and nothing is applied on top of it.
func TestFailedLogEndsTheWriting(t *testing.T) {
	e, log := New(), &held{}
	e.Logged(log)
	register(t, e, "q", pairs)
	first, err := edge(t, e, OpInsert, "R", "a", "h")
	if err != nil {
		t.Fatal(err)
	}
	second, err := edge(t, e, OpInsert, "S", "h", "b")
	if err != nil {
		t.Fatal(err)
	}
	log.settle(2, nil)
	cause := fmt.Errorf("%w: sync failed", errs.ErrReadOnly)
	log.settle(1, cause)
	if err := first.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(context.Background()); !errors.Is(err, errs.ErrReadOnly) {
		t.Fatalf("the lost epoch: %v", err)
	}
	if _, err := edge(t, e, OpInsert, "R", "c", "h"); !errors.Is(err, errs.ErrReadOnly) {
		t.Fatalf("an epoch behind the lost one: %v", err)
	}
	if err := e.WaitFor(context.Background(), 3); !errors.Is(err, errs.ErrReadOnly) {
		t.Fatalf("waiting for the lost epoch: %v", err)
	}
	if at, n := count(t, e, "q"); at != 2 || n != 0 {
		t.Fatalf("epoch %d with %d answers, want 2 with none", at, n)
	}
}

// TestReplayIsTheSame replays a log into a fresh engine, and then one in which
// an event was exchanged for another: the digest tells.
func TestReplayIsTheSame(t *testing.T) {
	e, log := New(), &held{}
	e.Logged(log)
	register(t, e, "q", pairs)
	for i := range 50 {
		for _, f := range [][3]string{{"R", fmt.Sprint(i % 7), "h"}, {"S", "h", fmt.Sprint(i % 5)}} {
			if _, err := edge(t, e, OpInsert, f[0], f[1], f[2]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := edge(t, e, OpDelete, "R", fmt.Sprint(i%7), "h"); i%3 == 0 && err != nil {
			t.Fatal(err)
		}
	}
	log.settle(len(log.done), nil)
	want := e.Current.Pin()
	defer e.Current.Unpin(want)

	again := New()
	for _, b := range log.entries {
		rec, err := record.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Replay(context.Background(), rec); err != nil {
			t.Fatal(err)
		}
	}
	got := again.Current.Pin()
	defer again.Current.Unpin(got)
	if got.Digest != want.Digest || got.Epoch != want.Epoch || got.Terms != want.Terms {
		t.Fatalf("replayed epoch %d digest %v, want %d %v", got.Epoch, got.Digest, want.Epoch, want.Digest)
	}
	_, n := count(t, e, "q")
	if _, m := count(t, again, "q"); m != n {
		t.Fatalf("%d answers, replayed %d", n, m)
	}

	forged := New()
	var err error
	for _, b := range log.entries {
		rec, decodeErr := record.Decode(b)
		if decodeErr != nil {
			t.Fatal(decodeErr)
		}
		if len(rec.Events) > 0 && rec.Epoch == 20 {
			rec.Events[0].Tuple[0] = 1
		}
		if err = forged.Replay(context.Background(), rec); err != nil {
			break
		}
	}
	if !errors.Is(err, errs.ErrCorrupt) || forged.Current.Epoch() != 19 {
		t.Fatalf("a forged event: %v at epoch %d", err, forged.Current.Epoch())
	}
}

// TestRefusedEpochLeavesNothing shows that terms, relations and positions of a
// refused epoch are gone, and that their numbers go to the next one.
func TestRefusedEpochLeavesNothing(t *testing.T) {
	e := New()
	if _, err := edge(t, e, OpInsert, "R", "a", "b"); err != nil {
		t.Fatal(err)
	}
	before := e.Stats()
	if _, err := edge(t, e, OpDelete, "New", "x", "y"); !errors.Is(err, errs.ErrNoSuchFact) {
		t.Fatalf("got %v", err)
	}
	after := e.Stats()
	if before.Refused++; after != before {
		t.Fatalf("a refused epoch changed %+v to %+v", before, after)
	}
	if _, err := edge(t, e, OpInsert, "S", "x", "y"); err != nil {
		t.Fatal(err)
	}
	if id, ok := e.dict.Find(term.String("x"), e.dict.Len()); !ok || id != 3 {
		t.Fatalf("x has id %d", id)
	}
}

// TestSteadyEpochsAllocateNothing pins the cost of an epoch in memory.
func TestSteadyEpochsAllocateNothing(t *testing.T) {
	e := New()
	register(t, e, "q", pairs)
	ids := make([]uint64, 2)
	if err := e.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		ids[i], _ = e.Intern(term.Int(int64(i)))
	}
	if _, err := e.Commit(context.Background(), record.Batch, 0); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	turn := func() {
		for op := range uint8(2) {
			if err := e.Begin(context.Background()); err != nil {
				t.Fatal(err)
			}
			for rel := range uint32(2) {
				if err := e.Event(&record.Event{Op: op, Relation: rel, Tuple: ids}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := e.Commit(ctx, record.Batch, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 1000 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n > 0 {
		t.Fatalf("%v allocations for two epochs of two events", n)
	}
}

// TestCopies: copies of a query have one plan and the same views, other queries have
// their own, and each copy goes by itself.
func TestCopies(t *testing.T) {
	e := New()
	for _, name := range []string{"q1", "q2", "q3"} {
		register(t, e, name, pairs)
	}
	register(t, e, "other", "q(x, z) :- R(x, z).")
	writes := func() uint64 {
		before := e.Stats().Writes
		for _, rel := range []string{"R", "S"} {
			if _, err := edge(t, e, OpInsert, rel, fmt.Sprint(before), fmt.Sprint(before)); err != nil {
				t.Fatal(err)
			}
		}
		return e.Stats().Writes - before
	}
	all := writes()
	plans := map[*plan.Plan]bool{}
	for _, q := range e.schema.Queries() {
		plans[q.Plan] = true
	}
	if len(plans) != 2 {
		t.Errorf("%d plans for two queries and two copies", len(plans))
	}
	for i, name := range []string{"q2", "q1"} {
		if err := e.Begin(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := e.Drop(name); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Commit(context.Background(), record.Drop, 0); err != nil {
			t.Fatal(err)
		}
		if n := writes(); n != all {
			t.Errorf("%d writes with a copy less, want %d", n, all)
		}
		if _, n := count(t, e, "q3"); n != int64(2+i) {
			t.Errorf("the last copy has %d answers, want %d", n, 2+i)
		}
	}
}
