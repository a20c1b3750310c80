package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/internal/errs"
)

// TestCopy: a backup holds what the newest checkpoint held, an incremental one
// copies what is missing only, and another chain or store is told apart.
func TestCopy(t *testing.T) {
	base := t.TempDir()
	src := mustOpen(t, base+"/checkpoint", Options{StoreID: storeID})
	dest := mustOpen(t, base+"/backup/checkpoint", Options{})
	if _, err := src.CopyTo(t.Context(), dest, 0); err == nil {
		t.Fatal("copied nothing")
	}
	m := mustWrite(t, src, model{}, 1, 40, 64<<10, 3000)
	copied := func(want int) {
		t.Helper()
		in, err := src.CopyTo(t.Context(), dest, 0)
		if err != nil {
			t.Fatal(err)
		}
		if in.Epoch != m.header.Epoch || len(dest.List()) != want {
			t.Fatalf("%+v; %d elements, want %d", in, len(dest.List()), want)
		}
		holds(t, dest, dest.List()[0], m)
		fresh := mustOpen(t, base+"/backup/checkpoint", Options{ReadOnly: true, StoreID: storeID})
		holds(t, fresh, fresh.List()[0], m)
		if _, err := os.Stat(base + "/backup/checkpoint.tmp"); !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	copied(1)
	first := dest.List()[0].Bytes
	copied(1) // Nothing is missing.
	m = mustWrite(t, src, m, 2, 1, 64<<10, 10)
	m = mustWrite(t, src, m, 3, 1, 64<<10, 10)
	table := dest.mu.elements[0].tables[0].Path
	copied(3)
	if dest.mu.elements[0].tables[0].Path != table {
		t.Error("an incremental copy wrote the full element again")
	}
	src.RequireFull()
	m = mustWrite(t, src, m, 4, 40, 64<<10, 3000)
	copied(1) // Another generation replaces it all.
	if got := dest.List()[0].Bytes; got > first*3/2 {
		t.Errorf("%d bytes, the first copy had %d", got, first)
	}
	other := mustOpen(t, "db/checkpoint", Options{FS: inMemory().FS})
	n := model{}
	n.header.Timeline[0] = 7
	_ = mustWrite(t, other, n, 1, 1, 100, 10)
	if _, err := other.CopyTo(t.Context(), dest, 0); err != nil {
		t.Fatalf("another timeline of the same store: %v", err)
	}
	if len(dest.List()) != 1 || dest.List()[0].Epoch != 10 {
		t.Fatalf("%+v", dest.List())
	}
	alien := mustOpen(t, "x/checkpoint", Options{FS: inMemory().FS})
	w, err := alien.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context(), Header{StoreID: [16]byte{66}}); err != nil {
		t.Fatal(err)
	}
	if _, err := alien.CopyTo(t.Context(), dest, 0); !errors.Is(err, errs.ErrFormat) {
		t.Fatalf("another store: %v", err)
	}
	holds(t, dest, dest.List()[0], mustReadModel(t, other))
}

func mustReadModel(t *testing.T, s *Store) model {
	t.Helper()
	m, err := read(t.Context(), s, s.List()[0])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCopyStops: a copy keeps to its rate, ends with its context, and leaves
// nothing; damage of the source is not copied.
func TestCopyStops(t *testing.T) {
	base := t.TempDir()
	src := mustOpen(t, base+"/checkpoint", Options{})
	mustWrite(t, src, model{}, 1, 40, 64<<10, 100)
	dest := mustOpen(t, base+"/backup/checkpoint", Options{})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 150*time.Millisecond, fmt.Errorf("enough: %w", context.Canceled))
	defer cancel()
	// At 1 MiB/s it would take more than a second.
	if _, err := src.CopyTo(ctx, dest, 1<<20); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(dest.List()) != 0 {
		t.Fatalf("%+v", dest.List())
	}
	if _, err := os.Stat(base + "/backup/checkpoint.tmp"); !os.IsNotExist(err) {
		t.Fatal(err)
	}
	path := src.mu.elements[0].tables[0].Path
	p := mustRead(t, path)
	p[len(p)/2] ^= 4
	mustWriteFile(t, path, p)
	if _, err := src.CopyTo(t.Context(), dest, 0); !errors.Is(err, errs.ErrCorrupt) {
		t.Fatal(err)
	}
	if len(dest.List()) != 0 {
		t.Fatalf("%+v", dest.List())
	}
}

// TestCopyDuringCommits: each copy is one checkpoint, whole, whatever commits
// do meanwhile.
func TestCopyDuringCommits(t *testing.T) {
	o := inMemory()
	src := mustOpen(t, "db/checkpoint", o)
	m := mustWrite(t, src, model{}, 1, 2, 2000, 10)
	var mu sync.Mutex
	written := map[uint64]model{1: m}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		dest := mustOpen(t, "backup/checkpoint", o)
		copies := 0
		for !stop.Load() {
			in, err := src.CopyTo(t.Context(), dest, 0)
			if err != nil {
				if errors.Is(err, errs.ErrCorrupt) {
					t.Errorf("copy: %v", err)
				}
				continue // It was dropped before it was opened.
			}
			got, err := read(t.Context(), dest, dest.List()[0])
			mu.Lock()
			want, ok := written[in.Sequence]
			mu.Unlock()
			if err != nil || ok && differ(got, want) != "" {
				t.Errorf("copy %d: %v, %s", in.Sequence, err, differ(got, want))
			}
			copies++
		}
		t.Logf("%d copies", copies)
	})
	for i := range 60 {
		if i%5 == 0 {
			src.RequireFull()
		}
		m = mustWrite(t, src, m, uint64(i), 2, 2000, 10)
		mu.Lock()
		written[m.header.Sequence] = m
		mu.Unlock()
	}
	stop.Store(true)
	wg.Wait()
}

// TestForm: terms are found one by one, in any element, beside commits that
// drop generations, with Pebble open or not.
func TestForm(t *testing.T) {
	for _, o := range []Options{{KeepOpen: true}, {}} {
		dir := t.TempDir() + "/checkpoint"
		s := mustOpen(t, dir, o)
		if _, err := s.Form(1, nil); !errors.Is(err, ErrNoTerm) {
			t.Fatal(err)
		}
		var ids []uint64
		var forms [][]byte
		var last uint64
		commit := func(seed uint64, full bool) {
			t.Helper()
			if full {
				s.RequireFull()
			}
			w, err := s.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, newIDs, newForms := content(seed, 0, 0, 500, last)
			last = newIDs[len(newIDs)-1]
			put := func(ids []uint64, forms [][]byte) {
				for i := range ids {
					if err := w.Term(ids[i], forms[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
			if w.Full() {
				put(ids, forms)
			}
			put(newIDs, newForms)
			if err := w.Commit(t.Context(), Header{LastTerm: last}); err != nil {
				t.Fatal(err)
			}
			ids, forms = append(ids, newIDs...), append(forms, newForms...)
		}
		for i := range uint64(5) {
			commit(i, false)
		}
		have := map[uint64]string{}
		for i, id := range ids {
			have[id] = string(forms[i])
		}
		// Those of the first five checkpoints stay findable to the end.
		limit, step := last, uint64(1)
		if !o.KeepOpen {
			step = 97
		}
		var stop atomic.Bool
		var wg sync.WaitGroup
		if o.KeepOpen {
			for range 2 {
				wg.Go(func() {
					for !stop.Load() {
						checkForms(t, s, have, limit, step)
					}
				})
			}
		}
		for i := range uint64(8) {
			commit(100+i, i%2 == 0)
		}
		stop.Store(true)
		wg.Wait()
		checkForms(t, s, have, limit, step)
		if _, err := s.Form(last+1, nil); !errors.Is(err, ErrNoTerm) {
			t.Fatal(err)
		}
	}
}

// checkForms looks up every id below limit.
func checkForms(t *testing.T, s *Store, have map[uint64]string, limit, step uint64) {
	for id := uint64(0); id <= limit; id += step {
		got, err := s.Form(id, []byte("x"))
		want, ok := have[id]
		switch {
		case !ok && !errors.Is(err, ErrNoTerm):
			t.Errorf("term %d: %q, %v", id, got, err)
		case ok && (err != nil || string(got) != "x"+want):
			t.Errorf("term %d: %q, %v; want %q", id, got, err, want)
			return
		}
	}
}

// listingFS calls before ahead of each listing of a directory.
type listingFS struct {
	vfs.FS
	before func()
}

func (f *listingFS) List(dir string) ([]string, error) {
	f.before()
	return f.FS.List(dir)
}

// TestCopyDropped has the checkpoint that is going to be copied dropped, once and twice,
// before its files are held.
func TestCopyDropped(t *testing.T) {
	for times := 1; times <= 2; times++ {
		fsys := &listingFS{FS: vfs.NewMem(), before: func() {}}
		src := mustOpen(t, "a/checkpoint", Options{FS: fsys, StoreID: storeID})
		dest := mustOpen(t, "b/checkpoint", Options{FS: fsys})
		m := mustWrite(t, src, model{}, 1, 40, 64<<10, 3000)
		left := times
		hook := func() {}
		hook = func() {
			if fsys.before = func() {}; left == 0 {
				return
			}
			left--
			first := src.List()[0]
			for seed := uint64(2); seed < 4; seed++ {
				src.RequireFull()
				m = mustWrite(t, src, m, seed, 40, 64<<10, 100)
			}
			for _, in := range src.List() {
				if in.Sequence == first.Sequence {
					t.Fatal("the first is still there")
				}
			}
			fsys.before = hook
		}
		fsys.before = hook
		in, err := src.CopyTo(t.Context(), dest, 0)
		if err != nil {
			t.Fatal(err)
		}
		if left != 0 || in.Epoch != m.header.Epoch {
			t.Errorf("%+v, want epoch %d; %d left", in, m.header.Epoch, left)
		}
		holds(t, dest, dest.List()[0], m)
	}
}
