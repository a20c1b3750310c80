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
	last   atomic.Uint64 // ids handed out when terms were last marked
	frozen bool          // the held terms are being saved, so none may go
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

// TermsDue reports whether about as many terms have come since the last
// reclamation as are held, so that they pay for the next one. It may be called
// at any time and costs a few loads.
func (e *Engine) TermsDue() bool {
	came := e.dict.Len() - e.terms.last.Load()
	return came >= minNewTerms && came >= e.dict.Live()/2 && !e.terms.dead.Load()
}

// MarkTerms finds the terms that neither a live contribution nor a registered
// query names, and has them swept by the first epoch that no reader older than
// this pass can see. One pass runs at a time. Writers go on between its slices:
// what they intern meanwhile counts as named. Cost is linear in the live facts.
func (e *Engine) MarkTerms(ctx context.Context) (dead int, err error) {
	if err := e.hold(ctx); err != nil {
		return 0, err
	}
	e.terms.last.Store(e.dict.Len())
	e.dict.StartMark()
	err = e.markConstants()
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
	dead = e.dict.FinishMark()
	e.terms.marked = e.last
	e.terms.dead.Store(dead > 0)
	e.sweepTerms(e.collect())
	return dead, nil
}

// markConstants marks what the plans of registered queries compare facts with.
func (e *Engine) markConstants() error {
	for _, q := range e.schema.Queries() {
		for i := range q.Plan.Aliases {
			for _, k := range q.Plan.Aliases[i].Consts {
				id, ok := e.dict.Find(k.Term, e.dict.Len())
				if !ok {
					return fmt.Errorf("constant %v of query %s has no id: %w", k.Term, q.Name, e.dict.Err())
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
	if !e.terms.dead.Load() || e.terms.frozen || oldest < e.terms.marked {
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
