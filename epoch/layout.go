package epoch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/views"
	"github.com/triegs/triegs/window"
)

// layout says which relations of the views hold the facts of one base relation.
// A layout is never changed, only replaced, so that a refused epoch can go back
// to the one before.
type layout struct {
	// windows look at the relation; they are numbered as in the contributions.
	windows []query.Window
	// streams are the relations of the views that hold what each window shows.
	streams []int
	// cover is the window whose stream holds most of the facts, or -1. base is the
	// relation of the views that holds the others: all of them without a cover.
	// A relation that is read through windows alone is so written once for most
	// events, not twice.
	base, cover int
	// valued are the relations of the views that hold what each window shows
	// together with the values of the contributions, which are one more column
	// behind the others, -1 where nobody reads that; nil where nobody reads any.
	// allValued is the one for all contributions, or noStream.
	valued    []int
	allValued int
	// keep is what is retained beyond the windows, as window.Store has it.
	keep int64
}

// need is what the registered queries and the catalog want of a relation.
type need struct {
	windows []query.Window
	whole   bool // some query reads all of it
	keep    int64
	// valued are the windows through which some query reads values, in any order,
	// the zero Window for all of them.
	valued []query.Window
}

// noStream is in the place of a relation of the views that nobody reads.
const noStream = -1

// stream finds the relation of the views that holds what a window shows.
func (l *layout) stream(w query.Window) int {
	if w.IsZero() {
		return l.base
	}
	return l.streams[slices.Index(l.windows, w)]
}

// valuedStream finds the relation of the views that holds what a window shows with
// values, or noStream.
func (l *layout) valuedStream(w query.Window) int {
	if w.IsZero() {
		return l.allValued
	}
	if i := slices.Index(l.windows, w); i >= 0 && l.valued != nil {
		return l.valued[i]
	}
	return noStream
}

// valuedStreams calls visit for each relation of the views that holds values, with
// its window, the widest window first and all contributions last.
func (l *layout) valuedStreams(visit func(w query.Window, number int)) {
	for i, n := range l.valued {
		if n != noStream {
			visit(l.windows[i], n)
		}
	}
	if l.allValued != noStream {
		visit(query.Window{}, l.allValued)
	}
}

// needs gathers what the queries of a catalog want of its relations, by number.
func needs(c *catalog.Catalog, queries []*catalog.Query) []need {
	list := make([]need, len(c.Relations()))
	for i, r := range c.Relations() {
		list[i].keep = r.Keep
	}
	for _, q := range queries {
		for i := range q.Plan.Aliases {
			a := &q.Plan.Aliases[i]
			n, _, ok := c.Relation(a.Relation)
			if ok && a.Valued && !slices.Contains(list[n].valued, a.Window) {
				list[n].valued = append(list[n].valued, a.Window)
			}
			switch {
			case !ok:
			case a.Window.IsZero():
				list[n].whole = true
			case !slices.Contains(list[n].windows, a.Window):
				list[n].windows = append(list[n].windows, a.Window)
			}
		}
	}
	for i := range list {
		list[i].settle()
	}
	return list
}

// settle puts the windows in order, the widest first, and says what is kept
// beside them: everything where somebody reads everything, or where nobody has
// said how much is enough.
func (n *need) settle() {
	slices.SortFunc(n.windows, func(a, b query.Window) int {
		return cmp.Or(cmp.Compare(b.Range, a.Range), cmp.Compare(a.Slide, b.Slide), cmp.Compare(b.Last, a.Last))
	})
	if n.whole || len(n.windows) == 0 && n.keep == 0 {
		n.keep = window.Forever
	}
}

// cover is the window whose stream stands for the relation, -1 if all of the
// facts are needed in one place.
func (n *need) cover() int {
	if n.whole || len(n.windows) == 0 {
		return -1
	}
	return 0
}

// outside reports whether a contribution with an event time could not be seen at
// logical time t or later.
func (l *layout) outside(at, t int64) bool {
	if l.keep == window.Forever || at > settled(t, l.keep) {
		return false
	}
	for _, w := range l.windows {
		if w.Last > 0 || at >= w.From(w.At(t)) {
			return false
		}
	}
	return true
}

// is reports whether a layout is what is needed already.
func (l *layout) is(n *need) bool {
	if !l.frames(n) || l.cover != n.cover() {
		return false
	}
	have := 0
	l.valuedStreams(func(query.Window, int) { have++ })
	return have == len(n.valued) && !slices.ContainsFunc(n.valued, func(w query.Window) bool { return l.valuedStream(w) == noStream })
}

// frames reports whether the contributions have the windows already that are
// needed.
func (l *layout) frames(n *need) bool {
	return l.keep == n.keep && slices.Equal(l.windows, n.windows)
}

// arrange gives the relations the layout that the queries need. Streams that
// nobody needs any more are left to discard. Cost: that of counting and sorting
// the facts of each stream that is new. On error (ErrBudget) the caller must roll
// back.
func (e *Engine) arrange(c *catalog.Catalog, queries []*catalog.Query) error {
	list := needs(c, queries)
	fresh := false
	for rel := range list {
		if e.layouts[rel].is(&list[rel]) {
			continue
		}
		if !fresh { // the published one may be asked for again
			e.layouts, fresh = slices.Clone(e.layouts), true
		}
		var err error
		if e.layouts[rel], err = e.rearrange(uint32(rel), &list[rel]); err != nil {
			return fmt.Errorf("relation %s: %w", c.Relations()[rel].Name, err)
		}
	}
	return nil
}

// rearrange makes the layout of one relation.
func (e *Engine) rearrange(rel uint32, n *need) (layout, error) {
	old := e.layouts[rel]
	if !old.frames(n) {
		e.facts.SetWindows(rel, e.now(), n.windows, n.keep)
	}
	if err := e.facts.SetValued(rel, len(n.valued) > 0); err != nil {
		return old, err
	}
	l := layout{windows: n.windows, base: old.base, cover: n.cover(), keep: n.keep}
	for i, w := range n.windows {
		if k := slices.Index(old.windows, w); k >= 0 {
			l.streams = append(l.streams, old.streams[k])
			continue
		}
		l.streams = append(l.streams, e.fill(rel, e.facts.FactsIn(rel, i)))
	}
	e.arrangeValued(rel, n, &old, &l)
	for k, w := range old.windows {
		if !slices.Contains(n.windows, w) {
			e.obsolete = append(e.obsolete, old.streams[k])
		}
	}
	if old.covered() != l.covered() {
		// Nobody reads the base relation by itself before and after: it is
		// either with a cover on one side, or new.
		e.obsolete = append(e.obsolete, old.base)
		if l.cover < 0 {
			l.base = e.fill(rel, e.facts.Facts(rel))
		} else {
			l.base = e.fill(rel, e.facts.FactsOutside(rel, l.cover))
		}
	}
	return l, nil
}

// arrangeValued does it for what is read with values.
func (e *Engine) arrangeValued(rel uint32, n *need, old, l *layout) {
	stream := func(w query.Window, facts func() window.Facts) int {
		if !slices.Contains(n.valued, w) {
			return noStream
		}
		if k := old.valuedStream(w); k != noStream {
			return k
		}
		return e.fillValued(rel, facts())
	}
	l.valued, l.allValued = nil, stream(query.Window{}, func() window.Facts { return e.facts.ValuedFacts(rel) })
	if len(n.valued) > 0 {
		for i, w := range l.windows {
			l.valued = append(l.valued, stream(w, func() window.Facts { return e.facts.ValuedFactsIn(rel, i) }))
		}
	}
	old.valuedStreams(func(w query.Window, number int) {
		if l.valuedStream(w) == noStream {
			e.obsolete = append(e.obsolete, number)
		}
	})
}

// covered is the window that covers the relation, the zero Window if none does.
func (l *layout) covered() query.Window {
	if l.cover < 0 {
		return query.Window{}
	}
	return l.windows[l.cover]
}

// fill makes a relation of the views of some facts.
func (e *Engine) fill(rel uint32, f window.Facts) (number int) {
	number = e.views.AddRelation(e.facts.Arity(rel))
	e.made = append(e.made, number)
	e.load(number, e.facts.Len(rel), f)
	return number
}

// fillValued is like fill for facts with values.
func (e *Engine) fillValued(rel uint32, f window.Facts) (number int) {
	number = e.views.AddRelation(e.facts.Arity(rel) + 1)
	e.made = append(e.made, number)
	e.load(number, e.facts.ValuedLen(rel), f)
	return number
}

func (e *Engine) load(number, about int, f window.Facts) {
	e.views.Load(number, about, func(yield func(tuple []uint64, weight int64) bool) {
		for f.Next() {
			if !yield(f.Tuple(), f.Count()) {
				return
			}
		}
	})
}

// discard drops the relations of the views that arrange has replaced. It cannot
// be taken back.
func (e *Engine) discard() {
	for _, n := range e.obsolete {
		e.views.RemoveRelation(n)
	}
	e.obsolete = e.obsolete[:0]
}

// changeRelation hands the net changes of one relation to the views.
func (e *Engine) changeRelation(rel uint32) {
	l := &e.layouts[rel]
	if e.facts.Len(rel) == 0 {
		e.views.Clear(l.base)
		for _, n := range l.streams {
			e.views.Clear(n)
		}
		l.valuedStreams(func(_ query.Window, n int) { e.views.Clear(n) })
		return
	}
	switch {
	case l.cover < 0:
		e.changeViews(l.base, e.facts.Changes(rel))
	case e.facts.AllIn(rel, l.cover):
		e.views.Clear(l.base)
	default:
		e.changeViews(l.base, e.facts.OutsideChanges(rel, l.cover))
	}
	for c := e.facts.Crossings(rel); c.Next(); {
		e.views.Change(l.streams[c.Window()], c.Tuple(), c.Old(), c.New())
	}
	e.changeValued(rel, l)
}

// changeValued hands them over by fact and value.
func (e *Engine) changeValued(rel uint32, l *layout) {
	if l.allValued != noStream {
		e.changeViews(l.allValued, e.facts.ValuedChanges(rel))
	}
	if l.valued == nil {
		return
	}
	for c := e.facts.ValuedCrossings(rel); c.Next(); {
		if n := l.valued[c.Window()]; n != noStream {
			e.views.Change(n, c.Tuple(), c.Old(), c.New())
		}
	}
}

func (e *Engine) changeViews(number int, c window.Changes) {
	for c.Next() {
		e.views.Change(number, c.Tuple(), c.Old(), c.New())
	}
}

// Stream is what one window shows of a relation, in a published epoch.
type Stream struct {
	Window  query.Window
	Indexes []views.PinnedIndex
}

// Shape says where the facts of a relation are in a published epoch: all of
// them in Base, or, where a stream covers the relation, the ones outside of it.
type Shape struct {
	Base    []views.PinnedIndex
	Streams []Stream
	Cover   int // of Streams, -1 if there is none
	// Valued is what is read with the values of the contributions: the facts have
	// one more column, the id of the value, 0 for none. The zero Window stands for
	// all contributions.
	Valued []Stream
}

// show are the indexes of what a window shows.
func (s *Shape) show(w query.Window) (first, rest []views.PinnedIndex, err error) {
	if w.IsZero() {
		first, rest = s.parts()
		return first, rest, nil
	}
	for i := range s.Streams {
		if s.Streams[i].Window == w {
			return s.Streams[i].Indexes, nil, nil
		}
	}
	return nil, nil, fmt.Errorf("no query keeps the window %v", w)
}

// showValued are the indexes of what a window shows with values.
func (s *Shape) showValued(w query.Window) ([]views.PinnedIndex, error) {
	for i := range s.Valued {
		if s.Valued[i].Window == w {
			return s.Valued[i].Indexes, nil
		}
	}
	if w.IsZero() {
		return nil, errors.New("no registered query keeps its values")
	}
	return nil, fmt.Errorf("no registered query keeps its values in the window %v", w)
}

// parts are the indexes that together hold all facts.
func (s *Shape) parts() (first, rest []views.PinnedIndex) {
	if s.Cover < 0 {
		return s.Base, nil
	}
	return s.Streams[s.Cover].Indexes, s.Base
}

// shapes tells readers where the facts are.
func (e *Engine) shapes() []Shape {
	list := make([]Shape, len(e.layouts))
	for i := range e.layouts {
		l := &e.layouts[i]
		list[i] = Shape{Base: e.views.Indexes(l.base), Cover: l.cover}
		for k, n := range l.streams {
			list[i].Streams = append(list[i].Streams, Stream{l.windows[k], e.views.Indexes(n)})
		}
		l.valuedStreams(func(w query.Window, n int) {
			list[i].Valued = append(list[i].Valued, Stream{w, e.views.Indexes(n)})
		})
	}
	return list
}

// Due is the logical time, in nanoseconds, at which the next contribution enters
// or leaves a window, expires, or is due from the events that wait; MaxInt64 if
// there is none. It may be called at any time.
func (e *Engine) Due() int64 { return e.due.Load() }

// nextDue computes it after an epoch.
func (e *Engine) nextDue() int64 {
	due := int64(math.MaxInt64)
	if t, ok := e.facts.Due(); ok {
		due = t
	}
	if t, ok := e.facts.NextWaiting(); ok {
		due = min(due, t)
	}
	return due
}
