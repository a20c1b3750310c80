package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/triegs/triegs"
)

// Format is the text format of an input.
type Format uint8

// The formats that are read.
const (
	TSV Format = iota + 1
	CSV
	JSONL
	NT
)

// formatNames lists the formats by the name of --format, which is also the
// file extension.
var formatNames = map[string]Format{"tsv": TSV, "csv": CSV, "jsonl": JSONL, "nt": NT}

// notBuilt lists the formats that are known and not read yet.
var notBuilt = map[string]bool{"ttl": true, "nq": true}

// NotBuiltError names a format that is known and not read yet.
type NotBuiltError struct{ Name string }

// Error names the format.
func (e *NotBuiltError) Error() string { return fmt.Sprintf("format %s is not built yet", e.Name) }

// Detect returns the format of the input called path. A name given by the user
// decides, else the extension below .gz; a path without a known extension is
// tsv. The error is a *NotBuiltError for a format that is not read yet, and
// ErrValue for a name that is no format.
func Detect(path, name string) (Format, error) {
	if name != "" {
		if f, ok := formatNames[name]; ok {
			return f, nil
		}
		if notBuilt[name] {
			return 0, &NotBuiltError{Name: name}
		}
		return 0, fmt.Errorf("%w: %q is not a format", triegs.ErrValue, name)
	}
	ext := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(path, ".gz")), ".")
	if notBuilt[ext] {
		return 0, &NotBuiltError{Name: ext}
	}
	if f, ok := formatNames[ext]; ok {
		return f, nil
	}
	return TSV, nil
}

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Options says how inputs are read.
type Options struct {
	// Format is the name of the format of every input; "" = by extension.
	Format string
	// Batch is the number of events in a batch, at least 1. In an input with
	// commit lines it counts for nothing.
	Batch int
	// Source is the name of the source that every batch carries; "" = none.
	Source string
	// Offset is that of the first event of the first input.
	Offset uint64
	// Scope returns the prefix that keeps the blank node labels of the i-th
	// input apart from those of others. It must be usable at the front of a
	// blank node label. nil = no prefix.
	Scope func(i int) string
	// Stdin is what the path "-" reads.
	Stdin io.Reader
}

// Error says at which line of which input something is wrong.
type Error struct {
	// File is the path, "stdin" for standard input.
	File string
	// Line counts from 1; 0 = the input as a whole.
	Line int
	// Err is the complaint.
	Err error
}

// Error puts file:line in front of the complaint.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the complaint.
func (e *Error) Unwrap() error { return e.Err }

// Batch is a batch of events with the place that each came from.
type Batch struct {
	triegs.Batch
	// File is the input, as in Error.File.
	File string
	// Lines holds the line of each event, counted from 1.
	Lines []int
	// Commit is the line of the commit that ends the batch, 0 if none does.
	Commit int
}

// At wraps err with the place of event i; an index outside of the batch gives
// the place of its first event, or in a batch without any that of its commit.
func (b *Batch) At(i int, err error) error {
	if len(b.Lines) == 0 {
		return &Error{File: b.File, Line: b.Commit, Err: err}
	}
	if i < 0 || i >= len(b.Lines) {
		i = 0
	}
	return &Error{File: b.File, Line: b.Lines[i], Err: err}
}

// eventIndex is how errors of DB.Append tell the event that is at fault.
var eventIndex = regexp.MustCompile(`^(?:triegs: )?event (\d+): `)

// batchFaults are those for which the batch can be at fault as a whole.
var batchFaults = []error{triegs.ErrOverflow, triegs.ErrBudget, triegs.ErrGap, triegs.ErrValue, triegs.ErrTime, triegs.ErrLate}

// Locate gives an error of DB.Append the line of the event that it names. Where the
// batch as a whole is at fault, the line is that of its first event; an error that no
// batch is at fault for comes back as it is.
func (b *Batch) Locate(err error) error {
	if m := eventIndex.FindStringSubmatch(err.Error()); m != nil {
		if i, convErr := strconv.Atoi(m[1]); convErr == nil {
			return b.At(i, err)
		}
	}
	for _, fault := range batchFaults {
		if errors.Is(err, fault) {
			return b.At(0, fmt.Errorf("the batch of %d events that begins here: %w", len(b.Events), err))
		}
	}
	return err
}

// record is one event or one commit line.
type record struct {
	ev     triegs.Event
	line   int
	commit bool
	// Of a commit line, zero = none.
	time, watermark time.Time
}

// reader reads the records of one input. Next returns io.EOF at the end; any
// other error that is not an *Error belongs to the line that line returns.
type reader interface {
	next(rec *record, terms *slab) error
	line() int
}

// Stream reads inputs in order, batch by batch.
type Stream struct {
	paths  []string
	opts   Options
	at     int // index of the next path
	cur    *source
	offset uint64 // of the next event, over all inputs
	terms  slab
	err    error
}

// source is the input that is being read.
type source struct {
	name  string
	file  io.Closer
	rd    reader
	limit int // events in a batch
}

// Open returns a stream over the inputs. Nothing is opened yet. The error is
// that of Detect, for the first path that has one.
func Open(paths []string, opts Options) (*Stream, error) {
	for _, p := range paths {
		if _, err := Detect(p, opts.Format); err != nil {
			return nil, &Error{File: displayName(p), Err: err}
		}
	}
	if opts.Batch < 1 {
		return nil, fmt.Errorf("%w: a batch of %d events", triegs.ErrValue, opts.Batch)
	}
	return &Stream{paths: paths, opts: opts, offset: opts.Offset}, nil
}

// Next returns the next batch, and io.EOF after the last. The batch is the
// caller's. After an error every further call returns the same error.
//
// The batch's Time is that of its commit line, else the greatest event time in
// it, else zero, which makes the store ask its clock.
func (s *Stream) Next() (*Batch, error) {
	if s.err != nil {
		return nil, s.err
	}
	b, err := s.next()
	if err != nil {
		s.err = err
		s.closeSource()
		return nil, err
	}
	return b, nil
}

func (s *Stream) next() (*Batch, error) {
	for {
		if s.cur == nil {
			if s.at == len(s.paths) {
				return nil, io.EOF
			}
			if err := s.openSource(); err != nil {
				return nil, err
			}
		}
		b, err := s.fill()
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		s.closeSource()
		if len(b.Events) > 0 {
			return b, nil
		}
	}
}

// fill reads one batch of the current input. It returns io.EOF together with
// what was read since the last batch when the input is over.
func (s *Stream) fill() (*Batch, error) {
	c := s.cur
	b := &Batch{File: c.name}
	b.Source, b.Offset = s.opts.Source, s.offset
	var rec record
	for len(b.Events) < c.limit {
		rec = record{}
		if err := c.rd.next(&rec, &s.terms); err != nil {
			if errors.Is(err, io.EOF) {
				s.finish(b, time.Time{})
				return b, io.EOF
			}
			return nil, s.wrap(c, err)
		}
		if !rec.commit {
			b.Events = append(b.Events, rec.ev)
			b.Lines = append(b.Lines, rec.line)
			s.offset++
			continue
		}
		c.limit = math.MaxInt
		if len(b.Events) == 0 && rec.time.IsZero() && rec.watermark.IsZero() {
			continue // Nothing to commit, and no time to move to.
		}
		b.Commit, b.Watermark = rec.line, rec.watermark
		s.finish(b, rec.time)
		return b, nil
	}
	s.finish(b, time.Time{})
	return b, nil
}

// finish sets the batch's time: t, or the greatest event time.
func (s *Stream) finish(b *Batch, t time.Time) {
	if t.IsZero() {
		for i := range b.Events {
			if et := b.Events[i].Time; !et.IsZero() && (t.IsZero() || et.After(t)) {
				t = et
			}
		}
	}
	b.Time = t
}

func (s *Stream) wrap(c *source, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{File: c.name, Line: c.rd.line(), Err: err}
}

// Events returns how many events were read so far.
func (s *Stream) Events() uint64 { return s.offset - s.opts.Offset }

// Close closes the input that is open. Next must not be called after it.
func (s *Stream) Close() error {
	if s.err == nil {
		s.err = io.EOF
	}
	return s.closeSource()
}

func (s *Stream) closeSource() error {
	c := s.cur
	s.cur = nil
	if c == nil || c.file == nil {
		return nil
	}
	if err := c.file.Close(); err != nil {
		return &Error{File: c.name, Err: err}
	}
	return nil
}

// openSource opens the next path.
func (s *Stream) openSource() error {
	path, i := s.paths[s.at], s.at
	s.at++
	name := displayName(path)
	format, err := Detect(path, s.opts.Format)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	raw, closer, regular, err := s.openRaw(path)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	c := &source{name: name, file: closer, limit: s.opts.Batch}
	s.cur = c
	if format == JSONL && regular {
		// Commit lines decide how the lines before them are cut, so they must
		// be known before the first batch.
		found, err := s.scanCommits(path)
		if err != nil {
			return err
		}
		if found {
			c.limit = math.MaxInt
		}
	}
	text, err := plain(raw, path)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	scope := ""
	if s.opts.Scope != nil {
		scope = s.opts.Scope(i)
	}
	c.rd = newReader(format, text, scope)
	return nil
}

// newReader returns the reader of a format.
func newReader(format Format, r io.Reader, scope string) reader {
	lines := newLineReader(r)
	switch format {
	case CSV:
		return newCSVReader(lines)
	case JSONL:
		return newJSONLReader(lines)
	case NT:
		return newNTReader(lines, scope)
	default:
		return newTSVReader(lines)
	}
}

// openRaw opens path without unpacking it. regular tells that it can be opened
// again and read from its start.
func (s *Stream) openRaw(path string) (r io.Reader, c io.Closer, regular bool, err error) {
	if path == Stdin {
		if s.opts.Stdin == nil {
			return strings.NewReader(""), nil, false, nil
		}
		return s.opts.Stdin, nil, false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, false, cause(err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a directory")
	}
	if err != nil {
		f.Close()
		return nil, nil, false, cause(err)
	}
	return f, f, info.Mode().IsRegular(), nil
}

// scanCommits tells whether the jsonl file at path holds a commit line.
func (s *Stream) scanCommits(path string) (bool, error) {
	name := displayName(path)
	raw, closer, _, err := s.openRaw(path)
	if err != nil {
		return false, &Error{File: name, Err: err}
	}
	defer closer.Close()
	text, err := plain(raw, path)
	if err != nil {
		return false, &Error{File: name, Err: err}
	}
	rd := newJSONLReader(newLineReader(text))
	for {
		line, err := rd.lines.next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, &Error{File: name, Line: rd.line(), Err: err}
		}
		if !bytes.Contains(line, []byte(`commit`)) {
			continue
		}
		// A line that is bad in itself is reported when it is read, after the
		// batches before it.
		var rec record
		var terms slab
		if rd.parse(line, &rec, &terms) == nil && rec.commit {
			return true, nil
		}
	}
}

// plain unpacks r if it is gzip, which its first bytes tell. A path that ends
// in .gz must be.
func plain(r io.Reader, path string) (io.Reader, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	magic, err := br.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, cause(err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if strings.HasSuffix(path, ".gz") {
			return nil, fmt.Errorf("%w: not a gzip file", triegs.ErrSyntax)
		}
		return br, nil
	}
	zr, err := gzip.NewReader(br)
	if err != nil {
		return nil, fmt.Errorf("%w: bad gzip header: %v", triegs.ErrSyntax, err)
	}
	return zr, nil
}

// displayName is the name of a path in messages.
func displayName(path string) string {
	if path == Stdin {
		return "stdin"
	}
	return path
}

// cause takes the operation and the path off an operating-system error: the
// message names the file already.
func cause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// slab hands out the tuples of events from larger pieces, so that a line costs
// no allocation for its tuple.
type slab struct{ free []triegs.Term }

// slabTerms is the size of a piece: 2048 edges, about two default batches.
const slabTerms = 4096

// take returns n zero terms that nobody else holds.
func (s *slab) take(n int) []triegs.Term {
	if n > len(s.free) {
		if n > slabTerms/4 {
			return make([]triegs.Term, n)
		}
		s.free = make([]triegs.Term, slabTerms)
	}
	t := s.free[:n:n]
	s.free = s.free[n:]
	return t
}

// names interns relation names, which repeat on nearly every line.
type names map[string]string

func (n names) get(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	s := string(b)
	n[s] = s
	return s
}
