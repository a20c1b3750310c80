package trie

import "math/bits"

// outcome is what a write found on its way down, besides the new root.
type outcome struct {
	old int64 // weight before, 0 if the tuple was absent
	sib bool  // another tuple shares the prefix asked about
	// add says that the weight to be written is what is to be added to old; large
	// then tells that the sum did not fit, and nothing was written.
	add, large bool
}

// weigh is the weight of a tuple that is there, given what is to be written.
func (o *outcome) weigh(w int64) int64 {
	if !o.add {
		return w
	}
	sum := o.old + w
	if (sum < o.old) != (w < 0) {
		o.large = true
		return o.old
	}
	return sum
}

// Change is the effect of one write.
type Change struct {
	Old int64 // weight before, 0 if the tuple was absent
	// Rest reports whether another tuple shares the prefix of the write. The
	// prefix's group was empty before iff Old == 0 && !Rest, and is empty after
	// iff the new weight is 0 && !Rest.
	Rest bool
}

// Set gives tuple the weight w (0 removes it) in the trie with root *root, and
// tells what was there and whether other tuples share its first prefix columns.
// The tuple must have the trie's number of columns. Nothing is written when the
// weight does not change.
//
// Cost: one block on each level of the path is copied on its first write in a
// version, O(log of the id space) blocks of at most a few hundred bytes.
func (a *Arena) Set(root *uint64, tuple []uint64, w int64, prefix int) Change {
	a.op = outcome{}
	*root = a.set(*root, tuple, w, prefix)
	return Change{a.op.old, a.op.sib}
}

// Add is Set with the sum of the weight of tuple and change, in one descent. It
// tells that sum too; where it does not fit in int64 nothing is written and ok is
// false.
func (a *Arena) Add(root *uint64, tuple []uint64, change int64, prefix int) (c Change, now int64, ok bool) {
	a.op = outcome{add: true}
	*root = a.set(*root, tuple, change, prefix)
	if a.op.large {
		return Change{a.op.old, a.op.sib}, a.op.old, false
	}
	return Change{a.op.old, a.op.sib}, a.op.old + change, true
}

// set writes into the subtree word, in which key are the columns that are left.
// p is how many of them belong to the prefix; below 0 nobody asks any more.
func (a *Arena) set(word uint64, key []uint64, w int64, p int) uint64 {
	switch {
	case len(key) == 0:
		a.op.old = int64(word)
		return uint64(a.op.weigh(w))
	case word == 0:
		return a.single(key, w)
	case word&tagMask == tagOne:
		return a.setOne(word, key, w, p)
	case word&tagMask == tagWide:
		return a.setWide(word, key, w, p)
	}
	b := a.space.block(refOf(word))
	if kindOf(b[0]) == kindLeaf {
		return a.setLeaf(word, b, key, w, p)
	}
	return a.setNode(word, b, key, w, p)
}

// single makes the subtree of one tuple.
func (a *Arena) single(key []uint64, w int64) uint64 {
	if w == 0 {
		return 0
	}
	if len(key) == 0 {
		return uint64(w)
	}
	if len(key) == 1 {
		if word, ok := oneWord(key[0], w); ok {
			return word
		}
	}
	r, b := a.newLeaf(len(key), 1, w != 1)
	for c, id := range key {
		b[leafHeader+c] = id
	}
	if w != 1 {
		b[leafHeader+len(key)] = uint64(w)
	}
	return blockWord(r)
}

// newLeaf allocates a leaf for n tuples with its header; the caller fills it.
func (a *Arena) newLeaf(r, n int, withWeights bool) (ref, []uint64) {
	capacity := leafCap(n, r)
	t, b := a.alloc(leafWords(r, capacity, withWeights))
	b[0] = header(a.version, kindLeaf, n, capacity)
	if withWeights {
		b[0] |= weightedBit
	}
	return t, b
}

func (a *Arena) setOne(word uint64, key []uint64, w int64, p int) uint64 {
	id, weight := oneID(word), oneWeightOf(word)
	if id == key[0] {
		a.op.old = weight
		if w = a.op.weigh(w); w == weight {
			return word
		}
		return a.single(key, w)
	}
	a.op.sib = a.op.sib || p == 0
	if w == 0 {
		return word
	}
	r, b := a.newLeaf(1, 2, weight != 1 || w != 1)
	first, second, wf, ws := id, key[0], weight, w
	if first > second {
		first, second, wf, ws = second, first, ws, wf
	}
	b[1], b[2] = first, second
	if weighted(b[0]) {
		b[3], b[4] = uint64(wf), uint64(ws)
	}
	return blockWord(r)
}

// leafFind returns the position of key in a leaf, or where it would stand.
func leafFind(b []uint64, key []uint64) (pos int, found bool) {
	h := b[0]
	lo, hi, stride := 0, countOf(h), capOf(h)
	for c, id := range key {
		col := b[leafHeader+c*stride:]
		lo = lowerBound(col, lo, hi, id)
		if lo == hi || col[lo] != id {
			return lo, false
		}
		if c < len(key)-1 {
			hi = upperBound(col, lo, hi, id)
		}
	}
	return lo, true
}

// lowerBound is the first position in col[lo:hi] that is not below id.
func lowerBound(col []uint64, lo, hi int, id uint64) int {
	for hi-lo > 8 {
		m := int(uint(lo+hi) >> 1)
		if col[m] < id {
			lo = m + 1
		} else {
			hi = m
		}
	}
	for lo < hi && col[lo] < id {
		lo++
	}
	return lo
}

// upperBound is the end of the run of id that starts at lo.
func upperBound(col []uint64, lo, hi int, id uint64) int {
	for lo < hi && col[lo] == id {
		lo++
	}
	return lo
}

// samePrefix reports whether row i of a leaf starts with the first p columns of
// key.
func samePrefix(b []uint64, stride, i int, key []uint64, p int) bool {
	for c := range p {
		if b[leafHeader+c*stride+i] != key[c] {
			return false
		}
	}
	return true
}

// leafSibling reports whether a row other than the one at pos (if found) shares
// the first p columns of key.
func leafSibling(b []uint64, pos int, found bool, key []uint64, p int) bool {
	n, stride := countOf(b[0]), capOf(b[0])
	next := pos
	if found {
		next++
	}
	if p == 0 {
		return pos > 0 || next < n
	}
	return pos > 0 && samePrefix(b, stride, pos-1, key, p) || next < n && samePrefix(b, stride, next, key, p)
}

func (a *Arena) setLeaf(word uint64, b []uint64, key []uint64, w int64, p int) uint64 {
	pos, found := leafFind(b, key)
	if p >= 0 && !a.op.sib {
		a.op.sib = leafSibling(b, pos, found, key, p)
	}
	if !found {
		if w == 0 {
			return word
		}
		return a.leafInsert(word, b, key, w, pos)
	}
	h := b[0]
	old := int64(1)
	at := leafHeader + len(key)*capOf(h) + pos
	if weighted(h) {
		old = int64(b[at])
	}
	a.op.old = old
	w = a.op.weigh(w)
	switch {
	case w == old:
		return word
	case w == 0:
		return a.leafRemove(word, b, len(key), pos)
	case !weighted(h):
		return a.leafWeigh(word, b, len(key), pos, w)
	}
	r, d := a.own(refOf(word), leafWords(len(key), capOf(h), true))
	d[at] = uint64(w)
	return blockWord(r)
}

// leafInsert puts a new tuple at pos.
func (a *Arena) leafInsert(word uint64, b []uint64, key []uint64, w int64, pos int) uint64 {
	h := b[0]
	n, stride, r := countOf(h), capOf(h), len(key)
	withWeights := weighted(h)
	if n == leafMax(r) || n >= leafMax(r)/2 && dense(b, key[0]) {
		return a.burst(word, b, key, w, pos)
	}
	if n < stride && versionOf(h) == a.version && (withWeights || w == 1) {
		for c, id := range key {
			col := b[leafHeader+c*stride : leafHeader+c*stride+n+1]
			copy(col[pos+1:], col[pos:n])
			col[pos] = id
		}
		if withWeights {
			col := b[leafHeader+r*stride : leafHeader+r*stride+n+1]
			copy(col[pos+1:], col[pos:n])
			col[pos] = uint64(w)
		}
		b[0] = withCount(h, n+1)
		return word
	}
	t, d := a.newLeaf(r, n+1, withWeights || w != 1)
	to := capOf(d[0])
	for c, id := range key {
		insertColumn(d[leafHeader+c*to:], b[leafHeader+c*stride:], n, pos, id)
	}
	switch {
	case withWeights:
		insertColumn(d[leafHeader+r*to:], b[leafHeader+r*stride:], n, pos, uint64(w))
	case w != 1:
		col := d[leafHeader+r*to : leafHeader+r*to+n+1]
		for i := range col {
			col[i] = 1
		}
		col[pos] = uint64(w)
	}
	a.release(refOf(word), h)
	return blockWord(t)
}

// dense reports whether the tuples of a leaf, and one more that starts with id,
// differ in the last digit of their first column and nearly all differ there: a
// node then takes half the space, since its children need not repeat that
// column, and finds a tuple without a search.
func dense(b []uint64, id uint64) bool {
	n := countOf(b[0])
	col := b[leafHeader : leafHeader+n]
	if (col[0]^id|col[n-1]^id)>>digitBits != 0 {
		return false
	}
	distinct := 1
	for i := 1; i < n; i++ {
		if col[i] != col[i-1] {
			distinct++
		}
	}
	return 4*distinct >= 3*n
}

// denseRows is dense for rows that are about to be built.
func denseRows(rows []uint64, stride, c int) bool {
	n := len(rows) / stride
	if (rows[c]^rows[len(rows)-stride+c])>>digitBits != 0 {
		return false
	}
	distinct := 1
	for i := stride + c; i < len(rows); i += stride {
		if rows[i] != rows[i-stride] {
			distinct++
		}
	}
	return 4*distinct >= 3*n
}

// insertColumn copies n words from src to dst with id put in at pos.
func insertColumn(dst, src []uint64, n, pos int, id uint64) {
	copy(dst[:pos], src[:pos])
	dst[pos] = id
	copy(dst[pos+1:n+1], src[pos:n])
}

// leafRemove takes the tuple at pos out of a leaf over r columns.
func (a *Arena) leafRemove(word uint64, b []uint64, r, pos int) uint64 {
	h := b[0]
	n, stride := countOf(h)-1, capOf(h)
	withWeights := weighted(h)
	if n == 0 {
		a.release(refOf(word), h)
		return 0
	}
	if n == 1 && r == 1 {
		weight := int64(1)
		if withWeights {
			weight = int64(b[leafHeader+stride+1-pos])
		}
		if one, ok := oneWord(b[leafHeader+1-pos], weight); ok {
			a.release(refOf(word), h)
			return one
		}
	}
	cols := r
	if withWeights {
		cols++
	}
	if versionOf(h) == a.version && 2*n > stride {
		for c := range cols {
			col := b[leafHeader+c*stride : leafHeader+c*stride+n+1]
			copy(col[pos:], col[pos+1:])
		}
		b[0] = withCount(h, n)
		return word
	}
	t, d := a.newLeaf(r, n, withWeights)
	to := capOf(d[0])
	for c := range cols {
		dst, src := d[leafHeader+c*to:], b[leafHeader+c*stride:]
		copy(dst[:pos], src[:pos])
		copy(dst[pos:n], src[pos+1:n+1])
	}
	a.release(refOf(word), h)
	return blockWord(t)
}

// leafWeigh turns a leaf of weights 1 into one with a weight column, in which
// the tuple at pos weighs w.
func (a *Arena) leafWeigh(word uint64, b []uint64, r, pos int, w int64) uint64 {
	h := b[0]
	n, stride := countOf(h), capOf(h)
	t, d := a.newLeaf(r, n, true)
	to := capOf(d[0])
	for c := range r {
		copy(d[leafHeader+c*to:leafHeader+c*to+n], b[leafHeader+c*stride:])
	}
	col := d[leafHeader+r*to : leafHeader+r*to+n]
	for i := range col {
		col[i] = 1
	}
	col[pos] = uint64(w)
	a.release(refOf(word), h)
	return blockWord(t)
}

// burst turns a full leaf and one more tuple into a node.
func (a *Arena) burst(word uint64, b []uint64, key []uint64, w int64, pos int) uint64 {
	r := len(key)
	a.rows = appendLeafRows(a.rows[:0], b, r, 0, pos)
	a.rows = append(append(a.rows, key...), uint64(w))
	a.rows = appendLeafRows(a.rows, b, r, pos, countOf(b[0]))
	a.release(refOf(word), b[0])
	return a.build(a.rows, r+1, 0)
}

// appendLeafRows appends rows lo..hi of a leaf over r columns, each as its
// columns and its weight.
func appendLeafRows(dst []uint64, b []uint64, r, lo, hi int) []uint64 {
	h := b[0]
	stride := capOf(h)
	for i := lo; i < hi; i++ {
		for c := range r {
			dst = append(dst, b[leafHeader+c*stride+i])
		}
		if weighted(h) {
			dst = append(dst, b[leafHeader+r*stride+i])
		} else {
			dst = append(dst, 1)
		}
	}
	return dst
}

// Build makes a trie from rows, each of k columns and a weight, which must
// ascend strictly, and returns its root. Cost is linear.
func (a *Arena) Build(rows []uint64, k int) uint64 { return a.build(rows, k+1, 0) }

// build makes the subtree of rows of the given stride (columns and weight) over
// the columns from c on.
func (a *Arena) build(rows []uint64, stride, c int) uint64 {
	n, r := len(rows)/stride, stride-1-c
	switch {
	case n == 0:
		return 0
	case r == 0:
		return rows[stride-1]
	case n == 1:
		return a.single(rows[c:stride-1], int64(rows[stride-1]))
	case n <= leafMax(r)/2, n <= leafMax(r) && !denseRows(rows, stride, c):
		return a.buildLeaf(rows, stride, c)
	}
	first, last := rows[c], rows[len(rows)-stride+c]
	shift := topShift(first ^ last)
	type part struct{ lo, hi int }
	var (
		parts  [fanout]part
		bitmap uint64
	)
	for i := 0; i < len(rows); i += stride {
		d := digit(rows[c+i], shift)
		if bitmap&(1<<d) == 0 {
			bitmap |= 1 << d
			parts[d].lo = i
		}
		parts[d].hi = i + stride
	}
	below := c
	if shift == 0 {
		below++
	}
	t, b := a.newNode(bits.OnesCount64(bitmap), bitmap, shift, above(first, shift))
	for m := bitmap; m != 0; m &= m - 1 {
		d := bits.TrailingZeros64(m)
		// The block's slab never moves, so b stays right while children are
		// allocated.
		b[childAt(b, uint(d))] = a.build(rows[parts[d].lo:parts[d].hi], stride, below)
	}
	return nodeWord(t, b)
}

// topShift is the shift of the digit that holds the highest set bit of x.
func topShift(x uint64) uint {
	if x == 0 {
		return 0
	}
	return uint(bits.Len64(x)-1) / digitBits * digitBits
}

func (a *Arena) buildLeaf(rows []uint64, stride, c int) uint64 {
	n, r := len(rows)/stride, stride-1-c
	withWeights := false
	for i := stride - 1; i < len(rows); i += stride {
		if rows[i] != 1 {
			withWeights = true
			break
		}
	}
	t, b := a.newLeaf(r, n, withWeights)
	to := capOf(b[0])
	for i := range n {
		row := rows[i*stride:]
		for j := range r {
			b[leafHeader+j*to+i] = row[c+j]
		}
		if withWeights {
			b[leafHeader+r*to+i] = row[stride-1]
		}
	}
	return blockWord(t)
}

// newNode allocates a node for n children with its header, wide if they are
// many; the caller fills in the children.
func (a *Arena) newNode(n int, bitmap uint64, shift uint, prefix uint64) (ref, []uint64) {
	places, room := n, 0
	if n > wideMin {
		places, room = fanout, fanout
	}
	t, b := a.alloc(nodeHeader + places)
	b[0] = header(a.version, kindNode, n, room) | uint64(shift)<<nodeShift
	b[1] = bitmap
	b[2] = prefix
	if room > 0 {
		clear(b[nodeHeader : nodeHeader+fanout])
	}
	return t, b
}

// nodeWords is the number of words of a node that are in use.
func nodeWords(h uint64) int {
	if wide(h) {
		return nodeHeader + fanout
	}
	return nodeHeader + countOf(h)
}

// setWide is setNode for a wide node, which need not be looked into to find the
// child.
func (a *Arena) setWide(word uint64, key []uint64, w int64, p int) uint64 {
	shift := uint(word >> wideShift)
	b := a.space.block(refOf(word))
	at := nodeHeader + digit(key[0], shift)
	child := b[at]
	if child == 0 || above(key[0], shift) != b[2] {
		return a.setNode(word, b, key, w, p)
	}
	rest := key
	if shift == 0 {
		rest = key[1:]
	}
	if p >= 0 {
		p = a.sibling(bitmapOf(b), shift, p)
	}
	next := a.set(child, rest, w, p)
	switch next {
	case child:
		return word
	case 0:
		return a.nodeRemove(word, len(key), digit(key[0], shift))
	}
	r, o := a.own(refOf(word), nodeHeader+fanout)
	o[at] = next
	return wideWord(r, shift)
}

// sibling notes whether a node with bitmap m tells that there are other tuples
// with the prefix, p columns of which are left, and returns what is left below.
func (a *Arena) sibling(m uint64, shift uint, p int) int {
	switch {
	case p == 0 && m&(m-1) != 0:
		a.op.sib = true
		return -1
	case p > 0 && shift == 0:
		return p - 1
	}
	return p
}

func (a *Arena) setNode(word uint64, b []uint64, key []uint64, w int64, p int) uint64 {
	shift := shiftOf(b)
	if above(key[0], shift) != b[2] {
		a.op.sib = a.op.sib || p == 0
		if w == 0 {
			return word
		}
		return a.fork(word, b, key, w)
	}
	bitmap, d := bitmapOf(b), digit(key[0], shift)
	rest := key
	if shift == 0 {
		rest = key[1:]
	}
	if bitmap&(1<<d) == 0 {
		a.op.sib = a.op.sib || p == 0
		if w == 0 {
			return word
		}
		return a.nodeInsert(word, a.single(rest, w), d)
	}
	p = a.sibling(bitmap, shift, p)
	at := childAt(b, d)
	child := b[at]
	next := a.set(child, rest, w, p)
	switch next {
	case child:
		return word
	case 0:
		return a.nodeRemove(word, len(key), d)
	}
	r, o := a.own(refOf(word), nodeWords(b[0]))
	o[at] = next
	return nodeWord(r, o)
}

// fork puts a node above the node word, whose path does not lead to key.
func (a *Arena) fork(word uint64, b []uint64, key []uint64, w int64) uint64 {
	base := b[2] << (shiftOf(b) + digitBits)
	shift := topShift((base ^ key[0]) >> (shiftOf(b) + digitBits) << (shiftOf(b) + digitBits))
	leaf := a.single(key, w)
	dOld, dNew := digit(base, shift), digit(key[0], shift)
	r, n := a.newNode(2, 1<<dOld|1<<dNew, shift, above(key[0], shift))
	n[childAt(n, dOld)], n[childAt(n, dNew)] = word, leaf
	return nodeWord(r, n)
}

// nodeInsert adds child at digit d, where there is none.
func (a *Arena) nodeInsert(word uint64, child uint64, d uint) uint64 {
	t := refOf(word)
	b := a.space.block(t)
	h := b[0]
	n := countOf(h)
	switch {
	case wide(h):
		r, o := a.own(t, nodeWords(h))
		o[0] = withCount(o[0], n+1)
		o[1] |= 1 << d
		o[nodeHeader+d] = child
		return nodeWord(r, o)
	case versionOf(h) == a.version && n < wideMin && uint32(nodeHeader+n) < a.size(t):
		at, end := nodeHeader+slot(bitmapOf(b), d), nodeHeader+n
		copy(b[at+1:end+1], b[at:end])
		b[at] = child
		b[0] = withCount(h, n+1)
		b[1] |= 1 << d
		return word
	}
	r, o := a.newNode(n+1, bitmapOf(b)|1<<d, shiftOf(b), b[2])
	if wide(o[0]) {
		spread(o, b)
		o[nodeHeader+d] = child
	} else {
		insertColumn(o[nodeHeader:], b[nodeHeader:], n, slot(bitmapOf(b), d), child)
	}
	a.release(t, h)
	return nodeWord(r, o)
}

// spread copies the children of a packed node to their places in a wide one.
func spread(to, from []uint64) {
	at := nodeHeader
	for m := bitmapOf(from); m != 0; m &= m - 1 {
		to[nodeHeader+bits.TrailingZeros64(m)] = from[at]
		at++
	}
}

// removeChild copies the children of a node to a packed one with bitmap m, which
// lacks the one at digit d.
func removeChild(to, from []uint64, m uint64, d uint) {
	if wide(from[0]) {
		at := nodeHeader
		for ; m != 0; m &= m - 1 {
			to[at] = from[nodeHeader+bits.TrailingZeros64(m)]
			at++
		}
		return
	}
	at, end := nodeHeader+slot(m, d), nodeHeader+countOf(to[0])
	copy(to[nodeHeader:at], from[nodeHeader:at])
	copy(to[at:end], from[at+1:end+1])
}

// nodeRemove takes the child at digit d away, which has become empty, from a
// node over r columns. A node left with one child, or with few tuples, gives
// way to something smaller.
func (a *Arena) nodeRemove(word uint64, r int, d uint) uint64 {
	t := refOf(word)
	b := a.space.block(t)
	h := b[0]
	n, shift := countOf(h)-1, shiftOf(b)
	bitmap := bitmapOf(b) &^ (1 << d)
	switch {
	case n == 0:
		a.release(t, h)
		return 0
	case n == 1 && shift > 0:
		only := b[childAt(b, uint(bits.TrailingZeros64(bitmap)))]
		a.release(t, h)
		return only
	}
	if n <= leafMax(r)/4 {
		if small, ok := a.collapse(b, r, d); ok {
			a.release(t, h)
			return small
		}
	}
	switch {
	case wide(h) && n > wideMin/2:
		nr, o := a.own(t, nodeWords(h))
		o[0] = withCount(o[0], n)
		o[1] &^= 1 << d
		o[nodeHeader+d] = 0
		return nodeWord(nr, o)
	case versionOf(h) == a.version && !wide(h):
		at, end := nodeHeader+slot(bitmapOf(b), d), nodeHeader+n
		copy(b[at:end], b[at+1:end+1])
		b[0] = withCount(h, n)
		b[1] &^= 1 << d
		return word
	}
	nr, o := a.newNode(n, bitmap, shift, b[2])
	removeChild(o, b, bitmap, d)
	a.release(t, h)
	return nodeWord(nr, o)
}

// collapse makes one leaf of the children of a node other than the one at digit
// gone, if they are leaves or single tuples and few. It releases the children's
// blocks, not the node's.
func (a *Arena) collapse(b []uint64, r int, gone uint) (uint64, bool) {
	shift, limit := shiftOf(b), leafMax(r)/4
	below := r
	if shift == 0 {
		below--
	}
	total := 0
	rest := bitmapOf(b) &^ (1 << gone)
	for m := rest; m != 0; m &= m - 1 {
		n, ok := a.few(b[childAt(b, uint(bits.TrailingZeros64(m)))], below)
		if total += n; !ok || total > limit {
			return 0, false
		}
	}
	a.rows = a.rows[:0]
	for m := rest; m != 0; m &= m - 1 {
		d := uint(bits.TrailingZeros64(m))
		id := b[2]<<(shift+digitBits) | uint64(d)<<shift
		a.gather(b[childAt(b, d)], below, r, id)
	}
	return a.build(a.rows, r+1, 0), true
}

// few counts the tuples of a subtree that is not a node.
func (a *Arena) few(word uint64, r int) (int, bool) {
	if r == 0 || word&tagMask == tagOne {
		return 1, true
	}
	h := a.space.block(refOf(word))[0]
	return countOf(h), kindOf(h) == kindLeaf
}

// gather appends the rows of a leaf or single tuple over below columns to
// a.rows, as rows over r columns that start with id when below is r-1, and
// releases the leaf.
func (a *Arena) gather(word uint64, below, r int, id uint64) {
	if below == 0 {
		a.rows = append(a.rows, id, word)
		return
	}
	if word&tagMask == tagOne {
		if below < r {
			a.rows = append(a.rows, id)
		}
		a.rows = append(a.rows, oneID(word), uint64(oneWeightOf(word)))
		return
	}
	b := a.space.block(refOf(word))
	for i := range countOf(b[0]) {
		if below < r {
			a.rows = append(a.rows, id)
		}
		a.rows = appendLeafRows(a.rows, b, below, i, i+1)
	}
	a.release(refOf(word), b[0])
}

// Clear releases every block of the trie with root word over k columns. Cost is
// linear in its blocks.
func (a *Arena) Clear(word uint64, k int) {
	if k == 0 || !isBlock(word) {
		return
	}
	t := refOf(word)
	b := a.space.block(t)
	h := b[0]
	if kindOf(h) == kindNode {
		below := k
		if shiftOf(b) == 0 {
			below--
		}
		for _, child := range b[nodeHeader:nodeWords(h)] { // 0 is nothing to clear
			a.Clear(child, below)
		}
	}
	a.release(t, h)
}
