package summary_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/summary"
)

// rivals are queries of which summaries are held against all answers, and against
// queries that the store aggregates itself, where they are the same.
var rivals = []struct {
	query string
	of    string // the column that is aggregated
	opts  summary.Options
	same  string // of the store, "" if no query says it
}{
	{"q(x, a, t) :- R(x, a, t).", "a", summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a")},
		"s(x, count(), sum(a), avg(a), min(a), max(a)) :- R(x, a, t)."},
	{"q(x, a, t) :- R(x, a, t) window 7s.", "a", summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a")},
		"s(x, count(), sum(a), avg(a), min(a), max(a)) :- R(x, a, t) window 7s."},
	{"q(x, a, y, b) :- R(x, a, t), R(y, b, u), S(x, y) window 9s.", "b", summary.Options{GroupBy: []string{"y", "x"}, Aggregates: everything("b")},
		"s(y, x, count(), sum(b), avg(b), min(b), max(b)) :- R(x, a, t), R(y, b, u), S(x, y) window 9s."},
	{"q(x, a) :- R(x, a, t), S(x, y).", "a", summary.Options{Aggregates: everything("a"), Distinct: true}, ""},
	{"q(x, a, t) :- R(x, a, t).", "a", summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a"), Times: []string{"t"}, Range: 6 * time.Second}, ""},
	{"q(x, a, t, y, u) :- R(x, a, t), S(x, y), R(y, b, u).", "a", summary.Options{GroupBy: []string{"y"}, Aggregates: everything("a"), Times: []string{"t", "u"}, Range: 8 * time.Second}, ""},
	{"q(x, a, t) :- R(x, a, t), S(x, y) window 12s.", "x", summary.Options{GroupBy: []string{"a"}, Aggregates: everything("x"), Times: []string{"t"}, Range: 5 * time.Second}, ""},
	{"q(x, sum(a), max(t)) :- R(x, a, t).", "sum(a)", summary.Options{GroupBy: []string{"max(t)"}, Aggregates: everything("sum(a)")}, ""},
}

// brute aggregates the answers of a snapshot anew, in its own way: all terms of a
// group are collected, sorted and added as rationals.
func brute(s *triegs.Snapshot, columns []string, of string, opts summary.Options, bag bool, now time.Time) (string, error) {
	type pile struct {
		group []triegs.Term
		terms []triegs.Term
	}
	piles := map[string]*pile{}
	index := func(name string) int { return slices.Index(columns, name) }
	for r, err := range s.Answers("q") {
		if err != nil {
			return "", err
		}
		gone := false
		for _, c := range opts.Times {
			t, _ := r.Term(index(c)).AsTime()
			gone = gone || !t.Add(opts.Range).After(now)
		}
		if gone {
			continue
		}
		var group []triegs.Term
		for _, c := range opts.GroupBy {
			group = append(group, r.Term(index(c)))
		}
		p := piles[fmt.Sprint(group)]
		if p == nil {
			p = &pile{group: group}
			piles[fmt.Sprint(group)] = p
		}
		n := int64(1)
		if bag && !opts.Distinct {
			n = r.Multiplicity()
		}
		p.terms = append(p.terms, slices.Repeat([]triegs.Term{r.Term(index(of))}, int(n))...)
	}
	var lines []string
	for _, p := range piles {
		lines = append(lines, line(p.group, aggregated(p.terms)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; "), nil
}

// aggregated is everything() of small numbers, one way to write each.
func aggregated(terms []triegs.Term) []any {
	exact := func(t triegs.Term) *big.Rat {
		if i, ok := t.AsInt(); ok {
			return new(big.Rat).SetInt64(i)
		}
		f, _ := t.AsFloat()
		return new(big.Rat).SetFloat64(f)
	}
	// An integer comes before the float that it equals.
	slices.SortFunc(terms, func(a, b triegs.Term) int {
		return cmp.Or(exact(a).Cmp(exact(b)), cmp.Compare(a.Kind(), b.Kind()))
	})
	total, float := new(big.Rat), false
	for _, t := range terms {
		total.Add(total, exact(t))
		float = float || t.Kind() == triegs.KindFloat
	}
	n := int64(len(terms))
	var sum any = total.Num().Int64()
	mean, _ := new(big.Rat).Quo(total, new(big.Rat).SetInt64(n)).Float64()
	if float {
		f, _ := total.Float64()
		sum, mean = f, f/float64(n)
	}
	return []any{n, sum, mean, terms[0], terms[n-1]}
}

// aggregatedByStore prints what the store says of the same groups.
func aggregatedByStore(s *triegs.Snapshot, width int) (string, error) {
	var lines []string
	for r, err := range s.Answers("s") {
		if err != nil {
			return "", err
		}
		var group []triegs.Term
		for i := range width {
			group = append(group, r.Term(i))
		}
		var values []any
		for i := range 5 {
			values = append(values, r.Value(i))
		}
		lines = append(lines, line(group, values))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; "), nil
}

// randomEvents draws insertions and retractions; what is retracted may be missing.
func randomEvents(rng *rand.Rand, now int64) (out []triegs.Event) {
	for range rng.IntN(8) {
		x := triegs.Int(rng.Int64N(3))
		e := triegs.Edge("S", x, triegs.Int(rng.Int64N(3)))
		if rng.IntN(3) > 0 {
			a := triegs.Int(rng.Int64N(7) - 3)
			if rng.IntN(3) == 0 {
				a = triegs.Float(float64(rng.IntN(30)-15) / 10)
			}
			at := now + rng.Int64N(13) - 10
			e = triegs.Event{Relation: "R", Tuple: []triegs.Term{x, a, triegs.Time(second(at))}, Time: second(at)}
		} else {
			e.Time = second(now - rng.Int64N(4))
		}
		if rng.IntN(4) == 0 {
			e.Op, e.Time = triegs.Delete, time.Time{}
		}
		out = append(out, slices.Repeat([]triegs.Event{e}, 1+rng.IntN(2))...)
	}
	return out
}

// book is a copy of a summary, kept up by what it says has changed.
type book map[string]string

func (b book) take(s *summary.Summary) error {
	for c := range s.Changed() {
		key := line(c.Group, nil)
		old := said(c.Old)
		if was, ok := b[key]; ok != (c.Old != nil) || ok && was != old {
			return fmt.Errorf("%s was %q, the change says %q", key, was, old)
		}
		if b[key] = said(c.New); c.New == nil {
			delete(b, key)
		}
		if c.Old != nil && old == said(c.New) {
			return fmt.Errorf("%s stays at %q", key, old)
		}
	}
	want := book{}
	for g, v := range s.Groups() {
		want[line(g, nil)] = said(v)
	}
	if fmt.Sprint(b) != fmt.Sprint(want) {
		return fmt.Errorf("the changes amount to %v, want %v", b, want)
	}
	return nil
}

// round plays one stream against one query: updates of single epochs or of several,
// and Advance between them.
func round(t *testing.T, seed uint64) (checks int) {
	rng := rand.New(rand.NewPCG(seed, 5))
	c := rivals[rng.IntN(len(rivals))]
	each := rng.IntN(2) == 0
	d := newDesk(t, c.query, c.opts, triegs.SubscribeOptions{PerEpoch: each, Quiet: rng.IntN(2) == 0})
	if c.same != "" {
		if _, err := d.db.Register(t.Context(), "s", c.same); err != nil {
			t.Fatal(err)
		}
	}
	q, err := d.db.Query("q")
	if err != nil {
		t.Fatal(err)
	}
	copied, now := book{}, int64(20)
	follow := func(u *triegs.Update, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s := u.Snapshot()
		if err := errors.Join(d.sum.Apply(u), copied.take(d.sum)); err != nil {
			t.Fatal(err)
		}
		checks++
		compareWith(t, d.sum, func() (string, error) { return brute(s, q.Columns(), c.of, c.opts, q.Aggregates() == 0, d.sum.Time()) })
		if c.same != "" {
			if _, err := s.Lookup("s"); !errors.Is(err, triegs.ErrNoSuchQuery) { // it came an epoch later
				compareWith(t, d.sum, func() (string, error) { return aggregatedByStore(s, len(c.opts.GroupBy)) })
			}
		}
	}
	wait := 0
	for range 30 {
		now += rng.Int64N(4)
		if _, err := d.db.Append(t.Context(), triegs.Batch{Time: second(now), Events: randomEvents(rng, now), IgnoreMissing: true}); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(6) == 0 && len(c.opts.Times) > 0 {
			if err := errors.Join(d.sum.Advance(second(now+rng.Int64N(3))), copied.take(d.sum)); err != nil {
				t.Fatal(err)
			}
		}
		if wait++; rng.IntN(3) > 0 {
			continue
		}
		drain(d, follow)
		wait = 0
	}
	return checks
}

// drain takes the updates up to the newest epoch.
func drain(d *desk, use func(*triegs.Update, error)) {
	d.Helper()
	s, err := d.db.Snapshot()
	if err != nil {
		d.Fatal(err)
	}
	goal := s.Epoch()
	_ = s.Close() // always nil
	// A quiet subscription leaves out what changes nothing: this changes something,
	// and nothing that leaves a window can make up for it.
	mark := fmt.Sprintf("+R(%[1]d,9,@%[1]d) +S(%[1]d,%[1]d)", goal+100)
	if _, err := d.db.Append(d.Context(), triegs.Batch{Time: s.Time(), Events: events(mark)}); err != nil {
		d.Fatal(err)
	}
	for u, err := range d.sub.Updates() {
		use(u, err)
		if u.Epoch > goal {
			return
		}
	}
}

// compareWith holds a summary against what it should be, as sorted lines.
func compareWith(t *testing.T, s *summary.Summary, model func() (string, error)) {
	t.Helper()
	want, err := model()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for g, v := range s.Groups() {
		lines = append(lines, line(g, v))
	}
	slices.Sort(lines)
	if got := strings.Join(lines, "; "); got != want {
		t.Fatalf("at epoch %d and %v:\n got %s\nwant %s", s.Epoch(), s.Time(), got, want)
	}
}

// Summaries of random streams are what all answers at the epoch and the time give,
// and what the store aggregates, after every update, of one epoch or of several; and
// what they say has changed adds up to them.
func TestRandom(t *testing.T) {
	t.Parallel()
	rounds, checks := 60, 0
	if os.Getenv("TRIEGS_FULL") != "" {
		rounds = 3000
	}
	for seed := range uint64(rounds) {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { checks += round(t, seed) }) {
			return
		}
	}
	t.Logf("%d streams, %d comparisons", rounds, checks)
	if checks < 5*rounds {
		t.Errorf("only %d comparisons in %d streams", checks, rounds)
	}
}
