package window

import (
	"math"
	"slices"

	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/query"
)

// Forever is the retention that keeps everything.
const Forever = math.MaxInt64

// span is what a window shows: contributions with event time from lo to hi or,
// if it is one of the newest contributions, those appended with number lo or
// later.
type span struct{ lo, hi int64 }

// everything is what the zero Window shows.
var everything = span{math.MinInt64, math.MaxInt64}

// frame is one window of a relation: what it shows now, and what it showed when
// the epoch began.
type frame struct {
	win      query.Window
	now, was span
}

// frames is what a relation has for its windows and for a limited retention.
type frames struct {
	list    []frame
	windows []query.Window
	keep    int64
	at, was int64 // logical time, now and when the epoch began

	// What retention asks for. With neither all is kept.
	byTime, byNumber bool
	// The order of the contributions by time and by number of append, each nil
	// if nothing asks for it.
	times, numbers *index

	olds []int64 // for each touched fact its multiplicity in each window at Begin

	// For a retention by both: what was needed after the last Advance, refreshed
	// contributions that are below it, and whether Advance has to look at all.
	need, needWas horizon
	late          []entry // by record
	full, fullWas bool

	next due // what Due has found
	// Advance has gone over the relation: what nothing needs is gone.
	settled, advanced bool
}

// horizon is what a relation keeps: contributions from an event time on, and
// those from a number on.
type horizon struct{ time, number int64 }

// spanAt is what a window shows at a logical time, next being the number of the
// next append.
func spanAt(w query.Window, at int64, next uint64) span {
	switch {
	case w.Last > 0:
		if uint64(w.Last) >= next {
			return span{0, math.MaxInt64}
		}
		return span{int64(next - uint64(w.Last)), math.MaxInt64}
	case w.Range == 0:
		return everything
	}
	end := w.At(at)
	return span{w.From(end), end}
}

// SetWindows replaces the windows that look at a relation, and what is kept
// beside them: Forever keeps everything, 0 nothing beyond what the windows
// need, any other span also contributions newer than the logical time less the
// span. Windows are numbered by their place in the list. Their ends stand at
// logical time at from now on, except that no end goes back and that one which
// was there before goes on from where it was; what is no longer needed goes with
// the next [Store.Advance].
//
// Inside of an epoch it belongs to it; the changes of a window that is new are
// those since it was set. Between two epochs the changes of all windows begin
// anew. The cost is that of sorting the contributions if none of the windows
// before was of the kind.
func (s *Store) SetWindows(rel uint32, at int64, windows []query.Window, keep int64) {
	invariant.Check(keep >= 0, "a retention of %d", keep)
	r := s.rels[rel]
	if r.frames != nil {
		at = max(at, r.frames.at)
	}
	s.reframe(r, rel, at, windows, keep)
	if v := r.valued; v != nil {
		v.seq = r.seq
		s.reframe(v, rel, at, windows, Forever)
	}
}

// reframe is SetWindows for a relation or for its shadow.
func (s *Store) reframe(r *relation, rel uint32, at int64, windows []query.Window, keep int64) {
	old := r.frames
	var next *frames
	if len(windows) > 0 || keep != Forever {
		next = newFrames(at, r.seq, windows, keep)
		if old != nil && s.running {
			next.inherit(old)
		}
		next.order(s, rel, r, old)
	}
	if !s.running {
		s.frame(r, rel, next).release(&s.copies, next)
		return
	}
	if next != nil {
		next.recount(&s.copies, r, old)
	}
	if r.shadow {
		s.undo.shadowed(rel, r)
		r.frames = next
	} else {
		s.undo.framed(rel, s.frame(r, rel, next))
	}
	if next != nil && old != nil {
		s.slide(r, rel, next.horizon(s.reach(rel, next.at)))
	}
}

// Windows returns what SetWindows has set, which must not be written.
func (s *Store) Windows(rel uint32) []query.Window {
	if f := s.rels[rel].frames; f != nil {
		return f.windows
	}
	return nil
}

// frame puts frames in the place of those that a relation or its shadow has, and
// returns these.
func (s *Store) frame(r *relation, rel uint32, next *frames) (old *frames) {
	old, r.frames = r.frames, next
	if r.shadow {
		return old
	}
	i, listed := slices.BinarySearch(s.framed, rel)
	switch {
	case next == nil && listed:
		s.framed = slices.Delete(s.framed, i, i+1)
	case next != nil && !listed:
		s.framed = slices.Insert(s.framed, i, rel)
	}
	return old
}

func newFrames(at int64, next uint64, windows []query.Window, keep int64) *frames {
	f := &frames{windows: slices.Clone(windows), keep: keep, at: at, was: at}
	ranges, last := false, false
	for _, w := range windows {
		now := spanAt(w, at, next)
		f.list = append(f.list, frame{w, now, now})
		ranges, last = ranges || w.Range > 0, last || w.Last > 0
		if w.IsZero() {
			f.keep = Forever
		}
	}
	if f.keep != Forever {
		f.byTime = ranges || keep > 0
		f.byNumber = last || !f.byTime
	}
	f.full = f.byTime && f.byNumber
	f.fullWas = f.full
	if ranges || f.byTime {
		f.times = new(index)
	}
	if last || f.byNumber {
		f.numbers = &index{byNumber: true}
	}
	return f
}

// order makes the indexes of f, or takes over those of the frames before it.
func (f *frames) order(s *Store, rel uint32, r *relation, old *frames) {
	if old == nil {
		old = new(frames)
	}
	for _, to := range [...]struct{ x, old **index }{{&f.times, &old.times}, {&f.numbers, &old.numbers}} {
		if *to.x == nil {
			continue
		}
		least := f.least((*to.x).byNumber, s, rel)
		if (*to.old).serves(least) {
			*to.x = *to.old
		} else {
			(*to.x).fill(&s.copies, r, least)
		}
	}
}

// least is a bound of what an index has to hold: below are contributions that
// never expire and that no window will ever look at again.
func (f *frames) least(byNumber bool, s *Store, rel uint32) int64 {
	if f.byTime || f.byNumber {
		return math.MinInt64
	}
	at, next := s.reach(rel, f.at)
	least := int64(math.MaxInt64)
	for i := range f.list {
		w := &f.list[i]
		switch {
		case w.win.IsZero() || w.win.Last > 0 != byNumber:
		case w.win.Range == math.MaxInt64:
			least = min(least, w.now.hi)
		default:
			least = min(least, w.now.lo, spanAt(w.win, at, next).lo)
		}
	}
	return least
}

// inherit goes on with the windows that were there before.
func (f *frames) inherit(old *frames) {
	f.was = old.was
	for i := range f.list {
		if j := slices.Index(old.windows, f.list[i].win); j >= 0 {
			f.list[i] = old.list[j]
		}
	}
}

// recount notes what the facts that the epoch has touched already had in the
// windows of f at Begin.
func (f *frames) recount(c *copies, r *relation, old *frames) {
	for i, t := range r.touched {
		tail := r.facts.at(t.rec)[r.arity:]
		for k := range f.list {
			n, j := int64(0), -1
			if old != nil {
				j = slices.Index(old.windows, f.list[k].win)
			}
			if j >= 0 {
				n = old.olds[i*len(old.list)+j]
			} else {
				n = f.count(c, tail, t.rec, k, f.list[k].was)
			}
			f.olds = append(f.olds, n)
		}
	}
}

// has reports whether a number is in a span.
func (s span) has(n int64) bool { return s.lo <= n && n <= s.hi }

// one is how many contributions a span of the window shows of a fact that has one.
func (w *frame) one(tail []uint64, in span) int64 {
	n := int64(tail[0])
	if w.win.Last > 0 {
		n = int64(tail[1] >> 1)
	}
	if in.has(n) {
		return 1
	}
	return 0
}

// count is the number of contributions to the fact in a record that are in a
// span of window w.
func (f *frames) count(c *copies, tail []uint64, rec uint32, w int, in span) int64 {
	last := f.list[w].win.Last
	switch form := tail[2] & formMask; {
	case form == 0:
		return 0
	case form == formOne:
		return f.list[w].one(tail, in)
	case last == 0:
		return c.within(tail, in.lo, in.hi)
	}
	n, x, blocks := c.count(tail[2]), f.numbers, &c.blocks[classes-1]
	switch {
	case x.left == 0 && x.front(blocks).time >= in.lo:
		return n
	case n > last:
		return x.ofFact(blocks, rec, in.lo)
	}
	return c.newer(tail, uint64(in.lo))
}

// in is the multiplicity of the fact in a record in window w now.
func (f *frames) in(c *copies, tail []uint64, rec uint32, w int) int64 {
	if tail[2]&formMask == formOne {
		return f.list[w].one(tail, f.list[w].now)
	}
	return f.count(c, tail, rec, w, f.list[w].now)
}

// AllIn reports whether window w of a relation shows all of its contributions. The
// cost is O(1).
func (s *Store) AllIn(rel uint32, w int) bool {
	f, blocks := s.rels[rel].frames, &s.copies.blocks[classes-1]
	x := f.times
	switch win := f.list[w].win; {
	case win.IsZero():
		return true
	case win.Last > 0:
		x = f.numbers
	}
	now := f.list[w].now
	return x.left == 0 && (x.n == 0 || x.front(blocks).time >= now.lo && x.back(blocks).time <= now.hi)
}

// old is the multiplicity that the touched fact number i had in window w at
// Begin.
func (f *frames) old(i, w int) int64 { return f.olds[i*len(f.list)+w] }

// touch notes the multiplicities of a fact in all windows before its first
// change in the epoch.
func (f *frames) touch(c *copies, tail []uint64, rec uint32) {
	f.next.known = false
	switch tail[2] & formMask {
	case 0:
		for range f.list {
			f.olds = append(f.olds, 0)
		}
	case formOne:
		for w := range f.list {
			f.olds = append(f.olds, f.list[w].one(tail, f.list[w].was))
		}
	default:
		for w := range f.list {
			f.olds = append(f.olds, f.count(c, tail, rec, w, f.list[w].was))
		}
	}
}

// add enters a contribution into the indexes.
func (f *frames) add(c *copies, rec uint32, time int64, seq uint64) {
	if f.times != nil {
		f.times.add(&c.blocks[classes-1], f.times.key(rec, time, seq))
	}
	if f.numbers != nil {
		f.numbers.add(&c.blocks[classes-1], f.numbers.key(rec, time, seq))
	}
}

// remove takes a contribution out of the indexes.
func (f *frames) remove(c *copies, rec uint32, time int64, seq uint64) {
	if f.times != nil {
		f.times.remove(&c.blocks[classes-1], f.times.key(rec, time, seq))
	}
	if f.numbers != nil {
		f.numbers.remove(&c.blocks[classes-1], f.numbers.key(rec, time, seq))
	}
}

// refreshed has Advance look at a contribution that has got another time, if it
// may be out of reach for Advance otherwise.
func (f *frames) refreshed(rec uint32, time int64, seq uint64) {
	if f.byTime && f.byNumber && !f.need.has(time, seq) {
		f.late = append(f.late, entry{seq: seq, value: uint64(rec)})
	}
}

// has reports whether a contribution is kept.
func (h horizon) has(time int64, seq uint64) bool {
	return time >= h.time || int64(seq>>1) >= h.number
}

// commit and rollback end the epoch.
func (f *frames) commit(s *Store, rel uint32) {
	for _, x := range [...]*index{f.times, f.numbers} {
		if x != nil {
			x.trim(&s.copies.blocks[classes-1], f.least(x.byNumber, s, rel))
		}
	}
	for i := range f.list {
		f.list[i].was = f.list[i].now
	}
	f.settled, f.advanced = f.settled || f.advanced, false
	// Without an Advance nobody has looked at what came too late.
	f.full = f.full || len(f.late) > 0
	f.was, f.needWas, f.fullWas = f.at, f.need, f.full
	f.forget()
}

func (f *frames) rollback() {
	for i := range f.list {
		f.list[i].now = f.list[i].was
	}
	f.at, f.need, f.full, f.advanced = f.was, f.needWas, f.fullWas, false
	f.forget()
}

// framesKept is the size up to which frames keep the memory of an epoch.
const framesKept = 4096

func (f *frames) forget() {
	f.olds, f.late = f.olds[:0], f.late[:0]
	if cap(f.olds)*8 > framesKept && int64(cap(f.olds)) > f.most() {
		f.olds = nil
	}
	if cap(f.late)*24 > framesKept {
		f.late = nil
	}
}

// most is the number of olds that is little beside the indexes.
func (f *frames) most() (n int64) {
	for _, x := range [...]*index{f.times, f.numbers} {
		if x != nil {
			n += x.n / 4
		}
	}
	return n
}

// release gives back the indexes that other frames do not use, nil among them.
func (f *frames) release(c *copies, other *frames) {
	if f == nil {
		return
	}
	if other == nil {
		other = new(frames)
	}
	if f.times != nil && f.times != other.times {
		f.times.release(&c.blocks[classes-1])
	}
	if f.numbers != nil && f.numbers != other.numbers {
		f.numbers.release(&c.blocks[classes-1])
	}
}

func (f *frames) bytes() int64 {
	if f == nil {
		return 0
	}
	return framesBytes + int64(cap(f.list))*frameBytes + int64(cap(f.windows))*24 +
		int64(cap(f.olds))*8 + int64(cap(f.late))*24 + f.times.bytes() + f.numbers.bytes()
}

const (
	framesBytes = 264
	frameBytes  = 56
)
