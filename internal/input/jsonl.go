package input

import (
	"fmt"
	"unicode/utf8"

	"github.com/triegs/triegs"
)

// jsonlReader reads one JSON object a line: an event
//
//	{"op":"insert","relation":"pay","tuple":["a","b",12.5],"time":"...","id":"e1","value":1}
//
// or {"op":"commit"}, optionally with "time" and "watermark". op defaults to insert; a delete
// with an id needs neither relation nor tuple.
//
// In a tuple a JSON string is a plain string, an integer an integer, another
// number a float, true and false booleans, and {"iri":...}, {"literal":...}
// with "lang" or "datatype", and {"blank":...} the rest.
type jsonlReader struct {
	lines *lineReader
	names names
	tuple []triegs.Term // of the line being read
}

func newJSONLReader(lines *lineReader) *jsonlReader {
	return &jsonlReader{lines: lines, names: names{}}
}

func (r *jsonlReader) line() int { return r.lines.n }

func (r *jsonlReader) next(rec *record, terms *slab) error {
	line, err := r.lines.next()
	if err != nil {
		return err
	}
	rec.line = r.lines.n
	return r.parse(line, rec, terms)
}

// The keys of a line, as bits of what was seen.
const (
	keyOp = 1 << iota
	keyRelation
	keyTuple
	keyTime
	keyID
	keyValue
	keyWatermark
)

// lineKey is one of them with its name.
type lineKey struct {
	bit  uint
	name string
}

var lineKeys = map[string]lineKey{
	"op":        {keyOp, "op"},
	"relation":  {keyRelation, "relation"},
	"tuple":     {keyTuple, "tuple"},
	"time":      {keyTime, "time"},
	"id":        {keyID, "id"},
	"value":     {keyValue, "value"},
	"watermark": {keyWatermark, "watermark"},
}

// parse reads one line into rec.
func (r *jsonlReader) parse(line []byte, rec *record, terms *slab) error {
	s := &scanner{b: line}
	r.tuple = r.tuple[:0]
	var seen uint
	err := s.object(func(key []byte) error {
		k, ok := lineKeys[string(key)]
		if !ok {
			return s.errorf("unknown key %q", clip(key))
		}
		if seen&k.bit != 0 {
			return s.errorf("key %q is there twice", k.name)
		}
		seen |= k.bit
		if err := r.field(s, k.bit, rec); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		return nil
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return err
	}
	return r.check(seen, rec, terms)
}

// field reads the value of one key.
func (r *jsonlReader) field(s *scanner, key uint, rec *record) (err error) {
	var text []byte
	switch key {
	case keyOp:
		if text, err = s.text(); err != nil {
			return err
		}
		switch string(text) {
		case "insert":
		case "delete":
			rec.ev.Op = triegs.Delete
		case "commit":
			rec.commit = true
		default:
			err = fmt.Errorf("%w: %q, want insert, delete or commit", triegs.ErrValue, clip(text))
		}
	case keyRelation:
		if text, err = s.text(); err == nil && len(text) == 0 {
			err = fmt.Errorf("%w: empty", triegs.ErrValue)
		}
		if err == nil {
			rec.ev.Relation = r.names.get(text)
		}
	case keyID:
		if text, err = s.text(); err == nil && len(text) == 0 {
			err = fmt.Errorf("%w: empty", triegs.ErrValue)
		}
		rec.ev.ID = string(text)
	case keyTuple:
		err = s.array(func() error {
			t, err := s.term()
			r.tuple = append(r.tuple, t)
			return err
		})
	case keyTime:
		if text, err = s.textOrInteger(); err == nil {
			rec.time, err = parseTime(text)
			rec.ev.Time = rec.time
		}
	case keyValue:
		rec.ev.Value, err = s.textOrNumber()
	case keyWatermark:
		if text, err = s.textOrInteger(); err == nil {
			rec.watermark, err = parseTime(text)
		}
	}
	return err
}

// check tells whether the keys of the line belong together, and hands over the
// tuple.
func (r *jsonlReader) check(seen uint, rec *record, terms *slab) error {
	if rec.commit {
		if seen&^(keyOp|keyTime|keyWatermark) != 0 {
			return fmt.Errorf("%w: a commit has no key but op, time and watermark", triegs.ErrSyntax)
		}
		return nil
	}
	if seen&keyWatermark != 0 {
		return fmt.Errorf("%w: only a commit has a watermark", triegs.ErrSyntax)
	}
	byID := rec.ev.Op == triegs.Delete && seen&keyID != 0
	switch {
	case seen&keyRelation == 0 && (!byID || seen&keyTuple != 0):
		return fmt.Errorf("%w: no relation", triegs.ErrSyntax)
	case seen&keyTuple == 0 && (!byID || seen&keyRelation != 0):
		return fmt.Errorf("%w: no tuple", triegs.ErrSyntax)
	case seen&keyTuple != 0 && len(r.tuple) == 0:
		return fmt.Errorf("%w: the tuple is empty", triegs.ErrArity)
	}
	if len(r.tuple) > 0 {
		rec.ev.Tuple = terms.take(len(r.tuple))
		copy(rec.ev.Tuple, r.tuple)
	}
	return nil
}

// ParseTerm reads one term in the form that it has in a tuple of jsonl. Errors:
// ErrSyntax, also for text behind it, and ErrValue.
func ParseTerm(text string) (triegs.Term, error) {
	if !utf8.ValidString(text) {
		return triegs.Term{}, fmt.Errorf("%w: not UTF-8", triegs.ErrSyntax)
	}
	s := &scanner{b: []byte(text)}
	t, err := s.term()
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return triegs.Term{}, err
	}
	return t, nil
}

// term reads a term as jsonl writes it.
func (s *scanner) term() (triegs.Term, error) {
	switch c := s.peek(); {
	case c == '"':
		b, err := s.text()
		return triegs.String(string(b)), err
	case c == '{':
		return s.termObject()
	case c == 't' || c == 'f':
		v, err := s.boolean()
		return triegs.Bool(v), err
	case c == 'n':
		return triegs.Term{}, fmt.Errorf("%w: null is no term", triegs.ErrValue)
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	return triegs.Term{}, s.errorf("want a term")
}

// number reads an integer as an integer and any other number as a float.
func (s *scanner) number() (triegs.Term, error) {
	b, integer, err := s.numeral()
	if err != nil {
		return triegs.Term{}, err
	}
	if integer {
		return parseInt(b)
	}
	return parseFloat(b)
}

// textOrNumber reads a value: a number, or a string.
func (s *scanner) textOrNumber() (triegs.Term, error) {
	switch c := s.peek(); {
	case c == '"':
		b, err := s.text()
		return triegs.String(string(b)), err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	return triegs.Term{}, fmt.Errorf("%w: want a number or a string", triegs.ErrValue)
}

// textOrInteger reads a time, unread as yet.
func (s *scanner) textOrInteger() ([]byte, error) {
	switch c := s.peek(); {
	case c == '"':
		return s.text()
	case c == '-' || c >= '0' && c <= '9':
		b, integer, err := s.numeral()
		if err == nil && !integer {
			err = fmt.Errorf("%w: %s is not an integer", triegs.ErrTime, clip(b))
		}
		return b, err
	}
	return nil, fmt.Errorf("%w: want a string or an integer", triegs.ErrTime)
}

// termObject reads {"iri":...}, {"blank":...} or {"literal":...} with at most
// one of "lang" and "datatype".
func (s *scanner) termObject() (triegs.Term, error) {
	parts := map[string]string{}
	err := s.object(func(key []byte) error {
		k := string(key)
		switch k {
		case "iri", "blank", "literal", "lang", "datatype":
		default:
			return s.errorf("unknown key %q in a term", clip(key))
		}
		if _, twice := parts[k]; twice {
			return s.errorf("key %q is there twice", k)
		}
		v, err := s.text()
		parts[k] = string(v)
		return err
	})
	if err != nil {
		return triegs.Term{}, err
	}
	has := func(keys ...string) bool {
		for _, k := range keys {
			if _, ok := parts[k]; !ok {
				return false
			}
		}
		return len(parts) == len(keys)
	}
	var t triegs.Term
	switch {
	case has("iri"):
		t = triegs.IRI(parts["iri"])
	case has("blank"):
		t = triegs.Blank(parts["blank"])
	case has("literal"):
		t = triegs.String(parts["literal"])
	case has("literal", "lang"):
		t = triegs.LangString(parts["literal"], parts["lang"])
	case has("literal", "datatype"):
		t = triegs.Typed(parts["literal"], parts["datatype"])
	default:
		return triegs.Term{}, s.errorf("a term is one of iri, blank, literal, literal with lang, literal with datatype")
	}
	return t, t.Validate()
}
