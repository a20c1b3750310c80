package query

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/triegs/triegs/internal/errs"
)

// Limits of a query text. What goes beyond them is refused with ErrUnsupported,
// so that no text can exhaust the stack or blow up planning.
const (
	MaxAtoms = 1 << 14
	MaxDepth = 200 // of brackets inside each other
)

// String writes line:column.
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// Syntax makes an error that wraps ErrSyntax and begins with the position.
func (p Pos) Syntax(format string, args ...any) error {
	return fmt.Errorf("%v: %w: %s", p, errs.ErrSyntax, fmt.Sprintf(format, args...))
}

// Unsupported makes an error that wraps ErrUnsupported and begins with the
// position; the message names the construct.
func (p Pos) Unsupported(format string, args ...any) error {
	return fmt.Errorf("%v: %w: %s", p, errs.ErrUnsupported, fmt.Sprintf(format, args...))
}

// Cursor is a place in a text that is being read, and its line and column. It
// is a plain value: a copy is a place to come back to.
type Cursor struct {
	rest string
	pos  Pos
}

// NewCursor stands at the start of text, behind a byte order mark if it has
// one. Text that is not UTF-8 is refused with ErrSyntax.
func NewCursor(text string) (Cursor, error) {
	c := Cursor{rest: text, pos: Pos{Line: 1, Col: 1}}
	if !utf8.ValidString(text) {
		n := 0
		for {
			r, size := utf8.DecodeRuneInString(text[n:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}
		c.Advance(n)
		return Cursor{}, c.pos.Syntax("the text is not UTF-8")
	}
	c.rest = strings.TrimPrefix(text, "\ufeff")
	return c, nil
}

// Rest is the text from here on.
func (c *Cursor) Rest() string { return c.rest }

// Pos is the line and column of the next character.
func (c *Cursor) Pos() Pos { return c.pos }

// Advance moves over n bytes, which must end at a character's border. The cost
// is linear in n.
func (c *Cursor) Advance(n int) {
	part := c.rest[:n]
	c.rest = c.rest[n:]
	if lines := strings.Count(part, "\n"); lines > 0 {
		c.pos.Line += lines
		c.pos.Col = 1
		part = part[strings.LastIndexByte(part, '\n')+1:]
	}
	c.pos.Col += utf8.RuneCountInString(part)
}

// SkipSpace moves over blanks, line breaks and comments; a comment begins with
// a character of comments and goes to the end of its line.
func (c *Cursor) SkipSpace(comments string) {
	for {
		n := 0
		for n < len(c.rest) && strings.IndexByte(" \t\r\n", c.rest[n]) >= 0 {
			n++
		}
		if n < len(c.rest) && strings.IndexByte(comments, c.rest[n]) >= 0 {
			end := strings.IndexAny(c.rest[n:], "\r\n")
			if end < 0 {
				end = len(c.rest) - n
			}
			n += end
		}
		if n == 0 {
			return
		}
		c.Advance(n)
	}
}

// Quote quotes a piece of a text for a message, cut where it is long.
func Quote(s string) string {
	const most = 40 // characters
	n := 0
	for i := range s {
		if n == most {
			return fmt.Sprintf("%q...", s[:i])
		}
		n++
	}
	return fmt.Sprintf("%q", s)
}
