package fuzz

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// settle waits until a number is back at what it was, and fails if it never is.
func settle(t *testing.T, what string, start int64, now func() int64) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for now() > start {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d at the start, %d at the end", what, start, now())
		}
		// The log library keeps the descriptor of a segment whose last sync
		// failed; letting go of the log leaves it to the collector.
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
}

// descriptors counts the open files of the process.
func descriptors(t *testing.T) int64 {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors cannot be counted here: %v", err)
	}
	return int64(len(list))
}

// Close ends running readers with ErrClosed, soon, and no other way.
func TestLIFE01(t *testing.T) {
	w := newWorld(t, "", nil)
	w.append(triegs.Batch{Events: edges("R", 20_000, func(i int) int { return i })})
	w.register("q", "q(x, y) :- R(x, y).")
	var readers sync.WaitGroup
	var running sync.WaitGroup
	running.Add(8)
	for range 8 {
		readers.Go(func() {
			var started sync.Once
			for {
				s, err := w.db.Snapshot()
				if err != nil {
					if !errors.Is(err, triegs.ErrClosed) {
						t.Errorf("snapshot: %v", err)
					}
					return
				}
				for _, err := range s.Answers("q") {
					started.Do(running.Done)
					if err != nil && !errors.Is(err, triegs.ErrClosed) && !errors.Is(err, triegs.ErrSnapshotClosed) {
						t.Errorf("answers: %v", err)
					}
					if err != nil {
						break
					}
				}
				if err := s.Close(); err != nil && !errors.Is(err, triegs.ErrClosed) {
					t.Errorf("close of a snapshot: %v", err)
				}
			}
		})
	}
	running.Wait()
	within(t, 10*time.Second, "close", func() {
		if err := w.db.Close(); err != nil && !errors.Is(err, triegs.ErrLeaked) {
			t.Errorf("close: %v", err)
		}
	})
	within(t, 10*time.Second, "the readers", readers.Wait)
}

// After Close every method says so, or does nothing; none panics.
func TestLIFE02(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	db, err := triegs.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, err := db.Register(ctx, "q", "q(x, y) :- R(x, y).")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Append(ctx, triegs.Batch{Events: events("+R(a,b)"), Source: "s"}); err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	late := snap.Answers("q")
	sub, err := db.Subscribe(ctx, "q", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); !errors.Is(err, triegs.ErrLeaked) {
		t.Errorf("close with an open snapshot: got %v, want ErrLeaked", err)
	}
	for name, call := range map[string]func() error{
		"Subscribe":   func() error { _, err := db.Subscribe(ctx, "q", triegs.SubscribeOptions{}); return err },
		"Updates":     func() error { return next(sub, func(*triegs.Update) error { return nil }) },
		"Err":         sub.Err,
		"Append":      func() error { _, err := db.Append(ctx, triegs.Batch{Events: events("+R(c,d)")}); return err },
		"AppendAll":   func() error { _, err := db.AppendAll(ctx, triegs.Batch{Events: events("+R(c,d)")}); return err },
		"Register":    func() error { _, err := db.Register(ctx, "p", "p(x) :- R(x, y)."); return err },
		"Query":       func() error { _, err := db.Query("q"); return err },
		"Drop":        func() error { return db.Drop(ctx, "q") },
		"Snapshot":    func() error { _, err := db.Snapshot(); return err },
		"SkipTo":      func() error { return db.SkipTo(ctx, "s", 9) },
		"ResetSource": func() error { return db.ResetSource(ctx, "s", "2") },
		"WaitFor":     func() error { return db.WaitFor(ctx, 99) },
		"Verify":      func() error { return db.Verify(ctx) },
		"Answers":     func() error { _, err := gather(snap.Answers("q")); return err },
		"a late loop": func() error { _, err := gather(late); return err },
		"Select":      func() error { _, err := gather(snap.Select(ctx, "p(x) :- R(x, y).")); return err },
		"Lookup":      func() error { _, err := snap.Lookup("q", triegs.String("a"), triegs.String("b")); return err },
		"Count":       func() error { _, _, err := snap.Count(ctx, "q"); return err },
	} {
		if err := call(); !errors.Is(err, triegs.ErrClosed) {
			t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}
	// What has no error to give back does not panic.
	db.Queries()
	db.Offset("s")
	db.Metrics()
	db.Recovery()
	db.Subscriptions()
	_ = fmt.Sprint(sub.Token(), sub.Query(), snap.Token())
	_ = fmt.Sprint(snap.Epoch(), snap.Time(), snap.Offsets(), q.Name(), q.Text(), q.Columns(), q.Class(), q.Epoch(), q.Explain())
	for name, closing := range map[string]func() error{"DB": db.Close, "Subscription": sub.Close, "Snapshot": snap.Close} {
		if err := closing(); err != nil {
			t.Errorf("%s: a second Close: %v", name, err)
		}
	}
}

// Opening and closing leaves nothing behind, also where opening fails.
func TestLIFE03(t *testing.T) {
	ctx := context.Background()
	rounds := scaled(200, 40)
	once := func() {
		dir := t.TempDir()
		db, err := triegs.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Register(ctx, "q", "q(x, y, z) :- R(x, y), R(y, z)."); err != nil {
			t.Fatal(err)
		}
		s, err := db.Subscribe(ctx, "q", triegs.SubscribeOptions{PerEpoch: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Append(ctx, triegs.Batch{Events: events("+R(a,b) +R(b,c)")}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(next(s, func(*triegs.Update) error { return nil }), s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := triegs.Open(dir, &triegs.Options{LockWait: -1}); !errors.Is(err, triegs.ErrLocked) {
			t.Fatalf("a second opener: got %v, want ErrLocked", err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := triegs.Open(dir, &triegs.Options{MemoryBudget: -1}); !errors.Is(err, triegs.ErrValue) {
			t.Fatalf("a bad option: got %v, want ErrValue", err)
		}
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := triegs.Open(file, nil); err == nil {
			t.Fatal("opened a file")
		}
		db, err = triegs.Open(dir, &triegs.Options{LockWait: -1})
		if err != nil {
			t.Fatalf("after failed tries: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	once()
	goroutines, files, bytes := int64(runtime.NumGoroutine()), descriptors(t), heap()
	for range rounds {
		once()
	}
	settle(t, "goroutines", goroutines, func() int64 { return int64(runtime.NumGoroutine()) })
	settle(t, "descriptors", files, func() int64 { return descriptors(t) })
	settle(t, "heap", bytes+2<<20, heap)
}

// A leaked snapshot and a leaked enumeration are counted, and the lock is freed
// all the same.
func TestLIFE04(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	db, err := triegs.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Register(ctx, "q", "q(x, y) :- R(x, y)."); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Append(ctx, triegs.Batch{Events: events("+R(a,b) +R(c,d)")}); err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	rows, last := 0, error(nil)
	for _, err := range snap.Answers("q") {
		if err != nil {
			last = err
			break
		}
		if rows++; rows == 1 {
			if err := db.Close(); !errors.Is(err, triegs.ErrLeaked) {
				t.Errorf("close: got %v, want ErrLeaked", err)
			}
		}
	}
	if rows != 1 || !errors.Is(last, triegs.ErrClosed) {
		t.Errorf("%d rows and error %v after Close; want 1 and ErrClosed", rows, last)
	}
	db, err = triegs.Open(dir, &triegs.Options{LockWait: -1})
	if err != nil {
		t.Fatalf("the lock was not freed: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// product is a store with a query of n*n answers.
func product(t *testing.T, n int) *world {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- A(x, u), B(y, v).")
	w.append(triegs.Batch{Events: append(edges("A", n, func(int) int { return 0 }), edges("B", n, func(int) int { return 0 })...)})
	return w
}

// A cancelled context ends an ad hoc query and a count within a bounded number
// of steps, and the snapshot can be given back.
func TestLIFE05(t *testing.T) {
	w := product(t, scaled(3163, 1000))
	s := w.snapshot()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	rows, last := 0, error(nil)
	for _, err := range s.Select(ctx, "p(x, y) :- A(x, u), B(y, v).") {
		if err != nil {
			last = err
			break
		}
		if rows++; rows == 10 {
			cancel()
		}
	}
	if rows > 10_000 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d rows, error %v; want about 10 and a cancelled context", rows, last)
	}
	if _, _, err := s.Count(ctx, "q"); !errors.Is(err, context.Canceled) {
		t.Errorf("count: got %v, want a cancelled context", err)
	}
	for name, call := range map[string]func() error{
		"Append":   func() error { _, err := w.db.Append(ctx, triegs.Batch{Events: events("+A(z,z)")}); return err },
		"Register": func() error { _, err := w.db.Register(ctx, "p", "p(x, y) :- A(x, y)."); return err },
		"Drop":     func() error { return w.db.Drop(ctx, "q") },
		"Verify":   func() error { return w.db.Verify(ctx) },
		"WaitFor":  func() error { return w.db.WaitFor(ctx, 1<<40) },
	} {
		before := w.epoch()
		if err := call(); !errors.Is(err, context.Canceled) || w.epoch() != before {
			t.Errorf("%s: got %v at epoch %d after %d; want a cancelled context and no epoch", name, err, w.epoch(), before)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantPins(t, w.db, 0)
}

// However a loop is left, its pin goes with it.
func TestLIFE06(t *testing.T) {
	w := product(t, 50)
	s := w.snapshot()
	for range s.Answers("q") {
		break
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of the body was swallowed")
			}
		}()
		for range s.Answers("q") {
			panic("body")
		}
	}()
	err := func() error {
		for range s.Answers("q") {
			return errors.New("body")
		}
		return nil
	}()
	if err == nil {
		t.Error("the loop had no rows")
	}
	// Closed inside of the loop: the next step says so.
	rows, last := 0, error(nil)
	for _, err := range s.Answers("q") {
		if err != nil {
			last = err
			break
		}
		if rows++; rows == 3 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rows != 3 || !errors.Is(last, triegs.ErrSnapshotClosed) {
		t.Errorf("%d rows, error %v; want 3 and ErrSnapshotClosed", rows, last)
	}
	wantPins(t, w.db, 0)
	if err := w.db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// A row is valid until the next step, and a clone for as long as it is held.
func TestRowClone(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b)*2 +R(c,d) +R(e,f)*3")
	s := w.snapshot()
	var kept []*triegs.Row
	want := map[string]int64{}
	for r, err := range s.Answers("q") {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, r.Clone())
		want[lexical(r)] = r.Multiplicity()
		if x, ok := r.Get("x"); !ok || x != r.Term(0) {
			t.Errorf("Get(x) gives %s, %v, want %s", x, ok, r.Term(0))
		}
		if _, ok := r.Get("nothing"); ok {
			t.Error("Get of a column that is not there")
		}
		if v := r.Value(0); v != r.Multiplicity() {
			t.Errorf("Value(0) is %v, want the multiplicity %d", v, r.Multiplicity())
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.do("-R(a,b)*2")
	for _, r := range kept {
		if want[lexical(r)] != r.Multiplicity() {
			t.Errorf("a clone changed to %s x%d", lexical(r), r.Multiplicity())
		}
		delete(want, lexical(r))
	}
	if len(want) > 0 {
		t.Errorf("clones lost %v", want)
	}
}
