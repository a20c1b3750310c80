package dict

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/term"
)

// nth is the n-th of a stream of terms: short ones, long ones, small integers.
func nth(n uint64) term.Term {
	switch n % 4 {
	case 0:
		return term.Int(int64(n % intsMax))
	case 1:
		return term.IRI(fmt.Sprint("http://example.org/a/long/name/", n))
	}
	return term.String(fmt.Sprint("s", n))
}

// fill interns the terms of a stream from one number to another.
func fill(t *testing.T, d *Dict, from, to uint64) {
	t.Helper()
	for n := from; n <= to; n++ {
		if d.Intern(nth(n)) == 0 {
			t.Fatalf("term %d is refused: %v", n, d.Err())
		}
	}
}

// keep sweeps all terms but those of some ids, and returns how many have gone.
func keep(t *testing.T, d *Dict, ids ...uint64) int {
	t.Helper()
	d.StartMark()
	for _, id := range ids {
		d.Mark(id)
	}
	dead := d.FinishMark()
	if got := d.Sweep(); got != dead {
		t.Fatalf("%d swept of %d dead", got, dead)
	}
	verify(t, d)
	return dead
}

// TestSweep: what is not marked goes, ids are not used again, and a term that
// comes again is a new one.
func TestSweep(t *testing.T) {
	d := New()
	intern(t, d, kinds()...)
	n := d.Len()
	d.StartMark()
	for id := uint64(0); id <= n+5; id += 2 {
		d.Mark(id)
	}
	if got := d.FinishMark(); got != 13 {
		t.Fatalf("%d dead", got)
	}
	if got := d.Sweep(); got != 13 || d.Len() != n || d.Live() != n-13 {
		t.Fatalf("%d swept, %d ids, %d terms", got, d.Len(), d.Live())
	}
	verify(t, d)
	for i, x := range kinds() {
		id := uint64(i + 1)
		got, ok := d.Find(x, n)
		a, b := d.Hash(id)
		if id%2 == 0 {
			if got != id || !ok || d.Term(id) != x || !d.Has(id) {
				t.Errorf("%v is %d, %v; id %d is %v", x, got, ok, id, d.Term(id))
			}
		} else if ok || !d.Term(id).IsZero() || d.Has(id) || a != 0 || b != 0 || len(d.AppendBinary(nil, id)) > 0 {
			t.Errorf("%v is %d; id %d is %v", x, got, id, d.Term(id))
		}
	}
	if id := d.Intern(kinds()[0]); id != n+1 {
		t.Errorf("the first term has id %d, want %d", id, n+1)
	}
	verify(t, d)
}

// TestMarkPhases: which ids are taken for needed, and when.
func TestMarkPhases(t *testing.T) {
	a, b, c := term.String("a"), term.Int(5), term.IRI("http://example.org/some/long/name")
	for _, tc := range []struct {
		name string
		do   func(d *Dict)
		dead string // of the three, and further ids
	}{
		{"nothing", func(d *Dict) {}, "[]"},
		{"sweep alone", func(d *Dict) { d.Sweep() }, "[]"},
		{"finish and sweep alone", func(d *Dict) { d.FinishMark(); d.Sweep() }, "[]"},
		{"sweep without finish", func(d *Dict) { d.StartMark(); d.Sweep() }, "[]"},
		{"all dead", func(d *Dict) { d.StartMark(); d.FinishMark(); d.Sweep() }, "[1 2 3]"},
		{"twice", func(d *Dict) { d.StartMark(); d.FinishMark(); d.Sweep(); d.FinishMark(); d.Sweep() }, "[1 2 3]"},
		{"marked before", func(d *Dict) { d.Mark(1); d.StartMark(); d.FinishMark(); d.Sweep() }, "[1 2 3]"},
		{"marked", func(d *Dict) { d.StartMark(); d.Mark(1); d.Mark(3); d.FinishMark(); d.Sweep() }, "[2]"},
		{"marked late", func(d *Dict) { d.StartMark(); d.FinishMark(); d.Mark(2); d.Sweep() }, "[1 3]"},
		{"interned", func(d *Dict) { d.StartMark(); d.Intern(a); d.Intern(b); d.FinishMark(); d.Sweep() }, "[3]"},
		{"interned late", func(d *Dict) { d.StartMark(); d.FinishMark(); d.Intern(b); d.Intern(c); d.Sweep() }, "[1]"},
		{"interned at once", func(d *Dict) {
			d.StartMark()
			d.FinishMark()
			d.InternAll(make([]uint64, 3), []term.Term{a, b, c})
			d.Sweep()
		}, "[]"},
		{"found", func(d *Dict) { d.StartMark(); d.Find(a, 3); d.FinishMark(); d.Sweep() }, "[1 2 3]"},
		{"new ones", func(d *Dict) { d.StartMark(); fillIDs(d, 2); d.FinishMark(); fillIDs(d, 2); d.Sweep() }, "[1 2 3]"},
		{"renewed", func(d *Dict) { d.StartMark(); d.InternNew(a); d.FinishMark(); d.InternNew(b); d.Sweep() }, "[1 2 3]"},
		{"abandoned", func(d *Dict) { d.StartMark(); d.FinishMark(); d.AbandonMark(); d.Sweep() }, "[]"},
		{"started again", func(d *Dict) {
			d.StartMark()
			d.Mark(1)
			d.StartMark()
			d.Mark(2)
			d.FinishMark()
			d.Sweep()
		}, "[1 3]"},
		{"taken back", func(d *Dict) {
			d.StartMark()
			d.FinishMark()
			d.Truncate(2)
			fillIDs(d, 1)
			d.Sweep()
		}, "[1 2]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := New()
			intern(t, d, a, b, c)
			tc.do(d)
			dead := []uint64{}
			for id := uint64(1); id <= d.Len(); id++ {
				if !d.Has(id) {
					dead = append(dead, id)
				}
			}
			if fmt.Sprint(dead) != tc.dead {
				t.Errorf("dead: %v, want %v", dead, tc.dead)
			}
			verify(t, d)
		})
	}
}

// fillIDs interns some terms that were never there.
func fillIDs(d *Dict, n int) {
	for range n {
		d.Intern(term.String(fmt.Sprint("new ", d.Len())))
	}
}

// TestGivenBack: memory goes with the terms, and with all of them all of it.
func TestGivenBack(t *testing.T) {
	terms := uint64(200_000)
	if testing.Short() {
		terms /= 4
	}
	for _, tc := range []struct {
		name  string
		every uint64 // which ids are kept; 0: none
		bytes int64  // upper bound for each of them
	}{
		{"none", 0, 0},
		{"one of 20000", 20000, 1000},
		{"one of 1000", 1000, 600},
		{"one of 9", 9, 200},
		{"one of 3", 3, 300},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := New()
			fill(t, d, 1, terms)
			full := d.Bytes()
			var ids []uint64
			for id := tc.every; id > 0 && id <= d.Len(); id += tc.every {
				ids = append(ids, id)
			}
			if got := keep(t, d, ids...); got != int(terms)-len(ids) {
				t.Fatalf("%d gone", got)
			}
			// An integer costs at most its page, all of them at most 4 MiB.
			got := d.Bytes() - d.ints.bytes.Load()
			t.Logf("%d terms: %d bytes, before %d", len(ids), got, full)
			if limit := int64(len(ids))*tc.bytes + 300<<10; got > limit {
				t.Errorf("%d terms hold %d bytes, want at most %d", len(ids), got, limit)
			}
			for _, id := range ids {
				if d.Term(id) != nth(id) {
					t.Fatalf("id %d is %v", id, d.Term(id))
				}
			}
			fill(t, d, terms+1, terms+3000)
			verify(t, d)
			keep(t, d)
			if got := d.Bytes(); d.Live() != 0 || got > 4*slotsMin*8 {
				t.Errorf("without terms there are %d bytes", got)
			}
		})
	}
}

// TestSlabsMove: the texts of few survivors are brought together, and the slabs
// they were in are given back.
func TestSlabsMove(t *testing.T) {
	d := New()
	long := func(n int) term.Term { return term.String(fmt.Sprint(n, strings.Repeat("x", 1000))) }
	const terms = 20_000
	for n := range terms {
		d.Intern(long(n))
	}
	for _, every := range []uint64{10, 100, 2000} {
		var ids []uint64
		for id := every; id <= terms; id += every {
			ids = append(ids, id)
		}
		keep(t, d, ids...)
		text := int64(len(ids)) * 1007
		if got := d.slabs.bytes.Load(); got > 3*text+2*slabMax {
			t.Errorf("%d terms with %d bytes of text are in slabs of %d bytes", len(ids), text, got)
		}
		for _, id := range ids {
			if d.Term(id) != long(int(id)-1) {
				t.Fatalf("id %d is %v", id, d.Term(id))
			}
		}
	}
}

// TestStream sends many new terms through a small live set: memory is bounded by
// that set, and the work for each term is constant.
func TestStream(t *testing.T) {
	total, window := uint64(2_000_000), uint64(10_000)
	if testing.Short() {
		total = 300_000
	}
	d := New()
	swept, most, last, held := 0, int64(0), uint64(0), uint64(0)
	visited := uint64(0)
	for n := uint64(1); n <= total; n++ {
		d.Intern(nth(n))
		most = max(most, d.Bytes())
		if d.Len()-last >= max(1<<16, held) {
			last = d.Len()
			visited += uint64(len(d.state.Load().slots))
			d.StartMark()
			for x := n - window + 1; x <= n; x++ {
				id, ok := d.Find(nth(x), d.Len())
				if !ok {
					t.Fatalf("term %d of %d is lost", x, n)
				}
				d.Mark(id)
			}
			d.FinishMark()
			swept += d.Sweep()
			held = d.Live()
		}
	}
	verify(t, d)
	t.Logf("%d ids, %d terms, %d swept, at most %d bytes, %d slots visited", d.Len(), d.Live(), swept, most, visited)
	if live := d.Live(); live > 1<<16+2*window || d.Len() < total*3/4 {
		t.Errorf("%d terms of %d ids are held", live, d.Len())
	}
	// 76,000 terms between two sweeps: 32 bytes of entry, 21 to 43 of table, text.
	if limit := int64(12 << 20); most > limit {
		t.Errorf("the dictionary has held %d bytes, want at most %d", most, limit)
	}
	if visited > 4*total {
		t.Errorf("sweeps have visited %d slots for %d terms", visited, total)
	}
}

// TestHeap: the memory that a sweep gives back is not held elsewhere.
func TestHeap(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before, d := heap(), New()
	fill(t, d, 1, 500_000)
	full := heap() - before
	keep(t, d, 7, 70_000, 400_000)
	if left := heap() - before; left > full/20+1<<20 {
		t.Errorf("%d bytes of %d are left", left, full)
	}
	runtime.KeepAlive(d)
}

// TestSparseSurvivors lets one term of each thousand live on for long: the
// directory stays in proportion to them.
func TestSparseSurvivors(t *testing.T) {
	d := New()
	rng := rand.New(rand.NewPCG(3, 3))
	var ids []uint64
	for round := range uint64(40) {
		d.SetLen(round * 10_000_000)
		for range 5 {
			d.SetLen(d.Len() + 1_000_000)
			fillIDs(d, 3000)
			ids = append(ids, d.Len()-uint64(rng.IntN(3000)))
		}
		keep(t, d, ids...)
	}
	if per := d.Bytes() / int64(len(ids)); per > 1200 {
		t.Errorf("%d bytes for each of %d terms", per, len(ids))
	}
	if got := d.Live(); got != uint64(len(ids)) {
		t.Errorf("%d terms, want %d", got, len(ids))
	}
}
