package window

import (
	"math"

	"github.com/triegs/triegs/query"
)

// Due returns the least logical time, later than that of the last Advance, at
// which Advance would move something: a contribution that enters or leaves a
// window or expires. With a slide it is a multiple of the slide. ok is false if
// there is no such time. In a relation with windows of the newest contributions
// and a retention by time beside them it may come early. The cost is
// O(log n) for each window.
func (s *Store) Due() (t int64, ok bool) {
	t = math.MaxInt64
	for _, rel := range s.framed {
		r := s.rels[rel]
		if at, due := r.frames.due(&s.copies, r.seq); due {
			t, ok = min(t, at), true
		}
	}
	return t, ok
}

// due is Due for one relation.
func (f *frames) due(c *copies, next uint64) (t int64, ok bool) {
	if f.times == nil || f.times.n == 0 || f.at == math.MaxInt64 {
		return 0, false
	}
	t = math.MaxInt64
	note := func(at int64, due bool) {
		if due {
			t, ok = min(t, max(at, f.at+1)), true
		}
	}
	blocks := &c.blocks[classes-1]
	for i := range f.list {
		w := &f.list[i]
		if w.win.Range == 0 {
			continue
		}
		if e, some := f.times.from(blocks, w.now.lo); some && e.time <= w.now.hi {
			note(leaves(w.win, e.time))
		}
		if w.now.hi < math.MaxInt64 {
			if e, some := f.times.from(blocks, w.now.hi+1); some {
				note(reaches(w.win, e.time))
			}
		}
	}
	if f.keep > 0 && f.byTime {
		note(f.expires(blocks, f.horizon(f.at, next)))
	}
	return t, ok
}

// reaches is the least logical time at which the end of a window is at a time
// or later.
func reaches(w query.Window, time int64) (t int64, ok bool) {
	back := uint64(time) - uint64(w.At(time))
	if w.Slide <= 1 || back == 0 {
		return time, true
	}
	return plus(time, w.Slide-int64(back))
}

// leaves is the least logical time at which a window has left a time behind.
func leaves(w query.Window, time int64) (t int64, ok bool) {
	if w.Range == math.MaxInt64 {
		return 0, false
	}
	if time, ok = plus(time, w.Range); !ok {
		return 0, false
	}
	return reaches(w, time)
}

// plus adds a span that is not negative to a time.
func plus(time, span int64) (t int64, ok bool) {
	return time + span, time <= math.MaxInt64-span
}

// expires is the least logical time at which a contribution leaves the
// retention beside the windows, and with it, if no window has it, the store.
func (f *frames) expires(blocks *slab, keeps horizon) (t int64, ok bool) {
	if f.byNumber && (f.numbers.n == 0 || f.numbers.front(blocks).time >= keeps.number) {
		return 0, false
	}
	var some batch
	n := f.times.read(blocks, entry{time: keeps.time}, math.MaxInt64, &some)
	if n == 0 {
		return 0, false
	}
	e := some[0]
	for i := 1; i < n && f.byNumber && int64(e.seq>>1) >= keeps.number; i++ {
		e = some[i]
	}
	t, ok = plus(e.time, f.keep)
	for i := range f.list {
		if w := f.list[i].win; ok && w.Range > 0 {
			var left int64
			left, ok = leaves(w, e.time)
			t = max(t, left)
		}
	}
	return t, ok
}
