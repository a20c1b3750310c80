package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// Decode reads a record that takes up all of b. The record shares no memory
// with b; the tuples of its events share one array. Bytes that Append would
// not have written give an error that matches errs.ErrCorrupt and names the
// offset. Cost: linear in len(b), one allocation for all events, one for all
// words, and one for each text.
func Decode(b []byte) (*Record, error) {
	d := &decoder{b: b}
	r := new(Record)
	if v := d.byte(); d.fault == "" && v != Version {
		return nil, fmt.Errorf("%w: record version %d, this build reads version %d", errs.ErrCorrupt, v, Version)
	}
	r.Kind = Kind(d.byte())
	d.check(r.Kind > 0 && r.Kind < kindEnd, "unknown kind of epoch")
	r.Epoch = d.uvarint()
	r.Time = d.varint()
	r.Digest[0] = d.fixed64()
	r.Digest[1] = d.fixed64()
	d.terms(r)
	d.relations(r)
	d.sources(r)
	d.extras(r)
	d.events(r)
	d.check(d.off == len(b), "bytes after the record")
	if d.fault != "" {
		return nil, fmt.Errorf("%w: record, offset %d: %s", errs.ErrCorrupt, d.at, d.fault)
	}
	return r, nil
}

// decoder reads b from off on. The first fault stays; after it everything
// reads as zero and loops must end on it.
type decoder struct {
	b     []byte
	off   int
	fault string
	at    int // offset of the fault
}

// check records a fault unless ok.
func (d *decoder) check(ok bool, fault string) {
	if !ok && d.fault == "" {
		d.fault, d.at = fault, d.off
		d.b = d.b[:d.off]
	}
}

func (d *decoder) byte() byte {
	if d.off >= len(d.b) {
		d.check(false, "record ends early")
		return 0
	}
	d.off++
	return d.b[d.off-1]
}

func (d *decoder) fixed64() uint64 {
	if len(d.b)-d.off < 8 {
		d.check(false, "record ends early")
		return 0
	}
	d.off += 8
	return binary.LittleEndian.Uint64(d.b[d.off-8:])
}

// uvarint reads a number in its shortest form only.
func (d *decoder) uvarint() uint64 {
	if d.off < len(d.b) && d.b[d.off] < 0x80 {
		d.off++
		return uint64(d.b[d.off-1])
	}
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 || d.b[d.off+n-1] == 0 {
		d.check(false, "bad number")
		return 0
	}
	d.off += n
	return v
}

// varint reads a signed number, zigzag coded.
func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads a number of things that take at least size bytes each; a number
// that the rest of the record cannot hold is a fault, so that nothing is
// allocated for it.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64((len(d.b)-d.off)/size) {
		d.check(false, "count beyond the end of the record")
		return 0
	}
	return int(n)
}

// bytes reads a length and gives that many bytes of b.
func (d *decoder) bytes() []byte {
	n := d.count(1)
	d.off += n
	return d.b[d.off-n : d.off]
}

func (d *decoder) text() string { return string(d.bytes()) }

func (d *decoder) terms(r *Record) {
	n := d.count(1)
	if n == 0 {
		return
	}
	r.FirstTerm = d.uvarint()
	r.Terms = make([]term.Term, 0, n)
	for range n {
		t, size, err := term.DecodeBinary(d.b[d.off:])
		if err != nil {
			d.check(false, err.Error())
			return
		}
		d.off += size
		r.Terms = append(r.Terms, t)
	}
}

func (d *decoder) relations(r *Record) {
	n := d.count(2)
	if n == 0 {
		return
	}
	first := d.uvarint()
	d.check(first <= math.MaxUint32, "relation id too large")
	r.FirstRelation = uint32(first)
	r.Relations = make([]Relation, 0, n)
	for i := 0; i < n && d.fault == ""; i++ {
		name, arity := d.text(), d.uvarint()
		d.check(arity <= math.MaxInt32, "arity too large")
		r.Relations = append(r.Relations, Relation{name, int(arity)})
	}
}

func (d *decoder) sources(r *Record) {
	n := d.count(5)
	if n == 0 {
		return
	}
	r.Sources = make([]Source, 0, n)
	for i := 0; i < n && d.fault == ""; i++ {
		s := Source{Name: d.text(), Incarnation: d.text(), Next: d.uvarint(), Skipped: d.uvarint()}
		flags := d.byte()
		d.check(flags != watermarkExplicit && flags <= watermarkPresent|watermarkExplicit, "unknown flags of a source")
		if s.HasWatermark = flags != 0; s.HasWatermark {
			s.Explicit = flags&watermarkExplicit != 0
			s.Watermark = r.Time + d.varint()
		}
		r.Sources = append(r.Sources, s)
	}
}

// extras reads what only some epochs have. Each thing that is there must differ
// from what its absence means, so that there is one spelling.
func (d *decoder) extras(r *Record) {
	flags := d.byte()
	d.check(flags < extrasEnd && (flags&queryPresent != 0 || flags&(querySet|queryDistinct|queryWindow) == 0), "unknown flags")
	if d.fault != "" {
		return
	}
	if flags&queryPresent != 0 {
		r.Query = &Query{
			Set: flags&querySet != 0, Distinct: flags&queryDistinct != 0,
			Name: d.text(), Text: d.text(),
		}
	}
	if flags&queryWindow != 0 {
		w := Window{Range: d.span(), Slide: d.span(), Last: d.span()}
		d.check(w != (Window{}), "no window in the long form")
		r.Query.Window = w
	}
	if flags&retainPresent != 0 {
		r.Retain = &Retention{Relation: d.text(), Span: d.span()}
	}
	r.Clocked = flags&clocked != 0
	if flags&eventTime != 0 {
		r.EventTime, r.Lateness = true, d.span()
	}
}

// span reads a number that an int64 holds and that is not negative.
func (d *decoder) span() int64 {
	v := d.uvarint()
	d.check(v <= math.MaxInt64, "number too large")
	return int64(v)
}

func (d *decoder) events(r *Record) {
	n := d.count(1)
	if n == 0 {
		return
	}
	words := d.count(1)
	if d.fault != "" {
		return
	}
	r.Events = make([]Event, n)
	slab := make([]uint64, words)
	ed := eventDecoder{decoder: d, time: r.Time, length: firstLength, left: slab}
	for i := range r.Events {
		ed.next(&r.Events[i])
		if d.fault != "" {
			return
		}
	}
	d.check(len(ed.left) == 0, "fewer words than counted")
}

// eventDecoder carries what an event may leave out.
type eventDecoder struct {
	*decoder
	relation uint32
	time     int64
	length   int
	tuple    []uint64 // the last one that was not empty
	id       string   // the last one that was not empty
	left     []uint64 // the words not yet given to a tuple
}

// next decodes one event. Each thing that follows the flags must differ from
// what its absence means, so that there is one spelling.
func (d *eventDecoder) next(e *Event) {
	flags := d.byte()
	e.Op = flags & opMask
	if e.Op == opMask {
		e.Op = d.byte()
		d.check(e.Op >= opMask, "op in the long form")
	}
	if flags&hasRelation != 0 {
		v := d.uvarint()
		d.check(v <= math.MaxUint32 && uint32(v) != d.relation, "relation in the long form")
		d.relation = uint32(v)
	}
	if flags&hasTime != 0 {
		v := d.varint()
		d.check(v != 0, "time in the long form")
		d.time += v
	}
	if flags&hasValue != 0 {
		e.Value = d.uvarint()
		d.check(e.Value != 0, "value in the long form")
	}
	if flags&hasID != 0 {
		e.ID = d.eventID()
	}
	if flags&hasLength != 0 {
		n := d.count(1)
		d.check(n != d.length, "tuple length in the long form")
		d.length = n
	}
	e.Relation, e.Time = d.relation, d.time
	if d.length == 0 || d.fault != "" {
		return
	}
	if d.length > len(d.left) {
		d.check(false, "more words than counted")
		return
	}
	e.Tuple, d.left = d.left[:d.length:d.length], d.left[d.length:]
	for i := range e.Tuple {
		w := uint64(d.varint())
		if i < len(d.tuple) {
			w += d.tuple[i]
		}
		e.Tuple[i] = w
	}
	d.tuple = e.Tuple
}

// eventID reads an ID: how much it takes from the ID before, and the rest.
func (d *eventDecoder) eventID() string {
	shared := d.uvarint()
	if shared > uint64(min(len(d.id), prefixMax)) {
		d.check(false, "ID takes more than there is")
		return ""
	}
	rest := d.bytes()
	id := d.id[:shared] + string(rest)
	d.check(id != "" && sharedPrefix(d.id, id) == int(shared), "ID in the long form")
	d.id = id
	return id
}
