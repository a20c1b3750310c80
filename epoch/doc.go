// Package epoch puts one epoch together: it applies events to the live
// contributions, takes their net change through the views, writes the record to
// the log, and publishes the root vector, in this order.
//
//	apply (to the unpublished version) -> log -> sync -> publish
//
// # Invariants
//
//   - What can fail comes before the log: a refused epoch leaves no trace in
//     any room, terms and relations that it brought included.
//   - Epochs are logged in the order in which they were applied, and published
//     in that order when they are durable (or logged, in the relaxed modes).
//     The working version may be ahead of the published one by the epochs that
//     share a sync.
//   - After the log has failed nothing is applied any more; readers go on with
//     the last published epoch.
//   - A query that is being filled beside the writer has no part in any epoch
//     before the one that registers it: it reads a pinned vector, and writes
//     memory of its own.
//   - A replayed record goes the same way as a new one, except that it is not
//     logged again.
//
// The package never parses input and never looks at a clock.
package epoch
