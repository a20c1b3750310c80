package epoch

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/dict"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// resolver gives a plan that is being registered the numbers of its relations
// and the ids of its constants.
type resolver struct {
	e      *Engine
	consts map[term.Term]uint64
}

func (r resolver) Term(id uint64) term.Term { return r.e.dict.Term(id) }

func (r resolver) TermID(t term.Term) uint64 { return r.consts[t] }

func (r resolver) RelationNumber(name string, w query.Window) int {
	i, _, _ := r.e.schema.Relation(name)
	return r.e.layouts[i].stream(w)
}

// ValuedRelation is the number of the relation that holds what a window shows of a
// base relation together with the values of the contributions.
func (r resolver) ValuedRelation(name string, w query.Window) int {
	i, _, _ := r.e.schema.Relation(name)
	return r.e.layouts[i].valuedStream(w)
}

// Register adds a query, filled from the facts that are there. Logical time stays
// where it is. The epoch must be held; Commit it with kind Register. On error the
// caller must roll back. The context is looked at now and then while it is filled.
func (e *Engine) Register(ctx context.Context, q *catalog.Query) error {
	return e.register(ctx, q, nil, nil)
}

// register is Register, with what has been filled beside the writer if there is
// something. The query is filled when last is asked, which may be nil, and not there
// yet: an error of it is one of register.
func (e *Engine) register(ctx context.Context, q *catalog.Query, from *hydration, last func(context.Context, *plan.Plan) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.admits(q); err != nil {
		return err
	}
	missing, err := e.schema.CheckArities(q.Plan)
	if err != nil {
		return err
	}
	for _, r := range missing {
		if _, err := e.Relation(r.Name, r.Arity); err != nil {
			return err
		}
	}
	if err := e.Pass(e.time); err != nil {
		return err
	}
	q.Epoch = e.last + 1
	defer e.views.Loaded()
	if err := e.arrange(e.schema.Catalog, append(e.schema.Queries(), q)); err != nil {
		return err
	}
	if last != nil {
		e.views.Finally(func() error { return last(ctx, q.Plan) })
		defer e.views.Finally(nil)
	}
	if err := e.addQuery(ctx, q, from, e.marks.faults, e.Intern); err != nil {
		return err
	}
	e.rec.Query = &record.Query{Name: q.Name, Text: q.Text, Set: q.Set, Distinct: q.Dist, Window: record.Window(q.Window)}
	return nil
}

// Retain says how much of a relation is retained beside what the windows of
// queries see, in nanoseconds of logical time: longer is what nobody reads any
// more. 0 takes it back. The epoch must be held; Commit it with kind Retain. On
// error the caller must roll back.
func (e *Engine) Retain(relation string, span int64) error {
	n, _, ok := e.schema.Relation(relation)
	if !ok {
		return fmt.Errorf("%w: there is no relation %s yet", errs.ErrValue, relation)
	}
	if err := e.Pass(e.time); err != nil {
		return err
	}
	e.setCatalog(e.schema.Catalog.WithKeep(n, span), e.schema.Views)
	defer e.views.Loaded()
	if err := e.arrange(e.schema.Catalog, e.schema.Queries()); err != nil {
		return err
	}
	e.rec.Retain = &record.Retention{Relation: relation, Span: span}
	return nil
}

// addQuery fills the views of a query, whose relations are there, and adds it to
// the schema. id gives its constants their ids; a text that could not be read
// since so many faults is an error.
func (e *Engine) addQuery(ctx context.Context, q *catalog.Query, from *hydration, faults uint64, id func(t term.Term) (uint64, error)) error {
	if o := e.schema.Same(q); o != nil {
		q.Plan = o.Plan // many copies of a query have one
	}
	r := resolver{e, make(map[term.Term]uint64)}
	for i := range q.Plan.Aliases {
		for _, k := range q.Plan.Aliases[i].Consts {
			var err error
			if r.consts[k.Term], err = id(k.Term); err != nil {
				return err
			}
		}
	}
	var v *views.Query
	var err error
	if from != nil {
		v, err = from.adopt(ctx, q.Plan, r)
	} else {
		v, err = e.views.Register(q.Plan, r, ctx.Err)
	}
	if err == nil {
		err = e.dict.Since(faults)
	}
	if err != nil {
		return err
	}
	all := maps.Clone(e.schema.Views)
	if all == nil {
		all = make(map[string]*views.Query)
	}
	all[q.Name] = v
	e.setCatalog(e.schema.Catalog.WithQuery(q), all)
	return nil
}

// constant returns the id of a constant of a query that is registered, or was
// when the state was saved: it has one.
func (e *Engine) constant(t term.Term) (uint64, error) {
	id, ok, err := e.Find(t)
	if !ok && err == nil {
		err = fmt.Errorf("the constant %v has no id", t)
	}
	return id, err
}

// Drop takes a query out. The epoch must be held; Commit it with kind Drop. On
// error the caller must roll back.
func (e *Engine) Drop(name string) error {
	if _, err := e.schema.Query(name); err != nil {
		return err
	}
	if err := e.Pass(e.time); err != nil {
		return err
	}
	e.views.Drop(e.schema.Views[name])
	all := maps.Clone(e.schema.Views)
	delete(all, name)
	e.setCatalog(e.schema.Catalog.WithoutQuery(name), all)
	defer e.views.Loaded()
	if err := e.arrange(e.schema.Catalog, e.schema.Queries()); err != nil {
		return err
	}
	e.rec.Query = &record.Query{Name: name}
	return nil
}

// Replay applies a record that the log has kept, in the same way in which it
// was applied first, publishes it, and compares the digest. What does not fit
// is ErrCorrupt: the log is not one that this code has written.
func (e *Engine) Replay(ctx context.Context, rec *record.Record) error {
	if err := e.Begin(ctx); err != nil {
		return err
	}
	e.keeps, e.timed, e.lateness = true, rec.EventTime, rec.Lateness
	expect := rootvec.Digest(rec.Digest)
	e.expect = &expect
	defer func() { e.expect = nil }()
	if err := e.redo(ctx, rec); err != nil {
		e.Rollback()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: replaying epoch %d: %w", Verdict(err), rec.Epoch, err)
	}
	_, err := e.Commit(ctx, rec.Kind, rec.Time)
	if err != nil {
		return fmt.Errorf("replaying epoch %d: %w", rec.Epoch, err)
	}
	return nil
}

// Verdict says what it means that something stored cannot be used: it is damaged,
// unless a query cannot be evaluated here, as for want of a semiring.
func Verdict(err error) error {
	if errors.Is(err, errs.ErrUnsupported) {
		return errs.ErrFormat
	}
	return errs.ErrCorrupt
}

func (e *Engine) redo(ctx context.Context, rec *record.Record) error {
	if rec.Epoch != e.last+1 {
		return fmt.Errorf("epoch %d follows %d", rec.Epoch, e.last)
	}
	for i, t := range rec.Terms {
		// A term that had died may come again while the id it had before is still
		// known here.
		if id := e.dict.InternNew(t); id != rec.FirstTerm+uint64(i) {
			return fmt.Errorf("term %v has id %d, not %d (%w)", t, id, rec.FirstTerm+uint64(i), e.cause(dict.Check(t)))
		}
	}
	for i, r := range rec.Relations {
		if n, err := e.Relation(r.Name, r.Arity); err != nil || n != rec.FirstRelation+uint32(i) {
			return fmt.Errorf("relation %s has number %d, not %d (%v)", r.Name, n, rec.FirstRelation+uint32(i), err)
		}
	}
	if err := e.redoEvents(rec); err != nil {
		return err
	}
	if rec.Clocked {
		e.FollowClock()
	}
	for _, s := range rec.Sources {
		e.Move(s.Name, rootvec.Source{
			Incarnation: s.Incarnation, Next: s.Next, Skipped: s.Skipped,
			Watermark: s.Watermark, HasWatermark: s.HasWatermark, Explicit: s.Explicit,
		})
	}
	return e.redoQuery(ctx, rec)
}

func (e *Engine) redoEvents(rec *record.Record) error {
	for i, ev := range rec.Events {
		if int(ev.Relation) >= len(e.schema.Relations()) || ev.Op > OpWaitDelete {
			return fmt.Errorf("event %d: relation %d, operation %d", i, ev.Relation, ev.Op)
		}
		known := e.dict.Len()
		for _, id := range append([]uint64{ev.Value}, ev.Tuple...) {
			if id > known {
				return fmt.Errorf("event %d: term %d of %d", i, id, known)
			}
		}
	}
	return e.Events(rec.Events, func(i int, err error) error { return fmt.Errorf("event %d: %w", i, err) })
}

func (e *Engine) redoQuery(ctx context.Context, rec *record.Record) error {
	switch {
	case rec.Kind == record.Drop && rec.Query != nil:
		return e.Drop(rec.Query.Name)
	case rec.Kind == record.Retain && rec.Retain != nil:
		return e.Retain(rec.Retain.Relation, rec.Retain.Span)
	case rec.Kind == record.Register && rec.Query != nil:
		var p *plan.Plan
		w := query.Window(rec.Query.Window)
		p, err := catalog.Compile(rec.Query.Text, catalog.Options{Set: rec.Query.Set, Distinct: rec.Query.Distinct, Window: w})
		if err != nil {
			return err
		}
		return e.Register(ctx, &catalog.Query{
			Name: rec.Query.Name, Text: rec.Query.Text, Set: rec.Query.Set, Dist: rec.Query.Distinct, Window: w, Plan: p,
		})
	}
	return nil
}
