package output

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/triegs/triegs"
)

// Shape says what the rows of a query look like.
type Shape struct {
	// Columns are those of the terms.
	Columns []string
	// Values name the values behind them: aggregates, or "value" alone.
	Values []string
	// Counting tells that answers have a multiplicity, which is then the last
	// field, n.
	Counting bool
}

// ShapeOf tells what the rows of a query look like.
func ShapeOf(q *triegs.Query) Shape {
	columns := q.Columns()
	terms := len(columns) - q.Aggregates()
	shape := Shape{Columns: columns[:terms], Values: columns[terms:]}
	switch {
	case q.Semiring() != "":
		shape.Values = []string{"value"}
	case len(shape.Values) == 0:
		shape.Counting = !q.Distinct()
	}
	return shape
}

// Encoder makes the lines of rows and changes, without their ends. Rows or Deltas
// says of which query, then AppendRow or AppendChange makes one after the other.
type Encoder struct {
	format Format
	name   []byte // the printed name of the query
	keys   [][]byte
	shape  Shape
	fields []byte // of a line, separated by tabs
}

// NewEncoder returns an encoder of a format.
func NewEncoder(format Format) *Encoder { return &Encoder{format: format} }

// Rows starts the answers of a query, for AppendRow.
func (e *Encoder) Rows(query string, shape Shape) {
	if e.begin(query, shape); e.format != JSONL {
		return
	}
	columns := slices.Concat(shape.Columns, shape.Values)
	names := append([]string{ownKey("query", columns)}, columns...)
	if shape.Counting {
		names = append(names, ownKey("n", columns))
	}
	e.setKeys(append(names, ownKey("error", columns)))
}

// Deltas starts the changes of a query, for AppendChange.
func (e *Encoder) Deltas(query string, shape Shape) {
	if e.begin(query, shape); e.format != JSONL {
		return
	}
	names := append([]string{ownKey("epoch", shape.Columns), ownKey("query", shape.Columns)}, shape.Columns...)
	for _, side := range []string{ownKey("old", shape.Columns), ownKey("new", shape.Columns)} {
		if len(shape.Values) <= 1 {
			names = append(names, side)
			continue
		}
		for _, v := range shape.Values {
			names = append(names, side+" "+v)
		}
	}
	e.setKeys(append(names, ownKey("error", shape.Columns)))
}

// begin starts a query, in jsonl without its keys.
func (e *Encoder) begin(query string, shape Shape) {
	e.shape = shape
	if e.format == JSONL {
		e.name = AppendJSONString(nil, query)
	} else {
		e.name = AppendEscaped(nil, query)
	}
}

// ownKey is the key of ours in an object with the given columns. A column may be
// called query or n; it keeps its name, and the key of ours moves out of the way with
// underscores in front.
func ownKey(key string, columns []string) string {
	for slices.Contains(columns, key) {
		key = "_" + key
	}
	return key
}

// setKeys makes the keys of a line with their quotes and colons. The last is that of
// an error, which most lines do not have.
func (e *Encoder) setKeys(names []string) {
	e.keys = make([][]byte, len(names))
	for i, n := range names {
		e.keys[i] = append(AppendJSONString(nil, n), ':')
	}
}

// row sets the fields to those of an answer.
func (e *Encoder) row(r Row) {
	e.fields = append(e.fields[:0], e.name...)
	e.terms(r)
	for i := range e.shape.Values {
		e.fields = append(e.fields, '\t')
		if e.format == JSONL {
			e.fields = appendJSONValue(e.fields, r.Value(i))
		} else {
			e.fields = appendPlainValue(e.fields, r.Value(i))
		}
	}
	if e.shape.Counting {
		e.fields = strconv.AppendInt(append(e.fields, '\t'), r.Multiplicity(), 10)
	}
}

// terms appends the terms of an answer to the fields.
func (e *Encoder) terms(r Row) {
	for i := range e.shape.Columns {
		e.fields = append(e.fields, '\t')
		if e.format == JSONL {
			e.fields = AppendJSON(e.fields, r.Term(i))
		} else {
			e.fields = AppendPlain(e.fields, r.Term(i))
		}
	}
}

// change sets the fields to those of a change. Where the answer is absent the
// multiplicity is 0 for a counting query, and what is told is empty (null in jsonl)
// for others.
func (e *Encoder) change(epoch triegs.Epoch, c triegs.Change) {
	e.fields = strconv.AppendUint(e.fields[:0], uint64(epoch), 10)
	e.fields = append(append(e.fields, '\t'), e.name...)
	e.terms(c.Row)
	values := max(len(e.shape.Values), 1)
	for i := range values {
		was, _ := c.Values(i)
		e.side(was, c.Old)
	}
	for i := range values {
		_, is := c.Values(i)
		e.side(is, c.New)
	}
}

// side appends a value of one side, of which n is the multiplicity.
func (e *Encoder) side(value any, n int64) {
	e.fields = append(e.fields, '\t')
	switch {
	case e.shape.Counting:
		e.fields = strconv.AppendInt(e.fields, n, 10)
	case value == nil && e.format == JSONL:
		e.fields = append(e.fields, "null"...)
	case value == nil:
	case e.format == JSONL:
		e.fields = appendJSONValue(e.fields, value)
	default:
		e.fields = appendPlainValue(e.fields, value)
	}
}

// unfit is what a line has behind its fields when a multiplicity or a value of it
// does not fit, and was left out: 0 or null stand for it.
var unfit = []byte("\t\"overflow\"")

// AppendRow appends the line of an answer. Of one with overflow, which does not fit,
// the multiplicity is 0 and values are null, and in jsonl it has "error":"overflow".
func (e *Encoder) AppendRow(dst []byte, r Row, overflow bool) []byte {
	e.row(r)
	return e.appendLine(dst, overflow)
}

// AppendChange appends the line of a change, as AppendRow does; with overflow it is
// one side or both that do not fit.
func (e *Encoder) AppendChange(dst []byte, epoch triegs.Epoch, c triegs.Change, overflow bool) []byte {
	e.change(epoch, c)
	return e.appendLine(dst, overflow)
}

func (e *Encoder) appendLine(dst []byte, overflow bool) []byte {
	if overflow && e.format == JSONL {
		e.fields = append(e.fields, unfit...)
	}
	return e.assemble(dst, e.fields)
}

// assemble appends the fields of a row, or a header, as the format wants it. JSON
// text never holds a bare tab, so fields can be told apart in both.
func (e *Encoder) assemble(dst, fields []byte) []byte {
	if e.format != JSONL {
		return append(dst, fields...)
	}
	for i := 0; ; i++ {
		field, rest, more := bytes.Cut(fields, tab)
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(append(dst, e.keys[i]...), field...)
		if !more {
			return append(dst, '}')
		}
		fields = rest
	}
}

var tab = []byte{'\t'}
