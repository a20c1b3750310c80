package randq

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/oracle"
)

// ranges and slides are the spans of windows. An epoch of the stream is 10 long
// and its event times go back 15, so most of them lie within a few epochs.
var (
	ranges = []int64{1, 5, 10, 20, 20, 35, 50, 50, 120, 1000, math.MaxInt64}
	slides = []int64{1, 5, 10, 10, 30, 70}
	lasts  = []int64{1, 2, 5, 10, 20, 60}
)

// window draws a window; some are the zero Window.
func window(r *rand.Rand) (w oracle.Window) {
	switch p := r.IntN(100); {
	case p < 50:
		w.Range = pick(r, ranges)
	case p < 65:
		w.Range, w.Slide = pick(r, ranges), pick(r, slides)
	case p < 80:
		w.Last = pick(r, lasts)
	}
	return w
}

// addWindows gives a query a window, and some of the atoms another one.
func (q *Query) addWindows(r *rand.Rand) {
	q.Window = window(r)
	for i := range q.Atoms {
		q.Atoms[i].Window = q.Window
		if !q.SPARQL && chance(r, 30) {
			q.Atoms[i].Window = window(r)
		}
	}
}

// setWindow changes the window of the query and of the atoms that share it, on a
// copy of the atoms.
func (q *Query) setWindow(w oracle.Window) {
	q.Atoms = slices.Clone(q.Atoms)
	for i := range q.Atoms {
		if q.Atoms[i].Window == q.Window {
			q.Atoms[i].Window = w
		}
	}
	q.Window = w
}

// windowText writes a window as the brackets behind an atom hold it.
func windowText(w oracle.Window) string {
	switch {
	case w.Last > 0:
		return fmt.Sprintf("last %d", w.Last)
	case w.Range == 0:
		return "all"
	case w.Slide == 0:
		return fmt.Sprintf("%dns", w.Range)
	}
	return fmt.Sprintf("%dns slide %dns", w.Range, w.Slide)
}

// option writes the window of a query as an option of rule text.
func option(w oracle.Window) string {
	switch {
	case w == oracle.Window{}:
		return ""
	case w.Last > 0:
		return " " + windowText(w)
	}
	return " window " + windowText(w)
}

// clause writes the window of a query as SPARQL has it.
func clause(w oracle.Window) string {
	switch {
	case w == oracle.Window{}:
		return ""
	case w.Last > 0:
		return fmt.Sprintf(" WINDOW [LAST %d]", w.Last)
	case w.Slide == 0:
		return fmt.Sprintf(" WINDOW [RANGE %dns]", w.Range)
	}
	return fmt.Sprintf(" WINDOW [RANGE %dns STEP %dns]", w.Range, w.Slide)
}

// parseWindow reads what windowText wrote off the front.
func parseWindow(ts []string) (w oracle.Window, rest []string, err error) {
	next := func(word string) (n int64) {
		if len(ts) < 2 {
			err = fmt.Errorf("%s wants a number", word)
			return 0
		}
		n, err = strconv.ParseInt(strings.TrimSuffix(ts[1], "ns"), 10, 64)
		ts = ts[2:]
		return n
	}
	switch {
	case len(ts) > 0 && ts[0] == "all":
		return w, ts[1:], nil
	case len(ts) > 0 && ts[0] == "last":
		w.Last = next("last")
		return w, ts, err
	}
	ts = append([]string{"window"}, ts...)
	w.Range = next("window")
	if err == nil && len(ts) > 0 && ts[0] == "slide" {
		w.Slide = next("slide")
	}
	return w, ts, err
}
