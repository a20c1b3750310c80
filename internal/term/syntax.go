package term

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/triegs/triegs/internal/errs"
)

// SyntaxError is a fault in the text of a term. It wraps ErrSyntax.
type SyntaxError struct {
	Offset int    // in bytes from the start of the text, from 0
	Column int    // the same in runes, from 1
	Msg    string // what is wrong there
}

// Error tells the column and the fault.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("column %d: %v: %s", e.Column, errs.ErrSyntax, e.Msg)
}

// Unwrap returns ErrSyntax.
func (e *SyntaxError) Unwrap() error { return errs.ErrSyntax }

func syntaxError(s string, offset int, format string, args ...any) error {
	offset = min(offset, len(s))
	return &SyntaxError{
		Offset: offset,
		Column: utf8.RuneCountInString(s[:offset]) + 1,
		Msg:    fmt.Sprintf(format, args...),
	}
}

// Parse reads one term in N-Triples syntax, without anything before or after
// it. It is strict: only the forms <iri>, _:label, "text", "text"@tag and
// "text"^^<iri> of N-Triples 1.1, valid UTF-8, no surrogates in escapes, and no
// character in an IRI, raw or escaped, that IRIs forbid. An IRI may be relative,
// which a document in N-Triples may not use. Errors are *SyntaxError. The term
// may share the memory of s.
func Parse(s string) (Term, error) {
	t, n, err := ParsePrefix(s)
	if err != nil {
		return Term{}, err
	}
	if n != len(s) {
		return Term{}, syntaxError(s, n, "unexpected text after the term")
	}
	return t, nil
}

// ParsePrefix reads the term that s begins with, as Parse does, and the number
// of bytes it takes.
func ParsePrefix(s string) (t Term, n int, err error) {
	switch {
	case strings.HasPrefix(s, "<"):
		iri, n, err := parseIRI(s, 0)
		if err != nil {
			return Term{}, 0, err
		}
		return IRI(iri), n, nil
	case strings.HasPrefix(s, "_:"):
		n := labelLen(s[2:])
		if n == 0 {
			return Term{}, 0, syntaxError(s, 2, "a blank node needs a label")
		}
		return Blank(s[2 : 2+n]), 2 + n, nil
	case strings.HasPrefix(s, `"`):
		return parseLiteral(s)
	case s == "":
		return Term{}, 0, syntaxError(s, 0, "no term")
	}
	r, _ := utf8.DecodeRuneInString(s)
	return Term{}, 0, syntaxError(s, 0, "a term cannot begin with %q", r)
}

func parseLiteral(s string) (Term, int, error) {
	text, n, err := parseQuoted(s)
	if err != nil {
		return Term{}, 0, err
	}
	switch rest := s[n:]; {
	case strings.HasPrefix(rest, "@"):
		k := langLen(rest[1:])
		if k == 0 {
			return Term{}, 0, syntaxError(s, n+1, "bad language tag")
		}
		return LangString(text, rest[1:1+k]), n + 1 + k, nil
	case strings.HasPrefix(rest, "^^"):
		if !strings.HasPrefix(rest, "^^<") {
			return Term{}, 0, syntaxError(s, n+2, "a datatype must be an IRI in <>")
		}
		iri, end, err := parseIRI(s, n+2)
		if err != nil {
			return Term{}, 0, err
		}
		if iri == "" {
			return Term{}, 0, syntaxError(s, n+2, "empty datatype")
		}
		return Typed(text, iri), end, nil
	}
	return String(text), n, nil
}

// parseQuoted reads the quoted text at the start of s.
func parseQuoted(s string) (text string, n int, err error) {
	var sb strings.Builder
	from := 1 // start of the part that is not yet in sb
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == '"':
			if sb.Len() == 0 {
				return s[from:i], i + 1, nil
			}
			sb.WriteString(s[from:i])
			return sb.String(), i + 1, nil
		case c == '\n' || c == '\r':
			return "", 0, syntaxError(s, i, "line break in a string")
		case c == '\\':
			r, size, err := Unescape(s, i, true)
			if err != nil {
				return "", 0, err
			}
			sb.WriteString(s[from:i])
			sb.WriteRune(r)
			i += size
			from = i
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				return "", 0, syntaxError(s, i, "text is not UTF-8")
			}
			i += size
		}
	}
	return "", 0, syntaxError(s, 0, "the string is not closed")
}

// parseIRI reads the <iri> at s[at:]; end is the byte after it.
func parseIRI(s string, at int) (iri string, end int, err error) {
	var sb strings.Builder
	escaped := false
	from := at + 1
	for i := at + 1; i < len(s); {
		switch c := s[i]; {
		case c == '>':
			if !escaped {
				return s[from:i], i + 1, nil
			}
			sb.WriteString(s[from:i])
			return sb.String(), i + 1, nil
		case c == '\\':
			r, size, err := Unescape(s, i, false)
			if err != nil {
				return "", 0, err
			}
			if r < utf8.RuneSelf && forbiddenInIRI(byte(r)) {
				return "", 0, syntaxError(s, i, "character %q in IRI", r)
			}
			sb.WriteString(s[from:i])
			sb.WriteRune(r)
			i += size
			from, escaped = i, true
		case forbiddenInIRI(c):
			return "", 0, syntaxError(s, i, "character %q in IRI", c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				return "", 0, syntaxError(s, i, "text is not UTF-8")
			}
			i += size
		}
	}
	return "", 0, syntaxError(s, at, "the IRI is not closed")
}

// Unescape reads the escape at s[at] (a backslash): \uXXXX and \UXXXXXXXX, and
// in a string also \t \b \n \r \f \" \' \\. It returns the character and the
// bytes of the escape.
func Unescape(s string, at int, inString bool) (r rune, size int, err error) {
	if at+1 >= len(s) {
		return 0, 0, syntaxError(s, at, "unfinished escape")
	}
	c := s[at+1]
	width := 0
	switch {
	case c == 'u':
		width = 4
	case c == 'U':
		width = 8
	case inString && strings.IndexByte(escapeLetters, c) >= 0:
		return rune(escapeValues[strings.IndexByte(escapeLetters, c)]), 2, nil
	default:
		return 0, 0, syntaxError(s, at, `unknown escape \%c`, firstRune(s[at+1:]))
	}
	for i := at + 2; i < at+2+width; i++ {
		if i >= len(s) || hexValue(s[i]) < 0 {
			return 0, 0, syntaxError(s, at, `\%c needs %d hexadecimal digits`, c, width)
		}
		if r > utf8.MaxRune {
			break // the next digit could overflow; it is refused below
		}
		r = r<<4 | rune(hexValue(s[i]))
	}
	if !utf8.ValidRune(r) {
		return 0, 0, syntaxError(s, at, "the escape is no Unicode character")
	}
	return r, 2 + width, nil
}

const (
	escapeLetters = `tbnrf"'\`
	escapeValues  = "\t\b\n\r\f\"'\\"
)

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func hexValue(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func forbiddenInIRI(c byte) bool {
	return c <= ' ' || strings.IndexByte("<>\"{}|^`\\", c) >= 0
}

func badIRIByte(s string) int {
	for i := range len(s) {
		if forbiddenInIRI(s[i]) {
			return i
		}
	}
	return -1
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// langLen is the length of the language tag that s begins with, 0 if there is
// none.
func langLen(s string) int {
	n := 0
	for n < len(s) && isLetter(s[n]) {
		n++
	}
	if n == 0 {
		return 0
	}
	for n < len(s) && s[n] == '-' {
		k := n + 1
		for k < len(s) && (isLetter(s[k]) || isDigit(s[k])) {
			k++
		}
		if k == n+1 {
			break
		}
		n = k
	}
	return n
}

// labelLen is the length of the blank node label (BLANK_NODE_LABEL without its
// underscore and colon) that s begins with, 0 if there is none.
func labelLen(s string) int {
	end := 0
	for i, r := range s {
		switch {
		case r == utf8.RuneError && invalidAt(s, i):
			return end
		case IsNameStart(r), r == '_', '0' <= r && r <= '9':
		case i > 0 && (r == '.' || IsNameChar(r)):
		default:
			return end
		}
		if r != '.' { // a label does not end with a point
			end = i + utf8.RuneLen(r)
		}
	}
	return end
}

func invalidAt(s string, i int) bool {
	_, size := utf8.DecodeRuneInString(s[i:])
	return size == 1
}

// IsNameStart is PN_CHARS_BASE of the grammars of N-Triples and SPARQL.
func IsNameStart(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	case r < 0x300:
		return r >= 0xC0 && r != 0xD7 && r != 0xF7
	case r < 0x2000:
		return r >= 0x370 && r != 0x37E
	}
	return r == 0x200C || r == 0x200D ||
		0x2070 <= r && r <= 0x218F || 0x2C00 <= r && r <= 0x2FEF ||
		0x3001 <= r && r <= 0xD7FF || 0xF900 <= r && r <= 0xFDCF ||
		0xFDF0 <= r && r <= 0xFFFD || 0x10000 <= r && r <= 0xEFFFF
}

// IsNameChar is PN_CHARS of the grammars of N-Triples and SPARQL.
func IsNameChar(r rune) bool {
	return IsNameStart(r) || r == '_' || r == '-' || '0' <= r && r <= '9' ||
		r == 0xB7 || 0x300 <= r && r <= 0x36F || r == 0x203F || r == 0x2040
}

// String writes the term in N-Triples syntax, in one form only: characters
// that have to be escaped (quote, backslash and controls) are, all others stand
// as they are. The absent term is the empty text; a term that Validate refuses
// is written, with U+FFFD for what is not UTF-8, but does not parse back.
func (t Term) String() string { return string(t.Append(nil)) }

// Append appends what String returns.
func (t Term) Append(dst []byte) []byte {
	switch t.kind {
	case KindAbsent:
		return dst
	case KindIRI:
		return appendIRI(dst, t.s)
	case KindBlank:
		dst = append(dst, "_:"...)
		return append(dst, t.s...)
	case KindString:
		return appendQuoted(dst, t.s)
	case KindLangString:
		dst = appendQuoted(dst, t.s)
		dst = append(dst, '@')
		return append(dst, t.d...)
	case KindTyped:
		dst = appendQuoted(dst, t.s)
	default: // lexical forms of native kinds need no escapes
		dst = append(dst, '"')
		dst = t.appendLexical(dst)
		dst = append(dst, '"')
	}
	dst = append(dst, "^^"...)
	return appendIRI(dst, t.Datatype())
}

func appendIRI(dst []byte, s string) []byte {
	dst = append(dst, '<')
	dst = append(dst, s...)
	return append(dst, '>')
}

func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for _, r := range s {
		k := -1
		if r < utf8.RuneSelf && r != '\'' {
			k = strings.IndexByte(escapeValues, byte(r))
		}
		switch {
		case k >= 0:
			dst = append(dst, '\\', escapeLetters[k])
		case r < ' ' || r == 0x7F:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
