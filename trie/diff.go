package trie

import "math/bits"

// Diff calls fn for every tuple whose weight differs between two tries over k
// columns, in ascending order, with the old and the new weight (0 for absent).
// It stops when fn returns false. tuple is reused between calls.
//
// The two roots may be of different versions of one arena, given by the spaces
// they are read through; both versions must be pinned. Subtrees that are the
// same blocks are skipped, so the cost follows what changed, not the size.
func Diff(oldSpace Space, oldRoot uint64, newSpace Space, newRoot uint64, k int, fn func(tuple []uint64, before, after int64) bool) {
	d := differ{old: oldSpace, new: newSpace, tuple: make([]uint64, k), fn: fn}
	d.diff(oldRoot, newRoot, 0)
}

type differ struct {
	old, new Space
	tuple    []uint64
	fn       func(tuple []uint64, before, after int64) bool
	ended    bool
}

// diff compares two subtrees over the columns from col on.
func (d *differ) diff(x, y uint64, col int) {
	if x == y || d.ended {
		return
	}
	if col == len(d.tuple) {
		d.emit(int64(x), int64(y))
		return
	}
	nx, ny := nodeAt(d.old, x), nodeAt(d.new, y)
	switch {
	case nx == nil || ny == nil:
		d.merge(x, y, col)
	case shiftOf(nx) == shiftOf(ny) && nx[2] == ny[2]:
		d.diffNodes(nx, ny, col)
	case shiftOf(nx) < shiftOf(ny) && covers(ny, nx):
		d.diffInside(ny, nx, y, x, col, false)
	case shiftOf(ny) < shiftOf(nx) && covers(nx, ny):
		d.diffInside(nx, ny, x, y, col, true)
	default:
		d.merge(x, y, col)
	}
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

// step is the column of the children of a node over the columns from col on; it
// notes the id when the child at digit belongs to one id.
func (d *differ) step(node []uint64, digit, col int) int {
	if shiftOf(node) > 0 {
		return col
	}
	d.tuple[col] = node[2]<<digitBits | uint64(digit)
	return col + 1
}

func (d *differ) diffNodes(x, y []uint64, col int) {
	switch {
	case wide(x[0]) && wide(y[0]):
		d.diffWide(x, y, col)
		return
	case !wide(x[0]) && !wide(y[0]) && bitmapOf(x) == bitmapOf(y):
		d.diffPacked(x, y, col)
		return
	}
	mx, my := bitmapOf(x), bitmapOf(y)
	for m := mx | my; m != 0 && !d.ended; m &= m - 1 {
		at := bits.TrailingZeros64(m)
		var cx, cy uint64
		if mx&(1<<at) != 0 {
			cx = x[childAt(x, uint(at))]
		}
		if my&(1<<at) != 0 {
			cy = y[childAt(y, uint(at))]
		}
		if cx != cy {
			d.diff(cx, cy, d.step(x, at, col))
		}
	}
}

// diffWide compares nodes that both have a place for every digit.
func (d *differ) diffWide(x, y []uint64, col int) {
	xs, ys := x[nodeHeader:nodeHeader+fanout], y[nodeHeader:nodeHeader+fanout]
	for at, child := range xs {
		if child == ys[at] {
			continue
		}
		if d.diff(child, ys[at], d.step(x, at, col)); d.ended {
			return
		}
	}
}

// diffPacked compares packed nodes with children at the same digits, which stand
// in the same places: it looks for the digit of those alone that differ.
func (d *differ) diffPacked(x, y []uint64, col int) {
	m, n := bitmapOf(x), countOf(x[0])
	xs, ys := x[nodeHeader:nodeHeader+n], y[nodeHeader:nodeHeader+n]
	for i, child := range xs {
		if child != ys[i] {
			if d.diff(child, ys[i], d.step(x, bits.TrailingZeros64(m), col)); d.ended {
				return
			}
		}
		m &= m - 1
	}
}

// diffInside compares the node high with the node low, which stands where one
// child of high stands. highIsOld tells which of the two is the old one.
func (d *differ) diffInside(high, low []uint64, highWord, lowWord uint64, col int, highIsOld bool) {
	mine := int(digit(low[2]<<(shiftOf(low)+digitBits), shiftOf(high)))
	m := bitmapOf(high) | 1<<mine
	for ; m != 0 && !d.ended; m &= m - 1 {
		at := bits.TrailingZeros64(m)
		var child, other uint64
		if bitmapOf(high)&(1<<at) != 0 {
			child = high[childAt(high, uint(at))]
		}
		if at == mine {
			other = lowWord
		}
		// shiftOf(high) > shiftOf(low) >= 0, so children stay in this column.
		if highIsOld {
			d.diff(child, other, col)
		} else {
			d.diff(other, child, col)
		}
	}
}

// merge walks both subtrees in step.
func (d *differ) merge(x, y uint64, col int) {
	k := len(d.tuple) - col
	var a, b Cursor
	a.Seek(d.old, x, k, nil)
	b.Seek(d.new, y, k, nil)
	okA, okB := a.Next(), b.Next()
	for (okA || okB) && !d.ended {
		order := 0
		switch {
		case !okB:
			order = -1
		case !okA:
			order = 1
		default:
			order = compareCursors(&a, &b, k)
		}
		switch {
		case order < 0:
			a.Columns(d.tuple[col:], 0)
			d.emit(a.Weight(), 0)
			okA = a.Next()
		case order > 0:
			b.Columns(d.tuple[col:], 0)
			d.emit(0, b.Weight())
			okB = b.Next()
		default:
			a.Columns(d.tuple[col:], 0)
			d.emit(a.Weight(), b.Weight())
			okA, okB = a.Next(), b.Next()
		}
	}
}

func (d *differ) emit(before, after int64) {
	if before != after && !d.fn(d.tuple, before, after) {
		d.ended = true
	}
}

func compareCursors(a, b *Cursor, k int) int {
	for i := range k {
		switch x, y := a.Col(i), b.Col(i); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
	}
	return 0
}
