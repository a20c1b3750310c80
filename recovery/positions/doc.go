// Package positions keeps the places of named consumers: how far each of them has
// acknowledged the epochs of a store. They lie in a file of their own in the
// directory of the store, because an acknowledgement is no epoch: it would be told
// to those who acknowledge it.
//
// The package knows names and numbers. When a place may be written, and what is
// kept for it, is the business of others.
//
// docs/format/subscribers.md draws the bytes.
//
// # Invariants
//
//   - What [File.Get] and [File.All] tell is on stable storage, or in memory alone
//     where the store is.
//   - A record is appended and synced, or the whole file is written anew beside it
//     and renamed. After a failed write or sync nothing is appended to the same file
//     again: what is behind its last good record proves nothing.
//   - A bad record with a good one behind it is damage, since whatever lies before a
//     synced record is synced. One without is the end that a crash has left, which
//     nobody was told of, and is passed over.
//   - A file that was opened for reading is not changed.
package positions
