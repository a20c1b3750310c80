package epoch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// copyOf is a contribution of the model.
type copyOf struct {
	x, y, value string // value "" = none
	time        int64
	id          string
	seq         int64
}

// reader is a registered query of the model.
type reader struct {
	window query.Window
	valued bool
}

// valuedModel is the contributions to the relation r(x, y), straight from the
// definition.
type valuedModel struct {
	live    []copyOf
	next    int64
	now     int64
	keep    int64
	readers map[string]reader
}

func (m *valuedModel) clone() *valuedModel {
	c := *m
	c.live, c.readers = slices.Clone(m.live), maps.Clone(m.readers)
	return &c
}

// insert adds a contribution, or refreshes the one with the ID.
func (m *valuedModel) insert(c copyOf) {
	if i := slices.IndexFunc(m.live, func(o copyOf) bool { return c.id != "" && o.id == c.id }); i >= 0 {
		c.seq = m.live[i].seq
		m.live[i] = c
		return
	}
	c.seq = m.next
	m.next++
	m.live = append(m.live, c)
}

// remove takes the oldest contribution that matches, and reports whether there
// was one.
func (m *valuedModel) remove(match func(copyOf) bool) bool {
	best := -1
	for i, c := range m.live {
		if match(c) && (best < 0 || c.time < m.live[best].time || c.time == m.live[best].time && c.seq < m.live[best].seq) {
			best = i
		}
	}
	if best >= 0 {
		m.live = slices.Delete(m.live, best, best+1)
	}
	return best >= 0
}

// shows is the definition of a window.
func (m *valuedModel) shows(w query.Window, c copyOf) bool {
	switch {
	case w.Last > 0:
		return c.seq >= m.next-w.Last
	case w.Range > 0:
		return w.Sees(c.time, w.At(m.now))
	}
	return true
}

// advance moves the time and forgets what nobody needs.
func (m *valuedModel) advance(t int64) {
	m.now = max(m.now, t)
	m.live = slices.DeleteFunc(m.live, func(c copyOf) bool {
		if len(m.readers) == 0 && m.keep == 0 || m.keep > 0 && c.time > m.now-m.keep {
			return false
		}
		for _, r := range m.readers {
			if m.shows(r.window, c) || r.window.Range > 0 && c.time > r.window.At(m.now) {
				return false
			}
		}
		return true
	})
}

// pairs counts what a window shows by fact and value.
func (m *valuedModel) pairs(w query.Window) map[string]int64 {
	n := map[string]int64{}
	for _, c := range m.live {
		if m.shows(w, c) {
			n[fmt.Sprint(c.x, " ", c.y, " ", c.value)]++
		}
	}
	return n
}

// valuedRig runs the same on an engine and on the model.
type valuedRig struct {
	t    *testing.T
	e    *Engine
	m    *valuedModel
	rng  *rand.Rand
	held *rootvec.Vector // an epoch that somebody reads, with what it showed
	then *valuedModel
	seen int
}

// event applies one event that is drawn.
func (r *valuedRig) event(rel uint32) {
	r.t.Helper()
	c := copyOf{x: fmt.Sprint("x", r.rng.IntN(3)), y: fmt.Sprint("y", r.rng.IntN(2)), time: r.m.now + r.rng.Int64N(14) - 6}
	if r.rng.IntN(3) > 0 {
		c.value = fmt.Sprint("v", r.rng.IntN(4))
	}
	ev := record.Event{Relation: rel, Time: c.time}
	for _, name := range []string{c.x, c.y} {
		ev.Tuple = append(ev.Tuple, r.intern(name))
	}
	if c.value != "" {
		ev.Value = r.intern(c.value)
	}
	same := func(o copyOf) bool { return o.x == c.x && o.y == c.y && (c.value == "" || o.value == c.value) }
	found := true
	switch r.rng.IntN(8) {
	case 0, 1: // an ID belongs to one fact
		c.id = c.x + c.y + fmt.Sprint(r.rng.IntN(2))
		ev.ID = c.id
		r.m.insert(c)
	case 2:
		ev.Op, ev.ID, ev.Tuple = OpDelete, c.x+c.y+fmt.Sprint(r.rng.IntN(2)), nil
		found = r.m.remove(func(o copyOf) bool { return o.id == ev.ID })
	case 3, 4:
		ev.Op = OpDelete
		found = r.m.remove(same)
	default:
		r.m.insert(c)
	}
	if err := r.e.Event(&ev); (err == nil) != found || err != nil && !errors.Is(err, errs.ErrNoSuchFact) {
		r.t.Fatalf("%+v: %v, found %v", ev, err, found)
	}
}

func (r *valuedRig) intern(name string) uint64 {
	r.t.Helper()
	id, err := r.e.Intern(term.String(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

var valuedWindows = []query.Window{{}, {Range: 6}, {Range: 9, Slide: 4}, {Last: 5}, {Range: 15}}

// closing is a context that ends when it has been looked at so often.
type closing struct {
	context.Context
	looks int
}

func (c *closing) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// change registers a query, drops one, or says what is retained. A registration
// may be refused when its relations are laid out already; otherwise a query that
// comes or goes is not rolled back.
func (r *valuedRig) change() (kind record.Kind, refused bool) {
	r.t.Helper()
	name := fmt.Sprint("q", r.rng.IntN(4))
	var err error
	kind = record.Drop
	r.m.advance(r.m.now) // what the change before has made superfluous
	_, known := r.m.readers[name]
	switch {
	case r.rng.IntN(6) == 0:
		kind, r.m.keep = record.Retain, r.rng.Int64N(2)*8
		err = r.e.Retain("r", r.m.keep)
	case known:
		delete(r.m.readers, name)
		err = r.e.Drop(name)
	default:
		kind = record.Register
		reads := reader{valuedWindows[r.rng.IntN(len(valuedWindows))], r.rng.IntN(3) > 0}
		r.m.readers[name] = reads
		ctx := &closing{context.Background(), 1 + r.rng.IntN(2)*1_000_000}
		if err = r.e.Register(ctx, valuedQuery(r.t, name, "q(x, y) :- r(x, y).", reads)); errors.Is(err, context.Canceled) {
			return kind, true
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return kind, false
}

// valuedQuery makes a query whose atoms all read values, or none does.
func valuedQuery(t *testing.T, name, text string, reads reader) *catalog.Query {
	t.Helper()
	p, err := catalog.Compile(text, catalog.Options{Window: reads.window})
	if err != nil {
		t.Fatal(err)
	}
	if reads.valued {
		text += " " // another plan has another text
	}
	plan := *p
	plan.Aliases = slices.Clone(p.Aliases)
	for i := range plan.Aliases {
		plan.Aliases[i].Valued = reads.valued
	}
	return &catalog.Query{Name: name, Text: text, Window: reads.window, Plan: &plan}
}

// epoch applies one epoch, which is rolled back now and then.
func (r *valuedRig) epoch() {
	r.t.Helper()
	ctx := context.Background()
	before := r.m.clone()
	if err := r.e.Begin(ctx); err != nil {
		r.t.Fatal(err)
	}
	rel, err := r.e.Relation("r", 2)
	if err != nil {
		r.t.Fatal(err)
	}
	kind, refused, at := record.Batch, r.rng.IntN(5) == 0, r.m.now+r.rng.Int64N(4)
	switch r.rng.IntN(10) {
	case 0, 1:
		kind, refused = r.change()
		at = r.m.now
	case 2:
		r.deleteAll(rel)
	default:
		for range r.rng.IntN(6) {
			r.event(rel)
		}
	}
	if refused {
		r.e.Rollback()
		r.m = before
		return
	}
	if _, err := r.e.Commit(ctx, kind, at); err != nil {
		r.t.Fatal(err)
	}
	if kind == record.Batch { // others move nothing but what they ask for
		r.m.advance(at)
	}
}

func (r *valuedRig) deleteAll(rel uint32) {
	r.t.Helper()
	if r.rng.IntN(2) == 0 {
		r.event(rel)
	}
	x := fmt.Sprint("x", r.rng.IntN(3))
	pattern := []uint64{r.intern(x), 0}
	if r.rng.IntN(4) == 0 {
		pattern[0], x = 0, ""
	}
	if err := r.e.DeleteAll(rel, pattern, r.m.now); err != nil {
		r.t.Fatal(err)
	}
	r.m.live = slices.DeleteFunc(r.m.live, func(c copyOf) bool { return x == "" || c.x == x })
}

// check compares what a vector shows with the model.
func (r *valuedRig) check(v *rootvec.Vector, m *valuedModel) {
	r.t.Helper()
	shape, shown := v.Catalog.(*Schema).Shapes[0], map[query.Window]bool{}
	for _, s := range shape.Valued {
		shown[s.Window] = true
		got := map[string]int64{}
		err := views.CompareIndexes(context.Background(), v.Space, v.Roots, s.Indexes, func(fact []uint64, weight int64) {
			value := ""
			if fact[2] != 0 {
				value = name(r.e, fact[2])
			}
			got[fmt.Sprint(name(r.e, fact[0]), " ", name(r.e, fact[1]), " ", value)] = weight
			r.seen++
		})
		if err != nil {
			r.t.Fatal(err)
		}
		if want := m.pairs(s.Window); !maps.Equal(got, want) {
			r.t.Fatalf("epoch %d, time %d, window %v:\n got %v\nwant %v", v.Epoch, v.Time, s.Window, got, want)
		}
	}
	want := map[query.Window]bool{}
	for _, q := range m.readers {
		if q.valued {
			want[q.window] = true
		}
	}
	if !maps.Equal(shown, want) {
		r.t.Fatalf("windows with values: %v, want %v", shown, want)
	}
	if err := r.e.Verify(context.Background(), v); err != nil {
		r.t.Fatalf("epoch %d: %v", v.Epoch, err)
	}
}

func name(e *Engine, id uint64) string { return e.dict.Term(id).Lexical() }

// hold has a reader look at the epoch again that it pinned, and pin another one.
func (r *valuedRig) hold(v *rootvec.Vector) {
	r.t.Helper()
	if r.held != nil {
		r.check(r.held, r.then)
		r.e.Current.Unpin(r.held)
	}
	r.held, r.then = v, r.m.clone()
}

// restart goes on with an engine made of what a checkpoint holds.
func (r *valuedRig) restart() {
	r.t.Helper()
	ctx := context.Background()
	f, err := r.e.Freeze(ctx, true)
	if err != nil {
		r.t.Fatal(err)
	}
	b := baseOf(r.t, r.e, f, 0)
	r.e.Thaw(f, true)
	if r.held != nil {
		r.e.Current.Unpin(r.held)
		r.held = nil
	}
	r.e = valuedEngine()
	if err := r.e.Restore(ctx, b); err != nil {
		r.t.Fatal(err)
	}
}

// valuedEngine is an engine of which checkpoints may be taken.
func valuedEngine() *Engine {
	e := New()
	e.keeps = true
	e.Track()
	return e
}

// TestValuedStreams runs random epochs with values, with queries that read them or
// not and come and go, through windows of all kinds, with refused epochs, readers of
// older epochs, terms that are swept, and restarts from checkpoints in between.
func TestValuedStreams(t *testing.T) {
	seeds, seen := uint64(40), 0
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		r := &valuedRig{t: t, e: valuedEngine(), m: &valuedModel{readers: map[string]reader{}}, rng: rand.New(rand.NewPCG(seed, 5))}
		step(t, r.e, nil, nil)
		for range 120 {
			r.epoch()
			v := r.e.Current.Pin()
			if len(v.Catalog.(*Schema).Shapes) > 0 {
				r.check(v, r.m)
			}
			if r.rng.IntN(6) == 0 {
				r.hold(v)
			} else {
				r.e.Current.Unpin(v)
			}
			if r.rng.IntN(12) == 0 {
				if _, err := r.e.MarkTerms(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if r.rng.IntN(25) == 0 {
				r.restart()
			}
		}
		r.hold(nil)
		seen += r.seen
	}
	if seen < int(seeds)*300 {
		t.Fatalf("%d pairs of fact and value seen", seen)
	}
}

// weigh applies one epoch that inserts r(x, y) with a value.
func weigh(t *testing.T, e *Engine, at int64, x, y, value string) {
	t.Helper()
	if err := e.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	rel, err := e.Relation("r", 2)
	if err != nil {
		t.Fatal(err)
	}
	ev := record.Event{Relation: rel, Time: at}
	r := &valuedRig{t: t, e: e}
	ev.Tuple = []uint64{r.intern(x), r.intern(y)}
	ev.Value = r.intern(value)
	if err := e.Event(&ev); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Commit(context.Background(), record.Batch, at); err != nil {
		t.Fatal(err)
	}
}

// enter registers a query.
func enter(t *testing.T, e *Engine, q *catalog.Query) {
	t.Helper()
	if err := e.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := e.Register(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Commit(context.Background(), record.Register, 0); err != nil {
		t.Fatal(err)
	}
}

// TestValueLostOnTheWay: a checkpoint without the term of a value is damaged, also
// where nobody reads values.
func TestValueLostOnTheWay(t *testing.T) {
	for _, valued := range []bool{false, true} {
		e := valuedEngine()
		enter(t, e, valuedQuery(t, "q", "q(x, y) :- r(x, y).", reader{valued: valued}))
		weigh(t, e, 1, "a", "b", "v")
		id, _ := e.dict.Find(term.String("v"), e.dict.Len())
		for _, without := range []uint64{0, id} {
			f, err := e.Freeze(context.Background(), true)
			if err != nil {
				t.Fatal(err)
			}
			err = New().Restore(context.Background(), baseOf(t, e, f, without))
			if without == 0 && err != nil || without != 0 && !errors.Is(err, errs.ErrCorrupt) {
				t.Errorf("valued %v, without term %d: %v", valued, without, err)
			}
			e.Thaw(f, false)
		}
	}
}

// TestVerifyValues: values in the views that differ from those of the contributions
// are found, in the last epoch exactly, in one before it by what they add up to.
func TestVerifyValues(t *testing.T) {
	for _, w := range []query.Window{{}, {Range: 50}} {
		for name, damage := range map[string]func(e *Engine, number int, tuple []uint64){
			"another value": func(e *Engine, number int, tuple []uint64) {
				e.views.Change(number, tuple, 1, 0)
				e.views.Change(number, append(slices.Clone(tuple[:2]), tuple[0]), 0, 1)
			},
			"one too many": func(e *Engine, number int, tuple []uint64) { e.views.Change(number, tuple, 1, 2) },
			"nothing":      func(*Engine, int, []uint64) {},
			"one too few":  func(e *Engine, number int, tuple []uint64) { e.views.Change(number, tuple, 1, 0) },
		} {
			t.Run(fmt.Sprintf("%v/%s", w, name), func(t *testing.T) {
				ctx := context.Background()
				e := New()
				// No view is made of it that would differ too.
				q := valuedQuery(t, "q", "q(x, y) :- r(x, y).", reader{window: w, valued: true})
				q.Plan.Never = true
				enter(t, e, q)
				weigh(t, e, 1, "a", "b", "v")
				weigh(t, e, 2, "a", "b", "u")
				if err := e.Begin(ctx); err != nil {
					t.Fatal(err)
				}
				tuple := make([]uint64, 3)
				for i, text := range []string{"a", "b", "v"} {
					tuple[i], _ = e.dict.Find(term.String(text), e.dict.Len())
				}
				damage(e, e.layouts[0].valuedStream(w), tuple)
				weighed := record.Event{Relation: 0, Tuple: []uint64{tuple[1], tuple[0]}, Time: 3}
				if err := e.Event(&weighed); err != nil { // so that the views are applied
					t.Fatal(err)
				}
				if _, err := e.Commit(ctx, record.Batch, 3); err != nil {
					t.Fatal(err)
				}
				v := e.Current.Pin()
				defer e.Current.Unpin(v)
				if err := e.Verify(ctx, v); errors.Is(err, errs.ErrCorrupt) != (name != "nothing") {
					t.Errorf("the last epoch: %v", err)
				}
				weigh(t, e, 4, "c", "b", "v")
				if err := e.Verify(ctx, v); errors.Is(err, errs.ErrCorrupt) != (name[:3] == "one") {
					t.Errorf("an epoch before it: %v", err)
				}
			})
		}
	}
}

// TestEvaluateValues: a query that is not registered reads values where a registered
// one keeps them, and none of a relation that is not there.
func TestEvaluateValues(t *testing.T) {
	ctx := context.Background()
	e := New()
	w := query.Window{Range: 50}
	enter(t, e, valuedQuery(t, "q", "q(x, y) :- r(x, y).", reader{window: w, valued: true}))
	weigh(t, e, 1, "a", "b", "v")
	weigh(t, e, 2, "a", "c", "u")
	v := e.Current.Pin()
	defer e.Current.Unpin(v)
	for _, c := range []struct {
		text   string
		window query.Window
		want   int64
		err    error
	}{
		{"p(x, y) :- r(x, y).", w, 2, nil},
		{"p(x, y) :- r(x, y).", query.Window{}, 0, errs.ErrUnsupported},
		{"p(x, y) :- r(x, y).", query.Window{Range: 51}, 0, errs.ErrUnsupported},
		{"p(x, y) :- s(x, y).", query.Window{}, 0, nil},
	} {
		q := valuedQuery(t, "p", c.text, reader{window: c.window, valued: true})
		b, err := e.Evaluate(ctx, v, q.Plan)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s %v: %v, want %v", c.text, c.window, err, c.err)
			continue
		}
		if err != nil {
			continue
		}
		if n, _, err := b.Count(ctx); err != nil || n != c.want {
			t.Errorf("%s %v: %d answers, %v; want %d", c.text, c.window, n, err, c.want)
		}
	}
}

// TestSteadyValuesAllocateNothing pins the cost of an epoch with values in memory.
func TestSteadyValuesAllocateNothing(t *testing.T) {
	ctx := context.Background()
	e := New()
	enter(t, e, valuedQuery(t, "q", "q(x, y) :- r(x, y).", reader{window: query.Window{Range: 40}, valued: true}))
	ids := terms(t, e, "a", "b", "v", "u")
	at := int64(0)
	turn := func() {
		at++
		if err := e.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if err := e.Event(&record.Event{Relation: 0, Tuple: ids[i : i+2], Time: at, Value: ids[3-at&1]}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Commit(ctx, record.Batch, at); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n > 0 {
		t.Fatalf("%v allocations for an epoch of two events", n)
	}
}

// TestValuesReplay replays a log of epochs with values, with a query that comes and
// goes in between, and compares what the views hold of them.
func TestValuesReplay(t *testing.T) {
	ctx := context.Background()
	e, log := New(), &held{}
	e.Logged(log)
	const text = "best(x) :- r(x, y)@[20ns] semiring minplus."
	p, err := catalog.Compile(text, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Aliases[0].Valued {
		t.Fatalf("alias %+v does not read values", p.Aliases[0])
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for at := range int64(60) {
		if at == 10 || at == 40 {
			enter(t, e, &catalog.Query{Name: "best", Text: text, Plan: p})
		}
		if at == 30 {
			drop(t, e, "best")
		}
		if err := e.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		rel, err := e.Relation("r", 2)
		if err != nil {
			t.Fatal(err)
		}
		var ids [3]uint64
		for i, n := range [3]int64{rng.Int64N(3), rng.Int64N(3), rng.Int64N(20)} {
			if ids[i], err = e.Intern(term.Int(n)); err != nil {
				t.Fatal(err)
			}
		}
		ev := record.Event{Relation: rel, Tuple: slices.Clone(ids[:2]), Time: at, Value: ids[2]}
		if rng.IntN(3) == 0 {
			ev.ID = fmt.Sprint(ids[:2])
		}
		if err := e.Event(&ev); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Commit(ctx, record.Batch, at); err != nil {
			t.Fatal(err)
		}
	}
	log.settle(len(log.done), nil)

	again := New()
	for _, b := range log.entries {
		rec, err := record.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Replay(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	var shown [2]map[string]int64
	for i, e := range [...]*Engine{e, again} {
		v := e.Current.Pin()
		defer e.Current.Unpin(v)
		shape := v.Catalog.(*Schema).Shapes[0]
		if len(shape.Valued) != 1 {
			t.Fatalf("engine %d: %d windows show values", i, len(shape.Valued))
		}
		shown[i] = map[string]int64{}
		err := views.CompareIndexes(ctx, v.Space, v.Roots, shape.Valued[0].Indexes, func(fact []uint64, weight int64) {
			shown[i][fmt.Sprint(fact)] = weight
		})
		if err == nil {
			err = e.Verify(ctx, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(shown[0], shown[1]) || len(shown[0]) < 10 {
		t.Fatalf("replayed\n%v, was\n%v", shown[1], shown[0])
	}
}

// drop takes a query out.
func drop(t *testing.T, e *Engine, name string) {
	t.Helper()
	if err := e.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := e.Drop(name); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Commit(context.Background(), record.Drop, 0); err != nil {
		t.Fatal(err)
	}
}
