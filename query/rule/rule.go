// Package rule reads the rule form of a query:
//
//	rule     = head ":-" item { "," item } { option } [ "." ]
//	head     = name "(" [ column { "," column } ] ")"
//	column   = variable | aggregate
//	item     = relation "(" argument { "," argument } ")" [ "@" ] [ "[" window "]" ]
//	         | argument ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) argument
//	relation = name | "<" iri ">"
//	argument = variable | "_" | constant
//	aggregate = "count" "(" ")" | "count" "(" "distinct" variable ")"
//	         | ( "sum" | "avg" | "min" | "max" ) "(" variable ")"
//	         | "topk" "(" variable "," number ")"
//	option   = "distinct" | "set" | "semiring" semiring
//	         | "window" span [ "slide" span ] | "last" number
//	semiring = name [ "(" parameters ")" ] { "*" name [ "(" parameters ")" ] }
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
// Aggregates are over the valuations with the same head variables, which are the
// group; they may stand anywhere in the head, and their columns come behind those
// of the variables. A group is there while it has a valuation, also the one of a
// head without variables. Semirings are those of semiring.Parse, by their names
// and parameters: minplus, cap(10), access(public < internal < secret); another
// name is one that the store has to know. The semiring count is the default, bool
// is distinct. An atom with @ takes the values of its contributions as annotations
// in the semiring, others take one; so it needs a semiring that has values. A query
// has aggregates, a semiring or distinct, and not two of them.
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
	p := &parser{Cursor: cur, q: &query.Query{Text: text}, vars: map[string]query.Var{}, columns: map[string]bool{}}
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
	columns map[string]bool // of the head, aggregates included
	valued  query.Pos       // of the first @, zero without one
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
	if err := p.checkAggregates(bound); err != nil {
		return err
	}
	if p.valued != (query.Pos{}) && p.q.Semiring == "" {
		return p.noValues()
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
		if err := p.column(); err != nil {
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

// column reads a variable or an aggregate of the head.
func (p *parser) column() error {
	pos := p.Pos()
	name := p.name()
	switch {
	case name == "" && p.constantAhead(), name == "_" && p.at(":"), name == "true", name == "false":
		return pos.Unsupported("a constant in the head")
	case name == "":
		return p.unexpected("a variable")
	case name == "_":
		return pos.Syntax("an anonymous variable cannot stand in the head")
	case p.at("("):
		return p.aggregate(name, pos)
	}
	if p.columns[name] {
		return pos.Syntax("variable %s stands twice in the head", query.Quote(name))
	}
	p.columns[name] = true
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
	if at := p.Pos(); p.accept("@") {
		a.Annotated = true
		if p.valued == (query.Pos{}) {
			p.valued = at
		}
	}
	if p.accept("[") {
		if err := p.ownWindow(&a); err != nil {
			return err
		}
		if p.at("@") {
			return p.Pos().Syntax("the @ of an atom stands before its window")
		}
	}
	p.q.Atoms = append(p.q.Atoms, a)
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
			var err error
			if counting, err = p.semiring(); err != nil {
				return err
			}
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
		if err := p.contradiction(pos, counting); err != nil {
			return err
		}
	}
}

// contradiction refuses an option, the one at pos, by which the annotation of an
// answer would be two things at once.
func (p *parser) contradiction(pos query.Pos, counting bool) error {
	aggregates := len(p.q.Aggregates) > 0
	switch {
	case p.q.Distinct && counting:
		return pos.Syntax("semiring count contradicts distinct")
	case p.q.Distinct && p.q.Semiring != "":
		return pos.Syntax("semiring %s contradicts distinct", p.q.Semiring)
	case p.q.Distinct && aggregates:
		return pos.Unsupported("aggregates together with distinct, which leaves no multiplicities to them")
	case p.q.Semiring != "" && aggregates:
		return pos.Unsupported("aggregates together with semiring %s", p.q.Semiring)
	}
	return nil
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
		w.Last, err = p.positive("last", "a number of contributions", 63)
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

// positive reads a positive number of so many bits, for the construct of.
func (p *parser) positive(of, what string, bits int) (int64, error) {
	pos := p.Pos()
	text := p.token()
	if text == "" {
		return 0, p.unexpected(what)
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil || n == 0 {
		return 0, pos.Syntax("%s wants a positive number, not %s", of, query.Quote(text))
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
