package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/triegs/triegs/internal/errs"
)

// DropThrough removes the segments all of whose entries are at or below index,
// oldest first, and returns how many and how many bytes they had. The last
// segment stays in any case, so some entries at or below index usually do. The
// caller must hold a durable checkpoint of every entry through index, and
// Options.Cover must return index or more from now on.
//
// The removals are made durable together, since Open takes no notice of what is
// left of them in whatever order they reach the disk. Appends go on meanwhile. An
// error (also the operating system's) leaves the log as good as it was and
// only means that less was freed; what was removed before it counts. An index
// that is not durable yet is errs.ErrValue; while a Replay runs the error is
// ErrBusy; a stopped log is errs.ErrReadOnly, a closed one errs.ErrClosed. Cost:
// a listing of the log, an unlink for each segment, and two directory syncs. The
// system takes a millisecond or more to give back the space of a segment, which is
// done in the background; the next call and Close wait for it.
func (l *Log) DropThrough(ctx context.Context, index uint64) (segments int, bytes int64, err error) {
	l.drops.Lock()
	defer l.drops.Unlock()
	if err := l.mayDrop(ctx); err != nil {
		return 0, 0, err
	}
	if durable := l.durable.Load(); index > durable {
		return 0, 0, fmt.Errorf("%w: cannot cut the log through entry %d, it is durable through entry %d",
			errs.ErrValue, index, durable)
	}
	if !l.replays.TryLock() {
		return 0, 0, ErrBusy
	}
	defer l.replays.Unlock()
	segments, bytes, err = l.dropAll(ctx, index)
	if segments > 0 {
		serr := l.step("sync the directory of segments")
		if serr == nil {
			serr = syncDir(l.logDir)
		}
		err = errors.Join(err, serr)
	}
	if err != nil {
		err = fmt.Errorf("cut the log through entry %d: %w", index, err)
	}
	return segments, bytes, err
}

// dropAll removes segments without making that durable.
func (l *Log) dropAll(ctx context.Context, index uint64) (segments int, bytes int64, err error) {
	list, err := listLog(l.logDir)
	if err != nil {
		return 0, 0, err
	}
	l.freeing.Wait()
	var held []*os.File
	defer func() { l.letGo(held) }()
	for segs := list.segs; len(segs) > 1 && segs[1].first <= index+1; segs = segs[1:] {
		if err := l.mayDrop(ctx); err != nil {
			return segments, bytes, err
		}
		if segments == 0 { // the name of the next one may be new
			if err := syncDir(l.logDir); err != nil {
				return 0, 0, err
			}
		}
		l.first.Store(max(l.first.Load(), segs[1].first))
		if f := hold(segs[0].path, len(held)); f != nil {
			held = append(held, f)
		}
		freed, err := l.drop(segs[0])
		if err != nil {
			return segments, bytes, err
		}
		segments++
		bytes += freed
		l.size.Add(-freed)
	}
	return segments, bytes, nil
}

// heldMax bounds how many removed segments are held open at a time: handles are
// scarce. The others are removed at once.
const heldMax = 32

// hold opens a segment, so that its removal takes away the name alone and the
// space is given back when it is closed. Where that cannot be it is nil.
func hold(path string, have int) *os.File {
	if have == heldMax || runtime.GOOS == "windows" { // which removes nothing that is open
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	return f
}

// letGo closes files that were removed, in the background. l.drops must be held:
// whoever waits for freeing holds it too.
func (l *Log) letGo(held []*os.File) {
	if len(held) > 0 {
		l.freeing.Go(func() { l.free(held) })
	}
}

func closeAll(held []*os.File) {
	for _, f := range held {
		_ = f.Close() // nothing was written
	}
}

// mayDrop says why nothing may be removed, if so.
func (l *Log) mayDrop(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusalLocked(); err != nil {
		return err
	}
	if l.readOnly {
		return errs.ErrReadOnly
	}
	return nil
}

// drop removes one segment and tells how large it was.
func (l *Log) drop(s segment) (size int64, err error) {
	st, err := os.Lstat(s.path)
	if err != nil {
		return 0, err
	}
	if err := l.step("remove segment " + filepath.Base(s.path)); err != nil {
		return 0, err
	}
	return st.Size(), os.Remove(s.path)
}
