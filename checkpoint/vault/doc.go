// Package vault keeps Pebble behind glass: it opens one Pebble directory, lets
// sorted tables into it, reads them back, and sees to it that nothing that
// Pebble does in distress reaches the process around it.
//
// Pebble was made for servers that may end when their disk does. It calls
// Logger.Fatalf on a failed MANIFEST write and expects never to return, it
// panics on use after Close and on leaked iterators, it may block for ever
// behind a lock that a dead goroutine holds, and it reports corruption by
// ending the process unless told otherwise. This package answers each:
//
//   - One goroutine per open vault makes every call that changes anything:
//     Open, Ingest, Close. Nobody else calls them.
//   - Fatalf records the error for good, closes a channel that every waiter
//     watches, and ends the goroutine that called it with runtime.Goexit. It
//     never returns (Pebble would go on as if all were well) and never exits.
//   - Every wait ends with an answer, with that channel, with the caller's
//     context or with a deadline, whichever is first. What was given up leaves
//     the vault unusable but for Close, because nobody knows how it ended.
//   - Panics become errors. Reads are counted, and Close waits for them.
//   - No automatic compaction, no table statistics, no write-ahead log and no
//     memtable that is ever written to: the background goroutines, where an
//     error could hurt, have nothing to do.
//
// Reads run on the caller's goroutine. The calls of Fatalf on Pebble's read
// path are checks of its test builds; a read error comes back as an error.
//
// A read-only vault needs no permission to write, takes no lock and creates
// nothing: its file system refuses every change. It may be opened beside a
// writer in this process or another. [Vault.Pin] holds the files of the tables
// that it needs open, so that a writer may remove them meanwhile.
//
// # Errors
//
// Damage is errs.ErrCorrupt with the path, a directory of a later version or
// not of ours errs.ErrFormat, a directory that somebody else writes
// errs.ErrLocked, use after Close errs.ErrClosed. Errors of the operating
// system are wrapped as they are.
//
// # Invariants
//
//   - After a sticky error ([Vault.Err]) nothing but Close is done.
//   - No goroutine of this package is left after Close, unless Pebble itself
//     never comes back.
package vault
