package sparql

import (
	"strconv"
	"strings"

	"github.com/triegs/triegs/query"
)

// window reads what follows WINDOW.
func (p *parser) window() (err error) {
	if err := p.next(); err != nil {
		return err
	}
	if err := p.want("["); err != nil {
		return err
	}
	w := &p.q.Window
	switch {
	case p.tok.word("RANGE"):
		if w.Range, err = p.span("RANGE"); err != nil {
			return err
		}
		if p.tok.word("STEP") {
			if w.Slide, err = p.span("STEP"); err != nil {
				return err
			}
		}
	case p.tok.word("LAST"):
		if w.Last, err = p.positive(); err != nil {
			return err
		}
	default:
		return p.unexpected("RANGE or LAST")
	}
	if p.tok.word("RANGE") || p.tok.word("STEP") || p.tok.word("LAST") {
		return p.tok.pos.Syntax("a window is RANGE, which STEP may follow, or LAST, each once; %s is too much", p.tok.shown())
	}
	return p.want("]")
}

// span reads the span of time behind a keyword.
func (p *parser) span(keyword string) (int64, error) {
	pos, text := p.raw()
	if text == "" {
		return 0, pos.Syntax("%s wants a span of time", keyword)
	}
	ns, err := query.ParseSpan(text)
	if err != nil {
		return 0, pos.Syntax("%s: %v", keyword, err)
	}
	return ns, p.next()
}

// positive reads the number behind LAST.
func (p *parser) positive() (int64, error) {
	pos, text := p.raw()
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, pos.Syntax("LAST wants a positive number, not %s", query.Quote(text))
	}
	return int64(n), p.next()
}

// raw reads what follows the current token up to a blank, a bracket or a
// comment: a span of time is more than one token of SPARQL, or none.
func (p *parser) raw() (query.Pos, string) {
	pos, s := p.cur.Pos(), p.cur.Rest()
	if n := strings.IndexAny(s, " \t\r\n[]#"); n >= 0 {
		s = s[:n]
	}
	p.cur.Advance(len(s))
	p.cur.SkipSpace("#")
	return pos, s
}
