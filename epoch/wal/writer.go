package wal

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// run is the writer goroutine: it takes all that is queued, writes it with one
// write and one sync, tells the callers, and so on until Close. Callers that
// come while it syncs form the next group.
func (l *Log) run() {
	defer close(l.finished)
	var timer *time.Timer
	var due <-chan time.Time
	for {
		g, closing := l.take()
		l.serve(g)
		l.recycle(g)
		if closing && len(g.items) == 0 {
			l.syncOrStop()
			if timer != nil {
				timer.Stop()
			}
			return
		}
		if l.mode == SyncInterval && due == nil && l.ackedOut < l.written.Load() {
			timer = time.NewTimer(l.interval)
			due = timer.C
		}
		if len(g.items) > 0 { // look again before waiting; a due sync goes in between
			select {
			case <-due:
				due = nil
				l.syncOrStop()
			default:
			}
			continue
		}
		select {
		case <-due:
			due = nil
			l.syncOrStop()
		case <-l.wake:
		}
	}
}

// take swaps the queue for the spare buffers.
func (l *Log) take() (g group, closing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, l.queue = l.queue, l.spare
	l.spare = group{}
	l.room.Broadcast()
	return g, l.closing
}

// recycle keeps the buffers of a written group unless they are large.
func (l *Log) recycle(g group) {
	if cap(g.slab) > slabKeep {
		g.slab = nil
	}
	clear(g.items) // drops the done functions
	l.spare = group{slab: g.slab[:0], items: g.items[:0]}
}

// serve writes the frames of a group and runs its jobs, in order.
func (l *Log) serve(g group) {
	from, start := 0, 0
	for i := 0; i <= len(g.items); i++ {
		if i < len(g.items) && g.items[i].job == nil {
			continue
		}
		l.commit(g.slab, start, g.items[from:i])
		if i < len(g.items) {
			job := g.items[i]
			err := l.Err()
			if err == nil {
				err = job.job()
			}
			job.done(err)
			from, start = i+1, job.end
		}
	}
}

// commit writes the frames of items, which begin at start in slab, and calls
// their done functions.
func (l *Log) commit(slab []byte, start int, items []item) {
	if len(items) == 0 {
		return
	}
	err := l.Err()
	for rest := items; err == nil && len(rest) > 0; {
		n := l.piece(start, rest)
		if err = l.write(slab, start, rest[:n]); err != nil {
			break
		}
		start = rest[n-1].end
		if rest = rest[n:]; len(rest) > 0 && !l.named {
			err = l.syncNames(rest[0].index-uint64(n), rest[0].index-1)
		}
	}
	if err == nil && l.mode == SyncEpoch {
		err = l.sync()
	}
	for i := range items {
		if items[i].done != nil {
			items[i].done(err)
		}
	}
}

// piece is how many of the frames of items, which begin at start, are written
// with one call: no more than a segment, so that no two segments are made
// without the name of the first being durable.
func (l *Log) piece(start int, items []item) int {
	n := 1
	for n < len(items) && items[n].end-start+(n+1)*binary.MaxVarintLen64 <= l.segment {
		n++
	}
	return n
}

// write seals the frames of items and appends them.
func (l *Log) write(slab []byte, start int, items []item) error {
	l.frames = l.frames[:0]
	at, size := start, 0
	for i := range items {
		f := slab[at:items[i].end:items[i].end]
		seal(f, l.ackedOut)
		l.frames = append(l.frames, f)
		size += prefixLen(len(f)) + len(f)
		at = items[i].end
	}
	first, last := items[0].index, items[len(items)-1].index
	switched, err := l.dev.Append(first, l.frames)
	clear(l.frames)
	if switched {
		l.named = false
	}
	if err != nil {
		return l.poison(fmt.Errorf("write entries %d to %d: %w", first, last, err))
	}
	l.written.Store(last)
	l.grown.Add(uint64(size))
	l.size.Add(int64(size))
	if switched && l.mode != SyncEpoch {
		if err := l.syncNames(first, last); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Batches++
	l.stats.Entries += uint64(len(items))
	l.stats.Bytes += uint64(at - start)
	l.stats.LargestBatch = max(l.stats.LargestBatch, uint64(len(items)))
	return nil
}

// syncNames makes the names of the segments durable. Where syncs are far apart
// this is done for each new one: a crash that takes the name of a segment and
// leaves that of a later one would look like a log with a hole.
func (l *Log) syncNames(first, last uint64) error {
	if err := l.dev.SyncDir(); err != nil {
		return l.poison(fmt.Errorf("sync the directory of entries %d to %d: %w", first, last, err))
	}
	l.named = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.DirSyncs++
	return nil
}

// sync makes everything written durable, file first, then the names, then the
// note.
func (l *Log) sync() error {
	written := l.written.Load()
	if l.ackedOut == written {
		return nil
	}
	if err := l.dev.Sync(); err != nil {
		return l.poison(fmt.Errorf("sync entries %d to %d: %w", l.ackedOut+1, written, err))
	}
	if !l.named {
		if err := l.syncNames(l.ackedOut+1, written); err != nil {
			return err
		}
	}
	if err := l.note.write(written); err != nil {
		return l.poison(fmt.Errorf("write the note of entry %d: %w", written, err))
	}
	l.ackedOut = written
	l.durable.Store(written)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Syncs++
	return nil
}

// syncOrStop syncs where no caller waits for the result; a failure stops the
// log, and Err, Enqueue and Close tell it.
func (l *Log) syncOrStop() {
	if l.Err() == nil {
		_ = l.sync()
	}
}

// poison stops the log for good and returns the error that everyone gets from
// now on. The first cause stays.
func (l *Log) poison(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("%w: the log stopped: %w", errs.ErrReadOnly, cause)
		l.room.Broadcast()
	}
	return l.err
}
