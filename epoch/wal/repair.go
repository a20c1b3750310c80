package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Report says what Open found and did.
type Report struct {
	// Created is true when Open made a new store.
	Created bool
	// Epochs is the number of entries in the log, FirstIndex and LastIndex
	// their range. An empty log has LastIndex = FirstIndex-1.
	Epochs                uint64
	FirstIndex, LastIndex uint64
	// Acked is the highest index that the note, Options.Covered or a frame
	// says was on stable storage before this Open.
	Acked uint64
	// NoteMissing is true when an existing store had no readable note: then
	// the loss of whole files behind the last frame cannot be seen.
	NoteMissing bool
	// CutBytes is the length of the torn tail that was cut (in a read-only
	// open: left out), beginning at CutOffset of CutFile; CutReason says what
	// was wrong there.
	CutBytes, CutOffset int64
	CutFile             string
	CutReason           error
}

// scanned is what a walk over all segments found.
type scanned struct {
	first uint64 // index of the first entry there could be
	last  uint64 // index of the last whole entry; first-1 when there is none
	acked uint64 // highest index known durable

	tail       segment // the last segment, if any
	tailEnd    int64   // where its whole entries end
	tailSize   int64   // its size; more than tailEnd when torn
	torn       error   // why it is torn
	unackedOff int64   // where its first entry above acked begins; tailEnd if none
}

// scan checks every frame of the log. known is the highest index that a note
// or a checkpoint says was durable, covered the part of it a checkpoint holds.
// It changes nothing.
//
// A bad frame in a sealed segment is corruption: the segment was synced before
// its successor was made. In the last segment it is a torn tail unless its
// index was acknowledged, by known or by any whole frame after it. What
// follows a torn frame is dropped with it: a later epoch may build on the lost
// one.
func scan(dir string, segs []segment, store StoreID, known, covered uint64) (scanned, error) {
	sc := scanned{first: 1, acked: known}
	if len(segs) > 0 {
		sc.first = segs[0].first
	}
	if sc.first > covered+1 {
		return sc, &CorruptError{File: segs[0].path, Index: covered + 1,
			Err: fmt.Errorf("log begins at entry %d, entries %d to %d are missing", sc.first, covered+1, sc.first-1)}
	}
	next := sc.first
	w := newWalker(store)
	for i, s := range segs {
		if s.first != next {
			return sc, &CorruptError{File: s.path, Index: min(next, s.first), Err: gap(next, s.first)}
		}
		var err error
		if i == len(segs)-1 {
			next, err = sc.scanTail(w, s)
		} else {
			next, _, err = w.segment(s, next, func(_ int64, fr frame) error {
				sc.acked = max(sc.acked, fr.acked)
				return nil
			})
		}
		if bad := (*badFrame)(nil); errors.As(err, &bad) {
			return sc, &CorruptError{File: s.path, Offset: bad.offset, Index: next, Err: bad.err}
		}
		if err != nil {
			return sc, err
		}
	}
	sc.last = next - 1
	if sc.last < known {
		file := dir
		if len(segs) > 0 {
			file = sc.tail.path
		}
		return sc, &CorruptError{File: file, Offset: sc.tailEnd, Index: next,
			Err: fmt.Errorf("acknowledged entries %d to %d are missing", next, known)}
	}
	return sc, nil
}

// gap says how the name of a segment disagrees with the entry due.
func gap(next, first uint64) error {
	if first > next {
		return fmt.Errorf("segment begins at entry %d, entries %d to %d are missing", first, next, first-1)
	}
	return fmt.Errorf("segment begins at entry %d, entry %d is due", first, next)
}

// scanTail walks the last segment and decides whether a bad frame is a torn
// tail. A *badFrame it returns is corruption.
func (sc *scanned) scanTail(w *walker, s segment) (uint64, error) {
	var offs []int64 // of each entry, to find the first unacknowledged one
	next, end, err := w.segment(s, s.first, func(off int64, fr frame) error {
		sc.acked = max(sc.acked, fr.acked)
		offs = append(offs, off)
		return nil
	})
	sc.tail, sc.tailEnd, sc.tailSize = s, end, end
	if bad := (*badFrame)(nil); errors.As(err, &bad) {
		rest, rerr := readFrom(s.path, bad.offset)
		if rerr != nil {
			return next, rerr
		}
		if max(sc.acked, laterAcked(rest, w.store)) >= next {
			return next, err
		}
		sc.tailSize = end + int64(len(rest))
		sc.torn = bad.err
		err = nil
	}
	sc.unackedOff = end
	if i := max(sc.acked+1, s.first) - s.first; i < uint64(len(offs)) {
		sc.unackedOff = offs[i]
	}
	return next, err
}

// readFrom reads a file from an offset to its end.
func readFrom(path string, off int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, off, st.Size()-off))
}

// report tells what scan found.
func (sc *scanned) report() Report {
	r := Report{
		Epochs:     sc.last + 1 - sc.first,
		FirstIndex: sc.first,
		LastIndex:  sc.last,
		Acked:      sc.acked,
	}
	if sc.torn != nil {
		r.CutBytes, r.CutOffset = sc.tailSize-sc.tailEnd, sc.tailEnd
		r.CutFile, r.CutReason = sc.tail.path, sc.torn
	}
	return r
}

// finishTruncation completes a front truncation that a crash cut short, and
// removes files that were never completed. It is done by hand and not by the
// library, whose Open would go on to parse a last segment that may be torn.
// Each step may be the last before a crash; the next Open takes up there.
func (l *listing) finishTruncation(step func(string) error) error {
	for _, path := range l.temps {
		if err := step("remove " + filepath.Base(path)); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if l.start == nil {
		return nil
	}
	for _, path := range l.stale {
		if err := step("remove " + filepath.Base(path)); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if err := step("rename " + filepath.Base(l.start.path)); err != nil {
		return err
	}
	final := filepath.Join(filepath.Dir(l.start.path), segmentName(l.start.first))
	if err := os.Rename(l.start.path, final); err != nil {
		return err
	}
	l.segs[0].path = final
	return nil
}

// mend cuts the torn tail and makes every entry that is left durable before
// anyone is told of it.
//
// Entries that no one acknowledged are written again, byte for byte, before
// the sync: after a failed sync the page cache may hold them as clean although
// the disk does not, and only a page that is dirty again is surely written.
func (sc *scanned) mend(step func(string) error) error {
	if sc.torn == nil && sc.unackedOff == sc.tailEnd {
		return nil
	}
	f, err := os.OpenFile(sc.tail.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if sc.torn != nil {
		if err := step("cut the torn tail"); err != nil {
			return err
		}
		if err := f.Truncate(sc.tailEnd); err != nil {
			return err
		}
	}
	if err := step("write the unacknowledged entries again"); err != nil {
		return err
	}
	if err := rewrite(f, sc.unackedOff, sc.tailEnd); err != nil {
		return err
	}
	if err := step("sync the last segment"); err != nil {
		return err
	}
	return f.Sync()
}

// rewrite writes the bytes [from, to) of f over themselves.
func rewrite(f *os.File, from, to int64) error {
	buf := make([]byte, min(to-from, readBuffer))
	for from < to {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
		if n == 0 && err != nil {
			return err
		}
		if _, err := f.WriteAt(buf[:n], from); err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // it cannot, and need not
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
