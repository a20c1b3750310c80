package epoch

import (
	"context"
	"errors"
	"testing"

	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/window"
)

// baseOf turns a frozen state into one to restore, as a checkpoint does. without
// is the id of a term that gets lost on the way, or 0.
func baseOf(t *testing.T, e *Engine, f *Frozen, without uint64) *Base {
	t.Helper()
	var chunks [][]byte
	for more := true; more; {
		var chunk []byte
		var err error
		if chunk, more, err = e.Slice(context.Background(), f, nil, 10); err != nil {
			t.Fatal(err)
		}
		if len(chunk) > 0 {
			chunks = append(chunks, chunk)
		}
	}
	b := &Base{
		Epoch: f.Epoch, Time: f.Time, LastTerm: f.LastTerm, Sources: f.Sources, Digest: f.Digest,
		Lateness: f.Lateness, EventTime: f.EventTime, Clocked: f.Clocked, Waiting: f.Waiting, Queries: f.Catalog.Queries(),
		Terms: func(add func(uint64, []byte) error) error {
			return f.Terms.Each(1, f.LastTerm, func(id uint64, form []byte) error {
				if id == without {
					return nil
				}
				return add(id, form)
			})
		},
		Facts: func(add func([]byte) error) error {
			for _, chunk := range chunks {
				if err := add(chunk); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for i, r := range f.Catalog.Relations() {
		b.Relations = append(b.Relations, BaseRelation{
			Name: r.Name, Arity: r.Arity, Facts: f.Facts[i], Digest: f.Parts[i], Next: f.Next[i], Keep: r.Keep,
		})
	}
	return b
}

// TestFreezeWaiting: what waits for its time is frozen and restored, with its
// terms.
func TestFreezeWaiting(t *testing.T) {
	ctx := context.Background()
	e := New()
	e.keeps = true // as with a log: the digests are what a checkpoint compares
	e.Track()
	if _, err := edge(t, e, OpInsert, "r", "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := e.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	far, err := e.Intern(term.String("far"))
	if err != nil {
		t.Fatal(err)
	}
	e.facts.Wait(window.Waiting{Rel: 0, Tuple: []uint64{far, 1}, Time: 50, ID: "i"})
	if _, err := e.Commit(ctx, record.Batch, 1); err != nil {
		t.Fatal(err)
	}
	f, err := e.Freeze(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	b := baseOf(t, e, f, 0)
	back := New()
	if err := back.Restore(ctx, b); err != nil {
		t.Fatal(err)
	}
	if at, ok := back.facts.NextWaiting(); !ok || at != 50 || back.facts.WaitingLen() != 1 {
		t.Errorf("%d events wait, the next until %d", back.facts.WaitingLen(), at)
	}
	if x, y := back.facts.Sequence(0), e.facts.Sequence(0); x != y {
		t.Errorf("the next append has number %d, not %d", x, y)
	}
	e.Thaw(f, true)
	if f, err = e.Freeze(ctx, true); err != nil {
		t.Fatal(err)
	}
	defer e.Thaw(f, false)
	if err := New().Restore(ctx, baseOf(t, e, f, far)); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("a term that waits is lost: %v, want ErrCorrupt", err)
	}
	b.Waiting = b.Waiting[:len(b.Waiting)-1]
	if err := New().Restore(ctx, b); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("what waits is cut off: %v, want ErrCorrupt", err)
	}
}
