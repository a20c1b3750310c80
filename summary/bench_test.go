package summary

import (
	"math/rand/v2"
	"testing"

	"github.com/triegs/triegs"
)

// windowMax is the number of answers in the window that is measured.
const windowMax = 1 << 16

// BenchmarkWindow is one answer that comes, one that leaves, and one reading, in a
// window of 65,536 answers of one group: the round in which queues of aggregates
// and finger trees are measured. Answers expire in the order in which they came, or
// in an order that is up to 1,024 places or anywhere from it.
func BenchmarkWindow(b *testing.B) {
	for _, aggregate := range []struct {
		name string
		list []Aggregate
	}{
		{"count", []Aggregate{Count()}},
		{"sum", []Aggregate{Sum("a")}},
		{"min", []Aggregate{Min("a")}},
		{"all", []Aggregate{Count(), Sum("a"), Avg("a"), Min("a"), Max("a")}},
	} {
		for _, order := range []struct {
			name string
			away int64
		}{{"in-order", 1}, {"near", 1 << 10}, {"any", windowMax}} {
			b.Run(aggregate.name+"/"+order.name, func(b *testing.B) { benchmarkWindow(b, aggregate.list, order.away) })
		}
	}
}

func benchmarkWindow(b *testing.B, list []Aggregate, away int64) {
	db, err := triegs.Open("", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	q, err := db.Register(b.Context(), "q", "q(x, a) :- pay(x, a).")
	if err != nil {
		b.Fatal(err)
	}
	l, err := plan(q, Options{Aggregates: list})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	f := newFold(l)
	values := make([]triegs.Term, len(l.measured))
	round := func(now int64) {
		f.expire(now)
		for i := range values {
			values[i] = triegs.Int(rng.Int64N(1 << 30))
		}
		f.add(nil, values, now+windowMax+rng.Int64N(away), 1)
		if err := f.tell(); err != nil {
			b.Fatal(err)
		}
		f.commit()
	}
	now := int64(0)
	for ; now < 2*windowMax; now++ {
		round(now)
	}
	b.ReportAllocs()
	for b.Loop() {
		round(now)
		now++
	}
}

// BenchmarkApply is the whole way: an edge that comes and one that leaves by a window
// of 10,000, the changes of paths of two edges, and a summary of them by the first node.
// It reports the changes of an answer each of which is counted, summed and ordered,
// and what they cost with and without the summary.
func BenchmarkApply(b *testing.B) {
	for _, summed := range []bool{false, true} {
		name := map[bool]string{false: "changes", true: "summary"}[summed]
		b.Run(name, func(b *testing.B) { benchmarkApply(b, summed) })
	}
}

func benchmarkApply(b *testing.B, summed bool) {
	db, err := triegs.Open("", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }() // of a measurement only
	q, err := db.Register(b.Context(), "q", "q(x, y, z) :- edge(x, y), edge(y, z).")
	if err != nil {
		b.Fatal(err)
	}
	sub, err := db.Subscribe(b.Context(), "q", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst})
	if err != nil {
		b.Fatal(err)
	}
	defer sub.Close()
	s, err := New(q, Options{GroupBy: []string{"x"}, Aggregates: []Aggregate{Count(), Sum("z"), Min("z")}})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	var live []triegs.Event
	next := func(edges int) (changes int) {
		var batch triegs.Batch
		for range edges {
			e := triegs.Edge("edge", triegs.Int(rng.Int64N(2000)), triegs.Int(rng.Int64N(2000)))
			batch.Events, live = append(batch.Events, e), append(live, e)
			if len(live) > 10_000 {
				e := live[0]
				e.Op = triegs.Delete
				batch.Events, live = append(batch.Events, e), live[1:]
			}
		}
		if _, err := db.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		for u, err := range sub.Updates() {
			if err == nil && summed {
				err = s.Apply(u)
				changes = len(s.staged)
			}
			if err != nil {
				b.Fatal(err)
			}
			for c, err := range u.Changes() {
				if err != nil {
					b.Fatal(err)
				}
				changes += int(min(c.Old, 1) + min(c.New, 1))
			}
			if u.Epoch >= triegs.Epoch(1) {
				break
			}
		}
		return changes
	}
	next(10_000)
	next(100)
	changes := 0
	b.ReportAllocs()
	for b.Loop() {
		changes += next(100)
	}
	b.ReportMetric(float64(changes)/float64(b.N), "changes/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(changes, 1)), "ns/change")
}
