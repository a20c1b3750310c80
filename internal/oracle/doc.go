// Package oracle evaluates queries straight from their definition, by nested
// loops over multisets, for tests to compare the engine with.
//
// It owns two models: [Store], the live contributions of every fact with the
// retraction rule, and [Query], a positive conjunctive query evaluated as the
// sum over valuations of the product of the weights of its atoms. It shares no
// code with the engine: no parser, no plan, no dictionary, no tries; terms are
// their N-Triples texts, which are equal exactly when the terms are. It is
// never used outside tests, and it is never made faster at the price of being
// less plain.
//
// Invariants: counts are exact integers of any size, so that what does not fit
// into the engine's int64 can be told; a refused batch leaves a Store as it was.
package oracle
