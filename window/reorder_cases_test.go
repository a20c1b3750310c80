package window

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// in and out are events of the fact (x) of relation 0, or (2) of relation 1.
func in(time int64, x uint64, id string) Waiting {
	return Waiting{Tuple: []uint64{x}, Time: time, ID: id}
}

func out(time int64, x uint64) Waiting {
	return Waiting{Delete: true, Tuple: []uint64{x}, Time: time}
}

func outID(time int64, id string) Waiting { return Waiting{Delete: true, Time: time, ID: id} }

// step is an epoch: events that come, the logical time, the lateness.
type step struct {
	events   []Waiting
	t        int64
	lateness int64
	want     Released
}

// TestRelease tells what becomes of events, and what is left, by hand.
func TestRelease(t *testing.T) {
	window := []query.Window{{Range: 10}}
	for _, tc := range []struct {
		name    string
		windows []query.Window
		steps   []step
		want    string // times of what the window shows, or all of it; held, waiting
	}{
		{"waits for its time", nil, []step{
			{[]Waiting{in(5, 1, ""), in(9, 1, "")}, 4, 0, Released{}},
			{nil, 5, 0, Released{Applied: 1}},
		}, "[5] 1 1"},
		{"insertion before deletion of the same time", nil, []step{
			{[]Waiting{out(5, 1), in(5, 1, "")}, 5, 0, Released{Applied: 2, Columns: 1}},
		}, "[] 2 0"},
		{"the same over two epochs", nil, []step{
			{[]Waiting{out(5, 1)}, 5, 0, Released{Missing: 1}},
			// The deletion is redone, and finds it.
			{[]Waiting{in(5, 1, "")}, 5, 0, Released{Applied: 1, Columns: 1}},
		}, "[] 2 0"},
		{"a deletion takes what it would have found", nil, []step{
			{[]Waiting{in(3, 1, ""), out(6, 1)}, 6, 10, Released{Applied: 2, Columns: 1}},
			{[]Waiting{in(2, 1, "")}, 6, 10, Released{Applied: 1, Columns: 1}},
		}, "[3] 3 0"},
		{"a late deletion leaves what came later", nil, []step{
			{[]Waiting{in(6, 1, "")}, 6, 10, Released{Applied: 1}},
			{[]Waiting{out(5, 1)}, 6, 10, Released{Missing: 1}},
		}, "[6] 2 0"},
		{"the first of two IDs wins, in event time", nil, []step{
			{[]Waiting{in(6, 2, "e")}, 6, 10, Released{Applied: 1}},
			{[]Waiting{in(5, 1, "e")}, 6, 10, Released{Applied: 1}},
		}, "[5] 2 0"},
		{"an ID is free again in event time", nil, []step{
			{[]Waiting{in(4, 1, "e"), in(6, 2, "e")}, 6, 10, Released{Applied: 1, Conflicts: 1}},
			{[]Waiting{outID(5, "e")}, 6, 10, Released{Applied: 1, Columns: 1}},
		}, "[6] 3 0"},
		{"a refresh is undone", nil, []step{
			{[]Waiting{in(3, 1, "e"), in(7, 1, "e")}, 7, 10, Released{Applied: 2}},
			{[]Waiting{outID(5, "e"), in(6, 1, "")}, 7, 10, Released{Applied: 2, Columns: 1}},
		}, "[6 7] 4 0"},
		{"a deletion does not find what is expired at its time", window, []step{
			{[]Waiting{in(0, 1, ""), in(8, 1, ""), out(12, 1)}, 13, 0, Released{Applied: 3, Columns: 1}},
		}, "[] 0 0"},
		{"a late deletion takes what has expired since", window, []step{
			{[]Waiting{in(0, 1, ""), in(8, 1, "")}, 11, 5, Released{Applied: 2}},
			{[]Waiting{out(9, 1)}, 11, 5, Released{Applied: 1, Columns: 1}},
		}, "[8] 2 0"},
		{"an ID is free when its contribution is expired", window, []step{
			{[]Waiting{in(0, 1, "e")}, 9, 0, Released{Applied: 1}},
			{[]Waiting{in(12, 2, "e")}, 12, 0, Released{Applied: 1, Columns: 1}},
		}, "[12] 1 0"},
		{"a deletion by ID does not find what is expired at its time", window, []step{
			{[]Waiting{in(0, 1, "e")}, 9, 5, Released{Applied: 1}},
			{[]Waiting{outID(12, "e")}, 12, 5, Released{Missing: 1}},
		}, "[] 1 0"},
		{"it is not free before", window, []step{
			{[]Waiting{in(0, 1, "e"), in(9, 2, "e")}, 12, 5, Released{Applied: 1, Conflicts: 1}},
		}, "[] 1 0"},
		{"older than final: applied where it comes", nil, []step{
			{[]Waiting{in(8, 1, "")}, 10, 1, Released{Applied: 1}},
			{[]Waiting{out(5, 1)}, 10, 1, Released{Applied: 1, Columns: 1}},
		}, "[] 1 0"},
		{"what is final is no longer held", nil, []step{
			{[]Waiting{in(1, 1, ""), in(2, 1, ""), in(3, 1, "")}, 3, 1, Released{Applied: 3}},
		}, "[1 2 3] 2 0"},
		{"nor does what is final", nil, []step{
			{[]Waiting{in(10, 1, "")}, 10, 1, Released{Applied: 1}},
			{nil, 10, 100, Released{}},
			{[]Waiting{out(5, 1)}, 10, 100, Released{Applied: 1, Columns: 1}},
		}, "[] 2 0"},
		{"a refresh to a time long ago is undone after its expiry", window, []step{
			{[]Waiting{in(-8, 1, "e")}, -3, 7, Released{Applied: 1}},
			{[]Waiting{in(-20, 1, "e")}, -2, 7, Released{Applied: 1}},
			// At -3 the ID was still that of the other fact.
			{[]Waiting{in(-3, 2, "e")}, 4, 7, Released{Conflicts: 1}},
		}, "[] 2 0"},
		{"time does not go back", nil, []step{
			{[]Waiting{in(5, 1, "")}, 5, 0, Released{Applied: 1}},
			{[]Waiting{in(5, 1, "")}, 3, 0, Released{Applied: 1}},
		}, "[5 5] 2 0"},
		{"the ends of time", []query.Window{{Range: math.MaxInt64}}, []step{
			{[]Waiting{in(math.MinInt64, 1, ""), in(math.MaxInt64, 1, "")}, math.MinInt64, 0, Released{Applied: 1}},
			{nil, math.MaxInt64, 0, Released{Applied: 1}},
		}, "[-9223372036854775808 9223372036854775807] 1 0"},
		{"the newest appends in event time", []query.Window{{Last: 2}}, []step{
			{[]Waiting{in(4, 1, ""), in(8, 1, "")}, 8, 10, Released{Applied: 2}},
			{[]Waiting{in(2, 1, "")}, 8, 10, Released{Applied: 1}},
		}, "[4 8] 3 0"},
		{"an append that turns into a refresh", []query.Window{{Last: 2}}, []step{
			{[]Waiting{in(1, 1, ""), in(4, 1, ""), in(8, 2, "e")}, 8, 10, Released{Applied: 3}},
			{[]Waiting{in(2, 2, "e")}, 8, 10, Released{Applied: 1}},
		}, "[4 8] 4 0"},
		{"what fits no relation", nil, []step{
			{[]Waiting{{Rel: 7, Tuple: []uint64{1}}, {Tuple: []uint64{1, 2}}, {Time: 1}, {Delete: true}, {ID: "e"}}, 5, 0, Released{Conflicts: 5}},
			{nil, 5, 0, Released{}},
		}, "[] 0 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewStore()
			s.AddRelation(1)
			if tc.windows != nil {
				s.SetWindows(0, math.MinInt64, tc.windows, 0)
			}
			for i, step := range tc.steps {
				s.Begin()
				for _, w := range step.events {
					s.Wait(w)
				}
				settle := step.t - step.lateness
				if got := s.Release(step.t, settle); got != step.want {
					t.Fatalf("epoch %d: %+v, want %+v", i, got, step.want)
				}
				s.Advance(step.t)
				s.Commit()
			}
			if got := fmt.Sprint(shownTimes(s), s.Held(), s.WaitingLen()); got != tc.want {
				t.Fatalf("got %s, want %s", got, tc.want)
			}
			if err := errors.Join(s.verify(), s.reorder.verify(s)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// shownTimes lists the event times of what the first window of relation 0 shows,
// or of all that is live, with the times of the others left out.
func shownTimes(s *Store) []int64 {
	times := []int64{}
	for c := range s.Scan(0) {
		f := s.rels[0].frames
		switch {
		case f == nil, f.list[0].win.Last == 0 && c.Time >= f.list[0].now.lo && c.Time <= f.list[0].now.hi:
			times = append(times, c.Time)
		case f.list[0].win.Last > 0 && int64(c.Seq) >= f.list[0].now.lo:
			times = append(times, c.Time)
		}
	}
	slices.Sort(times)
	return times
}

// TestOldestKept deletes from a fact with many contributions, at times of which
// each keeps another part of them.
func TestOldestKept(t *testing.T) {
	for _, n := range []int64{1, 2, 60, 65, 200, 1000} {
		for _, value := range []uint64{0, 1} {
			s := NewStore()
			s.AddRelation(1)
			s.SetWindows(0, 0, []query.Window{{Range: 100}}, 0)
			s.Begin()
			for i := range n {
				s.Wait(Waiting{Tuple: []uint64{1}, Time: i, Value: uint64(i % 3)})
			}
			s.Release(n, 0)
			s.Advance(n)
			s.Commit()
			for at := range n {
				want := max(0, at-99)
				for value == 1 && want%3 != 1 {
					want++
				}
				if want > at {
					want = -1
				}
				s.Begin()
				s.Wait(Waiting{Delete: true, Tuple: []uint64{1}, Time: at, Value: value})
				s.Release(n, 0)
				if got := missing(s, n); got != want {
					t.Fatalf("%d contributions: a deletion of value %d at %d takes that of %d, want %d", n, value, at, got, want)
				}
				s.Rollback()
			}
		}
	}
}

// missing is the first time up to n without a contribution, -1 if there is none.
func missing(s *Store, n int64) int64 {
	next := int64(0)
	for c := range s.Scan(0) {
		if c.Time != next {
			return next
		}
		next++
	}
	if next == n {
		return -1
	}
	return next
}

// TestStandsAlone pins that the common late event has nobody search the history.
func TestStandsAlone(t *testing.T) {
	s := NewStore()
	s.AddRelation(1)
	epoch := func(t int64, events ...Waiting) (searched bool) {
		round := s.reorder.tangle.round
		s.Begin()
		for _, w := range events {
			s.Wait(w)
		}
		s.Release(t, 0)
		s.Commit()
		return s.reorder.tangle.round != round
	}
	for i, c := range []struct {
		event Waiting
		want  bool
	}{
		{in(10, 1, ""), false}, // in order
		{in(20, 1, ""), false},
		{in(15, 1, ""), false}, // late, and not matter to anything
		{out(16, 2), true},
		{in(12, 2, ""), true}, // the deletion may find it
		{in(12, 1, ""), false},
		{outID(16, "e"), true},
		{in(12, 1, ""), false},
		{in(13, 1, "e"), true},
		{in(12, 1, ""), true}, // a refresh may get its time
	} {
		if got := epoch(20, c.event); got != c.want {
			t.Errorf("event %d: %+v searches: %v, want %v", i, c.event, got, c.want)
		}
	}
	s.Begin()
	s.Release(100, 100)
	s.Commit()
	if n := s.Held(); n != 0 || len(s.reorder.deletions) != 0 {
		t.Errorf("%d are held, deletions %v", n, s.reorder.deletions)
	}
}

// TestNextWaiting checks what is said of the events that wait.
func TestNextWaiting(t *testing.T) {
	s := NewStore()
	s.AddRelation(1)
	if at, ok := s.NextWaiting(); ok || s.WaitingLen() != 0 || len(s.AppendWaiting(nil)) != 0 {
		t.Fatalf("an empty store has an event that waits, for %d", at)
	}
	s.Begin()
	s.Wait(in(9, 1, ""))
	s.Wait(in(7, 1, ""))
	s.Release(5, 5)
	if at, ok := s.NextWaiting(); !ok || at != 7 || s.WaitingLen() != 2 {
		t.Fatalf("the next of %d events waits for %d", s.WaitingLen(), at)
	}
	s.Rollback()
	if _, ok := s.NextWaiting(); ok || len(s.AppendWaiting(nil)) != 0 {
		t.Fatal("events wait after a rollback")
	}
}

// TestWalkWaiting checks that every term that the buffer may bring back is told.
func TestWalkWaiting(t *testing.T) {
	s := NewStore()
	s.AddRelation(1)
	s.Begin()
	s.Wait(Waiting{Tuple: []uint64{3}, Time: 1, Value: 4})
	s.Wait(out(2, 3))
	s.Wait(Waiting{Tuple: []uint64{5}, Time: 9, Value: 6})
	s.Release(4, 1)
	s.Commit()
	terms := func() (ids []uint64) {
		s.WalkWaiting(func(id uint64) { ids = append(ids, id) })
		return ids
	}
	if got, want := terms(), []uint64{3, 4, 3, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Fatalf("terms %v, want %v", got, want)
	}
	s.Begin()
	s.Release(20, 20)
	s.Commit()
	if got := terms(); len(got) != 0 {
		t.Fatalf("terms %v of events that are final", got)
	}
}

// TestArrivalAfterEvents checks that time that moves without a Release is not
// held up by the lateness of event-time mode.
func TestArrivalAfterEvents(t *testing.T) {
	s := NewStore()
	s.AddRelation(1)
	s.SetWindows(0, 0, []query.Window{{Range: 10}}, 0)
	s.Begin()
	s.Wait(in(1, 1, ""))
	s.Release(5, -5)
	s.Advance(5)
	s.Commit()
	s.Begin()
	s.Release(11, 1)
	s.Advance(11)
	s.Commit()
	if s.Contributions() != 1 {
		t.Fatal("a contribution that late events may find is gone")
	}
	s.Begin()
	if n, _ := s.Advance(12); n != 1 {
		t.Fatalf("%d contributions expire, want 1", n)
	}
	s.Commit()
}

// TestBetweenModes has events that do not wait use the ID and the number of a
// contribution that is about to come back.
func TestBetweenModes(t *testing.T) {
	s := NewStore()
	s.AddRelation(1)
	epoch := func(events ...Waiting) {
		s.Begin()
		for _, w := range events {
			s.Wait(w)
		}
		s.Release(20, 0)
		s.Commit()
		if err := errors.Join(s.verify(), s.reorder.verify(s)); err != nil {
			t.Fatal(err)
		}
	}
	epoch(in(5, 1, "e"), in(6, 1, "f"), outID(7, "e"), in(9, 1, "f"))
	s.Begin()
	if err := s.Insert(0, []uint64{2}, 3, 0, "e"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteID("f", 0, nil); err != nil {
		t.Fatal(err)
	}
	s.Commit()
	epoch(in(6, 1, "e"), outID(8, "f"))
	// The deletion of e is done again, on what has the ID now.
	if got := fmt.Sprint(shownTimes(s)); got != "[9]" {
		t.Fatalf("live: %s, want the last refresh", got)
	}
}

// TestSameNumber has a buffer that no store has written bring two contributions
// back under one number.
func TestSameNumber(t *testing.T) {
	data := []byte{1, 1, 20, 19, 0, 2, 0,
		0x23 | 0x40, 10, 1, 'e', 11, 6, 1, 6, 0, 7, 1, 'e',
		0x23, 1, 'f', 11, 6, 1, 1, 0, 8, 1, 'f'}
	s, err := restored(data)
	if err != nil {
		t.Fatal(err)
	}
	s.Begin()
	s.Wait(in(4, 3, "e"))
	s.Wait(in(4, 3, "f"))
	s.Release(10, 0)
	s.Commit()
	if err := errors.Join(s.verify(), s.reorder.verify(s)); err != nil {
		t.Fatal(err)
	}
}

// TestReorderMemory checks that a buffer that has emptied gives its memory back,
// and that events in order allocate nothing.
func TestReorderMemory(t *testing.T) {
	s := NewStore()
	s.AddRelation(2)
	empty := s.Bytes()
	s.Begin()
	for i := range 100_000 {
		s.Wait(Waiting{Tuple: []uint64{1, uint64(i)}, Time: int64(i), ID: fmt.Sprint(i)})
		s.Wait(Waiting{Tuple: []uint64{1, uint64(i)}, Time: int64(i), Delete: true})
	}
	s.Release(100_000, 0)
	s.Commit()
	if n := s.Bytes() - empty; n < 100_000*200 {
		t.Fatalf("200,000 events take %d bytes", n)
	}
	s.Begin()
	s.Release(100_001, 100_001)
	s.Commit()
	s.Begin()
	s.Release(100_002, 100_002)
	s.Commit()
	if n := s.Bytes() - empty; n > 1<<20 {
		t.Fatalf("%d bytes are left for no event", n)
	}
	at := int64(200_000)
	tuple := []uint64{1, 2}
	epoch := func() {
		s.Begin()
		for range 100 {
			at++
			s.Wait(Waiting{Tuple: tuple, Time: at})
			s.Wait(Waiting{Tuple: tuple, Time: at, Delete: true})
		}
		s.Release(at, at-1000)
		s.Commit()
	}
	for range 100 {
		epoch()
	}
	if n := testing.AllocsPerRun(100, epoch); n > 0.5 {
		t.Errorf("%v allocations in an epoch of 200 events", n)
	}
}

// restored makes a store with relations of arities 1 and 2 that have had so many
// appends, and restores a buffer.
func restored(data []byte) (*Store, error) {
	s := NewStore()
	s.AddRelation(1)
	s.AddRelation(2)
	if err := s.Restore().Finish([]uint64{9, 9}); err != nil {
		return nil, err
	}
	return s, s.RestoreWaiting(data)
}

// TestRestoreWaiting checks what is refused.
func TestRestoreWaiting(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		ok   bool
	}{
		{"nothing", nil, true},
		{"no event", []byte{1, 0, 0, 0, 0}, true},
		{"a clock", []byte{1, 1, 8, 1, 0, 0, 0}, true},
		{"version", []byte{2, 0, 0, 0, 0}, false},
		{"flags of the clock", []byte{1, 2, 0, 0, 0}, false},
		{"no clock", []byte{1, 1}, false},
		{"cut", []byte{1, 0, 0, 0}, false},
		{"more behind", []byte{1, 0, 0, 0, 0, 0}, false},
		{"a floor", []byte{1, 0, 1, 1, 9, 0, 0}, true},
		{"two floors of a relation", []byte{1, 0, 2, 1, 9, 0, 9, 0, 0}, false},
		{"a floor of no relation", []byte{1, 0, 1, 2, 9, 0, 0}, false},
		{"a floor above the appends", []byte{1, 0, 1, 1, 10, 0, 0}, false},
		{"one event", []byte{1, 0, 0, 0, 1, 0x40, 10, 7}, true},
		{"a million", []byte{1, 0, 0, 0, 0x80, 0x89, 0x7a, 0x40, 10, 7}, false},
		{"without its tuple", []byte{1, 0, 0, 0, 1, 0x40, 10}, false},
		{"of no relation", []byte{1, 0, 0, 0, 1, 0x48, 10, 2, 7, 7}, false},
		{"of the other relation", []byte{1, 0, 0, 0, 1, 0x48, 10, 1, 7, 7}, true},
		{"unknown flag", []byte{1, 0, 0, 0, 1, 0x80, 10, 7}, false},
		{"bare insertion", []byte{1, 0, 0, 0, 1, 0x22, 1, 'e'}, false},
		{"bare deletion", []byte{1, 0, 0, 0, 1, 0x23, 1, 'e'}, true},
		{"bare deletion without ID", []byte{1, 0, 0, 0, 1, 0x03}, false},
		{"an empty ID", []byte{1, 0, 0, 0, 1, 0x20, 7, 0}, false},
		{"a long ID", []byte{1, 0, 0, 0, 1, 0x20, 7, 200}, false},
		{"value 0", []byte{1, 0, 0, 0, 1, 0x10, 7, 0}, false},
		{"out of order", []byte{1, 0, 0, 0, 2, 0x40, 10, 7, 0x40, 1, 7}, false},
		{"insertion behind deletion", []byte{1, 0, 0, 0, 2, 0x41, 10, 7, 0, 7}, false},
		{"history without a clock", []byte{1, 0, 0, 1, 0, 0x40, 10, 7, 1, 0}, false},
		{"appended", []byte{1, 1, 10, 1, 0, 1, 0, 0x40, 10, 7, 1, 0}, true},
		{"appended under a number to come", []byte{1, 1, 10, 1, 0, 1, 0, 0x40, 10, 7, 1, 18}, false},
		{"not applied", []byte{1, 1, 10, 1, 0, 1, 0, 0x40, 10, 7, 0}, false},
		{"refreshed without ID", []byte{1, 1, 10, 1, 0, 1, 0, 0x40, 10, 7, 10, 0, 0, 0, 0}, false},
		{"an insertion takes", []byte{1, 1, 10, 1, 0, 1, 0, 0x40, 10, 7, 3, 0, 0, 0, 0}, false},
		{"a deletion appends", []byte{1, 1, 10, 1, 0, 1, 0, 0x41, 10, 7, 1, 0}, false},
		{"missing", []byte{1, 1, 10, 1, 0, 1, 0, 0x41, 10, 7, 4}, true},
		{"taken", []byte{1, 1, 10, 1, 0, 1, 0, 0x41, 10, 7, 11, 0, 1, 0}, true},
		{"taken nothing", []byte{1, 1, 10, 1, 0, 1, 0, 0x41, 10, 7, 3}, false},
		{"taken of no relation", []byte{1, 1, 10, 1, 0, 1, 0, 0x41, 10, 7, 11, 4, 1, 0, 3, 1}, false},
		{"taken with unknown flag", []byte{1, 1, 10, 1, 0, 1, 0, 0x41, 10, 7, 11, 8, 1, 0}, false},
		{"bare taken without a fact", []byte{1, 1, 10, 1, 0, 1, 0, 0x23, 1, 'e', 11, 0, 1, 0}, false},
	} {
		_, err := restored(tc.data)
		if ok := err == nil; ok != tc.ok || !ok && !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: error %v", tc.name, err)
		}
	}
}

// FuzzRestoreWaiting restores anything, and has it go on: nothing panics, and
// what was restored is written as it was read or in a shorter way.
func FuzzRestoreWaiting(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 0x48, 10, 1, 7, 7})
	f.Add([]byte{1, 1, 10, 1, 1, 1, 3, 1, 1, 0x41, 10, 7, 11, 0, 1, 0, 0x60, 10, 7, 1, 'e'})
	f.Add([]byte{1, 1, 10, 1, 0, 2, 0, 0x23, 1, 'e', 11, 6, 1, 0, 1, 7, 7, 1, 'e', 0x60, 10, 7, 1, 'e', 9, 0, 4, 3, 0, 1, 7, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := restored(data)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if n := s.Bytes(); n > int64(len(data))*400+(1<<17) {
			t.Fatalf("%d bytes of memory of %d bytes", n, len(data))
		}
		again := s.AppendWaiting(nil)
		if len(again) > len(data) {
			t.Fatalf("read %x, wrote %x", data, again)
		}
		if err := s.reorder.verify(s); err != nil {
			t.Fatal(err)
		}
		s.WalkWaiting(func(uint64) {})
		for i := range 4 {
			before := fmt.Sprintf("%x", s.AppendWaiting(nil))
			s.Begin()
			s.Wait(in(math.MinInt64+int64(i), 7, "e"))
			s.Wait(out(int64(i), 7))
			s.Wait(outID(int64(i)-5, "e"))
			t5 := s.reorder.now
			s.Release(t5, s.reorder.clock.settle)
			s.Advance(t5)
			if i%2 == 0 {
				s.Rollback()
				if after := fmt.Sprintf("%x", s.AppendWaiting(nil)); after != before {
					t.Fatalf("rolled back:\n got %s\nwant %s", after, before)
				}
			} else {
				s.Commit()
			}
			if err := errors.Join(s.verify(), s.reorder.verify(s)); err != nil {
				t.Fatal(err)
			}
		}
		s.Begin()
		s.Release(math.MaxInt64, math.MaxInt64)
		s.Commit()
	})
}
