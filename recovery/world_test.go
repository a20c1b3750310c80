package recovery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/txn"
)

func init() { sliceFacts = 16 } // of the hundred that the workload keeps

func wallClock() time.Time { return time.Now() }

// The workload is a fixed sequence of epochs: what epoch n does depends on n
// alone, so a store that was brought back to any epoch can go on from there.
const lastEpoch = 60

const (
	ruleJoin = "q(x, y, z) :- R(x, y), S(y, z)."
	ruleHot  = `hot(x, v) :- T(x, "hot", v), R(x, y).`
)

// queries are the epochs that register (with a text) or drop a query.
var queries = map[uint64]struct{ name, text string }{
	1:  {"q", ruleJoin},
	7:  {"hot", ruleHot},
	22: {"hot", ""},
	29: {"hot", ruleHot},
}

// do applies epoch n and waits until it is published.
func do(ctx context.Context, e *epoch.Engine, n uint64) error {
	ticket, err := begin(ctx, e, n)
	if err != nil {
		return err
	}
	if ticket.Epoch != n {
		return fmt.Errorf("epoch %d came out as %d", n, ticket.Epoch)
	}
	return ticket.Wait(ctx)
}

// begin applies epoch n.
func begin(ctx context.Context, e *epoch.Engine, n uint64) (epoch.Ticket, error) {
	at := int64(n) * 1000
	if q, ok := queries[n]; ok {
		return changeQueries(ctx, e, q.name, q.text, at)
	}
	var t txn.Txn
	if err := t.Begin(ctx, e); err != nil {
		return epoch.Ticket{}, err
	}
	if err := fill(&t, n); err != nil {
		t.Rollback()
		return epoch.Ticket{}, fmt.Errorf("epoch %d: %w", n, err)
	}
	return t.Commit(ctx, at)
}

func changeQueries(ctx context.Context, e *epoch.Engine, name, text string, at int64) (epoch.Ticket, error) {
	kind := record.Register
	var q *catalog.Query
	if text == "" {
		kind = record.Drop
	} else {
		p, err := catalog.Compile(text, catalog.Options{})
		if err != nil {
			return epoch.Ticket{}, err
		}
		q = &catalog.Query{Name: name, Text: text, Plan: p}
	}
	if err := e.Begin(ctx); err != nil {
		return epoch.Ticket{}, err
	}
	var err error
	if q != nil {
		err = e.Register(ctx, q)
	} else {
		err = e.Drop(name)
	}
	if err != nil {
		e.Rollback()
		return epoch.Ticket{}, err
	}
	return e.Commit(ctx, kind, at)
}

// fill gives the events of epoch n, from a source in two of three epochs.
func fill(t *txn.Txn, n uint64) error {
	switch {
	case n == 17:
		_, err := t.SkipTo("a", 1000)
		return err
	case n == 26:
		_, err := t.Reset("a", "second")
		return err
	}
	evs := events(n)
	if n%3 != 0 {
		offset := n * 20
		if n > 17 && n < 26 {
			offset += 1000
		}
		p, err := t.From("a", offset, len(evs), false)
		if err != nil || p.Skip > 0 {
			return fmt.Errorf("position %+v, %w", p, err)
		}
	}
	for i := range evs {
		if err := t.Event(i, &evs[i]); err != nil {
			return err
		}
	}
	return t.Flush()
}

// events are those of epoch n: facts with and without IDs and values, some of
// them twice, and retractions of what earlier epochs brought: by ID, by value,
// and of the oldest contribution.
func events(n uint64) []txn.Event {
	out := inserts(n)
	for _, back := range []uint64{4, 11} {
		if n <= back || !plain(n-back) {
			continue
		}
		for i, ev := range inserts(n - back) {
			if uint64(i)%2 != back%2 {
				continue
			}
			ev.Delete, ev.Lenient = true, true // another retraction may have taken it
			if i%4 == 0 && ev.ID != "" {
				ev.Relation, ev.Tuple = "", nil
			}
			out = append(out, ev)
		}
	}
	return out
}

// plain reports whether epoch n inserts facts.
func plain(n uint64) bool {
	_, query := queries[n]
	return n > 0 && !query && n != 17 && n != 26
}

func inserts(n uint64) []txn.Event {
	r := rand.New(rand.NewPCG(n, 5))
	var out []txn.Event
	name := func(limit int) term.Term {
		if k := r.IntN(limit); k%2 == 0 {
			return term.Int(int64(k))
		} else {
			return term.IRI(fmt.Sprintf("http://example.org/node/%d", k))
		}
	}
	for i := range 8 {
		ev := txn.Event{Relation: [...]string{"R", "S", "T"}[i%3], Time: int64(n)*1000 - int64(r.IntN(5000))}
		ev.Tuple = []term.Term{name(12), name(12)}
		if ev.Relation == "T" {
			heat := "hot"
			if r.IntN(3) == 0 {
				heat = fmt.Sprintf("as warm as it was in epoch %d", n)
			}
			ev.Tuple = []term.Term{name(12), term.String(heat), term.Float(float64(r.IntN(9)) / 4)}
		}
		if i%4 < 2 {
			ev.ID = fmt.Sprintf("id %d.%d", n, i)
		}
		if i%3 == 1 {
			ev.Value = term.Int(int64(n*10) + int64(i))
		}
		out = append(out, ev)
	}
	return out
}

// oracle is the state after each epoch of a store in memory.
var oracle = sync.OnceValues(func() ([]string, error) {
	ctx := context.Background()
	e := epoch.New()
	states := make([]string, 0, lastEpoch+1)
	for n := uint64(0); ; n++ {
		s, err := state(ctx, e)
		if err != nil {
			return nil, err
		}
		states = append(states, s)
		if n == lastEpoch {
			return states, nil
		}
		if err := do(ctx, e, n+1); err != nil {
			return nil, err
		}
	}
})

func states(t testing.TB) []string {
	t.Helper()
	s, err := oracle()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// state is all that is seen of a store at its current epoch, as text.
func state(ctx context.Context, e *epoch.Engine) (string, error) {
	v := e.Current.Pin()
	defer e.Current.Unpin(v)
	digest, err := e.Digest(ctx, v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	stats := e.Stats()
	fmt.Fprintf(&b, "epoch %d time %d digest %v, %d facts, %d contributions\n", v.Epoch, v.Time, digest, stats.Facts, stats.Contributions)
	var lines []string
	for name, s := range v.Sources.All() {
		lines = append(lines, fmt.Sprintf("source %s %+v", name, s))
	}
	sch := v.Catalog.(*epoch.Schema)
	for _, r := range sch.Relations() {
		lines = append(lines, fmt.Sprintf("relation %s/%d", r.Name, r.Arity))
	}
	for _, q := range sch.Queries() {
		a := sch.Views[q.Name].Bind(v.Space, v.Roots).Answers()
		lines = append(lines, fmt.Sprintf("query %s since %d: %s", q.Name, q.Epoch, q.Text))
		for a.Next() {
			m, err := a.Multiplicity()
			if err != nil {
				return "", err
			}
			line := fmt.Sprintf("answer %s %d:", q.Name, m)
			for _, x := range q.Plan.Query.Head {
				line += " " + e.Dict().Term(a.Value(x)).String()
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return b.String(), nil
}

// isAt compares a store with the oracle and verifies it.
func isAt(ctx context.Context, e *epoch.Engine, n uint64) error {
	want, err := oracle()
	if err != nil {
		return err
	}
	got, err := state(ctx, e)
	if err != nil {
		return err
	}
	if got != want[n] {
		return fmt.Errorf("the state is\n%s\nwant\n%s", got, want[n])
	}
	v := e.Current.Pin()
	defer e.Current.Unpin(v)
	return e.Verify(ctx, v)
}
