// Package sparql reads the SPARQL form of a query: PREFIX and BASE, SELECT
// [DISTINCT] of variables, aggregates or *, one basic graph pattern, FILTER with
// comparisons, && || ! and IN, GROUP BY, and VALUES, within the group or after it.
// Beyond the standard a window of all triple patterns may stand behind the group:
// WINDOW [RANGE 10m STEP 1m], where STEP may be left out, or WINDOW [LAST 100].
//
// Aggregates are COUNT(*), COUNT(?v), COUNT(DISTINCT ?v), SUM(?v), AVG(?v), MIN(?v)
// and MAX(?v), each in brackets with its name: (SUM(?a) AS ?s). The variables
// selected beside them are those of GROUP BY, no more and no fewer.
//
// What a text means here:
//   - A predicate is the relation that its IRI names. The empty prefix, unless
//     it is declared, stands for plain names: :likes is the relation "likes",
//     and in the place of a node the IRI <likes>.
//   - Blank nodes are variables that * does not list and that cannot be selected;
//     one that occurs once is an anonymous variable.
//   - Numerals are integers, decimals and doubles as SPARQL has them, so that in
//     a pattern 1.5 finds the xsd:decimal only; in a FILTER it compares by value.
//   - SELECT * lists the variables by first occurrence in the text.
//   - The columns of aggregates come behind those of the variables. COUNT(?v) is
//     COUNT(*), because every variable has a value in every solution. A group is
//     there while it has a solution, also the one without GROUP BY. DISTINCT
//     before aggregates tells nothing: a group is one row as it is.
//   - Spans of time are those of query.ParseSpan: 10m, 1h30m, 1.5s, PT10M.
//
// Everything else of SPARQL is refused with ErrUnsupported, its name and its
// place; nothing is accepted and ignored. For the same reason a variable that
// no triple pattern binds is refused where a FILTER or VALUES uses it.
//
// The lexer and the parser are written by hand (recursive descent with a limit
// on depth) because refused constructs have to be named with their place, and
// because the grammar library that was tried (participle v2) recurses on its
// input and ended the process on a million brackets.
//
// The package never plans and never touches stored data.
package sparql

import (
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

// Parse reads a SPARQL query. Errors begin with line:column and wrap ErrSyntax,
// or ErrUnsupported for what SPARQL allows and triegs does not. The cost is
// linear in the text.
func Parse(text string) (*query.Query, error) {
	cur, err := query.NewCursor(text)
	if err != nil {
		return nil, err
	}
	p := &parser{
		cur:      cur,
		q:        &query.Query{Text: text},
		prefixes: map[string]string{},
		vars:     map[string]query.Var{},
		blanks:   map[query.Var]*blank{},
		columns:  map[string]bool{},
	}
	p.cur.SkipSpace("#")
	if err := p.query(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.nameBlanks()
	p.q.ShareWindow()
	return p.q, nil
}

type parser struct {
	cur      query.Cursor // behind tok
	tok      token        // the next token
	q        *query.Query
	base     string
	prefixes map[string]string
	vars     map[string]query.Var
	blanks   map[query.Var]*blank
	group    int // counts the basic graph patterns, which end at VALUES
	depth    int

	all     bool // SELECT *
	headPos []query.Pos
	columns map[string]bool // selected, with those of aggregates
	named   []query.Pos     // of the column of each aggregate
	grouped grouping
}

// blank is a variable that a blank node stands for.
type blank struct {
	uses  int
	group int
}

// next moves to the token after the current one.
func (p *parser) next() (err error) {
	p.tok, err = lex(&p.cur, false)
	return err
}

// asOperator reads the current token again as one that stands after an operand.
func (p *parser) asOperator() (err error) {
	p.cur = p.tok.start
	p.tok, err = lex(&p.cur, true)
	return err
}

// accept moves over a punctuation mark if it is the next token.
func (p *parser) accept(mark string) (bool, error) {
	if !p.tok.is(mark) {
		return false, nil
	}
	return true, p.next()
}

func (p *parser) want(mark string) error {
	if !p.tok.is(mark) {
		return p.unexpected(strconv.Quote(mark))
	}
	return p.next()
}

func (p *parser) unexpected(want string) error {
	return p.tok.pos.Syntax("%s where %s should come", p.tok.shown(), want)
}

// enter counts a bracket; every enter is followed by a leave unless it fails.
func (p *parser) enter() error {
	if p.depth++; p.depth > query.MaxDepth {
		return p.tok.pos.Unsupported("more than %d brackets inside each other", query.MaxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// refused names the constructs that begin with a keyword and are not supported.
func (p *parser) refused(keywords ...string) error {
	for _, k := range keywords {
		if p.tok.word(k) {
			return p.tok.pos.Unsupported("%s", k)
		}
	}
	return nil
}

func (p *parser) query() error {
	if err := p.next(); err != nil {
		return err
	}
	if err := p.prologue(); err != nil {
		return err
	}
	if err := p.refused("ASK", "CONSTRUCT", "DESCRIBE", "INSERT", "DELETE", "LOAD", "CLEAR",
		"DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"); err != nil {
		return err
	}
	p.q.HeadPos = p.tok.pos
	if !p.tok.word("SELECT") {
		return p.unexpected("SELECT")
	}
	if err := p.selectClause(); err != nil {
		return err
	}
	if err := p.refused("FROM"); err != nil {
		return err
	}
	if p.tok.word("WHERE") {
		if err := p.next(); err != nil {
			return err
		}
	}
	if err := p.want("{"); err != nil {
		return err
	}
	if err := p.groupPattern(); err != nil {
		return err
	}
	return p.behindGroup()
}

// behindGroup reads the window and the table that may stand behind the group.
func (p *parser) behindGroup() error {
	if p.tok.word("WINDOW") {
		if err := p.window(); err != nil {
			return err
		}
	}
	if p.tok.word("GROUP") {
		if err := p.groupBy(); err != nil {
			return err
		}
	}
	if err := p.refused("HAVING", "ORDER", "LIMIT", "OFFSET"); err != nil {
		return err
	}
	if p.tok.word("VALUES") {
		if err := p.values(); err != nil {
			return err
		}
	}
	switch {
	case p.tok.kind == tokEnd:
		return nil
	case p.tok.word("WINDOW") && !p.q.Window.IsZero():
		return p.tok.pos.Syntax("a second WINDOW")
	case p.tok.word("WINDOW"):
		return p.tok.pos.Syntax("WINDOW stands directly behind the group")
	}
	return p.unexpected("the end of the query")
}

func (p *parser) prologue() error {
	for {
		switch {
		case p.tok.word("BASE"):
			if err := p.next(); err != nil {
				return err
			}
			if p.tok.kind != tokIRI {
				return p.unexpected("an IRI")
			}
			p.base = resolve(p.base, p.tok.text)
		case p.tok.word("PREFIX"):
			if err := p.next(); err != nil {
				return err
			}
			if p.tok.kind != tokName || p.tok.text != "" {
				return p.unexpected("a prefix with its colon")
			}
			prefix := p.tok.prefix
			if err := p.next(); err != nil {
				return err
			}
			if p.tok.kind != tokIRI {
				return p.unexpected("an IRI")
			}
			p.prefixes[prefix] = resolve(p.base, p.tok.text)
		default:
			return nil
		}
		if err := p.next(); err != nil {
			return err
		}
	}
}

func (p *parser) selectClause() error {
	if err := p.next(); err != nil {
		return err
	}
	if p.tok.word("DISTINCT") {
		p.q.Distinct = true
		if err := p.next(); err != nil {
			return err
		}
	}
	if err := p.refused("REDUCED"); err != nil {
		return err
	}
	if p.tok.is("*") {
		p.all = true
		return p.next()
	}
	for {
		switch {
		case p.tok.kind == tokVar:
			if err := p.selected(); err != nil {
				return err
			}
		case p.tok.is("("):
			if err := p.aggregate(); err != nil {
				return err
			}
		case len(p.columns) == 0:
			return p.unexpected("* or a variable")
		default:
			return nil
		}
	}
}

// selected reads a variable of the SELECT clause.
func (p *parser) selected() error {
	if err := p.column(p.tok.text); err != nil {
		return err
	}
	p.q.Head = append(p.q.Head, p.variable(p.tok.text))
	p.q.Columns = append(p.q.Columns, p.tok.text)
	p.headPos = append(p.headPos, p.tok.pos)
	return p.next()
}

// check refuses what is wrong with the query as a whole, and fills in SELECT *.
func (p *parser) check() error {
	if len(p.q.Atoms) == 0 {
		return p.q.HeadPos.Unsupported("a query without a triple pattern")
	}
	bound := p.q.Bound()
	for i, v := range p.q.Head {
		if !bound[v] {
			return p.headPos[i].Syntax("selected variable %s is in no triple pattern", p.shown(v))
		}
	}
	for i := range p.q.Filters {
		f := &p.q.Filters[i]
		vars := f.Vars()
		if len(vars) == 0 {
			return f.Pos.Unsupported("FILTER without a variable")
		}
		for _, v := range vars {
			if !bound[v] {
				return f.Pos.Unsupported("FILTER over variable %s, which is in no triple pattern", p.shown(v))
			}
		}
	}
	for _, t := range p.q.Values {
		for _, v := range t.Vars {
			if !bound[v] {
				return t.Pos.Unsupported("VALUES for variable %s, which is in no triple pattern", p.shown(v))
			}
		}
	}
	if err := p.checkAggregates(bound); err != nil {
		return err
	}
	if !p.all {
		return nil
	}
	for v, name := range p.q.Vars {
		if p.blanks[query.Var(v)] == nil {
			p.q.Head = append(p.q.Head, query.Var(v))
			p.q.Columns = append(p.q.Columns, name)
		}
	}
	return nil
}

// nameBlanks makes the blank nodes that occur once anonymous.
func (p *parser) nameBlanks() {
	for v, b := range p.blanks {
		if b.uses == 1 {
			p.q.Vars[v] = ""
		}
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

// blankNode is the variable of a label; no variable's own name has a colon.
func (p *parser) blankNode(label string) (query.Var, error) {
	v := p.variable("_:" + label)
	b := p.blanks[v]
	if b == nil {
		b = &blank{group: p.group}
		p.blanks[v] = b
	}
	if b.group != p.group {
		return 0, p.tok.pos.Syntax("blank node %s belongs to another basic graph pattern", query.Quote("_:"+label))
	}
	return v, nil
}

// fresh is the variable of a pair of square brackets.
func (p *parser) fresh() query.Var {
	v := query.Var(len(p.q.Vars))
	p.q.Vars = append(p.q.Vars, "[]"+strconv.Itoa(int(v)))
	p.blanks[v] = &blank{group: p.group}
	return v
}

// iri is the IRI of the current token, an IRI or a prefixed name.
func (p *parser) iri() (string, error) {
	if p.tok.kind == tokIRI {
		return resolve(p.base, p.tok.text), nil
	}
	namespace, ok := p.prefixes[p.tok.prefix]
	if !ok && p.tok.prefix != "" {
		return "", p.tok.pos.Syntax("prefix %s is not declared", query.Quote(p.tok.prefix+":"))
	}
	return namespace + p.tok.text, nil
}

// constant reads an IRI or a literal; ok is false when neither is next.
func (p *parser) constant() (t term.Term, ok bool, err error) {
	switch {
	case p.tok.kind == tokIRI || p.tok.kind == tokName:
		iri, err := p.iri()
		if err != nil {
			return t, false, err
		}
		t = term.IRI(iri)
	case p.tok.kind == tokNumber:
		t = numeral(p.tok.text)
	case p.boolean():
		t = term.Bool(p.tok.word("true"))
	case p.tok.kind == tokString:
		t, err = p.literal()
		return t, err == nil, err
	default:
		return t, false, nil
	}
	return t, true, p.next()
}

// boolean reports whether true or false is next.
func (p *parser) boolean() bool { return p.tok.word("true") || p.tok.word("false") }

func (p *parser) literal() (t term.Term, err error) {
	text := p.tok.text
	if err := p.next(); err != nil {
		return t, err
	}
	switch {
	case p.tok.kind == tokLang:
		t = term.LangString(text, p.tok.text)
		return t, p.next()
	case p.tok.is("^^"):
		if err := p.next(); err != nil {
			return t, err
		}
		if p.tok.kind != tokIRI && p.tok.kind != tokName {
			return t, p.unexpected("a datatype")
		}
		iri, err := p.iri()
		if err != nil {
			return t, err
		}
		if iri == "" {
			return t, p.tok.pos.Syntax("empty datatype")
		}
		return term.Typed(text, iri), p.next()
	}
	return term.String(text), nil
}

// numeral is the literal that an unquoted number abbreviates. Its lexical form
// is kept (01 is not 1 as a term) unless it is the canonical one.
func numeral(s string) term.Term {
	switch {
	case strings.ContainsAny(s, "eE"):
		return term.Typed(s, term.XSDDouble)
	case strings.Contains(s, "."):
		return term.Typed(s, term.XSDDecimal)
	}
	return term.Typed(s, term.XSDInteger)
}
