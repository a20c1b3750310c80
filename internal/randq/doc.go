// Package randq makes random acyclic queries and random streams of inserts and
// retractions for tests, from a seed or from the bytes of a fuzzer.
//
// It owns the choice of shapes (self-joins, constants, repeated, anonymous and
// private variables, ground atoms, products, nullary heads, filters, inline
// tables, and where they are asked for windows, heads that hide joined variables,
// aggregates, semirings and annotated atoms) and of streams (small domains so
// that joins hit, duplicates, retractions by fact, by ID and by value, batches
// that must be refused). A [Case] is printed as text and read back from it, so
// that a failure can be kept, replayed and, with [Shrink], made small. It never
// runs the engine.
//
// Invariants: the same seed gives the same case; every query is acyclic,
// because its atoms are hung into a tree and share variables with their parent
// only, and without Size.Heads full, because every variable that occurs in two
// atoms is put out; an aggregate of numbers reads variables that can be nothing
// else, and a semiring values that it has.
package randq
