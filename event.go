package triegs

import "time"

// Epoch numbers the published states of a store: 1, 2, 3, ... in the order of
// publication. Epoch 0 is the empty store.
type Epoch uint64

// Op says what an event does.
type Op uint8

const (
	// Insert adds one contribution to a fact. It is the zero Op.
	Insert Op = iota
	// Delete retracts one live contribution: the one with the event's ID, else
	// one of the fact (and with the event's Value, if it has one). Of several
	// the one that would expire first goes, of those the earliest appended.
	Delete
	// DeleteAll retracts every live contribution to the facts of Relation that
	// agree with Tuple, in which the zero Term agrees with every term: all facts
	// of a key, for example. That there are none is no error. The event has
	// neither ID nor Value. It is ErrUnsupported in event-time mode.
	DeleteAll
)

// String returns "insert" or "delete".
func (op Op) String() string {
	switch op {
	case Insert:
		return "insert"
	case Delete:
		return "delete"
	case DeleteAll:
		return "delete all"
	}
	return "unknown"
}

// Event inserts one contribution to a fact, or retracts one.
type Event struct {
	// Op is Insert if it is left out.
	Op Op
	// Relation is the name of the relation, never empty except where a Delete
	// goes by ID alone.
	Relation string
	// Tuple holds the terms of the fact, at least one. Its length is the arity
	// of the relation, fixed at the relation's first use. A Delete by ID may
	// leave it out; if it is given it must match the contribution.
	Tuple []Term
	// Time is the event time, to the nanosecond; zero = the batch's time. In
	// event-time mode, where the batch has none either, it is as late as its source
	// has come.
	Time time.Time
	// ID optionally names the contribution. IDs are unique among the live
	// contributions of a store. The same ID on the same fact refreshes Time
	// and Value.
	ID string
	// Value is an optional annotation of the contribution.
	Value Term
}

// Batch is a list of events that DB.Append applies in order and atomically, as
// one epoch.
type Batch struct {
	// Events in the order in which they apply. A Delete before its Insert is
	// refused.
	Events []Event
	// Source names where the events come from; "" = no exactly-once
	// bookkeeping.
	Source string
	// Offset is the offset of Events[0] in Source; the events are consecutive.
	// Events below the stored position of the source are skipped.
	Offset uint64
	// Time is the logical time of the batch, clamped so that it never goes
	// back; zero = Options.Clock. In event-time mode it is only the time of events
	// that have none.
	Time time.Time
	// Watermark, in event-time mode, says that Source is done with all times up
	// to it: logical time may come to it, as far as the other sources allow. A
	// source that never says so is done with the greatest event time that it has
	// sent. It never goes back; zero = unchanged. It counts also in a batch whose
	// events are a replay. Without effect in arrival mode.
	Watermark time.Time
	// IgnoreMissing skips, and counts, a Delete of what is not there. Without
	// it such an event refuses the whole batch with ErrNoSuchFact.
	IgnoreMissing bool
}

// Edge returns the insertion of the edge label(src, dst).
func Edge(label string, src, dst Term) Event {
	return Event{Relation: label, Tuple: []Term{src, dst}}
}

// Replace returns the events that put facts in the place of all those of a
// relation that agree with a key, in which the zero Term agrees with every term.
// In one batch that is one epoch: nobody sees the key without its facts, and a
// fact that was there before and comes again changes nothing but its time.
func Replace(relation string, key []Term, facts ...[]Term) []Event {
	events := make([]Event, 0, len(facts)+1)
	events = append(events, Event{Op: DeleteAll, Relation: relation, Tuple: key})
	for _, f := range facts {
		events = append(events, Event{Relation: relation, Tuple: f})
	}
	return events
}
