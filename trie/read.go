package trie

import "math/bits"

// Get returns the weight of tuple in the trie with the given root, 0 if it is
// absent. Cost: one block for each digit that tells tuples apart.
func (s Space) Get(root uint64, tuple []uint64) int64 {
	word := root
	for {
		if len(tuple) == 0 || word == 0 {
			return int64(word)
		}
		if word&tagMask == tagWide {
			if word, tuple = s.stepWide(word, tuple); word == 0 {
				return 0
			}
			continue
		}
		if word&tagMask == tagOne {
			if oneID(word) != tuple[0] {
				return 0
			}
			return oneWeightOf(word)
		}
		b := s.block(refOf(word))
		h := b[0]
		if kindOf(h) == kindLeaf {
			pos, found := leafFind(b, tuple)
			switch {
			case !found:
				return 0
			case !weighted(h):
				return 1
			}
			return int64(b[leafHeader+len(tuple)*capOf(h)+pos])
		}
		shift := shiftOf(b)
		bitmap, d := bitmapOf(b), digit(tuple[0], shift)
		if bitmap&(1<<d) == 0 || above(tuple[0], shift) != b[2] {
			return 0
		}
		word = b[nodeHeader+slot(bitmap, d)]
		if shift == 0 {
			tuple = tuple[1:]
		}
	}
}

// stepWide goes from a wide node to the child on the way to tuple, 0 if there is
// none, and takes off the column if it is done.
func (s Space) stepWide(word uint64, tuple []uint64) (uint64, []uint64) {
	shift := uint(word >> wideShift)
	b := s.block(refOf(word))
	child := b[nodeHeader+digit(tuple[0], shift)]
	if above(tuple[0], shift) != b[2] {
		return 0, tuple
	}
	if shift == 0 {
		tuple = tuple[1:]
	}
	return child, tuple
}

// HasPrefix reports whether any tuple starts with prefix. The prefix may be
// empty and must not be longer than the trie has columns.
func (s Space) HasPrefix(root uint64, prefix []uint64) bool {
	word := root
	for {
		if len(prefix) == 0 || word == 0 {
			return word != 0
		}
		if word&tagMask == tagWide {
			word, prefix = s.stepWide(word, prefix)
			continue
		}
		if word&tagMask == tagOne {
			return oneID(word) == prefix[0]
		}
		b := s.block(refOf(word))
		if kindOf(b[0]) == kindLeaf {
			_, found := leafFind(b, prefix)
			return found
		}
		shift := shiftOf(b)
		bitmap, d := bitmapOf(b), digit(prefix[0], shift)
		if bitmap&(1<<d) == 0 || above(prefix[0], shift) != b[2] {
			return false
		}
		word = b[nodeHeader+slot(bitmap, d)]
		if shift == 0 {
			prefix = prefix[1:]
		}
	}
}

// frame is a node on the path of a cursor.
type frame struct {
	node   []uint64
	bitmap uint64 // children not visited yet
	next   int32  // position of the next one, in a packed node
	col    int32  // column that the node branches on
	wide   bool
	whole  bool // a child belongs to one id: the digit is the column's last
}

// Cursor walks the tuples of a trie that start with a prefix, in ascending
// order. It allocates only when a path is deeper than any it has met before,
// so a cursor should be reused. A cursor writes nothing shared.
//
// The tuple under the cursor is read column by column with Col.
type Cursor struct {
	space Space
	k     int
	path  []frame
	ids   []uint64 // columns fixed by the prefix or by the path

	// The current run: rows pos..end of a leaf (or of one packed tuple) whose
	// first column is column from.
	leaf     []uint64
	one      [3]uint64
	pos, end int
	stride   int
	from     int
	weights  int // offset of the weight column, 0 when every weight is 1

	// Where the group of the prefix begins, for Rewind: a subtree, or rows
	// first..last of one leaf when start is 0.
	start       uint64
	startCol    int
	first, last int
}

// Seek puts the cursor before the first tuple that starts with prefix, in the
// trie with the given root over k columns. The prefix is copied.
func (c *Cursor) Seek(space Space, root uint64, k int, prefix []uint64) {
	c.space, c.k = space, k
	c.path = c.path[:0]
	if cap(c.ids) < k {
		c.ids = make([]uint64, k)
	}
	c.ids = c.ids[:k]
	copy(c.ids, prefix)
	c.pos, c.end, c.weights = 0, 0, 0
	c.start, c.first, c.last = 0, 0, 0
	word, col := root, 0
	for {
		if col == len(prefix) || word == 0 {
			if word != 0 {
				c.open(word, col)
			}
			return
		}
		if word&tagMask == tagWide {
			rest := prefix[col:]
			word, rest = c.space.stepWide(word, rest)
			col = len(prefix) - len(rest)
			continue
		}
		if word&tagMask == tagOne {
			if oneID(word) == prefix[col] {
				c.open(word, col)
			}
			return
		}
		b := c.space.block(refOf(word))
		if kindOf(b[0]) == kindLeaf {
			c.seekLeaf(b, col, prefix[col:])
			return
		}
		shift := shiftOf(b)
		bitmap, d := bitmapOf(b), digit(prefix[col], shift)
		if bitmap&(1<<d) == 0 || above(prefix[col], shift) != b[2] {
			return
		}
		word = b[nodeHeader+slot(bitmap, d)]
		if shift == 0 {
			col++
		}
	}
}

// open makes the subtree word, over the columns from col on, the group of the
// prefix.
func (c *Cursor) open(word uint64, col int) {
	c.enter(word, col)
	if len(c.path) == 0 { // one run is all of it
		c.first, c.last = c.pos+1, c.end
		return
	}
	c.start, c.startCol = word, col
}

// seekLeaf sets the run to the rows of a leaf that start with rest.
func (c *Cursor) seekLeaf(b []uint64, col int, rest []uint64) {
	h := b[0]
	stride := capOf(h)
	lo, hi := 0, countOf(h)
	for i, id := range rest {
		column := b[leafHeader+i*stride:]
		lo = lowerBound(column, lo, hi, id)
		hi = upperBound(column, lo, hi, id)
		if lo == hi {
			return
		}
	}
	c.setRun(b, col, lo, hi)
	c.first, c.last = lo, hi
}

// Rewind puts the cursor before the first tuple of its prefix again, without
// looking for it.
func (c *Cursor) Rewind() {
	if c.start == 0 {
		c.pos, c.end = c.first-1, c.last
		return
	}
	c.path = c.path[:0]
	c.enter(c.start, c.startCol)
}

func (c *Cursor) setRun(b []uint64, col, lo, hi int) {
	h := b[0]
	c.leaf, c.from, c.stride = b, col, capOf(h)
	c.pos, c.end = lo-1, hi
	c.weights = 0
	if weighted(h) {
		c.weights = leafHeader + (c.k-col)*c.stride
	}
}

// enter makes the subtree word, over the columns from col on, what comes next.
func (c *Cursor) enter(word uint64, col int) {
	switch {
	case col == c.k:
		c.setWeight(word)
	case word&tagMask == tagOne:
		c.one[1], c.one[2] = oneID(word), uint64(oneWeightOf(word))
		c.leaf, c.from, c.stride, c.weights = c.one[:], col, 1, 0
		if c.one[2] != 1 {
			c.weights = 2
		}
		c.pos, c.end = -1, 1
	default:
		b := c.space.block(refOf(word))
		if kindOf(b[0]) == kindLeaf {
			c.setRun(b, col, 0, countOf(b[0]))
			return
		}
		c.path = append(c.path, frame{
			node: b, bitmap: bitmapOf(b), next: nodeHeader, col: int32(col),
			wide: wide(b[0]), whole: shiftOf(b) == 0,
		})
		c.pos, c.end = 0, 0
	}
}

// setWeight makes the tuple on the path, which weighs word, the next run.
func (c *Cursor) setWeight(word uint64) {
	c.one[0] = word
	c.leaf, c.from, c.stride, c.weights = c.one[:], c.k, 1, zeroWeightColumn
	c.pos, c.end = -1, 1
}

// zeroWeightColumn says that the weight stands in word 0 of the run.
const zeroWeightColumn = -1

// Next moves to the next tuple and reports whether there is one. Cost is
// constant: blocks hold no empty places, and a path has a bounded depth.
func (c *Cursor) Next() bool {
	c.pos++
	if c.pos < c.end {
		return true
	}
	return c.advance()
}

// advance finds the next run and moves to its first row.
func (c *Cursor) advance() bool {
	for len(c.path) > 0 {
		f := &c.path[len(c.path)-1]
		if f.bitmap == 0 {
			c.path = c.path[:len(c.path)-1]
			continue
		}
		d := bits.TrailingZeros64(f.bitmap)
		at := int(f.next)
		if f.wide {
			at = nodeHeader + d
		}
		word := f.node[at]
		f.bitmap &= f.bitmap - 1
		f.next++
		col := int(f.col)
		if f.whole {
			c.ids[col] = f.node[2]<<digitBits | uint64(d)
			if col++; col == c.k {
				c.setWeight(word)
				c.pos = 0
				return true
			}
		}
		c.enter(word, col)
		if c.pos++; c.pos < c.end {
			return true
		}
	}
	c.pos, c.end = 0, 0
	return false
}

// Col is column i of the tuple under the cursor.
func (c *Cursor) Col(i int) uint64 {
	if i < c.from {
		return c.ids[i]
	}
	return c.leaf[leafHeader+(i-c.from)*c.stride+c.pos]
}

// Weight is the weight of the tuple under the cursor.
func (c *Cursor) Weight() int64 {
	switch c.weights {
	case 0:
		return 1
	case zeroWeightColumn:
		return int64(c.leaf[0])
	}
	return int64(c.leaf[c.weights+c.pos])
}

// Columns copies columns from, from+1, ... of the tuple under the cursor into
// dst.
func (c *Cursor) Columns(dst []uint64, from int) {
	for i := range dst {
		dst[i] = c.Col(from + i)
	}
}

// Run returns the rest of the current run after the tuple under the cursor,
// that tuple included, if its only free column is the last one: the ids of that
// column and their weights (nil when every weight is 1). The caller may then
// call Skip to go on behind it. It lets inner loops walk a slice.
func (c *Cursor) Run() (ids, weights []uint64) {
	if c.from != c.k-1 {
		return nil, nil
	}
	ids = c.leaf[leafHeader+c.pos : leafHeader+c.end]
	if c.weights > 0 {
		weights = c.leaf[c.weights+c.pos : c.weights+c.end]
	}
	return ids, weights
}

// Skip moves to the last tuple of the current run.
func (c *Cursor) Skip() { c.pos = c.end - 1 }

// Warm loads the blocks on the way to tuple and returns a word of the last one.
// It changes nothing and tells nothing: called for many tuples in a row before
// they are written, it lets the processor fetch their blocks side by side,
// where the writes would wait for one after the other.
func (s Space) Warm(root uint64, tuple []uint64) uint64 {
	word := root
	for len(tuple) > 0 && isBlock(word) {
		if word&tagMask == tagWide {
			word, tuple = s.stepWide(word, tuple)
			continue
		}
		b := s.block(refOf(word))
		if kindOf(b[0]) == kindLeaf {
			// The middle of a leaf of several lines is where a search begins.
			return b[countOf(b[0])>>1]
		}
		shift := shiftOf(b)
		bitmap, d := bitmapOf(b), digit(tuple[0], shift)
		if bitmap&(1<<d) == 0 {
			return b[0]
		}
		word = b[nodeHeader+slot(bitmap, d)]
		if shift == 0 {
			tuple = tuple[1:]
		}
	}
	return word
}

// WarmPrefix is Warm for a prefix of the tuples of a trie over k columns. It loads the
// first block of the group behind it as well.
func (s Space) WarmPrefix(root uint64, k int, prefix []uint64) uint64 {
	if len(prefix) == k {
		return s.Warm(root, prefix)
	}
	word := root
	for len(prefix) > 0 && isBlock(word) {
		if word&tagMask == tagWide {
			word, prefix = s.stepWide(word, prefix)
			continue
		}
		b := s.block(refOf(word))
		if kindOf(b[0]) == kindLeaf {
			return b[leafHeader+countOf(b[0])>>1]
		}
		shift := shiftOf(b)
		bitmap, d := bitmapOf(b), digit(prefix[0], shift)
		if bitmap&(1<<d) == 0 {
			return b[0]
		}
		word = b[nodeHeader+slot(bitmap, d)]
		if shift == 0 {
			prefix = prefix[1:]
		}
	}
	return loaded(s, word)
}

// Alone reports whether the current run is all there is below the prefix.
func (c *Cursor) Alone() bool { return c.start == 0 && c.pos == c.first }

// Count returns the number of tuples of a trie over k columns. Cost is linear in
// its blocks, which is well below that of reading the tuples.
func (s Space) Count(root uint64, k int) int {
	switch {
	case root == 0:
		return 0
	case k == 0 || !isBlock(root):
		return 1
	}
	b := s.block(refOf(root))
	n := countOf(b[0])
	if kindOf(b[0]) == kindLeaf {
		return n
	}
	if shiftOf(b) == 0 {
		if k--; k == 0 {
			return n
		}
	}
	places := n
	if wide(b[0]) {
		places = fanout
	}
	total := 0
	for _, child := range b[nodeHeader : nodeHeader+places] {
		total += s.Count(child, k)
	}
	return total
}
