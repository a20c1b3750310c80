package fuzz

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

func TestWIN01(t *testing.T) {
	playEverywhere(t, "q(x, y) :- R(x, y) window 10u.", `
		0 +R(a,b) | q (a,b):1
		1 | q (a,b):1
		2 | q (a,b):1
		3 | q (a,b):1
		4 | q (a,b):1
		5 | q (a,b):1
		6 | q (a,b):1
		7 | q (a,b):1
		8 | q (a,b):1
		9 | q (a,b):1
		10 | q
		11 | q`)
}

// Copies come and go each at its own time, whether they were appended then or
// before.
func TestWIN02(t *testing.T) {
	const q = "q(x, y) :- R(x, y) window 10u."
	playEverywhere(t, q, `
		0 +R(a,b)@1 +R(a,b)@4 | q
		1 | q (a,b):1
		4 | q (a,b):2
		10 | q (a,b):2
		11 | q (a,b):1
		13 | q (a,b):1
		14 | q`)
	playEverywhere(t, q, `
		0 | q
		1 +R(a,b) | q (a,b):1
		4 +R(a,b) | q (a,b):2
		10 | q (a,b):2
		11 | q (a,b):1
		13 | q (a,b):1
		14 | q`)
}

// Equal times in every order of arrival: three go in one step.
func TestWIN03(t *testing.T) {
	const r, s = "+R(a,b)@7", "+S(b,c)@7"
	for i, batches := range [][]string{
		{r + " " + r, r, s}, {s, r, r + " " + r}, {r, s, r + " " + r}, {r + " " + s + " " + r, r}, {r + " " + r + " " + r + " " + s},
	} {
		for _, set := range settings(i > 0) {
			t.Run(fmt.Sprintf("%d, %v", i, set), func(t *testing.T) {
				t.Parallel()
				w := newTimed(t, set, triegs.Options{})
				w.register("q", w.text("q(x, y, z) :- R(x, y), S(y, z) window 5u."))
				w.put(6, batches[0])
				for _, b := range batches[1:] {
					w.put(6, b)
				}
				w.run(set, `
					7 | q (a,b,c):3
					8 | q (a,b,c):3
					9 | q (a,b,c):3
					10 | q (a,b,c):3
					11 | q (a,b,c):3`)
				before := w.epoch()
				expired := w.db.Metrics().Expired
				if e := w.advance(12); e != before+1 {
					t.Errorf("the expiry is epoch %d after %d", e, before)
				}
				w.want("q", "")
				if got := w.db.Metrics().Expired - expired; got != 4 {
					t.Errorf("%d contributions expired, want 4", got)
				}
			})
		}
	}
}

func TestWIN04(t *testing.T) {
	playEverywhere(t, "q(x, y, z) :- R(x, y), S(y, z) window 10u.", `
		1 +R(a,b) | q
		7 | q
		8 +S(b,c) | q (a,b,c):1
		9 | q (a,b,c):1
		10 | q (a,b,c):1
		11 | q
		12 +R(a,b) | q (a,b,c):1
		17 | q (a,b,c):1
		18 | q
		30 | q`)
}

// Times before 1970, and where the steps of a slide are there.
func TestWIN05(t *testing.T) {
	playEverywhere(t, "q(x, y) :- R(x, y) window 10u.", `
		-20 +R(a,b)@-15 | q
		-15 | q (a,b):1
		-11 | q (a,b):1
		-6 | q (a,b):1
		-5 | q`)
	playEverywhere(t, "q(x, y) :- R(x, y) window 10u slide 5u.", `
		-20 +R(a,b)@-15 | q
		-16 | q
		-15 | q (a,b):1
		-6 | q (a,b):1
		-5 | q`)
	// A bucket shows its first moment, and not the next.
	playEverywhere(t, "q(x) :- R(x) window 1u slide 5u.", `
		-20 +R(a)@-15 +R(b)@-14 +R(c)@-5 +R(d)@-4 +R(e)@0 +R(f)@1 | q
		-15 | q (a):1
		-11 | q (a):1
		-10 | q
		-6 | q
		-5 | q (c):1
		-1 | q (c):1
		0 | q (e):1
		4 | q (e):1
		5 | q`)
}

// lateEars collect what is told of late events.
type lateEars struct {
	sync.Mutex
	heard []triegs.LateEvent
}

func (l *lateEars) hear(e triegs.LateEvent) {
	l.Lock()
	defer l.Unlock()
	l.heard = append(l.heard, e)
}

// eventTimes is a setting in memory in event-time mode.
var eventTimes = setting{unit: time.Second, eventTime: true}

// wantLate checks the counters of late events.
func (w *timed) wantLate(accepted, dropped, refused, outside uint64) {
	w.Helper()
	l := w.db.Metrics().Late
	if l.Accepted != accepted || l.Dropped != dropped || l.Refused != refused || l.Outside != outside {
		w.Fatalf("late: %+v, want %d accepted, %d dropped, %d refused, %d outside", l, accepted, dropped, refused, outside)
	}
}

// What comes late within the allowed lateness is no matter; behind it the policy
// decides, and tells.
func TestWIN06(t *testing.T) {
	for _, tc := range []struct {
		name     string
		lateness time.Duration
		policy   triegs.LatePolicy
		event    int64
		visible  bool
		counts   [4]uint64 // accepted, dropped, refused, outside
		told     int
	}{
		{"within", 5, triegs.LateDrop, 96, true, [4]uint64{}, 0},
		{"behind, dropped", 3, triegs.LateDrop, 96, false, [4]uint64{0, 1, 0, 0}, 1},
		{"behind, refused", 3, triegs.LateRefuse, 96, false, [4]uint64{0, 0, 1, 0}, 0},
		{"behind, accepted", 3, triegs.LateAccept, 96, true, [4]uint64{1, 0, 0, 0}, 1},
		{"behind every window, accepted", 3, triegs.LateAccept, 90, false, [4]uint64{1, 0, 0, 1}, 1},
		{"behind every window, within", 20, triegs.LateDrop, 90, false, [4]uint64{0, 0, 0, 1}, 0},
	} {
		for _, disk := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, disk %v", tc.name, disk), func(t *testing.T) {
				var ears lateEars
				set := eventTimes
				set.disk = disk
				w := newTimed(t, set, triegs.Options{Lateness: tc.lateness * time.Second, LatePolicy: tc.policy, OnLate: ears.hear})
				w.register("q", "q(x, y) :- R(x, y) window 10s.")
				w.put(100, "+R(x,y)")
				late := w.batch(100, fmt.Sprintf("+R(a,b)@%d", tc.event))
				before := w.epoch()
				_, err := w.db.Append(w.ctx, late)
				next, there := uint64(2), "(x,y):1"
				switch {
				case tc.policy == triegs.LateRefuse:
					if !errors.Is(err, triegs.ErrLate) || w.epoch() != before {
						t.Errorf("got %v at epoch %d, want ErrLate at %d", err, w.epoch(), before)
					}
					next = 1
				case err != nil:
					t.Fatal(err)
				}
				if tc.visible {
					there += " (a,b):1"
				}
				w.want("q", there)
				w.wantNext("s", next, true)
				w.wantLate(tc.counts[0], tc.counts[1], tc.counts[2], tc.counts[3])
				if len(ears.heard) != tc.told {
					t.Fatalf("told %+v, want %d", ears.heard, tc.told)
				}
				for _, e := range ears.heard {
					if e.Source != "s" || e.Offset != 1 || !e.Time.Equal(w.at(100)) || !e.Event.Time.Equal(w.at(tc.event)) ||
						len(e.Event.Tuple) != 2 || e.Dropped != (tc.policy == triegs.LateDrop) {
						t.Errorf("told %+v", e)
					}
				}
				if disk {
					w.restart(tc.lateness == 3)
					w.wantNext("s", next, true)
					w.wantNow(100)
				}
				w.advance(105)
				w.want("q", there)
				w.advance(106)
				w.want("q", "(x,y):1")
			})
		}
	}
}

// hand is a clock that the test moves.
type hand struct{ ns atomic.Int64 }

func (h *hand) now() time.Time   { return time.Unix(0, h.ns.Load()) }
func (h *hand) set(at time.Time) { h.ns.Store(at.UnixNano()) }

// A source that is silent holds time only until it is idle.
func TestWIN07(t *testing.T) {
	var clock hand
	clock.set(time.Unix(1000, 0))
	w := newTimed(t, eventTimes, triegs.Options{
		Clock: clock.now, Sources: []string{"A", "B"}, IdleTimeout: time.Minute, Lateness: 5 * time.Second, LatePolicy: triegs.LateDrop,
	})
	w.register("q", "q(x) :- R(x) window 10s.")
	feed := func(source string, offset uint64, times ...int64) {
		t.Helper()
		b := triegs.Batch{Source: source, Offset: offset}
		for _, at := range times {
			b.Events = append(b.Events, triegs.Event{Relation: "R", Tuple: []triegs.Term{triegs.Int(at)}, Time: w.at(at)})
		}
		w.append(b)
	}
	for i := int64(1); i <= 50; i++ {
		feed("A", uint64(i), i)
	}
	w.want("q", "")
	if m := w.db.Metrics(); m.HeldBy != "B" || m.Waiting != 50 {
		t.Errorf("held by %q, %d wait; want B, 50", m.HeldBy, m.Waiting)
	}
	clock.set(time.Unix(1059, 0))
	feed("A", 51, 50)
	w.want("q", "")
	clock.set(time.Unix(1061, 0))
	feed("A", 52, 50)
	w.wantNow(50)
	w.want("q", "(41):1 (42):1 (43):1 (44):1 (45):1 (46):1 (47):1 (48):1 (49):1 (50):3")
	if m := w.db.Metrics(); m.Waiting != 0 {
		t.Errorf("%d wait", m.Waiting)
	}
	feed("B", 1, 45)
	w.wantNow(50)
	w.wantLate(0, 0, 0, 0)
	feed("B", 2, 20)
	w.wantNow(50)
	w.wantLate(0, 1, 0, 0)
	w.want("q", "(41):1 (42):1 (43):1 (44):1 (45):2 (46):1 (47):1 (48):1 (49):1 (50):3")
}

// Without an idle timeout time waits for ever, and it is told for whom.
func TestWIN07Held(t *testing.T) {
	var clock hand
	dir := t.TempDir()
	o := triegs.Options{Clock: clock.now, EventTime: true, Sources: []string{"A", "B"}, Tick: -1}
	w := newWorld(t, dir, &o)
	w.register("q", "q(x) :- R(x) window 10s.")
	for i := int64(1); i <= 50; i++ {
		clock.set(time.Unix(i*1e6, 0))
		w.append(triegs.Batch{Source: "A", Offset: uint64(i), Events: []triegs.Event{
			{Relation: "R", Tuple: []triegs.Term{triegs.Int(i)}, Time: time.Unix(i, 0)}}})
	}
	for range 2 {
		w.want("q", "")
		if m := w.db.Metrics(); m.HeldBy != "B" || m.Waiting != 50 {
			t.Errorf("held by %q, %d wait; want B, 50", m.HeldBy, m.Waiting)
		}
		w.reopen(dir, &o)
	}
	w.append(triegs.Batch{Source: "B", Offset: 1, Watermark: time.Unix(12, 0)})
	w.want("q", "(3):1 (4):1 (5):1 (6):1 (7):1 (8):1 (9):1 (10):1 (11):1 (12):1")
	w.append(triegs.Batch{Source: "B", Offset: 1, Watermark: time.Unix(1000, 0)})
	if m := w.db.Metrics(); m.HeldBy != "A" || m.Waiting != 0 {
		t.Errorf("held by %q, %d wait; want A, 0", m.HeldBy, m.Waiting)
	}
}

// What was accepted and waits is not late when its source is idle.
func TestWIN08(t *testing.T) {
	var clock hand
	clock.set(time.Unix(1000, 0))
	for _, disk := range []bool{false, true} {
		set := eventTimes
		set.disk = disk
		w := newTimed(t, set, triegs.Options{
			Clock: clock.now, Sources: []string{"A", "B"}, IdleTimeout: time.Minute, LatePolicy: triegs.LateRefuse,
		})
		w.register("q", "q(x) :- R(x) window 1000s.")
		b := triegs.Batch{Source: "B", Watermark: w.at(29)}
		for at := int64(30); at < 40; at++ {
			b.Events = append(b.Events, triegs.Event{Relation: "R", Tuple: []triegs.Term{triegs.Int(at)}, Time: w.at(at)})
		}
		w.append(b)
		w.append(triegs.Batch{Source: "A", Watermark: w.at(100)})
		w.wantNow(29)
		w.want("q", "")
		if disk {
			w.restart(true)
		}
		clock.set(clock.now().Add(2 * time.Minute))
		w.append(triegs.Batch{Source: "A", Watermark: w.at(100)})
		w.wantNow(100)
		w.want("q", "(30):1 (31):1 (32):1 (33):1 (34):1 (35):1 (36):1 (37):1 (38):1 (39):1")
		w.wantLate(0, 0, 0, 0)
	}
}

// The lateness is counted once.
func TestWIN09(t *testing.T) {
	w := newTimed(t, eventTimes, triegs.Options{Lateness: 5 * time.Second, LatePolicy: triegs.LateDrop})
	w.register("q", "q(x) :- R(x) window 100s.")
	for i, at := range []int64{100, 95, 94, 91} {
		w.append(triegs.Batch{Source: "s", Offset: uint64(i), Events: []triegs.Event{
			{Relation: "R", Tuple: []triegs.Term{triegs.Int(at)}, Time: w.at(at)}}})
	}
	w.want("q", "(100):1 (95):1")
	w.wantLate(0, 2, 0, 0)
	w.wantNow(100)
	w.wantNext("s", 4, true)
}

// A clock that steps back does not move time.
func TestWIN10(t *testing.T) {
	for _, set := range []setting{{unit: time.Second}, {unit: time.Second, disk: true}, {unit: time.Second, disk: true, saved: true}} {
		t.Run(set.String(), func(t *testing.T) {
			var clock hand
			w := newTimed(t, set, triegs.Options{Clock: clock.now})
			clock.set(w.at(99))
			w.register("q", "q(x, y) :- R(x, y) window 10s.")
			for i, reads := range []int64{100, 101, 41, 42, 102} {
				clock.set(w.at(reads))
				w.do("+R(a,b)")
				w.wantNow([]int64{100, 101, 101, 101, 102}[i])
				w.want("q", fmt.Sprintf("(a,b):%d", i+1))
				if set.disk {
					w.restart(set.saved)
				}
			}
			for _, step := range []struct{ reads, now, left int64 }{
				{109, 109, 5}, {42, 109, 5}, {110, 110, 4}, {41, 110, 4}, {111, 111, 1}, {112, 112, 0},
			} {
				clock.set(w.at(step.reads))
				w.append(triegs.Batch{})
				w.wantNow(step.now)
				if want := fmt.Sprintf("(a,b):%d", step.left); step.left > 0 {
					w.want("q", want)
				} else {
					w.want("q", "")
				}
			}
			if got := w.db.Metrics().Expired; !set.disk && got != 5 {
				t.Errorf("%d expired, want 5", got)
			}
		})
	}
}

// The clock alone makes things expire, each once, also where it is set back.
func TestWIN10Ticker(t *testing.T) {
	var clock hand
	clock.set(time.Unix(100, 0))
	w := newWorld(t, t.TempDir(), &triegs.Options{Clock: clock.now, Tick: time.Millisecond})
	w.register("q", "q(x, y) :- R(x, y) window 10s.")
	w.do("+R(a,b)")
	clock.set(time.Unix(105, 0))
	w.do("+R(c,d)")
	before := w.epoch()
	clock.set(time.Unix(50, 0))
	time.Sleep(20 * time.Millisecond)
	clock.set(time.Unix(109, 999_999_999))
	time.Sleep(20 * time.Millisecond)
	w.want("q", "(a,b):1 (c,d):1")
	if got := w.epoch(); got != before {
		t.Errorf("epoch %d after %d: a tick without anything due is no epoch", got, before)
	}
	clock.set(time.Unix(110, 0))
	w.until(before + 1)
	w.want("q", "(c,d):1")
	clock.set(time.Unix(1<<30, 0))
	w.until(before + 2)
	w.want("q", "")
	time.Sleep(20 * time.Millisecond)
	if got := w.epoch(); got != before+2 {
		t.Errorf("epoch %d, want %d", got, before+2)
	}
}

// until waits for an epoch.
func (w *world) until(e triegs.Epoch) {
	w.Helper()
	within(w.T, 30*time.Second, fmt.Sprintf("epoch %d", e), func() {
		if err := w.db.WaitFor(w.ctx, e); err != nil {
			w.Error(err)
		}
	})
}

// What was deleted by hand does not expire again.
func TestWIN11(t *testing.T) {
	playEverywhere(t, "q(x, y) :- R(x, y) window 10u.", `
		1 +R(a,b)#e1 | q (a,b):1
		3 +R(a,b)#e2 | q (a,b):2
		5 -#e1 | q (a,b):1
		11 | q (a,b):1
		12 | q (a,b):1
		13 | q
		14 +R(c,d)#e1 +R(c,d)#e2 | q (c,d):2`)
	for _, set := range settings(false) {
		w := newTimed(t, set, triegs.Options{})
		w.register("q", w.text("q(x, y) :- R(x, y) window 10u."))
		w.put(1, "+R(a,b)#e1")
		w.put(3, "+R(a,b)#e2")
		w.put(5, "-#e1")
		w.advance(20)
		if got := w.db.Metrics(); got.Expired != 1 || got.Contributions != 0 {
			t.Errorf("%v: %d expired, %d left; want 1, 0", set, got.Expired, got.Contributions)
		}
	}
}

// A refresh moves the expiry, also over a restart.
func TestWIN12(t *testing.T) {
	playEverywhere(t, "q(x, y) :- R(x, y) window 10u.", `
		1 +R(a,b)#e1 | q (a,b):1
		8 +R(a,b)#e1 | q (a,b):1
		11 | q (a,b):1
		17 | q (a,b):1
		18 | q
		19 | q`)
	for _, set := range settings(false) {
		w := newTimed(t, set, triegs.Options{})
		w.register("q", w.text("q(x, y) :- R(x, y) window 10u."))
		w.put(1, "+R(a,b)#e1")
		w.put(8, "+R(a,b)#e1")
		if set.disk {
			w.restart(set.saved)
		}
		w.advance(11)
		w.advance(17)
		if got := w.db.Metrics().Expired; got != 0 {
			t.Errorf("%v: %d expired before the time", set, got)
		}
		w.advance(18)
		if got := w.db.Metrics().Expired; got != 1 {
			t.Errorf("%v: %d expired, want 1", set, got)
		}
	}
}

// Windows of several lengths over one relation do not disturb each other.
func TestWIN13(t *testing.T) {
	const queries = `
		q5(x, y) :- R(x, y) window 5u.
		q10(x, y) :- R(x, y) window 10u.
		both(x, y) :- R(x, y)[5u], R(x, y)[10u].`
	playEverywhere(t, queries, `
		0 +R(a,b) | q5 (a,b):1 | q10 (a,b):1 | both (a,b):1
		4 | q5 (a,b):1 | q10 (a,b):1 | both (a,b):1
		5 | q5 | q10 (a,b):1 | both
		9 | q5 | q10 (a,b):1 | both
		10 | q5 | q10 | both`)
	playEverywhere(t, queries+`
		all(x, y) :- R(x, y).
		last(x, y) :- R(x, y) last 1.`, `
		0 +R(a,b) | q5 (a,b):1 | q10 (a,b):1 | all (a,b):1 | last (a,b):1
		3 +R(a,b) | q5 (a,b):2 | q10 (a,b):2 | both (a,b):4 | all (a,b):2 | last (a,b):1
		5 | q5 (a,b):1 | q10 (a,b):2 | both (a,b):2 | all (a,b):2 | last (a,b):1
		8 +R(c,d) | q5 (c,d):1 | q10 (a,b):2 (c,d):1 | all (a,b):2 (c,d):1 | last (c,d):1
		13 | q5 | q10 (c,d):1 | all (a,b):2 (c,d):1 | last (c,d):1
		99 | q5 | q10 | all (a,b):2 (c,d):1 | last (c,d):1`)
}

// Times are instants: the spring change of the clocks is no hour.
func TestWIN14(t *testing.T) {
	var times []time.Time
	for _, text := range []string{"2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00"} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, at)
	}
	if times[0].Unix() != 1774745999 || times[1].Unix() != 1774746000 {
		t.Fatalf("the times are %d and %d", times[0].Unix(), times[1].Unix())
	}
	local := time.Local
	defer func() { time.Local = local }()
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Skipf("the zone %s is not there: %v", zone, err)
		}
		time.Local = loc
		w := newWorld(t, "", &triegs.Options{Clock: still, Tick: -1})
		w.register("q", "q(x) :- R(x) window 2s.")
		for i, at := range times {
			e := events(fmt.Sprintf("+R(%d)", i))[0]
			e.Time = at.In(loc)
			w.append(triegs.Batch{Events: []triegs.Event{e}, Time: at})
		}
		w.want("q", "(0):1 (1):1")
		if _, err := w.db.Advance(w.ctx, times[1].Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		w.want("q", "(1):1")
	}
}
