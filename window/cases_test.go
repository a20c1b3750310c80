package window

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// Terms of the cases, as ids.
const (
	a, b, c, z = 1, 2, 3, 26
)

// newStore returns a store with one relation and a running epoch.
func newStore(arity int) (*Store, uint32) {
	s := NewStore()
	rel := s.AddRelation(arity)
	s.Begin()
	return s, rel
}

func remove(t testing.TB, s *Store, rel uint32, tuple ...uint64) {
	t.Helper()
	if err := s.Delete(rel, tuple, 0); err != nil {
		t.Fatal(err)
	}
}

// changes writes the net changes of the epoch as text.
func changes(s *Store, rel uint32) (out string) {
	for c := s.Changes(rel); c.Next(); {
		out += fmt.Sprint(c.Tuple(), " ", c.Old(), ">", c.New(), " ")
	}
	return out
}

// commit checks the net changes of the epoch and begins the next one.
func commit(t testing.TB, s *Store, rel uint32, want string) {
	t.Helper()
	if got := changes(s, rel); got != want {
		t.Fatalf("changes %q, want %q", got, want)
	}
	s.Commit()
	s.Begin()
}

// TestSEM07: one delete a removal, so a group never disappears too early.
func TestSEM07(t *testing.T) {
	s, r := newStore(2)
	insert(t, s, r, []uint64{a, b}, 1)
	insert(t, s, r, []uint64{a, c}, 1)
	commit(t, s, r, "[1 2] 0>1 [1 3] 0>1 ")
	remove(t, s, r, a, b)
	commit(t, s, r, "[1 2] 1>0 ")
	insert(t, s, r, []uint64{a, b}, 3)
	commit(t, s, r, "[1 2] 0>1 ")
	remove(t, s, r, a, c)
	commit(t, s, r, "[1 3] 1>0 ")
}

// TestDEL01: a batch that retracts what is not there leaves nothing behind.
func TestDEL01(t *testing.T) {
	s, r := newStore(2)
	insert(t, s, r, []uint64{a, b}, 1)
	if err := s.Delete(r, []uint64{z, z}, 0); !errors.Is(err, errs.ErrNoSuchFact) {
		t.Fatalf("error %v", err)
	}
	s.Rollback()
	if s.Len(r) != 0 || s.Contributions() != 0 {
		t.Fatalf("%d facts, %d contributions", s.Len(r), s.Contributions())
	}
	s.Begin()
	commit(t, s, r, "")
	insert(t, s, r, []uint64{a, b}, 1)
	commit(t, s, r, "[1 2] 0>1 ")
}

// TestDEL02: more retractions than contributions refuse the batch.
func TestDEL02(t *testing.T) {
	s, r := newStore(2)
	insert(t, s, r, []uint64{a, b}, 1)
	insert(t, s, r, []uint64{a, b}, 2)
	commit(t, s, r, "[1 2] 0>2 ")
	remove(t, s, r, a, b)
	remove(t, s, r, a, b)
	if err := s.Delete(r, []uint64{a, b}, 0); !errors.Is(err, errs.ErrNoSuchFact) {
		t.Fatalf("error %v", err)
	}
	s.Rollback()
	if n := s.Count(r, []uint64{a, b}); n != 2 {
		t.Fatalf("count %d", n)
	}
	s.Begin()
	remove(t, s, r, a, b)
	remove(t, s, r, a, b)
	commit(t, s, r, "[1 2] 2>0 ")
}

// TestDEL03: an insertion and its retraction in one batch are no change.
func TestDEL03(t *testing.T) {
	s, r := newStore(2)
	insert(t, s, r, []uint64{a, b}, 1)
	remove(t, s, r, a, b)
	if got := s.Touched(); !slices.Equal(got, []uint32{r}) {
		t.Fatalf("touched %v", got)
	}
	commit(t, s, r, "")
	if len(s.Touched()) != 0 || s.rels[r].facts.live != 0 {
		t.Fatalf("touched %v, %d records", s.Touched(), s.rels[r].facts.live)
	}
}

// TestDEL04: a retraction and an insertion of the same fact are no change.
func TestDEL04(t *testing.T) {
	s, r := newStore(2)
	insert(t, s, r, []uint64{a, b}, 1)
	commit(t, s, r, "[1 2] 0>1 ")
	remove(t, s, r, a, b)
	insert(t, s, r, []uint64{a, b}, 2)
	commit(t, s, r, "")
	remove(t, s, r, a, b)
	insert(t, s, r, []uint64{a, c}, 3)
	commit(t, s, r, "[1 2] 1>0 [1 3] 0>1 ")
}

// TestDEL05: a fact with two contributions needs two retractions.
func TestDEL05(t *testing.T) {
	s, r := newStore(2)
	for _, step := range []struct {
		insert bool
		want   string
	}{
		{true, "[1 2] 0>1 "}, {true, "[1 2] 1>2 "}, {false, "[1 2] 2>1 "}, {false, "[1 2] 1>0 "}, {true, "[1 2] 0>1 "},
	} {
		if step.insert {
			insert(t, s, r, []uint64{a, b}, 7)
		} else {
			remove(t, s, r, a, b)
		}
		commit(t, s, r, step.want)
	}
}

// TestDEL08: one epoch of very many edges.
func TestDEL08(t *testing.T) {
	n := uint64(5_000_000)
	if testing.Short() {
		n = 200_000
	}
	s, r := newStore(2)
	for i := range n {
		insert(t, s, r, []uint64{1 + i, 1 + i%1000}, int64(i))
	}
	seen := uint64(0)
	for c := s.Changes(r); c.Next(); seen++ {
		if c.Tuple()[0] != seen+1 || c.Old() != 0 || c.New() != 1 {
			t.Fatalf("change %d: %v, %d to %d", seen, c.Tuple(), c.Old(), c.New())
		}
	}
	s.Commit()
	if seen != n || s.Len(r) != int(n) {
		t.Fatalf("%d changes, %d facts", seen, s.Len(r))
	}
	perFact := float64(s.Bytes()) / float64(n)
	t.Logf("%.1f bytes a fact", perFact)
	if perFact > 58 {
		t.Fatalf("%.1f bytes a fact", perFact)
	}
	s.Begin()
	for i := range n {
		remove(t, s, r, 1+i, 1+i%1000)
	}
	s.Rollback()
	if s.Len(r) != int(n) {
		t.Fatalf("%d facts after the rollback", s.Len(r))
	}
}

// TestWIN02: the copies of a fact go by their own times, whatever the order in
// which they came, and equal times in the order of arrival.
func TestWIN02(t *testing.T) {
	s, r := newStore(2)
	for i, at := range []int64{4, 1, 9, 4, -3, math.MinInt64, math.MaxInt64, 4} {
		if err := s.Insert(r, []uint64{a, b}, at, uint64(i+1), ""); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []uint64{6, 5, 2, 1, 4, 8, 3, 7} {
		for c := range s.Scan(r) {
			if c.Value != want {
				t.Fatalf("contribution %d would go as number %d, want %d", c.Value, i, want)
			}
			break
		}
		remove(t, s, r, a, b)
	}
	if n := s.Count(r, []uint64{a, b}); n != 0 {
		t.Fatalf("%d left", n)
	}
}

// TestIDs checks what an ID names, table by table of operations.
func TestIDs(t *testing.T) {
	ab, ac := []uint64{a, b}, []uint64{a, c}
	type step struct {
		op    string
		id    string
		tuple []uint64
		time  int64
		value uint64
		err   error
	}
	for _, tc := range []struct {
		name  string
		steps []step
		want  string // time value id of what is left
	}{
		{"refresh", []step{{"+", "e", ab, 1, 5, nil}, {"+", "e", ab, 3, 6, nil}}, "3 6 e; "},
		{"refresh keeps the place", []step{{"+", "e", ab, 1, 5, nil}, {"+", "f", ab, 3, 0, nil}, {"+", "e", ab, 3, 6, nil}, {"-", "", ab, 0, 0, nil}}, "3 0 f; "},
		{"id of another fact", []step{{"+", "e", ab, 1, 5, nil}, {"+", "e", ac, 1, 5, errs.ErrValue}}, "1 5 e; "},
		{"delete by id", []step{{"+", "e", ab, 1, 0, nil}, {"+", "f", ab, 2, 0, nil}, {"-id", "f", nil, 0, 0, nil}}, "1 0 e; "},
		{"delete by id and fact", []step{{"+", "e", ab, 1, 0, nil}, {"-id", "e", ac, 0, 0, errs.ErrNoSuchFact}, {"-id", "e", []uint64{a}, 0, 0, errs.ErrNoSuchFact}, {"-id", "e", ab, 0, 0, nil}}, ""},
		{"no such id", []step{{"-id", "e", nil, 0, 0, errs.ErrNoSuchFact}, {"+", "e", ab, 1, 0, nil}, {"-", "", ab, 0, 0, nil}, {"-id", "e", nil, 0, 0, errs.ErrNoSuchFact}}, ""},
		{"free again", []step{{"+", "e", ab, 1, 0, nil}, {"-", "", ab, 0, 0, nil}, {"+", "e", ac, 2, 0, nil}}, "2 0 e; "},
		{"value", []step{{"+", "e", ab, 1, 5, nil}, {"+", "f", ab, 2, 6, nil}, {"-", "", ab, 0, 7, errs.ErrNoSuchFact}, {"-", "", ab, 0, 6, nil}}, "1 5 e; "},
		{"single without value", []step{{"+", "", ab, 1, 0, nil}, {"-", "", ab, 0, 7, errs.ErrNoSuchFact}}, "1 0 ; "},
		{"arity", []step{{"+", "", []uint64{a}, 1, 0, errs.ErrArity}, {"-", "", []uint64{a, b, c}, 0, 0, errs.ErrArity}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, r := newStore(2)
			for i, st := range tc.steps {
				var err error
				switch st.op {
				case "+":
					err = s.Insert(r, st.tuple, st.time, st.value, st.id)
				case "-":
					err = s.Delete(r, st.tuple, st.value)
				case "-id":
					err = s.DeleteID(st.id, r, st.tuple)
				}
				if !errors.Is(err, st.err) {
					t.Fatalf("step %d: error %v, want %v", i, err, st.err)
				}
			}
			got := ""
			for c := range s.Scan(r) {
				got += fmt.Sprint(c.Time, " ", c.Value, " ", c.ID, "; ")
			}
			if got != tc.want {
				t.Fatalf("left %q, want %q", got, tc.want)
			}
		})
	}
}

// TestIDOfOtherRelation: the relation is part of the fact.
func TestIDOfOtherRelation(t *testing.T) {
	s, r := newStore(1)
	q := s.AddRelation(1)
	if err := s.Insert(r, []uint64{a}, 1, 0, "e"); err != nil {
		t.Fatal(err)
	}
	if err := s.Insert(q, []uint64{a}, 1, 0, "e"); !errors.Is(err, errs.ErrValue) {
		t.Fatalf("error %v", err)
	}
	if err := s.DeleteID("e", q, []uint64{a}); !errors.Is(err, errs.ErrNoSuchFact) {
		t.Fatalf("error %v", err)
	}
	if err := s.DeleteID("e", q, nil); err != nil || s.Len(r) != 0 {
		t.Fatalf("error %v, %d facts", err, s.Len(r))
	}
}

// TestOverflow: a multiplicity never wraps.
func TestOverflow(t *testing.T) {
	s, r := newStore(1)
	for i := range blockMax + 1 {
		insert(t, s, r, []uint64{a}, int64(i))
	}
	s.copies.lists[0].n = math.MaxInt64
	if err := s.Insert(r, []uint64{a}, 0, 0, ""); !errors.Is(err, errs.ErrOverflow) {
		t.Fatalf("error %v", err)
	}
	if s.Contributions() != blockMax+1 {
		t.Fatalf("%d contributions", s.Contributions())
	}
}

// TestMEM03: memory comes back after mass deletion, round after round.
func TestMEM03(t *testing.T) {
	n := uint64(1_000_000)
	if testing.Short() {
		n = 100_000
	}
	s, r := newStore(2)
	var first int64
	for round := range uint64(10) {
		for i := range n {
			id := ""
			if i%100 == 0 {
				id = fmt.Sprint(round, i)
			}
			if err := s.Insert(r, []uint64{i, round}, int64(i), i%3, id); err != nil {
				t.Fatal(err)
			}
			if i%100_000 == 99_999 {
				s.Commit()
				s.Begin()
			}
		}
		for i := range n {
			remove(t, s, r, (i*7919)%n, round)
			if i%100_000 == 99_999 {
				s.Commit()
				s.Begin()
			}
		}
		switch got := s.Bytes(); {
		case round == 0:
			first = got
		case got > first+first/5 || got > 1<<20:
			t.Fatalf("round %d: %d bytes, after the first %d", round, got, first)
		}
	}
}

// TestBytes compares the accounting with what the runtime says.
func TestBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s, r := newStore(2)
	for i := range uint64(300_000) {
		if err := s.Insert(r, []uint64{i / 3, i % 2}, int64(i), i%2, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.Commit()
	got, want := s.Bytes(), heap()-before
	if got < want*9/10 || got > want*11/10 {
		t.Fatalf("%d bytes, the heap grew by %d", got, want)
	}
	runtime.KeepAlive(s)
}

// TestManyCopies puts 65,536 copies on one fact, in several orders of time, and
// takes them again, against a sorted list.
func TestManyCopies(t *testing.T) {
	n := 1 << 16
	if testing.Short() {
		n = 1 << 12
	}
	for _, tc := range []struct {
		name string
		time func(i int) int64
	}{
		{"in order", func(i int) int64 { return int64(i) }},
		{"backwards", func(i int) int64 { return int64(-i) }},
		{"equal", func(int) int64 { return 7 }},
		{"mixed", func(i int) int64 { return int64(i * 40503 % n) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, r := newStore(2)
			var want []entry
			for i := range n {
				insert(t, s, r, []uint64{a, b}, tc.time(i))
				want = append(want, entry{time: tc.time(i), seq: uint64(i)})
			}
			s.Commit()
			slices.SortStableFunc(want, func(x, y entry) int { return int(x.time - y.time) })
			left := func(want []entry) {
				t.Helper()
				i := 0
				for c := range s.Scan(r) {
					if i == len(want) || c.Time != want[i].time || c.Seq != want[i].seq {
						t.Fatalf("contribution %d is %+v", i, c)
					}
					i++
				}
				if err := s.verify(); err != nil || i != len(want) {
					t.Fatalf("%d left, want %d; %v", i, len(want), err)
				}
			}
			left(want)
			s.Begin()
			for range n {
				remove(t, s, r, a, b)
			}
			s.Rollback()
			left(want)
			// A queue: as many in as out.
			s.Begin()
			for i := range n / 2 {
				remove(t, s, r, a, b)
				insert(t, s, r, []uint64{a, b}, int64(2*n+i))
				want = append(want[1:], entry{time: int64(2*n + i), seq: uint64(n + i)})
			}
			s.Commit()
			left(want)
			s.Begin()
			for range n - 3 {
				remove(t, s, r, a, b)
			}
			s.Commit()
			left(want[n-3:])
			if n := s.Bytes() - s.undo.bytes(); n > 16<<10 || s.undo.bytes() > undoKept {
				t.Fatalf("%d bytes for three contributions, %d for undoing", n, s.undo.bytes())
			}
		})
	}
}

// TestMiddle takes contributions out of the middle of large facts by ID and by
// value.
func TestMiddle(t *testing.T) {
	const n = 5000
	s, r := newStore(1)
	for i := range uint64(n) {
		if err := s.Insert(r, []uint64{a}, int64(i/3), 1+i, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	s.Commit()
	for round, commit := range []bool{false, true} {
		s.Begin()
		for i := range uint64(n) {
			var err error
			switch k := i * 2003 % n; {
			case k%5 == 0:
			case k%2 == 0:
				err = s.DeleteID(fmt.Sprint(k), r, nil)
			default:
				err = s.Delete(r, []uint64{a}, 1+k)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if commit {
			s.Commit()
		} else {
			s.Rollback()
		}
		step, i := uint64([]int{1, 5}[round]), uint64(0)
		for c := range s.Scan(r) {
			if c.Value != 1+i || c.ID != fmt.Sprint(i) || c.Time != int64(i/3) {
				t.Fatalf("round %d: %+v, want value %d", round, c, 1+i)
			}
			i += step
		}
		if err := s.verify(); i != n || err != nil {
			t.Fatalf("round %d: ended at %d; %v", round, i, err)
		}
	}
}

// TestFree pins that events allocate nothing in a steady state.
func TestFree(t *testing.T) {
	s, r := newStore(2)
	tuple := make([]uint64, 2)
	k := uint64(0)
	one := func() {
		tuple[0], tuple[1] = k%5000, k*k%7
		if s.Insert(r, tuple, int64(k), k%2, "") != nil {
			t.Error("insert")
		}
		k++
	}
	back := func(n uint64) {
		tuple[0], tuple[1] = (k-n)%5000, (k-n)*(k-n)%7
		if s.Delete(r, tuple, 0) != nil {
			t.Error("delete")
		}
	}
	for range 20_000 {
		one()
	}
	s.Commit()
	sum := int64(0)
	epoch := func() {
		s.Begin()
		for range 100 {
			one()
			back(20_000)
		}
		for c := s.Changes(r); c.Next(); {
			sum += c.New()
		}
		if errors.Is(s.Delete(r, []uint64{z, z}, 0), errs.ErrNoSuchFact) {
			sum++
		}
		s.Commit()
	}
	for range 200 {
		epoch()
	}
	if n := testing.AllocsPerRun(100, epoch); n != 0 {
		t.Errorf("an epoch: %v allocations", n)
	}
	undone := func() {
		s.Begin()
		for range 100 {
			one()
			back(20_000)
		}
		s.Rollback()
	}
	undone()
	if n := testing.AllocsPerRun(100, undone); n != 0 {
		t.Errorf("an undone epoch: %v allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() {
		for f := s.Facts(r); f.Next(); {
			sum += f.Count()
		}
	}); n != 0 {
		t.Errorf("walking the facts: %v allocations", n)
	}
}

// TestHash checks that tuples of one arity that differ little do not share
// their hashes.
func TestHash(t *testing.T) {
	s := NewStore()
	for name, tuple := range map[string]func(i, j uint64) []uint64{
		"pairs":     func(i, j uint64) []uint64 { return []uint64{i, j} },
		"high bits": func(i, j uint64) []uint64 { return []uint64{i << 40, j << 50} },
		"singles":   func(i, j uint64) []uint64 { return []uint64{i<<32 | j} },
		"triples":   func(i, j uint64) []uint64 { return []uint64{i, 0, j} },
		"fours":     func(i, j uint64) []uint64 { return []uint64{i, i, j, j} },
	} {
		seen := map[uint32]bool{}
		for i := range uint64(300) {
			for j := range uint64(300) {
				seen[s.hash.sum(tuple(i, j))] = true
			}
		}
		// 90,000 random numbers of 32 bits collide in about one pair.
		if n := 300*300 - len(seen); n > 20 {
			t.Errorf("%s: %d collisions", name, n)
		}
	}
}

// TestManyRelations: an empty relation costs little.
func TestManyRelations(t *testing.T) {
	s := NewStore()
	s.Begin()
	for i := range uint32(1000) {
		insert(t, s, s.AddRelation(2), []uint64{a, uint64(i)}, 1)
	}
	s.Commit()
	if n := s.Bytes(); n > 1000*1024 {
		t.Fatalf("%d bytes for 1000 relations of one fact", n)
	}
	if s.Arity(7) != 2 {
		t.Fatalf("arity %d", s.Arity(7))
	}
}
