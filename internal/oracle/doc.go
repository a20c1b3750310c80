// Package oracle evaluates queries straight from their definition, by nested
// loops over multisets, for tests to compare the engine with.
//
// It owns two models: [Store], the live contributions of every fact with the
// retraction rule, and [Query], a positive conjunctive query evaluated as the
// sum over valuations of the product of the weights of its atoms: [Query.Eval]
// for multiplicities alone, [Query.Rows] for aggregates and semirings as well. It
// shares no code with the engine: no parser, no plan, no dictionary, no tries, no
// algebras; terms are their N-Triples texts, which are equal exactly when the
// terms are. It is never used outside tests, and it is never made faster at the
// price of being less plain.
//
// Invariants: counts, integers and sums of floats are exact, so that what does
// not fit into the engine's int64 or float64 can be told and what an engine may
// round has a bound ([Number]); a refused batch leaves a Store as it was.
package oracle
