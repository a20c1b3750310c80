package dict

import "slices"

// The directory leads from an id to its entry by the bits of the id:
//
//	era (32 bits) | chunk in the era (12) | page in the chunk (10) | entry (10)
//
// Ids only grow and old ones die, so a directory holds the end of the ids
// densely and what is left of the rest sparsely: chunks without pages, and eras
// without chunks, do not exist.
const (
	eraShift   = 32
	chunkShift = 20
	pageShift  = 10
	pageTerms  = 1 << pageShift
	chunkPages = 1 << (chunkShift - pageShift)
)

// state is everything that a lookup reads. A reader loads it once for each
// call, so what it sees fits together, whatever is swept meanwhile: what is
// taken out of a state is never written to again.
//
// The writer may write in place what belongs to ids above its last one only,
// since no reader looks at these; anything else it replaces by a copy.
type state struct {
	slots   []uint64     // the table
	renewed bool         // a newer id may stand for the term of an older one
	top     era          // the last era with pages
	old     []era        // those before it, ascending
	flat    []*entryPage // the dense pages at the end once more, nil where there is none
	flatAt  uint64       // the number of flat[0]
	slabs   [][]byte
	through uint64 // long forms up to this id are not in slabs
	store   *store // but here
}

// era is the part of the directory with one value of the upper 32 bits.
type era struct {
	number uint64
	first  uint64 // the number of chunks[0], counted from id 0
	chunks []chunk
}

// chunk is the part with one value of the upper 44 bits: pages with all their
// entries, and pages with few.
type chunk struct {
	dense  *denseChunk
	sparse *sparseChunk
}

type denseChunk struct {
	pages [chunkPages]*entryPage
	notes [chunkPages]*note // the writer's
}

// note is what the writer knows of a dense page.
type note struct{ held, marks bitset }

type sparseChunk struct {
	ranked
	pages []*sparsePage
}

// sparsePage is a page of which few ids are held.
type sparsePage struct {
	ranked
	entries []entry
	marks   [sparseMax / 64]uint64 // by rank; the writer's
}

// sparseMax is the number of ids held up to which a page is made sparse.
const sparseMax = pageTerms / 8

// at returns the entry of an id, nil if there is none. An entry of zeros belongs
// to no term.
func (st *state) at(id uint64) *entry {
	if e := st.near(id); e != nil {
		return e
	}
	return st.seldom(id)
}

// near is at for the ids in dense pages at the end, which are nearly all; it is
// nil for others. It is small enough to be compiled into its callers, and has a
// list of its own since a step less in the directory is a tenth of a Hash.
func (st *state) near(id uint64) (e *entry) {
	if p := id>>pageShift - st.flatAt; p < uint64(len(st.flat)) {
		if page := st.flat[p]; page != nil {
			e = page.at(id % pageTerms)
		}
	}
	return e
}

// flatten makes the list of near, of as many chunks at the end as have dense
// pages for a quarter of it.
func (st *state) flatten() {
	st.flat, st.flatAt = nil, 0
	chunks, dense, first := st.top.chunks, 0, len(st.top.chunks)
	for i := len(chunks) - 1; i >= 0; i-- {
		if chunks[i].dense != nil {
			dense += chunks[i].dense.count()
		}
		if span := (len(chunks) - i) * chunkPages; span <= 4*dense+chunkPages {
			first = i
		}
	}
	st.flatAt = (st.top.first + uint64(first)) << (chunkShift - pageShift)
	for _, c := range chunks[first:] {
		for page := range chunkPages {
			var p *entryPage
			if c.dense != nil {
				p = c.dense.pages[page]
			}
			if p != nil || len(st.flat) > 0 {
				st.flat = append(st.flat, p)
			} else {
				st.flatAt++
			}
		}
	}
	for n := len(st.flat); n > 0 && st.flat[n-1] == nil; n-- {
		st.flat = st.flat[:n-1]
	}
}

// count is the number of dense pages.
func (c *denseChunk) count() (n int) {
	for _, p := range c.pages {
		if p != nil {
			n++
		}
	}
	return n
}

// seldom is at for all ids.
func (st *state) seldom(id uint64) *entry {
	c := st.chunk(id >> chunkShift)
	if c == nil {
		return nil
	}
	page := uint(id >> pageShift % chunkPages)
	if c.dense != nil {
		if p := c.dense.pages[page]; p != nil {
			return (*entry)(p[id%pageTerms*entryBytes:])
		}
	}
	if p := c.sparse.page(page); p != nil {
		if i, ok := p.rank(uint(id % pageTerms)); ok {
			return &p.entries[i]
		}
	}
	return nil
}

// page returns a sparse page, nil if there is none.
func (s *sparseChunk) page(page uint) *sparsePage {
	if s == nil {
		return nil
	}
	if i, ok := s.rank(page); ok {
		return s.pages[i]
	}
	return nil
}

// chunk returns the chunk of a number, nil if there is none.
func (st *state) chunk(number uint64) *chunk {
	e := st.era(number >> (eraShift - chunkShift))
	if e == nil {
		return nil
	}
	if i := number - e.first; i < uint64(len(e.chunks)) {
		return &e.chunks[i]
	}
	return nil
}

// era returns the era of a number, nil if there is none.
func (st *state) era(number uint64) *era {
	if number == st.top.number {
		return &st.top
	}
	i, ok := slices.BinarySearchFunc(st.old, number, func(e era, n uint64) int {
		switch {
		case e.number < n:
			return -1
		case e.number > n:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &st.old[i]
}

// holds reports whether a term has the id. It is for the writer: unlike a look
// at the entry it reads one bit among those of a whole page.
func (st *state) holds(id uint64) bool {
	c := st.chunk(id >> chunkShift)
	if c == nil {
		return false
	}
	page, i := uint(id>>pageShift%chunkPages), uint(id%pageTerms)
	if c.dense != nil {
		if n := c.dense.notes[page]; n != nil {
			return n.held.has(i)
		}
	}
	p := c.sparse.page(page)
	return p != nil && p.bits.has(i)
}

// eras calls f for every era, the last one first, until it returns false.
func (st *state) eras(f func(number uint64) bool) {
	if !f(st.top.number) {
		return
	}
	for i := len(st.old) - 1; i >= 0; i-- {
		if !f(st.old[i].number) {
			return
		}
	}
}

// walk calls f for every id from one to another that a term has, ascending,
// until it returns false. It reads the entries up to the last id and nothing of
// the writer's.
func (st *state) walk(from, to uint64, f func(id uint64, e *entry) bool) {
	for i := range len(st.old) + 1 {
		e := &st.top
		if i < len(st.old) {
			e = &st.old[i]
		}
		for j := range e.chunks {
			number := e.first + uint64(j)
			if number < from>>chunkShift || number > to>>chunkShift {
				continue
			}
			if !e.chunks[j].walk(number<<chunkShift, from, to, f) {
				return
			}
		}
	}
}

func (c *chunk) walk(base, from, to uint64, f func(uint64, *entry) bool) bool {
	first, last := uint64(0), uint64(chunkPages-1)
	if from > base {
		first = (from - base) >> pageShift
	}
	if to-base < 1<<chunkShift {
		last = (to - base) >> pageShift
	}
	for page := first; page <= last; page++ {
		at := base + page<<pageShift
		if c.dense != nil {
			if p := c.dense.pages[page]; p != nil {
				if !p.walk(at, from, to, f) {
					return false
				}
				continue
			}
		}
		if p := c.sparse.page(uint(page)); p != nil && !p.walk(at, from, to, f) {
			return false
		}
	}
	return true
}

func (p *entryPage) walk(base, from, to uint64, f func(uint64, *entry) bool) bool {
	i, end := uint64(0), uint64(pageTerms)
	if from > base {
		i = from - base
	}
	if to-base < pageTerms {
		end = to - base + 1
	}
	for ; i < end; i++ {
		if e := p.at(i); e.held() && !f(base+i, e) {
			return false
		}
	}
	return true
}

func (p *sparsePage) walk(base, from, to uint64, f func(uint64, *entry) bool) bool {
	k := 0
	for i := range p.bits.all() {
		id := base + uint64(i)
		if id >= from && id <= to && !f(id, &p.entries[k]) {
			return false
		}
		k++
	}
	return true
}
