package views

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/query/plan"
)

// TestDispatch: a change is brought to the views and aliases whose constants it has,
// and to no other, also after some queries have gone.
func TestDispatch(t *testing.T) {
	for _, tc := range []struct {
		text    string // of query i
		update  string // with the constant of query 7
		visited int    // views
		rows    int    // that aliases and views with constants read
	}{
		{"Q(x, y) :- a(x, y), b(y, c%d).", "+b k c7", 1, 1},
		{"Q(x, y) :- a(x, y), b(y, c%d).", "+b k d", 0, 0},
		{"Q(x, y) :- a(x, y, c%d), b(x, y), d(y).", "+a k k c7", 1, 1},
		{"Q(x, y) :- a(x, c%d, 5, y), b(x), d(y).", "+a k c7 5 k", 1, 1},
		{"Q(x, y) :- a(x, c%d, 5, y), b(x), d(y).", "+a k c7 6 k", 0, 0},
		{"Q(x) :- a(x, c%d, z), b(x).", "+a k c7 z", 1, 1},
		{"Q(x, count()) :- a(x, y), b(y, c%d), d(y).", "+b k c7", 0, 1},
		{"Q(x, y) :- a(x, c%[1]d), b(x, y), d(y, c%[1]d).", "+a k c7", 1, 1},
	} {
		l := newLab(t)
		all := make([]*Query, 12)
		for i := range all {
			p, err := plan.Compile(l.parse(constant(tc.text, i)))
			if err != nil {
				t.Fatal(err)
			}
			all[i] = l.register(p)
		}
		for _, i := range []int{3, 0, 11} {
			l.s.Drop(all[i])
			l.seal()
		}
		for range 2 {
			l.note(tc.update)
			l.s.begin()
			if err := l.s.bringUp(); err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, r := range l.s.served {
				rows += len(r.rows)
			}
			if len(l.s.visited) != tc.visited || rows != tc.rows {
				t.Errorf("%s: %d views are visited for %d rows, want %d and %d", tc.text, len(l.s.visited), rows, tc.visited, tc.rows)
			}
			l.s.Abort()
			if len(l.s.visited)+len(l.s.served) > 0 {
				t.Errorf("%s: %d views and %d readers are remembered", tc.text, len(l.s.visited), len(l.s.served))
			}
			for rel := range l.facts {
				clear(l.facts[rel])
			}
		}
		for i, q := range all {
			if i != 3 && i != 0 && i != 11 {
				l.s.Drop(q)
				l.seal()
			}
		}
		for _, r := range l.s.relations {
			if len(r.readers.groups) > 0 {
				t.Errorf("%s: readers are left", tc.text)
			}
		}
		if len(l.s.viewBy)+len(l.s.derivedBy) > 0 {
			t.Errorf("%s: %d views and %d relations are left", tc.text, len(l.s.viewBy), len(l.s.derivedBy))
		}
	}
}

// constant is the text of query i.
func constant(text string, i int) string {
	return fmt.Sprintf(strings.NewReplacer("c%d", "\"c%d\"", "c%[1]d", "\"c%[1]d\"", "5", "\"5\"").Replace(text), i)
}

// TestCrowds: of many queries that differ in constants an update wakes those that it
// concerns, and all views are right, with a crowd that grows and shrinks.
func TestCrowds(t *testing.T) {
	for _, text := range []string{
		"Q(x, y) :- a(x, y), b(y, c%d).",
		"Q(y) :- a(x, y), b(y, c%d) distinct.",
		"Q(y, count()) :- a(x, y), b(y, c%d).",
		"Q(x, y, z) :- a(x, y), b(y, z), d(z, c%d).",
		"Q(x, y, z) :- a(x, y), b(y, z, c%d), d(z).",
		"Q(x, y) :- a(x, y, z), b(y, c%[1]d), d(y, c%[1]d).",
		"Q(x, y) :- a(x, y, c%[1]d), b(y, c%[1]d), d(y).",
		"Q(x, y) :- a(x, y), b(c%d), d(y).",
		"Q(x, y, z) :- a(x, y, z), b(x, c%d), d(y, z).",
	} {
		t.Run(text, func(t *testing.T) { crowds(t, text) })
	}
}

func crowds(t *testing.T, text string) {
	rng := rand.New(rand.NewPCG(11, 12))
	l := newLab(t)
	names := map[string]int{}
	p, err := plan.Compile(l.parse(constant(text, 0)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Aliases {
		names[p.Aliases[i].Relation] = p.Aliases[i].Arity
	}
	live := map[int]*Query{}
	for step := range 120 {
		for i := range 2 * crowdFrom {
			switch wanted := rng.IntN(100) < 95 && step/30%2 == 0; {
			case wanted && live[i] == nil:
				p, err := plan.Compile(l.parse(constant(text, i)))
				if err != nil {
					t.Fatal(err)
				}
				live[i] = l.register(p)
			case !wanted && live[i] != nil && rng.IntN(20) == 0:
				l.s.Drop(live[i])
				l.seal()
				delete(live, i)
			}
		}
		if rng.IntN(15) == 0 {
			l.clear(p.Aliases[rng.IntN(len(p.Aliases))].Relation)
		}
		var updates []string
		for range rng.IntN(12) {
			for name, arity := range names {
				u := randomUpdate(l, rng, name, arity)
				if !slices.ContainsFunc(updates, func(o string) bool { return o[1:] == u[1:] }) {
					updates = append(updates, u)
				}
			}
		}
		l.epoch(updates...)
		for i, q := range live {
			if (i+step)%5 == 0 {
				l.recomputed(q)
			}
		}
	}
}

// randomUpdate takes a fact out that is there, or puts one in: small ids, and the
// constants in the last column.
func randomUpdate(l *lab, rng *rand.Rand, name string, arity int) string {
	cols := []string{name}
	for i := range arity {
		if i == arity-1 && rng.IntN(2) == 0 {
			cols = append(cols, fmt.Sprint("c", rng.IntN(2*crowdFrom)))
			continue
		}
		cols = append(cols, fmt.Sprint("n", rng.IntN(4)))
	}
	fact := strings.Join(cols, " ")
	if l.facts[name][strings.Join(cols[1:], " ")] > 0 {
		return "-" + fact
	}
	return "+" + fact
}
