// Package record owns the bytes of one epoch in the log: what the epoch
// brought (terms, relations, events), where its sources stand after it, the
// query it registered or dropped, the retention it set, and the digest of the
// facts after it. What expires in an epoch is not in its record: it follows from
// the time of the epoch and the queries that are registered.
//
// It never interprets an event, never looks up a term, and holds nothing
// between two records: each decodes on its own. The checksum around a record
// is the log's.
//
// # Invariants
//
//   - One spelling: bytes that Decode accepts are the bytes that Append writes
//     for the decoded record. So a record can be compared by its bytes.
//   - Decode takes any bytes. It never panics, and what it allocates is at most
//     linear in their number.
//
// docs/format/log.md draws the bytes. A change of them needs a new Version.
package record
