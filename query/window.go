package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// Window says which contributions of its relations a query sees, at logical
// time t in nanoseconds. The zero Window lets it see all of them.
type Window struct {
	// Range, if not 0, lets the query see contributions with event time in
	// (t-Range, t]. math.MaxInt64 is a window that nothing ever leaves.
	Range int64
	// Slide, if not 0, moves t only at its multiples, counted from 1970. It has
	// a Range beside it.
	Slide int64
	// Last, if not 0, lets the query see the Last newest contributions of each
	// relation, in the order in which they were appended. It stands alone.
	Last int64
}

// IsZero reports whether the query sees everything.
func (w Window) IsZero() bool { return w == Window{} }

// At is the end of the window at logical time t: t itself, or the last multiple
// of the slide up to it; before the first multiple that int64 holds, the least
// time. Nothing wraps.
func (w Window) At(t int64) int64 {
	if w.Slide <= 1 {
		return t
	}
	back := t % w.Slide
	if back < 0 {
		back += w.Slide
	}
	if t < math.MinInt64+back {
		return math.MinInt64
	}
	return t - back
}

// Sees reports whether a contribution with event time at is in the window whose
// end is end, a result of At.
func (w Window) Sees(at, end int64) bool {
	if at > end {
		return false
	}
	if w.Range == 0 || w.Range == math.MaxInt64 {
		return true
	}
	// end-at is taken without wrapping: as uint64 it is right for end >= at.
	return uint64(end)-uint64(at) < uint64(w.Range)
}

// String writes the window as rule text has it, empty for the zero Window.
func (w Window) String() string {
	switch {
	case w.Last > 0:
		return fmt.Sprintf("last %d", w.Last)
	case w.Range == 0:
		return ""
	case w.Slide == 0:
		return "window " + FormatSpan(w.Range)
	}
	return "window " + FormatSpan(w.Range) + " slide " + FormatSpan(w.Slide)
}

// FormatSpan writes a span of time so that ParseSpan reads it back.
func FormatSpan(ns int64) string {
	s := time.Duration(ns).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// spanUnits are the units of a span in the order in which ISO 8601 has them.
// Months and years are not among them: they are not a length of time.
var spanUnits = []struct {
	letter byte
	late   bool // stands behind the T
	ns     int64
}{
	{'W', false, 7 * 24 * int64(time.Hour)}, {'D', false, 24 * int64(time.Hour)},
	{'H', true, int64(time.Hour)}, {'M', true, int64(time.Minute)}, {'S', true, int64(time.Second)},
}

// SetWindow gives every atom without a window of its own the window w, on a copy
// of the atoms. The zero Window changes nothing; another one than that which the
// text gives the whole query is ErrValue.
func (q *Query) SetWindow(w Window) error {
	switch {
	case w.IsZero() || w == q.Window:
		return nil
	case !q.Window.IsZero():
		return fmt.Errorf("%w: the text says %v, the option %v", errs.ErrValue, q.Window, w)
	}
	if err := w.Check(); err != nil {
		return err
	}
	q.Window = w
	q.Atoms = slices.Clone(q.Atoms)
	for i := range q.Atoms {
		if a := &q.Atoms[i]; !a.Own {
			a.Window = w
		}
	}
	return nil
}

// Check refuses a window that no text can say, with ErrValue.
func (w Window) Check() error {
	switch {
	case w.Range < 0 || w.Slide < 0 || w.Last < 0:
		return fmt.Errorf("%w: a window of a negative size", errs.ErrValue)
	case w.Slide > 0 && w.Range == 0:
		return fmt.Errorf("%w: a slide without a range", errs.ErrValue)
	case w.Last > 0 && w.Range > 0:
		return fmt.Errorf("%w: a window has a range of time or a number of contributions, not both", errs.ErrValue)
	}
	return nil
}

// From is the least event time that the window with this end shows; nothing
// wraps.
func (w Window) From(end int64) int64 {
	if w.Range == 0 || w.Range == math.MaxInt64 || end < math.MinInt64+(w.Range-1) {
		return math.MinInt64
	}
	return end - (w.Range - 1)
}

// ParseSpan reads a span of time: 10m, 1h30m, 1.5s, 250ms, 2d, 1w, or in ISO
// 8601 PT10M, P1DT12H. A day is 24 hours. What is not such a text, not
// positive, or more than int64 nanoseconds is refused, with the reason.
func ParseSpan(text string) (ns int64, err error) {
	if strings.HasPrefix(text, "P") || strings.HasPrefix(text, "p") {
		ns, err = parseISO(strings.ToUpper(text[1:]))
	} else {
		ns, err = parsePlain(text)
	}
	if err != nil {
		return 0, fmt.Errorf("%s is not a span of time such as 10m, 1h30m or PT10M: %w", Quote(text), err)
	}
	if ns <= 0 {
		return 0, fmt.Errorf("the span %s is not positive", Quote(text))
	}
	return ns, nil
}

// parsePlain reads numbers with units, weeks and days before what Go knows.
func parsePlain(text string) (ns int64, err error) {
	rest := text
	for _, u := range spanUnits[:2] {
		i := strings.IndexByte(rest, u.letter|0x20)
		if i < 0 {
			continue
		}
		if ns, err = addSpan(ns, rest[:i], u.ns); err != nil {
			return 0, err
		}
		rest = rest[i+1:]
	}
	if rest == "" && text != "" {
		return ns, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number with a unit", Quote(rest))
	}
	if sum := ns + int64(d); d < 0 || sum >= ns {
		return sum, nil
	}
	return 0, errSpan
}

var errSpan = fmt.Errorf("it is longer than int64 nanoseconds, 292 years")

// parseISO reads what follows the P.
func parseISO(rest string) (ns int64, err error) {
	late, any := false, false
	for _, u := range spanUnits {
		if u.late && !late && strings.HasPrefix(rest, "T") {
			rest, late = rest[1:], true
		}
		if u.late && !late {
			continue
		}
		i := strings.IndexByte(rest, u.letter)
		if t := strings.IndexByte(rest, 'T'); i < 0 || t >= 0 && t < i {
			continue
		}
		if ns, err = addSpan(ns, rest[:i], u.ns); err != nil {
			return 0, err
		}
		rest, any = rest[i+1:], true
	}
	if rest != "" || !any {
		return 0, fmt.Errorf("%s is left of it", Quote(rest))
	}
	return ns, nil
}

// addSpan adds a number of units, which may have a fraction, to a span.
func addSpan(ns int64, number string, unit int64) (int64, error) {
	whole, fraction, _ := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number", Quote(number))
	}
	if n > uint64(math.MaxInt64-ns)/uint64(unit) {
		return 0, errSpan
	}
	ns += int64(n) * unit
	if fraction == "" {
		if strings.Contains(number, ".") {
			return 0, fmt.Errorf("%s is not a number", Quote(number))
		}
		return ns, nil
	}
	part := unit
	for _, c := range fraction {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%s is not a number", Quote(number))
		}
		part /= 10
		if int64(c-'0') > 0 && part*int64(c-'0') > math.MaxInt64-ns {
			return 0, errSpan
		}
		ns += int64(c-'0') * part
	}
	return ns, nil
}
