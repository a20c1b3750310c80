package txn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// pendingMax is how many events wait to be applied together.
const pendingMax = 32

// numbered is an event with its number in the batch.
type numbered struct {
	i  int
	ev Event
}

// Event takes event number i of the batch in, whose tuple must stay what it is
// until Flush, which applies it. An error names the number of the event that it
// is about, this one or an earlier one, and the transaction must be rolled back.
func (t *Txn) Event(i int, ev *Event) error {
	t.waiting = append(t.waiting, numbered{i, *ev})
	if len(t.waiting) < pendingMax {
		return nil
	}
	return t.Flush()
}

// Flush applies the events that wait.
func (t *Txn) Flush() error {
	t.intern()
	for k := range t.waiting {
		if err := t.take(t.waiting[k].i, &t.waiting[k].ev); err != nil {
			return err
		}
	}
	clear(t.waiting)
	t.waiting = t.waiting[:0]
	return t.apply()
}

// intern interns the terms of the insertions that wait, up to one that is
// refused.
func (t *Txn) intern() {
	t.terms, t.ids = t.terms[:0], t.idsAll[:0]
gather:
	for k := range t.waiting {
		ev := &t.waiting[k].ev
		if ev.Delete && (ev.All || !ev.Wait) {
			continue
		}
		for _, x := range ev.Tuple {
			if x.Validate() != nil {
				break gather
			}
			t.terms = append(t.terms, x)
		}
	}
	if cap(t.idsAll) < len(t.terms) {
		t.idsAll = make([]uint64, len(t.terms))
	}
	t.ids = t.idsAll[:len(t.terms)]
	t.ids = t.ids[:t.e.Dict().InternAll(t.ids, t.terms)]
	clear(t.terms)
}

// take resolves an event.
func (t *Txn) take(i int, ev *Event) error {
	if ev.All {
		if err := t.apply(); err != nil { // events apply in their order
			return err
		}
		if err := t.deleteAll(ev); err != nil {
			return number(i, err)
		}
		return nil
	}
	rec, known, err := t.resolve(ev)
	switch {
	case err == nil && known:
		t.pending = append(t.pending, rec)
		t.origin = append(t.origin, origin{i, ev.Lenient})
		return nil
	case err == nil && ev.Lenient:
		t.e.Ignore()
		return nil
	}
	// Of several bad events the first is reported.
	if first := t.apply(); first != nil {
		return first
	}
	if err == nil {
		err = missing(ev)
	}
	return number(i, err)
}

func number(i int, err error) error { return fmt.Errorf("event %d: %w", i, err) }

// origin is where a pending event came from.
type origin struct {
	number  int
	lenient bool
}

// apply applies the events that are resolved.
func (t *Txn) apply() error {
	evs := t.pending
	t.pending = t.pending[:0]
	err := t.e.Events(evs, func(i int, err error) error {
		o := t.origin[i]
		if !errors.Is(err, errs.ErrNoSuchFact) {
			return number(o.number, err)
		}
		if o.lenient {
			t.e.Ignore()
			return nil
		}
		return number(o.number, missing(t.name(&evs[i])))
	})
	t.origin = t.origin[:0]
	return err
}

// resolve turns an event into ids. known is false for a retraction of
// something that holds a term or relation never seen, which cannot be there.
func (t *Txn) resolve(ev *Event) (rec record.Event, known bool, err error) {
	switch {
	case ev.Delete && (!ev.Wait || len(ev.Tuple) == 0):
		return t.resolveDelete(ev)
	case ev.Relation == "":
		return rec, false, fmt.Errorf("%w: an event on a fact without a relation", errs.ErrValue)
	}
	rec = record.Event{Op: op(ev), Time: ev.Time, ID: ev.ID}
	if rec.Relation, err = t.relation(ev.Relation, len(ev.Tuple)); err != nil {
		return rec, false, err
	}
	rec.Tuple = t.e.Words(len(ev.Tuple))
	n := copy(rec.Tuple, t.ids)
	t.ids = t.ids[n:]
	for i := n; i < len(ev.Tuple); i++ {
		if rec.Tuple[i], err = t.one(ev.Tuple[i]); err != nil {
			return rec, false, column(ev, i, err)
		}
	}
	if !ev.Value.IsZero() {
		if rec.Value, err = t.one(ev.Value); err != nil {
			return rec, false, fmt.Errorf("%s, value: %w", ev.Relation, err)
		}
	}
	if err = t.e.Admit(&rec); err != nil {
		return rec, false, err
	}
	return rec, true, nil
}

// op is the operation that the log has for an event.
func op(ev *Event) uint8 {
	switch {
	case ev.Wait && ev.Delete:
		return epoch.OpWaitDelete
	case ev.Wait:
		return epoch.OpWaitInsert
	case ev.Delete:
		return epoch.OpDelete
	}
	return epoch.OpInsert
}

func column(ev *Event, i int, err error) error {
	return fmt.Errorf("%s, column %d: %w", ev.Relation, i+1, err)
}

// resolveDelete brings neither terms nor relations into being.
func (t *Txn) resolveDelete(ev *Event) (rec record.Event, known bool, err error) {
	rec = record.Event{Op: op(ev), Time: ev.Time, ID: ev.ID}
	switch {
	case len(ev.Tuple) == 0 && ev.ID == "":
		return rec, false, fmt.Errorf("%w: a retraction names an ID or a fact", errs.ErrValue)
	case len(ev.Tuple) == 0:
		return rec, true, nil
	case ev.Relation == "":
		return rec, false, fmt.Errorf("%w: a retraction of a fact without a relation", errs.ErrValue)
	}
	known, err = t.resolveFact(ev, &rec)
	if err != nil || ev.Value.IsZero() || ev.ID != "" {
		return rec, known, err
	}
	id, found, err := t.find(ev.Value)
	if err != nil {
		return rec, false, fmt.Errorf("%s, value: %w", ev.Relation, err)
	}
	rec.Value = id
	return rec, known && found, nil
}

func (t *Txn) resolveFact(ev *Event, rec *record.Event) (known bool, err error) {
	i, r, known := t.e.Schema().Relation(ev.Relation)
	if known && r.Arity != len(ev.Tuple) {
		return false, fmt.Errorf("%w: relation %s has %d columns, not %d", errs.ErrArity, r.Name, r.Arity, len(ev.Tuple))
	}
	rec.Relation = uint32(i)
	rec.Tuple = t.e.Words(len(ev.Tuple))
	for c, x := range ev.Tuple {
		id, found, err := t.find(x)
		if err != nil {
			return false, column(ev, c, err)
		}
		rec.Tuple[c] = id
		known = known && found
	}
	return known, nil
}

// deleteAll applies an event that retracts all that agrees with a pattern.
func (t *Txn) deleteAll(ev *Event) error {
	switch {
	case ev.ID != "" || !ev.Value.IsZero():
		return fmt.Errorf("%w: a retraction of all facts of a key has neither an ID nor a value", errs.ErrValue)
	case len(ev.Tuple) == 0 || ev.Relation == "":
		return fmt.Errorf("%w: a retraction of all facts of a key names a relation and a pattern", errs.ErrValue)
	case ev.Wait:
		return fmt.Errorf("%w: retracting all facts of a key in event-time mode, where what is there depends on what is still to come", errs.ErrUnsupported)
	}
	n, r, known := t.e.Schema().Relation(ev.Relation)
	if known && r.Arity != len(ev.Tuple) {
		return fmt.Errorf("%w: relation %s has %d columns, not %d", errs.ErrArity, r.Name, r.Arity, len(ev.Tuple))
	}
	pattern := make([]uint64, len(ev.Tuple))
	for c, x := range ev.Tuple {
		if x.IsZero() {
			continue
		}
		id, found, err := t.find(x)
		if err != nil {
			return column(ev, c, err)
		}
		pattern[c] = id
		known = known && found
	}
	if !known {
		return nil
	}
	return t.e.DeleteAll(uint32(n), pattern, ev.Time)
}

func (t *Txn) relation(name string, arity int) (uint32, error) {
	if name == t.last.name && arity == t.last.arity {
		return t.last.number, nil
	}
	n, err := t.e.Relation(name, arity)
	if err == nil {
		t.last.name, t.last.number, t.last.arity = name, n, arity
	}
	return n, err
}

func (t *Txn) one(x term.Term) (uint64, error) {
	if err := x.Validate(); err != nil {
		return 0, err
	}
	return t.e.Intern(x)
}

func (t *Txn) find(x term.Term) (id uint64, ok bool, err error) {
	if err := x.Validate(); err != nil {
		return 0, false, err
	}
	return t.e.Find(x)
}

// name gives the terms of a retraction back, for an error.
func (t *Txn) name(rec *record.Event) *Event {
	ev := &Event{Delete: true, ID: rec.ID}
	if len(rec.Tuple) > 0 {
		ev.Relation = t.e.Schema().Relations()[rec.Relation].Name
	}
	for _, id := range rec.Tuple {
		ev.Tuple = append(ev.Tuple, t.e.Dict().Term(id))
	}
	if rec.Value != 0 {
		ev.Value = t.e.Dict().Term(rec.Value)
	}
	return ev
}

// missing names what a retraction did not find.
func missing(ev *Event) error {
	var b strings.Builder
	if ev.ID != "" {
		fmt.Fprintf(&b, "contribution %q", clip(ev.ID))
	}
	if len(ev.Tuple) > 0 {
		if ev.ID != "" {
			b.WriteString(" of ")
		}
		b.WriteString(clip(ev.Relation))
		b.WriteByte('(')
		for i, x := range ev.Tuple {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(clip(x.String()))
		}
		b.WriteByte(')')
	}
	if ev.ID == "" && !ev.Value.IsZero() {
		fmt.Fprintf(&b, " with value %s", clip(ev.Value.String()))
	}
	return fmt.Errorf("%w: %s", errs.ErrNoSuchFact, b.String())
}

// clip shortens what would make an error unreadable.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}
