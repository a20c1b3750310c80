package dict

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// An entry is 32 bytes, half a cache line: the stored form of the term, then its
// two content hashes, as little-endian words. A form of up to 15 bytes stands in
// the entry itself behind a byte with its length, padded with zeros. For a longer
// one the first word is the mark 0xff, 27 bits of length and the upper 29 bits of
// the hash, so that another form is rarely compared byte by byte, and the second
// the slab and the offset of the bytes. Most terms are short, and cost no second
// look into memory this way.
const (
	entryBytes = 32
	shortMax   = 15
	longMark   = 0xff

	lengthShift = 8
	lengthMask  = 1<<27 - 1 // more than TermBytesMax and its framing
	hashAt      = 35
	hashCut     = 32 - (64 - hashAt) // lower bits of the hash that are not in the entry
)

type (
	entryPage [pageTerms * entryBytes]byte
	entry     [entryBytes]byte
)

func (p *entryPage) at(i uint64) *entry { return (*entry)(p[i*entryBytes:]) }

// word returns one of the four words of an entry.
func (e *entry) word(i int) uint64 { return binary.LittleEndian.Uint64(e[8*i:]) }

func (e *entry) set(i int, w uint64) { binary.LittleEndian.PutUint64(e[8*i:], w) }

// held reports whether the entry is that of a term: no form is empty.
func (e *entry) held() bool { return e[0] != 0 }

// short returns the form in the entry itself; ok is false if it is a long one.
func (e *entry) short() (form []byte, ok bool) {
	if n := e[0]; n <= shortMax {
		return e[1 : 1+n : 1+n], true
	}
	return nil, false
}

func (e *entry) long() bool { return e[0] == longMark }

// size is the length of a long form.
func (e *entry) size() int { return int(e.word(0) >> lengthShift & lengthMask) }

// longWord is the first word of the entry of a long form.
func longWord(n int, hash uint32) uint64 {
	return uint64(hash>>hashCut)<<hashAt | uint64(n)<<lengthShift | longMark
}

// bitset has a bit for each entry of a page, or each page of a chunk.
type bitset [pageTerms / 64]uint64

func (b *bitset) has(i uint) bool { return b[i/64%uint(len(b))]>>(i%64)&1 != 0 }
func (b *bitset) set(i uint)      { b[i/64%uint(len(b))] |= 1 << (i % 64) }
func (b *bitset) unset(i uint)    { b[i/64%uint(len(b))] &^= 1 << (i % 64) }

func (b *bitset) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// without returns the bits that are not in c.
func (b *bitset) without(c *bitset) (d bitset) {
	for i, w := range b {
		d[i] = w &^ c[i]
	}
	return d
}

// all yields the bits that are set, ascending.
func (b *bitset) all() iter.Seq[uint] {
	return func(yield func(uint) bool) {
		for i, w := range b {
			for ; w != 0; w &= w - 1 {
				if !yield(uint(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// ranked is a set that stands for the indexes of a list with an element for each
// member.
type ranked struct {
	bits   bitset
	before [len(bitset{})]uint16 // members in the words before
}

func newRanked(b bitset) (r ranked) {
	r.bits = b
	n := 0
	for i, w := range b {
		r.before[i] = uint16(n)
		n += bits.OnesCount64(w)
	}
	return r
}

// rank returns the index of a member.
func (r *ranked) rank(i uint) (at int, ok bool) {
	w := r.bits[i/64%uint(len(r.bits))]
	below := w & (1<<(i%64) - 1)
	return int(r.before[i/64%uint(len(r.before))]) + bits.OnesCount64(below), w>>(i%64)&1 != 0
}
