package checkpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/internal/errs"
)

// sumLen is the length of a checksum.
const sumLen = 8

// decoder reads fields from the front of p. The first field that is not there
// makes an error that sticks; from then on fields are zero. Numbers must have
// their shortest form, so that there is one spelling of each value.
type decoder struct {
	what string
	p    []byte
	err  error
}

// checked gives a decoder for p without its last eight bytes, which must be
// the checksum of the rest.
func checked(p []byte, what string) (*decoder, error) {
	n := len(p) - sumLen
	if n < 0 {
		return nil, fmt.Errorf("%s: %w: %d bytes", what, errs.ErrCorrupt, len(p))
	}
	if got, want := xxhash.Sum64(p[:n]), binary.LittleEndian.Uint64(p[n:]); got != want {
		return nil, fmt.Errorf("%s: %w: checksum %016x instead of %016x", what, errs.ErrCorrupt, got, want)
	}
	return &decoder{what: what, p: p[:n]}, nil
}

// fail makes why the error unless there is one.
func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err = fmt.Errorf("%s: %w: %s", d.what, errs.ErrCorrupt, why)
	}
	d.p = nil
}

// end gives the error; bytes that are left are one.
func (d *decoder) end() error {
	if d.err == nil && len(d.p) > 0 {
		d.fail("bytes left over")
	}
	return d.err
}

// take gives the next n bytes, or nil.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.p)) {
		d.fail("too short")
		return nil
	}
	b := d.p[:n]
	d.p = d.p[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.p)
	if n <= 0 || (n > 1 && d.p[n-1] == 0) {
		d.fail("bad number")
		return 0
	}
	d.p = d.p[n:]
	return v
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (d *decoder) text() string { return string(d.take(d.uvarint())) }

func (d *decoder) digest() [2]uint64 { return [2]uint64{d.uint64(), d.uint64()} }

// many reads a count and that many values. The slice grows with what is there,
// not with what the count claims.
func many[T any](d *decoder, one func(*decoder) T) []T {
	n := d.uvarint()
	if n > uint64(len(d.p)) {
		d.fail("count exceeds what is there")
		return nil
	}
	var list []T
	for ; n > 0 && d.err == nil; n-- {
		list = append(list, one(d))
	}
	return list
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendDigest(dst []byte, d [2]uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, d[0]), d[1])
}
