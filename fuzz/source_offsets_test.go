package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// ears collect notices.
type ears struct{ heard []triegs.Notice }

func (e *ears) options() *triegs.Options {
	return &triegs.Options{OnEvent: func(n triegs.Notice) { e.heard = append(e.heard, n) }}
}

// span is a batch of source s that inserts R(i,h) at each offset i of
// [from, to).
func span(from, to int) triegs.Batch {
	b := triegs.Batch{Source: "s", Offset: uint64(from), Time: time.Unix(1, 0)}
	for i := from; i < to; i++ {
		b.Events = append(b.Events, triegs.Edge("R", triegs.Int(int64(i)), triegs.String("h")))
	}
	return b
}

// wantNext checks the position of a source.
func (w *world) wantNext(source string, next uint64, known bool) {
	w.Helper()
	got, ok := w.db.Offset(source)
	if got != next || ok != known {
		w.Fatalf("source %q: position %d, known: %v; want %d, %v", source, got, ok, next, known)
	}
	s := w.snapshot()
	defer s.Close()
	if at, ok := s.Offsets()[source]; at != next || ok != known {
		w.Fatalf("source %q in a snapshot: position %d, known: %v; want %d, %v", source, at, ok, next, known)
	}
}

// What a source sends again after a restart is skipped, counted and told.
func TestSRC01(t *testing.T) {
	dir := t.TempDir()
	var e ears
	w := newWorld(t, dir, e.options())
	w.register("q", "q(x) :- R(x, y).")
	w.append(span(1, 51))
	w.append(span(51, 101))
	w.wantNext("s", 101, true)
	w.reopen(dir, e.options())
	w.wantNext("s", 101, true)
	before := w.epoch()
	if got := w.append(span(50, 151)); got != before+1 {
		t.Errorf("the overlapping batch is epoch %d, want %d", got, before+1)
	}
	want := triegs.Notice{Kind: triegs.NoticeReplay, Epoch: before + 1, Source: "s", Position: 101, Offset: 50, Count: 51}
	if len(e.heard) != 1 || e.heard[0] != want {
		t.Errorf("told %+v, want %+v", e.heard, want)
	}
	// A full replay is no epoch, and nothing of it is looked at.
	again := span(50, 151)
	again.Events[3] = triegs.Event{}
	if got := w.append(again); got != before+1 {
		t.Errorf("a full replay gives epoch %d, want the current %d", got, before+1)
	}
	if m := w.db.Metrics(); m.Replayed != 51+101 || m.Epoch != before+1 {
		t.Errorf("%d replayed at epoch %d; want 152 at %d", m.Replayed, m.Epoch, before+1)
	}
	w.wantNext("s", 151, true)
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", 150, 150)
	for r, err := range s.Answers("q") {
		if err != nil || r.Multiplicity() != 1 {
			t.Fatalf("%s x%d, %v", lexical(r), r.Multiplicity(), err)
		}
	}
}

// Gaps are ordinary, unless sources are dense.
func TestSRC02(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	for _, b := range []triegs.Batch{span(1, 11), span(15, 17), span(40, 41)} {
		w.append(b)
	}
	w.wantNext("s", 41, true)
	s := w.snapshot()
	w.wantCount(s, "q", 13, 13)
	s.Close()

	dense := newWorld(t, "", &triegs.Options{DenseSources: true})
	dense.append(span(1, 11)) // where it begins is its own affair
	err := dense.refuseBatch(triegs.ErrGap, span(15, 17))
	if !strings.Contains(err.Error(), "11") || !strings.Contains(err.Error(), `"s"`) {
		t.Errorf("error %q names neither the source nor offset 11", err)
	}
	dense.wantNext("s", 11, true)
	dense.append(span(5, 15)) // no gap: it overlaps
	dense.wantNext("s", 15, true)
	dense.refuseBatch(triegs.ErrGap, span(16, 17))
	if err := dense.db.SkipTo(dense.ctx, "s", 16); err != nil {
		t.Fatal(err)
	}
	dense.append(span(16, 17))
	// A gap between two batches of one epoch counts as well, and takes the whole
	// epoch back.
	if _, err := dense.db.AppendAll(dense.ctx, span(17, 19), span(20, 21)); !errors.Is(err, triegs.ErrGap) {
		t.Errorf("a gap inside of an epoch: %v", err)
	}
	dense.wantNext("s", 17, true)
}

// A source that starts again from 0 is told of, and is taken after a reset.
func TestSRC03(t *testing.T) {
	dir := t.TempDir()
	var e ears
	w := newWorld(t, dir, e.options())
	w.register("q", "q(x) :- R(x, y).")
	if err := w.db.ResetSource(w.ctx, "s", "first"); err != nil {
		t.Fatal(err)
	}
	w.append(span(99_998, 99_999))
	before := w.epoch()
	if got := w.append(span(0, 3)); got != before {
		t.Errorf("what lies behind is epoch %d, want the current %d", got, before)
	}
	want := triegs.Notice{Kind: triegs.NoticeReplay, Source: "s", Position: 99_999, Offset: 0, Count: 3} // of no epoch
	if len(e.heard) != 1 || e.heard[0] != want {
		t.Errorf("told %+v, want %+v", e.heard, want)
	}
	w.want("q", "(99998):1")
	// The current incarnation changes nothing, another one does.
	if err := w.db.ResetSource(w.ctx, "s", "first"); err != nil || w.epoch() != before {
		t.Errorf("a reset to the current incarnation: %v, epoch %d, want %d", err, w.epoch(), before)
	}
	w.wantNext("s", 99_999, true)
	if err := w.db.ResetSource(w.ctx, "s", "second"); err != nil || w.epoch() != before+1 {
		t.Errorf("a reset: %v, epoch %d, want %d", err, w.epoch(), before+1)
	}
	for range 2 {
		w.wantNext("s", 0, true)
		w.reopen(dir, e.options())
	}
	w.append(span(0, 3))
	w.wantNext("s", 3, true)
	w.want("q", "(0):1 (1):1 (2):1 (99998):1")
	w.reopen(dir, e.options())
	if err := w.db.ResetSource(w.ctx, "s", "second"); err != nil {
		t.Fatal(err)
	}
	w.wantNext("s", 3, true)
}

// Never seen, at 0, and after 0 are three things.
func TestSRC04(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	check := func(next uint64, known bool) {
		t.Helper()
		w.wantNext("s", next, known)
		w.reopen(dir, nil)
		w.wantNext("s", next, known)
	}
	check(0, false)
	if err := w.db.SkipTo(w.ctx, "s", 0); err != nil {
		t.Fatal(err)
	}
	check(0, true)
	w.append(span(0, 1))
	check(1, true)
	w.append(span(1, 2))
	check(2, true)
	// A batch without events moves nothing.
	w.append(triegs.Batch{Source: "s", Offset: 77})
	w.append(triegs.Batch{Source: "new", Offset: 77})
	check(2, true)
	w.wantNext("new", 0, false)
}

// A record that cannot be used stops its source, with the same error each time,
// until it is skipped.
func TestSRC06(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x) :- R(x, y).")
	w.append(span(0, 7))
	bad := span(7, 9)
	bad.Events[0].Op = triegs.Delete
	var texts []string
	for range 3 {
		texts = append(texts, w.refuseBatch(triegs.ErrNoSuchFact, bad).Error())
	}
	if texts[0] != texts[1] || texts[1] != texts[2] {
		t.Errorf("the tries differ: %q", texts)
	}
	w.wantNext("s", 7, true)
	before := w.epoch()
	if err := w.db.SkipTo(w.ctx, "s", 6); !errors.Is(err, triegs.ErrValue) || w.epoch() != before {
		t.Errorf("backwards: %v at epoch %d, want ErrValue at %d", err, w.epoch(), before)
	}
	for range 2 { // the second time it stands there already
		if err := w.db.SkipTo(w.ctx, "s", 8); err != nil {
			t.Fatal(err)
		}
		if got := w.epoch(); got != before+1 {
			t.Errorf("epoch %d, want %d", got, before+1)
		}
	}
	w.wantNext("s", 8, true)
	w.reopen(dir, nil)
	w.wantNext("s", 8, true)
	s := w.snapshot()
	w.wantCount(s, "q", 7, 7)
	s.Close()
	w.append(bad) // the bad one lies behind now
	s = w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", 8, 8)
}

// Positions at the end of their range, twice the same source in one epoch, and
// names that are none.
func TestSourceEdges(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x) :- R(x, y).")
	at := func(offset uint64, n int) triegs.Batch {
		b := span(0, n)
		b.Offset = offset
		return b
	}
	w.refuseBatch(triegs.ErrValue, at(math.MaxUint64, 1))
	w.refuseBatch(triegs.ErrValue, at(math.MaxUint64-3, 4))
	w.wantNext("s", 0, false)
	w.append(at(math.MaxUint64-3, 3))
	w.wantNext("s", math.MaxUint64, true)
	w.refuseBatch(triegs.ErrValue, at(math.MaxUint64, 1))
	w.reopen(dir, nil)
	w.wantNext("s", math.MaxUint64, true)
	// Anything before is a replay now.
	before := w.epoch()
	if got := w.append(at(5, 3)); got != before {
		t.Errorf("a replay is epoch %d, want %d", got, before)
	}
	// One epoch with a source twice: the second batch goes on where the first
	// ends, or overlaps with it.
	u := func(from, to int) triegs.Batch {
		b := span(from, to)
		b.Source = "u"
		return b
	}
	e, err := w.db.AppendAll(w.ctx, u(100, 103), u(103, 105), u(102, 107))
	if err != nil || e != before+1 {
		t.Fatalf("epoch %d, %v; want %d", e, err, before+1)
	}
	w.wantNext("u", 107, true)
	s := w.snapshot()
	w.wantCount(s, "q", 10, 10)
	s.Close()
	// A fault in the last batch takes all of them back.
	bad := u(999, 1000)
	bad.Source, bad.Events[0].Op = "v", triegs.Delete
	if _, err := w.db.AppendAll(w.ctx, u(107, 110), bad); !errors.Is(err, triegs.ErrNoSuchFact) || !strings.Contains(err.Error(), "batch 1") {
		t.Errorf("got %v, want ErrNoSuchFact of batch 1", err)
	}
	w.wantNext("u", 107, true)
	w.wantNext("v", 0, false)
	// All batches replays: no epoch.
	if e, err := w.db.AppendAll(w.ctx, u(100, 103), u(100, 107)); err != nil || e != before+1 {
		t.Errorf("replays alone: epoch %d, %v; want the current %d", e, err, before+1)
	}
	// A replay beside something new.
	if e, err := w.db.AppendAll(w.ctx, u(100, 103), triegs.Batch{Events: events("+R(x,y)")}); err != nil || e != before+2 {
		t.Errorf("epoch %d, %v; want %d", e, err, before+2)
	}
	for what, err := range map[string]error{
		"SkipTo": w.db.SkipTo(w.ctx, "", 1), "ResetSource": w.db.ResetSource(w.ctx, "", "x"),
	} {
		if !errors.Is(err, triegs.ErrValue) {
			t.Errorf("%s of no source: %v", what, err)
		}
	}
	// Every name is a name.
	for i, name := range []string{"a\x00b", "\xff\xfe", strings.Repeat("n", 100_000), " ", "s\n"} {
		b := span(i, i+1)
		b.Source = name
		w.append(b)
		w.wantNext(name, uint64(i+1), true)
	}
	w.reopen(dir, nil)
	w.wantNext("\xff\xfe", 2, true)
	w.wantNext("u", 107, true)
}

// endsOnceCommitted is a context that is whole for a number of looks and then
// over; whoever waits on it does not wait at all.
type endsOnceCommitted struct {
	context.Context
	looks *int
}

func (c endsOnceCommitted) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (c endsOnceCommitted) Err() error {
	if *c.looks--; *c.looks >= 0 {
		return nil
	}
	return context.Canceled
}

// A replay acknowledges the epoch that applied its events, so it waits until
// readers can see that epoch, and so until it is durable.
func TestReplayWaits(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	early := 0
	for i := range 50 {
		looks := 2 // before the lock and before the log
		b := span(i*10, i*10+10)
		e, err := w.db.Append(endsOnceCommitted{w.ctx, &looks}, b)
		if err == nil {
			continue // it was durable at once
		}
		if !errors.Is(err, context.Canceled) || e == 0 || !strings.Contains(err.Error(), fmt.Sprint("epoch ", e)) {
			t.Fatalf("got epoch %d, %v; want an epoch that stands, and a cancelled context", e, err)
		}
		early++
		again := w.append(b)
		if seen := w.epoch(); again != e || seen < again {
			t.Fatalf("the replay was acknowledged as epoch %d while readers saw %d (applied as %d)", again, seen, e)
		}
	}
	t.Logf("%d of 50 appends were left while their sync ran", early)
}

// A context that ends while an epoch is being made leaves no trace of it, also
// when the net change is nothing.
func TestCancelledEpochs(t *testing.T) {
	w := newWorld(t, "", nil) // where an epoch is seen as soon as it is made
	w.do("+R(a,b)")
	before := w.epoch()
	for what, call := range map[string]func(ctx context.Context) error{
		"a change": func(ctx context.Context) error { _, err := w.db.Append(ctx, span(0, 2)); return err },
		"no net change": func(ctx context.Context) error {
			_, err := w.db.Append(ctx, triegs.Batch{Events: events("+R(c,d) -R(c,d)")})
			return err
		},
		"no events":   func(ctx context.Context) error { _, err := w.db.Append(ctx, triegs.Batch{}); return err },
		"SkipTo":      func(ctx context.Context) error { return w.db.SkipTo(ctx, "s", 5) },
		"ResetSource": func(ctx context.Context) error { return w.db.ResetSource(ctx, "s", "x") },
		"Register": func(ctx context.Context) error {
			_, err := w.db.Register(ctx, "q", "q(x) :- R(x, y).")
			return err
		},
	} {
		looks := 1 // before the lock
		err := call(endsOnceCommitted{w.ctx, &looks})
		if !errors.Is(err, context.Canceled) || w.epoch() != before {
			t.Errorf("%s: %v at epoch %d; want a cancelled context at %d", what, err, w.epoch(), before)
			before = w.epoch()
		}
	}
	w.wantNext("s", 0, false)
	if n := len(w.db.Queries()); n != 0 {
		t.Errorf("%d queries", n)
	}
}
