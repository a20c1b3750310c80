package trie

import (
	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/mvcc"
)

// ref names a block: slab number and offset in units of two words. Zero is no
// block.
type ref = uint32

const (
	// A slab is 64 KiB: small enough that a store of a few facts stays small
	// although every size class has its own slabs, large enough for 2^20 slabs
	// (64 GiB) within 32-bit references.
	unitBits = 12
	unitMask = 1<<unitBits - 1
	slabSize = 1 << (unitBits + 1) // words

	maxSlab  = 1<<(32-unitBits) - 1
	maxWords = 2048 // the largest block
	noSlab   = int32(-1)
	freeMark = uint64(0) // kind bits of a free block
)

// MaxBytes is where a writer must stop adding to an arena: references end at 64
// GiB, and one version more has to fit before that is noticed.
const MaxBytes = 48 << 30

// classes are the block sizes in words. Every size is even, so that a
// reference can count units of two words. 68 is a wide node, 34 and 66 are full
// leaves of one column without and with weights.
var classes = [...]uint16{
	4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 34, 36, 40, 48, 56, 66, 68, 80, 98, 112, 130,
	160, 192, 256, 320, 416, 512, 672, 1024, 1344, 2048,
}

// classOf maps a size in words (rounded up to even, halved) to its class.
var classOf = func() (t [maxWords/2 + 1]uint8) {
	c := 0
	for half := range t {
		for int(classes[c]) < 2*half {
			c++
		}
		t[half] = uint8(c)
	}
	return t
}()

// Space is what a reader needs to follow references: the slabs of an arena as
// they were when a version was sealed. It stays valid as long as that version
// is pinned.
type Space [][]uint64

func (s Space) block(r ref) []uint64 {
	return s[r>>unitBits][(r&unitMask)<<1:]
}

// slab is a run of blocks of one class.
type slab struct {
	class      uint8
	live       int32 // blocks in use, retired ones included
	next, prev int32 // list of slabs of the class with a free block
	listed     bool
	empty      bool  // in the list of wholly free slabs
	free       ref   // list of free blocks, linked through word 0
	bump       int32 // word offset of the first block never used, 0 for no slab
	// adopted is the version that took the slab over from a nursery, whose blocks
	// count as made in it.
	adopted mvcc.Version
}

// Arena allocates blocks of words and writes tries into them. It has one
// version under construction at a time.
type Arena struct {
	table    *table
	nursery  bool
	space    Space
	slabs    []slab              // by number; those of other arenas are left zero
	partial  [len(classes)]int32 // first slab of the class with a free block
	empties  []int32             // slabs that have become wholly free, for sweep
	adopted  []int32             // slabs taken over in this version, for Abort
	version  mvcc.Version
	log      []ref // blocks allocated in this version, for Abort
	recl     mvcc.Reclaimer
	versions []mvcc.Version // scratch of Collect
	freeFn   func(ref uint32)
	words    struct{ live, slabs int64 }
	rows     []uint64 // rows of a leaf that bursts or a node that collapses
	op       outcome
}

// NewArena makes an empty arena whose first version under construction is v.
func NewArena(v mvcc.Version) *Arena { return newArena(v, &table{}) }

func newArena(v mvcc.Version, t *table) *Arena {
	a := &Arena{version: v, table: t}
	for i := range a.partial {
		a.partial[i] = noSlab
	}
	a.freeFn = a.free
	// Slab 0 starts at unit 1, so that no block has the reference 0.
	return a
}

// Version is the version under construction.
func (a *Arena) Version() mvcc.Version { return a.version }

// Space is the view that readers of the version under construction need. Take
// it when the version is complete.
func (a *Arena) Space() Space { return a.space }

// Seal ends the version under construction and starts the next one, next. The
// blocks of the ended version are never written again.
func (a *Arena) Seal(next mvcc.Version) {
	if invariant.Enabled && next <= a.version {
		invariant.Check(false, "version %d follows %d", next, a.version)
	}
	a.recl.Seal(a.version)
	a.adopted = a.adopted[:0]
	a.forget()
	a.sweep()
	a.version = next
}

// Abort drops everything the version under construction has allocated or
// adopted. The caller goes back to the roots of the version before.
func (a *Arena) Abort() {
	before, _ := a.recl.Retained()
	a.recl.Discard()
	after, _ := a.recl.Retained()
	a.words.live += before - after // what was retired lives on
	for _, r := range a.log {
		// A block that was freed again within the version stands in the log
		// once for each life.
		if h := a.space.block(r)[0]; kindOf(h) != freeMark && versionOf(h) == a.version {
			a.words.live -= int64(a.size(r))
			a.free(r)
		}
	}
	a.disown()
	a.forget()
	a.sweep()
}

// forget empties what is kept for one version, and lets go of memory that a
// bulk one has blown up.
func (a *Arena) forget() {
	if a.log = a.log[:0]; cap(a.log) > 1<<17 {
		a.log = nil
	}
	if cap(a.rows) > 1<<17 {
		a.rows = nil
	}
}

// Collect gives back the blocks that no reader can reach, given the published
// version and the pinned ones.
func (a *Arena) Collect(published mvcc.Version, pins *mvcc.Pins) {
	a.versions = pins.Versions(a.versions[:0])
	a.CollectVersions(published, a.versions)
}

// CollectVersions is Collect for a list of pinned versions in ascending order.
func (a *Arena) CollectVersions(published mvcc.Version, pinned []mvcc.Version) {
	a.recl.Collect(published, pinned, a.freeFn)
	if len(a.log) == 0 && len(a.adopted) == 0 {
		a.sweep()
	}
}

// size is the size in words of the block's class.
func (a *Arena) size(r ref) uint32 {
	return uint32(classes[a.slabs[r>>unitBits].class])
}

// alloc returns a block of at least n words, its contents undefined.
func (a *Arena) alloc(n int) (ref, []uint64) {
	class := classOf[(n+1)>>1]
	i := a.partial[class]
	if i == noSlab {
		i = a.grow(class)
	}
	s := &a.slabs[i]
	size := int32(classes[class])
	var r ref
	if s.free != 0 {
		r = s.free
		s.free = ref(a.space.block(r)[0])
	} else {
		r = ref(i)<<unitBits | ref(s.bump>>1)
		s.bump += size
	}
	s.live++
	if s.free == 0 && s.bump+size > slabSize {
		a.unlist(i)
	}
	a.words.live += int64(size)
	a.log = append(a.log, r)
	return r, a.space.block(r)
}

// grow adds a slab to a class and returns its number.
func (a *Arena) grow(class uint8) int32 {
	i, space := a.table.take(a.nursery)
	a.space = space
	a.room(int(i) + 1)
	a.words.slabs += slabSize
	// Unit 0 of every slab stays unused: it makes the reference 0 impossible.
	a.slabs[i] = slab{class: class, next: noSlab, prev: noSlab, bump: 2}
	a.list(i)
	return i
}

// room makes places for n slabs.
func (a *Arena) room(n int) {
	if n > len(a.slabs) {
		a.slabs = append(a.slabs, make([]slab, n-len(a.slabs))...)
	}
}

// free gives a block back to its slab, and the slab to the runtime when it was
// the last one in use.
func (a *Arena) free(r ref) {
	i := int32(r >> unitBits)
	s := &a.slabs[i]
	b := a.space.block(r)
	if invariant.Enabled {
		// The guards keep the arguments off the heap in builds that check.
		if kindOf(b[0]) == freeMark {
			invariant.Check(false, "block %d is freed twice", r)
		}
		for j := range int(classes[s.class]) {
			b[j] = invariant.Poison
		}
	}
	b[0] = uint64(s.free)
	s.free = r
	s.live--
	if s.live == 0 && !s.empty {
		s.empty = true
		a.empties = append(a.empties, i)
	}
	if !s.listed {
		a.list(i)
	}
}

// sweep gives wholly free slabs back to the runtime, but for the last one of a
// class with room, against thrashing. It runs between versions only: the log of
// a version must not name blocks of a slab that has been put to another use.
func (a *Arena) sweep() {
	for _, i := range a.empties {
		s := &a.slabs[i]
		s.empty = false
		if s.live == 0 && (a.partial[s.class] != i || s.next != noSlab) {
			a.drop(i)
		}
	}
	a.empties = a.empties[:0]
}

// drop gives a wholly free slab back to the runtime.
func (a *Arena) drop(i int32) {
	if a.slabs[i].listed {
		a.unlist(i)
	}
	a.slabs[i] = slab{}
	a.space = a.table.give(i, a.nursery)
	a.words.slabs -= slabSize
}

func (a *Arena) list(i int32) {
	s := &a.slabs[i]
	head := a.partial[s.class]
	s.next, s.prev, s.listed = head, noSlab, true
	if head != noSlab {
		a.slabs[head].prev = i
	}
	a.partial[s.class] = i
}

func (a *Arena) unlist(i int32) {
	s := &a.slabs[i]
	if s.prev != noSlab {
		a.slabs[s.prev].next = s.next
	} else {
		a.partial[s.class] = s.next
	}
	if s.next != noSlab {
		a.slabs[s.next].prev = s.prev
	}
	s.listed = false
}

// release ends the life of a block that the version under construction no
// longer reaches.
func (a *Arena) release(r ref, header uint64) {
	if invariant.Enabled && a.slabs[r>>unitBits].bump <= 0 {
		invariant.Check(false, "block %d of another arena is released", r)
	}
	size := a.size(r)
	a.words.live -= int64(size)
	born := versionOf(header)
	if born > MaxVersion && !a.nursery {
		born = a.slabs[r>>unitBits].adopted
	}
	if born != a.version {
		a.recl.Retire(r, size, born)
		return
	}
	a.free(r)
}

// own returns a writable block with the content of r: r itself when it was born
// in the version under construction, a copy of its first n words otherwise.
func (a *Arena) own(r ref, n int) (ref, []uint64) {
	b := a.space.block(r)
	h := b[0]
	if versionOf(h) == a.version {
		return r, b
	}
	size := int(a.size(r))
	c, d := a.alloc(size)
	copy(d[1:n], b[1:n])
	d[0] = withVersion(h, a.version)
	a.release(r, h)
	return c, d
}

// Bytes tells where the memory of the arena is, in bytes: Live blocks are
// reachable from the version under construction, Pending ones were retired and
// wait for the next publication, Held ones wait for pins, Reusable is free
// space inside slabs, and Total is all slabs. Nurseries is, of an arena that is
// none itself, what slabs of its nurseries take beside that.
type Bytes struct{ Live, Pending, Held, Reusable, Total, Nurseries int64 }

// Bytes reports the memory accounts.
func (a *Arena) Bytes() Bytes {
	pending, held := a.recl.Retained()
	b := Bytes{Live: 8 * a.words.live, Pending: 8 * pending, Held: 8 * held, Total: 8 * a.words.slabs}
	b.Reusable = b.Total - b.Live - b.Pending - b.Held
	if !a.nursery {
		b.Nurseries = 8 * slabSize * a.table.nursed.Load()
	}
	return b
}

// HeldBy is the memory in bytes that waits for the pinned version v.
func (a *Arena) HeldBy(v mvcc.Version) int64 { return 8 * a.recl.Held(v) }
