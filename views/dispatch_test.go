package views

import (
	"fmt"
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
