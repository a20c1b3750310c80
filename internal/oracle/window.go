package oracle

import (
	"math"
	"math/big"
)

// Window says which contributions an atom sees. The zero Window shows all that
// are live, whatever their event time. Its fields are those of a query text:
// a Range with or without a Slide, in nanoseconds, or a number of appends.
type Window struct {
	Range int64 // (end-Range, end]; math.MaxInt64 is a window that nothing leaves
	Slide int64 // the end moves only at multiples of it, counted from 1970
	Last  int64 // the newest appends of the relation
}

// shows tells whether a live contribution is in the window at logical time t,
// when its relation has had so many appends.
func (w Window) shows(c *contribution, t, appends int64) bool {
	switch {
	case w.Last > 0:
		return c.number > appends-w.Last
	case w.Range == 0:
		return true
	}
	at, end := big.NewInt(c.time), w.end(t)
	return at.Cmp(end) <= 0 && w.since(at, end)
}

// end is the greatest multiple of the slide up to t.
func (w Window) end(t int64) *big.Int {
	end := big.NewInt(t)
	if w.Slide > 0 {
		// Euclidean, so that the remainder of a negative time is positive.
		_, rest := new(big.Int).DivMod(end, big.NewInt(w.Slide), new(big.Int))
		end.Sub(end, rest)
	}
	return end
}

// since tells whether a time lies behind the lower end of the window.
func (w Window) since(at, end *big.Int) bool {
	if w.Range == math.MaxInt64 {
		return true
	}
	return at.Cmp(new(big.Int).Sub(end, big.NewInt(w.Range))) > 0
}

// needs tells whether the window shows the contribution at logical time t or
// will show it later.
func (w Window) needs(c *contribution, t, appends int64) bool {
	if w.Last > 0 || w.Range == 0 {
		return w.shows(c, t, appends)
	}
	return w.since(big.NewInt(c.time), w.end(t))
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

// keeps tells whether a contribution is still wanted at logical time t.
func (r *Retention) keeps(c *contribution, t, appends int64) bool {
	if len(r.Windows) == 0 && r.Span == 0 {
		return true
	}
	if r.Span > 0 && (Window{Range: r.Span}).needs(c, t, appends) {
		return true
	}
	for _, w := range r.Windows {
		if w.needs(c, t, appends) {
			return true
		}
	}
	return false
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
	kept := make([]contribution, 0, len(s.live))
	for i := range s.live {
		c := &s.live[i]
		r := s.retention[c.relation]
		if r.keeps(c, s.now, s.appends[c.relation]) {
			kept = append(kept, *c)
		}
	}
	expired = len(s.live) - len(kept)
	s.live = kept
	return expired
}

// In groups the live contributions of a relation that a window shows, in the
// order of their first contribution.
func (s *Store) In(relation string, w Window) (out []Weighted) {
	place := map[string]int{}
	for i := range s.live {
		c := &s.live[i]
		if c.relation != relation || !w.shows(c, s.now, s.appends[relation]) {
			continue
		}
		k := Key(c.tuple)
		at, ok := place[k]
		if !ok {
			at, place[k] = len(out), len(out)
			out = append(out, Weighted{Tuple: c.tuple})
		}
		out[at].Weight++
	}
	return out
}
