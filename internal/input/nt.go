package input

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/triegs/triegs"
)

// ntReader reads N-Triples 1.1, strictly: one triple a line, a dot at its end,
// absolute IRIs, comments from # on. The predicate is the relation, so a
// relation has the IRI's text for a name. Events have no time of their own.
// Blank node labels get the scope of the input in front.
type ntReader struct {
	lines *lineReader
	rest  []byte // what follows a bare carriage return, which also ends a line
	names names
	scope string
}

func newNTReader(lines *lineReader, scope string) *ntReader {
	return &ntReader{lines: lines, names: names{}, scope: scope}
}

func (r *ntReader) line() int { return r.lines.n }

func (r *ntReader) next(rec *record, terms *slab) error {
	for {
		line, err := r.nextLine()
		if err != nil {
			return err
		}
		if line = skipBlanks(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		rec.line = r.lines.n
		return r.triple(line, &rec.ev, terms)
	}
}

// nextLine cuts at bare carriage returns, which N-Triples takes for line ends.
// They do not count in line numbers, since editors do not count them either.
func (r *ntReader) nextLine() ([]byte, error) {
	line := r.rest
	if len(line) == 0 {
		raw, err := r.lines.raw()
		if err != nil {
			return nil, err
		}
		line = trimEnd(raw)
	}
	i := bytes.IndexByte(line, '\r')
	if i < 0 {
		r.rest = nil
		return line, nil
	}
	r.rest = line[i+1:]
	return line[:i], nil
}

// triple reads one triple with its dot and what may follow it.
func (r *ntReader) triple(line []byte, ev *triegs.Event, terms *slab) error {
	subject, rest, err := r.term("subject", line)
	if err != nil {
		return err
	}
	if k := subject.Kind(); k != triegs.KindIRI && k != triegs.KindBlank {
		return fmt.Errorf("%w: the subject is neither an IRI nor a blank node", triegs.ErrSyntax)
	}
	predicate, rest, err := r.term("predicate", rest)
	if err != nil {
		return err
	}
	if predicate.Kind() != triegs.KindIRI {
		return fmt.Errorf("%w: the predicate is not an IRI", triegs.ErrSyntax)
	}
	object, rest, err := r.term("object", rest)
	if err != nil {
		return err
	}
	if rest = skipBlanks(rest); len(rest) == 0 || rest[0] != '.' {
		return fmt.Errorf("%w: no dot after the object", triegs.ErrSyntax)
	}
	if rest = skipBlanks(rest[1:]); len(rest) > 0 && rest[0] != '#' {
		return fmt.Errorf("%w: %q after the dot", triegs.ErrSyntax, clip(rest))
	}
	ev.Relation = r.names.get([]byte(predicate.Lexical()))
	ev.Tuple = terms.take(2)
	ev.Tuple[0], ev.Tuple[1] = subject, object
	return nil
}

// term reads the term at the front of b, after blanks, and returns what
// follows it. role names it in messages.
func (r *ntReader) term(role string, b []byte) (triegs.Term, []byte, error) {
	b = skipBlanks(b)
	n := termEnd(b)
	if n == 0 {
		return triegs.Term{}, nil, fmt.Errorf("%w: no %s", triegs.ErrSyntax, role)
	}
	t, err := triegs.ParseTerm(string(b[:n]))
	if err != nil {
		return triegs.Term{}, nil, fmt.Errorf("%s: %w", role, err)
	}
	switch t.Kind() {
	case triegs.KindBlank:
		t = triegs.Blank(r.scope + t.Lexical())
	case triegs.KindIRI:
		err = absolute(role, t.Lexical())
	case triegs.KindTyped:
		err = absolute("datatype", t.Datatype())
	}
	return t, b[n:], err
}

// termEnd returns the length of the token that b begins with: all that could
// belong to the term, whether it is one or not.
func termEnd(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '<':
		if i := bytes.IndexByte(b, '>'); i >= 0 {
			return i + 1
		}
		return len(b)
	case '"':
		return literalEnd(b)
	}
	// A label may hold dots but not end in one.
	n := bytes.IndexAny(b, " \t<\"#")
	if n < 0 {
		n = len(b)
	}
	return len(bytes.TrimRight(b[:n], "."))
}

// literalEnd is termEnd for a literal.
func literalEnd(b []byte) int {
	i := 1
	for i < len(b) && b[i] != '"' {
		if b[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(b) {
		return len(b)
	}
	i++
	switch {
	case bytes.HasPrefix(b[i:], []byte("^^<")):
		if j := bytes.IndexByte(b[i:], '>'); j >= 0 {
			return i + j + 1
		}
		return len(b)
	case i < len(b) && b[i] == '@':
		for i++; i < len(b) && (isAlphanumeric(b[i]) || b[i] == '-'); i++ {
		}
	}
	return i
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// absolute refuses an IRI without a scheme: N-Triples has no base to resolve it
// against.
func absolute(role, iri string) error {
	scheme, _, ok := strings.Cut(iri, ":")
	for i := 0; ok && i < len(scheme); i++ {
		c := scheme[i]
		ok = isAlphanumeric(c) && (i > 0 || c > '9') || i > 0 && strings.IndexByte("+-.", c) >= 0
	}
	if !ok || scheme == "" {
		return fmt.Errorf("%w: %s <%s> is not an absolute IRI", triegs.ErrSyntax, role, clip([]byte(iri)))
	}
	return nil
}

// skipBlanks takes spaces and tabs off the front, the only white space inside a
// line.
func skipBlanks(b []byte) []byte { return bytes.TrimLeft(b, " \t") }
