package views

import (
	"fmt"
	"strings"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
)

// Terms gives the meaning of ids. Both methods are used by the writer and, on
// ids of a published epoch, by readers.
type Terms interface {
	Term(id uint64) term.Term
}

// match is the part of an alias that a fact must satisfy, on ids.
type match struct {
	consts []constCol
	equal  [][2]int
	// conditions are evaluated on terms: filters and inline tables.
	filters []query.Filter
	values  []query.Values
	column  map[query.Var]int // of the variables that conditions use
	terms   Terms
	tuple   []uint64                  // the fact under test, for get
	get     func(query.Var) term.Term // reads tuple; made once, to allocate nothing
}

type constCol struct {
	col int
	id  uint64
}

func newMatch(a *plan.Alias, args []query.Arg, consts []constCol, terms Terms) *match {
	m := &match{consts: consts, equal: a.Equal, filters: a.Filters, values: a.Values, terms: terms}
	m.column = make(map[query.Var]int)
	for c, arg := range args {
		if _, seen := m.column[arg.Var]; arg.Var != query.NoVar && !seen {
			m.column[arg.Var] = c
		}
	}
	m.get = func(v query.Var) term.Term { return m.terms.Term(m.tuple[m.column[v]]) }
	return m
}

// factor is 0 if the fact does not match, otherwise the number of times it
// counts: more than 1 only if a row stands several times in an inline table.
func (m *match) factor(tuple []uint64) int64 {
	if !has(tuple, m.consts) {
		return 0
	}
	for _, e := range m.equal {
		if tuple[e[0]] != tuple[e[1]] {
			return 0
		}
	}
	m.tuple = tuple
	for i := range m.filters {
		if !m.filters[i].Eval(m.get) {
			return 0
		}
	}
	n := int64(1)
	for i := range m.values {
		n *= m.rows(&m.values[i])
	}
	return n
}

// rows counts the rows of an inline table that agree with the fact.
func (m *match) rows(v *query.Values) (n int64) {
next:
	for _, row := range v.Rows {
		for i, x := range v.Vars {
			if m.get(x) != row[i] {
				continue next
			}
		}
		n++
	}
	return n
}

// signature writes what the match lets through, with columns for variables: two
// matches with the same signature let the same facts through.
func (m *match) signature() string {
	var b strings.Builder
	fmt.Fprint(&b, m.consts, m.equal)
	for i := range m.filters {
		b.WriteString(" if ")
		m.expression(&b, &m.filters[i].Expr)
	}
	for _, v := range m.values {
		b.WriteString(" in")
		for _, x := range v.Vars {
			fmt.Fprintf(&b, " %d", m.column[x])
		}
		for _, row := range v.Rows {
			fmt.Fprintf(&b, " %q", row)
		}
	}
	return b.String()
}

func (m *match) expression(b *strings.Builder, e *query.Expr) {
	arg := func(a query.Arg) {
		if a.Var != query.NoVar {
			fmt.Fprintf(b, "#%d ", m.column[a.Var])
			return
		}
		fmt.Fprintf(b, "%q ", a.Const)
	}
	fmt.Fprintf(b, "(%v ", e.Op)
	switch e.Op {
	case query.OpAnd, query.OpOr, query.OpNot:
		for i := range e.Subs {
			m.expression(b, &e.Subs[i])
		}
	case query.OpIn:
		arg(e.Left)
		for _, a := range e.List {
			arg(a)
		}
	default:
		arg(e.Left)
		arg(e.Right)
	}
	b.WriteString(")")
}
