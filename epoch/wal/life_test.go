package wal

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// TestRelaxedMarker: a store that acknowledged entries before they were durable,
// and was not closed, opens on a new timeline; one that was closed does not.
func TestRelaxedMarker(t *testing.T) {
	for _, mode := range []Mode{SyncInterval, SyncNone} {
		dir := fastDir(t)
		l, rep := mustOpen(t, dir, Options{Mode: mode})
		id := l.Identity()
		begun := load(t, dir)
		if !rep.Created || rep.NewTimeline || begun[relaxedName] == nil {
			t.Fatalf("mode %d: %+v, marker %q", mode, rep, begun[relaxedName])
		}
		write(t, l, 3)
		killed := load(t, dir)
		mustClose(t, l)
		if load(t, dir)[relaxedName] != nil {
			t.Errorf("mode %d: the marker outlived a clean Close", mode)
		}
		for _, next := range []Mode{SyncEpoch, SyncInterval, SyncNone} {
			l, rep := mustOpen(t, dir, Options{Mode: next})
			if rep.NewTimeline || l.Identity() != id || (load(t, dir)[relaxedName] != nil) != (next != SyncEpoch) {
				t.Errorf("mode %d after a clean Close of %d: %+v", next, mode, rep)
			}
			mustClose(t, l)
			// begun is what a crash of the machine may have left: 3 were seen.
			for _, crash := range []files{killed, begun, begun.with(relaxedName, []byte{})} {
				copied := crash.store(t, filepath.Join(dir, "copy"))
				ro, rep := mustOpen(t, copied, Options{ReadOnly: true, Mode: next})
				if rep.NewTimeline || ro.Identity() != id {
					t.Errorf("read-only: %+v, identity %+v", rep, ro.Identity())
				}
				mustClose(t, ro)
				if load(t, copied).sum() != crash.sum() {
					t.Error("a read-only open changed a file")
				}
				l, rep := mustOpen(t, copied, Options{Mode: next})
				now := l.Identity()
				if !rep.NewTimeline || now.Timeline == id.Timeline || now.Log != id.Log || now.Store != id.Store {
					t.Errorf("mode %d, killed, then %d: %+v, identity %+v, was %+v", mode, next, rep, now, id)
				}
				if read, err := ReadIdentity(copied); err != nil || read != now {
					t.Errorf("the file says %+v, %v", read, err)
				}
				check(t, l, 1, rep.LastIndex)
				write(t, l, 1)
				mustClose(t, l)
				l, rep = mustOpen(t, copied, Options{})
				if rep.NewTimeline || l.Identity() != now {
					t.Errorf("closed and opened: %+v", rep)
				}
				mustClose(t, l)
				if err := os.RemoveAll(copied); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{})
	write(t, l, 3)
	if load(t, dir)[relaxedName] != nil {
		t.Error("a durable log is marked")
	}
	mustClose(t, l)
}

// TestRelaxedMarkerStays where the last sync fails.
func TestRelaxedMarkerStays(t *testing.T) {
	dir := fastDir(t)
	d, w := wrap(dir)
	d.fail = func(op string, _ int) bool { return op == "sync" }
	l, _ := mustOpen(t, dir, Options{Mode: SyncNone, Wrap: w})
	id := l.Identity()
	write(t, l, 1)
	if err := l.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close: %v, want the failure", err)
	}
	l, rep := mustOpen(t, dir, Options{})
	if !rep.NewTimeline || l.Identity().Timeline == id.Timeline {
		t.Errorf("%+v: want a new timeline", rep)
	}
	mustClose(t, l)
}

// TestRelaxedCrash crashes at each step of opening a store that was killed, of
// opening one that was not, and of closing.
func TestRelaxedCrash(t *testing.T) {
	dir := filepath.Join(fastDir(t), "db")
	l, _ := mustOpen(t, dir, Options{Mode: SyncNone})
	id := l.Identity()
	write(t, l, 3)
	killed := load(t, dir)
	mustClose(t, l)
	closed := load(t, dir)
	for _, mode := range []Mode{SyncEpoch, SyncInterval, SyncNone} {
		o := Options{Mode: mode}
		steps := openUntil(t, o, func() string { return killed.store(t, dir) }, func(dir string) {
			l, _ := mustOpen(t, dir, Options{})
			check(t, l, 1, 3)
			if now := l.Identity(); now.Timeline == id.Timeline || now.Log != id.Log {
				t.Fatalf("mode %d: identity %+v, was %+v", mode, now, id)
			}
			mustClose(t, l)
		})
		t.Logf("mode %d, steps after a kill: %q", mode, steps)
		want := "write the marker" // also where it is: it may not be durable yet
		if mode == SyncEpoch {
			want = "remove the marker"
		}
		if !slices.Contains(steps, want) || slices.Index(steps, want) < slices.Index(steps, "write the note") {
			t.Errorf("mode %d: %q, want %q at the end", mode, steps, want)
		}
		steps = openUntil(t, o, func() string { return closed.store(t, dir) }, func(dir string) { reopen(t, dir, 3) })
		t.Logf("mode %d, steps after a Close: %q", mode, steps)
		if marks := strings.Contains(strings.Join(steps, " "), "marker"); marks != (mode != SyncEpoch) {
			t.Errorf("mode %d: steps %q", mode, steps)
		}
	}
	for n := 0; ; n++ {
		l, _ := mustOpen(t, closed.store(t, dir), Options{Mode: SyncNone})
		write(t, l, 1)
		l.step, _ = crashAt(n)
		err := l.Close()
		left := load(t, dir)[relaxedName] != nil
		if err != nil && !errors.Is(err, errCrash) || left && err == nil {
			t.Fatalf("step %d of Close: %v, marker left %v", n, err, left)
		}
		l, rep := mustOpen(t, dir, Options{LockWait: -1})
		check(t, l, 1, 4)
		if rep.NewTimeline != left {
			t.Errorf("step %d of Close: marker left %v, %+v", n, left, rep)
		}
		mustClose(t, l)
		if err == nil {
			break
		}
	}
}

// TestCreate: a created store goes on behind the entry it was made at.
func TestCreate(t *testing.T) {
	for _, last := range []uint64{0, 1, 5000} {
		dir := fastDir(t)
		id := newIdentity()
		if err := Create(dir, id, last); err != nil {
			t.Fatal(err)
		}
		o := Options{Cover: covers(last)}
		ro, rep := mustOpen(t, dir, Options{Cover: o.Cover, ReadOnly: true})
		if rep != (Report{Covered: last, FirstIndex: last + 1, LastIndex: last, Acked: last}) || ro.Identity() != id {
			t.Errorf("%+v, identity %+v, want %+v", rep, ro.Identity(), id)
		}
		mustClose(t, ro)
		if last > 0 {
			refused(t, dir, Options{})
			refused(t, dir, Options{Cover: covers(last - 1)})
		}
		for n := range uint64(3) {
			l, rep := mustOpen(t, dir, o)
			if rep.LastIndex != last+n || rep.NewTimeline || rep.NoteMissing || l.Identity() != id {
				t.Fatalf("%+v, want entries to %d", rep, last+n)
			}
			check(t, l, last+1, last+n)
			write(t, l, 1)
			mustClose(t, l)
		}
	}
}

// TestCreateCrash crashes at each step: there is no store, or all of it.
func TestCreateCrash(t *testing.T) {
	id := newIdentity()
	for n := 0; ; n++ {
		dir := fastDir(t)
		step, at := crashAt(n)
		err := create(dir, id, 7, step)
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		made := load(t, dir)
		switch {
		case made[storeName] != nil:
			l, _ := mustOpen(t, dir, Options{Cover: covers(7)})
			write(t, l, 1)
			check(t, l, 8, 8)
			mustClose(t, l)
		case n > 0:
			openFails(t, dir, Options{Cover: covers(7)}, errs.ErrFormat)
			openFails(t, dir, Options{Cover: covers(7), ReadOnly: true}, errs.ErrFormat)
			if err := Create(dir, id, 7); !errors.Is(err, errs.ErrFormat) {
				t.Errorf("crash before %q, then again: %v, want ErrFormat", *at, err)
			}
			if after := load(t, dir).with(lockName, nil); after.sum() != made.sum() {
				t.Errorf("crash before %q: a refusal changed a file", *at)
			}
		}
		if err == nil {
			t.Logf("%d steps", n)
			break
		}
	}
}

// TestCreateRefusals: only an empty directory becomes a store.
func TestCreateRefusals(t *testing.T) {
	root := fastDir(t)
	id := newIdentity()
	file, full, empty := filepath.Join(root, "file"), filepath.Join(root, "full"), filepath.Join(root, "empty")
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Mkdir(empty, 0o755), os.MkdirAll(filepath.Join(full, "x"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir  string
		id   Identity
		last uint64
		want error
	}{
		"missing":       {filepath.Join(root, "none"), id, 1, fs.ErrNotExist},
		"file":          {file, id, 1, errs.ErrFormat},
		"not empty":     {full, id, 1, errs.ErrFormat},
		"no store id":   {empty, Identity{Log: id.Log, Timeline: id.Timeline}, 1, errs.ErrValue},
		"no log id":     {empty, Identity{Store: id.Store, Timeline: id.Timeline}, 1, errs.ErrValue},
		"no timeline":   {empty, Identity{Store: id.Store, Log: id.Log}, 1, errs.ErrValue},
		"no next entry": {empty, id, 1<<64 - 1, errs.ErrValue},
	} {
		if err := Create(tc.dir, tc.id, tc.last); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	if names, err := os.ReadDir(empty); err != nil || len(names) > 0 {
		t.Errorf("a refused Create made %v, %v", names, err)
	}
}

// TestBackup: a backup is read, also when later checkpoints were put into it,
// and never written to, not even its lock.
func TestBackup(t *testing.T) {
	dir := fastDir(t)
	id := newIdentity()
	id.Backup = true
	if err := Create(dir, id, 5); err != nil {
		t.Fatal(err)
	}
	sum := load(t, dir).sum()
	err := openFails(t, dir, Options{Cover: covers(5)}, errs.ErrReadOnly)
	if !strings.Contains(err.Error(), "backup") {
		t.Errorf("%v: does not say why", err)
	}
	for _, covered := range []uint64{5, 9} {
		l, rep := mustOpen(t, dir, Options{Cover: covers(covered), ReadOnly: true})
		if rep.Renewed || rep.LastIndex != covered || l.Identity() != id {
			t.Errorf("%+v, identity %+v", rep, l.Identity())
		}
		mustClose(t, l)
	}
	if load(t, dir).sum() != sum {
		t.Error("a file was made or changed")
	}
	fork := id.Fork()
	if fork.Store != id.Store || fork.Log == id.Log || fork.Timeline == id.Timeline || fork.Backup {
		t.Errorf("fork of %+v is %+v", id, fork)
	}
}

// TestREC11TwoLives: the log of the life before a restore is as foreign as that
// of another store.
func TestREC11TwoLives(t *testing.T) {
	root := fastDir(t)
	first, second := filepath.Join(root, "first"), filepath.Join(root, "second")
	l, _ := mustOpen(t, first, Options{})
	write(t, l, 8)
	mustClose(t, l)
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Create(second, l.Identity().Fork(), 5); err != nil {
		t.Fatal(err)
	}
	l, _ = mustOpen(t, second, Options{Cover: covers(5)})
	write(t, l, 3)
	mustClose(t, l)
	a, b := load(t, first), load(t, second)
	seg := b.segments()[0]
	tail := a[a.segments()[0]][entryOffset(1, 6):]
	dir := filepath.Join(root, "mixed")
	for name, f := range map[string]files{
		"entries":    b.with(seg, tail),
		"last entry": b.with(seg, append(bytes.Clone(b[seg][:entryOffset(6, 8)]), tail[entryOffset(6, 8):]...)),
		"note":       b.with(noteName, a[noteName]),
		"identity":   b.with(storeName, a[storeName]),
	} {
		err := openFails(t, f.store(t, dir), Options{Cover: covers(5)}, errs.ErrFormat)
		if fe, ok := errors.AsType[*ForeignError](err); !ok || fe.Want == fe.Got {
			t.Errorf("%s: %v, want a ForeignError", name, err)
		}
	}
}

// TestRefusedUntouched: a store of a later version or with an unknown flag is
// not even locked.
func TestRefusedUntouched(t *testing.T) {
	before, _ := seed(t, 2, Options{})
	before = before.with(lockName, nil)
	dir := filepath.Join(fastDir(t), "db")
	for at, name := range map[int]string{8: "version", 12: "flag", 15: "high flag"} {
		b := bytes.Clone(before[storeName])
		b[at] |= 0x80
		f := before.with(storeName, resum(b))
		for _, ro := range []bool{false, true} {
			openFails(t, f.store(t, dir), Options{ReadOnly: ro}, errs.ErrFormat)
			if load(t, dir).sum() != f.sum() {
				t.Errorf("%s: a file was made or changed", name)
			}
		}
	}
}
