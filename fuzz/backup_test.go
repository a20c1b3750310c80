package fuzz

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs"
)

// steps is an input of single events of which each is an epoch, so that epoch,
// offset and content of a store tell each other: after epoch e the offset is e,
// and the content that of the first e events.
type steps struct {
	*testing.T
	ref  *world // follows, never goes back
	next uint64
	pad  int // length of the IDs of events that are taken back, so that the log grows
}

// stepEvent is event n: every third takes back the one two before it.
func stepEvent(n uint64) triegs.Event {
	if n%3 == 2 {
		e := stepEvent(n - 2)
		e.Op = triegs.Delete
		return e
	}
	return triegs.Edge("R", triegs.String(fmt.Sprintf("a node with the number %d", n)), triegs.Int(int64(n%17)))
}

func stepBatch(n uint64, count int) triegs.Batch {
	b := triegs.Batch{Source: "s", Offset: n, Time: time.Unix(int64(n), 0)}
	for i := range count {
		b.Events = append(b.Events, stepEvent(n+uint64(i)))
	}
	return b
}

// is checks that a store holds exactly the first so many events.
func (s *steps) is(what string, db *triegs.DB) (at uint64) {
	s.Helper()
	at, _ = db.Offset("s")
	if e := db.Metrics().Epoch; uint64(e) != at {
		s.Fatalf("%s: epoch %d with offset %d", what, e, at)
	}
	if at < s.next {
		s.Fatalf("%s: offset %d, the reference is at %d already", what, at, s.next)
	}
	if at > s.next {
		s.ref.append(stepBatch(s.next, int(at-s.next)))
		s.next = at
	}
	if got, want := digestOf(s.T, db), digestOf(s.T, s.ref.db); got != want {
		s.Fatalf("%s: digest %v at offset %d, want %v", what, got, at, want)
	}
	if err := db.Verify(context.Background()); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
	return at
}

// writer appends the steps until it is told to stop.
func (s *steps) writer(db *triegs.DB, pause time.Duration) (stop func()) {
	done := make(chan struct{})
	var w sync.WaitGroup
	w.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(pause):
			}
			at, _ := db.Offset("s")
			b := stepBatch(at, 1)
			if s.pad > 0 && at%3 == 0 {
				b.Events[0].ID = fmt.Sprint(at, strings.Repeat("-", s.pad))
			}
			if _, err := db.Append(context.Background(), b); err != nil {
				s.Errorf("append at %d: %v", at, err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); w.Wait() })
}

// Backups of a store that is written a thousand times a second are each of
// exactly one epoch that was current meanwhile, and what is restored goes on from
// its own positions.
func TestBAK01(t *testing.T) {
	quiet(t)
	s := &steps{T: t, ref: newWorld(t, "", nil)}
	root := t.TempDir()
	w := newWorld(t, filepath.Join(root, "store"), &triegs.Options{CheckpointBytes: 20_000, Durability: triegs.SyncInterval})
	stop := s.writer(w.db, 500*time.Microsecond)
	defer stop()
	for i := range scaled(20, 5) {
		what := fmt.Sprint("backup ", i)
		backup, restored := filepath.Join(root, what), filepath.Join(root, fmt.Sprint("restored ", i))
		from, _ := w.db.Offset("s")
		if err := w.db.Backup(w.ctx, backup); err != nil {
			t.Fatal(err)
		}
		to, _ := w.db.Offset("s")
		if err := triegs.Restore(w.ctx, backup, restored); err != nil {
			t.Fatal(err)
		}
		db, err := triegs.Open(restored, nil)
		if err != nil {
			t.Fatal(err)
		}
		if at := s.is(what, db); at < from || at > to {
			t.Fatalf("%s is of epoch %d, it was made between %d and %d", what, at, from, to)
		}
		at, _ := db.Offset("s")
		b := stepBatch(at-min(at, 2), 5) // with two that it has
		if e, err := db.Append(w.ctx, b); err != nil || uint64(e) != at+1 {
			t.Fatalf("going on from %s: epoch %d, %v, want %d", what, e, err, at+1)
		}
		if now, _ := db.Offset("s"); now != at+3 && at >= 2 {
			t.Errorf("%s stands at %d after offset %d", what, now, at+3)
		}
		shut(t, what, db)
		if db, err = triegs.Open(restored, nil); err != nil {
			t.Fatal(err)
		}
		if e := db.Metrics().Epoch; uint64(e) != at+1 {
			t.Errorf("%s: epoch %d after a restart, want %d", what, e, at+1)
		}
		shut(t, what, db)
	}
	stop()
	s.is("the store", w.db)
}

// Additions to one backup leave it whole at every moment, also for somebody who
// reads it meanwhile.
func TestBackupAgain(t *testing.T) {
	quiet(t)
	s := &steps{T: t, ref: newWorld(t, "", nil)}
	root := t.TempDir()
	backup := filepath.Join(root, "backup")
	w := newWorld(t, filepath.Join(root, "store"), &triegs.Options{CheckpointBytes: 10_000, Durability: triegs.SyncNone})
	stop := s.writer(w.db, 200*time.Microsecond)
	defer stop()
	for i := range scaled(25, 6) {
		if err := w.db.Backup(w.ctx, backup); err != nil {
			t.Fatal(err)
		}
		db, err := triegs.Open(backup, &triegs.Options{ReadOnly: true, DictionaryCacheBytes: int64(i % 2)})
		if err != nil {
			t.Fatal(err)
		}
		s.is(fmt.Sprint("addition ", i), db)
		if i%3 == 0 { // somebody reads while more comes
			if err := w.db.Backup(w.ctx, backup); err != nil {
				t.Fatal(err)
			}
			s.is("the one that is read", db)
			if _, err := gatherNodes(db); err != nil {
				t.Errorf("reading beside an addition: %v", err)
			}
		}
		shut(t, "backup", db)
	}
}

// gatherNodes reads the long terms of all facts.
func gatherNodes(db *triegs.DB) (map[string]int64, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return gather(snap.Select(context.Background(), "q(x, y) :- R(x, y)."))
}

// copyLive copies files one after another, as cp does, while they change.
func copyLive(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		in, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.Create(filepath.Join(to, rel))
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Close())
	})
}

// A plain copy of the files of a live store opens at some epoch in full, or is
// refused as damaged; it never opens as something that never was.
func TestBAK02(t *testing.T) {
	t.Run("all of the log", func(t *testing.T) { copiesOfLive(t, 0, 3_000) })
	t.Run("a log that is cut", func(t *testing.T) { copiesOfLive(t, 300_000, 500_000) })
}

func copiesOfLive(t *testing.T, pad int, checkpointBytes int64) {
	quiet(t)
	s := &steps{T: t, ref: newWorld(t, "", nil), pad: pad}
	root := t.TempDir()
	w := newWorld(t, filepath.Join(root, "store"), &triegs.Options{CheckpointBytes: checkpointBytes, Durability: triegs.SyncNone})
	stop := s.writer(w.db, 100*time.Microsecond)
	defer stop()
	cut := func() bool {
		return filepath.Base(segments(t, filepath.Join(root, "store"))[0]) != fmt.Sprintf("%020d", 1)
	}
	good, refused := 0, 0
	// The log is cut beside the writer, in its own time: copies are made until
	// then, and for a while.
	end := time.Now().Add(30 * time.Second)
	for i := 0; i < sized(200, 50, 10) || pad > 0 && !cut() && time.Now().Before(end); i++ {
		dir := filepath.Join(root, fmt.Sprint("copy", i))
		if err := copyLive(filepath.Join(root, "store"), dir); err != nil {
			t.Fatal(err)
		}
		o := logOnly()
		o.Fallback, o.ReadOnly = i%3 == 1, i%3 == 2
		db, err := triegs.Open(dir, o)
		switch {
		case errors.Is(err, triegs.ErrCorrupt) || errors.Is(err, triegs.ErrFormat):
			refused++
			t.Logf("copy %d: %v", i, err)
		case err != nil:
			t.Fatalf("copy %d: %v", i, err)
		default:
			good++
			s.is(fmt.Sprint("copy ", i), db)
			shut(t, "copy", db)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	t.Logf("%d copies opened, %d refused", good, refused)
	if pad > 0 && !cut() {
		t.Error("the log was not cut")
	}
}

// A restore goes to where nothing is; anything else is refused and stays.
func TestBAK03(t *testing.T) {
	quiet(t)
	ctx := context.Background()
	r := newSaved(t, 8, 0, 5)
	root := t.TempDir()
	backup := filepath.Join(root, "backup")
	db := r.openAt(t, "source", r.dir, logOnly(), 8, 5)
	if err := db.Backup(ctx, backup); err != nil {
		t.Fatal(err)
	}
	shut(t, "source", db)
	other := newSaved(t, 4, 0, 3)
	file := filepath.Join(root, "file")
	foreign := filepath.Join(root, "foreign")
	empty := filepath.Join(root, "empty")
	partial := filepath.Join(root, "dest.partial-123")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Mkdir(foreign, 0o700), os.Mkdir(empty, 0o700),
		os.WriteFile(filepath.Join(foreign, "notes.txt"), []byte("mine"), 0o600),
		os.MkdirAll(filepath.Join(partial, "checkpoint"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for what, dest := range map[string]string{
		"a store": other.dir, "the store itself": r.dir, "the backup itself": backup, "a file": file,
		"a folder in the backup": filepath.Join(backup, "restored"), "a foreign file in it": foreign, "what an earlier restore left": partial, "below a file": filepath.Join(file, "x"),
	} {
		untouched(t, what, root, func() {
			untouched(t, what, dest, func() {
				if err := triegs.Restore(ctx, backup, dest); err == nil || (what != "below a file" && !errors.Is(err, triegs.ErrFormat)) {
					t.Errorf("restore to %s: got %v, want ErrFormat", what, err)
				}
				if _, err := triegs.Repair(ctx, backup, dest); err == nil || (what != "below a file" && !errors.Is(err, triegs.ErrFormat)) {
					t.Errorf("repair to %s: got %v, want ErrFormat", what, err)
				}
			})
		})
	}
	for _, dest := range []string{empty, filepath.Join(root, "missing"), filepath.Join(root, "deep", "er", "missing"), filepath.Join(root, "dest")} {
		if err := triegs.Restore(ctx, backup, dest); err != nil {
			t.Fatal(err)
		}
		shut(t, dest, r.openAt(t, dest, dest, logOnly(), 8, 8))
	}
}

// What was deleted before the backup does not come back.
func TestBAK04(t *testing.T) {
	quiet(t)
	root := t.TempDir()
	w := newWorld(t, filepath.Join(root, "store"), logOnly())
	w.register("q", "q(x, y) :- R(x, y).")
	name := func(i int) string { return fmt.Sprint("fact ", i) }
	fact := func(i int, op triegs.Op) triegs.Event {
		e := triegs.Edge("R", triegs.Int(int64(i)), triegs.Int(int64(i%7)))
		e.Op = op
		if i%2 == 0 {
			e.ID = name(i)
		}
		return e
	}
	edit := func(from, to int, op triegs.Op) {
		var b triegs.Batch
		for i := from; i < to; i++ {
			b.Events = append(b.Events, fact(i, op))
		}
		w.append(b)
	}
	edit(0, 1000, triegs.Insert)
	if err := w.db.Checkpoint(w.ctx); err != nil { // so that the deletes are in an increment
		t.Fatal(err)
	}
	edit(300, 800, triegs.Delete)
	backup, dest := filepath.Join(root, "backup"), filepath.Join(root, "dest")
	if err := w.db.Backup(w.ctx, backup); err != nil {
		t.Fatal(err)
	}
	if err := triegs.Restore(w.ctx, backup, dest); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.reopen(dest, logOnly())
		snap := w.snapshot()
		w.wantCount(snap, "q", 500, 500)
		snap.Close()
		for _, i := range []int{300, 301, 799} {
			w.refuseBatch(triegs.ErrNoSuchFact, one(fact(i, triegs.Delete)))
		}
	}
	// What is left goes once, by its ID or its fact, and not again.
	for _, i := range []int{0, 1, 299, 800, 999} {
		w.append(one(fact(i, triegs.Delete)))
		w.refuseBatch(triegs.ErrNoSuchFact, one(fact(i, triegs.Delete)))
	}
	w.append(one(fact(300, triegs.Insert))) // its ID is free
	snap := w.snapshot()
	defer snap.Close()
	w.wantCount(snap, "q", 496, 496)
}

// reseal changes the identity file of a store and makes its checksum right.
func reseal(t *testing.T, change func(b []byte)) func(dir string) {
	return func(dir string) {
		rewrite(filepath.Join(dir, "STORE"), func(b []byte) []byte {
			change(b)
			return binary.LittleEndian.AppendUint64(b[:len(b)-8], xxhash.Sum64(b[:len(b)-8]))
		})
	}
}

// A store of a later version, with an unknown flag, or without its identity is
// refused, by whatever opens it, and no file of it changes.
func TestBAK05(t *testing.T) {
	quiet(t)
	ctx := context.Background()
	r := newSaved(t, 8, 0, 3, 5)
	for what, tc := range map[string]struct {
		damage func(string)
		want   error
		words  []string
	}{
		"later version": {reseal(t, func(b []byte) { b[8] = 2 }), triegs.ErrFormat, []string{"version 2", "version 1"}},
		"later version, another sum": {func(dir string) {
			rewrite(filepath.Join(dir, "STORE"), func(b []byte) []byte { b[8] = 2; return append(b, 1, 2, 3) })
		}, triegs.ErrFormat, []string{"version 2", "version 1"}},
		"unknown flag": {reseal(t, func(b []byte) { b[12] |= 0x40 }), triegs.ErrFormat, []string{"flags 0x40", "version 1"}},
		"missing":      {func(dir string) { _ = os.Remove(filepath.Join(dir, "STORE")) }, triegs.ErrFormat, nil},
		"checkpoints of a later version": {func(dir string) {
			list, err := filepath.Glob(filepath.Join(dir, "checkpoint", "marker.format-version.*"))
			if err != nil || len(list) != 1 {
				t.Fatalf("markers %v, %v", list, err)
			}
			if err := os.Rename(list[0], list[0][:len(list[0])-3]+"099"); err != nil {
				t.Fatal(err)
			}
		}, triegs.ErrFormat, []string{"version 99"}},
	} {
		dir := r.copy(t, tc.damage)
		untouched(t, what, dir, func() {
			r.refuses(t, what, dir, tc.want, tc.words...)
			if db, err := triegs.Open(dir, &triegs.Options{Fallback: true}); !errors.Is(err, tc.want) {
				t.Errorf("%s, with Fallback: got %v, %v", what, db, err)
			}
			if db, err := triegs.Open(dir, &triegs.Options{ReadOnly: true, LastCheckpoint: true}); !errors.Is(err, tc.want) {
				t.Errorf("%s, the last checkpoint: got %v, %v", what, db, err)
			}
			dest := filepath.Join(t.TempDir(), "dest")
			if err := triegs.Restore(ctx, dir, dest); !errors.Is(err, tc.want) {
				t.Errorf("%s, restore: got %v", what, err)
			}
			if left, _ := os.ReadDir(filepath.Dir(dest)); len(left) > 0 {
				t.Errorf("%s: a refused restore left %v", what, left)
			}
		})
	}
}

// Two lives of one store: what is restored goes on otherwise under the same
// epochs, positions are those of the backup, and the files of one life are not
// taken for those of the other.
func TestBAK06(t *testing.T) {
	quiet(t)
	root := t.TempDir()
	first, backup, second := filepath.Join(root, "first"), filepath.Join(root, "backup"), filepath.Join(root, "second")
	w := newWorld(t, first, logOnly())
	grow := func(db *triegs.DB, to uint64, node string) {
		for at, _ := db.Offset("s"); at < to; at++ {
			b := triegs.Batch{Source: "s", Offset: at, Events: []triegs.Event{triegs.Edge("R", triegs.String(node), triegs.Int(int64(at)))}}
			if _, err := db.Append(w.ctx, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(w.db, 100, "first life")
	if err := w.db.Backup(w.ctx, backup); err != nil {
		t.Fatal(err)
	}
	grow(w.db, 150, "first life")
	// A backup that may have more added to it stays one of the first life.
	if err := triegs.Restore(w.ctx, backup, second); err != nil {
		t.Fatal(err)
	}
	db, err := triegs.Open(second, logOnly())
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := db.Offset("s"); !ok || at != 100 || db.Metrics().Epoch != 100 {
		t.Fatalf("position %d of epoch %d, want those of epoch 100", at, db.Metrics().Epoch)
	}
	grow(db, 110, "second life")
	if got, err := gatherNodes(db); err != nil || len(got) != 110 {
		t.Fatalf("%d answers, %v, want 110", len(got), err)
	}
	// The source of the first life goes on at 150: a gap like any other.
	if err := db.Backup(w.ctx, backup); !errors.Is(err, triegs.ErrFormat) {
		t.Errorf("a backup of the second life into one of the first: %v, want ErrFormat", err)
	}
	if err := db.Checkpoint(w.ctx); err != nil {
		t.Fatal(err)
	}
	shut(t, "second life", db)
	// Logs and checkpoints of the lives are told apart.
	for _, name := range []string{"log", "checkpoint", "ACKED"} {
		mixed := filepath.Join(root, "mixed "+name)
		if err := os.CopyFS(mixed, os.DirFS(second)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(mixed, name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if name == "ACKED" {
			b, err := os.ReadFile(filepath.Join(first, name))
			if err := errors.Join(err, os.WriteFile(path, b, 0o600)); err != nil {
				t.Fatal(err)
			}
		} else if err := os.CopyFS(path, os.DirFS(filepath.Join(map[string]string{"log": first, "checkpoint": backup}[name], name))); err != nil {
			t.Fatal(err)
		}
		if db, err := triegs.Open(mixed, nil); !errors.Is(err, triegs.ErrFormat) && !errors.Is(err, triegs.ErrCorrupt) {
			t.Errorf("%s of the first life in the second: %v, %v", name, db, err)
		}
	}
	if db, err = triegs.Open(second, nil); err != nil {
		t.Fatal(err)
	}
	if at, _ := db.Offset("s"); at != 110 {
		t.Errorf("position %d after a restart, want 110", at)
	}
	shut(t, "second life", db)
}

// Where a backup may go: not into what is somebody else's, its own store, or a
// folder in it; and one that is given up leaves nothing.
func TestBackupPlaces(t *testing.T) {
	quiet(t)
	ctx := context.Background()
	root := t.TempDir()
	r, other := newSaved(t, 8, 0, 3, 5), newSaved(t, 5, 0, 3)
	otherBackup := filepath.Join(root, "other")
	odb := other.openAt(t, "other", other.dir, logOnly(), 5, 3)
	if err := odb.Backup(ctx, otherBackup); err != nil {
		t.Fatal(err)
	}
	shut(t, "other", odb)
	foreign, file, link := filepath.Join(root, "foreign"), filepath.Join(root, "file"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(r.dir, link), os.Mkdir(foreign, 0o700), os.WriteFile(filepath.Join(foreign, "notes.txt"), []byte("mine"), 0o600),
		os.WriteFile(file, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	db := r.openAt(t, "store", r.dir, logOnly(), 8, 5)
	if err := db.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	for what, dest := range map[string]string{
		"another store": other.dir, "a backup of another store": otherBackup, "a foreign folder": foreign, "a file": file,
		"itself": r.dir, "its log": filepath.Join(r.dir, "log"), "its checkpoints": filepath.Join(r.dir, "checkpoint"),
		"a new folder in it": filepath.Join(r.dir, "backup"), "a folder in its checkpoints": filepath.Join(r.dir, "checkpoint", "b"),
		"by way of a link": filepath.Join(link, "log", "b"),
	} {
		untouched(t, what, root, func() {
			untouched(t, what, r.dir, func() {
				if err := db.Backup(ctx, dest); !errors.Is(err, triegs.ErrFormat) && !errors.Is(err, triegs.ErrValue) {
					t.Errorf("a backup into %s: got %v, want ErrFormat", what, err)
				}
			})
		})
	}
	r.stages[8].want(t, "after refused backups", db)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Backup(gone, filepath.Join(root, "never")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	shut(t, "store", db)
	if err := db.Backup(ctx, filepath.Join(root, "never")); !errors.Is(err, triegs.ErrClosed) {
		t.Errorf("of a closed store: %v", err)
	}
	if err := db.Checkpoint(ctx); !errors.Is(err, triegs.ErrClosed) {
		t.Errorf("a checkpoint of a closed store: %v", err)
	}
	mem := newWorld(t, "", nil)
	for _, err := range []error{mem.db.Backup(ctx, filepath.Join(root, "never")), mem.db.Checkpoint(ctx)} {
		if !errors.Is(err, triegs.ErrUnsupported) {
			t.Errorf("of a store in memory: %v, want ErrUnsupported", err)
		}
	}
	if list, _ := filepath.Glob(filepath.Join(root, "never*")); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
	shut(t, "store", r.openAt(t, "store", r.dir, logOnly(), 8, 8))
}

// A backup copies no faster than it may, and one that is given up in the middle,
// or whose store is closed, leaves nothing under its name and does no harm.
func TestBackupRate(t *testing.T) {
	quiet(t)
	root := t.TempDir()
	w := newWorld(t, filepath.Join(root, "store"), &triegs.Options{CheckpointBytes: -1, BackupBytesPerSecond: 1 << 20})
	rng := rand.New(rand.NewPCG(3, 3))
	noise := func(n int) {
		var b triegs.Batch
		for range n {
			long := make([]byte, 1000)
			for i := range long {
				long[i] = byte(rng.Uint32())
			}
			b.Events = append(b.Events, triegs.Edge("R", triegs.Bytes(long), triegs.Int(1)))
		}
		w.append(b)
	}
	noise(1500)
	start := time.Now()
	if err := w.db.Backup(w.ctx, filepath.Join(root, "slow")); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 700*time.Millisecond || took > 20*time.Second {
		t.Errorf("1.5 MB with 1 MiB a second took %s", took)
	}
	ctx, cancel := context.WithTimeout(w.ctx, 300*time.Millisecond)
	defer cancel()
	if err := w.db.Backup(ctx, filepath.Join(root, "given up")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: %v", err)
	}
	untouchedName := filepath.Join(root, "slow")
	noise(1500)
	ctx, cancel = context.WithTimeout(w.ctx, 600*time.Millisecond)
	defer cancel()
	if err := w.db.Checkpoint(w.ctx); err != nil {
		t.Fatal(err)
	}
	untouched(t, "an addition that is given up", untouchedName, func() {
		if err := w.db.Backup(ctx, untouchedName); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an addition that is given up: %v", err)
		}
	})
	if err := w.db.Backup(w.ctx, untouchedName); err != nil {
		t.Fatal(err)
	}
	db, err := triegs.Open(untouchedName, &triegs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := digestOf(t, db), digestOf(t, w.db); got != want {
		t.Errorf("digest %v, want %v", got, want)
	}
	shut(t, "backup", db)
	ended := make(chan error, 1)
	go func() { ended <- w.db.Backup(context.Background(), filepath.Join(root, "closed")) }()
	time.Sleep(200 * time.Millisecond)
	within(t, 10*time.Second, "close under a backup", func() {
		if err := w.db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := <-ended; !errors.Is(err, triegs.ErrClosed) {
		t.Errorf("a backup of a store that is closed meanwhile: %v, want ErrClosed", err)
	}
	list, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if n := e.Name(); n != "slow" && n != "store" {
			t.Errorf("left behind: %s", n)
		}
	}
}

// What a store is restored from: a backup, a closed store with or without a log
// behind its checkpoint; not from one that is open, from itself, or from what is
// no store.
func TestRestoreFrom(t *testing.T) {
	quiet(t)
	ctx := context.Background()
	root := t.TempDir()
	dest := func(name string) string { return filepath.Join(root, name) }
	r := newSaved(t, 9, 0, 3, 5)
	if err := triegs.Restore(ctx, r.dir, dest("from a log tail")); err != nil {
		t.Fatal(err)
	}
	shut(t, "from a log tail", r.openAt(t, "from a log tail", dest("from a log tail"), logOnly(), 9, 9))
	plain := newRecorded(t, 7, 0)
	untouched(t, "a store without checkpoints", plain.dir, func() {
		if err := triegs.Restore(ctx, plain.dir, dest("from a log")); err != nil {
			t.Fatal(err)
		}
	})
	shut(t, "from a log", plain.openAt(t, "from a log", dest("from a log"), logOnly(), 7, 7))
	db := r.openAt(t, "open", r.dir, logOnly(), 9, 5)
	if err := triegs.Restore(ctx, r.dir, dest("locked")); !errors.Is(err, triegs.ErrLocked) {
		t.Errorf("from an open store: %v, want ErrLocked", err)
	}
	shut(t, "open", db)
	if err := triegs.Restore(ctx, dest("nothing"), dest("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("from nothing: %v", err)
	}
	if err := triegs.Restore(ctx, root, dest("x")); !errors.Is(err, triegs.ErrFormat) {
		t.Errorf("from what is no store: %v", err)
	}
	damaged := r.copy(t, damages(filepath.Base(tables(t, r.dir)[1]))["half"])
	if err := triegs.Restore(ctx, damaged, dest("damaged")); !errors.Is(err, triegs.ErrCorrupt) {
		t.Errorf("from a damaged store: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := triegs.Restore(gone, r.dir, dest("cancelled")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	list, err := os.ReadDir(root)
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v, want the two restored stores only", list, err)
	}
	// A restored store is backed up and restored like any other.
	db = r.openAt(t, "restored", dest("from a log tail"), logOnly(), 9, 9)
	if err := db.Backup(ctx, dest("second backup")); err != nil {
		t.Fatal(err)
	}
	shut(t, "restored", db)
	if err := triegs.Restore(ctx, dest("second backup"), dest("third")); err != nil {
		t.Fatal(err)
	}
	shut(t, "third", r.openAt(t, "third", dest("third"), logOnly(), 9, 9))
	// A backup is opened for reading only.
	if db, err := triegs.Open(dest("second backup"), nil); err == nil || !strings.Contains(err.Error(), "backup") {
		t.Errorf("a backup for writing: %v, %v", db, err)
	}
}

// A backup is copied slowly while the checkpoints that it copies are long gone
// from the store; it stays of one epoch.
func TestBackupBesideCheckpoints(t *testing.T) {
	quiet(t)
	root := t.TempDir()
	w := newWorld(t, filepath.Join(root, "store"), &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncNone, BackupBytesPerSecond: 1 << 20})
	s := &slide{world: w, size: 20_000, batch: triegs.Batch{Time: time.Unix(1, 0)}}
	s.step(s.size)
	var noise triegs.Batch // what does not compress, so that the copy takes its time
	rng := rand.New(rand.NewPCG(5, 5))
	for range 1500 {
		long := make([]byte, 1000)
		for i := range long {
			long[i] = byte(rng.Uint32())
		}
		noise.Events = append(noise.Events, triegs.Edge("Noise", triegs.Bytes(long), triegs.Int(1)))
	}
	w.append(noise)
	if err := w.db.Checkpoint(w.ctx); err != nil {
		t.Fatal(err)
	}
	dest := filepath.Join(root, "backup")
	want, epoch := digestOf(t, w.db), w.epoch()
	ended := make(chan error, 1)
	go func() { ended <- w.db.Backup(w.ctx, dest) }()
	time.Sleep(200 * time.Millisecond) // it has begun to copy
	full := w.db.Metrics().Checkpoints.Full
	for running := true; running; {
		s.step(4_000)
		if err := w.db.Checkpoint(w.ctx); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
	}
	m := w.db.Metrics().Checkpoints
	t.Logf("%d checkpoints, %d of them full, meanwhile", m.Taken, m.Full-full)
	db, err := triegs.Open(dest, &triegs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, "backup", db)
	// It is of the call's epoch, or of a checkpoint that came before the copy
	// began.
	if e := db.Metrics().Epoch; e == epoch && digestOf(t, db) != want {
		t.Errorf("digest %v at epoch %d, want %v", digestOf(t, db), e, want)
	} else if e < epoch {
		t.Errorf("epoch %d, the backup was asked for at %d", e, epoch)
	}
	if err := db.Verify(w.ctx); err != nil {
		t.Error(err)
	}
}

// Backups to one place at a time: one after the other is made, and what is there
// then is whole.
func TestBackupTwice(t *testing.T) {
	quiet(t)
	s := &steps{T: t, ref: newWorld(t, "", nil)}
	root := t.TempDir()
	w := newWorld(t, filepath.Join(root, "store"), &triegs.Options{CheckpointBytes: 5_000, Durability: triegs.SyncNone})
	stop := s.writer(w.db, 200*time.Microsecond)
	defer stop()
	for i := range scaled(12, 4) {
		dest := filepath.Join(root, fmt.Sprint("backup ", i/2)) // new, then there
		outcome := make(chan error, 3)
		for range cap(outcome) {
			go func() { outcome <- w.db.Backup(w.ctx, dest) }()
		}
		for range cap(outcome) {
			if err := <-outcome; err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
		db, err := triegs.Open(dest, &triegs.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		s.is(dest, db)
		shut(t, dest, db)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*.partial-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
