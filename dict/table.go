package dict

import "sync/atomic"

// A slot of the table holds 32 bits of hash, which are never all 0, above the
// lower 32 bits of the id; 0 is an empty slot. The era of the id is not in the
// slot: it is one of those that still have pages, and as a rule there is one.
//
// The table is open addressing with linear probing. Slots are stored to
// atomically, for readers probe while the writer inserts. The home of a hash is
// hash * slots / 2^32, which is monotone in the hash: a table grows by half, in
// one stream, without looking at an entry.
//
// Ids after the last one when a table was made stand in the order of their
// insertion, so that taking them out in reverse order leaves no gap that a probe
// would stop at. Ids before are taken out by making another table.
const (
	hashShift = 32
	idMask    = 1<<hashShift - 1
	slotsMin  = 16
)

func slotOf(hash uint32, id uint64) uint64 { return uint64(hash)<<hashShift | id&idMask }

func home(hash uint32, slots int) int { return int(uint64(hash) * uint64(slots) >> 32) }

// put stores a slot in the first empty place from its home on.
func put(slots []uint64, slot uint64) {
	i := home(uint32(slot>>hashShift), len(slots))
	for slots[i] != 0 {
		if i++; i == len(slots) {
			i = 0
		}
	}
	atomic.StoreUint64(&slots[i], slot)
}

// replace overwrites the last slot of a value on its way. Where two ids of
// different eras have the same slot, that is the one that was put last.
func replace(slots []uint64, slot, by uint64) {
	last := -1
	for i := home(uint32(slot>>hashShift), len(slots)); slots[i] != 0; {
		if slots[i] == slot {
			last = i
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
	if last >= 0 {
		atomic.StoreUint64(&slots[last], by)
	}
}

// resized copies slots to a table of n.
func resized(slots []uint64, n int) (next []uint64) {
	next = make([]uint64, n)
	for _, slot := range slots {
		if slot == 0 {
			continue
		}
		i := home(uint32(slot>>hashShift), n)
		for next[i] != 0 {
			if i++; i == n {
				i = 0
			}
		}
		next[i] = slot
	}
	return next
}

// filtered returns the slots without the empty ones and those for which keep
// returns 0, in their order; others become what it returns. used is their number
// at most.
func filtered(slots []uint64, used int, keep func(slot uint64) uint64) []uint64 {
	kept := make([]uint64, 0, used)
	for _, slot := range slots {
		if slot != 0 {
			if slot = keep(slot); slot != 0 {
				kept = append(kept, slot)
			}
		}
	}
	return kept
}

// slotsFor is the size of a table for a number of terms that leaves room for
// half as many more.
func slotsFor(terms int) int { return max(slotsMin, 2*terms) }
