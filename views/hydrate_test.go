package views

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/mvcc"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/semiring"
)

// beds are queries of all shapes over relations R, S (2 columns), T (3) and U (1).
var beds = []string{
	`Q(x,y,z) :- R(x,y), S(y,z).`,
	`Q(x,y,z) :- R(x,y), R(y,z).`,
	`Q(x,y,z,w) :- R(x,y), S(y,z), T(z,w,x2).`,
	`Q(x,y,z) :- T(x,y,z), U(x), U(z).`,
	`Q(x,y) :- R(x,y), S(y,3).`,
	`Q(x,y) :- R(1,x), R(x,y), U(y).`,
	`Q(x) :- T(x,_,_), U(x).`,
	`Q(x,y,z,w) :- R(x,y), S(x,z), T(x,w,w).`,
	`Q(x,y,u,v) :- R(x,y), S(u,v).`,
	`Q(x,y) :- R(x,y), x != 2.`,
	`Q(x,y,z) :- R(x,y), S(y,z) set.`,
	`Q(x,y,z,a,b) :- R(x,y), S(y,z), R(x,a), T(z,b,_), U(b).`,
	`Q(x,y) :- R(y,x), Late(x).`,
	// Clusters, with counts, support and states, and answers that are kept.
	`Q(x) :- R(x,y), S(y,z), U(z).`,
	`Q(x) :- R(x,y), S(y,z), U(z) distinct.`,
	`Q(x, count(), sum(w)) :- R(x,y), S(y,z), T(z,w,_).`,
	`Q(y, max(x), min(z), count(distinct z)) :- R(x,y), S(y,z).`,
	`Q(count()) :- R(x,y), S(y,z), R(z,w).`,
	`Q(x,z) :- R(x,y), S(y,z).`,
	`Q(x,z) :- R(x,y), S(y,z) set.`,
	`Q(x,z,max(y)) :- R(x,y), S(y,z).`,
	`Q(x,w) :- R(x,y), S(y,z), T(z,w,_) distinct.`,
	`Q(y) :- R(x,y), S(y,3).`,
}

// bed is a store with a writer, versions that are pinned, and hydrations beside it.
type bed struct {
	*lab
	rng     *rand.Rand
	pins    mvcc.Pins
	version mvcc.Version
	counts  map[string]int64 // multiplicities by relation and tuple
	queries []*Query
}

func newBed(t *testing.T, seed uint64) *bed {
	b := &bed{lab: newLab(t), rng: rand.New(rand.NewPCG(seed, 3)), counts: map[string]int64{}, version: 1}
	for i := range 40 { // terms that goroutines read are there from the start
		b.TermID(term.Int(int64(i)))
	}
	for _, r := range []string{"R2", "S2", "T3", "U1", "Late1"} {
		b.relation(r[:len(r)-1], int(r[len(r)-1]-'0'))
	}
	return b
}

func (b *bed) compile(text string) *plan.Plan {
	b.t.Helper()
	p, err := plan.Compile(b.parse(text))
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// write changes some facts, in the version under construction.
func (b *bed) write(most int) {
	b.t.Helper()
	before := map[string]int64{}
	for range b.rng.IntN(most) {
		rel := []string{"R", "S", "T", "U", "R", "S"}[b.rng.IntN(6)]
		k := rel
		for range b.s.relations[b.rels[rel]].arity {
			k += fmt.Sprintf(" %d", 1+b.rng.IntN(30))
		}
		if _, seen := before[k]; !seen {
			before[k] = b.counts[k]
		}
		b.counts[k] = max(b.counts[k]+b.rng.Int64N(4)-2, 0)
	}
	b.apply(before)
}

func (b *bed) apply(before map[string]int64) {
	b.t.Helper()
	for _, k := range slices.Sorted(maps.Keys(before)) {
		var rel string
		var cols [3]uint64
		n, _ := fmt.Sscan(k, &rel, &cols[0], &cols[1], &cols[2])
		if now := b.counts[k]; now != before[k] {
			b.s.Change(b.rels[rel], cols[:n-1], before[k], now)
		}
	}
	if err := b.s.Apply(); err != nil {
		b.t.Fatal(err)
	}
}

// facts are those of the version under construction.
func (b *bed) facts() Facts {
	f := Facts{}
	f.Roots, f.Space = b.s.Copy(nil)
	for i, r := range b.s.relations {
		f.Relations = append(f.Relations, PinnedRelation{Arity: r.arity, Indexes: b.s.Indexes(i)})
	}
	return f
}

// publish ends a version and pins it once; drop takes a pin off.
func (b *bed) publish() (f Facts, v mvcc.Version) {
	f, v = b.facts(), b.version
	b.version++
	b.s.SealAs(b.version)
	b.pins.Add(v)
	b.collect()
	return f, v
}

func (b *bed) collect() { b.s.Collect(b.version-1, b.pins.Versions(nil)) }

func (b *bed) drop(v mvcc.Version) { b.pins.Drop(v) }

// beside is the resolver of a hydration, whose algebras are its own.
type beside struct{ *lab }

func (r beside) Algebra(name string) (semiring.Algebra, error) {
	return semiring.Parse(name, semiring.Env{Terms: r.lab})
}

// goOn writes versions until done has something.
func (b *bed) goOn(done <-chan error) error {
	for {
		select {
		case err := <-done:
			return err
		default:
			b.epochs(1)
		}
	}
}

// epochs writes versions, in some of which other queries come and go.
func (b *bed) epochs(n int) {
	b.t.Helper()
	for range n {
		b.write(30)
		switch b.rng.IntN(8) {
		case 0:
			q, err := b.s.Register(b.compile(beds[b.rng.IntN(len(beds))]), b.lab, ok)
			if err != nil {
				b.t.Fatal(err)
			}
			b.queries = append(b.queries, q)
		case 1, 2:
			if n := len(b.queries); n > 1 {
				i := b.rng.IntN(n)
				b.s.Drop(b.queries[i])
				b.queries = slices.Delete(b.queries, i, i+1)
			}
		}
		_, v := b.publish()
		b.drop(v)
	}
}

func ok() error { return nil }

// check compares a query with one that is evaluated from the facts.
func (b *bed) check(what string, q *Query) {
	b.t.Helper()
	f := b.facts()
	for i := range f.Relations {
		if err := CompareIndexes(b.t.Context(), f.Space, f.Roots, f.Relations[i].Indexes, func([]uint64, int64) {}); err != nil {
			b.t.Fatalf("%s: relation %d: %v", what, i, err)
		}
	}
	o, err := Evaluate(q.Plan, b.facts(), b.lab, ok)
	if err == nil {
		err = b.bind(q).Compare(b.t.Context(), o)
	}
	if err != nil {
		b.t.Fatalf("%s: %s: %v", what, q.Plan.Tree(), err)
	}
}

// hydrate has a query filled beside the writer, with some rounds of catching up.
func (b *bed) hydrate(p *plan.Plan, rounds int) (*Hydration, mvcc.Version) {
	b.t.Helper()
	f, at := b.publish()
	h := b.s.NewHydration()
	done := make(chan error, 1)
	go func() { done <- h.Fill(p, f, beside{b.lab}, ok) }()
	if err := b.goOn(done); err != nil {
		b.t.Fatal(err)
	}
	for range rounds {
		b.epochs(b.rng.IntN(4))
		next, v := b.publish()
		go func() {
			_, err := h.Advance(next, ok)
			done <- err
		}()
		if err := b.goOn(done); err != nil {
			b.t.Fatal(err)
		}
		if !h.Covers(next) {
			b.t.Fatalf("a hydration of %s stands on facts without the indexes that it reads", p.Tree())
		}
		b.drop(at)
		at = v
	}
	return h, at
}

// TestHydrate fills queries beside a writer, while others come and go, and compares
// them with evaluation from scratch, when they are adopted and after further
// versions. In the end everything is dropped, and no block is left.
func TestHydrate(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 12
	}
	for seed := range uint64(seeds) {
		b := newBed(t, seed)
		b.write(4000)
		for round := range 6 {
			text := beds[(int(seed)+round*5)%len(beds)]
			p := b.compile(text)
			h, at := b.hydrate(p, b.rng.IntN(4))
			b.epochs(b.rng.IntN(3))
			b.write(40)
			switch b.rng.IntN(4) {
			case 0:
				h.Discard()
			default:
				q, err := b.s.Adopt(h, p, b.facts(), b.lab, ok)
				if err != nil {
					t.Fatal(err)
				}
				b.check("adopted", q)
				b.queries = append(b.queries, q)
			}
			_, v := b.publish()
			b.drop(at)
			b.drop(v)
			b.collect()
			b.epochs(3)
			for _, q := range b.queries {
				b.check("later", q)
			}
			if n := b.s.Bytes().Nurseries; n != 0 {
				t.Fatalf("seed %d: %d bytes in nurseries", seed, n)
			}
		}
		b.empty()
	}
}

// empty drops everything.
func (b *bed) empty() {
	b.t.Helper()
	for _, q := range b.queries {
		b.s.Drop(q)
	}
	for i := range b.s.relations {
		b.s.RemoveRelation(i)
	}
	for range 2 {
		b.version++
		b.s.SealAs(b.version)
		b.collect()
	}
	if left := b.s.Bytes(); left.Live != 0 || left.Held != 0 || len(b.s.views)+len(b.s.derived)+len(b.s.answers)+len(b.s.queries) != 0 {
		b.t.Fatalf("%+v, %d views, %d derived relations are left", left, len(b.s.views), len(b.s.derived))
	}
}

// TestHydrateLeavesNoTrace discards hydrations at each of the moments at which one
// can end, and finds the store as it was.
func TestHydrateLeavesNoTrace(t *testing.T) {
	b := newBed(t, 5)
	b.write(4000)
	f, at := b.publish()
	b.write(4000)
	later, then := b.publish()
	for _, i := range []int{5, 11, 15, 19} {
		b.traceless(b.compile(beds[i]), f, later)
	}
	b.drop(at)
	b.drop(then)
}

func (b *bed) traceless(p *plan.Plan, f, later Facts) {
	b.t.Helper()
	before, roots := b.s.Bytes(), len(b.s.roots)
	stop := errors.New("enough")
	for steps := 0; ; steps += 1 + steps/10 {
		left := steps
		check := func() error {
			if left--; left < 0 {
				return stop
			}
			return nil
		}
		h := b.s.NewHydration()
		h.s.pace = 0 // asks at each step
		err := h.Fill(p, f, b.lab, check)
		if err == nil {
			_, err = h.Advance(later, check)
		}
		h.Discard()
		if after := b.s.Bytes(); after != before || len(b.s.roots) != roots {
			b.t.Fatalf("after %d steps %+v, before %+v", steps, after, before)
		}
		if err == nil {
			if steps < 100 {
				b.t.Fatalf("%s is asked %d times", p.Tree(), steps)
			}
			return
		}
		if !errors.Is(err, stop) {
			b.t.Fatalf("got %v, want that of check", err)
		}
	}
}

// TestAdoptRefused has the epoch refused in which a query is adopted: the store is
// as before and goes on, also with the same query.
func TestAdoptRefused(t *testing.T) {
	for name, refuse := range map[string]func(b *bed) (check func() error, want error){
		"check": func(*bed) (func() error, error) {
			n := 0
			stop := errors.New("enough")
			return func() error {
				if n++; n > 1 {
					return stop
				}
				return nil
			}, stop
		},
		"budget": func(b *bed) (func() error, error) {
			used := b.s.Bytes()
			b.s.Budget(used.Total - used.Reusable - 1)
			return ok, errs.ErrBudget
		},
	} {
		b := newBed(t, 6)
		b.write(4000)
		p := b.compile(beds[11])
		h, at := b.hydrate(p, 1)
		before, roots := b.s.Bytes(), slices.Clone(b.s.roots)
		check, want := refuse(b)
		if _, err := b.s.Adopt(h, p, b.facts(), b.lab, check); !errors.Is(err, want) {
			t.Fatalf("%s: got %v, want %v", name, err, want)
		}
		b.s.Abort()
		if after := b.s.Bytes(); after.Live != before.Live || after.Nurseries != 0 || !slices.Equal(b.s.roots[:len(roots)], roots) {
			t.Fatalf("%s: after %+v, before %+v", name, after, before)
		}
		b.drop(at)
		b.s.Budget(0)
		b.epochs(5)
		h, at = b.hydrate(p, 0)
		q, err := b.s.Adopt(h, p, b.facts(), b.lab, ok)
		if err != nil {
			t.Fatal(err)
		}
		b.check(name, q)
		b.queries = append(b.queries, q)
		b.publish()
		b.drop(at)
		b.drop(b.version - 1)
		b.empty()
	}
}

// TestAdoptWritesTheChangesAlone: once a hydration has caught up, the version that
// adopts it allocates a fraction of what it takes over.
func TestAdoptWritesTheChangesAlone(t *testing.T) {
	b := newBed(t, 7)
	for i := range 30_000 {
		b.counts[fmt.Sprintf("R %d %d", i+100, i%5000+100)] = 1
		b.counts[fmt.Sprintf("S %d %d", i%5000+100, i+100)] = 1
	}
	zero := map[string]int64{}
	for k := range b.counts {
		zero[k] = 0
	}
	b.apply(zero)
	p := b.compile(beds[0])
	f, at := b.publish()
	h := b.s.NewHydration()
	if err := h.Fill(p, f, b.lab, ok); err != nil {
		t.Fatal(err)
	}
	kept := h.Bytes().Live
	b.write(10)
	made := b.s.writes
	var filled uint64
	if _, err := b.s.Adopt(h, p, b.facts(), b.lab, func() error { filled++; return nil }); err != nil {
		t.Fatal(err)
	}
	if filled > 10 || b.s.writes-made > 50 || kept < 400_000 {
		t.Fatalf("%d bytes adopted with %d looks at the check and %d writes", kept, filled, b.s.writes-made)
	}
	b.drop(at)
}
