package window

import (
	"math"

	"github.com/triegs/triegs/query"
)

// Due returns the least logical time, later than that of the last Advance, at
// which Advance would move something: a contribution that enters or leaves a
// window or expires. With a slide it is a multiple of the slide. ok is false if
// there is no such time. In a relation with windows of the newest contributions
// and others it may come early, and where many slides in a row show nothing. What SetWindows has made superfluous goes with
// any Advance and does not count. The cost is O(log n) for each window.
func (s *Store) Due() (t int64, ok bool) {
	t = math.MaxInt64
	for _, rel := range s.framed {
		r := s.rels[rel]
		next := r.frames.next
		// Until then, and until a fact changes, nothing else can become due.
		if !next.known || next.some && next.at <= r.frames.at {
			next.at, next.some = r.frames.due(&s.copies, r.seq)
			next.known = !s.running
			r.frames.next = next
		}
		if next.some {
			t, ok = min(t, next.at), true
		}
	}
	return t, ok
}

// due is what Due has found for a relation.
type due struct {
	at          int64
	some, known bool
}

// due is Due for one relation.
func (f *frames) due(c *copies, next uint64) (t int64, ok bool) {
	if f.times == nil || f.times.n == 0 {
		return 0, false
	}
	t = math.MaxInt64
	note := func(at int64, due bool) {
		if due {
			t, ok = min(t, at), true
		}
	}
	blocks := &c.blocks[classes-1]
	first, last := f.times.front(blocks).time, f.times.back(blocks).time
	for i := range f.list {
		w := &f.list[i]
		if w.win.Range == 0 {
			continue
		}
		least, some := first, true
		if first < w.now.lo {
			var e entry
			e, some = f.times.from(blocks, w.now.lo)
			least = e.time
		}
		if some && least <= w.now.hi {
			note(leaves(w.win, least))
		}
		if last > w.now.hi {
			note(f.times.enters(blocks, w))
		}
	}
	if f.byTime {
		note(f.expires(blocks, first, f.horizon(f.at, next)))
	}
	return t, ok
}

// reaches is the least logical time at which the end of a window is at a time
// or later.
func reaches(w query.Window, time int64) (t int64, ok bool) {
	if w.Slide <= 1 || time%w.Slide == 0 {
		return time, true
	}
	if time < 0 {
		return time - time%w.Slide, true
	}
	return plus(time, w.Slide-time%w.Slide)
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

// stepsMax bounds the search of enters: behind it Due comes early.
const stepsMax = 64

// enters is the least logical time at which a contribution from after the end of
// a window is in it, or after many slides that show nothing one before it.
func (q *queue) enters(blocks *slab, w *frame) (t int64, ok bool) {
	behind := w.now.hi
	for range stepsMax {
		if behind == math.MaxInt64 {
			return 0, false
		}
		e, some := q.from(blocks, behind+1)
		if !some {
			return 0, false
		}
		if t, ok = reaches(w.win, e.time); !ok {
			return 0, false
		}
		from := w.win.From(t)
		if e.time >= from {
			return t, true
		}
		// The slide is longer than the range, and steps over it.
		behind = from - 1
	}
	return t, true
}

// expires is the least logical time at which a contribution is left behind by all
// windows of time and by the retention beside them, first being the least event
// time of all.
func (f *frames) expires(blocks *slab, first int64, keeps horizon) (t int64, ok bool) {
	time, ok := f.firstKept(blocks, first, keeps)
	if !ok {
		return 0, false
	}
	if t = time; f.keep > 0 {
		t, ok = plus(time, f.keep)
	}
	for i := range f.list {
		if w := f.list[i].win; ok && w.Range > 0 {
			var left int64
			left, ok = leaves(w, time)
			t = max(t, left)
		}
	}
	return t, ok
}

// firstKept is the least event time of a contribution that is kept for its time
// alone, or one before it: the search ends where it takes long.
func (f *frames) firstKept(blocks *slab, first int64, keeps horizon) (time int64, ok bool) {
	if !f.byNumber {
		if first >= keeps.time {
			return first, true
		}
		e, ok := f.times.from(blocks, keeps.time)
		return e.time, ok
	}
	if f.numbers.n == 0 || f.numbers.front(blocks).time >= keeps.number {
		return 0, false
	}
	var some batch
	at, more := entry{time: keeps.time}, true
	for range 4 {
		n := 0
		if more {
			n = f.times.read(blocks, at, math.MaxInt64, &some)
		}
		if n == 0 {
			return 0, false
		}
		for _, e := range some[:n] {
			if int64(e.seq>>1) < keeps.number {
				return e.time, true
			}
		}
		at, more = some[n-1].after()
	}
	return at.time, true
}
