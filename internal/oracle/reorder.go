package oracle

import (
	"cmp"
	"errors"
	"slices"
)

// Reorder is the input of event-time mode: all events that were accepted, in the
// order in which they arrived. What a store holds follows from them, from the
// logical time and from the retention alone. The zero value is empty and ready.
type Reorder struct {
	events []Event
}

// Add accepts events, in the order of their arrival.
func (r *Reorder) Add(events ...Event) { r.events = append(r.events, events...) }

// Waiting counts the events whose time logical time t has not reached.
func (r *Reorder) Waiting(t int64) (n int) {
	for _, e := range r.events {
		if e.Time > t {
			n++
		}
	}
	return n
}

// State is what a store holds at logical time t: all events up to it, applied in
// the order of their event times, of equal times the insertions first, then in
// the order of arrival. What the retention does not keep at the time of an event
// is gone for that event. A retraction that finds nothing and an insertion whose
// ID is that of another fact are left out, and counted.
func (r *Reorder) State(t int64, keep map[string]Retention) (s *Store, missing, conflicts int) {
	s = new(Store).Clone() // with its maps
	s.Retain(keep)
	order := slices.Clone(r.events)
	slices.SortStableFunc(order, func(a, b Event) int {
		if d := cmp.Compare(a.Time, b.Time); d != 0 || a.Delete == b.Delete {
			return d
		}
		if a.Delete {
			return 1
		}
		return -1
	})
	for _, e := range order {
		if e.Time > t {
			break
		}
		s.Advance(e.Time)
		step := s.insert
		if e.Delete {
			step = s.retract
		}
		switch err := step(e); {
		case errors.Is(err, ErrNoSuchFact):
			missing++
		case errors.Is(err, ErrValue):
			conflicts++
		}
	}
	s.Advance(t)
	return s, missing, conflicts
}
