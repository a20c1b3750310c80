package epoch

import (
	"context"
	"testing"
	"time"
)

// TestBrake: a hydration that does not catch up makes writers wait longer and longer,
// up to a bound, and not at all once it is over, or when they are told to stop.
func TestBrake(t *testing.T) {
	e := New()
	h := &hydration{e: e}
	last := time.Duration(0)
	for range 20 {
		h.slow()
		now := time.Duration(e.brake.Load())
		if now != h.brake || now > mostBrake || now < last || now == last && now < mostBrake {
			t.Fatalf("a brake of %v follows %v", now, last)
		}
		last = now
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.brake.Store(int64(time.Hour))
	e.braked(ctx) // does not wait
	e.brake.Store(int64(last))
	h.end()
	if e.brake.Load() != 0 {
		t.Fatalf("a brake of %v is left", time.Duration(e.brake.Load()))
	}
}
