package triegs

import (
	"context"
	"fmt"
	"testing"
)

// follow makes a subscription to the paths of two edges, behind n edges into one vertex
// in the middle, and returns the update that one edge out of it makes.
func follow(t *testing.T, n int, take func(*Update)) {
	t.Helper()
	db, err := Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Register(context.Background(), "hop", "hop(x, y, z) :- a(x, y), b(y, z)."); err != nil {
		t.Fatal(err)
	}
	sub, err := db.Subscribe(context.Background(), "hop", SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var events []Event
	for i := range n {
		events = append(events, Event{Relation: "a", Tuple: []Term{String(fmt.Sprint("x", i)), String("y")}})
	}
	events = append(events, Event{Relation: "b", Tuple: []Term{String("y"), String("z")}})
	for _, e := range [][]Event{events[:n], events[n:]} {
		if _, err := db.Append(context.Background(), Batch{Events: e}); err != nil {
			t.Fatal(err)
		}
	}
	for u, err := range sub.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		take(u)
		break
	}
}

// TestChangesAllocate: a loop over changes takes a few allocations, however many
// changes there are.
func TestChangesAllocate(t *testing.T) {
	follow(t, 500, func(u *Update) {
		walk := func() {
			n := 0
			for c, err := range u.Changes() {
				if err != nil || c.New != 1 {
					t.Fatalf("%+v, %v", c, err)
				}
				n++
			}
			if n != 500 {
				t.Fatalf("%d changes", n)
			}
		}
		walk()
		if n := testing.AllocsPerRun(20, walk); n > 8 {
			t.Errorf("500 changes take %v allocations", n)
		}
	})
}

// TestChangesNested: a loop within a loop, and one that was left, do not disturb each
// other, and rows have the terms of their own answer.
func TestChangesNested(t *testing.T) {
	follow(t, 20, func(u *Update) {
		pairs := make(map[string]int)
		for c, err := range u.Changes() {
			if err != nil {
				t.Fatal(err)
			}
			kept := c.Row.Clone()
			for d, err := range u.Changes() {
				if err != nil {
					t.Fatal(err)
				}
				pairs[fmt.Sprint(c.Row.Term(0), d.Row.Term(0), kept.Term(1), d.Row.Term(2))]++
			}
			for range u.Changes() {
				break
			}
			if kept.Term(0) != c.Row.Term(0) {
				t.Errorf("the clone has %v, the row %v", kept.Term(0), c.Row.Term(0))
			}
		}
		if len(pairs) != 400 {
			t.Errorf("%d pairs of changes, want 400", len(pairs))
		}
		for pair, n := range pairs {
			if n != 1 {
				t.Errorf("%s comes %d times", pair, n)
			}
		}
	})
}
