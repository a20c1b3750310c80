package sparql

import (
	"slices"
	"strings"

	"github.com/triegs/triegs/query"
)

// functions are the aggregates by their names in upper case.
var functions = map[string]query.Func{
	"COUNT": query.Count, "SUM": query.Sum, "AVG": query.Avg, "MIN": query.Min, "MAX": query.Max,
}

// operators may join aggregates to an expression.
var operators = []string{"+", "-", "*", "/", "=", "!=", "<", "<=", ">", ">=", "&&", "||"}

// grouping is the GROUP BY clause.
type grouping struct {
	pos   query.Pos // zero without one
	vars  []query.Var
	given []query.Pos // of each variable
}

// column refuses a second column of a name.
func (p *parser) column(name string) error {
	if p.columns[name] {
		return p.tok.pos.Syntax("variable %s is selected twice", p.tok.shown())
	}
	p.columns[name] = true
	return nil
}

// aggregate reads an aggregate of the SELECT clause, at its opening bracket.
func (p *parser) aggregate() (err error) {
	a := query.Aggregate{Var: query.NoVar, Pos: p.tok.pos}
	if a.Func, err = p.function(); err != nil {
		return err
	}
	if err := p.aggregated(&a); err != nil {
		return err
	}
	switch {
	case p.tok.kind == tokNumber || p.tok.kind == tokPunct && slices.Contains(operators, p.tok.text):
		return p.tok.pos.Unsupported("an expression over aggregates in SELECT")
	case !p.tok.word("AS"):
		return p.unexpected("AS")
	}
	if err := p.next(); err != nil {
		return err
	}
	if p.tok.kind != tokVar {
		return p.unexpected("a variable")
	}
	if err := p.column(p.tok.text); err != nil {
		return err
	}
	a.Column = p.tok.text
	p.named = append(p.named, p.tok.pos)
	p.q.Aggregates = append(p.q.Aggregates, a)
	if err := p.next(); err != nil {
		return err
	}
	return p.want(")")
}

// function reads the name of an aggregate and the bracket behind it, and refuses
// what else may stand in the SELECT clause.
func (p *parser) function() (f query.Func, err error) {
	pos := p.tok.pos
	if err := p.next(); err != nil {
		return 0, err
	}
	first := p.tok
	if first.kind != tokWord || p.boolean() {
		return 0, pos.Unsupported("an expression that is no aggregate in SELECT")
	}
	if err := p.next(); err != nil {
		return 0, err
	}
	f, ok := functions[strings.ToUpper(first.text)]
	switch {
	case ok:
		return f, p.want("(")
	case first.word("GROUP_CONCAT") || first.word("SAMPLE"):
		return 0, pos.Unsupported("aggregate %s in SELECT", first.shown())
	}
	return 0, pos.Unsupported("function %s in SELECT", first.shown())
}

// aggregated reads what is aggregated, and the closing bracket behind it.
func (p *parser) aggregated(a *query.Aggregate) error {
	if p.tok.word("DISTINCT") {
		if a.Func != query.Count {
			return p.tok.pos.Unsupported("DISTINCT in %s", strings.ToUpper(a.Func.String()))
		}
		a.Func = query.CountDistinct
		if err := p.next(); err != nil {
			return err
		}
	}
	switch {
	case p.tok.is("*") && a.Func == query.Count:
	case p.tok.is("*") && a.Func == query.CountDistinct:
		return p.tok.pos.Unsupported("COUNT(DISTINCT *)")
	case p.tok.kind == tokVar:
		a.Var = p.variable(p.tok.text)
	case p.tok.kind == tokEnd || p.tok.is(")") || p.tok.is("*"):
		return p.unexpected("a variable")
	default:
		return p.tok.pos.Unsupported("an expression in an aggregate")
	}
	if err := p.next(); err != nil {
		return err
	}
	if p.tok.is(")") {
		return p.next()
	}
	if p.tok.kind == tokEnd || p.tok.is("}") || p.tok.is("{") || p.tok.word("AS") {
		return p.unexpected(`")"`)
	}
	return p.tok.pos.Unsupported("an expression in an aggregate")
}

// groupBy reads the GROUP BY clause, at its first word.
func (p *parser) groupBy() error {
	p.grouped.pos = p.tok.pos
	if err := p.next(); err != nil {
		return err
	}
	if !p.tok.word("BY") {
		return p.unexpected("BY")
	}
	if err := p.next(); err != nil {
		return err
	}
	for p.tok.kind == tokVar {
		p.grouped.vars = append(p.grouped.vars, p.variable(p.tok.text))
		p.grouped.given = append(p.grouped.given, p.tok.pos)
		if err := p.next(); err != nil {
			return err
		}
	}
	if p.tok.is("(") || p.tok.kind == tokIRI || p.tok.kind == tokName {
		return p.tok.pos.Unsupported("an expression in GROUP BY")
	}
	if len(p.grouped.vars) > 0 {
		return nil
	}
	if p.tok.kind == tokWord {
		return p.tok.pos.Unsupported("an expression in GROUP BY")
	}
	return p.unexpected("a variable")
}

// checkAggregates refuses aggregates that go with nothing, and groups of other
// variables than those selected. The variables of COUNT are taken away: every
// variable has a value in every solution, so that each one is counted.
func (p *parser) checkAggregates(bound []bool) error {
	g := &p.grouped
	if len(p.q.Aggregates) == 0 {
		if g.pos != (query.Pos{}) {
			return g.pos.Unsupported("GROUP BY without an aggregate")
		}
		return nil
	}
	for i := range p.q.Aggregates {
		a := &p.q.Aggregates[i]
		if a.Var != query.NoVar && !bound[a.Var] {
			return a.Pos.Syntax("aggregated variable %s is in no triple pattern", p.shown(a.Var))
		}
		if v, ok := p.vars[a.Column]; ok {
			return p.named[i].Syntax("AS gives a column the name of variable %s, which the query has", p.shown(v))
		}
		if a.Func == query.Count {
			a.Var = query.NoVar
		}
	}
	in := make([]bool, len(p.q.Vars))
	for _, v := range g.vars {
		in[v] = true
	}
	selected := make([]bool, len(p.q.Vars))
	for i, v := range p.q.Head {
		if selected[v] = true; !in[v] {
			return p.headPos[i].Syntax("variable %s is selected beside an aggregate and is not in GROUP BY", p.shown(v))
		}
	}
	for i, v := range g.vars {
		if !selected[v] {
			return g.given[i].Unsupported("GROUP BY variable %s, which is not selected", p.shown(v))
		}
	}
	// A group is one row, whose variables tell it from all others.
	p.q.Distinct = false
	return nil
}

// shown is a variable for a message.
func (p *parser) shown(v query.Var) string { return query.Quote("?" + p.q.Vars[v]) }
