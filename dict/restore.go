package dict

import (
	"encoding/binary"
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// Reserve makes room in the table for a number of terms more, so that restoring
// them does not make it again and again.
func (d *Dict) Reserve(terms int) {
	if n := slotsFor(d.used+terms) * 3 / 4; n > len(d.state.Load().slots) {
		d.resize(n, d.n.Load())
	}
}

// Restore gives the next term an id of a former life: ids ascend, with gaps. The
// form is as AppendBinary gives it, and is not kept. A term that comes again has
// its newer id from here on; the older one is read by Term until it is swept.
// The text of a long form with an id that Spill has named already is not kept
// in memory.
//
// An id out of order, and a form that AppendBinary would not give, are
// ErrCorrupt; more than TermsMax terms are ErrBudget. Nothing has changed then.
//
// Other goroutines must not use the dictionary until the last term has been
// restored and SetLen called.
func (d *Dict) Restore(id uint64, form []byte) error {
	last := d.n.Load()
	if id <= last {
		return fmt.Errorf("%w: dictionary: term %d after %d", errs.ErrCorrupt, id, last)
	}
	if err := checkForm(form); err != nil {
		return fmt.Errorf("dictionary: term %d: %w", id, err)
	}
	if d.Live() >= TermsMax {
		return fmt.Errorf("%w: term %d is one more than %d", errs.ErrBudget, id, uint64(TermsMax))
	}
	s := &d.scratch[0]
	clear(s.buf[:16])
	s.framed = append(s.buf[:1], form...)
	s.key = d.key(s.framed)
	s.n, s.small = smallInt(form)
	older, ok := d.known(s)
	if !ok {
		s.release()
		return fmt.Errorf("dictionary: term %d: %w", id, d.Err())
	}
	d.startLoading()
	d.gone.Add(id - last - 1)
	d.enter(id, older, s)
	return nil
}

// InternNew gives a term the next id even if it has one, which nothing that
// lives or is pinned uses: a log is replayed in which the older one had been
// swept. Find and Intern return the newer id from here on. The id is 0 where
// Intern would refuse the term.
func (d *Dict) InternNew(t term.Term) (id uint64) {
	if Check(t) != nil {
		return 0
	}
	s := &d.scratch[0]
	if s.prepare(d, t); s.small {
		s.framed = frame(&s.buf, t)
		s.key = d.key(s.framed)
	}
	older, ok := d.known(s)
	if id = d.next(); !ok || id == 0 {
		s.release()
		return 0
	}
	d.enter(id, older, s)
	return id
}

// known returns the id that a pending term has, 0 if it has none. It fails if
// that cannot be told.
func (d *Dict) known(s *pending) (id uint64, ok bool) {
	if s.small {
		return d.ints.find(s.n), true
	}
	id, v := d.find(d.state.Load(), &s.key, d.n.Load())
	return id, v != unreadable
}

// enter stores a pending term under an id and makes that the one that is found.
func (d *Dict) enter(id, older uint64, s *pending) {
	d.store(id, s)
	switch {
	case s.small:
		d.ints.set(s.n, id)
	case older != 0:
		replace(d.state.Load().slots, slotOf(s.hash, older), slotOf(s.hash, id))
	default:
		d.index(id, s.hash)
	}
	if older != 0 {
		d.renewed = append(d.renewed, renewal{id, older})
		d.pages.Add(renewalBytes)
		if st := d.state.Load(); !st.renewed {
			next := *st
			next.renewed = true
			d.state.Store(&next)
		}
	}
	d.n.Store(id)
	s.release()
}

// SetLen sets the last id handed out, which is at least the last one restored:
// the ids between have been swept in a former life.
func (d *Dict) SetLen(n uint64) {
	d.endLoading()
	if last := d.n.Load(); n > last {
		d.built = n // a gap is no term that could be taken back alone
		d.gone.Add(n - last)
		d.n.Store(n)
	}
}

// startLoading begins restoring: pages move, so that the list of near goes.
func (d *Dict) startLoading() {
	if d.loading {
		return
	}
	d.loading = true
	st := *d.state.Load()
	d.pages.Add(-int64(len(st.flat)) * 8)
	st.flat = nil
	d.state.Store(&st)
}

// endLoading ends restoring: what Restore has kept for itself goes.
func (d *Dict) endLoading() {
	if !d.loading {
		return
	}
	d.loading = false
	d.built = d.n.Load()
	d.spare.page, d.spare.chunk = nil, nil
	st := *d.state.Load()
	st.through = min(st.through, d.built)
	st.flatten()
	d.pages.Add(int64(len(st.flat)) * 8)
	d.state.Store(&st)
}

// seal makes the tail sparse if few of its ids are held, when the next page
// begins. The memory is used for that one, and no reader is there yet.
func (d *Dict) seal() {
	t := d.tail
	if t.page == nil {
		return
	}
	c := d.state.Load().chunk(t.number >> (chunkShift - pageShift))
	page := uint(t.number % chunkPages)
	if t.note.held.count() <= sparseMax {
		p := thinned(t.page, t.note.held)
		for i := range p.bits.all() {
			*t.page.at(uint64(i)) = entry{}
		}
		fresh := c.sparse == nil
		c.setSparse(page, p)
		c.dense.pages[page], c.dense.notes[page] = nil, nil
		d.spare.page = t.page
		d.pages.Add(sparseBytes + int64(cap(p.entries))*entryBytes - pageBytes)
		if fresh {
			d.pages.Add(sparseBytes)
		}
	}
	d.tail = tail{}
}

// checkForm reports with ErrCorrupt bytes that are not the stored form of a term
// within the limits. It reads the frequent kinds itself, which makes no term.
func checkForm(form []byte) error {
	if len(form) == 0 {
		return fmt.Errorf("%w: empty term", errs.ErrCorrupt)
	}
	switch term.Kind(form[0]) {
	case term.KindIRI, term.KindString, term.KindBytes, term.KindBlank:
		n, k := binary.Uvarint(form[1:])
		if k > 0 && (k == 1 || form[k] != 0) && n <= TermBytesMax && uint64(len(form)) == 1+uint64(k)+n {
			return nil
		}
	}
	t, n, err := term.DecodeBinary(form)
	switch {
	case err != nil:
		return err
	case n != len(form):
		return fmt.Errorf("%w: %d bytes after the term", errs.ErrCorrupt, len(form)-n)
	}
	if err := Check(t); err != nil {
		return fmt.Errorf("%w: %w", errs.ErrCorrupt, err)
	}
	return nil
}

// View is the terms that a dictionary holds at one moment. It stays as it is
// while the writer goes on, sweeps included, and keeps the memory of what it
// holds.
type View struct {
	d  *Dict
	st *state
	to uint64 // the last id
}

// View gives the terms that are held now. The writer must not be at work.
func (d *Dict) View() View { return View{d, d.state.Load(), d.n.Load()} }

// Each is that of a view of now.
func (d *Dict) Each(from, to uint64, f func(id uint64, form []byte) error) error {
	return d.View().Each(from, to, f)
}

// Each calls f with the id and the stored form of every term of the view with an
// id from one to another, ascending, until f returns an error, which it returns.
// The form is valid until f returns. The writer may go on meanwhile. Forms that
// are not in memory are read past the cache.
func (v View) Each(from, to uint64, f func(id uint64, form []byte) error) (err error) {
	d, st := v.d, v.st
	if to = min(to, v.to); from > to {
		return nil
	}
	var buf []byte
	st.walk(from, to, func(id uint64, e *entry) bool {
		form, ok := e.short()
		switch {
		case ok:
		case id > st.through:
			form = st.slabForm(e)
		default:
			if buf, err = st.store.load(id, e, buf[:0]); err != nil {
				d.fail(err)
				return false
			}
			form = buf[1:]
		}
		err = f(id, form)
		return err == nil
	})
	return err
}
