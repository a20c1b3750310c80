package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

// Keys are 8 bytes of generation, 4 of element, 1 of section, all big-endian,
// then: in the first two sections 8 bytes, the number of the chunk or the
// first id of the block; in the trailer's key what must be known of an element
// without reading a file, since Pebble's manifest names the last key of each
// table.
const (
	sectionFacts   = 1
	sectionTerms   = 2
	sectionTrailer = 3

	prefixLen     = 8 + 4
	sectionKeyLen = prefixLen + 1 + 8
	trailerKeyLen = prefixLen + 1 + 5*8
)

// trailerVersion is the first byte of a trailer.
const trailerVersion = 1

// place names an element.
type place struct {
	gen uint64
	el  uint32
}

func (a place) String() string { return fmt.Sprintf("element %d.%d", a.gen, a.el) }

// prefix appends the front of every key of the element.
func (a place) prefix(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, a.gen)
	return binary.BigEndian.AppendUint32(dst, a.el)
}

// after gives the place behind a in key order.
func (a place) after() place {
	if a.el == math.MaxUint32 {
		return place{a.gen + 1, 0}
	}
	return place{a.gen, a.el + 1}
}

// bound gives a key at or before all keys of a section and behind those of the
// section before.
func (a place) bound(section byte) []byte { return append(a.prefix(nil), section) }

// key gives the key of a chunk or a block.
func (a place) key(dst []byte, section byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(a.prefix(dst), section), n)
}

// element is one element as the tables' keys tell it.
type element struct {
	place
	epoch, logIndex, lastTerm, sequence uint64
	sum                                 uint64 // Of the trailer.

	tables []vault.Table
	bytes  int64
	damage error // Not nil: what is wrong with it.
}

// trailerKey gives the key of the element's trailer.
func (e *element) trailerKey() []byte {
	k := e.bound(sectionTrailer)
	for _, v := range []uint64{e.epoch, e.logIndex, e.lastTerm, e.sequence, e.sum} {
		k = binary.BigEndian.AppendUint64(k, v)
	}
	return k
}

// parseKey takes a key apart. rest is what follows the section.
func parseKey(k []byte) (at place, section byte, rest []byte, ok bool) {
	if len(k) <= prefixLen {
		return at, 0, nil, false
	}
	at.gen = binary.BigEndian.Uint64(k)
	at.el = binary.BigEndian.Uint32(k[8:])
	section, rest = k[prefixLen], k[prefixLen+1:]
	switch section {
	case sectionFacts, sectionTerms:
		ok = len(k) == sectionKeyLen
	case sectionTrailer:
		ok = len(k) == trailerKeyLen
	}
	return at, section, rest, ok
}

// setTrailerKey fills in what the trailer's key says.
func (e *element) setTrailerKey(rest []byte) {
	for i, v := range []*uint64{&e.epoch, &e.logIndex, &e.lastTerm, &e.sequence, &e.sum} {
		*v = binary.BigEndian.Uint64(rest[i*8:])
	}
}

// elements makes elements of tables, which are in key order. Keys that no
// element has are errs.ErrFormat. An element without a trailer or predecessor
// is kept and marked as damaged.
func elements(tables []vault.Table) ([]element, error) {
	var list []element
	complete := true
	for _, t := range tables {
		first, _, _, ok1 := parseKey(t.First)
		last, section, rest, ok2 := parseKey(t.Last)
		if !ok1 || !ok2 || first != last {
			return nil, fmt.Errorf("%s: %w: not a table of a checkpoint", t.Path, errs.ErrFormat)
		}
		if n := len(list); n == 0 || list[n-1].place != first {
			if !complete {
				list[n-1].damage = fmt.Errorf("%v before %s: %w: no trailer", list[n-1].place, t.Path, errs.ErrCorrupt)
			}
			list = append(list, element{place: first})
		}
		e := &list[len(list)-1]
		e.tables = append(e.tables, t)
		e.bytes += t.Bytes
		complete = section == sectionTrailer
		if complete {
			e.setTrailerKey(rest)
		}
	}
	if !complete {
		e := &list[len(list)-1]
		e.damage = fmt.Errorf("%v in %s: %w: no trailer", e.place, e.tables[0].Path, errs.ErrCorrupt)
	}
	for i := range list {
		e := &list[i]
		alone := i == 0 || list[i-1].gen != e.gen
		if (alone && e.el != 0) || (!alone && e.el != list[i-1].el+1) {
			e.damage = fmt.Errorf("%v in %s: %w: the element before it is missing", e.place, e.tables[0].Path, errs.ErrCorrupt)
		}
	}
	return list, nil
}

// audit counts and sums what goes through the two sections of an element, the
// same way when it is written and when it is read.
type audit struct {
	chunks, chunkBytes, chunkSum uint64
	blocks, blockBytes, blockSum uint64
	terms                        uint64
}

// mix folds one value of a section, with its number, into a sum.
func mix(sum, n uint64, p []byte) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], sum)
	binary.LittleEndian.PutUint64(b[8:], n)
	binary.LittleEndian.PutUint64(b[16:], xxhash.Sum64(p))
	return xxhash.Sum64(b[:])
}

func (a *audit) chunk(p []byte) {
	a.chunkSum = mix(a.chunkSum, a.chunks, p)
	a.chunks++
	a.chunkBytes += uint64(len(p))
}

func (a *audit) block(first, terms uint64, p []byte) {
	a.blockSum = mix(a.blockSum, first, p)
	a.blocks++
	a.terms += terms
	a.blockBytes += uint64(len(p))
}

// trailer is the last value of an element.
type trailer struct {
	place
	prev uint64 // Sum of the element before in the generation, 0 for the first.
	audit
	header Header
}

// appendTo appends the encoding; its last eight bytes are the element's sum.
func (t *trailer) appendTo(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, trailerVersion)
	dst = binary.AppendUvarint(dst, t.gen)
	dst = binary.AppendUvarint(dst, uint64(t.el))
	for _, v := range []uint64{t.prev, t.chunkSum, t.blockSum} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	for _, v := range []uint64{t.chunks, t.chunkBytes, t.blocks, t.terms, t.blockBytes} {
		dst = binary.AppendUvarint(dst, v)
	}
	h := t.header.AppendTo(nil)
	dst = append(binary.AppendUvarint(dst, uint64(len(h))), h...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// decodeTrailer reads what appendTo wrote, all of p and nothing else, with the
// errors of DecodeHeader.
func decodeTrailer(p []byte) (trailer, error) {
	var t trailer
	if len(p) > 0 && p[0] != trailerVersion {
		return t, fmt.Errorf("checkpoint trailer: %w: version %d, this is %d", errs.ErrFormat, p[0], trailerVersion)
	}
	d, err := checked(p, "checkpoint trailer")
	if err != nil {
		return t, err
	}
	d.byte()
	t.gen = d.uvarint()
	el := d.uvarint()
	if el > math.MaxUint32 {
		d.fail("number out of range")
	}
	t.el = uint32(el)
	for _, v := range []*uint64{&t.prev, &t.chunkSum, &t.blockSum} {
		*v = d.uint64()
	}
	for _, v := range []*uint64{&t.chunks, &t.chunkBytes, &t.blocks, &t.terms, &t.blockBytes} {
		*v = d.uvarint()
	}
	h := d.take(d.uvarint())
	if err := d.end(); err != nil {
		return trailer{}, err
	}
	t.header, err = DecodeHeader(h)
	return t, err
}

// sumOf gives the checksum at the end of an encoded trailer.
func sumOf(value []byte) uint64 {
	return binary.LittleEndian.Uint64(value[len(value)-sumLen:])
}
