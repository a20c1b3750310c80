package plan

import "github.com/triegs/triegs/query"

// maxChurn is the churn below an alias without a window, whose facts outlive all
// others.
const maxChurn = 1024

// depthBits is the room below the churn in a cost for a sum of depths: that of
// MaxAtoms aliases in one line fits.
const depthBits = 20

// churn weighs what it costs to have one alias above another: about how often
// the facts below come and go while one above lives, 0 when they have no window
// and stay.
func churn(above, below *Alias) int64 {
	a, b := above.Window, below.Window
	switch {
	case b.IsZero():
		return 0
	case a.IsZero():
		return maxChurn
	}
	least := int64(1)
	if !commensurable(above, below) {
		least = 2 // Nobody knows, but equal windows are better.
	}
	if (a.Last > 0) != (b.Last > 0) {
		return least
	}
	la, lb := lifetime(a), lifetime(b)
	if la <= lb {
		return least
	}
	return max(least, min((la-1)/lb+1, maxChurn-1))
}

// commensurable reports whether the lifetimes of the facts of two aliases with
// windows can be told from each other whatever comes: both are of time, or both
// are counted over the same relation.
func commensurable(a, b *Alias) bool {
	if a.Window.Last > 0 || b.Window.Last > 0 {
		return a.Relation == b.Relation && a.Window.Last > 0 && b.Window.Last > 0
	}
	return true
}

// lifetime is how long a fact stays in a window: in appends, or in nanoseconds.
// A window with a slide keeps what it has seen at least to its next step.
func lifetime(w query.Window) int64 { return max(w.Last, w.Range, w.Slide) }
