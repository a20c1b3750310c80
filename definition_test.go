package triegs

import (
	"errors"
	"testing"
)

// A snapshot and a subscription tell of the query that they have, also when another
// one has its name.
func TestDefinitionStays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	register := func(text string) {
		if _, err := db.Register(ctx, "q", text); err != nil {
			t.Fatal(err)
		}
	}
	register("q(x) :- R(x, y).")
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.Subscribe(ctx, "q", SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := db.Drop(ctx, "q"); err != nil {
		t.Fatal(err)
	}
	register("q(y, x) :- R(x, y).")
	if q, err := snap.Query("q"); err != nil || len(q.Columns()) != 1 {
		t.Errorf("the snapshot has %v, %v", q, err)
	}
	if n := len(s.Definition().Columns()); n != 1 {
		t.Errorf("the subscription has %d columns, want 1", n)
	}
	if _, err := snap.Query("p"); !errors.Is(err, ErrNoSuchQuery) {
		t.Errorf("no query: %v", err)
	}
	_ = snap.Close() // always nil
	if _, err := snap.Query("q"); !errors.Is(err, ErrSnapshotClosed) {
		t.Errorf("a closed snapshot: %v", err)
	}
}
