package wal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/triegs/triegs/internal/errs"
)

// Replay calls fn for the entries from, from+1, ... up to the last one that
// was acknowledged when Replay began (in SyncEpoch: that is durable). from = 0
// means the first entry of the log as it was opened and since cut. What Open has
// not read, because a checkpoint covers it, can be replayed as far as it is still
// there and is checked then; an earlier entry is errs.ErrValue. payload is valid only during the call. An error of fn ends
// the replay and is returned as it is, so is ctx's; damage found on the way is
// a *CorruptError, and a Close ends it with errs.ErrClosed.
//
// Any number of replays may run at once, beside the writer; each reads the
// files through its own descriptor, one at a time, and holds one entry and a
// read buffer in memory. Segments before the one that holds from are skipped,
// entries before from in that one are read and checked.
func (l *Log) Replay(ctx context.Context, from uint64, fn func(index uint64, payload []byte) error) error {
	if err := l.closedErr(); err != nil {
		return err
	}
	l.replays.RLock()
	defer l.replays.RUnlock()
	limit := l.durable.Load()
	if l.mode != SyncEpoch {
		limit = l.written.Load()
	}
	first := l.first.Load()
	if from == 0 {
		from = first
	}
	if from > limit {
		return ctx.Err()
	}
	list, err := listLog(l.logDir)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	segs := list.segs
	if from < first && (len(segs) == 0 || segs[0].first > from) {
		return fmt.Errorf("%w: replay from entry %d, the log begins at entry %d", errs.ErrValue, from, first)
	}
	for len(segs) > 1 && segs[1].first <= from {
		segs = segs[1:]
	}
	if len(segs) == 0 || segs[0].first > from {
		return &CorruptError{File: l.logDir, Index: from, Err: errors.New("no segment holds the entry")}
	}
	return l.replaySegments(ctx, segs, from, limit, fn)
}

// replaySegments walks segs, which begin at or before from.
func (l *Log) replaySegments(ctx context.Context, segs []segment, from, limit uint64,
	fn func(uint64, []byte) error) error {
	w := newWalker(l.id.Log)
	next := segs[0].first
	for _, s := range segs {
		if next > limit {
			return nil
		}
		if s.first != next {
			return &CorruptError{File: s.path, Index: min(next, s.first), Err: gap(next, s.first)}
		}
		var err error
		next, _, err = w.segment(s, next, func(_ int64, fr frame) error {
			if fr.index > limit {
				return errStop
			}
			if fr.index < from {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.closedErr(); err != nil {
				return err
			}
			return fn(fr.index, fr.payload)
		})
		if bad := (*badFrame)(nil); errors.As(err, &bad) && next <= limit {
			return &CorruptError{File: s.path, Offset: bad.offset, Index: next, Err: bad.err}
		} else if bad == nil && err != nil {
			return err
		}
	}
	if next <= limit {
		return &CorruptError{File: l.logDir, Index: next, Err: fmt.Errorf("entries %d to %d are missing", next, limit)}
	}
	return nil
}

// closedErr is errs.ErrClosed once Close was called.
func (l *Log) closedErr() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return errs.ErrClosed
	}
	return nil
}

// Oldest gives the entry with which the oldest segment of the store in dir begins,
// 0 where there is no log. What lies between it and the last entry may still turn
// out to be missing, or damaged.
func Oldest(dir string) (uint64, error) {
	list, err := listLog(filepath.Join(dir, logName))
	if err != nil || len(list.segs) == 0 {
		return 0, err
	}
	return list.segs[0].first, nil
}
