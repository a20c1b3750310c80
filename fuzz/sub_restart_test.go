package fuzz

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triegs/triegs"
)

// grow appends +R(i,h) for each i, each as one epoch, and gives the last.
func (w *world) grow(from, through int) (last triegs.Epoch) {
	w.Helper()
	for i := from; i <= through; i++ {
		last = w.do(fmt.Sprintf("+R(%d,h)", i))
	}
	return last
}

// checkpoint saves the state.
func (w *world) checkpoint() {
	w.Helper()
	if err := w.db.Checkpoint(w.ctx); err != nil {
		w.Fatal(err)
	}
}

// The epochs from a token on can be had from a store that was closed, also behind
// checkpoints, as long as the log reaches back.
func TestRetainFrom(t *testing.T) {
	t.Parallel()
	for _, cache := range []int64{0, 1 << 20} {
		t.Run(fmt.Sprintf("cache %d", cache), func(t *testing.T) { retainFrom(t, cache) })
	}
}

func retainFrom(t *testing.T, cache int64) {
	dir := t.TempDir()
	w := newWorld(t, dir, &triegs.Options{CheckpointBytes: -1, DictionaryCacheBytes: cache})
	w.register("q", "q(x) :- R(x, y).")
	w.grow(1, 3)
	w.checkpoint()
	w.grow(4, 6)
	s := w.snapshot()
	token := s.Token()
	_ = s.Close() // always nil
	w.grow(7, 8)
	w.checkpoint()
	w.grow(9, 10)
	w.checkpoint()
	from := triegs.SubscribeOptions{Mode: triegs.FromToken, Token: token, PerEpoch: true}
	for _, readOnly := range []bool{true, false, true} {
		w.reopen(dir, &triegs.Options{CheckpointBytes: -1, DictionaryCacheBytes: cache, ReadOnly: readOnly, RetainFrom: token})
		if r := w.db.Recovery(); r.Passed != 11 || r.Checkpoint != 4 {
			t.Errorf("the state of epoch %d was loaded, that of %d passed", r.Checkpoint, r.Passed)
		}
		w.wantTold(w.subscribe("q", from), 8, 7, 10)
		if !readOnly { // what goes on from here is whole
			w.checkpoint()
		}
	}
	w.reopen(dir, &triegs.Options{CheckpointBytes: -1, ReadOnly: true})
	if _, err := w.db.Subscribe(w.ctx, "q", from); !errors.Is(err, triegs.ErrTooOld) {
		t.Errorf("without RetainFrom: %v, want ErrTooOld", err)
	}
	w.want("q", "(1):1 (2):1 (3):1 (4):1 (5):1 (6):1 (7):1 (8):1 (9):1 (10):1")
}

// wantTold checks that the updates of a query of one column are those of grow, and
// closes the subscription.
func (w *world) wantTold(s *triegs.Subscription, first triegs.Epoch, from, through int) {
	w.Helper()
	for i := from; i <= through; i++ {
		w.wantUpdate(s, fmt.Sprintf("%d: (%d):0>1", int(first)+i-from, i))
	}
	_ = s.Close() // always nil
}
