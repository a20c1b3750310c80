package bench

import (
	"encoding/binary"

	"github.com/hashicorp/go-immutable-radix/v2"
	"github.com/tidwall/btree"

	"github.com/triegs/triegs/trie"
)

// structure keeps keys with weights in versions, except for the Go map, which
// has only the newest. A key is one word; a key of two columns of 32 bits is
// packed into it, so that no rival pays for comparing pairs.
type structure interface {
	// write gives the keys a weight, 0 to take them out, and ends a version. A
	// reader of the version before could be reading still while it writes, but
	// none is when it returns.
	write(keys []uint64, weight int64)
	// get is the sum of the weights of the keys.
	get(keys []uint64) int64
	// prefix is the sum of the second columns of the keys with the given first
	// columns; ok is false where keys have no order.
	prefix(first []uint64) (sum uint64, ok bool)
	// scan is the sum of all keys' last columns, in the order of the keys.
	scan() uint64
	// diff writes like write and returns a function that counts the keys
	// whose weights differ from the version before; nil where there is none.
	diff(keys []uint64, weight int64) func() int
}

// low is the last of two packed columns.
const low = 1<<32 - 1

// newStructure makes an empty structure over keys of one or two columns; nil
// for a name that is not known.
func newStructure(name string, columns int) structure {
	switch name {
	case "trie":
		return &byTrie{arena: trie.NewArena(1), k: columns}
	case "map":
		return goMap{}
	case "btree":
		return &byBTree{tree: new(btree.Map[uint64, int64])}
	case "iradix":
		return &byRadix{tree: iradix.New[int64]()}
	case "slice":
		return &bySlice{}
	}
	return nil
}

// byTrie is an arena with one trie.
type byTrie struct {
	arena *trie.Arena
	root  uint64
	k     int
	key   [2]uint64
	c     trie.Cursor
}

// split is the columns of a key.
func (t *byTrie) split(key uint64) []uint64 {
	if t.k == 1 {
		t.key[0] = key
		return t.key[:1]
	}
	t.key[0], t.key[1] = key>>32, key&low
	return t.key[:]
}

func (t *byTrie) change(keys []uint64, weight int64) {
	for _, key := range keys {
		t.arena.Set(&t.root, t.split(key), weight, -1)
	}
}

func (t *byTrie) write(keys []uint64, weight int64) {
	t.change(keys, weight)
	v := t.arena.Version()
	t.arena.Seal(v + 1)
	t.arena.CollectVersions(v, nil)
}

func (t *byTrie) get(keys []uint64) (sum int64) {
	space := t.arena.Space()
	for _, key := range keys {
		sum += space.Get(t.root, t.split(key))
	}
	return sum
}

func (t *byTrie) prefix(first []uint64) (sum uint64, ok bool) {
	space := t.arena.Space()
	for i := range first {
		for t.c.Seek(space, t.root, t.k, first[i:i+1]); t.c.Next(); {
			sum += t.c.Col(t.k - 1)
		}
	}
	return sum, true
}

func (t *byTrie) scan() (sum uint64) {
	for t.c.Seek(t.arena.Space(), t.root, t.k, nil); t.c.Next(); {
		sum += t.c.Col(t.k - 1)
	}
	return sum
}

// runs is scan by runs of leaves.
func (t *byTrie) runs() (sum uint64) {
	for t.c.Seek(t.arena.Space(), t.root, t.k, nil); t.c.Next(); {
		ids, _ := t.c.Run()
		if ids == nil {
			sum += t.c.Col(t.k - 1)
			continue
		}
		for _, id := range ids {
			sum += id
		}
		t.c.Skip()
	}
	return sum
}

func (t *byTrie) diff(keys []uint64, weight int64) func() int {
	old, space, v := t.root, t.arena.Space(), t.arena.Version()
	t.change(keys, weight)
	t.arena.Seal(v + 1)
	t.arena.CollectVersions(v, []uint64{v - 1})
	return func() (n int) {
		trie.Diff(space, old, t.arena.Space(), t.root, t.k, func([]uint64, int64, int64) bool {
			n++
			return true
		})
		return n
	}
}

// goMap is what somebody takes who needs no versions.
type goMap map[uint64]int64

func (m goMap) write(keys []uint64, weight int64) {
	for _, key := range keys {
		if weight == 0 {
			delete(m, key)
		} else {
			m[key] = weight
		}
	}
}

func (m goMap) get(keys []uint64) (sum int64) {
	for _, key := range keys {
		sum += m[key]
	}
	return sum
}

func (m goMap) prefix([]uint64) (uint64, bool) { return 0, false }

func (m goMap) scan() (sum uint64) {
	for key := range m {
		sum += key & low
	}
	return sum
}

func (m goMap) diff([]uint64, int64) func() int { return nil }

// byBTree is a B-tree that is copied at the end of each version.
type byBTree struct{ tree, published *btree.Map[uint64, int64] }

func (b *byBTree) write(keys []uint64, weight int64) {
	for _, key := range keys {
		if weight == 0 {
			b.tree.Delete(key)
		} else {
			b.tree.Set(key, weight)
		}
	}
	b.published = b.tree.Copy()
}

func (b *byBTree) get(keys []uint64) (sum int64) {
	for _, key := range keys {
		w, _ := b.tree.Get(key)
		sum += w
	}
	return sum
}

func (b *byBTree) prefix(first []uint64) (sum uint64, ok bool) {
	for _, f := range first {
		b.tree.Ascend(f<<32, func(key uint64, _ int64) bool {
			if key>>32 != f {
				return false
			}
			sum += key & low
			return true
		})
	}
	return sum, true
}

func (b *byBTree) scan() (sum uint64) {
	b.tree.Scan(func(key uint64, _ int64) bool {
		sum += key & low
		return true
	})
	return sum
}

func (b *byBTree) diff(keys []uint64, weight int64) func() int {
	old := b.tree.Copy()
	b.write(keys, weight)
	return func() (n int) {
		x, y := old.Iter(), b.tree.Iter()
		okX, okY := x.First(), y.First()
		for okX || okY {
			switch {
			case !okY || okX && x.Key() < y.Key():
				n++
				okX = x.Next()
			case !okX || y.Key() < x.Key():
				n++
				okY = y.Next()
			default:
				if x.Value() != y.Value() {
					n++
				}
				okX, okY = x.Next(), y.Next()
			}
		}
		return n
	}
}

// byRadix is an immutable radix tree with a transaction for each version.
type byRadix struct {
	tree *iradix.Tree[int64]
	buf  [8]byte
}

func (r *byRadix) key(key uint64) []byte {
	binary.BigEndian.PutUint64(r.buf[:], key)
	return r.buf[:]
}

func (r *byRadix) write(keys []uint64, weight int64) {
	txn := r.tree.Txn()
	for _, key := range keys {
		if weight == 0 {
			txn.Delete(r.key(key))
		} else {
			txn.Insert(binary.BigEndian.AppendUint64(nil, key), weight)
		}
	}
	r.tree = txn.Commit()
}

func (r *byRadix) get(keys []uint64) (sum int64) {
	for _, key := range keys {
		w, _ := r.tree.Get(r.key(key))
		sum += w
	}
	return sum
}

func (r *byRadix) prefix(first []uint64) (sum uint64, ok bool) {
	for _, f := range first {
		r.tree.Root().WalkPrefix(r.key(f << 32)[:4], func(key []byte, _ int64) bool {
			sum += uint64(binary.BigEndian.Uint32(key[4:]))
			return false
		})
	}
	return sum, true
}

func (r *byRadix) scan() (sum uint64) {
	r.tree.Root().Walk(func(key []byte, _ int64) bool {
		sum += uint64(binary.BigEndian.Uint32(key[4:]))
		return false
	})
	return sum
}

func (r *byRadix) diff(keys []uint64, weight int64) func() int {
	old := r.tree
	r.write(keys, weight)
	return func() (n int) {
		x, y := old.Root().Iterator(), r.tree.Root().Iterator()
		a, v, okX := x.Next()
		b, w, okY := y.Next()
		for okX || okY {
			order := 0
			if okX && okY {
				order = compareWords(a, b)
			}
			switch {
			case !okY || order < 0:
				n++
				a, v, okX = x.Next()
			case !okX || order > 0:
				n++
				b, w, okY = y.Next()
			default:
				if v != w {
					n++
				}
				a, v, okX = x.Next()
				b, w, okY = y.Next()
			}
		}
		return n
	}
}

// compareWords orders two big-endian words.
func compareWords(a, b []byte) int {
	switch x, y := binary.BigEndian.Uint64(a), binary.BigEndian.Uint64(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// bySlice is the floor of a scan: the keys one after another. It has no other
// operation.
type bySlice struct{ keys []uint64 }

func (s *bySlice) write(keys []uint64, _ int64)    { s.keys = append(s.keys, keys...) }
func (s *bySlice) get([]uint64) int64              { return 0 }
func (s *bySlice) prefix([]uint64) (uint64, bool)  { return 0, false }
func (s *bySlice) diff([]uint64, int64) func() int { return nil }
func (s *bySlice) scan() (sum uint64) {
	for _, key := range s.keys {
		sum += key & low
	}
	return sum
}
