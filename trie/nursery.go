package trie

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/triegs/triegs/internal/invariant"
)

// table gives out slab numbers to an arena and its nurseries, so that one
// reference means one block whoever has made it.
//
// The slabs stand in one array that all of them share. Its places are written
// under the lock, and read without it: an arena reads those of its own slabs and
// of versions that are pinned for it, which nobody writes meanwhile. When the
// array has to move, older ones stay right for whoever has them, since they had
// all the slabs that those readers know of.
type table struct {
	mu     sync.Mutex
	space  Space
	olds   []Space      // the arrays before, which spaces of pinned versions may be
	unused []int32      // numbers given back
	nursed atomic.Int64 // slabs of nurseries
}

// take makes a slab and returns its number, with the space that has it.
func (t *table) take(nursery bool) (int32, Space) {
	words := make([]uint64, slabSize)
	t.mu.Lock()
	defer t.mu.Unlock()
	if nursery {
		t.nursed.Add(1)
	}
	if n := len(t.unused); n > 0 {
		i := t.unused[n-1]
		t.unused = t.unused[:n-1]
		t.space[i] = words
		return i, t.space
	}
	i := int32(len(t.space))
	if i > maxSlab {
		panic("trie: more than 64 GiB in one arena; whoever writes must stop at MaxBytes")
	}
	if len(t.space) == cap(t.space) {
		t.olds = append(t.olds, t.space)
	}
	t.space = append(t.space, words)
	return i, t.space
}

// give takes a slab back and returns the space without it.
func (t *table) give(i int32, nursery bool) Space {
	t.mu.Lock()
	defer t.mu.Unlock()
	if nursery {
		t.nursed.Add(-1)
	}
	t.space[i] = nil
	for _, old := range t.olds { // they would keep the slab alive
		if int(i) < len(old) {
			old[i] = nil
		}
	}
	t.unused = append(t.unused, i)
	return t.space
}

// Nursery makes an arena beside a, in which another goroutine builds tries while
// versions of a go on: for one writer of its own, which may read, through spaces
// of pinned versions of a, what those versions hold. Its blocks count in
// Bytes.Nurseries of a until [Arena.Adopt] makes them blocks of a, or
// [Arena.Discard] drops them. It has versions of its own, which begin anew.
//
// A root of a is no root of the nursery: it can be read there, not written.
func (a *Arena) Nursery() *Arena {
	if invariant.Enabled {
		invariant.Check(!a.nursery, "a nursery of a nursery")
	}
	n := newArena(MaxVersion+1, a.table)
	n.nursery = true
	return n
}

// Adopt makes the blocks of a nursery of a blocks of the version under
// construction: roots of the last version of the nursery are roots of a from here
// on. Nobody may read older versions of the nursery any more, and nobody may use
// it afterwards. Abort of this version of a drops them. Cost is that of the slabs,
// not of the blocks.
func (a *Arena) Adopt(n *Arena) {
	n.Seal(n.version + 1)
	n.CollectVersions(n.version-1, nil)
	a.room(len(n.slabs))
	for i := range int32(len(n.slabs)) {
		s := n.slabs[i]
		switch {
		case s.bump == 0:
			continue
		case s.live == 0:
			n.drop(i)
			continue
		}
		listed := s.listed
		s.next, s.prev, s.listed, s.adopted = noSlab, noSlab, false, a.version
		a.slabs[i] = s
		if listed {
			a.list(i)
		}
		a.adopted = append(a.adopted, i)
	}
	a.words.live += n.words.live
	a.words.slabs += n.words.slabs
	a.table.mu.Lock()
	a.space = a.table.space
	a.table.nursed.Add(-n.words.slabs / slabSize)
	a.table.mu.Unlock()
	n.retire()
}

// Discard drops a nursery with all its blocks. Nobody may use it afterwards.
func (a *Arena) Discard() {
	if invariant.Enabled {
		invariant.Check(a.nursery, "an arena that is no nursery is discarded")
	}
	for i := range int32(len(a.slabs)) {
		if a.slabs[i].bump > 0 {
			a.drop(i)
		}
	}
	a.retire()
}

// retire forgets what a nursery had, whose slabs have gone elsewhere.
func (a *Arena) retire() {
	*a = Arena{table: a.table, nursery: true}
	for i := range a.partial {
		a.partial[i] = noSlab
	}
	a.freeFn = a.free
}

// disown drops the slabs that were adopted in the version under construction,
// when its own blocks in them are free again.
func (a *Arena) disown() {
	if len(a.adopted) == 0 {
		return
	}
	for _, i := range a.adopted {
		s := &a.slabs[i]
		a.words.live -= int64(s.live) * int64(classes[s.class])
		a.drop(i)
	}
	a.empties = slices.DeleteFunc(a.empties, func(i int32) bool { return a.slabs[i].bump == 0 })
	a.adopted = a.adopted[:0]
}
