package window

import "math/bits"

// A slot of the table holds 32 bits of hash above the record's number + 1; 0 is
// an empty slot. With the hash in the slot, growing and closing gaps never read
// a record, and a probe reads a wrong one once in 2^32 times.
//
// The home of a hash is hash * slots / 2^32. It is monotone in the hash, which
// makes growing a stream through both tables, and it lets a table grow by half
// instead of doubling.
const (
	slotsMin  = 8
	hashShift = 32
	// Facts of a relation; the number of a record + 1 must fit in a slot.
	factsMax = 1<<32 - 2
)

// relation is the table of the facts of one relation. A record is the tuple
// followed by the three words of its copies (see copies.go).
type relation struct {
	arity   int
	facts   slab
	slots   []uint64
	frames  *frames // nil: no windows, and everything is kept
	seq     uint64  // number of the next append
	live    int     // facts with a contribution; facts.live counts the touched ones too
	touched []touch // facts touched in this epoch, in order of first touch

	valued *relation // the shadow by value, nil if nobody reads that
	shadow bool      // it is one

	// Records that have changed since the last capture, if they are tracked, and
	// records that the running capture still has to read.
	changed, pending bitmap
}

// touch remembers the multiplicity that a fact had when the epoch began.
type touch struct {
	old       int64
	rec, hash uint32
}

// hasher mixes the words of a tuple, two at a time, by a multiplication of 64
// by 64 bits, with secrets drawn per store: whoever chooses tuples cannot
// choose collisions.
type hasher struct{ a, b, c uint64 }

func (h *hasher) sum(tuple []uint64) uint32 {
	x := h.a
	for len(tuple) >= 2 {
		hi, lo := bits.Mul64(tuple[0]^h.b, tuple[1]^x)
		x = hi ^ lo
		tuple = tuple[2:]
	}
	if len(tuple) == 1 {
		hi, lo := bits.Mul64(tuple[0]^h.b, x)
		x = hi ^ lo
	}
	hi, lo := bits.Mul64(x^h.a, h.c)
	return uint32((hi ^ lo) >> 32)
}

// find looks a tuple up. The cost is one probe of the table, and one record
// for each slot with the same 32 bits of hash.
func (r *relation) find(tuple []uint64, hash uint32) (rec uint32, ok bool) {
	slots := r.slots
	if len(slots) == 0 {
		return 0, false
	}
	for i := int(uint64(hash) * uint64(len(slots)) >> 32); ; {
		slot := slots[i]
		if slot == 0 {
			return 0, false
		}
		if uint32(slot>>hashShift) == hash {
			rec = uint32(slot) - 1
			if equal(r.facts.at(rec), tuple) {
				return rec, true
			}
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// equal compares the tuple of a record with a tuple.
func equal(record, tuple []uint64) bool {
	for i, w := range tuple {
		if record[i] != w {
			return false
		}
	}
	return true
}

// add makes a record without contributions for a tuple that has none.
func (r *relation) add(tuple []uint64, hash uint32) (rec uint32) {
	if r.facts.live*4 >= len(r.slots)*3 {
		r.resize(len(r.slots) + len(r.slots)/2)
	}
	rec = r.facts.alloc()
	w := r.facts.at(rec)
	copy(w, tuple)
	w[r.arity+2] = 0
	put(r.slots, uint64(hash)<<hashShift|uint64(rec+1))
	return rec
}

// put stores a slot value in the first empty slot from its home on.
func put(slots []uint64, slot uint64) {
	i := int(slot >> hashShift * uint64(len(slots)) >> 32)
	for slots[i] != 0 {
		if i++; i == len(slots) {
			i = 0
		}
	}
	slots[i] = slot
}

// remove frees the record of a fact without contributions, and closes the gap
// in the table by moving back what a probe would otherwise not find (Knuth,
// volume 3, 6.4, algorithm R).
func (r *relation) remove(rec uint32, hash uint32) {
	slots := r.slots
	n := uint64(len(slots))
	slot := uint64(hash)<<hashShift | uint64(rec+1)
	i := int(uint64(hash) * n >> 32)
	for slots[i] != slot {
		if i++; i == len(slots) {
			i = 0
		}
	}
	for j := i; ; {
		if j++; j == len(slots) {
			j = 0
		}
		next := slots[j]
		if next == 0 {
			break
		}
		// next may move to the gap at i unless its home lies in (i, j], cyclically.
		home := int(next >> hashShift * n >> 32)
		stays := i < home && home <= j
		if j < i {
			stays = i < home || home <= j
		}
		if !stays {
			slots[i] = next
			i = j
		}
	}
	slots[i] = 0
	r.facts.at(rec)[r.arity+2] = 0
	r.facts.release(rec)
}

// resize rebuilds the table with at least n slots.
func (r *relation) resize(n int) {
	old := r.slots
	r.slots = make([]uint64, max(n, slotsMin))
	for _, slot := range old {
		if slot != 0 {
			put(r.slots, slot)
		}
	}
}

// trim shrinks what a mass deletion has left behind.
func (r *relation) trim() {
	if n := r.facts.live; len(r.slots) > slotsMin && n*6 < len(r.slots) {
		r.resize(2 * n)
	}
	r.facts.trim()
	if keep := max(4096, r.facts.bytes()/8); int64(cap(r.touched))*touchBytes > keep {
		r.touched = nil
	}
	r.touched = r.touched[:0]
}

const touchBytes = 16

func (r *relation) bytes() int64 {
	n := int64(0)
	if r.valued != nil {
		n = r.valued.bytes()
	}
	return n + r.facts.bytes() + int64(cap(r.slots)+cap(r.changed)+cap(r.pending))*8 +
		int64(cap(r.touched))*touchBytes + r.frames.bytes() + relationBytes
}

// relationBytes is the size of the relation itself and of the pointer to it.
const relationBytes = 304
