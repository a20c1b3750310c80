package triegs

import (
	"context"
	"errors"
	"sync/atomic"
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

// TestAllIdle: where all sources are silent time goes on to the greatest
// watermark, also where they fell silent together, or with the store.
func TestAllIdle(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var now atomic.Int64
	o := &Options{
		EventTime: true, IdleTimeout: 100, Tick: time.Millisecond,
		Clock: func() time.Time { return time.Unix(0, now.Load()) },
	}
	for round := range 2 {
		db, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			for i, name := range []string{"A", "B"} {
				at := time.Unix(0, int64(100+50*i))
				b := Batch{Source: name, Watermark: time.Unix(0, int64(100+100*i)), Events: []Event{{Relation: "r", Tuple: []Term{String(name)}, Time: at}}}
				if _, err := db.Append(ctx, b); err != nil {
					t.Fatal(err)
				}
			}
			// Its second event waits; the store ends before anybody is idle.
			if m := db.Metrics(); m.Waiting != 1 || m.HeldBy != "A" {
				t.Fatalf("%d events wait for %q, want 1 for A", m.Waiting, m.HeldBy)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		now.Add(202)
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		if err := db.WaitFor(wait, 3); err != nil {
			t.Fatalf("time waits for silent sources: %v", err)
		}
		cancel()
		if m := db.Metrics(); m.Waiting != 0 || m.Time.UnixNano() != 200 {
			t.Errorf("%d events wait at %s", m.Waiting, m.Time)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplayedWatermark: a watermark counts though the events of its batch are
// there already; with an old one the batch is no epoch.
func TestReplayedWatermark(t *testing.T) {
	ctx := context.Background()
	db, err := Open("", &Options{EventTime: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	events := []Event{{Relation: "r", Tuple: []Term{String("a")}, Time: time.Unix(0, 150)}}
	for i, c := range []struct {
		mark  int64
		epoch Epoch
		time  int64
	}{{200, 1, 200}, {200, 1, 200}, {220, 2, 220}, {210, 2, 220}} {
		e, err := db.Append(ctx, Batch{Source: "s", Events: events, Watermark: time.Unix(0, c.mark)})
		if err != nil {
			t.Fatal(err)
		}
		if m := db.Metrics(); e != c.epoch || m.Time.UnixNano() != c.time || m.Contributions != 1 {
			t.Errorf("%d: epoch %d at %d with %d contributions, want %d at %d with 1", i, e, m.Time.UnixNano(), m.Contributions, c.epoch, c.time)
		}
	}
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

// TestTimeOfTimelessEvents: an event without a time has, in event-time mode, that
// to which its source has come with the events before it, also those of its own
// batch, and so is not late by itself.
func TestTimeOfTimelessEvents(t *testing.T) {
	db, err := Open("", &Options{EventTime: true, LatePolicy: LateRefuse, Tick: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.Register(ctx, "q", "q(x) :- r(x) window 10ns"); err != nil {
		t.Fatal(err)
	}
	at := func(x, ns int64) Event {
		return Event{Relation: "r", Tuple: []Term{Int(x)}, Time: time.Unix(0, ns)}
	}
	timeless := Event{Relation: "r", Tuple: []Term{Int(9)}}
	if _, err := db.Append(ctx, Batch{Source: "s", Events: []Event{timeless}}); !errors.Is(err, ErrTime) {
		t.Fatalf("got %v for an event that nothing gives a time, want ErrTime", err)
	}
	if _, err := db.Append(ctx, Batch{Source: "s", Events: []Event{at(1, 100), timeless, at(2, 500), timeless}}); err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	row, err := snap.Lookup("q", Int(9))
	if err != nil || row.Multiplicity() != 1 {
		t.Fatalf("got %v, %v: want the one that came at 500 ns, and not that of 100 ns", row, err)
	}
}
