// Package wal owns the directory of a store on disk: its identity file, its
// lock, the note of what was acknowledged, and the log itself, in which one
// entry is one epoch. The segments are written by tidwall/wal; this package
// adds what that library leaves to its user: a checksummed frame around each
// entry, repair of a torn tail before the library sees it, group commit,
// directory syncs, one owner at a time, and a log that stops at the first
// failed write.
//
// It never looks into a payload, never decides what an epoch is, and never
// reads through the library: recovery and replay walk the segment files with
// a reader of their own, which is what a read-only open needs (the library
// opens its files for writing) and what concurrent replays need (its cache is
// not safe for two readers).
//
// # Directory
//
//	STORE    identity: store id, log id, timeline, format version, flags
//	LOCK     kernel lock; holds the process id of the writer
//	ACKED    note: the highest index known to be on stable storage
//	RELAXED  marker: entries may have been acknowledged before they were durable
//	log/     segments, each named by the index of its first entry
//
// docs/format/log.md draws the bytes.
//
// # Invariants
//
//   - Indexes are contiguous. Entry i+1 is written after entry i, by one
//     goroutine, in the order of the Enqueue calls.
//   - In SyncEpoch an entry's done function is called with nil only after the
//     entry, the directory that names its segment, and then the note have been
//     written in that order. So the note never leads the log.
//   - ackedThrough of a frame is below its own index and never shrinks along
//     the log.
//   - After a failed write, sync or segment change nothing is written again
//     through the same handle: what the page cache holds then proves nothing.
//   - Open keeps everything that was acknowledged or refuses. It cuts the log
//     at the first bad frame of the last segment only when neither a later
//     frame, nor the note, nor Options.Cover says that the entry there was
//     acknowledged; where only Cover does, it leaves the segment as it is and
//     begins a new one behind what is covered.
//   - What a checkpoint covers matters to nobody: a segment without an entry
//     behind it is not read, and may be in any state. It is removed as a whole,
//     oldest first, and never the last one.
//   - Two states of a store that somebody may have told apart by their epochs
//     are never on one timeline. In the relaxed modes the marker is durable
//     before the first entry; whoever finds it draws a new timeline.
//   - A directory with a STORE is a whole store: Create writes that file last.
//   - A read-only log creates, changes and removes nothing.
package wal
