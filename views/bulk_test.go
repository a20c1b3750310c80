package views

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/trie"

	"github.com/triegs/triegs/query/plan"
)

// bulkQueries have inner and generalized nodes, constants, derived relations, a
// relation in several atoms, and a product.
var bulkQueries = []string{
	"Q(x,y) :- a(x,y).",
	"Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w).",
	"Q(x,y,z) :- a(x,y), a(y,z).",
	"Q(x,y,z,w) :- a(y,x), b(y,z), c(y,w).",
	`Q(x,y,z) :- a(x,y), b(y,"n3"), c(y,z).`,
	"Q(x,y) :- a(x,_), b(x,y), x != y.",
	"Q(x,y,z,w) :- a(x,y), b(z,w).",
	"Q(y) :- a(x,y), b(y,z), c(y,w) distinct.",
}

// recomputed compares the views of a query with those that another store makes from
// the same facts.
func (l *lab) recomputed(q *Query) {
	l.t.Helper()
	fresh := &lab{t: l.t, s: NewStore(1), ids: l.ids, terms: l.terms, rels: l.rels, facts: l.facts, algebras: l.algebras}
	for n, r := range l.s.relations {
		if fresh.s.AddRelation(r.arity) != n {
			l.t.Fatal("relations have other numbers")
		}
		x := r.indexes[0]
		space, root := l.s.at(x)
		fresh.s.Load(n, 0, func(yield func([]uint64, int64) bool) {
			tuple := make([]uint64, r.arity)
			var c trie.Cursor
			for c.Seek(space, root, r.arity, nil); c.Next(); {
				for i, col := range x.cols {
					tuple[col] = c.Col(i)
				}
				yield(tuple, c.Weight())
			}
		})
	}
	if err := l.bind(q).Compare(l.t.Context(), fresh.bind(fresh.register(q.Plan))); err != nil {
		l.t.Fatalf("%s: %v", q.Plan.Tree(), err)
	}
}

// clear takes all facts of a relation away, as one version with other changes.
func (l *lab) clear(rel string, updates ...string) {
	l.s.Clear(l.rels[rel])
	l.facts[rel] = map[string]int64{}
	l.epoch(updates...)
}

// TestClear empties relations in one go, beside changes of others, and compares
// all views with those that are made anew.
func TestClear(t *testing.T) {
	for i, text := range bulkQueries {
		l := newLab(t)
		p, err := plan.Compile(l.parse(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, rel := range []string{"a", "b", "c"} {
			l.relation(rel, 2)
		}
		q := l.register(p)
		rng := rand.New(rand.NewPCG(uint64(i), 5))
		some := func(rels string) (updates []string) {
			for range 30 {
				rel := string(rels[rng.IntN(len(rels))])
				tuple := fmt.Sprintf("n%d n%d", rng.IntN(8), rng.IntN(8))
				op := "+"
				if l.facts[rel][tuple] > 0 && !slices.Contains(updates, "-"+rel+" "+tuple) {
					op = "-"
				}
				updates = append(updates, op+rel+" "+tuple)
			}
			return updates
		}
		answers := 0
		for range 60 {
			l.epoch(some("abc")...)
			rel := string("abc"[rng.IntN(3)])
			before := l.answers(q)
			answers += len(before)
			l.s.Clear(l.rels[rel])
			l.s.Abort()
			l.expect("answers after a clearing was taken back", l.answers(q), before)
			writes := l.s.Writes()
			l.clear(rel)
			if n := l.s.Writes() - writes; n != 0 {
				t.Errorf("clearing has written %d tuples", n)
			}
			l.recomputed(q)
			l.epoch(some("abc")...)
			l.recomputed(q)
			others := strings.ReplaceAll("abc", rel, "")
			l.clear(rel, some(others)...)
			l.recomputed(q)
			l.clear(rel) // it is empty
		}
		if answers == 0 {
			t.Errorf("%s has no answers", text)
		}
	}
}

// TestAbortClear goes back behind a clearing that has been applied.
func TestAbortClear(t *testing.T) {
	l := newLab(t)
	p, err := plan.Compile(l.parse("Q(x,y,z) :- a(x,y), b(y,z)."))
	if err != nil {
		t.Fatal(err)
	}
	q := l.register(p)
	var updates []string
	for i := range 500 {
		updates = append(updates, fmt.Sprintf("+a n%d n%d", i, i%7), fmt.Sprintf("+b n%d n%d", i%7, i))
	}
	l.epoch(updates...)
	before := l.answers(q)
	l.s.Clear(l.rels["a"])
	if err := l.s.Apply(); err != nil {
		t.Fatal(err)
	}
	l.expect("answers", l.answers(q), "")
	l.s.Abort()
	l.expect("answers after going back", l.answers(q), before)
	l.epoch("-b n1 n1", "+a n1 n2")
	l.recomputed(q)
}

// TestManyChanges writes so many changes that they are brought into order, and
// more than are sorted together.
func TestManyChanges(t *testing.T) {
	for _, text := range bulkQueries[:4] {
		l := newLab(t)
		p, err := plan.Compile(l.parse(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, rel := range []string{"a", "b", "c"} {
			l.relation(rel, 2)
		}
		q := l.register(p)
		rng := rand.New(rand.NewPCG(3, 4))
		weights := map[[2]uint64]int64{}
		for _, n := range []int{sortFrom - 1, sortFrom, sortBatch + 100, 2 * sortFrom} {
			seen := map[[2]uint64]bool{}
			for len(seen) < n {
				tuple := [2]uint64{1 + rng.Uint64N(1<<12), 1 + rng.Uint64N(1<<9)}
				if seen[tuple] {
					continue
				}
				seen[tuple] = true
				was := weights[tuple]
				now := int64(0)
				if was == 0 || rng.IntN(3) == 0 {
					now = was + 1
				}
				weights[tuple] = now
				for _, rel := range []string{"a", "b", "c"} {
					l.s.Change(l.rels[rel], tuple[:], was, now)
				}
			}
			if err := l.s.Apply(); err != nil {
				t.Fatal(err)
			}
			l.seal()
			l.recomputed(q)
		}
		for tuple, want := range weights {
			for _, x := range l.s.relations[l.rels["a"]].indexes {
				space, root := l.s.at(x)
				if got := space.Get(root, []uint64{tuple[x.cols[0]], tuple[x.cols[1]]}); got != want {
					t.Fatalf("%v weighs %d, want %d", tuple, got, want)
				}
			}
		}
	}
}
