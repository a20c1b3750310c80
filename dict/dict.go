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
	// TermsMax is the greatest number of terms held at a time.
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

// Dict is a dictionary. Find, Term, AppendBinary, Has, Hash, Each, Len, Live, Bytes,
// Err, Faults and Since may be called from any goroutine at any time; all other methods are
// for the one writer.
type Dict struct {
	state atomic.Pointer[state]
	ints  smallInts
	n     atomic.Uint64 // the last id handed out
	gone  atomic.Uint64 // ids up to n that no term has
	pages atomic.Int64  // bytes of the directory
	err   atomic.Pointer[error]
	fault atomic.Uint64 // how often a text could not be read

	seed     maphash.Seed
	a, b     uint64 // secrets drawn from the seed, for short terms
	constant bool   // every hash is the same

	// The rest is the writer's.
	slabs   slabs
	tail    tail
	used    int    // slots in use
	built   uint64 // the last id when the table was made
	phase   phase
	loading bool      // terms are being restored
	renewed []renewal // by newer id, ascending
	spare   struct {  // for restoring
		page  *entryPage
		chunk *denseChunk
	}
	scratch [16]pending
	sink    uint64 // keeps the loads of prefetch
}

// renewal says that a term has come again under a newer id.
type renewal struct{ newer, older uint64 }

// New returns an empty dictionary.
func New() *Dict {
	// The seed keeps whoever chooses the terms from choosing collisions. No id
	// depends on it.
	d := &Dict{seed: maphash.MakeSeed()}
	d.a, d.b = maphash.String(d.seed, "a"), maphash.String(d.seed, "b")
	d.state.Store(&state{slots: make([]uint64, slotsMin)})
	d.slabs.tail = -1
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

// Len is the last id handed out.
func (d *Dict) Len() uint64 { return d.n.Load() }

// Live is the number of terms held: those with an id up to Len that have not
// been swept.
func (d *Dict) Live() uint64 {
	gone := d.gone.Load() // first, so that the difference is never negative
	return d.n.Load() - gone
}

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
	if k.short = len(k.bytes) <= shortMax; k.short {
		framed[0] = byte(len(k.bytes))
		words := framed[:16]
		k.w0, k.w1 = binary.LittleEndian.Uint64(words), binary.LittleEndian.Uint64(words[8:])
		k.hash = d.shortHash(k.w0, k.w1)
	} else {
		k.hash = d.fold(maphash.Bytes(d.seed, k.bytes))
		k.w0 = longWord(len(k.bytes), k.hash)
	}
	return k
}

// shortHash is the hash of a short form, from the words of its entry.
func (d *Dict) shortHash(w0, w1 uint64) uint32 {
	hi, lo := bits.Mul64(w0^d.a, w1^d.b)
	hi, lo = bits.Mul64(hi^lo^d.b, d.a|1)
	return d.fold(hi ^ lo)
}

// fold makes the hash of a slot, which is never 0.
func (d *Dict) fold(x uint64) uint32 {
	if d.constant {
		return 1
	}
	return max(uint32(x>>32), 1)
}

// frame makes the form of a term as key wants it, in buf if that has room.
func frame(buf *[scratchBytes]byte, t term.Term) []byte {
	clear(buf[:16])
	return term.AppendBinary(buf[:1], t)
}

// verdict is what a comparison has come to.
type verdict uint8

const (
	no verdict = iota
	yes
	unreadable // the term of an id could not be read, and nothing else is the term
)

// find looks for a term among the ids up to limit. It reads the table and, for
// each slot with the same 32 bits of hash, one entry.
func (d *Dict) find(st *state, k *key, limit uint64) (id uint64, v verdict) {
	if st.old != nil {
		return d.findInEras(st, k, limit)
	}
	slots, number := st.slots, st.top.number<<eraShift
	for i := home(k.hash, len(slots)); ; {
		slot := atomic.LoadUint64(&slots[i])
		if slot == 0 {
			return 0, v
		}
		if id = number | slot&idMask; uint32(slot>>hashShift) == k.hash && id <= limit {
			e := st.near(id)
			if e == nil {
				e = st.seldom(id)
			}
			if e != nil && e.word(0) == k.w0 {
				if k.short {
					if e.word(1) == k.w1 {
						return id, yes
					}
				} else if is := d.same(st, id, e, k); is == yes {
					return id, yes
				} else if is == unreadable {
					v = unreadable
				}
			}
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// findInEras is find where ids of several eras are held, so that a slot may
// stand for any of them. Two ids of a term have one slot, that of the newer
// one; but the slot of another term may lead to the older one, so that all
// slots must be tried where there are such terms.
func (d *Dict) findInEras(st *state, k *key, limit uint64) (found uint64, v verdict) {
	for i := home(k.hash, len(st.slots)); ; {
		slot := atomic.LoadUint64(&st.slots[i])
		if slot == 0 {
			return found, v
		}
		if uint32(slot>>hashShift) == k.hash {
			id, is := d.inEras(st, k, slot, found, limit)
			if is == yes {
				if found, v = id, yes; !st.renewed {
					return found, v
				}
			} else if is == unreadable && v == no {
				v = unreadable
			}
		}
		if i++; i == len(st.slots) {
			i = 0
		}
	}
}

// inEras returns the last id above from and up to limit that a slot can stand
// for and that has the term.
func (d *Dict) inEras(st *state, k *key, slot, from, limit uint64) (found uint64, v verdict) {
	for number := range st.eras {
		id := number<<eraShift | slot&idMask
		if id <= from || id > limit {
			continue
		}
		e := st.at(id)
		if e == nil || e.word(0) != k.w0 {
			continue
		}
		is := no
		if !k.short {
			is = d.same(st, id, e, k)
		} else if e.word(1) == k.w1 {
			is = yes
		}
		if is == yes {
			return id, yes
		}
		v = max(v, is)
	}
	return 0, v
}

// same compares a long form with that of an entry whose first word is the same.
func (d *Dict) same(st *state, id uint64, e *entry, k *key) verdict {
	form, ok := d.formOf(st, id, e)
	switch {
	case !ok:
		return unreadable
	case bytes.Equal(form, k.bytes):
		return yes
	}
	return no
}

// Find returns the id of a term if it is at most limit. It takes no lock and
// allocates nothing for terms of up to 240 bytes whose text is in memory. Where
// the text of a candidate cannot be read the answer is false, and Err tells.
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
	id, v := d.find(d.state.Load(), &k, limit)
	return id, v == yes
}

// Intern returns the id of a term, the next one if it is new. The id is 0 if
// the term is refused: Check refuses it, TermsMax terms are there already, or it
// cannot be told whether it is there, since the text of the one candidate cannot
// be read; Err tells. A term that is there costs no allocation. While marks are
// kept the id is marked.
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
	st, sum := d.state.Load(), uint64(0)
	slots, number := st.slots, st.top.number<<eraShift
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
		if slot := slots[home(s.hash, len(slots))]; uint32(slot>>hashShift) == s.hash {
			if e := st.at(number | slot&idMask); e != nil {
				sum += uint64(e[0])
			}
		}
	}
	d.sink = sum
}

// next returns the id after the last one, 0 if there is none to give.
func (d *Dict) next() uint64 {
	if d.Live() >= TermsMax {
		return 0
	}
	if d.loading {
		d.endLoading()
	}
	return d.n.Load() + 1
}

// internInt interns an integer of the array.
func (d *Dict) internInt(s *pending, t term.Term) (id uint64) {
	if id = d.ints.find(s.n); id != 0 {
		if d.phase != idle {
			d.mark(id)
		}
		return id
	}
	if id = d.next(); id != 0 {
		s.framed = frame(&s.buf, t)
		s.key = d.key(s.framed)
		d.store(id, s)
		d.ints.set(s.n, id)
		d.n.Store(id)
	}
	return id
}

// intern interns any other term, which is pending.
func (d *Dict) intern(s *pending, t term.Term) (id uint64) {
	if t.IsZero() || t.Size() > TermBytesMax {
		return 0
	}
	id, v := d.find(d.state.Load(), &s.key, d.n.Load())
	switch {
	case v == yes:
		if d.phase != idle {
			d.mark(id)
		}
	case v == unreadable:
		id = 0
	default:
		if id = d.next(); id != 0 {
			d.store(id, s)
			d.index(id, s.hash)
			d.n.Store(id)
		}
	}
	s.release()
	return id
}

// release lets go of the memory of a large term.
func (s *pending) release() {
	if len(s.framed) > scratchBytes {
		s.framed, s.bytes = nil, nil
	}
}

// store writes the entry of a new id, and its bytes if they are long. The byte
// in front of the form becomes the tag of lane A: the key has what it needs of it.
func (d *Dict) store(id uint64, k *pending) {
	k.framed[0] = tagA
	a, b := laneA(k.framed), laneB(k.bytes)
	if !k.short && id > d.state.Load().through {
		k.w1 = d.addForm(id, k.bytes)
	}
	d.write(id, k.w0, k.w1, a, b)
}

func (d *Dict) write(id uint64, words ...uint64) {
	e := d.add(id)
	for i, w := range words {
		e.set(i, w)
	}
}

// index puts a new id into the table.
func (d *Dict) index(id uint64, hash uint32) {
	slots := d.state.Load().slots
	if d.used*4 >= len(slots)*3 {
		slots = d.resize(len(slots)+len(slots)/2, id-1)
	}
	put(slots, slotOf(hash, id))
	d.used++
}

// resize replaces the table.
func (d *Dict) resize(n int, built uint64) []uint64 {
	st := *d.state.Load()
	st.slots = resized(st.slots, n)
	d.built = built
	d.state.Store(&st)
	return st.slots
}

// smallInt reads back the integer of a form that the array of small ones holds.
func smallInt(form []byte) (i uint64, ok bool) {
	if term.Kind(form[0]) != term.KindInt {
		return 0, false
	}
	v, _ := binary.Varint(form[1:])
	return uint64(v), uint64(v) < intsMax
}

// formOf returns the stored form of the term of an entry, in memory that nobody
// writes to. It fails only for a form that is not in memory; Err tells why.
func (d *Dict) formOf(st *state, id uint64, e *entry) (form []byte, ok bool) {
	if form, ok = e.short(); ok {
		return form, true
	}
	if id > st.through {
		return st.slabForm(e), true
	}
	return d.read(st, id, e)
}

// form is formOf of an id.
func (d *Dict) form(id uint64) (form []byte, ok bool) {
	st := d.state.Load()
	e := st.near(id)
	if e == nil {
		if e = st.seldom(id); e == nil {
			return nil, false
		}
	}
	if form, ok = e.short(); ok {
		return form, true
	}
	return d.formOf(st, id, e)
}

// Term returns the term of an id that is held: at most a limit from a published
// root vector, and reachable from it. It allocates the text of the term and
// nothing else. The absent term is the answer for an id that is not held, and
// where the text cannot be read; Err tells.
func (d *Dict) Term(id uint64) term.Term {
	form, ok := d.form(id)
	if !ok || len(form) == 0 {
		return term.Term{}
	}
	// These are bytes that AppendBinary has written, so decoding cannot fail.
	t, _, _ := term.DecodeBinary(form)
	return t
}

// AppendBinary appends the stored form of the term of an id, as AppendBinary of
// package term does, without making the term. Ids and failures are those of
// Term; nothing is appended then.
func (d *Dict) AppendBinary(dst []byte, id uint64) []byte {
	form, _ := d.form(id)
	return append(dst, form...)
}

// Has reports whether a term has the id, which is at most Len.
func (d *Dict) Has(id uint64) bool {
	e := d.state.Load().at(id)
	return e != nil && e.held()
}

// Hash returns the two content hashes of the term of an id, which depend on
// nothing but the term. Ids are those of Term; of others the hashes are 0.
func (d *Dict) Hash(id uint64) (a, b uint64) {
	st := d.state.Load()
	e := st.near(id)
	if e == nil {
		if e = st.seldom(id); e == nil {
			return 0, 0
		}
	}
	return e.word(2), e.word(3)
}

// Bytes is the memory that the dictionary holds, that of the cache included.
func (d *Dict) Bytes() int64 {
	st := d.state.Load()
	return d.pages.Load() + d.slabs.bytes.Load() + d.ints.bytes.Load() + int64(len(st.slots))*8 + st.store.bytes()
}
