package dict

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// intern interns terms and checks that each is found, also read back.
func intern(t *testing.T, d *Dict, terms ...term.Term) (ids []uint64) {
	t.Helper()
	for _, x := range terms {
		id := d.Intern(x)
		if got := d.Term(id); got != x {
			t.Fatalf("id %d is %v, want %v", id, got, x)
		}
		if got, ok := d.Find(x, d.Len()); got != id || !ok {
			t.Fatalf("%v found as %d, %v; want %d", x, got, ok, id)
		}
		if got, ok := d.Find(x, id-1); ok {
			t.Fatalf("%v found as %d below its id %d", x, got, id)
		}
		if got := d.AppendBinary([]byte("x"), id); !bytes.Equal(got[1:], term.AppendBinary(nil, x)) {
			t.Fatalf("the stored form of id %d is %x", id, got[1:])
		}
		ids = append(ids, id)
	}
	return ids
}

// check reads the whole dictionary and counts its table again.
func check(t *testing.T, d *Dict, want []term.Term) {
	t.Helper()
	if d.Len() != uint64(len(want)) {
		t.Fatalf("%d terms, want %d", d.Len(), len(want))
	}
	for i, x := range want {
		id, ok := d.Find(x, d.Len())
		if id != uint64(i+1) || !ok || d.Term(id) != x {
			t.Fatalf("%v is %d, %v, want %d", x, id, ok, i+1)
		}
		form := term.AppendBinary(nil, x)
		a, b := d.Hash(id)
		if a != laneA(append([]byte{tagA}, form...)) || b != laneB(form) {
			t.Fatalf("wrong hashes of %v", x)
		}
	}
	used := 0
	for _, slot := range d.state.Load().slots {
		if slot != 0 {
			used++
		}
	}
	if used != d.used || d.used*4 > len(d.state.Load().slots)*3+3 {
		t.Fatalf("%d slots of %d in use, counted %d", used, len(d.state.Load().slots), d.used)
	}
}

// kinds has a term of each kind, and pairs that differ in the kind only.
func kinds() []term.Term {
	return []term.Term{
		term.IRI("a"), term.String("a"), term.LangString("a", "en"), term.LangString("a", "fr"),
		term.Typed("a", "http://example.org/t"), term.Bytes([]byte("a")), term.Blank("a"),
		term.Int(1), term.Float(1), term.Bool(true), term.Bool(false), term.Time(time.Unix(1, 1)),
		term.String("1"), term.Float(math.NaN()), term.Float(0), term.Float(math.Copysign(0, -1)),
		term.Int(0), term.Int(-1), term.Int(intsMax - 1), term.Int(intsMax), term.Int(math.MaxInt64), term.Int(math.MinInt64),
		term.IRI(""), term.String(""), term.Bytes(nil),
	}
}

func TestKinds(t *testing.T) {
	d := New()
	for i, id := range intern(t, d, kinds()...) {
		if id != uint64(i+1) {
			t.Fatalf("term %d has id %d", i, id)
		}
	}
	for i, id := range intern(t, d, kinds()...) {
		if id != uint64(i+1) {
			t.Fatalf("term %d has id %d the second time", i, id)
		}
	}
	check(t, d, kinds())
}

// TestLengths crosses every border between forms: short and long, shared and
// own slabs.
func TestLengths(t *testing.T) {
	d := New()
	var want []term.Term
	for _, base := range []int{0, 12, 250, slabMin, ownSlab, slabMax} {
		for n := max(base-4, 0); n < base+5; n++ {
			want = append(want, term.String(strings.Repeat("x", n)), term.IRI(strings.Repeat("y", n)))
		}
	}
	intern(t, d, want...)
	check(t, d, want)
}

// TestTERM01: the empty string, the empty tagged string and the empty typed
// literal are three terms, and the absent term is none.
func TestTERM01(t *testing.T) {
	d := New()
	ids := intern(t, d, term.String(""), term.LangString("", "en"), term.Typed("", term.XSD+"date"))
	if ids[0] != 1 || ids[1] != 2 || ids[2] != 3 {
		t.Fatalf("ids %v", ids)
	}
	if id := d.Intern(term.Term{}); id != 0 || d.Len() != 3 {
		t.Fatalf("the absent term has id %d of %d", id, d.Len())
	}
	if id, ok := d.Find(term.Term{}, 3); ok {
		t.Fatalf("the absent term is found as %d", id)
	}
	if err := Check(term.Term{}); !errors.Is(err, errs.ErrValue) {
		t.Fatalf("the absent term passes with %v", err)
	}
}

// TestTERM02: large literals are told apart and read back; above the limit
// nothing is stored.
func TestTERM02(t *testing.T) {
	d := New()
	mib := strings.Repeat("m", 1<<20)
	want := []term.Term{
		term.String(mib[:65535]), term.String(mib[:65536]), term.String(mib[:65537]), term.String(mib),
		term.String(mib[1:] + "n"), term.String(mib[1:] + "o"), term.String(strings.Repeat("l", 16<<20)),
		term.LangString(mib, "en"), term.Typed(mib, "http://example.org/t"),
	}
	intern(t, d, want...)
	check(t, d, want)

	before := d.Bytes()
	limit := strings.Repeat("z", TermBytesMax+1)
	over := []term.Term{term.String(limit), term.Typed(limit[2:], "dt"), term.LangString("a", limit)}
	for _, x := range over {
		if err := Check(x); !errors.Is(err, errs.ErrValue) {
			t.Fatalf("%s of %d bytes: error %v", x.Kind(), x.Size(), err)
		}
		if id := d.Intern(x); id != 0 || d.Len() != uint64(len(want)) || d.Bytes() != before {
			t.Fatalf("%s of %d bytes has id %d; %d terms, %d bytes", x.Kind(), x.Size(), id, d.Len(), d.Bytes())
		}
	}
	if err := Check(term.String(limit[1:])); err != nil {
		t.Fatalf("a term of the greatest size: %v", err)
	}
}

// TestTERM03: language tags are one in any letter case, and part of the term.
func TestTERM03(t *testing.T) {
	d := New()
	ids := intern(t, d, term.LangString("chat", "en"), term.LangString("chat", "EN"), term.LangString("chat", "fr"), term.String("chat"))
	if fmt.Sprint(ids) != "[1 1 2 3]" {
		t.Fatalf("ids %v", ids)
	}
}

// TestTERM06: a blank node is the term of its label, in every load.
func TestTERM06(t *testing.T) {
	d := New()
	ids := intern(t, d, term.Blank("b0"), term.Blank("b1"), term.Blank("b0"), term.IRI("b0"))
	if fmt.Sprint(ids) != "[1 2 1 3]" {
		t.Fatalf("ids %v", ids)
	}
}

// TestTERM07: ids are distinct from the first one on, and the same again when
// the same terms come again in a fresh dictionary.
func TestTERM07(t *testing.T) {
	terms := []term.Term{term.String("s"), term.IRI(term.RDFType), term.IRI("http://www.w3.org/2000/01/rdf-schema#label"), term.String("x")}
	for range 2 {
		if ids := intern(t, New(), terms...); fmt.Sprint(ids) != "[1 2 3 4]" {
			t.Fatalf("ids %v", ids)
		}
	}
}

// TestTERM09: with one hash for all terms nothing changes but the time.
func TestTERM09(t *testing.T) {
	var want []term.Term
	for i := range 1000 {
		want = append(want, term.String(fmt.Sprint("t", i)), term.IRI(fmt.Sprint("http://example.org/", i)))
	}
	d, normal := NewColliding(), New()
	a, b := intern(t, d, want...), intern(t, normal, want...)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Fatal("other ids than with the usual hash")
	}
	check(t, d, want)
	d.Truncate(1500)
	check(t, d, want[:1500])
}

// TestHashNeverZero: a slot with an id of which the lower bits are 0 is not taken
// for an empty one.
func TestHashNeverZero(t *testing.T) {
	d := New()
	if a, b := d.fold(0), d.fold(5<<32); a != 1 || b != 5 {
		t.Fatalf("hashes %d, %d", a, b)
	}
	d.SetLen(1<<32 - 2)
	intern(t, d, term.String("a"), term.String("b"), term.String("c"))
	verify(t, d)
}

// TestFull checks the answer of a dictionary without ids to give.
func TestFull(t *testing.T) {
	d := New()
	intern(t, d, term.String("a"))
	d.n.Store(TermsMax)
	if id := d.Intern(term.String("b")); id != 0 {
		t.Fatalf("id %d", id)
	}
	if id := d.Intern(term.String("a")); id != 1 {
		t.Fatalf("id %d", id)
	}
}

// TestInternAllRefuses stops at the first term that is refused.
func TestInternAllRefuses(t *testing.T) {
	big := term.String(strings.Repeat("x", TermBytesMax+1))
	for _, tc := range []struct {
		name  string
		bad   term.Term
		terms uint64 // ids already handed out
		want  int
	}{
		{"absent", term.Term{}, 0, 20},
		{"too large", big, 0, 20},
		{"full, string", term.String("s"), TermsMax - 19, 19},
		{"full, int", term.Int(7), TermsMax - 20, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := New()
			var terms []term.Term
			for i := range 20 {
				terms = append(terms, term.String(fmt.Sprint(i)))
			}
			d.SetLen(tc.terms)
			d.gone.Store(0)
			ids := make([]uint64, 21)
			if n := d.InternAll(ids, append(terms, tc.bad)); n != tc.want || d.Len() != tc.terms+uint64(n) {
				t.Fatalf("%d interned, %d ids", n, d.Len())
			}
		})
	}
}

// random draws terms that repeat, of all sizes, and integers around the border
// of the array.
func random(rng *rand.Rand) term.Term {
	n := rng.IntN(3000)
	switch rng.IntN(6) {
	case 0:
		return term.Int(int64(n) - 20)
	case 1:
		return term.Int(intsMax - 1500 + int64(n))
	case 2:
		return term.IRI(fmt.Sprint("http://example.org/resource/", n))
	case 3:
		if rng.IntN(100) == 0 {
			return term.String(strings.Repeat("long", n*40))
		}
		return term.Typed(fmt.Sprint(n), "http://example.org/type")
	default:
		return term.String(fmt.Sprint("n", n))
	}
}

// TestModel interns and takes back at random, against a list.
func TestModel(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := New()
		if seed == 5 {
			d = NewColliding()
		}
		var terms []term.Term
		ids := map[term.Term]uint64{}
		for batch := range 60 {
			mark := len(terms)
			var all []term.Term
			var want []uint64
			for range rng.IntN(400) {
				x := random(rng)
				if ids[x] == 0 {
					terms = append(terms, x)
					ids[x] = uint64(len(terms))
				}
				all, want = append(all, x), append(want, ids[x])
				if batch%2 == 0 {
					if got := d.Intern(x); got != ids[x] {
						t.Fatalf("seed %d: %v has id %d, want %d", seed, x, got, ids[x])
					}
				}
			}
			got := make([]uint64, len(all))
			if n := d.InternAll(got, all); n != len(all) || !slices.Equal(got, want) {
				t.Fatalf("seed %d: ids %v of %v, want %v", seed, got, all, want)
			}
			if rng.IntN(3) > 0 {
				continue
			}
			if batch%7 == 0 {
				mark = rng.IntN(mark + 1)
			}
			for _, x := range terms[mark:] {
				delete(ids, x)
			}
			terms = terms[:mark]
			d.Truncate(uint64(mark))
			if batch%10 == 0 {
				check(t, d, terms)
			}
		}
		check(t, d, terms)
		d.Truncate(0)
		check(t, d, nil)
		if got, want := d.pages.Load()+d.slabs.bytes.Load(), int64(0); got != want {
			t.Fatalf("an emptied dictionary holds %d bytes of terms", got)
		}
	}
}

// TestReaders lets readers look up, decode and hash whatever was published
// while the writer interns, takes back and makes the table grow.
func TestReaders(t *testing.T) {
	d := New()
	rounds := 300
	if testing.Short() {
		rounds = 100
	}
	name := func(id uint64) term.Term {
		switch id % 4 {
		case 0:
			return term.Int(int64(id))
		case 1:
			return term.IRI(fmt.Sprint("http://example.org/a/long/name/", id))
		}
		return term.String(fmt.Sprint(id))
	}
	var limit atomic.Uint64
	var done atomic.Bool
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2))
			for !done.Load() {
				n := limit.Load()
				if n == 0 {
					continue
				}
				id := 1 + rng.Uint64N(n)
				x := name(id)
				a, _ := d.Hash(id)
				got, ok := d.Find(x, n)
				if !ok || got != id || d.Term(id) != x || a != xxhash.Sum64(d.AppendBinary([]byte{tagA}, id)) {
					t.Errorf("%v is %d, %v; %v; limit %d", x, got, ok, d.Term(id), n)
					return
				}
				// These are interned and taken back all the time.
				if got, ok := d.Find(term.String(fmt.Sprint("refused ", rng.IntN(50))), n); ok {
					t.Errorf("a refused term has id %d, limit %d", got, n)
					return
				}
			}
		})
	}
	for round := range rounds {
		for i := range 50 {
			d.Intern(term.String(fmt.Sprint("refused ", i)))
		}
		d.Truncate(limit.Load())
		for range 1 + round%60 {
			if id := d.Intern(name(d.Len() + 1)); id != d.Len() {
				t.Errorf("id %d of %d", id, d.Len())
			}
		}
		limit.Store(d.Len())
	}
	done.Store(true)
	wg.Wait()
}

// TestLanes pins the content hashes: they are part of the stored format.
func TestLanes(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 200)
	for _, n := range []int{1, 2, 15, 510, 511, 512, 513, 1023, 1024, 2000} {
		form := long[:n]
		second := []byte{0xB2}
		for i := range form {
			second = append(second, form[n-1-i]*0xB5)
		}
		if laneB(form) != xxhash.Sum64(second) {
			t.Fatalf("lane B of %d bytes", n)
		}
	}
	d := New()
	d.Intern(term.String("Max"))
	if a, b := d.Hash(1); a != 0x566fb9ee0ea11cf7 || b != 0xf0d1cf54d101922f {
		t.Fatalf("hashes %#x, %#x", a, b)
	}
}

// TestFree pins that what happens for every event allocates nothing.
func TestFree(t *testing.T) {
	d := New()
	terms := append(kinds(), term.IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), term.String(strings.Repeat("x", 240)))
	intern(t, d, terms...)
	var buf [512]byte
	buffer := make([]uint64, len(terms))
	missing := term.String("http://example.org/nowhere")
	for _, tc := range []struct {
		name string
		f    func()
	}{
		{"intern", func() {
			for _, x := range terms {
				d.Intern(x)
			}
		}},
		{"intern all", func() { d.InternAll(buffer, terms) }},
		{"find", func() {
			for _, x := range terms {
				d.Find(x, d.Len())
			}
			d.Find(missing, d.Len())
		}},
		{"term of a number", func() { d.Term(8) }},
		{"hash, form", func() {
			for i := range terms {
				d.Hash(uint64(i + 1))
				d.AppendBinary(buf[:0], uint64(i+1))
			}
		}},
	} {
		if n := testing.AllocsPerRun(100, tc.f); n != 0 {
			t.Errorf("%s: %v allocations", tc.name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { d.Term(2) }); n > 1 {
		t.Errorf("a string: %v allocations", n)
	}
}

// FuzzDict interns terms cut from the input, each of them twice.
func FuzzDict(f *testing.F) {
	f.Add([]byte("a\x00bc\x00a\x00http://example.org/long/enough\x00\x00"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, keep uint8) {
		d := New()
		ids := map[term.Term]uint64{}
		var terms []term.Term
		for i, piece := range bytes.Split(in, []byte{0}) {
			x := term.String(string(piece))
			switch i % 3 {
			case 1:
				x = term.Bytes(piece)
			case 2:
				x = term.Int(int64(len(piece)) << (i % 60))
			}
			if ids[x] == 0 {
				terms = append(terms, x)
				ids[x] = uint64(len(terms))
			}
			if got := d.Intern(x); got != ids[x] {
				t.Fatalf("%v has id %d, want %d", x, got, ids[x])
			}
		}
		check(t, d, terms)
		n := min(int(keep), len(terms))
		d.Truncate(uint64(n))
		check(t, d, terms[:n])
	})
}
