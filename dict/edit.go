package dict

import "slices"

// An edit is a state under construction that replaces the published one. What
// it shares with that one it copies before it writes to it.
type edit struct {
	d    *Dict
	st   state
	era  map[uint64]bool // eras whose list of chunks is the edit's own
	own  map[uint64]bool // the same for chunks
	page map[uint64]bool // and for pages, dense or sparse
}

func (d *Dict) edit() *edit {
	ed := &edit{d: d, st: *d.state.Load(), era: map[uint64]bool{}, own: map[uint64]bool{}, page: map[uint64]bool{}}
	ed.st.old = slices.Clone(ed.st.old)
	ed.st.slabs = slices.Clone(ed.st.slabs)
	return ed
}

// publish makes the edit the state, after dropping what has become empty.
func (ed *edit) publish() {
	st := new(state)
	*st = ed.st // not the rest of the edit
	for i := range st.old {
		st.old[i].trim()
	}
	st.top.trim()
	st.old = slices.DeleteFunc(st.old, func(e era) bool { return len(e.chunks) == 0 })
	if n := len(st.old); len(st.top.chunks) == 0 && n > 0 {
		st.top, st.old = st.old[n-1], st.old[:n-1]
	}
	if len(st.old) == 0 {
		st.old = nil
	}
	if st.flatten(); ed.d.loading {
		st.flat = nil
	}
	ed.d.pages.Store(st.bytes() + int64(len(ed.d.renewed))*renewalBytes)
	ed.d.state.Store(st)
	ed.d.tail = tail{}
}

// trim drops chunks without pages from both ends.
func (e *era) trim() {
	n := len(e.chunks)
	for n > 0 && e.chunks[n-1].empty() {
		n--
	}
	i := 0
	for i < n && e.chunks[i].empty() {
		i++
	}
	e.first += uint64(i)
	if e.chunks = e.chunks[i:n:n]; n == i {
		e.chunks = nil
	}
}

func (c *chunk) empty() bool { return c.dense == nil && c.sparse == nil }

// bytes is the memory of the directory and its pages.
func (st *state) bytes() (n int64) {
	for i := range st.old {
		n += st.old[i].bytes()
	}
	return n + st.top.bytes() + int64(len(st.flat))*8
}

func (e *era) bytes() (n int64) {
	for i := range e.chunks {
		n += chunkBytes
		if c := e.chunks[i].dense; c != nil {
			n += denseBytes
			for _, p := range c.pages {
				if p != nil {
					n += pageBytes
				}
			}
		}
		if c := e.chunks[i].sparse; c != nil {
			n += sparseBytes
			for _, p := range c.pages {
				n += sparseBytes + int64(cap(p.entries))*entryBytes
			}
		}
	}
	return n
}

// Memory of the parts of a directory.
const (
	chunkBytes   = 16
	denseBytes   = chunkPages * 16
	noteBytes    = 256
	pageBytes    = pageTerms*entryBytes + noteBytes
	renewalBytes = 16
	sparseBytes  = 224 // a set with ranks, the head of a list, and the pointer to both
)

// chunk returns a chunk of the edit's own, nil if there is none.
func (ed *edit) chunk(number uint64) *chunk {
	e := ed.st.era(number >> (eraShift - chunkShift))
	if e == nil {
		return nil
	}
	if !ed.era[e.number] {
		ed.era[e.number] = true
		e.chunks = slices.Clone(e.chunks)
	}
	c := ed.st.chunk(number)
	if c == nil || ed.own[number] {
		return c
	}
	ed.own[number] = true
	if c.dense != nil {
		dense := *c.dense
		c.dense = &dense
	}
	if c.sparse != nil {
		sparse := *c.sparse
		sparse.pages = slices.Clone(sparse.pages)
		c.sparse = &sparse
	}
	return c
}

// entry returns the entry of a held id, for writing.
func (ed *edit) entry(id uint64) *entry {
	c := ed.chunk(id >> chunkShift)
	number, page := id>>pageShift, uint(id>>pageShift%chunkPages)
	own := ed.page[number]
	ed.page[number] = true
	if c.dense != nil && c.dense.pages[page] != nil {
		if !own {
			p := *c.dense.pages[page]
			c.dense.pages[page] = &p
		}
		return c.dense.pages[page].at(id % pageTerms)
	}
	at, _ := c.sparse.rank(page)
	if !own {
		p := *c.sparse.pages[at]
		p.entries = slices.Clone(p.entries)
		c.sparse.pages[at] = &p
	}
	i, _ := c.sparse.pages[at].rank(uint(id % pageTerms))
	return &c.sparse.pages[at].entries[i]
}

// setSparse replaces a sparse page of the edit's own chunk; nil takes it out.
func (c *chunk) setSparse(page uint, p *sparsePage) {
	s := c.sparse
	if s == nil {
		if p == nil {
			return
		}
		s = &sparseChunk{}
		c.sparse = s
	}
	i, was := s.rank(page)
	switch {
	case p != nil && was:
		s.pages[i] = p
		return
	case p != nil:
		s.bits.set(page)
		s.pages = slices.Insert(s.pages, i, p)
	case was:
		s.bits.unset(page)
		s.pages = slices.Delete(s.pages, i, i+1)
	}
	if s.ranked = newRanked(s.bits); len(s.pages) == 0 {
		c.sparse = nil
	}
}

// thinned returns the sparse form of a page of which some entries are held.
func thinned(p *entryPage, held bitset) *sparsePage {
	s := &sparsePage{ranked: newRanked(held), entries: make([]entry, 0, held.count())}
	for i := range held.all() {
		s.entries = append(s.entries, *p.at(uint64(i)))
	}
	return s
}

// thick returns the dense form of a sparse page, with its marks.
func thick(s *sparsePage) (*entryPage, *note) {
	p, n, k := new(entryPage), &note{held: s.bits}, 0
	for i := range s.bits.all() {
		*p.at(uint64(i)) = s.entries[k]
		if s.marked(k) {
			n.marks.set(i)
		}
		k++
	}
	return p, n
}

func (s *sparsePage) marked(k int) bool { return s.marks[k/64]>>(k%64)&1 != 0 }

// tail is the page that takes the next ids.
type tail struct {
	number uint64
	page   *entryPage
	note   *note
}

// add returns the entry of a new id for writing.
func (d *Dict) add(id uint64) *entry {
	t := &d.tail
	if t.page == nil || t.number != id>>pageShift {
		d.openPage(id >> pageShift)
	}
	i := uint(id % pageTerms)
	t.note.held.set(i)
	t.note.marks.set(i)
	return t.page.at(uint64(i))
}

// openPage makes a page the tail.
func (d *Dict) openPage(number uint64) {
	if d.loading {
		d.seal()
	}
	c := d.state.Load().chunk(number >> (chunkShift - pageShift))
	if c == nil {
		c = d.addChunk(number >> (chunkShift - pageShift))
	}
	page := uint(number % chunkPages)
	switch {
	case c.dense != nil && c.dense.pages[page] != nil:
	case c.dense == nil || number<<pageShift <= d.n.Load():
		// Readers may look at this chunk here.
		ed := d.edit()
		c = ed.chunk(number >> (chunkShift - pageShift))
		if c.dense == nil {
			c.dense = new(denseChunk)
		}
		if s := c.sparse.page(page); s != nil {
			c.dense.pages[page], c.dense.notes[page] = thick(s)
			c.setSparse(page, nil)
		} else {
			c.dense.pages[page], c.dense.notes[page] = d.newPage(), new(note)
		}
		ed.publish()
	default:
		c.dense.pages[page], c.dense.notes[page] = d.newPage(), new(note)
		d.pages.Add(pageBytes)
		d.extendFlat(number, c.dense.pages[page])
	}
	d.tail = tail{number, c.dense.pages[page], c.dense.notes[page]}
}

// spareChunk takes the dense part of a chunk for the next one if nothing is left
// in it. No reader is there yet.
func (d *Dict) spareChunk(c *chunk) {
	if c.dense == nil || c.dense.pages != (denseChunk{}).pages {
		return
	}
	d.spare.chunk, c.dense = c.dense, nil
	d.pages.Add(-denseBytes)
}

// extendFlat adds the page of the next ids to the list of near.
func (d *Dict) extendFlat(number uint64, p *entryPage) {
	if d.loading {
		return // all terms are soon there, and then the list is made in one go
	}
	st := *d.state.Load()
	before := len(st.flat)
	if number == st.flatAt+uint64(before) {
		st.flat = append(st.flat, p)
	} else {
		st.flatten()
	}
	d.pages.Add(int64(len(st.flat)-before) * 8)
	d.state.Store(&st)
}

// newPage returns an empty page.
func (d *Dict) newPage() *entryPage {
	if p := d.spare.page; p != nil {
		d.spare.page = nil
		return p
	}
	return new(entryPage)
}

// addChunk appends a chunk to the directory, of ids that no reader looks at.
func (d *Dict) addChunk(number uint64) *chunk {
	st := *d.state.Load()
	if era := number >> (eraShift - chunkShift); st.top.number != era || len(st.top.chunks) == 0 {
		if len(st.top.chunks) > 0 {
			st.old = append(slices.Clip(st.old), st.top)
		}
		st.top.number, st.top.first, st.top.chunks = era, number, nil
	}
	before := len(st.top.chunks)
	if d.loading && before > 0 {
		d.spareChunk(&st.top.chunks[before-1])
	}
	for uint64(before) > 0 && st.top.first+uint64(len(st.top.chunks)) < number {
		st.top.chunks = append(st.top.chunks, chunk{})
	}
	dense := d.spare.chunk
	if d.spare.chunk = nil; dense == nil {
		dense = new(denseChunk)
	}
	st.top.chunks = append(st.top.chunks, chunk{dense: dense})
	d.pages.Add(denseBytes + int64(len(st.top.chunks)-before)*chunkBytes)
	d.state.Store(&st)
	return &d.state.Load().top.chunks[len(st.top.chunks)-1]
}
