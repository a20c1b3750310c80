package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// Mode says when an entry counts as done.
type Mode uint8

// The modes. In SyncInterval and SyncNone a crash of the machine may take
// back entries whose done function was called with nil, and the store then opens
// on a new timeline; a crash of the process alone may not.
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
	// segments cost memory (the library holds the last one) and leave more of the
	// log uncut; smaller ones cost a sync of file and directory more often.
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
	// NoLock, with ReadOnly, takes no lock, so as to look at the store of a live
	// writer. The writer may cut the log meanwhile: then Open fails with
	// errs.ErrCorrupt or fs.ErrNotExist, and may be called again.
	NoLock bool
	// Cover, when not nil, is called once, when the lock is held and the identity
	// read, before the log is. It returns the index through which something
	// durable outside the log (a checkpoint) holds every entry; without it that
	// is 0. The log may begin anywhere up to the next index, and what it holds
	// below does not matter. An error ends Open, which returns it wrapped. The
	// timeline of id may not be the one that Open gives the store.
	Cover func(ctx context.Context, id Identity) (index uint64, err error)
	// Wrap, when not nil, is put between the log and its files, so that a test
	// can fail, delay or mangle a write or a sync.
	Wrap func(Device) Device
	// Step, when not nil, is called before each change on disk that does not go
	// through Device: those of Open, of DropThrough, and the last of Close. An
	// error stops the call there, as a crash would.
	Step func(what string) error

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
	if o.NoLock && !o.ReadOnly {
		bad = append(bad, fmt.Errorf("%w: opening without a lock is for reading only", errs.ErrValue))
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
	if o.Step == nil {
		o.Step = func(string) error { return nil }
	}
	return o, errors.Join(bad...)
}
