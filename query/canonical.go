package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triegs/triegs/internal/term"
)

// Canonical writes the query in a normal form: variables are called v0, v1, ...
// by first occurrence (head, aggregates, atoms, conditions, tables), column names
// are not kept, positions and layout neither. Aggregates stand behind the output
// variables. Two queries have the same form iff they are the same up to the names
// of variables. It is a text that the parsers read back to a query of the same
// form: rule text, or SPARQL text where the query holds what the rule form cannot
// say: some conditions, tables, one aggregate in two columns. Rule text needs a
// name in its head; a query without one is called q (q_ and so on when q is a
// relation of its body). SPARQL has no word for set mode, a semiring, the window
// of one pattern nor its annotation, which stand there in comments.
func (q *Query) Canonical() string {
	w := &canonicalWriter{q: q, numbers: make([]int, len(q.Vars))}
	if q.ruleCanSay() {
		w.rule()
	} else {
		w.sparql()
	}
	return w.sb.String()
}

func (q *Query) ruleCanSay() bool {
	for i := range q.Filters {
		switch q.Filters[i].Expr.Op {
		case OpAnd, OpOr, OpNot, OpIn:
			return false
		}
	}
	return len(q.Values) == 0 && !q.repeatsAggregate()
}

type canonicalWriter struct {
	q       *Query
	sb      strings.Builder
	numbers []int // of each variable from 1, 0 = not met yet
	count   int
	mark    string // what variables begin with
	anon    string
}

func (w *canonicalWriter) list(n int, sep string, item func(i int)) {
	for i := range n {
		if i > 0 {
			w.sb.WriteString(sep)
		}
		item(i)
	}
}

func (w *canonicalWriter) variable(v Var) { w.sb.WriteString(w.named(v)) }

// named is the normal name of a variable, empty for NoVar.
func (w *canonicalWriter) named(v Var) string {
	if v == NoVar {
		return ""
	}
	if w.q.Vars[v] == "" {
		return w.anon
	}
	if w.numbers[v] == 0 {
		w.count++
		w.numbers[v] = w.count
	}
	return fmt.Sprintf("%sv%d", w.mark, w.numbers[v]-1)
}

func (w *canonicalWriter) arg(a Arg) {
	if a.Var != NoVar {
		w.variable(a.Var)
		return
	}
	switch a.Const.Kind() {
	case term.KindInt, term.KindBool:
		w.sb.WriteString(a.Const.Lexical())
	default:
		w.sb.WriteString(a.Const.String())
	}
}

func (w *canonicalWriter) rule() {
	w.anon = "_"
	w.sb.WriteString(w.headName() + "(")
	head := len(w.q.Head)
	w.list(head+len(w.q.Aggregates), ", ", func(i int) {
		if i < head {
			w.variable(w.q.Head[i])
			return
		}
		a := &w.q.Aggregates[i-head]
		w.sb.WriteString(a.Rule(w.named(a.Var)))
	})
	w.sb.WriteString(") :- ")
	w.list(len(w.q.Atoms), ", ", func(i int) {
		a := w.q.Atoms[i]
		w.sb.WriteString(term.IRI(a.Relation).String() + "(")
		w.list(len(a.Args), ", ", func(i int) { w.arg(a.Args[i]) })
		w.sb.WriteString(")")
		if a.Annotated {
			w.sb.WriteString("@")
		}
		if w.q.ownWindow(&a) {
			w.sb.WriteString("[" + a.Window.Spec() + "]")
		}
	})
	for i := range w.q.Filters {
		w.sb.WriteString(", ")
		w.expr(&w.q.Filters[i].Expr)
	}
	if w.q.Distinct {
		w.sb.WriteString(" distinct")
	}
	if w.q.Semiring != "" {
		w.sb.WriteString(" semiring " + w.q.Semiring)
	}
	if w.q.Set {
		w.sb.WriteString(" set")
	}
	if !w.q.Window.IsZero() {
		w.sb.WriteString(" " + w.q.Window.String())
	}
	w.sb.WriteString(".")
}

// headName is the name of the query, or one that is no relation of its body.
func (w *canonicalWriter) headName() string {
	if w.q.Name != "" {
		return w.q.Name
	}
	name := "q"
	for slices.ContainsFunc(w.q.Atoms, func(a Atom) bool { return a.Relation == name }) {
		name += "_"
	}
	return name
}

func (w *canonicalWriter) sparql() {
	w.mark, w.anon = "?", "[]"
	w.sb.WriteString("SELECT ")
	if w.q.Distinct {
		w.sb.WriteString("DISTINCT ")
	}
	w.list(len(w.q.Head), " ", func(i int) { w.variable(w.q.Head[i]) })
	for i := range w.q.Aggregates {
		if i > 0 || len(w.q.Head) > 0 {
			w.sb.WriteString(" ")
		}
		w.aggregate(i)
	}
	w.sb.WriteString(" WHERE {")
	for _, a := range w.q.Atoms {
		w.sb.WriteString(" ")
		w.arg(a.Args[0])
		w.sb.WriteString(" " + term.IRI(a.Relation).String() + " ")
		w.arg(a.Args[1])
		w.sb.WriteString(" .")
	}
	for i := range w.q.Filters {
		w.sb.WriteString(" FILTER (")
		w.expr(&w.q.Filters[i].Expr)
		w.sb.WriteString(")")
	}
	for _, t := range w.q.Values {
		w.sb.WriteString(" VALUES (")
		w.list(len(t.Vars), " ", func(i int) { w.variable(t.Vars[i]) })
		w.sb.WriteString(") {")
		for _, row := range t.Rows {
			w.sb.WriteString(" (")
			w.list(len(row), " ", func(i int) { w.arg(Arg{Var: NoVar, Const: row[i]}) })
			w.sb.WriteString(")")
		}
		w.sb.WriteString(" }")
	}
	w.sb.WriteString(" }" + w.q.Window.sparql())
	if len(w.q.Aggregates) > 0 && len(w.q.Head) > 0 {
		w.sb.WriteString(" GROUP BY ")
		w.list(len(w.q.Head), " ", func(i int) { w.variable(w.q.Head[i]) })
	}
	w.comments()
}

// aggregate writes an aggregate column of SPARQL text.
func (w *canonicalWriter) aggregate(i int) {
	a := &w.q.Aggregates[i]
	arg := w.named(a.Var)
	switch a.Func {
	case Count:
		arg = "*"
	case CountDistinct:
		arg = "DISTINCT " + arg
	case TopK:
		arg += fmt.Sprintf(", %d", a.K)
	}
	fmt.Fprintf(&w.sb, "(%s(%s) AS ?a%d)", strings.ToUpper(a.Func.String()), arg, i)
}

// comments says what SPARQL text has no word for.
func (w *canonicalWriter) comments() {
	if w.q.Semiring != "" {
		w.sb.WriteString(" # semiring " + w.q.Semiring)
	}
	if w.q.Set {
		w.sb.WriteString(" # set")
	}
	for i, a := range w.q.Atoms {
		if a.Annotated {
			fmt.Fprintf(&w.sb, " # %d@", i)
		}
		if w.q.ownWindow(&a) {
			fmt.Fprintf(&w.sb, " # %d[%s]", i, a.Window.Spec())
		}
	}
}

// ownWindow tells whether the window of an atom has to be said apart: not where
// it is that of the query anyway, but where an option could still change it.
func (q *Query) ownWindow(a *Atom) bool {
	return a.Window != q.Window || a.Own && q.Window.IsZero()
}

func (w *canonicalWriter) expr(e *Expr) {
	switch e.Op {
	case OpAnd, OpOr:
		w.list(len(e.Subs), " "+e.Op.String()+" ", func(i int) { w.operand(e, &e.Subs[i]) })
	case OpNot:
		w.sb.WriteString("!")
		w.operand(e, &e.Subs[0])
	case OpIn:
		w.arg(e.Left)
		w.sb.WriteString(" IN (")
		w.list(len(e.List), ", ", func(i int) { w.arg(e.List[i]) })
		w.sb.WriteString(")")
	default:
		w.arg(e.Left)
		w.sb.WriteString(" " + e.Op.String() + " ")
		w.arg(e.Right)
	}
}

// operand writes a part of e, in the brackets that it needs to stay one; never
// more of them than a text of the same condition must have.
func (w *canonicalWriter) operand(e, part *Expr) {
	bare := part.Op == OpNot || e.Op == OpOr && part.Op == OpAnd ||
		e.Op != OpNot && part.Op != OpAnd && part.Op != OpOr
	if bare {
		w.expr(part)
		return
	}
	w.sb.WriteString("(")
	w.expr(part)
	w.sb.WriteString(")")
}

// Bound reports for each variable whether it occurs in an atom.
func (q *Query) Bound() []bool {
	bound := make([]bool, len(q.Vars))
	for i := range q.Atoms {
		for _, a := range q.Atoms[i].Args {
			if a.Var != NoVar {
				bound[a.Var] = true
			}
		}
	}
	return bound
}
