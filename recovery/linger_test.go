package recovery

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/triegs/triegs/checkpoint"
	"github.com/triegs/triegs/internal/errs"
)

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
		// open tells whether this store has the directory open for writing.
		open := func() bool {
			c, err := checkpoint.Open(ctx, filepath.Join(dir, checkpointsName), checkpoint.Options{KeepOpen: true})
			if err == nil {
				err = c.Close()
			} else if errors.Is(err, errs.ErrLocked) {
				return true
			}
			if err != nil {
				t.Fatal(err)
			}
			return false
		}
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
