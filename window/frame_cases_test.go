package window

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/triegs/triegs/query"
)

// within is a window of a range of time.
func within(span int64) query.Window { return query.Window{Range: span} }

// windowStore returns a store with one relation of pairs, with these windows and
// nothing kept beside them, and a running epoch.
func windowStore(windows ...query.Window) (*Store, uint32) {
	s, r := newStore(2)
	s.SetWindows(r, math.MinInt64, windows, 0)
	return s, r
}

// windowed writes the net changes of the epoch in a window as text.
func windowed(s *Store, rel uint32, w int) (out string) {
	for c := changesIn(s, rel, w); c.Next(); {
		out += fmt.Sprint(c.Tuple(), " ", c.Old(), ">", c.New(), " ")
	}
	return out
}

// advance ends an epoch at logical time t and begins the next one. want is the
// changes in the windows.
func advance(t testing.TB, s *Store, rel uint32, at int64, want ...string) {
	t.Helper()
	s.Advance(at)
	for w := range want {
		if got := windowed(s, rel, w); got != want[w] {
			t.Fatalf("at %d, window %d: changes %q, want %q", at, w, got, want[w])
		}
	}
	s.Commit()
	s.Begin()
}

// TestWIN01: the begin of a window is outside, its end inside.
func TestWIN01(t *testing.T) {
	s, r := windowStore(within(10))
	insert(t, s, r, []uint64{a, b}, 0)
	advance(t, s, r, 0, "[1 2] 0>1 ")
	for at := int64(1); at < 10; at++ {
		advance(t, s, r, at, "")
	}
	if due, ok := s.Due(); !ok || due != 10 {
		t.Fatalf("due %d, %v", due, ok)
	}
	advance(t, s, r, 10, "[1 2] 1>0 ")
	if n := s.Contributions(); n != 0 {
		t.Fatalf("%d contributions are left", n)
	}
}

// TestWIN02Windows: equal events keep their own expiry.
func TestWIN02Windows(t *testing.T) {
	s, r := windowStore(within(10))
	advance(t, s, r, 0, "")
	insert(t, s, r, []uint64{a, b}, 1)
	advance(t, s, r, 1, "[1 2] 0>1 ")
	insert(t, s, r, []uint64{a, b}, 4)
	advance(t, s, r, 4, "[1 2] 1>2 ")
	advance(t, s, r, 10, "")
	advance(t, s, r, 11, "[1 2] 2>1 ")
	advance(t, s, r, 13, "")
	advance(t, s, r, 14, "[1 2] 1>0 ")
}

// TestWIN03: events of one time expire in one step, whatever the order in which
// they came.
func TestWIN03(t *testing.T) {
	for _, batches := range [][]int{{2, 1}, {1, 2}, {3}, {1, 1, 1}} {
		s, r := windowStore(within(5))
		total := int64(0)
		for _, n := range batches {
			for range n {
				insert(t, s, r, []uint64{a, b}, 7)
			}
			advance(t, s, r, 7, fmt.Sprintf("[1 2] %d>%d ", total, total+int64(n)))
			total += int64(n)
		}
		advance(t, s, r, 11, "")
		if n, columns := s.Advance(12); n != 3 || columns != 6 || windowed(s, r, 0) != "[1 2] 3>0 " {
			t.Fatalf("%d expired with %d columns: %s", n, columns, windowed(s, r, 0))
		}
	}
}

// TestWIN04: the sides of a join expire each for itself.
func TestWIN04(t *testing.T) {
	s, left := windowStore(within(10))
	right := s.AddRelation(2)
	s.SetWindows(right, math.MinInt64, []query.Window{within(10)}, 0)
	for at := int64(0); at < 20; at++ {
		switch at {
		case 1, 12:
			insert(t, s, left, []uint64{a, b}, at)
		case 8:
			insert(t, s, right, []uint64{b, c}, at)
		}
		advance(t, s, left, at)
		joined := s.CountIn(left, 0, []uint64{a, b}) * s.CountIn(right, 0, []uint64{b, c})
		want := int64(0)
		if at >= 8 && at <= 10 || at >= 12 && at <= 17 {
			want = 1
		}
		if joined != want {
			t.Fatalf("at %d: %d, want %d", at, joined, want)
		}
	}
}

// TestWIN05: times before 1970 are ordinary, with a slide too.
func TestWIN05(t *testing.T) {
	s, r := windowStore(within(10), query.Window{Range: 10, Slide: 5})
	insert(t, s, r, []uint64{a, b}, -15)
	advance(t, s, r, -16, "", "")
	if due, ok := s.Due(); !ok || due != -15 {
		t.Fatalf("due %d, %v", due, ok)
	}
	advance(t, s, r, -15, "[1 2] 0>1 ", "[1 2] 0>1 ")
	advance(t, s, r, -6, "", "")
	advance(t, s, r, -5, "[1 2] 1>0 ", "[1 2] 1>0 ")

	s, r = windowStore(query.Window{Range: 5, Slide: 5})
	for at, bucket := range map[int64]int64{-15: -15, -11: -10, -1: 0, 0: 0, 4: 5} {
		insert(t, s, r, []uint64{a, uint64(at)}, at)
		s.Advance(bucket - 1)
		if s.CountIn(r, 0, []uint64{a, uint64(at)}) != 0 {
			t.Errorf("%d is seen at %d", at, bucket-1)
		}
		s.Advance(bucket)
		if s.CountIn(r, 0, []uint64{a, uint64(at)}) != 1 {
			t.Errorf("%d is not seen at %d", at, bucket)
		}
		s.Rollback()
		s.Begin()
		s.SetWindows(r, math.MinInt64, []query.Window{{Range: 5, Slide: 5}}, 0)
	}
}

// TestWIN11: what was deleted by hand does not expire again.
func TestWIN11(t *testing.T) {
	s, r := windowStore(within(10))
	if err := s.Insert(r, []uint64{a, b}, 1, 0, "e1"); err != nil {
		t.Fatal(err)
	}
	advance(t, s, r, 1, "[1 2] 0>1 ")
	if err := s.Insert(r, []uint64{a, b}, 3, 0, "e2"); err != nil {
		t.Fatal(err)
	}
	advance(t, s, r, 3, "[1 2] 1>2 ")
	if err := s.DeleteID("e1", r, nil); err != nil {
		t.Fatal(err)
	}
	advance(t, s, r, 5, "[1 2] 2>1 ")
	if n, _ := s.Advance(11); n != 0 {
		t.Fatalf("%d expired again", n)
	}
	advance(t, s, r, 13, "[1 2] 1>0 ")
	// The ID is free again.
	if err := s.Insert(r, []uint64{a, c}, 13, 0, "e2"); err != nil {
		t.Fatal(err)
	}
}

// TestWIN12: a refreshed contribution has one expiry, its new one, also after a
// restart.
func TestWIN12(t *testing.T) {
	s := NewStore()
	s.Track()
	r := s.AddRelation(2)
	s.SetWindows(r, 0, []query.Window{within(10)}, 0)
	s.Begin()
	if err := s.Insert(r, []uint64{a, b}, 1, 0, "e1"); err != nil {
		t.Fatal(err)
	}
	advance(t, s, r, 1, "[1 2] 0>1 ")
	if err := s.Insert(r, []uint64{a, b}, 8, 0, "e1"); err != nil {
		t.Fatal(err)
	}
	advance(t, s, r, 8, "")
	s.Commit()

	again := restoreChain(t, []int{2}, [][][]byte{capture(t, s, true, 9)}, []uint64{s.Sequence(r)})
	again.SetWindows(r, 8, []query.Window{within(10)}, 0)
	for _, s := range []*Store{s, again} {
		s.Begin()
		advance(t, s, r, 11, "")
		advance(t, s, r, 17, "")
		if n, _ := s.Advance(18); n != 1 || windowed(s, r, 0) != "[1 2] 1>0 " {
			t.Fatalf("%d expired: %s", n, windowed(s, r, 0))
		}
		s.Commit()
		s.Begin()
		if n, _ := s.Advance(math.MaxInt64); n != 0 {
			t.Fatalf("%d expired again", n)
		}
	}
}

// TestWIN13: the shorter window takes nothing from the longer.
func TestWIN13(t *testing.T) {
	s, r := windowStore(within(5), within(10))
	insert(t, s, r, []uint64{a, b}, 0)
	advance(t, s, r, 0, "[1 2] 0>1 ", "[1 2] 0>1 ")
	advance(t, s, r, 4, "", "")
	advance(t, s, r, 5, "[1 2] 1>0 ", "")
	advance(t, s, r, 9, "", "")
	advance(t, s, r, 10, "", "[1 2] 1>0 ")
}

// TestExpiryUndone: an expiry that is rolled back leaves everything in its order
// and the indexes as dense as they were.
func TestExpiryUndone(t *testing.T) {
	const n = 20_000
	for _, windows := range [][]query.Window{
		{within(n)}, {{Last: n}}, {within(n), {Last: n}}, {within(n / 2), {Range: n, Slide: 7}},
	} {
		s, r := windowStore(windows...)
		for i := range uint64(n) {
			id := ""
			if i%10 == 0 {
				id = fmt.Sprint(i)
			}
			if err := s.Insert(r, []uint64{i * i % 997, i % 3}, int64(i)-5, i%2, id); err != nil {
				t.Fatal(err)
			}
		}
		advance(t, s, r, n-6)
		want, blocks := stateOf(s), s.copies.blocks[classes-1].live
		for range 3 {
			for i := range uint64(n + 10) {
				insert(t, s, r, []uint64{i, i}, n+int64(i))
			}
			if expired, _ := s.Advance(10 * n); expired < n {
				t.Fatalf("%v: %d expired", windows, expired)
			}
			s.Rollback()
			want.compare(t, s)
			s.Begin()
		}
		if got := s.copies.blocks[classes-1].live; got > blocks+blocks/50 {
			t.Errorf("%v: %d blocks, before it %d", windows, got, blocks)
		}
	}
}

// TestWindowEnds is windows at the ends of time, where nothing wraps.
func TestWindowEnds(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	for _, tc := range []struct {
		win  query.Window
		time int64
		seen [][2]int64 // logical times, and whether it is seen
		due  int64      // at the first of them; 0 = never
	}{
		{within(most), least, [][2]int64{{least, 1}, {0, 1}, {most, 1}}, 0},
		{within(most), most, [][2]int64{{least, 0}, {most - 1, 0}, {most, 1}}, most},
		{within(1), least, [][2]int64{{least, 1}, {least + 1, 0}, {most, 0}}, least + 1},
		{within(1), most, [][2]int64{{0, 0}, {most, 1}}, most},
		{within(most - 1), 0, [][2]int64{{0, 1}, {most - 2, 1}, {most - 1, 0}}, most - 1},
		{within(most - 1), 2, [][2]int64{{2, 1}, {most, 1}}, 0},
		{within(most - 1), 1, [][2]int64{{1, 1}, {most - 1, 1}, {most, 0}}, most},
		{query.Window{Range: 10, Slide: most}, most, [][2]int64{{0, 0}, {most - 1, 0}, {most, 1}}, most},
		{query.Window{Range: 10, Slide: most}, 5, [][2]int64{{4, 0}, {5, 0}, {most, 0}}, most},
		{query.Window{Range: 10, Slide: most - 1}, most, [][2]int64{{most - 1, 0}, {most, 0}}, 0},
		{query.Window{Range: most, Slide: most}, 5, [][2]int64{{4, 0}, {5, 0}, {most, 1}}, most},
		{query.Window{Range: 9, Slide: 10}, least + 3, [][2]int64{{least + 4, 0}, {least + 8, 1}, {least + 17, 1}, {least + 18, 0}}, least + 8},
		{query.Window{Range: 3, Slide: 1 << 62}, least, [][2]int64{{least, 1}, {least + 1, 1}, {-1 << 62, 0}}, -1 << 62},
	} {
		s, r := windowStore(tc.win)
		insert(t, s, r, []uint64{a, b}, tc.time)
		for i, at := range tc.seen {
			advance(t, s, r, at[0])
			if got := s.CountIn(r, 0, []uint64{a, b}); got != at[1] {
				t.Errorf("%+v, event at %d: %d seen at %d", tc.win, tc.time, got, at[0])
			}
			if due, ok := s.Due(); i == 0 && (ok != (tc.due != 0) || ok && due != tc.due) {
				t.Errorf("%+v, event at %d: due at %d, %v, want %d", tc.win, tc.time, due, ok, tc.due)
			}
		}
		s.Advance(most)
		if n, _ := s.Advance(most); n != 0 {
			t.Errorf("%+v, event at %d: expired twice", tc.win, tc.time)
		}
	}
}

// TestGap: the cost of an advance over a gap is that of what moves: neither the
// span of time counts nor what a window shows before and after it.
func TestGap(t *testing.T) {
	s, r := windowStore(within(1<<40), query.Window{Range: 1 << 50, Slide: 3})
	for i := range uint64(50_000) {
		insert(t, s, r, []uint64{i, 1}, int64(i))
	}
	advance(t, s, r, 1<<39)
	for i, want := range []int{0, 0, 0, 1, 1, 2} {
		s.Advance(1<<40 - 3 + int64(i))
		if n := len(s.rels[r].touched); n > want {
			t.Fatalf("step %d touched %d facts", i, n)
		}
		s.Commit()
		s.Begin()
	}
	// What comes and goes within the gap shows nowhere, and is gone.
	s, r = windowStore(within(10))
	advance(t, s, r, 0)
	insert(t, s, r, []uint64{a, b}, 100)
	advance(t, s, r, 50, "")
	if n, _ := s.Advance(1 << 60); n != 1 || windowed(s, r, 0) != "" {
		t.Fatalf("%d expired: %s", n, windowed(s, r, 0))
	}
}

// TestRetention: what is kept beside the windows.
func TestRetention(t *testing.T) {
	for _, tc := range []struct {
		windows []query.Window
		keep    int64
		left    map[int64]int64 // contributions at times 0..9 that are left at a logical time
	}{
		{nil, Forever, map[int64]int64{9: 10, 1000: 10}},
		{nil, 5, map[int64]int64{4: 10, 5: 9, 9: 5, 13: 1, 14: 0}},
		{nil, 0, map[int64]int64{0: 0}},
		{[]query.Window{within(3)}, 0, map[int64]int64{2: 10, 3: 9, 11: 1, 12: 0}},
		{[]query.Window{within(3)}, 5, map[int64]int64{3: 10, 5: 9, 13: 1, 14: 0}},
		{[]query.Window{within(5)}, 3, map[int64]int64{4: 10, 5: 9, 14: 0}},
		{[]query.Window{within(5), {}}, 3, map[int64]int64{100: 10}},
		{[]query.Window{within(5)}, Forever, map[int64]int64{100: 10}},
		{[]query.Window{{Last: 4}}, 0, map[int64]int64{0: 4, 100: 4}},
		{[]query.Window{{Last: 4}}, 3, map[int64]int64{0: 10, 3: 9, 8: 4, 100: 4}},
		{[]query.Window{{Last: 4}, within(5)}, 0, map[int64]int64{0: 10, 5: 9, 100: 4}},
		{[]query.Window{{Range: 4, Slide: 4}}, 0, map[int64]int64{3: 10, 4: 9, 7: 9, 8: 5, 11: 5, 12: 1, 13: 1, 16: 0}},
	} {
		for at, want := range tc.left {
			s, r := newStore(2)
			for i := range int64(10) {
				insert(t, s, r, []uint64{a, uint64(i)}, i)
			}
			s.Commit()
			s.SetWindows(r, math.MinInt64, tc.windows, tc.keep)
			if s.Contributions() != 10 {
				t.Fatal("SetWindows has retracted something")
			}
			s.Begin()
			advance(t, s, r, at)
			if got := s.Contributions(); got != want {
				t.Errorf("%v, keep %d: %d are left at %d, want %d", tc.windows, tc.keep, got, at, want)
			}
			if err := s.verify(); err != nil {
				s.Commit()
				t.Error(err)
			}
		}
	}
}

// TestLastDoesNotRefill: a count window shows the newest appends, of which some
// may have been retracted, and a refresh is none.
func TestLastDoesNotRefill(t *testing.T) {
	s, r := windowStore(query.Window{Last: 3})
	for i, id := range []string{"e0", "e1", "e2", "e3"} {
		if err := s.Insert(r, []uint64{a, uint64(i)}, 0, 0, id); err != nil {
			t.Fatal(err)
		}
	}
	advance(t, s, r, 0, "[1 1] 0>1 [1 2] 0>1 [1 3] 0>1 ")
	if err := s.DeleteID("e3", r, nil); err != nil {
		t.Fatal(err)
	}
	advance(t, s, r, 0, "[1 3] 1>0 ")
	if err := s.Insert(r, []uint64{a, 1}, 9, 0, "e1"); err != nil {
		t.Fatal(err)
	}
	advance(t, s, r, 0, "")
	insert(t, s, r, []uint64{a, 4}, 0)
	advance(t, s, r, 0, "[1 4] 0>1 [1 1] 1>0 ")
}

// TestDue is what Due says where single steps of a model do not get far.
func TestDue(t *testing.T) {
	s, r := windowStore(query.Window{Range: 3, Slide: 10}, within(1<<40))
	for _, at := range []int64{1, 5, 7, 12, 28, 1000} {
		insert(t, s, r, []uint64{a, uint64(at)}, at)
	}
	// The slide steps over 1, 5, 7 and 12 for the first window, and the second
	// is there before.
	for _, want := range []int64{1, 5, 7, 12, 28, 30, 40, 1000, 1010, 1 + 1<<40, 5 + 1<<40} {
		due, ok := s.Due()
		if !ok || due != want {
			t.Fatalf("due %d, %v, want %d", due, ok, want)
		}
		advance(t, s, r, due)
	}
	// What a shorter retention has made superfluous goes with any Advance.
	s.SetWindows(r, 6+1<<40, nil, 1<<40-500)
	if due, ok := s.Due(); !ok || due != 500+1<<40 {
		t.Fatalf("due %d, %v", due, ok)
	}
	advance(t, s, r, 500+1<<40)
	if due, ok := s.Due(); ok {
		t.Fatalf("due %d with %d contributions", due, s.Contributions())
	}
}

// TestDueOverSteps: a window whose slide steps over a contribution is due when it
// shows the next one, in a relation that keeps all.
func TestDueOverSteps(t *testing.T) {
	s, r := newStore(2)
	s.SetWindows(r, 0, []query.Window{{Range: 3, Slide: 10}}, Forever)
	for _, at := range []int64{1, 5, 12, 13, 28, 31} {
		insert(t, s, r, []uint64{a, uint64(at)}, at)
	}
	advance(t, s, r, 0)
	for _, want := range []int64{30, 40} {
		due, ok := s.Due()
		if !ok || due != want {
			t.Fatalf("due %d, %v, want %d", due, ok, want)
		}
		advance(t, s, r, due)
	}
	if due, ok := s.Due(); ok {
		t.Fatalf("due %d", due)
	}
}

// TestLateWithoutAdvance: a refresh that takes a contribution out of both
// retentions is not forgotten by an epoch that ends without Advance.
func TestLateWithoutAdvance(t *testing.T) {
	s, r := windowStore(query.Window{Range: 10}, query.Window{Last: 1})
	if err := s.Insert(r, []uint64{a, b}, 100, 0, "e"); err != nil {
		t.Fatal(err)
	}
	insert(t, s, r, []uint64{a, c}, 100)
	advance(t, s, r, 100)
	if err := s.Insert(r, []uint64{a, b}, 50, 0, "e"); err != nil {
		t.Fatal(err)
	}
	s.Commit()
	s.Due()
	s.Begin()
	if n, _ := s.Advance(100); n != 1 {
		t.Fatalf("%d expired", n)
	}
	s.Rollback()
	s.Begin()
	if n, _ := s.Advance(100); n != 1 {
		t.Fatalf("%d expired after a rollback", n)
	}
}

// TestWithin counts what is in spans of a fact with many copies, in blocks that
// are full, half full and begun from either side.
func TestWithin(t *testing.T) {
	const n = 3000
	s, r := newStore(1)
	times := make([]int64, 0, n)
	for i := range int64(n) {
		at := i * 7919 % 1009
		if i%3 == 0 {
			at = -i
		}
		insert(t, s, r, []uint64{a}, at)
		times = append(times, at)
	}
	for range 500 {
		remove(t, s, r, a)
	}
	slices.Sort(times)
	times = times[500:]
	tail := s.rels[r].facts.at(0)[1:]
	for lo := int64(-1500); lo < 1100; lo += 29 {
		for _, length := range []int64{0, 1, 40, 900, 5000} {
			want := int64(0)
			for _, at := range times {
				if lo <= at && at <= lo+length {
					want++
				}
			}
			if got := s.copies.within(tail, lo, lo+length); got != want {
				t.Fatalf("from %d to %d: %d, want %d", lo, lo+length, got, want)
			}
		}
	}
}
