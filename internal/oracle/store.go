package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The refusals of Apply.
var (
	// ErrNoSuchFact: a retraction found nothing to retract.
	ErrNoSuchFact = errors.New("oracle: no such fact")
	// ErrValue: an ID is already that of a live contribution to another fact.
	ErrValue = errors.New("oracle: id of another fact")
	// ErrArity: a relation was used with another arity before.
	ErrArity = errors.New("oracle: arity")
)

// Event inserts a contribution, or retracts one when Delete is set.
type Event struct {
	Delete   bool
	Relation string
	Tuple    []string // nil in a retraction by ID
	Time     int64    // event time in nanoseconds
	ID       string   // "" = none
	Value    string   // "" = none
}

// contribution is one live insert.
type contribution struct {
	relation string
	tuple    []string
	number   int64 // of the append to its relation, from 1; a refresh keeps it
	time     int64
	id       string
	value    string
}

// Store holds the live contributions in the order in which they were appended,
// and the logical time. The zero value is empty and ready; its logical time is
// 1970 until the first Advance.
type Store struct {
	live      []contribution
	arity     map[string]int
	appends   map[string]int64 // to each relation, those that are gone as well
	now       int64
	started   bool // now was set
	retention map[string]Retention
}

// Weighted is a fact with the number of its live contributions.
type Weighted struct {
	Tuple  []string
	Weight int
}

// fact is a fact with the values of its live contributions, in the order of
// their appends.
type fact struct {
	Weighted
	values []string
}

// Len is the number of live contributions.
func (s *Store) Len() int { return len(s.live) }

// Live lists the live contributions in the order in which they were appended,
// as the events that inserted or refreshed them.
func (s *Store) Live() []Event {
	out := make([]Event, len(s.live))
	for i, c := range s.live {
		out[i] = Event{Relation: c.relation, Tuple: c.tuple, Time: c.time, ID: c.id, Value: c.value}
	}
	return out
}

// Clone is an independent copy.
func (s *Store) Clone() *Store {
	c := *s
	c.live, c.arity, c.appends = slices.Clone(s.live), maps.Clone(s.arity), maps.Clone(s.appends)
	if c.arity == nil {
		c.arity, c.appends = map[string]int{}, map[string]int64{}
	}
	return &c
}

// Apply applies a batch in its order, whole or not at all. With ignoreMissing
// a retraction of what is not there is skipped and counted.
func (s *Store) Apply(batch []Event, ignoreMissing bool) (skipped int, err error) {
	next := s.Clone()
	for i, e := range batch {
		step := next.insert
		if e.Delete {
			step = next.retract
		}
		err := step(e)
		if ignoreMissing && errors.Is(err, ErrNoSuchFact) {
			skipped++
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("event %d: %w", i, err)
		}
	}
	*s = *next
	return skipped, nil
}

// insert adds a contribution, or refreshes the time and the value of the live
// one that has the same ID and the same fact.
func (s *Store) insert(e Event) error {
	if n, ok := s.arity[e.Relation]; ok && n != len(e.Tuple) {
		return fmt.Errorf("%w: %s", ErrArity, e.Relation)
	}
	s.arity[e.Relation] = len(e.Tuple)
	fresh := contribution{e.Relation, e.Tuple, s.appends[e.Relation] + 1, e.Time, e.ID, e.Value}
	if e.ID != "" {
		i := slices.IndexFunc(s.live, func(c contribution) bool { return c.id == e.ID })
		if i >= 0 && !s.live[i].states(e) {
			return fmt.Errorf("%w: %s", ErrValue, e.ID)
		}
		if i >= 0 {
			fresh.number = s.live[i].number
			s.live[i] = fresh
			return nil
		}
	}
	s.appends[e.Relation]++
	s.live = append(s.live, fresh)
	return nil
}

// retract takes away the contribution that e names by its ID, or else, of
// those that match its fact and its value, the one with the least event time
// (the one that a window would lose first), of equals the earliest appended.
func (s *Store) retract(e Event) error {
	found := -1
	for i, c := range s.live {
		switch {
		case e.ID != "" && c.id != e.ID:
		case (e.ID == "" || e.Tuple != nil) && !c.states(e):
		case e.Value != "" && c.value != e.Value:
		case found < 0 || c.time < s.live[found].time:
			found = i
		}
	}
	if found < 0 {
		return fmt.Errorf("%w: %s%v %s", ErrNoSuchFact, e.Relation, e.Tuple, e.ID)
	}
	s.live = slices.Delete(s.live, found, found+1)
	return nil
}

// states tells whether the contribution is one to the fact that e names.
func (c *contribution) states(e Event) bool {
	return c.relation == e.Relation && slices.Equal(c.tuple, e.Tuple)
}
