package window

import "iter"

// pageWordsMax bounds the size of a page of a slab, 64 KiB: large enough that
// the directory of pages stays in the cache, small enough that pages become
// wholly free and go back to the runtime.
const pageWordsMax = 8192

// firstRecords is the size of the first page of a slab, in records. It doubles
// until it is a full page, so that a store of many small relations stays small.
const firstRecords = 8

// slab holds records of a fixed number of words, named by dense numbers that
// stay the same while a record lives. Freed records are reused last in, first
// out, since what was touched last is in the cache.
type slab struct {
	width int  // words of a record
	shift uint // records of a page, as a power of two
	pages [][]uint64
	info  []pageInfo
	avail int32   // first page of the list of pages with room, -1 = none
	spare []int32 // pages with memory and no record, not in the list
	holes []int32 // pages without memory
	live  int     // records handed out
	words int     // words of memory in all pages
}

// pageInfo is kept apart from the pages: reading a record does not need it.
type pageInfo struct {
	used       int32 // records handed out
	fresh      int32 // records from here on were never handed out
	free       int32 // first freed record + 1; the next one is in its first word
	next, prev int32 // neighbours in the list of pages with room, -1 = none
}

func newSlab(width int) slab {
	s := slab{width: width, avail: -1}
	for width<<(s.shift+1) <= pageWordsMax {
		s.shift++
	}
	return s
}

// at returns the words of a record.
func (s *slab) at(rec uint32) []uint64 {
	p := s.pages[rec>>s.shift]
	off := int(rec&(1<<s.shift-1)) * s.width
	return p[off : off+s.width : off+s.width]
}

// all walks the records that were handed out, and free ones among them that have
// been used before.
func (s *slab) all() iter.Seq2[uint32, []uint64] {
	return func(yield func(uint32, []uint64) bool) {
		for p, page := range s.pages {
			if s.info[p].used == 0 {
				continue
			}
			for i := range uint32(s.info[p].fresh) {
				w := page[int(i)*s.width : int(i+1)*s.width]
				if !yield(uint32(p)<<s.shift|i, w) {
					return
				}
			}
		}
	}
}

// alloc hands out a record. Its words hold anything if it was used before.
func (s *slab) alloc() uint32 {
	if s.avail < 0 {
		s.addPage()
	}
	p := s.avail
	in := &s.info[p]
	var slot int32
	if in.free != 0 {
		slot = in.free - 1
		in.free = int32(s.pages[p][int(slot)*s.width])
	} else {
		slot = in.fresh
		in.fresh++
		if int(in.fresh)*s.width > len(s.pages[p]) {
			s.growPage(p)
		}
	}
	in.used++
	s.live++
	if in.free == 0 && in.fresh == 1<<s.shift {
		s.unlink(p)
	}
	return uint32(p)<<s.shift | uint32(slot)
}

// release takes a record back. Only its first word changes.
func (s *slab) release(rec uint32) {
	p, slot := int32(rec>>s.shift), int32(rec&(1<<s.shift-1))
	in := &s.info[p]
	full := in.free == 0 && in.fresh == 1<<s.shift
	s.pages[p][int(slot)*s.width] = uint64(in.free)
	in.free = slot + 1
	in.used--
	s.live--
	switch {
	case in.used == 0:
		if !full {
			s.unlink(p)
		}
		in.free, in.fresh = 0, 0
		s.spare = append(s.spare, p)
	case full:
		s.link(p)
	}
}

// trim gives pages without records back to the runtime, except for an eighth
// of what is in use: a stream that deletes and inserts must not turn over pages.
func (s *slab) trim() {
	if len(s.spare) == 0 {
		return
	}
	if s.live == 0 {
		s.reset()
		return
	}
	keep := 1 + (len(s.pages)-len(s.holes)-len(s.spare))/8
	for len(s.spare) > keep {
		p := s.spare[len(s.spare)-1]
		s.spare = s.spare[:len(s.spare)-1]
		s.words -= len(s.pages[p])
		s.pages[p] = nil
		s.holes = append(s.holes, p)
	}
}

// reset forgets all pages of a slab without records, except for a single one
// that is still small.
func (s *slab) reset() {
	if len(s.pages) == 1 && len(s.pages[0]) <= firstRecords*s.width {
		return
	}
	*s = newSlab(s.width)
}

// addPage puts a page with room into the list.
func (s *slab) addPage() {
	var p int32
	if n := len(s.spare); n > 0 {
		p = s.spare[n-1]
		s.spare = s.spare[:n-1]
		s.link(p)
		return
	}
	records := 1 << s.shift
	if len(s.pages) == 0 {
		records = min(records, firstRecords)
	}
	page := make([]uint64, records*s.width)
	s.words += len(page)
	if n := len(s.holes); n > 0 {
		p = s.holes[n-1]
		s.holes = s.holes[:n-1]
		s.pages[p], s.info[p] = page, pageInfo{}
	} else {
		p = int32(len(s.pages))
		s.pages = append(s.pages, page)
		s.info = append(s.info, pageInfo{})
	}
	s.link(p)
}

// growPage doubles a page that is not of full size yet.
func (s *slab) growPage(p int32) {
	old := s.pages[p]
	page := make([]uint64, min(2*len(old), s.width<<s.shift))
	copy(page, old)
	s.words += len(page) - len(old)
	s.pages[p] = page
}

func (s *slab) link(p int32) {
	in := &s.info[p]
	in.prev, in.next = -1, s.avail
	if s.avail >= 0 {
		s.info[s.avail].prev = p
	}
	s.avail = p
}

func (s *slab) unlink(p int32) {
	in := &s.info[p]
	if in.prev >= 0 {
		s.info[in.prev].next = in.next
	} else {
		s.avail = in.next
	}
	if in.next >= 0 {
		s.info[in.next].prev = in.prev
	}
}

// bytes is the memory that the slab holds.
func (s *slab) bytes() int64 {
	return int64(s.words)*8 + int64(cap(s.pages))*24 + int64(cap(s.info))*20 + int64(cap(s.spare)+cap(s.holes))*4
}
