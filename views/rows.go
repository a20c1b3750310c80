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

// newRowsOf makes room for as many rows as a trie over the given number of
// columns has tuples.
func newRowsOf(k int, space trie.Space, root uint64, columns int) *rows {
	return &rows{k: k, words: make([]uint64, 0, space.Count(root, columns)*(k+1))}
}

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
	k, stride := r.k, r.k+1
	n := stride // end of the rows that are done
	for i := stride; i < len(r.words); i += stride {
		row, last := r.words[i:i+stride], r.words[n-stride:n]
		if !slices.Equal(row[:k], last[:k]) {
			if n != i {
				copy(r.words[n:], row)
			}
			n += stride
			continue
		}
		sum, ok := semiring.Add(int64(last[k]), int64(row[k]))
		if !ok {
			return false
		}
		last[k] = uint64(sum)
	}
	r.words = r.words[:min(n, len(r.words))]
	return true
}

// reorder builds a trie of the tuples of x in another order of their columns.
func (s *Store) reorder(x *Index, to []int) uint64 {
	k := len(x.cols)
	space, root := s.at(x)
	out := newRowsOf(k, space, root, k)
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
