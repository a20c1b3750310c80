package recovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/txn"
)

// everything runs what goes on beside epochs until stop is closed: checkpoints,
// some of them full and some cancelled, incremental backups, the reclamation of
// terms, and readers that verify what they hold.
func everything(t *testing.T, s *Store, backup string, stop chan struct{}) *sync.WaitGroup {
	var all sync.WaitGroup
	ctx := t.Context()
	loop := func(what string, f func(r *rand.Rand) error) {
		r := rand.New(rand.NewPCG(uint64(len(what)), 3))
		all.Go(func() {
			n := 0
			for {
				select {
				case <-stop:
					t.Logf("%s: %d times", what, n)
					return
				default:
				}
				if err := f(r); err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				n++
				time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
			}
		})
	}
	loop("checkpoints", func(r *rand.Rand) error {
		if r.IntN(4) == 0 {
			s.checkpoints.RequireFull()
		}
		ctx, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(40))*time.Millisecond)
		defer cancel()
		saved, err := s.Checkpoint(ctx)
		err = errors.Join(err, saved.CutErr)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		return err
	})
	loop("more checkpoints", func(*rand.Rand) error { _, err := s.Checkpoint(ctx); return err })
	if backup != "" {
		loop("backups", func(*rand.Rand) error { _, err := s.Backup(ctx, backup, 0); return err })
	}
	loop("reclamations", func(*rand.Rand) error {
		_, err := s.Engine.MarkTerms(ctx)
		return err
	})
	loop("readers", func(r *rand.Rand) error {
		v := s.Engine.Current.Pin()
		defer func() {
			s.Engine.Current.Unpin(v)
			s.Engine.TryCollect()
		}()
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
		return s.Engine.Verify(ctx, v)
	})
	return &all
}

// TestEverythingAtOnce takes the workload, with queries that come and go,
// through its epochs while all the rest goes on, and compares with the oracle
// after each epoch, after opening again, and in the backup.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	for _, cache := range []int64{0, 1 << 10} {
		t.Run(fmt.Sprintf("cache %d", cache), func(t *testing.T) {
			d := newDisk(t, t.TempDir())
			o := d.options()
			o.TermCache = cache
			s, _, err := openDisk(t.Context(), d, o)
			if err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			rest := everything(t, s, filepath.Join(d.root, "b"), stop)
			for n := uint64(1); n <= lastEpoch-2 && !t.Failed(); n++ {
				if err := d.advance(t.Context(), s, n); err != nil {
					t.Error(err)
					break
				}
				if err := isAt(t.Context(), s.Engine, n); err != nil {
					t.Error(err)
				}
			}
			close(stop)
			within(t, "the rest", rest.Wait)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if at, err := survives(t.Context(), d, o); err != nil || at != lastEpoch-2 {
				t.Fatalf("reopened at %d: %v", at, err)
			}
			if at, err := holds(t.Context(), d, "b"); err != nil || at == 0 {
				t.Fatalf("the backup is at %d: %v", at, err)
			}
		})
	}
}

// TestCancelledCheckpoint ends the context of a checkpoint at each place where
// it looks at the clock or reads a slice of facts: it gives the
// context's error or a checkpoint, and the next one has all that this one had.
func TestCancelledCheckpoint(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{true, false} {
		for at := 1; ; at++ {
			d := newDisk(t, fastDir(t))
			o := d.options()
			left := 0
			var cancel context.CancelFunc
			o.slice = func() {
				if left--; left == 0 {
					cancel()
				}
			}
			o.Now = func() time.Time {
				o.slice()
				return time.Now()
			}
			s, _, err := openDisk(t.Context(), d, o)
			if err != nil {
				t.Fatal(err)
			}
			prepare(t, d, s, 6)
			if !full {
				if _, err := s.Checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			prepare(t, d, s, 6)
			ctx, stop := context.WithCancel(t.Context())
			cancel, left = stop, at
			saved, err := s.Checkpoint(ctx)
			cancelled := ctx.Err() != nil
			left = 0
			stop()
			if err != nil && (!errors.Is(err, context.Canceled) || saved.Written) {
				t.Fatalf("cancelled at %d: %+v, %v", at, saved, err)
			}
			prepare(t, d, s, 3)
			if saved, err = s.Checkpoint(t.Context()); err != nil || saved.Epoch != 15 {
				t.Fatalf("after one cancelled at %d: %+v, %v", at, saved, err)
			}
			prepare(t, d, s, 1)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			reopened(t, d, 0, 16)
			if !cancelled {
				t.Logf("full %v: cancelled at %d places", full, at-1)
				break
			}
		}
	}
}

// TestTurnOfNobody asks for checkpoints with a context that has ended: whatever
// they give, the turn is free afterwards.
func TestTurnOfNobody(t *testing.T) {
	t.Parallel()
	d := newDisk(t, fastDir(t))
	s, _, err := openDisk(t.Context(), d, d.options())
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, d, s, 3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		if _, err := s.Checkpoint(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("a checkpoint that nobody waits for: %v", err)
		}
		if _, err := s.Backup(ended, filepath.Join(d.root, "b"), 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("a backup that nobody waits for: %v", err)
		}
	}
	within(t, "a checkpoint", func() { _, err = s.Checkpoint(t.Context()) })
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestCloseDuringCheckpoint closes as a program does that ends its checkpoint
// first, at any time in it, and opens again.
func TestCloseDuringCheckpoint(t *testing.T) {
	t.Parallel()
	d := newDisk(t, t.TempDir())
	last := uint64(0)
	for round := range 12 {
		s, _, err := openDisk(t.Context(), d, d.options())
		if err != nil {
			t.Fatal(err)
		}
		if err := isAt(t.Context(), s.Engine, last); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { _, err := s.Checkpoint(ctx); done <- err }()
		go func() { _, err := s.Backup(ctx, filepath.Join(d.root, "b"), 1<<20); done <- err }()
		last += 3
		if err := d.advance(t.Context(), s, last); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		cancel()
		within(t, "the end of a checkpoint", func() {
			for range 2 {
				if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("round %d: %v", round, err)
				}
			}
		})
		s.Engine.Fail(errs.ErrClosed)
		s.Engine.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := survives(t.Context(), d, d.options()); err != nil || at != last {
		t.Fatalf("reopened at %d: %v", at, err)
	}
}

// churn is a workload in which terms die and come again: a sliding window of
// facts about terms of its own, and in each epoch some that were there long ago.
func churn(ctx context.Context, e *epoch.Engine, n int) error {
	var t txn.Txn
	if err := t.Begin(ctx, e); err != nil {
		return err
	}
	fact := func(k, i int) []term.Term {
		return []term.Term{
			term.String(fmt.Sprintf("a term of step %d, number %d, that is long enough to be spilled", k%97, i)),
			term.IRI(fmt.Sprintf("http://example.org/only/%d/%d", k, i)),
		}
	}
	at := 0
	event := func(del bool, k, i int) error {
		at++
		return t.Event(at, &txn.Event{Delete: del, Relation: "R", Tuple: fact(k, i), Time: int64(k)})
	}
	var err error
	for i := range 6 {
		if err == nil {
			err = event(false, n, i)
		}
		if err == nil && n > 10 {
			err = event(true, n-10, i)
		}
	}
	if err == nil {
		err = t.Flush()
	}
	if err != nil {
		t.Rollback()
		return err
	}
	ticket, err := t.Commit(ctx, int64(n))
	if err != nil {
		return err
	}
	return ticket.Wait(ctx)
}

// TestReclamationUnderCheckpoints has terms die and come again, under new ids,
// while they are reclaimed, checkpoints are taken and snapshots are held:
// the store equals one in memory that never reclaims, what is pinned stays as
// it was, and a reopened store is the same again.
func TestReclamationUnderCheckpoints(t *testing.T) {
	t.Parallel()
	for _, cache := range []int64{0, 1 << 12} {
		t.Run(fmt.Sprintf("cache %d", cache), func(t *testing.T) { reclaim(t, cache) })
	}
}

func reclaim(t *testing.T, cache int64) {
	ctx := t.Context()
	d := newDisk(t, t.TempDir())
	o := d.options()
	o.TermCache, o.Log.SegmentBytes = cache, 20_000
	oracle := epoch.New()
	steps := 200
	if testing.Short() {
		steps = 60
	}
	for n := 0; n < steps; {
		s, _, err := openDisk(ctx, d, o)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			for _, e := range []*epoch.Engine{s.Engine, oracle} {
				ticket, err := changeQueries(ctx, e, "twice", "twice(x, y, z) :- R(x, y), R(x, z).", 0)
				if err = errors.Join(err, ticket.Wait(ctx)); err != nil {
					t.Fatal(err)
				}
			}
		}
		stop := make(chan struct{})
		rest := everything(t, s, "", stop)
		for end := n + steps/4; n < end && !t.Failed(); {
			n++
			if err := errors.Join(churn(ctx, s.Engine, n), churn(ctx, oracle, n)); err != nil {
				t.Error(err)
			}
			if n%20 == 0 {
				same(t, n, s.Engine, oracle)
			}
		}
		close(stop)
		within(t, "the rest", rest.Wait)
		if _, err := s.Engine.MarkTerms(ctx); err != nil {
			t.Error(err)
		}
		if live, all := s.Engine.Dict().Live(), oracle.Dict().Live(); live > 130 || all < uint64(n)*6 {
			t.Errorf("step %d: %d terms are held, %d by the one that does not reclaim", n, live, all)
		}
		same(t, n, s.Engine, oracle)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	s, _, err := openDisk(ctx, d, o)
	if err != nil {
		t.Fatal(err)
	}
	same(t, steps, s.Engine, oracle)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, n int, e, oracle *epoch.Engine) {
	t.Helper()
	got, err := state(t.Context(), e)
	want, werr := state(t.Context(), oracle)
	if err = errors.Join(err, werr); err != nil || got != want {
		t.Errorf("step %d: the state is\n%s\nwant\n%s, %v", n, got, want, err)
	}
}
