package sparql

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokIRI              // text is the IRI as written, not resolved
	tokName             // prefix and text: a prefixed name
	tokBlank            // text is the label
	tokVar              // text is the name without its mark
	tokString           // text is the value
	tokLang             // text is the tag
	tokNumber           // text as written, with its sign
	tokWord             // text as written: a keyword, a, true, false or a function
	tokPunct            // text is the mark
)

type token struct {
	kind   tokenKind
	text   string
	prefix string
	pos    query.Pos
	start  query.Cursor // where the token begins
	fault  error        // of a punctuation mark: why it begins no term
}

// is reports whether the token is that punctuation mark.
func (t *token) is(mark string) bool { return t.kind == tokPunct && t.text == mark }

// word reports whether the token is that keyword, in any letter case.
func (t *token) word(keyword string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, keyword)
}

// shown is the token for a message.
func (t *token) shown() string {
	switch t.kind {
	case tokEnd:
		return "the end of the text"
	case tokVar:
		return query.Quote("?" + t.text)
	case tokIRI:
		return query.Quote("<" + t.text + ">")
	case tokName:
		return query.Quote(t.prefix + ":" + t.text)
	case tokBlank:
		return query.Quote("_:" + t.text)
	case tokString:
		return "the string " + query.Quote(t.text)
	case tokLang:
		return query.Quote("@" + t.text)
	}
	return query.Quote(t.text)
}

// lex reads the token at c and moves c behind it and the space that follows.
// Where an operator stands, < is never the start of an IRI and a sign never
// part of a number: the grammar's longest match would read a<b&&c>d as an IRI.
func lex(c *query.Cursor, operator bool) (token, error) {
	t := token{pos: c.Pos(), start: *c}
	s := c.Rest()
	n, err := t.read(s, operator)
	if err != nil {
		if fault, ok := errors.AsType[*term.SyntaxError](err); ok {
			at := *c
			at.Advance(fault.Offset)
			return t, at.Pos().Syntax("%s", fault.Msg)
		}
		return t, t.pos.Syntax("%v", err)
	}
	c.Advance(n)
	c.SkipSpace("#")
	return t, nil
}

// read recognises the token that s begins with and gives its length.
func (t *token) read(s string, operator bool) (n int, err error) {
	if s == "" {
		return 0, nil
	}
	switch c := s[0]; {
	case c == '<' && !operator:
		v, n, err := term.ParsePrefix(s)
		if err == nil {
			t.kind, t.text = tokIRI, v.Lexical()
			return n, nil
		}
		t.fault = err
	case c == '"' || c == '\'':
		t.kind = tokString
		t.text, n, err = readString(s)
		return n, err
	case (c == '?' || c == '$') && varLen(s[1:]) > 0:
		n = 1 + varLen(s[1:])
		t.kind, t.text = tokVar, s[1:n]
		return n, nil
	case c == '@':
		n = 1
		for n < len(s) && (s[n] == '-' || isAlnum(s[n])) {
			n++
		}
		t.kind, t.text = tokLang, s[1:n]
		if term.LangString("", t.text).Validate() != nil {
			return 0, fmt.Errorf("bad language tag %s", query.Quote(s[:n]))
		}
		return n, nil
	case strings.HasPrefix(s, "_:"):
		v, n, err := term.ParsePrefix(s)
		t.kind, t.text = tokBlank, v.Lexical()
		return n, err
	}
	if n := numberLen(s, operator); n > 0 {
		t.kind, t.text = tokNumber, s[:n]
		return n, nil
	}
	if n, err := t.readName(s); n > 0 || err != nil {
		return n, err
	}
	return t.readMark(s, operator)
}

func (t *token) readMark(s string, operator bool) (int, error) {
	t.kind = tokPunct
	for _, mark := range []string{"&&", "||", "!=", "<=", ">=", "^^", "<<"} {
		if mark == "<<" && operator {
			continue
		}
		if strings.HasPrefix(s, mark) {
			t.text = mark
			return len(mark), nil
		}
	}
	if strings.IndexByte("{}()[].,;=<>!*/|^?+-", s[0]) >= 0 {
		t.text = s[:1]
		return 1, nil
	}
	r, _ := utf8.DecodeRuneInString(s)
	return 0, fmt.Errorf("unexpected character %q", r)
}

// readName reads a prefixed name or a word; n is 0 when s begins with neither.
func (t *token) readName(s string) (n int, err error) {
	prefix := 0
	for i, r := range s {
		if !term.IsNameStart(r) && (i == 0 || r != '.' && !term.IsNameChar(r)) {
			break
		}
		prefix = i + utf8.RuneLen(r)
	}
	if prefix < len(s) && s[prefix] == ':' && !strings.HasSuffix(s[:prefix], ".") {
		local, n, err := readLocal(s[prefix+1:])
		if err != nil {
			return 0, err
		}
		t.kind, t.prefix, t.text = tokName, s[:prefix], local
		return prefix + 1 + n, nil
	}
	for n < len(s) && (isAlnum(s[n]) || s[n] == '_') {
		n++
	}
	if n > 0 {
		t.kind, t.text = tokWord, s[:n]
	}
	return n, nil
}

// readLocal reads the part of a prefixed name behind the colon (PN_LOCAL),
// without the backslashes of its escapes.
func readLocal(s string) (local string, n int, err error) {
	var sb strings.Builder
	end, kept := 0, 0 // up to the last character that is no point
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '%':
			if len(s) < i+3 || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return "", 0, fmt.Errorf("%% in a name needs two hexadecimal digits")
			}
			size = 3
			sb.WriteString(s[i : i+3])
		case r == '\\':
			if len(s) < i+2 || strings.IndexByte("_~.-!$&'()*+,;=/?#@%", s[i+1]) < 0 {
				return "", 0, fmt.Errorf("unknown escape in a name")
			}
			size = 2
			sb.WriteByte(s[i+1])
		case r == ':' || r == '_' || term.IsNameStart(r) || '0' <= r && r <= '9',
			i > 0 && (r == '.' || term.IsNameChar(r)):
			sb.WriteRune(r)
		default:
			return sb.String()[:kept], end, nil
		}
		i += size
		if r != '.' {
			end, kept = i, sb.Len()
		}
	}
	return sb.String()[:kept], end, nil
}

// readString reads a string in one or three quotes of either kind.
func readString(s string) (text string, n int, err error) {
	quote := s[:1]
	long := strings.HasPrefix(s, strings.Repeat(quote, 3))
	if long {
		quote = s[:3]
	}
	var sb strings.Builder
	from := len(quote)
	for i := from; i < len(s); {
		switch c := s[i]; {
		case strings.HasPrefix(s[i:], quote):
			sb.WriteString(s[from:i])
			return sb.String(), i + len(quote), nil
		case c == '\\':
			r, size, err := term.Unescape(s, i, true)
			if err != nil {
				return "", 0, err
			}
			sb.WriteString(s[from:i])
			sb.WriteRune(r)
			i += size
			from = i
		case !long && (c == '\n' || c == '\r'):
			return "", 0, fmt.Errorf("line break in a string")
		default:
			i++
		}
	}
	return "", 0, fmt.Errorf("the string is not closed")
}

// numberLen is the length of the numeral that s begins with: an integer, a
// decimal (1.5, .5) or a double (with an exponent). A point at the end is not
// part of it unless an exponent follows.
func numberLen(s string, operator bool) int {
	digits := func(n int) int {
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		return n
	}
	start := 0
	if !operator && s != "" && (s[0] == '+' || s[0] == '-') {
		start = 1
	}
	whole := digits(start)
	n, frac := whole, whole
	if whole < len(s) && s[whole] == '.' {
		frac = digits(whole + 1)
		if frac > whole+1 {
			n = frac
		}
	}
	if whole == start && n == whole {
		return 0
	}
	if frac < len(s) && (s[frac] == 'e' || s[frac] == 'E') {
		exp := frac + 1
		if exp < len(s) && (s[exp] == '+' || s[exp] == '-') {
			exp++
		}
		if digits(exp) > exp {
			n = digits(exp)
		}
	}
	return n
}

// varLen is the length of the variable name (VARNAME) that s begins with.
func varLen(s string) int {
	n := 0
	for i, r := range s {
		inside := i > 0 && r != '-' && term.IsNameChar(r)
		if !inside && r != '_' && !('0' <= r && r <= '9') && !term.IsNameStart(r) {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	return n
}

func isAlnum(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

func isHex(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'f' || '0' <= c && c <= '9'
}
