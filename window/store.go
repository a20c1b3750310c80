package window

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
)

// Errors that a caller may ignore event by event are made once: a skipped
// retraction allocates nothing.
var (
	errNoFact  = fmt.Errorf("%w: the fact has no contribution", errs.ErrNoSuchFact)
	errNoValue = fmt.Errorf("%w: no contribution to the fact has this value", errs.ErrNoSuchFact)
	errNoID    = fmt.Errorf("%w: no contribution has this ID", errs.ErrNoSuchFact)
	errOtherID = fmt.Errorf("%w: the contribution with this ID is to another fact", errs.ErrNoSuchFact)
	errTakenID = fmt.Errorf("%w: the ID is that of a live contribution to another fact", errs.ErrValue)
	errCount   = fmt.Errorf("%w: multiplicity of a fact", errs.ErrOverflow)
	errFacts   = fmt.Errorf("%w: a relation is limited to %d facts", errs.ErrBudget, uint64(factsMax))
)

// Store holds the live contributions of all relations. It is not safe for
// concurrent use: the writer owns it.
type Store struct {
	hash   hasher
	rels   []*relation
	copies copies
	live   int64 // contributions

	running bool     // an epoch is
	dirty   []uint32 // relations touched in this epoch, in order of first touch
	undo    undoLog
	framed  []uint32 // relations with frames, ascending
	ranges  []span   // what Advance visits
	some    batch    // what it takes out of an index
	key     []uint64 // a tuple with its value
	warmed  uint64   // nothing but a reason to load
	reorder reorder  // events that wait for logical time

	returned func(id uint64) // see OnReturn
	replaced uint64          // values that were given up without their contributions, see Replaced

	// IDs of live contributions; both maps are nil until the first ID.
	ids     map[string]name
	named   map[name]named
	idBytes int64 // length of all IDs together
	idMost  int   // IDs since the maps were made: maps do not shrink

	tracking bool     // changed records are noted
	capture  *Capture // the running one, nil if there is none
}

// name tells a contribution apart from all others: its relation and its sequence
// word there.
type name struct{ rel, seq uint64 }

// named is where the contribution with an ID is.
type named struct {
	id   string
	time int64
	rec  uint32
}

// NewStore returns an empty store without relations.
func NewStore() *Store {
	s := new(Store)
	// The seed is the runtime's, so that nobody can prepare colliding tuples;
	// no result depends on it.
	seed := maphash.MakeSeed()
	s.hash = hasher{maphash.String(seed, "a"), maphash.String(seed, "b"), maphash.String(seed, "c") | 1}
	s.copies.init()
	return s
}

// AddRelation creates the next relation and returns its number: 0, 1, 2, ...
// The arity is at least 1.
func (s *Store) AddRelation(arity int) (rel uint32) {
	s.rels = append(s.rels, &relation{arity: arity, facts: newSlab(arity + tailWords)})
	return uint32(len(s.rels) - 1)
}

// RemoveRelations forgets the relations from number n on, which a refused
// epoch has created. It is called after Rollback, which has emptied them.
func (s *Store) RemoveRelations(n uint32) {
	clear(s.rels[n:])
	s.rels = s.rels[:n]
}

// Relations is the number of relations.
func (s *Store) Relations() int { return len(s.rels) }

// Begin starts an epoch. The one before has ended with Commit or Rollback.
func (s *Store) Begin() {
	invariant.Check(!s.running, "an epoch begins before the last one ended")
	s.running, s.replaced = true, 0
}

// Insert adds a contribution to a fact: its event time in nanoseconds, its
// value (0 = none), its ID ("" = none).
//
// If a live contribution has the ID already, and is to the same fact, Insert
// gives it the new time and the new value instead, and the multiplicity stays;
// it is still the same contribution, so it keeps its place in the order in
// which contributions were appended. If it is to another fact, the error wraps
// ErrValue. Further errors wrap ErrArity, ErrOverflow, and ErrBudget (a relation
// is limited to 2^32-2 facts). The cost is O(1) expected, O(log n) with n copies
// when the time is older than that of others.
func (s *Store) Insert(rel uint32, tuple []uint64, time int64, value uint64, id string) error {
	r := s.rels[rel]
	if len(tuple) != r.arity {
		return arityError(r, tuple)
	}
	if id != "" {
		if known, ok := s.ids[id]; ok {
			return s.refresh(known, rel, tuple, time, value)
		}
	}
	if !r.roomByValue() {
		return errFacts
	}
	hash := s.hash.sum(tuple)
	rec, ok := r.find(tuple, hash)
	if !ok {
		if r.facts.live >= factsMax {
			return errFacts
		}
		rec = r.add(tuple, hash)
	}
	tail := r.facts.at(rec)[len(tuple):]
	old := s.copies.count(tail[2])
	if old == math.MaxInt64 {
		return errCount
	}
	s.touch(r, rel, rec, hash, tail, old)
	if old == 0 {
		r.live++
	}
	seq := r.seq << 1
	r.seq++
	if id != "" {
		seq |= 1
		s.name(name{uint64(rel), seq}, named{id, time, rec})
	}
	s.copies.insert(tail, entry{time, seq, value})
	if r.frames != nil {
		r.frames.add(&s.copies, rec, time, seq)
	}
	if r.valued != nil {
		s.putValued(r, rel, rec, entry{time, seq, value})
	}
	s.live++
	s.undo.inserted(rel, rec, time)
	return nil
}

// refresh gives the contribution with this name a new time and value.
func (s *Store) refresh(known name, rel uint32, tuple []uint64, time int64, value uint64) error {
	at := s.named[known]
	if known.rel != uint64(rel) || !equal(s.rels[rel].facts.at(at.rec), tuple) {
		return errTakenID
	}
	r := s.rels[rel]
	if !r.roomByValue() {
		return errFacts
	}
	tail := r.facts.at(at.rec)[r.arity:]
	s.touch(r, rel, at.rec, s.hash.sum(tuple), tail, s.copies.count(tail[2]))
	old := s.move(rel, at.rec, entry{at.time, known.seq, 0}, entry{time, known.seq, value})
	if old.value != 0 && old.value != value {
		s.replaced++
	}
	if r.frames != nil {
		r.frames.refreshed(at.rec, time, known.seq)
	}
	s.undo.refreshed(rel, at.rec, old, time)
	return nil
}

// move takes the contribution with the time and number of from, and puts to in
// its stead, which has the same number.
func (s *Store) move(rel, rec uint32, from, to entry) (old entry) {
	r := s.rels[rel]
	tail := r.facts.at(rec)[r.arity:]
	old = s.copies.take(tail, s.copies.exact(tail, from))
	s.copies.insert(tail, to)
	if r.frames != nil {
		r.frames.remove(&s.copies, rec, old.time, old.seq)
		r.frames.add(&s.copies, rec, to.time, to.seq)
	}
	if r.valued != nil {
		s.takeValued(r, rel, rec, old)
		s.putValued(r, rel, rec, to)
	}
	known := name{uint64(rel), to.seq}
	at := s.named[known]
	at.time = to.time
	s.named[known] = at
	return old
}

// Delete retracts one contribution of a fact: the one with the least time, of
// equals the earliest appended; with a value other than 0, of those that have
// this value. If there is none the error wraps ErrNoSuchFact. The cost is O(1)
// expected, plus one comparison for each contribution that a value skips.
func (s *Store) Delete(rel uint32, tuple []uint64, value uint64) error {
	r := s.rels[rel]
	if len(tuple) != r.arity {
		return arityError(r, tuple)
	}
	hash := s.hash.sum(tuple)
	rec, ok := r.find(tuple, hash)
	if !ok {
		return errNoFact
	}
	tail := r.facts.at(rec)[len(tuple):]
	at, ok := s.copies.oldest(tail, value)
	if !ok {
		if s.copies.count(tail[2]) > 0 {
			return errNoValue
		}
		return errNoFact
	}
	e := s.retract(r, rel, rec, hash, tail, at)
	if r.frames != nil {
		r.frames.remove(&s.copies, rec, e.time, e.seq)
	}
	return nil
}

// DeleteID retracts the contribution with this ID. A tuple that is not nil has
// to be the one of the contribution, and rel its relation. Errors wrap
// ErrNoSuchFact.
func (s *Store) DeleteID(id string, rel uint32, tuple []uint64) error {
	known, ok := s.ids[id]
	if !ok {
		return errNoID
	}
	at := s.named[known]
	r := s.rels[known.rel]
	if tuple != nil && (known.rel != uint64(rel) || len(tuple) != r.arity || !equal(r.facts.at(at.rec), tuple)) {
		return errOtherID
	}
	w := r.facts.at(at.rec)
	tail := w[r.arity:]
	s.retract(r, uint32(known.rel), at.rec, s.hash.sum(w[:r.arity]), tail, s.copies.exact(tail, entry{at.time, known.seq, 0}))
	if r.frames != nil {
		r.frames.remove(&s.copies, at.rec, at.time, known.seq)
	}
	return nil
}

// retract takes the contribution at a place of a fact. What orders it for
// windows is left to the caller.
func (s *Store) retract(r *relation, rel, rec, hash uint32, tail []uint64, at place) entry {
	old := s.copies.count(tail[2])
	s.touch(r, rel, rec, hash, tail, old)
	if old == 1 {
		r.live--
	}
	e := s.copies.take(tail, at)
	if r.valued != nil {
		s.takeValued(r, rel, rec, e)
	}
	s.live--
	id := ""
	if e.seq&1 != 0 {
		id = s.unname(name{uint64(rel), e.seq})
	}
	s.undo.removed(rel, rec, e, id)
	return e
}

// touch notes the multiplicities of a fact before the first change of the epoch. A
// shadow is not tracked, and changes with its relation only.
func (s *Store) touch(r *relation, rel, rec, hash uint32, tail []uint64, old int64) {
	if tail[2]&touchedBit != 0 {
		return
	}
	if s.tracking && !r.shadow {
		s.note(r, rel, rec)
	}
	tail[2] |= touchedBit
	if len(r.touched) == 0 && !r.shadow {
		s.dirty = append(s.dirty, rel)
	}
	r.touched = append(r.touched, touch{old, rec, hash})
	if r.frames != nil {
		r.frames.touch(&s.copies, tail, rec)
	}
}

func (s *Store) name(n name, at named) {
	if s.ids == nil {
		s.ids, s.named = map[string]name{}, map[name]named{}
	}
	s.ids[at.id] = n
	s.named[n] = at
	s.idBytes += int64(len(at.id))
	s.idMost = max(s.idMost, len(s.ids))
}

func (s *Store) unname(n name) (id string) {
	id = s.named[n].id
	delete(s.ids, id)
	delete(s.named, n)
	s.idBytes -= int64(len(id))
	return id
}

// Commit ends the epoch and keeps what it did.
func (s *Store) Commit() {
	s.reorder.commit()
	for _, old := range s.undo.framings {
		old.frames.release(&s.copies, s.rels[old.rel].frames)
	}
	s.dropShadows()
	for _, rel := range s.framed {
		r := s.rels[rel]
		r.frames.commit(s, rel)
		if v := r.valued; v != nil && v.frames != nil {
			v.frames.commit(s, rel)
		}
	}
	s.finish()
}

// Rollback ends the epoch and undoes all of it, in time linear in its events.
func (s *Store) Rollback() {
	s.reorder.rollback(s)
	for {
		op, ok := s.undo.pop()
		if !ok {
			break
		}
		s.takeBack(&op)
	}
	for _, rel := range s.framed {
		r := s.rels[rel]
		r.frames.rollback()
		if v := r.valued; v != nil && v.frames != nil {
			v.frames.rollback()
		}
	}
	s.finish()
}

// takeBack undoes one operation, the last that is not undone yet.
func (s *Store) takeBack(op *op) {
	r := s.rels[op.rel]
	switch op.kind {
	case opInserted:
		r.seq--
		s.unput(r, op, entry{op.time, r.seq<<1 | 1, 0})
	case opPut:
		s.unput(r, op, op.e)
	case opReturned:
		r.seq++
	case opRemoved:
		tail := r.facts.at(op.rec)[r.arity:]
		if s.copies.count(tail[2]) == 0 {
			r.live++
		}
		s.copies.insert(tail, op.e)
		if r.frames != nil {
			r.frames.add(&s.copies, op.rec, op.e.time, op.e.seq)
		}
		if r.valued != nil {
			s.putValued(r, op.rel, op.rec, op.e)
		}
		s.live++
		if op.id != "" {
			s.name(name{uint64(op.rel), op.e.seq}, named{op.id, op.e.time, op.rec})
		}
	case opRefreshed:
		s.move(op.rel, op.rec, entry{op.time, op.e.seq, 0}, op.e)
	case opFramed:
		s.frame(r, op.rel, op.frames).release(&s.copies, op.frames)
	case opShadowed:
		s.unshadow(&op.shadow)
	}
}

// unput takes a contribution back that came with an operation.
func (s *Store) unput(r *relation, op *op, e entry) {
	tail := r.facts.at(op.rec)[r.arity:]
	e = s.copies.take(tail, s.copies.exact(tail, e))
	if r.frames != nil {
		r.frames.remove(&s.copies, op.rec, e.time, e.seq)
	}
	if r.valued != nil {
		s.takeValued(r, op.rel, op.rec, e)
	}
	if e.seq&1 != 0 {
		s.unname(name{uint64(op.rel), e.seq})
	}
	s.live--
	if s.copies.count(tail[2]) == 0 {
		r.live--
	}
}

// finish forgets the epoch: facts without contributions lose their records,
// and what is no longer needed goes back.
func (s *Store) finish() {
	for _, rel := range s.dirty {
		r := s.rels[rel]
		s.settleAll(r)
		if r.valued != nil {
			s.settleAll(r.valued)
		}
	}
	s.copies.trim()
	s.trimIDs()
	if n := s.undo.bytes(); n > undoKept && n > (s.Bytes()-n)/8 {
		s.undo = undoLog{}
	}
	s.undo.reset()
	s.dirty = s.dirty[:0]
	s.running = false
}

// warmSlots has the slots of facts fetched side by side, and returns something
// that depends on them.
func (r *relation) warmSlots(some []touch) (sum uint64) {
	for _, t := range some {
		sum += r.slots[uint64(t.hash)*uint64(len(r.slots))>>32]
	}
	return sum
}

// settle ends the epoch for touched facts.
func (r *relation) settle(some []touch) {
	for _, t := range some {
		w := r.facts.at(t.rec)
		state := w[r.arity+2] &^ touchedBit
		w[r.arity+2] = state
		if state == 0 {
			r.remove(t.rec, t.hash)
		}
	}
}

// trimIDs makes the maps anew when they have emptied.
func (s *Store) trimIDs() {
	if s.idMost < 1024 || len(s.ids) > s.idMost/8 {
		return
	}
	ids, at := make(map[string]name, len(s.ids)), make(map[name]named, len(s.ids))
	for id, n := range s.ids {
		ids[id], at[n] = n, s.named[n]
	}
	s.ids, s.named, s.idMost = ids, at, len(ids)
}

// Count returns the multiplicity of a fact: its number of live contributions.
func (s *Store) Count(rel uint32, tuple []uint64) int64 {
	r := s.rels[rel]
	if len(tuple) != r.arity {
		return 0
	}
	rec, ok := r.find(tuple, s.hash.sum(tuple))
	if !ok {
		return 0
	}
	return s.copies.count(r.facts.at(rec)[r.arity+2])
}

// CountIn returns the multiplicity of a fact in window w of its relation.
func (s *Store) CountIn(rel uint32, w int, tuple []uint64) int64 {
	r := s.rels[rel]
	if len(tuple) != r.arity {
		return 0
	}
	rec, ok := r.find(tuple, s.hash.sum(tuple))
	if !ok {
		return 0
	}
	return r.frames.in(&s.copies, r.facts.at(rec)[r.arity:], rec, w)
}

// Len returns the number of facts of a relation, each counted once.
func (s *Store) Len(rel uint32) int { return s.rels[rel].live }

// Replaced returns for how many contributions the running epoch has given up a
// value for another one, or for none: terms that nothing names any more although no
// contribution is gone. An event that is done again counts again.
func (s *Store) Replaced() uint64 { return s.replaced }

// OnReturn has visit called for the terms of contributions that come back because an
// event of event-time mode that took them away is undone: the words of the tuple, and
// the value unless it is 0. Whoever walks the store in slices may have passed the
// place to which they come back.
func (s *Store) OnReturn(visit func(id uint64)) { s.returned = visit }

// Arity returns the arity of a relation.
func (s *Store) Arity(rel uint32) int { return s.rels[rel].arity }

// Seen reports whether a contribution was ever appended to a relation.
func (s *Store) Seen(rel uint32) bool { return s.rels[rel].seq > 0 }

// Contributions returns the number of live contributions of all relations.
func (s *Store) Contributions() int64 { return s.live }

// Bytes returns the memory that the store holds, that of the ID maps estimated.
// The cost is linear in the number of relations.
func (s *Store) Bytes() int64 {
	n := s.copies.bytes() + s.undo.bytes() + int64(cap(s.dirty))*4 + s.idBytes + int64(s.idMost)*idEntryBytes + s.capture.bytes() + s.reorder.size()
	for _, r := range s.rels {
		n += r.bytes()
	}
	return n
}

// idEntryBytes is what one ID takes in the two maps beside its text, at their
// usual load.
const idEntryBytes = 120

func arityError(r *relation, tuple []uint64) error {
	return fmt.Errorf("%w: a tuple of %d in a relation of %d", errs.ErrArity, len(tuple), r.arity)
}

// Warm loads what an event on the fact will touch and returns a word of it. It
// changes nothing and tells nothing: called for several facts in a row, it has
// their memory fetched side by side.
func (s *Store) Warm(rel uint32, tuple []uint64) uint64 {
	r := s.rels[rel]
	if len(r.slots) == 0 || len(tuple) != r.arity {
		return 0
	}
	hash := s.hash.sum(tuple)
	slot := r.slots[uint64(hash)*uint64(len(r.slots))>>32]
	if slot == 0 || uint32(slot>>hashShift) != hash {
		return slot
	}
	return r.facts.at(uint32(slot) - 1)[0]
}
