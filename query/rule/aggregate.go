package rule

import (
	"fmt"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/semiring"
)

// functions are the aggregates by their names.
var functions = map[string]query.Func{
	"count": query.Count, "sum": query.Sum, "avg": query.Avg, "min": query.Min, "max": query.Max, "topk": query.TopK,
}

// aggregate reads an aggregate of the head behind its name.
func (p *parser) aggregate(name string, pos query.Pos) (err error) {
	a := query.Aggregate{Var: query.NoVar, Pos: pos}
	known := false
	if a.Func, known = functions[name]; !known {
		return pos.Unsupported("aggregate %s in the head", query.Quote(name))
	}
	p.accept("(")
	switch a.Func {
	case query.Count:
		if !p.at(")") {
			if err := p.countDistinct(); err != nil {
				return err
			}
			a.Func = query.CountDistinct
			a.Var, err = p.aggregated()
		}
	case query.TopK:
		if a.Var, err = p.aggregated(); err != nil {
			return err
		}
		if !p.accept(",") {
			return p.unexpected(`"," and the number of values`)
		}
		a.K, err = p.kept()
	default:
		a.Var, err = p.aggregated()
	}
	if err != nil {
		return err
	}
	if !p.accept(")") {
		return p.unexpected(`")" after the aggregate`)
	}
	variable := ""
	if a.Var != query.NoVar {
		variable = p.q.Vars[a.Var]
	}
	a.Column = a.Rule(variable)
	if p.columns[a.Column] {
		return pos.Syntax("aggregate %s stands twice in the head", a.Column)
	}
	p.columns[a.Column] = true
	p.q.Aggregates = append(p.q.Aggregates, a)
	return nil
}

// kept reads the number of values of a topk, which the semiring of that name
// bounds.
func (p *parser) kept() (int, error) {
	pos := p.Pos()
	k, err := p.positive("topk", "the number of values", 31)
	if err != nil {
		return 0, err
	}
	if _, err := semiring.Canonical(fmt.Sprintf("topk(%d)", k)); err != nil {
		return 0, fmt.Errorf("%v: %w", pos, err)
	}
	return int(k), nil
}

// countDistinct reads the word that has to stand in a count with an argument.
func (p *parser) countDistinct() error {
	start := p.Cursor
	word := p.name()
	switch {
	case word == "distinct":
		return nil
	case word != "" || start.Rest() != "" && start.Rest()[0] == '*':
		return start.Pos().Unsupported("count of %s: count() is the number of valuations, count(distinct v) that of the values of v",
			query.Quote(first(start.Rest(), word)))
	}
	return p.unexpected(`"distinct" or ")"`)
}

// first is the word that a text begins with, or its first character.
func first(text, word string) string {
	if word == "" {
		return text[:1]
	}
	return word
}

// aggregated reads the variable in an aggregate.
func (p *parser) aggregated() (query.Var, error) {
	pos := p.Pos()
	if p.constantAhead() {
		return query.NoVar, pos.Unsupported("an aggregate of a constant")
	}
	switch name := p.name(); {
	case name == "":
		return query.NoVar, p.unexpected("a variable")
	case name == "_":
		return query.NoVar, pos.Syntax("an anonymous variable cannot be aggregated")
	case name == "true" || name == "false":
		return query.NoVar, pos.Unsupported("an aggregate of a constant")
	case p.at("("):
		return query.NoVar, pos.Unsupported("function %s", query.Quote(name))
	default:
		return p.variable(name), p.arithmeticAhead()
	}
}

// checkAggregates refuses an aggregate of a variable that no atom binds.
func (p *parser) checkAggregates(bound []bool) error {
	for _, a := range p.q.Aggregates {
		if a.Var != query.NoVar && !bound[a.Var] {
			return a.Pos.Syntax("variable %s of %s is in no atom of the body", query.Quote(p.q.Vars[a.Var]), a.Func)
		}
	}
	return nil
}

// noValues tells why an annotated atom is refused.
func (p *parser) noValues() error {
	const why = "an atom with @ takes the values of its contributions as annotations, "
	switch {
	case len(p.q.Aggregates) > 0:
		return p.valued.Syntax(why + "which aggregates do not read")
	case p.q.Distinct:
		return p.valued.Syntax(why + "which distinct does not read")
	}
	return p.valued.Syntax(why + "which counting does not read: name a semiring that does, such as minplus or int")
}
