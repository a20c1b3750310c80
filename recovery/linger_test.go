package recovery

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/triegs/triegs/checkpoint"
	"github.com/triegs/triegs/internal/errs"
)

// writable tells whether no store has the directory of the checkpoints of a store
// open for writing.
func writable(t *testing.T, dir string) bool {
	t.Helper()
	c, err := checkpoint.Open(t.Context(), filepath.Join(dir, checkpointsName), checkpoint.Options{KeepOpen: true})
	if err == nil {
		err = c.Close()
	} else if errors.Is(err, errs.ErrLocked) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// TestLingerInUse: behind a checkpoint the directory stays open for several times
// as long as it lingers while there are epochs, and does not when they end.
func TestLingerInUse(t *testing.T) {
	t.Parallel()
	const linger = 500 * time.Millisecond
	ctx := t.Context()
	for deadline := time.Now().Add(time.Minute); ; {
		dir := filepath.Join(t.TempDir(), "store")
		s, _, err := Open(ctx, dir, Options{Now: wallClock, linger: linger})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		s.Engine.Logged(s.Log)
		if err := do(ctx, s.Engine, 1); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		longest := time.Duration(0) // between what two epochs in a row have logged, at most
		before := began
		for n := uint64(2); time.Since(began) < 3*linger && n <= lastEpoch; n++ {
			time.Sleep(3 * linger / lastEpoch)
			start := time.Now()
			if err := do(ctx, s.Engine, n); err != nil {
				t.Fatal(err)
			}
			longest, before = max(longest, time.Since(before)), start
		}
		free := writable(t, dir)
		longest = max(longest, time.Since(before))
		switch {
		case longest < linger:
		case time.Now().After(deadline):
			t.Skip("no half a second without a standstill")
		default:
			continue
		}
		if free {
			t.Fatalf("closed although there was an epoch every %v", longest)
		}
		if took := time.Since(began); took < 2*linger {
			t.Fatalf("looked at after %v", took)
		}
		for end := time.Now().Add(20 * time.Second); !writable(t, dir); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("still open without epochs")
			}
		}
		return
	}
}

// TestLinger: after a checkpoint the directory of the checkpoints stays open for
// the next one until its time is over or the store is closed. Meanwhile a backup
// and those who read the directory see the newest checkpoint.
func TestLinger(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, linger := range []time.Duration{time.Hour, time.Millisecond} {
		root := t.TempDir()
		dir := filepath.Join(root, "store")
		s, _, err := Open(ctx, dir, Options{Now: wallClock, linger: linger})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		s.Engine.Logged(s.Log)
		open := func() bool { return !writable(t, dir) }
		for n := uint64(1); n <= 3; n++ {
			if err := do(ctx, s.Engine, n); err != nil {
				t.Fatal(err)
			}
			if saved, err := s.Checkpoint(ctx); err != nil || saved.Epoch != n || !saved.Written {
				t.Fatalf("%+v, %v", saved, err)
			}
			if linger == time.Hour && !open() {
				t.Fatalf("closed after checkpoint %d", n)
			}
			o := readOnly()
			o.LastCheckpoint = true
			seen, _, err := Open(ctx, dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(isAt(ctx, seen.Engine, n), seen.Close()); err != nil {
				t.Fatal(err)
			}
			if saved, err := s.Backup(ctx, filepath.Join(root, "backup"), 0); err != nil || saved.Epoch != n {
				t.Fatalf("%+v, %v", saved, err)
			}
		}
		if linger == time.Hour {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(20 * time.Second); open(); time.Sleep(time.Millisecond) {
			if linger == time.Hour || time.Now().After(end) {
				t.Fatalf("%v: still open", linger)
			}
		}
	}
}
