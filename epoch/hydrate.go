package epoch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

const (
	// fewFacts is how many facts a query may read and still be filled while writers
	// wait: some milliseconds.
	fewFacts = 1 << 12
	// fewChanges is how far behind the writer a hydration may be and still be
	// adopted: an epoch of some hundreds of microseconds.
	fewChanges = 1 << 8
	// mostRounds is how often it catches up before it is adopted as it is.
	mostRounds = 64
	// mostTries is how often a query is filled beside the writer before it is filled
	// while writers wait, because what it stands on goes away each time.
	mostTries = 3

	firstBrake = time.Millisecond
	mostBrake  = 250 * time.Millisecond
)

// leastFacts is fewFacts, or next to nothing in builds that check invariants: every
// test that registers a query over facts then goes through a hydration.
func leastFacts() int {
	if invariant.Enabled {
		return 1
	}
	return fewFacts
}

// errStale says that a hydration stands on something that is not there any more.
var errStale = errors.New("what the query stands on has been replaced")

// hydration is a query that is filled beside the writer, from a pinned epoch.
type hydration struct {
	e      *Engine
	q      *catalog.Query
	views  *views.Hydration // nil once it is adopted or discarded
	at     *rootvec.Vector  // what it stands on, pinned
	names  pinnedResolver
	consts map[term.Term]uint64 // ids that constants have there
	faults uint64               // of the dictionary, before
	brake  time.Duration
}

// HydrateFrom sets how many facts a query reads at least that is filled beside the
// writer.
func (e *Engine) HydrateFrom(facts int) { e.fewFacts = facts }

// RegisterLive is Begin and Register for a store that goes on: what the query needs
// is computed from a pinned epoch by this goroutine, in memory of its own, then
// brought up to date by what other epochs have changed, until little is left for
// the epoch that publishes it. On success that epoch is held, as after Register. On
// error nothing is, and there is no trace.
//
// A query that reads few facts is filled while the epoch is held, and so is one
// that needs a window or values which no other query keeps, and one that another
// query is equal to, whose views it shares.
//
// Should epochs change more than is caught up with in the same time, those of other
// writers are made to wait a little each, until it is.
//
// What is done beside the writer ends with the context beside, which ends with ctx
// or earlier.
func (e *Engine) RegisterLive(ctx, beside context.Context, q *catalog.Query) error {
	for range mostTries {
		h, err := e.hydrate(beside, q)
		if h == nil && err == nil {
			break
		}
		if err == nil {
			err = h.finish(beside)
			h.end()
		}
		if !errors.Is(err, errStale) {
			return err
		}
	}
	if err := e.Begin(ctx); err != nil {
		return err
	}
	if err := e.register(ctx, q, nil, e.admitKept); err != nil {
		e.Rollback()
		return err
	}
	return nil
}

// hydrate fills a query from the published epoch. It returns nil if that is not
// worth while or not possible.
func (e *Engine) hydrate(ctx context.Context, q *catalog.Query) (*hydration, error) {
	h, applied, err := e.newHydration(ctx, q)
	if h == nil || err != nil {
		return nil, err
	}
	if err = e.WaitFor(ctx, applied); err == nil {
		err = h.fill(ctx)
	}
	if err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// newHydration decides whether to fill a query beside the writer. applied is the
// epoch from which on it can be.
func (e *Engine) newHydration(ctx context.Context, q *catalog.Query) (h *hydration, applied uint64, err error) {
	if err := e.hold(ctx); err != nil {
		return nil, 0, err
	}
	defer e.free()
	if err := e.Err(); err != nil {
		return nil, 0, err
	}
	if err := e.admits(q); err != nil {
		return nil, 0, err
	}
	if e.factsOf(q.Plan) < e.fewFacts || !e.arranged(q) || e.twin(q) {
		return nil, 0, nil
	}
	h = &hydration{e: e, q: q, faults: e.dict.Faults()}
	h.names = pinnedResolver{dict: e.dict, algebra: e.algebra}
	h.views = e.views.NewHydration()
	return h, e.last, nil
}

// twin reports whether a query is registered with the same text and options: there
// is nothing to fill then.
func (e *Engine) twin(q *catalog.Query) bool {
	return slices.ContainsFunc(e.schema.Queries(), func(o *catalog.Query) bool {
		return o.Text == q.Text && o.Set == q.Set && o.Dist == q.Dist && o.Window == q.Window
	})
}

// factsOf is how many facts the relations of a plan have.
func (e *Engine) factsOf(p *plan.Plan) (facts int) {
	seen := make(map[int]bool)
	for i := range p.Aliases {
		if n, _, ok := e.schema.Relation(p.Aliases[i].Relation); ok && !seen[n] {
			seen[n] = true
			facts += e.facts.Len(uint32(n))
		}
	}
	return facts
}

// admits reports what keeps a query from being registered.
func (e *Engine) admits(q *catalog.Query) error {
	if _, err := e.schema.Query(q.Name); err == nil {
		return fmt.Errorf("%w: %q", errs.ErrQueryExists, q.Name)
	}
	_, err := e.schema.CheckArities(q.Plan)
	return err
}

// arranged reports whether the relations have the layout already that they need
// with one more query.
func (e *Engine) arranged(q *catalog.Query) bool {
	for i, n := range needs(e.schema.Catalog, append(e.schema.Queries(), q)) {
		if !e.layouts[i].is(&n) {
			return false
		}
	}
	return true
}

// fill pins the published epoch and fills the query from it.
func (h *hydration) fill(ctx context.Context) error {
	h.at = h.e.Current.Pin()
	h.names.limit = h.at.Terms
	h.consts = make(map[term.Term]uint64)
	for c := range h.constants() {
		h.consts[c] = h.names.TermID(c)
	}
	f, err := h.facts(h.at.Catalog.(*Schema), h.at)
	if err != nil {
		return err
	}
	if err := h.views.Fill(h.q.Plan, f, h.names, ctx.Err); err != nil {
		return err
	}
	return h.catchUp(ctx)
}

// constants visits the constants of the plan.
func (h *hydration) constants() func(yield func(term.Term) bool) {
	return func(yield func(term.Term) bool) {
		for i := range h.q.Plan.Aliases {
			for _, k := range h.q.Plan.Aliases[i].Consts {
				if !yield(k.Term) {
					return
				}
			}
		}
	}
}

// facts are the relations of the plan as a vector has them, which may be one that
// is not published yet.
func (h *hydration) facts(s *Schema, v *rootvec.Vector) (views.Facts, error) {
	f, number, err := s.facts(h.q.Plan)
	for i := range f.Relations {
		if len(f.Relations[i].Rest) > 0 {
			err = errStale
		}
	}
	if err != nil {
		return f, fmt.Errorf("%w: %w", errStale, err)
	}
	h.names.number = number
	f.Space, f.Roots = v.Space, v.Roots
	return f, nil
}

// fresh reports whether constants that have an id, of the first so many, have the
// one that they had when the query was filled.
func (h *hydration) fresh(terms uint64) error {
	for c, was := range h.consts {
		if id, ok := h.e.dict.Find(c, terms); ok && id != was {
			return fmt.Errorf("%w: a term has come that it names", errStale)
		}
	}
	return h.e.dict.Since(h.faults)
}

// catchUp brings the query up to date with the published epochs, until it is no
// more than few changes behind. While that is not getting less other writers are
// slowed down.
func (h *hydration) catchUp(ctx context.Context) error {
	last := math.MaxInt
	for range mostRounds {
		n, err := h.advance(ctx)
		if err != nil {
			return err
		}
		if n <= fewChanges {
			break
		}
		if n > last/4*3 {
			h.slow()
		}
		last = n
	}
	return nil
}

// slow makes other writers wait longer for each of their epochs.
func (h *hydration) slow() {
	more := min(max(2*h.brake, firstBrake), mostBrake) - h.brake
	h.brake += more
	h.e.brake.Add(int64(more))
}

// release lets other writers go on as fast as they can.
func (h *hydration) release() {
	h.e.brake.Add(-int64(h.brake))
	h.brake = 0
}

// advance moves the query to the published epoch.
func (h *hydration) advance(ctx context.Context) (changes int, err error) {
	v := h.e.Current.Pin()
	if v.Epoch == h.at.Epoch {
		h.e.Current.Unpin(v)
		return 0, h.fresh(v.Terms)
	}
	err = h.fresh(v.Terms)
	if err == nil {
		var f views.Facts
		if f, err = h.facts(v.Catalog.(*Schema), v); err == nil {
			changes, err = h.views.Advance(f, ctx.Err)
		}
	}
	if err != nil {
		h.e.Current.Unpin(v)
		return 0, err
	}
	h.e.Current.Unpin(h.at)
	h.at = v
	return changes, nil
}

// finish registers the query, in an epoch that is held afterwards.
func (h *hydration) finish(ctx context.Context) error {
	e := h.e
	for range mostTries {
		if err := e.begin(ctx); err != nil {
			return err
		}
		ready, err := h.ready()
		if ready && err == nil {
			if err = e.register(ctx, h.q, h, e.admitKept); err != nil {
				e.Rollback()
			}
			return err
		}
		e.Leave()
		if err == nil {
			err = h.catchUp(ctx)
		}
		if err != nil {
			return err
		}
	}
	return errStale
}

// ready reports whether nothing but changes separates the query from the last
// applied epoch. The epoch is held.
func (h *hydration) ready() (bool, error) {
	e := h.e
	if err := h.fresh(e.dict.Len()); err != nil {
		return false, err
	}
	if !e.arranged(h.q) {
		return false, errStale
	}
	f, err := h.facts(e.working(), &rootvec.Vector{})
	return err == nil && h.views.Covers(f), err
}

// working is the schema of the epoch under construction, with the shapes that it
// has so far.
func (e *Engine) working() *Schema {
	return &Schema{Catalog: e.schema.Catalog, Views: e.schema.Views, Shapes: e.shapes()}
}

// adopt registers the query with the views of the store.
func (h *hydration) adopt(ctx context.Context, p *plan.Plan, r views.Resolver) (*views.Query, error) {
	f, err := h.facts(h.e.working(), &rootvec.Vector{})
	if err != nil {
		return nil, err
	}
	v := h.views
	h.views = nil
	return h.e.views.Adopt(v, p, f, r, ctx.Err)
}

// end gives back what a hydration has.
func (h *hydration) end() {
	h.release()
	if h.views != nil {
		h.views.Discard()
	}
	if h.at != nil && h.e.Current.Unpin(h.at) {
		h.e.TryCollect()
	}
}

// braked waits as long as hydrations ask other writers to.
func (e *Engine) braked(ctx context.Context) {
	d := e.brake.Load()
	if d <= 0 {
		return
	}
	t := time.NewTimer(min(time.Duration(d), mostBrake))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
