package fuzz

import (
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

func TestDEL01(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	err := w.refuseBatch(triegs.ErrNoSuchFact, triegs.Batch{Events: events("+R(a,b) -R(z,z)"), Source: "s", Offset: 4})
	if !strings.Contains(err.Error(), "R(") || !strings.Contains(err.Error(), "z") {
		t.Errorf("error %q does not name the fact", err)
	}
	if next, ok := w.db.Offset("s"); ok {
		t.Errorf("the source has a position: %d", next)
	}
	w.want("q", "")
	w.do("+R(a,b)")
	w.want("q", "(a):1")
}

func TestDEL02(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b)*2")
	w.refuse(triegs.ErrNoSuchFact, "-R(a,b)*3")
	w.want("q", "(a,b):2")
	w.reopen(dir, nil)
	w.want("q", "(a,b):2")
	w.refuse(triegs.ErrNoSuchFact, "-R(a,b)*3")
	w.do("-R(a,b)*2")
	w.want("q", "")
}

func TestDEL03(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	before := w.epoch()
	e := w.append(triegs.Batch{Events: events("+R(a,b) -R(a,b)"), Source: "s", Offset: 0})
	if next, ok := w.db.Offset("s"); e != before+1 || next != 2 || !ok {
		t.Errorf("epoch %d after %d, next offset %d (%v); want one more and 2", e, before, next, ok)
	}
	w.want("q", "")
}

func TestDEL04(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.register("q2", "q2(x) :- R(x, y).")
	w.do("+R(a,b)")
	w.do("-R(a,b) +R(a,b)")
	w.want("q", "(a,b):1")
	w.want("q2", "(a):1")
	w.do("-R(a,b) +R(a,c)")
	w.want("q", "(a,c):1")
	w.want("q2", "(a):1")
}

func TestDEL05(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("bag", "q(x, y) :- R(x, y).")
	w.register("set", "q(x, y) :- R(x, y) set.")
	for i, step := range []struct{ events, bag, set string }{
		{"+R(a,b)", "(a,b):1", "(a,b):1"}, {"+R(a,b)", "(a,b):2", "(a,b):1"},
		{"-R(a,b)", "(a,b):1", "(a,b):1"}, {"-R(a,b)", "", ""}, {"+R(a,b)", "(a,b):1", "(a,b):1"},
	} {
		w.do(step.events)
		w.want("bag", step.bag)
		w.want("set", step.set)
		if t.Failed() {
			t.Fatalf("step %d", i)
		}
	}
}

// What an enumeration gives back can be used to delete, for every kind of term.
func TestDEL06(t *testing.T) {
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	w := newWorld(t, "", nil)
	w.register("q", "q(s, o) :- p(s, o).")
	for _, o := range []triegs.Term{
		triegs.Typed("10", xsd+"integer"), triegs.Typed("010", xsd+"integer"), triegs.Int(-7), triegs.Float(2.5),
		triegs.Bool(true), triegs.Time(time.Unix(-3, 7)), triegs.Bytes([]byte{0, 255}), triegs.Blank("b"),
		triegs.IRI("http://example.org/x"), triegs.String(""), triegs.String("a\tb\n\"c\"\\"), triegs.LangString("chat", "EN"),
		triegs.LangString("", "en"), triegs.Typed("", xsd+"date"), triegs.Typed("x", "http://example.org/t"),
	} {
		w.append(triegs.Batch{Events: []triegs.Event{triegs.Edge("p", triegs.IRI("s"), o)}})
		s := w.snapshot()
		var back []triegs.Event
		for r, err := range s.Answers("q") {
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, triegs.Event{Op: triegs.Delete, Relation: "p", Tuple: []triegs.Term{r.Term(0), r.Term(1)}})
			if r.Term(1) != o {
				t.Errorf("got %s back for %s", r.Term(1), o)
			}
		}
		s.Close()
		if len(back) != 1 {
			t.Fatalf("%s: %d answers", o, len(back))
		}
		w.append(triegs.Batch{Events: back})
		w.want("q", "")
	}
}

// A batch that one of two queries cannot take is refused for all, and its source
// does not move; after the limit is lifted it applies once.
func TestDEL07(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, &triegs.Options{MemoryBudget: 16 << 20})
	w.register("q", "q(x, y) :- R(x, y).")
	w.register("q2", "q2(x, y, z) :- R(x, y), R(y, z).")
	w.do("+R(a,b)")
	big := triegs.Batch{Source: "s", Offset: 7, Events: edges("R", 1_000_000, func(i int) int { return -i })}
	w.refuseBatch(triegs.ErrBudget, big)
	if next, ok := w.db.Offset("s"); ok {
		t.Errorf("the source has a position: %d", next)
	}
	w.want("q", "(a,b):1")
	w.reopen(dir, nil)
	w.want("q", "(a,b):1")
	big.Events = big.Events[:1000]
	first := w.append(big)
	if again := w.append(big); again != first {
		t.Errorf("a replay gave epoch %d, want %d", again, first)
	}
	if next, _ := w.db.Offset("s"); next != 1007 {
		t.Errorf("next offset %d, want 1007", next)
	}
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", 1001, 1001)
}

// One epoch far larger than a segment of the log. The full size of the case is
// for a run by hand.
func TestDEL08(t *testing.T) {
	n := scaled(500_000, 100_000)
	dir := t.TempDir()
	opts := &triegs.Options{Durability: triegs.SyncNone}
	w := newWorld(t, dir, opts)
	w.register("q", "q(y) :- R(x, y).")
	before := w.epoch()
	e := w.append(triegs.Batch{Events: edges("R", n, func(i int) int { return i % 1000 })})
	if e != before+1 {
		t.Fatalf("epoch %d after %d", e, before)
	}
	for range 2 {
		s := w.snapshot()
		w.wantCount(s, "q", 1000, int64(n))
		for r, err := range s.Answers("q") {
			if err != nil || r.Multiplicity() != int64(n/1000) {
				t.Fatalf("%s x%d, error %v; want x%d", lexical(r), r.Multiplicity(), err, n/1000)
			}
		}
		s.Close()
		w.reopen(dir, opts)
	}
}

// Retractions by ID and by value, and what an ID protects.
func TestContributions(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	ab := []triegs.Term{triegs.String("a"), triegs.String("b")}
	in := func(id string, at int64, value triegs.Term) triegs.Event {
		return triegs.Event{Relation: "R", Tuple: ab, ID: id, Time: time.Unix(at, 0), Value: value}
	}
	one := func(e triegs.Event) triegs.Batch { return triegs.Batch{Events: []triegs.Event{e}} }
	out := func(id string, value triegs.Term) triegs.Batch {
		e := triegs.Event{Op: triegs.Delete, Relation: "R", Tuple: ab, ID: id, Value: value}
		return one(e)
	}
	w.append(one(in("e1", 5, triegs.Int(7))))
	w.append(one(in("e2", 3, triegs.Int(8))))
	w.append(one(in("e1", 6, triegs.Int(9)))) // a refresh
	w.want("q", "(a,b):2")
	w.refuseBatch(triegs.ErrNoSuchFact, out("", triegs.Int(7)))
	w.refuseBatch(triegs.ErrNoSuchFact, out("e3", triegs.Term{}))
	other := in("e1", 6, triegs.Term{})
	other.Tuple = []triegs.Term{ab[1], ab[0]}
	w.refuseBatch(triegs.ErrValue, one(other))
	other.Op = triegs.Delete
	w.refuseBatch(triegs.ErrNoSuchFact, one(other))
	w.append(out("", triegs.Int(9)))
	w.refuseBatch(triegs.ErrNoSuchFact, out("e1", triegs.Term{}))
	w.append(one(triegs.Event{Op: triegs.Delete, ID: "e2"}))
	w.want("q", "")
	other.Op = triegs.Insert // the ID is free again
	w.append(one(other))
	w.want("q", "(b,a):1")
}

// IgnoreMissing skips one event and not its batch.
func TestIgnoreMissing(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.append(triegs.Batch{Events: events("+R(a,b) -R(z,z) +R(c,d)"), IgnoreMissing: true})
	w.want("q", "(a,b):1 (c,d):1")
}

// Malformed events are refused by kind, name their index, and leave nothing.
func TestBadEvents(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b)")
	s := triegs.String("a")
	for i, tc := range []struct {
		e    triegs.Event
		want error
	}{
		{triegs.Event{Relation: "R", Tuple: []triegs.Term{s}}, triegs.ErrArity},
		{triegs.Event{Relation: "R", Tuple: []triegs.Term{s, s, s}}, triegs.ErrArity},
		{triegs.Event{Relation: "New"}, triegs.ErrArity},
		{triegs.Event{Relation: "R", Tuple: []triegs.Term{s, {}}}, triegs.ErrValue},
		{triegs.Event{Tuple: []triegs.Term{s, s}}, triegs.ErrValue},
		{triegs.Event{Op: 9, Relation: "R", Tuple: []triegs.Term{s, s}}, triegs.ErrValue},
		{triegs.Event{Relation: "R", Tuple: []triegs.Term{s, s}, Time: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}, triegs.ErrTime},
		{triegs.Event{Op: triegs.Delete, Relation: "R", Tuple: []triegs.Term{s, s}}, triegs.ErrNoSuchFact},
	} {
		err := w.refuseBatch(tc.want, triegs.Batch{Events: append(events("+R(c,d) +R(e,f)"), tc.e)})
		if !strings.Contains(err.Error(), "event 2") {
			t.Errorf("case %d: error %q does not name event 2", i, err)
		}
	}
	w.want("q", "(a,b):1")
}
