package hypergraph

import "math/bits"

// bitset is a set of small integers. All sets that are compared have the same
// length.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) remove(i int)   { b[i/64] &^= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bitset) subsetOf(c bitset) bool {
	for i, w := range b {
		if w&^c[i] != 0 {
			return false
		}
	}
	return true
}

func (b bitset) equal(c bitset) bool {
	for i, w := range b {
		if w != c[i] {
			return false
		}
	}
	return true
}

// firstNotIn returns the least member of b that is not in c, or -1.
func (b bitset) firstNotIn(c bitset) int {
	for i, w := range b {
		if w &^= c[i]; w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// firstCommon returns the least member of both b and c, or -1.
func (b bitset) firstCommon(c bitset) int {
	for i, w := range b {
		if w &= c[i]; w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}
