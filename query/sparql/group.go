package sparql

import (
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

// groupPattern reads the group behind its opening brace, up to and including
// the closing one.
func (p *parser) groupPattern() error {
	afterTriples := false // a point has to come before more triples
	for {
		switch {
		case p.tok.is("}"):
			return p.next()
		case p.tok.kind == tokWord && !p.boolean():
			if err := p.clause(); err != nil {
				return err
			}
			if _, err := p.accept("."); err != nil {
				return err
			}
			afterTriples = false
		case p.tok.is("{"):
			return p.nestedGroup()
		case afterTriples:
			return p.unexpected(`"." or "}"`)
		default:
			if err := p.triples(); err != nil {
				return err
			}
			point, err := p.accept(".")
			if err != nil {
				return err
			}
			afterTriples = !point
		}
	}
}

// clause reads a part of the group that begins with a keyword.
func (p *parser) clause() error {
	if err := p.refused("OPTIONAL", "GRAPH", "MINUS", "BIND", "SERVICE", "UNION", "SELECT", "WINDOW", "LET", "EXISTS", "NOT"); err != nil {
		return err
	}
	switch {
	case p.tok.word("FILTER"):
		return p.filter()
	case p.tok.word("VALUES"):
		p.group++
		return p.values()
	}
	return p.unexpected("a triple pattern, FILTER or VALUES")
}

// nestedGroup refuses a group inside the group, under the name of what it is
// part of, which may stand behind it.
func (p *parser) nestedGroup() error {
	pos := p.tok.pos
	if err := p.next(); err != nil {
		return err
	}
	if p.tok.word("SELECT") {
		return pos.Unsupported("subquery")
	}
	for open := 1; open > 0; {
		switch {
		case p.tok.kind == tokEnd:
			return p.unexpected(`"}"`)
		case p.tok.is("{"):
			open++
		case p.tok.is("}"):
			open--
		}
		if err := p.next(); err != nil {
			return err
		}
	}
	if p.tok.word("UNION") {
		return pos.Unsupported("UNION")
	}
	return pos.Unsupported("a group inside the group")
}

// triples reads the triple patterns of one subject.
func (p *parser) triples() error {
	if !p.tok.is("[") {
		subject, err := p.node()
		if err != nil {
			return err
		}
		return p.predicates(subject)
	}
	subject, list, err := p.squareBrackets()
	if err != nil {
		return err
	}
	if list && (p.tok.is(".") || p.tok.is("}") || p.tok.kind == tokWord && p.tok.text != "a") {
		return nil
	}
	return p.predicates(subject)
}

// predicates reads a predicate list; a semicolon may be followed by nothing.
func (p *parser) predicates(subject query.Arg) error {
	for {
		relation, err := p.predicate()
		if err != nil {
			return err
		}
		if err := p.objects(subject, relation); err != nil {
			return err
		}
		more := false
		for p.tok.is(";") {
			more = true
			if err := p.next(); err != nil {
				return err
			}
		}
		word := p.tok.kind == tokWord && p.tok.text != "a"
		if !more || word || p.tok.is(".") || p.tok.is("}") || p.tok.is("]") || p.tok.is("{") {
			return nil
		}
	}
}

func (p *parser) objects(subject query.Arg, relation string) error {
	for {
		pos := p.tok.pos
		if len(p.q.Atoms) >= query.MaxAtoms {
			return pos.Unsupported("more than %d triple patterns", query.MaxAtoms)
		}
		at := len(p.q.Atoms) // before the patterns inside square brackets
		p.q.Atoms = append(p.q.Atoms, query.Atom{Relation: relation, Pos: pos})
		object, err := p.node()
		if err != nil {
			return err
		}
		p.q.Atoms[at].Args = []query.Arg{subject, object}
		for _, a := range p.q.Atoms[at].Args {
			if b := p.blanks[a.Var]; b != nil {
				b.uses++
			}
		}
		comma, err := p.accept(",")
		if err != nil || !comma {
			return err
		}
	}
}

// predicate reads the relation of a triple pattern.
func (p *parser) predicate() (relation string, err error) {
	pos := p.tok.pos
	switch {
	case p.tok.kind == tokVar:
		return "", pos.Unsupported("variable %s in the place of a predicate", p.tok.shown())
	case p.tok.is("^") || p.tok.is("(") || p.tok.is("!"):
		return "", pos.Unsupported("property path")
	case p.tok.kind == tokWord && p.tok.text == "a":
		relation = term.RDFType
	case p.tok.kind == tokIRI || p.tok.kind == tokName:
		if relation, err = p.iri(); err != nil {
			return "", err
		}
		if relation == "" {
			return "", pos.Syntax("a relation needs a name")
		}
	default:
		return "", p.unexpected("a predicate")
	}
	if err := p.next(); err != nil {
		return "", err
	}
	for _, mark := range []string{"/", "|", "^", "*", "+", "?"} {
		if p.tok.is(mark) {
			return "", p.tok.pos.Unsupported("property path (%s)", mark)
		}
	}
	return relation, nil
}

// node reads a subject or an object.
func (p *parser) node() (query.Arg, error) {
	switch {
	case p.tok.kind == tokVar:
		v := p.variable(p.tok.text)
		return query.Arg{Var: v}, p.next()
	case p.tok.kind == tokBlank:
		v, err := p.blankNode(p.tok.text)
		if err != nil {
			return query.Arg{}, err
		}
		return query.Arg{Var: v}, p.next()
	case p.tok.is("["):
		arg, _, err := p.squareBrackets()
		return arg, err
	case p.tok.is("("):
		return query.Arg{}, p.tok.pos.Unsupported("collection")
	case p.tok.is("<<"):
		return query.Arg{}, p.tok.pos.Unsupported("quoted triple")
	}
	t, ok, err := p.constant()
	if err != nil {
		return query.Arg{}, err
	}
	if !ok {
		if p.tok.fault != nil {
			return query.Arg{}, p.tok.pos.Syntax("%v", p.tok.fault)
		}
		return query.Arg{}, p.unexpected("a node of a triple pattern")
	}
	return query.Arg{Var: query.NoVar, Const: t}, nil
}

// squareBrackets reads [] or [ predicate list ]; list tells the second.
func (p *parser) squareBrackets() (arg query.Arg, list bool, err error) {
	if err := p.enter(); err != nil {
		return arg, false, err
	}
	if err := p.next(); err != nil {
		return arg, false, err
	}
	arg = query.Arg{Var: p.fresh()}
	if !p.tok.is("]") {
		list = true
		if err := p.predicates(arg); err != nil {
			return arg, list, err
		}
	}
	p.leave()
	return arg, list, p.want("]")
}

// values reads an inline table, inside or behind the group.
func (p *parser) values() error {
	t := query.Values{Pos: p.tok.pos}
	if err := p.next(); err != nil {
		return err
	}
	bracketed, err := p.accept("(")
	if err != nil {
		return err
	}
	named := map[query.Var]bool{}
	for p.tok.kind == tokVar && (bracketed || len(t.Vars) == 0) {
		v := p.variable(p.tok.text)
		if named[v] {
			return p.tok.pos.Syntax("variable %s stands twice", p.tok.shown())
		}
		named[v] = true
		t.Vars = append(t.Vars, v)
		if err := p.next(); err != nil {
			return err
		}
	}
	if bracketed {
		if err := p.want(")"); err != nil {
			return err
		}
		if len(t.Vars) == 0 {
			return t.Pos.Unsupported("VALUES without a variable")
		}
	}
	if len(t.Vars) == 0 {
		return p.unexpected("a variable")
	}
	if err := p.want("{"); err != nil {
		return err
	}
	for !p.tok.is("}") {
		row, err := p.row(len(t.Vars), bracketed)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, row)
	}
	p.q.Values = append(p.q.Values, t)
	return p.next()
}

func (p *parser) row(width int, bracketed bool) ([]term.Term, error) {
	pos := p.tok.pos
	if bracketed {
		if err := p.want("("); err != nil {
			return nil, err
		}
	}
	var row []term.Term
	for bracketed && !p.tok.is(")") || !bracketed && len(row) == 0 {
		if err := p.refused("UNDEF"); err != nil {
			return nil, err
		}
		t, ok, err := p.constant()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, p.unexpected("a value")
		}
		row = append(row, t)
	}
	if len(row) != width {
		return nil, pos.Syntax("a row of %d values for %d variables", len(row), width)
	}
	if bracketed {
		return row, p.next()
	}
	return row, nil
}
