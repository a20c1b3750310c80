package randq

import (
	"fmt"
	"strings"

	"github.com/triegs/triegs/internal/oracle"
)

// Text gives the query in the syntax of the product. The set mode of a SPARQL
// query has no text: it is an option of its registration.
func (q *Query) Text() string {
	if q.SPARQL {
		return q.sparql()
	}
	return q.rule()
}

// short writes the N-Triples text of an integer as a bare number.
func short(t string) string {
	if lex, ok := strings.CutSuffix(t, xsdInteger); ok {
		return lex[1:]
	}
	return t
}

// rule writes the rule form.
func (q *Query) rule() string {
	arg := func(a oracle.Arg) string {
		switch {
		case a.Var == "":
			return short(a.Const)
		case anonymous(a.Var):
			return "_"
		}
		return a.Var
	}
	var body []string
	for _, a := range q.Atoms {
		args := make([]string, len(a.Args))
		for i := range args {
			args[i] = arg(a.Args[i])
		}
		own := ""
		if a.Annotated {
			own = "@"
		}
		if a.Window != q.Window {
			own += "[" + windowText(a.Window) + "]"
		}
		body = append(body, a.Relation+"("+strings.Join(args, ", ")+")"+own)
	}
	for _, c := range q.Filters {
		body = append(body, c.Left+" "+c.Op+" "+arg(c.Right))
	}
	s := q.Name + "(" + q.headText() + ") :- " + strings.Join(body, ", ")
	if q.Distinct {
		s += " distinct"
	}
	if q.Semiring != "" {
		s += " semiring " + q.Semiring
	}
	if q.Set {
		s += " set"
	}
	return s + option(q.Window) + "."
}

// sparql writes the SPARQL form.
func (q *Query) sparql() string {
	arg := func(a oracle.Arg) string {
		switch {
		case a.Var == "":
			return short(a.Const)
		case anonymous(a.Var):
			return "_:b" + a.Var[1:]
		}
		return "?" + a.Var
	}
	var s strings.Builder
	s.WriteString("SELECT ")
	if q.Distinct {
		s.WriteString("DISTINCT ")
	}
	s.WriteString(q.selectText() + "WHERE {")
	for _, a := range q.Atoms {
		fmt.Fprintf(&s, " %s :%s %s .", arg(a.Args[0]), a.Relation, arg(a.Args[1]))
	}
	for _, c := range q.Filters {
		fmt.Fprintf(&s, " FILTER(?%s %s %s)", c.Left, c.Op, arg(c.Right))
	}
	for _, v := range q.Values {
		s.WriteString(" VALUES (?" + strings.Join(v.Vars, " ?") + ") {")
		for _, row := range v.Rows {
			s.WriteString(" (" + shorts(row) + ")")
		}
		s.WriteString(" }")
	}
	return s.String() + " }" + clause(q.Window) + q.groupText()
}

// shorts writes terms with spaces between.
func shorts(ts []string) string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = short(t)
	}
	return strings.Join(out, " ")
}

// String writes the case as lines that Parse reads:
//
//	query [sparql] RULE [values VARS : ROW : ROW]
//	epoch [ignoring]
//	+ RELATION TERMS @TIME [#ID] [=VALUE]
//	- [RELATION TERMS] [#ID] [=VALUE]
func (c *Case) String() string {
	var s strings.Builder
	for _, q := range c.Queries {
		s.WriteString("query ")
		if q.SPARQL {
			s.WriteString("sparql ")
		}
		s.WriteString(q.rule())
		for _, v := range q.Values {
			s.WriteString(" values " + strings.Join(v.Vars, " "))
			for _, row := range v.Rows {
				s.WriteString(" : " + shorts(row))
			}
		}
		s.WriteString("\n")
	}
	for _, b := range c.Epochs {
		s.WriteString("epoch")
		if b.IgnoreMissing {
			s.WriteString(" ignoring")
		}
		s.WriteString("\n")
		for _, e := range b.Events {
			s.WriteString(line(e) + "\n")
		}
	}
	return s.String()
}

// line writes one event.
func line(e oracle.Event) string {
	parts := []string{"+"}
	if e.Delete {
		parts[0] = "-"
	}
	if e.Relation != "" {
		parts = append(parts, e.Relation)
	}
	if len(e.Tuple) > 0 {
		parts = append(parts, shorts(e.Tuple))
	}
	if !e.Delete {
		parts = append(parts, fmt.Sprintf("@%d", e.Time))
	}
	if e.ID != "" {
		parts = append(parts, "#"+e.ID)
	}
	if e.Value != "" {
		parts = append(parts, "="+short(e.Value))
	}
	return strings.Join(parts, " ")
}
