package query

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
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

// Spec writes the window as rule text has it in the brackets behind an atom: 10m
// slide 1m, last 100, or all for the zero Window.
func (w Window) Spec() string {
	if w.IsZero() {
		return "all"
	}
	return strings.TrimPrefix(w.String(), "window ")
}

// sparql writes the window as SPARQL text has it behind the group, with a blank
// before it.
func (w Window) sparql() string {
	switch {
	case w.Last > 0:
		return fmt.Sprintf(" WINDOW [LAST %d]", w.Last)
	case w.Range == 0:
		return ""
	case w.Slide == 0:
		return " WINDOW [RANGE " + FormatSpan(w.Range) + "]"
	}
	return " WINDOW [RANGE " + FormatSpan(w.Range) + " STEP " + FormatSpan(w.Slide) + "]"
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
	q.ShareWindow()
	return nil
}

// ShareWindow gives every atom without a window of its own that of the query. It
// is for parsers, who learn of the query's window behind the atoms.
func (q *Query) ShareWindow() {
	for i := range q.Atoms {
		if a := &q.Atoms[i]; !a.Own {
			a.Window = q.Window
		}
	}
}

// Check refuses a window that no text can say, with ErrValue.
func (w Window) Check() error {
	switch {
	case w.Range < 0 || w.Slide < 0 || w.Last < 0:
		return fmt.Errorf("%w: the size of a window is positive", errs.ErrValue)
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

// spanUnit is a unit of time as the plain form and as ISO 8601 call it.
type spanUnit struct {
	names []string
	iso   byte // 0 = ISO 8601 has none
	late  bool // stands behind the T
	ns    int64
}

// spanUnits stand in the order in which a span has to name them. Months and
// years are not among them: they are no length of time.
var spanUnits = []spanUnit{
	{[]string{"w"}, 'W', false, 7 * 24 * int64(time.Hour)},
	{[]string{"d"}, 'D', false, 24 * int64(time.Hour)},
	{[]string{"h"}, 'H', true, int64(time.Hour)},
	{[]string{"m"}, 'M', true, int64(time.Minute)},
	{[]string{"s"}, 'S', true, int64(time.Second)},
	{[]string{"ms"}, 0, true, int64(time.Millisecond)},
	// The micro sign and the Greek letter, which look the same.
	{[]string{"us", "\u00b5s", "\u03bcs"}, 0, true, int64(time.Microsecond)},
	{[]string{"ns"}, 0, true, 1},
}

// ParseSpan reads a span of time: 10m, 1h30m, 1.5s, 250ms, 2d, 1w, or in ISO
// 8601 PT10M, P1DT12H. A day is 24 hours. Units come from the greatest to the
// least, each once. Refused, with the reason, is what is no such text, is not
// positive, is no whole number of nanoseconds, or is more of them than int64
// holds.
func ParseSpan(text string) (ns int64, err error) {
	if text != "" && text[0]|0x20 == 'p' {
		ns, err = parseISO(text[1:])
	} else {
		ns, err = parsePlain(text)
	}
	if err != nil {
		return 0, fmt.Errorf("%s is not a span of time such as 10m, 1h30m or PT10M: %w", Quote(text), err)
	}
	if ns == 0 {
		return 0, fmt.Errorf("the span %s is not positive", Quote(text))
	}
	return ns, nil
}

// parsePlain reads numbers, each with the name of its unit.
func parsePlain(rest string) (ns int64, err error) {
	units := spanUnits
	for more := true; more; more = rest != "" {
		number, behind := cutNumber(rest)
		n := strings.IndexAny(behind, ".0123456789")
		if n < 0 {
			n = len(behind)
		}
		i := slices.IndexFunc(units, func(u spanUnit) bool { return slices.Contains(u.names, behind[:n]) })
		if i < 0 {
			return 0, fmt.Errorf("%s is no number with a unit of time in its place", Quote(rest))
		}
		if ns, err = addSpan(ns, number, units[i].ns); err != nil {
			return 0, err
		}
		units, rest = units[i+1:], behind[n:]
	}
	return ns, nil
}

// parseISO reads what follows the P.
func parseISO(rest string) (ns int64, err error) {
	units, late := spanUnits, false
	for more := true; more; more = rest != "" {
		if !late && rest != "" && rest[0]|0x20 == 't' {
			late, rest = true, rest[1:]
		}
		number, behind := cutNumber(rest)
		i := slices.IndexFunc(units, func(u spanUnit) bool {
			return u.late == late && u.iso != 0 && behind != "" && u.iso == behind[0]&^0x20
		})
		if i < 0 {
			return 0, fmt.Errorf("%s is no number with a unit of time in its place", Quote(rest))
		}
		if ns, err = addSpan(ns, number, units[i].ns); err != nil {
			return 0, err
		}
		units, rest = units[i+1:], behind[1:]
	}
	return ns, nil
}

// cutNumber cuts the digits and points off the front.
func cutNumber(s string) (number, rest string) {
	rest = strings.TrimLeft(s, ".0123456789")
	return s[:len(s)-len(rest)], rest
}

// addSpan adds a number of units, which may have a fraction, to a span.
func addSpan(ns int64, number string, unit int64) (int64, error) {
	whole, fraction, pointed := strings.Cut(number, ".")
	if whole == "" || pointed && fraction == "" || strings.Contains(fraction, ".") {
		return 0, fmt.Errorf("%s is not a number", Quote(number))
	}
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || n > uint64(math.MaxInt64-ns)/uint64(unit) {
		return 0, errLongSpan
	}
	ns += int64(n) * unit
	part, err := fractionOf(fraction, uint64(unit))
	if err != nil {
		return 0, err
	}
	if part > uint64(math.MaxInt64-ns) {
		return 0, errLongSpan
	}
	return ns + int64(part), nil
}

var (
	errLongSpan = errors.New("it is longer than int64 nanoseconds, 292 years")
	errFineSpan = errors.New("it is no whole number of nanoseconds")
)

// fractionOf takes the digits behind a point of a unit, exactly.
func fractionOf(digits string, unit uint64) (uint64, error) {
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return 0, nil
	}
	// No unit has more factors 2 than a week, which has 16, nor as many 5: with
	// more digits behind the point, the last one not 0, nothing is whole.
	if len(digits) > 16 {
		return 0, errFineSpan
	}
	n, power := uint64(0), uint64(1)
	for _, c := range digits {
		n, power = n*10+uint64(c-'0'), power*10
	}
	// n < power, so the quotient is less than the unit.
	hi, lo := bits.Mul64(n, unit)
	part, rest := bits.Div64(hi, lo, power)
	if rest != 0 {
		return 0, errFineSpan
	}
	return part, nil
}
