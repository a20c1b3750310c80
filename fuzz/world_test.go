package fuzz

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// world is a store under test, with short forms for what the cases do most.
// Every term of a short form is a plain string.
type world struct {
	*testing.T
	db  *triegs.DB
	ctx context.Context
}

// newWorld opens a store; it is verified and closed when the test ends, unless
// the test has closed it.
func newWorld(t *testing.T, dir string, opts *triegs.Options) *world {
	t.Helper()
	db, err := triegs.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, db, context.Background()}
	t.Cleanup(func() {
		// With a limit: after a panic in the engine a lock may never be freed,
		// and waiting for it would hide the panic.
		within(t, time.Minute, "verifying and closing the store", func() {
			if err := w.db.Verify(context.Background()); err != nil && !errors.Is(err, triegs.ErrClosed) {
				t.Errorf("verify: %v", err)
			}
			if err := w.db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	})
	return w
}

// reopen closes the store and opens it again.
func (w *world) reopen(dir string, opts *triegs.Options) {
	w.Helper()
	if err := w.db.Close(); err != nil {
		w.Fatal(err)
	}
	db, err := triegs.Open(dir, opts)
	if err != nil {
		w.Fatal(err)
	}
	w.db = db
}

// events reads "+R(a,b)*3 -S(b)": signed facts with copies.
func events(text string) (out []triegs.Event) {
	for _, f := range strings.Fields(text) {
		body, copies, _ := strings.Cut(f[1:], "*")
		n := 1
		if copies != "" {
			n, _ = strconv.Atoi(copies)
		}
		rel, args, _ := strings.Cut(strings.TrimSuffix(body, ")"), "(")
		e := triegs.Event{Relation: rel}
		if f[0] == '-' {
			e.Op = triegs.Delete
		}
		for _, a := range strings.Split(args, ",") {
			e.Tuple = append(e.Tuple, triegs.String(a))
		}
		out = append(out, slices.Repeat([]triegs.Event{e}, n)...)
	}
	return out
}

// do appends events as one epoch.
func (w *world) do(text string) triegs.Epoch {
	w.Helper()
	return w.append(triegs.Batch{Events: events(text)})
}

// append appends a batch that must be accepted.
func (w *world) append(b triegs.Batch) triegs.Epoch {
	w.Helper()
	e, err := w.db.Append(w.ctx, b)
	if err != nil {
		w.Fatalf("append: %v", err)
	}
	return e
}

// refuse appends events that must be refused, without a trace.
func (w *world) refuse(want error, text string) error {
	w.Helper()
	return w.refuseBatch(want, triegs.Batch{Events: events(text)})
}

// refuseBatch appends a batch that must be refused, without a trace.
func (w *world) refuseBatch(want error, b triegs.Batch) error {
	w.Helper()
	before := w.epoch()
	_, err := w.db.Append(w.ctx, b)
	if !errors.Is(err, want) {
		w.Fatalf("append: got %v, want %v", err, want)
	}
	if after := w.epoch(); after != before {
		w.Fatalf("a refused batch moved the epoch from %d to %d", before, after)
	}
	return err
}

// epoch is the newest published epoch.
func (w *world) epoch() triegs.Epoch {
	w.Helper()
	s := w.snapshot()
	defer s.Close()
	return s.Epoch()
}

// snapshot pins the newest epoch.
func (w *world) snapshot() *triegs.Snapshot {
	w.Helper()
	s, err := w.db.Snapshot()
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// register registers a query that must be taken.
func (w *world) register(name, text string, opts ...triegs.QueryOption) *triegs.Query {
	w.Helper()
	q, err := w.db.Register(w.ctx, name, text, opts...)
	if err != nil {
		w.Fatalf("register %s: %v", text, err)
	}
	return q
}

// want checks the answers of a query at the newest epoch: "(a,b):2 (c,d):1".
func (w *world) want(query, answers string) {
	w.Helper()
	s := w.snapshot()
	defer s.Close()
	w.wantAt(s, query, answers)
}

// wantAt checks the answers of a query in a snapshot, and Count with them.
func (w *world) wantAt(s *triegs.Snapshot, query, answers string) {
	w.Helper()
	var got []string
	sum := int64(0)
	for r, err := range s.Answers(query) {
		if err != nil {
			w.Fatalf("answers of %s: %v", query, err)
		}
		got = append(got, fmt.Sprintf("%s:%d", lexical(r), r.Multiplicity()))
		sum += r.Multiplicity()
	}
	want := strings.Fields(answers)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Fatalf("answers of %s at epoch %d: got %v, want %v", query, s.Epoch(), got, want)
	}
	w.wantCount(s, query, int64(len(got)), sum)
}

// wantCount checks Count in a snapshot.
func (w *world) wantCount(s *triegs.Snapshot, query string, distinct, total int64) {
	w.Helper()
	d, n, err := s.Count(w.ctx, query)
	if err != nil || d != distinct || n != total {
		w.Fatalf("count of %s: got %d, %d, error %v, want %d, %d", query, d, n, err, distinct, total)
	}
}

// lexical writes a row as "(a,b)".
func lexical(r *triegs.Row) string {
	parts := make([]string, len(r.Columns()))
	for i := range parts {
		parts[i] = r.Term(i).Lexical()
	}
	return "(" + strings.Join(parts, ",") + ")"
}

// edges makes n insertions R(i, to(i)) over integers.
func edges(rel string, n int, to func(int) int) []triegs.Event {
	out := make([]triegs.Event, n)
	for i := range out {
		out[i] = triegs.Edge(rel, triegs.Int(int64(i)), triegs.Int(int64(to(i))))
	}
	return out
}

// heap is the memory in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the first one only queues what finalizers hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// within fails unless f returns in time.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s did not return within %s", what, limit)
	}
}

// scaled gives the size of a case: the full one, or a smaller one with -short.
func scaled(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}
