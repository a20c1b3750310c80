package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/triegs/triegs"
)

// csvReader reads RFC 4180 records below a header row.
//
// The standard library's reader cannot be used: it gives "" both for a quoted
// and for a bare empty field, where the first is the empty string and the
// second is no value (TERM-01), and it turns \r\n inside quotes into \n, where
// a literal must stay as written (TERM-10).
//
// Columns are found by name. `label` is needed; `time`, `value`, `op` and `id`
// are known; every other column is a node of the tuple, in header order, with
// `source` before `target` whatever their order. A node or value column may end
// in a type: `age:int`. Without one a node is a plain string, a value is a
// number if it parses as one, else a plain string. A bare empty time, value, op
// or id is none; a bare empty node is ErrValue. `-` in column op retracts.
type csvReader struct {
	lines  *lineReader
	names  names
	header *csvHeader
	buf    []byte // the text of all fields of the record
	fields []csvField
	first  int // line at which the record begins
}

// csvField is one field of the current record.
type csvField struct {
	start, end int // in buf
	quoted     bool
}

// csvHeader is what the header row says. Indexes are -1 for columns that are
// not there.
type csvHeader struct {
	columns                    int
	time, label, value, op, id int
	valueType                  csvType
	nodes                      []csvNode
}

type csvNode struct {
	column int
	name   string
	typ    csvType
}

// csvType turns the text of a field into a term.
type csvType func(b []byte) (triegs.Term, error)

// csvTypes are the types that a column may name.
var csvTypes = map[string]csvType{
	"string": csvString,
	"int":    parseInt,
	"float": func(b []byte) (triegs.Term, error) {
		if !isDecimal(b) {
			return triegs.Term{}, fmt.Errorf("%w: %q is not a decimal number", triegs.ErrValue, clip(b))
		}
		return parseFloat(b)
	},
	"bool": func(b []byte) (triegs.Term, error) {
		switch string(b) {
		case "true", "false":
			return triegs.Bool(b[0] == 't'), nil
		}
		return triegs.Term{}, fmt.Errorf("%w: %q is neither true nor false", triegs.ErrValue, clip(b))
	},
	"time": func(b []byte) (triegs.Term, error) {
		t, err := parseTime(b)
		return triegs.Time(t), err
	},
	"iri": func(b []byte) (triegs.Term, error) {
		t := triegs.IRI(string(b))
		return t, t.Validate()
	},
	"term": func(b []byte) (triegs.Term, error) { return triegs.ParseTerm(string(b)) },
}

func csvString(b []byte) (triegs.Term, error) { return triegs.String(string(b)), nil }

func newCSVReader(lines *lineReader) *csvReader {
	return &csvReader{lines: lines, names: names{}}
}

// line returns the line at which the current record begins.
func (r *csvReader) line() int { return r.first }

func (r *csvReader) next(rec *record, terms *slab) error {
	if r.header == nil {
		if err := r.readRecord(); err != nil {
			return err // An empty file has no header and no records.
		}
		h, err := r.parseHeader()
		if err != nil {
			return err
		}
		r.header = h
	}
	if err := r.readRecord(); err != nil {
		return err
	}
	rec.line = r.first
	return r.event(&rec.ev, terms)
}

// event makes the current record an event.
func (r *csvReader) event(ev *triegs.Event, terms *slab) (err error) {
	h := r.header
	if len(r.fields) != h.columns {
		return fmt.Errorf("%w: %d fields under a header of %d", triegs.ErrSyntax, len(r.fields), h.columns)
	}
	switch op := r.text(h.op); string(op) {
	case "", "+":
	case "-":
		ev.Op = triegs.Delete
	default:
		return fmt.Errorf("%w: op %q, want - or + or nothing", triegs.ErrValue, clip(op))
	}
	if text := r.text(h.time); len(text) > 0 {
		if ev.Time, err = parseTime(text); err != nil {
			return err
		}
	}
	label := r.text(h.label)
	if len(label) == 0 {
		return fmt.Errorf("%w: the label is empty", triegs.ErrValue)
	}
	ev.Relation = r.names.get(label)
	ev.ID = string(r.text(h.id))
	if h.value >= 0 && !r.bareEmpty(h.value) {
		if ev.Value, err = h.valueType(r.text(h.value)); err != nil {
			return fmt.Errorf("column value: %w", err)
		}
	}
	ev.Tuple = terms.take(len(h.nodes))
	for i, n := range h.nodes {
		if r.bareEmpty(n.column) {
			return fmt.Errorf("%w: column %s is empty; the empty string is written \"\"", triegs.ErrValue, n.name)
		}
		if ev.Tuple[i], err = n.typ(r.text(n.column)); err != nil {
			return fmt.Errorf("column %s: %w", n.name, err)
		}
	}
	return nil
}

// text returns the text of a field, nil for a column that is not there.
func (r *csvReader) text(column int) []byte {
	if column < 0 {
		return nil
	}
	f := r.fields[column]
	return r.buf[f.start:f.end]
}

// bareEmpty tells whether a field is empty and not quoted.
func (r *csvReader) bareEmpty(column int) bool {
	f := r.fields[column]
	return f.start == f.end && !f.quoted
}

// parseHeader reads the current record as the header row.
func (r *csvReader) parseHeader() (*csvHeader, error) {
	h := &csvHeader{columns: len(r.fields), time: -1, label: -1, value: -1, op: -1, id: -1, valueType: parseValue}
	seen := map[string]int{}
	for i := range r.fields {
		name, typ, err := splitColumn(string(r.text(i)))
		if err != nil {
			return nil, err
		}
		if _, twice := seen[name]; twice {
			return nil, fmt.Errorf("%w: column %q is there twice", triegs.ErrSyntax, name)
		}
		seen[name] = i
		known := map[string]*int{"time": &h.time, "label": &h.label, "value": &h.value, "op": &h.op, "id": &h.id}
		at, ok := known[name]
		if !ok {
			if typ == nil {
				typ = csvString
			}
			h.nodes = append(h.nodes, csvNode{column: i, name: name, typ: typ})
			continue
		}
		if typ != nil && name != "value" {
			return nil, fmt.Errorf("%w: column %s cannot have a type", triegs.ErrSyntax, name)
		}
		if typ != nil {
			h.valueType = typ
		}
		*at = i
	}
	return h, h.check(seen)
}

// check refuses a header without a label or nodes, and puts source before
// target.
func (h *csvHeader) check(seen map[string]int) error {
	source, hasSource := seen["source"]
	target, hasTarget := seen["target"]
	switch {
	case h.label < 0:
		return fmt.Errorf("%w: the header has no column label", triegs.ErrSyntax)
	case len(h.nodes) == 0:
		return fmt.Errorf("%w: the header has no node column", triegs.ErrSyntax)
	case hasSource != hasTarget:
		return fmt.Errorf("%w: the header has only one of source and target", triegs.ErrSyntax)
	}
	if hasSource && target < source {
		i, j := h.node(source), h.node(target)
		h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i]
	}
	return nil
}

// node returns the index in nodes of a column.
func (h *csvHeader) node(column int) int {
	for i, n := range h.nodes {
		if n.column == column {
			return i
		}
	}
	return -1
}

// splitColumn splits a column's name from its type, nil if it has none.
func splitColumn(s string) (name string, typ csvType, err error) {
	name, suffix, typed := strings.Cut(s, ":")
	if name == "" {
		return "", nil, fmt.Errorf("%w: the header has a column without a name", triegs.ErrSyntax)
	}
	if !typed {
		return name, nil, nil
	}
	typ, ok := csvTypes[suffix]
	if !ok {
		return "", nil, fmt.Errorf("%w: column %s has the unknown type %q", triegs.ErrSyntax, name, suffix)
	}
	return name, typ, nil
}

// readRecord reads the next record into buf and fields, skipping empty lines.
func (r *csvReader) readRecord() error {
	r.buf, r.fields = r.buf[:0], r.fields[:0]
	var line []byte
	for {
		var err error
		line, err = r.lines.raw()
		r.first = r.lines.n
		if err != nil {
			return err
		}
		if r.lines.n == 1 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if len(trimEnd(line)) > 0 {
			break
		}
	}
	for more := true; more; {
		var err error
		if line, more, err = r.readField(line); err != nil {
			return err
		}
	}
	return nil
}

// readField reads the field at the front of line and returns what follows its
// comma; more is false if it was the last field of the record.
func (r *csvReader) readField(line []byte) (rest []byte, more bool, err error) {
	f := csvField{start: len(r.buf)}
	if len(line) > 0 && line[0] == '"' {
		f.quoted = true
		if line, err = r.readQuoted(line[1:]); err != nil {
			return nil, false, err
		}
	} else {
		i := bytes.IndexByte(line, ',')
		if i < 0 {
			i = len(trimEnd(line))
		}
		if bytes.IndexByte(line[:i], '"') >= 0 {
			return nil, false, fmt.Errorf("%w: field %d has a quote in a field that is not quoted", triegs.ErrSyntax, len(r.fields)+1)
		}
		r.buf = append(r.buf, line[:i]...)
		line = line[i:]
	}
	f.end = len(r.buf)
	r.fields = append(r.fields, f)
	if len(line) > 0 && line[0] == ',' {
		return line[1:], true, nil
	}
	if len(trimEnd(line)) > 0 {
		return nil, false, fmt.Errorf("%w: field %d goes on after its closing quote", triegs.ErrSyntax, len(r.fields))
	}
	return nil, false, nil
}

// readQuoted reads up to the closing quote, over line ends, and returns what
// follows it.
func (r *csvReader) readQuoted(line []byte) ([]byte, error) {
	for {
		i := bytes.IndexByte(line, '"')
		if i < 0 {
			r.buf = append(r.buf, line...)
			if len(r.buf) > maxLine {
				return nil, fmt.Errorf("%w: the record is longer than %d bytes", triegs.ErrSyntax, maxLine)
			}
			var err error
			line, err = r.lines.raw()
			if errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("%w: field %d has no closing quote", triegs.ErrSyntax, len(r.fields)+1)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		r.buf = append(r.buf, line[:i]...)
		line = line[i+1:]
		if len(line) == 0 || line[0] != '"' {
			return line, nil
		}
		r.buf = append(r.buf, '"')
		line = line[1:]
	}
}
