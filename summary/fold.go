package summary

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/term"
)

// never is an expiry that no logical time reaches: it stays out of the index.
const never = 1<<63 - 1

// lot is all answers of a group with the same values that expire together.
type lot struct {
	g      *group
	values []triegs.Term
	n      int64
}

// due is a lot with its expiry, which mostly is all that has to be compared.
type due struct {
	at int64
	*lot
}

func (a due) less(b due) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	c := cmp.Compare(a.g.key, b.g.key)
	if c == 0 {
		c = compare(a.values, b.values)
	}
	return c < 0
}

// fold is the state of a summary. What is added between begin and commit can be
// taken back.
type fold struct {
	l       *layout
	groups  map[string]*group
	lots    *btree.BTreeG[due] // by expiry
	touched []*group
	done    []step
	key     []byte // scratch
	probe   lot
}

// step is one addition, for the way back.
type step struct {
	g      *group
	values []triegs.Term
	at     int64
	n      int64
}

func newFold(l *layout) *fold {
	return &fold{
		l:      l,
		groups: map[string]*group{},
		lots:   btree.NewBTreeGOptions(due.less, btree.Options{NoLocks: true}),
	}
}

// group finds or makes a group.
func (f *fold) group(terms []triegs.Term) *group {
	f.key = f.key[:0]
	for _, t := range terms {
		f.key = term.AppendBinary(f.key, t)
	}
	if g, ok := f.groups[string(f.key)]; ok {
		return g
	}
	g := &group{key: string(f.key), terms: slices.Clone(terms)}
	g.sums = make([]total, len(f.l.measured))
	g.orders = make([]*order, len(f.l.measured))
	for i, m := range f.l.measured {
		if m.order {
			g.orders[i] = newOrder()
		}
	}
	f.groups[g.key] = g
	return g
}

// add adds n answers of a group, which expire at a time in ns or never, or takes
// them away. It keeps values until commit or rollback.
func (f *fold) add(terms, values []triegs.Term, at, n int64) {
	g := f.group(terms)
	f.put(g, values, at, n)
	f.done = append(f.done, step{g, values, at, n})
}

// put is add without the note of it.
func (f *fold) put(g *group, values []triegs.Term, at, n int64) {
	if !g.touched {
		g.touched = true
		f.touched = append(f.touched, g)
	}
	g.add(f.l, values, n)
	if at == never {
		return
	}
	f.probe = lot{g: g, values: values}
	d := due{at, &f.probe}
	if e, ok := f.lots.Get(d); !ok {
		d.lot = &lot{g, slices.Clone(values), n}
		f.lots.Set(d)
	} else if e.n += n; e.n == 0 {
		f.lots.Delete(d)
	}
}

// expire takes away what expires up to a time.
func (f *fold) expire(t int64) {
	for {
		e, ok := f.lots.Min()
		if !ok || e.at > t {
			return
		}
		f.done = append(f.done, step{e.g, e.values, e.at, -e.n})
		f.put(e.g, e.values, e.at, -e.n)
	}
}

// tell forms the values of all groups that were touched.
func (f *fold) tell() error {
	for _, g := range f.touched {
		if err := g.tell(f.l); err != nil {
			return err
		}
	}
	return nil
}

// commit makes what was told the state, and returns which groups differ.
func (f *fold) commit() (changes []Change) {
	for _, g := range f.touched {
		if c := (Change{Group: g.terms, Old: g.values, New: g.next}); c.differs() {
			changes = append(changes, c)
		}
		g.values = g.next
	}
	f.end()
	return changes
}

// rollback takes back all that was added.
func (f *fold) rollback() {
	for i := len(f.done) - 1; i >= 0; i-- {
		s := f.done[i]
		f.put(s.g, s.values, s.at, -s.n)
	}
	f.end()
}

// end forgets groups without answers, and what was noted.
func (f *fold) end() {
	for _, g := range f.touched {
		g.touched, g.next = false, nil
		if g.values == nil {
			delete(f.groups, g.key)
		}
	}
	clear(f.touched)
	clear(f.done)
	f.touched, f.done, f.probe = f.touched[:0], f.done[:0], lot{}
}
