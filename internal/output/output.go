// Package output writes the answers of queries as the command line and the server
// promise them: tsv with one header per query, or jsonl with one object per row. It
// owns how a term is printed and how rows are sorted. It never asks a store for
// anything and writes nothing but what it is given.
//
// # Types
//
// A [Writer] takes, for each query, [Writer.Begin], then [Writer.Row] for each
// answer, then [Writer.End]; [Writer.Count] writes the line of --emit count.
//
// # Guarantees
//
//   - A line of tsv has exactly one line end and one tab between two fields,
//     whatever the terms are.
//   - In jsonl the kinds of terms are told apart, and the row can be read back.
//   - Without sorting nothing is held but one buffer.
package output

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/triegs/triegs"
)

// Format is the format of the rows.
type Format string

// The formats.
const (
	TSV   Format = "tsv"
	JSONL Format = "jsonl"
)

// Row is what a row of an answer must offer; *triegs.Row does.
type Row interface {
	Term(i int) triegs.Term
	Multiplicity() int64
	Value(i int) any
}

// Writer writes the answers of one query after the other. It is used by one
// goroutine.
type Writer struct {
	w      *bufio.Writer
	sorted bool
	enc    Encoder
	line   []byte

	// Rows that wait to be sorted: fields as in line, one after the other.
	held []byte
	ends []int
}

// New returns a writer to w. With sorted the rows of a query are held until End
// and written in the order of the bytes of their printed fields.
func New(w io.Writer, format Format, sorted bool) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 64<<10), enc: Encoder{format: format}, sorted: sorted}
}

// Begin starts the answers of a query.
func (w *Writer) Begin(query string, shape Shape) error {
	w.enc.Rows(query, shape)
	if w.enc.format == JSONL {
		return nil
	}
	header := []byte("query")
	for _, c := range slices.Concat(shape.Columns, shape.Values) {
		header = AppendEscaped(append(header, '\t'), c)
	}
	if shape.Counting {
		header = append(header, "\tn"...)
	}
	return w.writeLine(header)
}

// BeginDeltas starts the changes of an update of a query, for Change and End. There
// is no header. A row has the epoch, the query, the columns, and what was and is: the
// values of a query that has some, else the multiplicities.
func (w *Writer) BeginDeltas(query string, shape Shape) { w.enc.Deltas(query, shape) }

// Row writes one answer.
func (w *Writer) Row(r Row) error {
	w.enc.row(r)
	return w.fields()
}

// Change writes one change. Where the answer is absent the multiplicity is 0 for a
// counting query, and what is told is empty (null in jsonl) for others.
func (w *Writer) Change(epoch triegs.Epoch, c triegs.Change) error {
	w.enc.change(epoch, c)
	return w.fields()
}

// fields writes the fields that the encoder has, or holds them to be sorted.
func (w *Writer) fields() error {
	if w.sorted {
		w.held = append(w.held, w.enc.fields...)
		w.ends = append(w.ends, len(w.held))
		return nil
	}
	return w.writeLine(w.enc.fields)
}

// Mark writes the position behind an update of a query: an object with the keys
// epoch, query and token, or in tsv a line that begins with the word token, where
// others begin with an epoch. Like those of changes, the keys make way for columns.
func (w *Writer) Mark(query string, shape Shape, t triegs.Token) error {
	if w.enc.format != JSONL {
		_, err := fmt.Fprintf(w.w, "token\t%d\t%s\t%s\n", t.Epoch(), AppendEscaped(nil, query), t)
		return err
	}
	key := func(k string) string { return ownKey(k, shape.Columns) }
	_, err := fmt.Fprintf(w.w, "{%q:%d,%q:%s,%q:%q}\n", key("epoch"), t.Epoch(),
		key("query"), AppendJSONString(nil, query), key("token"), t)
	return err
}

// End ends the answers of the query: held rows are written, and everything is
// flushed.
func (w *Writer) End() error {
	rows := make([][]byte, len(w.ends))
	start := 0
	for i, end := range w.ends {
		rows[i] = w.held[start:end:end]
		start = end
	}
	slices.SortFunc(rows, compareFields)
	for _, r := range rows {
		if err := w.writeLine(r); err != nil {
			return err
		}
	}
	w.held, w.ends = w.held[:0], w.ends[:0]
	return w.w.Flush()
}

// compareFields compares two rows field by field, by their bytes.
func compareFields(a, b []byte) int {
	for {
		i, j := bytes.IndexByte(a, '\t'), bytes.IndexByte(b, '\t')
		if i < 0 || j < 0 {
			return bytes.Compare(a, b)
		}
		if c := bytes.Compare(a[:i], b[:j]); c != 0 {
			return c
		}
		a, b = a[i+1:], b[j+1:]
	}
}

// writeLine writes the fields of a row, or a header, as a line.
func (w *Writer) writeLine(fields []byte) error {
	w.line = append(w.enc.assemble(w.line[:0], fields), '\n')
	_, err := w.w.Write(w.line)
	return err
}

// Count writes the number of answers of a query and the sum of their
// multiplicities, and flushes.
func (w *Writer) Count(query string, distinct, total int64) error {
	if w.enc.format == JSONL {
		fmt.Fprintf(w.w, "{\"query\":%s,\"distinct\":%d,\"total\":%d}\n", AppendJSONString(nil, query), distinct, total)
	} else {
		fmt.Fprintf(w.w, "%s\t%d\t%d\n", AppendEscaped(nil, query), distinct, total)
	}
	return w.w.Flush()
}

// Flush writes out what is buffered, and returns the first error of the writer
// below.
func (w *Writer) Flush() error { return w.w.Flush() }

// AppendPlain appends a term as tsv shows it: a plain string as it is, escaped;
// integers, floats and booleans in their plain form; anything else in N-Triples
// syntax, which holds no bare control characters.
func AppendPlain(dst []byte, t triegs.Term) []byte {
	switch t.Kind() {
	case triegs.KindString:
		return AppendEscaped(dst, t.Lexical())
	case triegs.KindInt, triegs.KindBool:
		return append(dst, t.Lexical()...)
	case triegs.KindFloat:
		f, _ := t.AsFloat()
		return appendFloat(dst, f)
	}
	return t.Append(dst)
}

// AppendEscaped appends s with \t, \n, \r and \\ for tab, newline, carriage
// return and backslash.
func AppendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\\':
			dst = append(dst, `\\`...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendFloat appends the shortest decimal form that reads back as f, with an
// exponent only where it would be long; what is no number by the names of XSD.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "INF"...)
	case math.IsInf(f, -1):
		return append(dst, "-INF"...)
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// AppendJSON appends a term in the form that jsonl input reads as the same
// term.
func AppendJSON(dst []byte, t triegs.Term) []byte {
	switch t.Kind() {
	case triegs.KindString:
		return AppendJSONString(dst, t.Lexical())
	case triegs.KindInt, triegs.KindBool:
		return append(dst, t.Lexical()...)
	case triegs.KindFloat:
		f, _ := t.AsFloat()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			break // JSON has no such numbers.
		}
		start := len(dst)
		dst = appendFloat(dst, f)
		if !bytes.ContainsAny(dst[start:], ".e") {
			dst = append(dst, ".0"...) // Without a fraction it would be an integer.
		}
		return dst
	case triegs.KindIRI:
		return append(AppendJSONString(append(dst, `{"iri":`...), t.Lexical()), '}')
	case triegs.KindBlank:
		return append(AppendJSONString(append(dst, `{"blank":`...), t.Lexical()), '}')
	case triegs.KindAbsent:
		return append(dst, "null"...)
	}
	dst = AppendJSONString(append(dst, `{"literal":`...), t.Lexical())
	if t.Kind() == triegs.KindLangString {
		dst = AppendJSONString(append(dst, `,"lang":`...), t.Lang())
	} else {
		dst = AppendJSONString(append(dst, `,"datatype":`...), t.Datatype())
	}
	return append(dst, '}')
}

// AppendJSONString appends s as a JSON string. Only what must be is escaped.
func AppendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
