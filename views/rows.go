package views

import (
	"slices"
	"sort"

	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// rows is a list of tuples of k columns, each followed by its weight, for
// loading a trie in one go.
type rows struct {
	k     int
	words []uint64
	swap  []uint64
}

func newRows(k int) *rows { return &rows{k: k, swap: make([]uint64, k+1)} }

func (r *rows) Len() int { return len(r.words) / (r.k + 1) }

func (r *rows) Less(i, j int) bool {
	a, b := r.row(i), r.row(j)
	for c := range r.k {
		if a[c] != b[c] {
			return a[c] < b[c]
		}
	}
	return false
}

func (r *rows) Swap(i, j int) {
	a, b := r.row(i), r.row(j)
	copy(r.swap, a)
	copy(a, b)
	copy(b, r.swap)
}

func (r *rows) row(i int) []uint64 { return r.words[i*(r.k+1) : (i+1)*(r.k+1)] }

// sort puts the columns of each row into the order cols, sorts the rows, and
// adds up the weights of equal ones. It reports whether all sums fit.
func (r *rows) sort(cols []int) bool {
	for i := range r.Len() {
		row := r.row(i)
		copy(r.swap, row)
		for j, c := range cols {
			row[j] = r.swap[c]
		}
	}
	if !sort.IsSorted(r) {
		sort.Sort(r)
	}
	n := 0
	for i := range r.Len() {
		row := r.row(i)
		if n > 0 && slices.Equal(r.row(n - 1)[:r.k], row[:r.k]) {
			sum, ok := semiring.Add(int64(r.row(n - 1)[r.k]), int64(row[r.k]))
			if !ok {
				return false
			}
			r.row(n - 1)[r.k] = uint64(sum)
			continue
		}
		copy(r.row(n), row)
		n++
	}
	r.words = r.words[:n*(r.k+1)]
	return true
}

// reorder builds a trie of the tuples below root, whose columns stand in the
// order from, in the order to. Both are permutations of the same columns.
func reorder(a *trie.Arena, space trie.Space, root uint64, from, to []int) uint64 {
	k := len(from)
	out := newRows(k)
	var c trie.Cursor
	c.Seek(space, root, k, nil)
	for c.Next() {
		for i := range k {
			out.words = append(out.words, c.Col(i))
		}
		out.words = append(out.words, uint64(c.Weight()))
	}
	perm := make([]int, k)
	for i, col := range to {
		perm[i] = slices.Index(from, col)
	}
	out.sort(perm)
	return a.Build(out.words, k)
}
