package triegs

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// waiting makes a store of which three epochs with changes wait for a subscription.
func waiting(t *testing.T, opts SubscribeOptions) (*DB, *Subscription) {
	t.Helper()
	db, err := Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Register(context.Background(), "edge", "edge(x, y) :- a(x, y)."); err != nil {
		t.Fatal(err)
	}
	var sub *Subscription
	for epoch := range 4 {
		if epoch == 1 {
			if sub, err = db.Subscribe(context.Background(), "edge", opts); err != nil {
				t.Fatal(err)
			}
		}
		var b Batch
		for i := range 100 {
			b.Events = append(b.Events, Event{Relation: "a", Tuple: []Term{Int(int64(i)), Int(int64(epoch))}})
		}
		if _, err := db.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	return db, sub
}

// TestChangesOutliveTheirUpdate: a loop over changes that is still under way when the
// next update is told ends, and keeps nothing pinned.
func TestChangesOutliveTheirUpdate(t *testing.T) {
	for _, mode := range []SubscribeMode{Follow, SnapshotFirst} {
		testOutlive(t, SubscribeOptions{Mode: mode, PerEpoch: true})
	}
}

func testOutlive(t *testing.T, opts SubscribeOptions) {
	db, sub := waiting(t, opts)
	defer db.Close()
	updates := 0
	var next func() (Change, error, bool)
	var stop func()
	for u, err := range sub.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		if updates++; updates == 1 {
			next, stop = iter.Pull2(u.Changes())
			if _, err, ok := next(); err != nil || !ok {
				t.Fatalf("first change: %v, %v", err, ok)
			}
			continue
		}
		if _, err, _ := next(); !errors.Is(err, ErrSnapshotClosed) {
			t.Errorf("behind the update: %v", err)
		}
		stop()
		n := 0
		for _, err := range u.Changes() {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 100 {
			t.Errorf("%d changes in the second update", n)
		}
		break
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if published, pinned := db.engine.Current.Pinned(nil); len(pinned) > 0 {
		t.Errorf("epochs %v stay pinned at %d", pinned, published)
	}
}

// TestSnapshotOfUpdate: the snapshot of an update may be closed by whoever has it, and is
// closed behind the update; neither takes anything from the subscription.
func TestSnapshotOfUpdate(t *testing.T) {
	db, sub := waiting(t, SubscribeOptions{PerEpoch: true})
	defer db.Close()
	var seen []*Snapshot
	var last *Update
	for u, err := range sub.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen {
			if _, _, err := s.Count(context.Background(), "edge"); !errors.Is(err, ErrSnapshotClosed) {
				t.Errorf("the snapshot of epoch %d: %v", s.Epoch(), err)
			}
		}
		s := u.Snapshot()
		if s.Epoch() != u.Epoch || u.Snapshot() != s {
			t.Errorf("the snapshot of epoch %d is of %d", u.Epoch, s.Epoch())
		}
		if n, _, err := s.Count(context.Background(), "edge"); err != nil || n != 100*int64(len(seen)+2) {
			t.Errorf("%d edges, %v", n, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range u.Changes() {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 100 {
			t.Errorf("%d changes behind a closed snapshot", n)
		}
		last = u
		if seen = append(seen, s); len(seen) == 3 {
			break
		}
	}
	if s := last.Snapshot(); s.Epoch() != last.Epoch || !errors.Is(s.ended(), ErrSnapshotClosed) {
		t.Errorf("behind the loop the snapshot of epoch %d: %v", s.Epoch(), s.ended())
	}
	if _, pinned := db.engine.Current.Pinned(nil); len(pinned) != 1 {
		t.Errorf("epochs %v are pinned, want the position", pinned)
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if _, pinned := db.engine.Current.Pinned(nil); len(pinned) > 0 {
		t.Errorf("epochs %v stay pinned", pinned)
	}
}
