package recovery

import (
	"context"
	"time"
)

const (
	// busyBytes bounds how many bytes a second are saved beside writers: at full
	// speed the syncs of their log would wait for the disk, and they themselves
	// for the slices in which facts are read. A slice gives a dozen kilobytes in
	// some 30 us, and then leaves them alone for most of a millisecond.
	busyBytes = 16 << 20
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

// after rests from so many bytes that were given to be written. Without writers
// it costs a few loads.
func (r *rest) after(ctx context.Context, bytes int) error {
	r.owed += time.Duration(bytes) * time.Second / busyBytes
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
