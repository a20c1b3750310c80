// Package summary folds the updates of a subscription into aggregates of the
// answers by group: numbers, sums, averages, minima and maxima, kept exact while
// answers come, change and go.
//
// It owns the meaning of a window over answers. It never reads answers of its own:
// all it knows is what [Summary.Apply] and [Summary.Advance] were given. A query
// with aggregates has the same numbers at less cost, kept by the store; a summary is
// for what no query says: aggregates of aggregates or of annotations, windows over
// the answers of a query without one, several groupings of one subscription, and
// consumers in another place than the store's schema.
//
// # What is in a summary
//
// An answer is in the summary while it is an answer of the query, as often as its
// multiplicity says; once where the query has aggregates or a semiring, whose answers
// are groups already, and with Options.Distinct. A group is there while an answer of
// it is.
//
// An answer is born with its youngest fact and dies with its oldest, so answers do
// not leave in the order in which they came, and a queue of them is wrong for min and
// max. Under a windowed query this needs no care: its deltas say which answer goes,
// and an answer goes with its oldest fact. A summary of a query without windows may
// have one of its own: Options.Expiry, or Options.Times with Range, tell at the birth
// of an answer when it leaves, which is when its oldest component does: the least
// time in it and Range. It is in the summary while its expiry is after the logical time
// that the summary has reached, so that those born too late never are, and it is
// ordered by expiry, not by birth. What the query retracts before leaves before.
//
// So the state is a function of the answers at [Summary.Epoch] and of [Summary.Time],
// whichever updates have led there, of single epochs or of many at once.
//
// # Values
//
//   - Count is an int64, the number of answers.
//   - Sum is an int64 while all values in it are integers, else a float64. Both are
//     exact: floats are added without rounding, and rounded to the nearest float64 when
//     they are told, so that neither order nor retractions show. A sum that does not
//     fit is ErrOverflow, however large it was on the way.
//   - Avg is a float64: of integers the one nearest to the quotient, even where their
//     sum does not fit; else the rounded sum by the count.
//   - Min and Max are terms, in the order of the aggregates of queries.
//
// Values under Sum and Avg that are not finite numbers are ErrValue.
//
// # Errors
//
// Apply and Advance do all or nothing: after an error the summary is as it was,
// and says so by its Epoch. An update behind one that failed is refused, because
// something is missing before it; a whole answer (triegs.SnapshotFirst) begins anew.
//
// # Cost
//
// n answers differ in their group, expiry or a column that is read, k are changed by
// an update. Apply takes O(log n) for each change and for each answer that has expired,
// and O(1) for each group that it changes. Without an expiry and without Min and Max it
// is O(1) for a change, and memory grows with the groups alone; each different
// value under Min or Max of a group takes about 90 bytes, each different pair of expiry
// and values about 80 and 48 for each column that is read. The k changes are held in
// memory while they are applied.
//
// BenchmarkWindow is the round of the literature on sliding windows, one value in, one
// out and a reading, in a window of 65,536: 1 to 4 us with a count or a sum and 4 to 8
// with a minimum, on a busy machine. A finger B-tree in C++ takes 0.2 us, in order and
// without retractions; a staircase of the values that nothing dominates is
// smaller, but cannot retract either.
//
// A Summary belongs to one goroutine, as its subscription does.
package summary
