package fuzz

import (
	"errors"
	"fmt"
	"iter"
	"math/big"
	"os"
	"sync"
	"testing"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// wanted is what a query has to answer at an epoch.
type wanted struct {
	rows  map[string]oracle.Row // by oracle.Key
	total *big.Int              // of Count
	flat  bool                  // rows have no multiplicity but 1
	safe  bool                  // no epoch may be refused for what the query keeps
}

// wantedOf asks the oracle. Values cost it more than counts alone.
func wantedOf(q *oracle.Query, s *oracle.Store) (wanted, error) {
	w := wanted{rows: map[string]oracle.Row{}, total: new(big.Int), safe: true}
	if len(q.Aggregates) == 0 && q.Semiring == "" {
		for key, a := range q.Eval(s) {
			w.rows[key] = oracle.Row{Tuple: a.Tuple, Multiplicity: a.Count}
			w.total.Add(w.total, a.Count)
		}
		return w, nil
	}
	res, err := q.Rows(s)
	if err != nil {
		return w, err
	}
	w.safe, w.flat = res.Safe, !counted(q)
	for _, r := range res.Rows {
		if w.flat {
			r.Multiplicity = big.NewInt(1)
		}
		w.rows[oracle.Key(r.Tuple)] = r
	}
	w.total.SetInt64(int64(len(res.Rows)))
	return w, nil
}

// counted tells whether the rows of a query with values have a multiplicity: an
// aggregate that repeated values change needs it.
func counted(q *oracle.Query) bool {
	for _, a := range q.Aggregates {
		switch a.Func {
		case oracle.Min, oracle.Max, oracle.CountDistinct:
		default:
			return true
		}
	}
	return false
}

// gathered is a row of the engine.
type gathered struct {
	n         int64
	values    []any
	overflows bool
}

// rowOf copies a row that came with an error, which is nil or ErrOverflow.
func rowOf(r *triegs.Row, err error) gathered {
	g := gathered{n: r.Multiplicity(), overflows: err != nil}
	for i := 0; ; i++ {
		v := r.Value(i)
		if v == nil {
			return g
		}
		g.values = append(g.values, v)
	}
}

// gatherRows reads an answer set with its values by the first so many columns, and
// refuses a tuple that comes twice.
func gatherRows(rows iter.Seq2[*triegs.Row, error], width int) (map[string]gathered, error) {
	out := map[string]gathered{}
	for r, err := range rows {
		if err != nil && (r == nil || !errors.Is(err, triegs.ErrOverflow)) {
			return nil, err
		}
		k := headKey(r, width)
		if _, twice := out[k]; twice {
			return nil, fmt.Errorf("tuple %q comes twice", k)
		}
		out[k] = rowOf(r, err)
	}
	return out, nil
}

// differ compares an answer set with what it should be.
func (w wanted) differ(got map[string]gathered) error {
	for k := range w.rows {
		g, ok := got[k]
		if !ok {
			return fmt.Errorf("answer %q x%v is not there", k, w.rows[k].Multiplicity)
		}
		if err := w.differAt(k, g); err != nil {
			return err
		}
	}
	for k, g := range got {
		if _, ok := w.rows[k]; !ok {
			return fmt.Errorf("answer %q x%d should not be there", k, g.n)
		}
	}
	return nil
}

// differAt compares one answer. A row that need not overflow may do so on the way,
// where nothing promises the contrary.
func (w wanted) differAt(k string, got gathered) error {
	want := w.rows[k]
	if got.overflows {
		if len(got.values) > 0 || got.n != 0 && want.Multiplicity.Cmp(big.NewInt(got.n)) != 0 {
			return fmt.Errorf("answer %q: overflows with x%d %v, want x%v", k, got.n, got.values, want.Multiplicity)
		}
		if w.safe && !want.Overflows() {
			return fmt.Errorf("answer %q: overflows, want x%v %v", k, want.Multiplicity, want.Values)
		}
		return nil
	}
	if !want.Multiplicity.IsInt64() || got.n != want.Multiplicity.Int64() {
		return fmt.Errorf("answer %q: got x%d, want x%v", k, got.n, want.Multiplicity)
	}
	if len(want.Values) == 0 {
		return nil // its value is the multiplicity
	}
	if len(got.values) != len(want.Values) {
		return fmt.Errorf("answer %q: got values %v, want %v", k, got.values, want.Values)
	}
	for i, v := range want.Values {
		if !oracle.SameValue(got.values[i], v) {
			return fmt.Errorf("answer %q, value %d: got %T %v, want %T %v", k, i, got.values[i], got.values[i], v, v)
		}
	}
	return nil
}

// mayRefuse tells whether what some registered query keeps may not fit now.
func (k *checker) mayRefuse() bool {
	for i, name := range k.names {
		if i%2 > 0 {
			continue
		}
		w, err := wantedOf(k.queries[name].Oracle(), &k.model)
		if err != nil || !w.safe {
			return true
		}
	}
	return false
}

// meet counts what is met.
func (k *checker) meet(q *randq.Query, w wanted) {
	k.met["answer sets"]++
	for _, r := range w.rows {
		if r.Overflows() {
			k.met["rows that overflow"]++
		}
	}
	if len(w.rows) > 0 {
		k.met["with answers"]++
	}
	switch {
	case len(q.Aggregates) > 0:
		k.met["aggregates"]++
	case q.Semiring != "":
		k.met["semirings"]++
	}
}

// appendSingly gives the store that takes one event an epoch what the other took
// as one batch.
func (k *checker) appendSingly(b randq.Batch, at int) error {
	if k.single == nil {
		return nil
	}
	for i, e := range b.Events {
		in := batch([]oracle.Event{e}, at)
		in.IgnoreMissing = b.IgnoreMissing
		if _, err := k.single.Append(k.ctx, in); err != nil {
			return fmt.Errorf("event %d by itself: %w", i, err)
		}
	}
	return nil
}

// singly checks that the store of single events holds the same as the other; it
// has all queries, from the beginning on.
func (k *checker) singly(p pin) error {
	if k.single == nil {
		return nil
	}
	snap, err := k.single.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	one := pin{snap, snap.Epoch(), p.want}
	for i, name := range k.names {
		if i%2 > 0 {
			continue
		}
		for _, check := range []func(pin, string) error{k.answers, k.count} {
			if err := check(one, name); err != nil {
				return fmt.Errorf("%s, events one by one: %w", k.queries[name].Text(), err)
			}
		}
	}
	return nil
}

// openSingle makes that store.
func (k *checker) openSingle() (err error) {
	if k.single, err = triegs.Open("", nil); err != nil {
		return err
	}
	for i := range k.c.Queries {
		q := &k.c.Queries[i]
		if _, err := k.single.Register(k.ctx, q.Name, q.Text(), options(q)...); err != nil {
			return errors.Join(fmt.Errorf("register %s: %w", q.Text(), err), k.single.Close())
		}
	}
	return nil
}

// annotatedSize is that of the cases with any head, aggregates and semirings.
func annotatedSize(epochs int) randq.Size {
	return randq.Size{Queries: queriesEach, AtomsMax: 5, Epochs: epochs, Heads: true, Aggregates: true, Semirings: true}
}

// checkAnnotated runs a case of annotated queries: every third in a store on disk
// that is saved and opened again, every fourth beside one of single events.
func checkAnnotated(c randq.Case, seed uint64, deep bool) (met map[string]int, err error) {
	var saves *savers
	if seed%3 == 0 {
		root, err := os.MkdirTemp("", "annotated")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(root) }() // nothing depends on it
		saves = newSavers(root, seed)
	}
	k := newChecker(c, seed, deep, saves)
	k.leave = true
	if seed%4 == 1 {
		if err := k.openSingle(); err != nil {
			return nil, err
		}
		k.met["stores of single events"]++
	}
	err = k.check()
	if saves != nil {
		for what, n := range saves.did {
			k.met[what] += n
		}
	}
	return k.met, err
}

// TestOracleAnnotated compares the engine with the oracle after every epoch of
// random streams: acyclic queries of all classes, with any head, aggregates and
// semirings, that are there from the start, come in the middle and are dropped;
// answers, multiplicities, values, lookups, counts and ad hoc queries; beside
// restarts, checkpoints and backups, and beside stores that get the events one by
// one.
func TestOracleAnnotated(t *testing.T) {
	stores := sized(12_000, 400, 80) / queriesEach
	met := map[string]int{}
	var mu sync.Mutex
	const shards = 4
	t.Run("shards", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for i := shard; i < stores; i += shards {
					seed := uint64(20_000 + i)
					c := randq.New(seed, annotatedSize(25))
					did, err := checkAnnotated(c, seed, i%4 == 0)
					if err != nil {
						t.Fatal(reportWith(c, seed, err, func(c randq.Case) error {
							_, err := checkAnnotated(c, seed, i%4 == 0)
							return err
						}))
					}
					mu.Lock()
					for what, n := range did {
						met[what] += n
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d stores: %v", stores, met)
	for _, what := range []string{"aggregates", "semirings", "dropped", "registered again", "stores of single events", "reopen"} {
		if met[what] == 0 && !t.Failed() {
			t.Errorf("no %s: %v", what, met)
		}
	}
}

// TestOracleOverflow is TestOracleAnnotated with values and numbers of which sums
// and products often do not fit: an epoch that is refused is refused without a
// trace, which all queries show, and only where something may not fit; a row that
// comes with ErrOverflow is one whose value may not fit, and every other is right.
func TestOracleOverflow(t *testing.T) {
	met := map[string]int{}
	for i := range sized(2_000, 100, 60) {
		seed := uint64(40_000 + i)
		size := annotatedSize(20)
		size.Huge, size.Queries, size.AtomsMax = true, 2, 4
		c := randq.New(seed, size)
		did, err := checkAnnotated(c, seed&^3, i%4 == 0)
		if err != nil {
			t.Fatal(reportWith(c, seed, err, func(c randq.Case) error {
				_, err := checkAnnotated(c, seed&^3, i%4 == 0)
				return err
			}))
		}
		for what, n := range did {
			met[what] += n
		}
	}
	t.Log(met)
	for _, what := range []string{"refused", "registrations refused", "rows that overflow"} {
		if met[what] == 0 {
			t.Errorf("no %s: %v", what, met)
		}
	}
}

// FuzzAnnotated lets a fuzzer make the choices of a case of annotated queries.
func FuzzAnnotated(f *testing.F) {
	f.Add([]byte("projections, aggregates, semirings"), uint64(1))
	f.Add([]byte{0, 255, 0, 255, 7, 7, 7, 200, 13, 90}, uint64(2))
	f.Add([]byte{}, uint64(5))
	f.Add([]byte{200, 100, 50, 25, 12, 6, 3, 1, 0, 99, 98, 97}, uint64(9))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		size := annotatedSize(10)
		size.Queries = 2
		c := randq.FromBytes(data, size)
		if _, err := checkAnnotated(c, seed, true); err != nil {
			t.Fatal(reportWith(c, seed, err, func(c randq.Case) error {
				_, err := checkAnnotated(c, seed, true)
				return err
			}))
		}
	})
}
