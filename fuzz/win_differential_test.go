package fuzz

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// winSteps is the length of a case, the registrations of anchors aside.
const winSteps = 50

// shrinkWin drops steps, events and queries as long as the case still fails.
func shrinkWin(c *winCase, fails func(*winCase) bool) *winCase {
	best := *c
	try := func(acts []winAct) bool {
		next := best
		next.acts = acts
		return next.sound() && fails(&next)
	}
	for before := -1; before != best.parts(); {
		before = best.parts()
		fixed := best.acts[:best.anchors:best.anchors]
		rest := dropRuns(best.acts[best.anchors:], func(acts []winAct) bool { return try(slices.Concat(fixed, acts)) })
		best.acts = slices.Concat(fixed, rest)
		for i := range best.acts {
			with := func(change func(a *winAct)) []winAct {
				acts := slices.Clone(best.acts)
				change(&acts[i])
				return acts
			}
			best.acts[i].events = dropRuns(best.acts[i].events, func(events []oracle.Event) bool {
				return try(with(func(a *winAct) { a.events = events }))
			})
			if acts := with(func(a *winAct) { a.again = 0 }); best.acts[i].again > 0 && try(acts) {
				best.acts = acts
			}
		}
	}
	return &best
}

// dropRuns drops ever smaller runs of elements as long as ok holds for the rest.
func dropRuns[T any](s []T, ok func([]T) bool) []T {
	for n := max(1, len(s)/2); n > 0; n /= 2 {
		for i := 0; i+n <= len(s); {
			if rest := slices.Concat(s[:i], s[i+n:]); ok(rest) {
				s = rest
				continue
			}
			i += n
		}
	}
	return s
}

// parts counts what can be dropped.
func (c *winCase) parts() (n int) {
	for i := range c.acts {
		n += 1 + len(c.acts[i].events) + min(c.acts[i].again, 1)
	}
	return n
}

// sound tells whether queries come and go in turns.
func (c *winCase) sound() bool {
	on := map[int]bool{}
	for _, a := range c.acts {
		if a.do != actRegister && a.do != actDrop {
			continue
		}
		if on[a.query] == (a.do == actRegister) {
			return false
		}
		on[a.query] = !on[a.query]
	}
	return true
}

// reportWin shrinks a failing case.
func reportWin(c *winCase, seed uint64, err error) string {
	deadline := time.Now().Add(30 * time.Second)
	small := shrinkWin(c, func(c *winCase) bool {
		if time.Now().After(deadline) {
			return false
		}
		_, err := playWin(c, seed)
		return err != nil && !errors.Is(err, triegs.ErrUnsupported)
	})
	_, again := playWin(small, seed)
	return fmt.Sprintf("seed %d: %v\nshrunk: %v\nput this under testdata/windows to keep it:\n# seed %d\n%s", seed, err, again, seed, small)
}

// TestOracleWindows compares stores whose queries have windows with the oracle
// after every epoch, in both modes of time: several windows beside each other over
// the same relations, queries that come and go, times out of order and anywhere in
// int64, copies, refreshes, retractions of all kinds, restarts, checkpoints and
// backups in between.
func TestOracleWindows(t *testing.T) {
	stores := sized(2_000, 500/queriesEach, 10)
	const shards = 4
	for _, eventTime := range []bool{false, true} {
		var mu sync.Mutex
		did := map[string]int{}
		t.Run(fmt.Sprintf("event time %v", eventTime), func(t *testing.T) {
			for shard := range shards {
				t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
					t.Parallel()
					for i := shard; i < stores; i += shards {
						seed := uint64(9_000 + i)
						c := drawWin(seed, eventTime, winSteps)
						done, err := playWin(c, seed)
						if err != nil {
							t.Fatal(reportWin(c, seed, err))
						}
						mu.Lock()
						for what, n := range done {
							did[what] += n
						}
						mu.Unlock()
					}
				})
			}
		})
		t.Logf("event time %v, %d stores: %v", eventTime, stores, did)
		for _, what := range []string{"expired", "refused", "late and accepted", "late and dropped", "late and refused", actReopen, actRestore, actCheckpoint, actBeside} {
			if did[what] == 0 && len(did) > 0 && !t.Failed() {
				t.Errorf("event time %v: no %s was met", eventTime, what)
			}
		}
	}
}

// TestOracleAnnotatedWindows is TestOracleWindows for queries of all acyclic classes
// with any head, aggregates and semirings.
func TestOracleAnnotatedWindows(t *testing.T) {
	stores := sized(1_500, 60, 8)
	for _, eventTime := range []bool{false, true} {
		t.Run(fmt.Sprintf("event time %v", eventTime), func(t *testing.T) {
			t.Parallel()
			did, outputs := map[string]int{}, 0
			for i := range stores {
				seed := uint64(60_000 + i)
				c := drawWinFrom(rand.New(rand.NewPCG(seed, 0xa770)), seed, eventTime, true, winSteps)
				for _, q := range c.queries {
					outputs += len(q.Aggregates)
					if q.Semiring != "" {
						outputs++
					}
				}
				done, err := playWin(c, seed)
				if err != nil {
					t.Fatal(reportWin(c, seed, err))
				}
				for what, n := range done {
					did[what] += n
				}
			}
			t.Logf("%d stores, %d values of queries: %v", stores, outputs, did)
			for _, what := range []string{"expired", "answer sets with answers", actReopen, actCheckpoint} {
				if did[what] == 0 || outputs == 0 {
					t.Errorf("no %s was met", what)
				}
			}
		})
	}
}

// FuzzWindows lets a fuzzer make the choices of a case.
func FuzzWindows(f *testing.F) {
	f.Add([]byte("windows, watermarks"), uint64(1), false)
	f.Add([]byte{0, 255, 0, 255, 7, 7, 7, 200, 13, 90}, uint64(2), true)
	f.Add([]byte{}, uint64(3), true)
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, eventTime bool) {
		c := drawWinFrom(rand.New(&choices{data, rand.NewPCG(seed, 4)}), seed, eventTime, seed%2 == 1, 15)
		if _, err := playWin(c, seed); err != nil {
			t.Fatal(reportWin(c, seed, err))
		}
	})
}

// winDelivery is one way in which the events of a case come: batches, each with
// the watermark behind it.
type winDelivery struct {
	marks   []int64
	batches [][]oracle.Event
}

// deliver spreads events, which are in the order of their times, over batches: in
// order, or each at a random moment at which it is not late.
func deliver(r *rand.Rand, events []oracle.Event, lateness int64, n int, inOrder bool) (d winDelivery) {
	last := events[len(events)-1].Time
	first := events[0].Time
	for i := range n {
		d.marks = append(d.marks, first+(last-first)*int64(i+1)/int64(n)+r.Int64N(3)*int64(min(1, n-1-i)))
	}
	slices.Sort(d.marks)
	d.batches = make([][]oracle.Event, n)
	for _, e := range events {
		on := 0 // the batch behind which time has reached it
		for on < n-1 && d.marks[on] < e.Time {
			on++
		}
		k := on
		if !inOrder {
			most := on // the last batch in which it is not late
			for most < n-1 && d.marks[most]-lateness <= e.Time {
				most++
			}
			k = r.IntN(most + 1)
			if percent(r, 50) {
				k = on + r.IntN(most-on+1)
			}
		}
		d.batches[k] = append(d.batches[k], e)
	}
	if !inOrder {
		for _, b := range d.batches {
			r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		}
	}
	return d
}

// winOrderCase draws queries, and events of different times.
func winOrderCase(seed uint64) (c *winCase, events []oracle.Event) {
	r := rand.New(rand.NewPCG(seed, 0x0de7))
	d := &winDrawer{r: r, c: &winCase{eventTime: true, sources: 1 + r.IntN(2)}, arity: map[string]int{}, fits: map[string][]oracle.Atom{}}
	step := oneOf(r, int64(3), 3, 9)
	d.c.lateness = oneOf(r, int64(0), 4, 15, 40) * step
	d.m = newWinModel(d.c)
	d.unit, d.limit = 1, math.MaxInt64
	d.queries(seed)
	state := new(oracle.Store)
	for i := range 120 {
		d.now = int64(i)
		e := d.event(state)
		e.Time = step*int64(i) + r.Int64N(step)
		_, _ = state.Apply([]oracle.Event{e}, false) // only to draw what means something
		events = append(events, e)
	}
	return d.c, events
}

// play feeds a store in one way and gives its last state.
func (d *winDelivery) play(t *testing.T, c *winCase, r *rand.Rand, disk bool) state {
	t.Helper()
	dir := ""
	o := &triegs.Options{
		Clock: still, Tick: -1, EventTime: true, Lateness: time.Duration(c.lateness), LatePolicy: triegs.LateRefuse, Durability: triegs.SyncNone,
	}
	for i := range c.sources {
		o.Sources = append(o.Sources, c.sourceName(i))
	}
	if disk {
		dir = t.TempDir()
	}
	w := newWorld(t, dir, o)
	var queries []randq.Query
	for i := range c.queries {
		q := &c.queries[i]
		w.register(q.Name, q.text(), q.options()...)
		queries = append(queries, q.Query)
	}
	for i, events := range d.batches {
		parts := make([][]oracle.Event, c.sources)
		for _, e := range events {
			k := r.IntN(c.sources)
			parts[k] = append(parts[k], e)
		}
		for k, part := range parts {
			b := batch(part, 0)
			for j, e := range part {
				b.Events[j].Time = time.Unix(0, e.Time)
			}
			b.Time, b.Watermark, b.Source = time.Time{}, time.Unix(0, d.marks[i]), c.sourceName(k)
			b.Offset, _ = w.db.Offset(b.Source)
			w.append(b)
		}
		if disk && percent(r, 20) {
			if percent(r, 50) {
				if err := w.db.Checkpoint(w.ctx); err != nil {
					t.Fatal(err)
				}
			}
			w.reopen(dir, o)
		}
	}
	last := read(t, w.db, queries)
	if m := w.db.Metrics(); m.Waiting != 0 {
		t.Fatalf("%d events wait at the end", m.Waiting)
	}
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	return last
}

// TestEventTimeOrder feeds the same events in different orders, none of them later
// than is allowed, with the watermarks at different places, and with restarts: the
// last state is that of the events in the order of their times.
func TestEventTimeOrder(t *testing.T) {
	for seed := range uint64(scaled(120, 15)) {
		c, events := winOrderCase(seed)
		r := rand.New(rand.NewPCG(seed, 12))
		// The windows at the end are those of one logical time.
		end := events[len(events)-1].Time
		var input oracle.Reorder
		input.Add(events...)
		input.Advance(end)
		var asked []*oracle.Query
		for i := range c.queries {
			asked = append(asked, c.queries[i].Oracle())
		}
		model, _, _ := input.State(oracle.RetentionOf(asked, nil))
		var want state
		for i, n := range []int{1, 6, 6, 30, 30, 120} {
			way := deliver(r, events, c.lateness, n, i%2 == 0)
			way.marks[n-1] = end
			got := way.play(t, c, r, i == 3)
			if i == 0 {
				want = got
				for q := range c.queries {
					if err := differ(got.answers[q], asked[q].Eval(model)); err != nil {
						t.Fatalf("seed %d, %s: %v", seed, c.queries[q].text(), err)
					}
				}
			}
			same(t, fmt.Sprintf("seed %d, lateness %d: delivery %d in %d batches", seed, c.lateness, i, n), want, got)
		}
	}
}
