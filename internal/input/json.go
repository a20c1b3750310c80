package input

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/triegs/triegs"
)

// scanner reads JSON (RFC 8259) from one line of valid UTF-8, value by value.
//
// The standard library's reader takes keys in any letter case, lets the last of
// two equal keys win and turns a lone surrogate into U+FFFD, each without a
// word: the store would hold something else than the line says. It is also
// several times slower on lines as short as events.
type scanner struct {
	b   []byte
	i   int
	tmp []byte // text of the last string that had escapes
}

// errorf returns a syntax error at the current column, counted in bytes.
func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("%w: column %d: %s", triegs.ErrSyntax, s.i+1, fmt.Sprintf(format, args...))
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// take skips white space and the byte c, or complains.
func (s *scanner) take(c byte) error {
	if s.peek() != c || s.i == len(s.b) {
		return s.errorf("want %q", c)
	}
	s.i++
	return nil
}

// end complains if anything is left.
func (s *scanner) end() error {
	if s.peek(); s.i < len(s.b) {
		return s.errorf("%q behind the end", clip(s.b[s.i:]))
	}
	return nil
}

// object reads an object and calls member at each value, with its key, which is
// valid until the next string is read.
func (s *scanner) object(member func(key []byte) error) error {
	if err := s.take('{'); err != nil {
		return err
	}
	return s.list('}', func() error {
		if s.peek() != '"' {
			return s.errorf("want a key")
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// array reads an array and calls element at each value.
func (s *scanner) array(element func() error) error {
	if err := s.take('['); err != nil {
		return err
	}
	return s.list(']', element)
}

// list reads comma-separated items up to the closing byte.
func (s *scanner) list(closing byte, item func() error) error {
	if s.peek() == closing {
		s.i++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.peek() != ',' {
			return s.take(closing)
		}
		s.i++
	}
}

// boolean reads true or false.
func (s *scanner) boolean() (bool, error) {
	for _, word := range []string{"true", "false"} {
		if len(s.b)-s.i >= len(word) && string(s.b[s.i:s.i+len(word)]) == word {
			s.i += len(word)
			return word == "true", nil
		}
	}
	return false, s.errorf("want true or false")
}

// numeral reads a number; integer tells that it has neither fraction nor
// exponent.
func (s *scanner) numeral() (b []byte, integer bool, err error) {
	minus := s.peek() == '-'
	start := s.i
	if minus {
		s.i++
	}
	first := s.i
	s.i = digits(s.b, s.i)
	if s.i == first || s.b[first] == '0' && s.i > first+1 {
		return nil, false, s.errorf("malformed number")
	}
	integer = true
	if s.i < len(s.b) && s.b[s.i] == '.' {
		integer = false
		from := s.i + 1
		if s.i = digits(s.b, from); s.i == from {
			return nil, false, s.errorf("malformed number")
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		integer = false
		from := signed(s.b, s.i+1)
		if s.i = digits(s.b, from); s.i == from {
			return nil, false, s.errorf("malformed number")
		}
	}
	return s.b[start:s.i], integer, nil
}

// text reads a string. The result is valid until the next call.
func (s *scanner) text() ([]byte, error) {
	if err := s.take('"'); err != nil {
		return nil, err
	}
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], nil
		case c == '\\':
			return s.escapedText(start)
		case c < 0x20:
			return nil, s.errorf("control character in a string")
		default:
			s.i++
		}
	}
	return nil, s.errorf("no closing quote")
}

// escapedText is text for a string that has an escape at the current place.
func (s *scanner) escapedText(start int) ([]byte, error) {
	s.tmp = append(s.tmp[:0], s.b[start:s.i]...)
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.tmp, nil
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return nil, err
			}
			s.tmp = utf8.AppendRune(s.tmp, r)
		case c < 0x20:
			return nil, s.errorf("control character in a string")
		default:
			s.tmp = append(s.tmp, c)
			s.i++
		}
	}
	return nil, s.errorf("no closing quote")
}

// shortEscapes are the escapes of one letter.
var shortEscapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads the escape at the current place.
func (s *scanner) escape() (rune, error) {
	if s.i+1 >= len(s.b) {
		return 0, s.errorf("no closing quote")
	}
	if r, ok := shortEscapes[s.b[s.i+1]]; ok {
		s.i += 2
		return r, nil
	}
	r, err := s.unicode()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if s.i+1 < len(s.b) && s.b[s.i] == '\\' {
		low, err := s.unicode()
		if err != nil {
			return 0, err
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, s.errorf("a surrogate without its other half")
}

// unicode reads \uXXXX.
func (s *scanner) unicode() (rune, error) {
	if s.i+6 > len(s.b) || s.b[s.i+1] != 'u' {
		return 0, s.errorf("unknown escape")
	}
	var r rune
	for _, c := range s.b[s.i+2 : s.i+6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, s.errorf("unknown escape")
		}
		r = r<<4 | rune(c)
	}
	s.i += 6
	return r, nil
}
