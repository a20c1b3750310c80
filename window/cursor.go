package window

import (
	"cmp"
	"iter"
	"slices"
)

// Changes walks the net changes of the running epoch to one relation. The
// zero Changes is empty. Use it as
//
//	for c := s.Changes(rel); c.Next(); {
//		... c.Tuple(), c.Old(), c.New()
//	}
//
// It allocates nothing. It is valid until the next change of the store.
type Changes struct {
	r        *relation
	copies   *copies
	view     view
	next     int
	tuple    []uint64
	old, new int64
}

// Changes returns a cursor before the first net change of the epoch to a
// relation. Each fact with another multiplicity than at Begin comes once, in
// the order in which the epoch first touched them.
func (s *Store) Changes(rel uint32) Changes {
	return Changes{r: s.rels[rel], copies: &s.copies}
}

// OutsideChanges returns a cursor before the first net change of the epoch in what
// is not in window w of a relation: Old is the multiplicity outside of the window
// as it was at Begin, New that outside of it as it is now.
func (s *Store) OutsideChanges(rel uint32, w int) Changes {
	return Changes{r: s.rels[rel], copies: &s.copies, view: view{beyond, w}}
}

// view tells which contributions count: all, or those in a window, or those
// that are not in it.
type view struct{ part, w int }

const (
	all = iota
	inside
	beyond
)

// of is the part of n contributions that counts, when so many are in the window.
func (v view) of(n, in int64) int64 {
	if v.part == beyond {
		return n - in
	}
	return in
}

// Next steps to the next change and reports whether there is one.
func (c *Changes) Next() bool {
	if c.r == nil {
		return false
	}
	for c.next < len(c.r.touched) {
		t := c.r.touched[c.next]
		w := c.r.facts.at(t.rec)
		old, n := t.old, c.copies.count(w[c.r.arity+2])
		if c.view.part != all {
			in := c.r.frames.in(c.copies, w[c.r.arity:], t.rec, c.view.w)
			old, n = c.view.of(old, c.r.frames.old(c.next, c.view.w)), c.view.of(n, in)
		}
		c.next++
		if n != old {
			c.tuple, c.old, c.new = w[:c.r.arity:c.r.arity], old, n
			return true
		}
	}
	return false
}

// Tuple returns the fact. It must not be written, and it is the store's own
// memory: copy it to keep it past the next change of the store.
func (c *Changes) Tuple() []uint64 { return c.tuple }

// Old returns the multiplicity of the fact at Begin.
func (c *Changes) Old() int64 { return c.old }

// New returns the multiplicity of the fact now, never equal to Old.
func (c *Changes) New() int64 { return c.new }

// Crossings walks the net changes of the running epoch in all windows of a
// relation, fact by fact, which reads each fact once. It is used like Changes and
// valid as long.
type Crossings struct {
	r        *relation
	copies   *copies
	fact, w  int
	tuple    []uint64
	tail     []uint64
	old, new int64
}

// Crossings returns a cursor before the first change. Changes of one window come
// in the order in which the epoch first touched the facts.
func (s *Store) Crossings(rel uint32) Crossings { return s.crossings(s.rels[rel]) }

func (s *Store) crossings(r *relation) Crossings {
	c := Crossings{copies: &s.copies, fact: -1}
	if r != nil && r.frames != nil && len(r.frames.list) > 0 {
		c.r, c.w = r, len(r.frames.list)
	}
	return c
}

// Next steps to the next change and reports whether there is one.
func (c *Crossings) Next() bool {
	if c.r == nil {
		return false
	}
	for f := c.r.frames; ; {
		for c.w++; c.w < len(f.list); c.w++ {
			old, n := f.olds[c.fact*len(f.list)+c.w], f.in(c.copies, c.tail, c.r.touched[c.fact].rec, c.w)
			if n != old {
				c.old, c.new = old, n
				return true
			}
		}
		if c.fact++; c.fact >= len(c.r.touched) {
			c.r = nil
			return false
		}
		words, arity := c.r.facts.at(c.r.touched[c.fact].rec), c.r.arity
		c.tuple, c.tail, c.w = words[:arity:arity], words[arity:], -1
	}
}

// Window returns the number of the window.
func (c *Crossings) Window() int { return c.w }

// Tuple returns the fact, the store's own memory as in Changes.
func (c *Crossings) Tuple() []uint64 { return c.tuple }

// Old returns the multiplicity of the fact in the window as it was at Begin.
func (c *Crossings) Old() int64 { return c.old }

// New returns the multiplicity in the window as it is now, never equal to Old.
func (c *Crossings) New() int64 { return c.new }

// Touched returns the relations that the running epoch has touched, in order
// of first touch; their net changes may be none. The slice is valid until the
// next change of the store.
func (s *Store) Touched() []uint32 { return s.dirty }

// Facts walks the facts of one relation with their multiplicities, each once,
// in an order that depends on nothing but the operations on the store. It is
// used like Changes, allocates nothing, and is valid until the next change of
// the store.
type Facts struct {
	r         *relation
	copies    *copies
	view      view
	page, rec int
	tuple     []uint64
	n         int64
}

// Facts returns a cursor before the first fact of a relation.
func (s *Store) Facts(rel uint32) Facts {
	return Facts{r: s.rels[rel], copies: &s.copies}
}

// FactsIn returns a cursor before the first fact of window w of a relation, with
// the multiplicities in it. Between the events of an epoch and its Advance the
// window stands where it was.
func (s *Store) FactsIn(rel uint32, w int) Facts {
	return Facts{r: s.rels[rel], copies: &s.copies, view: view{inside, w}}
}

// FactsOutside is like FactsIn for what is not in window w.
func (s *Store) FactsOutside(rel uint32, w int) Facts {
	return Facts{r: s.rels[rel], copies: &s.copies, view: view{beyond, w}}
}

// Next steps to the next fact and reports whether there is one.
func (f *Facts) Next() bool {
	if f.r == nil {
		return false
	}
	facts, arity := &f.r.facts, f.r.arity
	for ; f.page < len(facts.pages); f.page, f.rec = f.page+1, 0 {
		page := facts.pages[f.page]
		if facts.info[f.page].used == 0 {
			continue
		}
		for end := int(facts.info[f.page].fresh); f.rec < end; {
			w := page[f.rec*facts.width : (f.rec+1)*facts.width]
			f.rec++
			n := f.copies.count(w[arity+2])
			if n != 0 && f.view.part != all {
				rec := uint32(f.page<<facts.shift | (f.rec - 1))
				n = f.view.of(n, f.r.frames.in(f.copies, w[arity:], rec, f.view.w))
			}
			if n != 0 {
				f.tuple, f.n = w[:arity:arity], n
				return true
			}
		}
	}
	return false
}

// Tuple returns the fact, the store's own memory as in Changes.
func (f *Facts) Tuple() []uint64 { return f.tuple }

// Count returns the multiplicity of the fact, at least 1.
func (f *Facts) Count() int64 { return f.n }

// Contribution is one live insertion.
type Contribution struct {
	Tuple []uint64 // the store's own memory: valid until its next change
	Time  int64    // event time, nanoseconds
	Seq   uint64   // its number in the order of all insertions
	Value uint64   // 0 = none
	ID    string   // "" = none
}

// Scan lists the contributions of a relation in canonical order: by tuple, then
// by time, then in the order in which they were appended. The store must not
// change meanwhile. The cost is that of sorting the facts, and 4 bytes for each.
func (s *Store) Scan(rel uint32) iter.Seq[Contribution] {
	return func(yield func(Contribution) bool) {
		r := s.rels[rel]
		for _, rec := range r.sorted(&s.copies) {
			w := r.facts.at(rec)
			c := Contribution{Tuple: w[:r.arity:r.arity]}
			more := s.copies.each(w[r.arity:], func(e entry) bool {
				c.Time, c.Seq, c.Value, c.ID = e.time, e.seq>>1, e.value, ""
				if e.seq&1 != 0 {
					c.ID = s.named[name{uint64(rel), e.seq}].id
				}
				return yield(c)
			})
			if !more {
				return
			}
		}
	}
}

// sorted returns the records of the facts in the order of their tuples.
func (r *relation) sorted(c *copies) []uint32 {
	recs := make([]uint32, 0, r.live)
	for _, slot := range r.slots {
		rec := uint32(slot) - 1
		if slot != 0 && c.count(r.facts.at(rec)[r.arity+2]) != 0 {
			recs = append(recs, rec)
		}
	}
	slices.SortFunc(recs, func(a, b uint32) int {
		x, y := r.facts.at(a)[:r.arity], r.facts.at(b)[:r.arity]
		for i := range x {
			if x[i] != y[i] {
				return cmp.Compare(x[i], y[i])
			}
		}
		return 0
	})
	return recs
}
