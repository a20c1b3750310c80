package oracle

import (
	"math"
	"math/big"
	"slices"
)

// Window says which contributions an atom sees. The zero Window shows all that
// are live, whatever their event time. Its fields are those of a query text:
// a Range with or without a Slide, in nanoseconds, or a number of appends.
type Window struct {
	Range int64 // (end-Range, end]; math.MaxInt64 is a window that nothing leaves
	Slide int64 // the end moves only at multiples of it, counted from 1970
	Last  int64 // the newest appends of the relation
}

// interval is a range of event times, both ends in it; the zero interval with
// none set holds nothing.
type interval struct {
	from, to int64
	none     bool
}

// holds tells whether a time is in the interval.
func (i interval) holds(t int64) bool { return !i.none && i.from <= t && t <= i.to }

// at is the interval of event times that a window of time shows at logical time
// t.
func (w Window) at(t int64) interval {
	if w.Range == 0 {
		return interval{from: math.MinInt64, to: math.MaxInt64}
	}
	end := big.NewInt(t)
	if w.Slide > 0 {
		// Euclidean, so that the remainder of a negative time is positive.
		_, rest := new(big.Int).DivMod(end, big.NewInt(w.Slide), new(big.Int))
		end.Sub(end, rest)
	}
	if !end.IsInt64() {
		return interval{none: true} // before the first step that there is
	}
	from := new(big.Int).Sub(end, big.NewInt(w.Range))
	from.Add(from, big.NewInt(1))
	if !from.IsInt64() || w.Range == math.MaxInt64 {
		return interval{from: math.MinInt64, to: end.Int64()}
	}
	return interval{from: from.Int64(), to: end.Int64()}
}

// shows gives the test whether a window shows a live contribution of a relation
// with so many appends at logical time t.
func (w Window) shows(t, appends int64) func(c *contribution) bool {
	if w.Last > 0 {
		return func(c *contribution) bool { return c.number > appends-w.Last }
	}
	show := w.at(t)
	return func(c *contribution) bool { return show.holds(c.time) }
}

// needs gives the test whether a window shows a contribution at logical time t
// or will show it later.
func (w Window) needs(t, appends int64) func(c *contribution) bool {
	if w.Last > 0 {
		return w.shows(t, appends)
	}
	show := w.at(t)
	return func(c *contribution) bool { return show.none || c.time >= show.from }
}

// Retention says for how long a relation keeps its contributions. The zero
// Retention keeps everything, as for a relation that no query reads.
type Retention struct {
	Windows []Window // of the atoms that read the relation
	Span    int64    // asked for explicitly, 0 = not
}

// RetentionOf gives the retention of each relation that the queries read or for
// which a span is asked.
func RetentionOf(queries []*Query, spans map[string]int64) map[string]Retention {
	out := map[string]Retention{}
	for _, q := range queries {
		for _, a := range q.Atoms {
			r := out[a.Relation]
			r.Windows = append(r.Windows, a.Window)
			out[a.Relation] = r
		}
	}
	for rel, span := range spans {
		r := out[rel]
		r.Span = span
		out[rel] = r
	}
	return out
}

// keeps gives the test whether a contribution is still wanted at logical time t.
func (r Retention) keeps(t, appends int64) func(c *contribution) bool {
	if len(r.Windows) == 0 && r.Span == 0 {
		return func(*contribution) bool { return true }
	}
	var tests []func(*contribution) bool
	if r.Span > 0 {
		tests = append(tests, Window{Range: r.Span}.needs(t, appends))
	}
	for _, w := range r.Windows {
		tests = append(tests, w.needs(t, appends))
	}
	return func(c *contribution) bool {
		return slices.ContainsFunc(tests, func(needs func(*contribution) bool) bool { return needs(c) })
	}
}

// Retain sets what every relation keeps from the next Advance on. A relation
// that is not named keeps everything.
func (s *Store) Retain(r map[string]Retention) { s.retention = r }

// Now is the logical time.
func (s *Store) Now() int64 { return s.now }

// Advance moves the logical time, never back, and takes away the contributions
// that are not wanted any more. Their IDs are free again. It returns how many
// went.
func (s *Store) Advance(t int64) (expired int) {
	if !s.started || t > s.now {
		s.now, s.started = t, true
	}
	keeps := map[string]func(*contribution) bool{}
	for rel, r := range s.retention {
		keeps[rel] = r.keeps(s.now, s.appends[rel])
	}
	kept := make([]contribution, 0, len(s.live))
	for _, c := range s.live {
		if test, ok := keeps[c.relation]; !ok || test(&c) {
			kept = append(kept, c)
		}
	}
	expired = len(s.live) - len(kept)
	s.live = kept
	return expired
}

// In groups the live contributions of a relation that a window shows, in the
// order of their first contribution.
func (s *Store) In(relation string, w Window) (out []Weighted) {
	for _, f := range s.facts(relation, w) {
		out = append(out, f.Weighted)
	}
	return out
}

// facts is In with the values of the contributions.
func (s *Store) facts(relation string, w Window) (out []fact) {
	place, shows := map[string]int{}, w.shows(s.now, s.appends[relation])
	for i := range s.live {
		c := &s.live[i]
		if c.relation != relation || !shows(c) {
			continue
		}
		k := Key(c.tuple)
		at, ok := place[k]
		if !ok {
			at, place[k] = len(out), len(out)
			out = append(out, fact{Weighted: Weighted{Tuple: c.tuple}})
		}
		out[at].Weight++
		out[at].values = append(out[at].values, c.value)
	}
	return out
}
