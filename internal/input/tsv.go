package input

import (
	"bytes"
	"fmt"

	"github.com/triegs/triegs"
)

// tsvReader reads `time label source target [value]`, separated by tabs. A line
// that begins with `-` and a tab retracts. Nodes are plain strings, as written:
// nothing is unescaped, and an empty node is the empty string. An empty value
// column is no value, since many writers fill all columns.
type tsvReader struct {
	lines *lineReader
	names names
}

func newTSVReader(lines *lineReader) *tsvReader {
	return &tsvReader{lines: lines, names: names{}}
}

func (r *tsvReader) line() int { return r.lines.n }

// next reads one line. It allocates the two node strings and nothing else.
func (r *tsvReader) next(rec *record, terms *slab) error {
	line, err := r.lines.next()
	if err != nil {
		return err
	}
	rec.line = r.lines.n
	if len(line) >= 2 && line[0] == '-' && line[1] == '\t' {
		rec.ev.Op = triegs.Delete
		line = line[2:]
	}
	var cols [5][]byte
	n, rest := 0, line
	for more := true; more; n++ {
		if n == len(cols) {
			return fmt.Errorf("%w: more than 5 columns", triegs.ErrSyntax)
		}
		cols[n], rest, more = bytes.Cut(rest, tab)
	}
	if n < 4 {
		return fmt.Errorf("%w: %d columns, want time, label, source, target and perhaps value", triegs.ErrSyntax, n)
	}
	if rec.ev.Time, err = parseTime(cols[0]); err != nil {
		return err
	}
	if len(cols[1]) == 0 {
		return fmt.Errorf("%w: the label is empty", triegs.ErrValue)
	}
	rec.ev.Relation = r.names.get(cols[1])
	rec.ev.Tuple = terms.take(2)
	rec.ev.Tuple[0] = triegs.String(string(cols[2]))
	rec.ev.Tuple[1] = triegs.String(string(cols[3]))
	if len(cols[4]) > 0 {
		rec.ev.Value, err = parseValue(cols[4])
	}
	return err
}

var tab = []byte{'\t'}
