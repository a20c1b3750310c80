// Package txn takes a batch in: it turns terms into ids, checks every event
// before anything is published, and keeps the positions of sources, so that
// each input is applied once.
//
// # Invariants
//
//   - A Txn ends in one epoch, or in none and no trace.
//   - The position of a source moves in the epoch that applies its events.
//
// It never decides when time passes and never retries.
package txn

import (
	"context"
	"fmt"
	"math"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// Event is one event of a batch.
type Event struct {
	Delete   bool
	Relation string
	Tuple    []term.Term
	Time     int64  // event time, nanoseconds since 1970
	ID       string // "" = none
	Value    term.Term
	// Lenient leaves a Delete out, and counts it, when there is nothing to
	// retract.
	Lenient bool
}

// Txn is one epoch under construction. It holds the engine from Begin to Commit,
// Rollback or Leave.
type Txn struct {
	e *epoch.Engine
	// The relation of the event before: runs of one relation are common.
	name   string
	number uint32
	arity  int
	ids    []uint64 // scratch of a Delete
}

// Begin starts an epoch and waits for other writers.
func Begin(e *epoch.Engine) (*Txn, error) {
	if err := e.Begin(); err != nil {
		return nil, err
	}
	return &Txn{e: e}, nil
}

// Position tells what a batch of n events at an offset means for its source.
type Position struct {
	Skip int    // events from the front that were applied before
	Next uint64 // position of the source before the batch
}

// From takes n events of a source in, the first at offset, and moves the
// position of the source behind them. A source that was never seen may start
// anywhere; in a dense source any other gap is ErrGap.
func (t *Txn) From(name string, offset uint64, n int, dense bool) (Position, error) {
	s, seen := t.e.Source(name)
	p := Position{Next: s.Next}
	if n == 0 {
		return p, nil
	}
	if offset > math.MaxUint64-uint64(n) {
		return p, fmt.Errorf("%w: offset %d of source %q with %d events", errs.ErrValue, offset, name, n)
	}
	if offset < s.Next {
		p.Skip = int(min(uint64(n), s.Next-offset))
		t.e.Skip(uint64(p.Skip))
	}
	if dense && seen && offset > s.Next {
		return p, fmt.Errorf("%w: source %q continues at %d, not at %d", errs.ErrGap, name, s.Next, offset)
	}
	if p.Skip < n {
		s.Next = offset + uint64(n)
		t.e.Move(name, s)
	}
	return p, nil
}

// Event applies one event. On error the transaction must be rolled back.
func (t *Txn) Event(ev *Event) error {
	if ev.Delete {
		err := t.delete(ev)
		if err != nil && ev.Lenient && isMissing(err) {
			t.e.Ignore()
			return nil
		}
		return err
	}
	if ev.Relation == "" {
		return fmt.Errorf("%w: an insertion without a relation", errs.ErrValue)
	}
	rel, err := t.relation(ev.Relation, len(ev.Tuple))
	if err != nil {
		return err
	}
	ids := t.e.Words(len(ev.Tuple))
	for i, x := range ev.Tuple {
		if ids[i], err = t.intern(x); err != nil {
			return fmt.Errorf("%s, column %d: %w", ev.Relation, i+1, err)
		}
	}
	value := uint64(0)
	if !ev.Value.IsZero() {
		if value, err = t.intern(ev.Value); err != nil {
			return fmt.Errorf("%s, value: %w", ev.Relation, err)
		}
	}
	return t.e.Event(&record.Event{Op: epoch.OpInsert, Relation: rel, Tuple: ids, Time: ev.Time, Value: value, ID: ev.ID})
}

func (t *Txn) relation(name string, arity int) (uint32, error) {
	if name == t.name && arity == t.arity {
		return t.number, nil
	}
	n, err := t.e.Relation(name, arity)
	if err != nil {
		return 0, err
	}
	t.name, t.number, t.arity = name, n, arity
	return n, nil
}

func (t *Txn) intern(x term.Term) (uint64, error) {
	if err := x.Validate(); err != nil {
		return 0, err
	}
	return t.e.Intern(x)
}

// delete applies a retraction. It brings neither terms nor relations into
// being: what is not known cannot be there.
func (t *Txn) delete(ev *Event) error {
	out := record.Event{Op: epoch.OpDelete, Time: ev.Time, ID: ev.ID}
	if len(ev.Tuple) == 0 && ev.ID == "" {
		return fmt.Errorf("%w: a retraction names an ID or a fact", errs.ErrValue)
	}
	if len(ev.Tuple) > 0 {
		i, r, ok := t.e.Schema().Relation(ev.Relation)
		switch {
		case ev.Relation == "":
			return fmt.Errorf("%w: a retraction of a fact without a relation", errs.ErrValue)
		case !ok:
			return missing(ev)
		case r.Arity != len(ev.Tuple):
			return fmt.Errorf("%w: relation %s has %d columns, not %d", errs.ErrArity, r.Name, r.Arity, len(ev.Tuple))
		}
		out.Relation = uint32(i)
		out.Tuple = t.e.Words(len(ev.Tuple))
		for c, x := range ev.Tuple {
			id, ok, err := t.find(x)
			if err != nil {
				return fmt.Errorf("%s, column %d: %w", ev.Relation, c+1, err)
			}
			if !ok {
				return missing(ev)
			}
			out.Tuple[c] = id
		}
	}
	if !ev.Value.IsZero() && ev.ID == "" {
		id, ok, err := t.find(ev.Value)
		if err != nil {
			return fmt.Errorf("%s, value: %w", ev.Relation, err)
		}
		if !ok {
			return missing(ev)
		}
		out.Value = id
	}
	if err := t.e.Event(&out); err != nil {
		if isMissing(err) {
			return missing(ev)
		}
		return err
	}
	return nil
}

func (t *Txn) find(x term.Term) (id uint64, ok bool, err error) {
	if err := x.Validate(); err != nil {
		return 0, false, err
	}
	id, ok = t.e.Dict().Find(x, t.e.Dict().Len())
	return id, ok, nil
}

// Commit ends the transaction in one epoch at the given logical time, clamped
// so that time does not go back. On error there is no epoch and no trace.
func (t *Txn) Commit(ctx context.Context, time int64) (epoch.Ticket, error) {
	return t.e.Commit(ctx, record.Batch, time)
}

// Rollback drops the transaction because it was refused.
func (t *Txn) Rollback() { t.e.Rollback() }

// Leave drops a transaction that has nothing to do, and returns the last
// applied epoch.
func (t *Txn) Leave() uint64 {
	last := t.e.Last()
	t.e.Leave()
	return last
}

// SkipTo moves the position of a source forward without events and reports
// whether it moved. Backwards is ErrValue.
func (t *Txn) SkipTo(name string, next uint64) (moved bool, err error) {
	if name == "" {
		return false, fmt.Errorf("%w: a source has a name", errs.ErrValue)
	}
	s, seen := t.e.Source(name)
	if next < s.Next {
		return false, fmt.Errorf("%w: source %q stands at %d, it cannot skip back to %d", errs.ErrValue, name, s.Next, next)
	}
	if seen && next == s.Next {
		return false, nil
	}
	s.Skipped += next - s.Next
	s.Next = next
	t.e.Move(name, s)
	return true, nil
}

// Reset starts a new incarnation of a source at offset 0 and reports whether it
// is new.
func (t *Txn) Reset(name, incarnation string) (changed bool, err error) {
	if name == "" {
		return false, fmt.Errorf("%w: a source has a name", errs.ErrValue)
	}
	s, seen := t.e.Source(name)
	if seen && s.Incarnation == incarnation {
		return false, nil
	}
	s.Incarnation, s.Next = incarnation, 0
	t.e.Move(name, s)
	return true, nil
}

// Over is a transaction over an engine whose epoch is held by somebody else,
// who commits it.
func Over(e *epoch.Engine) *Txn { return &Txn{e: e} }
