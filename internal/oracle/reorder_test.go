package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestState checks the order in which events apply.
func TestState(t *testing.T) {
	in := func(tuple, id string, time int64) Event {
		return Event{Relation: "R", Tuple: []string{tuple}, ID: id, Time: time}
	}
	out := func(tuple, id string, time int64) Event {
		e := in(tuple, id, time)
		e.Delete = true
		if id != "" {
			e.Relation, e.Tuple = "", nil
		}
		return e
	}
	ten := map[string]Retention{"R": {Windows: []Window{{Range: 10}}}}
	for i, tc := range []struct {
		events   []Event
		t        int64
		keep     map[string]Retention
		want     string  // tuples and times that are left; missing, conflicts, waiting
		late     []Event // come before the others, but at t
		lateness int64
	}{
		{[]Event{in("a", "", 3), in("b", "", 9)}, 5, nil, "a@3 0 0 1", nil, 0},
		{[]Event{out("a", "", 4), in("a", "", 3)}, 5, nil, " 0 0 0", nil, 0},
		{[]Event{out("a", "", 2), in("a", "", 3)}, 5, nil, "a@3 1 0 0", nil, 0},
		{[]Event{out("a", "", 3), in("a", "", 3)}, 5, nil, " 0 0 0", nil, 0},
		{[]Event{in("b", "e", 4), in("a", "e", 3)}, 5, nil, "a@3 0 1 0", nil, 0},
		{[]Event{in("b", "e", 3), in("a", "e", 3)}, 5, nil, "b@3 0 1 0", nil, 0},
		{[]Event{in("a", "e", 4), in("a", "e", 3)}, 5, nil, "a@4 0 0 0", nil, 0},
		{[]Event{in("b", "e", 20), out("", "e", 21), in("a", "e", 3)}, 30, ten, " 0 0 0", nil, 0},
		{[]Event{in("a", "", 5), in("a", "", 15), out("a", "", 20)}, 22, ten, " 0 0 0", nil, 0},
		{[]Event{in("a", "", 5), in("a", "", 7), out("a", "", 8)}, 16, ten, "a@7 0 0 0", nil, 0},
		{[]Event{in("a", "", 5), in("a", "", 15)}, 15, ten, "a@15 0 0 0", nil, 0},
		{nil, 30, nil, " 1 0 0", []Event{out("a", "", 8), in("a", "", 5), out("a", "", 9)}, 0},
		{nil, 30, nil, " 0 0 0", []Event{out("a", "", 28), in("a", "", 27)}, 3},
		{nil, 30, nil, "a@26 1 0 0", []Event{out("a", "", 28), in("a", "", 26)}, 3},
		{[]Event{in("a", "e", 30)}, 30, nil, "a@4 0 0 0", []Event{in("a", "e", 4)}, 0},
		{nil, 30, ten, "a@21 0 0 0", []Event{in("a", "", 20), in("a", "", 21)}, 0},
	} {
		r := Reorder{Lateness: tc.lateness}
		if tc.late != nil {
			r.Advance(tc.t)
		}
		r.Add(tc.late...)
		r.Add(tc.events...)
		r.Advance(tc.t)
		r.Advance(tc.t - 1) // never back
		s, missing, conflicts := r.State(tc.keep)
		var left []string
		for _, e := range s.Live() {
			left = append(left, fmt.Sprintf("%s@%d", e.Tuple[0], e.Time))
		}
		got := fmt.Sprintf("%s %d %d %d", strings.Join(left, " "), missing, conflicts, r.Waiting())
		if got != tc.want {
			t.Errorf("case %d: got %q, want %q", i, got, tc.want)
		}
	}
}

// TestStateOrder checks that the order of arrival does not matter where event
// times are different.
func TestStateOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		events := make([]Event, 12)
		for i := range events {
			e := Event{Relation: "R", Tuple: []string{string(rune('a' + rng.IntN(2)))}, Time: int64(i)}
			e.Delete = rng.IntN(3) == 0
			if rng.IntN(2) == 0 {
				e.ID = string(rune('x' + rng.IntN(2)))
			}
			events[i] = e
		}
		keep := map[string]Retention{"R": {Span: 1 + rng.Int64N(12)}}
		want := ""
		for range 4 {
			rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
			var r Reorder
			r.Add(events...)
			r.Advance(20)
			s, missing, conflicts := r.State(keep)
			got := fmt.Sprint(s.Live(), missing, conflicts)
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("one order gives %s, another %s", want, got)
			}
		}
	}
}
