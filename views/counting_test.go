package views

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query/plan"
)

// countedLab is a history of one query, in which facts on the tuple (k, k) can have any
// weight.
func countedLab(t *testing.T, text string) (l *lab, q *Query, set func(rel string, before, after int64)) {
	l = newLab(t)
	p, err := plan.Compile(l.parse(text))
	if err != nil {
		t.Fatal(err)
	}
	q = l.register(p)
	tuple := []uint64{l.TermID(term.String("k")), l.TermID(term.String("k"))}
	set = func(rel string, before, after int64) { l.s.Change(l.rels[rel], tuple, before, after) }
	return l, q, set
}

func (l *lab) apply() {
	l.t.Helper()
	if err := l.s.Apply(); err != nil {
		l.t.Fatal(err)
	}
	l.seal()
}

// TestCountsBetween: weights that fit are right although a number between the old
// and the new ones, of operands that change at once, would not fit.
func TestCountsBetween(t *testing.T) {
	const large = 1 << 40
	for _, text := range []string{
		"Q(count()) :- a(x,y), b(y,z).", "Q(x, count()) :- a(x,y), b(y,z).", "Q(x, count()) :- a(x,y), b(y,z), c(y,z).", "Q(x, z, count()) :- a(x,y), b(y,w), c(w,z).",
	} {
		l, q, set := countedLab(t, text)
		l.relation("c", 2)
		set("a", 0, 1)
		set("b", 0, large)
		set("c", 0, 1)
		l.apply()
		before := l.answers(q)
		for _, to := range [][4]int64{{1, large, large, 1}, {large, 1, 1, large}, {1, large, large, 1}} {
			set("a", to[0], to[1])
			set("b", to[2], to[3])
			l.apply()
			l.expect(text, l.answers(q), before)
			l.recomputed(q)
		}
		set("a", large, math.MaxInt64/2)
		if err := l.s.Apply(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		l.seal()
		set("b", 1, 3)
		if err := l.s.Apply(); !errors.Is(err, errs.ErrOverflow) {
			t.Fatalf("%s: got %v, want an overflow", text, err)
		}
		l.s.Abort()
		set("b", 1, 2)
		l.apply()
		l.recomputed(q)
	}
}

// TestCountsWrite: for a count of paths by their beginning each relation is kept in
// one order, and an update writes each tuple that it changes once.
func TestCountsWrite(t *testing.T) {
	l, q, _ := countedLab(t, "Q(x, count()) :- a(x,y), b(y,z), c(z,w).")
	for rel, n := range l.rels {
		if orders := len(l.s.relations[n].indexes); orders != 1 {
			t.Errorf("%s is kept in %d orders", rel, orders)
		}
	}
	writes := func(updates ...string) uint64 {
		before := l.s.Writes()
		l.epoch(updates...)
		return l.s.Writes() - before
	}
	for _, tc := range []struct {
		update string
		writes uint64
	}{
		{"+c z w", 2}, // the fact, and the number of ends of z
		{"+b y z", 2}, // the number of ways from y as well
		{"+a x1 y", 2}, {"+a x2 y", 2},
		{"+c z v", 5}, {"-c z w", 5}, // c, z, y, x1, x2
		{"-a x1 y", 2},
		{"-b y z", 3},
	} {
		if n := writes(tc.update); n != tc.writes {
			t.Errorf("%s: %d writes, want %d", tc.update, n, tc.writes)
		}
		l.recomputed(q)
	}
	l.expect("answers", l.answers(q), "")
	n := testing.AllocsPerRun(100, func() {
		l.s.Change(l.rels["b"], []uint64{1, 2}, 0, 1)
		if err := l.s.Apply(); err != nil {
			panic(fmt.Sprint("refused: ", err))
		}
		l.s.Abort()
	})
	if n > 0 {
		t.Errorf("an epoch allocates %v times", n)
	}
}
