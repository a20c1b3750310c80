package recovery

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triegs/triegs/epoch/wal"
)

// openDisk opens the store on a disk.
func openDisk(ctx context.Context, d *disk, o Options) (*Store, Report, error) {
	s, r, err := Open(ctx, filepath.Join(d.root, "s"), o)
	if err == nil && !o.Log.ReadOnly {
		s.Engine.Logged(s.Log)
	}
	return s, r, err
}

// advance applies epochs up to n, one after another, acknowledged each.
func (d *disk) advance(ctx context.Context, s *Store, n uint64) error {
	for s.Engine.Current.Epoch() < n {
		next := s.Engine.Current.Epoch() + 1
		d.begun.Store(next)
		if err := do(ctx, s.Engine, next); err != nil {
			return err
		}
		if d.relaxed {
			next = s.Log.Durable()
		}
		d.acked.Store(next)
	}
	return nil
}

// survives checks the disk after a crash: the store opens at the last
// acknowledged epoch or at one that was begun, whole; the next epochs and the
// next checkpoint work, and so does the opening after them.
func survives(ctx context.Context, d *disk, o Options) (at uint64, err error) {
	s, _, err := openDisk(ctx, d, o)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, s.Close())
		}
	}()
	at = s.Engine.Current.Epoch()
	if acked, begun := d.acked.Load(), d.begun.Load(); at < acked || at > begun {
		return at, fmt.Errorf("epoch %d, acknowledged are %d, begun %d", at, acked, begun)
	}
	if err := isAt(ctx, s.Engine, at); err != nil {
		return at, err
	}
	if names, err := d.mem.List(filepath.Join(d.root, "s", checkpointsName+".tmp")); err == nil {
		return at, fmt.Errorf("temporary files are left: %v", names)
	}
	if err := d.advance(ctx, s, at+1); err != nil {
		return at, fmt.Errorf("the next epoch: %w", err)
	}
	saved, err := s.Checkpoint(ctx)
	if err = errors.Join(err, saved.CutErr); err != nil || saved.Epoch != at+1 || !saved.Written {
		return at, fmt.Errorf("the next checkpoint: %+v, %w", saved, err)
	}
	if err := d.advance(ctx, s, at+2); err != nil {
		return at, fmt.Errorf("the epoch after it: %w", err)
	}
	closed = true
	if err := s.Close(); err != nil {
		return at, fmt.Errorf("close: %w", err)
	}
	s, r, err := openDisk(ctx, d, o)
	if err != nil {
		return at, fmt.Errorf("open again: %w", err)
	}
	closed = false
	if r.Checkpoint != at+1 || r.Epochs != 1 {
		return at, fmt.Errorf("open again: %+v, want checkpoint %d and one epoch", r, at+1)
	}
	return at, isAt(ctx, s.Engine, at+2)
}

var every = flag.Bool("every", false, "look at the disk after every crash, not after a part of them")

// judge puts each crash on a disk of its own and runs check on it, on two
// goroutines. That takes minutes, so without -every only each fifth is looked
// at, or fewer in short mode; the number has no factor in common with the kinds
// of crashes at a point.
func judge(t *testing.T, what string, crashes []crash, check func(d *disk, c *crash) error) {
	t.Helper()
	stride := 5
	switch {
	case *every:
		stride = 1
	case testing.Short():
		stride = 17
	}
	root := fastDir(t)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for w := range 2 {
		workers.Go(func() {
			for !t.Failed() {
				i := int(next.Add(1)-1) * stride
				if i >= len(crashes) {
					return
				}
				c := &crashes[i]
				dir := filepath.Join(root, fmt.Sprint(w))
				err := os.Mkdir(dir, 0o750)
				var d *disk
				if err == nil {
					d, err = c.put(dir)
				}
				if err == nil {
					err = check(d, c)
				}
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	t.Logf("%s: %d crash points, %d crashes, %d of them looked at", what, len(crashes)/3, len(crashes), done.Load())
}

// judgeAll runs survives on each crash.
func judgeAll(t *testing.T, what string, crashes []crash, change func(o *Options)) {
	t.Helper()
	judge(t, what, crashes, func(d *disk, _ *crash) error {
		o := d.options()
		if change != nil {
			change(&o)
		}
		_, err := survives(t.Context(), d, o)
		return err
	})
}

// TestCrashSweep is REC-07 for a whole store: a crash before every change on
// disk of its making, of epochs, of checkpoints of all kinds with the cuts of
// the log, and of closing.
func TestCrashSweep(t *testing.T) {
	for name, tc := range map[string]struct {
		cache int64
		mode  wal.Mode
		busy  int
	}{
		"texts in memory":                    {},
		"texts on disk":                      {cache: 1 << 10},
		"epochs during checkpoints":          {busy: 3},
		"not synced, during checkpoints too": {mode: wal.SyncNone, busy: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sweepLife(t, tc.busy, func(o *Options) { o.TermCache, o.Log.Mode = tc.cache, tc.mode })
		})
	}
}

// sweepLife has so many epochs come while each checkpoint is taken.
func sweepLife(t *testing.T, busy int, set func(o *Options)) {
	ctx := t.Context()
	d := newDisk(t, fastDir(t))
	o := d.options()
	set(&o)
	d.relaxed = o.Log.Mode != wal.SyncEpoch
	var s *Store
	coming := 0
	o.slice = func() {
		if coming > 0 {
			coming--
			if err := d.advance(ctx, s, s.Engine.Current.Epoch()+1); err != nil {
				t.Error(err)
			}
		}
	}
	step := func(what string, f func() error) {
		t.Helper()
		crashes := d.sweep(what, func() {
			if err := f(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		})
		judgeAll(t, what, crashes, set)
	}
	more := func(n uint64) func() error {
		return func() error { return d.advance(ctx, s, s.Engine.Current.Epoch()+n) }
	}
	save := func(full bool, cut bool) func() error {
		return func() error {
			if full {
				s.checkpoints.RequireFull()
			}
			before := s.Engine.Current.Epoch()
			coming = busy
			saved, err := s.Checkpoint(ctx)
			if now := s.Engine.Current.Epoch(); now != before+uint64(busy) || busy > 1 && saved.Epoch == now {
				return fmt.Errorf("a checkpoint of epoch %d, begun at %d, ended at %d", saved.Epoch, before, now)
			}
			d.acked.Store(max(d.acked.Load(), saved.Epoch))
			if saved.Full != full || saved.Segments > 0 != cut {
				return fmt.Errorf("%+v", saved)
			}
			return errors.Join(err, saved.CutErr)
		}
	}
	open := func() (err error) {
		s, _, err = openDisk(ctx, d, o)
		return err
	}
	step("creation", open)
	step("epochs", more(9))
	step("first checkpoint", save(true, false))
	step("epochs behind it", more(5))
	step("incremental checkpoint", save(false, true))
	step("more epochs", more(5))
	step("second incremental checkpoint", save(false, true))
	step("epochs before a full one", more(4))
	step("full checkpoint", save(true, true))
	step("epochs behind the full one", more(4))
	step("incremental checkpoint that drops a generation", save(false, true))
	step("last epochs", more(3))
	step("closing", func() error { return s.Close() })
	step("opening", open)
	step("closing again", func() error { return s.Close() })
}
