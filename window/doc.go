// Package window owns the live contributions of all relations: the multiset
// behind every base fact, with the event time, the value and the ID of each
// copy.
//
// # Types
//
// [Store] holds the contributions. It is private to the single writer, who
// applies the events of one epoch between [Store.Begin] and [Store.Commit] or
// [Store.Rollback]. [Changes] walks what the epoch has done to the
// multiplicities of a relation, net. [Capture] reads the state of one epoch in
// slices while later epochs run, all of it or what has changed since the capture
// before, and [Restorer] brings it back; docs/format/facts.md tells the bytes.
//
// [Store.SetWindows] says which windows look at a relation, and
// [Store.Advance] moves them to a logical time and retracts what nothing needs
// any more. A contribution is kept once, however many windows show it: a window
// is the two ends of what it shows.
//
// [Store.SetValued] says that somebody reads the values too: cursors such as
// [Store.ValuedChanges] tell what those above tell, by fact and value.
//
// In event-time mode events come by [Store.Wait] and are applied by
// [Store.Release], in the order of their event times and not of their arrival;
// docs/format/waiting.md tells what a checkpoint holds of them.
//
// # Guarantees
//
//   - A retraction takes the contribution that would expire first: the one with
//     the least time, of equals the earliest appended.
//   - A failed operation leaves the store as it was before that operation, and
//     Rollback leaves it as it was at Begin, the order of contributions
//     included.
//   - An insertion or retraction costs O(1) expected; on a fact with n copies
//     it is O(log n) unless it touches the oldest or the newest copy, and O(n)
//     for a retraction by value that skips other values.
//   - The changes of a window are those between what it showed at Begin and what
//     it shows now, each fact once. Moving all windows costs what enters, leaves
//     and expires, whatever the span of time. No arithmetic on times wraps.
//   - After Release the state is the one that all events would give in the order
//     of their event times, each at its own logical time, whatever the order in
//     which they came, if none was older than settle when it came.
//   - What a chain of captures restores is the store at the newest of them:
//     the same contributions in the same records, and so the same retractions.
//     The order in which free records are used again is not kept.
//   - Nothing depends on addresses or on the seed of the hash: the same
//     operations give the same changes in the same order.
//
// # Invariants
//
//   - A fact has a record exactly while it has a contribution or is touched by
//     the running epoch; records never move and are reused only after the epoch, so
//     that undo entries and IDs refer to them by number.
//   - Between two epochs the state word of a record is 0 exactly if the record
//     holds no fact.
//   - A record that changes is in the set of changed ones before it does, if the
//     store tracks them, and its state is saved if a capture has yet to read it.
//   - Contributions of one fact are ordered by (time, sequence number).
//     Sequence numbers grow with each insertion. They are given back by
//     Rollback, and when an event that came out of order has insertions done
//     again.
//   - The indexes of a relation by time and by number hold each of its
//     contributions once; where everything is kept, only those that a window may
//     look at again. A relation without windows has none.
//   - What Release has applied can be undone while it is not final: the history
//     has what each event did, and Advance retracts nothing that an event which
//     may still come could find.
//   - A relation whose values are read has a shadow, in which each of its
//     contributions is under its fact and its value, with the same time and number.
//     The shadow's windows are the relation's, it is touched with the relation only,
//     and undoing an operation on the relation undoes what it did to the shadow.
//   - The reorder buffer and the contributions name each other by tuple, number
//     and ID only, so that each is rolled back without the other.
//   - All that grows with the number of facts is pointer-free, so that the
//     garbage collector has nothing to scan; IDs are the exception, and cost
//     nothing where they are not used.
//
// The package never sees terms, never reads a clock, and never evaluates
// anything.
package window
