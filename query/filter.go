package query

import "github.com/triegs/triegs/internal/term"

// Filter is a condition on the values of variables, as one item of a body or
// one FILTER clause.
type Filter struct {
	Pos  Pos
	Expr Expr
}

// Op tells what an Expr does.
type Op uint8

// The operators. Comparisons are by value (term.CompareValues): numbers
// compare across kinds; between values that have no order <, <=, > and >= are
// false, = is false and != is true, and so Not of an order that does not exist
// is true.
const (
	OpAnd Op = iota // all of Subs
	OpOr            // one of Subs
	OpNot           // not Subs[0]
	OpEq            // Left = Right
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpIn // Left equals one of List
)

// String is the operator as SPARQL writes it.
func (op Op) String() string {
	names := [...]string{"&&", "||", "!", "=", "!=", "<", "<=", ">", ">=", "IN"}
	if int(op) < len(names) {
		return names[op]
	}
	return "?"
}

// Expr is a node of a condition.
type Expr struct {
	Op          Op
	Subs        []Expr // OpAnd, OpOr, OpNot
	Left, Right Arg    // comparisons; OpIn has Left only
	List        []Arg  // OpIn
}

// Vars lists the variables of the filter, each once, by first occurrence.
func (f *Filter) Vars() []Var {
	var vars []Var
	f.Expr.args(func(a Arg) {
		if a.Var == NoVar {
			return
		}
		for _, v := range vars {
			if v == a.Var {
				return
			}
		}
		vars = append(vars, a.Var)
	})
	return vars
}

// args visits the arguments of a condition from left to right.
func (e *Expr) args(visit func(Arg)) {
	switch e.Op {
	case OpAnd, OpOr, OpNot:
		for i := range e.Subs {
			e.Subs[i].args(visit)
		}
	case OpIn:
		visit(e.Left)
		for _, a := range e.List {
			visit(a)
		}
	default:
		visit(e.Left)
		visit(e.Right)
	}
}

// Eval decides the filter for the values that get gives to its variables. It
// allocates nothing (but see term.CompareValues on numbers beyond int64).
func (f *Filter) Eval(get func(Var) term.Term) bool { return f.Expr.eval(get) }

func (e *Expr) eval(get func(Var) term.Term) bool {
	switch e.Op {
	case OpAnd:
		for i := range e.Subs {
			if !e.Subs[i].eval(get) {
				return false
			}
		}
		return true
	case OpOr:
		for i := range e.Subs {
			if e.Subs[i].eval(get) {
				return true
			}
		}
		return false
	case OpNot:
		return !e.Subs[0].eval(get)
	case OpIn:
		left := e.Left.value(get)
		for i := range e.List {
			if term.Equal(left, e.List[i].value(get)) {
				return true
			}
		}
		return false
	}
	c, ok := term.CompareValues(e.Left.value(get), e.Right.value(get))
	switch e.Op {
	case OpEq:
		return ok && c == 0
	case OpNe:
		return !ok || c != 0
	case OpLt:
		return ok && c < 0
	case OpLe:
		return ok && c <= 0
	case OpGt:
		return ok && c > 0
	}
	return ok && c >= 0 // OpGe
}

func (a *Arg) value(get func(Var) term.Term) term.Term {
	if a.Var == NoVar {
		return a.Const
	}
	return get(a.Var)
}
