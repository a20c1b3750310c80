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
	Delete bool
	// All makes a Delete retract every live contribution to the facts that agree
	// with Tuple, in which the zero Term agrees with all.
	All      bool
	Relation string
	Tuple    []term.Term
	Time     int64  // event time, nanoseconds since 1970
	ID       string // "" = none
	Value    term.Term
	// Lenient leaves a Delete out, and counts it, when there is nothing to
	// retract.
	Lenient bool
	// Wait keeps the event until logical time reaches its own, when a Delete that
	// finds nothing to retract is left out and counted.
	Wait bool
}

// Txn is one epoch under construction. It holds the engine from Begin to Commit,
// Rollback or Leave.
type Txn struct {
	e *epoch.Engine
	// last is the relation of the event before: runs of one are common.
	last struct {
		name   string
		number uint32
		arity  int
	}
	// pending events are applied together, so that the memory that they touch
	// is fetched side by side.
	pending []record.Event
	origin  []origin
	// waiting events have not been resolved, so that the terms of several are
	// looked up side by side.
	waiting []numbered
	terms   []term.Term // of the insertions among them
	idsAll  []uint64    // memory of ids
	ids     []uint64    // of terms, as far as they have been interned and not taken
}

// Begin starts an epoch, after those of other writers; ctx ends the wait. Only
// whoever holds the epoch may use t, which may be used again for the next one,
// so that its memory is.
func (t *Txn) Begin(ctx context.Context, e *epoch.Engine) error {
	if err := e.Begin(ctx); err != nil {
		return err
	}
	t.e = e
	// The relation may be one that a refused epoch brought.
	t.last.name = ""
	t.pending, t.origin, t.waiting = t.pending[:0], t.origin[:0], t.waiting[:0]
	return nil
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

// Watermark says how far in time a source has come, and whether it says so
// itself.
func (t *Txn) Watermark(name string, at int64, explicit bool) {
	s, _ := t.e.Source(name)
	if s.HasWatermark {
		at = max(at, s.Watermark)
		if at == s.Watermark && explicit == s.Explicit {
			return
		}
	}
	s.Watermark, s.HasWatermark, s.Explicit = at, true, explicit
	t.e.Move(name, s)
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
