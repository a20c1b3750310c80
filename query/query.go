// Package query holds the logical form of a continuous query: what a text
// means, before any decision on how it is maintained. The two text forms are
// read by query/rule and query/sparql, classes are decided by query/hypergraph,
// and query/plan turns a Query into a join tree.
//
// A Query is immutable once a parser has returned it.
package query

import "github.com/triegs/triegs/internal/term"

// Var numbers a variable of a query: an index into Query.Vars.
type Var int

// NoVar marks an argument that is a constant.
const NoVar Var = -1

// Pos is a place in a query text, both counted from 1; columns count runes.
type Pos struct{ Line, Col int }

// Query is a positive conjunctive query over relations: the sum over all
// valuations of its variables of the product of the weights of its atoms,
// grouped by the head.
type Query struct {
	// Name is the head's name in rule text, empty in SPARQL text.
	Name string
	// Text is the source text as it was given.
	Text string
	// Vars names the variables; an anonymous variable has the name "" and
	// occurs exactly once.
	Vars []string
	// Head lists the output variables in column order, without repeats.
	Head []Var
	// Columns names the output columns, without SPARQL's question mark.
	Columns []string
	// HeadPos is where the head (or the SELECT clause) stands.
	HeadPos Pos
	// Atoms is the body, never empty.
	Atoms []Atom
	// Filters must all hold for a valuation to count.
	Filters []Filter
	// Values are inline tables joined with the body.
	Values []Values
	// Aggregates are the aggregate columns of the head, behind those of the output
	// variables, in the order of the text. A query has aggregates or a semiring,
	// not both.
	Aggregates []Aggregate
	// Semiring names the algebra of the annotations as semiring.Parse reads it, in
	// its canonical spelling: "minplus", "cap(10)", "access(public < secret)". It
	// is empty for the default, the checked natural numbers, and for Distinct.
	Semiring string
	// SemiringPos is where the text names it.
	SemiringPos Pos
	// Distinct asks for the Boolean semiring: every answer once.
	Distinct bool
	// Set asks for set mode: a fact weighs 1 while it has a contribution.
	Set bool
	// Window is the window of the whole query, that of every atom without one of
	// its own.
	Window Window
}

// Atom is one occurrence of a relation.
type Atom struct {
	Relation string
	Args     []Arg
	Pos      Pos
	// Window says which contributions the atom sees: its own window, else that
	// of the query.
	Window Window
	// Own says that the window is the atom's own, which may be the zero Window.
	Own bool
	// Annotated says that the values of the contributions annotate the facts
	// (atom@). A contribution without a value has the one of the semiring.
	Annotated bool
}

// Aggregate is an aggregate column of a head.
type Aggregate struct {
	Func Func
	// Var is the variable that is aggregated, NoVar for Count.
	Var Var
	// K is the number of values that TopK keeps, 0 for others.
	K int
	// Column names the column: the aggregate as written (sum(a), count()), in
	// SPARQL what AS says.
	Column string
	Pos    Pos
}

// Func tells what an Aggregate computes over the valuations of a group.
type Func uint8

// The aggregate functions.
const (
	Count         Func = iota // the number of valuations, with their multiplicities
	CountDistinct             // the number of different values of Var
	Sum                       // of numbers: an int64 while all are integers, else a float64
	Avg                       // of numbers, a float64
	Min                       // the least value
	Max                       // the greatest value
	TopK                      // the K greatest numbers, with repeats, in descending order
)

// Arg is a variable, or a constant when Var is NoVar.
type Arg struct {
	Var   Var
	Const term.Term
}

// Values is an inline table over Vars. A row that occurs n times multiplies the
// weight of each matching valuation by n.
type Values struct {
	Vars []Var
	Rows [][]term.Term
	Pos  Pos
}
