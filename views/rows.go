package views

import (
	"slices"

	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// rows is a list of tuples of k columns, each followed by its weight, for
// loading a trie in one go.
type rows struct {
	k     int
	words []uint64
}

func newRows(k int) *rows { return &rows{k: k} }

func (r *rows) Len() int { return len(r.words) / (r.k + 1) }

func (r *rows) row(i int) []uint64 { return r.words[i*(r.k+1) : (i+1)*(r.k+1)] }

// sort sorts the rows, and adds up the weights of equal ones. It reports
// whether all sums fit. Rows that ascend already cost one pass; see order for
// others. Memory is one more copy of the rows, which is gone afterwards.
func (r *rows) sort() bool {
	from, diff := r.survey()
	if from > 0 {
		r.order(from, diff)
	}
	return r.combine()
}

// combine adds up the weights of equal rows, which stand side by side.
func (r *rows) combine() bool {
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
		if n != i {
			copy(r.row(n), row)
		}
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
	perm := make([]int, k)
	for i, col := range to {
		perm[i] = slices.Index(x.cols, col)
	}
	var c trie.Cursor
	c.Seek(space, root, k, nil)
	for s.filling(&c) {
		for _, i := range perm {
			out.words = append(out.words, c.Col(i))
		}
		out.words = append(out.words, uint64(c.Weight()))
	}
	out.sort()
	return s.arena.Build(out.words, k)
}

// Load fills a base relation that has no fact yet, and that no query uses: each
// calls yield for every fact, in any order, with its multiplicity, and facts
// says about how many there are. It belongs to the version under construction.
// The cost is that of sorting the facts; memory beside the trie is twice
// arity+1 words for each fact while it runs.
func (s *Store) Load(relation int, facts int, each func(yield func(tuple []uint64, weight int64) bool)) {
	r := s.relations[relation]
	in := newRows(r.arity)
	in.words = make([]uint64, 0, facts*(r.arity+1))
	each(func(tuple []uint64, weight int64) bool {
		in.words = append(append(in.words, tuple...), uint64(weight))
		return true
	})
	in.sort()
	s.roots[r.indexes[0].slot] = s.arena.Build(in.words, r.arity)
}

// filling moves a cursor that a query is filled from, and asks every few
// thousand tuples whether to go on.
func (s *Store) filling(c *trie.Cursor) bool {
	if s.steps++; s.steps&0xfff == 0 && s.stopped == nil {
		s.stopped = s.check()
	}
	return s.stopped == nil && c.Next()
}
