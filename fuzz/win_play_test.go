package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// winPlayer runs a case of windows through the engine with the model beside it.
type winPlayer struct {
	checker
	c      *winCase
	m      *winModel
	shown  map[string]*winQuery // by registered name
	clock  hand
	offset map[int]uint64
}

// playWin runs a case in a store on disk. The seed chooses what is looked at. A
// panic of the engine is an error, so that the case can be shrunk.
func playWin(c *winCase, seed uint64) (did map[string]int, err error) {
	root, err := os.MkdirTemp("", "windows")
	if err != nil {
		return nil, err
	}
	k := &winPlayer{c: c, m: newWinModel(c), shown: map[string]*winQuery{}, offset: map[int]uint64{}}
	k.checker = checker{
		ctx: context.Background(), rng: rand.New(rand.NewPCG(seed, 91)),
		queries: map[string]*randq.Query{}, saves: newSavers(root, seed), met: map[string]int{},
	}
	k.saves.opts.Clock, k.saves.opts.Tick = k.clock.now, -1
	if !c.eventTime {
		k.clock.ns.Store(math.MinInt64)
	}
	if c.eventTime {
		o := &k.saves.opts
		o.EventTime = true
		o.IdleTimeout = time.Duration(c.idle)
		for i := range c.sources {
			if c.declared {
				o.Sources = append(o.Sources, c.sourceName(i))
			}
		}
	}
	k.saves.opts.Lateness, k.saves.opts.LatePolicy = time.Duration(c.lateness), c.policy
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		err = errors.Join(err, os.RemoveAll(root))
	}()
	if k.db, err = k.saves.open(); err != nil {
		return nil, err
	}
	err = k.run()
	k.tally()
	for _, p := range k.pins {
		err = errors.Join(err, p.snap.Close())
	}
	return k.saves.did, errors.Join(err, k.saves.wait(), k.db.Close())
}

// tally counts what was met since the store was opened.
func (k *winPlayer) tally() {
	m := k.db.Metrics()
	for what, n := range map[string]uint64{
		"expired": m.Expired, "late and accepted": m.Late.Accepted, "late and dropped": m.Late.Dropped, "late and refused": m.Late.Refused,
		"outside": m.Late.Outside, "retractions of nothing": m.Ignored, "refused": m.Refused, "sent again": m.Replayed,
	} {
		k.saves.did[what] += int(n)
	}
}

// run makes the steps and checks after each.
func (k *winPlayer) run() error {
	for i := range k.c.acts {
		a := &k.c.acts[i]
		if err := k.step(a); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, a.do, err)
		}
		k.model = *k.m.state()
		if err := k.compare(); err != nil {
			return fmt.Errorf("after step %d, %s: %w", i, a.do, err)
		}
	}
	return k.db.Verify(k.ctx)
}

// step makes one step in the engine and in the model.
func (k *winPlayer) step(a *winAct) error {
	k.saves.did[a.do]++
	if k.c.eventTime {
		k.clock.ns.Store(a.wall)
	} else if a.do == actAppend || a.do == actAdvance {
		k.clock.ns.Store(a.at)
	}
	switch a.do {
	case actAppend:
		return k.append(a)
	case actAdvance:
		_ = k.m.apply(a) // never refused
		e, err := k.db.Advance(k.ctx, time.Unix(0, a.at))
		return k.moved(e, err)
	case actRegister:
		return k.register(a)
	case actDrop:
		return k.drop(a)
	case actRetain:
		refused := k.m.apply(a)
		err := k.db.Retain(k.ctx, a.rel, time.Duration(a.span))
		if refused != nil && errors.Is(err, triegs.ErrValue) {
			return nil
		}
		return k.moved(k.newest(), errors.Join(err, refused))
	case actVerify:
		return k.db.Verify(k.ctx)
	}
	return k.upkeep(a)
}

// newest is the last published epoch.
func (k *winPlayer) newest() triegs.Epoch { return k.db.Metrics().Epoch }

// moved checks the number of an epoch that may be one more than the last.
func (k *winPlayer) moved(e triegs.Epoch, err error) error {
	if err != nil {
		return err
	}
	if e != k.epoch && e != k.epoch+1 {
		return fmt.Errorf("epoch %d after %d", e, k.epoch)
	}
	k.epoch = e
	return nil
}

// upkeep does what must not change anything.
func (k *winPlayer) upkeep(a *winAct) error {
	if err := k.saves.wait(); err != nil {
		return err
	}
	_ = k.m.apply(a) // never refused
	if a.do == actReopen || a.do == actRestore {
		k.tally()
	}
	switch a.do {
	case actCheckpoint:
		return k.db.Checkpoint(k.ctx)
	case actBeside:
		db := k.db
		k.saves.busy = true
		go func() { k.saves.jobs <- db.Checkpoint(k.ctx) }()
		return nil
	case actReopen:
		return k.checker.reopen()
	}
	return k.checker.restore()
}

// append applies a batch to the engine and to the model, which must agree on
// whether and why it is refused.
func (k *winPlayer) append(a *winAct) error {
	in := batch(a.events, 0)
	in.Time = time.Unix(0, a.at)
	in.IgnoreMissing = a.ignore
	for i, e := range a.events {
		if in.Events[i].Time = time.Unix(0, e.Time); a.untimed { // of retractions as well
			in.Events[i].Time = time.Time{}
		}
		k.domain = append(k.domain, e.Tuple...)
	}
	if k.c.eventTime {
		k.feed(a, &in)
	}
	refused := k.m.apply(a)
	e, err := k.db.Append(k.ctx, in)
	if refused == nil {
		k.offset[a.source] += uint64(len(a.events))
		return k.moved(e, err)
	}
	want := triegs.ErrNoSuchFact
	switch {
	case errors.Is(refused, errLate):
		want = triegs.ErrLate
	case errors.Is(refused, oracle.ErrValue):
		want = triegs.ErrValue
	}
	if !errors.Is(err, want) {
		return fmt.Errorf("got epoch %d, error %w, want the refusal %w (%w)", e, err, want, refused)
	}
	return nil
}

// feed makes a batch one of a source, now and then with events that were sent
// before.
func (k *winPlayer) feed(a *winAct, in *triegs.Batch) {
	in.Time = time.Time{}
	if !a.silent {
		in.Watermark = time.Unix(0, a.at)
	}
	if a.source == k.c.sources {
		return // it has no name
	}
	sent := k.m.in.sent[a.source]
	again := sent[len(sent)-k.m.in.resent(a):]
	old := batch(again, 0)
	for i, e := range again {
		old.Events[i].Time = time.Unix(0, e.Time)
	}
	in.Source, in.Offset = k.c.sourceName(a.source), k.offset[a.source]-uint64(len(again))
	in.Events = append(old.Events, in.Events...)
}

// register brings in a query and its variant.
func (k *winPlayer) register(a *winAct) error {
	q := &k.c.queries[a.query]
	_ = k.m.apply(a) // never refused
	for _, q := range []*winQuery{q, q.variant()} {
		got, err := k.db.Register(k.ctx, q.Name, q.text(), q.options()...)
		if err != nil {
			return fmt.Errorf("register %s: %w", q.text(), err)
		}
		k.epoch++
		if got.Epoch() != k.epoch {
			return fmt.Errorf("registered at epoch %d, want %d", got.Epoch(), k.epoch)
		}
		k.names = append(k.names, q.Name)
		k.shown[q.Name], k.queries[q.Name] = q, &q.Query
	}
	return nil
}

// drop takes a query and its variant out.
func (k *winPlayer) drop(a *winAct) error {
	q := &k.c.queries[a.query]
	_ = k.m.apply(a) // never refused
	for _, name := range []string{q.Name, q.Name + "v"} {
		if err := k.db.Drop(k.ctx, name); err != nil {
			return fmt.Errorf("drop %s: %w", name, err)
		}
		k.epoch++
		k.names = slices.DeleteFunc(k.names, func(n string) bool { return n == name })
	}
	return nil
}

// compare checks the newest state, and an older one that is still pinned.
func (k *winPlayer) compare() error {
	snap, err := k.db.Snapshot()
	if err != nil {
		return err
	}
	now := pin{snap, k.epoch, map[string]wanted{}}
	k.pins = append(k.pins, now)
	if at := snap.Time().UnixNano(); k.m.started && k.m.now > math.MinInt64 && at != k.m.now {
		return fmt.Errorf("logical time %d, want %d", at, k.m.now)
	}
	if got := k.db.Metrics(); !k.c.eventTime && got.Contributions != int64(k.model.Len()) {
		return fmt.Errorf("%d contributions, want %d", got.Contributions, k.model.Len())
	} else if want := k.m.input.Waiting(); k.c.eventTime && k.m.started && got.Waiting != want {
		return fmt.Errorf("%d events wait, want %d", got.Waiting, want)
	} else if late := k.m.in.late; got.Late.Accepted != late.Accepted || got.Late.Dropped != late.Dropped || got.Late.Refused != late.Refused {
		return fmt.Errorf("late: %+v, want %+v", got.Late, late)
	}
	for _, name := range k.names {
		q := k.shown[name]
		if err := k.all(now, name, q); err != nil {
			return fmt.Errorf("%s at epoch %d, time %d: %w", q.text(), now.epoch, k.m.now, err)
		}
	}
	old := k.pins[k.rng.IntN(len(k.pins))]
	for name := range old.want {
		if err := k.answers(old, name); err != nil {
			return fmt.Errorf("%s read again at epoch %d of %d: %w", k.shown[name].text(), old.epoch, k.epoch, err)
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

// all checks every way to read one query of a snapshot.
func (k *winPlayer) all(p pin, name string, q *winQuery) error {
	if got := p.snap.Epoch(); got != p.epoch {
		return fmt.Errorf("snapshot of epoch %d, want %d", got, p.epoch)
	}
	want, err := wantedOf(q.Oracle(), &k.model)
	if err != nil {
		return err
	}
	p.want[name] = want
	k.saves.did["answer sets"]++
	if len(want.rows) > 0 {
		k.saves.did["answer sets with answers"]++
	}
	for _, check := range []func(pin, string) error{k.answers, k.count, k.present, k.absent} {
		if err := check(p, name); err != nil {
			return err
		}
	}
	return k.adhoc(p, q)
}

// adhoc asks for the query without its windows, which sees all that is kept; with
// them it is none for a single reading.
func (k *winPlayer) adhoc(p pin, q *winQuery) error {
	if k.rng.IntN(3) > 0 || k.c.eventTime {
		return nil
	}
	whole := q.naked()
	if q.windowed() {
		if _, err := gather(p.snap.Select(k.ctx, q.Text())); !errors.Is(err, triegs.ErrUnsupported) {
			return fmt.Errorf("select %s: got %v, want ErrUnsupported", q.Text(), err)
		}
	}
	if whole.Set && len(whole.Values) > 0 {
		return nil // set mode with inline tables has no text
	}
	if whole.Set {
		whole.SPARQL = false
	}
	got, err := gatherRows(p.snap.Select(k.ctx, whole.Text()), len(whole.Head))
	reads := slices.ContainsFunc(q.Atoms, func(a oracle.Atom) bool { return a.Annotated })
	if reads && errors.Is(err, triegs.ErrUnsupported) {
		return nil // no registered query keeps the values outside of windows
	}
	if err != nil {
		return fmt.Errorf("select %s: %w", whole.Text(), err)
	}
	want, err := wantedOf(whole.Oracle(), &k.model)
	if err == nil {
		err = want.differ(got)
	}
	if err != nil {
		return fmt.Errorf("select %s: %w", whole.Text(), err)
	}
	return nil
}
