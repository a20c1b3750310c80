package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// ways are what a store goes through between the steps of a source case. Each
// leaves the state as it was, and gives the directory in which it goes on.
var ways = []struct {
	name string
	do   func(t *testing.T, w *world, dir string, o *triegs.Options) string
}{
	{"closed", func(t *testing.T, w *world, dir string, o *triegs.Options) string {
		w.reopen(dir, o)
		return dir
	}},
	{"saved", func(t *testing.T, w *world, dir string, o *triegs.Options) string {
		if err := w.db.Checkpoint(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.reopen(dir, o)
		if rep := w.db.Recovery(); rep.Epochs != 0 || rep.Checkpoint != w.epoch() {
			t.Fatalf("%+v at epoch %d, want all from the checkpoint", rep, w.epoch())
		}
		return dir
	}},
	{"saved and cut", func(t *testing.T, w *world, dir string, o *triegs.Options) string {
		for range 3 { // an ID that fills a segment comes and goes
			in := triegs.Edge("cutter", triegs.Int(1), triegs.Int(1))
			in.ID = strings.Repeat("c", cutterBytes)
			w.append(triegs.Batch{Events: []triegs.Event{in, {Op: triegs.Delete, ID: in.ID}}})
			if err := w.db.Checkpoint(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		w.reopen(dir, o)
		if first := filepath.Base(segments(t, dir)[0]); first == fmt.Sprintf("%020d", 1) {
			t.Fatal("the log was not cut")
		}
		return dir
	}},
	{"restored", func(t *testing.T, w *world, dir string, o *triegs.Options) string {
		backup, next := dir+"-backup", dir+"-next"
		if err := w.db.Backup(w.ctx, backup); err != nil {
			t.Fatal(err)
		}
		if err := w.db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(triegs.Restore(w.ctx, backup, next), os.RemoveAll(backup)); err != nil {
			t.Fatal(err)
		}
		db, err := triegs.Open(next, o)
		if err != nil {
			t.Fatal(err)
		}
		w.db = db
		return next
	}},
}

// Positions, incarnations and skips of sources, and what they refuse, are the
// same behind a checkpoint, a cut log, and a restore.
func TestSRCSaved(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			quiet(t)
			dir := filepath.Join(t.TempDir(), "store")
			o := &triegs.Options{CheckpointBytes: -1, DenseSources: false}
			w := newWorld(t, dir, o)
			w.register("q", "q(x, y) :- R(x, y).")
			again := func() { dir = way.do(t, w, dir, o) }
			edge := func(n uint64) triegs.Event { return triegs.Edge("R", triegs.Int(int64(n)), triegs.String("h")) }
			send := func(from, to uint64) {
				b := triegs.Batch{Source: "s", Offset: from}
				for n := from; n < to; n++ {
					b.Events = append(b.Events, edge(n))
				}
				w.append(b)
			}
			want := func(next uint64, incarnation string, skipped uint64) {
				t.Helper()
				p, ok := w.db.Source("s")
				if !ok || p.Next != next || p.Incarnation != incarnation || p.Skipped != skipped {
					t.Fatalf("the source is at %+v (%v), want %d of %q with %d skipped", p, ok, next, incarnation, skipped)
				}
			}
			// SRC-04: none, then 1 after offset 0.
			again()
			if _, ok := w.db.Source("s"); ok {
				t.Fatal("a source that was never seen is known")
			}
			send(0, 1)
			again()
			want(1, "", 0)
			// SRC-01: the same offsets again after a restart are skipped.
			send(1, 101)
			again()
			send(50, 151)
			want(151, "", 0)
			if m := w.db.Metrics(); m.Replayed != 51 {
				t.Errorf("%d replayed, want 51", m.Replayed)
			}
			// SRC-02: a gap.
			send(200, 201)
			again()
			want(201, "", 0)
			// SRC-06: a record that is refused, then skipped.
			bad := triegs.Batch{Source: "s", Offset: 201, Events: events("-R(no,no)")}
			for range 2 {
				w.refuseBatch(triegs.ErrNoSuchFact, bad)
				again()
			}
			if err := w.db.SkipTo(w.ctx, "s", 202); err != nil {
				t.Fatal(err)
			}
			again()
			want(202, "", 1)
			snap := w.snapshot()
			w.wantCount(snap, "q", 152, 152)
			snap.Close()
			// SRC-03: the topic was made anew.
			if err := w.db.ResetSource(w.ctx, "s", "second"); err != nil {
				t.Fatal(err)
			}
			again()
			want(0, "second", 1)
			send(0, 3)
			again()
			want(3, "second", 1)
			snap = w.snapshot()
			w.wantCount(snap, "q", 152, 155)
			snap.Close()
			if err := w.db.ResetSource(w.ctx, "s", "second"); err != nil { // no epoch
				t.Fatal(err)
			}
			want(3, "second", 1)
			if err := w.db.SkipTo(w.ctx, "s", 2); !errors.Is(err, triegs.ErrValue) {
				t.Errorf("backwards: %v", err)
			}
		})
	}
}

// A pin and an enumeration are open and a checkpoint runs when the store is
// closed: Close counts what was leaked, the checkpoint ends, the lock is free, and
// the next open has everything.
func TestLIFE04Saved(t *testing.T) {
	for _, tc := range []struct {
		what string
		ctx  func() (context.Context, context.CancelFunc)
	}{
		{"interrupted by Close", func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }},
		{"interrupted by its context", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 5*time.Millisecond)
		}},
	} {
		for _, cache := range []int64{0, 1} {
			t.Run(fmt.Sprintf("%s, cache %d", tc.what, cache), func(t *testing.T) {
				quiet(t)
				dir := filepath.Join(t.TempDir(), "store")
				o := &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncNone, DictionaryCacheBytes: cache}
				w := newWorld(t, dir, o)
				w.register("q", "q(x, y) :- R(x, y).")
				n := scaled(60_000, 20_000)
				w.append(triegs.Batch{Events: edges("R", n, func(i int) int { return i })})
				w.append(stepBatch(0, 50)) // long texts
				if cache > 0 {
					if err := w.db.Checkpoint(w.ctx); err != nil {
						t.Fatal(err)
					}
					w.append(stepBatch(50, 50))
				}
				digest, epoch := digestOf(t, w.db), w.epoch()
				w.snapshot() // leaked
				ctx, cancel := tc.ctx()
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- w.db.Checkpoint(ctx) }()
				rows, last := 0, error(nil)
				reader := w.snapshot()
				for r, err := range reader.Answers("q") {
					if last = err; err != nil {
						break
					}
					_ = r.Term(0).String()
					if rows++; rows == 10 {
						time.Sleep(2 * time.Millisecond)
						within(t, 10*time.Second, "close", func() {
							if err := w.db.Close(); !errors.Is(err, triegs.ErrLeaked) || !strings.Contains(err.Error(), "2") {
								t.Errorf("close: got %v, want that two snapshots were leaked", err)
							}
						})
					}
				}
				if rows != 10 || !errors.Is(last, triegs.ErrClosed) {
					t.Errorf("%d rows and %v, want 10 and ErrClosed", rows, last)
				}
				within(t, 10*time.Second, "the checkpoint", func() {
					err := <-ended
					if err != nil && !errors.Is(err, triegs.ErrClosed) && ctx.Err() == nil {
						t.Errorf("the checkpoint ended with %v", err)
					}
				})
				db, err := triegs.Open(dir, &triegs.Options{LockWait: -1, CheckpointBytes: -1})
				if err != nil {
					t.Fatalf("after it: %v", err)
				}
				if e := db.Metrics().Epoch; e != epoch || digestOf(t, db) != digest {
					t.Errorf("epoch %d with digest %v, want %d with %v", e, digestOf(t, db), epoch, digest)
				}
				shut(t, "after it", db)
			})
		}
	}
}

// Readers hold snapshots while checkpoints are taken, terms are reclaimed, and
// the same terms come again under new ids; what they read stays as it was until
// the store is closed.
func TestHeldAcrossSaving(t *testing.T) {
	for _, cache := range []int64{0, 1} {
		t.Run(fmt.Sprintf("cache %d", cache), func(t *testing.T) {
			quiet(t)
			dir := filepath.Join(t.TempDir(), "store")
			o := &triegs.Options{CheckpointBytes: 1 << 20, Durability: triegs.SyncNone, DictionaryCacheBytes: cache}
			w := newWorld(t, dir, o)
			w.register("q", "q(x, y) :- R(x, y).")
			s := &slide{world: w, size: 500, cycle: 60_000, // terms that were swept come again
				batch: triegs.Batch{Time: time.Unix(1, 0)}}
			type reader struct {
				snap *triegs.Snapshot
				want map[string]int64
			}
			var held []reader
			rng := rand.New(rand.NewPCG(4, uint64(cache)))
			check := func(r reader) {
				t.Helper()
				got, err := gather(r.snap.Answers("q"))
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(r.want) {
					t.Fatalf("epoch %d had %d answers and has %d", r.snap.Epoch(), len(r.want), len(got))
				}
				for k, n := range r.want {
					if got[k] != n {
						t.Fatalf("epoch %d had %q x%d and has x%d", r.snap.Epoch(), k, n, got[k])
					}
				}
			}
			rounds := scaled(240, 90)
			if cache > 0 {
				rounds = scaled(80, 60) // each text is read from the disk
			}
			for i := range rounds {
				s.step(1000)
				if i%10 == 0 {
					r := reader{snap: w.snapshot()}
					var err error
					if r.want, err = gather(r.snap.Answers("q")); err != nil {
						t.Fatal(err)
					}
					held = append(held, r)
				}
				if len(held) > 0 {
					check(held[rng.IntN(len(held))])
				}
				if len(held) > 3 {
					k := rng.IntN(len(held))
					check(held[k])
					held[k].snap.Close()
					held = slices.Delete(held, k, k+1)
				}
			}
			// Saving and reclaiming are done beside the epochs, and take their time.
			waitForUpkeep(w, func() { s.step(1000) })
			var all sync.WaitGroup
			for _, r := range held { // all at once, from goroutines of their own
				all.Go(func() {
					if got, err := gather(r.snap.Answers("q")); err != nil || len(got) != len(r.want) {
						t.Errorf("epoch %d: %d answers, %v", r.snap.Epoch(), len(got), err)
					}
				})
			}
			all.Wait()
			m := w.db.Metrics()
			t.Logf("%d epochs, %d checkpoints, %d terms reclaimed", m.Epoch, m.Checkpoints.Taken, m.Checkpoints.Terms)
			if m.Checkpoints.Terms == 0 || m.Checkpoints.Taken == 0 || m.Checkpoints.Failed > 0 {
				t.Errorf("nothing was reclaimed or saved: %+v", m.Checkpoints)
			}
			if err := w.db.Verify(w.ctx); err != nil {
				t.Error(err)
			}
			if err := w.db.Close(); !errors.Is(err, triegs.ErrLeaked) {
				t.Errorf("close: %v", err)
			}
			for _, r := range held {
				if _, err := gather(r.snap.Answers("q")); !errors.Is(err, triegs.ErrClosed) {
					t.Errorf("a snapshot of a closed store: %v", err)
				}
			}
			db, err := triegs.Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			w.db = db
		})
	}
}

// waitForUpkeep makes epochs until a checkpoint was taken and terms were
// reclaimed beside them, for half a minute at most: the caller looks what came
// of it.
func waitForUpkeep(w *world, step func()) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); step() {
		if c := w.db.Metrics().Checkpoints; c.Taken > 0 && c.Terms > 0 {
			return
		}
	}
}
