package trie

import (
	"math/bits"

	"github.com/triegs/triegs/mvcc"
)

// Block layouts. Word 0 of every block is its header:
//
//	bits 0..39   version that made the block
//	bits 40..47  n: tuples of a leaf, children of a node
//	bits 48..55  cap: tuples a leaf has room for
//	bits 56..57  kind (0 marks a free block)
//	bit  58      of a leaf: it has a weight column; without it every weight is 1
//	bits 58..63  of a node: shift of its digit
//
// leaf over r columns: r arrays of cap words, then cap weights if weighted.
//
// node: word 1 is a bitmap of the children; word 2 the bits of the column above
// its digit; then the child words: n of them in a packed node, one for each
// digit in a wide one (cap is 64, and absent children are 0).
//
// A child word (and a root) is tagged in its low three bits, see below; below
// the last digit of the last column it is the weight, untagged. The word of a
// wide node has the shift as well, so that the place of the next child is known
// before the node's header has arrived from memory.
const (
	versionBits = 40
	versionMask = 1<<versionBits - 1
	kindLeaf    = uint64(1)
	kindNode    = uint64(2)
	weightedBit = uint64(1) << 58
	nodeShift   = 58

	digitBits  = 6
	fanout     = 1 << digitBits
	nodeHeader = 3
	leafHeader = 1

	tagBits    = 3
	tagMask    = 1<<tagBits - 1
	tagBlock   = uint64(1) // leaf or packed node: reference << 3
	tagOne     = uint64(2) // one tuple of one column: id << 24 | weight << 3
	tagWide    = uint64(3) // wide node: shift << 35 | reference << 3
	wideShift  = tagBits + 32
	wideMin    = 40 // a node of more children is wide; half as many make it packed again
	oneIDMax   = uint64(1)<<40 - 1
	oneWeight  = 21
	oneWtMax   = int64(1)<<oneWeight - 1
	oneIDShift = tagBits + oneWeight
)

// MaxVersion is the largest version of an arena: 5*10^11 epochs. The versions
// above it, which a block header can hold as well, are those of nurseries.
const MaxVersion = mvcc.Version(versionMask >> 1)

// MaxColumns is the largest number of columns of a trie.
const MaxColumns = 255

func versionOf(h uint64) mvcc.Version { return h & versionMask }
func kindOf(h uint64) uint64          { return h >> 56 & 3 }
func countOf(h uint64) int            { return int(h >> 40 & 0xff) }
func capOf(h uint64) int              { return int(h >> 48 & 0xff) }
func weighted(h uint64) bool          { return h&weightedBit != 0 }

func withVersion(h uint64, v mvcc.Version) uint64 { return h&^versionMask | v }
func withCount(h uint64, n int) uint64            { return h&^(0xff<<40) | uint64(n)<<40 }

func header(v mvcc.Version, kind uint64, n, capacity int) uint64 {
	return v | uint64(n)<<40 | uint64(capacity)<<48 | kind<<56
}

func blockWord(r ref) uint64 { return uint64(r)<<tagBits | tagBlock }
func refOf(word uint64) ref  { return ref(word >> tagBits) }

func wideWord(r ref, shift uint) uint64 {
	return uint64(shift)<<wideShift | uint64(r)<<tagBits | tagWide
}

// nodeWord is the word that refers to node b at r.
func nodeWord(r ref, b []uint64) uint64 {
	if wide(b[0]) {
		return wideWord(r, shiftOf(b))
	}
	return blockWord(r)
}

// isBlock reports whether word refers to a block.
func isBlock(word uint64) bool { return word&1 != 0 }

// oneWord packs a single tuple of one column, if it fits.
func oneWord(id uint64, w int64) (uint64, bool) {
	if id > oneIDMax || w > oneWtMax || w < 1 {
		return 0, false
	}
	return id<<oneIDShift | uint64(w)<<tagBits | tagOne, true
}

func oneID(word uint64) uint64      { return word >> oneIDShift }
func oneWeightOf(word uint64) int64 { return int64(word >> tagBits & uint64(oneWtMax)) }

func shiftOf(node []uint64) uint    { return uint(node[0] >> nodeShift) }
func bitmapOf(node []uint64) uint64 { return node[1] }

// above is the part of id over the digit at shift.
func above(id uint64, shift uint) uint64 { return id >> (shift + digitBits) }

func digit(id uint64, shift uint) uint { return uint(id>>shift) & (fanout - 1) }

// wide reports whether a node has a place for every digit.
func wide(h uint64) bool { return capOf(h) == fanout }

// childAt is the position of the child at digit d, which must be there unless
// the node is wide.
func childAt(b []uint64, d uint) int {
	if wide(b[0]) {
		return nodeHeader + int(d)
	}
	return nodeHeader + slot(bitmapOf(b), d)
}

// slot is the position of digit d among the children of a node with bitmap m.
func slot(m uint64, d uint) int { return bits.OnesCount64(m & (1<<d - 1)) }

// leafMax is the largest number of tuples of a leaf over r columns: about a
// few cache lines a column, less for wide tuples so that blocks stay small.
func leafMax(r int) int {
	switch {
	case r <= 4:
		return 32
	case r <= 12:
		return 16
	case r <= 60:
		return 8
	default:
		return 6
	}
}

// leafCap rounds up the capacity of a leaf of n tuples: tight when small,
// because most groups never grow.
func leafCap(n, r int) int {
	switch {
	case n <= 4:
		return n
	case n <= 8:
		n = (n + 1) &^ 1
	default:
		n = (n + 3) &^ 3
	}
	return min(n, leafMax(r))
}

func leafWords(r, capacity int, withWeights bool) int {
	if withWeights {
		r++
	}
	return leafHeader + r*capacity
}
