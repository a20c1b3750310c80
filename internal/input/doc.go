// Package input turns the text formats of the command line and the server into
// batches of events: tsv, csv, jsonl and N-Triples, plain or gzip, from files and
// from standard input. It owns what a line means, how lines are cut into batches and
// how a complaint names its line. It never opens a store and never repairs bad
// input: what a format does not allow is an error with file and line.
//
// # Types
//
// [Open] gives a [Stream] over a list of inputs, read in order. [Stream.Next]
// gives one [Batch] after the other, ready for DB.Append; [Batch.At] tells the
// line of an event, for what the store has against it.
//
// # Guarantees
//
//   - One pass, bounded memory: at most one batch and one line are held. Only a
//     jsonl file is read twice, the first time to look for commit lines.
//   - A batch never spans two inputs, so that a bad line takes away nothing of
//     the inputs before it.
//   - Every error is an [Error] that wraps a sentinel of the root package for
//     bad content (ErrSyntax, ErrTime, ErrValue, ErrArity, ErrUnsupported), or
//     the cause for a failed read.
//   - Nothing is guessed: a time without a zone offset is ErrTime, text that is
//     not UTF-8 is ErrSyntax, a bare empty csv node is ErrValue.
//
// # Caveats
//
// Lines that are wholly empty are skipped in every format. A line, or a csv
// record, is at most 256 MiB long.
package input
