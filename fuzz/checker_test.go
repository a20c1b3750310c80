package fuzz

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// termTexts remembers the terms of the few texts that cases use.
var termTexts sync.Map

// parsed gives the term of a text that randq made.
func parsed(text string) triegs.Term {
	if t, ok := termTexts.Load(text); ok {
		return t.(triegs.Term)
	}
	t, err := triegs.ParseTerm(text)
	if err != nil {
		panic(fmt.Sprintf("term %s of a case: %v", text, err))
	}
	termTexts.Store(text, t)
	return t
}

// terms gives the terms of a tuple.
func terms(tuple []string) []triegs.Term {
	out := make([]triegs.Term, len(tuple))
	for i, s := range tuple {
		out[i] = parsed(s)
	}
	return out
}

// event gives an event of a case as one of the API.
func event(e oracle.Event) triegs.Event {
	out := triegs.Event{Relation: e.Relation, ID: e.ID}
	if e.Delete {
		out.Op = triegs.Delete
	} else {
		out.Time = time.Unix(0, e.Time)
	}
	if e.Tuple != nil {
		out.Tuple = terms(e.Tuple)
	}
	if e.Value != "" {
		out.Value = parsed(e.Value)
	}
	return out
}

// batch gives events as a batch with a fixed logical time.
func batch(events []oracle.Event, at int) triegs.Batch {
	b := triegs.Batch{Time: time.Unix(0, int64(at))}
	for _, e := range events {
		b.Events = append(b.Events, event(e))
	}
	return b
}

// options gives the options of a registration that the text cannot say.
func options(q *randq.Query) []triegs.QueryOption {
	if q.SPARQL && q.Set {
		return []triegs.QueryOption{triegs.Set()}
	}
	return nil
}

// key is the text of the tuple of a row without aggregates, in the form of
// oracle.Key.
func key(r *triegs.Row) string { return headKey(r, len(r.Columns())) }

// headKey is the text of the first columns of a row, in that form.
func headKey(r *triegs.Row, width int) string {
	tuple := make([]string, width)
	for i := range tuple {
		tuple[i] = r.Term(i).String()
	}
	return oracle.Key(tuple)
}

// gather reads an answer set as a map, and refuses a tuple that comes twice.
func gather(rows iter.Seq2[*triegs.Row, error]) (map[string]int64, error) {
	out := map[string]int64{}
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		k := key(r)
		if _, twice := out[k]; twice {
			return nil, fmt.Errorf("tuple %q comes twice", k)
		}
		out[k] = r.Multiplicity()
	}
	return out, nil
}

// differ compares an answer set with what it should be.
func differ(got map[string]int64, want oracle.Answers) error {
	for k, a := range want {
		if n, ok := got[k]; !ok || !a.Count.IsInt64() || n != a.Count.Int64() {
			return fmt.Errorf("answer %q: got %d (present: %v), want %v", k, n, ok, a.Count)
		}
	}
	for k, n := range got {
		if _, ok := want[k]; !ok {
			return fmt.Errorf("answer %q x%d should not be there", k, n)
		}
	}
	return nil
}

// pin is a snapshot together with what it must go on to read.
type pin struct {
	snap  *triegs.Snapshot
	epoch triegs.Epoch
	want  map[string]wanted
}

// checker runs a case through the engine with the oracle beside it.
type checker struct {
	ctx     context.Context
	rng     *rand.Rand
	db      *triegs.DB
	model   oracle.Store
	c       randq.Case
	names   []string // registered names, originals and variants
	queries map[string]*randq.Query
	pins    []pin
	epoch   triegs.Epoch
	domain  []string
	deep    bool       // also Select, and Verify at every epoch
	saves   *savers    // what a store on disk does between epochs, nil in memory
	leave   bool       // queries are dropped, and come again, now and then
	single  *triegs.DB // the same, one event an epoch; nil if there is none
	met     map[string]int
}

// pinsMax is the number of older snapshots that a run keeps open.
const pinsMax = 4

// check runs a case in memory. The seed chooses when queries come in, which
// snapshots are kept and which absent tuples are asked for. A panic of the
// engine is an error, so that the case can be shrunk.
func check(c randq.Case, seed uint64, deep bool) error {
	return checkWith(c, seed, deep, nil)
}

// checkWith is check of a store on disk if saves is not nil.
func checkWith(c randq.Case, seed uint64, deep bool, saves *savers) error {
	return newChecker(c, seed, deep, saves).check()
}

func newChecker(c randq.Case, seed uint64, deep bool, saves *savers) *checker {
	return &checker{
		ctx: context.Background(), rng: rand.New(rand.NewPCG(seed, 77)), c: c,
		queries: map[string]*randq.Query{}, deep: deep, saves: saves, met: map[string]int{},
	}
}

// check opens the store, runs the case and closes it.
func (k *checker) check() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	saves := k.saves
	if k.db, err = saves.open(); err != nil {
		return err
	}
	err = k.run()
	for _, p := range k.pins {
		err = errors.Join(err, p.snap.Close())
	}
	if k.single != nil {
		err = errors.Join(err, k.single.Close())
	}
	return errors.Join(err, saves.wait(), k.db.Close())
}

// run applies the batches and checks after each.
func (k *checker) run() error {
	joins := make([]int, len(k.c.Queries)) // the epoch before which a query is registered
	for i := range joins {
		if k.rng.IntN(2) == 0 {
			joins[i] = k.rng.IntN(len(k.c.Epochs) + 1)
		}
	}
	for i, b := range k.c.Epochs {
		for j := range k.c.Queries {
			if err := k.comeAndGo(&k.c.Queries[j], joins[j] == i); err != nil {
				return err
			}
		}
		if err := k.append(b, i); err != nil {
			return fmt.Errorf("epoch %d: %w", i, err)
		}
		if err := k.compare(); err != nil {
			return fmt.Errorf("epoch %d: %w", i, err)
		}
		if k.saves != nil {
			if err := k.between(); err != nil {
				return fmt.Errorf("after epoch %d: %w", i, err)
			}
		}
	}
	return k.db.Verify(k.ctx)
}

// comeAndGo registers a query if now is its time. Where queries leave, one that is
// there is dropped now and then, and comes again.
func (k *checker) comeAndGo(q *randq.Query, now bool) error {
	there := slices.Contains(k.names, q.Name)
	switch {
	case now:
		return k.register(q)
	case !k.leave || k.queries[q.Name] == nil:
		return nil
	case there && k.rng.IntN(12) == 0:
		return k.drop(q)
	case !there && k.rng.IntN(4) == 0:
		k.met["registered again"]++
		return k.register(q)
	}
	return nil
}

// drop takes out a query and its variant.
func (k *checker) drop(q *randq.Query) error {
	k.met["dropped"]++
	for _, name := range []string{q.Name, q.Name + "v"} {
		if err := k.db.Drop(k.ctx, name); err != nil {
			return fmt.Errorf("drop %s: %w", name, err)
		}
		k.epoch++
		k.names = slices.DeleteFunc(k.names, func(n string) bool { return n == name })
	}
	return nil
}

// register brings in a query and its variant. Where the query may keep what does not
// fit, it may be refused, and is tried again later.
func (k *checker) register(q *randq.Query) error {
	v := q.Variant(k.rng, q.Name+"v")
	for i, q := range []*randq.Query{q, &v} {
		k.queries[q.Name] = q
		got, err := k.db.Register(k.ctx, q.Name, q.Text(), options(q)...)
		if errors.Is(err, triegs.ErrOverflow) {
			w, safe := wantedOf(q.Oracle(), &k.model)
			if safe == nil && w.safe {
				return fmt.Errorf("register %s: %w, and all fits", q.Text(), err)
			}
			k.met["registrations refused"]++
			if i > 0 { // one stands only with the other
				k.names = k.names[:len(k.names)-1]
				k.epoch++
				return k.db.Drop(k.ctx, strings.TrimSuffix(q.Name, "v"))
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("register %s: %w", q.Text(), err)
		}
		k.epoch++
		if got.Epoch() != k.epoch {
			return fmt.Errorf("registered at epoch %d, want %d", got.Epoch(), k.epoch)
		}
		k.names = append(k.names, q.Name)
	}
	return nil
}

// append applies one batch to the engine and to the model, which must agree on
// whether it is refused.
func (k *checker) append(b randq.Batch, at int) error {
	in := batch(b.Events, at)
	in.IgnoreMissing = b.IgnoreMissing
	for _, e := range b.Events {
		k.domain = append(k.domain, e.Tuple...)
	}
	before := k.model.Clone()
	_, refused := k.model.Apply(b.Events, b.IgnoreMissing)
	e, err := k.db.Append(k.ctx, in)
	switch {
	case refused == nil && (errors.Is(err, triegs.ErrOverflow) || errors.Is(err, triegs.ErrValue)):
		if !k.mayRefuse() {
			return err
		}
		k.met["refused"]++
		k.model = *before
		return nil
	case refused != nil && !errors.Is(err, triegs.ErrNoSuchFact):
		return fmt.Errorf("got epoch %d, error %v, want a refusal (%v)", e, err, refused)
	case refused == nil && err != nil:
		return err
	case refused == nil:
		k.epoch++
		if e != k.epoch {
			return fmt.Errorf("got epoch %d, want %d", e, k.epoch)
		}
		return k.appendSingly(b, at)
	}
	return nil
}

// compare checks the newest state, and an older one that is still pinned.
func (k *checker) compare() error {
	snap, err := k.db.Snapshot()
	if err != nil {
		return err
	}
	now := pin{snap, k.epoch, map[string]wanted{}}
	k.pins = append(k.pins, now)
	var wants wanted
	for i, name := range k.names {
		if i%2 == 0 { // a variant follows its query and has the same answers
			if wants, err = wantedOf(k.queries[name].Oracle(), &k.model); err != nil {
				return err
			}
			k.meet(k.queries[name], wants)
		}
		now.want[name] = wants
	}
	for _, name := range k.names {
		if err := k.query(now, name); err != nil {
			return fmt.Errorf("%s at epoch %d: %w", k.queries[name].Text(), now.epoch, err)
		}
	}
	if err := k.singly(now); err != nil {
		return err
	}
	old := k.pins[k.rng.IntN(len(k.pins))]
	for name := range old.want {
		if err := k.answers(old, name); err != nil {
			return fmt.Errorf("%s read again at epoch %d of %d: %w", k.queries[name].Text(), old.epoch, k.epoch, err)
		}
	}
	if len(k.pins) > pinsMax {
		i := k.rng.IntN(len(k.pins))
		gone := k.pins[i].snap
		k.pins = slices.Delete(k.pins, i, i+1)
		return gone.Close()
	}
	return nil
}

// query checks every way to read one query of a snapshot.
func (k *checker) query(p pin, name string) error {
	if got := p.snap.Epoch(); got != p.epoch {
		return fmt.Errorf("snapshot of epoch %d, want %d", got, p.epoch)
	}
	for _, check := range []func(pin, string) error{k.answers, k.count, k.present, k.absent, k.selected} {
		if err := check(p, name); err != nil {
			return err
		}
	}
	return nil
}

// answers checks the enumeration.
func (k *checker) answers(p pin, name string) error {
	got, err := gatherRows(p.snap.Answers(name), len(k.queries[name].Head))
	if err == nil {
		err = p.want[name].differ(got)
	}
	if err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	return nil
}

// count checks both numbers of Count.
func (k *checker) count(p pin, name string) error {
	distinct, total, err := p.snap.Count(k.ctx, name)
	want := p.want[name]
	switch {
	case !want.total.IsInt64() && errors.Is(err, triegs.ErrOverflow):
		return nil
	case err != nil:
		return fmt.Errorf("count: %w", err)
	case distinct != int64(len(want.rows)) || total != want.total.Int64():
		return fmt.Errorf("count: got %d, %d, want %d, %v", distinct, total, len(want.rows), want.total)
	}
	return nil
}

// present looks up some answers.
func (k *checker) present(p pin, name string) error {
	left := 8
	for id, a := range p.want[name].rows {
		if left--; left < 0 {
			break
		}
		row, err := p.snap.Lookup(name, terms(a.Tuple)...)
		if err != nil && !errors.Is(err, triegs.ErrOverflow) {
			return fmt.Errorf("lookup %v: %w", a.Tuple, err)
		}
		got := gathered{overflows: true}
		if err == nil {
			got = rowOf(row, nil)
			if at := headKey(row, len(a.Tuple)); at != id {
				return fmt.Errorf("lookup %v: got %s", a.Tuple, at)
			}
		}
		if err := p.want[name].differAt(id, got); err != nil {
			return fmt.Errorf("lookup: %w", err)
		}
	}
	return nil
}

// absent looks up tuples that are no answers: some of terms that occur, one of
// a term that never did, and neighbours of an answer.
func (k *checker) absent(p pin, name string) error {
	width := len(k.queries[name].Head)
	var near []string
	for _, a := range p.want[name].rows {
		near = a.Tuple
		break
	}
	if width == 0 && len(p.want[name].rows) > 0 {
		return nil // the one tuple is there
	}
	for i := range 6 {
		tuple := make([]string, width)
		for j := range tuple {
			switch {
			case i == 0:
				tuple[j] = `"never seen"`
			case i%2 == 0 && near != nil && k.rng.IntN(width) > 0:
				tuple[j] = near[j]
			case len(k.domain) > 0:
				tuple[j] = k.domain[k.rng.IntN(len(k.domain))]
			default:
				tuple[j] = `"a"`
			}
		}
		if _, is := p.want[name].rows[oracle.Key(tuple)]; is {
			continue
		}
		if row, err := p.snap.Lookup(name, terms(tuple)...); !errors.Is(err, triegs.ErrNoAnswer) {
			return fmt.Errorf("lookup of the absent %v: got %v, %v, want ErrNoAnswer", tuple, row, err)
		}
	}
	return nil
}

// selected checks the same text as an ad hoc query on the snapshot. Set mode
// with inline tables has no text.
func (k *checker) selected(p pin, name string) error {
	q := *k.queries[name]
	if !k.deep && k.rng.IntN(4) > 0 || q.Set && len(q.Values) > 0 {
		return nil
	}
	if q.Set {
		q.SPARQL = false
	}
	got, err := gatherRows(p.snap.Select(k.ctx, q.Text()), len(q.Head))
	if err != nil {
		return fmt.Errorf("select: %w", err)
	}
	if err := p.want[name].differ(got); err != nil {
		return fmt.Errorf("select: %w", err)
	}
	return nil
}

// report shrinks a failing case and says how to keep it.
func report(c randq.Case, seed uint64, deep bool, err error) string {
	return reportWith(c, seed, err, func(c randq.Case) error { return check(c, seed, deep) })
}

// reportWith is report of what again finds wrong with a case.
func reportWith(c randq.Case, seed uint64, err error, again func(randq.Case) error) string {
	deadline := time.Now().Add(20 * time.Second)
	refused := errors.Is(err, triegs.ErrUnsupported)
	small := randq.Shrink(c, func(c randq.Case) bool {
		if time.Now().After(deadline) {
			return false
		}
		// Without some of its atoms a query may leave the class: another fault.
		err := again(c)
		return err != nil && errors.Is(err, triegs.ErrUnsupported) == refused
	})
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d: %v\n", seed, err)
	fmt.Fprintf(&s, "shrunk: %v\nput this under testdata/cases to keep it:\n# seed %d\n%s", again(small), seed, small.String())
	return s.String()
}
