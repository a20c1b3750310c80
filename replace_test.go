package triegs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestReplace: all facts of a key are replaced in one epoch, whatever column the
// key is in, whatever the same batch has done before, with windows and without.
func TestReplace(t *testing.T) {
	for _, text := range []string{"q(a, b, c) :- r(a, b), r(b, c)", "q(a, b, c) :- r(a, b), r(b, c) window 10s"} {
		t.Run(text, func(t *testing.T) {
			dir := t.TempDir()
			db := openReplace(t, dir)
			ctx := context.Background()
			if _, err := db.Register(ctx, "q", text); err != nil {
				t.Fatal(err)
			}
			edge := func(a, b string) []Term { return []Term{String(a), String(b)} }
			insert := func(a, b string) Event { return Event{Relation: "r", Tuple: edge(a, b)} }
			step := func(want string, events ...Event) {
				t.Helper()
				if _, err := db.Append(ctx, Batch{Events: events, Time: time.Unix(5, 0)}); err != nil {
					t.Fatal(err)
				}
				if got := replaceFacts(t, db); got != want {
					t.Fatalf("facts are %s, want %s", got, want)
				}
				if err := db.Verify(ctx); err != nil {
					t.Fatal(err)
				}
			}
			step("[ab1 ac2 bd1]", insert("a", "b"), insert("a", "c"), insert("a", "c"), insert("b", "d"))
			step("[ac1 ae1 bd1]", Replace("r", []Term{String("a"), {}}, edge("a", "c"), edge("a", "e"))...)
			// By the second column, on top of an insertion of the same batch.
			step("[ae1 bd1 xc1]", append([]Event{insert("y", "c")}, Replace("r", []Term{{}, String("c")}, edge("x", "c"))...)...)
			step("[ae1 bd1 xc1]", Event{Op: DeleteAll, Relation: "r", Tuple: []Term{String("never seen"), {}}})
			// A refused batch leaves no trace of an index that it needed first.
			bad := append(Replace("r", edge("b", "d")), Event{Op: Delete, Relation: "r", Tuple: edge("no", "no")})
			if _, err := db.Append(ctx, Batch{Events: bad}); !errors.Is(err, ErrNoSuchFact) {
				t.Fatalf("got %v, want ErrNoSuchFact", err)
			}
			step("[]", Event{Op: DeleteAll, Relation: "r", Tuple: []Term{{}, {}}})
			step("[ab1 bc1]", insert("a", "b"), insert("b", "c"))
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openReplace(t, dir)
			defer db.Close()
			step("[zb1]", append(Replace("r", []Term{{}, String("b")}, edge("z", "b")), Replace("r", []Term{String("b"), {}})...)...)
		})
	}
}

func openReplace(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(dir, &Options{Tick: -1})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// replaceFacts lists the facts of r with their multiplicities.
func replaceFacts(t *testing.T, db *DB) string {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list := []string{}
	for row, err := range s.Select(context.Background(), "f(a, b) :- r(a, b)") {
		if err != nil {
			t.Fatal(err)
		}
		a := row.Term(0).Lexical()
		b := row.Term(1).Lexical()
		list = append(list, fmt.Sprint(a, b, row.Multiplicity()))
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// TestReplaceBesideNewRelation: a replacement that needs an index first and a new
// relation behind it in one batch. Before the batch is an epoch, and where it is
// refused, nobody knows the relation.
func TestReplaceBesideNewRelation(t *testing.T) {
	db := openReplace(t, "")
	defer db.Close()
	ctx := context.Background()
	fact := func(op Op, relation string) Event {
		return Event{Op: op, Relation: relation, Tuple: []Term{String("a"), String("b")}}
	}
	if _, err := db.Append(ctx, Batch{Events: []Event{fact(Insert, "r")}}); err != nil {
		t.Fatal(err)
	}
	before, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	events := append(Replace("r", []Term{{}, String("b")}), fact(Insert, "s"), fact(Delete, "t"))
	if _, err := db.Append(ctx, Batch{Events: events}); !errors.Is(err, ErrNoSuchFact) {
		t.Fatalf("got %v, want ErrNoSuchFact", err)
	}
	if m := db.Metrics(); m.Relations != 1 || m.Facts != 1 {
		t.Fatalf("%d relations with %d facts behind a refused batch, want 1 with 1", m.Relations, m.Facts)
	}
	if _, err := db.Append(ctx, Batch{Events: events[:2]}); err != nil {
		t.Fatal(err)
	}
	if m := db.Metrics(); m.Relations != 2 || m.Facts != 1 {
		t.Fatalf("%d relations with %d facts, want 2 with 1", m.Relations, m.Facts)
	}
	for _, err := range before.Select(ctx, "q(a, b) :- s(a, b)") {
		t.Fatalf("an epoch before the relation has a row of it, or %v", err)
	}
	if err := db.Verify(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestReplaceErrors: what DeleteAll refuses.
func TestReplaceErrors(t *testing.T) {
	db := openReplace(t, "")
	defer db.Close()
	ctx := context.Background()
	if _, err := db.Append(ctx, Batch{Events: []Event{Edge("r", String("a"), String("b"))}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		e    Event
		want error
	}{
		{Event{Op: DeleteAll, Relation: "r", Tuple: []Term{String("a")}}, ErrArity},
		{Event{Op: DeleteAll, Relation: "r"}, ErrValue},
		{Event{Op: DeleteAll, Tuple: []Term{String("a"), {}}}, ErrValue},
		{Event{Op: DeleteAll, Relation: "r", Tuple: []Term{String("a"), {}}, ID: "x"}, ErrValue},
		{Event{Op: DeleteAll, Relation: "r", Tuple: []Term{String("a"), {}}, Value: Int(1)}, ErrValue},
		{Event{Op: DeleteAll + 1, Relation: "r", Tuple: []Term{String("a"), {}}}, ErrValue},
	} {
		if _, err := db.Append(ctx, Batch{Events: []Event{c.e}}); !errors.Is(err, c.want) {
			t.Errorf("%v: got %v, want %v", c.e, err, c.want)
		}
	}
	timed, err := Open("", &Options{EventTime: true})
	if err != nil {
		t.Fatal(err)
	}
	defer timed.Close()
	e := Event{Op: DeleteAll, Relation: "r", Tuple: []Term{String("a"), {}}, Time: time.Unix(1, 0)}
	if _, err := timed.Append(ctx, Batch{Events: []Event{e}}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("event-time mode: got %v, want ErrUnsupported", err)
	}
}
