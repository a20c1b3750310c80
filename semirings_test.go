package triegs_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// gcdSemiring is a semiring of positive integers: the sum of two is their greatest
// common divisor, the product that of integers.
func gcdSemiring() triegs.Semiring {
	gcd := func(a, b int64) int64 {
		for b != 0 {
			a, b = b, a%b
		}
		return a
	}
	number := func(t triegs.Term) (int64, error) {
		n, ok := t.AsInt()
		if !ok || n < 1 {
			return 0, fmt.Errorf("%w: %v is no positive integer", triegs.ErrValue, t)
		}
		return n, nil
	}
	both := func(f func(a, b int64) int64) func(x, y triegs.Term) (triegs.Term, error) {
		return func(x, y triegs.Term) (triegs.Term, error) {
			a, err := number(x)
			if err != nil {
				return triegs.Term{}, err
			}
			b, err := number(y)
			return triegs.Int(f(a, b)), err
		}
	}
	return triegs.Semiring{
		One: triegs.Int(1),
		Add: both(gcd), Mul: both(func(a, b int64) int64 { return a * b }),
		Lift: func(t triegs.Term) (triegs.Term, error) {
			_, err := number(t)
			return t, err
		},
		Positive: true, Idempotent: true, Chain: -1, Exact: true,
	}
}

// TestOwnSemiring keeps a query over a semiring of the program's own through
// deletes, a checkpoint and reopening, and opens the store without it.
func TestOwnSemiring(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	opts := &triegs.Options{Semirings: map[string]triegs.Semiring{"divisor": gcdSemiring()}}
	db, err := triegs.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Register(ctx, "q", "q(x) :- part(x, y)@, part(y, z)@ semiring divisor."); err != nil {
		t.Fatal(err)
	}
	part := func(op triegs.Op, x, y string, n int64) triegs.Event {
		e := triegs.Edge("part", triegs.String(x), triegs.String(y))
		e.Op, e.Value = op, triegs.Int(n)
		return e
	}
	append1 := func(events ...triegs.Event) error {
		_, err := db.Append(ctx, triegs.Batch{Events: events})
		return err
	}
	check := func(want int64) {
		t.Helper()
		s, err := db.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		row, err := s.Lookup("q", triegs.String("a"))
		if err != nil {
			t.Fatal(err)
		}
		if got := row.Value(0); got != triegs.Int(want) {
			t.Errorf("value %v, want %d", got, want)
		}
		if err := db.Verify(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := append1(part(0, "a", "b", 6), part(0, "b", "c", 10), part(0, "b", "d", 4)); err != nil {
		t.Fatal(err)
	}
	check(12) // gcd(60, 24)
	if err := append1(part(triegs.Delete, "b", "d", 4)); err != nil {
		t.Fatal(err)
	}
	check(60)
	if err := append1(part(0, "b", "e", 0)); !errors.Is(err, triegs.ErrValue) {
		t.Errorf("a value outside of the semiring: %v", err)
	}
	check(60)
	if err := db.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if err := append1(part(0, "b", "e", 3)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := triegs.Open(dir, nil); !errors.Is(err, triegs.ErrFormat) {
		t.Errorf("opened without the semiring: %v", err)
	}
	if err := triegs.Restore(ctx, dir, t.TempDir()+"/none"); !errors.Is(err, triegs.ErrFormat) {
		t.Errorf("restored without the semiring: %v", err)
	}
	if err := triegs.RestoreWith(ctx, dir, t.TempDir()+"/some", opts); err != nil {
		t.Error(err)
	}
	if db, err = triegs.Open(dir, opts); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	check(6)
}

// TestSemiringOptions refuses definitions that mean nothing.
func TestSemiringOptions(t *testing.T) {
	good := gcdSemiring()
	bad := good
	bad.Add = nil
	for name, def := range map[string]triegs.Semiring{"min plus": good, "minplus": good, "": good, "mine": bad} {
		if _, err := triegs.Open("", &triegs.Options{Semirings: map[string]triegs.Semiring{name: def}}); !errors.Is(err, triegs.ErrValue) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestOwnSemiringPanics has an Add that panics: the epoch is refused, readers are
// told, and the store goes on.
func TestOwnSemiringPanics(t *testing.T) {
	ctx, def, armed := context.Background(), gcdSemiring(), false
	add := def.Add
	def.Add = func(a, b triegs.Term) (triegs.Term, error) {
		if armed {
			panic("no sum today")
		}
		return add(a, b)
	}
	db, err := triegs.Open("", &triegs.Options{Semirings: map[string]triegs.Semiring{"divisor": def}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Register(ctx, "q", "q(x) :- part(x, y)@, part(y, z)@ semiring divisor."); err != nil {
		t.Fatal(err)
	}
	part := func(x, y string, n int64) triegs.Batch {
		e := triegs.Edge("part", triegs.String(x), triegs.String(y))
		e.Value = triegs.Int(n)
		return triegs.Batch{Events: []triegs.Event{e}}
	}
	for _, b := range []triegs.Batch{part("a", "b", 6), part("b", "c", 10), part("b", "d", 4)} {
		if _, err := db.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	armed = true
	if _, err := db.Append(ctx, part("b", "e", 5)); !errors.Is(err, triegs.ErrValue) {
		t.Errorf("an epoch whose sum panics: %v", err)
	}
	if err := db.Verify(ctx); !errors.Is(err, triegs.ErrValue) {
		t.Errorf("a check whose sum panics: %v", err)
	}
	armed = false
	if _, err := db.Append(ctx, part("b", "e", 5)); err != nil {
		t.Error(err)
	}
	if err := db.Verify(ctx); err != nil {
		t.Error(err)
	}
}

// TestSumOverflow refuses the epoch in which a sum that is kept no longer fits, and
// the registration of such a query over facts that are there.
func TestSumOverflow(t *testing.T) {
	ctx := context.Background()
	for _, text := range []string{
		"q(x, sum(a), count()) :- p(x, a).",
		"q(x, avg(a)) :- p(x, a).",
		"q(x, sum(a)) :- p(x, a), p(x, b).",
		"q(x) :- v(x)@ semiring int.",
	} {
		db, err := triegs.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Register(ctx, "q", text); err != nil {
			t.Fatal(err)
		}
		add := func(n int64) error {
			x := triegs.String("x")
			_, err := db.Append(ctx, triegs.Batch{Events: []triegs.Event{
				{Relation: "p", Tuple: []triegs.Term{x, triegs.Int(n)}}, {Relation: "v", Tuple: []triegs.Term{x}, Value: triegs.Int(n)},
			}})
			return err
		}
		if err := add(math.MaxInt64 / 2); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		before, err := db.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer before.Close()
		err = add(math.MaxInt64/2 + 2)
		if !errors.Is(err, triegs.ErrOverflow) {
			t.Errorf("%s: %v", text, err)
		}
		relation := text[strings.Index(text, ":-")+3:][:1]
		if want := `query "q" cannot take the changes of ` + relation + ": "; !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want it to say %s", text, err, want)
		}
		if err := add(-5); err != nil {
			t.Errorf("%s: behind the refused epoch: %v", text, err)
		}
		if err := db.Drop(ctx, "q"); err != nil {
			t.Fatal(err)
		}
		if err := add(math.MaxInt64); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Register(ctx, "q", text); !errors.Is(err, triegs.ErrOverflow) {
			t.Errorf("%s: registered over facts: %v", text, err)
		}
		if err := db.Verify(ctx); err != nil {
			t.Error(err)
		}
	}
}
