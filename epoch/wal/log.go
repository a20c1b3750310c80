package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/triegs/triegs/internal/errs"
)

// Log is an open log. All methods may be called from any goroutine, except
// that a done function must not call Enqueue, Sync, DropThrough or Close: it
// runs on the goroutine that would have to serve them.
type Log struct {
	dir      string
	logDir   string
	id       Identity
	mode     Mode
	interval time.Duration
	bound    int // of the bytes in the queue
	segment  int // bytes at which a segment is closed
	readOnly bool
	step     func(string) error
	lock     *flock.Flock

	// Owned by the writer goroutine.
	dev      Device
	note     *note
	frames   [][]byte
	named    bool   // the names of all segments are durable
	spare    group  // the buffers of the group written last
	ackedOut uint64 // durable, without the atomic

	written atomic.Uint64 // last index written
	durable atomic.Uint64 // last index on stable storage
	first   atomic.Uint64 // first index that can be replayed
	grown   atomic.Uint64 // bytes written since Open
	size    atomic.Int64  // bytes of all segments

	drops    sync.Mutex     // held by DropThrough; Close waits for it
	freeing  sync.WaitGroup // gives back the space of what DropThrough has removed
	free     func(held []*os.File)
	replays  sync.RWMutex  // read-held by Replay, write-held by DropThrough
	wake     chan struct{} // tells the writer that there is something to do
	finished chan struct{} // closed when the writer has ended
	freed    chan struct{} // closed when everything is freed

	mu      sync.Mutex
	room    sync.Cond // on mu: the queue shrank, or the log stopped or closed
	queue   group
	last    uint64 // last index given out
	err     error  // why the log stopped
	closing bool
	stats   Stats
}

// group is what the writer takes from the queue at once: frames back to back
// in slab, and jobs that must run between them.
type group struct {
	slab  []byte
	items []item
}

// item is one frame (the bytes of the slab up to end) or one job.
type item struct {
	index uint64
	end   int
	done  func(error)
	job   func() error
}

// slabKeep is how much of a group's buffer is kept for the next one.
const slabKeep = 1 << 20

// Stats counts what the log wrote since it was opened.
type Stats struct {
	// Entries and Bytes count the entries written and the bytes of their
	// frames.
	Entries, Bytes uint64
	// Batches counts the writes; LargestBatch is the most entries in one.
	Batches, LargestBatch uint64
	// Syncs counts file syncs, DirSyncs directory syncs.
	Syncs, DirSyncs uint64
}

// newReadOnly returns a log without a writer.
func newReadOnly(op *opening, sc scanned, size int64) *Log {
	l := &Log{
		dir: op.dir, logDir: filepath.Join(op.dir, logName), id: op.id, lock: op.lock, readOnly: true,
		last: sc.last, finished: make(chan struct{}), freed: make(chan struct{}),
	}
	l.room.L = &l.mu
	l.written.Store(sc.last)
	l.durable.Store(sc.last)
	l.first.Store(sc.first)
	l.size.Store(size)
	close(l.finished)
	return l
}

// newLog starts the writer. Everything in sc is durable, names included.
func newLog(op *opening, sc scanned, dev Device, n *note, size int64) *Log {
	l := &Log{
		dir: op.dir, logDir: filepath.Join(op.dir, logName), id: op.id, lock: op.lock, step: op.o.Step,
		mode: op.o.Mode, interval: op.o.Interval, bound: op.o.queue, segment: op.o.SegmentBytes, dev: dev, note: n, named: true, ackedOut: sc.last,
		last: sc.last, wake: make(chan struct{}, 1), finished: make(chan struct{}), freed: make(chan struct{}),
		free: closeAll,
	}
	l.room.L = &l.mu
	l.written.Store(sc.last)
	l.durable.Store(sc.last)
	l.first.Store(sc.first)
	l.size.Store(size)
	go l.run()
	return l
}

// Enqueue appends an entry with the index Last()+1 and returns when the
// payload has been copied; the caller may reuse it. done (nil is allowed) is
// called once, from the writer, in the order of the Enqueue calls: with nil
// when the entry is as safe as the mode promises, else with an error that
// matches errs.ErrReadOnly and the cause. When the queue is full Enqueue waits
// for the writer.
//
// An empty payload or one longer than MaxEntryBytes is errs.ErrValue. After
// Close it is errs.ErrClosed; after a failed write, and in a read-only log, it
// is errs.ErrReadOnly. done is not called where Enqueue returns an error.
func (l *Log) Enqueue(payload []byte, done func(err error)) error {
	if len(payload) == 0 {
		return fmt.Errorf("%w: empty log entry", errs.ErrValue)
	}
	if len(payload) > MaxEntryBytes {
		return fmt.Errorf("%w: log entry of %d bytes, the limit is %d", errs.ErrValue, len(payload), MaxEntryBytes)
	}
	if l.readOnly {
		return errs.ErrReadOnly
	}
	size := len(payload) + frameOverhead
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && !l.closing && len(l.queue.slab) > 0 && len(l.queue.slab)+size > l.bound {
		l.room.Wait()
	}
	if err := l.refusalLocked(); err != nil {
		return err
	}
	l.last++
	l.queue.slab = appendFrame(l.queue.slab, l.id.Log, l.last, payload)
	l.pushLocked(item{index: l.last, end: len(l.queue.slab), done: done})
	return nil
}

// refusalLocked says why nothing can be queued, if so.
func (l *Log) refusalLocked() error {
	if l.closing {
		return errs.ErrClosed
	}
	return l.err
}

// pushLocked adds an item to the queue and wakes the writer.
func (l *Log) pushLocked(it item) {
	l.queue.items = append(l.queue.items, it)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// do runs job on the writer, after everything queued before it, and waits for
// it or for ctx; a job that was queued runs even if ctx ends first.
func (l *Log) do(ctx context.Context, job func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if err := l.refusalLocked(); err != nil {
		l.mu.Unlock()
		return err
	}
	result := make(chan error, 1)
	l.pushLocked(item{end: len(l.queue.slab), job: job, done: func(err error) { result <- err }})
	l.mu.Unlock()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sync returns when every entry queued before the call is on stable storage.
func (l *Log) Sync(ctx context.Context) error {
	if l.readOnly {
		return ctx.Err()
	}
	return l.do(ctx, l.sync)
}

// Last returns the index of the last entry that Enqueue accepted, or that was
// found at Open.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Durable returns the index of the last entry known to be on stable storage.
func (l *Log) Durable() uint64 { return l.durable.Load() }

// Written returns how many bytes were appended to the log since it was opened.
// It is one atomic read.
func (l *Log) Written() uint64 { return l.grown.Load() }

// Bytes returns the size of all segments that are kept. It is one atomic read.
func (l *Log) Bytes() int64 { return l.size.Load() }

// Identity returns the identity of the store as it is since Open.
func (l *Log) Identity() Identity { return l.id }

// Err returns why the log stopped: nil, or an error that matches
// errs.ErrReadOnly and the cause.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Stats returns what was written so far.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// Close writes and syncs what is queued, ends the writer, closes the files and
// frees the lock, in every case; a DropThrough ends at its next segment. It
// returns the error that stopped the log, if
// one did, and errors of the closing itself. A second Close waits for the
// first and returns nil.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		<-l.freed
		return nil
	}
	l.closing = true
	l.room.Broadcast()
	l.mu.Unlock()
	if !l.readOnly {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	<-l.finished
	l.drops.Lock() // nothing is removed from a store that is free
	defer l.drops.Unlock()
	defer close(l.freed)
	l.freeing.Wait()
	if l.readOnly {
		return releaseLock(l.lock, l.dir, false)
	}
	stopped := l.Err()
	closeErr := l.dev.Close()
	switch {
	case stopped != nil:
		closeErr = nil // what a stopped log's files say adds nothing
	case closeErr == nil && l.mode != SyncEpoch:
		closeErr = unmark(l.dir, l.step)
	}
	return errors.Join(stopped, closeErr, l.note.close(), releaseLock(l.lock, l.dir, true))
}
