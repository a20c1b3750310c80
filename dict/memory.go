package dict

import (
	"encoding/binary"
	"sync/atomic"
)

// An entry is 32 bytes, half a cache line: the stored form of the term, then its
// two content hashes, as little-endian words. A form of up to 15 bytes stands in
// the entry itself behind a byte with its length, padded with zeros. For a longer
// one the entry holds the mark 0xff and the length in its first word, and the
// slab and the offset of the bytes in the second. Most terms are short, and cost
// no second look into memory this way.
const (
	entryBytes = 32
	pageShift  = 10
	pageTerms  = 1 << pageShift // 32 KiB a page
	pageBytes  = pageTerms*entryBytes + 8
	shortMax   = 15
	longMark   = 0xff
)

type (
	entryPage [pageTerms * entryBytes]byte
	entry     [entryBytes]byte
)

// word returns one of the four words of an entry.
func (e *entry) word(i int) uint64 { return binary.LittleEndian.Uint64(e[8*i:]) }

func (e *entry) set(i int, w uint64) { binary.LittleEndian.PutUint64(e[8*i:], w) }

// short returns the form in the entry itself; ok is false if it is a long one.
func (e *entry) short() (form []byte, ok bool) {
	if n := e[0]; n <= shortMax {
		return e[1 : 1+n : 1+n], true
	}
	return nil, false
}

// longWord is the first word of the entry of a long form.
func longWord(n int) uint64 { return uint64(n)<<8 | longMark }

// directory is a list that the writer appends to while readers read its older
// elements. An element is written before the length that includes it is
// published, and never after.
type directory[T any] struct{ list atomic.Pointer[[]T] }

func (d *directory[T]) load() []T {
	if p := d.list.Load(); p != nil {
		return *p
	}
	return nil
}

func (d *directory[T]) append(x T) {
	list := append(d.load(), x)
	d.list.Store(&list)
}

// cut forgets the elements from n on, of which no reader knows.
func (d *directory[T]) cut(n int) {
	list := d.load()
	if n >= len(list) {
		return
	}
	clear(list[n:])
	list = list[:n]
	d.list.Store(&list)
}

// entries holds the entry of each id, in pages.
type entries struct {
	pages directory[*entryPage]
	bytes atomic.Int64
}

func (es *entries) at(id uint64) *entry {
	i := id - 1
	p := es.pages.load()[i>>pageShift]
	return (*entry)(p[i%pageTerms*entryBytes:])
}

// add returns the entry of the id after the last one.
func (es *entries) add(id uint64) *entry {
	if (id-1)>>pageShift == uint64(len(es.pages.load())) {
		es.pages.append(new(entryPage))
		es.bytes.Add(pageBytes)
	}
	return es.at(id)
}

// truncate gives the pages back that only ids above n have used.
func (es *entries) truncate(n uint64) {
	keep := int((n + pageTerms - 1) >> pageShift)
	if gone := len(es.pages.load()) - keep; gone > 0 {
		es.pages.cut(keep)
		es.bytes.Add(-int64(gone) * pageBytes)
	}
}

// Slabs double in size from slabMin to slabMax. A form of more than slabMax/4
// has a slab of its own, so that little room is left over at the end of others.
const (
	slabMin = 4 << 10
	slabMax = 1 << 20
	ownSlab = slabMax / 4
)

// slabs holds the bytes of long forms. A form lies in one slab as a whole and
// stays where it is.
type slabs struct {
	list  directory[[]byte]
	bytes atomic.Int64

	// The rest is the writer's.
	fill []int // bytes in use, for each slab
	open []int // slabs of more than one form, in their order: the last one is filled
}

// form returns the bytes of a long form.
func (s *slabs) form(e *entry) []byte {
	where, n := e.word(1), e.word(0)>>8
	off := where & (1<<32 - 1)
	return s.list.load()[where>>32][off : off+n : off+n]
}

// add copies a form into a slab and says where it is.
func (s *slabs) add(form []byte) (where uint64) {
	if len(form) > ownSlab {
		return s.write(s.make(len(form)), form)
	}
	if n := len(s.open); n > 0 {
		last := s.open[n-1]
		if s.fill[last]+len(form) <= len(s.list.load()[last]) {
			return s.write(last, form)
		}
	}
	size := slabMin
	if n := len(s.open); n > 0 {
		size = min(2*len(s.list.load()[s.open[n-1]]), slabMax)
	}
	for size < len(form) {
		size *= 2
	}
	i := s.make(size)
	s.open = append(s.open, i)
	return s.write(i, form)
}

// make appends a slab.
func (s *slabs) make(size int) (i int) {
	s.list.append(make([]byte, size))
	s.fill = append(s.fill, 0)
	s.bytes.Add(int64(size))
	return len(s.fill) - 1
}

func (s *slabs) write(i int, form []byte) (where uint64) {
	off := s.fill[i]
	copy(s.list.load()[i][off:], form)
	s.fill[i] = off + len(form)
	return uint64(i)<<32 | uint64(off)
}

// drop takes the form back that was added last, and its slab with it if that
// has become empty.
func (s *slabs) drop(where uint64) {
	i, off := int(where>>32), int(where&(1<<32-1))
	s.fill[i] = off
	if off > 0 {
		return
	}
	s.bytes.Add(-int64(len(s.list.load()[i])))
	s.list.cut(i)
	s.fill = s.fill[:i]
	if k := len(s.open); k > 0 && s.open[k-1] == i {
		s.open = s.open[:k-1]
	}
}
