package triegs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate is a context that holds up whoever asks it for the n-th time.
type gate struct {
	context.Context
	mu           sync.Mutex
	left         int
	reached, out chan struct{}
}

func newGate(ctx context.Context, looks int) *gate {
	return &gate{Context: ctx, left: looks, reached: make(chan struct{}), out: make(chan struct{})}
}

func (g *gate) Err() error {
	g.mu.Lock()
	g.left--
	at := g.left == 0
	g.mu.Unlock()
	if at {
		close(g.reached)
		<-g.out
	}
	return g.Context.Err()
}

const (
	// liveFacts is more than what is filled while writers wait.
	liveFacts = 20_000
	// insideFill is a look at the context behind which a query over so many facts is
	// being filled.
	insideFill = 6
)

// live is a store of liveFacts edges in R and as many in S.
func live(t *testing.T, dir string) *DB {
	t.Helper()
	db := mustOpen(t, dir, &Options{CheckpointBytes: -1})
	var events []Event
	for i := range int64(liveFacts) {
		events = append(events, Edge("R", Int(i), Int(i%500)), Edge("S", Int(i%500), Int(i)))
	}
	if _, err := db.Append(t.Context(), Batch{Events: events}); err != nil {
		t.Fatal(err)
	}
	return db
}

const pathText = "q(x, y, z) :- R(x, y), S(y, z), R(z, _)."

// stalled begins a registration and returns when it is in the middle of it.
func stalled(t *testing.T, db *DB, text string) (g *gate, done chan error) {
	t.Helper()
	g, done = newGate(t.Context(), insideFill), make(chan error, 1)
	go func() {
		_, err := db.Register(g, "q", text)
		done <- err
	}()
	select {
	case <-g.reached:
	case err := <-done:
		t.Fatalf("the registration has ended too early: %v", err)
	}
	return g, done
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patiently is for what must not wait for a registration that is held up.
func patiently(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func count(t *testing.T, db *DB, query string) (distinct, total int64, at Epoch) {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	distinct, total, err = s.Count(t.Context(), query)
	must(t, err)
	return distinct, total, s.Epoch()
}

// TestQRY02 registers a query while a writer adds an edge in each epoch: from its
// own epoch on every snapshot has one answer for each edge.
func TestQRY02(t *testing.T) {
	for _, from := range []int{0, 1 << 30} { // beside the writer, and in its way
		db := mustOpen(t, "", nil)
		db.engine.HydrateFrom(from)
		var events []Event
		for i := range int64(1000) {
			events = append(events, Edge("R", Int(i), String("h")))
		}
		_, err := db.Append(t.Context(), Batch{Events: events})
		must(t, err)
		var written sync.WaitGroup
		begun := make(chan struct{})
		written.Go(func() {
			for i := range int64(1000) {
				if i == 100 {
					close(begun)
				}
				if _, err := db.Append(context.Background(), Batch{Events: []Event{Edge("R", Int(1000+i), String("h"))}}); err != nil {
					t.Error(err)
				}
			}
		})
		<-begun
		q, err := db.Register(t.Context(), "Q", "Q(x) :- R(x, y).")
		must(t, err)
		for {
			// Epoch 1 has loaded, and one has registered the query.
			distinct, total, at := count(t, db, "Q")
			if want := 1000 + int64(at) - 2; distinct != want || total != want || at < q.Epoch() {
				t.Fatalf("epoch %d has %d answers, together %d, want %d; registered in %d", at, distinct, total, want, q.Epoch())
			}
			if distinct == 2000 {
				break
			}
		}
		written.Wait()
		must(t, db.Verify(t.Context()))
	}
}

// TestRegisterLetsWritersGoOn holds a registration up in the middle. Writers go on,
// other queries come and go, and what they have done is in the answers.
func TestRegisterLetsWritersGoOn(t *testing.T) {
	db := live(t, "")
	_, err := db.Register(t.Context(), "other", "other(x, y) :- S(x, y), R(y, _).")
	must(t, err)
	for _, text := range []string{pathText, `q(x, z) :- R(x, y), S(y, z), z > 10, y < 20.`, "q(y, count(), max(x)) :- R(x, y), S(y, z), R(z, w)."} {
		g, done := stalled(t, db, text)
		ctx := patiently(t)
		for i := range int64(300) {
			_, err := db.Append(ctx, Batch{Events: []Event{
				Edge("R", Int(i), Int(1000+i)), Edge("S", Int(1000+i), Int(i)), {Op: Delete, Relation: "R", Tuple: []Term{Int(i), Int(i % 500)}},
			}})
			must(t, err)
		}
		must(t, db.Drop(ctx, "other"))
		_, err := db.Register(ctx, "other", "other(x, y) :- S(x, y), R(y, _).")
		must(t, err)
		close(g.out)
		must(t, <-done)
		must(t, db.Verify(t.Context()))
		_, err = db.Append(ctx, Batch{Events: []Event{Edge("R", Int(7), Int(8)), Edge("S", Int(8), Int(7))}})
		must(t, err)
		must(t, db.Verify(t.Context()))
		must(t, db.Drop(ctx, "q"))
		for i := range int64(300) {
			_, err := db.Append(ctx, Batch{Events: []Event{
				Edge("R", Int(i), Int(i%500)), {Op: Delete, Relation: "R", Tuple: []Term{Int(i), Int(1000 + i)}},
			}})
			must(t, err)
		}
	}
}

// TestRegisterMeetsNewNames: a constant and a relation of the query come into being
// while it is filled.
func TestRegisterMeetsNewNames(t *testing.T) {
	db := live(t, "")
	g, done := stalled(t, db, `q(x) :- R(x, "late"), S(x, _), Later(x).`)
	_, err := db.Append(patiently(t), Batch{Events: []Event{
		Edge("R", Int(3), String("late")), {Op: Insert, Relation: "Later", Tuple: []Term{Int(3)}},
		{Op: Insert, Relation: "Later", Tuple: []Term{Int(4)}},
	}})
	must(t, err)
	close(g.out)
	must(t, <-done)
	if distinct, total, _ := count(t, db, "q"); distinct != 1 || total != liveFacts/500 {
		t.Fatalf("%d answers, together %d", distinct, total)
	}
	must(t, db.Verify(t.Context()))
}

// TestRegisterSameName: of two registrations under one name the second to end is
// refused, and leaves nothing.
func TestRegisterSameName(t *testing.T) {
	db := live(t, "")
	g, done := stalled(t, db, pathText)
	_, err := db.Register(patiently(t), "q", "q(x) :- R(x, _).")
	must(t, err)
	before := db.Metrics()
	close(g.out)
	if err := <-done; !errors.Is(err, ErrQueryExists) {
		t.Fatalf("got %v, want ErrQueryExists", err)
	}
	traceless(t, db, before)
}

// TestHydrationBytes: the metrics show the tries of a registration that goes on.
func TestHydrationBytes(t *testing.T) {
	db := live(t, "")
	for looks, seen := insideFill, false; !seen; looks += 8 {
		g := newGate(t.Context(), looks)
		done := make(chan error, 1)
		go func() {
			_, err := db.Register(g, "q", pathText)
			done <- err
		}()
		select {
		case <-g.reached:
		case err := <-done:
			t.Fatalf("registered without memory of its own, %v", err)
		}
		m := db.Metrics()
		seen = m.HydrationBytes > 0
		if seen && !strings.Contains(m.String(), fmt.Sprintf("%d bytes\n", m.HydrationBytes)) {
			t.Errorf("%d bytes are not shown: %s", m.HydrationBytes, m)
		}
		close(g.out)
		must(t, <-done)
		must(t, db.Drop(t.Context(), "q"))
		if n := db.Metrics().HydrationBytes; n != 0 {
			t.Fatalf("%d bytes are left", n)
		}
	}
}

// traceless compares what a store says of itself.
func traceless(t *testing.T, db *DB, before Metrics) {
	t.Helper()
	after := db.Metrics()
	if after.Epoch != before.Epoch || after.Queries != before.Queries || after.Terms != before.Terms ||
		after.LiveBytes != before.LiveBytes || after.RetainedBytes != before.RetainedBytes || after.ViewWrites != before.ViewWrites {
		t.Fatalf("a trace is left: %+v, before %+v", after, before)
	}
	if n := db.engine.Stats().Tries.Nurseries; n != 0 {
		t.Fatalf("%d bytes are left beside the tries", n)
	}
}

// TestRegisterCancelled ends registrations at each look at the context, without a
// trace.
func TestRegisterCancelled(t *testing.T) {
	dir := t.TempDir()
	db := live(t, dir)
	before, log := db.Metrics(), db.store.Log.Written()
	registered := false
	for looks := 2; !registered; looks++ {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(ctx, looks)
		go func() {
			<-g.reached
			cancel()
			close(g.out)
		}()
		switch _, err := db.Register(g, "q", pathText); {
		case err == nil:
			registered = true
			g.left = 1
			_ = g.Err() // the goroutine has not met it
		case !errors.Is(err, context.Canceled):
			t.Fatalf("after %d looks: %v", looks, err)
		case db.Metrics().Epoch == before.Epoch:
			traceless(t, db, before)
			if at := db.store.Log.Written(); at != log {
				t.Fatalf("%d bytes in the log, %d before", at, log)
			}
		default:
			registered = true // the wait for its epoch alone has ended
		}
	}
	must(t, db.Verify(t.Context()))
}

// TestRegisterCancelledAnytime does it by the clock, while there are epochs.
func TestRegisterCancelledAnytime(t *testing.T) {
	db := live(t, "")
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range int64(20) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(60))*time.Millisecond)
		done := make(chan error, 1)
		go func() {
			_, err := db.Register(ctx, "q", pathText)
			done <- err
		}()
		var err error
		for over := false; !over; {
			select {
			case err = <-done:
				over = true
			default:
				_, err := db.Append(t.Context(), Batch{Events: []Event{Edge("R", Int(i), Int(liveFacts+i))}})
				must(t, err)
			}
		}
		cancel()
		switch {
		case err == nil:
			must(t, db.Verify(t.Context()))
			must(t, db.Drop(t.Context(), "q"))
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatal(err)
		case len(db.Queries()) != 0:
			t.Fatal("a cancelled query is registered")
		}
		if n := db.engine.Stats().Tries.Nurseries; n != 0 {
			t.Fatalf("%d bytes are left beside the tries", n)
		}
	}
	must(t, db.Verify(t.Context()))
}

// TestCrashWhileRegistering opens what is on disk while a query is being filled: it
// has the facts that were acknowledged, and no query.
func TestCrashWhileRegistering(t *testing.T) {
	dir := t.TempDir()
	db := live(t, dir)
	g, done := stalled(t, db, pathText)
	_, err := db.Append(patiently(t), Batch{Events: []Event{Edge("R", Int(1), Int(2*liveFacts))}})
	must(t, err)
	copied := t.TempDir()
	must(t, os.CopyFS(filepath.Join(copied, "db"), os.DirFS(dir)))
	crashed := mustOpen(t, filepath.Join(copied, "db"), nil)
	if m := crashed.Metrics(); m.Queries != 0 || m.Facts != 2*liveFacts+1 || m.Epoch != db.Metrics().Epoch {
		t.Fatalf("%+v", m)
	}
	must(t, crashed.Verify(t.Context()))
	close(g.out)
	must(t, <-done)
	must(t, db.Close())
	again := mustOpen(t, dir, nil)
	if len(again.Queries()) != 1 {
		t.Fatal("the query is not there after a restart")
	}
	must(t, again.Verify(t.Context()))
}

// TestCloseWhileRegistering ends a registration, and waits for it.
func TestCloseWhileRegistering(t *testing.T) {
	db := live(t, t.TempDir())
	g, done := stalled(t, db, pathText)
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	<-db.upkeep.ctx.Done()
	close(g.out)
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
	must(t, <-closed)
	if _, err := db.Register(t.Context(), "q", pathText); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
}

// TestRegisterWindowsBeside registers queries over windows that other queries keep,
// and over one that nobody keeps yet, while time passes.
func TestRegisterWindowsBeside(t *testing.T) {
	db := mustOpen(t, "", nil)
	db.engine.HydrateFrom(0)
	at := time.Unix(1000, 0)
	_, err := db.Register(t.Context(), "kept", "kept(x, y) :- R(x, y) window 100s.")
	must(t, err)
	second := func(i int) {
		var events []Event
		for k := range 50 {
			events = append(events, Edge("R", Int(int64(k%20)), Int(int64((i+k)%30))), Edge("S", Int(int64(k%30)), Int(int64(i%40))))
		}
		_, err := db.Append(t.Context(), Batch{Time: at.Add(time.Duration(i) * time.Second), Events: events})
		if err != nil {
			t.Error(err) // it may be another goroutine than that of the test
		}
	}
	for i := range 120 {
		second(i)
	}
	for n, text := range []string{
		"q(x, y, z) :- R(x, y) [100s], R(y, z) [100s].",
		"q(x, y, z) :- R(x, y) [100s], S(y, z).",
		"q(x, y, z) :- R(x, y) [50s], S(y, z) [20s].",
		"q(x, count()) :- R(x, y) [100s], S(y, z), R(z, w) [100s].",
	} {
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					second(200 + 100*n + min(i, 99))
				}
			}
		}()
		_, err := db.Register(t.Context(), fmt.Sprintf("q%d", n), text)
		close(stop)
		<-done
		must(t, err)
		must(t, db.Verify(t.Context()))
		second(300 + 100*n)
		must(t, db.Verify(t.Context()))
	}
}
