// Package fuzz holds the tests that see the product as a user does: they use
// the public API only, and compare it with the brute-force evaluator, with an SQL
// engine, with itself under settings that must not matter, and with recorded
// histories.
//
// It owns the differential, metamorphic and history tests, the fuzz targets
// over whole stores, the cases named by their ids, and the data-driven files
// under testdata. It holds no code that runs outside tests.
//
// Invariants: every run is fixed by its seed, and a failing case is printed as
// text that can be put under testdata/cases, with windows under testdata/windows,
// from where it is run for ever.
package fuzz
