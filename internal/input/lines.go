package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/triegs/triegs"
)

// maxLine bounds the memory that one line can take, also of a file that is one
// endless line. It leaves room for the largest term.
const maxLine = 256 << 20

// lineReader reads lines, however long, and counts them.
type lineReader struct {
	br   *bufio.Reader
	long []byte // a line that is longer than br's buffer
	n    int    // number of the line last read, from 1
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{br: bufio.NewReaderSize(r, 128<<10)}
}

// raw returns the next line with its line end, valid until the next call. The
// last line may lack the line end. It returns io.EOF when there is none, and
// checks that the line is UTF-8.
func (r *lineReader) raw() ([]byte, error) {
	line, err := r.br.ReadSlice('\n')
	if len(line) > 0 || !errors.Is(err, io.EOF) {
		r.n++
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.rawLong(line)
	}
	if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
		return nil, readError(err)
	}
	if !utf8.Valid(line) {
		return nil, fmt.Errorf("%w: the line is not UTF-8", triegs.ErrSyntax)
	}
	return line, nil
}

// rawLong gathers a line of which head, the first part, filled the buffer.
func (r *lineReader) rawLong(head []byte) ([]byte, error) {
	r.long = append(r.long[:0], head...)
	for {
		part, err := r.br.ReadSlice('\n')
		if len(r.long)+len(part) > maxLine {
			return nil, fmt.Errorf("%w: the line is longer than %d bytes", triegs.ErrSyntax, maxLine)
		}
		r.long = append(r.long, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.long, err
		}
	}
}

// next returns the next line that is not empty, without its line end (\n or
// \r\n), valid until the next call. It returns io.EOF when there is none.
func (r *lineReader) next() ([]byte, error) {
	for {
		line, err := r.raw()
		if err != nil {
			return nil, err
		}
		if r.n == 1 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if line = trimEnd(line); len(line) > 0 {
			return line, nil
		}
	}
}

// byteOrderMark stands at the front of many files that were UTF-16 once.
var byteOrderMark = []byte("\ufeff")

// trimEnd takes off one line end.
func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

// readError makes damaged gzip data bad input; io.EOF stays bare.
func readError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("%w: damaged gzip data: %w", triegs.ErrSyntax, err)
	}
	return cause(err)
}
