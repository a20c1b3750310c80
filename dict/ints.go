package dict

import "sync/atomic"

// smallInts maps the integers from 0 to intsMax-1 to ids by an array, in pages
// that are made when they are first used and vanish with their last id. Graphs
// whose nodes are numbers take this way, without a hash and a probe.
type smallInts struct {
	pages [intsMax / intsPage]atomic.Pointer[intPage]
	used  [intsMax / intsPage]uint16 // ids of each page; the writer's
	bytes atomic.Int64
}

type intPage [intsPage]uint64

const (
	intsMax   = 1 << 20
	intsPage  = 1 << 10
	intsShift = 10
)

// find returns the id of an integer, 0 if there is none.
func (s *smallInts) find(i uint64) uint64 {
	p := s.pages[i>>intsShift%uint64(len(s.pages))].Load()
	if p == nil {
		return 0
	}
	return atomic.LoadUint64(&p[i%intsPage])
}

// set gives an integer an id, or none if that is 0.
func (s *smallInts) set(i, id uint64) {
	page := &s.pages[i>>intsShift]
	p := page.Load()
	if p == nil {
		if id == 0 {
			return
		}
		p = new(intPage)
		page.Store(p)
		s.bytes.Add(8 * intsPage)
	}
	used := &s.used[i>>intsShift]
	switch was := p[i%intsPage]; {
	case was == 0 && id != 0:
		*used++
	case was != 0 && id == 0:
		*used--
	}
	atomic.StoreUint64(&p[i%intsPage], id)
	if *used == 0 {
		page.Store(nil)
		s.bytes.Add(-8 * intsPage)
	}
}
