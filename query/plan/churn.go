package plan

import (
	"math"

	"github.com/triegs/triegs/query"
)

const (
	// maxChurn bounds the churn of one alias above another.
	maxChurn = 1 << 12
	// staticLife is the lifetime of facts without a window, in multiples of the
	// longest window of the query. How long they really stay, or how many they
	// are, nobody knows; that they are above what comes and go quickly has to be
	// worse than above what does so slowly.
	staticLife = 4
	// depthBits is the room below the churn in a cost for a sum of depths: that of
	// MaxAtoms aliases in one line fits.
	depthBits = 20
)

// lives are the longest lifetimes in the windows of a query: of time, in
// nanoseconds, and of count windows, in appends.
type lives struct{ time, count int64 }

func longest(aliases []Alias) (l lives) {
	for i := range aliases {
		w := aliases[i].Window
		l.count = max(l.count, w.Last)
		l.time = max(l.time, lifetime(query.Window{Range: w.Range, Slide: w.Slide}))
	}
	return l
}

// lifetime is how long a fact stays in a window: in appends, or in nanoseconds.
// A window with a slide keeps what it has seen at least to its next step.
func lifetime(w query.Window) int64 { return max(w.Last, w.Range, w.Slide) }

// churn weighs what it costs to have one alias above another: about how often
// the facts below come and go while one above lives. It is 0 when they have no
// window and stay, and 1 exactly when no more of them than a constant number,
// one after the other, fit into the life of one above.
func (l lives) churn(above, below *Alias) int64 {
	a, b := above.Window, below.Window
	if b.IsZero() {
		return 0
	}
	la, lb := lifetime(a), lifetime(b)
	least := int64(1)
	switch {
	case a.IsZero():
		least = staticLife
		if la = l.time; b.Last > 0 {
			la = l.count
		}
		la = min(la, math.MaxInt64/staticLife) * staticLife
	case (a.Last > 0) != (b.Last > 0):
		return 2 // Nobody knows, but equal windows are better.
	case a.Last > 0 && above.Relation != below.Relation:
		least = 2
	}
	return max(least, min((la-1)/lb+1, maxChurn))
}
