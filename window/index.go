package window

import "math"

// index orders the contributions of a relation by one number each, their event
// time or their place among the appends. What an entry holds beside the number:
//
//	by time    the sequence word; the record
//	by number  the event time; the record, and from bit 32 on whether it has an ID
//
// Where everything is kept, contributions that no window will ever look at again
// are left out.
type index struct {
	queue
	byNumber bool
	least    int64 // those below are left out
	left     int64 // how many those are
}

// hasID is set in the value of an entry of an index by number.
const hasID = 1 << 32

// key is the entry of a contribution.
func (x *index) key(rec uint32, time int64, seq uint64) entry {
	if x.byNumber {
		return entry{int64(seq >> 1), uint64(time), uint64(rec) | seq&1*hasID}
	}
	return entry{time, seq, uint64(rec)}
}

// contribution takes an entry apart.
func (x *index) contribution(e entry) (rec uint32, time int64, seq uint64) {
	if x.byNumber {
		return uint32(e.value), int64(e.seq), uint64(e.time)<<1 | e.value>>32
	}
	return uint32(e.value), e.time, e.seq
}

func (x *index) add(blocks *slab, e entry) {
	if e.time < x.least {
		x.left++
		return
	}
	x.queue.add(blocks, e)
}

func (x *index) remove(blocks *slab, e entry) {
	if e.time < x.least {
		x.left--
		return
	}
	x.queue.remove(blocks, e)
}

// trim leaves out what is below a bound.
func (x *index) trim(blocks *slab, least int64) {
	if least <= x.least {
		return
	}
	x.least = least
	for x.n > 0 && x.front(blocks).time < least {
		n := x.below(blocks, least)
		x.left += int64(n)
		x.cut(blocks, n)
	}
}

// fill makes an empty index of the contributions of a relation from a bound on.
func (x *index) fill(c *copies, r *relation, least int64) {
	x.least = least
	list := make([]entry, 0, r.facts.live)
	for rec, w := range r.facts.all() {
		if w[r.arity+2]&formMask == 0 {
			continue
		}
		c.each(w[r.arity:], func(e entry) bool {
			if k := x.key(rec, e.time, e.seq); k.time >= least {
				list = append(list, k)
			} else {
				x.left++
			}
			return true
		})
	}
	x.queue.fill(&c.blocks[classes-1], list)
}

// serves reports whether the index may go on as one from another bound on.
func (x *index) serves(least int64) bool {
	if x == nil {
		return false
	}
	if x.left == 0 {
		x.least = min(x.least, least)
	}
	return x.least <= least
}

// ofFact counts the entries of a record from a number on, in time linear in all
// entries from there on.
func (x *index) ofFact(blocks *slab, rec uint32, number int64) (n int64) {
	var some batch
	for at, more := (entry{time: number}), true; more; {
		k := x.read(blocks, at, math.MaxInt64, &some)
		if k == 0 {
			break
		}
		for _, e := range some[:k] {
			if uint32(e.value) == rec {
				n++
			}
		}
		at, more = some[k-1].after()
	}
	return n
}

func (x *index) bytes() int64 {
	if x == nil {
		return 0
	}
	return indexBytes + int64(cap(x.dir))*8
}

const indexBytes = 64
