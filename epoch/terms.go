package epoch

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/triegs/triegs/dict"
	"github.com/triegs/triegs/window"
)

// termUpkeep is the state of the reclamation of terms. It changes while the epoch
// is held.
type termUpkeep struct {
	last uint64      // ids handed out when terms were last marked
	gone uint64      // columns of the facts retracted since then
	due  atomic.Bool // as of the last epoch
	// dead says that marking has ended at epoch marked and terms wait for the
	// last reader of an older epoch.
	dead   atomic.Bool
	marked uint64
}

// markSlice is how many facts are marked while writers wait: some tens of
// microseconds.
const markSlice = 1024

// minNewTerms is how many new terms make a reclamation worth its pass over the
// facts, however few are live.
const minNewTerms = 1 << 16

// TermsDue reports whether looking for terms that nothing names is worth its
// pass over the facts. It may be called at any time and costs a load or two.
func (e *Engine) TermsDue() bool { return e.terms.due.Load() && !e.terms.dead.Load() }

// termsDue decides that from what has come and gone since the last pass. Terms
// die with facts only, so a store that grows never pays; one that turns over its
// terms pays once for about half of what it holds; one that shrinks when its
// facts cannot name half of the terms any more.
func (e *Engine) termsDue() bool {
	if e.terms.gone < minNewTerms/2 {
		return false
	}
	came, held := e.dict.Len()-e.terms.last, e.dict.Live()
	if came >= minNewTerms && came >= held/2 && e.terms.gone >= came/16 {
		return true
	}
	named := uint64(e.facts.Contributions()) // their values
	for i, r := range e.schema.Relations() {
		named += uint64(e.facts.Len(uint32(i))) * uint64(r.Arity)
	}
	return held > 2*named+minNewTerms
}

// MarkTerms finds the terms that neither a live contribution nor a registered
// query names, and has them swept by the first epoch that no reader older than
// this pass can see. One pass runs at a time. Writers go on between its slices:
// what they intern meanwhile counts as named, and so does what comes back out of the
// history of event-time mode. Cost is linear in the live facts.
func (e *Engine) MarkTerms(ctx context.Context) (dead int, err error) {
	if err := e.hold(ctx); err != nil {
		return 0, err
	}
	err = e.startMarking()
	e.free()
	var at window.Place
	for done := false; err == nil && !done; {
		if err = e.hold(ctx); err != nil {
			break
		}
		at, done = e.facts.Walk(at, markSlice, e.dict.Mark)
		e.free()
	}
	e.lock <- struct{}{}
	defer e.free()
	if err != nil {
		e.dict.AbandonMark()
		return 0, err
	}
	return e.endMarking(), nil
}

// startMarking begins a pass.
func (e *Engine) startMarking() error {
	e.terms.last, e.terms.gone = e.dict.Len(), 0
	e.terms.due.Store(false)
	e.dict.StartMark()
	e.facts.WalkWaiting(e.dict.Mark)
	return e.markConstants()
}

// endMarking ends a pass that has gone over all facts, and returns how many terms
// are dead.
func (e *Engine) endMarking() (dead int) {
	// What was retracted before the walk came to it may have gone there.
	e.facts.WalkWaiting(e.dict.Mark)
	dead = e.dict.FinishMark()
	e.terms.marked = e.last
	e.terms.dead.Store(dead > 0)
	e.sweepTerms(e.collect())
	return dead
}

// markConstants marks what the plans of registered queries compare facts with.
func (e *Engine) markConstants() error {
	for _, q := range e.schema.Queries() {
		for i := range q.Plan.Aliases {
			for _, k := range q.Plan.Aliases[i].Consts {
				id, err := e.constant(k.Term)
				if err != nil {
					return fmt.Errorf("query %s: %w", q.Name, err)
				}
				e.dict.Mark(id)
			}
		}
	}
	return nil
}

// sweepTerms frees the dead terms once no epoch from before the end of marking
// is pinned or still to be published; oldest is the oldest one that is.
func (e *Engine) sweepTerms(oldest uint64) {
	if !e.terms.dead.Load() || oldest < e.terms.marked {
		return
	}
	e.dict.Sweep()
	e.terms.dead.Store(false)
}

// SpillTerms says that b holds the texts of all terms up to an id, so that they
// need not be in memory beyond a cache of so many bytes.
func (e *Engine) SpillTerms(through uint64, b dict.Backing, cacheBytes int64) error {
	e.lock <- struct{}{}
	defer e.free()
	return e.dict.Spill(through, b, cacheBytes)
}
