package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// padOfREC07 makes a segment of the log full after some ten epochs.
const padOfREC07 = 400_000

// saveAndCut is the child of TestREC07: a checkpoint after every few epochs, of
// terms so long that each one lets a segment of the log go.
func saveAndCut(dir string, _ uint64, rng *rand.Rand, r reporter) error {
	ctx := context.Background()
	db, err := triegs.Open(dir, logOnly())
	if err != nil {
		return err
	}
	if db.Metrics().Epoch == 0 {
		if _, err := db.Register(ctx, "q", "q(x, y, z) :- R(x, y), R(z, y)."); err != nil {
			return err
		}
		r.say("ack 1")
	}
	for {
		b := recordedBatch(int(db.Metrics().Epoch), padOfREC07)
		b.Offset, _ = db.Offset("s")
		e, err := db.Append(ctx, b)
		if err != nil {
			return err
		}
		r.say("ack %d", e)
		if rng.IntN(4) == 0 {
			r.say("big") // the parent likes to kill soon after this
			if err := db.Checkpoint(ctx); err != nil {
				return err
			}
		}
	}
}

// A process that is killed while it saves and cuts its log loses nothing that was
// acknowledged and has nothing twice.
func TestREC07(t *testing.T) {
	crashChild(t, saveAndCut)
	dir := filepath.Join(t.TempDir(), "store")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 9)) // moments, not inputs
	ref := newWorld(t, "", nil)
	acked, cut, loaded := triegs.Epoch(0), 0, 0
	n := sized(200, 15, 5)
	// On a slow machine the first kills may all come before the first checkpoint.
	for i := 0; i < n || loaded == 0 && i < 20*n; i++ {
		for _, line := range kill(t, t.Name(), dir, 0, rng).lines {
			if text, ok := strings.CutPrefix(line, "ack "); ok {
				e, _ := strconv.ParseUint(text, 10, 64)
				acked = triegs.Epoch(e)
			}
		}
		db, err := triegs.Open(dir, logOnly())
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		got := stageOf(t, db)
		if got.epoch < acked || got.epoch > acked+1 {
			t.Fatalf("kill %d: epoch %d, %d was acknowledged", i, got.epoch, acked)
		}
		acked = got.epoch
		if got.epoch > 0 {
			grow(t, ref.db, int(got.epoch), padOfREC07, func(stage) {})
			stageOf(t, ref.db).want(t, fmt.Sprintf("kill %d", i), db)
		}
		if db.Recovery().Checkpoint > 0 {
			loaded++
		}
		if first := segments(t, dir)[0]; filepath.Base(first) != fmt.Sprintf("%020d", 1) {
			cut++
		}
		shut(t, "after a kill", db)
	}
	t.Logf("%d kills, %d opened from a checkpoint, %d with a cut log, %d epochs", n, loaded, cut, acked)
	if loaded == 0 {
		t.Error("no kill left a checkpoint")
	}
}

// A checkpoint at the last epoch, so that no epoch is left in the log, and one
// with epochs behind it in the same segment.
func TestREC08Saved(t *testing.T) {
	quiet(t)
	r := newSaved(t, 5, 0, 5)
	for _, o := range []*triegs.Options{logOnly(), {CheckpointBytes: -1, DictionaryCacheBytes: 1}} {
		dir := r.copy(t)
		db := r.openAt(t, "saved at the end", dir, o, 5, 5)
		var next stage
		grow(t, db, 6, 0, func(s stage) { next = s })
		if next.epoch != 6 {
			t.Fatalf("the next epoch is %d, want 6", next.epoch)
		}
		shut(t, "saved at the end", db)
		for range 2 {
			db, err := triegs.Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			next.want(t, "reopened", db)
			if rep := db.Recovery(); rep.Checkpoint != 5 || rep.Epochs != 1 {
				t.Errorf("%+v, want one epoch behind the checkpoint of 5", rep)
			}
			shut(t, "reopened", db)
		}
	}
	r = newSaved(t, 8, 0, 5)
	for range 2 {
		shut(t, "epochs behind it", r.openAt(t, "epochs behind it", r.dir, logOnly(), 8, 5))
	}
	// With a log that has been cut.
	r = newSaved(t, 40, 800_000, 10, 20, 30)
	if first := filepath.Base(segments(t, r.dir)[0]); first == fmt.Sprintf("%020d", 1) {
		t.Error("the log was not cut")
	}
	db := r.openAt(t, "a cut log", r.dir, logOnly(), 40, 30)
	grow(t, db, 41, r.pad, func(s stage) { r.stages = append(r.stages[:min(len(r.stages), 41)], s) })
	shut(t, "a cut log", db)
	shut(t, "a cut log", r.openAt(t, "a cut log", r.dir, logOnly(), 41, 30))
}

// damages are the ways in which a table is spoiled.
func damages(table string) map[string]func(dir string) {
	at := func(dir string) string { return filepath.Join(dir, "checkpoint", table) }
	flip := func(num, den int) func(string) {
		return func(dir string) {
			rewrite(at(dir), func(b []byte) []byte { b[(len(b)-1)*num/den] ^= 0x10; return b })
		}
	}
	return map[string]func(string){
		"empty":               func(dir string) { rewrite(at(dir), func([]byte) []byte { return nil }) },
		"half":                func(dir string) { rewrite(at(dir), func(b []byte) []byte { return b[:len(b)/2] }) },
		"longer":              func(dir string) { rewrite(at(dir), func(b []byte) []byte { return append(b, 0) }) },
		"of zeros":            func(dir string) { rewrite(at(dir), func(b []byte) []byte { clear(b); return b }) },
		"removed":             func(dir string) { _ = os.Remove(at(dir)) },
		"flipped at the head": flip(0, 1), "flipped at a fifth": flip(1, 5), "flipped at the end": flip(1, 1),
	}
}

// A damaged table of a checkpoint is found by the open that needs it, each time
// again, and named; with Fallback the older checkpoint or the whole log gives the
// same state.
func TestREC13(t *testing.T) {
	quiet(t)
	r := newSaved(t, 9, 0, 3, 5, 7)
	list := tables(t, r.dir)
	elementOf := map[string]int{}
	for i, path := range list {
		elementOf[filepath.Base(path)] = i
	}
	if len(list) != 3 {
		t.Fatalf("%d tables, the test was made for one in each of three elements", len(list))
	}
	saved := []triegs.Epoch{0, 3, 5, 7} // what is left when element i is damaged
	for i, path := range list {
		table := filepath.Base(path)
		for how, damage := range damages(table) {
			what := table + " " + how
			dir := r.copy(t, damage)
			untouched(t, what, dir, func() {
				r.refuses(t, what, dir, triegs.ErrCorrupt, table)
				r.refuses(t, what+", again", dir, triegs.ErrCorrupt, table)
			})
			for _, o := range []*triegs.Options{{Fallback: true, ReadOnly: true}, {Fallback: true, CheckpointBytes: -1}} {
				db := r.openAt(t, what, dir, o, 9, saved[i])
				if d := db.Recovery().Damaged; len(d) == 0 || !strings.Contains(strings.Join(d, " "), table) {
					t.Errorf("%s: the damage is told as %q", what, d)
				}
				if !o.ReadOnly { // the next checkpoint mends it
					if err := db.Checkpoint(context.Background()); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				shut(t, what, db)
			}
			shut(t, what, r.openAt(t, what+", mended", dir, logOnly(), 9, 9))
		}
	}
}

// Where the log was cut a damaged newest checkpoint can be passed over for the
// one before, but two damaged ones are the end, whatever is asked for.
func TestREC13Cut(t *testing.T) {
	quiet(t)
	r := newSaved(t, 34, 800_000, 10, 20, 30)
	list := tables(t, r.dir)
	remove := func(i int) func(string) {
		return func(dir string) { _ = os.Remove(filepath.Join(dir, "checkpoint", filepath.Base(list[i]))) }
	}
	last := len(list) - 1
	dir := r.copy(t, remove(last))
	r.refuses(t, "the newest gone", dir, triegs.ErrCorrupt, filepath.Base(list[last]))
	fall := &triegs.Options{Fallback: true, CheckpointBytes: -1}
	shut(t, "the newest gone", r.openAt(t, "the newest gone", dir, fall, 34, 20))
	dir = r.copy(t, remove(last), remove(0))
	for _, o := range []*triegs.Options{logOnly(), fall, {Fallback: true, ReadOnly: true}} {
		untouched(t, "both gone", dir, func() {
			if db, err := triegs.Open(dir, o); !errors.Is(err, triegs.ErrCorrupt) {
				t.Errorf("both gone: got %v, %v, want ErrCorrupt", db, err)
			}
		})
	}
}

// A store with checkpoints, killed with epochs behind the last one, is read where
// nothing can be written, and nothing changes.
func TestIO03Saved(t *testing.T) {
	crashChild(t, holdOpen)
	r := newSaved(t, 10, 0, 4, 7)
	quiet(t)
	own(t, t.Name(), r.dir).kill()
	half := func(dir string) { // what a checkpoint that was killed may leave
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "checkpoint.tmp"), 0o755),
			os.WriteFile(filepath.Join(dir, "checkpoint.tmp", "000001.sst"), []byte("half"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, cache := range []int64{0, 1} {
		dir := r.copy(t, half)
		modes(t, dir, 0o444, 0o555)
		untouched(t, "read-only", dir, func() {
			db, err := triegs.Open(dir, &triegs.Options{ReadOnly: true, DictionaryCacheBytes: cache})
			if err != nil {
				t.Fatal(err)
			}
			if rep := db.Recovery(); rep.Checkpoint != 7 || rep.Epochs != 4 || db.Metrics().Epoch != 11 {
				t.Errorf("%+v at epoch %d", rep, db.Metrics().Epoch)
			}
			wantReadOnly(t, db)
			for what, call := range map[string]func() error{
				"checkpoint": func() error { return db.Checkpoint(context.Background()) },
				"backup":     func() error { return db.Backup(context.Background(), filepath.Join(t.TempDir(), "b")) },
			} {
				if err := call(); !errors.Is(err, triegs.ErrReadOnly) {
					t.Errorf("%s: got %v, want ErrReadOnly", what, err)
				}
			}
			if err := db.Verify(context.Background()); err != nil {
				t.Error(err)
			}
			shut(t, "read-only", db)
			db, err = triegs.Open(dir, &triegs.Options{ReadOnly: true, LastCheckpoint: true, DictionaryCacheBytes: cache})
			if err != nil {
				t.Fatal(err)
			}
			r.stages[7].want(t, "the last checkpoint", db)
			shut(t, "the last checkpoint", db)
		})
		modes(t, dir, 0o644, 0o755)
	}
}

// modes sets the permissions of all files and folders.
func modes(t *testing.T, dir string, files, folders fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, folders)
		}
		return os.Chmod(path, files)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Folders of checkpoints where no store is, or with foreign files, are refused
// and stay as they are.
func TestIO04Saved(t *testing.T) {
	quiet(t)
	r := newSaved(t, 6, 0, 4)
	for what, damage := range map[string]func(dir string){
		"only checkpoints": func(dir string) {
			for _, n := range []string{"STORE", "ACKED", "LOCK", "log"} {
				_ = os.RemoveAll(filepath.Join(dir, n))
			}
		},
		"without the identity": func(dir string) { _ = os.Remove(filepath.Join(dir, "STORE")) },
	} {
		dir := r.copy(t, damage)
		untouched(t, what, dir, func() { r.refuses(t, what, dir, triegs.ErrFormat) })
	}
	blocked := r.copy(t, func(dir string) {
		path := filepath.Join(dir, "checkpoint")
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	})
	untouched(t, "a file in their place", blocked, func() {
		if db, err := triegs.Open(blocked, nil); err == nil {
			t.Errorf("opened %v with a file in the place of the checkpoints", db)
		}
	})
	// A foreign file beside the tables disturbs nobody, and stays.
	notes := filepath.Join(r.dir, "checkpoint", "notes.txt")
	if err := os.WriteFile(notes, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := r.openAt(t, "a foreign file", r.dir, logOnly(), 6, 4)
	if err := db.Checkpoint(context.Background()); err != nil {
		t.Error(err)
	}
	shut(t, "a foreign file", db)
	if b, err := os.ReadFile(notes); err != nil || string(b) != "mine" {
		t.Errorf("the foreign file holds %q, %v", b, err)
	}
}

// Without the right to write checkpoints the store goes on, tells of it, and
// saves as soon as it can.
func TestIO05Saved(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	quiet(t)
	r := newSaved(t, 6, 0, 4)
	path := filepath.Join(r.dir, "checkpoint")
	db := r.openAt(t, "writable", r.dir, logOnly(), 6, 4)
	if err := errors.Join(os.Chmod(path, 0o555), os.Chmod(r.dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	if err := db.Checkpoint(context.Background()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want a permission error", err)
	}
	r.stages[6].want(t, "not saved", db)
	if m := db.Metrics().Checkpoints; m.Failed != 1 || m.Error == "" || m.Taken != 0 {
		t.Errorf("told as %+v", m)
	}
	if err := errors.Join(os.Chmod(path, 0o755), os.Chmod(r.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := db.Checkpoint(context.Background()); err != nil {
		t.Error(err)
	}
	shut(t, "writable again", db)
	shut(t, "writable again", r.openAt(t, "writable again", r.dir, logOnly(), 6, 6))
}

// The directory goes away under a store that saves: every call ends with an
// error, nothing comes back, and Close returns.
func TestIO06Saved(t *testing.T) {
	for _, cache := range []int64{0, 1} {
		t.Run(fmt.Sprintf("cache %d", cache), func(t *testing.T) {
			quiet(t)
			r := newSaved(t, 10, 0, 4, 8)
			db := r.openAt(t, "whole", r.dir, &triegs.Options{DictionaryCacheBytes: cache}, 10, 8)
			if err := os.RemoveAll(r.dir); err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			within(t, time.Minute, "saving without a directory", func() {
				if err := db.Checkpoint(ctx); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("checkpoint: got %v, want that it is not there", err)
				}
				dest := filepath.Join(t.TempDir(), "backup")
				if err := db.Backup(ctx, dest); err == nil {
					t.Error("a backup was made of what is not there")
				}
				if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a backup that failed has a name: %v", err)
				}
				if got := stageOf(t, db); got.epoch != 10 {
					t.Errorf("readers see %v", got)
				}
				if m := db.Metrics().Checkpoints; m.Failed == 0 || m.Error == "" {
					t.Errorf("told as %+v", m)
				}
				t.Logf("close: %v", db.Close())
			})
			if _, err := os.Stat(r.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory is back: %v", err)
			}
		})
	}
}
