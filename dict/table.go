package dict

import "sync/atomic"

// A slot of the table holds 32 bits of hash above the id; 0 is an empty slot.
// The home of a hash is hash * slots / 2^32, which is monotone in the hash: a
// table grows by half, in one stream, without looking at an entry.
const (
	hashShift = 32
	idMask    = 1<<hashShift - 1
	slotsMin  = 16
)

// table is open addressing with linear probing. Slots are stored to atomically,
// for readers probe while the writer inserts. An id that a reader may look for
// never moves within a table; a table that has become too small is replaced.
type table struct {
	slots []uint64
	// built is the last id when the table was made. Ids after it stand in the
	// order of their insertion, so that taking them out in reverse order leaves
	// no gap that a probe would stop at.
	built uint64
}

func home(hash uint32, slots int) int { return int(uint64(hash) * uint64(slots) >> 32) }

// put stores an id in the first empty slot from its home on.
func put(slots []uint64, hash uint32, id uint64) {
	i := home(hash, len(slots))
	for slots[i] != 0 {
		if i++; i == len(slots) {
			i = 0
		}
	}
	atomic.StoreUint64(&slots[i], uint64(hash)<<hashShift|id)
}

// remove empties the slot of the id that was put last.
func (t *table) remove(hash uint32, id uint64) {
	i := home(hash, len(t.slots))
	for t.slots[i] != uint64(hash)<<hashShift|id {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	atomic.StoreUint64(&t.slots[i], 0)
}

// resized returns a table of n slots with the ids up to last.
func (t *table) resized(n int, last uint64) *table {
	next := &table{slots: make([]uint64, n), built: last}
	for _, slot := range t.slots {
		if slot == 0 || slot&idMask > last {
			continue
		}
		i := home(uint32(slot>>hashShift), n)
		for next.slots[i] != 0 {
			if i++; i == n {
				i = 0
			}
		}
		next.slots[i] = slot
	}
	return next
}

// smallInts maps the integers from 0 to intsMax-1 to ids by an array, in pages
// that are made when they are first used. Graphs whose nodes are numbers take
// this way, without a hash and a probe.
type smallInts struct {
	pages [intsMax / intsPage]atomic.Pointer[[intsPage]uint32]
	bytes atomic.Int64
}

const (
	intsMax  = 1 << 20
	intsPage = 1 << 10
	pageBits = 10
)

// find returns the id of an integer, 0 if there is none.
func (s *smallInts) find(i uint64) uint64 {
	p := s.pages[i>>pageBits%uint64(len(s.pages))].Load()
	if p == nil {
		return 0
	}
	return uint64(atomic.LoadUint32(&p[i%intsPage]))
}

func (s *smallInts) set(i, id uint64) {
	page := &s.pages[i>>pageBits]
	p := page.Load()
	if p == nil {
		p = new([intsPage]uint32)
		page.Store(p)
		s.bytes.Add(4 * intsPage)
	}
	atomic.StoreUint32(&p[i%intsPage], uint32(id))
}
