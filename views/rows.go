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
	other []uint64 // room to sort into, if there is some
	sorting
}

// spareRows is the memory of rows that are no longer needed. While many tries
// are loaded one after another, rows would else be nearly all of what the
// garbage collector lets pile up.
type spareRows struct{ words, other []uint64 }

// reuse empties scratch rows for tuples of k columns, and lets go of what a bulk
// epoch has blown up.
func (r *rows) reuse(k int) {
	r.k, r.words = k, shrink(r.words)
	r.other = shrink(r.other)
}

// newRows makes room for n rows of k columns; it is one list at a time.
func (s *Store) newRows(k, n int) *rows {
	r := &rows{k: k, words: s.spare.words[:0], other: s.spare.other}
	s.spare = spareRows{}
	if need := n * (k + 1); need > cap(r.words) {
		if cap(r.words) > 0 {
			need += need / 8 // the next ones may be a little larger again
		}
		r.words = make([]uint64, 0, need)
	}
	return r
}

// newRowsOf makes room for as many rows as a trie over the given number of
// columns has tuples.
func (s *Store) newRowsOf(k int, space trie.Space, root uint64, columns int) *rows {
	return s.newRows(k, space.Count(root, columns))
}

// build makes a trie of sorted rows, which are gone afterwards.
func (s *Store) build(r *rows) uint64 {
	root := s.arena.Build(r.words, r.k)
	s.spare = spareRows{r.words, r.other}
	return root
}

func (r *rows) Len() int { return len(r.words) / (r.k + 1) }

func (r *rows) row(i int) []uint64 { return r.words[i*(r.k+1) : (i+1)*(r.k+1)] }

// sort sorts the rows, and adds up the weights of equal ones. It reports
// whether all sums fit. Rows that ascend already cost one pass; see order for
// others. Memory is one more copy of the rows, which the next rows use again.
func (r *rows) sort() bool {
	if r.Len() <= fewRows {
		r.sortFew()
		return r.combine()
	}
	from, diff := r.survey()
	if from > 0 {
		r.order(from, diff)
	}
	return r.combine()
}

// fewRows is how many rows are sorted by inserting one after the other.
const fewRows = 12

func (r *rows) sortFew() {
	k := r.k
	for i := 1; i < r.Len(); i++ {
		for j := i; j > 0 && slices.Compare(r.row(j)[:k], r.row(j - 1)[:k]) < 0; j-- {
			a, b := r.row(j), r.row(j-1)
			for c := range a {
				a[c], b[c] = b[c], a[c]
			}
		}
	}
}

// there leaves the rows that do not weigh 0, as Build needs them.
func (r *rows) there() []uint64 {
	n, stride := 0, r.k+1
	for i := 0; i < len(r.words); i += stride {
		if r.words[i+r.k] != 0 {
			n += copy(r.words[n:], r.words[i:i+stride])
		}
	}
	r.words = r.words[:n]
	return r.words
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
	out := s.newRowsOf(k, space, root, k)
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
	return s.build(out)
}

// Load fills a relation that has no fact yet, and that no query uses: each
// calls yield for every fact, in any order, with its multiplicity, and facts
// says about how many there are. It belongs to the version under construction.
// The cost is that of sorting the facts; memory beside the trie is twice
// arity+1 words for each fact, until Loaded is called after the last one.
func (s *Store) Load(relation int, facts int, each func(yield func(tuple []uint64, weight int64) bool)) {
	s.begin()
	r := s.relations[relation]
	in := s.newRows(r.arity, facts)
	s.loading = true
	each(func(tuple []uint64, weight int64) bool {
		in.words = append(append(in.words, tuple...), uint64(weight))
		return true
	})
	in.sort()
	s.roots[r.indexes[0].slot] = s.build(in)
}

// Loaded ends a series of Load and Register: memory that they have handed on
// from one to the next is given back.
func (s *Store) Loaded() {
	s.loading, s.spare = false, spareRows{}
	s.folding.counts, s.folding.states = rows{}, nil
}

// filling moves a cursor that a query is filled from, and asks every few
// thousand tuples whether to go on.
func (s *Store) filling(c *trie.Cursor) bool {
	return s.goOnFilling() && c.Next()
}

// mergeLast adds the weight of the row that begins at from, the last one, to the row
// before if both are of one tuple. It is false where the sum does not fit.
func (r *rows) mergeLast(from int) bool {
	last := from - 1 // weight of the row before
	if last < 0 || !slices.Equal(r.words[from-r.k-1:last], r.words[from:from+r.k]) {
		return true
	}
	sum, ok := semiring.Add(int64(r.words[last]), int64(r.words[from+r.k]))
	r.words[last], r.words = uint64(sum), r.words[:from]
	return ok
}
