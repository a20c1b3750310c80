package views

import (
	"math/bits"
	"slices"
)

// reader is something that reads the rows of a list, of changes or of toggles, that
// have certain ids in certain columns. Rows are dealt out to readers by these
// ids, so that a row costs what it concerns and not how many queries there are.
type reader struct {
	consts []constCol
	view   *view     // nil for a derived relation, and for kept answers
	of     *interest // that of kept answers, nil for others
	rows   []int32   // numbers of its rows in the version under construction
}

// has reports whether a row has constants.
func has(row []uint64, consts []constCol) bool {
	for _, k := range consts {
		if row[k.col] != k.id {
			return false
		}
	}
	return true
}

// readers are those of one list: of all rows, and in groups with the same columns.
type readers struct {
	all    []*reader
	groups []*readerGroup
}

type readerGroup struct {
	cols []int
	by   map[uint64][]*reader // by mixed ids
}

func (g *readerGroup) is(r *reader) bool {
	return slices.EqualFunc(g.cols, r.consts, func(col int, k constCol) bool { return col == k.col })
}

// of are the readers that may read a row.
func (g *readerGroup) of(row []uint64) []*reader {
	sum := uint64(0)
	for _, col := range g.cols {
		sum = mix(sum, row[col])
	}
	return g.by[sum]
}

// mix makes one word of ids.
func mix(sum, id uint64) uint64 { return bits.RotateLeft64(sum^id, 29) * 0x9e3779b97f4a7c15 }

func (r *reader) mixed() (sum uint64) {
	for _, k := range r.consts {
		sum = mix(sum, k.id)
	}
	return sum
}

func (l *readers) add(r *reader) {
	if len(r.consts) == 0 {
		l.all = append(l.all, r)
		return
	}
	i := slices.IndexFunc(l.groups, func(g *readerGroup) bool { return g.is(r) })
	if i < 0 {
		i = len(l.groups)
		l.groups = append(l.groups, &readerGroup{by: make(map[uint64][]*reader)})
		for _, k := range r.consts {
			l.groups[i].cols = append(l.groups[i].cols, k.col)
		}
	}
	by := l.groups[i].by
	by[r.mixed()] = append(by[r.mixed()], r)
}

func (l *readers) remove(r *reader) {
	l.all = slices.DeleteFunc(l.all, func(o *reader) bool { return o == r })
	for i, g := range l.groups {
		if !g.is(r) {
			continue
		}
		at := r.mixed()
		if g.by[at] = slices.DeleteFunc(g.by[at], func(o *reader) bool { return o == r }); len(g.by[at]) == 0 {
			delete(g.by, at)
		}
		if len(g.by) == 0 {
			l.groups = slices.Delete(l.groups, i, i+1)
		}
		return
	}
}

// deal deals n rows of a list, each of which takes stride words.
func (s *Store) deal(l *readers, words []uint64, n, stride int) {
	for _, r := range l.all {
		s.markReader(r)
	}
	for _, g := range l.groups {
		for i := range n {
			row := words[i*stride : (i+1)*stride]
			for _, r := range g.of(row) {
				if has(row, r.consts) {
					s.handRow(r, int32(i))
				}
			}
		}
	}
}

// handRow hands row i to a reader, once.
func (s *Store) handRow(r *reader, i int32) {
	n := len(r.rows)
	if n == 0 {
		s.served = append(s.served, r)
		s.markReader(r)
	}
	if n == 0 || r.rows[n-1] != i {
		r.rows = append(r.rows, i)
	}
}

// markReader has what reads a row looked at.
func (s *Store) markReader(r *reader) {
	switch {
	case r.of != nil:
		s.stir(r.of)
	case r.view == nil:
	case r.view.leaf != nil:
		s.markAbove(r.view)
	default:
		s.mark(r.view)
	}
}

// mark has a view brought up to date in this version.
func (s *Store) mark(v *view) { s.due[v.at>>6] |= 1 << (v.at & 63) }

// dispatch has everything looked at that the changes of a relation may concern. They
// have been written into its indexes.
func (s *Store) dispatch(r *Relation) {
	if r.cleared {
		return // all views are looked at then
	}
	s.deal(&r.readers, r.changes, len(r.changes)/(r.arity+2), r.arity+2)
	for _, in := range r.interests {
		s.stir(in)
	}
	for ; s.dealt < len(s.toggled); s.dealt++ {
		t := s.toggled[s.dealt]
		if t.settle(); t.n > 0 {
			s.deal(&t.readers, t.words, t.n, t.width)
		}
	}
}

// propagate brings the inner nodes of all queries up to date that may have changed,
// children before parents, in one pass: Wang and Hu's annotated CROWN in its epoch
// form. Every tuple that was touched in the relation, or whose partner group in a
// child became empty or non-empty, is recomputed from the final states of the
// children, so neither the order of changes nor repeated visits matter, and inserts
// and deletes that cancel inside the epoch wake nobody.
func (s *Store) propagate() {
	if s.clearing {
		for _, v := range s.views {
			if v.leaf == nil {
				s.bringUpView(v)
			}
		}
		return
	}
	for i := range s.due {
		for s.due[i] != 0 { // views mark others, which come later
			at := bits.TrailingZeros64(s.due[i])
			s.due[i] &^= 1 << at
			s.bringUpView(s.views[i<<6|at])
		}
	}
}

// bringUpView brings an inner node up to date, and has those above looked at.
func (s *Store) bringUpView(v *view) {
	if s.clearing && v.emptied() {
		v.gone = true
		s.clearTrie(v.slot, v.columns)
		return
	}
	s.visited = append(s.visited, v)
	began := s.start()
	if v.relation == nil {
		s.visitGeneralized(v)
	} else {
		s.visitInner(v)
	}
	v.work.stop(s, began)
	if v.changed == nil {
		return
	}
	if v.changed.settle(); v.changed.n > 0 {
		s.markAbove(v)
	}
}

// enlist has v told of what concerns it, but for what concerns its children.
func (s *Store) enlist(v *view) {
	s.viewBy[v.signature] = v
	v.at = len(s.views)
	s.views = append(s.views, v)
	for len(s.due)<<6 < len(s.views) {
		s.due = append(s.due, 0)
	}
	switch {
	case v.leaf != nil && v.changed != nil:
		v.reader = &reader{view: v}
		for i, id := range v.lead {
			v.reader.consts = append(v.reader.consts, constCol{i, id})
		}
		v.changed.readers.add(v.reader)
	case v.leaf == nil && v.relation != nil:
		v.reader = &reader{view: v, consts: v.consts}
		v.relation.readers.add(v.reader)
	}
}

// delist takes back what enlist and join have done, but for the place in the list of views.
func (s *Store) delist(v *view) {
	delete(s.viewBy, v.signature)
	v.leave()
	switch {
	case v.reader == nil:
	case v.leaf != nil:
		v.changed.readers.remove(v.reader)
	default:
		v.relation.readers.remove(v.reader)
	}
}

// settleViews forgets what views have noted in the version.
func (s *Store) settleViews() {
	s.settleStakes()
	for _, t := range s.toggled {
		t.reset()
	}
	s.toggled, s.dealt = s.toggled[:0], 0
	for _, v := range s.visited {
		if v.changed != nil {
			v.changed.reset()
		}
	}
	for _, r := range s.served {
		r.rows = r.rows[:0]
		if cap(r.rows) > 1<<16 {
			r.rows = nil
		}
	}
	s.visited, s.served = s.visited[:0], s.served[:0]
	clear(s.due)
	if s.clearing {
		for _, v := range s.views {
			v.gone = false
		}
	}
}
