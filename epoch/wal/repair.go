package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Report says what Open found and did.
type Report struct {
	// Created is true when Open made a new store.
	Created bool
	// Covered is what Options.Cover returned.
	Covered uint64
	// Epochs is the number of entries that can be replayed, FirstIndex and
	// LastIndex their range. FirstIndex is at most Covered+1. An empty log has
	// LastIndex = FirstIndex-1.
	Epochs                uint64
	FirstIndex, LastIndex uint64
	// TailBytes is the size of the entries after Covered.
	TailBytes int64
	// OldSegments is the number of segments that hold nothing after Covered and
	// were not looked into.
	OldSegments int
	// Acked is the highest index that the note, Options.Cover or a frame says
	// was on stable storage before this Open.
	Acked uint64
	// NoteMissing is true when an existing store had no readable note: then
	// the loss of whole files behind the last frame cannot be seen.
	NoteMissing bool
	// Renewed is true when the log ended before Covered, after entry EndedAt,
	// and nothing after Covered is known to have been acknowledged. The log has
	// lost bytes that were on stable storage, the store has lost nothing; a new
	// segment begins at Covered+1, on a new timeline.
	Renewed bool
	EndedAt uint64
	// NewTimeline is true when Open drew a new timeline for an existing store.
	NewTimeline bool
	// CutBytes is the length of the torn tail that was cut (in a read-only
	// open: left out), beginning at CutOffset of CutFile; CutReason says what
	// was wrong there.
	CutBytes, CutOffset int64
	CutFile             string
	CutReason           error
}

// scanned is what a walk over the segments found.
type scanned struct {
	covered uint64 // index through which a checkpoint holds every entry
	first   uint64 // index of the first entry there could be
	last    uint64 // index of the last whole entry; first-1 when there is none
	acked   uint64 // highest index known durable
	old     int    // segments that were not looked into
	bytes   int64  // of the entries after covered
	renew   bool   // the log ended before covered
	ended   uint64 // and this was its last whole entry

	tail       segment // the last segment, if any
	tailEnd    int64   // where its whole entries end
	tailSize   int64   // its size; more than tailEnd when torn
	torn       error   // why it is torn
	unackedOff int64   // where its first entry above acked begins; tailEnd if none
}

// scan checks every frame from the segment on that holds entry covered+1 or
// will hold it; a checkpoint holds what is before, so it matters to nobody in
// which state that is. note is the index in the note, 0 without one. It changes
// nothing.
//
// A bad frame in a sealed segment is corruption: the segment was synced before
// its successor was made. In the last segment it is a torn tail unless its
// index was acknowledged, by note, covered or any whole frame after it. What
// follows a torn frame is dropped with it: a later epoch may build on the lost
// one.
//
// A last segment that ends before covered has lost what was durable. That is
// harmless, and the log begins anew at covered+1, unless the note or a whole
// frame says that there was more.
func scan(dir string, segs []segment, log ID, note, covered uint64) (scanned, error) {
	sc := scanned{covered: covered, first: covered + 1, acked: max(note, covered)}
	for len(segs) > 1 && segs[1].first <= covered+1 {
		segs = segs[1:]
		sc.old++
	}
	if len(segs) > 0 {
		sc.first = segs[0].first
	}
	if sc.first > covered+1 {
		return sc, &CorruptError{File: segs[0].path, Index: covered + 1,
			Err: fmt.Errorf("log begins at entry %d, entries %d to %d are missing", sc.first, covered+1, sc.first-1)}
	}
	next := sc.first
	w := newWalker(log)
	for i, s := range segs {
		if s.first != next {
			return sc, &CorruptError{File: s.path, Index: min(next, s.first), Err: gap(next, s.first)}
		}
		var err error
		if i == len(segs)-1 {
			next, err = sc.scanTail(w, s)
		} else {
			next, _, err = w.segment(s, next, func(_ int64, fr frame) error {
				sc.count(fr)
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
	if lost := max(next, covered+1); note >= lost {
		file := dir
		if len(segs) > 0 {
			file = sc.tail.path
		}
		return sc, &CorruptError{File: file, Offset: sc.tailEnd, Index: lost,
			Err: fmt.Errorf("acknowledged entries %d to %d are missing", lost, note)}
	}
	if sc.last < covered || len(segs) == 0 && covered > 0 {
		sc.startOver(dir, len(segs))
	}
	return sc, nil
}

// count takes note of a whole frame.
func (sc *scanned) count(fr frame) {
	sc.acked = max(sc.acked, fr.acked)
	if fr.index > sc.covered {
		n := len(fr.payload) + frameOverhead
		sc.bytes += int64(prefixLen(n) + n)
	}
}

// startOver gives up the segments, all of which a checkpoint covers, for a new
// one behind it. They stay on disk until the log is cut.
func (sc *scanned) startOver(dir string, segs int) {
	*sc = scanned{
		covered: sc.covered, first: sc.covered + 1, last: sc.covered, acked: sc.acked,
		old: sc.old + segs, renew: true, ended: sc.last,
		tail: segment{filepath.Join(dir, segmentName(sc.covered+1)), sc.covered + 1},
	}
	if segs == 0 {
		sc.ended = 0
	}
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
		sc.count(fr)
		offs = append(offs, off)
		return nil
	})
	sc.tail, sc.tailEnd, sc.tailSize = s, end, end
	if bad := (*badFrame)(nil); errors.As(err, &bad) {
		rest, rerr := readFrom(s.path, bad.offset, w.size)
		if rerr != nil {
			return next, rerr
		}
		acked, index := later(rest, w.log)
		// Before covered nothing can be torn. What is bad there is no loss, but
		// a whole frame behind covered is one that the log would drop.
		if max(sc.acked, acked) >= max(next, sc.covered+1) || next <= sc.covered && index > sc.covered {
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

// readFrom reads a file from an offset to what was its end.
func readFrom(path string, off, end int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, off, end-off))
}

// report tells what scan found.
func (sc *scanned) report() Report {
	r := Report{
		Covered:     sc.covered,
		Epochs:      sc.last + 1 - sc.first,
		FirstIndex:  sc.first,
		LastIndex:   sc.last,
		TailBytes:   sc.bytes,
		OldSegments: sc.old,
		Acked:       sc.acked,
		Renewed:     sc.renew,
		EndedAt:     sc.ended,
	}
	if sc.torn != nil {
		r.CutBytes, r.CutOffset = sc.tailSize-sc.tailEnd, sc.tailEnd
		r.CutFile, r.CutReason = sc.tail.path, sc.torn
	}
	return r
}

// mend cuts the torn tail, or begins the new segment of a log that starts over,
// and makes every entry that is left durable before anyone is told of it.
//
// Entries that no one acknowledged are written again, byte for byte, before
// the sync: after a failed sync the page cache may hold them as clean although
// the disk does not, and only a page that is dirty again is surely written.
func (sc *scanned) mend(step func(string) error) error {
	if sc.renew {
		if err := step("begin a new segment"); err != nil {
			return err
		}
		return writeSynced(sc.tail.path, nil)
	}
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
