package window

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// modelCopy is a contribution of the model.
type modelCopy struct {
	rel   uint32
	tuple []uint64
	time  int64
	value uint64
	id    string
	seq   uint64 // its number among the appends to its relation
}

// model is the multiset straight from the definition: a list of contributions
// in the order in which they were appended.
type model struct {
	arity []int
	next  []uint64 // by relation, the number of the next append
	live  []modelCopy
	looks []modelFrames // by relation
}

func (m *model) clone() *model {
	c := &model{slices.Clone(m.arity), slices.Clone(m.next), slices.Clone(m.live), slices.Clone(m.looks)}
	for i := range c.looks {
		c.looks[i].list = slices.Clone(c.looks[i].list)
	}
	return c
}

func (m *model) insert(c modelCopy) error {
	if len(c.tuple) != m.arity[c.rel] {
		return errs.ErrArity
	}
	if i := slices.IndexFunc(m.live, func(o modelCopy) bool { return c.id != "" && o.id == c.id }); i >= 0 {
		if m.live[i].rel != c.rel || !slices.Equal(m.live[i].tuple, c.tuple) {
			return errs.ErrValue
		}
		c.seq = m.live[i].seq
		m.live[i] = c
		return nil
	}
	c.seq = m.next[c.rel]
	m.next[c.rel]++
	m.live = append(m.live, c)
	return nil
}

func (m *model) delete(match func(modelCopy) bool) error {
	best := -1
	for i, c := range m.live {
		if match(c) && (best < 0 || c.time < m.live[best].time) {
			best = i
		}
	}
	if best < 0 {
		return errs.ErrNoSuchFact
	}
	m.live = slices.Delete(m.live, best, best+1)
	return nil
}

func (m *model) count(rel uint32, tuple []uint64) (n int64) {
	for _, c := range m.live {
		if c.rel == rel && slices.Equal(c.tuple, tuple) {
			n++
		}
	}
	return n
}

// scan lists a relation as Scan does.
func (m *model) scan(rel uint32) []modelCopy {
	var out []modelCopy
	for _, c := range m.live {
		if c.rel == rel {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b modelCopy) int {
		return cmp.Or(slices.Compare(a.tuple, b.tuple), cmp.Compare(a.time, b.time))
	})
	return out
}

// rig runs the same operations on a store and on the model, and compares.
type rig struct {
	t       testing.TB
	s       *Store
	m       *model
	begin   *model   // as it was at Begin
	order   []string // facts in order of first touch in this epoch, as "rel tuple"
	touched map[string]modelCopy

	base    int64 // event times are about this
	windows *windowRig
}

func newRig(t testing.TB, arity ...int) *rig {
	r := &rig{t: t, s: NewStore(), m: &model{}, touched: map[string]modelCopy{}}
	for _, n := range arity {
		r.addRelation(n)
	}
	r.begin = r.m.clone()
	r.s.Begin()
	return r
}

func (r *rig) addRelation(arity int) {
	if got := r.s.AddRelation(arity); int(got) != len(r.m.arity) {
		r.t.Fatalf("relation %d was given number %d", len(r.m.arity), got)
	}
	r.m.arity = append(r.m.arity, arity)
	r.m.next = append(r.m.next, 0)
	r.m.looks = append(r.m.looks, modelFrames{keep: Forever})
}

func (r *rig) agree(got, want error, format string, args ...any) {
	r.t.Helper()
	if !errors.Is(got, want) || (want == nil) != (got == nil) {
		r.t.Fatalf("%s: got error %v, want %v", fmt.Sprintf(format, args...), got, want)
	}
}

func (r *rig) touch(c modelCopy) {
	key := fmt.Sprint(c.rel, c.tuple)
	if _, ok := r.touched[key]; !ok {
		r.touched[key] = c
		r.order = append(r.order, key)
	}
}

func (r *rig) insert(c modelCopy) {
	r.t.Helper()
	want := r.m.insert(c)
	r.agree(r.s.Insert(c.rel, c.tuple, c.time, c.value, c.id), want, "insert %v", c)
	if want == nil {
		r.touch(c)
	}
}

func (r *rig) delete(c modelCopy) {
	r.t.Helper()
	want := error(errs.ErrArity)
	if len(c.tuple) == r.m.arity[c.rel] {
		want = r.m.delete(func(o modelCopy) bool {
			return o.rel == c.rel && slices.Equal(o.tuple, c.tuple) && (c.value == 0 || o.value == c.value)
		})
	}
	r.agree(r.s.Delete(c.rel, c.tuple, c.value), want, "delete %v", c)
	if want == nil {
		r.touch(c)
	}
}

func (r *rig) deleteID(c modelCopy) {
	r.t.Helper()
	match := func(o modelCopy) bool {
		return o.id == c.id && (c.tuple == nil || o.rel == c.rel && slices.Equal(o.tuple, c.tuple))
	}
	i := slices.IndexFunc(r.m.live, match)
	if i >= 0 {
		r.touch(r.m.live[i])
	}
	want := r.m.delete(match)
	r.agree(r.s.DeleteID(c.id, c.rel, c.tuple), want, "delete %v", c)
}

// changes compares the net changes of the epoch.
func (r *rig) changes() {
	r.t.Helper()
	for rel := range r.m.arity {
		rel := uint32(rel)
		var got, want []string
		for c := r.s.Changes(rel); c.Next(); {
			got = append(got, fmt.Sprint(rel, c.Tuple(), " ", c.Old(), " to ", c.New()))
		}
		for _, key := range r.order {
			c := r.touched[key]
			if old, now := r.begin.count(c.rel, c.tuple), r.m.count(c.rel, c.tuple); c.rel == rel && old != now {
				want = append(want, fmt.Sprint(rel, c.tuple, " ", old, " to ", now))
			}
		}
		if !slices.Equal(got, want) {
			r.t.Fatalf("changes of relation %d:\n got %q\nwant %q", rel, got, want)
		}
		if f := &r.m.looks[rel]; f.valued {
			compareChanges(r.t, every(r.s.ValuedChanges(rel)), f.wasValued, r.m.byValue(rel), "by value")
		}
	}
}

func (r *rig) end(commit bool) {
	r.t.Helper()
	if r.windows != nil {
		r.windows.advance(r)
	} else {
		r.changes()
	}
	if commit {
		r.s.Commit()
	} else {
		r.s.Rollback()
		r.s.RemoveRelations(uint32(len(r.begin.arity)))
		r.m = r.begin
	}
	r.check()
	if r.windows != nil {
		r.windows.check(r)
	}
	r.m.begin()
	r.begin = r.m.clone()
	r.order, r.touched = nil, map[string]modelCopy{}
	r.s.Begin()
}

// check compares everything that can be read, and the structure itself.
func (r *rig) check() {
	r.t.Helper()
	if r.s.Relations() != len(r.m.arity) || r.s.Contributions() != int64(len(r.m.live)) {
		r.t.Fatalf("%d relations, %d contributions; want %d, %d",
			r.s.Relations(), r.s.Contributions(), len(r.m.arity), len(r.m.live))
	}
	for rel := range r.m.arity {
		rel := uint32(rel)
		want, i := r.m.scan(rel), 0
		facts := map[string]int64{}
		for got := range r.s.Scan(rel) {
			w := modelCopy{rel, slices.Clone(got.Tuple), got.Time, got.Value, got.ID, got.Seq}
			if i >= len(want) || fmt.Sprint(w) != fmt.Sprint(want[i]) {
				r.t.Fatalf("contribution %d of relation %d: got %v, want %v", i, rel, w, want[min(i, len(want)):])
			}
			facts[fmt.Sprint(got.Tuple)]++
			i++
		}
		if i != len(want) || r.s.Len(rel) != len(facts) {
			r.t.Fatalf("relation %d: %d contributions, %d facts; want %d, %d", rel, i, r.s.Len(rel), len(want), len(facts))
		}
		for f := r.s.Facts(rel); f.Next(); {
			key := fmt.Sprint(f.Tuple())
			if f.Count() != facts[key] || r.s.Count(rel, f.Tuple()) != facts[key] {
				r.t.Fatalf("relation %d: %s counts %d and %d, want %d", rel, key, f.Count(), r.s.Count(rel, f.Tuple()), facts[key])
			}
			delete(facts, key)
		}
		if len(facts) != 0 {
			r.t.Fatalf("relation %d: facts not walked: %v", rel, facts)
		}
		r.checkValued(rel)
	}
	if err := r.s.verify(); err != nil {
		r.t.Fatal(err)
	}
}

// verify checks the invariants of the structure between two epochs.
func (s *Store) verify() error {
	var lists, blocks int
	rels, first := slices.Clone(s.rels), len(s.rels)
	numbers := make([]uint32, first)
	for n, r := range s.rels {
		numbers[n] = uint32(n)
		if r.valued != nil {
			rels, numbers = append(rels, r.valued), append(numbers, uint32(n))
		}
	}
	for n, r := range rels {
		if (n >= first) != r.shadow || r.shadow && len(r.touched) > 0 {
			return fmt.Errorf("relation %d: a shadow %v, %d touched", n, r.shadow, len(r.touched))
		}
		used := 0
		for i, slot := range r.slots {
			if slot == 0 {
				continue
			}
			used++
			w := r.facts.at(uint32(slot) - 1)
			hash := s.hash.sum(w[:r.arity])
			if rec, ok := r.find(w[:r.arity], hash); !ok || rec != uint32(slot)-1 || hash != uint32(slot>>32) {
				return fmt.Errorf("relation %d: slot %d is not found", n, i)
			}
			state := w[r.arity+2]
			if state&touchedBit != 0 || s.copies.count(state) == 0 {
				return fmt.Errorf("relation %d: state %x between epochs", n, state)
			}
			last := entry{}
			s.copies.each(w[r.arity:], func(e entry) bool {
				if last.seq != 0 && (e.time < last.time || e.time == last.time && e.seq <= last.seq) {
					used = -1
				}
				last = e
				return true
			})
			switch state & formMask {
			case formRun:
				blocks++
			case formBig:
				lists++
				l := &s.copies.lists[uint32(state)]
				sum := int64(0)
				for _, ch := range l.chunks() {
					blocks++
					sum += int64(ch.n)
					if ch.n == 0 || ch.off+ch.n > blockMax {
						return fmt.Errorf("chunk %+v", ch)
					}
				}
				if sum != l.n || l.n <= blockHalf {
					return fmt.Errorf("list of %d holds %d", l.n, sum)
				}
			}
		}
		if used != r.facts.live || used != r.live || used*4 > len(r.slots)*3+3 {
			return fmt.Errorf("relation %d: %d slots used, %d records, %d facts, %d slots", n, used, r.facts.live, r.live, len(r.slots))
		}
		if err := r.facts.verify(); err != nil {
			return err
		}
		held, err := s.verifyFrames(r, numbers[n])
		if err != nil {
			return fmt.Errorf("relation %d: %w", n, err)
		}
		blocks += held
	}
	held := 0
	for i := range s.copies.blocks {
		held += s.copies.blocks[i].live
		if err := s.copies.blocks[i].verify(); err != nil {
			return err
		}
	}
	if held != blocks || len(s.copies.lists)-len(s.copies.unused) != lists || len(s.ids) != len(s.named) {
		return fmt.Errorf("%d blocks held, %d used; %d lists, %d unused, %d used; %d ids, %d named",
			held, blocks, len(s.copies.lists), len(s.copies.unused), lists, len(s.ids), len(s.named))
	}
	return nil
}

// verify counts the records and the words of a slab again.
func (s *slab) verify() error {
	live, words, room, empty := 0, 0, map[int32]bool{}, 0
	for p := s.avail; p >= 0; p = s.info[p].next {
		room[p] = true
	}
	for p, in := range s.info {
		live += int(in.used)
		words += len(s.pages[p])
		free := int32(0)
		for slot := in.free; slot != 0; slot = int32(s.pages[p][int(slot-1)*s.width]) {
			free++
		}
		if in.used+free != in.fresh {
			return fmt.Errorf("page %d: %+v, %d free", p, in, free)
		}
		if in.used == 0 && !room[int32(p)] {
			empty++
		}
		full := in.free == 0 && in.fresh == 1<<s.shift
		if has := in.used > 0 && !full; room[int32(p)] && in.used > 0 != has || has && !room[int32(p)] {
			return fmt.Errorf("page %d: %+v, in list: %v", p, in, room[int32(p)])
		}
	}
	if live != s.live || words != s.words {
		return fmt.Errorf("slab: %d records, %d words; want %d, %d", s.live, s.words, live, words)
	}
	if empty != len(s.spare)+len(s.holes) {
		return fmt.Errorf("slab: %d pages without records, %d spare, %d holes", empty, len(s.spare), len(s.holes))
	}
	return nil
}

// step runs one operation drawn from four random words.
func (r *rig) step(op, a, b, c uint64, keys uint64) {
	rel := uint32(a % uint64(len(r.m.arity)))
	tuple := make([]uint64, r.m.arity[rel])
	for i := range tuple {
		tuple[i] = b >> (8 * i) % keys
	}
	x := modelCopy{rel: rel, tuple: tuple, time: clamped(r.base, int64(c%16)), value: c >> 8 % 4}
	switch op % 32 {
	case 0:
		r.end(true)
	case 1:
		r.end(false)
	case 2:
		if len(r.m.arity) < 6 {
			r.addRelation(int(b%4) + 1)
		}
		r.toggleValued(rel, b>>16%3 > 0)
	case 3, 4, 5, 6:
		x.id = fmt.Sprint("e", c>>16%24)
		r.insert(x)
	case 7:
		x.id, x.tuple = fmt.Sprint("e", c>>16%24), nil
		r.deleteID(x)
	case 8:
		x.id = fmt.Sprint("e", c>>16%24)
		r.deleteID(x)
	case 9, 10:
		r.delete(x)
	case 11:
		x.tuple = append(x.tuple, 1)
		r.insert(x)
		r.delete(x)
	case 12, 13, 14, 15, 16, 17, 18, 19, 20:
		x.value = 0
		r.delete(x)
	case 21, 22, 23, 24:
		r.insert(x)
	default:
		x.time, x.value = clamped(r.base, int64(len(r.m.live))), 0
		r.insert(x)
	}
}

// TestModel runs random operations: few keys make heavy duplicates, many keys
// make the tables grow.
func TestModel(t *testing.T) {
	steps := 3000
	if testing.Short() {
		steps = 800
	}
	for _, keys := range []uint64{1, 2, 5, 40} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("keys=%d/seed=%d", keys, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, keys))
				r := newRig(t, 2, 1, 3)
				for range steps {
					r.step(rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64(), keys)
				}
				r.end(true)
			})
		}
	}
}

// FuzzStore runs operations of four bytes each against the model.
func FuzzStore(f *testing.F) {
	f.Add([]byte{30, 0, 1, 2, 30, 0, 1, 3, 12, 0, 1, 0, 0, 0, 0, 0, 3, 0, 1, 5, 7, 0, 0, 5, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		r := newRig(t, 2, 1)
		for ; len(ops) >= 4; ops = ops[4:] {
			c := uint64(ops[3])
			r.step(uint64(ops[0]), uint64(ops[1]), uint64(ops[2])*0x0101, c|c<<6|c<<16, 3)
		}
		r.end(true)
	})
}
