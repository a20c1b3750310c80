package fuzz

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// acks acknowledges an epoch.
func (w *world) acks(s *triegs.Subscription, e triegs.Epoch) {
	w.Helper()
	if err := s.Ack(e); err != nil {
		w.Fatalf("ack %d: %v", e, err)
	}
}

// wantErr checks what a call returns.
func (w *world) wantErr(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: %v, want %v", what, err, want)
	}
}

// told checks that the next updates are epochs from through of grow, where +R(i,h) is
// in epoch i+1.
func (w *world) told(s *triegs.Subscription, from, through int) {
	w.Helper()
	for i := from; i <= through; i++ {
		w.wantUpdate(s, fmt.Sprintf("%d: (%d):0>1", i+1, i))
	}
}

var byName = triegs.SubscribeOptions{Name: "consumer", PerEpoch: true}

// After a restart a subscriber gets what is behind its acknowledged epoch, each epoch
// once, then live ones; also behind checkpoints, from a crash, and without Close.
func TestSUB02(t *testing.T) {
	t.Parallel()
	for _, saved := range []bool{false, true} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("saved %v crash %v", saved, crash), func(t *testing.T) { sub02(t, saved, crash) })
		}
	}
}

func sub02(t *testing.T, saved, crash bool) {
	t.Parallel()
	dir := t.TempDir()
	opts := &triegs.Options{CheckpointBytes: -1}
	w := newWorld(t, dir, opts)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", byName)
	w.grow(1, 10)
	w.told(s, 1, 7)
	w.acks(s, 7) // in which 6 came
	if saved {
		for range 3 {
			w.checkpoint()
			w.do("+S(a)")
			w.do("-S(a)")
		}
	}
	if crash {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		w, dir = newWorld(t, copied, opts), copied
	} else {
		_ = s.Close() // always nil
		w.reopen(dir, opts)
	}
	s = w.subscribe("q", byName)
	w.told(s, 7, 10)
	if saved {
		for e := range 6 {
			w.wantUpdate(s, fmt.Sprintf("%d: ", 12+e))
		}
	}
	at := w.grow(11, 12)
	w.wantUpdate(s, fmt.Sprintf("%d: (11):0>1", at-1))
	w.wantUpdate(s, fmt.Sprintf("%d: (12):0>1", at))
	// Nothing was acknowledged since.
	_ = s.Close() // always nil
	s = w.subscribe("q", byName)
	w.told(s, 7, 10)
	w.acks(s, 9)
	w.acks(s, 8)  // changes nothing
	_ = s.Close() // always nil
	if info := w.db.Subscribers(); len(info) != 1 || info[0].Name != "consumer" || info[0].Epoch != 9 || info[0].Attached ||
		info[0].Lag != uint64(at-9) || info[0].RetainedBytes == 0 || info[0].Lost != "" {
		t.Errorf("subscribers are %+v", info)
	}
	w.told(w.subscribe("q", byName), 9, 10)
	if info := w.db.Metrics().Subscribers; len(info) != 1 || !info[0].Attached || !strings.Contains(w.db.Metrics().String(), `"consumer" of query q at epoch 9`) {
		t.Errorf("subscribers are %+v", info)
	}
	for _, s := range w.db.Subscriptions() {
		if s.Name != "consumer" {
			t.Errorf("%+v", s)
		}
	}

}

// A name without PerEpoch gets one net update of what it has missed, also where it
// was told more in between.
func TestNameCoalesced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x) :- R(x, y).")
	opts := triegs.SubscribeOptions{Name: "net"}
	s := w.subscribe("q", opts)
	w.grow(1, 2)
	w.wantUpdate(s, "3: (1):0>1 (2):0>1")
	w.grow(3, 4)
	w.wantUpdate(s, "5: (3):0>1 (4):0>1")
	w.wantErr("ack between", s.Ack(4), triegs.ErrValue)
	w.acks(s, 3)
	_ = s.Close() // always nil
	w.do("-R(3,h)")
	for range 2 {
		s = w.subscribe("q", opts)
		w.wantUpdate(s, "6: (4):0>1")
		_ = s.Close() // always nil
		w.reopen(dir, nil)
	}
	// Asked for each epoch it gets what was missed as one, or each by itself after a
	// restart, and then each.
	opts.PerEpoch = true
	s = w.subscribe("q", opts)
	w.wantUpdate(s, "6: (4):0>1")
	w.grow(5, 6)
	w.wantUpdate(s, "7: (5):0>1")
	_ = s.Close() // always nil
	w.reopen(dir, nil)
	s = w.subscribe("q", opts)
	for _, want := range []string{"4: (3):0>1", "5: (4):0>1", "6: (3):1>0", "7: (5):0>1", "8: (6):0>1"} {
		w.wantUpdate(s, want)
	}
	w.acks(s, 8)
	_ = s.Close() // always nil
}

// What was left out because nothing had changed is acknowledged by any epoch of it:
// Token moves on while a consumer makes up its mind.
func TestNameQuiet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	opts := byName
	opts.Quiet = true
	s := w.subscribe("q", opts)
	w.do("+R(a,b)")
	var quiet []triegs.Epoch
	for range 4 {
		quiet = append(quiet, w.do("+S(a)"))
	}
	last := w.do("+R(b,c)")
	w.wantUpdate(s, fmt.Sprintf("%d: (a):0>1", quiet[0]-1))
	w.wantUpdate(s, fmt.Sprintf("%d: (b):0>1", last))
	w.acks(s, quiet[1])
	if at := w.db.Subscribers()[0].Epoch; at < quiet[1] || at >= last {
		t.Errorf("the place is epoch %d, want one from %d on and before %d", at, quiet[1], last)
	}
	w.wantErr("an epoch that is not there yet", s.Ack(last+1), triegs.ErrValue)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.wantUpdate(w.subscribe("q", opts), fmt.Sprintf("%d: (b):0>1", last))
}

// The whole answer comes again until it, or something behind it, was acknowledged.
func TestNameWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x) :- R(x, y).")
	w.grow(1, 2)
	opts := triegs.SubscribeOptions{Name: "n", Mode: triegs.SnapshotFirst, PerEpoch: true}
	s := w.subscribe("q", opts)
	w.wantErr("not told yet", s.Ack(3), triegs.ErrValue)
	w.wantUpdate(s, "3: (1):0>1 (2):0>1")
	w.grow(3, 3)
	w.wantUpdate(s, "4: (3):0>1")
	_ = s.Close() // always nil
	w.grow(4, 4)
	for range 2 {
		s = w.subscribe("q", triegs.SubscribeOptions{Name: "n"}) // whatever Mode says
		w.wantUpdate(s, "5: (1):0>1 (2):0>1 (3):0>1 (4):0>1")
		_ = s.Close() // always nil
		w.reopen(dir, nil)
	}
	s = w.subscribe("q", opts)
	w.wantUpdate(s, "5: (1):0>1 (2):0>1 (3):0>1 (4):0>1")
	w.acks(s, 5)
	w.grow(5, 6)
	_ = s.Close() // always nil
	for range 2 {
		s = w.subscribe("q", opts)
		w.told(s, 5, 6)
		_ = s.Close() // always nil
		w.reopen(dir, nil)
	}
	// One that is told more before the answer is acknowledged has both by one Ack.
	opts.Name = "m"
	s = w.subscribe("q", opts)
	w.wantUpdate(s, "7: (1):0>1 (2):0>1 (3):0>1 (4):0>1 (5):0>1 (6):0>1")
	w.grow(7, 9)
	w.told(s, 7, 8)
	w.acks(s, 9)
	_ = s.Close() // always nil
	s = w.subscribe("q", opts)
	w.told(s, 9, 9)
	_ = s.Close() // always nil
}

// What is refused is typed, and leaves the name as it was.
func TestNameErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	ctx := w.ctx
	w.register("q", "q(x) :- R(x, y).")
	w.register("p", "p(x) :- R(x, y).")
	for what, opts := range map[string]triegs.SubscribeOptions{
		"buffer":  {Name: "n", PerEpoch: true, Buffer: 5},
		"slow":    {Name: "n", PerEpoch: true, Slow: triegs.SlowEnd},
		"long":    {Name: strings.Repeat("n", 2000)},
		"where":   {Name: "n", Where: map[string]triegs.Term{"z": triegs.Int(1)}},
		"no mode": {Name: "n", Mode: 9},
	} {
		_, err := w.db.Subscribe(ctx, "q", opts)
		w.wantErr(what, err, triegs.ErrValue)
	}
	_, err := w.db.Subscribe(ctx, "r", byName)
	w.wantErr("no query", err, triegs.ErrNoSuchQuery)
	if info := w.db.Subscribers(); len(info) > 0 {
		t.Errorf("refused names are there: %+v", info)
	}
	s := w.subscribe("q", byName)
	_, err = w.db.Subscribe(ctx, "q", byName)
	w.wantErr("a second one", err, triegs.ErrNameInUse)
	w.wantErr("forget", w.db.Forget(ctx, "consumer"), triegs.ErrNameInUse)
	w.wantErr("forget nobody", w.db.Forget(ctx, "nobody"), triegs.ErrValue)
	w.grow(1, 3)
	w.wantErr("not told", s.Ack(3), triegs.ErrValue)
	w.wantUpdate(s, "3: (1):0>1")
	w.acks(s, 3)
	w.wantErr("not told", s.Ack(4), triegs.ErrValue)
	unnamed := w.subscribe("q", triegs.SubscribeOptions{})
	w.wantErr("unnamed", unnamed.Ack(1), triegs.ErrValue)
	_ = unnamed.Close() // always nil
	_ = s.Close()       // always nil
	w.wantErr("closed", s.Ack(3), triegs.ErrSnapshotClosed)
	_, err = w.db.Subscribe(ctx, "p", byName)
	w.wantErr("of another query", err, triegs.ErrValue)
	// The query goes: what is there is told, then its end; a new one is another one.
	if err := w.db.Drop(ctx, "q"); err != nil {
		t.Fatal(err)
	}
	w.register("q", "q(x) :- R(x, y).")
	w.do("+R(9,h)")
	for range 2 {
		s = w.subscribe("q", byName)
		w.wantUpdate(s, "4: (2):0>1")
		w.wantUpdate(s, "5: (3):0>1")
		w.wantEnd(s, triegs.ErrNoSuchQuery)
		w.reopen(dir, nil)
	}
	if err := w.db.Forget(ctx, "consumer"); err != nil {
		t.Fatal(err)
	}
	s = w.subscribe("q", byName)
	w.wantUpdate(s, fmt.Sprintf("%d: (10):0>1", w.do("+R(10,h)")))
	_ = s.Close() // always nil
	w.do("-R(10,h)")
	if kept := w.db.Metrics().RetainedEpochs; kept != 1 {
		t.Errorf("%d epochs are retained", kept)
	}
	w.reopen(dir, &triegs.Options{ReadOnly: true})
	_, err = w.db.Subscribe(ctx, "q", byName)
	w.wantErr("read-only", err, triegs.ErrReadOnly)
	w.wantErr("read-only", w.db.Forget(ctx, "consumer"), triegs.ErrReadOnly)
	if info := w.db.Subscribers(); len(info) != 1 || info[0].Lost != "" {
		t.Errorf("read-only: %+v", info)
	}
	w.reopen(dir, nil)
	if err := w.db.Forget(ctx, "consumer"); err != nil || w.db.Metrics().RetainedEpochs > 0 {
		t.Errorf("%v, %d epochs are retained", err, w.db.Metrics().RetainedEpochs)
	}
}

// A name whose place is of a history that was given up is refused until it is
// forgotten: after a crash without durability, a restore, and in a repaired store.
func TestSUB03Name(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir, crashed, backup := base+"/a", base+"/b", base+"/c"
	relaxed := &triegs.Options{Durability: triegs.SyncNone}
	w := newWorld(t, dir, relaxed)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", byName)
	w.grow(1, 4)
	w.told(s, 1, 2)
	w.acks(s, 3)
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	// What was acknowledged never leads the log.
	if back := newWorld(t, crashed, relaxed); back.epoch() < 3 {
		t.Errorf("epoch 3 was acknowledged, the log ends with %d", back.epoch())
	} else {
		back.refusesName()
	}
	if err := w.db.Backup(w.ctx, backup); err != nil {
		t.Fatal(err)
	}
	w.told(s, 3, 3)
	w.acks(s, 4)
	w.told(s, 4, 4)
	w.grow(5, 5)
	if err := w.db.Backup(w.ctx, backup); err != nil { // what is new is added
		t.Fatal(err)
	}
	_ = s.Close() // always nil
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := triegs.Restore(w.ctx, backup, base+"/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := triegs.Repair(w.ctx, dir, base+"/e"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/d", "/e"} {
		restored := newWorld(t, base+d, nil)
		if info := restored.db.Subscribers(); len(info) != 1 || info[0].Epoch != 4 || info[0].Lost == "" {
			t.Errorf("%s: %+v", d, info)
		}
		restored.refusesName()
	}
	// In a store that never had it the name is a new one.
	other := newWorld(t, "", nil)
	other.register("q", "q(x) :- R(x, y).")
	s = other.subscribe("q", byName)
	other.wantUpdate(s, fmt.Sprintf("%d: (1):0>1", other.grow(1, 1)))
	_ = s.Close() // always nil
}

// refusesName checks that the name is of another timeline, and forgets it.
func (w *world) refusesName() {
	w.Helper()
	_, err := w.db.Subscribe(w.ctx, "q", byName)
	w.wantErr("of another history", err, triegs.ErrTimeline)
	if err := w.db.Forget(w.ctx, byName.Name); err != nil {
		w.Fatal(err)
	}
	s := w.subscribe("q", byName)
	w.wantUpdate(s, fmt.Sprintf("%d: (99):0>1", w.do("+R(99,h)")))
	_ = s.Close() // always nil
}

// A name that is farther behind than is allowed loses its place, attached or not,
// and what was kept for it is free.
func TestRetention(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	for _, c := range []struct {
		name   string
		limit  triegs.Retention
		exceed func(w *world)
	}{
		{"epochs", triegs.Retention{Epochs: 20}, func(w *world) { w.grow(100, 125) }},
		{"age", triegs.Retention{Age: time.Hour}, func(w *world) {
			w.grow(100, 100)
			clock.Add(int64(2 * time.Hour))
			w.grow(101, 101)
		}},
		{"log", triegs.Retention{Bytes: 64 << 10}, func(w *world) { w.do("+R(" + strings.Repeat("x", 100<<10) + ",h)") }},
		{"memory", triegs.Retention{Bytes: 64 << 10}, func(w *world) {
			for i := range 200 {
				w.append(triegs.Batch{Events: edges("R", 40, func(j int) int { return i*50 + j })})
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, dir := range []string{"", t.TempDir()} {
				if dir == "" && c.name == "log" {
					continue // there is none
				}
				retention(t, dir, c.limit, c.exceed, &clock)
			}
		})
	}
}

func retention(t *testing.T, dir string, limit triegs.Retention, exceed func(*world), clock *atomic.Int64) {
	var notices atomic.Int64
	opts := &triegs.Options{Retention: limit, CheckpointBytes: -1}
	opts.Clock = func() time.Time { return time.Unix(1000, clock.Load()) }
	opts.OnEvent = func(n triegs.Notice) {
		if n.Kind == triegs.NoticeSubscriberLost && n.Epoch == 2 && errors.Is(n.Err, triegs.ErrTooOld) &&
			(n.Subscriber == "here" || n.Subscriber == "away") {
			notices.Add(1)
		}
	}
	w := newWorld(t, dir, opts)
	w.register("q", "q(x) :- R(x, y).")
	attached := w.subscribe("q", triegs.SubscribeOptions{Name: "here", PerEpoch: true})
	away := w.subscribe("q", triegs.SubscribeOptions{Name: "away", PerEpoch: true})
	w.grow(1, 3)
	for _, s := range []*triegs.Subscription{attached, away} {
		w.wantUpdate(s, "2: (1):0>1")
		w.acks(s, 2)
	}
	_ = away.Close()                // always nil
	clock.Add(int64(3 * time.Hour)) // nothing has come meanwhile that was not there
	if limit.Age == 0 {
		if kept := w.db.Metrics().RetainedEpochs; kept == 0 {
			t.Fatal("nothing is kept")
		}
	}
	exceed(w)
	if n := notices.Load(); n != 2 {
		t.Fatalf("%d notices", n)
	}
	if kept := w.db.Metrics().RetainedEpochs; kept > 0 {
		t.Errorf("%d epochs are kept for nobody", kept)
	}
	w.wantEnd(attached, triegs.ErrTooOld)
	w.wantErr("ack", attached.Ack(2), triegs.ErrTooOld)
	for i := 0; ; i++ {
		for _, name := range []string{"here", "away"} {
			_, err := w.db.Subscribe(w.ctx, "q", triegs.SubscribeOptions{Name: name})
			w.wantErr(name, err, triegs.ErrTooOld)
		}
		if dir == "" || i == 1 {
			break
		}
		w.reopen(dir, opts)
	}
	if info := w.db.Subscribers(); len(info) != 2 || info[0].Lost == "" || info[0].RetainedBytes > 0 {
		t.Errorf("%+v", info)
	}
	if err := w.db.Forget(w.ctx, "away"); err != nil {
		t.Fatal(err)
	}
	s := w.subscribe("q", triegs.SubscribeOptions{Name: "away"})
	w.wantUpdate(s, fmt.Sprintf("%d: (z):0>1", w.do("+R(z,h)")))
	_ = s.Close() // always nil
}

// The end of a context ends the subscription and leaves the place.
func TestNameContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	ctx, cancel := context.WithCancel(w.ctx)
	s, err := w.db.Subscribe(ctx, "q", byName)
	if err != nil {
		t.Fatal(err)
	}
	w.grow(1, 2)
	w.told(s, 1, 1)
	w.acks(s, 2)
	cancel()
	within(t, 10*time.Second, "the name", func() {
		for len(w.db.Subscriptions()) > 0 || w.db.Subscribers()[0].Attached {
			time.Sleep(time.Millisecond)
		}
	})
	w.wantErr("ack", s.Ack(2), context.Canceled)
	s = w.subscribe("q", byName)
	w.told(s, 2, 2)
	_ = s.Close() // always nil
}

// A name that fell behind while the store was closed has lost its place when that is
// opened again, and the log and the checkpoints are free of it.
func TestRetentionClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Unix(1000, 0)
	var notices int
	opts := &triegs.Options{
		CheckpointBytes: -1, Clock: func() time.Time { return at }, Retention: triegs.Retention{Age: time.Hour},
		OnEvent: func(n triegs.Notice) {
			if n.Kind == triegs.NoticeSubscriberLost && n.Subscriber == "consumer" && n.Epoch == 2 && errors.Is(n.Err, triegs.ErrTooOld) {
				notices++
			}
		},
	}
	w := newWorld(t, dir, opts)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", byName)
	w.grow(1, 3)
	w.told(s, 1, 1)
	w.acks(s, 2)
	_ = s.Close() // always nil
	w.checkpoint()
	w.reopen(dir, opts)
	if r := w.db.Recovery(); r.Passed != 4 || notices > 0 {
		t.Errorf("passed %d, %d notices", r.Passed, notices)
	}
	at = at.Add(2 * time.Hour)
	w.reopen(dir, opts)
	if r := w.db.Recovery(); r.Passed != 0 || r.Checkpoint != 4 || notices != 1 {
		t.Errorf("passed %d, the checkpoint is %d, %d notices", r.Passed, r.Checkpoint, notices)
	}
	_, err := w.db.Subscribe(w.ctx, "q", byName)
	w.wantErr("behind for long", err, triegs.ErrTooOld)
	if err == nil || !strings.Contains(err.Error(), "the oldest that is kept is 4") {
		t.Errorf("%v does not name the oldest epoch", err)
	}
}

// In the modes that do not sync each epoch a name goes on after a Close, and what it
// has acknowledged is durable.
func TestNameRelaxed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := &triegs.Options{Durability: triegs.SyncNone}
	w := newWorld(t, dir, opts)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", byName)
	w.grow(1, 5)
	w.told(s, 1, 2)
	before := w.db.Metrics().LogSyncs
	w.acks(s, 3)
	w.acks(s, 3)
	if after := w.db.Metrics().LogSyncs; after != before+1 {
		t.Errorf("%d syncs of the log for an acknowledgement", after-before)
	}
	epoch := w.epoch()
	if w.acks(s, 3); w.epoch() != epoch {
		t.Error("an acknowledgement has made an epoch")
	}
	_ = s.Close() // always nil
	w.reopen(dir, opts)
	s = w.subscribe("q", byName)
	w.told(s, 3, 5)
	w.acks(s, 6)
	_ = s.Close() // always nil
}
