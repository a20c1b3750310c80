package window

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// state is all that a capture has to bring back.
type state struct {
	arity []int
	facts [][]string // by relation: each contribution with its record and number
	next  []uint64   // by relation: the number of the next append
}

func stateOf(s *Store) (out state) {
	for rel := range uint32(s.Relations()) {
		r := s.rels[rel]
		var list []string
		for c := range s.Scan(rel) {
			rec, _ := r.find(c.Tuple, s.hash.sum(c.Tuple))
			list = append(list, fmt.Sprint(rec, c.Tuple, c.Time, c.Seq, c.Value, c.ID))
		}
		out.arity = append(out.arity, r.arity)
		out.next = append(out.next, s.Sequence(rel))
		out.facts = append(out.facts, list)
	}
	return out
}

func (want state) compare(t testing.TB, s *Store) {
	t.Helper()
	got := stateOf(s)
	if got := got.next[:len(want.next)]; !slices.Equal(got, want.next) {
		t.Fatalf("the next numbers are %d, want %d", got, want.next)
	}
	for rel := range want.facts {
		if !slices.Equal(got.facts[rel], want.facts[rel]) {
			t.Fatalf("relation %d:\n got %v\nwant %v", rel, got.facts[rel], want.facts[rel])
		}
	}
	if err := s.verify(); err != nil {
		t.Fatal(err)
	}
}

// restoreChain fills a tracking store from elements, the oldest first in the
// list.
func restoreChain(t testing.TB, arity []int, elements [][][]byte, next []uint64) *Store {
	t.Helper()
	s := NewStore()
	s.Track()
	for _, n := range arity {
		s.AddRelation(n)
	}
	r := s.Restore()
	for _, chunks := range slices.Backward(elements) {
		for _, chunk := range chunks {
			if err := r.Add(chunk); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Finish(next); err != nil {
		t.Fatal(err)
	}
	return s
}

// capture reads a whole element at once.
func capture(t testing.TB, s *Store, full bool, limit int) (chunks [][]byte) {
	t.Helper()
	c := s.Capture(full)
	for more := true; more; {
		var chunk []byte
		chunk, more = c.Next(nil, limit)
		if len(chunk) > 0 {
			chunks = append(chunks, chunk)
		}
	}
	if c.Left() != 0 {
		t.Fatalf("%d left at the end", c.Left())
	}
	c.Done(true)
	return chunks
}

// saver takes captures of a rig's store in slices while epochs run.
type saver struct {
	t        testing.TB
	rng      *rand.Rand
	chain    [][][]byte // elements saved
	c        *Capture
	want     state // at the running capture
	chunks   [][]byte
	full     bool
	restored int
}

// boundary is called between two epochs.
func (v *saver) boundary(s *Store) {
	v.t.Helper()
	switch {
	case v.c == nil && v.rng.IntN(4) == 0:
		v.full = len(v.chain) == 0 || len(v.chain) >= 20
		v.c, v.want, v.chunks = s.Capture(v.full), stateOf(s), nil
	case v.c == nil:
	case v.rng.IntN(16) == 0:
		v.c.Done(false)
		v.c = nil
	default:
		chunk, more := v.c.Next([]byte("before"), 1+v.rng.IntN(8))
		if chunk = chunk[len("before"):]; len(chunk) > 0 {
			v.chunks = append(v.chunks, chunk)
		}
		if !more {
			v.save()
		}
	}
}

// save ends the capture and compares what its chain restores.
func (v *saver) save() {
	v.t.Helper()
	if v.c.Left() != 0 {
		v.t.Fatalf("%d left at the end", v.c.Left())
	}
	v.c.Done(true)
	v.c = nil
	if v.full {
		v.chain = nil
	}
	v.chain = append(v.chain, v.chunks)
	v.want.compare(v.t, restoreChain(v.t, v.want.arity, v.chain, v.want.next))
	v.restored++
}

// run does random operations, with captures between the epochs.
func (v *saver) run(r *rig, steps int, keys uint64) {
	for range steps {
		r.step(v.rng.Uint64(), v.rng.Uint64(), v.rng.Uint64(), v.rng.Uint64(), keys)
		if len(r.s.dirty) == 0 && len(r.begin.arity) == len(r.m.arity) {
			v.boundary(r.s)
		}
	}
	r.end(true)
}

// TestCaptures runs random epochs, refused ones among them, with captures in
// slices between them, failed ones among those, and goes on from a restored
// store as from the original.
func TestCaptures(t *testing.T) {
	steps := 4000
	if testing.Short() {
		steps = 1500
	}
	total, longest := 0, 0
	for _, keys := range []uint64{1, 2, 5, 40} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("keys=%d/seed=%d", keys, seed), func(t *testing.T) {
				r := newRig(t, 2, 1, 3)
				r.s.Track()
				v := &saver{t: t, rng: rand.New(rand.NewPCG(seed, keys))}
				for range 4 {
					v.run(r, steps/4, keys)
					if v.c != nil {
						v.c.Done(false)
						v.c = nil
					}
					// An element at rest, from which a twin goes on.
					v.chain = append(v.chain, capture(t, r.s, len(v.chain) == 0, 3))
					want := stateOf(r.s)
					r.s = restoreChain(t, want.arity, v.chain, want.next)
					for rel := range r.m.looks {
						r.toggleValued(uint32(rel), r.m.looks[rel].valued)
					}
					want.compare(t, r.s)
					r.s.Begin()
					longest = max(longest, len(v.chain))
				}
				total += v.restored
			})
		}
	}
	t.Logf("%d captures restored, chains of up to %d elements", total, longest)
	if total < 100 || longest < 20 {
		t.Fatalf("too few: %d captures, chains of up to %d", total, longest)
	}
}

// TestCaptureBehind holds a full capture open while everything it has to read
// is deleted, pages go back and records are used again.
func TestCaptureBehind(t *testing.T) {
	const n = 60_000
	s := NewStore()
	s.Track()
	narrow, wide := s.AddRelation(2), s.AddRelation(200)
	s.Begin()
	tuple := make([]uint64, 200)
	for i := range uint64(n) {
		insert(t, s, narrow, []uint64{i, i * i}, int64(i))
		if i%100 == 0 {
			tuple[i%200], tuple[199] = i, i
			insert(t, s, wide, tuple, 5)
		}
	}
	for i := range 500 {
		if err := s.Insert(narrow, []uint64{7, 49}, int64(1000-i), uint64(i), fmt.Sprint("id", i)); err != nil {
			t.Fatal(err)
		}
	}
	s.Commit()
	want := stateOf(s)
	c := s.Capture(true)
	if c.Left() < n {
		t.Fatalf("%d left of %d", c.Left(), n)
	}
	first, more := c.Next(nil, 1000)
	chunks := [][]byte{first}
	for _, do := range []func(){
		func() { // all gone: the slab starts again
			for i := range uint64(n) {
				for s.Count(narrow, []uint64{i, i * i}) > 0 {
					remove(t, s, narrow, i, i*i)
				}
			}
		},
		func() {
			for i := range uint64(n / 3) {
				insert(t, s, narrow, []uint64{i, 1}, 0)
			}
			extra := s.AddRelation(1)
			insert(t, s, extra, []uint64{9}, 1)
		},
	} {
		s.Begin()
		do()
		s.Commit()
		if err := s.verify(); err != nil {
			t.Fatal(err)
		}
	}
	for more {
		var chunk []byte
		chunk, more = c.Next(nil, 5000)
		chunks = append(chunks, chunk)
	}
	c.Done(true)
	want.compare(t, restoreChain(t, want.arity, [][][]byte{chunks}, want.next))

	next := capture(t, s, false, 1000)
	now := stateOf(s)
	twin := restoreChain(t, now.arity, [][][]byte{chunks, next}, now.next)
	now.compare(t, twin)
	if size := twin.Bytes(); size > s.Bytes()+s.Bytes()/4 {
		t.Fatalf("%d bytes restored, %d before", size, s.Bytes())
	}
}

// TestCaptureSize pins what a usual fact takes in a chunk.
func TestCaptureSize(t *testing.T) {
	s := NewStore()
	s.Track()
	rel := s.AddRelation(2)
	s.Begin()
	edges := pairs(100_000)
	for i, e := range edges {
		insert(t, s, rel, e[:], int64(i)*1_000_000)
	}
	s.Commit()
	size := 0
	for _, chunk := range capture(t, s, true, 4096) {
		size += len(chunk)
	}
	perFact := float64(size) / float64(s.Len(rel))
	t.Logf("%.1f bytes a fact", perFact)
	if perFact > 12 {
		t.Fatalf("%.1f bytes a fact", perFact)
	}
	if left := s.Capture(false).Left(); left != 0 {
		t.Fatalf("%d changed right after a capture", left)
	}
}

// TestCaptureExtremes brings back the largest and smallest of everything.
func TestCaptureExtremes(t *testing.T) {
	s := NewStore()
	s.Track()
	rel := s.AddRelation(2)
	s.Begin()
	for i, at := range []int64{math.MinInt64, math.MaxInt64, 0, -1} {
		for j, w := range []uint64{math.MaxUint64, 0, 1 << 63, 1} {
			insert(t, s, rel, []uint64{w, uint64(i)}, at)
			if err := s.Insert(rel, []uint64{uint64(i), w}, at, w, fmt.Sprint("ID\x00", i, j)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Commit()
	want := stateOf(s)
	want.compare(t, restoreChain(t, want.arity, [][][]byte{capture(t, s, true, 3)}, want.next))
}

// TestDoneEarly: a capture that is ended before its end was not saved.
func TestDoneEarly(t *testing.T) {
	s, rel := newStore(2)
	s.Track()
	insert(t, s, rel, []uint64{a, b}, 1)
	insert(t, s, rel, []uint64{a, c}, 1)
	s.Commit()
	first := s.Capture(true)
	first.Next(nil, 1)
	first.Done(true)
	first.Done(false)
	second := s.Capture(false)
	if second.Left() != 2 {
		t.Fatalf("%d facts left, want 2", second.Left())
	}
	s.Begin()
	insert(t, s, rel, []uint64{a, b}, 2)
	s.Commit()
	for more := true; more; {
		_, more = second.Next(nil, 1)
	}
	second.Done(true)
	if left := s.Capture(false).Left(); left != 1 {
		t.Fatalf("%d facts left, want the one that has changed since", left)
	}
}

// TestGone: an incremental capture tells that a record holds no fact any more,
// one that is used again holds the new one, and a full capture is silent.
func TestGone(t *testing.T) {
	s, rel := newStore(1)
	s.Track()
	insert(t, s, rel, []uint64{5}, 0)
	insert(t, s, rel, []uint64{6}, 0)
	s.Commit()
	s.Begin()
	remove(t, s, rel, 5)
	s.Commit()
	c := s.Capture(true)
	s.Begin()
	insert(t, s, rel, []uint64{7}, 0)
	s.Commit()
	full, _ := c.Next(nil, 9)
	c.Done(true)
	if want := []byte{1, flagRelation | flagRecord | flagOne | flagSeq, 0, 2, 12, 2}; !slices.Equal(full, want) {
		t.Fatalf("full: %v, want %v", full, want)
	}
	s.Begin()
	remove(t, s, rel, 6)
	s.Commit()
	want := []byte{1, flagRelation | flagOne | flagSeq, 0, 14, 4, 0}
	if got := capture(t, s, false, 9); len(got) != 1 || !slices.Equal(got[0], want) {
		t.Fatalf("incremental: %v, want %v", got, want)
	}
}

// TestRestoreHoles: a page without facts comes back as one without memory, and
// is used again before the directory grows.
func TestRestoreHoles(t *testing.T) {
	s, rel := newStore(1)
	s.Track()
	page := uint64(1) << s.rels[rel].facts.shift
	for i := range 3 * page {
		insert(t, s, rel, []uint64{i}, 0)
	}
	s.Commit()
	s.Begin()
	for i := page; i < 2*page; i++ {
		remove(t, s, rel, i)
	}
	s.Commit()
	want := stateOf(s)
	twin := restoreChain(t, want.arity, [][][]byte{capture(t, s, true, 1000)}, want.next)
	want.compare(t, twin)
	facts := &twin.rels[rel].facts
	if len(facts.pages) != 3 || facts.pages[1] != nil {
		t.Fatalf("%d pages, %d words in the middle one", len(facts.pages), len(facts.pages[1]))
	}
	twin.Begin()
	for i := range page {
		insert(t, twin, rel, []uint64{10*page + i}, 0)
	}
	twin.Commit()
	if err := twin.verify(); err != nil || len(facts.pages) != 3 {
		t.Fatalf("%d pages, error %v", len(facts.pages), err)
	}
}

// sample is a store with everything that a chunk can say, and its one chunk.
func sample(t testing.TB) (state, []byte) {
	s := NewStore()
	s.Track()
	edge, node := s.AddRelation(2), s.AddRelation(1)
	s.Begin()
	for i := range uint64(6) {
		insert(t, s, edge, []uint64{i + 1, 9 - i}, int64(i)*3)
	}
	for i := range 3 {
		if err := s.Insert(edge, []uint64{1, 9}, int64(i), uint64(i), fmt.Sprint("e", i)); err != nil {
			t.Fatal(err)
		}
	}
	insert(t, s, node, []uint64{400}, 7)
	s.Commit()
	s.Begin()
	remove(t, s, edge, 3, 7)
	s.Commit()
	chunks := capture(t, s, false, 100)
	if len(chunks) != 1 {
		t.Fatalf("%d chunks", len(chunks))
	}
	return stateOf(s), chunks[0]
}

// TestDamage: whatever becomes of a chunk, it is an error or something that a
// store can hold.
func TestDamage(t *testing.T) {
	want, chunk := sample(t)
	want.compare(t, restoreChain(t, want.arity, [][][]byte{{chunk}}, want.next))
	refused := 0
	try := func(damaged []byte) {
		t.Helper()
		if s, err := restoreDamaged(want.arity, want.next, damaged); err == nil {
			if err := s.verify(); err != nil {
				t.Fatalf("%x: %v", damaged, err)
			}
			if err := empty(s); err != nil {
				t.Fatalf("%x: %v", damaged, err)
			}
		} else if refused++; !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("%x: error %v", damaged, err)
		}
	}
	for i := range chunk {
		try(chunk[:i])
		for bit := range 8 {
			flipped := slices.Clone(chunk)
			flipped[i] ^= 1 << bit
			try(flipped)
		}
	}
	if refused < len(chunk) {
		t.Fatalf("only %d refused", refused)
	}
}

// empty has all contributions of a store expire under windows of every kind, once
// in vain.
func empty(s *Store) error {
	for rel := range uint32(s.Relations()) {
		s.SetWindows(rel, math.MinInt64, []query.Window{{Range: 3}, {Last: 2}}, 0)
	}
	for i := range 3 {
		s.Begin()
		for rel := range uint32(s.Relations()) {
			if i == 1 {
				s.SetWindows(rel, 0, nil, 0)
			}
		}
		s.Advance(math.MaxInt64)
		if i == 0 {
			s.Rollback()
		} else {
			s.Commit()
		}
		if err := s.verify(); err != nil {
			return err
		}
	}
	if n := s.Contributions(); n != 0 {
		return fmt.Errorf("%d contributions are left", n)
	}
	return nil
}

// restoreDamaged restores one chunk after another as one element each, with
// little room for pages that hold nothing.
func restoreDamaged(arity []int, next []uint64, chunks ...[]byte) (*Store, error) {
	s := NewStore()
	s.Track()
	for _, n := range arity {
		s.AddRelation(n)
	}
	r := s.Restore()
	r.room = 16
	for _, chunk := range chunks {
		if err := r.Add(chunk); err != nil {
			return s, err
		}
	}
	return s, r.Finish(next)
}

// TestRestoreRefuses lists chunks that say what cannot be.
func TestRestoreRefuses(t *testing.T) {
	const rel, one, many = flagRelation, flagOne, flagMany
	for _, tc := range []struct {
		name   string
		chunks [][]byte
		ok     bool
	}{
		{"two facts", [][]byte{{1, rel | one, 0, 2, one, 2}}, true},
		{"empty", [][]byte{{}}, false},
		{"version", [][]byte{{2, rel | one, 0, 2}}, false},
		{"no relation", [][]byte{{1, one, 2}}, false},
		{"relation that is not there", [][]byte{{1, rel | one, 1, 2}}, false},
		{"unknown flag", [][]byte{{1, 64 | rel | one, 0, 2}}, false},
		{"one and many", [][]byte{{1, rel | one | many, 0, 2, 1, 0}}, false},
		{"gone with a time", [][]byte{{1, rel | flagTime, 0, 2}}, false},
		{"record before the first", [][]byte{{1, rel | one | flagRecord, 0, 1, 2}}, false},
		{"record too far", [][]byte{{1, rel | one | flagRecord, 0, 0xfe, 0xff, 0xff, 0xff, 0x1f, 2}}, false},
		{"a tuple twice", [][]byte{{1, rel | one, 0, 2, one, 0}}, false},
		{"a number in two facts", [][]byte{{1, rel | one, 0, 2, one | flagSeq, 2, 1, one | flagSeq, 2, 1}}, true},
		{"a record twice", [][]byte{{1, rel | one, 0, 2}, {1, rel | one, 0, 4}}, true},
		{"a record gone and back", [][]byte{{1, rel, 0}, {1, rel | one, 0, 4}}, true},
		{"sequence number too large", [][]byte{{1, rel | one | flagSeq, 0, 2, 200, 1}}, false},
		{"sequence number below 0", [][]byte{{1, rel | one | flagSeq, 0, 2, 1}}, false},
		{"no contribution", [][]byte{{1, rel | many, 0, 2, 0}}, false},
		{"too many contributions", [][]byte{{1, rel | many, 0, 2, 9, 0}}, false},
		{"contributions in order", [][]byte{{1, rel | many, 0, 2, 2, 0, 0}}, true},
		{"contributions out of order", [][]byte{{1, rel | many, 0, 2, 2, 0, copyTime, 1}}, false},
		{"one contribution twice", [][]byte{{1, rel | many, 0, 2, 2, 0, copySeq, 1}}, false},
		{"unknown flag of a contribution", [][]byte{{1, rel | many, 0, 2, 1, 16}}, false},
		{"empty ID", [][]byte{{1, rel | many, 0, 2, 1, copyID, 0}}, false},
		{"cut ID", [][]byte{{1, rel | many, 0, 2, 1, copyID, 2, 'x'}}, false},
		{"an ID twice", [][]byte{{1, rel | many, 0, 2, 1, copyID, 1, 'x', many, 2, 1, copyID, 1, 'x'}}, false},
		{"two IDs", [][]byte{{1, rel | many, 0, 2, 1, copyID, 1, 'x', many, 2, 1, copyID, 1, 'y'}}, true},
		{"two IDs of one contribution", [][]byte{{1, rel | many, 0, 2, 1, copyID, 1, 'x', many, 2, 1, copyID | copySeq, 1, 1, 'y'}}, false},
		{"number without end", [][]byte{{1, rel | one, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, false},
	} {
		s, err := restoreDamaged([]int{1}, []uint64{50}, tc.chunks...)
		switch {
		case tc.ok && err != nil, !tc.ok && !errors.Is(err, errs.ErrCorrupt):
			t.Errorf("%s: error %v", tc.name, err)
		case tc.ok && s.verify() != nil:
			t.Errorf("%s: %v", tc.name, s.verify())
		case tc.ok:
			if err := empty(s); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
	}
}

// FuzzRestore reads any bytes as a chain of two chunks. What it takes comes
// back the same from a capture of its own.
func FuzzRestore(f *testing.F) {
	want, chunk := sample(f)
	f.Add(chunk, chunk)
	f.Add([]byte{1, flagRelation, 0}, chunk)
	f.Fuzz(func(t *testing.T, newer, older []byte) {
		s, err := restoreDamaged(want.arity, []uint64{1 << 40, 1 << 40}, newer, older)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if err := s.verify(); err != nil {
			t.Fatal(err)
		}
		if left := s.Capture(false).Left(); left != 0 {
			t.Fatalf("%d facts count as changed", left)
		}
		s.capture.Done(true)
		got := stateOf(s)
		got.compare(t, restoreChain(t, want.arity, [][][]byte{capture(t, s, true, 2)}, got.next))
		if err := empty(s); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWalk: what lives through a walk is visited, whatever runs between its
// slices.
func TestWalk(t *testing.T) {
	s := NewStore()
	rels := []uint32{s.AddRelation(2), s.AddRelation(1)}
	s.Begin()
	for i := range uint64(5000) {
		insert(t, s, rels[0], []uint64{10 + i, 20_000 + i}, 0)
		if err := s.Insert(rels[1], []uint64{i % 100}, 0, 40_000+i, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.Commit()
	seen := map[uint64]bool{}
	slices := 0
	for at, done := (Place{}), false; !done; slices++ {
		at, done = s.Walk(at, 64, func(id uint64) { seen[id] = true })
		s.Begin()
		extra := s.AddRelation(1)
		insert(t, s, extra, []uint64{1}, 0)
		if i := uint64(slices); i < 2000 {
			remove(t, s, rels[0], 10+2*i, 20_000+2*i)
			insert(t, s, rels[0], []uint64{100_000 + i, 1}, 0)
		}
		if slices%2 == 0 {
			s.Rollback()
			s.RemoveRelations(extra)
		} else {
			s.Commit()
		}
		if slices > 5000 {
			t.Fatal("the walk does not end")
		}
	}
	for rel := range uint32(2) {
		for c := range s.Scan(rel) {
			if c.Tuple[0] < 100_000 && !seen[c.Tuple[0]] || c.Value != 0 && !seen[c.Value] {
				t.Fatalf("not seen: %v, value %d", c.Tuple, c.Value)
			}
		}
	}
	if slices < 100 {
		t.Fatalf("%d slices: they are too long", slices)
	}
}
