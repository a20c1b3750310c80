package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/randq"
)

// Self-joins are maintained on all sides at once. The variable in the middle is
// put out here, because a hidden join variable makes another class of query.
func TestSEM02(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y, z) :- R(x, y), R(y, z).")
	w.do("+R(a,b) +R(b,c)")
	w.want("q", "(a,b,c):1")
	w.do("+R(b,c)")
	w.want("q", "(a,b,c):2")
	w.do("-R(a,b) -R(b,c)*2")
	w.want("q", "")
}

func TestSEM03(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, a), R(x, b), R(x, c).")
	w.do("+R(a,b)*2 +R(a,c)")
	w.want("q", "(a):27")
	w.do("-R(a,c)")
	w.want("q", "(a):8")
}

// An atom that is written twice counts twice; a head variable that is written
// twice is a syntax error, because columns are named.
func TestSEM04(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("bag", "q(x, y) :- R(x, y), R(x, y).")
	w.register("set", "q(x, y) :- R(x, y), R(x, y) set.")
	w.do("+R(a,b)*3")
	w.want("bag", "(a,b):9")
	w.want("set", "(a,b):1")
	if _, err := w.db.Register(w.ctx, "twice", "q(x, x) :- R(x, y)."); !errors.Is(err, triegs.ErrSyntax) {
		t.Fatalf("got %v, want ErrSyntax", err)
	}
}

// A batch that cancels out is an epoch without an effect.
func TestSEM05(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	before := w.do("+R(a,b)")
	if after := w.do("+R(c,d) -R(c,d)"); after != before+1 {
		t.Fatalf("epoch %d follows %d", after, before)
	}
	w.want("q", "(a):1")
}

// What a delete has emptied matches nothing any more.
func TestSEM06(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y, z) :- R(x, y), S(y, z).")
	for _, step := range []struct{ events, want string }{
		{"+S(3,3)", ""}, {"-S(3,3)", ""}, {"+R(1,3)", ""}, {"+S(3,9)", "(1,3,9):1"},
	} {
		w.do(step.events)
		w.want("q", step.want)
	}
}

func TestSEM07(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, y).")
	for _, step := range []struct{ events, want string }{
		{"+R(a,b) +R(a,c)", "(a):2"}, {"-R(a,b)", "(a):1"}, {"+R(a,b)", "(a):2"}, {"-R(a,c)", "(a):1"},
	} {
		w.do(step.events)
		w.want("q", step.want)
	}
}

// The engine keeps the factors of a count and multiplies when it is asked, so
// that the epoch stands and every way to ask for the count reports the overflow.
func TestSEM08(t *testing.T) {
	copies := func(n int) triegs.Batch { return triegs.Batch{Events: events(fmt.Sprintf("+R(a,b)*%d", n))} }
	overflows := func(w *world) {
		w.Helper()
		s := w.snapshot()
		defer s.Close()
		rows, failed := 0, 0
		for r, err := range s.Answers("q") {
			rows++
			if errors.Is(err, triegs.ErrOverflow) && lexical(r) == "(a)" {
				failed++
			}
		}
		if rows != 1 || failed != 1 {
			t.Fatalf("%d rows, %d of them overflow; want 1 and 1", rows, failed)
		}
		if _, _, err := s.Count(w.ctx, "q"); !errors.Is(err, triegs.ErrOverflow) {
			t.Fatalf("count: got %v, want ErrOverflow", err)
		}
		if _, err := s.Lookup("q", triegs.String("a")); !errors.Is(err, triegs.ErrOverflow) {
			t.Fatalf("lookup: got %v, want ErrOverflow", err)
		}
	}
	const text = "q(x) :- R(x, a), R(x, b), R(x, c), R(x, d)."
	w := newWorld(t, "", nil)
	w.register("q", text)
	w.append(copies(55108))
	w.want("q", "(a):9222710978872688896")
	w.append(copies(1))
	overflows(w)
	w.do("-R(a,b)")
	w.want("q", "(a):9222710978872688896")
	fresh := newWorld(t, "", nil)
	fresh.register("q", text)
	fresh.append(copies(65536)) // the true count is 2^64
	overflows(fresh)
}

func TestSEM09(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y) :- A(x, u), B(y, v).")
	w.do("+A(1,u)*2 +A(2,u)")
	w.want("q", "")
	w.do("+B(p,v)*3")
	w.want("q", "(1,p):6 (2,p):3")

	n := scaled(1000, 300)
	big := newWorld(t, "", nil)
	big.register("q", "q(x, y) :- A(x, u), B(y, v).")
	big.append(triegs.Batch{Events: append(edges("A", n, func(int) int { return 0 }), edges("B", n, func(int) int { return 0 })...)})
	before := heap()
	s := big.snapshot()
	big.wantCount(s, "q", int64(n*n), int64(n*n))
	for _, err := range s.Answers("q") {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if grown := heap() - before; grown > int64(n*n) {
		t.Errorf("counting and one step took %d bytes for %d answers", grown, n*n)
	}
	s.Close()
	big.append(triegs.Batch{Events: []triegs.Event{triegs.Edge("B", triegs.Int(-1), triegs.Int(0))}})
	s = big.snapshot()
	defer s.Close()
	big.wantCount(s, "q", int64(n*n+n), int64(n*n+n))
}

func TestSEM10(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- R(x, x).")
	w.do("+R(a,b)")
	w.want("q", "")
	w.do("+R(b,b)*2")
	w.want("q", "(b):2")
	w.do("-R(b,b)")
	w.want("q", "(b):1")
}

// A cyclic body is refused at registration, in every order of its atoms, with
// its class named.
func TestSEM11(t *testing.T) {
	w := newWorld(t, "", nil)
	atoms := []string{"R(x, y)", "R(y, z)", "R(z, x)"}
	for i, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		text := fmt.Sprintf("q(x, y, z) :- %s, %s, %s.", atoms[order[0]], atoms[order[1]], atoms[order[2]])
		_, err := w.db.Register(w.ctx, fmt.Sprint("q", i), text)
		if !errors.Is(err, triegs.ErrUnsupported) || !strings.Contains(err.Error(), "cyclic") {
			t.Errorf("%s: got %v, want ErrUnsupported that says cyclic", text, err)
		}
	}
	if n := len(w.db.Queries()); n != 0 {
		t.Errorf("%d queries are registered", n)
	}
}

func TestSEM12(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y, z) :- R(x, y), R(x, z).")
	w.do("+R(1,2)")
	w.want("q", "(1,2,2):1")
}

// Paths, stars and trees over three labels and six nodes, each with a variant,
// agree with each other and with recomputation at every epoch.
func TestSEM13(t *testing.T) {
	queries := rules(t,
		"q0(x, y, z, u) :- B1(x, y), B2(y, z), B3(z, u).",
		"q1(x, a, b, c) :- B1(x, a), B2(x, b), B3(x, c).",
		"q2(x, y, z, u, v) :- B1(x, y), B1(x, z), B2(y, u), B3(z, v).")
	for seed := range uint64(scaled(200, 20)) {
		r := rand.New(rand.NewPCG(seed, 13))
		c := randq.New(seed, randq.Size{Queries: 0, AtomsMax: 1, Epochs: 0})
		c.Queries = queries
		live := map[string]int{}
		for range 12 {
			var b randq.Batch
			for range 6 {
				e := add(fmt.Sprint("B", 1+r.IntN(3)), fmt.Sprint(r.IntN(6)), fmt.Sprint(r.IntN(6)))
				k := fmt.Sprint(e.Relation, e.Tuple)
				e.Delete = live[k] > 0 && r.IntN(2) == 0
				if live[k]++; e.Delete {
					live[k] -= 2
				}
				b.Events = append(b.Events, e)
			}
			c.Epochs = append(c.Epochs, b)
		}
		if err := check(c, seed, false); err != nil {
			t.Fatal(report(c, seed, false, err))
		}
	}
}

// The sum over the coins is the same in every pinned state, from every side of
// the join and in both queries of one pin.
func TestSEM14(t *testing.T) {
	w := coins(t, rand.New(rand.NewPCG(14, 14)))
	seen, base := record(t, w, 14)
	for _, list := range seen {
		for _, o := range list {
			if o.epoch > base && o.broken != "" {
				t.Fatalf("epoch %d: %s", o.epoch, o.broken)
			}
		}
	}
}

func TestSEM15(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x, y, v, z, w) :- hasCreator(v, x), hasReply(v, z), hasCreator(z, y), likedBy(z, w).")
	w.do("+hasCreator(t1,Max) +hasCreator(t2,Eva) +hasReply(t1,t2)*2")
	w.want("q", "")
	w.do("+likedBy(t2,Mia)")
	w.want("q", "(Max,Eva,t1,t2,Mia):2")
	pinned := w.snapshot()
	defer pinned.Close()
	w.do("-hasReply(t1,t2)")
	w.want("q", "(Max,Eva,t1,t2,Mia):1")
	w.wantAt(pinned, "q", "(Max,Eva,t1,t2,Mia):2")
}

// What the parser knows and the engine does not is refused by its name.
func TestSEM17(t *testing.T) {
	w := newWorld(t, "", nil)
	for _, tc := range []struct{ text, construct string }{
		{"SELECT ?x WHERE { ?x :R ?y OPTIONAL { ?y :S ?z } }", "OPTIONAL"},
		{"SELECT ?x WHERE { { ?x :R ?y } UNION { ?x :S ?y } }", "UNION"},
		{"SELECT ?x WHERE { ?x :R ?y MINUS { ?x :S ?y } }", "MINUS"},
		{"SELECT ?x WHERE { ?x :R ?y FILTER NOT EXISTS { ?x :S ?y } }", "EXISTS"},
		{"SELECT ?x WHERE { ?x :R+ ?y }", "+"},
		{"SELECT ?x WHERE { ?x :R/:S ?y }", "/"},
		{"ASK { ?x :R ?y }", "ASK"},
		{"CONSTRUCT { ?x :R ?y } WHERE { ?x :R ?y }", "CONSTRUCT"},
		{"SELECT ?x WHERE { ?x :R ?y } ORDER BY ?x", "ORDER"},
		{"SELECT ?x WHERE { ?x :R ?y } LIMIT 3", "LIMIT"},
		{"SELECT ?x WHERE { GRAPH ?g { ?x :R ?y } }", "GRAPH"},
		{"q(x) :- R(x, y), not S(x, y).", "not"},
	} {
		_, err := w.db.Register(w.ctx, "q", tc.text)
		if !errors.Is(err, triegs.ErrUnsupported) && !errors.Is(err, triegs.ErrSyntax) {
			t.Errorf("%s: got %v, want a refusal", tc.text, err)
			continue
		}
		if !strings.Contains(err.Error(), tc.construct) {
			t.Errorf("%s: error %q does not name %q", tc.text, err, tc.construct)
		}
	}
	w.register("filter", "q(x, y) :- R(x, y), x != y.")
	w.do("+R(a,a) +R(a,b)")
	w.want("filter", "(a,b):1")
}

// TestGoroutines checks that a store has none of its own once it is closed.
func TestGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		db, err := triegs.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Append(context.Background(), triegs.Batch{Events: events("+R(a,b)")}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, "goroutines", int64(before), func() int64 { return int64(runtime.NumGoroutine()) })
}
