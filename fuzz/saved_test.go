package fuzz

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/triegs/triegs"
)

// newSaved makes a recorded store with checkpoints at the given epochs and a log
// behind the last one.
func newSaved(t *testing.T, epochs, pad int, at ...int) *recorded {
	t.Helper()
	r := &recorded{dir: filepath.Join(t.TempDir(), "store"), pad: pad}
	db, err := triegs.Open(r.dir, logOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range append(slices.Clone(at), epochs) {
		grow(t, db, to, pad, func(s stage) {
			if int(s.epoch) == len(r.stages) {
				r.stages = append(r.stages, s)
			}
		})
		if slices.Contains(at, to) {
			if err := db.Checkpoint(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// logOnly are options of a store that takes a checkpoint only where it is told.
func logOnly() *triegs.Options { return &triegs.Options{CheckpointBytes: -1} }

// tables lists the tables of the checkpoints in a store, oldest first.
func tables(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "checkpoint", "*.sst"))
	if err != nil || len(list) == 0 {
		t.Fatalf("tables of %s: %v, %v", dir, list, err)
	}
	slices.Sort(list)
	return list
}

// openAt opens a store that must be at a stage, with the epoch of the checkpoint
// that it was opened from.
func (r *recorded) openAt(t *testing.T, what, dir string, o *triegs.Options, epoch int, checkpoint triegs.Epoch) *triegs.DB {
	t.Helper()
	db, err := triegs.Open(dir, o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	r.stages[epoch].want(t, what, db)
	rep := db.Recovery()
	if rep.Checkpoint != checkpoint || rep.Epochs != uint64(epoch)-uint64(checkpoint) || rep.Created {
		t.Errorf("%s: %+v, want the checkpoint of epoch %d and a replay to %d", what, rep, checkpoint, epoch)
	}
	return db
}

// shut closes a store that must close well.
func shut(t *testing.T, what string, db *triegs.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatalf("%s: close: %v", what, err)
	}
}

// untouched checks that nothing in a directory is changed by f.
func untouched(t *testing.T, what, dir string, f func()) {
	t.Helper()
	before := listing(t, dir)
	f()
	if after := listing(t, dir); after != before {
		t.Errorf("%s: the files changed:\n%s\n%s", what, before, after)
	}
}

// listing is fingerprint with the names of empty folders.
func listing(t *testing.T, dir string) string {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		return "missing"
	}
	out := fingerprint(t, dir)
	for _, sub := range []string{".", "log", "checkpoint", "checkpoint.tmp"} {
		if list, err := os.ReadDir(filepath.Join(dir, sub)); err == nil {
			for _, e := range list {
				if e.IsDir() {
					out += "; " + filepath.Join(sub, e.Name()) + "/"
				}
			}
		}
	}
	return out
}
