package dict

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// Limits of a dictionary.
const (
	// TermBytesMax is the greatest number of bytes of text in a term, that of
	// its language tag or datatype included: 64 MiB.
	TermBytesMax = 64 << 20
	// TermsMax is the greatest number of terms.
	TermsMax = 1<<32 - 1
)

// Check reports with ErrValue a term that cannot be interned: the absent one,
// and one with more than TermBytesMax bytes of text. It does not look at the
// text; that is Validate of the term.
func Check(t term.Term) error {
	if t.IsZero() {
		return fmt.Errorf("%w: the term is absent", errs.ErrValue)
	}
	if n := t.Size(); n > TermBytesMax {
		return fmt.Errorf("%w: a term of %d bytes, the limit is %d", errs.ErrValue, n, TermBytesMax)
	}
	return nil
}

// scratchBytes is room for the stored form of nearly all terms.
const scratchBytes = 256

// Dict is a dictionary. Intern and Truncate are for the one writer; all other
// methods may be called from any goroutine at any time.
type Dict struct {
	entries entries
	slabs   slabs
	table   atomic.Pointer[table]
	ints    smallInts
	n       atomic.Uint64 // ids handed out

	seed     maphash.Seed
	a, b     uint64 // secrets drawn from the seed, for short terms
	constant bool   // every hash is the same

	used    int         // slots in use; the writer's
	scratch [16]pending // the writer's
	sink    uint64      // keeps the loads of prefetch
}

// New returns an empty dictionary.
func New() *Dict {
	// The seed keeps whoever chooses the terms from choosing collisions. No id
	// depends on it.
	d := &Dict{seed: maphash.MakeSeed()}
	d.a, d.b = maphash.String(d.seed, "a"), maphash.String(d.seed, "b")
	d.table.Store(&table{slots: make([]uint64, slotsMin)})
	return d
}

// NewColliding returns an empty dictionary in which all terms have the same
// place in the table. It is for tests, which show with it that a dictionary
// with collisions is slower and nothing else.
func NewColliding() *Dict {
	d := New()
	d.constant = true
	return d
}

// Len is the number of ids handed out: they are 1 to Len.
func (d *Dict) Len() uint64 { return d.n.Load() }

// key is the stored form of a term on its way to the table.
type key struct {
	bytes  []byte
	w0, w1 uint64 // as in an entry; of a long form only w0
	short  bool
	hash   uint32
}

// key makes the key of a form that stands behind one byte, with zeros after it
// up to 16 bytes. So a short form is where its entry has it, and is not copied.
func (d *Dict) key(framed []byte) (k key) {
	k.bytes = framed[1:]
	var x uint64
	if k.short = len(k.bytes) <= shortMax; k.short {
		framed[0] = byte(len(k.bytes))
		words := framed[:16]
		k.w0, k.w1 = binary.LittleEndian.Uint64(words), binary.LittleEndian.Uint64(words[8:])
		hi, lo := bits.Mul64(k.w0^d.a, k.w1^d.b)
		hi, lo = bits.Mul64(hi^lo^d.b, d.a|1)
		x = hi ^ lo
	} else {
		k.w0 = longWord(len(k.bytes))
		x = maphash.Bytes(d.seed, k.bytes)
	}
	if k.hash = uint32(x >> 32); d.constant {
		k.hash = 0
	}
	return k
}

// frame makes the form of a term as key wants it, in buf if that has room.
func frame(buf *[scratchBytes]byte, t term.Term) []byte {
	clear(buf[:16])
	return term.AppendBinary(buf[:1], t)
}

// find looks for a term among the ids up to limit. It reads the table and, for
// each slot with the same 32 bits of hash, one entry.
func (d *Dict) find(k *key, limit uint64) (id uint64, ok bool) {
	slots := d.table.Load().slots
	for i := home(k.hash, len(slots)); ; {
		slot := atomic.LoadUint64(&slots[i])
		if slot == 0 {
			return 0, false
		}
		if id = slot & idMask; uint32(slot>>hashShift) == k.hash && id <= limit {
			e := d.entries.at(id)
			if e.word(0) == k.w0 && (k.short && e.word(1) == k.w1 || !k.short && bytes.Equal(d.slabs.form(e), k.bytes)) {
				return id, true
			}
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// Find returns the id of a term if it is at most limit. It takes no lock and
// allocates nothing for terms of up to 240 bytes.
func (d *Dict) Find(t term.Term, limit uint64) (id uint64, ok bool) {
	if i, is := t.AsInt(); is && uint64(i) < intsMax {
		id = d.ints.find(uint64(i))
		if id == 0 || id > limit {
			return 0, false
		}
		return id, true
	}
	if t.IsZero() {
		return 0, false
	}
	var buf [scratchBytes]byte
	k := d.key(frame(&buf, t))
	return d.find(&k, limit)
}

// Intern returns the id of a term, the next one if it is new. The id is 0 if
// the term is refused: Check refuses it, or TermsMax terms are there already.
// A term that is there costs no allocation.
func (d *Dict) Intern(t term.Term) (id uint64) {
	s := &d.scratch[0]
	if s.prepare(d, t); s.small {
		return d.internInt(s, t)
	}
	return d.intern(s, t)
}

// InternAll interns terms in their order, as Intern would, and writes their ids
// to ids, which is as long. It returns how many it has interned: fewer than all
// if the one after them is refused. It takes about a third of the time where the
// dictionary is larger than the cache, since it waits for the memory of several
// terms at once.
func (d *Dict) InternAll(ids []uint64, terms []term.Term) (n int) {
	for len(terms) > 0 {
		some := terms[:min(len(terms), len(d.scratch))]
		d.prefetch(some)
		for i, t := range some {
			s := &d.scratch[i]
			if s.small {
				ids[n] = d.internInt(s, t)
			} else {
				ids[n] = d.intern(s, t)
			}
			if ids[n] == 0 {
				return n
			}
			n++
		}
		terms = terms[len(some):]
	}
	return n
}

// pending is a term that the writer is about to intern.
type pending struct {
	key
	framed []byte
	small  bool   // an integer of the array
	n      uint64 // its value
	buf    [scratchBytes]byte
}

func (s *pending) prepare(d *Dict, t term.Term) {
	i, isInt := t.AsInt()
	s.n = uint64(i)
	if s.small = isInt && s.n < intsMax; !s.small && t.Size() <= TermBytesMax {
		s.framed = frame(&s.buf, t)
		s.key = d.key(s.framed)
	}
}

// prefetch makes terms pending, then loads what looking them up will read: first
// the slots, then the entries that these name. The loads of a round do not
// depend on each other, so that the processor has them under way together.
func (d *Dict) prefetch(terms []term.Term) {
	pend := d.scratch[:len(terms)]
	for i, t := range terms {
		pend[i].prepare(d, t)
	}
	slots, sum := d.table.Load().slots, uint64(0)
	for i := range pend {
		if s := &pend[i]; s.small {
			sum += d.ints.find(s.n)
		} else {
			sum += slots[home(s.hash, len(slots))]
		}
	}
	for i := range pend {
		s := &pend[i]
		if s.small {
			continue
		}
		if slot := slots[home(s.hash, len(slots))]; slot != 0 && uint32(slot>>hashShift) == s.hash {
			sum += uint64(d.entries.at(slot & idMask)[0])
		}
	}
	d.sink = sum
}

// internInt interns an integer of the array.
func (d *Dict) internInt(s *pending, t term.Term) (id uint64) {
	if id = d.ints.find(s.n); id != 0 {
		return id
	}
	if id = d.n.Load() + 1; id > TermsMax {
		return 0
	}
	s.framed = frame(&s.buf, t)
	s.key = d.key(s.framed)
	d.store(id, s)
	d.ints.set(s.n, id)
	d.n.Store(id)
	return id
}

// intern interns any other term, which is pending.
func (d *Dict) intern(s *pending, t term.Term) (id uint64) {
	if t.IsZero() || t.Size() > TermBytesMax {
		return 0
	}
	n := d.n.Load()
	id, ok := d.find(&s.key, n)
	if !ok {
		if id = n + 1; id > TermsMax {
			return 0
		}
		d.store(id, s)
		d.index(id, s.hash)
		d.n.Store(id)
	}
	if len(s.framed) > scratchBytes {
		s.framed, s.bytes = nil, nil
	}
	return id
}

// store writes the entry of a new id, and its bytes if they are long. The byte
// in front of the form becomes the tag of lane A: the key has what it needs of it.
func (d *Dict) store(id uint64, k *pending) {
	k.framed[0] = tagA
	a, b := laneA(k.framed), laneB(k.bytes)
	if !k.short {
		k.w1 = d.slabs.add(k.bytes)
	}
	e := d.entries.add(id)
	for i, w := range [...]uint64{k.w0, k.w1, a, b} {
		e.set(i, w)
	}
}

// index puts a new id into the table.
func (d *Dict) index(id uint64, hash uint32) {
	t := d.table.Load()
	if d.used*4 >= len(t.slots)*3 {
		t = t.resized(len(t.slots)+len(t.slots)/2, id-1)
		d.table.Store(t)
	}
	put(t.slots, hash, id)
	d.used++
}

// Truncate takes the ids above n back, which the writer has interned for a
// batch that was refused in the end: no reader's limit has reached them, and
// nobody keeps one. The next new term gets id n + 1 again.
func (d *Dict) Truncate(n uint64) {
	t := d.table.Load()
	last := d.n.Load()
	if last <= n {
		return
	}
	for id := last; id > n; id-- {
		buf := &d.scratch[0].buf
		clear(buf[:16])
		k := d.key(append(buf[:1], d.form(id)...))
		if i, ok := smallInt(k.bytes); ok {
			d.ints.set(i, 0)
		} else {
			d.used--
			if n >= t.built {
				t.remove(k.hash, id)
			}
		}
		if !k.short {
			d.slabs.drop(d.entries.at(id).word(1))
		}
	}
	if n < t.built {
		// The table has grown since, which has mixed the order of its slots.
		d.table.Store(t.resized(len(t.slots), n))
	}
	d.entries.truncate(n)
	d.n.Store(n)
}

// smallInt reads back the integer of a form that the array of small ones holds.
func smallInt(form []byte) (i uint64, ok bool) {
	if term.Kind(form[0]) != term.KindInt {
		return 0, false
	}
	v, _ := binary.Varint(form[1:])
	return uint64(v), uint64(v) < intsMax
}

// form returns the stored form of the term of an id, the dictionary's own
// memory.
func (d *Dict) form(id uint64) []byte {
	e := d.entries.at(id)
	if form, ok := e.short(); ok {
		return form
	}
	return d.slabs.form(e)
}

// Term returns the term of an id, which is at least 1 and at most a limit from a
// published root vector. It allocates the text of the term and nothing else.
func (d *Dict) Term(id uint64) term.Term {
	// These are bytes that AppendBinary has written, so decoding cannot fail.
	t, _, _ := term.DecodeBinary(d.form(id))
	return t
}

// AppendBinary appends the stored form of the term of an id, as AppendBinary of
// package term does, without making the term. Ids are those of Term.
func (d *Dict) AppendBinary(dst []byte, id uint64) []byte { return append(dst, d.form(id)...) }

// Hash returns the two content hashes of the term of an id, which depend on
// nothing but the term. Ids are those of Term.
func (d *Dict) Hash(id uint64) (a, b uint64) {
	e := d.entries.at(id)
	return e.word(2), e.word(3)
}

// Bytes is the memory that the dictionary holds.
func (d *Dict) Bytes() int64 {
	return d.entries.bytes.Load() + d.slabs.bytes.Load() + d.ints.bytes.Load() + int64(len(d.table.Load().slots))*8
}
