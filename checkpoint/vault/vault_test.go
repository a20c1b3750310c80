package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/triegs/triegs/internal/errs"
)

// table writes one table with keys from first on and gives its path.
func table(t *testing.T, fsys vfs.FS, name string, first, n int) string {
	t.Helper()
	if err := fsys.MkdirAll("tmp", 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := Create(fsys, "tmp/"+name)
	if err != nil {
		t.Fatal(err)
	}
	for i := first; i < first+n; i++ {
		if err := w.Add(fmt.Appendf(nil, "k%06d", i), fmt.Appendf(nil, "v%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return w.Path()
}

func mustOpen(t *testing.T, dir string, o Options) *Vault {
	t.Helper()
	v, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// scan gives the number of keys.
func scan(v *Vault) (n int, err error) {
	it, err := v.Iter([]byte("k"), []byte("l"))
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, it.Close()
}

// TestIngest: tables enter, an excise takes keys away in the same step, and
// another Open sees it.
func TestIngest(t *testing.T) {
	mem := vfs.NewMem()
	v := mustOpen(t, "db", Options{FS: mem})
	if err := v.Ingest(t.Context(), []string{table(t, mem, "a", 0, 10), table(t, mem, "b", 20, 10)}, nil); err != nil {
		t.Fatal(err)
	}
	span := &Span{First: []byte("k000000"), End: []byte("k000010")}
	if err := v.Ingest(t.Context(), []string{table(t, mem, "c", 40, 3)}, span); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), "db", Options{FS: mem}); !errors.Is(err, errs.ErrLocked) {
		t.Fatalf("a second writer: %v", err)
	}
	beside := mustOpen(t, "db", Options{FS: mem, ReadOnly: true})
	for _, v := range []*Vault{v, beside} {
		if n, err := scan(v); n != 13 || err != nil {
			t.Fatal(n, err)
		}
		list, err := v.Tables()
		if err != nil || len(list) != 2 || string(list[0].First) != "k000020" || string(list[1].Last) != "k000042" {
			t.Fatalf("%+v, %v", list, err)
		}
	}
	if err := beside.Ingest(t.Context(), []string{table(t, mem, "d", 60, 3)}, nil); err == nil {
		t.Fatal("a reader changed something")
	}
	for _, v := range []*Vault{v, beside} {
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := scan(v); !errors.Is(err, errs.ErrClosed) {
			t.Fatal(err)
		}
		if err := v.Ingest(t.Context(), nil, nil); !errors.Is(err, errs.ErrClosed) {
			t.Fatal(err)
		}
		if err := v.Close(); !errors.Is(err, errs.ErrClosed) {
			t.Fatal(err)
		}
	}
}

// faulty gives a file system on which do is asked before each operation.
func faulty(base vfs.FS, do func(op errorfs.Op) error) vfs.FS {
	return errorfs.Wrap(base, errorfs.InjectorFunc(do))
}

// TestPoison: Pebble calls Fatalf on a failed write of its manifest. The
// caller gets the error, the next call gets it too, reads go on, Close
// returns, and another vault can be opened on the directory.
func TestPoison(t *testing.T) {
	mem := vfs.NewMem()
	var on atomic.Bool
	fsys := faulty(mem, func(op errorfs.Op) error {
		if on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, "MANIFEST") {
			return &fs.PathError{Op: "injected", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	})
	before := runtime.NumGoroutine()
	v := mustOpen(t, "db", Options{FS: fsys, Timeout: 5 * time.Second})
	if err := v.Ingest(t.Context(), []string{table(t, mem, "a", 0, 10)}, nil); err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	for _, name := range []string{"b", "c"} {
		err := v.Ingest(t.Context(), []string{table(t, mem, name, 20, 10)}, nil)
		if !errors.Is(err, syscall.EIO) || !errors.Is(v.Err(), syscall.EIO) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if n, err := scan(v); n != 10 || err != nil {
		t.Fatalf("reads stopped: %d, %v", n, err)
	}
	on.Store(false)
	if err := v.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	v = mustOpen(t, "db", Options{FS: fsys})
	if err := v.Ingest(t.Context(), []string{table(t, mem, "d", 20, 10)}, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := scan(v); n != 20 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	settled(t, before)
}

// settled waits until no more goroutines run than before.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Fatalf("%d goroutines, before %d\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

// TestHang: a disk that does not answer. The caller's context and the deadline
// end the wait; the vault is unusable; Close is bounded; when the disk answers
// at last, nothing is left of the vault.
func TestHang(t *testing.T) {
	for _, byContext := range []bool{true, false} {
		mem := vfs.NewMem()
		var hang atomic.Bool
		release := make(chan struct{})
		fsys := faulty(mem, func(op errorfs.Op) error {
			if hang.Load() && op.Kind == errorfs.OpLink {
				<-release
			}
			return nil
		})
		before := runtime.NumGoroutine()
		v := mustOpen(t, "db", Options{FS: fsys, Timeout: 300 * time.Millisecond})
		path := table(t, mem, "a", 0, 10)
		hang.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		if byContext {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		err := v.Ingest(ctx, []string{path}, nil)
		if err == nil || errors.Is(err, context.Canceled) != byContext {
			t.Fatalf("by context %v: %v", byContext, err)
		}
		if err := v.Ingest(t.Context(), nil, nil); err == nil {
			t.Fatal("a vault that was given up works")
		}
		if err := v.Close(); !errors.Is(err, ErrStuck) {
			t.Fatalf("close: %v", err)
		}
		close(release)
		cancel()
		settled(t, before)
		hang.Store(false)
		v = mustOpen(t, "db", Options{FS: fsys})
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLateButInTime: a vault given up by its caller closes well if the disk
// answers within the deadline of Close.
func TestLateButInTime(t *testing.T) {
	mem := vfs.NewMem()
	var hang atomic.Bool
	fsys := faulty(mem, func(op errorfs.Op) error {
		if hang.Load() && op.Kind == errorfs.OpLink {
			time.Sleep(200 * time.Millisecond)
		}
		return nil
	})
	v := mustOpen(t, "db", Options{FS: fsys})
	path := table(t, mem, "a", 0, 10)
	hang.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := v.Ingest(ctx, []string{path}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = mustOpen(t, "db", Options{FS: fsys})
	if n, err := scan(v); n != 10 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLeakedIterator: Pebble panics when it is closed under an iterator; Close
// waits for it, and then says so instead.
func TestLeakedIterator(t *testing.T) {
	mem := vfs.NewMem()
	v := mustOpen(t, "db", Options{FS: mem, Timeout: 200 * time.Millisecond})
	if err := v.Ingest(t.Context(), []string{table(t, mem, "a", 0, 10)}, nil); err != nil {
		t.Fatal(err)
	}
	it, err := v.Iter([]byte("k"), []byte("l"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() {
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = mustOpen(t, "db", Options{FS: mem, Timeout: 100 * time.Millisecond})
	if _, err := v.Iter([]byte("k"), []byte("l")); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); !errors.Is(err, ErrStuck) {
		t.Fatal(err)
	}
}

// TestPinned: a reader reads tables that a writer has removed.
func TestPinned(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "db")
	t.Chdir(base)
	v := mustOpen(t, dir, Options{})
	if err := v.Ingest(t.Context(), []string{table(t, vfs.Default, "a", 0, 1000)}, nil); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir, Options{ReadOnly: true})
	list, err := r.Tables()
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if err := r.Pin(list[0]); err != nil {
		t.Fatal(err)
	}
	if err := v.Ingest(t.Context(), []string{table(t, vfs.Default, "b", 0, 3)}, &Span{[]byte("k"), []byte("l")}); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(list[0].Path); !os.IsNotExist(err) {
		t.Fatalf("the table is still there: %v", err)
	}
	if err := r.Stat(list[0]); !errors.Is(err, errs.ErrCorrupt) {
		t.Fatal(err)
	}
	if n, err := scan(r); n != 1000 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDirectoryRemoved: the directory is removed under a writer.
func TestDirectoryRemoved(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "db")
	t.Chdir(base)
	v := mustOpen(t, dir, Options{Timeout: 2 * time.Second})
	path := table(t, vfs.Default, "a", 0, 10)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := v.Ingest(t.Context(), []string{path}, nil); err == nil {
		t.Fatal("ingested into nothing")
	}
	_ = v.Close()
}
