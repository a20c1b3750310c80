package epoch

import (
	"context"
	"fmt"

	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
)

// Admit looks at an insertion that a query may come to see in a later epoch: one
// that waits for its time, or that has yet to enter a window. What an aggregate or
// a semiring refuses in it is refused now. The later epoch could not do that: it
// would be refused itself, whoever makes it, again and again. In arrival mode a
// relation that no window looks at costs nothing. The epoch must be held.
func (e *Engine) Admit(ev *record.Event) error {
	waits := ev.Op == OpWaitInsert
	if ev.Op != OpInsert && !waits || !e.views.Annotated() {
		return nil
	}
	return e.admit(ev.Relation, ev.Tuple, ev.Time, ev.Value, waits)
}

// admit is Admit for a contribution.
func (e *Engine) admit(rel uint32, tuple []uint64, at int64, value uint64, waits bool) error {
	l, now := &e.layouts[rel], e.now()
	for i, w := range l.windows {
		if !later(w, at, now, waits) {
			continue
		}
		if err := e.admitted(rel, l.streams[i], tuple); err != nil {
			return err
		}
		if l.valued != nil && l.valued[i] != noStream {
			if err := e.admitted(rel, l.valued[i], e.withValue(tuple, value)); err != nil {
				return err
			}
		}
	}
	if !waits {
		return nil
	}
	if err := e.admitted(rel, l.base, tuple); err != nil || l.allValued == noStream {
		return err
	}
	return e.admitted(rel, l.allValued, e.withValue(tuple, value))
}

// later reports whether a window comes to hold a contribution of event time at,
// and does not yet at logical time now.
func later(w query.Window, at, now int64, waits bool) bool {
	if waits {
		return w.Last > 0 || at >= w.From(w.At(now))
	}
	return w.Last == 0 && at > w.At(now)
}

func (e *Engine) withValue(tuple []uint64, value uint64) []uint64 {
	e.valued = append(append(e.valued[:0], tuple...), value)
	return e.valued
}

// admitted asks the views about a fact of one of their relations.
func (e *Engine) admitted(rel uint32, number int, fact []uint64) error {
	faults := e.dict.Faults()
	err := e.views.Admits(number, fact)
	if fault := e.dict.Since(faults); fault != nil {
		return fault
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.schema.Relations()[rel].Name, err)
	}
	return nil
}

// admitKept is Admit, once a query that is registered is filled, for what is there and has
// yet to come into it. Cost: linear in the events that wait, and in the
// contributions to relations whose columns or values it reads through a window.
func (e *Engine) admitKept(ctx context.Context, p *plan.Plan) (err error) {
	lifted := make(map[uint32]bool) // whether through a window
	for i := range p.Aliases {
		a := &p.Aliases[i]
		if n, _, ok := e.schema.Relation(a.Relation); ok && len(a.Lifts) > 0 {
			lifted[uint32(n)] = lifted[uint32(n)] || !a.Window.IsZero()
		}
	}
	for rel, windowed := range lifted {
		if !windowed {
			continue
		}
		n := 0
		for c := range e.facts.Scan(rel) {
			if n++; n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := e.admit(rel, c.Tuple, c.Time, c.Value, false); err != nil {
				return err
			}
		}
	}
	if len(lifted) == 0 {
		return nil
	}
	e.facts.Insertions(func(rel uint32, tuple []uint64, at int64, value uint64) bool {
		if _, ok := lifted[rel]; ok {
			err = e.admit(rel, tuple, at, value, true)
		}
		return err == nil
	})
	return err
}
