package fuzz

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// Many epochs of one edge each through a window: what is kept is what the window
// holds, and an open replays no more than what came after the last checkpoint.
func TestDEL09Window(t *testing.T) {
	n := sized(200_000, 20_000, 4_000)
	every := n / 20
	dir := filepath.Join(t.TempDir(), "store")
	o := &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncInterval, Tick: -1, Clock: still}
	w := newWorld(t, dir, o)
	w.register("q", "q(x) :- R(x, y) window 100s.")
	var disk, bytes, log []int64
	goroutines := runtime.NumGoroutine()
	for i := range n {
		w.append(triegs.Batch{Time: time.Unix(int64(i), 0), Events: []triegs.Event{
			triegs.Edge("R", triegs.Int(int64(i%50)), triegs.String("h")),
		}})
		if i%every == every-1 && i < n-1 {
			if err := w.db.Checkpoint(w.ctx); err != nil {
				t.Fatal(err)
			}
			disk, bytes = append(disk, diskUse(t, dir)), append(bytes, heap())
			log = append(log, w.db.Metrics().LiveBytes)
		}
	}
	check := func() {
		snap := w.snapshot()
		defer snap.Close()
		w.wantCount(snap, "q", 50, 100)
		for r, err := range snap.Answers("q") {
			if err != nil || r.Multiplicity() != 2 {
				t.Fatalf("answer %s x%d, %v, want each twice", lexical(r), r.Multiplicity(), err)
			}
		}
		if m := w.db.Metrics(); m.Contributions != 100 || m.Terms > 60 {
			t.Errorf("%d contributions and %d terms are kept", m.Contributions, m.Terms)
		}
	}
	check()
	if got := w.db.Metrics().Expired; got != uint64(n-100) {
		t.Errorf("%d expired, want %d", got, n-100)
	}
	t.Logf("%d epochs: disk %d to %d bytes, heap %d to %d, views %d to %d", n, slices.Min(disk), slices.Max(disk),
		slices.Min(bytes), slices.Max(bytes), slices.Min(log), slices.Max(log))
	if slices.Max(disk) > 10<<20 || slices.Max(bytes[1:]) > bytes[0]+8<<20 || slices.Max(log[1:]) > 2*log[0]+1<<20 {
		t.Errorf("disk %v, heap %v, views %v", disk, bytes, log)
	}
	// The directory of the checkpoints stays open for two seconds.
	settle(t, "goroutines", int64(goroutines+2), func() int64 { return int64(runtime.NumGoroutine()) })
	w.reopen(dir, o)
	check()
	if rep := w.db.Recovery(); rep.Checkpoint == 0 || rep.Epochs > uint64(every) {
		t.Errorf("%+v, want at most %d epochs behind a checkpoint", rep, every)
	}
	w.append(triegs.Batch{Time: time.Unix(int64(n)+98, 0)})
	w.want("q", "(49):1")
	w.append(triegs.Batch{Time: time.Unix(int64(n)+99, 0)})
	w.want("q", "")
}
