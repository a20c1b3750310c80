package triegs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Texts of terms that have left the memory and that the disk has lost since are
// an error of every call that needs them: no answer is left out without one, and
// nothing is called absent that cannot be read. What needs none of them goes on.
func TestTextsLost(t *testing.T) {
	for what, harm := range map[string]func(path string, b []byte) error{
		"bits": func(path string, b []byte) error {
			for i := 1000; i < len(b)-2000; i += 3000 {
				b[i] ^= 1
			}
			return os.WriteFile(path, b, 0o600)
		},
		"half": func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) },
		"file": func(path string, _ []byte) error { return os.Remove(path) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			db := spilled(t, dir)
			defer db.Close()
			tables, err := filepath.Glob(filepath.Join(dir, "checkpoint", "*.sst"))
			if err != nil || len(tables) == 0 {
				t.Fatalf("%d tables, %v", len(tables), err)
			}
			for _, path := range tables {
				b, err := os.ReadFile(path)
				if err := errors.Join(err, harm(path, b)); err != nil {
					t.Fatal(err)
				}
			}
			lost(t, db)
			if _, err := db.Append(context.Background(), Batch{Events: []Event{Edge("short", Int(1), String("a"))}}); err != nil {
				t.Errorf("an append that needs no text: %v", err)
			}
			if err := db.Checkpoint(context.Background()); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("a checkpoint: %v", err)
			}
		})
	}
}

const spilledFacts = 2000

func longTerm(i int) Term { return String(fmt.Sprintf("the long text of the term %d", i)) }

// spilled is a store with a checkpoint, whose texts are all on disk.
func spilled(t *testing.T, dir string) *DB {
	t.Helper()
	ctx := context.Background()
	db, err := Open(dir, &Options{DictionaryCacheBytes: 1, CheckpointBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for i := range spilledFacts {
		b.Events = append(b.Events, Edge("r", longTerm(i), longTerm(i%100)))
	}
	_, qerr := db.Register(ctx, "q", "q(x, y) :- r(x, y).")
	_, err = db.Append(ctx, b)
	if err := errors.Join(qerr, err, db.Checkpoint(ctx)); err != nil {
		t.Fatal(err)
	}
	return db
}

// lost checks that all calls which need texts tell that these are lost.
func lost(t *testing.T, db *DB) {
	t.Helper()
	ctx := context.Background()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var end error
	whole := 0
	for row, err := range s.Answers("q") {
		if end = err; end != nil {
			break
		}
		if row.Term(0) != (Term{}) && row.Term(1) != (Term{}) {
			whole++
		}
	}
	if !errors.Is(end, ErrCorrupt) || whole == spilledFacts {
		t.Errorf("%d whole answers and %v, want ErrCorrupt", whole, end)
	}
	calls := map[string]func(i int) error{
		"select": func(i int) error {
			for _, err := range s.Select(ctx, fmt.Sprintf("s(y) :- r(%s, y).", longTerm(i))) {
				return err
			}
			return ErrNoAnswer
		},
		"lookup": func(i int) error { _, err := s.Lookup("q", longTerm(i), longTerm(i%100)); return err },
		"append": func(i int) error {
			_, err := db.Append(ctx, Batch{Events: []Event{Edge("other", longTerm(i), Int(1))}})
			return err
		},
		"retract": func(i int) error {
			_, err := db.Append(ctx, Batch{IgnoreMissing: i%2 == 0, Events: []Event{
				{Op: Delete, Relation: "r", Tuple: []Term{longTerm(i), longTerm(i % 100)}}, Edge("r", longTerm(i), longTerm(i%100))}})
			return err
		},
		"register": func(i int) error {
			name := fmt.Sprintf("q%d", i)
			_, err := db.Register(ctx, name, fmt.Sprintf("%s(y) :- r(%s, y).", name, longTerm(i)))
			return err
		},
	}
	for name, call := range calls {
		told := 0
		for i := 0; i < spilledFacts; i += 25 {
			if err := call(i); errors.Is(err, ErrCorrupt) {
				told++
			} else if err != nil {
				t.Fatalf("%s of term %d: %v", name, i, err)
			}
		}
		if told == 0 {
			t.Errorf("%s: every text was read", name)
		}
	}
}
