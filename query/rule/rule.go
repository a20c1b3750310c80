// Package rule reads the rule form of a query:
//
//	rule     = head ":-" item { "," item } { option } [ "." ]
//	head     = name "(" [ variable { "," variable } ] ")"
//	item     = relation "(" argument { "," argument } ")" [ "[" window "]" ]
//	         | argument ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) argument
//	relation = name | "<" iri ">"
//	argument = variable | "_" | constant
//	option   = "distinct" | "set" | "semiring" name
//	         | "window" span [ "slide" span ] | "last" number
//	window   = span [ "slide" span ] | "last" number | "all"
//
// Names are letters, digits and underscores and do not begin with a digit; in
// argument position they are variables. Constants are numbers, true, false and
// the terms of N-Triples: "text" with its escapes, "text"@en, "text"^^<type>,
// <iri> and _:label. A number with a point or an exponent is a float; an integer
// that int64 cannot hold is an xsd:integer literal. Each _ is a variable of its
// own. A span of time is written as 10m, 1h30m, 1.5s or PT10M (query.ParseSpan).
// The option is the window of all atoms but those that have one in brackets of
// their own, where all means none. Comments begin with % or # and end with their line.
//
// The parser is written by hand, as recursive descent without any recursion:
// what is refused is named with its place, which a grammar library cannot do
// that only knows what it expected. The one that was tried (participle v2)
// moreover recurses on the input and ended the process, by a stack overflow, on
// a million brackets.
//
// The package never plans, never touches stored data, and never accepts a text
// and ignores a part of it.
package rule

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

const comments = "%#"

// Parse reads a query in rule form. Errors begin with line:column and wrap
// ErrSyntax, or ErrUnsupported for a construct that is known and not built. The
// cost is linear in the text.
func Parse(text string) (*query.Query, error) {
	cur, err := query.NewCursor(text)
	if err != nil {
		return nil, err
	}
	p := &parser{Cursor: cur, q: &query.Query{Text: text}, vars: map[string]query.Var{}}
	if err := p.rule(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.q.ShareWindow()
	return p.q, nil
}

type parser struct {
	query.Cursor
	q       *query.Query
	vars    map[string]query.Var
	headPos []query.Pos
}

func (p *parser) rule() error {
	p.space()
	if err := p.head(); err != nil {
		return err
	}
	if !p.accept(":-") {
		return p.unexpected(`":-" after the head`)
	}
	for {
		if err := p.item(); err != nil {
			return err
		}
		if p.at(";") || p.at("|") {
			return p.Pos().Unsupported("disjunction")
		}
		if !p.accept(",") {
			break
		}
	}
	if err := p.options(); err != nil {
		return err
	}
	p.accept(".")
	if p.Rest() == "" {
		return nil
	}
	start := p.Cursor
	if p.name() != "" && p.at("(") {
		return start.Pos().Unsupported("a second rule")
	}
	p.Cursor = start
	return p.unexpected("the end of the rule")
}

// check refuses what is wrong with the rule as a whole.
func (p *parser) check() error {
	if len(p.q.Atoms) == 0 {
		return p.q.HeadPos.Syntax("the body has no atom")
	}
	bound := p.q.Bound()
	for i, v := range p.q.Head {
		if !bound[v] {
			return p.headPos[i].Syntax("head variable %s is in no atom of the body", query.Quote(p.q.Vars[v]))
		}
	}
	for i := range p.q.Filters {
		f := &p.q.Filters[i]
		for _, v := range f.Vars() {
			if !bound[v] {
				return f.Pos.Syntax("variable %s of a comparison is in no atom of the body", query.Quote(p.q.Vars[v]))
			}
		}
	}
	return nil
}

func (p *parser) head() error {
	p.q.HeadPos = p.Pos()
	if p.q.Name = p.name(); p.q.Name == "" {
		return p.unexpected("the name of the head")
	}
	if !p.accept("(") {
		return p.unexpected(`"(" after the name of the head`)
	}
	if p.accept(")") {
		return nil
	}
	for {
		if err := p.headVariable(); err != nil {
			return err
		}
		if p.accept(")") {
			return nil
		}
		if !p.accept(",") {
			return p.unexpected(`"," or ")"`)
		}
	}
}

func (p *parser) headVariable() error {
	pos, start := p.Pos(), p.Cursor
	name := p.name()
	switch {
	case name == "" && p.constantAhead(), name == "_" && p.at(":"), name == "true", name == "false":
		return pos.Unsupported("a constant in the head")
	case name == "":
		return p.unexpected("a variable")
	case name == "_":
		return pos.Syntax("an anonymous variable cannot stand in the head")
	case p.at("("):
		return pos.Unsupported("aggregate %s in the head", query.Quote(name))
	}
	if _, ok := p.vars[name]; ok {
		return start.Pos().Syntax("variable %s stands twice in the head", query.Quote(name))
	}
	p.q.Head = append(p.q.Head, p.variable(name))
	p.q.Columns = append(p.q.Columns, name)
	p.headPos = append(p.headPos, pos)
	return nil
}

// item reads an atom or a comparison.
func (p *parser) item() error {
	pos, start := p.Pos(), p.Cursor
	if p.at("!") || p.at(`\+`) || p.at("¬") {
		return pos.Unsupported("negation")
	}
	name := p.name()
	if name == "not" {
		return pos.Unsupported("negation")
	}
	if name == "" && p.at("<") {
		if t, n, err := term.ParsePrefix(p.Rest()); err == nil {
			p.move(n)
			name = t.Lexical()
			if p.at("(") && name == "" {
				return pos.Syntax("a relation needs a name")
			}
		}
	}
	if p.at("(") && name != "" {
		return p.atom(name, pos)
	}
	p.Cursor = start
	return p.comparison()
}

func (p *parser) atom(relation string, pos query.Pos) error {
	if relation == p.q.Name {
		return pos.Unsupported("recursion (%s in its own body)", query.Quote(relation))
	}
	if len(p.q.Atoms) == query.MaxAtoms {
		return pos.Unsupported("more than %d atoms", query.MaxAtoms)
	}
	p.accept("(")
	a := query.Atom{Relation: relation, Pos: pos}
	for {
		if p.at(")") && len(a.Args) == 0 {
			return p.Pos().Syntax("an atom needs an argument")
		}
		arg, err := p.argument(true)
		if err != nil {
			return err
		}
		a.Args = append(a.Args, arg)
		if p.accept(")") {
			break
		}
		if !p.accept(",") {
			return p.unexpected(`"," or ")"`)
		}
	}
	if err := p.annotation(); err != nil {
		return err
	}
	if p.accept("[") {
		if err := p.ownWindow(&a); err != nil {
			return err
		}
		if err := p.annotation(); err != nil {
			return err
		}
	}
	p.q.Atoms = append(p.q.Atoms, a)
	return nil
}

func (p *parser) annotation() error {
	if p.at("@") {
		return p.Pos().Unsupported("annotated atom (@)")
	}
	return nil
}

// operators in the order in which they are tried: the longer one first.
var operators = []struct {
	text string
	op   query.Op
}{
	{"!=", query.OpNe}, {"<=", query.OpLe}, {">=", query.OpGe},
	{"=", query.OpEq}, {"<", query.OpLt}, {">", query.OpGt},
}

func (p *parser) comparison() error {
	pos := p.Pos()
	left, err := p.argument(false)
	if err != nil {
		return err
	}
	op, found := query.OpEq, false
	for _, o := range operators {
		if p.accept(o.text) {
			op, found = o.op, true
			break
		}
	}
	if !found {
		if err := p.arithmeticAhead(); err != nil {
			return err
		}
		return p.unexpected("a comparison operator")
	}
	right, err := p.argument(false)
	if err != nil {
		return err
	}
	if err := p.arithmeticAhead(); err != nil {
		return err
	}
	if left.Var == query.NoVar && right.Var == query.NoVar {
		return pos.Unsupported("a comparison without a variable")
	}
	p.q.Filters = append(p.q.Filters, query.Filter{Pos: pos, Expr: query.Expr{Op: op, Left: left, Right: right}})
	return nil
}

func (p *parser) arithmeticAhead() error {
	for _, op := range []string{"+", "-", "*", "/"} {
		if p.at(op) {
			return p.Pos().Unsupported("arithmetic (%s)", op)
		}
	}
	return nil
}

// argument reads a variable or a constant.
func (p *parser) argument(anonymous bool) (query.Arg, error) {
	pos := p.Pos()
	if p.constantAhead() {
		return p.constant()
	}
	switch name := p.name(); {
	case name == "":
		return query.Arg{}, p.unexpected("a variable or a constant")
	case name == "true" || name == "false":
		return query.Arg{Var: query.NoVar, Const: term.Bool(name == "true")}, nil
	case name != "_":
		if p.at("(") {
			return query.Arg{}, pos.Unsupported("function %s", query.Quote(name))
		}
		return query.Arg{Var: p.variable(name)}, nil
	case !anonymous:
		return query.Arg{}, pos.Syntax("an anonymous variable cannot stand in a comparison")
	}
	p.q.Vars = append(p.q.Vars, "")
	return query.Arg{Var: query.Var(len(p.q.Vars) - 1)}, nil
}

// constantAhead reports whether a constant other than true and false comes.
func (p *parser) constantAhead() bool {
	s := p.Rest()
	return s != "" && (s[0] == '"' || s[0] == '<' || strings.HasPrefix(s, "_:") || numberLen(s) > 0)
}

func (p *parser) constant() (query.Arg, error) {
	s := p.Rest()
	if n := numberLen(s); n > 0 {
		t, err := number(s[:n], p.Pos())
		if err != nil {
			return query.Arg{}, err
		}
		at := p.Cursor
		at.Advance(n)
		if r, _ := utf8.DecodeRuneInString(s[n:]); isName(r) {
			return query.Arg{}, at.Pos().Syntax("a number cannot end with %q", r)
		}
		p.move(n)
		return query.Arg{Var: query.NoVar, Const: t}, nil
	}
	t, n, err := term.ParsePrefix(s)
	if err != nil {
		if fault, ok := errors.AsType[*term.SyntaxError](err); ok {
			at := p.Cursor
			at.Advance(fault.Offset)
			return query.Arg{}, at.Pos().Syntax("%s", fault.Msg)
		}
		return query.Arg{}, p.Pos().Syntax("%v", err)
	}
	p.move(n)
	return query.Arg{Var: query.NoVar, Const: t}, nil
}

// numberLen is the length of the number that s begins with, 0 if there is none.
// A point belongs to it only when a digit follows.
func numberLen(s string) int {
	digits := func(n int) int {
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		return n
	}
	start := 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		start = 1
	}
	n := digits(start)
	if n == start {
		return 0
	}
	if n < len(s) && s[n] == '.' && digits(n+1) > n+1 {
		n = digits(n + 1)
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		exp := n + 1
		if exp < len(s) && (s[exp] == '-' || s[exp] == '+') {
			exp++
		}
		if digits(exp) > exp {
			n = digits(exp)
		}
	}
	return n
}

func number(s string, pos query.Pos) (term.Term, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return term.Term{}, pos.Syntax("number %s is out of range", query.Quote(s))
		}
		return term.Float(f), nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return term.Int(i), nil
	}
	digits := strings.TrimLeft(s, "+-0")
	if s[0] == '-' {
		digits = "-" + digits
	}
	return term.Typed(digits, term.XSDInteger), nil
}

// options reads what follows the body.
func (p *parser) options() error {
	given := map[string]bool{}
	counting := false
	for {
		pos, start := p.Pos(), p.Cursor
		word := p.name()
		if given[word] {
			return pos.Syntax("option %s is given twice", word)
		}
		given[word] = true
		switch word {
		case "distinct":
			p.q.Distinct = true
		case "set":
			p.q.Set = true
		case "semiring":
			boolean, err := p.semiring()
			if err != nil {
				return err
			}
			counting = !boolean
			p.q.Distinct = p.q.Distinct || boolean
		case "window", "last":
			if !p.q.Window.IsZero() {
				return pos.Syntax("a query has a window of time or of a number of contributions, not both")
			}
			if err := p.window(&p.q.Window, word == "last"); err != nil {
				return err
			}
		case "slide":
			return pos.Syntax("slide stands behind the span of a window")
		default:
			p.Cursor = start
			return nil
		}
		if counting && given["distinct"] {
			return pos.Syntax("semiring count contradicts distinct")
		}
	}
}

// ownWindow reads the window of one atom, behind its opening bracket.
func (p *parser) ownWindow(a *query.Atom) error {
	a.Own = true
	start := p.Cursor
	switch p.name() {
	case "all":
	case "last":
		if err := p.window(&a.Window, true); err != nil {
			return err
		}
	default:
		p.Cursor = start
		if err := p.window(&a.Window, false); err != nil {
			return err
		}
	}
	if !p.accept("]") {
		return p.unexpected(`"]" after the window of an atom`)
	}
	return nil
}

// window reads a number of contributions, or a span of time and a slide.
func (p *parser) window(w *query.Window, last bool) (err error) {
	if last {
		w.Last, err = p.positive()
		return err
	}
	if w.Range, err = p.span("window"); err != nil {
		return err
	}
	start := p.Cursor
	if p.name() != "slide" {
		p.Cursor = start
		return nil
	}
	w.Slide, err = p.span("slide")
	return err
}

func (p *parser) positive() (int64, error) {
	pos := p.Pos()
	text := p.token()
	if text == "" {
		return 0, p.unexpected("a number of contributions")
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, pos.Syntax("last wants a positive number, not %s", query.Quote(text))
	}
	return int64(n), nil
}

func (p *parser) span(of string) (int64, error) {
	pos := p.Pos()
	text := p.token()
	if text == "" {
		return 0, p.unexpected("a span of time")
	}
	ns, err := query.ParseSpan(text)
	if err != nil {
		return 0, pos.Syntax("%s: %v", of, err)
	}
	return ns, nil
}

// token reads up to the next blank, comment, comma, bracket, or final point.
func (p *parser) token() string {
	s := p.Rest()
	if n := strings.IndexAny(s, " \t\r\n,[]()"+comments); n >= 0 {
		s = s[:n]
	}
	s = strings.TrimSuffix(s, ".")
	if s != "" {
		p.move(len(s))
	}
	return s
}

// semiring reads the name of a semiring and tells the Boolean one from counting.
func (p *parser) semiring() (boolean bool, err error) {
	pos := p.Pos()
	switch name := p.name(); name {
	case "":
		return false, p.unexpected("the name of a semiring")
	case "count":
		return false, nil
	case "bool":
		return true, nil
	default:
		return false, pos.Unsupported("semiring %s", query.Quote(name))
	}
}

func (p *parser) variable(name string) query.Var {
	v, ok := p.vars[name]
	if !ok {
		v = query.Var(len(p.q.Vars))
		p.vars[name] = v
		p.q.Vars = append(p.q.Vars, name)
	}
	return v
}

func isName(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || unicode.IsLetter(r) || unicode.Is(unicode.Mn, r)
}

// name reads a name and the space after it; it is empty when none comes.
func (p *parser) name() string {
	s := p.Rest()
	n := 0
	for i, r := range s {
		if !isName(r) || i == 0 && !unicode.IsLetter(r) && r != '_' {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	if s = s[:n]; s != "" {
		p.move(n)
	}
	return s
}

func (p *parser) at(s string) bool { return strings.HasPrefix(p.Rest(), s) }

func (p *parser) accept(s string) bool {
	if !p.at(s) {
		return false
	}
	p.move(len(s))
	return true
}

// move goes over n bytes and the space after them.
func (p *parser) move(n int) {
	p.Advance(n)
	p.space()
}

func (p *parser) space() { p.SkipSpace(comments) }

// unexpected is the error of a place where something else should stand.
func (p *parser) unexpected(want string) error {
	rest := p.Rest()
	if rest == "" {
		return p.Pos().Syntax("the text ends where %s should come", want)
	}
	start := p.Cursor
	word := p.name()
	p.Cursor = start
	if word == "" {
		_, n := utf8.DecodeRuneInString(rest)
		word = rest[:n]
	}
	return p.Pos().Syntax("%s where %s should come", query.Quote(word), want)
}
