package fuzz

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/triegs/triegs"
)

// Names that are taken, acknowledged, given up, forgotten, lost and listed from many
// goroutines, beside a writer and checkpoints, end with typed errors, and with
// nothing that is kept.
func TestNamesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), &triegs.Options{CheckpointBytes: 8 << 10, Retention: triegs.Retention{Epochs: 60}})
	w.register("q", "q(x) :- R(x, y).")
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 4))
			for range scaled(120, 30) {
				if err := nameOnce(w, rng, fmt.Sprint("name ", rng.IntN(3))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	for i, going := 0, true; going; i++ { // as long as somebody waits for it
		w.do(fmt.Sprintf("+R(%d,h)", i))
		if i%100 == 50 {
			w.checkpoint()
		}
		select {
		case <-done:
			going = false
		default:
		}
	}
	for _, info := range w.db.Subscribers() {
		if info.Attached {
			t.Errorf("%s is attached to nobody", info)
		}
		if err := w.db.Forget(w.ctx, info.Name); err != nil {
			t.Error(err)
		}
	}
	w.do("+S(a)")
	if m := w.db.Metrics(); m.RetainedEpochs > 0 || m.Subscriptions > 0 || m.RetainedBytes > 0 || len(m.Subscribers) > 0 {
		t.Errorf("in the end %d epochs are kept, %d subscriptions, %d bytes, %v", m.RetainedEpochs, m.Subscriptions, m.RetainedBytes, m.Subscribers)
	}
}

// nameOnce does something with a name.
func nameOnce(w *world, rng *rand.Rand, name string) error {
	if rng.IntN(8) == 0 {
		err := w.db.Forget(w.ctx, name)
		if err != nil && !errors.Is(err, triegs.ErrValue) && !errors.Is(err, triegs.ErrNameInUse) {
			return err
		}
		w.db.Metrics()
		return nil
	}
	s, err := w.db.Subscribe(w.ctx, "q", triegs.SubscribeOptions{
		Name: name, PerEpoch: rng.IntN(2) == 0, Quiet: rng.IntN(2) == 0, Mode: triegs.SubscribeMode(rng.IntN(2)),
	})
	switch {
	case errors.Is(err, triegs.ErrNameInUse), errors.Is(err, triegs.ErrTooOld):
		return nil
	case err != nil:
		return err
	}
	var closing sync.WaitGroup
	n := rng.IntN(30)
	for u, err := range s.Updates() {
		if errors.Is(err, triegs.ErrTooOld) {
			break
		} else if err != nil {
			return err
		}
		if rng.IntN(3) == 0 {
			err = s.Ack(u.Epoch)
		}
		if err != nil && !errors.Is(err, triegs.ErrSnapshotClosed) && !errors.Is(err, triegs.ErrTooOld) {
			return err
		}
		if n--; n < 0 {
			closing.Go(func() { _ = s.Close() })
		}
	}
	closing.Wait()
	return s.Close()
}

// Damage of the file of names is found when the store is opened; Repair makes a store
// without them.
func TestNamesDamaged(t *testing.T) {
	t.Parallel()
	dir, repaired := t.TempDir(), filepath.Join(t.TempDir(), "repaired")
	w := newWorld(t, dir, nil)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", byName)
	w.grow(1, 3)
	w.told(s, 1, 1)
	w.acks(s, 2)
	_ = s.Close() // always nil
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "SUBSCRIBERS")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[30] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		_, err := triegs.Open(dir, &triegs.Options{ReadOnly: readOnly})
		w.wantErr("open", err, triegs.ErrCorrupt)
	}
	r, err := triegs.Repair(w.ctx, dir, repaired)
	if err != nil || len(r.Damaged) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	w = newWorld(t, repaired, nil)
	w.want("q", "(1):1 (2):1 (3):1")
	if info := w.db.Subscribers(); len(info) > 0 {
		t.Errorf("%+v", info)
	}
}
