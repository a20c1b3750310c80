package oracle

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// at makes an insertion of R(a) at a time.
func at(time int64) Event { return Event{Relation: "R", Tuple: []string{"a"}, Time: time} }

// TestShows checks windows of time at their borders.
func TestShows(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	for _, tc := range []struct {
		w    Window
		time int64
		now  []int64 // the logical times at which the contribution is shown
		not  []int64
	}{
		{Window{}, 5, []int64{least, 0, 5, most}, nil},
		{Window{Range: 10}, 0, []int64{0, 1, 9}, []int64{least, -1, 10, most}},
		{Window{Range: 10}, -15, []int64{-15, -6}, []int64{-16, -5, 0}},
		{Window{Range: 10, Slide: 5}, -15, []int64{-15, -11, -10, -6}, []int64{-16, -5, -1}},
		{Window{Range: 10, Slide: 5}, 1, []int64{5, 9, 10, 14}, []int64{1, 4, 15}},
		{Window{Range: 5, Slide: 10}, 1, nil, []int64{1, 9, 10, 19, 20}}, // between two windows
		{Window{Range: 5, Slide: 10}, 6, []int64{10, 19}, []int64{9, 20}},
		{Window{Range: 1}, 7, []int64{7}, []int64{6, 8}},
		{Window{Range: most}, least, []int64{least, 0, most}, nil},
		{Window{Range: most}, 5, []int64{5, most}, []int64{4, least}},
		{Window{Range: most - 1}, least, []int64{least, -3}, []int64{-2, 0, most}},
		{Window{Range: 10}, least, []int64{least, least + 9}, []int64{least + 10, most}},
		{Window{Range: 10}, most, []int64{most}, []int64{most - 1, least}},
		{Window{Range: most, Slide: most}, -1, []int64{0, 5, most}, []int64{-1, least}},
	} {
		var s Store
		if _, err := s.Apply([]Event{at(tc.time)}, false); err != nil {
			t.Fatal(err)
		}
		for i, now := range slices.Concat(tc.now, tc.not) {
			c := s.Clone()
			c.now, c.started = now, true
			if got, want := len(c.In("R", tc.w)) == 1, i < len(tc.now); got != want {
				t.Errorf("%+v, event time %d, logical time %d: shown: %v, want %v", tc.w, tc.time, now, got, want)
			}
		}
	}
}

// TestLast checks windows of the newest appends: what was retracted counts, a
// refresh is no append, and another relation does not matter.
func TestLast(t *testing.T) {
	in := func(tuple, id string, at int64) Event {
		return Event{Relation: "R", Tuple: []string{tuple}, ID: id, Time: at}
	}
	for i, tc := range []struct {
		events []Event
		want   string // of the two newest appends
	}{
		{[]Event{in("a", "", 3)}, "[{[a] 1}]"},
		{[]Event{in("a", "", 3), in("b", "", 2), in("c", "", 1)}, "[{[b] 1} {[c] 1}]"},
		{[]Event{in("a", "", 3), in("a", "", 2), in("a", "", 1)}, "[{[a] 2}]"},
		{[]Event{in("a", "", 3), in("b", "", 2), {Delete: true, Relation: "R", Tuple: []string{"b"}}}, "[{[a] 1}]"},
		{[]Event{in("a", "", 3), in("b", "", 2), {Delete: true, Relation: "R", Tuple: []string{"b"}}, in("c", "", 1)}, "[{[c] 1}]"},
		{[]Event{in("a", "e", 3), in("b", "", 2), in("c", "", 1), in("a", "e", 4)}, "[{[b] 1} {[c] 1}]"},
		{[]Event{in("a", "", 3), {Relation: "S", Tuple: []string{"x"}}, {Relation: "S", Tuple: []string{"x"}}}, "[{[a] 1}]"},
	} {
		var s Store
		if _, err := s.Apply(tc.events, false); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.In("R", Window{Last: 2})); got != tc.want {
			t.Errorf("case %d: got %s, want %s", i, got, tc.want)
		}
	}
}

// TestEvalWindows checks a self-join whose atoms look through different windows.
func TestEvalWindows(t *testing.T) {
	var s Store
	edge := func(from, to string, at int64) Event {
		return Event{Relation: "R", Tuple: []string{from, to}, Time: at}
	}
	if _, err := s.Apply([]Event{edge("a", "b", 1), edge("b", "c", 8), edge("b", "c", 20)}, false); err != nil {
		t.Fatal(err)
	}
	q := Query{Head: []string{"x", "z"}, Atoms: atoms("R(x,y) R(y,z)")}
	q.Atoms[0].Window = Window{Range: 10}
	for _, tc := range []struct {
		now  int64
		want string // of the pair (a, c)
	}{{0, "<nil>"}, {1, "2"}, {10, "2"}, {11, "<nil>"}, {30, "<nil>"}} {
		s.Advance(tc.now)
		if got := fmt.Sprint(q.Eval(&s)[Key([]string{"a", "c"})].Count); got != tc.want {
			t.Errorf("at %d: got %s, want %s", tc.now, got, tc.want)
		}
	}
}

// TestRetention checks what is left after an advance, and that the time of a
// store never goes back.
func TestRetention(t *testing.T) {
	read := func(windows ...Window) Retention { return Retention{Windows: windows} }
	t.Run("before the first step of a slide", func(t *testing.T) {
		var s Store
		if _, err := s.Apply([]Event{at(math.MinInt64), at(0)}, false); err != nil {
			t.Fatal(err)
		}
		w := Window{Range: 10, Slide: 1_000}
		s.Retain(map[string]Retention{"R": read(w)})
		if n := s.Advance(math.MinInt64 + 3); n != 0 || len(s.In("R", w)) != 0 {
			t.Errorf("%d went, %v are shown", n, s.In("R", w))
		}
	})
	for i, tc := range []struct {
		r    map[string]Retention
		want string // event times that are left at logical time 20
	}{
		{nil, "[5 10 11 14 30]"},
		{map[string]Retention{"S": read(Window{Range: 1})}, "[5 10 11 14 30]"},
		{map[string]Retention{"R": read(Window{Range: 10})}, "[11 14 30]"},
		{map[string]Retention{"R": read(Window{Range: 2}, Window{Range: 10})}, "[11 14 30]"},
		{map[string]Retention{"R": read(Window{Range: 2}, Window{})}, "[5 10 11 14 30]"},
		{map[string]Retention{"R": read(Window{Range: 2}, Window{Last: 2})}, "[14 30]"},
		{map[string]Retention{"R": read(Window{Range: 10, Slide: 15})}, "[10 11 14 30]"},
		{map[string]Retention{"R": {Span: 7}}, "[14 30]"},
		{map[string]Retention{"R": {Windows: []Window{{Range: 2}}, Span: 10}}, "[11 14 30]"},
		{map[string]Retention{"R": {Windows: []Window{{}}, Span: 10}}, "[5 10 11 14 30]"},
	} {
		var s Store
		for _, e := range []Event{at(5), at(10), at(11), at(14), at(30)} {
			if _, err := s.Apply([]Event{e}, false); err != nil {
				t.Fatal(err)
			}
		}
		s.Retain(tc.r)
		n := s.Advance(20)
		if again := s.Advance(3); again != 0 || s.Now() != 20 || n+s.Len() != 5 {
			t.Errorf("case %d: %d went and %d again, time %d, %d left", i, n, again, s.Now(), s.Len())
		}
		var left []int64
		for _, e := range s.Live() {
			left = append(left, e.Time)
		}
		if got := fmt.Sprint(left); got != tc.want {
			t.Errorf("case %d: left %s, want %s", i, got, tc.want)
		}
	}
}
