package window

import (
	"cmp"
	"math"
	"slices"
)

// queue is a list of entries as that of a fact with many copies, in the same
// blocks, that may be empty. Appending in order and taking from the front are
// O(1), all else is a binary search and a move inside of a block.
type queue struct{ list }

func (q *queue) add(blocks *slab, e entry) {
	if q.n > 0 {
		q.insert(blocks, e)
		return
	}
	block := blocks.alloc()
	e.write(blocks.at(block), 0)
	q.push(chunk{block: block, n: 1})
	q.n = 1
}

// remove takes an entry that is there.
func (q *queue) remove(blocks *slab, e entry) {
	if first := q.front(blocks); first == e {
		q.take(blocks, place{q.head, 0})
		return
	}
	k := q.chunkOf(blocks, e)
	i := lastUpTo(q.words(blocks, k), int(q.dir[k].n), e) - 1
	// Only a damaged checkpoint has entries that differ in their records alone.
	for read(q.words(blocks, k), i).value != e.value {
		if i--; i < 0 {
			k--
			i = int(q.dir[k].n) - 1
		}
	}
	q.take(blocks, place{k, i})
}

// words returns the entries of a chunk, from its first one on.
func (l *list) words(blocks *slab, k int) []uint64 {
	return blocks.at(l.dir[k].block)[copyWords*int(l.dir[k].off):]
}

// front returns the first entry of a queue that is not empty.
func (q *queue) front(blocks *slab) entry { return read(q.words(blocks, q.head), 0) }

// back returns the last entry of a queue that is not empty.
func (q *queue) back(blocks *slab) entry {
	k := len(q.dir) - 1
	return read(q.words(blocks, k), int(q.dir[k].n)-1)
}

// below counts the entries of the first chunk with a number below a bound.
func (q *queue) below(blocks *slab, bound int64) (n int) {
	if q.n == 0 {
		return 0
	}
	words := q.words(blocks, q.head)
	for n < int(q.dir[q.head].n) && int64(words[copyWords*n]) < bound {
		n++
	}
	return n
}

// first copies n entries of the first chunk.
func (q *queue) first(blocks *slab, n int, to *batch) []entry {
	words := q.words(blocks, q.head)
	for i := range n {
		to[i] = read(words, i)
	}
	return to[:n]
}

// upTo is how many entries the chunks hold that begin below a bound.
func (q *queue) upTo(blocks *slab, bound int64) (n int) {
	for k := q.head; k < len(q.dir) && int64(q.words(blocks, k)[0]) < bound; k++ {
		n += int(q.dir[k].n)
	}
	return n
}

// cut takes n entries of the first chunk.
func (q *queue) cut(blocks *slab, n int) {
	c := &q.dir[q.head]
	q.n -= int64(n)
	c.off += uint16(n)
	if c.n -= uint16(n); c.n == 0 {
		blocks.release(c.block)
		q.drop(q.head)
	}
}

// batch is room for what one chunk of a queue holds: whoever changes the queue
// while walking it reads a chunk at a time.
type batch [blockMax]entry

// seek finds the place of the first entry that is not before e; ok is false if
// there is none. It looks at both ends first, where nearly all searches end.
func (q *queue) seek(blocks *slab, e entry) (at place, ok bool) {
	if q.n == 0 {
		return place{}, false
	}
	k := len(q.dir) - 1
	words, n := q.words(blocks, k), int(q.dir[k].n)
	switch {
	case e.order(words, n-1) > 0:
		return place{}, false
	case e.order(words, 0) >= 0:
		// What has just been appended is what is looked for most.
		for n > 0 && e.order(words, n-1) <= 0 {
			n--
		}
		return place{k, n}, true
	case e.order(q.words(blocks, q.head), 0) <= 0:
		return place{q.head, 0}, true
	}
	k = q.chunkOf(blocks, e)
	words, n = q.words(blocks, k), int(q.dir[k].n)
	i := 0
	for to := n; i < to; {
		if m := (i + to) / 2; e.order(words, m) > 0 {
			i = m + 1
		} else {
			to = m
		}
	}
	if i == n {
		return place{k + 1, 0}, true // not the last chunk
	}
	return place{k, i}, true
}

// read copies entries from the first on that is not before e, those of one
// chunk, up to the number last, and returns how many: none at the end.
func (q *queue) read(blocks *slab, e entry, last int64, to *batch) (n int) {
	at, ok := q.seek(blocks, e)
	if !ok {
		return 0
	}
	words := q.words(blocks, at.chunk)
	for i := at.i; i < int(q.dir[at.chunk].n) && int64(words[copyWords*i]) <= last; i++ {
		to[n] = read(words, i)
		n++
	}
	return n
}

// from returns the first entry with at least this number.
func (q *queue) from(blocks *slab, number int64) (e entry, ok bool) {
	at, ok := q.seek(blocks, entry{time: number})
	if !ok {
		return entry{}, false
	}
	return read(q.words(blocks, at.chunk), at.i), true
}

// compare orders entries.
func (e entry) compare(other entry) int {
	if e.time != other.time {
		return cmp.Compare(e.time, other.time)
	}
	return cmp.Compare(e.seq, other.seq)
}

// after is the least entry behind e; ok is false if there can be none.
func (e entry) after() (next entry, ok bool) {
	switch {
	case e.seq < math.MaxUint64:
		return entry{time: e.time, seq: e.seq + 1}, true
	case e.time < math.MaxInt64:
		return entry{time: e.time + 1}, true
	}
	return entry{}, false
}

// fill makes an empty queue of entries, which it sorts.
func (q *queue) fill(blocks *slab, entries []entry) {
	slices.SortFunc(entries, entry.compare)
	q.dir = make([]chunk, 0, (len(entries)+blockMax-1)/blockMax)
	for part := range slices.Chunk(entries, blockMax) {
		block := blocks.alloc()
		w := blocks.at(block)
		for i := range part {
			part[i].write(w, i)
		}
		q.dir = append(q.dir, chunk{block: block, n: uint16(len(part))})
	}
	q.n = int64(len(entries))
}

// release gives the blocks back.
func (q *queue) release(blocks *slab) {
	for _, ch := range q.chunks() {
		blocks.release(ch.block)
	}
	q.list = list{}
}
