package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

// faulty fails the n-th write operation, or it and all behind it.
type faulty struct {
	vfs.FS
	n     atomic.Int64 // Counts down; fails at 0.
	on    atomic.Bool
	ever  bool
	err   error
	mu    sync.Mutex
	fired string
}

func newFaulty(base vfs.FS, err error, ever bool) *faulty {
	f := &faulty{err: err, ever: ever}
	f.FS = errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !f.on.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
			return nil
		}
		n := f.n.Add(-1)
		if n > 0 || n < 0 && !f.ever {
			return nil
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.fired == "" {
			f.fired = fmt.Sprintf("kind %d of %s", op.Kind, op.Path)
		}
		return &fs.PathError{Op: "injected", Path: op.Path, Err: f.err}
	}))
	return f
}

// arm makes the n-th write from now on fail.
func (f *faulty) arm(n int) {
	f.mu.Lock()
	f.fired = ""
	f.mu.Unlock()
	f.n.Store(int64(n))
	f.on.Store(true)
}

// disarm ends all faults and tells what failed first.
func (f *faulty) disarm() string {
	f.on.Store(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// within fails the test if f takes longer than Pebble's deadlines allow.
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

// TestFailingWrites: each write of a commit fails, once and from there on.
// Commit gives the error or succeeds, does not hang, and leaves a store that
// the same process can open again with one of the two states.
func TestFailingWrites(t *testing.T) {
	for _, ever := range []bool{false, true} {
		for name, o := range openings {
			for _, errno := range []error{syscall.EIO, syscall.ENOSPC} {
				t.Run(fmt.Sprintf("ever=%v/%s/%v", ever, name, errno), func(t *testing.T) {
					failEach(t, ever, o, errno)
				})
			}
		}
	}
}

func failEach(t *testing.T, ever bool, o Options, errno error) {
	counts := map[string]int{}
	for kind := range 3 { // First, incremental, full that excises.
		for n := 1; ; n++ {
			outcome, fired := failAt(t, kind, n, ever, o, errno)
			if fired == "" {
				counts[fmt.Sprintf("points of kind %d", kind)] = n - 1
				break
			}
			counts[outcome]++
		}
	}
	t.Logf("%v", counts)
}

// failAt makes the n-th write of one commit fail, and says how that went and
// what failed.
func failAt(t *testing.T, kind, n int, ever bool, o Options, errno error) (outcome, fired string) {
	mem := vfs.NewMem()
	f := newFaulty(mem, errno, ever)
	o.FS, o.StoreID, o.Timeout = f, storeID, time.Second
	s := mustOpen(t, "db/checkpoint", o)
	m := model{}
	for i := range []int{0, 1, 3}[kind] {
		if i == 2 {
			s.RequireFull()
		}
		m = mustWrite(t, s, m, uint64(i), 2, 700, 20)
	}
	var err error
	next := m
	within(t, "commit", func() {
		f.arm(n)
		next, err = write(t.Context(), s, m, 100, 3, 700, 20)
	})
	// A later attempt of the same process, while the fault lasts or not.
	var again error
	within(t, "the next commit", func() {
		if fired = f.disarm(); fired != "" && err != nil {
			_, again = write(t.Context(), s, m, 200, 3, 700, 20)
		}
		_ = s.Close()
	})
	what := fmt.Sprintf("kind %d, write %d (%s)", kind, n, fired)
	switch {
	case fired == "" || err == nil:
		outcome = "no error"
	case !errors.Is(err, errno):
		t.Fatalf("%s: error %v", what, err)
	case again == nil:
		outcome = "error, next commit works"
	case errors.Is(again, errno):
		outcome = "error that stays"
	default:
		t.Fatalf("%s: after %v the next commit gives %v", what, err, again)
	}
	// The directory, as a new process finds it.
	fresh := mustOpen(t, "db/checkpoint", Options{FS: asAfterExit(mem), StoreID: storeID})
	list := fresh.List()
	switch {
	case err == nil:
		holds(t, fresh, list[0], next)
	case again == nil && len(list) == 0:
		t.Fatalf("%s: nothing is there after a commit that worked", what)
	}
	for _, in := range list[:min(2, len(list))] {
		if _, err := read(t.Context(), fresh, in); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	m = model{}
	if len(list) > 0 {
		if m, err = read(t.Context(), fresh, list[0]); err != nil {
			t.Fatal(err)
		}
	}
	m = mustWrite(t, fresh, m, 300, 2, 700, 20)
	holds(t, fresh, fresh.List()[0], m)
	if err := fresh.Close(); err != nil {
		t.Fatalf("%s: close: %v", what, err)
	}
	return outcome, fired
}

// asAfterExit is the file system without the locks of those who hang.
func asAfterExit(mem *vfs.MemFS) vfs.FS { return unlocked{mem} }

type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// TestDamage: each file of the newest element is cut, emptied, removed and
// flipped at each of many places. The newest checkpoint is refused by name, or
// gives exactly what was written; the older one loads; a second Open says the
// same; the next checkpoint is a full one.
func TestDamage(t *testing.T) {
	dir := t.TempDir() + "/checkpoint"
	o := Options{StoreID: storeID}
	s := mustOpen(t, dir, o)
	m1 := mustWrite(t, s, model{}, 1, 2, 2000, 100)
	m2 := mustWrite(t, s, m1, 2, 2, 2000, 100)
	newest := s.mu.elements[1].tables[0].Path
	oldest := s.mu.elements[0].tables[0].Path
	whole := mustRead(t, newest)
	damage := map[string]func() bool{
		"removed": func() bool { mustRemove(t, newest); return true },
		"empty":   func() bool { mustWriteFile(t, newest, nil); return true },
		"cut":     func() bool { mustWriteFile(t, newest, whole[:len(whole)/2]); return true },
		"longer":  func() bool { mustWriteFile(t, newest, append(whole[:len(whole):len(whole)], 0)); return true },
		"another": func() bool {
			mustWriteFile(t, newest, mustRead(t, oldest))
			return true
		},
	}
	for i := 0; i < len(whole); i += 1 + len(whole)/150 {
		damage[fmt.Sprintf("flip at %d", i)] = func() bool {
			p := append([]byte(nil), whole...)
			p[i] ^= 0x10
			mustWriteFile(t, newest, p)
			return false
		}
	}
	refused := 0
	for name, do := range damage {
		must := do()
		for range 2 {
			if checkDamaged(t, name, dir, newest, must, m1, m2) {
				refused++
			}
		}
	}
	t.Logf("%d kinds of damage, %d of %d loads refused", len(damage), refused, 2*len(damage))
}

// TestAfterDamage: once damage of the newest element is known, the next one is
// full, the damaged one goes in the same step, and the good one before it is
// the older kept one.
func TestAfterDamage(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, path string){
		"flip": func(t *testing.T, path string) {
			p := mustRead(t, path)
			p[len(p)/3] ^= 1
			mustWriteFile(t, path, p)
		},
		"empty":   func(t *testing.T, path string) { mustWriteFile(t, path, nil) },
		"removed": func(t *testing.T, path string) { mustRemove(t, path) },
	} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/keep=%v", name, keep), func(t *testing.T) {
				dir := t.TempDir() + "/checkpoint"
				o := Options{StoreID: storeID, KeepOpen: keep}
				s := mustOpen(t, dir, o)
				m1 := mustWrite(t, s, model{}, 1, 2, 2000, 100)
				m2 := mustWrite(t, s, m1, 2, 2, 2000, 100)
				newest := s.mu.elements[1].tables[0].Path
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				do(t, newest)
				s = mustOpen(t, dir, o)
				if _, err := read(t.Context(), s, s.List()[0]); !errors.Is(err, errs.ErrCorrupt) {
					t.Fatal(err)
				}
				if older, ok := s.Older(); ok {
					t.Fatalf("two good ones with %+v", older)
				}
				m3 := withSequence(mustWrite(t, s, m2, 9, 2, 2000, 100), 3)
				if st := s.Stats(); st.Full != 1 || st.Elements != 2 {
					t.Fatalf("%+v", st)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, dir, o)
				holds(t, s, s.List()[0], m3)
				older, ok := s.Older()
				if !ok || len(s.List()) != 2 {
					t.Fatalf("%+v", s.List())
				}
				holds(t, s, older, m1)
				m4 := mustWrite(t, s, m3, 10, 2, 2000, 100)
				holds(t, s, s.List()[0], m4)
				if list := s.List(); len(list) != 2 || list[0].Element != 1 {
					t.Fatalf("%+v", list)
				}
			})
		}
	}
}

func withSequence(m model, n uint64) model { m.header.Sequence = n; return m }

// checkDamaged opens and loads, and tells whether the newest was refused.
func checkDamaged(t *testing.T, name, dir, file string, must bool, m1, m2 model) bool {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{StoreID: storeID, ReadOnly: true})
	if err != nil {
		t.Fatalf("%s: open: %v", name, err)
	}
	defer func() { _ = s.Close() }()
	list := s.List()
	if len(list) != 2 {
		t.Fatalf("%s: %+v", name, list)
	}
	got, err := read(t.Context(), s, list[0])
	switch {
	case err == nil && must:
		t.Fatalf("%s: the newest loads", name)
	case err == nil:
		if d := differ(got, m2); d != "" {
			t.Fatalf("%s: wrong data: %s", name, d)
		}
	case !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), file):
		t.Fatalf("%s: %v", name, err)
	case s.List()[0].Err == nil:
		t.Fatalf("%s: not remembered", name)
	}
	holds(t, s, list[1], m1)
	return err != nil
}

// TestFailingReads: a read error of the disk is that error, and no damage: the
// same checkpoint loads when the disk reads again.
func TestFailingReads(t *testing.T) {
	mem := vfs.NewMem()
	var left atomic.Int64
	left.Store(1 << 40)
	f := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && left.Add(-1) < 0 {
			return &fs.PathError{Op: "injected", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}))
	s := mustOpen(t, "db/checkpoint", Options{FS: f})
	m := mustWrite(t, s, model{}, 1, 10, 40000, 3000)
	failed := 0
	for n := int64(0); ; n++ {
		left.Store(n)
		got, err := read(t.Context(), s, s.List()[0])
		left.Store(1 << 40)
		if err == nil {
			if d := differ(got, m); d != "" {
				t.Fatal(d)
			}
			break
		}
		if !errors.Is(err, syscall.EIO) || errors.Is(err, errs.ErrCorrupt) || s.List()[0].Err != nil {
			t.Fatalf("read %d: %v", n, err)
		}
		failed++
	}
	t.Logf("%d reads failed", failed)
	if failed == 0 {
		t.Fatal("nothing failed")
	}
	holds(t, s, s.List()[0], m)
}

// TestGivenUp: a commit that its caller gave up may arrive nevertheless. The
// next checkpoint is then a full one, since the caller counts its changes from
// the one before.
func TestGivenUp(t *testing.T) {
	for _, c := range []struct {
		keep    bool
		at      string // The table is linked, or the manifest synced, slowly.
		kind    errorfs.OpKind
		arrives bool
	}{
		{false, "checkpoint", errorfs.OpLink, false},
		{true, "checkpoint", errorfs.OpLink, false},
		{false, "MANIFEST", errorfs.OpFileSync, true},
		{true, "MANIFEST", errorfs.OpFileSync, true},
	} {
		mem := vfs.NewMem()
		var slow atomic.Bool
		f := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == c.kind && strings.Contains(op.Path, c.at) && slow.Load() {
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		}))
		s := mustOpen(t, "db/checkpoint", Options{FS: f, StoreID: storeID, KeepOpen: c.keep})
		m := mustWrite(t, s, model{}, 1, 2, 700, 20)
		slow.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		_, err := write(ctx, s, m, 2, 2, 700, 20)
		cancel()
		slow.Store(false)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		w, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if arrived := len(s.List()) == 2; arrived != c.arrives || w.Full() != arrived {
			t.Fatalf("%+v: full %v, arrived %v", c, w.Full(), arrived)
		}
		w.Abort()
		m = mustWrite(t, s, m, 3, 2, 700, 20)
		if c.arrives {
			m.header.Sequence++
		}
		holds(t, s, s.List()[0], m)
	}
}

// TestStuck: a disk that never answers. Every later attempt gives the error at
// once, and reading goes on.
func TestStuck(t *testing.T) {
	mem := vfs.NewMem()
	var hang atomic.Bool
	release := make(chan struct{})
	defer close(release)
	f := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpLink && hang.Load() {
			<-release
		}
		return nil
	}))
	s := mustOpen(t, "db/checkpoint", Options{FS: f, StoreID: storeID, KeepOpen: true, Timeout: 200 * time.Millisecond})
	m := mustWrite(t, s, model{}, 1, 2, 700, 20)
	hang.Store(true)
	if _, err := write(t.Context(), s, m, 2, 2, 700, 20); err == nil {
		t.Fatal("no error")
	}
	for range 3 {
		if _, err := s.Begin(t.Context()); !errors.Is(err, vault.ErrStuck) {
			t.Fatal(err)
		}
	}
	holds(t, s, s.List()[0], m)
	if got, err := s.Form(m.header.LastTerm, nil); err != nil || len(got) == 0 {
		t.Fatal(err)
	}
}
