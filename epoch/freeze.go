package epoch

import (
	"context"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/dict"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/window"
)

// Frozen is the base state after one epoch, on its way to where it is saved:
// the contributions are handed out in slices while later epochs are applied.
type Frozen struct {
	Epoch    uint64
	Time     int64
	LastTerm uint64 // ids up to it may occur
	Catalog  *catalog.Catalog
	Sources  rootvec.Sources
	Digest   rootvec.Digest
	Parts    []rootvec.Digest // by relation; they add up to Digest
	Facts    []int            // by relation, how many
	Next     []uint64         // by relation, the number of the next contribution

	// Lateness is the allowed lateness of the epoch, ns; Waiting is what waits for
	// its time, and what is applied and not final yet, as the contributions
	// write it.
	Lateness int64
	// EventTime says that time is that of events, Clocked that it is a clock's.
	EventTime, Clocked bool
	Waiting            []byte

	// Terms are those that were held then.
	Terms dict.View

	capture *window.Capture
}

// Track makes the engine remember which facts change between two calls of
// Freeze, so that the second need not hand out all of them.
func (e *Engine) Track() { e.facts.Track() }

// Freeze notes the base state after the last applied epoch: all of it, or what
// has changed since the last one that was saved. Every Freeze is followed by a
// Thaw before the next one. Writers wait for it about as long as for an empty
// epoch, and while the events that wait for their time are copied.
func (e *Engine) Freeze(ctx context.Context, full bool) (*Frozen, error) {
	if err := e.hold(ctx); err != nil {
		return nil, err
	}
	defer e.free()
	if err := e.Err(); err != nil {
		return nil, err
	}
	f := &Frozen{
		Epoch: e.last, Time: e.time, LastTerm: e.dict.Len(),
		Lateness: e.lateness, Clocked: e.clocked.Load(), EventTime: e.timed,
		Catalog: e.schema.Catalog, Sources: e.sources, Digest: e.digest,
		Parts:   append([]rootvec.Digest(nil), e.parts...),
		Terms:   e.dict.View(),
		Waiting: e.facts.AppendWaiting(nil),
		capture: e.facts.Capture(full),
	}
	for i := range e.schema.Relations() {
		f.Facts = append(f.Facts, e.facts.Len(uint32(i)))
		f.Next = append(f.Next, e.facts.Sequence(uint32(i)))
	}
	return f, nil
}

// Slice appends the next contributions of f to dst, those of about limit facts,
// and reports whether there are more. Writers wait while it runs.
func (e *Engine) Slice(ctx context.Context, f *Frozen, dst []byte, limit int) (chunk []byte, more bool, err error) {
	if err := e.hold(ctx); err != nil {
		return dst, false, err
	}
	defer e.free()
	chunk, more = f.capture.Next(dst, limit)
	return chunk, more, nil
}

// Thaw ends a freeze. If the state was not saved, the next Freeze hands out
// again what this one has.
func (e *Engine) Thaw(f *Frozen, saved bool) {
	e.lock <- struct{}{}
	defer e.free()
	f.capture.Done(saved)
}
