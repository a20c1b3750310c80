package fuzz

import (
	"errors"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// waiting checks how many events wait.
func (w *world) waiting(n int) {
	w.Helper()
	if got := w.db.Metrics().Waiting; got != n {
		w.Fatalf("%d events wait, want %d", got, n)
	}
}

// dated is span with an event time of its number for each event, and a watermark.
func dated(from, to int, mark int64) triegs.Batch {
	b := span(from, to)
	b.Time, b.Watermark = time.Time{}, time.Unix(mark, 0)
	for i := range b.Events {
		b.Events[i].Time = time.Unix(int64(from+i), 0)
	}
	return b
}

// What waits for its time counts as taken: it is there after a restart, and is
// skipped when it comes again.
func TestSRC01EventTime(t *testing.T) {
	for _, saved := range []bool{false, true} {
		set := eventTimes
		set.disk = true
		var e ears
		w := newTimed(t, set, triegs.Options{OnEvent: func(n triegs.Notice) { e.heard = append(e.heard, n) }})
		w.register("q", "q(x) :- R(x, y) window 1000s.")
		w.append(dated(1, 101, 60))
		w.waiting(40)
		w.restart(saved)
		w.waiting(40)
		w.wantNext("s", 101, true)
		before := w.epoch()
		if got := w.append(dated(50, 151, 60)); got != before+1 {
			t.Errorf("the overlapping batch is epoch %d, want %d", got, before+1)
		}
		if len(e.heard) != 1 || e.heard[0].Kind != triegs.NoticeReplay || e.heard[0].Count != 51 {
			t.Errorf("told %+v, want a replay of 51", e.heard)
		}
		w.waiting(90)
		s := w.snapshot()
		w.wantCount(s, "q", 60, 60)
		s.Close()
		w.restart(saved)
		w.waiting(90)
		w.wantNow(60)
		w.append(dated(151, 151, 150))
		w.waiting(0)
		s = w.snapshot()
		w.wantCount(s, "q", 150, 150)
		s.Close()
		w.wantNext("s", 151, true)
	}
}

// Gaps are the same for events that wait.
func TestSRC02EventTime(t *testing.T) {
	w := newTimed(t, eventTimes, triegs.Options{DenseSources: true})
	w.register("q", "q(x) :- R(x, y) window 1000s.")
	w.append(dated(1, 11, 0))
	w.refuseBatch(triegs.ErrGap, dated(15, 17, 100))
	w.waiting(10)
	w.append(dated(11, 12, 11))
	w.waiting(0)
	w.wantNext("s", 12, true)
}

// A source that begins anew begins with its offsets; time does not go back for it.
func TestSRC03EventTime(t *testing.T) {
	set := eventTimes
	set.disk = true
	w := newTimed(t, set, triegs.Options{LatePolicy: triegs.LateDrop})
	w.register("q", "q(x) :- R(x, y) window 1000s.")
	w.append(dated(50, 60, 55))
	if err := w.db.ResetSource(w.ctx, "s", "second"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.wantNow(55)
		w.wantNext("s", 0, true)
		w.waiting(4)
		w.restart(false)
	}
	w.append(dated(1, 3, 3))
	w.wantNow(55)
	w.wantLate(0, 2, 0, 0)
	w.wantNext("s", 3, true)
	w.append(dated(60, 61, 60))
	w.wantNow(60)
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", 11, 11)
}

// Positions, watermarks and what waits move together, for several sources in one
// epoch.
func TestSRC05EventTime(t *testing.T) {
	for _, saved := range []bool{false, true} {
		set := eventTimes
		set.disk = true
		w := newTimed(t, set, triegs.Options{Sources: []string{"A", "B"}})
		w.register("q", "q(x) :- R(x, y) window 1000s.")
		from := func(source string, from, to int, mark int64) triegs.Batch {
			b := dated(from, to, mark)
			b.Source = source
			return b
		}
		before := w.epoch()
		e, err := w.db.AppendAll(w.ctx, from("A", 10, 20, 30), from("B", 7, 9, 12))
		if err != nil || e != before+1 {
			t.Fatalf("epoch %d, %v", e, err)
		}
		check := func(now int64, waiting int, held string, next map[string]uint64, answers int64) {
			t.Helper()
			for range 2 {
				w.wantNow(now)
				w.waiting(waiting)
				if got := w.db.Metrics().HeldBy; got != held {
					t.Errorf("held by %q, want %q", got, held)
				}
				for source, n := range next {
					w.wantNext(source, n, true)
				}
				s := w.snapshot()
				w.wantCount(s, "q", answers, answers)
				s.Close()
				w.restart(saved)
			}
		}
		check(12, 7, "B", map[string]uint64{"A": 20, "B": 9}, 5)
		// A source that nobody has spoken of is waited for from its first batch.
		if _, err := w.db.AppendAll(w.ctx, from("B", 100, 101, 40), from("C", 0, 1, 14)); err != nil {
			t.Fatal(err)
		}
		check(14, 6, "C", map[string]uint64{"A": 20, "B": 101, "C": 1}, 8)
		w.append(from("C", 1, 1, 99))
		check(30, 1, "A", map[string]uint64{"A": 20, "B": 101, "C": 1}, 13)
	}
}

// A late event that refuses its batch can be passed over.
func TestSRC06EventTime(t *testing.T) {
	set := eventTimes
	set.disk = true
	w := newTimed(t, set, triegs.Options{LatePolicy: triegs.LateRefuse})
	w.register("q", "q(x) :- R(x, y) window 1000s.")
	w.append(dated(0, 7, 6))
	bad := dated(7, 8, 8)
	bad.Events[0].Time = time.Unix(2, 0)
	for i := range 3 {
		err := w.refuseBatch(triegs.ErrLate, bad)
		if !errors.Is(err, triegs.ErrLate) {
			t.Fatal(err)
		}
		w.wantLate(0, 0, uint64(i+1), 0)
		w.wantNext("s", 7, true)
		w.wantNow(6)
	}
	if err := w.db.SkipTo(w.ctx, "s", 8); err != nil {
		t.Fatal(err)
	}
	w.restart(false)
	w.wantNext("s", 8, true)
	w.append(dated(8, 9, 8))
	w.wantNow(8)
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", 8, 8)
}
