package window

import "iter"

// event is the words of an event of the reorder buffer, or of a contribution
// that one of them took away, in one piece without pointers.
type event []uint64

// The words of an event before its tuple. A contribution has no flags and no
// evOld.
const (
	evHead  = iota // the relation above relShift, the flags
	evTime         // event time
	evValue        // 0 = none
	evID           // number among the names, 0 = none
	evSeq          // outAppended, outRefreshed: the sequence word of the contribution
	evOld          // 1 + the contribution that was taken or refreshed, as it was; 0 = none
	evWords
)

const (
	evDelete = 1 << iota
	evBare   // a deletion by ID alone: there is no tuple
	evLate   // older than what was final when it came
	evPicked // to be done again
	outShift = 4
	outMask  = 7 << outShift
	relShift = 32
)

// The outcomes of an event.
const (
	outNone      = iota << outShift // not applied
	outAppended                     // evOld: what had its ID and was expired
	outRefreshed                    // evOld: the contribution before
	outTaken                        // evOld: the contribution
	outMissing
	outConflict // evOld as for outAppended
)

func (ev event) rel() uint32     { return uint32(ev[evHead] >> relShift) }
func (ev event) deletes() bool   { return ev[evHead]&evDelete != 0 }
func (ev event) bare() bool      { return ev[evHead]&evBare != 0 }
func (ev event) outcome() uint64 { return ev[evHead] & outMask }
func (ev event) tuple() []uint64 { return ev[evWords:] }

// entry is the contribution that the event has made, or, of a contribution, it.
func (ev event) entry() entry { return entry{int64(ev[evTime]), ev[evSeq], ev[evValue]} }

// effect notes what the event has done.
func (ev event) effect(outcome, seq, old uint64) {
	ev[evHead] = ev[evHead]&^outMask | outcome
	ev[evSeq], ev[evOld] = seq, old
}

// terms visits the terms of an event.
func (ev event) terms(visit func(id uint64)) {
	for _, id := range ev.tuple() {
		visit(id)
	}
	if ev[evValue] != 0 {
		visit(ev[evValue])
	}
}

// events holds events in slabs, one for each length of tuples. A reference is
// the slab above the record.
type events struct{ slabs []slab }

func (e *events) alloc(arity int) (ref uint64) {
	i := 0
	for i < len(e.slabs) && e.slabs[i].width != evWords+arity {
		i++
	}
	if i == len(e.slabs) {
		e.slabs = append(e.slabs, newSlab(evWords+arity))
	}
	return uint64(i)<<32 | uint64(e.slabs[i].alloc())
}

// at returns an event; the slice is good until the next alloc.
func (e *events) at(ref uint64) event { return e.slabs[ref>>32].at(uint32(ref)) }

func (e *events) release(ref uint64) { e.slabs[ref>>32].release(uint32(ref)) }

func (e *events) trim() {
	for i := range e.slabs {
		e.slabs[i].trim()
	}
}

func (e *events) bytes() (n int64) {
	for i := range e.slabs {
		n += slabBytes + e.slabs[i].bytes()
	}
	return n
}

const slabBytes = 176

// release gives an event back, with the contribution that it holds.
func (q *reorder) release(ref uint64) {
	ev := q.events.at(ref)
	if old := ev[evOld]; old != 0 {
		q.release(old - 1)
	}
	q.names.drop(ev[evID])
	q.events.release(ref)
}

// remember keeps a contribution that is about to go or to change.
func (q *reorder) remember(rel uint32, tuple []uint64, e entry, id string) (old uint64) {
	ref := q.events.alloc(len(tuple))
	ev := q.events.at(ref)
	ev[evHead], ev[evTime], ev[evValue] = uint64(rel)<<relShift, uint64(e.time), e.value
	ev[evID], ev[evSeq], ev[evOld] = q.names.add(id), e.seq, 0
	copy(ev.tuple(), tuple)
	return ref + 1
}

// names holds the IDs of events. Equal IDs have one number.
type names struct {
	numbers map[string]uint64
	list    []text
	unused  []uint64
	bytes   int64 // length of all together
	most    int   // since the map was made: maps do not shrink
}

// text is one ID, or none if nothing refers to it.
type text struct {
	id   string
	refs int
	mark uint64 // the last search that has met it
}

// add refers to an ID and returns its number, 0 for "".
func (n *names) add(id string) uint64 {
	if id == "" {
		return 0
	}
	if number, ok := n.numbers[id]; ok {
		n.list[number-1].refs++
		return number
	}
	if n.numbers == nil {
		n.numbers = map[string]uint64{}
	}
	number := uint64(len(n.list) + 1)
	if last := len(n.unused) - 1; last >= 0 {
		number, n.unused = n.unused[last], n.unused[:last]
		n.list[number-1] = text{id: id, refs: 1}
	} else {
		n.list = append(n.list, text{id: id, refs: 1})
	}
	n.numbers[id] = number
	n.bytes += int64(len(id))
	n.most = max(n.most, len(n.numbers))
	return number
}

// of returns the ID with a number.
func (n *names) of(number uint64) string {
	if number == 0 {
		return ""
	}
	return n.list[number-1].id
}

// drop takes a reference back.
func (n *names) drop(number uint64) {
	if number == 0 {
		return
	}
	t := &n.list[number-1]
	if t.refs--; t.refs > 0 {
		return
	}
	delete(n.numbers, t.id)
	n.bytes -= int64(len(t.id))
	*t = text{}
	n.unused = append(n.unused, number)
}

// trim makes the map anew when it has emptied. The numbers stay.
func (n *names) trim() {
	if len(n.numbers) == 0 && n.most >= 1024 {
		*n = names{}
		return
	}
	if n.most < 1024 || len(n.numbers) > n.most/8 {
		return
	}
	numbers := make(map[string]uint64, len(n.numbers))
	for id, number := range n.numbers {
		numbers[id] = number
	}
	n.numbers, n.most = numbers, len(numbers)
}

func (n *names) size() int64 {
	return n.bytes + int64(n.most)*40 + int64(cap(n.list))*32 + int64(cap(n.unused))*8
}

// all walks a queue that does not change meanwhile, from the first entry on
// that is not before e.
func (q *queue) all(blocks *slab, e entry) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		if q.n == 0 {
			return
		}
		for k := q.chunkOf(blocks, e); k < len(q.dir); k++ {
			w := q.words(blocks, k)
			for i := range int(q.dir[k].n) {
				if x := read(w, i); !x.before(e) && !yield(x) {
					return
				}
			}
		}
	}
}
