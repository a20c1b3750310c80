package recovery

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// Where the newest checkpoint is found to be damaged while the store is open, a
// backup is refused, and none comes that is of an older state than it should be:
// the next checkpoint, also of the same epoch, writes all anew.
func TestBackupOfDamagedCheckpoint(t *testing.T) {
	ctx := t.Context()
	root := t.TempDir()
	dir, backup := filepath.Join(root, "store"), filepath.Join(root, "backup")
	s, _, err := Open(ctx, dir, Options{Now: wallClock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.Engine.Logged(s.Log)
	for n := uint64(1); n <= 20; n++ {
		if err := do(ctx, s.Engine, n); err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			if _, err := s.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	damageNewest(t, dir)
	if _, err := s.Backup(ctx, backup, 0); !errors.Is(err, errs.ErrCorrupt) {
		t.Fatalf("a backup of a damaged checkpoint: %v", err)
	}
	if _, err := os.Stat(backup); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it left something: %v", err)
	}
	saved, err := s.Backup(ctx, backup, 0)
	if err != nil || saved.Epoch != 20 {
		t.Fatalf("another backup: %+v, %v", saved, err)
	}
	b, _, err := Open(ctx, backup, readOnly())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(isAt(ctx, b.Engine, 20), b.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := Open(ctx, dir, Options{Now: wallClock})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(isAt(ctx, again.Engine, 20), again.Close()); err != nil {
		t.Error(err)
	}
}

// A backup that was brought up to date and has lost its newest checkpoint is not
// taken for one of the older state, unless somebody has it repaired.
func TestFallbackOfBackup(t *testing.T) {
	ctx := t.Context()
	root := t.TempDir()
	backup := filepath.Join(root, "backup")
	s, _, err := Open(ctx, filepath.Join(root, "store"), Options{Now: wallClock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.Engine.Logged(s.Log)
	for n := uint64(1); n <= 20; n++ {
		if err := do(ctx, s.Engine, n); err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			if _, err := s.Backup(ctx, backup, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	damageNewest(t, backup)
	fallback := readOnly()
	fallback.Fallback = true
	for _, o := range []Options{readOnly(), fallback} {
		if b, _, err := Open(ctx, backup, o); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("with a fallback %v: %v", o.Fallback, err)
			if err == nil {
				_ = b.Close()
			}
		}
	}
	dest := filepath.Join(root, "repaired")
	found, err := Repair(ctx, backup, dest, Options{Now: wallClock})
	if err != nil || found.Epoch != 10 || found.Last != 20 || len(found.Damaged) != 1 {
		t.Fatalf("repaired: %+v, %v", found, err)
	}
	r, _, err := Open(ctx, dest, readOnly())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(isAt(ctx, r.Engine, 10), r.Close()); err != nil {
		t.Error(err)
	}
}

func readOnly() (o Options) {
	o.Log.ReadOnly, o.Now = true, wallClock
	return o
}

// damageNewest changes a byte in the middle of the newest table of checkpoints.
func damageNewest(t *testing.T, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, checkpointsName, "*.sst"))
	if err != nil || len(tables) < 2 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	path := tables[len(tables)-1] // their numbers ascend
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 0x40
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The last checkpoint alone: one of an empty store is one, none is told as such,
// and so are some that are all damaged.
func TestLastCheckpointAlone(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "store")
	s, _, err := Open(ctx, dir, Options{Now: wallClock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.Engine.Logged(s.Log)
	last := readOnly()
	last.LastCheckpoint, last.Fallback = true, true
	if _, _, err := Open(ctx, dir, last); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("without a checkpoint: %v", err)
	}
	for i, written := range []bool{true, false} {
		if saved, err := s.Checkpoint(ctx); err != nil || saved.Written != written {
			t.Fatalf("checkpoint %d of an empty store: %+v, %v", i, saved, err)
		}
	}
	for _, n := range []uint64{0, 1} {
		if n > 0 {
			if err := do(ctx, s.Engine, n); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
		l, _, err := Open(ctx, dir, last)
		if err != nil {
			t.Fatalf("epoch %d: %v", n, err)
		}
		if err := errors.Join(isAt(ctx, l.Engine, n), l.Close()); err != nil {
			t.Error(err)
		}
	}
	tables, err := filepath.Glob(filepath.Join(dir, checkpointsName, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tables {
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Open(ctx, dir, last); !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), ".sst") {
		t.Errorf("all checkpoints are damaged: %v", err)
	}
}
