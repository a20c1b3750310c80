package rule

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/semiring"
)

// semiring reads the semiring of the query and reports whether it is counting.
func (p *parser) semiring() (counting bool, err error) {
	pos := p.Pos()
	words, err := p.spec()
	if err != nil {
		return false, err
	}
	name, err := semiring.Canonical(joined(words))
	if err != nil {
		return false, fmt.Errorf("%v: %w", pos, err)
	}
	switch name {
	case "count":
		return true, nil
	case "bool":
		p.q.Distinct = true
	default:
		p.q.Semiring, p.q.SemiringPos = name, pos
	}
	return false, nil
}

// joined writes words with blanks between them, but none at the inner side of a
// bracket.
func joined(words []string) string {
	var sb strings.Builder
	for i, w := range words {
		if i > 0 && w != "(" && w != ")" && words[i-1] != "(" {
			sb.WriteByte(' ')
		}
		sb.WriteString(w)
	}
	return sb.String()
}

// spec reads the words of a semiring: a name, its parameters in brackets, and
// more of these behind a *.
func (p *parser) spec() (words []string, err error) {
	for {
		name := p.name()
		if name == "" {
			return nil, p.unexpected("the name of a semiring")
		}
		words = append(words, name)
		if p.at("(") {
			parameters, err := p.parameters()
			if err != nil {
				return nil, err
			}
			words = append(words, parameters...)
		}
		if !p.accept("*") {
			return words, nil
		}
		words = append(words, "*")
	}
}

// parameters reads what stands in brackets, the brackets included. Strings come
// in their N-Triples spelling.
func (p *parser) parameters() (words []string, err error) {
	for open := 0; ; {
		rest := p.Rest()
		if rest == "" {
			return nil, p.unexpected(`")" after the parameters of the semiring`)
		}
		word, n := "", 0
		switch {
		case rest[0] == '"':
			if word, n, err = p.quoted(); err != nil {
				return nil, err
			}
		case rest[0] == '(':
			open++
		case rest[0] == ')':
			open--
		default:
			n = strings.IndexFunc(rest, func(r rune) bool { return !isName(r) })
		}
		switch {
		case n < 0:
			n = len(rest)
		case n == 0:
			_, n = utf8.DecodeRuneInString(rest)
		}
		if word == "" {
			word = rest[:n]
		}
		words = append(words, word)
		p.move(n)
		if open == 0 {
			return words, nil
		}
	}
}

// quoted is the string that comes, and the length of its text.
func (p *parser) quoted() (string, int, error) {
	t, n, err := term.ParsePrefix(p.Rest())
	if fault, ok := errors.AsType[*term.SyntaxError](err); ok {
		at := p.Cursor
		at.Advance(fault.Offset)
		return "", 0, at.Pos().Syntax("%s", fault.Msg)
	}
	if err != nil || t.Kind() != term.KindString {
		return "", 0, p.Pos().Syntax("a parameter of a semiring is a name, a number or a plain string")
	}
	return t.String(), n, nil
}
