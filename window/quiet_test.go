package window

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/query"
)

// moves is what Changes and Crossings have in common.
type moves interface {
	Next() bool
	Tuple() []uint64
	Old() int64
	New() int64
}

func every(c Changes) moves { return &c }

// windowChanges are the crossings of one window.
type windowChanges struct {
	Crossings
	only int
}

func changesIn(s *Store, rel uint32, w int) moves { return &windowChanges{s.Crossings(rel), w} }

func (c *windowChanges) Next() bool {
	for c.Crossings.Next() {
		if c.Window() == c.only {
			return true
		}
	}
	return false
}

// What a shorter window has made superfluous goes with the next Advance, although
// nothing is due, also where one before it was rolled back.
func TestAdvanceAfterSetWindows(t *testing.T) {
	for _, undone := range []bool{false, true} {
		s := NewStore()
		rel := s.AddRelation(1)
		s.SetWindows(rel, 0, []query.Window{{Range: 100}}, 0)
		s.Begin()
		for i := range int64(10) {
			insert(t, s, rel, []uint64{1}, 1+i)
		}
		s.Advance(10)
		s.Commit()
		if at, ok := s.Due(); at != 101 || !ok {
			t.Fatalf("due at %d, %v", at, ok)
		}
		s.Begin()
		s.SetWindows(rel, 10, []query.Window{{Range: 5}}, 0)
		s.Commit()
		if at, ok := s.Due(); at != 11 || !ok {
			t.Fatalf("due at %d, %v, with a shorter window", at, ok)
		}
		if undone {
			s.Begin()
			s.Advance(10)
			s.Rollback()
			s.Due()
		}
		s.Begin()
		if n, _ := s.Advance(10); n != 5 {
			t.Errorf("undone before: %v: %d contributions expired, want 5", undone, n)
		}
		s.Commit()
		if at, ok := s.Due(); at != 11 || !ok {
			t.Errorf("due at %d, %v, after that", at, ok)
		}
	}
}

// Due goes on telling what it has found while nothing changes, and Advance does
// not look at the relation; a fact that comes or goes, or the time, ends that.
func TestDueStays(t *testing.T) {
	s := NewStore()
	rel := s.AddRelation(1)
	s.SetWindows(rel, 0, []query.Window{{Range: 10}, {Range: 4, Slide: 4}}, 0)
	step := func(at int64, what func(), due int64) {
		t.Helper()
		s.Begin()
		if what != nil {
			what()
		}
		s.Advance(at)
		s.Commit()
		for range 2 {
			if got, ok := s.Due(); ok != (due != 0) || ok && got != due {
				t.Fatalf("at %d due at %d, %v, want %d", at, got, ok, due)
			}
		}
	}
	step(1, func() { insert(t, s, rel, []uint64{1}, 1) }, 4)
	step(3, nil, 4)
	step(4, nil, 8)
	step(6, nil, 8)
	step(6, func() { insert(t, s, rel, []uint64{2}, 7) }, 7)
	step(6, func() { remove(t, s, rel, 2) }, 8)
	step(9, nil, 11)
	if n := s.CountIn(rel, 0, []uint64{1}); n != 1 {
		t.Errorf("%d in the window of 10", n)
	}
	step(11, nil, 0)
	if n := s.Contributions(); n != 0 {
		t.Errorf("%d contributions at the end", n)
	}
}

// TestQueueSeek compares searches in a queue with those in a slice.
func TestQueueSeek(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for _, n := range []int{0, 1, 2, 63, 64, 65, 500} {
		blocks := newSlab(copyWords << (classes - 1))
		var q queue
		var all []entry
		for i := range n {
			e := entry{rng.Int64N(int64(n)) - 5, uint64(i), 1}
			q.add(&blocks, e)
			all = append(all, e)
		}
		slices.SortFunc(all, entry.compare)
		for range n / 4 { // a queue loses its first entries
			q.remove(&blocks, all[0])
			all = all[1:]
		}
		for range 500 {
			e := entry{time: rng.Int64N(int64(n)+10) - 10, seq: rng.Uint64N(uint64(n) + 2)}
			want, _ := slices.BinarySearchFunc(all, e, entry.compare)
			at, ok := q.seek(&blocks, e)
			if ok != (want < len(all)) {
				t.Fatalf("of %d: %v is found: %v", n, e, ok)
			}
			if ok && read(q.words(&blocks, at.chunk), at.i) != all[want] {
				t.Fatalf("of %d: %v is found at %v, want %v", n, e, read(q.words(&blocks, at.chunk), at.i), all[want])
			}
		}
	}
}
