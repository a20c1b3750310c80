// Package triegs is an embeddable database that keeps the answers of graph
// queries up to date while edges arrive, repeat and go.
//
// A store holds relations, which are multisets of facts, and registered
// queries. Events come in batches. A batch is applied as one epoch: it is
// logged, its net change goes through the views of every query once, and one
// immutable root vector is published. The answers of a query are enumerated from
// its views; they are stored only for queries that are acyclic and not free-connex.
//
// # Types
//
// [Open] gives a [DB]. [DB.Append] takes a [Batch] of [Event] values whose facts
// are tuples of [Term]. [DB.Register] adds a query, in rule or SPARQL text.
// [DB.Snapshot] pins the last epoch; [Snapshot.Answers] walks the answers of a
// query in it as [Row] values, [Snapshot.Lookup] finds one, [Snapshot.Count]
// counts them, [Snapshot.Select] answers a query once. [DB.Explain] tells what a
// query costs and why.
//
// [DB.Subscribe] tells the exact changes of the answers of a query, epoch by epoch or
// for as many epochs as have passed, each a unit with a [Token] to go on from. Under a name it goes on behind what was
// acknowledged ([Subscription.Ack]), also after a restart.
//
// A query sees all live facts, or through a window (in its text, or [Window] and
// [Last]) those of a span of event time or the newest ones. Logical time is that
// of the batches or the clock, or follows the watermarks of the sources with
// Options.EventTime; [DB.Advance] moves it without events. What no window sees any
// more expires, see [DB.Retain].
//
// A store on disk is a log of its epochs and two checkpoints. [DB.Checkpoint]
// takes one, and so does the store itself in the background; [Open] loads the
// newest and replays the log behind it, and [DB.Recovery] tells what it did.
// [DB.Backup] copies a store that goes on, [Restore] makes a store of the copy,
// [DB.Verify] checks a store, and [Repair] saves what is good of a damaged one.
//
// # Guarantees
//
//   - Consistency: everything that is read through a Snapshot, of all queries,
//     is the state of one epoch, for as long as the Snapshot is open.
//   - Atomicity: a batch is refused whole or applied whole.
//   - Durability: under SyncEpoch, the default, an epoch that readers can see
//     survives a crash. Events with a source and an offset are applied once.
//   - Integrity: what is read from disk is what was written, or the error is
//     ErrCorrupt. A failed write, a full disk included, ends neither the process
//     nor the readers; checkpoints that fail leave the log as it is.
//   - Time: at logical time t a window of range W holds the contributions with
//     event time in (t-W, t], to the nanosecond, each on its own: one that expires
//     takes away one copy. Recovery expires nothing twice and forgets nothing.
//   - Exactness: a multiplicity is exact or ErrOverflow.
//   - Delay: the work between two answers depends on the query only.
//
// # Caveats
//
// One goroutine writes at a time and others wait. A row is reused by the next
// step; Row.Clone keeps it. A Snapshot must be closed: it keeps the memory of
// its epoch. All facts are in memory; the disk makes them durable.
package triegs
