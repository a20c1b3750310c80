package dict

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// saved is a dictionary on its way to another process.
type saved struct {
	ids   []uint64
	forms [][]byte
	last  uint64
}

func save(t *testing.T, d *Dict) (s saved) {
	t.Helper()
	err := d.Each(0, math.MaxUint64, func(id uint64, form []byte) error {
		s.ids, s.forms = append(s.ids, id), append(s.forms, bytes.Clone(form))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.last = d.Len()
	return s
}

func (s *saved) restore(t *testing.T, d *Dict) {
	t.Helper()
	for i, id := range s.ids {
		if err := d.Restore(id, s.forms[i]); err != nil {
			t.Fatal(err)
		}
	}
	d.SetLen(s.last)
}

// TestRestore: what is restored is what was there, gaps and all, and life goes on.
func TestRestore(t *testing.T) {
	for _, every := range []uint64{1, 3, 50, 4000} {
		for _, start := range []uint64{0, 1<<32 - 9000, 7<<32 - 1} {
			for _, reserve := range []int{0, 12_000} {
				t.Run(fmt.Sprint(every, " ", start, " ", reserve), func(t *testing.T) {
					d := New()
					d.SetLen(start)
					fill(t, d, 1, 12_000)
					var ids []uint64
					for id := start + every; id <= d.Len(); id += every {
						ids = append(ids, id)
					}
					keep(t, d, ids...)
					s, next := save(t, d), New()
					next.Reserve(reserve)
					s.restore(t, next)
					verify(t, next)
					if next.Len() != d.Len() || next.Live() != d.Live() || next.Bytes() > 2*d.Bytes()+100<<10+int64(reserve)*16 {
						t.Fatalf("%d ids, %d terms, %d bytes; before %d, %d, %d", next.Len(), next.Live(), next.Bytes(), d.Len(), d.Live(), d.Bytes())
					}
					for _, id := range ids {
						if next.Term(id) != d.Term(id) {
							t.Fatalf("id %d is %v, want %v", id, next.Term(id), d.Term(id))
						}
					}
					fillIDs(next, 3000)
					verify(t, next)
					next.Truncate(s.last)
					verify(t, next)
					keep(t, next, ids...)
					if next.Live() != uint64(len(ids)) {
						t.Fatalf("%d terms of %d", next.Live(), len(ids))
					}
					keep(t, next)
				})
			}
		}
	}
}

// TestRestoreSpilled: with a backing named before, no text comes into memory.
func TestRestoreSpilled(t *testing.T) {
	d := New()
	intern(t, d, longs(3000)...)
	s, b, next := save(t, d), new(mapBacking), New()
	b.save(t, d, d.Len())
	if err := next.Spill(d.Len(), b, 1<<20); err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	s.restore(t, next)
	if next.slabs.bytes.Load() != 0 || b.reads.Load() != 0 {
		t.Fatalf("slabs of %d bytes, %d reads", next.slabs.bytes.Load(), b.reads.Load())
	}
	check(t, next, longs(3000))
	intern(t, next, term.String("a long text that has come later"))
	if next.slabs.bytes.Load() == 0 {
		t.Fatal("a new text is not in memory")
	}
	verify(t, next)

	// A limit that was too high holds for what is restored only.
	for _, restore := range []int{0, 1} {
		d = New()
		if err := d.Spill(1000, b, 0); err != nil {
			t.Fatal(err)
		}
		for i := range restore {
			if err := d.Restore(s.ids[i], s.forms[i]); err != nil {
				t.Fatal(err)
			}
		}
		intern(t, d, term.String("a long text that has come later"))
		verify(t, d)
	}
}

// TestRestoreTwice: the newest id of a term is the one that is found; the older
// one is read until it is swept.
func TestRestoreTwice(t *testing.T) {
	for _, start := range []uint64{0, 1<<32 - 5} {
		for _, x := range []term.Term{term.Int(7), term.String("short"), term.IRI("http://example.org/long/enough")} {
			d, form := New(), term.AppendBinary(nil, x)
			for _, id := range []uint64{3, 5, 9} {
				if err := d.Restore(start+id, form); err != nil {
					t.Fatal(err)
				}
			}
			d.SetLen(start + 20)
			for _, id := range []uint64{3, 5, 9} {
				if d.Term(start+id) != x {
					t.Errorf("id %d is %v", id, d.Term(start+id))
				}
			}
			if id, ok := d.Find(x, d.Len()); id != start+9 || !ok || d.Intern(x) != start+9 || d.Live() != 3 {
				t.Errorf("%v is %d, %d terms", x, id, d.Live())
			}
			verify(t, d)
			keep(t, d, start+9)
			if id, _ := d.Find(x, d.Len()); id != start+9 || d.Live() != 1 || len(d.renewed) > 0 || d.state.Load().renewed {
				t.Errorf("%v is %d, %d terms", x, id, d.Live())
			}
		}
	}
}

// TestRestoreDamaged: no bytes but those of a term, and no id out of order.
func TestRestoreDamaged(t *testing.T) {
	form := func(x term.Term) []byte { return term.AppendBinary(nil, x) }
	text := form(term.String("abc"))
	large := append([]byte{byte(term.KindString), 0x81, 0x80, 0x80, 0x20}, make([]byte, TermBytesMax+1)...)
	for _, tc := range []struct {
		name string
		id   uint64
		form []byte
	}{
		{"id 0", 0, text},
		{"same id", 5, text},
		{"lower id", 4, text},
		{"empty", 6, nil},
		{"absent", 6, []byte{byte(term.KindAbsent)}},
		{"unknown kind", 6, []byte{200, 1}},
		{"kind alone", 6, text[:1]},
		{"cut", 6, text[:4]},
		{"more bytes", 6, append(bytes.Clone(text), 0)},
		{"long length", 6, []byte{byte(term.KindString), 0x83, 0, 'a', 'b', 'c'}},
		{"endless length", 6, append([]byte{byte(term.KindString)}, bytes.Repeat([]byte{0xff}, 20)...)},
		{"number and more", 6, append(form(term.Int(4)), 1)},
		{"too large", 6, large},
		{"tag in capitals", 6, append([]byte{byte(term.KindLangString)}, "\x02EN\x01a"...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := New()
			if err := d.Restore(5, text); err != nil {
				t.Fatal(err)
			}
			before := d.Bytes()
			if err := d.Restore(tc.id, tc.form); !errors.Is(err, errs.ErrCorrupt) {
				t.Errorf("error %v", err)
			}
			if d.Len() != 5 || d.Live() != 1 || d.Bytes() != before {
				t.Errorf("%d ids, %d terms, %d bytes, before %d", d.Len(), d.Live(), d.Bytes(), before)
			}
			d.SetLen(6)
			verify(t, d)
		})
	}
	d := New()
	d.SetLen(10)
	if d.gone.Store(0); d.Live() != 10 {
		t.Fatal(d.Live())
	}
	d.n.Store(TermsMax)
	if err := d.Restore(TermsMax+1, text); !errors.Is(err, errs.ErrBudget) {
		t.Errorf("one too many: %v", err)
	}
}

// TestInternNew: another id for a term, which Truncate takes back again.
func TestInternNew(t *testing.T) {
	for _, start := range []uint64{0, 1<<32 - 3} {
		for _, rebuild := range []bool{false, true} {
			d := New()
			d.SetLen(start)
			terms := []term.Term{term.Int(7), term.String("s"), term.IRI("http://example.org/long/enough")}
			for _, x := range terms {
				d.Intern(x)
			}
			d.InternNew(term.String("new"))
			n := d.Len()
			for range 2 {
				for i, x := range terms {
					id := d.InternNew(x)
					if got, ok := d.Find(x, d.Len()); got != id || !ok || id != d.Len() || d.Intern(x) != id || d.Term(id) != x {
						t.Fatalf("%v is %d, want %d", x, got, id)
					}
					if d.Term(start+1+uint64(i)) != x {
						t.Fatal("the older id is not read any more")
					}
				}
			}
			verify(t, d)
			if rebuild {
				d.built = d.Len()
			}
			d.Truncate(n)
			verify(t, d)
			for i, x := range terms {
				if id, ok := d.Find(x, n); id != start+1+uint64(i) || !ok {
					t.Errorf("%v is %d, %v after all", x, id, ok)
				}
			}
			if d.state.Load().renewed || len(d.renewed) > 0 || d.InternNew(term.Term{}) != 0 {
				t.Errorf("%v is left", d.renewed)
			}
		}
	}
}

// TestEras crosses the borders of 32 bits, where slots tell ids of several eras
// apart by nothing but the terms.
func TestEras(t *testing.T) {
	for _, colliding := range []bool{false, true} {
		d := New()
		if colliding {
			d = NewColliding()
		}
		want := map[uint64]term.Term{}
		for era := range uint64(4) {
			if era > 0 {
				d.SetLen(era<<32 - 50)
			}
			for i := range uint64(100) {
				x := []term.Term{term.Int(int64(era<<8 | i)), term.String(fmt.Sprint(era, i)), term.IRI(fmt.Sprint("http://example.org/", era, "/", i))}[i%3]
				want[d.Intern(x)] = x
			}
			verify(t, d)
		}
		all := func() {
			t.Helper()
			for id, x := range want {
				got, ok := d.Find(x, d.Len())
				below, found := d.Find(x, id-1)
				if got != id || !ok || found || d.Term(id) != x || d.Intern(x) != id {
					t.Fatalf("%v is %d, %v, want %d; below %d", x, got, ok, id, below)
				}
			}
			verify(t, d)
		}
		all()
		if n := testing.AllocsPerRun(10, func() {
			d.Find(term.String("00"), d.Len())
			d.Find(term.String("nowhere"), d.Len())
			d.Intern(term.IRI("http://example.org/1/2"))
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		for _, era := range []uint64{1, 0, 3} {
			d.StartMark()
			for id := range want {
				if id>>32 == era {
					delete(want, id)
				} else {
					d.Mark(id)
				}
			}
			d.FinishMark()
			d.Sweep()
			all()
		}
		if st := d.state.Load(); len(st.old) > 0 || st.top.number != 2 {
			t.Errorf("eras %d and %v", st.top.number, st.old)
		}
		keep(t, d)
		if d.used != 0 {
			t.Errorf("%d slots are left", d.used)
		}
	}
}

// TestEach: the held terms of a range, ascending, until an error.
func TestEach(t *testing.T) {
	d := New()
	fill(t, d, 1, 5000)
	d.StartMark()
	for id := uint64(3); id <= 5000; id++ {
		if id < 1500 || id > 3500 || id == 3000 {
			d.Mark(id)
		}
	}
	d.FinishMark()
	d.Sweep()
	for _, tc := range []struct{ from, to, n, first, last uint64 }{
		{0, math.MaxUint64, 1497 + 1 + 1500, 3, 5000},
		{1, 5000, 1497 + 1 + 1500, 3, 5000},
		{3, 3, 1, 3, 3},
		{2, 2, 0, 0, 0},
		{1023, 1025, 3, 1023, 1025},
		{1499, 3501, 3, 1499, 3501},
		{3000, 3000, 1, 3000, 3000},
		{3001, 3500, 0, 0, 0},
		{4999, 9999, 2, 4999, 5000},
		{9, 8, 0, 0, 0},
		{6000, 7000, 0, 0, 0},
	} {
		var n, first, last uint64
		err := d.Each(tc.from, tc.to, func(id uint64, form []byte) error {
			if first == 0 {
				first = id
			}
			if n++; id <= last || !bytes.Equal(form, term.AppendBinary(nil, nth(id))) {
				t.Errorf("id %d after %d: %x", id, last, form)
			}
			last = id
			return nil
		})
		if err != nil || n != tc.n || first != tc.first || last != tc.last {
			t.Errorf("%v: %d from %d to %d, %v", tc, n, first, last, err)
		}
	}
	stop, n := errors.New("stop"), 0
	if err := d.Each(1, 5000, func(uint64, []byte) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

// TestEachWhileWriting walks what was published while the writer goes on.
func TestEachWhileWriting(t *testing.T) {
	d := New()
	fill(t, d, 1, 3000)
	keep(t, d, 1, 5, 1024, 2999, 3000)
	fill(t, d, 3001, 4000)
	limit := d.Len()
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			n := 0
			err := d.Each(1, limit, func(id uint64, form []byte) error {
				n++
				if x, _, err := term.DecodeBinary(form); err != nil || id > 3000 && x != nth(id) {
					return fmt.Errorf("id %d is %v, %v", id, x, err)
				}
				return nil
			})
			if err != nil || n != 1005 {
				t.Errorf("%d terms, %v", n, err)
				return
			}
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		fillIDs(d, rng.IntN(3000))
		d.Truncate(limit)
		d.StartMark()
	}
	done.Store(true)
	wg.Wait()
}

// FuzzRestore: any bytes are a term or damaged, and a term comes back as it was.
func FuzzRestore(f *testing.F) {
	for _, x := range kinds() {
		f.Add(term.AppendBinary(nil, x))
	}
	f.Add([]byte{byte(term.KindString), 0x80, 0})
	f.Fuzz(func(t *testing.T, form []byte) {
		d := New()
		x, n, decoded := term.DecodeBinary(form)
		good := decoded == nil && n == len(form) && !x.IsZero()
		if err := d.Restore(3, form); (err == nil) != good || err != nil && !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("error %v, decoding gives %v, %d, %v", err, x, n, decoded)
		}
		d.SetLen(4)
		if good && (d.Term(3) != x || d.Intern(x) != 3) {
			t.Fatalf("%v comes back as %v", x, d.Term(3))
		}
		verify(t, d)
	})
}
