package fuzz

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// fact makes an event of plain strings, with a value if that is not nil.
func fact(value any, rel string, args ...any) triegs.Event {
	e := triegs.Event{Relation: rel}
	for _, a := range args {
		e.Tuple = append(e.Tuple, literal(a))
	}
	if value != nil {
		e.Value = literal(value)
	}
	return e
}

// literal gives a value of Go as a term.
func literal(v any) triegs.Term {
	switch v := v.(type) {
	case int:
		return triegs.Int(int64(v))
	case float64:
		return triegs.Float(v)
	}
	return triegs.String(fmt.Sprint(v))
}

// copies repeats an event.
func copies(n int, e triegs.Event) []triegs.Event { return slices.Repeat([]triegs.Event{e}, n) }

// The fourth power of the first fits in int64, that of the second does not.
const (
	root4Fits = 55108
	root4Over = 55109
)

// refusedCase is a query, facts with which it is maintained, and a batch that must
// be refused beside it.
type refusedCase struct {
	name, text string
	load, bad  []triegs.Event
	want       error
}

// overflows has a case for each kind of payload that is maintained.
func overflows() []refusedCase {
	hub := func(n int) []triegs.Event { return copies(n, fact("t", "R", "x", "h", "a")) }
	both := append(hub(root4Fits), copies(root4Fits, fact(nil, "S", "h", "z", "b"))...)
	of := triegs.ErrOverflow
	return []refusedCase{
		{"count in a cluster", "q(x) :- R(x, h, a), R(x, h, b), R(x, h, c), R(x, h, d).", hub(root4Fits), hub(1), of},
		{"count of all", "q() :- R(x, h, a), R(x, h, b), R(x, h, c), R(x, h, d).", hub(root4Fits), hub(root4Over), of},
		{"count of kept answers", "q(x, z) :- R(x, h, a), R(x, h, b), S(h, z, c), S(h, z, d).",
			both, []triegs.Event{fact(nil, "R", "x", "h", "a"), fact(nil, "S", "h", "z", "b")}, of},
		{"sum", "q(x, sum(v)) :- U(x, h, v), V(h).",
			[]triegs.Event{fact(nil, "U", "x", "h", math.MaxInt64), fact(nil, "V", "h")}, []triegs.Event{fact(nil, "U", "x", "h", 1)}, of},
		{"sum times a count", "q(x, sum(v)) :- U(x, h, v), V(h).",
			[]triegs.Event{fact(nil, "U", "x", "h", 1<<62), fact(nil, "V", "h")}, []triegs.Event{fact(nil, "V", "h")}, of},
		{"sum of floats", "q(x, sum(v)) :- U(x, h, v), V(h).",
			[]triegs.Event{fact(nil, "U", "x", "h", math.MaxFloat64), fact(nil, "V", "h")}, []triegs.Event{fact(nil, "U", "x", "h", 1e308)}, of},
		{"avg", "q(x, avg(v)) :- U(x, h, v), V(h).",
			[]triegs.Event{fact(nil, "U", "x", "h", math.MinInt64), fact(nil, "V", "h")}, []triegs.Event{fact(nil, "U", "x", "h", -1)}, of},
		{"topk", "q(x, topk(v, 2)) :- U(x, h, v), R(x, h, a), R(x, h, b), R(x, h, c), R(x, h, d).",
			append(hub(root4Fits), fact(nil, "U", "x", "h", 7)), hub(1), of},
		{"int, a product", "q(x) :- R(x, h)@, S(h)@ semiring int.",
			[]triegs.Event{fact(1<<62, "R", "x", "h"), fact(1, "S", "h")}, []triegs.Event{fact(1, "S", "h")}, of},
		{"int, a sum", "q(x) :- R(x, h)@, S(h)@ semiring int.",
			[]triegs.Event{fact(math.MaxInt64, "R", "x", "h"), fact(1, "S", "h")}, []triegs.Event{fact(1, "R", "x", "h")}, of},
		{"int, kept answers", "q(x, z) :- R(x, h)@, S(h, z)@ semiring int.",
			[]triegs.Event{fact(1<<62, "R", "x", "h"), fact(1, "S", "h", "z")}, []triegs.Event{fact(1, "S", "h", "z")}, of},
		{"real", "q(x) :- R(x, h)@, S(h)@ semiring real.",
			[]triegs.Event{fact(1e308, "R", "x", "h"), fact(1.0, "S", "h")}, []triegs.Event{fact(10.0, "S", "h")}, of},
		{"maxplus", "q(x) :- R(x, h)@, S(h)@ semiring maxplus.",
			[]triegs.Event{fact(math.MaxInt64, "R", "x", "h"), fact(0, "S", "h")}, []triegs.Event{fact(1, "S", "h")}, of},
		{"minplus", "q(x) :- R(x, h)@, S(h)@ semiring minplus.",
			[]triegs.Event{fact(math.MinInt64, "R", "x", "h"), fact(0, "S", "h")}, []triegs.Event{fact(-1, "S", "h")}, of},
		{"best three", "q(x) :- R(x, h)@, S(h)@ semiring topk(3).",
			[]triegs.Event{fact(math.MaxInt64, "R", "x", "h"), fact(0, "S", "h")}, []triegs.Event{fact(1, "S", "h")}, of},
		{"a coefficient", "q(x) :- R(x, h, a)@, R(x, h, b)@, R(x, h, c)@, R(x, h, d)@ semiring poly.", hub(root4Fits), hub(1), of},
		{"one of two", "q(x) :- R(x, h)@, S(h)@ semiring maxmax * int.",
			[]triegs.Event{fact("1|4611686018427387904", "R", "x", "h"), fact("2|1", "S", "h")}, []triegs.Event{fact("2|1", "S", "h")}, of},
	}
}

// badValues are cases of terms that are no values where one is read.
func badValues() []refusedCase {
	r := func(v any) []triegs.Event { return []triegs.Event{fact(v, "R", "x", "h")} }
	s := fact(nil, "S", "h")
	value := func(semiring string, good, bad any) refusedCase {
		return refusedCase{semiring, "q(x) :- R(x, h)@, S(h) semiring " + semiring + ".", append(r(good), s), r(bad), triegs.ErrValue}
	}
	u := func(v any) []triegs.Event { return []triegs.Event{fact(nil, "U", "x", v)} }
	aggregate := func(name string, good any) refusedCase {
		return refusedCase{name, "q(x, " + name + ") :- U(x, v).", append(u(good), u(good)...), u("text"), triegs.ErrValue}
	}
	return []refusedCase{
		value("int", 1, "text"), value("int", 1, 1.5), value("real", 1.5, "text"), value("maxplus", 1, "text"),
		value("fuzzy", 0.5, 1.5), value("cap(3)", 1, -1), value("topk(2)", 1, "text"),
		value("access(public < secret)", "public", "hidden"), value("maxmax * int", "1|2", 1), value("maxmax * int", "1|2", "1|text"),
		aggregate("sum(v)", 1), aggregate("avg(v)", 2.5), aggregate("topk(v, 2)", 1),
	}
}

// everything sums up a store: what it must keep, the answers of all queries with
// their values, and the bytes of its directory.
func (w *world) everything(dir string) string {
	w.Helper()
	content, err := contentOf(w.db)
	if err != nil {
		w.Fatal(err)
	}
	s := w.snapshot()
	defer s.Close()
	lines := []string{content}
	for _, q := range w.db.Queries() {
		width := len(q.Columns()) - q.Aggregates()
		rows, err := gatherRows(s.Answers(q.Name()), width)
		if err != nil {
			w.Fatal(err)
		}
		distinct, total, err := s.Count(w.ctx, q.Name())
		lines = append(lines, fmt.Sprintf("%s: %v, count %d %d %v", q.Name(), rows, distinct, total, err))
	}
	if err := w.db.Verify(w.ctx); err != nil {
		w.Fatal(err)
	}
	if dir == "" {
		return strings.Join(lines, "\n")
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		lines = append(lines, fmt.Sprintf("%s %x", d.Name(), sha256.Sum256(b)))
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// A batch that would make a maintained payload overflow, or hold what is no value,
// is refused: every query, the log, the positions of sources and the digests stay
// as they are, also once the store is opened again; and the query is refused where
// the facts are there already.
func TestRefusedPayloads(t *testing.T) {
	for _, tc := range append(overflows(), badValues()...) {
		t.Run(tc.name, func(t *testing.T) { tc.run(t) })
	}
}

func (tc *refusedCase) run(t *testing.T) {
	dir := t.TempDir()
	opts := &triegs.Options{Durability: triegs.SyncNone, CheckpointBytes: -1}
	w := newWorld(t, dir, opts)
	w.append(triegs.Batch{Events: tc.load[:1]}) // so that there are relations of these arities
	w.witness("before", tc.load[0])
	w.register("q", tc.text)
	w.witness("after", tc.load[0])
	w.append(triegs.Batch{Events: tc.load[1:], Source: "s", Offset: 0})
	before := w.everything(dir)
	// What stands beside the bad event goes with it, a fact of a new relation too.
	good := fact(nil, "Other", "o")
	batch := triegs.Batch{Events: slices.Concat([]triegs.Event{good}, tc.bad, []triegs.Event{good}), Source: "s", Offset: uint64(len(tc.load) - 1)}
	w.refuseBatch(tc.want, batch)
	if after := w.everything(dir); after != before {
		t.Fatalf("a refused batch has left something:\n%s\nbefore:\n%s", after, before)
	}
	if next, known := w.db.Offset("s"); !known || next != uint64(len(tc.load)-1) {
		t.Fatalf("position %d, %v, want %d", next, known, len(tc.load)-1)
	}
	content := w.everything("")
	w.reopen(dir, opts)
	if after := w.everything(""); after != content {
		t.Fatalf("opened again it holds\n%s\nbefore:\n%s", after, content)
	}
	w.refuseBatch(tc.want, batch)
	w.db.Drop(w.ctx, "q") //nolint:errcheck // the next registration fails if it is still there
	w.append(batch)       // nothing reads the values now
	before = w.everything(dir)
	if _, err := w.db.Register(w.ctx, "q", tc.text); !errors.Is(err, tc.want) {
		t.Fatalf("registered over the facts: %v, want %v", err, tc.want)
	}
	if after := w.everything(dir); after != before {
		t.Fatalf("a refused registration has left something:\n%s\nbefore:\n%s", after, before)
	}
	s := w.snapshot()
	once := tc.want
	if strings.Contains(tc.text, "@") {
		once = triegs.ErrUnsupported // no query keeps the values
	}
	if _, err := gather(s.Select(w.ctx, tc.text)); !errors.Is(err, once) {
		t.Errorf("asked for once: %v, want %v", err, once)
	}
	s.Close()
	// Without the bad facts it is taken again.
	undo := triegs.Batch{}
	for _, e := range tc.bad {
		e.Op = triegs.Delete
		undo.Events = append(undo.Events, e)
	}
	w.append(undo)
	w.register("q", tc.text)
}

// witness registers a query that counts the facts of the relation of an event.
func (w *world) witness(name string, e triegs.Event) {
	w.Helper()
	var vars []string
	for i := range e.Tuple {
		vars = append(vars, fmt.Sprint("x", i))
	}
	list := strings.Join(vars, ", ")
	w.register(name, fmt.Sprintf("q(%s) :- %s(%s).", list, e.Relation, list))
}

// What takes repeated values once, or stops at a bound, does not overflow by
// numbers of valuations that do not fit.
func TestPayloadsThatFit(t *testing.T) {
	const body = "U(x, h, v), R(x, h, a), R(x, h, b), R(x, h, c), R(x, h, d)"
	for _, tc := range []struct {
		head, rest string
		want       any
	}{
		{"x, min(v)", "", triegs.Int(7)},
		{"x, max(v)", "", triegs.Int(7)},
		{"x, count(distinct v)", "", int64(1)},
		{"x", " semiring cap(5)", int64(5)},
		{"x", " semiring maxmax", math.Inf(-1)},
		{"x, h", " semiring cap(5)", int64(5)}, // no cluster any more
	} {
		w := newWorld(t, "", nil)
		text := "q(" + tc.head + ") :- " + body + tc.rest + "."
		w.register("q", text)
		w.append(triegs.Batch{Events: append(copies(root4Over, fact(nil, "R", "x", "h", "a")), fact(nil, "U", "x", "h", 7))})
		s := w.snapshot()
		rows := 0
		for r, err := range s.Answers("q") {
			if err != nil || r.Value(0) != tc.want || r.Multiplicity() != 1 {
				t.Errorf("%s: got %T %v x%d, %v, want %T %v", text, r.Value(0), r.Value(0), r.Multiplicity(), err, tc.want, tc.want)
			}
			rows++
		}
		if rows != 1 {
			t.Errorf("%s: %d answers", text, rows)
		}
		w.wantCount(s, "q", 1, 1)
		s.Close()
	}
}

// Where time alone brings in what does not fit, it is time that is refused.
func TestOverflowByTime(t *testing.T) {
	w := newWorld(t, "", nil)
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	w.register("q", "q(x) :- R(x, h)@, S(h)@ semiring int window 100s.")
	timed := func(e triegs.Event, s int64) triegs.Event {
		e.Time = at(s)
		return e
	}
	late := timed(fact(4, "S", "h"), 20)
	w.append(triegs.Batch{Time: at(10), Events: []triegs.Event{
		timed(fact(1<<62, "R", "x", "h"), 10), timed(fact(1, "S", "h"), 10), late,
	}})
	before := w.everything("")
	_, err := w.db.Advance(w.ctx, at(20))
	if !errors.Is(err, triegs.ErrOverflow) {
		t.Fatalf("advance: %v, want ErrOverflow", err)
	}
	if want := `query "q" cannot take the changes of S: `; !strings.Contains(err.Error(), want) {
		t.Errorf("advance: %v, want it to say %s", err, want)
	}
	w.refuseBatch(triegs.ErrOverflow, triegs.Batch{Time: at(30), Events: events("+T(a)")})
	if after := w.everything(""); after != before {
		t.Fatalf("a refused advance has left something:\n%s\nbefore:\n%s", after, before)
	}
	late.Op = triegs.Delete
	w.append(triegs.Batch{Time: at(30), Events: []triegs.Event{late}})
	if got := w.everything(""); !strings.Contains(got, "4611686018427387904") {
		t.Errorf("after the retraction: %s", got)
	}
	late.Op, late.Time = triegs.Insert, at(40)
	w.append(triegs.Batch{Time: at(30), Events: []triegs.Event{late}})
	if _, err := w.db.Advance(w.ctx, at(50)); !errors.Is(err, triegs.ErrOverflow) {
		t.Fatalf("advance: %v, want ErrOverflow", err)
	}
	if err := w.db.Drop(w.ctx, "q"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Advance(w.ctx, at(50)); err != nil {
		t.Errorf("without the query: %v", err)
	}
}
