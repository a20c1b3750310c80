package sparql

import "github.com/triegs/triegs/query"

// operand is a part of an expression: a condition, or a value when cond is nil.
type operand struct {
	cond  *query.Expr
	value query.Arg
	pos   query.Pos
}

// condition refuses a bare value where a truth value is wanted.
func (o *operand) condition() (query.Expr, error) {
	if o.cond == nil {
		return query.Expr{}, o.pos.Unsupported("a value in the place of a condition")
	}
	return *o.cond, nil
}

// term refuses a condition where a value is wanted.
func (o *operand) term() (query.Arg, error) {
	if o.cond != nil {
		return query.Arg{}, o.pos.Unsupported("a condition in the place of a value")
	}
	return o.value, nil
}

func (p *parser) filter() error {
	f := query.Filter{Pos: p.tok.pos}
	if err := p.next(); err != nil {
		return err
	}
	if !p.tok.is("(") {
		if err := p.call(); err != nil {
			return err
		}
		return p.unexpected(`"("`)
	}
	o, err := p.bracketed()
	if err != nil {
		return err
	}
	if f.Expr, err = o.condition(); err != nil {
		return err
	}
	p.q.Filters = append(p.q.Filters, f)
	return nil
}

// call refuses functions and EXISTS by their names, and any other word; it lets
// through what is neither.
func (p *parser) call() error {
	if err := p.refused("EXISTS"); err != nil {
		return err
	}
	first := p.tok
	switch {
	case first.kind == tokIRI || first.kind == tokName:
		return first.pos.Unsupported("function %s", first.shown())
	case first.kind != tokWord || p.boolean():
		return nil
	}
	if err := p.next(); err != nil {
		return err
	}
	switch {
	case first.word("NOT") && p.tok.word("EXISTS"):
		return first.pos.Unsupported("NOT EXISTS")
	case p.tok.is("("):
		return first.pos.Unsupported("function %s", first.shown())
	}
	return first.pos.Syntax("unexpected word %s", first.shown())
}

// bracketed reads an expression in its brackets.
func (p *parser) bracketed() (o operand, err error) {
	if err := p.enter(); err != nil {
		return o, err
	}
	if err := p.next(); err != nil {
		return o, err
	}
	if o, err = p.expression(query.OpOr); err != nil {
		return o, err
	}
	p.leave()
	return o, p.want(")")
}

// expression reads a chain of || (op OpOr), whose parts are chains of &&.
func (p *parser) expression(op query.Op) (operand, error) {
	part := func() (operand, error) {
		if op == query.OpOr {
			return p.expression(query.OpAnd)
		}
		return p.relation()
	}
	first, err := part()
	if err != nil || !p.tok.is(op.String()) {
		return first, err
	}
	chain := query.Expr{Op: op}
	for o := first; ; {
		sub, err := o.condition()
		if err != nil {
			return first, err
		}
		chain.Subs = append(chain.Subs, sub)
		more, err := p.accept(op.String())
		if err != nil || !more {
			return operand{cond: &chain, pos: first.pos}, err
		}
		if o, err = part(); err != nil {
			return first, err
		}
	}
}

var comparisons = map[string]query.Op{
	"=": query.OpEq, "!=": query.OpNe, "<": query.OpLt, "<=": query.OpLe, ">": query.OpGt, ">=": query.OpGe,
}

// relation reads a comparison, an IN, or a single operand.
func (p *parser) relation() (operand, error) {
	left, err := p.unary()
	if err != nil {
		return left, err
	}
	if err := p.asOperator(); err != nil {
		return left, err
	}
	if err := p.arithmetic(); err != nil {
		return left, err
	}
	negated := p.tok.word("NOT")
	if negated {
		if err := p.next(); err != nil {
			return left, err
		}
	}
	if p.tok.word("IN") {
		return p.in(left, negated)
	}
	if negated {
		return left, p.unexpected("IN")
	}
	op, ok := comparisons[p.tok.text]
	if !ok || p.tok.kind != tokPunct {
		return left, nil
	}
	if err := p.next(); err != nil {
		return left, err
	}
	right, err := p.unary()
	if err != nil {
		return left, err
	}
	if err := p.asOperator(); err != nil {
		return left, err
	}
	if err := p.arithmetic(); err != nil {
		return left, err
	}
	e := query.Expr{Op: op}
	if e.Left, err = left.term(); err != nil {
		return left, err
	}
	if e.Right, err = right.term(); err != nil {
		return left, err
	}
	return operand{cond: &e, pos: left.pos}, nil
}

// in reads the list of an IN.
func (p *parser) in(left operand, negated bool) (operand, error) {
	e := &query.Expr{Op: query.OpIn}
	var err error
	if e.Left, err = left.term(); err != nil {
		return left, err
	}
	if err := p.next(); err != nil {
		return left, err
	}
	if err := p.want("("); err != nil {
		return left, err
	}
	for !p.tok.is(")") {
		if len(e.List) > 0 {
			if err := p.want(","); err != nil {
				return left, err
			}
		}
		o, err := p.listed()
		if err != nil {
			return left, err
		}
		e.List = append(e.List, o)
	}
	if negated {
		e = &query.Expr{Op: query.OpNot, Subs: []query.Expr{*e}}
	}
	return operand{cond: e, pos: left.pos}, p.next()
}

// listed reads one value of an IN.
func (p *parser) listed() (query.Arg, error) {
	if err := p.enter(); err != nil {
		return query.Arg{}, err
	}
	o, err := p.expression(query.OpOr)
	if err != nil {
		return query.Arg{}, err
	}
	p.leave()
	return o.term()
}

func (p *parser) arithmetic() error {
	for _, mark := range []string{"+", "-", "*", "/"} {
		if p.tok.is(mark) {
			return p.tok.pos.Unsupported("arithmetic (%s)", mark)
		}
	}
	return nil
}

// unary reads a negation, an expression in brackets, a variable or a constant.
func (p *parser) unary() (operand, error) {
	pos := p.tok.pos
	switch {
	case p.tok.is("!"):
		if err := p.enter(); err != nil {
			return operand{}, err
		}
		if err := p.next(); err != nil {
			return operand{}, err
		}
		o, err := p.unary()
		if err != nil {
			return operand{}, err
		}
		p.leave()
		sub, err := o.condition()
		return operand{cond: &query.Expr{Op: query.OpNot, Subs: []query.Expr{sub}}, pos: pos}, err
	case p.tok.is("("):
		o, err := p.bracketed()
		o.pos = pos
		return o, err
	case p.tok.kind == tokVar:
		v := p.variable(p.tok.text)
		return operand{value: query.Arg{Var: v}, pos: pos}, p.next()
	}
	if err := p.arithmetic(); err != nil {
		return operand{}, err
	}
	if p.tok.kind == tokIRI || p.tok.kind == tokName {
		return p.iriOperand()
	}
	if p.tok.kind == tokWord {
		if err := p.call(); err != nil {
			return operand{}, err
		}
	}
	t, ok, err := p.constant()
	if err == nil && !ok {
		err = p.unexpected("an operand")
	}
	return operand{value: query.Arg{Var: query.NoVar, Const: t}, pos: pos}, err
}

// iriOperand reads an IRI, which with brackets behind it would be a function.
func (p *parser) iriOperand() (operand, error) {
	pos, shown := p.tok.pos, p.tok.shown()
	t, _, err := p.constant()
	if err == nil && p.tok.is("(") {
		err = pos.Unsupported("function %s", shown)
	}
	return operand{value: query.Arg{Var: query.NoVar, Const: t}, pos: pos}, err
}
