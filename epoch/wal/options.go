package wal

import (
	"errors"
	"fmt"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// Mode says when an entry counts as done.
type Mode uint8

// The modes. In SyncInterval and SyncNone a crash of the machine may take
// back entries whose done function was called with nil; a crash of the process
// alone may not.
const (
	// SyncEpoch calls done after the entry is on stable storage.
	SyncEpoch Mode = iota
	// SyncInterval calls done after the write and syncs at most
	// Options.Interval later.
	SyncInterval
	// SyncNone calls done after the write and syncs only in Sync and Close
	// (and where a segment is full).
	SyncNone
)

// Defaults and limits.
const (
	// DefaultInterval is the sync period of SyncInterval.
	DefaultInterval = 100 * time.Millisecond
	// DefaultSegmentBytes is the size at which a segment is closed. Larger
	// segments cost memory (the library holds the last one) and make the front
	// slower to cut; smaller ones cost a sync of file and directory more often.
	DefaultSegmentBytes = 4 << 20
	// DefaultLockWait bounds how long Open waits for another owner to leave.
	DefaultLockWait = time.Second
	// MaxEntryBytes is the largest payload of one entry.
	MaxEntryBytes = 1 << 30
	// queueBytes bounds the frames that wait for the writer; one entry larger
	// than this is let in when the queue is empty.
	queueBytes = 64 << 20
)

// Options configures Open. The zero value is a durable log with all defaults.
type Options struct {
	// Mode says when an entry counts as done.
	Mode Mode
	// Interval is the sync period of SyncInterval; 0 means DefaultInterval.
	Interval time.Duration
	// SegmentBytes is the size at which a segment is closed; 0 means
	// DefaultSegmentBytes. An entry may be larger than a segment.
	SegmentBytes int
	// ReadOnly opens an existing store and touches nothing in it. A torn tail
	// is left out in memory.
	ReadOnly bool
	// LockWait bounds the wait for the lock: 0 means DefaultLockWait, negative
	// means one try.
	LockWait time.Duration
	// Covered is the index through which something durable outside the log (a
	// checkpoint) holds every entry. The log must reach Covered and may begin
	// anywhere up to Covered+1.
	Covered uint64
	// Wrap, when not nil, is put between the log and its files, so that a test
	// can fail, delay or mangle a write or a sync.
	Wrap func(Device) Device

	// step, when not nil, is called before each change that Open makes on
	// disk; an error stops Open there, as a crash would.
	step func(what string) error
	// queue is the bound of the waiting frames in bytes; 0 means queueBytes.
	queue int
}

// withDefaults checks o and fills in the defaults. All complaints are
// returned at once; they match errs.ErrValue.
func (o Options) withDefaults() (Options, error) {
	var bad []error
	if o.Mode > SyncNone {
		bad = append(bad, fmt.Errorf("%w: unknown sync mode %d", errs.ErrValue, o.Mode))
	}
	if o.Interval < 0 {
		bad = append(bad, fmt.Errorf("%w: negative sync interval %s", errs.ErrValue, o.Interval))
	}
	if o.SegmentBytes < 0 {
		bad = append(bad, fmt.Errorf("%w: negative segment size %d", errs.ErrValue, o.SegmentBytes))
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.LockWait == 0 {
		o.LockWait = DefaultLockWait
	}
	if o.queue == 0 {
		o.queue = queueBytes
	}
	if o.step == nil {
		o.step = func(string) error { return nil }
	}
	return o, errors.Join(bad...)
}
