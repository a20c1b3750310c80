package triegs

import (
	"context"
	"testing"
	"time"
)

// TestEventTimeBetween: a query that is registered by an opening without
// event time, as the command line does it, makes nothing final.
func TestEventTimeBetween(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	timed := &Options{EventTime: true, Lateness: time.Minute}
	use := func(o *Options, do func(db *DB) error) {
		t.Helper()
		db, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := do(db); err != nil {
			t.Fatal(err)
		}
	}
	event := func(op Op, name string, sec int64) Event {
		return Event{Op: op, Relation: "r", Tuple: []Term{String(name)}, Time: time.Unix(sec, 0)}
	}
	add := func(events ...Event) func(*DB) error {
		return func(db *DB) error {
			_, err := db.Append(ctx, Batch{Events: events})
			return err
		}
	}
	use(timed, add(event(Delete, "x", 60), event(Insert, "a", 100)))
	use(nil, func(db *DB) error {
		_, err := db.Register(ctx, "q", "q(x) :- r(x)")
		return err
	})
	// In event order the retraction at 60 has taken it.
	use(timed, add(event(Insert, "x", 50)))
	use(timed, func(db *DB) error {
		s, err := db.Snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		distinct, total, err := s.Count(ctx, "q")
		if distinct != 1 || total != 1 {
			t.Errorf("%d answers, %d in all, want a alone", distinct, total)
		}
		return err
	})
}

// TestTick: while batches leave their time to the clock, windows move when no
// events come; where the last batch brought its own they do not, also not after
// opening again.
func TestTick(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := time.Unix(1000, 0)
	o := &Options{Tick: time.Millisecond, Clock: func() time.Time { return at }}
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Register(ctx, "q", "q(x) :- r(x) window 10s"); err != nil {
		t.Fatal(err)
	}
	insert := []Event{{Relation: "r", Tuple: []Term{String("a")}}}
	if _, err := db.Append(ctx, Batch{Events: insert}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	at = time.Unix(1010, 0)
	if db, err = Open(dir, o); err != nil {
		t.Fatal(err)
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := db.WaitFor(wait, 3); err != nil {
		t.Fatalf("nothing has moved time: %v", err)
	}
	if m := db.Metrics(); m.Contributions != 0 || m.Expired != 1 || !m.Time.Equal(at) {
		t.Errorf("%d contributions, %d expired, at %s", m.Contributions, m.Expired, m.Time)
	}
	// A time of its own, long ago by the clock of the next opening.
	if _, err := db.Append(ctx, Batch{Events: insert, Time: at}); err != nil {
		t.Fatal(err)
	}
	if db.ticks() {
		t.Error("the clock is looked at though batches bring their time")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	at = time.Unix(5000, 0)
	if db, err = Open(dir, o); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if db.ticks() || db.Metrics().Contributions != 1 {
		t.Error("opening again has moved time")
	}
}
