package record

import "github.com/triegs/triegs/internal/term"

// Version is the first byte of every record.
const Version = 1

// Kind says what an epoch did. The numbers are stored and never change.
type Kind uint8

// The kinds of epoch.
const (
	// Batch applied events.
	Batch Kind = 1 + iota
	// Register added a query.
	Register
	// Drop removed a query.
	Drop
	// Skip moved the position of a source forward without events.
	Skip
	// Reset began a new incarnation of a source.
	Reset
	// Advance moved logical time, and the watermarks of sources, without events.
	Advance
	// Retain changed how long a relation keeps its contributions.
	Retain

	kindEnd
)

// Record is one epoch. Slices that are empty are nil after Decode.
type Record struct {
	// Epoch is the number of the epoch, Time its logical time in nanoseconds
	// since 1970.
	Epoch uint64
	Time  int64
	// Kind says what the epoch did.
	Kind Kind
	// Terms are the terms that the epoch brings; their ids are FirstTerm,
	// FirstTerm+1, ... FirstTerm is stored only where there are terms.
	FirstTerm uint64
	Terms     []term.Term
	// Relations are the relations that the epoch brings, with the ids
	// FirstRelation, FirstRelation+1, ... FirstRelation is stored only where
	// there are relations.
	FirstRelation uint32
	Relations     []Relation
	// Events are the changes of facts in the order of their arrival.
	Events []Event
	// Sources are the positions after the epoch of the sources it moved.
	Sources []Source
	// Query is the query of a Register, or just the name for a Drop; else nil.
	Query *Query
	// Retain is what a Retain says; else nil.
	Retain *Retention
	// EventTime says that logical time was that of events, and Lateness how far
	// behind it they may come, in nanoseconds; without EventTime it is 0. What
	// waits or has been applied becomes final by it, so it is part of what the
	// epoch did.
	EventTime bool
	Lateness  int64
	// Clocked says that Time was taken from a clock, which goes on while no events
	// come.
	Clocked bool
	// Digest is the content digest of all base relations after the epoch.
	Digest [2]uint64
}

// Relation declares a relation. Arity is from 0 to MaxInt32.
type Relation struct {
	Name  string
	Arity int
}

// Event is one change. Op is the caller's; values below 7 are stored in a few
// bits, others in a byte more. Tuple holds term ids and may be empty (a
// retraction by ID alone). Time is the event's time in nanoseconds. Value is
// the id of a term, 0 where there is none; ID is the contribution's name, empty
// where there is none.
type Event struct {
	Op       uint8
	Relation uint32
	Tuple    []uint64
	Time     int64
	Value    uint64
	ID       string
}

// Source is the position of a source: the next offset it must send, and how
// many offsets it was told to pass without events. Watermark, in nanoseconds
// since 1970, counts and is stored only with HasWatermark: the source has said
// that it is done with all times up to it, with Explicit in so many words, else by
// the event times that it has sent.
type Source struct {
	Name, Incarnation string
	Next              uint64
	Skipped           uint64
	Watermark         int64
	HasWatermark      bool
	Explicit          bool
}

// Query is a registered query. Text, Set, Distinct and Window are what was given
// at its registration; the window is that of an option, not of the text.
type Query struct {
	Name, Text    string
	Set, Distinct bool
	Window        Window
}

// Window has the fields of query.Window, none of which is negative. The zero
// Window is none.
type Window struct {
	Range, Slide, Last int64
}

// Retention says for how long a relation keeps its contributions beyond what
// queries need, in nanoseconds of logical time. Span is not negative; 0 takes
// back what was said before.
type Retention struct {
	Relation string
	Span     int64
}
