package window

import (
	"cmp"
	"math"
	"slices"
)

// The contributions of a fact take one of four forms, told by the last word of
// the fact's record, its state:
//
//	none  nothing: a fact touched by the running epoch
//	one   a single contribution without a value: its time and its sequence word
//	      are the two words before the state
//	run   up to 64 contributions in one block, sorted
//	big   more than that: a list of sorted blocks, each of at most 64
//
// The state word, from the top: bit 63 touched in this epoch; bits 61-62 the
// form; run: bits 40-46 the number of contributions, bits 32-34 the class of
// the block, bits 0-31 the block; big: bits 0-31 the number of the list.
//
// A contribution in a block takes three words: time, sequence word, value. The
// sequence word is the sequence number * 2, plus 1 if the contribution has an
// ID, so that it orders like the number.
const (
	touchedBit = 1 << 63

	formShift = 61
	formMask  = 3 << formShift
	formOne   = 1 << formShift
	formRun   = 2 << formShift
	formBig   = 3 << formShift

	lenShift   = 40
	classShift = 32

	copyWords = 3 // words of a contribution in a block
	tailWords = 3 // words of a record behind the tuple
	classes   = 7 // blocks of 1, 2, 4, ... 64 contributions
	blockMax  = 1 << (classes - 1)
	blockHalf = blockMax / 2
)

// entry is one contribution outside of its storage.
type entry struct {
	time  int64
	seq   uint64 // sequence word
	value uint64 // 0 = none
}

// place says where a contribution is: its chunk (of a big list) and its
// position in there.
type place struct{ chunk, i int }

// copies holds the blocks and lists of all facts of a store.
type copies struct {
	blocks [classes]slab
	lists  []list
	unused []uint32 // lists to use again
}

// list is the big form: blocks in order, none empty.
type list struct {
	n    int64
	head int // chunks before it are gone: taking from the front is O(1)
	dir  []chunk
}

// chunk is a block of 64 with n contributions from off on.
type chunk struct {
	block  uint32
	off, n uint16
}

func (c *copies) init() {
	for i := range c.blocks {
		c.blocks[i] = newSlab(copyWords << i)
	}
}

// count tells the number of contributions from a state word.
func (c *copies) count(state uint64) int64 {
	switch state & formMask {
	case formOne:
		return 1
	case formRun:
		return int64(state >> lenShift & 0x7f)
	case formBig:
		return c.lists[uint32(state)].n
	}
	return 0
}

// order compares a contribution with the one at block[3i].
func (e *entry) order(block []uint64, i int) int {
	if d := cmp.Compare(e.time, int64(block[copyWords*i])); d != 0 {
		return d
	}
	return cmp.Compare(e.seq, block[copyWords*i+1])
}

func (e *entry) write(block []uint64, i int) {
	b := block[copyWords*i : copyWords*i+copyWords]
	b[0], b[1], b[2] = uint64(e.time), e.seq, e.value
}

func read(block []uint64, i int) entry {
	b := block[copyWords*i : copyWords*i+copyWords]
	return entry{int64(b[0]), b[1], b[2]}
}

// insertAt makes room at position i of n contributions and writes e there.
func insertAt(block []uint64, i, n int, e entry) {
	copy(block[copyWords*(i+1):copyWords*(n+1)], block[copyWords*i:copyWords*n])
	e.write(block, i)
}

// removeAt closes the gap at position i of n contributions.
func removeAt(block []uint64, i, n int) {
	copy(block[copyWords*i:copyWords*(n-1)], block[copyWords*(i+1):copyWords*n])
}

// lastUpTo returns the number of the n contributions of a block that come
// before e. It looks from the end, where nearly all insertions go.
func lastUpTo(block []uint64, n int, e entry) int {
	for n > 0 && e.order(block, n-1) < 0 {
		n--
	}
	return n
}

// insert adds a contribution to the fact with this tail, in its order.
func (c *copies) insert(tail []uint64, e entry) {
	state := tail[2]
	rest := state & touchedBit
	switch state & formMask {
	case 0:
		if e.value == 0 {
			tail[0], tail[1], tail[2] = uint64(e.time), e.seq, rest|formOne
			return
		}
		block := c.blocks[0].alloc()
		e.write(c.blocks[0].at(block), 0)
		tail[2] = rest | runState(block, 0, 1)
	case formOne:
		block := c.blocks[1].alloc()
		w := c.blocks[1].at(block)
		first := entry{time: int64(tail[0]), seq: tail[1]}
		first.write(w, 0)
		insertAt(w, lastUpTo(w, 1, e), 1, e)
		tail[2] = rest | runState(block, 1, 2)
	case formRun:
		c.insertRun(tail, e)
	default:
		c.lists[uint32(state)].insert(&c.blocks[classes-1], e)
	}
}

func runState(block uint32, class, n int) uint64 {
	return formRun | uint64(n)<<lenShift | uint64(class)<<classShift | uint64(block)
}

// run takes the state of a run apart.
func run(state uint64) (block uint32, class, n int) {
	return uint32(state), int(state >> classShift & 7), int(state >> lenShift & 0x7f)
}

func (c *copies) insertRun(tail []uint64, e entry) {
	block, class, n := run(tail[2])
	rest := tail[2] & touchedBit
	if n == blockMax {
		l := c.newList()
		c.lists[l].n = blockMax
		c.lists[l].dir = append(c.lists[l].dir, chunk{block: block, n: blockMax})
		tail[2] = rest | formBig | uint64(l)
		c.lists[l].insert(&c.blocks[classes-1], e)
		return
	}
	if n == 1<<class {
		block = c.move(block, class, class+1, n)
		class++
	}
	w := c.blocks[class].at(block)
	insertAt(w, lastUpTo(w, n, e), n, e)
	tail[2] = rest | runState(block, class, n+1)
}

// move copies a block into one of another class and frees it.
func (c *copies) move(block uint32, from, to, n int) uint32 {
	next := c.blocks[to].alloc()
	copy(c.blocks[to].at(next), c.blocks[from].at(block)[:copyWords*n])
	c.blocks[from].release(block)
	return next
}

// oldest finds the first contribution with this value, with any for value 0.
func (c *copies) oldest(tail []uint64, value uint64) (at place, ok bool) {
	state := tail[2]
	switch state & formMask {
	case 0:
		return place{}, false
	case formOne:
		return place{}, value == 0
	case formRun:
		block, class, n := run(state)
		i := seek(c.blocks[class].at(block), 0, n, value)
		return place{0, i}, i < n
	}
	l := &c.lists[uint32(state)]
	if value == 0 {
		return place{l.head, 0}, true
	}
	for k := l.head; k < len(l.dir); k++ {
		ch := l.dir[k]
		if i := seek(c.blocks[classes-1].at(ch.block), int(ch.off), int(ch.n), value); i < int(ch.n) {
			return place{k, i}, true
		}
	}
	return place{}, false
}

// seek looks for a value among n contributions from off on; n = not there.
func seek(block []uint64, off, n int, value uint64) int {
	if value == 0 {
		return 0
	}
	for i := range n {
		if block[copyWords*(off+i)+2] == value {
			return i
		}
	}
	return n
}

// exact finds the contribution with this time and sequence number.
func (c *copies) exact(tail []uint64, e entry) place {
	state := tail[2]
	switch state & formMask {
	case formRun:
		block, class, n := run(state)
		return place{0, lastUpTo(c.blocks[class].at(block), n, e) - 1}
	case formBig:
		l := &c.lists[uint32(state)]
		k := l.chunkOf(&c.blocks[classes-1], e)
		ch := l.dir[k]
		return place{k, lastUpTo(c.blocks[classes-1].at(ch.block)[copyWords*int(ch.off):], int(ch.n), e) - 1}
	}
	return place{}
}

// take removes the contribution at a place and returns it.
func (c *copies) take(tail []uint64, at place) entry {
	state := tail[2]
	rest := state & touchedBit
	switch state & formMask {
	case formOne:
		tail[2] = rest
		return entry{time: int64(tail[0]), seq: tail[1]}
	case formRun:
		block, class, n := run(state)
		w := c.blocks[class].at(block)
		e := read(w, at.i)
		removeAt(w, at.i, n)
		tail[2] = rest | c.shrinkRun(tail, block, class, n-1)
		return e
	}
	l := &c.lists[uint32(state)]
	e := l.take(&c.blocks[classes-1], at)
	if n := int(l.n); n <= blockHalf {
		tail[2] = rest | runState(c.gather(uint32(state)), classes-1, n)
	}
	return e
}

// shrinkRun gives back what a run of n no longer needs, and returns its state.
func (c *copies) shrinkRun(tail []uint64, block uint32, class, n int) uint64 {
	blocks := &c.blocks[class]
	if n == 0 {
		blocks.release(block)
		return 0
	}
	if e := read(blocks.at(block), 0); n == 1 && e.value == 0 {
		tail[0], tail[1] = uint64(e.time), e.seq
		blocks.release(block)
		return formOne
	}
	if class > 0 && n <= 1<<class/4 {
		block = c.move(block, class, class-1, n)
		class--
	}
	return runState(block, class, n)
}

func (c *copies) newList() uint32 {
	if n := len(c.unused); n > 0 {
		l := c.unused[n-1]
		c.unused = c.unused[:n-1]
		return l
	}
	c.lists = append(c.lists, list{})
	return uint32(len(c.lists) - 1)
}

// gather puts the contributions of a list, at most half a block, into one
// block and frees the list.
func (c *copies) gather(number uint32) (block uint32) {
	blocks := &c.blocks[classes-1]
	block = blocks.alloc()
	l := &c.lists[number]
	n := 0
	for _, ch := range l.dir[l.head:] {
		from := blocks.at(ch.block)[copyWords*int(ch.off):]
		copy(blocks.at(block)[copyWords*n:], from[:copyWords*int(ch.n)])
		n += int(ch.n)
		blocks.release(ch.block)
	}
	*l = list{}
	c.unused = append(c.unused, number)
	return block
}

// each calls f for the contributions of a fact in order, until f says no.
func (c *copies) each(tail []uint64, f func(entry) bool) bool {
	state := tail[2]
	switch state & formMask {
	case formOne:
		return f(entry{time: int64(tail[0]), seq: tail[1]})
	case formRun:
		block, class, n := run(state)
		return eachOf(c.blocks[class].at(block), n, f)
	case formBig:
		for _, ch := range c.lists[uint32(state)].chunks() {
			if !eachOf(c.blocks[classes-1].at(ch.block)[copyWords*int(ch.off):], int(ch.n), f) {
				return false
			}
		}
	}
	return true
}

func eachOf(block []uint64, n int, f func(entry) bool) bool {
	for i := range n {
		if !f(read(block, i)) {
			return false
		}
	}
	return true
}

// within counts the contributions to a fact, which are a run or big, with times
// from lo to hi.
func (c *copies) within(tail []uint64, lo, hi int64) int64 {
	if tail[2]&formMask == formBig {
		return c.lists[uint32(tail[2])].within(&c.blocks[classes-1], lo, hi)
	}
	block, class, n := run(tail[2])
	before, behind := outside(c.blocks[class].at(block), n, lo, hi)
	return int64(n - before - behind)
}

// outside counts those of n contributions of a block that come before time lo,
// and those of the others that come behind time hi.
func outside(block []uint64, n int, lo, hi int64) (before, behind int) {
	for before < n && int64(block[copyWords*before]) < lo {
		before++
	}
	for before+behind < n && int64(block[copyWords*(n-1-behind)]) > hi {
		behind++
	}
	return before, behind
}

// newer counts the contributions to a fact with at least this number, in time
// linear in all of them.
func (c *copies) newer(tail []uint64, number uint64) (n int64) {
	c.each(tail, func(e entry) bool {
		if e.seq>>1 >= number {
			n++
		}
		return true
	})
	return n
}

// trim gives unused memory back.
func (c *copies) trim() {
	for i := range c.blocks {
		c.blocks[i].trim()
	}
	if len(c.unused) == len(c.lists) {
		c.lists, c.unused = nil, nil
	}
}

func (c *copies) bytes() int64 {
	n := int64(cap(c.lists))*48 + int64(cap(c.unused))*4
	for i := range c.blocks {
		n += c.blocks[i].bytes()
	}
	for i := range c.lists {
		n += int64(cap(c.lists[i].dir)) * 8
	}
	return n
}

// chunks are the chunks of the list in order.
func (l *list) chunks() []chunk { return l.dir[l.head:] }

// chunkOf returns the last chunk that begins at or before e, else the first.
func (l *list) chunkOf(blocks *slab, e entry) int {
	begins := func(ch chunk) int { return e.order(blocks.at(ch.block), int(ch.off)) }
	last := len(l.dir) - 1
	if begins(l.dir[last]) >= 0 {
		return last
	}
	i, _ := slices.BinarySearchFunc(l.chunks(), e, func(ch chunk, _ entry) int {
		if begins(ch) >= 0 {
			return -1
		}
		return 1
	})
	return l.head + max(i-1, 0)
}

// insert adds a contribution in its order: O(1) at both ends, else a binary
// search over the chunks and a short move.
func (l *list) insert(blocks *slab, e entry) {
	l.n++
	k := l.chunkOf(blocks, e)
	ch := l.dir[k]
	i := lastUpTo(blocks.at(ch.block)[copyWords*int(ch.off):], int(ch.n), e)
	switch {
	case k == len(l.dir)-1 && i == int(ch.n) && ch.off+ch.n == blockMax && ch.n > blockHalf:
		// The newest of all: begin a chunk instead of moving this one to make room.
		block := blocks.alloc()
		e.write(blocks.at(block), 0)
		l.push(chunk{block: block, n: 1})
		return
	case i == 0 && ch.off > 0:
		c := &l.dir[k]
		c.off--
		c.n++
		e.write(blocks.at(c.block), int(c.off))
		return
	case k == l.head && i == 0 && ch.n > blockHalf:
		// The oldest of all: the mirror image.
		block := blocks.alloc()
		e.write(blocks.at(block), blockMax-1)
		l.unshift(chunk{block: block, off: blockMax - 1, n: 1})
		return
	case ch.n == blockMax:
		k = l.split(blocks, k)
		if i > blockHalf {
			k, i = k+1, i-blockHalf
		}
	}
	c := &l.dir[k]
	w := blocks.at(c.block)
	if c.off+c.n == blockMax {
		copy(w, w[copyWords*int(c.off):])
		c.off = 0
	}
	insertAt(w[copyWords*int(c.off):], i, int(c.n), e)
	c.n++
}

// within counts the contributions with times from lo to hi: it adds up the
// chunks inside or those outside, whichever are fewer.
func (l *list) within(blocks *slab, lo, hi int64) int64 {
	a := l.chunkOf(blocks, entry{time: lo})
	b := l.chunkOf(blocks, entry{time: hi, seq: math.MaxUint64})
	before, _ := outside(l.words(blocks, a), int(l.dir[a].n), lo, math.MaxInt64)
	_, behind := outside(l.words(blocks, b), int(l.dir[b].n), math.MinInt64, hi)
	n := l.n
	if len(l.dir)-(b-a) > b-a+l.head {
		n = size(l.dir[a : b+1])
	} else {
		n -= size(l.dir[l.head:a]) + size(l.dir[b+1:])
	}
	return n - int64(before) - int64(behind)
}

// size counts the contributions of chunks.
func size(chunks []chunk) (n int64) {
	for _, ch := range chunks {
		n += int64(ch.n)
	}
	return n
}

// push puts a chunk behind the others. Where a quarter of the room is in front,
// it is used before more is asked for: a queue does not grow by its length.
func (l *list) push(ch chunk) {
	if len(l.dir) == cap(l.dir) && l.head*4 > len(l.dir) {
		l.dir = l.dir[:copy(l.dir, l.chunks())]
		l.head = 0
	}
	l.dir = append(l.dir, ch)
}

// unshift puts a chunk before the others. Room in front is made for half as many
// again.
func (l *list) unshift(ch chunk) {
	if l.head == 0 {
		room := len(l.dir)/2 + 1
		l.dir = append(make([]chunk, room, 2*len(l.dir)+room), l.dir...)
		l.head = room
	}
	l.head--
	l.dir[l.head] = ch
}

// split moves the upper half of a full chunk into a new one behind it, and
// returns where the lower half is now.
func (l *list) split(blocks *slab, k int) (lower int) {
	block := blocks.alloc()
	copy(blocks.at(block), blocks.at(l.dir[k].block)[copyWords*blockHalf:])
	l.dir[k].n = blockHalf
	upper := chunk{block: block, n: blockHalf}
	if l.head > 0 && k-l.head < len(l.dir)-k {
		// The chunks before it are fewer, and there is room in front.
		copy(l.dir[l.head-1:], l.dir[l.head:k+1])
		l.head--
		l.dir[k] = upper
		return k - 1
	}
	l.dir = slices.Insert(l.dir, k+1, upper)
	return k
}

// take removes the contribution at a place and returns it.
func (l *list) take(blocks *slab, at place) entry {
	l.n--
	c := &l.dir[at.chunk]
	w := blocks.at(c.block)[copyWords*int(c.off):]
	e := read(w, at.i)
	if at.i == 0 {
		c.off++
	} else {
		removeAt(w, at.i, int(c.n))
	}
	c.n--
	switch {
	case c.n == 0:
		blocks.release(c.block)
		l.drop(at.chunk)
	case c.n <= blockHalf/2:
		l.merge(blocks, at.chunk)
	}
	return e
}

// merge joins chunk k with its successor if that leaves room in the block.
func (l *list) merge(blocks *slab, k int) {
	if k+1 == len(l.dir) {
		k--
	}
	if k < l.head || l.dir[k].n+l.dir[k+1].n > blockHalf+blockHalf/2 {
		return
	}
	a, b := &l.dir[k], l.dir[k+1]
	w := blocks.at(a.block)
	copy(w, w[copyWords*int(a.off):copyWords*int(a.off+a.n)])
	copy(w[copyWords*int(a.n):], blocks.at(b.block)[copyWords*int(b.off):copyWords*int(b.off+b.n)])
	a.off, a.n = 0, a.n+b.n
	blocks.release(b.block)
	l.drop(k + 1)
}

// drop takes a chunk out of the list, in O(1) at both ends.
func (l *list) drop(k int) {
	if k == l.head {
		l.head++
	} else {
		l.dir = slices.Delete(l.dir, k, k+1)
	}
	if n := len(l.dir) - l.head; n*4 <= cap(l.dir) && cap(l.dir) > 32 {
		l.dir = append(make([]chunk, 0, 2*n), l.dir[l.head:]...)
		l.head = 0
	}
}
