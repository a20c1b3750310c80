package dict

import "math/bits"

// phase is how far the search for terms that nothing needs has come.
type phase uint8

const (
	idle phase = iota
	marking
	marked // what is unmarked is dead, unless it is marked yet
)

// StartMark begins to look for terms that nothing needs: all marks are taken
// away. From here to Sweep the ids that Intern, InternAll and InternNew return
// are marked; the caller marks all others that are needed. A search under way is
// abandoned. It costs a store to 128 bytes for each page.
func (d *Dict) StartMark() {
	d.endLoading()
	st := d.state.Load()
	for i := range st.old {
		st.old[i].unmark()
	}
	st.top.unmark()
	d.phase = marking
}

func (e *era) unmark() {
	for i := range e.chunks {
		if c := e.chunks[i].dense; c != nil {
			for _, n := range c.notes {
				if n != nil {
					n.marks = bitset{}
				}
			}
		}
		if c := e.chunks[i].sparse; c != nil {
			for _, p := range c.pages {
				p.marks = [len(p.marks)]uint64{}
			}
		}
	}
}

// Mark keeps the term of an id from being swept. Id 0, ids that are not held,
// and calls while no search is under way are ignored.
func (d *Dict) Mark(id uint64) {
	if d.phase != idle {
		d.mark(id)
	}
}

func (d *Dict) mark(id uint64) {
	c := d.state.Load().chunk(id >> chunkShift)
	if c == nil {
		return
	}
	page, i := uint(id>>pageShift%chunkPages), uint(id%pageTerms)
	if c.dense != nil {
		if n := c.dense.notes[page]; n != nil {
			n.marks.set(i)
			return
		}
	}
	if p := c.sparse.page(page); p != nil {
		if k, ok := p.rank(i); ok {
			p.marks[k/64%len(p.marks)] |= 1 << (k % 64)
		}
	}
}

// FinishMark fixes what is dead: the terms that are not marked. One of them that
// is marked until Sweep, by Intern or by Mark, lives on. It returns their number
// and does nothing without StartMark.
func (d *Dict) FinishMark() (dead int) {
	if d.phase != marking {
		return 0
	}
	d.phase = marked
	st := d.state.Load()
	for i := range st.old {
		dead += st.old[i].dead()
	}
	return dead + st.top.dead()
}

// AbandonMark ends a search, at any point before Sweep. Nothing is swept.
func (d *Dict) AbandonMark() { d.phase = idle }

func (e *era) dead() (n int) {
	for i := range e.chunks {
		n += e.chunks[i].dead()
	}
	return n
}

func (c *chunk) dead() (n int) {
	if c.dense != nil {
		for _, x := range c.dense.notes {
			if x != nil {
				for i, w := range x.held {
					n += bits.OnesCount64(w &^ x.marks[i])
				}
			}
		}
	}
	if c.sparse != nil {
		for _, p := range c.sparse.pages {
			n += len(p.entries)
			for _, w := range p.marks {
				n -= bits.OnesCount64(w)
			}
		}
	}
	return n
}

// Sweep frees the dead terms and gives their memory back: their ids stand for
// nothing from here on, and are not handed out again. It returns their number
// and does nothing without FinishMark.
//
// No reader may reach a dead id any more. Readers go on with other ids: they see
// the state before or the one after. The cost grows with the slots of the table
// and with the pages and slabs that have dead terms; where a sweep follows as
// many new terms as are held, it is a constant for each.
func (d *Dict) Sweep() (dead int) {
	if d.phase != marked {
		return 0
	}
	d.phase = idle
	ed := d.edit()
	for i := range len(ed.st.old) + 1 {
		number, first, n := ed.st.top.number, ed.st.top.first, len(ed.st.top.chunks)
		if i < len(ed.st.old) {
			number, first, n = ed.st.old[i].number, ed.st.old[i].first, len(ed.st.old[i].chunks)
		}
		for j := range uint64(n) {
			c := &ed.st.era(number).chunks[j]
			if k := c.dead(); k > 0 || d.hasThin(first+j, c) {
				dead += k
				ed.sweep(first+j, ed.chunk(first+j))
			}
		}
	}
	if dead == 0 {
		return 0
	}
	d.gone.Add(uint64(dead))
	ed.compact()
	ed.shrink()
	d.forgetRenewals(&ed.st)
	ed.publish()
	return dead
}

// shrink makes the table of an edit without the slots of ids that have gone. It
// keeps its size where more than a quarter is in use.
func (ed *edit) shrink() {
	kept := filtered(ed.st.slots, ed.d.used, ed.keep)
	n := len(ed.st.slots)
	if small := slotsFor(len(kept)); n > 2*small {
		n = small
	}
	ed.st.slots, ed.d.used, ed.d.built = resized(kept, n), len(kept), ed.d.n.Load()
}

// keep keeps a slot that stands for a held id.
func (ed *edit) keep(slot uint64) uint64 {
	if !ed.d.owned(&ed.st, slot, ed.st.old != nil) {
		return 0
	}
	return slot
}

// owned reports whether a slot can stand for a held id. Where it may be of one
// of several eras the hash decides, which is in the entry but for three bits of
// that of a long form. So a slot may be kept that nothing needs; it costs a
// comparison, and goes when the id that it was taken for has gone.
func (d *Dict) owned(st *state, slot uint64, eras bool) bool {
	if !eras {
		return st.holds(st.top.number<<eraShift | slot&idMask)
	}
	hash := uint32(slot >> hashShift)
	for number := range st.eras {
		id := number<<eraShift | slot&idMask
		if !st.holds(id) {
			continue
		}
		e := st.at(id)
		if e.long() && uint32(e.word(0)>>hashAt) == hash>>hashCut || !e.long() && d.shortHash(e.word(0), e.word(1)) == hash {
			return true
		}
	}
	return false
}

// forgetRenewals drops those whose older id has gone.
func (d *Dict) forgetRenewals(st *state) {
	kept := d.renewed[:0]
	for _, r := range d.renewed {
		if st.holds(r.older) {
			kept = append(kept, r)
		}
	}
	if d.renewed = kept; len(kept) == 0 {
		d.renewed = nil
	}
	st.renewed = len(kept) > 0
}

// sweep takes the dead terms out of a chunk of the edit's own.
func (ed *edit) sweep(number uint64, c *chunk) {
	d := ed.d
	left := 0
	for page := range uint(chunkPages) {
		at := number<<(chunkShift-pageShift) + uint64(page)
		if c.dense != nil && c.dense.pages[page] != nil {
			ed.sweepDense(at, c)
			if c.dense.pages[page] != nil {
				left++
			}
			continue
		}
		p := c.sparse.page(page)
		if p == nil {
			continue
		}
		var keep bitset
		k := 0
		for i := range p.bits.all() {
			if p.marked(k) {
				keep.set(i)
			} else {
				d.drop(&ed.st, at<<pageShift+uint64(i), &p.entries[k])
			}
			k++
		}
		if keep != p.bits {
			ed.page[at] = true
			c.setSparse(page, p.kept(keep))
		}
	}
	if left == 0 {
		c.dense = nil
	}
}

// kept returns a sparse page with some of its ids, nil if these are none.
func (p *sparsePage) kept(keep bitset) *sparsePage {
	n := keep.count()
	if n == 0 {
		return nil
	}
	s := &sparsePage{ranked: newRanked(keep), entries: make([]entry, 0, n)}
	k := 0
	for i := range p.bits.all() {
		if keep.has(i) {
			if p.marked(k) {
				s.marks[len(s.entries)/64] |= 1 << (len(s.entries) % 64)
			}
			s.entries = append(s.entries, p.entries[k])
		}
		k++
	}
	return s
}

// thin reports whether a dense page may become sparse: few of its ids are held,
// and it does not have the next id.
func (d *Dict) thin(number uint64, held *bitset) bool {
	return number != (d.n.Load()+1)>>pageShift && held.count() <= sparseMax
}

// hasThin reports whether some dense page of a chunk may become sparse. One that
// had the next id in the last sweep has no more deaths as a rule.
func (d *Dict) hasThin(number uint64, c *chunk) bool {
	if c.dense == nil {
		return false
	}
	for page, n := range c.dense.notes {
		if n != nil && d.thin(number<<(chunkShift-pageShift)+uint64(page), &n.held) {
			return true
		}
	}
	return false
}

// sweepDense takes the dead terms out of a dense page.
func (ed *edit) sweepDense(number uint64, c *chunk) {
	page := uint(number % chunkPages)
	old, n := c.dense.pages[page], c.dense.notes[page]
	dead := n.held.without(&n.marks)
	if dead == (bitset{}) && !ed.d.thin(number, &n.held) {
		return
	}
	for i := range dead.all() {
		ed.d.drop(&ed.st, number<<pageShift+uint64(i), old.at(uint64(i)))
	}
	live := n.held.without(&dead)
	ed.page[number] = true
	switch {
	case live == bitset{}:
		c.dense.pages[page], c.dense.notes[page] = nil, nil
	case ed.d.thin(number, &live):
		c.dense.pages[page], c.dense.notes[page] = nil, nil
		c.setSparse(page, thinned(old, live))
	default:
		p := new(entryPage)
		for i := range live.all() {
			*p.at(uint64(i)) = *old.at(uint64(i))
		}
		c.dense.pages[page], c.dense.notes[page] = p, &note{held: live, marks: n.marks}
	}
}

// drop gives back what a term has outside of its page. It returns the place of
// its slab, -1 if there is none; the slab stays even if it has become empty.
func (d *Dict) drop(st *state, id uint64, e *entry) (slab int) {
	if form, ok := e.short(); ok {
		if i, ok := smallInt(form); ok && d.ints.find(i) == id {
			d.ints.set(i, 0)
		}
	} else if id > st.through {
		return d.slabs.drop(e)
	}
	return -1
}
