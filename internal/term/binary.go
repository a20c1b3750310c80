package term

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/triegs/triegs/internal/errs"
)

// AppendBinary appends the stored form of a term: the byte of its kind, then
//
//	IRI, String, Bytes, Blank  length and bytes of the text
//	LangString, Typed          length and bytes of tag or datatype, then of the text
//	Int                        zigzag varint
//	Float                      8 bytes, the IEEE 754 bits, big endian
//	Bool                       1 byte, 0 or 1
//	Time                       8 bytes, nanoseconds since 1970, big endian
//
// with lengths as unsigned varints. The absent term is its kind byte alone.
// Equal terms have equal bytes, different terms different ones, and no form is
// a prefix of another. The order of the bytes means nothing.
func AppendBinary(dst []byte, t Term) []byte {
	dst = append(dst, byte(t.kind))
	switch t.kind {
	case KindAbsent:
		return dst
	case KindInt:
		return binary.AppendVarint(dst, int64(t.n))
	case KindFloat, KindTime:
		return binary.BigEndian.AppendUint64(dst, t.n)
	case KindBool:
		return append(dst, byte(t.n))
	case KindLangString, KindTyped:
		dst = binary.AppendUvarint(dst, uint64(len(t.d)))
		dst = append(dst, t.d...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.s)))
	return append(dst, t.s...)
}

// DecodeBinary reads the term that b begins with and the number of bytes it
// takes; the term does not share the memory of b. Bytes that AppendBinary would
// not have written give an error that wraps ErrCorrupt: no other spelling of a
// length, a number or a canonical literal is accepted.
func DecodeBinary(b []byte) (t Term, n int, err error) {
	d := decoder{b: b}
	kind := Kind(d.byte())
	switch kind {
	case KindAbsent:
	case KindIRI, KindString, KindBytes, KindBlank:
		t = Term{kind: kind, s: d.text()}
	case KindLangString:
		tag := d.text()
		t = LangString(d.text(), tag)
		d.check(t.d == tag, "language tag not in lower case")
	case KindTyped:
		datatype := d.text()
		t = Typed(d.text(), datatype)
		d.check(t.kind == KindTyped, "typed literal of a native kind")
	case KindInt:
		u := d.uvarint()
		t = Int(int64(u>>1) ^ -int64(u&1))
	case KindFloat:
		bits := d.uint64()
		t = Float(math.Float64frombits(bits))
		d.check(t.n == bits, "NaN with other bits")
	case KindBool:
		v := d.byte()
		t = Bool(v == 1)
		d.check(v <= 1, "truth value")
	case KindTime:
		t = Term{kind: KindTime, n: d.uint64()}
	default:
		d.check(false, "unknown kind")
	}
	if d.fault != "" {
		return Term{}, 0, fmt.Errorf("%w: term: %s", errs.ErrCorrupt, d.fault)
	}
	return t, len(b) - len(d.b), nil
}

// decoder is a cursor that remembers its first fault and gives zeros after it.
type decoder struct {
	b     []byte
	fault string
}

func (d *decoder) check(ok bool, fault string) {
	if !ok && d.fault == "" {
		d.fault, d.b = fault, nil
	}
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.check(false, "cut short")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uint64() uint64 {
	if len(d.b) < 8 {
		d.check(false, "cut short")
		return 0
	}
	u := binary.BigEndian.Uint64(d.b)
	d.b = d.b[8:]
	return u
}

func (d *decoder) uvarint() uint64 {
	u, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.check(false, "varint cut short or too long")
		return 0
	}
	if n > 1 && d.b[n-1] == 0 {
		d.check(false, "varint with needless bytes")
		return 0
	}
	d.b = d.b[n:]
	return u
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.check(false, "cut short")
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
