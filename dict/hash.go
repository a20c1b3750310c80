package dict

import "github.com/cespare/xxhash/v2"

// The content hashes of a term are part of the stored format, since the digests
// of logged epochs are made from them:
//
//	lane A = XXH64 of the byte 0xA1 and the stored form
//	lane B = XXH64 of the byte 0xB2 and the stored form backwards, each byte
//	         multiplied by 0xB5 modulo 256
//
// Two seeds of XXH64 would not make two lanes: it has collisions that hold for
// every seed. The second encoding moves and changes every byte, so that a pair
// made to collide in one lane does not in the other.
const (
	tagA  = 0xA1
	tagB  = 0xB2
	multB = 0xB5
)

// laneA hashes a stored form behind its tag.
func laneA(tagged []byte) uint64 { return xxhash.Sum64(tagged) }

// laneB hashes a stored form, in pieces so that a long one is not copied whole.
func laneB(form []byte) uint64 {
	var buf [512]byte
	buf[0] = tagB
	n := 1
	if len(form) < len(buf) {
		n += backwards(buf[1:], form)
		return xxhash.Sum64(buf[:n])
	}
	var d xxhash.Digest
	d.Reset()
	for len(form) > 0 {
		k := min(len(form), len(buf)-n)
		n += backwards(buf[n:], form[len(form)-k:])
		form = form[:len(form)-k]
		_, _ = d.Write(buf[:n]) // never fails
		n = 0
	}
	return d.Sum64()
}

// backwards writes a part of the second encoding and returns its length.
func backwards(dst, form []byte) int {
	last := len(form) - 1
	for i, c := range form {
		dst[last-i] = c * multB
	}
	return len(form)
}
