package triegs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// insert appends n edges that no other call with this tag makes, in one epoch.
func insert(t *testing.T, db *DB, tag string, n int) Epoch {
	t.Helper()
	events := make([]Event, n)
	for i := range events {
		events[i] = Edge("r", String(fmt.Sprintf("%s-%d-source", tag, i)), String(fmt.Sprintf("%s-%d-target", tag, i)))
	}
	e, err := db.Append(t.Context(), Batch{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustOpen(t *testing.T, dir string, o *Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // where the test has not
	return db
}

func mustClose(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// until waits for what happens in the background.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// TestSavingRefused are the stores that have nothing to save to, or must not.
func TestSavingRefused(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "store")
	insertAndClose := mustOpen(t, dir, nil)
	insert(t, insertAndClose, "a", 1)
	mustClose(t, insertAndClose)
	for _, tc := range []struct {
		name string
		db   *DB
		want error
	}{
		{"in memory", mustOpen(t, "", nil), ErrUnsupported},
		{"closed", insertAndClose, ErrClosed},
		{"read-only", mustOpen(t, dir, &Options{ReadOnly: true}), ErrReadOnly},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.db.Checkpoint(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("Checkpoint: %v", err)
			}
			dest := filepath.Join(home, "dest")
			if err := tc.db.Backup(t.Context(), dest); !errors.Is(err, tc.want) {
				t.Errorf("Backup: %v", err)
			}
			if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Backup left something: %v", err)
			}
		})
	}
	if _, err := Open(dir, &Options{ReadOnly: true, LastCheckpoint: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last checkpoint of a store without one: %v", err)
	}
}

// TestCheckpointsInBackground are taken when the log has grown, and by Close;
// then an opening replays nothing.
func TestCheckpointsInBackground(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db := mustOpen(t, dir, &Options{CheckpointBytes: 1 << 10})
	last := insert(t, db, "first", 100)
	until(t, "a checkpoint", func() bool { return db.Metrics().Checkpoints.Epoch == last })
	if c := db.Metrics().Checkpoints; c.Full != 1 || c.Failed != 0 || c.Bytes == 0 || c.LogBytes > 1<<10 {
		t.Errorf("after the first: %+v", c)
	}
	mustClose(t, db)

	db = mustOpen(t, dir, nil)
	if r := db.Recovery(); r.Checkpoint != last || r.Epochs != 0 || r.Created {
		t.Errorf("opened from it: %+v", r)
	}
	last = insert(t, db, "much", 30_000)
	if c := db.Metrics().Checkpoints; c.LogBytes <= closeBytes || c.Taken != 0 {
		t.Fatalf("the test wants more than Close leaves to a replay: %+v", c)
	}
	mustClose(t, db)

	db = mustOpen(t, dir, &Options{CheckpointBytes: -1})
	if r := db.Recovery(); r.Checkpoint != last || r.Epochs != 0 {
		t.Errorf("opened from that of Close: %+v", r)
	}
	insert(t, db, "more", 30_000)
	mustClose(t, db)
	db = mustOpen(t, dir, nil)
	if r := db.Recovery(); r.Checkpoint != last || r.Epochs != 1 || r.Events != 30_000 {
		t.Errorf("opened behind a Close without: %+v", r)
	}
	if err := db.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCheckpointFails is told, counted, tried again, and no reason to stop.
func TestCheckpointFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var told atomic.Int32
	db := mustOpen(t, dir, &Options{CheckpointBytes: 1, OnEvent: func(n Notice) {
		if n.Kind == NoticeCheckpointFailed && n.Err != nil {
			told.Add(1)
		}
	}})
	inTheWay := filepath.Join(dir, "checkpoint")
	if err := os.WriteFile(inTheWay, []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	insert(t, db, "a", 1)
	until(t, "a failure", func() bool { return told.Load() == 1 })
	if c := db.Metrics().Checkpoints; c.Failed != 1 || c.Error == "" || c.Epoch != 0 {
		t.Errorf("after a failure: %+v", c)
	}
	insert(t, db, "b", 1) // at once: it is not tried again yet
	if c := db.Metrics().Checkpoints; c.Failed != 1 {
		t.Errorf("tried again at once: %+v", c)
	}
	if err := db.Checkpoint(t.Context()); err == nil {
		t.Error("a checkpoint into a file")
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	n := 0
	until(t, "another attempt", func() bool {
		n++
		last := insert(t, db, fmt.Sprint("c", n), 1)
		c := db.Metrics().Checkpoints
		return c.Epoch > 0 && c.Epoch <= last && c.Error == ""
	})
	mustClose(t, db)
	db = mustOpen(t, dir, nil)
	if err := db.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseEndsBackup does not wait for a backup that takes its time.
func TestCloseEndsBackup(t *testing.T) {
	home := t.TempDir()
	dest := filepath.Join(home, "dest")
	db := mustOpen(t, filepath.Join(home, "store"), &Options{BackupBytesPerSecond: 1})
	insert(t, db, "a", 1000)
	ended := make(chan error)
	go func() { ended <- db.Backup(context.Background(), dest) }()
	until(t, "its checkpoint", func() bool { return db.Metrics().Checkpoints.Epoch > 0 || partial(t, home) })
	mustClose(t, db)
	select {
	case err := <-ended:
		if !errors.Is(err, ErrClosed) {
			t.Errorf("the backup ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the backup goes on")
	}
	if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) || partial(t, home) {
		t.Errorf("the backup left something: %v", err)
	}
}

// partial tells whether a backup is being made in a directory.
func partial(t *testing.T, home string) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(home, "dest.partial-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(paths) > 0
}

// TestLogLost: a log that is gone with its note, behind a checkpoint that has all
// that it held, is no loss and is told.
func TestLogLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	ctx := t.Context()
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := db.Append(ctx, Batch{Events: []Event{Edge("r", Int(1), Int(2))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Checkpoint(ctx), db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "log")), os.Remove(filepath.Join(dir, "ACKED"))); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{true, false} {
		if db, err = Open(dir, nil); err != nil {
			t.Fatal(err)
		}
		if r := db.Recovery(); r.LogLost != lost || r.Checkpoint != 3 {
			t.Errorf("lost %v: %+v", lost, r)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
