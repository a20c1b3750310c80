package summary

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/term"
)

// Summary holds aggregates of the answers of a query, by group.
type Summary struct {
	l       *layout
	names   []string
	f       *fold
	now     int64 // logical time in ns
	begun   bool
	token   triegs.Token
	epoch   triegs.Epoch
	changes []Change

	staged []staged
	arena  []triegs.Term // of what is staged
}

// staged is a delta whose terms are at a place of the arena, which may move.
type staged struct {
	start int
	at, n int64
}

// Change is a group that is new, gone or another one. Group, Old and New must not be
// changed; they stay valid.
type Change struct {
	Group []triegs.Term
	// Old and New are the values of the aggregates, nil where the group is not there.
	Old, New []any
}

func (c Change) differs() bool { return !slices.Equal(c.Old, c.New) }

// New makes an empty summary of the answers of a query. The updates must be those of
// a subscription to it that begins with the whole answer (triegs.SnapshotFirst).
//
// Errors: ErrValue, with all that is wrong with the options.
func New(q *triegs.Query, opts Options) (*Summary, error) {
	l, err := plan(q, opts)
	if err != nil {
		return nil, edge(err)
	}
	s := &Summary{l: l, f: newFold(l), now: math.MinInt64}
	s.names = slices.Clone(opts.GroupBy)
	for _, a := range opts.Aggregates {
		s.names = append(s.names, a.String())
	}
	return s, nil
}

// edge marks an error of the public API, unless one has come through it already.
func edge(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("triegs: %w", err)
}

// Columns names what is told: the columns of GroupBy, then the aggregates as a query
// has them ("sum(a)"). The slice must not be changed.
func (s *Summary) Columns() []string { return s.names }

// Epoch is the epoch whose answers the summary is of, 0 before the first update.
func (s *Summary) Epoch() triegs.Epoch { return s.epoch }

// Token is the position behind the last update, the zero Token before the first.
func (s *Summary) Token() triegs.Token { return s.token }

// Time is the logical time that the summary has reached: the greatest of its updates
// and of Advance, zero before.
func (s *Summary) Time() time.Time {
	if s.now == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, s.now).UTC()
}

// Len is the number of groups.
func (s *Summary) Len() int { return len(s.f.groups) }

// Apply makes the summary one of the answers at u.Epoch, at the time of u or a later
// one that Advance has reached. A whole answer replaces what there was.
//
// It does all or nothing. Errors: ErrValue (the first update is not the whole answer,
// an update between is missing, the query has other columns, a value that cannot be
// summed), ErrOverflow (a count or a sum of a group that is named, or of an answer of
// the query), and those of Update.Changes.
func (s *Summary) Apply(u *triegs.Update) error {
	if !u.Whole && (!s.begun || u.From != s.epoch) {
		return edge(fmt.Errorf("%w: an update behind epoch %d for a summary that %s", triegs.ErrValue, u.From, s.stand()))
	}
	now := s.now
	if !u.Time.IsZero() {
		now = max(now, u.Time.UnixNano())
	}
	defer s.unstage()
	if err := s.stage(u, now); err != nil {
		return err
	}
	f := s.f
	if u.Whole {
		f = newFold(s.l)
	}
	f.expire(now)
	width := len(s.l.group)
	for _, d := range s.staged {
		terms := s.arena[d.start : d.start+width+len(s.l.measured)]
		f.add(terms[:width], terms[width:], d.at, d.n)
	}
	if err := s.finish(f, now); err != nil {
		return err
	}
	s.begun, s.epoch, s.token = true, u.Epoch, u.Token
	return nil
}

func (s *Summary) stand() string {
	if !s.begun {
		return "has not begun with a whole answer"
	}
	return fmt.Sprintf("stands at epoch %d", s.epoch)
}

// Advance moves the logical time without an update: answers that expire up to t
// leave. A time that was reached already changes nothing. It does all or nothing;
// ErrTime says that t does not fit in int64 nanoseconds, ErrOverflow that a sum does
// not fit any more, as one may without the values that have balanced it.
func (s *Summary) Advance(t time.Time) error {
	if !time.Unix(0, t.UnixNano()).Equal(t) {
		return edge(fmt.Errorf("%w: %v", triegs.ErrTime, t))
	}
	now := max(s.now, t.UnixNano())
	s.f.expire(now)
	return s.finish(s.f, now)
}

// finish commits what was added to a fold, or takes it back.
func (s *Summary) finish(f *fold, now int64) error {
	if err := f.tell(); err != nil {
		f.rollback()
		return edge(err)
	}
	s.changes = f.commit()
	if f != s.f {
		s.changes = replaced(s.f, f)
		s.f = f
	}
	slices.SortFunc(s.changes, func(a, b Change) int { return compare(a.Group, b.Group) })
	s.now = now
	return nil
}

// replaced are the groups that differ between two states.
func replaced(old, now *fold) (changes []Change) {
	for key, g := range now.groups {
		c := Change{Group: g.terms, New: g.values}
		if was, ok := old.groups[key]; ok {
			c.Old = was.values
		}
		if c.differs() {
			changes = append(changes, c)
		}
	}
	for key, g := range old.groups {
		if _, ok := now.groups[key]; !ok {
			changes = append(changes, Change{Group: g.terms, Old: g.values})
		}
	}
	return changes
}

// stage reads all changes of an update, so that nothing is done if one of them
// cannot be read. What has expired by now is left out: it never was in the
// summary, or is taken out by expire.
func (s *Summary) stage(u *triegs.Update, now int64) error {
	var bad error
	first := true
	for c, err := range u.Changes() {
		if err != nil {
			return err
		}
		if bad != nil {
			return edge(bad)
		}
		if first && !slices.Equal(c.Row.Columns(), s.l.columns) {
			return edge(fmt.Errorf("%w: a summary of %q is given an update of %q", triegs.ErrValue, s.l.columns, c.Row.Columns()))
		}
		first = false
		at, err := s.expiry(c.Row)
		if err == nil && at > now {
			err = s.change(c, at)
		}
		// A term that cannot be read is absent, and the next step says why, which is
		// the better error.
		bad = err
	}
	return edge(bad)
}

// change stages the two sides of a change.
func (s *Summary) change(c triegs.Change, at int64) error {
	was, is := c.Old, c.New
	if !s.l.bag {
		was, is = min(was, 1), min(is, 1)
	}
	if err := s.side(c, at, -was); err != nil {
		return err
	}
	return s.side(c, at, is)
}

// side stages n answers, which come if n is above 0 and go if it is below.
func (s *Summary) side(c triegs.Change, at, n int64) error {
	if n == 0 {
		return nil
	}
	d := staged{len(s.arena), at, n}
	for _, from := range s.l.group {
		t, err := column(c, from, n > 0)
		if err != nil {
			return err
		}
		s.arena = append(s.arena, t)
	}
	for i := range s.l.measured {
		m := &s.l.measured[i]
		t, err := column(c, m.of, n > 0)
		if err == nil && m.sums {
			err = number(t)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", m.name, err)
		}
		s.arena = append(s.arena, t)
	}
	s.staged = append(s.staged, d)
	return nil
}

// unstage forgets the changes of an update, and lets go of their terms.
func (s *Summary) unstage() {
	clear(s.arena)
	s.arena, s.staged = s.arena[:0], s.staged[:0]
}

// column is the term of a column, as it is or as it was.
func column(c triegs.Change, s source, is bool) (triegs.Term, error) {
	if s.from == fromOutput {
		return c.Row.Term(s.i), nil
	}
	old, now := c.Values(s.i)
	if is {
		old = now
	}
	switch v := old.(type) {
	case int64:
		return triegs.Int(v), nil
	case float64:
		return triegs.Float(v), nil
	case string:
		return triegs.String(v), nil
	case triegs.Term:
		return v, nil
	}
	return triegs.Term{}, fmt.Errorf("%w: %v is not one value", triegs.ErrValue, old)
}

// expiry is when an answer leaves by itself.
func (s *Summary) expiry(r *triegs.Row) (int64, error) {
	if s.l.expiry != nil {
		if t, ok := s.l.expiry(r); ok {
			return nanoseconds(t), nil
		}
		return never, nil
	}
	if len(s.l.times) == 0 {
		return never, nil
	}
	oldest := int64(math.MaxInt64)
	for _, i := range s.l.times {
		t, ok := r.Term(i).AsTime()
		if !ok {
			return 0, fmt.Errorf("%w: column %q: %v is not a time", triegs.ErrValue, s.l.columns[i], r.Term(i))
		}
		oldest = min(oldest, t.UnixNano())
	}
	if oldest > never-s.l.span {
		return never, nil
	}
	return oldest + s.l.span, nil
}

// nanoseconds is a time as an expiry. Logical times fit in int64, so that one
// before them has passed, and one behind them never comes.
func nanoseconds(t time.Time) int64 {
	switch n := t.UnixNano(); {
	case time.Unix(0, n).Equal(t):
		return n
	case t.Before(time.Unix(0, 0)):
		return math.MinInt64
	}
	return never
}

// Get is the values of the aggregates of a group, named by its terms.
func (s *Summary) Get(group ...triegs.Term) ([]any, bool) {
	var key []byte
	for _, t := range group {
		key = term.AppendBinary(key, t)
	}
	g, ok := s.f.groups[string(key)]
	if !ok || len(group) != len(g.terms) {
		return nil, false
	}
	return g.values, true
}

// Groups walks the groups with the values of their aggregates, in ascending order of
// their terms: that of Min and Max, by the columns of GroupBy from left to right. What
// it yields must not be changed, and stays valid. It costs the sorting of all groups.
func (s *Summary) Groups() iter.Seq2[[]triegs.Term, []any] {
	return func(yield func([]triegs.Term, []any) bool) {
		all := make([]*group, 0, len(s.f.groups))
		for _, g := range s.f.groups {
			all = append(all, g)
		}
		slices.SortFunc(all, func(a, b *group) int { return compare(a.terms, b.terms) })
		for _, g := range all {
			if !yield(g.terms, g.values) {
				return
			}
		}
	}
}

// Changed walks the groups that the last Apply or Advance has changed, in the order
// of Groups, each once: the summary as a stream of its own. After one that failed it
// is what it was before.
func (s *Summary) Changed() iter.Seq[Change] { return slices.Values(s.changes) }
