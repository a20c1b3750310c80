package views

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// fixedRows lists what a walk meets, as it goes.
func fixedRows(t *testing.T, d *Deltas) map[string]string {
	t.Helper()
	out := map[string]string{}
	for d.Next() {
		row := fmt.Sprint(d.binding)
		if _, twice := out[row]; twice {
			t.Fatalf("%s comes twice", row)
		}
		was, failed := d.Old()
		is, fails := d.New()
		out[row] = fmt.Sprint(was, failed, is, fails)
	}
	return out
}

// TestFixedVariables compares walks with fixed variables with what walks without
// give for their ids: between versions, and over all answers of one.
func TestFixedVariables(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 40
	}
	met := 0
	for seed := range seeds {
		c := randq.New(seed, randq.Size{Queries: 3, AtomsMax: 5, Epochs: 8})
		h := newHistory(t, &c)
		rng := rand.New(rand.NewPCG(seed, 11))
		facts := new(oracle.Store)
		state := multiset(facts)
		for _, batch := range c.Epochs {
			if _, err := facts.Apply(batch.Events, batch.IgnoreMissing); err != nil {
				continue
			}
			next := multiset(facts)
			h.change(state, next)
			state = next
			if err := h.s.Apply(); err != nil {
				t.Fatal(err)
			}
			h.keep()
			for _, q := range h.queries {
				now, old := h.kept[len(h.kept)-1].bind(q), h.kept[rng.IntN(len(h.kept))].bind(q)
				met += h.checkFixed(q, old, now, rng)
			}
		}
	}
	if met < 200 {
		t.Errorf("only %d answers were met with fixed variables", met)
	}
}

// checkFixed fixes some variables to the ids of an answer that differs.
func (h *history) checkFixed(q *Query, old, now *Bound, rng *rand.Rand) (met int) {
	h.t.Helper()
	fixed := make([]uint64, q.vars())
	for d := q.Deltas(old, now); d.Next(); {
		for v := range fixed {
			if fixed[v] = 0; rng.IntN(3) == 0 {
				fixed[v] = d.binding[v]
			}
		}
		if rng.IntN(3) == 0 {
			break
		}
	}
	for i, walk := range []struct{ all, some *Deltas }{
		{q.Deltas(old, now), q.Deltas(old, now)},
		{q.Matching(now, nil), q.Matching(now, fixed)},
	} {
		walk.some.Fix(fixed)
		want := map[string]string{}
		for walk.all.Next() {
			if fits(walk.all.binding, fixed) {
				was, failed := walk.all.Old()
				is, fails := walk.all.New()
				want[fmt.Sprint(walk.all.binding)] = fmt.Sprint(was, failed, is, fails)
			}
		}
		got := fixedRows(h.t, walk.some)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			h.t.Fatalf("%s with %v: got %v, want %v", q.Plan.Query.Text, fixed, got, want)
		}
		if i == 0 && walk.some.Steps > walk.all.Steps {
			h.t.Fatalf("%s with %v: %d steps, %d for all", q.Plan.Query.Text, fixed, walk.some.Steps, walk.all.Steps)
		}
		met += len(got)
	}
	return met
}

func fits(binding, fixed []uint64) bool {
	for v, id := range fixed {
		if id != 0 && binding[v] != id {
			return false
		}
	}
	return true
}
