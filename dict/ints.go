package dict

import "sync/atomic"

// smallInts maps the integers from 0 to intsMax-1 to ids by an array, in pages
// that are made when they are first used and vanish with their last id. Graphs
// whose nodes are numbers take this way, without a hash and a probe.
//
// A page has 4 bytes for each id until one does not fit, then 8.
type smallInts struct {
	narrow [intPages]atomic.Pointer[[intsPage]uint32]
	wide   [intPages]atomic.Pointer[[intsPage]uint64]
	used   [intPages]uint16 // ids of each page; the writer's
	bytes  atomic.Int64
}

const (
	intsMax   = 1 << 20
	intsPage  = 1 << intsShift
	intsShift = 10
	intPages  = intsMax / intsPage
)

// find returns the id of an integer, 0 if there is none.
func (s *smallInts) find(i uint64) uint64 {
	if p := s.narrow[i>>intsShift%intPages].Load(); p != nil {
		return uint64(atomic.LoadUint32(&p[i%intsPage]))
	}
	if p := s.wide[i>>intsShift%intPages].Load(); p != nil {
		return atomic.LoadUint64(&p[i%intsPage])
	}
	return 0
}

// set gives an integer an id, or none if that is 0.
func (s *smallInts) set(i, id uint64) {
	was, page := s.find(i), i>>intsShift
	used := &s.used[page]
	switch {
	case was == 0 && id == 0:
		return
	case was == 0:
		*used++
	case id == 0:
		*used--
	}
	s.open(page, id)
	if p := s.narrow[page].Load(); p != nil {
		atomic.StoreUint32(&p[i%intsPage], uint32(id))
	} else {
		atomic.StoreUint64(&s.wide[page].Load()[i%intsPage], id)
	}
	if *used == 0 {
		s.bytes.Add(-s.pageBytes(page))
		s.narrow[page].Store(nil)
		s.wide[page].Store(nil)
	}
}

// open makes sure that a page can hold an id. A page that becomes wide is there
// in both widths for a moment, so that no reader finds neither.
func (s *smallInts) open(page, id uint64) {
	narrow := s.narrow[page].Load()
	if s.wide[page].Load() != nil || narrow != nil && id>>32 == 0 {
		return
	}
	before := s.pageBytes(page)
	if id>>32 == 0 {
		s.narrow[page].Store(new([intsPage]uint32))
	} else {
		wide := new([intsPage]uint64)
		if narrow != nil {
			for i, x := range narrow {
				wide[i] = uint64(x)
			}
		}
		s.wide[page].Store(wide)
		s.narrow[page].Store(nil)
	}
	s.bytes.Add(s.pageBytes(page) - before)
}

// pageBytes is the memory of a page.
func (s *smallInts) pageBytes(page uint64) int64 {
	switch {
	case s.narrow[page].Load() != nil:
		return 4 * intsPage
	case s.wide[page].Load() != nil:
		return 8 * intsPage
	}
	return 0
}
