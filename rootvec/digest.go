package rootvec

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Digest is an order-independent digest of a multiset of facts: the sums, mod
// 2^64, of two hashes of each (relation, tuple, multiplicity). Equal content
// has equal digest whatever its history; different content differs but for a
// chance of about 2^-128. It tells accidents, not forgeries.
type Digest [2]uint64

// String is the digest in hexadecimal.
func (d Digest) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], d[0])
	binary.BigEndian.PutUint64(b[8:], d[1])
	return hex.EncodeToString(b[:])
}

// Plus is the digest of the facts of both, which have none in common.
func (d Digest) Plus(o Digest) Digest { return Digest{d[0] + o[0], d[1] + o[1]} }

// Minus takes the facts of o out of those of d.
func (d Digest) Minus(o Digest) Digest { return Digest{d[0] - o[0], d[1] - o[1]} }

// Relation is what the name and the arity of a relation contribute to the
// digests of its facts.
type Relation [2]uint64

// NewRelation hashes a relation's name and arity, once for all its facts.
func NewRelation(name string, arity int) Relation {
	buf := append([]byte{0xA1, byte(arity)}, name...)
	a := xxhash.Sum64(buf)
	buf[0] = 0xB2
	return Relation{a, bits.ReverseBytes64(xxhash.Sum64(buf))}
}

// Hasher adds and subtracts facts. It is scratch space for one goroutine.
type Hasher struct {
	a, b []byte
}

// laneB spreads the words of the second lane, so that one crafted pair of
// inputs does not collide in both.
const laneB = 0x9E3779B97F4A7C15

// Fact starts the encoding of a fact with n columns.
func (h *Hasher) Fact(r Relation, n int) {
	size := 8 * (n + 2)
	if cap(h.a) < size {
		h.a, h.b = make([]byte, size), make([]byte, size)
	}
	h.a, h.b = h.a[:size], h.b[:size]
	binary.LittleEndian.PutUint64(h.a, r[0])
	binary.LittleEndian.PutUint64(h.b[size-8:], r[1]*laneB)
}

// Column sets column i to a term with the given content hashes. The second
// lane has the columns in reverse order.
func (h *Hasher) Column(i int, a, b uint64) {
	binary.LittleEndian.PutUint64(h.a[8*(i+1):], a)
	binary.LittleEndian.PutUint64(h.b[len(h.b)-8*(i+2):], b*laneB)
}

// Move changes d by the fact going from multiplicity before to after.
func (h *Hasher) Move(d *Digest, before, after int64) {
	if before != 0 {
		a, b := h.sum(before)
		d[0] -= a
		d[1] -= b
	}
	if after != 0 {
		a, b := h.sum(after)
		d[0] += a
		d[1] += b
	}
}

func (h *Hasher) sum(count int64) (a, b uint64) {
	binary.LittleEndian.PutUint64(h.a[len(h.a)-8:], uint64(count))
	binary.LittleEndian.PutUint64(h.b, uint64(count)*laneB+1)
	return xxhash.Sum64(h.a), xxhash.Sum64(h.b)
}
