package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
)

// fault fails the n-th change below a path, or it and all behind it.
type fault struct {
	n    atomic.Int64 // counts down, fails at 0; far above it where nothing is armed
	ever bool
	err  error
	hit  atomic.Pointer[string]
}

func newFault(err error, ever bool) *fault {
	f := &fault{err: err, ever: ever}
	f.disarm()
	return f
}

// arm makes the n-th change from now on fail.
func (f *fault) arm(n int) {
	f.hit.Store(nil)
	f.n.Store(int64(n))
}

// disarm ends the faults and says what failed first, "" if nothing did.
func (f *fault) disarm() string {
	f.n.Store(1 << 40)
	if what := f.hit.Load(); what != nil {
		return *what
	}
	return ""
}

// next is called before a change.
func (f *fault) next(what string) error {
	n := f.n.Add(-1)
	if n > 0 || n < 0 && !f.ever {
		return nil
	}
	f.hit.CompareAndSwap(nil, &what)
	return &fs.PathError{Op: "injected", Path: what, Err: f.err}
}

// failing is fsys with f in front of its changes below a path.
func (f *fault) failing(fsys vfs.FS, below string) vfs.FS {
	return errorfs.Wrap(fsys, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose || !strings.HasPrefix(op.Path, below) {
			return nil
		}
		return f.next(fmt.Sprintf("op kind %d of %s", op.Kind, filepath.Base(op.Path)))
	}))
}

// unlocked is a file system without the locks of those who hang, as another
// process finds it.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// within fails the test if f takes longer than its parts may.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// stride is which of the places of a fault are tried.
func stride() int {
	switch {
	case *every:
		return 1
	case testing.Short():
		return 13
	}
	return 4
}

// TestFailingCheckpoint fails each change that a checkpoint makes, once and for
// ever: the error says why, epochs and readers go on, the log is not cut, the
// next checkpoint works when the fault is gone, or the next process's does, and
// nothing is lost.
func TestFailingCheckpoint(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"first", "incremental", "full", "excising"} {
		for _, ever := range []bool{false, true} {
			for _, cache := range []int64{0, 1 << 10} {
				t.Run(fmt.Sprintf("%s, for ever %v, cache %d", kind, ever, cache), func(t *testing.T) {
					counts := map[string]int{}
					errno := []syscall.Errno{syscall.EIO, syscall.ENOSPC}
					for n := 1; ; n += stride() {
						outcome := failCheckpoint(t, kind, n, newFault(errno[n%2], ever), cache)
						if outcome == "" {
							break
						}
						counts[outcome]++
					}
					t.Logf("%v", counts)
				})
			}
		}
	}
}

// failCheckpoint makes the n-th change of one checkpoint fail and says how that
// went, "" if there is no n-th change.
func failCheckpoint(t *testing.T, kind string, n int, f *fault, cache int64) string {
	t.Helper()
	ctx := t.Context()
	d := newDisk(t, fastDir(t))
	o := d.options()
	o.FS, o.TermCache, o.timeout = f.failing(d.fs, filepath.Join(d.root, "s")), cache, time.Second
	s, _, err := openDisk(ctx, d, o)
	if err != nil {
		t.Fatal(err)
	}
	for range map[string]int{"first": 0, "incremental": 2, "full": 2, "excising": 3}[kind] {
		prepare(t, d, s, 4)
		if kind == "excising" && s.saver.saved > 4 {
			s.checkpoints.RequireFull()
		}
		if _, err := s.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if kind == "full" {
		s.checkpoints.RequireFull()
	}
	prepare(t, d, s, 4)
	pinned := s.Engine.Current.Pin()
	before := s.Log.Bytes()
	var saved Saved
	within(t, "the checkpoint", func() {
		f.arm(n)
		saved, err = s.Checkpoint(ctx)
	})
	if err != nil && s.Log.Bytes() < before {
		t.Fatalf("the log was cut although the checkpoint failed with %v", err)
	}
	prepare(t, d, s, 2) // while the fault lasts
	if verr := s.Engine.Verify(ctx, pinned); verr != nil {
		t.Fatal(verr)
	}
	s.Engine.Current.Unpin(pinned)
	what := f.disarm()
	outcome := judgeFailed(t, s, f, err, what)
	last := s.Engine.Current.Epoch()
	within(t, "closing", func() { _ = s.Close() })
	reopened(t, d, cache, last)
	if what == "" && (err != nil || !saved.Written) {
		t.Fatalf("without a fault: %+v, %v", saved, err)
	}
	return outcome
}

// prepare applies some epochs.
func prepare(t *testing.T, d *disk, s *Store, n uint64) {
	t.Helper()
	if err := d.advance(t.Context(), s, s.Engine.Current.Epoch()+n); err != nil {
		t.Fatal(err)
	}
}

// judgeFailed looks at the error of a checkpoint in which something failed, and
// tries the next one.
func judgeFailed(t *testing.T, s *Store, f *fault, err error, what string) string {
	t.Helper()
	if what == "" {
		return ""
	}
	if err != nil && !errors.Is(err, f.err) {
		t.Fatalf("%s failed: the error is %v", what, err)
	}
	var again error
	within(t, "the next checkpoint", func() { _, again = s.Checkpoint(t.Context()) })
	switch {
	case err == nil && again == nil:
		return "no error"
	case again == nil:
		return "error, the next one works"
	case errors.Is(again, f.err):
		return "error that stays"
	}
	t.Fatalf("%s failed: after %v the next checkpoint gives %v", what, err, again)
	return ""
}

// reopened opens the store as the next process does, and goes on.
func reopened(t *testing.T, d *disk, cache int64, last uint64) {
	t.Helper()
	if acked := d.acked.Load(); acked != last {
		t.Fatalf("epoch %d is acknowledged, %d is current", acked, last)
	}
	o := d.options()
	o.FS, o.TermCache = unlocked{d.fs}, cache
	if at, err := survives(t.Context(), d, o); err != nil || at != last {
		t.Fatalf("reopened at %d, want %d: %v", at, last, err)
	}
}

// TestFailingBackup fails each change that a backup makes at its destination:
// the error says why, nothing stands there that is not whole, and the next
// backup works.
func TestFailingBackup(t *testing.T) {
	t.Parallel()
	for _, incremental := range []bool{false, true} {
		for _, ever := range []bool{false, true} {
			t.Run(fmt.Sprintf("incremental %v, for ever %v", incremental, ever), func(t *testing.T) {
				counts := map[string]int{}
				for n := 1; ; n += stride() {
					outcome := failBackup(t, incremental, n, newFault(syscall.ENOSPC, ever))
					if outcome == "" {
						break
					}
					counts[outcome]++
				}
				t.Logf("%v", counts)
			})
		}
	}
}

func failBackup(t *testing.T, incremental bool, n int, f *fault) string {
	t.Helper()
	ctx := t.Context()
	d := newDisk(t, fastDir(t))
	o := d.options()
	b := filepath.Join(d.root, "b")
	o.FS, o.timeout = &inFront{twin: d.fs.(*twin), failing: f.failing(d.fs, b)}, time.Second
	s, _, err := openDisk(ctx, d, o)
	if err != nil {
		t.Fatal(err)
	}
	old := uint64(0)
	if incremental {
		prepare(t, d, s, 5)
		old = 5
		if _, err := s.Backup(ctx, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	prepare(t, d, s, 5)
	within(t, "the backup", func() {
		f.arm(n)
		_, err = s.Backup(ctx, b, 0)
	})
	what := f.disarm()
	if err != nil && !errors.Is(err, f.err) {
		t.Fatalf("%s failed: the error is %v", what, err)
	}
	now := s.Engine.Current.Epoch()
	d.fs = unlocked{d.fs}
	at, herr := holds(ctx, d, "b")
	if herr != nil || at != now && (err == nil || at != old) {
		t.Fatalf("%s failed: the backup is at %d, want %d or %d: %v", what, at, old, now, herr)
	}
	prepare(t, d, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if what == "" {
		return ""
	}
	if err := afterBackup(ctx, d, at); err != nil {
		t.Fatalf("%s failed: %v", what, err)
	}
	if err == nil {
		return "no error"
	}
	return "error"
}

// inFront fails changes but keeps the directories of both halves of a disk.
type inFront struct {
	*twin
	failing vfs.FS
}

func (w *inFront) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return w.failing.Create(name, c)
}
func (w *inFront) Link(from, to string) error   { return w.failing.Link(from, to) }
func (w *inFront) Remove(name string) error     { return w.failing.Remove(name) }
func (w *inFront) RemoveAll(name string) error  { return w.failing.RemoveAll(name) }
func (w *inFront) Rename(from, to string) error { return w.failing.Rename(from, to) }
func (w *inFront) MkdirAll(dir string, perm fs.FileMode) error {
	return w.failing.MkdirAll(dir, perm)
}
func (w *inFront) OpenDir(dir string) (vfs.File, error) { return w.failing.OpenDir(dir) }

// badDevice fails in front of the log's files.
type badDevice struct {
	wal.Device
	append, sync, dir *fault
}

func (b *badDevice) Append(first uint64, frames [][]byte) (bool, error) {
	if err := b.append.next("append"); err != nil {
		return false, err
	}
	return b.Device.Append(first, frames)
}

func (b *badDevice) Sync() error {
	if err := b.sync.next("sync"); err != nil {
		return err
	}
	return b.Device.Sync()
}

func (b *badDevice) SyncDir() error {
	if err := b.dir.next("sync of the directory"); err != nil {
		return err
	}
	return b.Device.SyncDir()
}

// TestFailingLog fails a write or a sync of the log under epochs and under the
// checkpoint that waits for it: writers and checkpoints are refused, readers go
// on, and a reopened store has what was acknowledged.
func TestFailingLog(t *testing.T) {
	t.Parallel()
	for _, mode := range []wal.Mode{wal.SyncEpoch, wal.SyncNone} {
		for _, where := range []string{"append", "sync", "dir"} {
			for n := 1; n < 9; n += 3 {
				t.Run(fmt.Sprintf("mode %d, %s %d", mode, where, n), func(t *testing.T) { failLog(t, mode, where, n) })
			}
		}
	}
}

func failLog(t *testing.T, mode wal.Mode, where string, n int) {
	ctx := t.Context()
	d := newDisk(t, fastDir(t))
	d.relaxed = mode != wal.SyncEpoch
	bad := &badDevice{append: newFault(syscall.EIO, true), sync: newFault(syscall.EIO, true), dir: newFault(syscall.EIO, true)}
	o := d.options()
	o.Log.Mode, o.Log.SegmentBytes = mode, 500
	o.Log.Wrap = func(dev wal.Device) wal.Device { bad.Device = &device{d, dev}; return bad }
	s, _, err := openDisk(ctx, d, o)
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, d, s, 6)
	if _, err := s.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	map[string]*fault{"append": bad.append, "sync": bad.sync, "dir": bad.dir}[where].arm(n)
	within(t, "the epochs", func() {
		for err == nil && s.Engine.Current.Epoch() < lastEpoch-3 {
			if err = d.advance(ctx, s, s.Engine.Current.Epoch()+1); err == nil && s.Engine.Current.Epoch()%4 == 0 {
				_, err = s.Checkpoint(ctx)
			}
		}
	})
	if !errors.Is(err, errs.ErrReadOnly) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want ErrReadOnly because of EIO", err)
	}
	seen := s.Engine.Current.Epoch()
	within(t, "what comes after", func() {
		if err := d.advance(ctx, s, seen+1); !errors.Is(err, errs.ErrReadOnly) {
			t.Errorf("the next epoch: %v", err)
		}
		// Where a checkpoint has all of what is seen there is nothing to refuse.
		saved := s.saver.saved == seen
		if _, err := s.Checkpoint(ctx); !errors.Is(err, errs.ErrReadOnly) && (err != nil || !saved) {
			t.Errorf("the next checkpoint: %v", err)
		}
		if _, err := s.Backup(ctx, filepath.Join(d.root, "b"), 0); !errors.Is(err, errs.ErrReadOnly) && (err != nil || !saved) {
			t.Errorf("a backup: %v", err)
		}
	})
	if got, err := state(ctx, s.Engine); err != nil || seenBy(got) != seenBy(states(t)[seen]) {
		t.Errorf("readers see\n%s\nwant\n%s, %v", got, states(t)[seen], err)
	}
	acked := d.acked.Load()
	within(t, "closing", func() {
		if err := s.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close: %v, want the cause", err)
		}
	})
	o = d.options()
	at, err := survives(ctx, d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("readers were at %d, acknowledged was %d, reopened at %d", seen, acked, at)
}

// seenBy takes the counts out of a state, which are those of the last applied
// epoch and not of the last published one.
func seenBy(state string) string {
	first, rest, _ := strings.Cut(state, "\n")
	first, _, _ = strings.Cut(first, ",")
	return first + "\n" + rest
}

// TestFailingCut fails each step of the cut of the log behind a checkpoint,
// which is as good as it is, and whose successor cuts what is left.
func TestFailingCut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for n := 1; ; n++ {
		d := newDisk(t, fastDir(t))
		f := newFault(syscall.EACCES, false)
		o := d.options()
		o.Log.SegmentBytes = 300
		step := o.Log.Step
		o.Log.Step = func(what string) error { return errors.Join(step(what), f.next(what)) }
		s, _, err := openDisk(ctx, d, o)
		if err != nil {
			t.Fatal(err)
		}
		prepare(t, d, s, 5)
		if _, err := s.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		prepare(t, d, s, 5)
		f.arm(n)
		saved, err := s.Checkpoint(ctx)
		what := f.disarm()
		if err != nil || !saved.Written || (saved.CutErr != nil) != (what != "") || what != "" && !errors.Is(saved.CutErr, syscall.EACCES) {
			t.Fatalf("%s failed: %+v, %v", what, saved, err)
		}
		prepare(t, d, s, 5)
		before := s.Log.Bytes()
		saved, err = s.Checkpoint(ctx)
		if err = errors.Join(err, saved.CutErr); err != nil || saved.Segments == 0 || s.Log.Bytes() >= before {
			t.Fatalf("%s had failed: %+v, %v", what, saved, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		reopened(t, d, 0, 15)
		if what == "" {
			t.Logf("%d steps", n-1)
			return
		}
	}
}

// TestFailingOpen fails each change that an opening after a crash makes, once:
// it gives the error or a store, and the next opening works.
func TestFailingOpen(t *testing.T) {
	t.Parallel()
	for _, c := range torn(t) {
		for _, cache := range []int64{0, 1 << 10} {
			opened, refused := 0, 0
			for n := 1; ; n++ {
				d, err := c.put(fastDir(t))
				if err != nil {
					t.Fatal(err)
				}
				f := newFault(syscall.EIO, false)
				o := d.options()
				step := o.Log.Step
				o.FS, o.TermCache, o.timeout = f.failing(d.fs, d.root), cache, time.Second
				o.Log.Step = func(what string) error { return errors.Join(step(what), f.next(what)) }
				var s *Store
				within(t, "open", func() {
					f.arm(n)
					s, _, err = openDisk(context.Background(), d, o)
				})
				what := f.disarm()
				switch {
				case err == nil:
					opened++
					within(t, "close", func() { _ = s.Close() })
				case !errors.Is(err, syscall.EIO):
					t.Fatalf("%s: %s failed: %v", c.name, what, err)
				default:
					refused++
				}
				o = d.options()
				o.FS, o.TermCache = unlocked{d.fs}, cache
				if _, err := survives(t.Context(), d, o); err != nil {
					t.Fatalf("%s: %s had failed: %v", c.name, what, err)
				}
				if what == "" {
					break
				}
			}
			t.Logf("%s, cache %d: %d refused, %d opened all the same", c.name, cache, refused, opened-1)
		}
	}
}
