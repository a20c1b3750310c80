package trie

import (
	"fmt"
	"math/bits"
)

// Check walks the trie with the given root over k columns and returns its
// number of tuples, or an error that names the first rule of the package
// comment that does not hold. Cost is linear.
func (s Space) Check(root uint64, k int) (tuples int64, err error) {
	if root != 0 {
		if tuples, err = s.check(root, k); err != nil {
			return 0, err
		}
	}
	var (
		c    Cursor
		last []uint64
		seen int64
	)
	c.Seek(s, root, k, nil)
	row := make([]uint64, k)
	for c.Next() {
		c.Columns(row, 0)
		if seen > 0 && !lessRows(last, row) {
			return 0, fmt.Errorf("trie: tuple %v follows %v", row, last)
		}
		if c.Weight() == 0 {
			return 0, fmt.Errorf("trie: tuple %v has weight 0", row)
		}
		last = append(last[:0], row...)
		seen++
	}
	if seen != tuples {
		return 0, fmt.Errorf("trie: a scan finds %d tuples, the blocks hold %d", seen, tuples)
	}
	return tuples, nil
}

func lessRows(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// check counts the tuples of a non-empty subtree over r columns.
func (s Space) check(word uint64, r int) (int64, error) {
	if r == 0 {
		return 1, nil
	}
	if word&tagMask == tagOne {
		if r != 1 || oneWeightOf(word) == 0 {
			return 0, fmt.Errorf("trie: packed tuple %x over %d columns", word, r)
		}
		return 1, nil
	}
	if !isBlock(word) {
		return 0, fmt.Errorf("trie: child word %x has no tag", word)
	}
	b := s.block(refOf(word))
	h := b[0]
	n := countOf(h)
	switch kindOf(h) {
	case kindLeaf:
		if n == 0 || n > capOf(h) || n > leafMax(r) {
			return 0, fmt.Errorf("trie: leaf of %d tuples with room for %d over %d columns", n, capOf(h), r)
		}
		return int64(n), nil
	case kindNode:
		if word != nodeWord(refOf(word), b) {
			return 0, fmt.Errorf("trie: word %x refers to a node with header %x", word, h)
		}
		return s.checkNode(b, n, r)
	}
	return 0, fmt.Errorf("trie: block %d is free or unknown (header %x)", refOf(word), h)
}

func (s Space) checkNode(b []uint64, n, r int) (int64, error) {
	if n == 0 || bits.OnesCount64(bitmapOf(b)) != n {
		return 0, fmt.Errorf("trie: node of %d children has bitmap %016x", n, bitmapOf(b))
	}
	if shiftOf(b) == 0 {
		r--
	}
	var total int64
	for d := range uint(fanout) {
		there := bitmapOf(b)&(1<<d) != 0
		if !there && !wide(b[0]) {
			continue
		}
		child := b[childAt(b, d)]
		if (child != 0) != there {
			return 0, fmt.Errorf("trie: child %d of a node is %x, bitmap %016x", d, child, bitmapOf(b))
		}
		if !there {
			continue
		}
		t, err := s.check(child, r)
		if err != nil {
			return 0, err
		}
		total += t
	}
	return total, nil
}
