package fuzz

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// repaired repairs a damaged copy, which must stay as it is, and opens the
// result.
func (r *recorded) repaired(t *testing.T, what, dir string, epoch int) triegs.RepairReport {
	t.Helper()
	dest := filepath.Join(t.TempDir(), "dest")
	var rep triegs.RepairReport
	untouched(t, what, dir, func() {
		var err error
		if rep, err = triegs.Repair(context.Background(), dir, dest); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	})
	if int(rep.Epoch) != epoch {
		t.Fatalf("%s: repaired to epoch %d, want %d: %+v", what, rep.Epoch, epoch, rep)
	}
	db, err := triegs.Open(dest, logOnly())
	if err != nil {
		t.Fatalf("%s: the repaired store: %v", what, err)
	}
	r.stages[epoch].want(t, what, db)
	var next stage
	grow(t, db, epoch+1, r.pad, func(s stage) { next = s })
	if int(next.epoch) != epoch+1 {
		t.Errorf("%s: the next epoch is %d, want %d", what, next.epoch, epoch+1)
	}
	shut(t, what, db)
	if db, err = triegs.Open(dest, logOnly()); err != nil {
		t.Fatalf("%s: the repaired store again: %v", what, err)
	}
	next.want(t, what, db)
	shut(t, what, db)
	return rep
}

// Repair of whole stores and of ones with every kind of damage: the source stays
// as it is, the result is the last epoch that can be proved, and the report says
// what is lost.
func TestRepair(t *testing.T) {
	quiet(t)
	r := newSaved(t, 10, 0, 3, 6, 8)
	list := tables(t, r.dir)
	frames := places(t, segments(t, r.dir)[0])
	flip := func(at int) func(string) {
		return func(dir string) {
			rewrite(segments(t, dir)[0], func(b []byte) []byte { b[at] ^= 4; return b })
		}
	}
	file := func(name string, f func(b []byte) []byte) func(string) {
		return func(dir string) { rewrite(filepath.Join(dir, name), f) }
	}
	remove := func(names ...string) func(string) {
		return func(dir string) {
			for _, n := range names {
				if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	table := func(i int) string { return filepath.Join("checkpoint", filepath.Base(list[i])) }
	cutTable := func(i int) func(string) {
		return file(table(i), func(b []byte) []byte { return b[:len(b)/3] })
	}
	middle := func(e int) int { return (frames[e-1].frame + frames[e-1].end) / 2 }
	for _, tc := range []struct {
		what       string
		damage     []func(string)
		epoch      int
		checkpoint triegs.Epoch
		last       triegs.Epoch
		damaged    string // what is told of checkpoints and files
		reason     string // what is told of the log
	}{
		{"whole", nil, 10, 8, 10, "", ""},
		{"no note", []func(string){noNote}, 10, 8, 10, "", ""},
		{"newest table cut", []func(string){cutTable(2)}, 10, 6, 10, filepath.Base(list[2]), ""},
		{"middle table gone", []func(string){remove(table(1))}, 10, 3, 10, filepath.Base(list[1]), ""},
		{"first table cut", []func(string){cutTable(0)}, 10, 0, 10, filepath.Base(list[0]), ""},
		{"all tables gone", []func(string){remove(table(0), table(1), table(2))}, 10, 0, 10, filepath.Base(list[0]), ""},
		{"checkpoints gone", []func(string){remove("checkpoint")}, 10, 0, 10, "", ""},
		{"log gone", []func(string){remove("log")}, 8, 8, 10, "", "log"},
		{"log and note gone", []func(string){remove("log", "ACKED")}, 8, 8, 8, "", ""},
		{"log damaged behind the checkpoint", []func(string){flip(middle(9))}, 8, 8, 10, "", "entry 9"},
		{"last entry damaged", []func(string){flip(middle(10))}, 9, 8, 10, "", "entry 10"},
		{"log damaged before the checkpoint", []func(string){flip(middle(4))}, 10, 8, 10, "", ""},
		{"log damaged, newest table too", []func(string){flip(middle(7)), cutTable(2)}, 6, 6, 10, filepath.Base(list[2]), "entry 7"},
		{"log damaged, no checkpoint", []func(string){flip(middle(4)), remove("checkpoint")}, 3, 0, 10, "", "entry 4"},
		{"identity damaged", []func(string){file("STORE", func(b []byte) []byte { b[20] ^= 1; return b })}, 10, 8, 10, "STORE", ""},
		{"identity of zeros", []func(string){file("STORE", func(b []byte) []byte { return make([]byte, len(b)) })}, 10, 8, 10, "STORE", ""},
		{"identity empty", []func(string){file("STORE", func([]byte) []byte { return nil })}, 10, 8, 10, "STORE", ""},
	} {
		t.Run(tc.what, func(t *testing.T) {
			rep := r.repaired(t, tc.what, r.copy(t, tc.damage...), tc.epoch)
			told := strings.Join(rep.Damaged, "; ")
			switch {
			case rep.Checkpoint != tc.checkpoint, rep.Last != tc.last:
				t.Errorf("%+v, want the checkpoint of epoch %d, and that epoch %d was the last", rep, tc.checkpoint, tc.last)
			case (tc.damaged == "") != (told == ""), !strings.Contains(told, tc.damaged):
				t.Errorf("of the checkpoints it is told %q, want %q", told, tc.damaged)
			case (tc.reason == "") != (rep.Reason == ""), !strings.Contains(rep.Reason, tc.reason):
				t.Errorf("of the log it is told %q, want %q", rep.Reason, tc.reason)
			}
		})
	}
	for _, of := range []string{"", filepath.Join(t.TempDir(), "missing"), t.TempDir()} {
		dest := filepath.Join(t.TempDir(), "dest")
		if rep, err := triegs.Repair(context.Background(), of, dest); err == nil {
			t.Errorf("of %q a store was made: %+v", of, rep)
		}
		if _, err := os.Stat(dest); err == nil {
			t.Errorf("repair of %q left something", of)
		}
	}
}

// With a log that was cut, what is left without the newest checkpoints is told.
func TestRepairCut(t *testing.T) {
	quiet(t)
	r := newSaved(t, 34, 800_000, 10, 20, 30)
	list := tables(t, r.dir)
	remove := func(from int) func(string) {
		return func(dir string) {
			for _, path := range list[from:] {
				_ = os.Remove(filepath.Join(dir, "checkpoint", filepath.Base(path)))
			}
		}
	}
	elements := len(list)
	rep := r.repaired(t, "the newest table gone", r.copy(t, remove(elements-1)), 34)
	if rep.Checkpoint != 20 || len(rep.Damaged) == 0 {
		t.Errorf("the newest table gone: %+v", rep)
	}
	segs := segments(t, r.dir)
	lost := r.copy(t, func(dir string) {
		if err := os.Remove(filepath.Join(dir, "log", filepath.Base(segs[len(segs)-2]))); err != nil {
			t.Fatal(err)
		}
	})
	dest := filepath.Join(t.TempDir(), "dest")
	rep, err := triegs.Repair(context.Background(), lost, dest)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Epoch < 30 || rep.Epoch >= 34 || rep.Last != 34 || rep.Reason == "" {
		t.Errorf("a segment gone: %+v", rep)
	}
	db, err := triegs.Open(dest, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.stages[rep.Epoch].want(t, "a segment gone", db)
	shut(t, "a segment gone", db)
	// Nothing is left to begin from.
	all := r.copy(t, remove(0))
	dest = filepath.Join(t.TempDir(), "dest")
	rep, err = triegs.Repair(context.Background(), all, dest)
	t.Logf("all tables gone: %+v, %v", rep, err)
	if err == nil && (rep.Epoch != 0 || rep.Reason == "" || rep.Last != 34) {
		t.Errorf("all tables gone: %+v", rep)
	}
}

// Bad options are refused by name, before anything is touched.
func TestSavingOptions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for what, o := range map[string]*triegs.Options{
		"DictionaryCacheBytes": {DictionaryCacheBytes: -1},
		"BackupBytesPerSecond": {BackupBytesPerSecond: -1},
		"LastCheckpoint":       {LastCheckpoint: true},
	} {
		db, err := triegs.Open(dir, o)
		if !errors.Is(err, triegs.ErrValue) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v, %v, want ErrValue", what, db, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a store was made", what)
		}
	}
	// Negative CheckpointBytes: none, however much the log takes, not even at
	// Close.
	db, err := triegs.Open(dir, &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	grow(t, db, 8, 700_000, func(stage) {})
	if m := db.Metrics().Checkpoints; m.Taken != 0 || m.LogBytes < 4_000_000 {
		t.Errorf("told as %+v", m)
	}
	shut(t, "none", db)
	if _, err := os.Stat(filepath.Join(dir, "checkpoint")); err == nil {
		t.Error("a checkpoint was taken")
	}
	// Otherwise Close takes one where much has come, and one is taken in the
	// background as often as the log says.
	if db, err = triegs.Open(dir, &triegs.Options{CheckpointBytes: 1_500_000, Durability: triegs.SyncNone}); err != nil {
		t.Fatal(err)
	}
	grow(t, db, 16, 700_000, func(stage) {})
	settle(t, "bytes of the log", 3_000_000, func() int64 { return int64(db.Metrics().Checkpoints.LogBytes) })
	if m := db.Metrics().Checkpoints; m.Taken < 2 || m.Failed > 0 || m.Epoch < 9 {
		t.Errorf("told as %+v", m)
	}
	grow(t, db, 18, 700_000, func(stage) {})
	shut(t, "some", db)
	for range 2 {
		if db, err = triegs.Open(dir, nil); err != nil {
			t.Fatal(err)
		}
		if rep := db.Recovery(); rep.Checkpoint+triegs.Epoch(rep.Epochs) != 18 || rep.Checkpoint < 16 {
			t.Errorf("%+v, want a checkpoint near epoch 18", rep)
		}
		shut(t, "again", db)
	}
}

// The last checkpoint of a store is read while its owner, this process or
// another one, goes on and saves; each look is at one whole state.
func TestLastCheckpoint(t *testing.T) {
	crashChild(t, saveStepsForEver)
	quiet(t)
	ro := func(i int) *triegs.Options {
		return &triegs.Options{ReadOnly: true, LastCheckpoint: true, DictionaryCacheBytes: int64(i % 2)}
	}
	t.Run("before there is one", func(t *testing.T) {
		r := newRecorded(t, 5, 0)
		db := r.openAt(t, "owner", r.dir, logOnly(), 5, 0)
		defer shut(t, "owner", db)
		if got, err := triegs.Open(r.dir, ro(0)); err == nil || !strings.Contains(err.Error(), "no checkpoint") {
			t.Errorf("got %v, %v, want that there is none", got, err)
		}
	})
	t.Run("of this process", func(t *testing.T) {
		s := &steps{T: t, ref: newWorld(t, "", nil)}
		dir := filepath.Join(t.TempDir(), "store")
		w := newWorld(t, dir, &triegs.Options{CheckpointBytes: 2_000, Durability: triegs.SyncNone})
		stop := s.writer(w.db, 300*time.Microsecond)
		defer stop()
		for w.db.Metrics().Checkpoints.Taken < 2 {
			time.Sleep(time.Millisecond)
		}
		s.looks(dir, scaled(40, 10), ro)
		if m := w.db.Metrics().Checkpoints; m.Failed > 0 {
			t.Errorf("checkpoints failed: %+v", m)
		}
	})
	t.Run("of another process", func(t *testing.T) {
		s := &steps{T: t, ref: newWorld(t, "", nil)}
		dir := filepath.Join(t.TempDir(), "store")
		own(t, "TestLastCheckpoint", dir)
		s.looks(dir, scaled(40, 10), ro)
	})
}

// looks opens the last checkpoint again and again, and reads it while newer ones
// take its place.
func (s *steps) looks(dir string, n int, options func(int) *triegs.Options) {
	s.Helper()
	seen := map[uint64]bool{}
	for i := range n {
		db, err := triegs.Open(dir, options(i))
		if err != nil {
			s.Fatalf("look %d: %v", i, err)
		}
		at := s.is("the last checkpoint", db)
		seen[at] = true
		if db.Recovery().Checkpoint != triegs.Epoch(at) || db.Recovery().Epochs != 0 {
			s.Errorf("look %d: %+v at epoch %d", i, db.Recovery(), at)
		}
		before, err := gatherNodes(db)
		if err != nil {
			s.Fatalf("look %d: %v", i, err)
		}
		time.Sleep(20 * time.Millisecond)
		if after, err := gatherNodes(db); err != nil || !maps.Equal(before, after) {
			s.Fatalf("look %d: it had %d answers and has %d, %v", i, len(before), len(after), err)
		}
		if _, err := db.Append(context.Background(), stepBatch(at, 1)); !errors.Is(err, triegs.ErrReadOnly) {
			s.Errorf("look %d: append: %v", i, err)
		}
		shut(s.T, "look", db)
	}
	s.Logf("%d looks saw %d checkpoints", n, len(seen))
	if len(seen) < 2 {
		s.Error("it never saw a newer checkpoint")
	}
}

// saveStepsForEver is the child that owns a store and saves it all the time.
func saveStepsForEver(dir string, _ uint64, _ *rand.Rand, r reporter) error {
	db, err := triegs.Open(dir, &triegs.Options{CheckpointBytes: 2_000, Durability: triegs.SyncNone})
	if err != nil {
		return err
	}
	for told := false; ; {
		at, _ := db.Offset("s")
		if _, err := db.Append(context.Background(), stepBatch(at, 1)); err != nil {
			return err
		}
		if c := db.Metrics().Checkpoints; c.Failed > 0 {
			return errors.New(c.Error)
		} else if c.Taken > 1 && !told {
			told = true
			r.say("held %d", os.Getpid())
		}
		time.Sleep(300 * time.Microsecond)
	}
}
