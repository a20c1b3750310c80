package dict

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/term"
)

// TestOldState: a reader that is late reads everything as it was, whatever has
// been swept, moved, taken back and spilled meanwhile.
func TestOldState(t *testing.T) {
	d := New()
	fill(t, d, 1, 5000)
	keep(t, d, 1, 5, 9, 13, 2049, 3001, 3005, 4997, 5000)
	fill(t, d, 5001, 9000)
	st, last := d.state.Load(), d.Len()
	forms := map[uint64][]byte{}
	st.walk(1, last, func(id uint64, e *entry) bool {
		form, _ := d.formOf(st, id, e)
		forms[id] = bytes.Clone(form)
		return true
	})
	for _, every := range []uint64{3, 97, 1009} {
		d.StartMark()
		for id := every; id <= last; id += every {
			d.Mark(id)
		}
		d.FinishMark()
		d.Sweep()
		fill(t, d, 10_000, 14_000)
		d.Truncate(last + 1000)
	}
	b := new(mapBacking)
	b.save(t, d, d.Len())
	if err := d.Spill(d.Len(), b, 0); err != nil {
		t.Fatal(err)
	}
	fill(t, d, 20_000, 30_000)
	n := 0
	st.walk(1, last, func(id uint64, e *entry) bool {
		n++
		if form, ok := d.formOf(st, id, e); !ok || !bytes.Equal(form, forms[id]) || st.at(id) == nil {
			t.Errorf("id %d is %q, was %q", id, form, forms[id])
			return false
		}
		return true
	})
	if n != len(forms) || n != 9+4000 {
		t.Errorf("%d terms of %d", n, len(forms))
	}
	verify(t, d)
}

// TestLateRead: a late reader that comes upon a swept term, the text of which is
// deleted, has met no error.
func TestLateRead(t *testing.T) {
	terms := longs(10)
	d, b := spilled(t, terms, 0)
	st := d.state.Load()
	keep(t, d, 2, 3)
	b.save(t, d, d.Len())
	e := st.at(1)
	if form, ok := d.formOf(st, 1, e); ok || d.Err() != nil {
		t.Errorf("%q, error %v", form, d.Err())
	}
	if form, ok := d.formOf(st, 2, st.at(2)); !ok || !bytes.Equal(form, term.AppendBinary(nil, terms[1])) {
		t.Errorf("%q", form)
	}
}

// TestTruncateSwept takes back a part of a batch of which a part was swept, to
// all kinds of places: into dense, sparse and missing pages.
func TestTruncateSwept(t *testing.T) {
	kept := []uint64{2, 1023, 1024, 1030, 2500, 2600, 4095, 4100, 8000}
	for _, n := range []uint64{0, 1, 2, 3, 1022, 1023, 1024, 1026, 1030, 1500, 2047, 2048, 2550, 2600, 2700, 3500, 4095, 4096, 8100, 8999} {
		for _, marking := range []bool{false, true} {
			t.Run(fmt.Sprint(n, " ", marking), func(t *testing.T) {
				d := New()
				fill(t, d, 1, 9000)
				keep(t, d, kept...)
				if marking {
					d.StartMark()
					d.Mark(2)
					d.Mark(1030)
					d.Mark(2600)
				}
				d.Truncate(n)
				left := 0
				for _, id := range kept {
					if id <= n {
						left++
					}
					if d.Has(id) != (id <= n) {
						t.Errorf("id %d: held %v", id, d.Has(id))
					}
				}
				if d.Len() != n || d.Live() != uint64(left) {
					t.Errorf("%d ids, %d terms", d.Len(), d.Live())
				}
				verify(t, d)
				fillIDs(d, 1500)
				verify(t, d)
				if !marking {
					return
				}
				d.FinishMark()
				d.Sweep()
				for _, id := range kept {
					want := id <= n && (id == 2 || id == 1030 || id == 2600) || id > n && id <= n+1500
					if d.Has(id) != want {
						t.Errorf("after the sweep id %d is held: %v", id, d.Has(id))
					}
				}
				verify(t, d)
			})
		}
	}
}

// TestMarksStay: marks survive when their page becomes another one.
func TestMarksStay(t *testing.T) {
	d := New()
	fill(t, d, 1, 9000)
	keep(t, d, 100, 200, 300)
	d.StartMark()
	d.Mark(100)
	d.Mark(300)
	d.Truncate(250) // the sparse page loses an id, and becomes dense for the next
	fillIDs(d, 1)
	d.Mark(251)
	d.FinishMark()
	if d.Sweep(); !d.Has(100) || d.Has(200) || d.Has(300) || !d.Has(251) {
		t.Errorf("%v %v %v %v", d.Has(100), d.Has(200), d.Has(300), d.Has(251))
	}
	verify(t, d)
}

// TestTruncateGap takes back ids beyond a gap, with the gap.
func TestTruncateGap(t *testing.T) {
	form := term.AppendBinary(nil, term.String("restored"))
	for _, tc := range []struct {
		name string
		do   func(d *Dict)
	}{
		{"set length", func(d *Dict) { d.SetLen(5000) }},
		{"set length, then terms", func(d *Dict) { d.SetLen(5000); fillIDs(d, 10) }},
		{"restored", func(d *Dict) { _ = d.Restore(5000, form) }},
		{"restored and set length", func(d *Dict) { _ = d.Restore(3000, form); d.SetLen(7000) }},
		{"restored, then terms", func(d *Dict) { _ = d.Restore(1<<33, form); fillIDs(d, 10) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := New()
			intern(t, d, kinds()...)
			n := d.Len()
			tc.do(d)
			d.Truncate(n)
			check(t, d, kinds())
			verify(t, d)
			fillIDs(d, 10)
			d.Truncate(n)
			check(t, d, kinds())
		})
	}
}

// TestRenewedInEras: the slot of another term leads to the older id of a term,
// since both have the same lower bits, and must not be taken for an answer.
func TestRenewedInEras(t *testing.T) {
	d := NewColliding()
	x, other := term.String("renewed"), term.String("other")
	d.SetLen(1<<32 + 6)
	older := d.Intern(x)
	d.SetLen(2<<32 + 6)
	if id := d.Intern(other); id&idMask != older&idMask {
		t.Fatalf("ids %#x and %#x", older, id)
	}
	newer := d.InternNew(x)
	if id, ok := d.Find(x, d.Len()); id != newer || !ok || d.Intern(x) != newer {
		t.Errorf("%#x, %v; want %#x", id, ok, newer)
	}
	verify(t, d)
	keep(t, d, newer)
	if id, ok := d.Find(x, d.Len()); id != newer || !ok {
		t.Errorf("%#x, %v; want %#x", id, ok, newer)
	}
}

// TestNear: the newest pages are found in one step, also after a sweep.
func TestNear(t *testing.T) {
	d := New()
	fill(t, d, 1, 50_000)
	near := func(from, to uint64) {
		t.Helper()
		st := d.state.Load()
		for id := from; id <= to; id++ {
			if st.near(id) == nil {
				t.Fatalf("id %d is not near", id)
			}
		}
	}
	near(1, d.Len())
	d.StartMark()
	for id := uint64(1); id <= 50_000; id++ {
		if id%2 == 0 || id > 20_000 {
			d.Mark(id)
		}
	}
	d.FinishMark()
	d.Sweep()
	near(2, 50_000)
	fill(t, d, 60_000, 70_000)
	near(2, d.Len())
	d.Truncate(51_000)
	near(2, 51_000)
	next, s := New(), save(t, d)
	s.restore(t, next)
	st := next.state.Load()
	if d = next; len(st.flat) == 0 {
		t.Fatal("nothing is near after restoring")
	}
	near(2, 51_000)
}

// TestSlabsStay: a sweep that can give nothing back moves nothing.
func TestSlabsStay(t *testing.T) {
	d := New()
	id := d.Intern(term.String("the only long text that lives on"))
	for n := range 10_000 {
		d.Intern(term.String(fmt.Sprint("one of many long texts: ", n)))
	}
	keep(t, d, id)
	at := func() *byte { st := d.state.Load(); return &st.slabForm(st.at(id))[0] }
	for range 3 {
		before := at()
		tail := d.Intern(term.String("another long text for a while"))
		fillIDs(d, 100)
		keep(t, d, id, tail)
		if keep(t, d, id, tail) != 0 || at() != before {
			t.Error("the text has been moved")
		}
		fillIDs(d, 1)
		keep(t, d, id)
	}
}

// TestOldStateOfMoved: texts move out of a slab that they shared with dead ones,
// while their own pages, dense or sparse, have lost nothing. Late readers still
// find them where they were.
func TestOldStateOfMoved(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		d := New()
		for n := range 3 * pageTerms {
			x := term.String(fmt.Sprint("s", n))
			if n < pageTerms/2 || n > 2*pageTerms && n < 2*pageTerms+10 {
				x = term.String(fmt.Sprint("text ", n, strings.Repeat("x", 500)))
			}
			d.Intern(x)
		}
		var ids []uint64
		for id := uint64(1); id < 3*pageTerms; id++ {
			if id < pageTerms || id >= 2*pageTerms && (!sparse || id < 2*pageTerms+100) {
				ids = append(ids, id)
			}
		}
		for n := range 6 { // the slab is not the one being filled
			d.Intern(term.String(fmt.Sprint(n, strings.Repeat("y", 200_000))))
		}
		keep(t, d, append(ids, d.Len()-5, d.Len()-4, d.Len()-3, d.Len()-2, d.Len()-1, d.Len())...)
		st, want := d.state.Load(), map[uint64]term.Term{}
		for id := uint64(2*pageTerms + 2); id < 2*pageTerms+10; id++ {
			want[id] = d.Term(id)
		}
		before := st.at(2*pageTerms + 5).word(1)
		keep(t, d, ids[pageTerms-1:]...)
		if d.state.Load().at(2*pageTerms+5).word(1) == before {
			t.Fatal("nothing has moved")
		}
		for id, x := range want {
			form, ok := d.formOf(st, id, st.at(id))
			if !ok || !bytes.Equal(form, term.AppendBinary(nil, x)) || d.Term(id) != x || len(form) < 500 {
				t.Errorf("sparse %v: id %d is %.20q and %.20v", sparse, id, form, d.Term(id))
			}
		}
	}
}
