package recovery

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestRest: saving rests beside writers, by the bytes, and runs at full speed
// without them.
func TestRest(t *testing.T) {
	now := time.Unix(1000, 0)
	const piece = 2 * busyBytes * int(restMin) / int(time.Second) // worth two short rests
	for _, tc := range []struct {
		name  string
		epoch uint64
		since time.Duration // the last epoch
		bytes int
		rests bool
	}{
		{"bytes beside writers", 8, 0, piece, true},
		{"too little to rest for", 8, 0, 100, false},
		{"no epoch yet", 7, 0, piece, false},
		{"the last epoch is just over", 8, busyFor / 2, piece, true},
		{"the last epoch is long over", 8, busyFor + 1, piece, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock, last := now, tc.epoch
			r := rest{now: func() time.Time { return clock }, last: func() uint64 { return last }, seen: 7}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if tc.since > 0 { // the epoch has been seen before
				if err := r.after(ended, piece); !errors.Is(err, context.Canceled) {
					t.Fatalf("no rest when the epoch comes: %v", err)
				}
				clock = clock.Add(tc.since)
			}
			// A rest under an ended context is told by the error.
			if err := r.after(ended, tc.bytes); (err != nil) != tc.rests {
				t.Errorf("rests: %v, want %v", err, tc.rests)
			}
		})
	}
	clock := now
	r := rest{now: func() time.Time { return clock }, last: func() uint64 { return 1 }}
	began := time.Now()
	for range 10 {
		if err := r.after(t.Context(), piece); err != nil {
			t.Fatal(err)
		}
	}
	if took, want := time.Since(began), 20*restMin*9/10; took < want {
		t.Errorf("ten rests took %v, want at least %v", took, want)
	}
}
