package dict

import (
	"math"
	"sync/atomic"
)

// Slabs double in size from slabMin to slabMax. A form of more than slabMax/4
// has a slab of its own, so that little room is left over at the end of others.
const (
	slabMin = 4 << 10
	slabMax = 1 << 20
	ownSlab = slabMax / 4
)

// slabs holds the bytes of long forms. A form lies in one slab as a whole and
// stays where it is until most of its slab is dead. This is the writer's side of
// them; the list itself is part of the state. A slab that is let go leaves an
// empty place in the list, which the next one takes.
type slabs struct {
	info  []slabInfo // for each place
	free  []int      // the empty places
	tail  int        // the slab being filled with new forms, -1: none
	size  int        // its size
	bytes atomic.Int64
}

type slabInfo struct {
	fill, live  int    // bytes in use, and those of terms held
	first, last uint64 // its ids are between these
}

// slabForm returns the bytes of a long form.
func (st *state) slabForm(e *entry) []byte {
	where, n := e.word(1), uint64(e.size())
	off := where & math.MaxUint32
	return st.slabs[where>>32][off : off+n : off+n]
}

// addForm copies the form of an id into a slab and says where it is.
func (d *Dict) addForm(id uint64, form []byte) (where uint64) {
	s := &d.slabs
	if len(form) > ownSlab {
		i := d.addSlab(len(form))
		return s.write(d.state.Load(), i, id, form)
	}
	st := d.state.Load()
	if s.tail < 0 || s.info[s.tail].fill+len(form) > len(st.slabs[s.tail]) {
		size := min(max(2*s.size, slabMin), slabMax)
		for size < len(form) {
			size *= 2
		}
		s.tail, s.size = d.addSlab(size), size
		st = d.state.Load()
	}
	return s.write(st, s.tail, id, form)
}

// addSlab makes a slab. The place that it takes is one that no entry names in
// any state with this list: whoever empties a place that readers may look at
// makes another list.
func (d *Dict) addSlab(size int) (i int) {
	st := *d.state.Load()
	i = d.slabs.place(&st, size)
	d.state.Store(&st)
	return i
}

// place puts a new slab into the list of a state.
func (s *slabs) place(st *state, size int) (i int) {
	slab := make([]byte, size)
	s.bytes.Add(int64(size))
	if n := len(s.free); n > 0 {
		i = s.free[n-1]
		s.free = s.free[:n-1]
		st.slabs[i], s.info[i] = slab, slabInfo{first: math.MaxUint64}
		return i
	}
	st.slabs = append(st.slabs, slab)
	s.info = append(s.info, slabInfo{first: math.MaxUint64})
	return len(s.info) - 1
}

func (s *slabs) write(st *state, i int, id uint64, form []byte) (where uint64) {
	x := &s.info[i]
	off := x.fill
	copy(st.slabs[i][off:], form)
	x.fill += len(form)
	x.live += len(form)
	x.first, x.last = min(x.first, id), max(x.last, id)
	return uint64(i)<<32 | uint64(off)
}

// drop takes a form out. The room at the end of a slab is used again.
func (s *slabs) drop(e *entry) (i int) {
	where, n := e.word(1), e.size()
	i = int(where >> 32)
	off := int(where & math.MaxUint32)
	x := &s.info[i]
	if x.live -= n; x.fill == off+n {
		x.fill = off
	}
	return i
}

// empty reports whether a place has a slab without forms.
func (s *slabs) empty(st *state, i int) bool { return st.slabs[i] != nil && s.info[i].live == 0 }

// release empties a place.
func (s *slabs) release(st *state, i int) {
	s.bytes.Add(-int64(len(st.slabs[i])))
	st.slabs[i] = nil
	s.free = append(s.free, i)
	if s.tail == i {
		s.tail = -1
	}
	if len(s.free) == len(s.info) {
		st.slabs, s.info, s.free, s.size = nil, nil, nil, 0
	}
}

// mostlyDead reports whether less than half of a slab is alive, so that moving
// that costs less than is given back.
func (s *slabs) mostlyDead(st *state, i int) bool {
	return st.slabs[i] != nil && i != s.tail && 2*s.info[i].live < len(st.slabs[i])
}

// compact lets go of the empty slabs of a state under construction and moves the
// forms of those that are mostly dead. The list of slabs is the caller's own.
func (ed *edit) compact() {
	s := &ed.d.slabs
	victims := make([]bool, len(s.info))
	from, to := uint64(math.MaxUint64), uint64(0)
	size, live := 0, 0
	for i := range victims {
		switch {
		case s.empty(&ed.st, i):
			s.release(&ed.st, i)
			if s.info == nil {
				return
			}
		case s.mostlyDead(&ed.st, i):
			victims[i] = true
			from, to = min(from, s.info[i].first), max(to, s.info[i].last)
			size, live = size+len(ed.st.slabs[i]), live+s.info[i].live
		}
	}
	if size <= 2*live+slabMin {
		return // also if there are none
	}
	ed.move(victims, from, to)
	for i, victim := range victims {
		if victim {
			s.release(&ed.st, i)
		}
	}
}

// move copies the forms of some slabs, those of ids in a range, to new ones.
// Survivors stand with survivors: forms that have outlived a sweep often outlive
// the next one.
func (ed *edit) move(victims []bool, from, to uint64) {
	s, open := &ed.d.slabs, -1
	ed.st.walk(max(from, ed.st.through+1), to, func(id uint64, e *entry) bool {
		if i := e.word(1) >> 32; !e.long() || i >= uint64(len(victims)) || !victims[i] {
			return true
		}
		form := ed.st.slabForm(e)
		if open < 0 || s.info[open].fill+len(form) > len(ed.st.slabs[open]) {
			size := slabMin
			if open >= 0 {
				size = min(2*len(ed.st.slabs[open]), slabMax)
			}
			open = s.place(&ed.st, max(size, len(form)))
		}
		where := s.write(&ed.st, open, id, form)
		ed.entry(id).set(1, where)
		return true
	})
}
