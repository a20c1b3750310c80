package epoch

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/rootvec"
)

// Base is a saved base state, as Freeze and Slice have handed it out.
type Base struct {
	Epoch     uint64
	Time      int64
	LastTerm  uint64
	Relations []BaseRelation
	Queries   []*catalog.Query // with their plans, in any order
	Sources   rootvec.Sources
	Digest    rootvec.Digest
	Lateness  int64 // allowed in that epoch, ns
	// EventTime says that time is that of events, Clocked that it is a clock's.
	EventTime, Clocked bool
	Waiting            []byte // what waited, as the contributions have written it
	// Phase, if it is not nil, is told what begins: "terms", "facts", "views".
	Phase func(name string)
	// Terms calls add for each held term, ascending by id.
	Terms func(add func(id uint64, form []byte) error) error
	// Facts calls add for each chunk of contributions, those saved last first.
	Facts func(add func(chunk []byte) error) error
}

// BaseRelation is a saved relation: its number is its place in the list.
type BaseRelation struct {
	Name   string
	Arity  int
	Facts  int
	Digest rootvec.Digest
	Next   uint64 // the number of the next contribution
	Keep   int64  // as in the catalog
}

func (b *Base) phase(name string) {
	if b.Phase != nil {
		b.Phase(name)
	}
}

// Restore brings a fresh engine to a saved state and publishes it. Indexes and
// views are built from the facts. What does not fit together, the digest of a
// relation above all, is ErrCorrupt and names the relation; the engine is of no
// use then. Cost: sorting the facts once for each index.
func (e *Engine) Restore(ctx context.Context, b *Base) error {
	if err := e.hold(ctx); err != nil {
		return err
	}
	defer e.free()
	if err := e.restoreFacts(b); err != nil {
		return err
	}
	if b.Epoch == 0 {
		// Nothing has happened, which is published already.
		if len(b.Relations)+len(b.Queries) > 0 || e.facts.Contributions() > 0 {
			return fmt.Errorf("%w: the state before the first epoch is not empty", errs.ErrCorrupt)
		}
		return nil
	}
	b.phase("views")
	needed, err := e.restoreWindows(b)
	if err != nil {
		return err
	}
	digests := make(chan error, 1)
	go func() { digests <- e.restoreDigests(ctx, b) }()
	err = e.restoreViews(ctx, b, needed)
	if derr := <-digests; err == nil {
		err = derr
	}
	if err != nil {
		return err
	}
	e.last, e.sources, e.keeps = b.Epoch, b.Sources, true
	e.timed, e.lateness = b.EventTime, b.Lateness
	e.clocked.Store(b.Clocked)
	e.terms.last = e.dict.Len()
	e.views.SealAs(b.Epoch + 1)
	e.made = e.made[:0]
	e.schema.Shapes = e.shapes()
	e.due.Store(e.nextDue())
	v := e.Current.Fresh()
	*v = rootvec.Vector{
		Epoch: b.Epoch, Time: b.Time, Roots: v.Roots, Terms: e.dict.Len(),
		Sources: e.sources, Catalog: e.schema, Digest: e.digest,
	}
	v.Roots, v.Space = e.views.Copy(v.Roots)
	e.publish(v)
	return nil
}

// restoreFacts fills the dictionary, the relations and the contributions.
func (e *Engine) restoreFacts(b *Base) error {
	b.phase("terms")
	if err := b.Terms(e.dict.Restore); err != nil {
		return err
	}
	if e.dict.Len() > b.LastTerm {
		return fmt.Errorf("%w: term %d of %d", errs.ErrCorrupt, e.dict.Len(), b.LastTerm)
	}
	e.dict.SetLen(b.LastTerm)
	c := catalog.Empty.Clone()
	for _, r := range b.Relations {
		rel := catalog.Relation{Name: r.Name, Arity: r.Arity, Keep: r.Keep}
		if err := rel.Check(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrCorrupt, err)
		}
		if _, _, twice := c.Relation(r.Name); twice {
			return fmt.Errorf("%w: relation %s is there twice", errs.ErrCorrupt, r.Name)
		}
		c.AddRelation(rel)
		e.growRelation(rel)
	}
	e.setCatalog(c, nil)
	b.phase("facts")
	to := e.facts.Restore()
	to.Check(e.held)
	if err := b.Facts(to.Add); err != nil {
		return err
	}
	next := make([]uint64, 0, len(b.Relations))
	for _, r := range b.Relations {
		next = append(next, r.Next)
	}
	if err := to.Finish(next); err != nil {
		return err
	}
	if err := e.restoreWaiting(b); err != nil {
		return err
	}
	for i, r := range b.Relations {
		if n := e.facts.Len(uint32(i)); n != r.Facts {
			return fmt.Errorf("%w: relation %s has %d facts, %d were saved", errs.ErrCorrupt, r.Name, n, r.Facts)
		}
	}
	return nil
}

// held reports whether a term with an id is there.
func (e *Engine) held(id uint64) bool {
	x, y := e.dict.Hash(id)
	return x|y != 0
}

// restoreWaiting fills the reorder buffer, whose terms must be there.
func (e *Engine) restoreWaiting(b *Base) error {
	if err := e.facts.RestoreWaiting(b.Waiting); err != nil {
		return err
	}
	var err error
	e.facts.WalkWaiting(func(id uint64) {
		if !e.held(id) && err == nil {
			err = fmt.Errorf("%w: an event that waits names term %d, which was not saved", errs.ErrCorrupt, id)
		}
	})
	return err
}

// restoreDigests computes the digest of each relation and compares it with the
// one that was saved.
func (e *Engine) restoreDigests(ctx context.Context, b *Base) error {
	var hasher rootvec.Hasher
	for i, r := range b.Relations {
		part := &e.parts[i]
		n := 0
		for f := e.facts.Facts(uint32(i)); f.Next(); n++ {
			if n&0xfff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			hasher.Fact(e.tags[i], r.Arity)
			for c, id := range f.Tuple() {
				x, y := e.dict.Hash(id)
				if x|y == 0 {
					return fmt.Errorf("%w: relation %s names term %d, which was not saved", errs.ErrCorrupt, r.Name, id)
				}
				hasher.Column(c, x, y)
			}
			hasher.Move(part, 0, f.Count())
		}
		if *part != r.Digest {
			return fmt.Errorf("%w: relation %s has content digest %v, %v was saved", errs.ErrCorrupt, r.Name, *part, r.Digest)
		}
		e.digest = e.digest.Plus(*part)
	}
	if e.digest != b.Digest {
		return fmt.Errorf("%w: the content digest is %v, %v was saved", errs.ErrCorrupt, e.digest, b.Digest)
	}
	return nil
}

// restoreViews builds the indexes of all relations and the views of all queries,
// in the order of their registration.
func (e *Engine) restoreViews(ctx context.Context, b *Base, needed []need) error {
	defer e.views.Loaded()
	// The largest relation first: its memory is enough for the others.
	order := make([]int, len(b.Relations))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(b.Relations[j].Facts, b.Relations[i].Facts) })
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.restoreRelation(uint32(i), &needed[i])
	}
	queries := slices.SortedFunc(slices.Values(b.Queries), func(x, y *catalog.Query) int {
		return cmp.Compare(x.Epoch, y.Epoch)
	})
	for _, q := range queries {
		if err := e.restoreQuery(ctx, q); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: query %s: %w", Verdict(err), q.Name, err)
		}
	}
	return nil
}

func (e *Engine) restoreQuery(ctx context.Context, q *catalog.Query) error {
	if missing, err := e.schema.CheckArities(q.Plan); err != nil || len(missing) > 0 {
		return fmt.Errorf("its relations %v were not saved: %w", missing, err)
	}
	return e.addQuery(ctx, q, nil, 0, e.constant)
}

// restoreWindows lays the relations out as the queries need them, and returns what
// that is.
func (e *Engine) restoreWindows(b *Base) (list []need, err error) {
	e.time = b.Time
	list = needs(e.schema.Catalog, b.Queries)
	for i, n := range list {
		l := &e.layouts[i]
		*l = layout{windows: n.windows, base: l.base, cover: n.cover(), keep: n.keep, allValued: noStream}
		e.facts.SetWindows(uint32(i), e.time, n.windows, n.keep)
		if err := e.facts.SetValued(uint32(i), len(n.valued) > 0); err != nil {
			return nil, fmt.Errorf("relation %s: %w", b.Relations[i].Name, err)
		}
	}
	return list, nil
}

// restoreRelation puts the facts of a relation where its layout says.
func (e *Engine) restoreRelation(rel uint32, n *need) {
	l := &e.layouts[rel]
	base := e.facts.Facts(rel)
	if l.cover >= 0 {
		base = e.facts.FactsOutside(rel, l.cover)
	}
	e.load(l.base, e.facts.Len(rel), base)
	for i := range l.windows {
		l.streams = append(l.streams, e.fill(rel, e.facts.FactsIn(rel, i)))
	}
	e.arrangeValued(rel, n, &layout{allValued: noStream}, l)
}
