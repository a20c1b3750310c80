package triegs

import (
	"context"
	"testing"
)

// A name that is forgotten before its loss was written down is not written again.
func TestForgottenBeforeLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, err := Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Register(ctx, "q", "q(x) :- R(x)."); err != nil {
		t.Fatal(err)
	}
	s, err := db.Subscribe(ctx, "q", SubscribeOptions{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close() // always nil
	db.subscribers.Lock()
	n := db.subscribers.by["n"]
	db.loseLocked(n, "for a test")
	db.subscribers.Unlock()
	if err := db.Forget(ctx, "n"); err != nil {
		t.Fatal(err)
	}
	db.tellLost(n)
	if places := db.positions.All(); len(places) > 0 {
		t.Errorf("the places are %v", places)
	}
}
