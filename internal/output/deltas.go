package output

import (
	"slices"
	"strconv"

	"github.com/triegs/triegs"
)

// BeginDeltas starts the changes of an update of a query, for Change and End. There
// is no header. A row has the epoch, the query, the columns, and what was and is: the
// values of a query that has some, else the multiplicities.
func (w *Writer) BeginDeltas(query string, shape Shape) {
	w.shape = shape
	if w.format != JSONL {
		w.name = AppendEscaped(nil, query)
		return
	}
	w.name = AppendJSONString(nil, query)
	own := func(key string) string { // as in jsonKeys
		for slices.Contains(shape.Columns, key) {
			key = "_" + key
		}
		return key
	}
	names := append([]string{own("epoch")}, shape.Columns...)
	for _, side := range []string{own("old"), own("new")} {
		if len(shape.Values) <= 1 {
			names = append(names, side)
			continue
		}
		for _, v := range shape.Values {
			names = append(names, side+" "+v)
		}
	}
	w.keys = jsonKeys(names, false)
	w.keys[0], w.keys[1] = w.keys[1], w.keys[0]
}

// Change writes one change. Where the answer is absent the multiplicity is 0 for a
// counting query, and what is told is empty (null in jsonl) for others.
func (w *Writer) Change(epoch triegs.Epoch, c triegs.Change) error {
	w.line = strconv.AppendUint(w.line[:0], uint64(epoch), 10)
	w.line = append(append(w.line, '\t'), w.name...)
	for i := range w.shape.Columns {
		w.line = append(w.line, '\t')
		if w.format == JSONL {
			w.line = AppendJSON(w.line, c.Row.Term(i))
		} else {
			w.line = AppendPlain(w.line, c.Row.Term(i))
		}
	}
	values := max(len(w.shape.Values), 1)
	for i := range values {
		was, _ := c.Values(i)
		w.appendSide(was, c.Old)
	}
	for i := range values {
		_, is := c.Values(i)
		w.appendSide(is, c.New)
	}
	if w.sorted {
		w.held = append(w.held, w.line...)
		w.ends = append(w.ends, len(w.held))
		return nil
	}
	return w.writeLine(w.line)
}

// appendSide appends a value of one side, of which n is the multiplicity.
func (w *Writer) appendSide(value any, n int64) {
	w.line = append(w.line, '\t')
	switch {
	case w.shape.Counting:
		w.line = strconv.AppendInt(w.line, n, 10)
	case value == nil && w.format == JSONL:
		w.line = append(w.line, "null"...)
	case value == nil:
	case w.format == JSONL:
		w.line = appendJSONValue(w.line, value)
	default:
		w.line = appendPlainValue(w.line, value)
	}
}
