package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/internal/errs"
)

// TestPlan: when a full element is written, which two checkpoints are kept,
// and what goes when.
func TestPlan(t *testing.T) {
	// tables gives elements of given sizes in KiB, a generation for each list.
	tables := func(sizes ...[]int64) (list []element) {
		for g, gen := range sizes {
			for i, n := range gen {
				list = append(list, element{place: place{uint64(g + 1), uint32(i)}, bytes: n << 10, sequence: uint64(len(list) + 1)})
			}
		}
		return list
	}
	hurt := func(list []element, i int) []element {
		list[i].damage = errs.ErrCorrupt
		return list
	}
	span := func(first, end place) string { return fmt.Sprintf("%x-%x", first.prefix(nil), end.prefix(nil)) }
	many := make([]int64, elementsMax)
	for _, c := range []struct {
		name  string
		list  []element
		fresh bool
		at    place
		drop  string
		hold  uint64
	}{
		{"none", nil, false, place{1, 0}, "", 0},
		{"after the first", tables([]int64{8000}), false, place{1, 1}, "", 0},
		{"small increments", tables([]int64{8000, 1000, 1000}), false, place{1, 3}, "", 0},
		{"another like the last fills half", tables([]int64{8000, 2000, 1000}), false, place{1, 3}, "", 0},
		{"another like the last exceeds half", tables([]int64{8000, 2000, 1001}), false, place{2, 0}, "", 0},
		{"small store", tables([]int64{10, 10, 500, 10}), false, place{1, 4}, "", 0},
		{"small store, a MiB of increments", tables([]int64{10, 10, 600, 300}), false, place{2, 0}, "", 0},
		{"asked for", tables([]int64{8000, 10}), true, place{2, 0}, "", 0},
		{"long chain", tables(many), false, place{2, 0}, "", 0},
		{"second of a generation drops the one before", tables([]int64{80, 9}, []int64{70}), false, place{2, 1}, span(place{0, 0}, place{2, 0}), 0},
		{"full after full keeps one of them", tables([]int64{80}, []int64{70}), true, place{3, 0}, span(place{0, 0}, place{2, 0}), 0},
		{"newest damaged", hurt(tables([]int64{80, 9, 9}), 2), false, place{2, 0}, span(place{1, 2}, place{2, 1}), 0},
		{"middle damaged", hurt(tables([]int64{80, 9, 9}), 1), false, place{2, 0}, span(place{1, 1}, place{2, 1}), 0},
		{"all damaged", hurt(tables([]int64{80, 9, 9}), 0), false, place{2, 0}, span(place{1, 0}, place{2, 1}), 0},
		{"a generation damaged", hurt(tables([]int64{80, 9}, []int64{80}), 2), false, place{3, 0}, span(place{2, 0}, place{3, 1}), 0},
		{"the generation before is held", tables([]int64{80, 9}, []int64{70}), false, place{2, 1}, "", 1},
		{"what lies before the held one goes", tables([]int64{80}, []int64{80}, []int64{70}), false, place{3, 1}, span(place{0, 0}, place{2, 0}), 2},
		{"what lies behind the held one goes", tables([]int64{80, 9}, []int64{80, 9}, []int64{70}), false, place{3, 1}, span(place{2, 0}, place{3, 0}), 1},
		{"the newest is held", tables([]int64{80}, []int64{80}, []int64{70}), false, place{3, 1}, span(place{0, 0}, place{3, 0}), 3},
		{"the held one is gone", tables([]int64{80}, []int64{80}, []int64{70}), false, place{3, 1}, span(place{0, 0}, place{3, 0}), 7},
	} {
		var w Writer
		w.plan(c.list, c.fresh)
		if w.at != c.at || w.full != (c.at.el == 0) {
			t.Errorf("%s: %v, full %v, want %v", c.name, w.at, w.full, c.at)
		}
		drop := ""
		if s := plannedExcise(c.list, w.at, c.hold); s != nil {
			drop = fmt.Sprintf("%x-%x", s.First, s.End)
		}
		if drop != c.drop {
			t.Errorf("%s: drops %s, want %s", c.name, drop, c.drop)
		}
	}
}

// usage gives the bytes and files below dir.
func usage(t *testing.T, dir string) (bytes int64, files int) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // Pebble removes files on a goroutine of its own.
		}
		if err == nil && !info.IsDir() {
			bytes += info.Size()
			files++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, files
}

// descriptors gives the number of open files of the process, or -1.
func descriptors() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(names)
}

// TestChurn: 200 checkpoints with constant churn use bounded disk, files,
// descriptors and goroutines.
func TestChurn(t *testing.T) {
	for _, keep := range []bool{false, true} {
		base := t.TempDir()
		o := Options{StoreID: storeID, KeepOpen: keep}
		s := mustOpen(t, base+"/checkpoint", o)
		var m model
		var full, peak int64
		var files, fds, goroutines int
		for i := range 200 {
			n := 2
			if w, err := s.Begin(t.Context()); err != nil {
				t.Fatal(err)
			} else if w.Abort(); w.Full() {
				n = 40
			}
			m = mustWrite(t, s, m, uint64(i), n, 64<<10, 20)
			m.facts, m.terms = nil, nil // Not compared here.
			bytes, count := usage(t, base)
			if n == 40 {
				full = max(full, s.List()[0].Bytes)
			}
			peak, files = max(peak, bytes), max(files, count)
			if i == 20 {
				fds, goroutines = descriptors(), runtime.NumGoroutine()
			}
		}
		st := s.Stats()
		t.Logf("keep=%v: full %d KiB, peak %.2f times that, %d files at most; %+v", keep, full>>10, float64(peak)/float64(full), files, st)
		if st.Full < 8 || st.Full+st.Incremental != 200 || float64(peak) > 3*float64(full) || files > 80 {
			t.Errorf("not bounded: %+v", st)
		}
		if got := descriptors(); got > fds+10 {
			t.Errorf("%d descriptors after 20, %d after 200", fds, got)
		}
		if got := runtime.NumGoroutine(); got > goroutines+2 {
			t.Errorf("%d goroutines after 20, %d after 200", goroutines, got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if bytes, _ := usage(t, base); bytes > st.Bytes+64<<10 {
			t.Errorf("%d bytes on disk, %d of them known", bytes, st.Bytes)
		}
	}
}

// TestNothingLeft: after Close no goroutine and no descriptor is left.
func TestNothingLeft(t *testing.T) {
	dir := t.TempDir() + "/checkpoint"
	round := func() {
		for _, o := range []Options{{KeepOpen: true}, {}, {Linger: time.Hour}, {ReadOnly: true, KeepOpen: true}} {
			s, err := Open(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if !o.ReadOnly {
				mustWrite(t, s, model{header: Header{LastTerm: uint64(len(s.List()) * 1000)}}, 1, 2, 2000, 30)
			}
			if _, err := read(t.Context(), s, s.List()[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Form(5000000, nil); !errors.Is(err, ErrNoTerm) {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); !errors.Is(err, errs.ErrClosed) {
				t.Fatal(err)
			}
			if _, err := s.Begin(t.Context()); !errors.Is(err, errs.ErrClosed) && !o.ReadOnly {
				t.Fatal(err)
			}
		}
	}
	round()
	fds, goroutines := descriptors(), runtime.NumGoroutine()
	for range 5 {
		round()
	}
	for range 100 {
		if runtime.NumGoroutine() <= goroutines && descriptors() <= fds {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d goroutines and %d descriptors, were %d and %d", runtime.NumGoroutine(), descriptors(), goroutines, fds)
}

// TestReaderBesideWriter: a reader that has loaded goes on while the writer
// drops the files; so does one in another store object on the same directory.
func TestReaderBesideWriter(t *testing.T) {
	dir := t.TempDir() + "/checkpoint"
	s := mustOpen(t, dir, Options{KeepOpen: true})
	m := mustWrite(t, s, model{}, 1, 30, 64<<10, 3000)
	other := mustOpen(t, dir, Options{ReadOnly: true})
	first := other.List()[0]
	r, err := other.Load(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	n := m
	for i := range 6 {
		s.RequireFull()
		n = mustWrite(t, s, n, uint64(10+i), 3, 64<<10, 30)
	}
	var got model
	got.header = r.Header()
	if err := r.Facts(t.Context(), func(p []byte) error { got.facts = append(got.facts, append([]byte(nil), p...)); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.Terms(t.Context(), func(id uint64, form []byte) error {
		got.terms = append(got.terms, fmt.Sprintf("%d %s", id, form))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if d := differ(got, m); d != "" {
		t.Fatal(d)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Load(t.Context(), first); err == nil || errors.Is(err, errs.ErrCorrupt) {
		t.Fatalf("a checkpoint that was dropped: %v", err)
	}
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, other, other.List()[0], n)
}

// TestReadersDuringCommits: loads by a second store object while commits drop
// generations as fast as they can never see a wrong state.
func TestReadersDuringCommits(t *testing.T) {
	dir := t.TempDir() + "/checkpoint"
	s := mustOpen(t, dir, Options{KeepOpen: true})
	m := mustWrite(t, s, model{}, 1, 2, 2000, 10)
	var stop atomic.Bool
	var wg sync.WaitGroup
	loads, gone := 0, 0
	wg.Go(func() {
		for !stop.Load() {
			o, err := Open(t.Context(), dir, Options{ReadOnly: true})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			r, err := o.Load(t.Context(), o.List()[0])
			switch {
			case err == nil:
				loads++
				if err := errors.Join(r.Facts(t.Context(), func([]byte) error { return nil }), r.Close()); err != nil {
					t.Errorf("read: %v", err)
				}
			case errors.Is(err, errs.ErrCorrupt):
				t.Errorf("load: %v", err)
			default:
				gone++
			}
			_ = o.Close()
		}
	})
	for i := range 60 {
		if i%2 == 0 {
			s.RequireFull()
		}
		m = mustWrite(t, s, m, uint64(i), 2, 2000, 10)
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d loads, %d came too late", loads, gone)
	if loads == 0 {
		t.Error("nothing was loaded")
	}
}

// TestReadOnlyTouchesNothing: a store without permission to write opens, and
// no file is made, changed or removed.
func TestReadOnlyTouchesNothing(t *testing.T) {
	base := t.TempDir()
	dir := base + "/checkpoint"
	s := mustOpen(t, dir, Options{})
	m := mustWrite(t, s, model{}, 1, 3, 2000, 40)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustWriteFile(t, dir+"/000999.sst", []byte("left by a crash"))
	before := fingerprint(t, base)
	for _, d := range []string{dir, base} {
		if err := os.Chmod(d, 0o555); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(d, 0o755) }()
	}
	for _, keep := range []bool{false, true} {
		o := mustOpen(t, dir, Options{ReadOnly: true, KeepOpen: keep, FS: noWrites{vfs.Default, t}})
		holds(t, o, o.List()[0], m)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := fingerprint(t, base); after != before {
		t.Fatalf("before %s\nafter %s", before, after)
	}
	missing := mustOpen(t, base+"/none/checkpoint", Options{ReadOnly: true})
	if len(missing.List()) != 0 {
		t.Fatal("found something")
	}
	if _, err := os.Stat(base + "/none"); !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// noWrites fails the test on changes, for testers who may write anywhere.
type noWrites struct {
	vfs.FS
	t *testing.T
}

func (n noWrites) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	n.t.Errorf("create %s", name)
	return n.FS.Create(name, c)
}
func (n noWrites) Remove(name string) error { n.t.Errorf("remove %s", name); return n.FS.Remove(name) }
func (n noWrites) RemoveAll(name string) error {
	n.t.Errorf("remove %s", name)
	return n.FS.RemoveAll(name)
}
func (n noWrites) Rename(a, b string) error { n.t.Errorf("rename %s", a); return n.FS.Rename(a, b) }
func (n noWrites) MkdirAll(d string, p os.FileMode) error {
	n.t.Errorf("mkdir %s", d)
	return n.FS.MkdirAll(d, p)
}

// fingerprint tells every name, size and time below dir.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintf(&b, "%s %d %v\n", p, info.Size(), info.ModTime())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSpace: too little space is ENOSPC before anything is written, and when
// it runs out while writing; afterwards the chain is as it was.
func TestSpace(t *testing.T) {
	mem := vfs.NewMem()
	s := mustOpen(t, "db/checkpoint", Options{FS: mem, StoreID: storeID})
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30})
	m := mustWrite(t, s, model{}, 1, 3, 2000, 40)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: reserveDefault + 100})
	s.RequireFull()
	if _, err := s.Begin(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if names, _ := mem.List("db"); len(names) != 1 {
		t.Fatal(names)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30})
	w, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 20})
	facts, _, _ := content(5, 30, 1<<20, 0, 0)
	for _, f := range facts {
		if err == nil {
			err = w.Facts(f)
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if again := w.Commit(t.Context(), m.header); !errors.Is(again, syscall.ENOSPC) {
		t.Fatal(again)
	}
	if names, _ := mem.List("db"); len(names) != 1 {
		t.Fatal(names)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30})
	holds(t, s, s.List()[0], m)
	m = mustWrite(t, s, m, 2, 3, 2000, 40)
	if st := s.Stats(); st.Full != 2 || st.Failed != 2 {
		t.Fatalf("%+v", st)
	}
}

// TestMisuse: what a caller may get wrong is an error, and leaves nothing.
func TestMisuse(t *testing.T) {
	s := mustOpen(t, "db/checkpoint", inMemory())
	m := mustWrite(t, s, model{}, 1, 1, 100, 10)
	for name, f := range map[string]func(w *Writer) error{
		"terms not ascending": func(w *Writer) error { _ = w.Term(m.header.LastTerm+1, nil); return w.Term(m.header.LastTerm+1, nil) },
		"term of before":      func(w *Writer) error { return w.Term(m.header.LastTerm, nil) },
		"empty chunk":         func(w *Writer) error { return w.Facts(nil) },
		"LastTerm too low": func(w *Writer) error {
			_ = w.Term(m.header.LastTerm+9, nil)
			return w.Commit(context.Background(), m.header)
		},
		"another store":   func(w *Writer) error { return w.Commit(context.Background(), Header{LastTerm: 1 << 40}) },
		"use after abort": func(w *Writer) error { w.Abort(); return w.Facts([]byte{1}) },
	} {
		w, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Begin(t.Context()); err == nil {
			t.Fatal("two writers")
		}
		if err := f(w); err == nil {
			t.Errorf("%s: no error", name)
		}
		w.Abort()
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := w.Facts([]byte{1}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	m = mustWrite(t, s, m, 2, 1, 100, 10)
	holds(t, s, s.List()[0], m)
}

// TestForeign: directories that are not ours are refused and left alone.
func TestForeign(t *testing.T) {
	base := t.TempDir()
	dir := base + "/checkpoint"
	s := mustOpen(t, dir, Options{StoreID: storeID})
	mustWrite(t, s, model{}, 1, 1, 100, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open := func(dir string, o Options) error {
		s, err := Open(t.Context(), dir, o)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := open(dir, Options{StoreID: [16]byte{9}}); !errors.Is(err, errs.ErrFormat) {
		t.Errorf("another store: %v", err)
	}
	if err := os.MkdirAll(base+"/foreign", 0o755); err != nil {
		t.Fatal(err)
	}
	mustWriteFile(t, base+"/foreign/holiday.jpg", nil)
	if err := open(base+"/foreign", Options{}); !errors.Is(err, errs.ErrFormat) {
		t.Errorf("foreign files: %v", err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), "marker.format-version") {
			if err := os.Rename(dir+"/"+n.Name(), dir+"/marker.format-version.000099.099"); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := fingerprint(t, base)
	if err := open(dir, Options{}); !errors.Is(err, errs.ErrFormat) {
		t.Errorf("a later version: %v", err)
	}
	if fingerprint(t, base) != before {
		t.Error("a store of a later version was touched")
	}
	markers, err := filepath.Glob(dir + "/marker.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range markers {
		mustRemove(t, m)
	}
	if err := open(dir, Options{}); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("no marker: %v", err)
	}
}
