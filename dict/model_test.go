package dict

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/term"
)

// verify checks everything that a dictionary keeps twice: bits against entries,
// accounts against what is there, the table against the terms.
func verify(t *testing.T, d *Dict) {
	t.Helper()
	st := d.state.Load()
	live := make([]int, len(st.slabs))
	newest := map[string]uint64{}
	terms, tabled := uint64(0), 0
	st.walk(1, d.Len(), func(id uint64, e *entry) bool {
		terms++
		if !st.holds(id) || st.at(id) != e && *st.at(id) != *e {
			t.Errorf("id %d is held and not held", id)
		}
		if e.long() && id > st.through {
			live[e.word(1)>>32] += e.size()
		}
		form, ok := d.formOf(st, id, e)
		if !ok {
			t.Errorf("id %d cannot be read: %v", id, d.Err())
			return false
		}
		newest[string(form)] = max(newest[string(form)], id)
		return true
	})
	if terms != d.Live() {
		t.Errorf("%d terms are there, %d counted", terms, d.Live())
	}
	for form, id := range newest {
		x, _, err := term.DecodeBinary([]byte(form))
		if err != nil {
			t.Fatalf("id %d: %v", id, err)
		}
		if _, small := smallInt([]byte(form)); !small {
			tabled++
		}
		if got, ok := d.Find(x, d.Len()); got != id || !ok {
			t.Errorf("%v is %d, %v; want %d", x, got, ok, id)
		}
	}
	used := 0
	for _, slot := range st.slots {
		if slot != 0 {
			used++
		}
	}
	// Where eras meet a slot may be left over; nowhere else.
	if used != d.used || used < tabled || used > tabled && !d.mixed() || used*4 > len(st.slots)*3+3 {
		t.Errorf("%d slots of %d in use, counted %d, for %d terms", used, len(st.slots), d.used, tabled)
	}
	verifyMemory(t, d, live)
}

// mixed reports whether the dictionary may hold slots of more than one era.
func (d *Dict) mixed() bool { return d.constant || d.Len()>>eraShift > 0 }

func verifyMemory(t *testing.T, d *Dict, live []int) {
	t.Helper()
	st, size, ints := d.state.Load(), int64(0), int64(0)
	for i, slab := range st.slabs {
		size += int64(len(slab))
		if slab == nil != slices.Contains(d.slabs.free, i) || slab != nil && d.slabs.info[i].live != live[i] {
			t.Errorf("slab %d has %d bytes in use, counted %v", i, live[i], d.slabs.info[i])
		}
	}
	for page := range uint64(intPages) {
		if ints += d.ints.pageBytes(page); d.ints.pageBytes(page) == 0 && d.ints.used[page] == 0 {
			continue
		}
		used := 0
		for i := range uint64(intsPage) {
			if d.ints.find(page*intsPage+i) != 0 {
				used++
			}
		}
		if used != int(d.ints.used[page]) || used == 0 && d.ints.pageBytes(page) > 0 {
			t.Errorf("page %d of integers has %d of %d", page, used, d.ints.used[page])
		}
	}
	if size != d.slabs.bytes.Load() || ints != d.ints.bytes.Load() {
		t.Errorf("slabs of %d bytes, counted %d; integers %d, %d", size, d.slabs.bytes.Load(), ints, d.ints.bytes.Load())
	}
	if n := st.bytes() + int64(len(d.renewed))*renewalBytes; n != d.pages.Load() {
		t.Errorf("directory of %d bytes, counted %d", n, d.pages.Load())
	}
	for i, p := range st.flat {
		number := st.flatAt + uint64(i)
		c := st.chunk(number >> (chunkShift - pageShift))
		if c == nil && p != nil || c != nil && c.dense != nil && p != c.dense.pages[number%chunkPages] {
			t.Errorf("page %d is another one in the flat list", number)
		}
	}
}

// mapBacking is a backing in a map.
type mapBacking struct {
	mu    sync.RWMutex
	forms map[uint64][]byte
	reads atomic.Int64
}

func (b *mapBacking) Form(id uint64, dst []byte) ([]byte, error) {
	b.reads.Add(1)
	b.mu.RLock()
	defer b.mu.RUnlock()
	form, ok := b.forms[id]
	if !ok {
		return nil, errors.New("no such term")
	}
	return append(dst, form...), nil
}

// save copies the terms up to an id, as a checkpoint does.
func (b *mapBacking) save(t *testing.T, d *Dict, through uint64) {
	t.Helper()
	forms := map[uint64][]byte{}
	err := d.Each(1, through, func(id uint64, form []byte) error {
		forms[id] = bytes.Clone(form)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forms = forms
}

// model is a dictionary beside maps that do the same.
type model struct {
	t       *testing.T
	d       *Dict
	rng     *rand.Rand
	backing *mapBacking
	spilled uint64

	terms map[uint64]term.Term // held
	ids   map[term.Term]uint64 // newest
	last  uint64
	log   []uint64 // ids of terms renewed, with their older ones: newer, older
	live  map[term.Term]bool
	kept  map[uint64]bool // marked; nil: no search
	dead  map[uint64]bool // nil: none fixed

	snapshot atomic.Pointer[pinned]
	pins     []atomic.Pointer[pinned]
}

// pinned is what readers may look at.
type pinned struct {
	limit uint64
	terms map[uint64]term.Term
	ids   []uint64
}

// draw is random; all terms collide in some models, which must be small then.
func (m *model) draw() term.Term {
	x := random(m.rng)
	for m.d.constant && len(m.ids) > 400 && m.ids[x] == 0 {
		x = random(m.rng)
	}
	return x
}

func (m *model) add(x term.Term) (id uint64) {
	m.last++
	m.terms[m.last], m.ids[x] = x, m.last
	return m.last
}

func (m *model) mark(id uint64) {
	if m.kept != nil {
		m.kept[id] = true
	}
	delete(m.dead, id)
}

func (m *model) intern(x term.Term) {
	id, ok := m.ids[x]
	if !ok {
		id = m.add(x)
	}
	m.mark(id)
	if got := m.d.Intern(x); got != id {
		m.t.Fatalf("%v has id %d, want %d (known: %v)", x, got, id, ok)
	}
}

func (m *model) internAll(xs []term.Term) {
	want, got := make([]uint64, len(xs)), make([]uint64, len(xs))
	for i, x := range xs {
		id, ok := m.ids[x]
		if !ok {
			id = m.add(x)
		}
		m.mark(id)
		want[i] = id
	}
	if n := m.d.InternAll(got, xs); n != len(xs) || !slices.Equal(got, want) {
		m.t.Fatalf("ids %v, want %v", got, want)
	}
}

// renew gives a term that nothing needs a newer id.
func (m *model) renew(x term.Term) {
	if m.live[x] || m.reached(x) {
		m.intern(x)
		return
	}
	older := m.ids[x]
	id := m.add(x)
	m.mark(id)
	if older != 0 {
		m.log = append(m.log, id, older)
	}
	if got := m.d.InternNew(x); got != id {
		m.t.Fatalf("%v has the new id %d, want %d", x, got, id)
	}
}

// reached reports whether a reader may look at a term.
func (m *model) reached(x term.Term) bool {
	has := func(p *pinned) bool { return p != nil && p.terms[m.ids[x]] == x }
	for i := range m.pins {
		if has(m.pins[i].Load()) {
			return true
		}
	}
	return has(m.snapshot.Load())
}

func (m *model) truncate(n uint64) {
	for id := m.last; id > n && len(m.terms) > 0; id-- {
		x, ok := m.terms[id]
		if !ok {
			continue
		}
		delete(m.terms, id)
		delete(m.dead, id)
		if m.ids[x] == id {
			delete(m.ids, x)
		}
		if k := len(m.log); k > 0 && m.log[k-2] == id {
			if m.terms[m.log[k-1]] == x {
				m.ids[x] = m.log[k-1]
			}
			m.log = m.log[:k-2]
		}
	}
	m.last, m.spilled = n, min(m.spilled, n)
	m.d.Truncate(n)
}

func (m *model) publish() {
	p := &pinned{limit: m.last, terms: map[uint64]term.Term{}}
	for x := range m.live {
		id := m.ids[x]
		p.terms[id] = x
		p.ids = append(p.ids, id)
	}
	m.snapshot.Store(p)
}

func (m *model) startMark() {
	m.d.StartMark()
	m.kept, m.dead = map[uint64]bool{}, nil
}

func (m *model) finishMark() {
	keep := func(p *pinned) {
		if p == nil {
			return
		}
		for _, id := range p.ids {
			m.d.Mark(id)
			m.mark(id)
		}
	}
	keep(m.snapshot.Load())
	for i := range m.pins {
		keep(m.pins[i].Load())
	}
	for x := range m.live {
		m.d.Mark(m.ids[x])
		m.mark(m.ids[x])
	}
	m.dead = map[uint64]bool{}
	for id := range m.terms {
		if !m.kept[id] {
			m.dead[id] = true
		}
	}
	m.kept = nil
	if got := m.d.FinishMark(); got != len(m.dead) {
		m.t.Fatalf("%d dead, want %d", got, len(m.dead))
	}
}

func (m *model) sweep() {
	if got := m.d.Sweep(); got != len(m.dead) {
		m.t.Fatalf("%d swept, want %d", got, len(m.dead))
	}
	for id := range m.dead {
		if x := m.terms[id]; m.ids[x] == id {
			delete(m.ids, x)
		}
		delete(m.terms, id)
		if m.d.Has(id) || !m.d.Term(id).IsZero() {
			m.t.Fatalf("id %d was swept and is %v", id, m.d.Term(id))
		}
	}
	m.dead = nil
}

func (m *model) spill() {
	m.backing.save(m.t, m.d, m.last)
	m.spilled = m.last
	if err := m.d.Spill(m.last, m.backing, int64(m.rng.IntN(3))<<15); err != nil {
		m.t.Fatal(err)
	}
}

// jump leaves ids out, often up to the end of an era.
func (m *model) jump() {
	m.last += uint64(m.rng.IntN(5000))
	if m.rng.IntN(3) == 0 {
		m.last |= 1<<eraShift - 1
		m.last -= uint64(m.rng.IntN(1500))
	}
	m.d.SetLen(max(m.last, m.d.Len()))
	m.last = m.d.Len()
}

func (m *model) check() {
	m.t.Helper()
	if m.d.Len() != m.last || m.d.Live() != uint64(len(m.terms)) {
		m.t.Fatalf("%d ids and %d terms, want %d and %d", m.d.Len(), m.d.Live(), m.last, len(m.terms))
	}
	for id, x := range m.terms {
		if got := m.d.Term(id); got != x || !m.d.Has(id) {
			m.t.Fatalf("id %d is %v, want %v", id, got, x)
		}
	}
	for x, id := range m.ids {
		if got, ok := m.d.Find(x, m.last); got != id || !ok {
			m.t.Fatalf("%v is %d, %v; want %d", x, got, ok, id)
		}
	}
	verify(m.t, m.d)
}

// read looks at a pinned snapshot until done.
func (m *model) read(i int, done *atomic.Bool) {
	rng := rand.New(rand.NewPCG(uint64(i), 9))
	for !done.Load() {
		p := m.snapshot.Load()
		if m.pins[i].Store(p); m.snapshot.Load() != p || len(p.ids) == 0 {
			continue
		}
		for range 50 {
			id := p.ids[rng.IntN(len(p.ids))]
			x := p.terms[id]
			form := term.AppendBinary(nil, x)
			a, b := m.d.Hash(id)
			got, ok := m.d.Find(x, p.limit)
			if got != id || !ok || m.d.Term(id) != x || a != laneA(append([]byte{tagA}, form...)) || b != laneB(form) {
				m.t.Errorf("%v is %d, %v, want %d; %v; limit %d", x, got, ok, id, m.d.Term(id), p.limit)
				return
			}
			m.d.Find(random(rng), p.limit)
		}
		m.pins[i].Store(nil)
		time.Sleep(50 * time.Microsecond)
	}
}

// step is one batch and what may happen after it.
func (m *model) step() {
	before := m.last
	var new []term.Term
	for range m.rng.IntN(300) {
		x := m.draw()
		if m.rng.IntN(8) == 0 {
			m.renew(x)
		} else {
			m.intern(x)
		}
		new = append(new, x)
	}
	m.internAll(new[:len(new)/2])
	if m.kept != nil && m.rng.IntN(6) == 0 {
		m.finishMark()
	} else if m.dead != nil && m.rng.IntN(4) == 0 {
		m.sweep()
	}
	if m.rng.IntN(4) == 0 {
		m.truncate(before)
		return
	}
	for _, x := range new {
		m.live[x] = true
	}
	for x := range m.live {
		if len(m.live) < 500 {
			break
		}
		delete(m.live, x)
	}
	m.publish()
}

func (m *model) run(steps int) {
	for i := range steps {
		m.step()
		switch m.rng.IntN(24) {
		case 0, 1, 2:
			m.startMark()
		case 3, 4:
			if m.kept != nil {
				m.finishMark()
			}
		case 5, 6, 7, 8:
			if m.dead != nil {
				m.sweep()
			}
		case 9:
			m.d.AbandonMark()
			m.kept, m.dead = nil, nil
		case 10:
			m.spill()
		case 11:
			m.jump()
		}
		if i%16 == 0 {
			m.check()
		}
		if m.t.Failed() {
			return
		}
	}
	m.check()
}

func newModel(t *testing.T, seed uint64, readers int) *model {
	m := &model{
		t: t, d: New(), rng: rand.New(rand.NewPCG(seed, 7)), backing: &mapBacking{},
		terms: map[uint64]term.Term{}, ids: map[term.Term]uint64{}, live: map[term.Term]bool{},
		pins: make([]atomic.Pointer[pinned], readers),
	}
	if seed%5 == 4 {
		m.d = NewColliding()
	}
	if seed%3 == 2 {
		m.d.SetLen(1<<32 - 2000)
		m.last = m.d.Len()
	}
	m.publish()
	return m
}

// TestLife does everything a writer does, at random, against the model, while
// readers look at what was published.
func TestLife(t *testing.T) {
	steps, seeds := 250, uint64(10)
	if testing.Short() {
		steps, seeds = 60, 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, seed, 2)
			defer m.d.Close()
			var done atomic.Bool
			var wg sync.WaitGroup
			for i := range m.pins {
				wg.Go(func() { m.read(i, &done) })
			}
			defer wg.Wait()
			defer done.Store(true)
			m.run(steps)
			if err := m.d.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// script draws from bytes, then from a seed.
type script struct {
	in   []byte
	rest *rand.PCG
}

func (s *script) Uint64() uint64 {
	if len(s.in) == 0 {
		return s.rest.Uint64()
	}
	b := s.in[0]
	s.in = s.in[1:]
	return uint64(b)*0x0101010101010101 ^ s.rest.Uint64()>>16
}

// FuzzLife lets the input decide what happens to the model.
func FuzzLife(f *testing.F) {
	f.Add(uint64(1), bytes.Repeat([]byte("abcdefgh"), 400))
	f.Add(uint64(14), bytes.Repeat([]byte{0x10, 0xf0, 0x80}, 900))
	f.Fuzz(func(t *testing.T, seed uint64, in []byte) {
		m := newModel(t, seed%1000, 0)
		defer m.d.Close()
		m.rng = rand.New(&script{in, rand.NewPCG(seed, 1)})
		m.run(min(len(in)/100, 40))
	})
}
