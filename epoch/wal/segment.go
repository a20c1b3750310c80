package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// segmentDigits is the length of a segment's name: the index of its first
// entry in decimal.
const segmentDigits = 20

// readBuffer is what a replay holds besides the entry at hand.
const readBuffer = 64 << 10

// segment is one file of the log.
type segment struct {
	path  string
	first uint64
}

// segmentName is the file name of the segment that begins with entry first.
func segmentName(first uint64) string { return fmt.Sprintf("%0*d", segmentDigits, first) }

// listing is what the log directory holds. Other names are left alone; the
// library does not look at them either.
type listing struct {
	segs  []segment // in order
	marks []segment // unfinished truncations, which this package never makes
}

// listLog reads the log directory; a missing one is empty.
func listLog(dir string) (listing, error) {
	var l listing
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, ignoreMissing(err)
	}
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if len(name) < segmentDigits || e.IsDir() {
			continue
		}
		first, err := strconv.ParseUint(name[:segmentDigits], 10, 64)
		if err != nil || first == 0 {
			continue
		}
		switch name[segmentDigits:] {
		case "":
			l.segs = append(l.segs, segment{path, first})
		case ".START", ".END":
			l.marks = append(l.marks, segment{path, first})
		}
	}
	return l, nil
}

// refuse complains of files that would make the library change the log when
// it opens.
func (l *listing) refuse() error {
	for _, m := range l.marks {
		return &CorruptError{File: m.path, Index: m.first,
			Err: errors.New("truncation mark that this store never writes")}
	}
	return nil
}

// size is the number of bytes in the segments.
func (l *listing) size() (int64, error) {
	var sum int64
	for _, s := range l.segs {
		st, err := os.Stat(s.path)
		if err != nil {
			return 0, err
		}
		sum += st.Size()
	}
	return sum, nil
}

// badFrame is the error of bytes that are not the next frame.
type badFrame struct {
	offset int64
	err    error
}

// Error names the offset and the reason.
func (b *badFrame) Error() string { return fmt.Sprintf("offset %d: %v", b.offset, b.err) }

// Unwrap gives the reason.
func (b *badFrame) Unwrap() error { return b.err }

// reader walks the entries of one segment.
type reader struct {
	f    *os.File
	br   *bufio.Reader
	off  int64
	size int64
	buf  []byte
}

// openSegment opens a segment for reading from an offset up to its present
// size. The reader keeps buf for the entries.
func openSegment(path string, from int64, br *bufio.Reader, buf []byte) (*reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && from > 0 {
		_, err = f.Seek(from, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	br.Reset(f)
	return &reader{f: f, br: br, off: from, size: st.Size(), buf: buf}, nil
}

// next returns the next frame and its offset: io.EOF at the end, a *badFrame
// for bytes that are no frame, another error where the file cannot be read.
// The payload is valid until the next call. No more is allocated than the file
// has bytes.
func (r *reader) next() (frame, int64, error) {
	at, left := r.off, r.size-r.off
	if left == 0 {
		return frame{}, at, io.EOF
	}
	head, err := r.br.Peek(int(min(left, binary.MaxVarintLen64)))
	if err != nil {
		return frame{}, at, err
	}
	size, n := binary.Uvarint(head)
	if n <= 0 || n > 1 && head[n-1] == 0 || size > MaxEntryBytes+frameOverhead {
		return frame{}, at, &badFrame{at, errEntryLength}
	}
	if size > uint64(left)-uint64(n) {
		return frame{}, at, &badFrame{at, errFrameShort}
	}
	if _, err := r.br.Discard(n); err != nil {
		return frame{}, at, err
	}
	r.buf = slices.Grow(r.buf[:0], int(size))[:size]
	if _, err := io.ReadFull(r.br, r.buf); err != nil {
		return frame{}, at, err
	}
	fr, err := parseFrame(r.buf)
	if err != nil {
		return frame{}, at, &badFrame{at, err}
	}
	r.off += int64(n) + int64(size)
	return fr, at, nil
}

// errStop ends a walk early without an error.
var errStop = errors.New("stop")

// walker reads segments one after another and reuses its buffers.
type walker struct {
	log  ID
	br   *bufio.Reader
	buf  []byte
	size int64 // of the segment walked last, when it was opened
}

// newWalker returns a walker over the frames of one log.
func newWalker(log ID) *walker {
	return &walker{log: log, br: bufio.NewReaderSize(nil, readBuffer)}
}

// segment calls fn for each entry of s, whose indexes must be next, next+1,
// ..., and returns the index after the last one and the offset where the walk
// ended. A *badFrame is returned as it is, errors of fn too; errStop ends the
// walk with nil.
func (w *walker) segment(s segment, next uint64, fn func(off int64, fr frame) error) (uint64, int64, error) {
	return w.rest(s, 0, next, fn)
}

// rest is segment for the entries from an offset on.
func (w *walker) rest(s segment, from int64, next uint64, fn func(off int64, fr frame) error) (uint64, int64, error) {
	r, err := openSegment(s.path, from, w.br, w.buf)
	if err != nil {
		return next, from, err
	}
	defer r.f.Close()
	w.size = r.size
	defer func() { w.buf = r.buf }()
	for {
		fr, off, err := r.next()
		if errors.Is(err, io.EOF) && off == r.size {
			return next, off, nil
		}
		if err != nil {
			return next, off, err
		}
		if fr.log != w.log {
			return next, off, &ForeignError{File: s.path, Offset: off, Want: w.log, Got: fr.log}
		}
		if fr.index != next {
			return next, off, &badFrame{off, fmt.Errorf("%w: %d", errFrameIndex, fr.index)}
		}
		if err := fn(off, fr); err != nil {
			if errors.Is(err, errStop) {
				return next, off, nil
			}
			return next, off, err
		}
		next++
	}
}
