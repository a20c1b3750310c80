package window

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// valuedKey is a fact with the value of a contribution, as a cursor writes it.
func (c *modelCopy) valuedKey() string { return fmt.Sprint(append(slices.Clone(c.tuple), c.value)) }

// byValue is the multiplicities of the pairs of fact and value of a relation.
func (m *model) byValue(rel uint32) map[string]int64 {
	pairs := map[string]int64{}
	for _, c := range m.live {
		if c.rel == rel {
			pairs[c.valuedKey()]++
		}
	}
	return pairs
}

// shownValued is those in window w.
func (m *model) shownValued(rel uint32, w int) map[string]int64 {
	f := &m.looks[rel]
	pairs := map[string]int64{}
	for _, c := range m.live {
		if c.rel == rel && f.list[w].sees(c, f.at) {
			pairs[c.valuedKey()]++
		}
	}
	return pairs
}

// beginValued has the changes by value begin.
func (m *model) beginValued(rel uint32) {
	f := &m.looks[rel]
	if !f.valued {
		return
	}
	f.wasValued = m.byValue(rel)
	for w := range f.list {
		f.list[w].wasValued = m.shownValued(rel, w)
	}
}

// toggleValued has somebody read the values of a relation, or nobody.
func (r *rig) toggleValued(rel uint32, on bool) {
	r.t.Helper()
	if err := r.s.SetValued(rel, on); err != nil {
		r.t.Fatal(err)
	}
	f := &r.m.looks[rel]
	if f.valued != on {
		f.list = slices.Clone(f.list)
		f.valued = on
		r.m.beginValued(rel)
	}
	r.checkValued(rel)
}

// checkValued compares the pairs of fact and value, all and those in each window.
func (r *rig) checkValued(rel uint32) {
	r.t.Helper()
	f := &r.m.looks[rel]
	if r.s.Valued(rel) != f.valued {
		r.t.Fatalf("relation %d by value: %v, want %v", rel, !f.valued, f.valued)
	}
	if !f.valued {
		return
	}
	compareFacts(r.t, r.s.ValuedFacts(rel), r.m.byValue(rel), "relation %d by value", rel)
	if n := r.s.ValuedLen(rel); n != len(r.m.byValue(rel)) {
		r.t.Fatalf("relation %d by value: %d pairs, want %d", rel, n, len(r.m.byValue(rel)))
	}
	for w := range f.list {
		compareFacts(r.t, r.s.ValuedFactsIn(rel, w), r.m.shownValued(rel, w), "relation %d by value, window %d", rel, w)
	}
}

// compareFacts compares facts with what they should be.
func compareFacts(t testing.TB, f Facts, want map[string]int64, format string, args ...any) {
	t.Helper()
	got := map[string]int64{}
	for f.Next() {
		got[fmt.Sprint(f.Tuple())] += f.Count()
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%s:\n got %v\nwant %v", fmt.Sprintf(format, args...), got, want)
	}
}

// valuedIn are the changes of one window by value.
func valuedIn(s *Store, rel uint32, w int) moves { return &windowChanges{s.ValuedCrossings(rel), w} }

// compareValued compares the changes by value of a relation and its windows.
func (v *windowRig) compareValued(r *rig, rel uint32) {
	r.t.Helper()
	f := &r.m.looks[rel]
	if !f.valued {
		return
	}
	v.valued += compareChanges(r.t, every(r.s.ValuedChanges(rel)), f.wasValued, r.m.byValue(rel), "at %d: relation %d by value", v.now, rel)
	for w := range f.list {
		v.valued += compareChanges(r.t, valuedIn(r.s, rel, w), f.list[w].wasValued, r.m.shownValued(rel, w), "at %d: window %v of %d by value", v.now, f.list[w].win, rel)
	}
}

// scanByValue counts the contributions to a relation by fact and value: all for
// window -1. It knows the ends of the windows, and nothing of shadows.
func scanByValue(s *Store, rel uint32, w int) map[string]int64 {
	pairs := map[string]int64{}
	for c := range s.Scan(rel) {
		if w >= 0 {
			f := &s.rels[rel].frames.list[w]
			n := c.Time
			if f.win.Last > 0 {
				n = int64(c.Seq)
			}
			if !f.now.has(n) {
				continue
			}
		}
		pairs[fmt.Sprint(append(slices.Clone(c.Tuple), c.Value))]++
	}
	return pairs
}

// TestValuedReorder: events that come out of order are undone and done again in the
// shadow as well, with epochs that are rolled back and restarts in between.
func TestValuedReorder(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 50
	}
	changed := 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 31))
		arity := []int{1, 2}
		windows, keep := make([][]query.Window, 2), make([]int64, 2)
		for rel := range arity {
			windows[rel], keep[rel] = drawFrames(rng)
		}
		r := newWaitRig(t, rng.Int64N(15), arity, windows, keep)
		value := func() {
			for rel := range uint32(2) {
				if err := r.s.SetValued(rel, true); err != nil {
					t.Fatal(err)
				}
			}
		}
		value()
		shown := map[[2]int]map[string]int64{}
		look := func(visit func(rel uint32, w int, now map[string]int64)) {
			for rel := range uint32(2) {
				for w := -1; w < len(windows[rel]); w++ {
					visit(rel, w, scanByValue(r.s, rel, w))
				}
			}
		}
		for i := range 25 {
			at := max(r.now, -20) + rng.Int64N(7)
			r.s.Begin()
			for range rng.IntN(8) {
				r.s.Wait(drawWaiting(rng, arity, at-r.lateness-6, at+5))
			}
			r.s.Release(at, at-r.lateness)
			r.s.Advance(at)
			if rng.IntN(5) == 0 {
				r.s.Rollback()
			} else {
				look(func(rel uint32, w int, now map[string]int64) {
					c := every(r.s.ValuedChanges(rel))
					if w >= 0 {
						c = valuedIn(r.s, rel, w)
					}
					changed += compareChanges(t, c, shown[[2]int{int(rel), w}], now, "seed %d, epoch %d, relation %d, window %d", seed, i, rel, w)
					shown[[2]int{int(rel), w}] = now
				})
				r.s.Commit()
				r.now = at
			}
			if rng.IntN(6) == 0 {
				r.reopen()
				value()
			}
			look(func(rel uint32, w int, now map[string]int64) {
				f := r.s.ValuedFacts(rel)
				if w >= 0 {
					f = r.s.ValuedFactsIn(rel, w)
				}
				compareFacts(t, f, now, "seed %d, epoch %d, relation %d, window %d", seed, i, rel, w)
			})
			if err := errors.Join(r.s.verify(), r.s.reorder.verify(r.s)); err != nil {
				t.Fatalf("seed %d, epoch %d: %v", seed, i, err)
			}
		}
	}
	if changed < int(seeds)*50 {
		t.Fatalf("%d changes seen", changed)
	}
}

// valuedChanges writes the net changes of the epoch by value as text.
func valuedChanges(s *Store, rel uint32) (out string) {
	for c := s.ValuedChanges(rel); c.Next(); {
		out += fmt.Sprint(c.Tuple(), " ", c.Old(), ">", c.New(), " ")
	}
	return out
}

// TestValuedRefresh: a contribution that only gets another value changes by value
// alone, whichever way the value comes, and one that gets its own does not change.
func TestValuedRefresh(t *testing.T) {
	s, r := newStore(1)
	if err := s.SetValued(r, true); err != nil {
		t.Fatal(err)
	}
	put := func(value uint64, id string) {
		t.Helper()
		if err := s.Insert(r, []uint64{a}, 5, value, id); err != nil {
			t.Fatal(err)
		}
	}
	put(7, "x")
	put(8, "")
	s.Commit()
	for _, step := range []struct {
		do       func()
		want     string
		replaced uint64
	}{
		{func() { put(9, "x") }, "[1 7] 1>0 [1 9] 0>1 ", 1},
		{func() { put(9, "x") }, "", 0},
		{func() { put(8, "x") }, "[1 9] 1>0 [1 8] 1>2 ", 1},
		{func() { put(0, "x") }, "[1 8] 2>1 [1 0] 0>1 ", 1},
		{func() { put(9, "x") }, "[1 0] 1>0 [1 9] 0>1 ", 0},
		{func() { put(6, ""); put(7, "x"); put(9, "x") }, "[1 6] 0>1 ", 2},
		{func() { _ = s.Delete(r, []uint64{a}, 6) }, "[1 6] 1>0 ", 0},
		{func() { _ = s.DeleteID("x", r, nil) }, "[1 9] 1>0 ", 0},
	} {
		for _, end := range []func(){s.Rollback, s.Commit} {
			s.Begin()
			step.do()
			if got := valuedChanges(s, r); got != step.want {
				t.Errorf("changes %q, want %q", got, step.want)
			}
			if got := s.Replaced(); got != step.replaced {
				t.Errorf("%q: %d values replaced, want %d", step.want, got, step.replaced)
			}
			end()
			if err := s.verify(); err != nil {
				t.Fatal(err)
			}
		}
	}
	compareFacts(t, s.ValuedFacts(r), map[string]int64{"[1 8]": 1}, "at the end")
}

// TestValuedComesAndGoes: the shadow of a relation belongs to the epoch in which it
// was asked for, and gives its memory back when it goes, in a roll back too.
func TestValuedComesAndGoes(t *testing.T) {
	s, r := newStore(2)
	s.SetWindows(r, 0, []query.Window{within(400), {Last: 100}}, 0)
	fill := func(n int) {
		for i := range n {
			// Facts of one contribution to a value, of several, and of many.
			if err := s.Insert(r, []uint64{uint64(i % 40), uint64(i % 3)}, int64(i), uint64(i%40%5*i%7), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(500)
	s.Advance(500)
	s.Commit()
	ends := []func(){s.Rollback, s.Commit}
	for on, end := range []int{0, 1, 0, 1, 0} { // kept off, on, still on, off, kept off
		s.Begin()
		was := s.Valued(r)
		fill(3)
		for range on % 3 { // there and back any number of times
			for _, to := range []bool{!was, was} {
				if err := s.SetValued(r, to); err != nil {
					t.Fatal(err)
				}
				fill(2)
			}
		}
		if err := s.SetValued(r, !was); err != nil {
			t.Fatal(err)
		}
		fill(2)
		s.SetWindows(r, 0, []query.Window{within(300), {Last: 50}}, 0)
		fill(2)
		s.Advance(510 + int64(on))
		ends[end]()
		if err := s.verify(); err != nil {
			t.Fatalf("%d: %v", on, err)
		}
		if got := s.Valued(r); got != (was != (end == 1)) {
			t.Fatalf("%d: by value %v, it was %v", on, got, was)
		}
		if s.Valued(r) {
			for w := range 2 {
				compareFacts(t, s.ValuedFactsIn(r, w), scanByValue(s, r, w), "%d: window %d", on, w)
			}
		}
	}
	blocks := s.copies
	if err := s.SetValued(r, true); err != nil { // between two epochs
		t.Fatal(err)
	}
	compareFacts(t, s.ValuedFacts(r), scanByValue(s, r, -1), "between two epochs")
	if err := s.SetValued(r, false); err != nil {
		t.Fatal(err)
	}
	for i := range blocks.blocks {
		if got, want := s.copies.blocks[i].live, blocks.blocks[i].live; got != want {
			t.Errorf("%d blocks of class %d, there were %d", got, i, want)
		}
	}
	if err := s.verify(); err != nil {
		t.Fatal(err)
	}
}

// TestValuedSteady: steady epochs with readers of values allocate nothing, and the
// memory goes with them.
func TestValuedSteady(t *testing.T) {
	s := NewStore()
	r := s.AddRelation(2)
	s.SetWindows(r, 0, []query.Window{within(20_000), {Last: 500}}, 0)
	if err := s.SetValued(r, true); err != nil {
		t.Fatal(err)
	}
	s.Begin()
	k, sum := int64(0), int64(0)
	tuple := make([]uint64, 2)
	epoch := func(end func()) {
		for range 100 {
			tuple[0], tuple[1] = uint64(k%5000), uint64(k*k%7)
			if s.Insert(r, tuple, k, uint64(k%3), "") != nil {
				t.Error("insert")
			}
			k++
		}
		s.Advance(k)
		for c := s.ValuedChanges(r); c.Next(); {
			sum += c.New()
		}
		for c := s.ValuedCrossings(r); c.Next(); {
			sum += c.New()
		}
		end()
		s.Begin()
	}
	for range 600 {
		epoch(s.Commit)
	}
	if n := testing.AllocsPerRun(100, func() { epoch(s.Commit) }); n != 0 {
		t.Errorf("an epoch: %v allocations", n)
	}
	undo := func() {
		s.Rollback()
		k -= 100
	}
	epoch(undo)
	if n := testing.AllocsPerRun(100, func() { epoch(undo) }); n != 0 {
		t.Errorf("an undone epoch: %v allocations", n)
	}
	with := s.Bytes()
	s.Rollback()
	if err := s.SetValued(r, false); err != nil {
		t.Fatal(err)
	}
	s.Begin()
	s.Commit()
	if without := s.Bytes(); without > with-20_000*48 {
		t.Errorf("%d bytes with values, %d without", with, without)
	}
}

// TestValuedBytes compares the accounting of a shadow with what the runtime says.
func TestValuedBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s, r := windowStore(query.Window{Range: 1 << 40})
	for i := range uint64(200_000) {
		if err := s.Insert(r, []uint64{i / 3, i % 2}, int64(i), i%5, ""); err != nil {
			t.Fatal(err)
		}
	}
	advance(t, s, r, 200_000)
	s.Commit()
	if err := s.SetValued(r, true); err != nil {
		t.Fatal(err)
	}
	got, want := s.Bytes(), heap()-before
	if got < want*9/10 || got > want*11/10 {
		t.Fatalf("%d bytes, the heap grew by %d", got, want)
	}
	runtime.KeepAlive(s)
}

// TestValuedUnderRestore: a shadow that is asked for before the store is filled
// shows what it is filled with.
func TestValuedUnderRestore(t *testing.T) {
	s := NewStore()
	s.Track()
	rel := s.AddRelation(1)
	s.Begin()
	for i := range int64(200) {
		if err := s.Insert(rel, []uint64{uint64(i % 50)}, 199-i, uint64(i%3), ""); err != nil {
			t.Fatal(err)
		}
	}
	s.Commit()
	chunks := capture(t, s, true, 100)
	twin := NewStore()
	twin.Track()
	twin.AddRelation(1)
	twin.SetWindows(rel, 150, []query.Window{{Range: 20}, {Last: 30}}, 0)
	if err := twin.SetValued(rel, true); err != nil {
		t.Fatal(err)
	}
	in := twin.Restore()
	for _, chunk := range chunks {
		if err := in.Add(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Finish([]uint64{s.Sequence(rel)}); err != nil {
		t.Fatal(err)
	}
	for w := -1; w < 2; w++ {
		f := twin.ValuedFacts(rel)
		if w >= 0 {
			f = twin.ValuedFactsIn(rel, w)
		}
		compareFacts(t, f, scanByValue(twin, rel, w), "window %d", w)
	}
	if err := twin.verify(); err != nil {
		t.Fatal(err)
	}
}

// TestValuedLimit: as many pairs of fact and value as a relation may have are its
// limit, and what does not fit changes nothing.
func TestValuedLimit(t *testing.T) {
	s, r := newStore(1)
	if err := s.Insert(r, []uint64{a}, 1, 5, "x"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetValued(r, true); err != nil {
		t.Fatal(err)
	}
	v := s.rels[r].valued
	real := v.facts.live
	v.facts.live = factsMax
	for _, id := range []string{"", "x"} {
		if err := s.Insert(r, []uint64{a}, 1, 6, id); !errors.Is(err, errs.ErrBudget) {
			t.Errorf("ID %q: %v, want ErrBudget", id, err)
		}
	}
	v.facts.live = real
	if got := valuedChanges(s, r); got != "" {
		t.Errorf("changes %q", got)
	}
	s.Commit()
	if err := s.verify(); err != nil {
		t.Fatal(err)
	}
	compareFacts(t, s.ValuedFacts(r), map[string]int64{"[1 5]": 1}, "after it")
}
