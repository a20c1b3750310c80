package hypergraph

import "slices"

// Extend returns the variables, ascending, that an acyclic query has to have as
// output besides those it has to be free-connex: none iff it is. They are the
// least such set, not only a smallest one. An acyclic query is free-connex iff it
// has no free path (FreePathCore), and of such a path every inner variable must
// become output: with some of them shown, two neighbours among the ends and the
// shown ones that have others between them are the ends of a free path again.
// Showing variables leaves those of other paths as necessary as before, so it is
// enough to show path after path until there is none.
//
// Of a cyclic query nothing useful is returned. Cost: one walk over the query for
// each output variable of the result and each path.
func Extend(atoms [][]int, out []int) []int {
	q := normalise(atoms, out)
	w := q.newWalk()
	var shown, queue []int
	for v, is := range q.out {
		if is {
			queue = append(queue, v)
		}
	}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for z := q.walkFrom(x, w); z >= 0; z = q.walkFrom(x, w) {
			for v := w.from[z]; v != x; v = w.from[v] {
				q.out[v] = true
				shown = append(shown, q.names[v])
				queue = append(queue, v)
			}
		}
	}
	slices.Sort(shown)
	return shown
}
