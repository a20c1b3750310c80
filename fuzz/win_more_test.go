package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// Readers beside a writer whose windows slide: each state is that of one logical
// time, in all windows, and goes on to be it.
func TestHistoryWindows(t *testing.T) {
	const epochs, readers = 3_000, 4
	db, err := triegs.Open("", &triegs.Options{Clock: still, Tick: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for name, text := range map[string]string{
		"long": "long(x) :- R(x) window 10s.", "short": "short(x) :- R(x) window 4s.", "step": "step(x) :- R(x) window 6s slide 3s.",
		"last": "last(x) :- R(x) last 7.", "both": "both(x) :- R(x)[10s], R(x)[4s].",
	} {
		if _, err := db.Register(ctx, name, text); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	seen := make([]int, readers)
	var wait sync.WaitGroup
	for i := range readers {
		wait.Go(func() {
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				if err := lookThrough(db); err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
				seen[i]++
			}
		})
	}
	for i := range int64(epochs) {
		b := triegs.Batch{Time: time.Unix(i, 0), Events: []triegs.Event{{Relation: "R", Tuple: []triegs.Term{triegs.Int(i)}}}}
		if _, err := db.Append(ctx, b); err != nil {
			t.Error(err)
			break
		}
		if i%16 == 0 {
			time.Sleep(100 * time.Microsecond) // so that readers meet many states
		}
	}
	close(done)
	wait.Wait()
	t.Logf("states read: %v", seen)
	if err := errors.Join(db.Verify(ctx), db.Close()); err != nil {
		t.Error(err)
	}
}

// lookThrough pins a state of TestHistoryWindows, in which R(i) came at second i,
// and reads it twice.
func lookThrough(db *triegs.DB) error {
	s, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	now := s.Time().Unix()
	if s.Time().Year() < 1970 {
		return nil // before the first
	}
	for range 2 {
		for name, w := range map[string]struct{ from, to int64 }{
			"long": {now - 9, now}, "short": {now - 3, now}, "step": {now - now%3 - 5, now - now%3}, "last": {now - 6, now}, "both": {now - 3, now},
		} {
			n := int64(0)
			for row, err := range s.Answers(name) {
				if err != nil {
					return err
				}
				if x, _ := row.Term(0).AsInt(); x < w.from || x > w.to || row.Multiplicity() != 1 {
					return fmt.Errorf("%s at %d: %d x%d", name, now, x, row.Multiplicity())
				}
				n++
			}
			if want := w.to - max(w.from, 0) + 1; n != want {
				return fmt.Errorf("%s at %d: %d answers, want %d", name, now, n, want)
			}
		}
	}
	return nil
}

// In event-time mode the clock alone makes a source idle.
func TestWIN07Ticker(t *testing.T) {
	var clock hand
	clock.set(time.Unix(1000, 0))
	w := newWorld(t, t.TempDir(), &triegs.Options{
		Clock: clock.now, EventTime: true, Sources: []string{"A", "B"}, IdleTimeout: time.Minute, Tick: time.Millisecond,
	})
	w.register("q", "q(x, y) :- R(x, y) window 10s.")
	b := dated(1, 51, 50)
	b.Source = "A"
	w.append(b)
	before := w.epoch()
	clock.set(time.Unix(1060, 0))
	time.Sleep(20 * time.Millisecond)
	if got := w.epoch(); got != before {
		t.Errorf("epoch %d after %d: nothing is idle yet", got, before)
	}
	// A is heard of again, so that B alone is idle.
	w.append(triegs.Batch{Source: "A", Offset: 51, Watermark: time.Unix(50, 0)})
	clock.set(time.Unix(1061, 0))
	w.until(before + 2)
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", 10, 10)
	w.waiting(0)
}

// What waits is applied when its time comes, also after the store was opened in
// arrival mode.
func TestWaitingInArrivalMode(t *testing.T) {
	for _, saved := range []bool{false, true} {
		set := eventTimes
		set.disk = true
		w := newTimed(t, set, triegs.Options{})
		w.register("q", "q(x) :- R(x, y) window 1000s.")
		w.append(dated(1, 101, 60))
		w.options.EventTime = false
		w.restart(saved)
		w.waiting(40)
		w.append(triegs.Batch{Time: time.Unix(80, 0), Events: events("+R(a,b)")})
		w.waiting(20)
		s := w.snapshot()
		w.wantCount(s, "q", 81, 81)
		s.Close()
		w.options.EventTime = true
		w.restart(saved)
		w.waiting(20)
		w.advance(100)
		w.waiting(0)
	}
}

// A store with windows that is opened to be read stands still.
func TestWindowsReadOnly(t *testing.T) {
	for _, saved := range []bool{false, true} {
		for _, mode := range []bool{false, true} {
			set := setting{unit: time.Second, eventTime: mode, disk: true}
			w := newTimed(t, set, triegs.Options{})
			w.register("q", "q(x, y) :- R(x, y) window 10s.")
			w.put(1, "+R(a,b)@1 +R(c,d)@5")
			w.put(7, "+R(e,f)@7 +R(g,h)@9")
			w.options.ReadOnly, w.options.Tick = true, time.Millisecond
			w.options.Clock = func() time.Time { return time.Unix(1<<40, 0) }
			if saved {
				if err := w.db.Checkpoint(w.ctx); err != nil {
					t.Fatal(err)
				}
			}
			w.restart(false)
			time.Sleep(10 * time.Millisecond)
			w.wantNow(7)
			w.want("q", "(a,b):1 (c,d):1 (e,f):1")
			if _, err := w.db.Advance(w.ctx, w.at(9)); !errors.Is(err, triegs.ErrReadOnly) {
				t.Errorf("advance: %v", err)
			}
			if err := w.db.Retain(w.ctx, "R", time.Second); !errors.Is(err, triegs.ErrReadOnly) {
				t.Errorf("retain: %v", err)
			}
		}
	}
}

// A time that int64 cannot hold is refused, and leaves nothing.
func TestTimesRefused(t *testing.T) {
	for _, mode := range []bool{false, true} {
		w := newTimed(t, setting{unit: time.Second, eventTime: mode}, triegs.Options{})
		w.register("q", "q(x, y) :- R(x, y) window 10s.")
		w.put(5, "+R(a,b)")
		before := w.epoch()
		far := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, at := range []time.Time{far, {}, time.Unix(0, math.MaxInt64).Add(1), time.Unix(0, math.MinInt64).Add(-1)} {
			if _, err := w.db.Advance(w.ctx, at); !errors.Is(err, triegs.ErrTime) {
				t.Errorf("advance to %v: %v", at, err)
			}
		}
		b := w.batch(6, "+R(c,d)")
		if mode {
			b.Watermark = far
		} else {
			b.Time = far
		}
		w.refuseBatch(triegs.ErrTime, b)
		for what, err := range map[string]error{
			"a negative span":          w.db.Retain(w.ctx, "R", -1),
			"a relation that is not":   w.db.Retain(w.ctx, "S", time.Second),
			"a window of nothing":      registered(w, triegs.Window(0, time.Second)),
			"a negative window":        registered(w, triegs.Window(-1, 0)),
			"a negative slide":         registered(w, triegs.Window(time.Second, -1)),
			"a window beside the text": registered(w, triegs.Window(time.Second, 0)),
		} {
			if !errors.Is(err, triegs.ErrValue) {
				t.Errorf("%s: got %v, want ErrValue", what, err)
			}
		}
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		if _, err := w.db.Advance(ended, w.at(100)); !errors.Is(err, context.Canceled) {
			t.Errorf("advance when the context has ended: %v", err)
		}
		if got := w.epoch(); got != before {
			t.Errorf("epoch %d after %d", got, before)
		}
		w.wantNow(5)
		w.want("q", "(a,b):1")
	}
}

// registered is the refusal of a query with a window of its own beside an option.
func registered(w *timed, o triegs.QueryOption) error {
	_, err := w.db.Register(w.ctx, "other", "other(x, y) :- R(x, y) window 3s.", o)
	return err
}

// The largest windows and the ends of int64.
func TestWindowsAtTheEnds(t *testing.T) {
	// The least time itself is what a store says that has none yet.
	const least, most = int64(math.MinInt64), int64(math.MaxInt64)
	for _, disk := range []bool{false, true} {
		w := newTimed(t, setting{unit: time.Nanosecond, disk: disk}, triegs.Options{Clock: func() time.Time { return time.Unix(0, least) }})
		w.register("ever", "ever(x) :- R(x) window 2562047h47m16.854775807s.")
		w.register("long", "long(x) :- R(x) window 2562047h47m16.854775806s.")
		w.register("ten", "ten(x) :- R(x) window 10ns.")
		w.run(setting{disk: disk}, fmt.Sprintf(`
			%d +R(a) | ever (a):1 | long (a):1 | ten (a):1
			%d | ever (a):1 | long (a):1 | ten (a):1
			%d | ever (a):1 | long (a):1 | ten
			-2 | ever (a):1 | long (a):1 | ten
			-1 | ever (a):1 | long | ten
			0 +R(b)@%d +R(c)@%d | ever (a):1 | long | ten
			%d | ever (a):1 (b):1 | long (b):1 | ten (b):1
			%d | ever (a):1 (b):1 (c):1 | long (b):1 (c):1 | ten (b):1 (c):1`,
			least+1, least+10, least+11, most-9, most, most-9, most))
	}
}

// A gap of any length costs what expires and not what it spans.
func TestAdvanceOverAGap(t *testing.T) {
	w := newTimed(t, setting{unit: time.Nanosecond}, triegs.Options{})
	w.register("q", "q(x) :- R(x) window 10ns slide 1ns.")
	w.register("p", "p(x) :- R(x) window 7ns slide 3ns.")
	within(t, 30*time.Second, "crossing int64", func() {
		for i := int64(math.MinInt64 / 2); i < math.MaxInt64/2; i += math.MaxInt64 / 16 {
			w.put(i, "+R(a)")
			w.want("q", "(a):1")
		}
	})
}
