package fuzz

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	within(t, 30*time.Second, what, func() {
		for !so() {
			runtime.Gosched()
		}
	})
}

// An update that is being told when the store is closed says so, in all that it
// has, and so does the next step; what has no error goes on to read.
func TestLIFE02Subscribed(t *testing.T) {
	for _, mode := range []triegs.SubscribeMode{triegs.Follow, triegs.SnapshotFirst} {
		db, err := triegs.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t, db, context.Background()}
		w.register("q", "q(x, y) :- R(x, y).")
		if mode == triegs.SnapshotFirst {
			w.do("+R(a,b) +R(b,c) +R(c,d)")
		}
		s := w.subscribe("q", triegs.SubscribeOptions{Mode: mode})
		if mode == triegs.Follow {
			w.do("+R(a,b) +R(b,c) +R(c,d)")
		}
		var kept *triegs.Update
		var last error
		for u, err := range s.Updates() {
			if last = err; err != nil {
				break
			}
			if kept = u; u.Epoch == 0 {
				t.Fatal("an update of epoch 0")
			}
			steps := 0
			for _, err := range u.Changes() {
				if steps++; steps == 1 {
					if err := db.Close(); !errors.Is(err, triegs.ErrLeaked) {
						t.Errorf("close: %v, want ErrLeaked", err)
					}
				} else if !errors.Is(err, triegs.ErrClosed) {
					t.Errorf("step %d of an update: %v, want ErrClosed", steps, err)
				}
			}
			if steps != 2 {
				t.Errorf("%d steps, want one and the error", steps)
			}
			wantClosed(t, u, triegs.ErrClosed)
		}
		if !errors.Is(last, triegs.ErrClosed) || !errors.Is(s.Err(), triegs.ErrClosed) {
			t.Errorf("the subscription ends with %v and Err %v, want ErrClosed", last, s.Err())
		}
		wantClosed(t, kept, triegs.ErrClosed)
		_ = fmt.Sprint(kept.Epoch, kept.From, kept.Time, kept.Offsets, kept.Token, s.Token(), s.Query(), db.Subscriptions())
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		w.wantEnd(s, triegs.ErrClosed)
	}
}

// wantClosed checks that nothing can be read through an update.
func wantClosed(t *testing.T, u *triegs.Update, want error) {
	t.Helper()
	for c, err := range u.Changes() {
		if c.Row != nil || !errors.Is(err, want) {
			t.Errorf("Changes: %v, want %v", err, want)
		}
	}
	if _, err := gather(u.Snapshot().Answers("q")); !errors.Is(err, want) {
		t.Errorf("Answers: %v, want %v", err, want)
	}
	if _, _, err := u.Snapshot().Count(t.Context(), "q"); !errors.Is(err, want) {
		t.Errorf("Count: %v, want %v", err, want)
	}
}

// subscriptionEnds are the ways in which subscriptions end, and what they say then.
var subscriptionEnds = map[string]struct {
	end  func(w *world, s *triegs.Subscription, cancel func()) error
	want error
}{
	"by its owner":   {func(_ *world, s *triegs.Subscription, _ func()) error { return s.Close() }, nil},
	"by its context": {func(_ *world, _ *triegs.Subscription, cancel func()) error { cancel(); return nil }, context.Canceled},
	"by a drop":      {func(w *world, _ *triegs.Subscription, _ func()) error { return w.db.Drop(w.ctx, "q") }, triegs.ErrNoSuchQuery},
	"by Close":       {func(w *world, _ *triegs.Subscription, _ func()) error { return leaked(w.db.Close()) }, triegs.ErrClosed},
}

// leaked drops an ErrLeaked.
func leaked(err error) error {
	if errors.Is(err, triegs.ErrLeaked) {
		return nil
	}
	return err
}

// endOnce makes a store in which somebody waits for a subscription, and nobody looks
// at another one, until the first ends in the given way.
func endOnce(t *testing.T, how string, mode triegs.SubscribeMode) {
	t.Helper()
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := subscriptionEnds[how]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &world{t, db, t.Context()}
	w.register("q", "q(x, y, z) :- R(x, y), R(y, z).")
	var subs [2]*triegs.Subscription
	for i := range subs {
		if subs[i], err = db.Subscribe(ctx, "q", triegs.SubscribeOptions{Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	goal := w.do("+R(a,b) +R(b,c)")
	told, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var last error
		for u, err := range subs[0].Updates() {
			if last = err; err == nil && u.Epoch == goal {
				close(told)
			}
		}
		ended <- last
	}()
	<-told
	if err := c.end(w, subs[0], cancel); err != nil {
		t.Errorf("%s: %v", how, err)
	}
	within(t, 10*time.Second, "the consumer", func() {
		if err := <-ended; !errors.Is(err, c.want) {
			t.Errorf("%s: it ends with %v, want %v", how, err, c.want)
		}
	})
	if err := leaked(db.Close()); err != nil {
		t.Errorf("%s: close: %v", how, err)
	}
}

// However subscriptions end, and whether somebody waits for them or not, they leave
// nothing behind.
func TestLIFE03Subscribed(t *testing.T) {
	once := func() {
		for how := range subscriptionEnds {
			endOnce(t, how, triegs.Follow)
			endOnce(t, how, triegs.SnapshotFirst)
		}
	}
	once()
	goroutines, bytes := int64(runtime.NumGoroutine()), heap()
	for range scaled(200, 40) / len(subscriptionEnds) {
		once()
	}
	settle(t, "goroutines", goroutines, func() int64 { return int64(runtime.NumGoroutine()) })
	settle(t, "heap", bytes+2<<20, heap)
}

// The context of a subscription ends an update of very many changes at its next
// step, and what was pinned for it is given back.
func TestLIFE05Subscribed(t *testing.T) {
	for _, mode := range []triegs.SubscribeMode{triegs.Follow, triegs.SnapshotFirst} {
		w := newWorld(t, "", nil)
		n := scaled(3163, 1000)
		both := append(edges("A", n, func(int) int { return 0 }), edges("B", n, func(int) int { return 0 })...)
		w.register("q", "q(x, y) :- A(x, u), B(y, v).")
		if mode == triegs.SnapshotFirst {
			w.append(triegs.Batch{Events: both})
		}
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		s, err := w.db.Subscribe(ctx, "q", triegs.SubscribeOptions{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		if mode == triegs.Follow {
			w.append(triegs.Batch{Events: both})
		}
		steps, last, ends := 0, error(nil), error(nil)
		for u, err := range s.Updates() {
			if ends = err; err != nil {
				break
			}
			for _, err := range u.Changes() {
				last = err
				if steps++; steps == 10 {
					cancel()
					waitFor(t, "the end of the subscription", func() bool { return s.Err() != nil })
				}
			}
		}
		if steps != 11 || !errors.Is(last, context.Canceled) || !errors.Is(ends, context.Canceled) {
			t.Errorf("mode %d: %d steps, %v, then %v; want 11 and a cancelled context", mode, steps, last, ends)
		}
		w.do("+A(z,z)") // what only the past needs is given back by the next epoch
		if m := w.db.Metrics(); m.Subscriptions != 0 || m.RetainedBytes != 0 {
			t.Errorf("mode %d: %d subscriptions, %d bytes are left", mode, m.Subscriptions, m.RetainedBytes)
		}
		wantPins(t, w.db, 0)
	}
}

// Answers without end that are what they were, although facts of each have changed,
// are passed over no longer than the subscription lasts.
func TestLIFE05PassedOver(t *testing.T) {
	n := scaled(30_000, 10_000) // hundreds of millions of answers
	a, b := edges("A", n, func(int) int { return 0 }), edges("B", n, func(int) int { return 0 })
	var doubled, halved []triegs.Event // A goes from 1 to 2, B from 2 to 1
	for i := range n {
		doubled = append(doubled, a[i], b[i], b[i])
		gone := b[i]
		gone.Op = triegs.Delete
		halved = append(halved, a[i], gone)
	}
	for what, quiet := range map[string]bool{"changes": false, "updates": true} {
		for how, end := range map[string]func(cancel func(), s *triegs.Subscription){
			"context": func(cancel func(), _ *triegs.Subscription) { cancel() },
			"Close":   func(_ func(), s *triegs.Subscription) { _ = s.Close() },
		} {
			w := newWorld(t, "", nil)
			w.register("q", "q(x, y) :- A(x, u), B(y, v).")
			w.append(triegs.Batch{Events: doubled})
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			s, err := w.db.Subscribe(ctx, "q", triegs.SubscribeOptions{Quiet: quiet})
			if err != nil {
				t.Fatal(err)
			}
			w.append(triegs.Batch{Events: halved})
			begins := make(chan struct{})
			go func() {
				<-begins
				end(cancel, s)
			}()
			var inside, last error
			within(t, 30*time.Second, what+" and "+how, func() {
				if quiet {
					close(begins)
				}
				for u, err := range s.Updates() {
					if last = err; err != nil {
						return
					}
					close(begins)
					for c, err := range u.Changes() {
						if inside = err; err == nil {
							t.Errorf("%s goes from %d to %d", lexical(c.Row), c.Old, c.New)
						}
					}
				}
			})
			want, wantInside := context.Canceled, context.Canceled
			if how == "Close" {
				want, wantInside = nil, triegs.ErrSnapshotClosed
			}
			if quiet {
				wantInside = nil
			}
			if !errors.Is(last, want) || !errors.Is(inside, wantInside) {
				t.Errorf("%s and %s: %v inside, then %v; want %v, then %v", what, how, inside, last, wantInside, want)
			}
			wantPins(t, w.db, 0)
		}
	}
}

// Whoever closes his subscription in the middle of an update is told so at its next
// step, and the loop over updates ends in silence.
func TestLIFE06ClosedInside(t *testing.T) {
	w := product(t, 50)
	s := w.subscribe("q", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst})
	steps, last := 0, error(nil)
	for _, err := range s.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		break // an update that was not looked at is over as well
	}
	w.do("+A(z,z)")
	for u, err := range s.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range u.Changes() {
			last = err
			if steps++; steps == 3 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if steps != 4 || !errors.Is(last, triegs.ErrSnapshotClosed) || s.Err() != nil {
		t.Errorf("%d steps, %v, Err %v; want 4 and ErrSnapshotClosed", steps, last, s.Err())
	}
	wantPins(t, w.db, 0)
	if err := w.db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// The offsets of an update are those of its epoch: a replay is none, a skip and a
// reset are updates that change no answer, and a refused record leaves no trace.
func TestSRCSubscribed(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", triegs.SubscribeOptions{PerEpoch: true})
	steps := []struct {
		what    string
		do      func() error
		offset  uint64
		changes int
	}{
		{"events", func() error { _, err := w.db.Append(w.ctx, span(0, 10)); return err }, 10, 10},
		{"an overlap, behind a replay", func() error {
			_, replay := w.db.Append(w.ctx, span(3, 8))
			_, err := w.db.Append(w.ctx, span(5, 12))
			return errors.Join(replay, err)
		}, 12, 2},
		{"a gap, behind a record that is refused", func() error {
			w.refuseBatch(triegs.ErrNoSuchFact, triegs.Batch{Source: "s", Offset: 12, Events: events("-R(no,no)")})
			_, err := w.db.Append(w.ctx, span(20, 21))
			return err
		}, 21, 1},
		{"a skip", func() error { return w.db.SkipTo(w.ctx, "s", 25) }, 25, 0},
		{"a new incarnation", func() error { return w.db.ResetSource(w.ctx, "s", "second") }, 0, 0},
		{"what it sends", func() error { _, err := w.db.Append(w.ctx, span(0, 1)); return err }, 1, 1},
	}
	for _, c := range steps {
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		err := next(s, func(u *triegs.Update) error {
			n := 0
			for _, err := range u.Changes() {
				if err != nil {
					return err
				}
				n++
			}
			if u.Offsets["s"] != c.offset || n != c.changes || u.Epoch != w.epoch() {
				return fmt.Errorf("epoch %d: offset %d with %d changes, want %d with %d", u.Epoch, u.Offsets["s"], n, c.offset, c.changes)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
