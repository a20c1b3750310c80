package epoch

import (
	"context"
	"fmt"

	"github.com/triegs/triegs/dict"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
	"github.com/triegs/triegs/views"
)

// pinnedResolver reads names and constants as of a pinned epoch.
type pinnedResolver struct {
	dict    *dict.Dict
	limit   uint64
	number  map[shown]int
	algebra func(name string) (semiring.Algebra, error)
}

// shown is a relation as a window shows it.
type shown struct {
	name   string
	window query.Window
	valued bool // with the values of the contributions
}

func (r pinnedResolver) Term(id uint64) term.Term { return r.dict.Term(id) }

func (r pinnedResolver) TermID(t term.Term) uint64 {
	id, _ := r.dict.Find(t, r.limit)
	return id
}

func (r pinnedResolver) RelationNumber(name string, w query.Window) int {
	return r.number[shown{name, w, false}]
}

// ValuedRelation is like RelationNumber for facts with values.
func (r pinnedResolver) ValuedRelation(name string, w query.Window) int {
	return r.number[shown{name, w, true}]
}

// evaluate is Evaluate over given algebras.
func (e *Engine) evaluate(ctx context.Context, v *rootvec.Vector, p *plan.Plan, algebra func(name string) (semiring.Algebra, error)) (*views.Bound, error) {
	d := e.dict
	faults := d.Faults()
	s := v.Catalog.(*Schema)
	if _, err := s.CheckArities(p); err != nil {
		return nil, err
	}
	f, number, err := s.facts(p)
	if err != nil {
		return nil, err
	}
	f.Space, f.Roots = v.Space, v.Roots
	r := pinnedResolver{dict: d, limit: v.Terms, number: number, algebra: algebra}
	b, err := views.Evaluate(p, f, r, ctx.Err)
	if err == nil {
		err = d.Since(faults)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// facts are the relations that a plan reads, each once, with the number that each
// has among them.
func (s *Schema) facts(p *plan.Plan) (f views.Facts, number map[shown]int, err error) {
	number = make(map[shown]int)
	for i := range p.Aliases {
		a := &p.Aliases[i]
		what := shown{a.Relation, a.Window, a.Valued}
		if _, done := number[what]; done {
			continue
		}
		number[what] = len(f.Relations)
		pr, err := s.pinned(a)
		if err != nil {
			return f, nil, fmt.Errorf("%w: %s: %w", errs.ErrUnsupported, a.Relation, err)
		}
		f.Relations = append(f.Relations, pr)
	}
	return f, number, nil
}

// pinned is the relation that an alias reads.
func (s *Schema) pinned(a *plan.Alias) (pr views.PinnedRelation, err error) {
	pr.Arity = a.Arity
	if a.Valued {
		pr.Arity++
	}
	n, _, ok := s.Relation(a.Relation)
	switch {
	case !ok:
	case a.Valued:
		pr.Indexes, err = s.Shapes[n].showValued(a.Window)
	default:
		pr.Indexes, pr.Rest, err = s.Shapes[n].show(a.Window)
	}
	return pr, err
}

// Stats are the counters and accounts of an engine.
type Stats struct {
	Relations, Queries                int
	Facts, Contributions              int64
	Terms                             uint64
	Events, Refused, Ignored, Skipped uint64
	Expired                           uint64
	Waiting                           int
	Writes, Woken                     uint64
	Tries                             trie.Bytes
	DictBytes, FactBytes              int64
}

// Stats reads them, after an epoch that is being applied.
func (e *Engine) Stats() Stats {
	e.lock <- struct{}{}
	defer e.free()
	s := Stats{
		Relations: len(e.schema.Relations()), Queries: e.schema.QueryCount(),
		Contributions: e.facts.Contributions(), Terms: e.dict.Live(),
		Events: e.events.Load(), Refused: e.refused.Load(), Ignored: e.ignored.Load(), Skipped: e.skipped.Load(),
		Expired: e.expired.Load(), Waiting: e.facts.WaitingLen(),
		Writes: e.views.Writes(), Woken: e.views.Woken,
		Tries: e.views.Bytes(), DictBytes: e.dict.Bytes(), FactBytes: e.facts.Bytes(),
	}
	for i := range e.schema.Relations() {
		s.Facts += int64(e.facts.Len(uint32(i)))
	}
	return s
}

// Held is the memory in bytes that each of the given pinned epochs keeps, beyond
// what the current state needs; what several need is told at the newest of them.
func (e *Engine) Held(epochs []uint64) []int64 {
	e.lock <- struct{}{}
	defer e.free()
	held := make([]int64, len(epochs))
	for i, at := range epochs {
		held[i] = e.views.HeldBy(at)
	}
	return held
}

// Wait returns when no epoch is being applied.
func (e *Engine) Wait() {
	e.lock <- struct{}{}
	defer e.free()
}
