// Package lint checks the repository itself, in a test: which room may import
// which, forbidden imports and calls, comparisons of errors, the length of
// functions, doc comments, and words that have no place here.
//
// It owns the rules and the table of rooms. It never looks at types, only at
// syntax and text; what needs types is left to vet and staticcheck.
//
// Invariants: every rule has a sample that breaks it, so that a rule that has
// stopped looking is found out; the list of long functions only shrinks.
package lint
