package trie

import "math/bits"

// Diff calls fn for every tuple whose weight differs between two tries over k
// columns, in ascending order, with the old and the new weight (0 for absent).
// It stops when fn returns false. tuple is reused between calls. See
// [Differ.Seek] for the roots and the cost.
func Diff(oldSpace Space, oldRoot uint64, newSpace Space, newRoot uint64, k int, fn func(tuple []uint64, before, after int64) bool) {
	var d Differ
	d.Seek(oldSpace, oldRoot, newSpace, newRoot, k, nil)
	for d.Next() && fn(d.Tuple(), d.Before(), d.After()) {
	}
}

// Differ walks the tuples whose weight differs between two tries, in ascending
// order. It allocates only when a path is deeper than any it has met before, so
// one should be reused. It writes nothing shared, and may be left at any time.
type Differ struct {
	old, new      Space
	tuple         []uint64
	before, after int64
	path          []diffFrame
	warm          uint64 // keeps the loads of pair alive

	// Where one side is no node, both are walked in step: columns from.. of the
	// tuple are those of the cursors from column from-base on.
	merging    bool
	a, b       Cursor
	okA, okB   bool
	from, base int // base is 0 where the cursors walk whole tuples
}

// diffFrame is two nodes on the path, or a node and what stands where one of its
// children stands.
type diffFrame struct {
	x, y  []uint64 // old, new; y is nil in a frame of mode inside
	mode  diffMode
	whole bool   // a child belongs to one id
	swap  bool   // inside: x is of the new trie
	col   int32  // column that the nodes branch on
	mine  int32  // inside: digit at which other stands
	left  uint64 // digits not visited yet, of like nodes only those that differ
	other uint64 // inside: the word that stands at digit mine
}

// diffMode tells how the children of a frame are paired.
type diffMode uint8

const (
	diffWide   diffMode = iota // both nodes have a place for every digit
	diffPacked                 // both are packed, with children at the same digits
	diffMixed                  // any other two nodes of the same place
	diffInside                 // a node that spans more digits than the other side
)

// Seek puts d before the first tuple that starts with prefix and differs between
// two tries over k columns.
//
// The two roots may be of different versions of one arena, given by the spaces
// they are read through; both versions must be pinned, or the newer one under
// construction and its trie not written meanwhile. Subtrees that are the same
// blocks are skipped, so the cost follows what changed, not the size.
func (d *Differ) Seek(oldSpace Space, oldRoot uint64, newSpace Space, newRoot uint64, k int, prefix []uint64) {
	d.old, d.new = oldSpace, newSpace
	d.path, d.merging = d.path[:0], false
	if cap(d.tuple) < k {
		d.tuple = make([]uint64, k)
	}
	d.tuple = d.tuple[:k]
	copy(d.tuple, prefix)
	switch x, y, at := descend(oldSpace, oldRoot, newSpace, newRoot, prefix); {
	case at == same:
	case at == subtrees && len(prefix) < k:
		d.enter(x, y, len(prefix))
	default:
		d.a.Seek(oldSpace, oldRoot, k, prefix)
		d.b.Seek(newSpace, newRoot, k, prefix)
		d.merge(len(prefix), 0)
	}
}

// SamePrefix reports whether it is plain from the blocks that two tries hold the
// same tuples behind prefix: false tells nothing. The cost is that of looking
// prefix up, or less where the tries have a block on the way in common.
func SamePrefix(oldSpace Space, oldRoot uint64, newSpace Space, newRoot uint64, prefix []uint64) bool {
	_, _, at := descend(oldSpace, oldRoot, newSpace, newRoot, prefix)
	return at == same
}

// descent tells where descend has got to.
type descent uint8

const (
	same     descent = iota // both tries hold the same behind the prefix
	subtrees                // behind the prefix is one subtree each, 0 for none
	rows                    // one is a leaf, or a packed tuple, before the prefix ends
)

// descend goes down two tries along prefix until both stand on the same word, or
// neither gets further. It returns where they stand then.
func descend(oldSpace Space, oldRoot uint64, newSpace Space, newRoot uint64, prefix []uint64) (x, y uint64, at descent) {
	x, y = oldRoot, newRoot
	restX, restY := prefix, prefix
	for x != y || len(restX) != len(restY) {
		wordX, nextX := oldSpace.step(x, restX)
		wordY, nextY := newSpace.step(y, restY)
		if wordX == x && wordY == y && len(nextX) == len(restX) && len(nextY) == len(restY) {
			break
		}
		x, y, restX, restY = wordX, wordY, nextX, nextY
	}
	switch {
	case x == y && (x == 0 || len(restX) == len(restY)):
		return x, y, same
	case (x == 0 || len(restX) == 0) && (y == 0 || len(restY) == 0):
		return x, y, subtrees
	}
	return x, y, rows
}

// step goes from a node one digit along prefix. A word that is no node, or has no
// column left to branch on, stays as it is; 0 says that nothing is there.
func (s Space) step(word uint64, prefix []uint64) (uint64, []uint64) {
	if len(prefix) == 0 || !isBlock(word) {
		return word, prefix
	}
	if word&tagMask == tagWide {
		return s.stepWide(word, prefix)
	}
	b := s.block(refOf(word))
	if kindOf(b[0]) == kindLeaf {
		return word, prefix
	}
	shift := shiftOf(b)
	bitmap, d := bitmapOf(b), digit(prefix[0], shift)
	if bitmap&(1<<d) == 0 || above(prefix[0], shift) != b[2] {
		return 0, prefix
	}
	if shift == 0 {
		prefix = prefix[1:]
	}
	return b[nodeHeader+slot(bitmap, d)], prefix
}

// Tuple is the tuple that d stands on, valid until the next move.
func (d *Differ) Tuple() []uint64 { return d.tuple }

// Before is the weight of the tuple in the old trie, 0 if it is not there.
func (d *Differ) Before() int64 { return d.before }

// After is the weight of the tuple in the new trie, 0 if it is not there.
func (d *Differ) After() int64 { return d.after }

// Next moves to the next tuple that differs and reports whether there is one.
func (d *Differ) Next() bool {
	for {
		if d.merging {
			if d.mergeNext() {
				return true
			}
			d.merging = false
		}
		if len(d.path) == 0 {
			return false
		}
		f := &d.path[len(d.path)-1]
		x, y, digit, ok := f.next()
		if !ok {
			d.path = d.path[:len(d.path)-1]
			continue
		}
		col := int(f.col)
		if f.whole {
			d.tuple[col] = f.x[2]<<digitBits | uint64(digit)
			if col++; col == len(d.tuple) {
				d.before, d.after = int64(x), int64(y)
				return true
			}
		}
		d.enter(x, y, col)
	}
}

// enter makes two different subtrees over the columns from col on what comes
// next.
func (d *Differ) enter(x, y uint64, col int) {
	nx, ny := nodeAt(d.old, x), nodeAt(d.new, y)
	switch {
	case nx == nil || ny == nil:
	case shiftOf(nx) == shiftOf(ny) && nx[2] == ny[2]:
		d.path = append(d.path, d.pair(nx, ny, col))
		return
	case shiftOf(nx) < shiftOf(ny) && covers(ny, nx):
		d.path = append(d.path, inside(ny, nx, x, true, col))
		return
	case shiftOf(ny) < shiftOf(nx) && covers(nx, ny):
		d.path = append(d.path, inside(nx, ny, y, false, col))
		return
	}
	k := len(d.tuple) - col
	d.a.Seek(d.old, x, k, nil)
	d.b.Seek(d.new, y, k, nil)
	d.merge(col, col)
}

// nodeAt is the node that word refers to, nil if it is not a node.
func nodeAt(s Space, word uint64) []uint64 {
	if !isBlock(word) {
		return nil
	}
	if b := s.block(refOf(word)); kindOf(b[0]) == kindNode {
		return b
	}
	return nil
}

// covers reports whether the ids below the node low lie below one child of
// high.
func covers(high, low []uint64) bool {
	return above(low[2]<<(shiftOf(low)+digitBits), shiftOf(high)) == high[2]
}

// pair is the frame of two nodes of the same place. It loads the blocks of all
// children that differ, side by side, where the walk would wait for one after the
// other.
func (d *Differ) pair(x, y []uint64, col int) diffFrame {
	f := diffFrame{x: x, y: y, mode: diffMixed, whole: shiftOf(x) == 0, col: int32(col)}
	bitmap := bitmapOf(x) | bitmapOf(y)
	if last := f.whole && col+1 == len(d.tuple); last { // children are weights
		f.left = bitmap
		return f
	}
	switch {
	case wide(x[0]) && wide(y[0]):
		f.mode = diffWide
		xs, ys := x[nodeHeader:nodeHeader+fanout], y[nodeHeader:nodeHeader+fanout]
		for i, word := range xs {
			if word != ys[i] {
				f.left |= 1 << i
				d.warm += loaded(d.old, word) + loaded(d.new, ys[i])
			}
		}
	case !wide(x[0]) && !wide(y[0]) && bitmapOf(x) == bitmapOf(y):
		f.mode = diffPacked
		n := countOf(x[0])
		xs, ys := x[nodeHeader:nodeHeader+n], y[nodeHeader:nodeHeader+n]
		for i, word := range xs {
			if word != ys[i] {
				f.left |= bitmap & -bitmap
				d.warm += loaded(d.old, word) + loaded(d.new, ys[i])
			}
			bitmap &= bitmap - 1
		}
	default:
		f.left = bitmap
	}
	return f
}

// loaded is the first word of the block that word refers to, or word.
func loaded(s Space, word uint64) uint64 {
	if isBlock(word) {
		return s.block(refOf(word))[0]
	}
	return word
}

// inside is the frame of the node high, and of the node low at word, which stands
// where one child of high stands. Children of high stay in its column, because
// low branches on a lower digit of the same one. swap says that high is of the
// new trie.
func inside(high, low []uint64, word uint64, swap bool, col int) diffFrame {
	mine := digit(low[2]<<(shiftOf(low)+digitBits), shiftOf(high))
	return diffFrame{
		x: high, mode: diffInside, swap: swap, col: int32(col),
		mine: int32(mine), other: word, left: bitmapOf(high) | 1<<mine,
	}
}

// next goes to the next digit at which the children differ.
func (f *diffFrame) next() (x, y uint64, digit int, ok bool) {
	if f.mode != diffWide && f.mode != diffPacked {
		return f.nextMixed()
	}
	if f.left == 0 {
		return 0, 0, 0, false
	}
	digit = bits.TrailingZeros64(f.left)
	f.left &= f.left - 1
	at := nodeHeader + digit
	if f.mode == diffPacked {
		at = nodeHeader + slot(bitmapOf(f.x), uint(digit))
	}
	return f.x[at], f.y[at], digit, true
}

// nextMixed is next where the children stand in different places.
func (f *diffFrame) nextMixed() (x, y uint64, digit int, ok bool) {
	for f.left != 0 {
		digit = bits.TrailingZeros64(f.left)
		f.left &= f.left - 1
		x = childOf(f.x, digit)
		switch {
		case f.mode == diffMixed:
			y = childOf(f.y, digit)
		case digit == int(f.mine):
			y = f.other
		default:
			y = 0
		}
		if x != y {
			if f.swap {
				x, y = y, x
			}
			return x, y, digit, true
		}
	}
	return 0, 0, 0, false
}

// childOf is the child of a node at a digit, 0 if there is none.
func childOf(node []uint64, digit int) uint64 {
	if bitmapOf(node)&(1<<digit) == 0 {
		return 0
	}
	return node[childAt(node, uint(digit))]
}

// merge lets both cursors, which have been sought, be walked in step.
func (d *Differ) merge(from, base int) {
	d.merging, d.from, d.base = true, from, base
	d.okA, d.okB = d.a.Next(), d.b.Next()
}

// mergeNext goes to the next tuple of the two cursors that differs.
func (d *Differ) mergeNext() bool {
	for d.okA || d.okB {
		order := 0
		switch {
		case !d.okB:
			order = -1
		case !d.okA:
			order = 1
		default:
			order = d.compare()
		}
		d.before, d.after = 0, 0
		if order <= 0 {
			d.before = d.a.Weight()
			d.a.Columns(d.tuple[d.from:], d.from-d.base)
			d.okA = d.a.Next()
		}
		if order >= 0 {
			d.after = d.b.Weight()
			d.b.Columns(d.tuple[d.from:], d.from-d.base)
			d.okB = d.b.Next()
		}
		if d.before != d.after {
			return true
		}
	}
	return false
}

// compare compares the tuples under the two cursors.
func (d *Differ) compare() int {
	for i := d.from - d.base; i < len(d.tuple)-d.base; i++ {
		switch x, y := d.a.Col(i), d.b.Col(i); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
	}
	return 0
}
