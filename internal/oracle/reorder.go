package oracle

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// Reorder is the input of event-time mode: all events that were accepted, in the
// order in which they arrived. What a store holds follows from them, from the
// logical time and from the retention alone.
type Reorder struct {
	// Lateness is how far behind the logical time an event may come and still
	// have its place among the others.
	Lateness int64

	now    int64
	used   bool // now was set
	events []placed
}

// placed is an event with the time at which it applies: its own, or, if it came
// too late for that, the logical time at which it came.
type placed struct {
	Event
	at    int64
	phase int // insertions, deletions, what was late
}

// Late tells whether an event with this time comes too late now.
func (r *Reorder) Late(time int64) bool {
	return r.used && r.now >= math.MinInt64+r.Lateness && time < r.now-r.Lateness
}

// Add accepts events, in the order of their arrival.
func (r *Reorder) Add(events ...Event) {
	for _, e := range events {
		p := placed{Event: e, at: e.Time}
		if e.Delete {
			p.phase = 1
		}
		if r.Late(e.Time) {
			p.at, p.phase = r.now, 2
		}
		r.events = append(r.events, p)
	}
}

// Advance moves the logical time, never back.
func (r *Reorder) Advance(t int64) {
	if !r.used || t > r.now {
		r.now, r.used = t, true
	}
}

// Waiting counts the events that logical time has not reached.
func (r *Reorder) Waiting() (n int) {
	for _, e := range r.events {
		if !r.used || e.at > r.now {
			n++
		}
	}
	return n
}

// State is what a store holds at the logical time: all events up to it, applied
// in the order of their times, of equal times the insertions first, then in the
// order of arrival; behind them what came late. What the retention does not keep
// at the time of an event is gone for that event. A retraction that finds nothing
// and an insertion whose ID is that of another fact are left out, and counted.
func (r *Reorder) State(keep map[string]Retention) (s *Store, missing, conflicts int) {
	s = new(Store).Clone() // with its maps
	s.Retain(keep)
	if !r.used {
		return s, 0, 0
	}
	order := slices.Clone(r.events)
	slices.SortStableFunc(order, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.phase, b.phase))
	})
	for _, e := range order {
		if e.at > r.now {
			break
		}
		s.Advance(e.at)
		step := s.insert
		if e.Delete {
			step = s.retract
		}
		switch err := step(e.Event); {
		case errors.Is(err, ErrNoSuchFact):
			missing++
		case errors.Is(err, ErrValue):
			conflicts++
		}
	}
	s.Advance(r.now)
	return s, missing, conflicts
}
