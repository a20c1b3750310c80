package views

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/mvcc"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// Store holds the versioned tries of all relations and queries. It has one
// writer; readers use the roots that were copied into a root vector.
type Store struct {
	arena     *trie.Arena
	roots     []uint64            // by slot
	free      []int               // slots not in use
	before    []uint64            // roots at the start of the version, nil if nothing was written
	saved     []uint64            // memory of before
	relations []*Relation         // by number, nil where none has the number now
	derived   []*derived          // what others are computed from comes before them
	answers   []*derived          // those that hold answers
	annotated []*derived          // those of both that have tracks
	holes     []int               // numbers to use again
	views     []*view             // children before parents
	due       []uint64            // bits of the views to look at in the version under construction
	visited   []*view             // that were looked at
	served    []*reader           // that have rows
	toggled   []*toggles          // those of indexes that have prefixes
	dealt     int                 // of them that were dealt out
	stirred   []*interest         // that have changes
	owed      []*derived          // kept answers to bring up to date
	viewBy    map[string]*view    // by signature
	derivedBy map[string]*derived // those of both kinds by signature
	queries   []*Query
	kept      []use // indexes that Match has made in the version under construction
	writes    uint64
	serials   uint64
	budget    int64

	// check is asked now and then while a query is filled; after its first error
	// the filling is cut short and means nothing.
	check   func() error
	stopped error
	steps   uint
	finally func() error // see Finally

	loading bool      // Loaded is still to come
	spare   spareRows // nothing, but while tries are loaded

	// Woken counts the tuples that were recomputed because a partner group
	// became empty or non-empty.
	Woken uint64

	// Scratch space, so that an update allocates nothing.
	key      []uint64 // a tuple in the order of a trie
	keys     []uint64 // several of them, with weights
	other    []uint64 // room to sort them
	clearing bool     // a relation was cleared in the version under construction
	warm     uint64   // keeps the loads of Warm alive
	tuple    []uint64 // a tuple in the order of a relation
	prefix   []uint64 // where a scan starts
	probe    []uint64 // a key that is looked up
	cursor   trie.Cursor
	called   []*reader // members of a crowd
	climber  climber
	folding
	terms   Terms
	beside  bool             // it belongs to a hydration
	pace    uint             // how often a hydration asks whether it is wanted: a mask of steps
	supply  *supply          // where a query that is compiled finds what is filled already
	now     func() time.Time // nil: nothing is timed
	applied uint64           // versions
	// hydrations is how many queries are being filled beside the store.
	hydrations atomic.Int32
	swept      map[semiring.Sweeper]*swept
}

// NewStore makes an empty store whose first version under construction is v.
func NewStore(v mvcc.Version) *Store {
	return &Store{arena: trie.NewArena(v), budget: trie.MaxBytes, viewBy: make(map[string]*view), derivedBy: make(map[string]*derived)}
}

// Budget sets how many bytes of tries a version may need; one that needs more
// is refused. 0 leaves only the limit of the arena.
func (s *Store) Budget(bytes int64) {
	s.budget = trie.MaxBytes
	if bytes > 0 {
		s.budget = min(bytes, trie.MaxBytes)
	}
}

// Relation is a base relation, or one that is computed from others, in as many
// orders as are asked for.
type Relation struct {
	serial  uint64 // no two relations of a store have the same
	arity   int
	indexes []*Index
	tracks  []*track // by track of the payload; nil where nothing is lifted
	// changes of the version under construction: rows of arity words, the
	// weight before and the weight after.
	changes   []uint64
	readers   readers     // of the changes
	interests []*interest // of kept answers in all of them
	shifts    []uint64    // tuples whose weight is the same, and a track has changed
	touched   bool
	work      work
	cleared   bool // all facts have gone, and changes does not list them
}

// Index is a relation's tuples in the order cols of its columns.
type Index struct {
	slot int
	cols []int
	refs int // nodes that use it; the last index of a relation stays even at 0
	subs []*toggles
	// pinned says that the trie is one of a published epoch in another store,
	// with this root; slot means nothing then.
	pinned bool
	space  trie.Space
	root   uint64
	was    pinnedTrie // of a hydration: where it stood before
}

// track is the state of a track of the payload, nil if the relation has none.
func (r *Relation) track(i int) *track {
	if i < len(r.tracks) {
		return r.tracks[i]
	}
	return nil
}

// atBefore is where the trie of x stood before the version under construction.
func (s *Store) atBefore(x *Index) (trie.Space, uint64) {
	if x.pinned {
		return x.was.space, x.was.root
	}
	if x.slot < len(s.before) {
		return s.arena.Space(), s.before[x.slot]
	}
	return s.arena.Space(), 0
}

// at is where the trie of x stands now.
func (s *Store) at(x *Index) (trie.Space, uint64) {
	if x.pinned {
		return x.space, x.root
	}
	return s.arena.Space(), s.roots[x.slot]
}

// AddRelation adds a relation without facts and returns its number: the next
// one, or one that was given back.
func (s *Store) AddRelation(arity int) int {
	r := &Relation{arity: arity, serial: s.serial()}
	r.indexes = []*Index{{slot: s.takeSlot(), cols: ascending(arity)}}
	if n := len(s.holes); n > 0 {
		number := s.holes[n-1]
		s.holes = s.holes[:n-1]
		s.relations[number] = r
		return number
	}
	s.relations = append(s.relations, r)
	return len(s.relations) - 1
}

// RemoveRelation forgets a relation that no query uses, and gives its number
// back. Where it has facts that belongs to the version under construction, and
// cannot be taken back.
func (s *Store) RemoveRelation(number int) {
	s.dropIndexes(s.relations[number])
	s.relations[number] = nil
	s.holes = append(s.holes, number)
}

// serial draws a number for a relation.
func (s *Store) serial() uint64 {
	s.serials++
	return s.serials
}

func ascending(n int) []int {
	cols := make([]int, n)
	for i := range cols {
		cols[i] = i
	}
	return cols
}

func (s *Store) takeSlot() int {
	for n := len(s.free); n > 0; n-- {
		// What stood in a slot before this version must not pass for what stood
		// there of another relation.
		if slot := s.free[n-1]; slot >= len(s.before) || s.before[slot] == 0 {
			s.free = slices.Delete(s.free, n-1, n)
			return slot
		}
	}
	s.roots = append(s.roots, 0)
	return len(s.roots) - 1
}

func (s *Store) dropSlot(slot, columns int) {
	s.arena.Clear(s.roots[slot], columns)
	s.roots[slot] = 0
	s.free = append(s.free, slot)
}

func (s *Store) dropIndexes(r *Relation) {
	for _, x := range r.indexes {
		s.dropSlot(x.slot, r.arity)
	}
	r.indexes = nil
}

// index returns an index of r whose order starts with lead, making it if there
// is none.
func (s *Store) index(r *Relation, lead []int) *Index {
	for _, x := range r.indexes {
		if slices.Equal(x.cols[:len(lead)], lead) {
			return x
		}
	}
	cols := slices.Clone(lead)
	for c := range r.arity {
		if !slices.Contains(lead, c) {
			cols = append(cols, c)
		}
	}
	x := &Index{slot: s.takeSlot(), cols: cols}
	if cols, root, ok := s.supply.index(r, lead); ok {
		x.cols, s.roots[x.slot] = cols, root
	} else {
		s.roots[x.slot] = s.reorder(r.indexes[0], x.cols)
	}
	r.indexes = append(r.indexes, x)
	return x
}

// trim drops the indexes that nobody uses, but for the last one: a base relation
// must stay readable.
func (s *Store) trim(r *Relation) {
	for i := len(r.indexes) - 1; i >= 0 && len(r.indexes) > 1; i-- {
		if x := r.indexes[i]; x.refs == 0 {
			s.dropSlot(x.slot, r.arity)
			r.indexes = slices.Delete(r.indexes, i, i+1)
		}
	}
}

// subscribe asks for the toggles of prefixes of the given length.
func (s *Store) subscribe(x *Index, width int) *toggles {
	for _, t := range x.subs {
		if t.width == width {
			t.refs++
			return t
		}
	}
	t := &toggles{width: width, refs: 1, noted: &s.toggled}
	x.subs = append(x.subs, t)
	return t
}

func (x *Index) unsubscribe(t *toggles) {
	if t.refs--; t.refs == 0 {
		x.subs = slices.DeleteFunc(x.subs, func(u *toggles) bool { return u == t })
	}
}

// Change notes that a tuple of a base relation goes from one multiplicity to
// another in the version under construction. Each tuple may be given once.
func (s *Store) Change(relation int, tuple []uint64, before, after int64) {
	r := s.relations[relation]
	r.touched = true
	if n := len(r.changes); n+len(tuple)+2 > cap(r.changes) {
		r.changes = slices.Grow(r.changes, n+len(tuple)+2) // twice, not the usual quarter
	}
	r.changes = append(append(r.changes, tuple...), uint64(before), uint64(after))
}

// Clear notes that a base relation has no fact any more, in the version under
// construction and in place of the changes that say so. Cost, in Apply: that of
// the blocks of its tries and of those that are empty because of it, not that of
// the facts.
func (s *Store) Clear(relation int) {
	r := s.relations[relation]
	if s.roots[r.indexes[0].slot] != 0 {
		r.touched, r.cleared, r.changes = true, true, r.changes[:0]
		s.clearing = true
	}
}

// clearIndexes empties the indexes of a relation.
func (s *Store) clearIndexes(r *Relation) {
	for _, x := range r.indexes {
		s.clearTrie(x.slot, r.arity)
	}
}

func (s *Store) clearTrie(slot, columns int) {
	s.arena.Clear(s.roots[slot], columns)
	s.roots[slot] = 0
}

// Apply brings all indexes and views up to date with the changes noted since
// the last version. An error (ErrBudget, or a [*Refusal] with ErrOverflow or the
// error of an algebra) leaves the store in between: the caller must call Abort.
func (s *Store) Apply() error {
	s.begin()
	s.applied++
	if err := s.bringUp(); err != nil {
		return err
	}
	s.settle()
	return s.checkBudget()
}

// bringUp brings everything up to date, and leaves the changes as they were noted.
func (s *Store) bringUp() error {
	for _, r := range s.relations {
		if r == nil || !r.touched {
			continue
		}
		s.applyRelation(r)
		s.dispatch(r)
	}
	if err := s.halted(); err != nil {
		return err
	}
	for _, d := range s.derived {
		began := s.start()
		if err := s.refold(d); err != nil {
			return s.refusal(d, err)
		}
		d.work.stop(s, began)
		if d.touched {
			s.dispatch(&d.Relation)
		}
	}
	s.propagate()
	if err := s.halted(); err != nil {
		return err
	}
	return s.refoldAll()
}

// applyRelation brings the indexes of a base relation up to date.
func (s *Store) applyRelation(r *Relation) {
	if r.cleared {
		s.clearIndexes(r)
		return
	}
	s.sortChanges(r)
	s.applyIndexes(r, r.indexes)
}

// checkBudget reports whether the version under construction, with everything
// that older versions still keep, fits in the budget.
func (s *Store) checkBudget() error {
	b := s.arena.Bytes()
	if used := b.Total - b.Reusable; used > s.budget {
		return fmt.Errorf("%w: tries would take %d of %d bytes", errs.ErrBudget, used, s.budget)
	}
	return nil
}

// settle forgets the changes of the version.
func (s *Store) settle() {
	s.settleViews()
	s.clearing = false
	if s.other != nil { // what a bulk epoch has sorted
		s.keys, s.other = nil, nil
	}
	for _, r := range s.relations {
		if r != nil && r.touched {
			s.settleRelation(r)
		}
	}
	for _, list := range [2][]*derived{s.derived, s.answers} {
		for _, d := range list {
			if d.touched {
				s.settleRelation(&d.Relation)
			}
		}
	}
}

func (s *Store) settleRelation(r *Relation) {
	r.touched, r.cleared, r.changes, r.shifts = false, false, shrink(r.changes), shrink(r.shifts)
}

// shrink empties a scratch slice, and lets go of one that a bulk epoch has
// blown up.
func shrink(words []uint64) []uint64 {
	if cap(words) > 1<<20 {
		return nil
	}
	return words[:0]
}

// warmBatch is how many writes are prepared together: enough to keep all the
// loads in flight that a core can have, few enough that what was fetched is
// still in the first cache when it is written.
const warmBatch = 16

const (
	// sortFrom is how many changes of a relation are brought into order before they
	// are written: neighbours lie in the same blocks then, which fewer seldom do in
	// a trie of any size.
	sortFrom = 1 << 15
	// sortBatch is how many of them are in order among each other. More are little
	// faster, and take as much memory again.
	sortBatch = 1 << 17
)

// sortChanges brings many changes of r into the order of its columns.
func (s *Store) sortChanges(r *Relation) {
	stride := r.arity + 2
	if len(r.changes) < sortFrom*stride {
		return
	}
	for part := range slices.Chunk(r.changes, sortBatch*stride) {
		if sorted := s.inOrder(part, r.arity+1); &sorted[0] != &part[0] {
			s.other = sorted[:copy(part, sorted)]
		}
	}
}

// inOrder sorts tuples of k columns, each with a word behind it, and returns where
// they are then: they may have changed places with s.other.
func (s *Store) inOrder(words []uint64, k int) []uint64 {
	r := rows{k: k, words: words, other: s.other}
	r.order(r.survey())
	s.other = r.other
	return r.words
}

// applyIndexes writes the changes of r into some of its indexes.
func (s *Store) applyIndexes(r *Relation, indexes []*Index) {
	stride := r.arity + 2
	n := len(r.changes) / stride
	r.work.writes += uint64(n)
	at, many := warmBatch, n >= sortFrom
	if many {
		at = sortBatch
	}
	for _, x := range indexes {
		if x.pinned {
			s.turn(x)
			continue
		}
		for rest := r.changes; len(rest) > 0 && s.goOn(); {
			some := rest[:min(len(rest), at*stride)]
			rest = rest[len(some):]
			s.applyBatch(x, some, many)
		}
		s.writes += uint64(n)
	}
}

// applyBatch writes some changes into one index, in its order if they are many.
func (s *Store) applyBatch(x *Index, changes []uint64, many bool) {
	arity := len(x.cols)
	words := s.keys[:0]
	if n := len(changes) / (arity + 2) * (arity + 1); n > cap(words) {
		words = make([]uint64, 0, n)
	}
	for i := 0; i < len(changes); i += arity + 2 {
		for _, c := range x.cols {
			words = append(words, changes[i+c])
		}
		words = append(words, changes[i+arity+1])
	}
	if many {
		words = s.inOrder(words, arity)
	}
	s.keys = words
	root := s.roots[x.slot]
	for few := warmBatch * (arity + 1); len(words) > few; words = words[few:] {
		s.writeBatch(x, &root, words[:few])
	}
	s.writeBatch(x, &root, words)
	s.roots[x.slot] = root
}

// writeBatch writes tuples with their weights into an index. What they will touch
// is fetched side by side.
func (s *Store) writeBatch(x *Index, root *uint64, words []uint64) {
	arity := len(x.cols)
	if len(words) > arity+1 {
		space := s.arena.Space()
		for i := 0; i < len(words); i += arity + 1 {
			s.warm += space.Warm(*root, words[i:i+arity])
		}
	}
	for i := 0; i < len(words); i += arity + 1 {
		s.writeIndex(x, root, words[i:i+arity], int64(words[i+arity]))
	}
}

// writeIndex sets one tuple and notes which subscribed prefixes it toggled.
func (s *Store) writeIndex(x *Index, root *uint64, key []uint64, weight int64) {
	if len(x.subs) == 0 {
		s.arena.Set(root, key, weight, -1)
		return
	}
	if len(x.subs) > 1 {
		s.noteOther(x, *root, key)
	}
	ch := s.arena.Set(root, key, weight, x.subs[0].width)
	x.noteFirst(key, ch, weight)
	if len(x.subs) > 1 {
		s.noteOther(x, *root, key)
	}
}

// addIndex adds to the weight of one tuple and notes which subscribed prefixes it
// toggled. A sum that does not fit is not written.
func (s *Store) addIndex(x *Index, root *uint64, key []uint64, change int64) (before, after int64, ok bool) {
	if len(x.subs) == 0 {
		ch, now, ok := s.arena.Add(root, key, change, -1)
		return ch.Old, now, ok
	}
	if len(x.subs) > 1 {
		s.noteOther(x, *root, key)
	}
	ch, now, ok := s.arena.Add(root, key, change, x.subs[0].width)
	x.noteFirst(key, ch, now)
	if len(x.subs) > 1 {
		s.noteOther(x, *root, key)
	}
	return ch.Old, now, ok
}

// noteFirst notes whether a write toggled the prefix that the write told about.
func (x *Index) noteFirst(key []uint64, ch trie.Change, weight int64) {
	if !ch.Rest && (ch.Old == 0) != (weight == 0) {
		x.subs[0].add(key[:x.subs[0].width])
	}
}

// noteOther notes the prefixes of other widths that are not there before a write,
// and those that are not there after it: what is noted twice was not toggled.
func (s *Store) noteOther(x *Index, root uint64, key []uint64) {
	for _, t := range x.subs[1:] {
		if !s.arena.Space().HasPrefix(root, key[:t.width]) {
			t.add(key[:t.width])
		}
	}
}

// Abort goes back to the state before Apply and forgets the noted changes. It
// may be called instead of Apply as well.
func (s *Store) Abort() {
	if s.before != nil {
		s.restore()
	}
	s.dropKept()
	s.settle()
}

// restore goes back to the roots that begin has noted, dropping every block
// written since.
func (s *Store) restore() {
	clear(s.roots[copy(s.roots, s.before):])
	s.before = nil
	s.arena.Abort()
}

// begin notes where Abort goes back to, before the first write of a version.
func (s *Store) begin() {
	if s.before != nil {
		return
	}
	s.before = append(s.saved[:0], s.roots...)
	if s.before == nil {
		s.before = []uint64{}
	}
	s.saved = s.before
}

// Copy appends the roots of the version under construction to dst[:0] and
// returns them with the space that they are read through.
func (s *Store) Copy(dst []uint64) (roots []uint64, space trie.Space) {
	return append(dst[:0], s.roots...), s.arena.Space()
}

// Seal ends the version under construction and starts the next one.
func (s *Store) Seal() { s.SealAs(s.arena.Version() + 1) }

// SealAs is Seal where the next version does not follow the one under
// construction: what was built belongs to the version before next.
func (s *Store) SealAs(next mvcc.Version) {
	s.before, s.kept = nil, s.kept[:0]
	s.arena.Seal(next)
}

// Collect gives back what no reader can reach.
func (s *Store) Collect(published mvcc.Version, pinned []mvcc.Version) {
	s.arena.CollectVersions(published, pinned)
	s.sweep(published, pinned)
}

// Bytes are the memory accounts of all tries.
func (s *Store) Bytes() trie.Bytes { return s.arena.Bytes() }

// HeldBy is the memory in bytes that is kept for the pinned version v.
func (s *Store) HeldBy(v mvcc.Version) int64 { return s.arena.HeldBy(v) }

// Writes is the number of view and index tuples written since the start.
func (s *Store) Writes() uint64 { return s.writes }
