package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
)

// winStream is the input of the kill test with windows: event n of it is always
// the same, whatever is live when it comes.
type winStream struct {
	rng  *rand.Rand
	next uint64
	seen []oracle.Event // the last ones, for copies, refreshes and retractions
}

func newWinStream() *winStream { return &winStream{rng: rand.New(rand.NewPCG(17, 7))} }

// winStreamBack is how far event times go back.
const winStreamBack = 20

// event gives the next event. Its time is about its number.
func (s *winStream) event() oracle.Event {
	s.next++
	e := oracle.Event{Relation: oneOf(s.rng, "R", "S", "T"), Time: int64(s.next) - s.rng.Int64N(winStreamBack)}
	for range 2 {
		e.Tuple = append(e.Tuple, triegs.Int(int64(s.rng.IntN(6))).String())
	}
	if percent(s.rng, 30) {
		e.ID = fmt.Sprintf("id%d", s.next)
	}
	if len(s.seen) > 0 {
		old := oneOf(s.rng, s.seen...)
		switch n := s.rng.IntN(100); {
		case n < 20: // a copy, or a refresh if it has an ID and lives
			e.Relation, e.Tuple, e.ID = old.Relation, old.Tuple, old.ID
		case n < 40:
			e = oracle.Event{Delete: true, Relation: old.Relation, Tuple: old.Tuple, Time: int64(s.next)}
			if old.ID != "" && percent(s.rng, 50) {
				e.Relation, e.Tuple, e.ID = "", nil, old.ID
			}
		}
	}
	if !e.Delete {
		if s.seen = append(s.seen, e); len(s.seen) > 30 {
			s.seen = s.seen[1:]
		}
	}
	return e
}

// take gives the next n events.
func (s *winStream) take(n int) (out []oracle.Event) {
	for range n {
		out = append(out, s.event())
	}
	return out
}

// winKept are the queries that stay, so that the others change nothing of what is
// kept.
var winKept = []string{
	"k0(x, y) :- R(x, y) window 60ns.",
	"k1(x, y, z) :- S(x, y), S(y, z) window 40ns slide 7ns.",
	"k2(x, y) :- T(x, y)[last 9].",
}

// winComing are the queries that come and go.
var winComing = []string{
	"c0(x, y, z) :- R(x, y)[30ns], S(y, z)[40ns slide 7ns].",
	"c1(x, y, z) :- R(x, y)[10ns slide 4ns], R(y, z)[60ns].",
	"c2(x, y, z) :- S(x, y)[5ns], T(y, z)[last 4].",
	"c3(x, y) :- R(x, y) window 1ns.",
	"c4(x, y) :- T(x, y) last 1.",
}

// winOptions are the options of the store that is killed.
func winOptions(rng *rand.Rand, eventTime bool) *triegs.Options {
	o := churnOptions(rng)
	o.Clock, o.Tick, o.EventTime, o.Lateness = still, -1, eventTime, winStreamBack
	if !eventTime {
		o.Lateness = 0
	}
	return o
}

// winFeed appends one batch.
func winFeed(ctx context.Context, db *triegs.DB, events []oracle.Event, from uint64, eventTime bool) error {
	b := triegs.Batch{Source: "s", Offset: from, IgnoreMissing: true}
	for _, e := range events {
		ev := event(e)
		ev.Time = time.Unix(0, e.Time)
		b.Events = append(b.Events, ev)
	}
	if now := time.Unix(0, int64(from)+int64(len(events))); eventTime {
		b.Watermark = now.Add(-winStreamBack / 2)
	} else {
		b.Time = now
	}
	_, err := db.Append(ctx, b)
	return err
}

// winAppendFrom is the child: it appends the stream from where the store is,
// moves time without events, saves, and lets queries come and go.
func winAppendFrom(eventTime bool) func(string, uint64, *rand.Rand, reporter) error {
	return func(dir string, stop uint64, rng *rand.Rand, r reporter) error {
		ctx := context.Background()
		db, err := triegs.Open(dir, winOptions(rng, eventTime))
		if err != nil {
			return err
		}
		at, _ := db.Offset("s")
		s := newWinStream()
		s.take(int(at))
		for i, text := range winKept {
			name := fmt.Sprintf("k%d", i)
			if _, err := db.Query(name); err != nil {
				if _, err := db.Register(ctx, name, text); err != nil {
					return err
				}
			}
		}
		r.say("ready")
		for stop == 0 || s.next < stop {
			if err := winStep(ctx, db, s, stop, rng, r, eventTime); err != nil {
				return err
			}
		}
		return db.Close()
	}
}

// winStep does one thing.
func winStep(ctx context.Context, db *triegs.DB, s *winStream, stop uint64, rng *rand.Rand, r reporter, eventTime bool) error {
	switch n := rng.IntN(100); {
	case n < 6:
		i := rng.IntN(len(winComing))
		name := fmt.Sprintf("c%d", i)
		if _, err := db.Query(name); err == nil {
			return db.Drop(ctx, name)
		}
		_, err := db.Register(ctx, name, winComing[i])
		return err
	case n < 10:
		return db.Checkpoint(ctx)
	case n < 20:
		to := int64(s.next) + rng.Int64N(4)
		if _, err := db.Advance(ctx, time.Unix(0, to)); err != nil {
			return err
		}
		r.say("time %d", to)
		return nil
	}
	n := 1
	if percent(rng, 30) {
		n = 1 + rng.IntN(25)
	}
	if stop > 0 {
		n = min(n, int(stop-s.next))
	}
	from := s.next
	if err := winFeed(ctx, db, s.take(n), from, eventTime); err != nil {
		return fmt.Errorf("events %d to %d: %w", from, s.next, err)
	}
	r.say("ack %d", s.next)
	return nil
}

// winReference is what the store must be: a store in memory that nobody kills,
// fed with the same batches, and the model.
type winReference struct {
	*testing.T
	db     *triegs.DB
	model  *winModel
	stream *winStream
	counts map[string]int
}

func newWinReference(t *testing.T, eventTime bool) *winReference {
	t.Helper()
	db, err := triegs.Open("", winOptions(rand.New(rand.NewPCG(1, 1)), eventTime))
	if err != nil {
		t.Fatal(err)
	}
	c := &winCase{eventTime: eventTime, sources: 1}
	if eventTime {
		c.lateness = winStreamBack
	}
	r := &winReference{t, db, newWinModel(c), newWinStream(), map[string]int{}}
	for i, q := range rules(t, winKept...) {
		c.queries = append(c.queries, winQuery{Query: q})
		if _, err := db.Register(context.Background(), q.Name, winKept[i]); err != nil {
			t.Fatal(err)
		}
		_ = r.model.apply(&winAct{do: actRegister, query: i}) // never refused
	}
	return r
}

// feed applies the batch that ends at an offset.
func (r *winReference) feed(to uint64) {
	r.Helper()
	from := r.stream.next
	events := r.stream.take(int(to - from))
	if err := winFeed(context.Background(), r.db, events, from, r.model.c.eventTime); err != nil {
		r.Fatalf("events %d to %d of the reference: %v", from, to, err)
	}
	a := winAct{do: actAppend, events: events, at: int64(to), ignore: true}
	if r.model.c.eventTime {
		a.at -= winStreamBack / 2
	}
	// An ID of another fact refuses a batch in arrival mode: the stream has none.
	if err := r.model.apply(&a); err != nil {
		r.Fatalf("events %d to %d of the model: %v", from, to, err)
	}
}

// advance moves time.
func (r *winReference) advance(to int64) {
	r.Helper()
	if _, err := r.db.Advance(context.Background(), time.Unix(0, to)); err != nil {
		r.Fatal(err)
	}
	_ = r.model.apply(&winAct{do: actAdvance, at: to}) // never refused
}

// told does what the child was told that it has done.
func (r *winReference) told(lines []string) {
	r.Helper()
	for _, line := range lines {
		f := strings.Fields(line)
		n := int64(0)
		if len(f) > 1 {
			n, _ = strconv.ParseInt(f[1], 10, 64)
		}
		switch f[0] {
		case "ack":
			r.feed(uint64(n))
		case "time":
			r.advance(n)
		}
	}
}

// check compares an opened store with the reference, after the one step that the
// child may have made without being told.
func (r *winReference) check(db *triegs.DB) {
	r.Helper()
	s, err := db.Snapshot()
	if err != nil {
		r.Fatal(err)
	}
	defer s.Close()
	at, _ := db.Offset("s")
	switch now := s.Time().UnixNano(); {
	case at < r.stream.next:
		r.Fatalf("offset %d, but %d was acknowledged", at, r.stream.next)
	case at > r.stream.next+25:
		r.Fatalf("offset %d is more than a batch ahead of the acknowledged %d", at, r.stream.next)
	case at > r.stream.next:
		r.counts["a batch ahead"]++
		r.feed(at)
	case r.model.started && now > r.model.now:
		r.counts["time ahead"]++
		r.advance(now)
	}
	if r.model.started && s.Time().UnixNano() != r.model.now {
		r.Fatalf("logical time %d, want %d", s.Time().UnixNano(), r.model.now)
	}
	if got, want := digestOf(r.T, db), digestOf(r.T, r.db); got != want {
		r.Fatalf("digest %v at offset %d, want %v", got, at, want)
	}
	got, want := db.Metrics(), r.db.Metrics()
	if got.Contributions != want.Contributions || got.Facts != want.Facts || got.Waiting != want.Waiting {
		r.Fatalf("%d contributions, %d facts, %d wait; want %d, %d, %d",
			got.Contributions, got.Facts, got.Waiting, want.Contributions, want.Facts, want.Waiting)
	}
	for _, text := range slices.Concat(winKept, winComing) {
		q := rules(r.T, text)[0]
		if _, err := db.Query(q.Name); err != nil {
			continue
		}
		got, err := gather(s.Answers(q.Name))
		if err != nil {
			r.Fatal(err)
		}
		if err := differ(got, q.Oracle().Eval(r.model.state())); err != nil {
			r.Fatalf("%s at offset %d, time %d: %v", text, at, r.model.now, err)
		}
		r.counts["answer sets"]++
	}
	if err := db.Verify(context.Background()); err != nil {
		r.Fatal(err)
	}
}

// killWindows kills the child of a test again and again.
func killWindows(t *testing.T, eventTime bool) {
	ref := newWinReference(t, eventTime)
	defer ref.db.Close()
	dir := filepath.Join(t.TempDir(), "store")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 15)) // moments, not inputs
	start, n := time.Now(), kills(t)
	for i := range n + 1 {
		stop := uint64(0)
		if i == n {
			stop = ref.stream.next + 100
		}
		v := killAfter(t, t.Name(), dir, stop, rng, 200)
		ref.told(v.lines)
		db, err := triegs.Open(dir, winOptions(rng, eventTime))
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		ref.check(db)
		if db.Recovery().Checkpoint > 0 {
			ref.counts["from a checkpoint"]++
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// In the end everything goes, once.
	db, err := triegs.Open(dir, winOptions(rng, eventTime))
	if err != nil {
		t.Fatal(err)
	}
	end := int64(ref.stream.next) + 1_000
	left := db.Metrics()
	if _, err := db.Advance(context.Background(), time.Unix(0, end)); err != nil {
		t.Fatal(err)
	}
	ref.advance(end)
	ref.check(db)
	gone := db.Metrics()
	if !eventTime && int64(gone.Expired-left.Expired) != left.Contributions-gone.Contributions {
		t.Errorf("%d expired of %d, and %d are left", gone.Expired-left.Expired, left.Contributions, gone.Contributions)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills in %s over %d events: %v", n, time.Since(start).Round(time.Millisecond), ref.stream.next, ref.counts)
	if n >= 30 && ref.counts["from a checkpoint"] == 0 {
		t.Error("no kill left a checkpoint")
	}
}

// A process whose windows slide is killed at random moments: nothing expires
// twice, or never.
func TestKillWindows(t *testing.T) {
	crashChild(t, winAppendFrom(false))
	killWindows(t, false)
}

// The same in event-time mode, where events also wait.
func TestKillWindowsEventTime(t *testing.T) {
	crashChild(t, winAppendFrom(true))
	killWindows(t, true)
}
