package triegs

import (
	"iter"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/views"
)

// Change is an answer that is new, gone, or another one. Every answer that differs
// comes once in an update, and no other does.
type Change struct {
	// Row is the answer: its columns, and its multiplicity and values as they are, or
	// as they were where it is gone. It is valid until the next step; Clone keeps it.
	Row *Row
	// Old and New are the multiplicities before and after, 0 where it is not there.
	Old, New int64
	// OldValue and NewValue are what Row.Value(0) was and is: the annotation, or the
	// first aggregate; nil where the answer is not there. Values has the others.
	OldValue, NewValue any

	old []any
}

// Values is aggregate i of the answer as it was and is, counted as in Row.Value, nil
// where the answer is not there.
func (c Change) Values(i int) (was, is any) {
	if c.Old != 0 && i >= 0 {
		switch {
		case i < len(c.old):
			was = c.old[i]
		case i == 0:
			was = c.OldValue
		}
	}
	if c.New != 0 {
		is = c.Row.Value(i)
	}
	return was, is
}

// Changes walks the answers that differ between From and Epoch, in no order. It is
// lazy: it may be left at any time, and what was not asked for was not looked for, but
// for a few facts that have changed.
// The work between two changes is that of Snapshot.Answers, up to tuples that have
// changed without any answer changing by it. A change with ErrOverflow is one of
// which a multiplicity or a value does not fit; on that side the multiplicity is 0 and
// the values are nil, and the walk goes on behind it. An error without a Row ends it:
// ErrSnapshotClosed behind the update, and that which has ended the subscription.
func (u *Update) Changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		v := *u // a loop may be left open behind the step, when u is another update
		if err := v.enter(); err != nil {
			yield(Change{}, edge(err))
			return
		}
		defer v.leave()
		v.walk(yield)
	}
}

// enter starts a use of both pinned states.
func (u *Update) enter() error {
	if err := u.now.enter(); err != nil {
		return err
	}
	if u.old != nil {
		if err := u.old.enter(); err != nil {
			u.now.leave()
			return err
		}
	}
	return nil
}

func (u *Update) leave() {
	u.now.leave()
	if u.old != nil {
		u.old.leave()
	}
}

// walker is what walks the changes of an update, in memory that the next update uses
// again.
type walker struct {
	d        *views.Deltas
	old, now *views.Bound
	was, are *views.Values
	read     changeReader
}

// walker takes that of the subscription, or a new one while another loop has it. It
// goes back with rest.
func (u *Update) walker() *walker {
	if w := u.s.idle.Swap(nil); w != nil {
		return w
	}
	return new(walker)
}

func (u *Update) rest(w *walker) { u.s.idle.Store(w) }

// start puts the walk before the first change. It is false if nothing can differ.
func (w *walker) start(u *Update) (bool, error) {
	fixed, err := u.fixed()
	if err != nil {
		return false, err
	}
	if fixed == nil && len(u.s.where) > 0 {
		return false, nil
	}
	view, to := u.s.view, u.now.vector
	if u.old == nil {
		now := view.Bind(to.Space, to.Roots)
		*w = walker{d: view.Matching(now, fixed), now: now, are: now.Values()}
		w.d.Patience = patience
		return true, nil
	}
	from := u.old.vector
	if w.old == nil { // it has not been through a walk between two states
		w.old, w.now = view.Bind(from.Space, from.Roots), view.Bind(to.Space, to.Roots)
		w.d, w.was, w.are = view.Deltas(w.old, w.now), w.old.Values(), w.now.Values()
	} else {
		w.old.Rebind(from.Space, from.Roots)
		w.now.Rebind(to.Space, to.Roots)
		w.d.Rebind(w.old, w.now)
	}
	w.d.Fix(fixed)
	w.d.Patience = patience
	return true, nil
}

// patience is how many tuples are passed over before a walk looks whether its
// subscription has ended: a millisecond or so.
const patience = 1 << 14

// fixed are the ids of the terms in Where, by variable; nil if there are none, or one
// of the terms is not in the store at Epoch, and so in no answer now or before: the
// terms of a pinned epoch stay.
func (u *Update) fixed() ([]uint64, error) {
	if len(u.s.where) == 0 {
		return nil, nil
	}
	ids := make([]uint64, len(u.s.q.Plan.Query.Vars))
	terms := u.s.db.engine.Dict()
	for _, c := range u.s.where {
		faults := terms.Faults()
		id, ok := terms.Find(c.term, u.now.vector.Terms)
		if !ok {
			return nil, terms.Since(faults)
		}
		ids[c.v] = id
	}
	return ids, nil
}

// walk is what Changes does while both states are in use.
func (u *Update) walk(yield func(Change, error) bool) {
	w := u.walker()
	defer u.rest(w)
	switch some, err := w.start(u); {
	case err != nil:
		yield(Change{}, edge(err))
		return
	case !some:
		return
	}
	terms := u.s.db.engine.Dict()
	faults := terms.Faults()
	d, r := w.d, &w.read
	r.start(u, w)
	for {
		if err := u.over(); err != nil {
			yield(Change{}, edge(err))
			return
		}
		if err := terms.Since(faults); err != nil {
			yield(Change{}, edge(err))
			return
		}
		if !d.Next() {
			if d.Paused {
				continue
			}
			return
		}
		c, err := r.read()
		if !yield(c, edge(err)) {
			return
		}
	}
}

// over is why the walk has to end.
func (u *Update) over() error {
	if err := u.s.ended(); err != nil {
		return err
	}
	if u.step != u.s.step.Load() {
		return ErrSnapshotClosed
	}
	return nil
}

// changeReader makes changes of what a walk stands on.
type changeReader struct {
	d        *views.Deltas
	head     []query.Var
	was, are *views.Values
	row      *Row
	value    func(query.Var) uint64
	old      []any
}

// start makes r read what the walk of w stands on.
func (r *changeReader) start(u *Update, w *walker) {
	if r.d != w.d {
		r.d, r.value = w.d, w.d.Value
		r.head, r.row = u.s.q.Plan.Query.Head, u.now.newRow(u.s.q.Plan.Query).remembering()
	}
	r.was, r.are = w.was, w.are
	clear(r.row.known) // an id may have got another term meanwhile
}

// read makes the change. An error is ErrOverflow of one side or both.
func (r *changeReader) read() (c Change, err error) {
	r.row.multiplicity = 0
	clear(r.row.values)
	for i, v := range r.head {
		r.row.ids[i] = r.d.Value(v)
	}
	c.Row = r.row
	var failed, fails error
	c.Old, failed = r.d.Old()
	c.New, fails = r.d.New()
	if failed == nil && c.Old != 0 {
		if failed = r.side(r.was, c.Old); failed == nil {
			c.OldValue = r.row.Value(0)
			r.old = append(r.old[:0], r.row.values...)
			c.old = r.old
		} else {
			c.Old = 0
		}
	}
	if fails == nil && c.New != 0 {
		if fails = r.side(r.are, c.New); fails == nil {
			c.NewValue = r.row.Value(0)
		} else {
			c.New = 0
		}
	}
	if fails != nil {
		r.row.multiplicity = 0
		clear(r.row.values)
	}
	if failed != nil {
		return c, failed
	}
	return c, fails
}

// side reads the row of one version.
func (r *changeReader) side(from *views.Values, n int64) error {
	r.row.multiplicity = n
	return r.row.read(from, r.value)
}

// changes reports whether an update changes anything.
func (u *Update) changes() (bool, error) {
	if err := u.enter(); err != nil {
		return false, err
	}
	defer u.leave()
	w := u.walker()
	defer u.rest(w)
	some, err := w.start(u)
	for some && err == nil {
		if w.d.Next() {
			return true, nil
		}
		if some = w.d.Paused; some {
			err = u.over()
		}
	}
	return false, err
}
