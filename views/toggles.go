package views

import (
	"slices"
	"sort"
)

// toggles collects the prefixes of one length whose group became empty or
// non-empty in the version under construction, one entry for each time. A
// prefix that stands in it an even number of times is as it was.
type toggles struct {
	width int
	refs  int
	n     int
	words []uint64
	net   bool // only net changes are left
	// noted is where those of an index are listed once they have a prefix.
	noted *[]*toggles
	readers
}

func (t *toggles) add(prefix []uint64) {
	if t.n == 0 && t.noted != nil {
		*t.noted = append(*t.noted, t)
	}
	t.n++
	t.words = append(t.words, prefix...)
}

func (t *toggles) reset() {
	t.n, t.words, t.net = 0, shrink(t.words), false
}

func (t *toggles) at(i int) []uint64 { return t.words[i*t.width : (i+1)*t.width] }

// settle leaves each prefix whose group has changed over the epoch once, in
// ascending order: neighbouring groups lie in neighbouring blocks.
func (t *toggles) settle() {
	if t.n > 1 && !t.net {
		t.cancel()
	}
}

// cancel is settle where there is something to do.
func (t *toggles) cancel() {
	t.net = true
	switch t.width {
	case 0:
		t.n &= 1
		return
	case 1:
		slices.Sort(t.words)
	default:
		sort.Sort((*byPrefix)(t))
	}
	kept := 0
	for i := 0; i < t.n; {
		j := i + 1
		for j < t.n && slices.Equal(t.at(j), t.at(i)) {
			j++
		}
		if (j-i)&1 == 1 {
			copy(t.words[kept*t.width:], t.at(i))
			kept++
		}
		i = j
	}
	t.n, t.words = kept, t.words[:kept*t.width]
}

type byPrefix toggles

func (t *byPrefix) Len() int { return t.n }
func (t *byPrefix) Less(i, j int) bool {
	return slices.Compare((*toggles)(t).at(i), (*toggles)(t).at(j)) < 0
}
func (t *byPrefix) Swap(i, j int) {
	a, b := (*toggles)(t).at(i), (*toggles)(t).at(j)
	for c := range a {
		a[c], b[c] = b[c], a[c]
	}
}
