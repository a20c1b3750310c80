package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/triegs/triegs/internal/errs"
)

// SalvageReport says what a Salvage found.
type SalvageReport struct {
	// Identity is that of the store. Where its file is damaged or gone,
	// IdentityErr says so, and only the log id is known: that of the first whole
	// frame.
	Identity    Identity
	IdentityErr error
	// Entries is the number of entries given out, First the first of them.
	Entries, First uint64
	// Stop says where the walk ended before the end of the log and why: in Index
	// the entry that is missing or damaged. nil means that the log ended there,
	// in a whole frame, and nothing tells of more.
	Stop *CorruptError
	// Last is the highest index that any whole frame has or acknowledges, or
	// that the note does, whether it is in what was given out or not. Entries
	// from Stop.Index to Last existed and are lost; if Last is less, Stop is at
	// the torn end of the log and nobody was told of what is lost.
	Last uint64
	// Later is the number of whole frames after Stop.
	Later uint64
}

// Salvage calls fn for the entries from, from+1, ... of the log in dir, up to
// the first that is missing or damaged; from = 0 means the first there is. What
// is damaged before entry from does not matter. payload is valid only during the
// call; an error of fn ends the walk and is returned as it is. Nothing on disk
// is changed; the lock is shared where there is one, and errs.ErrLocked if
// somebody writes.
//
// Every entry given out has the checksum, the place and the log id that it was
// written with. Damage is not an error but told in the report, which is right
// also beside an error; errors are those of fn, errs.ErrFormat for what is not a
// store of this version, and a directory that cannot be read. Cost: one
// reading of the segments from the one that holds entry from, and, if it stops,
// in memory one segment at a time.
func Salvage(dir string, from uint64, fn func(index uint64, payload []byte) error) (SalvageReport, error) {
	s := salvage{fn: fn}
	err := s.run(dir, from)
	if err != nil && !s.own {
		err = fmt.Errorf("salvage: %w", err)
	}
	return s.rep, err
}

// salvage is a Salvage under way.
type salvage struct {
	fn   func(uint64, []byte) error
	own  bool // fn failed
	rep  SalvageReport
	w    *walker
	next uint64 // entry that is due
	from uint64 // first entry to give out
}

// run does the work of Salvage.
func (s *salvage) run(dir string, from uint64) error {
	lock, err := acquire(context.Background(), dir, true, -1)
	if err != nil {
		return err
	}
	defer func() { _ = releaseLock(lock, dir, false) }()
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	logDir := filepath.Join(dir, logName)
	list, err := listLog(logDir)
	if err != nil {
		return err
	}
	if err := s.identify(dir, list.segs); err != nil {
		return err
	}
	// A foreign or damaged note tells nothing.
	if acked, ok, err := readNote(filepath.Join(dir, noteName), s.rep.Identity.Log); ok && err == nil {
		s.rep.Last = acked
	}
	segs := list.segs
	if from == 0 {
		from = 1
		if len(segs) > 0 {
			from = segs[0].first
		}
	}
	for len(segs) > 1 && segs[1].first <= from {
		segs = segs[1:]
	}
	s.from = from
	return s.walk(logDir, segs)
}

// identify reads the identity, or takes the log id from the first whole frame.
func (s *salvage) identify(dir string, segs []segment) error {
	id, err := readStore(dir)
	if err == nil {
		s.rep.Identity, s.w = id, newWalker(id.Log)
		return nil
	}
	if errors.Is(err, errs.ErrFormat) {
		return err
	}
	s.rep.IdentityErr = err
	for _, seg := range segs {
		r, err := openSegment(seg.path, 0, newWalker(ID{}).br, nil)
		if err != nil {
			continue
		}
		fr, _, err := r.next()
		_ = r.f.Close()
		if err == nil && fr.index == seg.first {
			s.rep.Identity.Log, s.w = fr.log, newWalker(fr.log)
			return nil
		}
	}
	return fmt.Errorf("%w: %s has no whole identity file, and no segment begins with a whole frame", errs.ErrFormat, dir)
}

// walk gives out the entries of segs, whose first is the one to begin with.
func (s *salvage) walk(logDir string, segs []segment) error {
	if len(segs) > 0 && segs[0].first > s.from {
		s.stop(segs[0].path, 0, s.from, gap(s.from, segs[0].first))
		s.after(segs, 0)
		return nil
	}
	for i, seg := range segs {
		if i == 0 {
			s.next = seg.first
		}
		if seg.first != s.next {
			s.stop(seg.path, 0, s.next, gap(s.next, seg.first))
			s.after(segs[i:], 0)
			return nil
		}
		off, err := s.segment(seg)
		if s.own {
			return err
		}
		if err != nil {
			if bad := (*badFrame)(nil); errors.As(err, &bad) {
				err = bad.err
			}
			s.stop(seg.path, off, s.next, err)
			s.after(segs[i:], off)
			return nil
		}
	}
	s.next = max(s.next, s.from)
	if s.rep.Last >= s.next {
		s.stop(logDir, 0, s.next, fmt.Errorf("acknowledged entries %d to %d are missing", s.next, s.rep.Last))
	}
	return nil
}

// segment walks one segment. Where an entry is damaged that is not asked for,
// it goes on at the first that is, if that is whole. It returns the offset
// where it stopped and why; nil at the end of the segment.
func (s *salvage) segment(seg segment) (off int64, err error) {
	s.next, off, err = s.w.segment(seg, s.next, s.give)
	if err == nil || s.own || s.next >= s.from {
		return off, err
	}
	rest, rerr := readFrom(seg.path, off, s.w.size)
	if rerr != nil {
		return off, err
	}
	at := int64(-1)
	eachFrame(rest, s.w.log, func(fr frame, end int) bool {
		if fr.index == s.from {
			n := len(fr.payload) + frameOverhead
			at = off + int64(end-n-prefixLen(n))
		}
		return at < 0
	})
	if at < off {
		s.next = s.from
		return off, err
	}
	s.next, off, err = s.w.rest(seg, at, s.from, s.give)
	return off, err
}

// give hands out one entry.
func (s *salvage) give(_ int64, fr frame) error {
	s.rep.Last = max(s.rep.Last, fr.index, fr.acked)
	if fr.index < s.from {
		return nil
	}
	if err := s.fn(fr.index, fr.payload); err != nil {
		s.own = true
		return err
	}
	if s.rep.Entries == 0 {
		s.rep.First = fr.index
	}
	s.rep.Entries++
	return nil
}

// stop notes where the walk ended.
func (s *salvage) stop(path string, off int64, index uint64, why error) {
	s.rep.Stop = &CorruptError{File: path, Offset: off, Index: index, Err: why}
}

// after looks through the segments from an offset of the first on for whole
// frames. What cannot be read has none.
func (s *salvage) after(segs []segment, off int64) {
	for _, seg := range segs {
		if st, err := os.Stat(seg.path); err == nil {
			b, _ := readFrom(seg.path, off, st.Size()) // as much as can be read
			eachFrame(b, s.w.log, func(fr frame, _ int) bool {
				s.rep.Last = max(s.rep.Last, fr.index, fr.acked)
				s.rep.Later++
				return true
			})
		}
		off = 0
	}
}
