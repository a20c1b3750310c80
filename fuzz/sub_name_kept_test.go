package fuzz

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// What the log holds of the time before a place is not kept for it, also behind a
// restart that has replayed it: Retention.Bytes takes no place away for that.
func TestRetentionRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := &triegs.Options{Retention: triegs.Retention{Bytes: 256 << 10}, CheckpointBytes: -1}
	w := newWorld(t, dir, opts)
	w.register("q", "q(x) :- R(x, y).")
	s := w.subscribe("q", byName)
	long := strings.Repeat("x", 100<<10)
	put := func(i int) triegs.Epoch { return w.do(fmt.Sprintf("+R(%s%d,h)", long, i)) }
	for i := range 10 {
		e := put(i)
		w.wantUpdate(s, fmt.Sprintf("%d: (%s%d):0>1", e, long, i))
		w.acks(s, e)
	}
	_ = s.Close() // always nil
	e := put(10)
	w.reopen(dir, opts)
	if info := w.db.Subscribers(); len(info) != 1 || info[0].Lost != "" || info[0].RetainedBytes > 200<<10 {
		t.Errorf("%+v", info)
	}
	next := w.do("+R(1,h)")
	s = w.subscribe("q", byName)
	w.wantUpdate(s, fmt.Sprintf("%d: (%s10):0>1", e, long))
	w.wantUpdate(s, fmt.Sprintf("%d: (1):0>1", next))
	_ = s.Close() // always nil
	// What comes behind the place counts, on both sides of a restart.
	put(11)
	w.reopen(dir, opts)
	put(12)
	_, err := w.db.Subscribe(w.ctx, "q", byName)
	w.wantErr("too much", err, triegs.ErrTooOld)
}
