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

// reorder builds a trie of the tuples of x in another order of their columns.
func (s *Store) reorder(x *Index, to []int) uint64 {
	k := len(x.cols)
	out := newRows(k)
	space, root := s.at(x)
	var c trie.Cursor
	c.Seek(space, root, k, nil)
	for s.filling(&c) {
		for i := range k {
			out.words = append(out.words, c.Col(i))
		}
		out.words = append(out.words, uint64(c.Weight()))
	}
	perm := make([]int, k)
	for i, col := range to {
		perm[i] = slices.Index(x.cols, col)
	}
	out.sort(perm)
	return s.arena.Build(out.words, k)
}

// filling moves a cursor that a query is filled from, and asks every few
// thousand tuples whether to go on.
func (s *Store) filling(c *trie.Cursor) bool {
	if s.steps++; s.steps&0xfff == 0 && s.stopped == nil {
		s.stopped = s.check()
	}
	return s.stopped == nil && c.Next()
}
