package fuzz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
)

// subscribe begins a subscription that is closed when the test ends.
func (w *world) subscribe(query string, opts triegs.SubscribeOptions) *triegs.Subscription {
	w.Helper()
	s, err := w.db.Subscribe(w.ctx, query, opts)
	if err != nil {
		w.Fatalf("subscribe: %v", err)
	}
	w.Cleanup(func() { _ = s.Close() }) // always nil
	return s
}

// changesOf prints an update: "4: (a,b):0>1".
func changesOf(u *triegs.Update) (string, error) {
	var list []string
	for c, err := range u.Changes() {
		if err != nil {
			return "", err
		}
		list = append(list, fmt.Sprintf("%s:%d>%d", lexical(c.Row), c.Old, c.New))
	}
	slices.Sort(list)
	return fmt.Sprintf("%d: %s", u.Epoch, strings.Join(list, " ")), nil
}

// wantUpdate checks the next update of a subscription.
func (w *world) wantUpdate(s *triegs.Subscription, want string) {
	w.Helper()
	err := next(s, func(u *triegs.Update) error {
		got, err := changesOf(u)
		if err == nil && got != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

// wantEnd checks that a subscription ends with an error, each time it is asked.
func (w *world) wantEnd(s *triegs.Subscription, want error) {
	w.Helper()
	for range 2 {
		err := next(s, func(u *triegs.Update) error { return fmt.Errorf("an update of epoch %d", u.Epoch) })
		if !errors.Is(err, want) {
			w.Fatalf("the subscription ends with %v, want %v", err, want)
		}
	}
	if !errors.Is(s.Err(), want) {
		w.Fatalf("Err: %v, want %v", s.Err(), want)
	}
}

// A slow subscriber is ended with the epoch that it was told last, or gets one net
// change; what it keeps meanwhile is bounded, and the writer does not wait.
func TestSUB01(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	ended := w.subscribe("q", triegs.SubscribeOptions{PerEpoch: true, Buffer: 1000, Slow: triegs.SlowEnd})
	merged := w.subscribe("q", triegs.SubscribeOptions{PerEpoch: true, Buffer: 1000})
	first := w.do("+R(a,b)")
	w.wantUpdate(ended, fmt.Sprintf("%d: (a,b):0>1", first))
	most := 0
	for i := range scaled(100_000, 5000) {
		w.do(fmt.Sprintf("+R(x%d,y) -R(%s)", i%7, []string{"a,b", fmt.Sprintf("x%d,y", (i+6)%7)}[min(i, 1)]))
		if i%500 == 0 {
			most = max(most, w.db.Metrics().RetainedEpochs)
		}
	}
	if most == 0 || most > 1000 {
		t.Errorf("%d epochs are retained for a buffer of 1000", most)
	}
	if m := w.db.Metrics(); m.RetainedEpochs > 0 || m.Subscriptions != 2 {
		t.Errorf("%d epochs are retained for subscribers that are too slow, %d subscriptions", m.RetainedEpochs, m.Subscriptions)
	}
	info := w.db.Subscriptions()
	if len(info) != 2 || info[0].Lag < 1000 || info[1].Epoch != first {
		t.Errorf("subscriptions are %+v", info)
	}
	w.wantEnd(ended, triegs.ErrSlowSubscriber)
	if msg := ended.Err().Error(); !strings.Contains(msg, fmt.Sprintf("epoch %d was told last", first)) {
		t.Errorf("%q does not name epoch %d", msg, first)
	}
	last := scaled(100_000, 5000) - 1
	w.wantUpdate(merged, fmt.Sprintf("%d: (x%d,y):0>1", w.epoch(), last%7))
	w.wantUpdate(merged, fmt.Sprintf("%d: (c,d):0>1", w.do("+R(c,d)")))
}

// TestBAK06Tokens: the positions of subscribers belong to one life. Those of the
// first are refused by the second, also of epochs that both have had, and hold in
// the first after a restart.
func TestBAK06Tokens(t *testing.T) {
	root := t.TempDir()
	first, backup, second := filepath.Join(root, "first"), filepath.Join(root, "backup"), filepath.Join(root, "second")
	token := func(w *world) triegs.Token {
		s := w.snapshot()
		defer func() { _ = s.Close() }() // always nil
		return s.Token()
	}
	w := newWorld(t, first, nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b)")
	before := token(w)
	if err := w.db.Backup(w.ctx, backup); err != nil {
		t.Fatal(err)
	}
	w.do("+R(first,life)")
	after := token(w)
	if err := triegs.Restore(w.ctx, backup, second); err != nil {
		t.Fatal(err)
	}
	other := newWorld(t, second, nil)
	if got := token(other); got.Epoch() != before.Epoch() || got == before {
		t.Errorf("the second life begins at %v of epoch %d, the first was at %v", got, got.Epoch(), before)
	}
	other.do("+R(second,life)")
	for what, from := range map[string]triegs.Token{"at the backup": before, "behind it": after} {
		s, err := other.db.Subscribe(other.ctx, "q", triegs.SubscribeOptions{Mode: triegs.FromToken, Token: from})
		if !errors.Is(err, triegs.ErrTimeline) {
			t.Errorf("the token of the first life %s: %v, %v, want ErrTimeline", what, s, err)
		}
	}
	w.reopen(first, nil)
	s := w.subscribe("q", triegs.SubscribeOptions{Mode: triegs.FromToken, Token: after})
	w.wantUpdate(s, fmt.Sprintf("%d: (c,d):0>1", w.do("+R(c,d)")))
}

// A position of a future that a crash took away is refused.
func TestSUB03(t *testing.T) {
	dir, crashed := t.TempDir(), t.TempDir()
	relaxed := &triegs.Options{Durability: triegs.SyncNone}
	w := newWorld(t, dir, relaxed)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b)")
	// What a crash leaves behind: the files as they are at this moment.
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	w.do("+R(b,c)")
	w.do("+R(c,d)")
	s := w.snapshot()
	token, err := triegs.ParseToken(s.Token().String())
	if err != nil || token != s.Token() {
		t.Fatalf("the token comes back as %v, %v", token, err)
	}
	_ = s.Close() // always nil
	back := newWorld(t, crashed, relaxed)
	back.do("+R(b,x)")
	back.do("+R(c,x)")
	back.do("+R(d,x)")
	_, err = back.db.Subscribe(back.ctx, "q", triegs.SubscribeOptions{Mode: triegs.FromToken, Token: token})
	if !errors.Is(err, triegs.ErrTimeline) {
		t.Errorf("after a crash: %v, want ErrTimeline", err)
	}
	other := newWorld(t, "", nil)
	other.register("q", "q(x, y) :- R(x, y).")
	_, err = other.db.Subscribe(other.ctx, "q", triegs.SubscribeOptions{Mode: triegs.FromToken, Token: token})
	if !errors.Is(err, triegs.ErrTimeline) {
		t.Errorf("of another store: %v, want ErrTimeline", err)
	}
}

// The whole answer and what follows fit together wherever one begins, under a writer
// that does not wait: at each epoch what was told amounts to what an enumeration
// there gives, and to what the writer has written up to there.
func TestSUB04(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y, z) :- R(x, y), S(y, z).")
	first := w.do(slidingText(0))
	stop, began := make(chan struct{}), time.Now()
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := w.db.Append(w.ctx, triegs.Batch{Events: events(slidingText(i))}); err != nil {
				t.Errorf("append: %v", err)
				return
			}
		}
	})
	defer writer.Wait()
	defer close(stop)
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range scaled(100, 20) {
		followOnce(w, i%2 == 0, rng.IntN(20), first)
	}
	t.Logf("%.0f epochs a second", float64(w.epoch()-first)/time.Since(began).Seconds())
}

// slidingText is epoch i of a window of 20 edges in each of two relations.
func slidingText(i int) string {
	text := func(sign string, n int) string {
		return fmt.Sprintf(" %[1]sR(a%[2]d,b%[3]d) %[1]sS(b%[3]d,c%[2]d)", sign, n%40, n%5)
	}
	if i < 20 {
		return text("+", i)
	}
	return text("+", i) + text("-", i-20)
}

// slidingAnswers are the paths of two edges after epoch i.
func slidingAnswers(i int) map[string]int64 {
	out := map[string]int64{}
	for n := max(0, i-19); n <= i; n++ {
		for m := max(0, i-19); m <= i; m++ {
			if n%5 == m%5 {
				text := func(kind string, n int) string { return triegs.String(fmt.Sprint(kind, n)).String() }
				out[oracle.Key([]string{text("a", n%40), text("b", n%5), text("c", m%40)})] = 1
			}
		}
	}
	return out
}

// followOnce folds the whole answer and so many updates.
func followOnce(w *world, each bool, updates int, first triegs.Epoch) {
	w.Helper()
	// However slow this reader is, each epoch waits for it.
	s := w.subscribe("q", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst, PerEpoch: each, Buffer: math.MaxInt32})
	defer s.Close()
	fold := map[string]int64{}
	var at triegs.Epoch
	for u, err := range s.Updates() {
		if err != nil {
			w.Fatal(err)
		}
		switch {
		case u.Whole != (at == 0):
			w.Fatalf("the update of epoch %d behind %d is whole: %v", u.Epoch, at, u.Whole)
		case !u.Whole && u.From != at, each && !u.Whole && u.Epoch != at+1:
			w.Fatalf("an update from %d to %d behind %d", u.From, u.Epoch, at)
		}
		at = u.Epoch
		for c, err := range u.Changes() {
			if err != nil {
				w.Fatal(err)
			}
			k := key(c.Row)
			if fold[k] != c.Old {
				w.Fatalf("%q was %d, the change says %d", k, fold[k], c.Old)
			}
			if fold[k] = c.New; c.New == 0 {
				delete(fold, k)
			}
		}
		got, err := gather(u.Snapshot().Answers("q"))
		if err != nil {
			w.Fatal(err)
		}
		if want := slidingAnswers(int(at - first)); !maps.Equal(fold, want) || !maps.Equal(got, want) {
			w.Fatalf("at epoch %d: folded %v, read %v, want %v", at, fold, got, want)
		}
		if updates--; updates < 0 {
			return
		}
	}
}

// Close ends subscribers that wait, are stuck in an update, or whose context ends in
// the middle of one.
func TestSUB05(t *testing.T) {
	start := int64(runtime.NumGoroutine())
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, db, context.Background()}
	w.register("q", "q(x, y, z) :- R(x, y), S(y, z).")
	ctx, cancel := context.WithCancel(w.ctx)
	reading := w.subscribe("q", triegs.SubscribeOptions{})
	stuck := w.subscribe("q", triegs.SubscribeOptions{})
	cancelled, err := db.Subscribe(ctx, "q", triegs.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waiting, held, free, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var consumers sync.WaitGroup
	ends := make([]error, 3)
	consumers.Go(func() {
		for u, err := range reading.Updates() {
			if ends[0] = err; err == nil && u.Epoch > 0 {
				close(waiting)
			}
		}
	})
	consumers.Go(func() {
		for _, err := range stuck.Updates() {
			if ends[1] = err; err == nil {
				close(held)
				<-free
			}
		}
	})
	consumers.Go(func() {
		for u, err := range cancelled.Updates() {
			if ends[2] = err; err != nil {
				return
			}
			n := 0
			for _, err := range u.Changes() {
				if n++; n == 10 {
					cancel()
					<-ctx.Done()
					for cancelled.Err() == nil { // told by a goroutine of the context
						runtime.Gosched()
					}
					close(ended)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("in the middle of a delta: %v", err)
				}
			}
			if n > 11 {
				t.Errorf("%d steps", n)
			}
		}
	})
	var both []triegs.Event
	for i := range 100 {
		both = append(both, triegs.Edge("R", triegs.Int(int64(i)), triegs.Int(0)), triegs.Edge("S", triegs.Int(0), triegs.Int(int64(i))))
	}
	w.append(triegs.Batch{Events: both})
	<-waiting
	<-held
	<-ended
	within(t, 10*time.Second, "close", func() {
		if err := db.Close(); !errors.Is(err, triegs.ErrLeaked) {
			t.Errorf("close: %v, want ErrLeaked", err)
		}
	})
	close(free)
	within(t, 10*time.Second, "the consumers", consumers.Wait)
	for i, want := range []error{triegs.ErrClosed, triegs.ErrClosed, context.Canceled} {
		if !errors.Is(ends[i], want) {
			t.Errorf("subscriber %d ends with %v, want %v", i, ends[i], want)
		}
	}
	settle(t, "goroutines", start, func() int64 { return int64(runtime.NumGoroutine()) })
}

// After a drop what waits is told, then ErrNoSuchQuery; a new query of the name is
// another one.
func TestSUB06(t *testing.T) {
	for _, each := range []bool{true, false} {
		w := newWorld(t, "", &triegs.Options{RetainedEpochs: 100})
		w.register("q", "q(x, y) :- R(x, y).")
		s := w.subscribe("q", triegs.SubscribeOptions{PerEpoch: each})
		token := s.Token()
		var all []string
		var last triegs.Epoch
		for i := range 10 {
			last = w.do(fmt.Sprintf("+R(a%d,b)", i))
			all = append(all, fmt.Sprintf("(a%d,b):0>1", i))
		}
		if err := w.db.Drop(w.ctx, "q"); err != nil {
			t.Fatal(err)
		}
		w.do("+R(x,y)")
		w.register("q", "q(x, y) :- R(x, y).")
		w.do("+R(y,z)")
		// One that begins behind the drop, at an epoch before it, is told the same.
		late := w.subscribe("q", triegs.SubscribeOptions{Mode: triegs.FromToken, Token: token, PerEpoch: each})
		for _, s := range []*triegs.Subscription{s, late} {
			if each {
				for i, change := range all {
					w.wantUpdate(s, fmt.Sprintf("%d: %s", int(last)-9+i, change))
				}
			} else {
				w.wantUpdate(s, fmt.Sprintf("%d: %s", last, strings.Join(all, " ")))
			}
			w.wantEnd(s, triegs.ErrNoSuchQuery)
		}
	}
}

// A replacement comes as one unit.
func TestSUB07(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b)")
	s := w.subscribe("q", triegs.SubscribeOptions{PerEpoch: true})
	e := w.do("-R(a,b) +R(a,c)")
	w.wantUpdate(s, fmt.Sprintf("%d: (a,b):1>0 (a,c):0>1", e))
}

// An epoch that nets to nothing moves the position and changes nothing.
func TestSEM05Subscribed(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", triegs.SubscribeOptions{PerEpoch: true})
	quiet := w.subscribe("q", triegs.SubscribeOptions{PerEpoch: true, Quiet: true})
	one := w.do("+R(a,b)")
	two := w.do("+R(c,d) -R(c,d)")
	three := w.do("+R(e,f)")
	w.wantUpdate(s, fmt.Sprintf("%d: (a):0>1", one))
	w.wantUpdate(s, fmt.Sprintf("%d: ", two))
	if s.Token().Epoch() != two {
		t.Errorf("the position is %d, want %d", s.Token().Epoch(), two)
	}
	w.wantUpdate(quiet, fmt.Sprintf("%d: (a):0>1", one))
	err := next(quiet, func(u *triegs.Update) error {
		if got, err := changesOf(u); err != nil || got != fmt.Sprintf("%d: (e):0>1", three) || u.From != one {
			return fmt.Errorf("got %q behind epoch %d, %v", got, u.From, err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("behind an epoch that was left out: %v", err)
	}
}

// A token is good as long as its epoch is retained; what is not one is refused.
func TestTokens(t *testing.T) {
	w := newWorld(t, "", &triegs.Options{RetainedEpochs: 3})
	w.do("+R(z,z)")
	early := w.snapshot()
	before := early.Token()
	_ = early.Close() // always nil
	w.register("q", "q(x, y) :- R(x, y).")
	old := w.subscribe("q", triegs.SubscribeOptions{}).Token()
	_, err := w.db.Subscribe(w.ctx, "q", triegs.SubscribeOptions{Mode: triegs.FromToken, Token: before})
	if !errors.Is(err, triegs.ErrNoSuchQuery) {
		t.Errorf("from before the registration: %v, want ErrNoSuchQuery", err)
	}
	for i := range 3 {
		w.do(fmt.Sprintf("+R(a%d,b)", i))
	}
	opts := triegs.SubscribeOptions{Mode: triegs.FromToken, Token: old}
	w.wantUpdate(w.subscribe("q", opts), fmt.Sprintf("%d: (a0,b):0>1 (a1,b):0>1 (a2,b):0>1", w.epoch()))
	e := w.do("+R(c,d)")
	_, err = w.db.Subscribe(w.ctx, "q", opts)
	if !errors.Is(err, triegs.ErrTooOld) || !strings.Contains(err.Error(), fmt.Sprintf("kept is %d", e-3)) {
		t.Errorf("from an old epoch: %v, want ErrTooOld with epoch %d", err, e-3)
	}
	for _, text := range []string{"", "t1.", "x", old.String() + "A", old.String()[1:], "t2" + old.String()[2:], strings.Replace(old.String(), ".", ".=", 1)} {
		if _, err := triegs.ParseToken(text); !errors.Is(err, triegs.ErrValue) {
			t.Errorf("%q: %v, want ErrValue", text, err)
		}
	}
}

// Bad options are refused, and leave nothing open.
func TestSubscribeRefuses(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, count()) :- R(x, y).")
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		query string
		opts  triegs.SubscribeOptions
		want  error
	}{
		"query":     {w.ctx, "p", triegs.SubscribeOptions{}, triegs.ErrNoSuchQuery},
		"mode":      {w.ctx, "q", triegs.SubscribeOptions{Mode: 9}, triegs.ErrValue},
		"slow":      {w.ctx, "q", triegs.SubscribeOptions{Slow: 9}, triegs.ErrValue},
		"buffer":    {w.ctx, "q", triegs.SubscribeOptions{Buffer: -1}, triegs.ErrValue},
		"token":     {w.ctx, "q", triegs.SubscribeOptions{Mode: triegs.FromToken}, triegs.ErrValue},
		"column":    {w.ctx, "q", triegs.SubscribeOptions{Where: map[string]triegs.Term{"y": triegs.Int(1)}}, triegs.ErrValue},
		"aggregate": {w.ctx, "q", triegs.SubscribeOptions{Where: map[string]triegs.Term{"count()": triegs.Int(1)}}, triegs.ErrValue},
		"absent":    {w.ctx, "q", triegs.SubscribeOptions{Where: map[string]triegs.Term{"x": {}}}, triegs.ErrValue},
		"context":   {ended, "q", triegs.SubscribeOptions{}, context.Canceled},
	} {
		if _, err := w.db.Subscribe(c.ctx, c.query, c.opts); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	w.do("+R(a,b)")
	if m := w.db.Metrics(); m.Subscriptions != 0 || m.RetainedBytes != 0 {
		t.Errorf("%d subscriptions, %d bytes are left", m.Subscriptions, m.RetainedBytes)
	}
}

// A subscription that was behind for too long expires; one that keeps up does not.
func TestSubscriptionExpires(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWorld(t, "", &triegs.Options{MaxPinAge: time.Minute, Clock: func() time.Time { return now }})
	w.register("q", "q(x, y) :- R(x, y).")
	behind, current := w.subscribe("q", triegs.SubscribeOptions{}), w.subscribe("q", triegs.SubscribeOptions{})
	now = now.Add(time.Hour)
	for i := range 3 {
		e := w.do(fmt.Sprintf("+R(a%d,b)", i))
		w.wantUpdate(current, fmt.Sprintf("%d: (a%d,b):0>1", e, i))
		now = now.Add(50 * time.Second)
	}
	w.wantEnd(behind, triegs.ErrSnapshotExpired)
}

// However a loop is left the pins of it are given back, and it can be begun again.
func TestLIFE06Subscribed(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	s := w.subscribe("q", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst})
	w.do("+R(a,b) +R(b,c)")
	var kept *triegs.Snapshot
	leave := func(how string) {
		defer func() { _ = recover() }()
		for u, err := range s.Updates() {
			if err != nil {
				t.Fatal(err)
			}
			kept = u.Snapshot()
			for range u.Changes() {
				if how == "panic" {
					panic(how)
				}
				break
			}
			return
		}
	}
	for i, how := range []string{"break", "panic", "return"} {
		leave(how)
		if _, err := gather(kept.Answers("q")); !errors.Is(err, triegs.ErrSnapshotClosed) {
			t.Errorf("%s: the snapshot of an update outlives it: %v", how, err)
		}
		w.do(fmt.Sprintf("+R(x%d,y)", i))
	}
	w.wantUpdate(s, fmt.Sprintf("%d: (x2,y):0>1", w.epoch()))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for u, err := range s.Updates() {
		t.Errorf("after Close: %v, %v", u, err)
	}
	w.do("+R(c,c)")
	if m := w.db.Metrics(); m.RetainedBytes != 0 || m.Subscriptions != 0 || s.Err() != nil {
		t.Errorf("after Close: %d bytes are retained, %d subscriptions, %v", m.RetainedBytes, m.Subscriptions, s.Err())
	}
}

// Eight subscribers catch up from different epochs while the writer goes on.
func TestLIFE07Subscribed(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, &triegs.Options{Durability: triegs.SyncNone, RetainedEpochs: 500})
	w.register("q", "q(x, sum(n), min(y)) :- R(x, y), N(y, n).")
	w.append(triegs.Batch{Events: edges("N", 50, func(i int) int { return i * i })})
	var tokens []triegs.Token
	put := func(i int) {
		w.append(triegs.Batch{Events: []triegs.Event{triegs.Edge("R", triegs.Int(int64(i%7)), triegs.Int(int64(i%50)))}})
	}
	for i := range 80 {
		put(i)
		s := w.snapshot()
		tokens = append(tokens, s.Token())
		_ = s.Close() // always nil
	}
	goal := tokens[len(tokens)-1].Epoch() + 100
	var readers sync.WaitGroup
	for i := range 8 {
		s := w.subscribe("q", triegs.SubscribeOptions{Mode: triegs.FromToken, Token: tokens[i*9], PerEpoch: i%2 == 0})
		readers.Go(func() {
			at := s.Token().Epoch()
			for u, err := range s.Updates() {
				if err != nil || u.From != at {
					t.Errorf("an update from %d behind %d: %v", u.From, at, err)
					return
				}
				for _, err := range u.Changes() {
					if err != nil {
						t.Error(err)
					}
				}
				if at = u.Epoch; at >= goal {
					return
				}
			}
		})
	}
	for i := range 100 {
		put(i * 3)
	}
	within(t, time.Minute, "the readers", readers.Wait)
}

// A store that is read only tells what there is, and then that no more will come.
func TestSubscribeReadOnly(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x, y) :- R(x, y).")
	e := w.do("+R(a,b)")
	w.reopen(dir, &triegs.Options{ReadOnly: true})
	s := w.subscribe("q", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst})
	w.wantUpdate(s, fmt.Sprintf("%d: (a,b):0>1", e))
	w.wantEnd(s, triegs.ErrReadOnly)
}

// An aggregate that reads the same after a change of what it is made of is no change.
func TestSubscribedAggregateStays(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, count(distinct y)) :- R(x, y).")
	w.do("+R(a,b)")
	s := w.subscribe("q", triegs.SubscribeOptions{})
	e := w.do("-R(a,b) +R(a,c)")
	w.wantUpdate(s, fmt.Sprintf("%d: ", e))
}
