package window

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/triegs/triegs/query"
)

// modelFrames is what looks at a relation of the model.
type modelFrames struct {
	list []modelWindow
	keep int64
	at   int64 // logical time

	valued    bool             // somebody reads values
	wasValued map[string]int64 // pairs of fact and value at Begin, or when valued was set
}

// modelWindow is a window, with what it showed at Begin or when it was set.
type modelWindow struct {
	win  query.Window
	from uint64 // of the newest: the least number shown
	was  map[string]int64
	// The same by fact and value, where somebody reads values.
	wasValued map[string]int64
}

// sees is the definition of a window.
func (w *modelWindow) sees(c modelCopy, at int64) bool {
	switch {
	case w.win.Last > 0:
		return c.seq >= w.from
	case w.win.Range > 0:
		return w.win.Sees(c.time, w.win.At(at))
	}
	return true
}

// needs is the definition of what is kept: what a window or the retention shows
// or may yet show.
func (f *modelFrames) needs(c modelCopy, at int64) bool {
	if f.keep == Forever || f.keep > 0 && (at < math.MinInt64+f.keep || c.time > at-f.keep) {
		return true
	}
	return slices.ContainsFunc(f.list, func(w modelWindow) bool {
		return w.sees(c, at) || w.win.Range > 0 && c.time > w.win.At(at)
	})
}

// shown is the multiplicities of the facts in window w.
func (m *model) shown(rel uint32, w int) map[string]int64 {
	f := &m.looks[rel]
	facts := map[string]int64{}
	for _, c := range m.live {
		if c.rel == rel && f.list[w].sees(c, f.at) {
			facts[fmt.Sprint(c.tuple)]++
		}
	}
	return facts
}

// facts is the multiplicities of all facts of a relation.
func (m *model) facts(rel uint32) map[string]int64 {
	facts := map[string]int64{}
	for _, c := range m.live {
		if c.rel == rel {
			facts[fmt.Sprint(c.tuple)]++
		}
	}
	return facts
}

// without takes what is in a window from all facts.
func without(facts, in map[string]int64) map[string]int64 {
	rest := maps.Clone(facts)
	for key, n := range in {
		if rest[key] -= n; rest[key] == 0 {
			delete(rest, key)
		}
	}
	return rest
}

// begin starts an epoch: what the windows show is what they will have shown.
func (m *model) begin() {
	for rel := range m.looks {
		for w := range m.looks[rel].list {
			m.looks[rel].list[w].was = m.shown(uint32(rel), w)
		}
		m.beginValued(uint32(rel))
	}
}

// moveTo brings the windows of a relation to a logical time.
func (m *model) moveTo(rel uint32, at int64) {
	f := &m.looks[rel]
	f.at = max(f.at, at)
	for w := range f.list {
		if last := uint64(f.list[w].win.Last); last > 0 {
			f.list[w].from = m.next[rel] - min(m.next[rel], last)
		}
	}
}

// setWindows replaces the windows of a relation.
func (m *model) setWindows(rel uint32, at int64, windows []query.Window, keep int64) {
	old := m.looks[rel]
	if len(old.list) == 0 && old.keep == Forever {
		old.at = math.MinInt64 // nothing remembers it
	}
	f := modelFrames{keep: keep, at: old.at, valued: old.valued, wasValued: old.wasValued}
	for _, w := range windows {
		f.list = append(f.list, modelWindow{win: w})
	}
	m.looks[rel] = f
	m.moveTo(rel, at)
	for w := range f.list {
		i := slices.IndexFunc(old.list, func(o modelWindow) bool { return o.win == f.list[w].win })
		if i >= 0 {
			f.list[w].was = old.list[i].was
		} else {
			f.list[w].was = m.shown(rel, w)
		}
		if i >= 0 {
			f.list[w].wasValued = old.list[i].wasValued
		} else if f.valued {
			f.list[w].wasValued = m.shownValued(rel, w)
		}
	}
}

// advance retracts what is not needed any more, and returns it.
func (m *model) advance(at int64) (gone []modelCopy) {
	for rel := range m.looks {
		m.moveTo(uint32(rel), at)
	}
	m.live = slices.DeleteFunc(m.live, func(c modelCopy) bool {
		f := &m.looks[c.rel]
		if f.needs(c, f.at) {
			return false
		}
		gone = append(gone, c)
		return true
	})
	return gone
}

// due looks for the next time at which something moves, in single steps.
func (m *model) due(from int64, steps int) (t int64, ok bool) {
	for t := from; t < math.MaxInt64 && steps > 0; steps-- {
		t++
		for _, c := range m.live {
			f := &m.looks[c.rel]
			at := max(f.at, t)
			if !f.needs(c, at) {
				return t, true
			}
			for i := range f.list {
				if f.list[i].sees(c, at) != f.list[i].sees(c, f.at) {
					return t, true
				}
			}
		}
	}
	return 0, false
}

// clamped adds without wrapping.
func clamped(a, b int64) int64 {
	switch sum := a + b; {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

// windowRig moves the time of a rig and sets windows.
type windowRig struct {
	rng            *rand.Rand
	now            int64
	ahead          int64 // how far the time of events is ahead of it
	expired, moved int
	early, dues    int
	ids, late      int
	valued         int // changes by value
	steps          int
}

// windowsOf draws windows and a retention.
func windowsOf(rng *rand.Rand) (windows []query.Window, keep int64) {
	for range rng.IntN(4) {
		var w query.Window
		switch rng.IntN(9) {
		case 0:
		case 1, 2:
			w.Last = 1 + rng.Int64N(12)
		case 3:
			w.Range = math.MaxInt64 - rng.Int64N(2)*rng.Int64N(9)
		case 4, 5:
			w.Range, w.Slide = 1+rng.Int64N(16), 1+rng.Int64N(7)
		default:
			w.Range = 1 + rng.Int64N(16)
		}
		windows = append(windows, w)
	}
	switch rng.IntN(4) {
	case 0:
		return windows, Forever
	case 1:
		return windows, 1 + rng.Int64N(20)
	case 2:
		if len(windows) == 0 && rng.IntN(3) > 0 {
			return nil, Forever
		}
	}
	return windows, 0
}

// setWindows sets other windows for one relation of the rig, or some of those
// that it has.
func (v *windowRig) setWindows(r *rig) {
	rel := uint32(v.rng.IntN(len(r.m.arity)))
	windows, keep := windowsOf(v.rng)
	if v.rng.IntN(2) == 0 {
		windows = append(windows, r.s.Windows(rel)...)
		windows = windows[:min(len(windows), 4)]
	}
	at := clamped(v.now, v.rng.Int64N(3)-1)
	r.s.SetWindows(rel, at, windows, keep)
	r.m.setWindows(rel, at, windows, keep)
	if got := r.s.Windows(rel); !slices.Equal(got, windows) {
		r.t.Fatalf("windows %v, want %v", got, windows)
	}
	v.checkFacts(r, rel)
	r.checkValued(rel)
}

// advance ends the events of an epoch and compares what it has changed.
func (v *windowRig) advance(r *rig) {
	r.t.Helper()
	switch v.rng.IntN(12) {
	case 0:
		v.now = clamped(v.now, v.rng.Int64N(100))
	case 1, 2, 3:
	case 4:
		v.now = clamped(v.now, -1)
	default:
		v.now = clamped(v.now, v.rng.Int64N(5))
	}
	r.base = clamped(v.now, v.ahead)
	gone := r.m.advance(v.now)
	columns := 0
	for _, c := range gone {
		columns += len(c.tuple)
	}
	v.expired += len(gone)
	n, cols := r.s.Advance(v.now)
	if n != uint64(len(gone)) || cols != uint64(columns) {
		r.t.Fatalf("at %d: %d expired with %d columns, want %v", v.now, n, cols, gone)
	}
	for rel := range uint32(len(r.m.arity)) {
		before, now := map[string]int64{}, r.m.facts(rel)
		if int(rel) < len(r.begin.arity) {
			before = r.begin.facts(rel)
		}
		v.compare(r, every(r.s.Changes(rel)), before, now, "relation %d", rel)
		for w := range r.m.looks[rel].list {
			win, in := &r.m.looks[rel].list[w], r.m.shown(rel, w)
			v.compare(r, changesIn(r.s, rel, w), win.was, in, "in window %v of %d", win.win, rel)
			v.compare(r, every(r.s.OutsideChanges(rel, w)), without(before, win.was), without(now, in), "not in window %v of %d", win.win, rel)
		}
		v.compareValued(r, rel)
	}
}

// compare reads changes and compares them with what was before and is now.
func (v *windowRig) compare(r *rig, c moves, before, now map[string]int64, format string, args ...any) {
	r.t.Helper()
	v.moved += compareChanges(r.t, c, before, now, "at %d: %s", v.now, fmt.Sprintf(format, args...))
}

// compareChanges does that, and returns how many changes there are.
func compareChanges(t testing.TB, c moves, before, now map[string]int64, format string, args ...any) int {
	t.Helper()
	got, want := map[string][2]int64{}, map[string][2]int64{}
	for c.Next() {
		key := fmt.Sprint(c.Tuple())
		if _, twice := got[key]; twice {
			t.Fatalf("%s: %s changes twice", fmt.Sprintf(format, args...), key)
		}
		got[key] = [2]int64{c.Old(), c.New()}
	}
	for key, n := range now {
		if before[key] != n {
			want[key] = [2]int64{before[key], n}
		}
	}
	for key, n := range before {
		if now[key] == 0 {
			want[key] = [2]int64{n, 0}
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%s: changes\n got %v\nwant %v", fmt.Sprintf(format, args...), got, want)
	}
	return len(got)
}

// check compares what can be read of the windows between epochs.
func (v *windowRig) check(r *rig) {
	r.t.Helper()
	for rel := range uint32(len(r.m.arity)) {
		v.checkFacts(r, rel)
		r.checkValued(rel)
	}
	switch v.rng.IntN(6) {
	case 0:
		v.checkDue(r)
	case 1, 2, 3:
		r.s.Due() // Advance may pass over what it has looked at
	}
}

// checkFacts compares what is in each window of a relation and what is not.
func (v *windowRig) checkFacts(r *rig, rel uint32) {
	r.t.Helper()
	all := r.m.facts(rel)
	for w := range r.m.looks[rel].list {
		in := r.m.shown(rel, w)
		got := map[string]int64{}
		for f := r.s.FactsIn(rel, w); f.Next(); {
			key := fmt.Sprint(f.Tuple())
			got[key] = f.Count()
			if n := r.s.CountIn(rel, w, f.Tuple()); n != got[key] {
				r.t.Fatalf("relation %d, window %d: %s counts %d and %d", rel, w, key, got[key], n)
			}
		}
		if !maps.Equal(got, in) {
			r.t.Fatalf("relation %d, window %d: %v, want %v", rel, w, got, in)
		}
		clear(got)
		for f := r.s.FactsOutside(rel, w); f.Next(); {
			got[fmt.Sprint(f.Tuple())] = f.Count()
		}
		if want := without(all, in); !maps.Equal(got, want) {
			r.t.Fatalf("relation %d, outside of window %d: %v, want %v", rel, w, got, want)
		}
	}
}

// checkDue compares the next time at which something moves.
func (v *windowRig) checkDue(r *rig) {
	r.t.Helper()
	const steps = 60
	from := int64(math.MaxInt64)
	for rel := range r.m.looks {
		from = min(from, r.m.looks[rel].at)
	}
	got, ok := r.s.Due()
	want, found := r.m.due(from, steps)
	v.dues++
	switch {
	case found && ok && got == want, !found && !ok:
	case !found && ok && got > clamped(from, steps):
	case ok && got > from && (!found || got < want) && mayBeEarly(r.s):
		v.early++
	default:
		r.t.Fatalf("from %d: due %d, %v; want %d, %v", from, got, ok, want, found)
	}
}

// mayBeEarly tells whether Due may tell a time at which nothing happens.
func mayBeEarly(s *Store) bool {
	return slices.ContainsFunc(s.framed, func(rel uint32) bool {
		f := s.rels[rel].frames
		return f.byNumber && f.byTime
	})
}

// verifyFrames checks what a relation has for its windows, and returns how many
// blocks that holds.
func (s *Store) verifyFrames(r *relation, rel uint32) (blocks int, err error) {
	f := r.frames
	if _, listed := slices.BinarySearch(s.framed, rel); !r.shadow && listed != (f != nil) {
		return 0, fmt.Errorf("it is listed: %v", listed)
	}
	if f == nil {
		return 0, nil
	}
	if len(f.olds)+len(f.late) > 0 {
		return 0, fmt.Errorf("%d counts, %d late ones left", len(f.olds), len(f.late))
	}
	for _, w := range f.list {
		if w.now != w.was {
			return 0, fmt.Errorf("window %v: %v, it was %v", w.win, w.now, w.was)
		}
	}
	for _, x := range []*index{f.times, f.numbers} {
		if x == nil {
			continue
		}
		list := r.listed(&s.copies, x)
		want := slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return e.time < x.least })
		if left := int64(len(list) - len(want)); left != x.left || left > 0 && (f.byTime || f.byNumber) {
			return 0, fmt.Errorf("%d left out, want %d", x.left, left)
		}
		var got []entry
		for k := x.head; k < len(x.dir); k++ {
			if x.dir[k].n == 0 || x.dir[k].off+x.dir[k].n > blockMax {
				return 0, fmt.Errorf("chunk %+v", x.dir[k])
			}
			for i := range int(x.dir[k].n) {
				got = append(got, read(x.words(&s.copies.blocks[classes-1], k), i))
			}
			blocks++
		}
		if !slices.IsSortedFunc(got, entry.compare) {
			return 0, fmt.Errorf("index out of order: %v", got)
		}
		// Damaged checkpoints have entries that differ in their records alone.
		exact := func(a, b entry) int { return cmp.Or(a.compare(b), cmp.Compare(a.value, b.value)) }
		slices.SortFunc(got, exact)
		slices.SortFunc(want, exact)
		if !slices.Equal(got, want) || x.n != int64(len(want)) {
			return 0, fmt.Errorf("index of %d:\n got %v\nwant %v", x.n, got, want)
		}
	}
	return blocks, nil
}

// listed is the entries that an index could have, in order.
func (r *relation) listed(c *copies, x *index) (list []entry) {
	for rec, w := range r.facts.all() {
		if w[r.arity+2] == 0 {
			continue
		}
		c.each(w[r.arity:], func(e entry) bool {
			list = append(list, x.key(rec, e.time, e.seq))
			return true
		})
	}
	slices.SortFunc(list, entry.compare)
	return list
}

// newWindowRig makes a rig whose relations have windows, at a logical time.
func newWindowRig(t testing.TB, seed uint64, now, ahead int64) *rig {
	r := newRig(t, 2, 1, 3)
	r.windows = &windowRig{rng: rand.New(rand.NewPCG(seed, 7)), now: now, ahead: ahead}
	for range 3 {
		r.windows.setWindows(r)
	}
	return r
}

// refresh gives a contribution another time, or adds one with a new ID.
func (v *windowRig) refresh(r *rig) {
	var named []modelCopy
	for _, c := range r.m.live {
		if c.id != "" {
			named = append(named, c)
		}
	}
	if len(named) < 8 {
		v.ids++
		rel := uint32(v.rng.IntN(len(r.m.arity)))
		tuple := make([]uint64, r.m.arity[rel])
		r.insert(modelCopy{rel: rel, tuple: tuple, time: clamped(v.now, v.rng.Int64N(4)), id: fmt.Sprint("new", v.ids)})
		return
	}
	c := named[v.rng.IntN(len(named))]
	c.time = clamped(v.now, v.rng.Int64N(24)-20)
	r.insert(c)
	v.late += r.s.lateOnes()
}

// lateOnes is how many refreshed contributions Advance has to look for.
func (s *Store) lateOnes() (n int) {
	for _, rel := range s.framed {
		n += len(s.rels[rel].frames.late)
	}
	return n
}

// run does random operations and sets windows between them.
func (v *windowRig) run(r *rig, steps int, keys uint64) {
	for range steps {
		if v.steps++; v.steps%11 == 0 {
			n := v.steps / 11
			r.toggleValued(uint32(n%len(r.m.arity)), n%4 > 0)
		}
		switch v.rng.IntN(40) {
		case 0:
			v.setWindows(r)
			continue
		case 1, 2, 3, 4, 5, 6:
			v.refresh(r)
			continue
		}
		r.step(v.rng.Uint64(), v.rng.Uint64(), v.rng.Uint64(), v.rng.Uint64(), keys)
	}
}

// TestWindowModel runs random operations with windows of all kinds, several to a
// relation, that come and go, at ordinary times and at the ends of time.
func TestWindowModel(t *testing.T) {
	steps := 1500
	if testing.Short() {
		steps = 500
	}
	total := windowRig{}
	for _, start := range []int64{-40, math.MinInt64, math.MaxInt64 - 60, 1 << 40} {
		for _, keys := range []uint64{1, 3, 40} {
			for seed := range uint64(6) {
				t.Run(fmt.Sprintf("start=%d/keys=%d/seed=%d", start, keys, seed), func(t *testing.T) {
					r := newWindowRig(t, seed*16+keys, start, int64(seed*2)-12)
					r.windows.run(r, steps, keys)
					r.end(true)
					total.expired += r.windows.expired
					total.moved += r.windows.moved
					total.early += r.windows.early
					total.dues += r.windows.dues
					total.late += r.windows.late
					total.valued += r.windows.valued
				})
			}
		}
	}
	t.Logf("%d contributions expired, %d changes, %d by value, %d times due, %d of them early, %d refreshed late",
		total.expired, total.moved, total.valued, total.dues, total.early, total.late)
	if total.valued < 20*steps || total.late < steps/10 || total.expired < 5*steps || total.early*20 > total.dues {
		t.Fatal("the model has not seen enough")
	}
}

// TestWindowCaptures goes on, in the middle of a run with windows and captures in
// slices, from a restored store whose windows are set again.
func TestWindowCaptures(t *testing.T) {
	steps := 600
	if testing.Short() {
		steps = 200
	}
	restored := 0
	for _, keys := range []uint64{2, 40} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("keys=%d/seed=%d", keys, seed), func(t *testing.T) {
				r := newRig(t, 2, 1, 3)
				r.s.Track()
				r.windows = &windowRig{rng: rand.New(rand.NewPCG(seed, 9)), ahead: int64(seed*2) - 8}
				v := &saver{t: t, rng: rand.New(rand.NewPCG(seed, keys))}
				for range 4 {
					for range steps {
						r.windows.run(r, 1, keys)
						if len(r.s.dirty) == 0 && len(r.begin.arity) == len(r.m.arity) {
							v.boundary(r.s)
						}
					}
					r.end(true)
					if v.c != nil {
						v.c.Done(false)
						v.c = nil
					}
					v.chain = append(v.chain, capture(t, r.s, len(v.chain) == 0, 3))
					want := stateOf(r.s)
					r.s = restoreChain(t, want.arity, v.chain, want.next)
					for rel := range r.m.looks {
						r.resetWindows(uint32(rel))
					}
					want.compare(t, r.s)
					r.windows.check(r)
					r.s.Begin()
				}
				restored += v.restored
			})
		}
	}
	if restored < steps/4 {
		t.Fatalf("%d captures restored", restored)
	}
}

// resetWindows sets the windows that the model has.
func (r *rig) resetWindows(rel uint32) {
	f := &r.m.looks[rel]
	var windows []query.Window
	for _, w := range f.list {
		windows = append(windows, w.win)
	}
	if windows != nil || f.keep != Forever {
		r.s.SetWindows(rel, f.at, windows, f.keep)
	}
	if err := r.s.SetValued(rel, f.valued); err != nil {
		r.t.Fatal(err)
	}
}

// TestRestoreUnderWindows: windows that are set before a store is filled look at
// what it is filled with.
func TestRestoreUnderWindows(t *testing.T) {
	s := NewStore()
	s.Track()
	rel := s.AddRelation(1)
	s.Begin()
	for i := range int64(200) {
		insert(t, s, rel, []uint64{uint64(i % 50)}, 199-i)
	}
	s.Commit()
	chunks := capture(t, s, true, 100)
	twin := NewStore()
	twin.Track()
	twin.AddRelation(1)
	twin.SetWindows(rel, 150, []query.Window{{Range: 20}, {Last: 30}}, 0)
	r := twin.Restore()
	for _, chunk := range chunks {
		if err := r.Add(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish([]uint64{s.Sequence(rel)}); err != nil {
		t.Fatal(err)
	}
	for w, want := range []int64{20, 30} {
		n := int64(0)
		for f := twin.FactsIn(rel, w); f.Next(); {
			n += f.Count()
		}
		if n != want {
			t.Errorf("window %d shows %d contributions, want %d", w, n, want)
		}
	}
	twin.Begin()
	if n, _ := twin.Advance(150); n != 200-30-49-20 {
		t.Errorf("%d expired", n) // kept: numbers from 170 on, times from 131 on
	}
	twin.Commit()
	if err := twin.verify(); err != nil {
		t.Error(err)
	}
}

// TestFreeWindows pins that a window that slides allocates nothing in a steady
// state, whatever its kind.
func TestFreeWindows(t *testing.T) {
	for _, windows := range [][]query.Window{
		{{Range: 20_000}}, {{Last: 20_000}}, {{Range: 20_000, Slide: 50}, {Range: 300}, {Last: 500}},
	} {
		s, r := windowStore(windows...)
		tuple := make([]uint64, 2)
		k, sum := int64(0), int64(0)
		epoch := func(end func()) {
			for range 100 {
				tuple[0], tuple[1] = uint64(k%5000), uint64(k*k%7)
				if s.Insert(r, tuple, k, uint64(k%2), "") != nil {
					t.Error("insert")
				}
				k++
			}
			s.Advance(k)
			for c := s.Crossings(r); c.Next(); {
				sum += c.New()
			}
			for w := range windows {
				for c := s.OutsideChanges(r, w); c.Next(); {
					sum += c.New()
				}
			}
			if due, ok := s.Due(); ok {
				sum += due
			}
			end()
			s.Begin()
		}
		for range 600 {
			epoch(s.Commit)
		}
		if n := testing.AllocsPerRun(100, func() { epoch(s.Commit) }); n != 0 {
			t.Errorf("%v: an epoch: %v allocations", windows, n)
		}
		undo := func() {
			s.Rollback()
			k -= 100
		}
		epoch(undo)
		if n := testing.AllocsPerRun(100, func() { epoch(undo) }); n != 0 {
			t.Errorf("%v: an undone epoch: %v allocations", windows, n)
		}
	}
}

// TestWindowBytes compares the accounting of indexes with what the runtime says.
func TestWindowBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s, r := windowStore(query.Window{Range: 1 << 40}, query.Window{Last: 1 << 20}, within(100))
	for i := range uint64(300_000) {
		insert(t, s, r, []uint64{i / 3, i % 2}, int64(i*7919%300_000))
	}
	advance(t, s, r, 300_000)
	s.Commit()
	got, want := s.Bytes(), heap()-before
	if got < want*9/10 || got > want*11/10 {
		t.Fatalf("%d bytes, the heap grew by %d", got, want)
	}
	with := s.Bytes()
	s.SetWindows(r, 300_000, nil, Forever)
	s.Begin()
	s.Commit()
	if left := s.Bytes(); left > with-2*300_000*24 {
		t.Fatalf("%d bytes without windows, %d with", left, with)
	}
	runtime.KeepAlive(s)
}

// TestIndexLeavesOut: where everything is kept, an index holds what windows may
// look at, and comes back whole for a longer window.
func TestIndexLeavesOut(t *testing.T) {
	s, r := newStore(2)
	s.SetWindows(r, 0, []query.Window{within(100), {Last: 50}, within(math.MaxInt64)}, Forever)
	for i := range int64(10_000) {
		insert(t, s, r, []uint64{uint64(i % 10), 1}, i)
		if i%100 == 99 {
			advance(t, s, r, i)
		}
	}
	f := s.rels[r].frames
	if f.times.n != 100 || f.numbers.n != 50 {
		t.Fatalf("%d and %d entries", f.times.n, f.numbers.n)
	}
	tuple := []uint64{3, 1}
	for w, want := range []int64{10, 5, 1000} {
		if got := s.CountIn(r, w, tuple); got != want {
			t.Errorf("window %d: %d, want %d", w, got, want)
		}
	}
	remove(t, s, r, 3, 1) // one that is in no index
	s.SetWindows(r, 9_999, []query.Window{within(1000), {Last: 2000}}, Forever)
	for w, want := range []int64{100, 200} {
		if got := s.CountIn(r, w, tuple); got != want {
			t.Errorf("window %d: %d, want %d", w, got, want)
		}
	}
	if f := s.rels[r].frames; f.times.n != 1000 || f.numbers.n != 2000 {
		t.Fatalf("%d and %d entries", f.times.n, f.numbers.n)
	}
	s.Rollback()
	if err := s.verify(); err != nil {
		t.Fatal(err)
	}
	if got := s.Count(r, tuple); got != 1000 {
		t.Fatalf("%d copies after the rollback", got)
	}
}
