package views

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/oracle/vectors"
	"github.com/triegs/triegs/internal/randq"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
)

// outputsOf lists answers: the values of all variables, and what is put out for
// them, the multiplicity where that is all.
func outputsOf(b *Bound) map[string]string {
	out := map[string]string{}
	values := b.Values()
	for a := b.Answers(); a.Next(); {
		n, err := a.Multiplicity()
		out[fmt.Sprint(a.binding)] = outputs(values, a.Value, n, err)
	}
	return out
}

// outputs prints what is put out for an answer.
func outputs(values *Values, value func(query.Var) uint64, n int64, err error) string {
	if values.Outputs() == 0 {
		return fmt.Sprint(n, err)
	}
	var cols []string
	for i := range values.Outputs() {
		v, err := values.Read(i, value, n)
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, v := range list { // 1 and 1.0 are two values
			cols = append(cols, fmt.Sprintf("%T %v", v, v))
		}
		cols = append(cols, fmt.Sprint(err))
	}
	return strings.Join(cols, "; ")
}

// compareOutputs compares the deltas between two versions with their answers and
// the outputs of these, and returns how many there are.
func (h *history) compareOutputs(what string, old, now *Bound, d *Deltas) (n int) {
	h.t.Helper()
	before, after := outputsOf(old), outputsOf(now)
	fail := func(format string, args ...any) {
		h.t.Helper()
		h.t.Fatalf("%s: %s\nover %s: %s\nbefore %v\nafter %v", what, now.q.Plan.Query.Text, now.q.Plan.Tree(),
			fmt.Sprintf(format, args...), before, after)
	}
	seen := map[string]bool{}
	was, are := old.Values(), now.Values()
	for ; d.Next(); n++ {
		row := fmt.Sprint(d.binding)
		if seen[row] {
			fail("%s comes twice", row)
		}
		seen[row] = true
		var x, y string
		if m, err := d.Old(); m != 0 || err != nil {
			x = outputs(was, d.Value, m, err)
		}
		if m, err := d.New(); m != 0 || err != nil {
			y = outputs(are, d.Value, m, err)
		}
		if x != before[row] || y != after[row] {
			fail("%s goes from %q to %q, want %q to %q", row, x, y, before[row], after[row])
		}
		if x == y && !d.touched {
			fail("%s stays at %q", row, x)
		}
	}
	for _, rows := range []map[string]string{before, after} {
		for row := range rows {
			if !seen[row] && before[row] != after[row] {
				fail("%s is missing, from %q to %q", row, before[row], after[row])
			}
		}
	}
	return n
}

// valued adds the relations that have the values of contributions in a further
// column.
func valued(s *oracle.Store) map[string]map[string]int64 {
	out := multiset(s)
	for _, e := range s.Live() {
		name := e.Relation + "@"
		if out[name] == nil {
			out[name] = map[string]int64{}
		}
		out[name][oracle.Key(append(slices.Clone(e.Tuple), e.Value))]++
	}
	return out
}

// TestDeltasValues compares deltas with the outputs of both versions for random
// queries of all acyclic classes: projections, aggregates and semirings.
func TestDeltasValues(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	deltas, withValues := 0, 0
	for seed := range seeds {
		c := randq.New(seed, randq.Size{Queries: 4, AtomsMax: 5, Epochs: 14, Heads: true, Aggregates: seed%2 == 0, Semirings: seed%2 == 1})
		h := &history{lab: newLab(t)}
		for i := range c.Queries {
			p, err := plan.Compile(h.parse(c.Queries[i].Text()))
			if errors.Is(err, errs.ErrUnsupported) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", c.Queries[i].Text(), err)
			}
			h.queries = append(h.queries, h.register(p))
		}
		h.keep()
		rng := rand.New(rand.NewPCG(seed, 3))
		facts := new(oracle.Store)
		state := valued(facts)
		var inside Deltas
		for epoch, batch := range c.Epochs {
			if _, err := facts.Apply(batch.Events, batch.IgnoreMissing); err != nil {
				continue
			}
			next := valued(facts)
			h.change(state, next)
			state = next
			last := h.kept[len(h.kept)-1]
			h.apply(func(q *Query) {
				h.s.deltas(q, &inside)
				what := fmt.Sprintf("seed %d, epoch %d, in the writer", seed, epoch)
				n := h.compareOutputs(what, last.bind(q), h.bind(q), &inside)
				deltas += n
				if len(q.algebras) > 0 {
					withValues += n
				}
			})
			h.keep()
			now := h.kept[len(h.kept)-1]
			for _, m := range h.kept {
				for _, q := range h.queries {
					what := fmt.Sprintf("seed %d, version %d to %d", seed, m.version, now.version)
					h.compareOutputs(what, m.bind(q), now.bind(q), q.Deltas(m.bind(q), now.bind(q)))
					h.compareOutputs(what+", backwards", now.bind(q), m.bind(q), q.Deltas(now.bind(q), m.bind(q)))
				}
			}
			for len(h.kept) > 3 {
				h.drop(rng.IntN(len(h.kept) - 1))
			}
		}
	}
	t.Log(deltas, "deltas,", withValues, "of them with values")
	if withValues < 400 {
		t.Error("the cases are too plain")
	}
}

// TestDeltasStreams compares deltas with those of the machine-readable streams.
func TestDeltasStreams(t *testing.T) {
	streams, err := vectors.Streams("..")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the vectors are not at hand:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		h, q := newHistoryOf(t, s.Text("q"), "")
		for i, e := range s.Epochs {
			h.noteEvents(e.Events)
			h.step()
			old, now := h.kept[0].bind(q), h.kept[1].bind(q)
			got := map[string]string{}
			was, are := old.Values(), now.Values()
			for d := q.Deltas(old, now); d.Next(); {
				var tuple []string
				for _, v := range q.Plan.Query.Head {
					tuple = append(tuple, h.terms[d.Value(v)].String())
				}
				got[oracle.Key(tuple)] = h.annotation(d, d.Old, was) + " > " + h.annotation(d, d.New, are)
			}
			want := map[string]string{}
			for key, d := range e.Deltas {
				want[key] = printed(d.Old) + " > " + printed(d.New)
			}
			if !maps.Equal(got, want) {
				t.Fatalf("%s, epoch %d:\n%v, want\n%v\n%s", s.Text("q"), i, got, want, q.Plan.Explain())
			}
			h.drop(0)
		}
	}
}

// annotation prints the annotation of an answer in a version.
func (h *history) annotation(d *Deltas, multiplicity func() (int64, error), values *Values) string {
	h.t.Helper()
	n, err := multiplicity()
	if err != nil {
		h.t.Fatal(err)
	}
	switch {
	case n == 0:
		return printed(nil)
	case values.Outputs() == 0:
		return printed(&n)
	}
	v, err := values.Read(0, d.Value, n)
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprint(v)
}

// printed prints an annotation, nil where the answer is absent.
func printed(n *int64) string {
	if n == nil {
		return "absent"
	}
	return fmt.Sprint(*n)
}

// TestRefusedAnswers: an epoch that is refused because a kept answer would not fit
// leaves nothing behind by which the next one goes wrong.
func TestRefusedAnswers(t *testing.T) {
	h, q := newHistoryOf(t, "Q(x,v) :- a(x,y), b(y,z), c(z,w), d(w,v).", "")
	if len(q.Plan.Extra) == 0 {
		t.Fatalf("%s keeps no answers", q.Plan.Query.Text)
	}
	tuple := []uint64{h.TermID(term.String("k")), h.TermID(term.String("k"))}
	set := func(rel string, before, after int64) { h.s.Change(h.rels[rel], tuple, before, after) }
	other, err := plan.Compile(h.parse("R(x,y,z) :- e(x,y), f(y,z)."))
	if err != nil {
		t.Fatal(err)
	}
	r := h.register(other)
	h.relation("g", 2)
	for _, rel := range []string{"b", "c", "d"} {
		set(rel, 0, 1<<20)
	}
	h.step("+e k k", "+f k k", "+g k k")
	set("a", 0, 1<<40)
	h.s.Clear(h.rels["e"])
	if err := h.s.Apply(); !errors.Is(err, errs.ErrOverflow) {
		t.Fatalf("got %v, want an overflow", err)
	}
	h.s.Abort()
	h.expect("answers after the refusal", h.answers(q), "")
	set("a", 0, 1)
	h.s.Clear(h.rels["g"])
	h.step()
	h.recomputed(r)
	h.expect("answers of another query", h.answers(r), "k,k,k:1")
	h.expect("answers", h.answers(q), fmt.Sprintf("k,k:%d", int64(1)<<60))
	h.expect("deltas", h.deltas(q, []string{"x", "v"}), fmt.Sprintf("k,k:0>%d", int64(1)<<60))
	h.recomputed(q)
}
