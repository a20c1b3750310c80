package fuzz

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// Many copies of one query take memory in proportion, and give it back.
func TestQRY01(t *testing.T) {
	names, n, rounds := scaled(40, 20), scaled(50_000, 20_000), 3
	w := newWorld(t, "", nil)
	w.append(triegs.Batch{Events: edges("R", n, func(i int) int { return i + 1 })})
	// The start has seen the query once, so that it holds the scratch of one
	// registration: what is looked for is what the number of names adds.
	w.register("warm", "q(x, y, z) :- R(x, y), R(y, z).")
	w.drop("warm")
	start, live := heap(), w.db.Metrics().LiveBytes
	var first, one int64
	for range rounds {
		for i := range names {
			w.register(fmt.Sprint("q", i), "q(x, y, z) :- R(x, y), R(y, z).")
			if i == 0 { // with the indexes that the others share
				first = w.db.Metrics().LiveBytes
			} else if i == 1 {
				one = w.db.Metrics().LiveBytes - first
			}
		}
		if grown := heap() - start; grown > first-live+int64(names)*one*3/2+1<<20 {
			t.Errorf("%d queries take %d bytes, the views of one %d", names, grown, one)
		}
		s := w.snapshot()
		for i := range names {
			w.wantCount(s, fmt.Sprint("q", i), int64(n-1), int64(n-1))
		}
		s.Close()
		if _, err := w.db.Register(w.ctx, "q0", "q(x, y) :- R(x, y)."); !errors.Is(err, triegs.ErrQueryExists) {
			t.Fatalf("the same name twice: %v", err)
		}
		for i := range names {
			w.drop(fmt.Sprint("q", i))
		}
	}
	if left := w.db.Metrics().LiveBytes; left != live {
		t.Errorf("%d live bytes after all queries are dropped, %d at the start", left, live)
	}
	t.Logf("bytes: %d at the start, the views of one query %d", start, one)
	if left := heap() - start; left > start/10 {
		t.Errorf("%d bytes more than at the start (%d) after all queries are dropped", left, start)
	}
}

// drop drops a query that is there.
func (w *world) drop(name string) {
	w.Helper()
	if err := w.db.Drop(w.ctx, name); err != nil {
		w.Fatalf("drop %s: %v", name, err)
	}
}

// A query that comes in while edges are written starts from a whole epoch and
// misses nothing after it.
func TestQRY02(t *testing.T) {
	n := scaled(1000, 300)
	w := newWorld(t, "", nil)
	w.append(triegs.Batch{Events: edges("R", n, func(int) int { return 0 })})
	base := w.epoch()
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range n {
			e := triegs.Edge("R", triegs.Int(int64(n+i)), triegs.Int(0))
			if _, err := w.db.Append(w.ctx, triegs.Batch{Events: []triegs.Event{e}}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 5 {
		time.Sleep(time.Millisecond)
		q := w.register("q", "q(x) :- R(x, y).")
		// Every epoch but those of the registrations and drops brings one edge.
		s := w.snapshot()
		if s.Epoch() < q.Epoch() {
			t.Fatalf("a snapshot at %d after a registration at %d", s.Epoch(), q.Epoch())
		}
		distinct, total, err := s.Count(w.ctx, "q")
		edges := int64(n) + int64(s.Epoch()-base) - int64(2*i+1)
		if err != nil || distinct != total || distinct != edges {
			t.Fatalf("at epoch %d: %d, %d, error %v; want %d", s.Epoch(), distinct, total, err, edges)
		}
		s.Close()
		w.drop("q")
	}
	w.register("q", "q(x) :- R(x, y).")
	writer.Wait()
	s := w.snapshot()
	defer s.Close()
	w.wantCount(s, "q", int64(2*n), int64(2*n))
}

// A reader in the middle of an enumeration finishes its snapshot after the query
// is dropped, and a new query of the same name has nothing to do with it.
func TestQRY03(t *testing.T) {
	n := scaled(100_000, 20_000)
	w := newWorld(t, "", nil)
	w.append(triegs.Batch{Events: edges("R", n, func(i int) int { return i })})
	w.register("q", "q(x, y) :- R(x, y).")
	s := w.snapshot()
	rows := 0
	for _, err := range s.Answers("q") {
		if err != nil {
			t.Fatalf("after %d rows: %v", rows, err)
		}
		if rows++; rows == n/2 {
			within(t, 5*time.Second, "drop", func() { w.drop("q") })
			w.register("q", "q(x) :- S(x).")
			w.do("+S(a)")
		}
	}
	if rows != n {
		t.Errorf("%d rows of %d", rows, n)
	}
	s.Close()
	w.want("q", "(a):1")
}

func TestQRY04(t *testing.T) {
	w := newWorld(t, "", nil)
	w.register("q", "q(x) :- Never(x, y).")
	w.want("q", "")
	w.do("+Never(a,b)")
	w.want("q", "(a):1")
	if _, err := w.db.Register(w.ctx, "p", "p(x) :- Never(x)."); !errors.Is(err, triegs.ErrArity) {
		t.Errorf("another arity: got %v, want ErrArity", err)
	}
}

// Malformed texts are refused with a position, and change nothing.
func TestQRY05(t *testing.T) {
	w := newWorld(t, "", nil)
	before := w.epoch()
	for _, tc := range []struct{ name, text string }{
		{"head variable not in the body", "q(z) :- R(x, y)."},
		{"empty body", "q(x) :- ."},
		{"no body", "q(x)"},
		{"unclosed quote", `q(x) :- R(x, "a).`},
		{"no arguments", "q(x) :- R()."},
		{"trailing text", "q(x) :- R(x, y). more"},
		{"empty", ""},
		{"sparql: head variable not in the body", "SELECT ?z WHERE { ?x :R ?y }"},
		{"sparql: empty body", "SELECT ?x WHERE { }"},
		{"sparql: one argument", "SELECT ?x WHERE { ?x :R }"},
		{"sparql: unclosed quote", `SELECT ?x WHERE { ?x :R "a }`},
		{"sparql: variable as label", "SELECT ?x WHERE { ?x ?p ?y }"},
		{"sparql: unclosed group", "SELECT ?x WHERE { ?x :R ?y "},
		{"two arities", "q(x, y) :- R(x, y), R(x)."},
		{"aggregate without an end", "q(x, sum(y) :- R(x, y)."},
		{"aggregate of no variable of the body", "q(x, sum(z)) :- R(x, y)."},
		{"unknown aggregate", "q(x, median(y)) :- R(x, y)."},
		{"aggregate of nothing", "q(x, sum()) :- R(x, y)."},
		{"topk of none", "q(x, topk(y, 0)) :- R(x, y)."},
		{"annotation without a semiring", "q(x) :- R(x, y)@ distinct semiring int."},
		{"unknown semiring", "q(x) :- R(x, y)@ semiring nope."},
		{"semiring with aggregates", "q(x, sum(y)) :- R(x, y) semiring int."},
		{"distinct aggregates", "q(x, count()) :- R(x, y) distinct."},
		{"sparql: a variable outside of GROUP BY", "SELECT ?x ?y (COUNT(*) AS ?n) WHERE { ?x :R ?y } GROUP BY ?x"},
		{"sparql: aggregate without a name", "SELECT ?x COUNT(*) WHERE { ?x :R ?y } GROUP BY ?x"},
	} {
		_, err := w.db.Register(w.ctx, "q", tc.text)
		switch {
		case err == nil:
			t.Errorf("%s: accepted", tc.name)
		case !errors.Is(err, triegs.ErrSyntax) && !errors.Is(err, triegs.ErrUnsupported) && !errors.Is(err, triegs.ErrArity):
			t.Errorf("%s: got %v", tc.name, err)
		case !position.MatchString(err.Error()):
			t.Errorf("%s: error %q has no position", tc.name, err)
		}
	}
	if after := w.epoch(); after != before || len(w.db.Queries()) != 0 {
		t.Errorf("epoch %d after %d, %d queries", after, before, len(w.db.Queries()))
	}
	// Large texts are answered, one way or the other, and soon.
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, ", R(x, y%d)", i)
	}
	within(t, 60*time.Second, "registering 10,000 atoms", func() {
		if _, err := w.db.Register(w.ctx, "many", "q(x) :- R(x, y)"+many.String()+"."); err != nil && !errors.Is(err, triegs.ErrUnsupported) && !errors.Is(err, triegs.ErrSyntax) {
			t.Errorf("10,000 atoms: %v", err)
		}
	})
	long := strings.Repeat("c", 1<<20)
	w.register("long", `q(x) :- L(x, "`+long+`").`)
	w.append(triegs.Batch{Events: []triegs.Event{triegs.Edge("L", triegs.String("a"), triegs.String(long))}})
	w.want("long", "(a):1")
}

// position finds line:column in a message.
var position = regexp.MustCompile(`\b\d+:\d+\b`)

// childVar makes the test binary play the process that is killed.
const childVar = "TRIEGS_TEST_QRY06"

// Whether a registration or a drop has returned, it survives the process being
// killed at once.
func TestQRY06(t *testing.T) {
	if dir := os.Getenv(childVar); dir != "" {
		registerOrDropAndDie(t, dir, os.Getenv(childVar+"_OP"))
	}
	dir := t.TempDir()
	die := func(op string) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestQRY06$")
		cmd.Env = append(os.Environ(), childVar+"="+dir, childVar+"_OP="+op)
		out, err := cmd.CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the process ended with %v:\n%s", op, err, out)
		}
	}
	die("register")
	w := newWorld(t, dir, nil)
	if qs := w.db.Queries(); len(qs) != 1 || qs[0].Name() != "q" {
		t.Fatalf("listed after the kill: %v", qs)
	}
	if _, err := w.db.Register(w.ctx, "q", "q(x, y) :- R(x, y)."); !errors.Is(err, triegs.ErrQueryExists) {
		t.Errorf("the same name again: %v", err)
	}
	w.do("+R(c,d)")
	w.want("q", "(a,b):1 (c,d):1")
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	die("drop")
	w.reopen(dir, nil)
	if n := len(w.db.Queries()); n != 0 {
		t.Errorf("%d queries after a drop", n)
	}
	if _, err := w.db.Query("q"); !errors.Is(err, triegs.ErrNoSuchQuery) {
		t.Errorf("a dropped query: %v", err)
	}
	w.register("q", "q(x) :- R(x, y).")
	w.want("q", "(a):1 (c):1")
}

// registerOrDropAndDie is the process that is killed.
func registerOrDropAndDie(t *testing.T, dir, op string) {
	ctx := context.Background()
	db, err := triegs.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if op == "drop" {
		err = db.Drop(ctx, "q")
	} else {
		if _, err := db.Append(ctx, triegs.Batch{Events: events("+R(a,b)")}); err != nil {
			t.Fatal(err)
		}
		_, err = db.Register(ctx, "q", "q(x, y) :- R(x, y).")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {} // the signal is on its way
}

// Many queries over one relation are all served by one batch, in one epoch.
func TestQRY07(t *testing.T) {
	const n = 300
	w := newWorld(t, "", nil)
	var b triegs.Batch
	for i := range n {
		w.register(fmt.Sprint("q", i), fmt.Sprintf(`q(x) :- R(x, "c%d").`, i))
		b.Events = append(b.Events, triegs.Edge("R", triegs.String(fmt.Sprint("x", i)), triegs.String(fmt.Sprint("c", i))))
	}
	before := w.epoch()
	if e := w.append(b); e != before+1 {
		t.Fatalf("epoch %d after %d", e, before)
	}
	s := w.snapshot()
	defer s.Close()
	for i := range n {
		w.wantAt(s, fmt.Sprint("q", i), fmt.Sprintf("(x%d):1", i))
	}
}
