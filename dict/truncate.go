package dict

// Truncate takes the ids above n back, which the writer has interned for a
// batch that was refused in the end: no reader's limit has reached them, and
// nobody keeps one. The next new term gets id n + 1 again, and a term that
// InternNew has given another id has its older one again, if that is held.
func (d *Dict) Truncate(n uint64) {
	d.endLoading()
	last, st := d.n.Load(), d.state.Load()
	if last <= n {
		return
	}
	held := uint64(0)
	if plain := n >= d.built && n >= st.through; plain {
		held = last - n
		for id := last; id > n; id-- {
			d.takeBack(st, id)
		}
		d.cut(n, last)
	} else {
		st.walk(n+1, last, func(id uint64, e *entry) bool {
			d.dropNew(id, e)
			held++
			return true
		})
		eras := st.old != nil
		d.cut(n, last)
		d.rebuild(n, eras)
	}
	d.gone.Store(d.gone.Load() - (last - n - held))
	d.n.Store(n)
	if st = d.state.Load(); st.renewed && len(d.renewed) == 0 {
		next := *st
		next.renewed = false
		d.state.Store(&next)
	}
}

// takeBack takes the last id out of the table and the slabs, both of which are
// as they were when it came.
func (d *Dict) takeBack(st *state, id uint64) {
	e := st.at(id)
	form, _ := d.formOf(d.state.Load(), id, e)
	older := d.unrenew(id)
	buf := &d.scratch[0].buf
	clear(buf[:16])
	k := d.key(append(buf[:1], form...))
	d.dropNew(id, e)
	if i, ok := smallInt(k.bytes); ok {
		d.ints.set(i, older)
	} else if older != 0 {
		replace(st.slots, slotOf(k.hash, id), slotOf(k.hash, older))
	} else {
		replace(st.slots, slotOf(k.hash, id), 0)
		d.used--
	}
}

// dropNew is drop of an id that no reader has looked at, so that a slab which is
// empty now may be let go at once.
func (d *Dict) dropNew(id uint64, e *entry) {
	st := d.state.Load()
	if i := d.drop(st, id, e); i >= 0 && d.slabs.empty(st, i) {
		next := *st
		d.slabs.release(&next, i)
		d.state.Store(&next)
	}
}

// unrenew takes back the last renewal if it is that of an id, and returns the
// older id.
func (d *Dict) unrenew(id uint64) (older uint64) {
	last := len(d.renewed) - 1
	if last < 0 || d.renewed[last].newer != id {
		return 0
	}
	older = d.renewed[last].older
	d.renewed = d.renewed[:last]
	d.pages.Add(-renewalBytes)
	return older
}

// rebuild makes the table again after ids above n have been taken back, where
// their terms cannot be looked up one by one. There may have been several eras.
func (d *Dict) rebuild(n uint64, eras bool) {
	st := *d.state.Load()
	older := map[uint64]uint64{}
	for last := len(d.renewed) - 1; last >= 0 && d.renewed[last].newer > n; last-- {
		r := d.renewed[last]
		d.unrenew(r.newer)
		older[r.newer] = r.older
		if r.older > n {
			continue
		}
		if form, ok := st.at(r.older).short(); ok {
			if i, ok := smallInt(form); ok {
				d.ints.set(i, r.older)
			}
		}
	}
	st.through = min(st.through, n)
	kept := filtered(st.slots, d.used, func(slot uint64) uint64 {
		if d.owned(&st, slot, eras) {
			return slot
		}
		return renewedSlot(older, slot, n)
	})
	st.slots, d.used, d.built = resized(kept, len(st.slots)), len(kept), n
	d.state.Store(&st)
}

// renewedSlot is the slot of the older id of a term whose newer one was taken
// back, 0 if there is none. The eras of the newer ids may be gone already.
func renewedSlot(older map[uint64]uint64, slot, n uint64) uint64 {
	for newer, id := range older {
		if newer&idMask != slot&idMask {
			continue
		}
		for older[id] != 0 {
			id = older[id]
		}
		if id <= n {
			return slotOf(uint32(slot>>hashShift), id)
		}
	}
	return 0
}

// cut takes the entries after n out of the directory. Readers have seen none of
// them, so that dense pages are cut where they are.
func (d *Dict) cut(n, last uint64) {
	d.cutFlat(n)
	st := d.state.Load()
	if n == 0 || n>>chunkShift != last>>chunkShift {
		ed := d.edit()
		ed.cutChunks(n)
		ed.publish()
		st = d.state.Load()
	}
	c := st.chunk(n >> chunkShift)
	if c == nil {
		d.tail = tail{}
		return
	}
	page, end := uint(n>>pageShift%chunkPages), uint(chunkPages)
	if n>>chunkShift == last>>chunkShift {
		end = uint(last>>pageShift%chunkPages) + 1
	}
	if c.dense != nil {
		d.cutDense(c.dense, page, end, uint(n%pageTerms)+1)
	}
	if c.sparse.from(page) {
		ed := d.edit()
		ed.chunk(n>>chunkShift).cutSparse(page, uint(n%pageTerms)+1)
		ed.publish()
	}
	d.tail = tail{}
}

// cutFlat takes the pages after that of an id out of the list of near.
func (d *Dict) cutFlat(n uint64) {
	st := d.state.Load()
	keep := n>>pageShift + 1 - min(st.flatAt, n>>pageShift+1)
	if cut := len(st.flat) - int(keep); cut > 0 {
		next := *st
		next.flat = st.flat[:keep]
		d.pages.Add(-int64(cut) * 8)
		d.state.Store(&next)
	}
}

// cutChunks drops all chunks after that of an id, which are the last ones.
func (ed *edit) cutChunks(n uint64) {
	st := &ed.st
	for st.top.number > n>>eraShift || n == 0 {
		if st.top.chunks = nil; len(st.old) == 0 {
			break
		}
		st.top, st.old = st.old[len(st.old)-1], st.old[:len(st.old)-1]
	}
	switch keep := n>>chunkShift + 1; {
	case st.top.number != n>>eraShift:
	case keep <= st.top.first:
		st.top.chunks = nil
	case keep-st.top.first < uint64(len(st.top.chunks)):
		st.top.chunks = st.top.chunks[:keep-st.top.first]
	}
}

// cutDense drops the entries of a page from i on, and the pages after it.
func (d *Dict) cutDense(c *denseChunk, page, end, i uint) {
	for p := page + 1; p < end; p++ {
		if c.pages[p] != nil {
			c.pages[p], c.notes[p] = nil, nil
			d.pages.Add(-pageBytes)
		}
	}
	if c.pages[page] == nil {
		return
	}
	for ; i < pageTerms; i++ {
		if c.notes[page].held.has(i) {
			*c.pages[page].at(uint64(i)) = entry{}
			c.notes[page].held.unset(i)
		}
	}
}

// from reports whether there is a sparse page from one on.
func (s *sparseChunk) from(page uint) bool {
	if s == nil {
		return false
	}
	for p := range s.bits.all() {
		if p >= page {
			return true
		}
	}
	return false
}

// cutSparse drops the entries of a page from i on, and the pages after it.
func (c *chunk) cutSparse(page, i uint) {
	for p := uint(chunkPages - 1); p > page; p-- {
		c.setSparse(p, nil)
	}
	s := c.sparse.page(page)
	if s == nil {
		return
	}
	keep := s.bits
	for ; i < pageTerms; i++ {
		keep.unset(i)
	}
	c.setSparse(page, s.kept(keep))
}
