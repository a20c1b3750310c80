package recovery

import (
	"context"
	"time"
)

const (
	// restPerSlice is how much longer than a slice writers are left alone after
	// it when there are any.
	restPerSlice = 8
	// busyBytes bounds how many bytes a second are saved beside writers: at full
	// speed the syncs of their log would wait for the disk.
	busyBytes = 24 << 20
	// restMin is the shortest rest worth a timer.
	restMin = 2 * time.Millisecond
	// busyFor is how long after an epoch the next one is expected.
	busyFor = 100 * time.Millisecond
)

// rest slows the saving of a state down while epochs are applied.
type rest struct {
	now  func() time.Time
	last func() uint64 // epoch
	seen uint64
	busy time.Time // when an epoch was seen last
	owed time.Duration
}

// after rests from a slice for which writers waited so long, and which gave so
// many bytes to write. Without writers it costs a few loads.
func (r *rest) after(ctx context.Context, held time.Duration, bytes int) error {
	r.owed += max(held*restPerSlice, time.Duration(bytes)*time.Second/busyBytes)
	if r.owed < restMin {
		return nil
	}
	d := r.owed
	r.owed = 0
	now := r.now()
	if e := r.last(); e != r.seen {
		r.seen, r.busy = e, now
	}
	if now.Sub(r.busy) > busyFor {
		return nil
	}
	return pause(ctx, d)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
