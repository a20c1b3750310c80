package window

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
)

// pagesSlack is how many pages of a relation may be named beyond four for each
// byte of input. A relation that has shrunk leaves pages without facts behind,
// and its directory has an entry for each; so the room for it follows not from
// the input, but from the size that a relation once had. 2^20 pages are the
// most that 64 GiB of facts in one relation leave.
const pagesSlack = 1 << 20

// Restorer fills an empty store from the chunks of captures.
type Restorer struct {
	s *Store
	codec
	seen  []seen   // by relation
	top   []uint64 // by relation, 1 + the largest sequence number
	room  int64    // pages of a relation that may be named
	known func(value uint64) bool
	chunk []byte
	at    int // position in chunk
}

// seen is the set of the records of a relation that have come, in blocks that
// are made on demand: a record number alone must not cost memory by its size.
type seen [][]uint64

const seenShift = 12

// add puts a record into the set and reports whether it is new there.
func (s *seen) add(rec uint32) bool {
	i := int(rec >> seenShift)
	if i >= len(*s) {
		*s = append(*s, make(seen, i+1-len(*s))...)
	}
	if (*s)[i] == nil {
		(*s)[i] = make([]uint64, 1<<seenShift/64)
	}
	w := &(*s)[i][rec>>6&(1<<seenShift/64-1)]
	old := *w
	*w |= 1 << (rec & 63)
	return *w != old
}

// Restore begins to fill a store that has its relations and no fact.
// If tracking is on, the facts that come this way count as not changed.
func (s *Store) Restore() *Restorer {
	invariant.Check(s.live == 0 && !s.running && s.capture == nil, "facts are restored into a store that has some")
	r := &Restorer{s: s, seen: make([]seen, len(s.rels)), top: make([]uint64, len(s.rels)), room: pagesSlack}
	return r
}

// Check has every value of a contribution looked up by known; one that it does not
// know is damage. It is called before Add; without it all values are taken.
func (r *Restorer) Check(known func(value uint64) bool) { r.known = known }

// Add reads one chunk. The captures of a chain come from the newest to the
// oldest, the chunks of one capture in any order: a record that has come
// already is skipped. The error wraps ErrCorrupt if the chunk is damaged; the
// store is good for nothing then. The chunk may be used again afterwards.
func (r *Restorer) Add(chunk []byte) error {
	r.chunk, r.at = chunk, 0
	r.reset()
	r.room += 4 * int64(len(chunk))
	if len(chunk) == 0 || chunk[0] != chunkVersion {
		return r.damaged("version")
	}
	for r.at = 1; r.at < len(chunk); {
		if err := r.fact(); err != nil {
			return err
		}
	}
	r.chunk = nil
	return nil
}

func (r *Restorer) damaged(what string) error {
	return fmt.Errorf("%w: chunk of facts, at byte %d of %d: %s", errs.ErrCorrupt, r.at, len(r.chunk), what)
}

// uvarint reads a number; after bytes that are none the position is behind the
// chunk, which callers look at once for several numbers.
func (r *Restorer) uvarint() uint64 {
	if r.at >= len(r.chunk) {
		r.at = len(r.chunk) + 1
		return 0
	}
	if b := r.chunk[r.at]; b < 0x80 {
		r.at++
		return uint64(b)
	}
	x, n := binary.Uvarint(r.chunk[r.at:])
	if n <= 0 {
		r.at = len(r.chunk) + 1
		return 0
	}
	r.at += n
	return x
}

func (r *Restorer) varint() uint64 {
	x := r.uvarint()
	return x>>1 ^ -(x & 1)
}

func (r *Restorer) broken() bool { return r.at > len(r.chunk) }

// fact reads the state of one record.
func (r *Restorer) fact() error {
	flags := r.chunk[r.at]
	r.at++
	if flags&^flagsAll != 0 || flags&flagOne == 0 && flags&(flagTime|flagSeq) != 0 || flags&(flagOne|flagMany) == flagOne|flagMany {
		return r.damaged("flags")
	}
	if flags&flagRelation != 0 {
		rel := r.uvarint()
		if rel >= uint64(len(r.seen)) {
			return r.damaged("relation")
		}
		r.enter(uint32(rel), r.s.rels[rel].arity)
	}
	if r.rel < 0 {
		return r.damaged("relation")
	}
	rec := uint64(r.rec)
	if flags&flagRecord != 0 {
		rec += r.varint()
	}
	rl := r.s.rels[r.rel]
	if r.broken() || rec >= factsMax || int64(rec>>rl.facts.shift) >= r.room {
		return r.damaged("record")
	}
	r.rec = uint32(rec) + 1
	fresh := r.seen[r.rel].add(uint32(rec))
	if flags&(flagOne|flagMany) == 0 {
		return nil
	}
	for i, w := range r.tuple {
		r.tuple[i] = w + r.varint()
	}
	if flags&flagMany != 0 {
		return r.many(rl, uint32(rec), fresh)
	}
	e, err := r.stamp(flags&flagTime != 0, flags&flagSeq != 0)
	if err == nil && fresh {
		r.top[r.rel] = max(r.top[r.rel], r.seq)
		tail := r.place(rl, uint32(rec))
		tail[0], tail[1], tail[2] = uint64(e.time), e.seq, formOne
		r.s.live++
	}
	return err
}

// stamp reads the time and the sequence number of a contribution.
func (r *Restorer) stamp(time, seq bool) (e entry, err error) {
	if time {
		r.time += int64(r.varint())
	}
	if seq {
		r.seq += r.varint()
	}
	e = entry{time: r.time, seq: r.seq << 1}
	if r.broken() {
		return e, r.damaged("contribution")
	}
	if r.seq >= 1<<63 {
		return e, r.damaged("sequence number")
	}
	r.seq++
	return e, nil
}

// place puts the tuple into its record and returns the words behind it.
func (r *Restorer) place(rl *relation, rec uint32) []uint64 {
	w := rl.facts.claim(rec)
	copy(w, r.tuple)
	return w[rl.arity:]
}

// many reads a list of contributions.
func (r *Restorer) many(rl *relation, rec uint32, fresh bool) error {
	n := r.uvarint()
	if r.broken() || n == 0 || n > uint64(len(r.chunk)-r.at) {
		return r.damaged("number of contributions")
	}
	var tail []uint64
	if fresh {
		tail = r.place(rl, rec)
		tail[2] = 0
	}
	var last entry
	for i := range n {
		e, id, err := r.contribution()
		if err != nil {
			return err
		}
		if i > 0 && (e.time < last.time || e.time == last.time && e.seq <= last.seq) {
			return r.damaged("contributions out of order")
		}
		last = e
		if !fresh {
			continue
		}
		r.top[r.rel] = max(r.top[r.rel], r.seq)
		if len(id) > 0 && !r.name(string(id), e, rec) {
			return r.damaged("an ID twice")
		}
		if e.value != 0 && r.known != nil && !r.known(e.value) {
			return r.damaged(fmt.Sprintf("value %d of a contribution is not known", e.value))
		}
		r.s.copies.insert(tail, e)
		r.s.live++
	}
	return nil
}

// contribution reads one contribution of a list. The ID is part of the chunk.
func (r *Restorer) contribution() (e entry, id []byte, err error) {
	if r.at >= len(r.chunk) || r.chunk[r.at]&^copyAll != 0 {
		return e, nil, r.damaged("flags of a contribution")
	}
	flags := r.chunk[r.at]
	r.at++
	e, err = r.stamp(flags&copyTime != 0, flags&copySeq != 0)
	if err != nil {
		return e, nil, err
	}
	if flags&copyValue != 0 {
		e.value = r.uvarint()
	}
	if flags&copyID != 0 {
		n := r.uvarint()
		if r.broken() || n == 0 || n > uint64(len(r.chunk)-r.at) {
			return e, nil, r.damaged("ID")
		}
		id = r.chunk[r.at : r.at+int(n)]
		r.at += int(n)
		e.seq |= 1
	}
	if r.broken() {
		return e, nil, r.damaged("value")
	}
	return e, id, nil
}

// name enters an ID and reports whether neither it nor its contribution had one.
func (r *Restorer) name(id string, e entry, rec uint32) bool {
	s := r.s
	if _, ok := s.ids[id]; ok {
		return false
	}
	n := name{uint64(r.rel), e.seq}
	if _, ok := s.named[n]; ok {
		return false
	}
	s.name(n, named{id, e.time, rec})
	return true
}

// claim hands out a record of the caller's choice, which is not in use. The
// lists of the slab are wrong until settle.
func (s *slab) claim(rec uint32) []uint64 {
	p, slot := int(rec>>s.shift), int32(rec&(1<<s.shift-1))
	if p >= len(s.pages) {
		s.pages = append(s.pages, make([][]uint64, p+1-len(s.pages))...)
		s.info = append(s.info, make([]pageInfo, p+1-len(s.info))...)
	}
	page := s.pages[p]
	if need := (int(slot) + 1) * s.width; need > len(page) {
		page = make([]uint64, s.pageWords(p, need))
		s.words += len(page) - len(s.pages[p])
		copy(page, s.pages[p])
		s.pages[p] = page
	}
	in := &s.info[p]
	in.used++
	in.fresh = max(in.fresh, slot+1)
	s.live++
	off := int(slot) * s.width
	return page[off : off+s.width : off+s.width]
}

// pageWords is the size of a page in which the given number of words are used:
// a full one, but for the first, which grows by doubling.
func (s *slab) pageWords(p, need int) int {
	full := s.width << s.shift
	if p > 0 {
		return full
	}
	words := min(firstRecords*s.width, full)
	for words < need {
		words = min(2*words, full)
	}
	return words
}

// settle makes the lists of a slab whose records were claimed. The word that
// tells a record in use is the one at the given place: it is 0 in others.
func (s *slab) settle(state int) {
	for p := len(s.pages) - 1; p >= 0; p-- {
		in := &s.info[p]
		if in.used == 0 {
			s.holes = append(s.holes, int32(p))
			continue
		}
		if in.used < in.fresh {
			page := s.pages[p]
			for slot := in.fresh - 1; slot >= 0; slot-- {
				w := page[int(slot)*s.width:]
				if w[state] == 0 {
					w[0] = uint64(in.free)
					in.free = slot + 1
				}
			}
		}
		if in.free != 0 || in.fresh < 1<<s.shift {
			s.link(int32(p))
		}
	}
}

// Finish ends the filling: sequences is, by relation, what [Store.Sequence] said
// when the newest capture began. The error wraps ErrCorrupt if the chunks
// contradict each other or the sequences; the store is good for nothing then.
// The cost is one entry of a hash table for each fact. Windows are set
// afterwards, or before it at the price of an order that is made twice.
func (r *Restorer) Finish(sequences []uint64) error {
	s := r.s
	if len(sequences) != len(s.rels) {
		return fmt.Errorf("%w: %d sequence numbers for %d relations", errs.ErrCorrupt, len(sequences), len(s.rels))
	}
	r.seen = nil
	for i, rl := range s.rels {
		if next := sequences[i]; next < r.top[i] || next > 1<<63 {
			return fmt.Errorf("%w: contributions to relation %d are below number %d, the next one would be %d", errs.ErrCorrupt, i, r.top[i], next)
		}
		rl.seq = sequences[i]
		rl.facts.settle(rl.arity + 2)
		rl.live = rl.facts.live
		if !rl.index(&s.hash) {
			return fmt.Errorf("%w: a fact of relation %d is in two records", errs.ErrCorrupt, i)
		}
	}
	for _, rel := range slices.Clone(s.framed) {
		f := s.frame(s.rels[rel], rel, nil)
		s.SetWindows(rel, f.at, f.windows, f.keep)
	}
	return s.reshadow(s.rels)
}

// index makes the table of a relation from its records, and reports whether all
// tuples are different.
func (r *relation) index(h *hasher) bool {
	n := r.facts.live
	if n == 0 {
		return true
	}
	r.slots = make([]uint64, max(n+n/2, slotsMin))
	width := r.facts.width
	for p, page := range r.facts.pages {
		for i := range uint32(r.facts.info[p].fresh) {
			w := page[int(i)*width : int(i)*width+width]
			if w[r.arity+2] == 0 {
				continue
			}
			tuple := w[:r.arity]
			if !r.enter(tuple, h.sum(tuple), uint32(p)<<r.facts.shift|i) {
				return false
			}
		}
	}
	return true
}

// enter puts a record into the table unless its tuple is there.
func (r *relation) enter(tuple []uint64, hash, rec uint32) bool {
	slots := r.slots
	i := int(uint64(hash) * uint64(len(slots)) >> 32)
	for slots[i] != 0 {
		if uint32(slots[i]>>hashShift) == hash && equal(r.facts.at(uint32(slots[i])-1), tuple) {
			return false
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
	slots[i] = uint64(hash)<<hashShift | uint64(rec+1)
	return true
}
