package positions

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/internal/errs"
)

// FormatVersion is the version of the file that this package writes and reads.
const FormatVersion = 1

const (
	magic      = "TGsub\x00\n\x01"
	headerSize = len(magic) + 4 + 4 + sumSize
	sumSize    = 8
	lengthSize = 4

	kindPut    = 1
	kindForget = 2

	flagEach  = 1 << 0
	flagWhole = 1 << 1
	flagLost  = 1 << 2
	flagsAll  = flagEach | flagWhole | flagLost

	// textMax bounds a name and the name of a query, so that a damaged length does
	// not ask for memory. Nobody types as much.
	textMax = 64 << 10
	// payloadMax is what two texts and the numbers take at most.
	payloadMax = 2*textMax + 128
)

// change is one record: a place for a name, or none any more.
type change struct {
	name   string
	place  Place
	forget bool
}

// appendHeader encodes the beginning of a file that is written whole, with so many
// records.
func appendHeader(dst []byte, records int) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, FormatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(records))
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
}

// appendChange encodes a record.
func appendChange(dst []byte, c *change) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if c.forget {
		dst = append(dst, kindForget)
		dst = appendText(dst, c.name)
	} else {
		p := &c.place
		var flags byte
		for _, f := range []struct {
			set bool
			bit byte
		}{{p.Each, flagEach}, {p.Whole, flagWhole}, {p.Lost, flagLost}} {
			if f.set {
				flags |= f.bit
			}
		}
		dst = append(dst, kindPut)
		dst = appendText(dst, c.name)
		dst = append(dst, flags)
		dst = append(dst, p.Store[:]...)
		dst = append(dst, p.Timeline[:]...)
		dst = appendText(dst, p.Query)
		dst = binary.AppendUvarint(dst, p.Registered)
		dst = binary.AppendUvarint(dst, p.Epoch)
		dst = binary.AppendVarint(dst, p.Acked)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-lengthSize))
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// encode is a file that holds places and nothing else, the names ascending.
func encode(places map[string]Place) []byte {
	b := appendHeader(nil, len(places))
	for _, name := range slices.Sorted(maps.Keys(places)) {
		b = appendChange(b, &change{name: name, place: places[name]})
	}
	return b
}

// decode reads a file, as far as its records go. It is torn if there is something
// else behind them. The records that it was written with cannot be: they were synced
// before it had its name.
func decode(b []byte) (places map[string]Place, torn bool, err error) {
	records, err := readHeader(b)
	if err != nil {
		return nil, false, err
	}
	places = make(map[string]Place)
	seen := uint32(0)
	for at := headerSize; at < len(b) || seen < records; seen++ {
		c, n, err := parse(b[at:])
		switch {
		case err != nil && seen < records:
			return nil, false, fmt.Errorf("%w: offset %d: %w, and the file was written with %d records, of which %d are there", errs.ErrCorrupt, at, err, records, seen)
		case err != nil:
			if good := nextGood(b, at+1); good > 0 {
				return nil, false, fmt.Errorf("%w: offset %d: %w, with another record at %d", errs.ErrCorrupt, at, err, good)
			}
			return places, true, nil
		case c.forget:
			delete(places, c.name)
		default:
			places[c.name] = c.place
		}
		at += n
	}
	return places, false, nil
}

// readHeader gives how many records the file was written with. It looks at the version
// before the sum, which a later one may have changed.
func readHeader(b []byte) (records uint32, err error) {
	if len(b) < headerSize {
		return 0, fmt.Errorf("%w: %d bytes are no header", errs.ErrCorrupt, len(b))
	}
	if string(b[:len(magic)]) != magic {
		return 0, fmt.Errorf("%w: it does not begin as it should", errs.ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != FormatVersion {
		return 0, fmt.Errorf("%w: it has format version %d, this build reads version %d", errs.ErrFormat, v, FormatVersion)
	}
	if binary.LittleEndian.Uint64(b[headerSize-sumSize:]) != xxhash.Sum64(b[:headerSize-sumSize]) {
		return 0, fmt.Errorf("%w: the checksum of the header does not match", errs.ErrCorrupt)
	}
	return binary.LittleEndian.Uint32(b[len(magic)+4:]), nil
}

// nextGood gives the offset of the first good record from at on, or 0.
func nextGood(b []byte, at int) int {
	for ; at < len(b); at++ {
		if _, _, err := parse(b[at:]); err == nil {
			return at
		}
	}
	return 0
}

var (
	errShort  = errors.New("the record is cut off")
	errLength = errors.New("the record has no length that there is")
	errSum    = errors.New("the checksum does not match")
	errForm   = errors.New("the record is not of a known form")
)

// parse reads the record at the beginning of b, and tells how long it is.
func parse(b []byte) (c change, size int, err error) {
	if len(b) < lengthSize {
		return c, 0, errShort
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || n > payloadMax {
		return c, 0, errLength
	}
	end := lengthSize + int(n)
	if len(b) < end+sumSize {
		return c, 0, errShort
	}
	if binary.LittleEndian.Uint64(b[end:]) != xxhash.Sum64(b[:end]) {
		return c, 0, errSum
	}
	d := decoder{b: b[lengthSize:end]}
	c = d.change()
	if d.bad || len(d.b) > 0 {
		return c, 0, errForm
	}
	return c, end + sumSize, nil
}

// decoder takes fields off a payload; bad stays once something was not there.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) change() (c change) {
	switch d.byte() {
	case kindForget:
		c.forget = true
		c.name = d.text()
	case kindPut:
		c.name = d.text()
		flags := d.byte()
		p := &c.place
		p.Each, p.Whole, p.Lost = flags&flagEach != 0, flags&flagWhole != 0, flags&flagLost != 0
		copy(p.Store[:], d.take(len(p.Store)))
		copy(p.Timeline[:], d.take(len(p.Timeline)))
		p.Query = d.text()
		p.Registered, p.Epoch = d.uvarint(), d.uvarint()
		p.Acked = d.varint()
		d.bad = d.bad || flags&^flagsAll != 0
	default:
		d.bad = true
	}
	return c
}

// take gives n bytes, nil if there are fewer.
func (d *decoder) take(n int) []byte {
	if d.bad || n > len(d.b) {
		d.bad = true
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > textMax {
		d.bad = true
		return ""
	}
	return string(d.take(int(n)))
}

func (d *decoder) uvarint() uint64 {
	x, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
	}
	d.take(max(n, 0))
	return x
}

func (d *decoder) varint() int64 {
	x, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
	}
	d.take(max(n, 0))
	return x
}
