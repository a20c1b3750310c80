package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// holds opens the store in a directory of the disk for reading and compares it.
// Nothing there is epoch 0.
func holds(ctx context.Context, d *disk, name string) (at uint64, err error) {
	dir := filepath.Join(d.root, name)
	if entries, err := os.ReadDir(dir); errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return 0, nil
	}
	o := d.options()
	o.Log.ReadOnly = true
	s, _, err := Open(ctx, dir, o)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", name, err)
	}
	at = s.Engine.Current.Epoch()
	return at, errors.Join(isAt(ctx, s.Engine, at), s.Close())
}

// goesOn opens the store in a directory of the disk, which must be at an epoch,
// and takes it through some more, with a checkpoint.
func goesOn(ctx context.Context, d *disk, name string, at uint64) (err error) {
	s, _, err := Open(ctx, filepath.Join(d.root, name), d.options())
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	s.Engine.Logged(s.Log)
	if err := isAt(ctx, s.Engine, at); err != nil {
		return err
	}
	for n := at + 1; n <= at+3; n++ {
		if err := do(ctx, s.Engine, n); err != nil {
			return err
		}
		if n == at+2 {
			if _, err := s.Checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	return isAt(ctx, s.Engine, at+3)
}

// backup takes the store of the disk through a backup into b.
func (d *disk) backup(ctx context.Context) (err error) {
	s, _, err := openDisk(ctx, d, d.options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, err = s.Backup(ctx, filepath.Join(d.root, "b"), 0)
	return err
}

// afterBackup checks the disk after a crash in a backup: b is at one of the
// epochs given (0 is empty or missing), another backup works, and a store that
// goes on can be restored from it; so does the store itself.
func afterBackup(ctx context.Context, d *disk, allowed ...uint64) error {
	at, err := holds(ctx, d, "b")
	if err != nil {
		return err
	}
	if !slices.Contains(allowed, at) {
		return fmt.Errorf("the backup is at %d, not at one of %v", at, allowed)
	}
	if at > 0 {
		if err := restoreAt(ctx, d, "b", "r", at); err != nil {
			return err
		}
	}
	if err := d.backup(ctx); err != nil {
		return fmt.Errorf("another backup: %w", err)
	}
	newest := d.acked.Load()
	if at, err := holds(ctx, d, "b"); err != nil || at != newest {
		return fmt.Errorf("another backup is at %d, want %d, %w", at, newest, err)
	}
	if err := restoreAt(ctx, d, "b", "r2", newest); err != nil {
		return err
	}
	_, err = survives(ctx, d, d.options())
	return err
}

// restoreAt makes a store and takes it on from an epoch.
func restoreAt(ctx context.Context, d *disk, from, to string, at uint64) error {
	if _, err := Restore(ctx, filepath.Join(d.root, from), filepath.Join(d.root, to), d.options()); err != nil {
		return fmt.Errorf("restore %s to %s: %w", from, to, err)
	}
	return goesOn(ctx, d, to, at)
}

// TestCrashBackup sweeps over a backup into nothing, an incremental one, and
// one whose source has begun a new generation.
func TestCrashBackup(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := newDisk(t, fastDir(t))
	s, _, err := openDisk(ctx, d, d.options())
	if err != nil {
		t.Fatal(err)
	}
	b := filepath.Join(d.root, "b")
	before := uint64(0)
	step := func(what string, to uint64, full bool) {
		t.Helper()
		if err := d.advance(ctx, s, to); err != nil {
			t.Fatal(err)
		}
		if full {
			s.checkpoints.RequireFull()
		}
		crashes := d.sweep(what, func() {
			saved, err := s.Backup(ctx, b, 0)
			if err != nil || saved.Epoch != to {
				t.Fatalf("%s: %+v, %v", what, saved, err)
			}
		})
		judge(t, what, crashes, func(d *disk, c *crash) error { return afterBackup(ctx, d, before, to) })
		judge(t, what+", the end", crashes[len(crashes)-3:], func(d *disk, c *crash) error { return afterBackup(ctx, d, to) })
		before = to
	}
	step("first backup", 9, false)
	step("incremental backup", 14, false)
	step("backup of a new generation", 18, true)
	step("backup that is two checkpoints behind", 23, false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCrashRestore sweeps over the restoring of a backup and of a closed store
// with a log behind its checkpoint, which are left as they are.
func TestCrashRestore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := newDisk(t, fastDir(t))
	s, _, err := openDisk(ctx, d, d.options())
	if err == nil {
		err = d.advance(ctx, s, 12)
	}
	if err == nil {
		_, err = s.Backup(ctx, filepath.Join(d.root, "b"), 0)
	}
	if err == nil {
		err = d.advance(ctx, s, 15)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for from, at := range map[string]uint64{"b": 12, "s": 15} {
		to := "of " + from
		crashes := d.sweep("restoring "+from, func() {
			if _, err := Restore(ctx, filepath.Join(d.root, from), filepath.Join(d.root, to), d.options()); err != nil {
				t.Fatal(err)
			}
		})
		done := crashes[len(crashes)-3:]
		judge(t, "restoring "+from, crashes, func(d *disk, c *crash) error {
			got, err := holds(ctx, d, to)
			if err != nil || got != 0 && got != at {
				return fmt.Errorf("%s is at %d, %w", to, got, err)
			}
			if got == 0 && slices.ContainsFunc(done, func(x crash) bool { return x.name == c.name }) {
				return errors.New("what was restored is gone")
			}
			if got == at {
				_, err := Restore(ctx, filepath.Join(d.root, from), filepath.Join(d.root, to), d.options())
				if !errors.Is(err, errs.ErrFormat) {
					return fmt.Errorf("restoring to a store: %w", err)
				}
				err = goesOn(ctx, d, to, at)
				if err != nil {
					return err
				}
			}
			if err := restoreAt(ctx, d, from, "again", at); err != nil {
				return err
			}
			_, err = survives(ctx, d, d.options())
			return err
		})
	}
}
