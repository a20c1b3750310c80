package fuzz

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// What the log holds of the time before a place is not kept for it, also behind a
// restart that has replayed it: Retention.Bytes takes no place away for that.
func TestRetentionRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := &triegs.Options{Retention: triegs.Retention{Bytes: 256 << 10}, CheckpointBytes: -1}
	w := newWorld(t, dir, opts)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", byName)
	long := strings.Repeat("x", 100<<10)
	put := func(i int) triegs.Epoch { return w.do(fmt.Sprintf("+R(%s%d,h)", long, i)) }
	for i := range 10 {
		e := put(i)
		w.wantUpdate(s, fmt.Sprintf("%d: (%s%d):0>1", e, long, i))
		w.acks(s, e)
	}
	_ = s.Close() // always nil
	e := put(10)
	w.reopen(dir, opts)
	if info := w.db.Subscribers(); len(info) != 1 || info[0].Lost != "" || info[0].RetainedBytes > 200<<10 {
		t.Errorf("%+v", info)
	}
	next := w.do("+R(1,h)")
	s = w.subscribe("q", byName)
	w.wantUpdate(s, fmt.Sprintf("%d: (%s10):0>1", e, long))
	w.wantUpdate(s, fmt.Sprintf("%d: (1):0>1", next))
	_ = s.Close() // always nil
	// What comes behind the place counts, on both sides of a restart.
	put(11)
	w.reopen(dir, opts)
	put(12)
	_, err := w.db.Subscribe(w.ctx, "q", byName)
	w.wantErr("too much", err, triegs.ErrTooOld)
}

// A place whose query was dropped keeps the log too, so limits count for it though
// there is nothing more to tell.
func TestRetentionDropped(t *testing.T) {
	t.Parallel()
	for _, limit := range []triegs.Retention{{Bytes: 256 << 10}, {Epochs: 10}} {
		w := newWorld(t, t.TempDir(), &triegs.Options{Retention: limit, CheckpointBytes: -1})
		w.register("q", "q(x) :- R(x, y).")
		s := w.subscribe("q", byName)
		w.wantUpdate(s, fmt.Sprintf("%d: (1):0>1", w.do("+R(1,h)")))
		w.acks(s, w.epoch())
		if err := w.db.Drop(w.ctx, "q"); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(s, triegs.ErrNoSuchQuery)
		_ = s.Close() // always nil
		if info := w.db.Subscribers(); len(info) != 1 || info[0].Lost != "" {
			t.Errorf("at once: %+v", info)
		}
		for i := range 15 {
			w.do(fmt.Sprintf("+R(%s%d,h)", strings.Repeat("x", 100<<10), i))
		}
		if info := w.db.Subscribers(); len(info) != 1 || info[0].Lost == "" || info[0].RetainedBytes > 0 {
			t.Errorf("%+v", info)
		}
	}
}

// A name that still waits for its first whole answer is of its query as well, and
// not of a new one that is called the same.
func TestNameWholeOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x) :- R(x, y).")
	opts := triegs.SubscribeOptions{Name: "n", Mode: triegs.SnapshotFirst}
	_ = w.subscribe("q", opts).Close() // always nil
	if err := w.db.Drop(w.ctx, "q"); err != nil {
		t.Fatal(err)
	}
	w.register("q", "q(x, y) :- R(x, y).")
	for range 2 {
		_, err := w.db.Subscribe(w.ctx, "q", opts)
		w.wantErr("another query", err, triegs.ErrNoSuchQuery)
		w.reopen(dir, nil)
	}
	if err := w.db.Forget(w.ctx, "n"); err != nil {
		t.Fatal(err)
	}
	s := w.subscribe("q", opts)
	w.wantUpdate(s, fmt.Sprintf("%d: ", w.epoch()))
	_ = s.Close() // always nil
}

// The writer asks whether a catalog has the query of a place while that is moved.
// The race detector looks at it.
func TestNameAcksBesideDrops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x) :- R(x, y).")
	_ = w.subscribe("q", byName).Close() // always nil
	w.reopen(dir, nil)
	s := w.subscribe("q", byName)
	const rounds = 10
	last := w.epoch() + 3*rounds
	acked := make(chan error, 1)
	go func() {
		for u, err := range s.Updates() {
			if err == nil {
				err = s.Ack(u.Epoch)
			}
			if err != nil || u.Epoch == last {
				acked <- err
				return
			}
		}
	}()
	for range rounds {
		w.register("p", "p(x) :- R(x, y).")
		w.do("+R(1,h)")
		if err := w.db.Drop(w.ctx, "p"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-acked; err != nil {
		t.Error(err)
	}
	_ = s.Close() // always nil
}
