// Package checkpoint keeps the checkpoints of a store: a chain of elements in
// one Pebble directory. It is about bytes. What a fact chunk holds is the
// business of whoever wrote it; how to make state of it is recovery's.
//
// A chain begins with a full element, which holds every fact and term, and
// goes on with incremental ones, which hold what changed since the element
// before. A checkpoint is a chain up to one element, so the one before it is
// the same chain without its last element, and keeping two costs no more than
// keeping one. A new generation begins with a full element when the increments
// have grown to half of the old one ([Store.Begin] decides); the generation
// before it goes in the same step that lets the first increment of the new
// one in, unless it is held ([Store.Hold]).
//
// # Types
//
// [Store] is the directory. [Writer] makes one element, [Reader] reads one
// checkpoint, [Header] says what belongs to a checkpoint beside facts and
// terms. The folder vault holds Pebble itself.
//
// docs/format/checkpoint.md draws the bytes.
//
// # Invariants
//
//   - An element enters whole or not at all: its tables are complete and
//     synced in checkpoint.tmp before one ingest lets them in, in the same step
//     that drops what is no longer kept.
//   - Elements of a generation are numbered from 0 without a gap. Each names
//     the checksum of the one before, so the last one vouches for the chain.
//   - Key ranges of elements never overlap, so nothing is ever compacted.
//   - Term ids ascend within an element and from each element to the next.
//   - What a reader got is right only if the call that gave it returned nil:
//     counts and sums come last.
//   - A damaged element takes the ones behind it in its generation with it, and
//     none before. The next element after known damage is a full one.
//   - What lingers after a Writer ([Options].Linger) is no Writer's and no
//     reader's: it is closed by its timer when nothing has changed for long
//     enough, taken by the next Writer, or closed by Close, whoever is first under
//     the mutex, and the others wait for it.
//   - A read-only store changes nothing and may stand beside a writer.
package checkpoint
