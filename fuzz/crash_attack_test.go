package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// mob is a store that many goroutines use at once, each in its own way, until
// it is closed under them.
type mob struct {
	*testing.T
	db    *triegs.DB
	acked []atomic.Uint64 // by source: the position after what was acknowledged
	calls atomic.Int64
	ends  []error // what a call may end with beside success
}

func (m *mob) allowed(what string, err error) bool {
	m.calls.Add(1)
	if err == nil {
		return true
	}
	for _, ok := range m.ends {
		if errors.Is(err, ok) {
			return false
		}
	}
	m.Errorf("%s: %v", what, err)
	return false
}

// context gives one that ends at a random moment, or not.
func (m *mob) context(rng *rand.Rand) (context.Context, context.CancelFunc) {
	if rng.IntN(3) > 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), time.Duration(rng.IntN(800))*time.Microsecond)
}

// feed appends from one source: fact F(source, i) at offset i, and an edge that
// comes and goes.
func (m *mob) feed(k int, rng *rand.Rand) bool {
	source := fmt.Sprint("s", k)
	next, _ := m.db.Offset(source)
	if at := m.acked[k].Load(); next < at {
		m.Errorf("source %s stands at %d, %d was acknowledged", source, next, at)
	}
	b := triegs.Batch{Source: source, Offset: next, IgnoreMissing: true}
	for i := range 1 + rng.IntN(6) {
		b.Events = append(b.Events, triegs.Edge("F", triegs.Int(int64(k)), triegs.Int(int64(next)+int64(i))))
	}
	churn := triegs.Batch{IgnoreMissing: true}
	for range rng.IntN(5) {
		e := triegs.Edge([]string{"R", "S", "T"}[rng.IntN(3)], triegs.Int(int64(rng.IntN(12))), triegs.Int(int64(rng.IntN(12))))
		e.Op = triegs.Op(rng.IntN(2))
		churn.Events = append(churn.Events, e)
	}
	ctx, cancel := m.context(rng)
	defer cancel()
	_, err := m.db.AppendAll(ctx, b, churn)
	if m.allowed("append", err) {
		m.acked[k].Store(next + uint64(len(b.Events)))
	}
	return !errors.Is(err, triegs.ErrClosed)
}

// registrar lets queries come and go.
func (m *mob) registrar(rng *rand.Rand) bool {
	ctx, cancel := m.context(rng)
	defer cancel()
	i := rng.IntN(len(heldTexts))
	name := fmt.Sprint("q", i)
	var err error
	switch rng.IntN(5) {
	case 0, 1, 2:
		_, err = m.db.Register(ctx, name, heldTexts[i])
	case 3:
		err = m.db.Drop(ctx, name)
	default: // a relation that was never seen, with a query over it
		n := rng.IntN(1 << 30)
		if _, err = m.db.Register(ctx, fmt.Sprint("n", n), fmt.Sprintf("q(x, y) :- N%d(x), R(x, y).", n)); err == nil {
			err = m.db.Drop(context.Background(), fmt.Sprint("n", n))
		}
	}
	m.allowed("register or drop", err)
	return !errors.Is(err, triegs.ErrClosed)
}

// read pins a state and reads it in several ways that must agree.
func (m *mob) read(rng *rand.Rand) bool {
	s, err := m.db.Snapshot()
	if !m.allowed("snapshot", err) {
		return !errors.Is(err, triegs.ErrClosed)
	}
	ctx, cancel := m.context(rng)
	defer cancel()
	epoch, offsets := s.Epoch(), s.Offsets()
	for i, text := range heldTexts {
		if rng.IntN(3) > 0 {
			continue
		}
		reg, err := gather(s.Answers(fmt.Sprint("q", i)))
		if !m.allowed("answers", err) {
			continue
		}
		adhoc, err := gather(s.Select(ctx, text))
		if m.allowed("select", err) && len(adhoc) != len(reg) {
			m.Errorf("%s at epoch %d: %d answers registered, %d ad hoc", text, epoch, len(reg), len(adhoc))
		}
		distinct, _, err := s.Count(ctx, fmt.Sprint("q", i))
		if m.allowed("count", err) && distinct != int64(len(reg)) {
			m.Errorf("%s at epoch %d: %d answers, counted %d", text, epoch, len(reg), distinct)
		}
	}
	facts := map[int64]uint64{}
	for r, err := range s.Select(ctx, "f(k, i) :- F(k, i).") {
		if !m.allowed("select of facts", err) {
			facts = nil
			break
		}
		k, _ := r.Term(0).AsInt()
		if facts[k]++; r.Multiplicity() != 1 {
			m.Errorf("fact %s x%d at epoch %d", lexical(r), r.Multiplicity(), epoch)
		}
	}
	for k := range m.acked {
		if want := offsets[fmt.Sprint("s", k)]; facts != nil && facts[int64(k)] != want {
			m.Errorf("source %d stands at %d at epoch %d, with %d facts", k, want, epoch, facts[int64(k)])
		}
	}
	_, err = s.Lookup("q0", triegs.Int(1), triegs.Int(2), triegs.Int(3))
	m.allowed("lookup", err)
	if err := s.Close(); err != nil {
		m.Errorf("close of a snapshot: %v", err)
	}
	return true
}

// save takes checkpoints and makes backups, new ones and additions, of which some
// are given up.
func (m *mob) save(dir string, rng *rand.Rand) bool {
	ctx, cancel := m.context(rng)
	defer cancel()
	if rng.IntN(2) == 0 {
		ctx = context.Background()
	}
	var err error
	if rng.IntN(3) > 0 {
		err = m.db.Checkpoint(ctx)
	} else {
		err = m.db.Backup(ctx, filepath.Join(backups(dir), fmt.Sprint(rng.IntN(3))))
	}
	m.allowed("save", err)
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	return !errors.Is(err, triegs.ErrClosed)
}

// look asks for what needs no snapshot, and what a closed one says.
func (m *mob) look(rng *rand.Rand) bool {
	switch rng.IntN(5) {
	case 0:
		_ = m.db.Metrics().String()
	case 1:
		m.db.Queries()
		_, err := m.db.Query("q1")
		m.allowed("query", err)
	case 2:
		ctx, cancel := m.context(rng)
		defer cancel()
		err := m.db.Verify(ctx)
		m.allowed("verify", err)
		return !errors.Is(err, triegs.ErrClosed)
	case 3:
		ctx, cancel := m.context(rng)
		defer cancel()
		err := m.db.WaitFor(ctx, m.db.Metrics().Epoch+triegs.Epoch(rng.IntN(3)))
		m.allowed("wait", err)
		return !errors.Is(err, triegs.ErrClosed)
	default:
		s, err := m.db.Snapshot()
		if !m.allowed("snapshot", err) {
			return !errors.Is(err, triegs.ErrClosed)
		}
		epoch, at, offsets := s.Epoch(), s.Time(), fmt.Sprint(s.Offsets())
		s.Close()
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
		if s.Epoch() != epoch || s.Time() != at || fmt.Sprint(s.Offsets()) != offsets {
			m.Errorf("a closed snapshot was of epoch %d and is of %d", epoch, s.Epoch())
		}
	}
	return true
}

// Everything at once, from many goroutines, with contexts that end at any
// moment, and a Close in the middle of it; what was acknowledged is there when
// the store is opened again.
func TestEverythingAtOnce(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprintf("durable %v", durable), func(t *testing.T) {
			quiet(t)
			dir := ""
			if durable {
				dir = filepath.Join(t.TempDir(), "store")
			}
			for round := range scaled(4, 2) {
				everything(t, dir, uint64(round))
			}
			wholeBackups(t, dir)
		})
	}
}

// wholeBackups opens the backups that were made beside everything: positions and
// facts of each agree.
func wholeBackups(t *testing.T, dir string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(backups(dir), "*"))
	if err != nil || dir != "" && len(list) == 0 {
		t.Errorf("backups %v, %v", list, err)
	}
	for _, path := range list {
		if strings.Contains(path, ".partial-") {
			t.Errorf("%s was left", path)
			continue
		}
		w := newWorld(t, path, &triegs.Options{ReadOnly: true})
		s := w.snapshot()
		for k := range 3 {
			next := s.Offsets()[fmt.Sprint("s", k)]
			if got, err := gather(s.Select(w.ctx, fmt.Sprintf("f(i) :- F(%d, i).", k))); err != nil || uint64(len(got)) != next {
				t.Errorf("%s: source %d stands at %d with %d facts (%v)", path, k, next, len(got), err)
			}
		}
		s.Close()
		if err := errors.Join(w.db.Verify(w.ctx), w.db.Close()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func everything(t *testing.T, dir string, seed uint64) {
	db, err := triegs.Open(dir, &triegs.Options{
		OnEvent: func(triegs.Notice) {}, CheckpointBytes: 50_000, DictionaryCacheBytes: int64(seed % 2),
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &mob{T: t, db: db, acked: make([]atomic.Uint64, 3), ends: []error{
		triegs.ErrClosed, triegs.ErrSnapshotClosed, triegs.ErrNoSuchQuery, triegs.ErrQueryExists, triegs.ErrNoAnswer,
		context.Canceled, context.DeadlineExceeded,
	}}
	for k := range m.acked {
		next, _ := db.Offset(fmt.Sprint("s", k))
		m.acked[k].Store(next)
	}
	var crowd sync.WaitGroup
	for i := range 10 {
		act := []func(*rand.Rand) bool{
			func(r *rand.Rand) bool { return m.feed(0, r) }, func(r *rand.Rand) bool { return m.feed(1, r) },
			func(r *rand.Rand) bool { return m.feed(2, r) }, m.registrar, m.registrar, m.read, m.read, m.read, m.look, m.look,
		}[i]
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		crowd.Go(func() {
			for act(rng) && !t.Failed() {
			}
		})
	}
	if dir != "" {
		rng := rand.New(rand.NewPCG(seed, 10))
		crowd.Go(func() {
			for m.save(dir, rng) && !t.Failed() {
			}
		})
	}
	time.Sleep(time.Duration(scaled(1200, 400)) * time.Millisecond)
	if dir != "" { // at least one, however slow the machine
		if err := db.Backup(context.Background(), filepath.Join(backups(dir), "last")); err != nil {
			t.Error(err)
		}
	}
	if err := db.Verify(context.Background()); err != nil {
		t.Error(err)
	}
	within(t, 20*time.Second, "close", func() {
		if err := db.Close(); err != nil && !errors.Is(err, triegs.ErrLeaked) {
			t.Errorf("close: %v", err)
		}
	})
	// Whoever is left sees ErrClosed at the next call, or reads on to the end.
	within(t, 20*time.Second, "the crowd", crowd.Wait)
	t.Logf("%d calls up to epoch %d", m.calls.Load(), db.Metrics().Epoch)
	if dir == "" || t.Failed() {
		return
	}
	w := newWorld(t, dir, nil)
	for k := range m.acked {
		source := fmt.Sprint("s", k)
		next, _ := w.db.Offset(source)
		if at := m.acked[k].Load(); next < at {
			t.Errorf("source %s stands at %d, %d was acknowledged", source, next, at)
		}
		s := w.snapshot()
		got, err := gather(s.Select(w.ctx, fmt.Sprintf("f(i) :- F(%d, i).", k)))
		if err != nil || uint64(len(got)) != next {
			t.Errorf("source %s stands at %d with %d facts (%v)", source, next, len(got), err)
		}
		s.Close()
	}
	if err := errors.Join(w.db.Verify(w.ctx), w.db.Close()); err != nil {
		t.Error(err)
	}
}

// What a closed snapshot says of itself stays as it was.
func TestClosedSnapshotSaysTheSame(t *testing.T) {
	w := newWorld(t, "", nil)
	w.append(span(0, 3))
	s := w.snapshot()
	w.append(span(3, 4))
	epoch, at, offsets := s.Epoch(), s.Time(), fmt.Sprint(s.Offsets())
	s.Close()
	for i := range 10 {
		b := span(4+i, 5+i)
		b.Time = time.Unix(int64(100+i), 0)
		w.append(b)
	}
	if s.Epoch() != epoch || !s.Time().Equal(at) || fmt.Sprint(s.Offsets()) != offsets {
		t.Errorf("it was epoch %d at %s with %s, it is epoch %d at %s with %v", epoch, at, offsets, s.Epoch(), s.Time(), s.Offsets())
	}
}

// one is a batch of one event.
func one(e triegs.Event) triegs.Batch { return triegs.Batch{Events: []triegs.Event{e}} }

// Batches at the edges of what is allowed, and beyond them; the store is the
// same after a restart.
func TestBatchEdges(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x, y) :- R(x, y).")
	a, b := triegs.String("a"), triegs.String("b")
	fact := func(op triegs.Op, id string) triegs.Event {
		return triegs.Event{Op: op, Relation: "R", Tuple: []triegs.Term{a, b}, ID: id}
	}
	long := strings.Repeat("i", 1<<20)
	terms := w.db.Metrics().Terms
	for _, tc := range []struct {
		what   string
		events []triegs.Event
		err    error // nil: accepted
		want   string
	}{
		{"by ID in the batch of its insertion", []triegs.Event{fact(triegs.Insert, "x"), {Op: triegs.Delete, ID: "x"}}, nil, ""},
		{"and again, inserted and gone twice", []triegs.Event{fact(triegs.Insert, "x"), {Op: triegs.Delete, ID: "x"}, fact(triegs.Insert, "x"), {Op: triegs.Delete, ID: "x"}}, nil, ""},
		{"deleted before it is inserted", []triegs.Event{{Op: triegs.Delete, ID: "x"}, fact(triegs.Insert, "x")}, triegs.ErrNoSuchFact, ""},
		{"refreshed in one batch", []triegs.Event{fact(triegs.Insert, "x"), fact(triegs.Insert, "x"), fact(triegs.Insert, "x")}, nil, "(a,b):1"},
		{"refreshed in another batch, beside a copy", []triegs.Event{fact(triegs.Insert, "x"), fact(triegs.Insert, "")}, nil, "(a,b):2"},
		{"the ID of another fact", []triegs.Event{{Relation: "R", Tuple: []triegs.Term{b, a}, ID: "x"}}, triegs.ErrValue, "(a,b):2"},
		{"the ID of another fact, free by then", []triegs.Event{{Op: triegs.Delete, ID: "x"}, {Relation: "R", Tuple: []triegs.Term{b, a}, ID: "x"}}, nil, "(a,b):1 (b,a):1"},
		{"by ID with the wrong fact", []triegs.Event{fact(triegs.Delete, "x")}, triegs.ErrNoSuchFact, "(a,b):1 (b,a):1"},
		{"by ID with a fact of other columns", []triegs.Event{{Op: triegs.Delete, Relation: "R", Tuple: []triegs.Term{a}, ID: "x"}}, triegs.ErrArity, "(a,b):1 (b,a):1"},
		{"by ID with a relation that is not there", []triegs.Event{{Op: triegs.Delete, Relation: "Nowhere", Tuple: []triegs.Term{a, b}, ID: "x"}}, triegs.ErrNoSuchFact, "(a,b):1 (b,a):1"},
		{"of a relation that is not there", []triegs.Event{{Op: triegs.Delete, Relation: "Nowhere", Tuple: []triegs.Term{a}}}, triegs.ErrNoSuchFact, "(a,b):1 (b,a):1"},
		{"of a relation that comes in the batch", []triegs.Event{{Relation: "Here", Tuple: []triegs.Term{a}}, {Op: triegs.Delete, Relation: "Here", Tuple: []triegs.Term{a}}}, nil, "(a,b):1 (b,a):1"},
		{"of nothing", []triegs.Event{{Op: triegs.Delete}}, triegs.ErrValue, "(a,b):1 (b,a):1"},
		{"with an absent term", []triegs.Event{{Op: triegs.Delete, Relation: "R", Tuple: []triegs.Term{a, {}}}}, triegs.ErrValue, "(a,b):1 (b,a):1"},
		{"two arities of a new relation", []triegs.Event{{Relation: "Two", Tuple: []triegs.Term{a}}, {Relation: "Two", Tuple: []triegs.Term{a, b}}}, triegs.ErrArity, "(a,b):1 (b,a):1"},
		{"which left no trace", []triegs.Event{{Relation: "Two", Tuple: []triegs.Term{a, b, a}}}, nil, "(a,b):1 (b,a):1"},
		{"a relation without columns", []triegs.Event{{Relation: "Zero", Tuple: []triegs.Term{}}}, triegs.ErrArity, "(a,b):1 (b,a):1"},
		{"a relation of 255 columns", []triegs.Event{{Relation: "Wide", Tuple: slices.Repeat([]triegs.Term{a}, 255)}}, nil, "(a,b):1 (b,a):1"},
		{"a relation of 256 columns", []triegs.Event{{Relation: "Wider", Tuple: slices.Repeat([]triegs.Term{a}, 256)}}, triegs.ErrArity, "(a,b):1 (b,a):1"},
		{"a relation of 100000 columns", []triegs.Event{{Relation: "Widest", Tuple: slices.Repeat([]triegs.Term{a}, 100_000)}}, triegs.ErrArity, "(a,b):1 (b,a):1"},
		{"a long ID", []triegs.Event{fact(triegs.Insert, long+"1"), fact(triegs.Insert, long+"2")}, nil, "(a,b):3 (b,a):1"},
		{"which is told from another", []triegs.Event{{Op: triegs.Delete, ID: long + "3"}}, triegs.ErrNoSuchFact, "(a,b):3 (b,a):1"},
		{"and is found", []triegs.Event{{Op: triegs.Delete, ID: long + "2"}}, nil, "(a,b):2 (b,a):1"},
		{"IDs of any bytes", []triegs.Event{fact(triegs.Insert, "\x00"), fact(triegs.Insert, "\x00\xff"), {Op: triegs.Delete, ID: "\x00"}}, nil, "(a,b):3 (b,a):1"},
		{"names of any bytes", []triegs.Event{{Relation: "\x00\xff", Tuple: []triegs.Term{a}}, {Relation: strings.Repeat("r", 1<<20), Tuple: []triegs.Term{a}}}, nil, "(a,b):3 (b,a):1"},
		{"the first time", []triegs.Event{{Relation: "R", Tuple: []triegs.Term{a, a}, Time: time.Unix(0, math.MinInt64)}}, nil, "(a,a):1 (a,b):3 (b,a):1"},
		{"the last time", []triegs.Event{{Relation: "R", Tuple: []triegs.Term{a, a}, Time: time.Unix(0, math.MaxInt64)}}, nil, "(a,a):2 (a,b):3 (b,a):1"},
		{"before the first time", []triegs.Event{{Relation: "R", Tuple: []triegs.Term{a, a}, Time: time.Unix(0, math.MinInt64).Add(-1)}}, triegs.ErrTime, "(a,a):2 (a,b):3 (b,a):1"},
		{"after the last time", []triegs.Event{{Relation: "R", Tuple: []triegs.Term{a, a}, Time: time.Unix(0, math.MaxInt64).Add(1)}}, triegs.ErrTime, "(a,a):2 (a,b):3 (b,a):1"},
		{"a value that is not there", []triegs.Event{{Op: triegs.Delete, Relation: "R", Tuple: []triegs.Term{a, a}, Value: triegs.Int(5)}}, triegs.ErrNoSuchFact, "(a,a):2 (a,b):3 (b,a):1"},
		{"an operation that is none", []triegs.Event{{Op: triegs.DeleteAll + 1, Relation: "R", Tuple: []triegs.Term{a, a}}}, triegs.ErrValue, "(a,a):2 (a,b):3 (b,a):1"},
	} {
		before := w.epoch()
		_, err := w.db.Append(w.ctx, triegs.Batch{Events: tc.events})
		if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Fatalf("%s: got %v, want %v", tc.what, err, tc.err)
		}
		if got := w.epoch(); (got == before) != (tc.err != nil) {
			t.Errorf("%s: epoch %d after %d", tc.what, got, before)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", tc.what, len(err.Error()))
		}
		w.want("q", tc.want)
	}
	if got := w.db.Metrics().Terms; got != terms+2 {
		t.Errorf("%d terms, want %d: refused batches leave none", got, terms+2)
	}
	m := w.db.Metrics()
	digest := digestOf(t, w.db)
	w.reopen(dir, nil)
	w.want("q", "(a,a):2 (a,b):3 (b,a):1")
	if got := w.db.Metrics(); got.Terms != m.Terms || got.Relations != m.Relations || got.Facts != m.Facts || got.Contributions != m.Contributions || digestOf(t, w.db) != digest {
		t.Errorf("after a restart %+v, before it %+v", got, m)
	}
	// The IDs are the same after it.
	w.refuseBatch(triegs.ErrNoSuchFact, one(triegs.Event{Op: triegs.Delete, ID: long + "2"}))
	w.append(one(triegs.Event{Op: triegs.Delete, ID: long + "1"}))
	w.append(one(triegs.Event{Op: triegs.Delete, ID: "\x00\xff"}))
	w.want("q", "(a,a):2 (a,b):1 (b,a):1")
}

// A wide relation joins, and a query or a Select over columns that no relation
// can have is refused.
func TestWideRelations(t *testing.T) {
	w := newWorld(t, "", nil)
	args := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint("x", i)
		}
		return strings.Join(out, ", ")
	}
	w.register("wide", fmt.Sprintf("q(%s, y) :- W(%s), R(x254, y).", args(255), args(255)))
	e := triegs.Event{Relation: "W"}
	for i := range 255 {
		e.Tuple = append(e.Tuple, triegs.Int(int64(i)))
	}
	w.append(triegs.Batch{Events: []triegs.Event{e, triegs.Edge("R", triegs.Int(254), triegs.Int(7)), triegs.Edge("R", triegs.Int(253), triegs.Int(7))}})
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "wide", 1, 1)
	for _, n := range []int{256, 300, 5000} {
		text := fmt.Sprintf("q(%s) :- V%d(%s).", args(n), n, args(n))
		_, err := w.db.Register(w.ctx, "v", text)
		if err == nil {
			t.Errorf("a relation of %d columns was registered", n)
		} else if !errors.Is(err, triegs.ErrArity) && !errors.Is(err, triegs.ErrUnsupported) {
			t.Errorf("register over %d columns: %v", n, err)
		}
		if _, err := gather(s.Select(w.ctx, text)); err == nil || !errors.Is(err, triegs.ErrArity) && !errors.Is(err, triegs.ErrUnsupported) {
			t.Errorf("select over %d columns: %v, want a refusal as Register has", n, err)
		}
	}
}

// Skipped retractions beside all kinds of others: one is counted each, the rest
// of the batch holds, and what is no retraction stays refused.
func TestIgnoreMissingMixes(t *testing.T) {
	dir := t.TempDir()
	var e ears
	w := newWorld(t, dir, e.options())
	w.register("q", "q(x, y) :- R(x, y).")
	lenient := func(es ...triegs.Event) triegs.Batch { return triegs.Batch{Events: es, IgnoreMissing: true} }
	w.append(lenient(slices.Concat(
		events("-R(a,b) +R(a,b) -R(a,b) -R(a,b) +R(c,d) -Nowhere(x) +R(e,f)"),
		[]triegs.Event{{Op: triegs.Delete, ID: "none"}, {Op: triegs.Delete, Relation: "R", Tuple: []triegs.Term{triegs.String("c"), triegs.String("d")}, Value: triegs.Int(9)}},
	)...))
	w.want("q", "(c,d):1 (e,f):1")
	if m := w.db.Metrics(); m.Ignored != 5 || m.Events != 4 {
		t.Errorf("%d ignored and %d applied, want 5 and 4", m.Ignored, m.Events)
	}
	if len(e.heard) != 1 || e.heard[0].Kind != triegs.NoticeMissing || e.heard[0].Count != 5 || e.heard[0].Epoch != w.epoch() {
		t.Errorf("told %+v", e.heard)
	}
	for _, bad := range []struct {
		err error
		e   triegs.Event
	}{
		{triegs.ErrArity, events("-R(a)")[0]}, {triegs.ErrArity, events("+R(a)")[0]},
		{triegs.ErrValue, triegs.Event{Op: triegs.Delete}},
		{triegs.ErrValue, triegs.Event{Op: triegs.Delete, Relation: "R", Tuple: []triegs.Term{{}, {}}}},
	} {
		w.refuseBatch(bad.err, lenient(append(events("-R(q,q) +R(z,z)"), bad.e)...))
	}
	w.want("q", "(c,d):1 (e,f):1")
	if len(e.heard) != 1 {
		t.Errorf("told of refused batches: %+v", e.heard[1:])
	}
	// Of two batches in one epoch each has its own rule.
	strict := triegs.Batch{Events: events("-R(q,q)")}
	if _, err := w.db.AppendAll(w.ctx, lenient(events("-R(q,q) +R(z,z)")...), strict); !errors.Is(err, triegs.ErrNoSuchFact) {
		t.Errorf("got %v, want ErrNoSuchFact", err)
	}
	w.reopen(dir, nil)
	w.want("q", "(c,d):1 (e,f):1")
}

// With a budget the store refuses what would go above it, works on, and opens
// again with the same budget; a smaller one is named as the reason, and is no
// corruption.
func TestBudget(t *testing.T) {
	dir := t.TempDir()
	opts := &triegs.Options{MemoryBudget: 1 << 20, Durability: triegs.SyncNone}
	w := newWorld(t, dir, opts)
	w.register("q", "q(x, y) :- R(x, y).")
	grow := func() (n int) {
		for i := 0; ; i++ {
			b := triegs.Batch{Source: "s", Time: time.Unix(1, 0)}
			b.Offset, _ = w.db.Offset("s")
			for j := range 500 {
				b.Events = append(b.Events, triegs.Edge("R", triegs.Int(int64(b.Offset)+int64(j)), triegs.Int(int64(j%17))))
			}
			_, err := w.db.Append(w.ctx, b)
			if errors.Is(err, triegs.ErrBudget) {
				return int(b.Offset)
			}
			if err != nil || i > 1000 {
				t.Fatalf("batch %d: %v", i, err)
			}
		}
	}
	n := grow()
	if err := w.db.Verify(w.ctx); err != nil {
		t.Fatal(err)
	}
	if m := w.db.Metrics(); m.LiveBytes+m.RetainedBytes > opts.MemoryBudget {
		t.Errorf("%d bytes live, %d retained with a budget of %d", m.LiveBytes, m.RetainedBytes, opts.MemoryBudget)
	}
	t.Logf("%d edges fitted", n)
	digest := digestOf(t, w.db)
	for range 2 {
		s := w.snapshot()
		w.wantCount(s, "q", int64(n), int64(n))
		s.Close()
		w.wantNext("s", uint64(n), true)
		if got := digestOf(t, w.db); got != digest {
			t.Fatalf("digest %v, want %v", got, digest)
		}
		w.reopen(dir, opts) // the same budget holds what it held
	}
	if _, err := w.db.Register(w.ctx, "p", "p(x, y, z) :- R(x, y), R(z, y)."); err == nil {
		t.Log("a second query fitted")
	} else if !errors.Is(err, triegs.ErrBudget) {
		t.Errorf("register: %v", err)
	}
	// Deleting makes room.
	freed := 0
	for at := 0; at < n/2; at += 100 {
		b := triegs.Batch{Time: time.Unix(1, 0)}
		for i := at; i < at+100; i++ {
			e := triegs.Edge("R", triegs.Int(int64(i)), triegs.Int(int64(i%500%17)))
			e.Op = triegs.Delete
			b.Events = append(b.Events, e)
		}
		if _, err := w.db.Append(w.ctx, b); err != nil {
			t.Fatalf("deleting at %d: %v", at, err)
		}
		freed += 100
	}
	if grown := grow() - n; grown < freed/2 {
		t.Errorf("after %d edges went only %d found room", freed, grown)
	}
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	// What was acknowledged opens under a smaller budget too, which then refuses
	// what is new.
	small := *opts
	small.MemoryBudget /= 2
	db, err := triegs.Open(dir, &small)
	if err != nil {
		t.Fatalf("a smaller budget: %v", err)
	}
	if _, err := db.Append(context.Background(), triegs.Batch{Events: edges("R", 1, func(int) int { return 1_000_000 })}); !errors.Is(err, triegs.ErrBudget) {
		t.Errorf("an epoch under the smaller budget: got %v, want ErrBudget", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if w.db, err = triegs.Open(dir, opts); err != nil {
		t.Fatal(err)
	}
}

// A store that is above a smaller budget opens, and refuses what needs more.
func TestBudgetOfRegistration(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.append(triegs.Batch{Events: edges("R", 20_000, func(i int) int { return i % 100 })})
	base := w.db.Metrics().LiveBytes
	for i := range 6 {
		w.register(fmt.Sprint("q", i), []string{
			"q(x, y, z) :- R(x, y), R(z, y).", "q(x, y) :- R(y, x), S(x).", "q(x, y, z) :- R(x, y), R(y, z), T(z).",
			"q(x, y) :- R(x, y), T(x).", "q(x, y) :- R(x, y), T(y).", "q(x, y, z) :- R(x, y), S(y), T(y), R(y, z).",
		}[i])
	}
	full := w.db.Metrics().LiveBytes
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for budget := base; budget < full; budget += (full - base) / 8 {
		db, err := triegs.Open(dir, &triegs.Options{MemoryBudget: budget, LockWait: -1})
		if err != nil {
			t.Fatalf("a budget of %d of %d bytes: %v", budget, full, err)
		}
		if _, err := db.Register(context.Background(), "more", "q(x, y, z) :- R(x, y), R(z, y), U(z)."); errors.Is(err, triegs.ErrBudget) {
			refused++
		} else if err != nil {
			t.Errorf("a budget of %d of %d bytes: %v", budget, full, err)
		} else if err := db.Drop(context.Background(), "more"); err != nil && !errors.Is(err, triegs.ErrBudget) {
			t.Error(err)
		}
		if err := db.Verify(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if refused == 0 && !t.Failed() {
		t.Error("no budget was too small")
	}
}

// Snapshots older than allowed expire with the next epoch, running enumerations
// with them, and are told of; younger ones stay.
func TestPinAge(t *testing.T) {
	var now atomic.Int64
	now.Store(1_000)
	var e ears
	o := e.options()
	o.Clock = func() time.Time { return time.Unix(now.Load(), 0) }
	o.MaxPinAge = 10 * time.Second
	w := newWorld(t, "", o)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b) +R(c,d)")
	old := w.snapshot()
	now.Add(6)
	young := w.snapshot()
	if m := w.db.Metrics(); m.Snapshots != 2 || m.OldestPinAge != 6*time.Second || m.OldestPin != old.Epoch() {
		t.Errorf("metrics %+v", m)
	}
	now.Add(4)
	w.do("+R(e,f)")
	w.wantAt(old, "q", "(a,b):1 (c,d):1") // ten seconds are allowed
	rows, last := 0, error(nil)
	for _, err := range old.Answers("q") {
		if err != nil {
			last = err
			break
		}
		if rows++; rows == 1 {
			now.Add(1)
			w.do("+R(g,h)")
		}
	}
	if rows != 1 || !errors.Is(last, triegs.ErrSnapshotExpired) {
		t.Errorf("%d rows and %v, want 1 and ErrSnapshotExpired", rows, last)
	}
	_, lookup := old.Lookup("q", triegs.String("a"), triegs.String("b"))
	_, _, count := old.Count(w.ctx, "q")
	_, adhoc := gather(old.Select(w.ctx, "p(x) :- R(x, y)."))
	_, digest := old.Digest()
	for what, err := range map[string]error{"lookup": lookup, "count": count, "select": adhoc, "digest": digest} {
		if !errors.Is(err, triegs.ErrSnapshotExpired) || errors.Is(err, triegs.ErrSnapshotClosed) {
			t.Errorf("%s: got %v, want ErrSnapshotExpired", what, err)
		}
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	w.wantAt(young, "q", "(a,b):1 (c,d):1")
	young.Close()
	wantPins(t, w.db, 0)
	want := triegs.Notice{Kind: triegs.NoticeSnapshotExpired, Epoch: 2}
	if len(e.heard) != 1 || e.heard[0] != want {
		t.Errorf("told %+v, want %+v", e.heard, want)
	}
	// One that is left open is told of at Close.
	w.snapshot()
	if err := w.db.Close(); !errors.Is(err, triegs.ErrLeaked) {
		t.Errorf("close: %v", err)
	}
	if len(e.heard) != 2 || e.heard[1] != (triegs.Notice{Kind: triegs.NoticeSnapshotLeaked, Epoch: 4}) {
		t.Errorf("told %+v", e.heard)
	}
}

// The logical time of a store never goes back, whatever the clock and the
// batches say.
func TestLogicalTime(t *testing.T) {
	dir := t.TempDir()
	var clock atomic.Int64
	opts := &triegs.Options{Clock: func() time.Time { return time.Unix(clock.Load(), 0) }}
	w := newWorld(t, dir, opts)
	for _, tc := range []struct {
		clock int64
		given time.Time
		want  int64
	}{
		{-500, time.Time{}, -500}, {100, time.Time{}, 100}, {101, time.Time{}, 101}, {41, time.Time{}, 101}, {42, time.Unix(30, 0), 101},
		{42, time.Unix(200, 0), 200}, {150, time.Time{}, 200}, {300, time.Unix(250, 0), 250}, {300, time.Time{}, 300},
	} {
		clock.Store(tc.clock)
		w.append(triegs.Batch{Time: tc.given, Events: events("+R(a,b)")})
		s := w.snapshot()
		if got := s.Time(); got.Unix() != tc.want {
			t.Errorf("clock %d, given %s: time %d, want %d", tc.clock, tc.given, got.Unix(), tc.want)
		}
		s.Close()
	}
	w.reopen(dir, opts)
	s := w.snapshot()
	defer s.Close()
	if s.Time().Unix() != 300 {
		t.Errorf("after a restart the time is %s", s.Time())
	}
	for _, bad := range []time.Time{time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)} {
		w.refuseBatch(triegs.ErrTime, triegs.Batch{Time: bad, Events: events("+R(a,b)")})
	}
}
