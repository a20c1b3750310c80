// Package bench measures TrieGS side by side with programs that were written by
// hand for one query each, and its tries side by side with other structures.
//
// It owns the workloads (deterministic streams of edges with reference counts
// that come from degrees, not from any contender), the programs by hand, and
// the timing. It never changes what it measures: contenders are driven through
// the doors that everybody uses, and every run ends with a comparison of the
// number of answers with the reference.
//
// # Invariants
//
//   - A stream is a function of its name and size: everybody measures the same
//     edges.
//   - A measurement whose number of answers is wrong is an error, not a figure.
//   - A contender is measured in a process of its own, so that the heap of one
//     is not collected on the time of another.
//
// Results stand in README.md, with the commands that make them.
package bench
