package views

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/mvcc"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/trie"
)

// moment is a version that stays pinned.
type moment struct {
	version mvcc.Version
	space   trie.Space
	roots   []uint64
}

// history is a lab with some of its versions.
type history struct {
	*lab
	queries []*Query
	kept    []moment
}

// keep ends the version under construction and pins it.
func (h *history) keep() {
	roots, space := h.s.Copy(nil)
	v := h.s.arena.Version()
	h.s.Seal()
	h.kept = append(h.kept, moment{v, space, roots})
	h.collect(v)
}

func (h *history) collect(published mvcc.Version) {
	var pinned []mvcc.Version
	for _, m := range h.kept {
		pinned = append(pinned, m.version)
	}
	h.s.Collect(published, pinned)
}

// drop unpins a version.
func (h *history) drop(i int) {
	h.kept = slices.Delete(h.kept, i, i+1)
	h.collect(h.s.arena.Version() - 1)
}

func (m *moment) bind(q *Query) *Bound { return q.Bind(m.space, m.roots) }

// apply is Store.Apply that shows the deltas of all queries before it forgets
// what has changed.
func (h *history) apply(show func(q *Query)) {
	h.t.Helper()
	h.s.begin()
	if err := h.s.bringUp(); err != nil {
		h.t.Fatal(err)
	}
	for _, q := range h.queries {
		show(q)
	}
	h.s.settle()
}

// rowsOf lists answers: the values of all variables, and the multiplicity.
func rowsOf(b *Bound) map[string]int64 {
	out := map[string]int64{}
	for a := b.Answers(); a.Next(); {
		n, err := a.Multiplicity()
		if err != nil {
			n = -1
		}
		out[fmt.Sprint(a.binding)] = n
	}
	return out
}

// tally is what a walk over deltas has cost.
type tally struct{ steps, deadEnds, skips, deltas int }

// checkDeltas compares the deltas between two versions with their answers, and
// their cost with that of the answers that were touched.
func (h *history) checkDeltas(what string, old, now *Bound, d *Deltas) (t tally) {
	h.t.Helper()
	before, after := rowsOf(old), rowsOf(now)
	fail := func(format string, args ...any) {
		h.t.Helper()
		h.t.Fatalf("%s: %s\nover %s: %s\nbefore %v\nafter %v", what, now.q.Plan.Query.Text, now.q.Plan.Tree(),
			fmt.Sprintf(format, args...), before, after)
	}
	seen := map[string]bool{}
	d.Patience = len(before) % 3 // which changes nothing but how often Next is called
	for d.Next() || d.Paused {
		if d.Paused {
			continue
		}
		row := fmt.Sprint(d.binding)
		if seen[row] {
			fail("%s comes twice", row)
		}
		seen[row] = true
		x, errX := d.Old()
		y, errY := d.New()
		if errX != nil {
			x = -1
		}
		if errY != nil {
			y = -1
		}
		if x != before[row] || y != after[row] {
			fail("%s goes from %d to %d, want %d to %d", row, x, y, before[row], after[row])
		}
		if x == y && x >= 0 {
			fail("%s stays at %d", row, x)
		}
	}
	if d.Next() || d.Paused {
		fail("there are more behind the end")
	}
	for row, n := range before {
		if !seen[row] && after[row] != n {
			fail("%s is missing, from %d to %d", row, n, after[row])
		}
	}
	for row, n := range after {
		if !seen[row] && before[row] != n {
			fail("%s is missing, from %d to %d", row, before[row], n)
		}
	}
	touched, seeds := touchedBy(old, now)
	if k := len(now.nodes); d.Steps > seeds+k*k*touched+d.DeadEnds+d.skips {
		fail("%d steps for %d changes, %d answers touched, %d dead ends and %d skipped tuples", d.Steps, seeds, touched, d.DeadEnds, d.skips)
	}
	return tally{d.Steps, d.DeadEnds, d.skips, len(seen)}
}

// touchedBy counts the answers of the later version with a tuple that differs, and
// those of the earlier one with a tuple that is gone, and all tuples that differ.
func touchedBy(old, now *Bound) (answers, changes int) {
	differs := func(i int, a *Answers, whole bool) bool {
		n := &now.q.nodes[i]
		key := n.appendKey(nil, a.Value)
		x, y := n.count(old.nodes[i].space.Get(old.nodes[i].root, key)), n.count(now.nodes[i].space.Get(now.nodes[i].root, key))
		return x != y && (!whole || y == 0)
	}
	for pass, b := range []*Bound{now, old} {
		for a := b.Answers(); a.Next(); {
			for i := range b.nodes {
				if differs(i, a, pass == 1) {
					answers++
					break
				}
			}
		}
	}
	for i := range now.nodes {
		x, y := old.nodes[i], now.nodes[i]
		trie.Diff(x.space, x.root, y.space, y.root, now.q.nodes[i].columns, func([]uint64, int64, int64) bool {
			changes++
			return true
		})
	}
	return answers, changes
}

// newHistory registers the queries of a case.
func newHistory(t *testing.T, c *randq.Case) *history {
	h := &history{lab: newLab(t)}
	for i := range c.Queries {
		p, err := plan.Compile(h.parse(c.Queries[i].Text()))
		if err != nil {
			t.Fatalf("%s: %v", c.Queries[i].Text(), err)
		}
		h.queries = append(h.queries, h.register(p))
	}
	h.keep()
	return h
}

// multiset counts the live contributions to each fact.
func multiset(s *oracle.Store) map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	for _, e := range s.Live() {
		if out[e.Relation] == nil {
			out[e.Relation] = map[string]int64{}
		}
		out[e.Relation][oracle.Key(e.Tuple)]++
	}
	return out
}

// change notes what takes the relations from one state to the next.
func (h *history) change(before, after map[string]map[string]int64) {
	h.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(h.rels)) {
		rows := map[string]bool{}
		for key := range before[name] {
			rows[key] = true
		}
		for key := range after[name] {
			rows[key] = true
		}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if x, y := before[name][key], after[name][key]; x != y {
				var tuple []uint64
				for _, text := range strings.Split(key, "\t") {
					if text == "" {
						tuple = append(tuple, 0) // a contribution without a value
						continue
					}
					v, err := term.Parse(text)
					if err != nil {
						h.t.Fatal(err)
					}
					tuple = append(tuple, h.TermID(v))
				}
				h.s.Change(h.rels[name], tuple, x, y)
			}
		}
	}
}

// TestDeltasRandom compares deltas with the answers of both versions for random
// queries and streams: between neighbours, as the writer sees them and as a reader
// does, and between versions that are far apart, in both directions of time.
func TestDeltasRandom(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 60
	}
	var sum tally
	for seed := range seeds {
		c := randq.New(seed, randq.Size{Queries: 3, AtomsMax: 6, Epochs: 12})
		h := newHistory(t, &c)
		rng := rand.New(rand.NewPCG(seed, 3))
		facts := new(oracle.Store)
		state := multiset(facts)
		var inside Deltas
		add := func(t tally) {
			sum.steps += t.steps
			sum.deadEnds += t.deadEnds
			sum.skips += t.skips
			sum.deltas += t.deltas
		}
		for epoch, batch := range c.Epochs {
			if _, err := facts.Apply(batch.Events, batch.IgnoreMissing); err != nil {
				continue
			}
			next := multiset(facts)
			h.change(state, next)
			state = next
			last := h.kept[len(h.kept)-1]
			h.apply(func(q *Query) {
				h.s.deltas(q, &inside)
				what := fmt.Sprintf("seed %d, epoch %d, in the writer", seed, epoch)
				add(h.checkDeltas(what, last.bind(q), h.bind(q), &inside))
			})
			h.keep()
			now := h.kept[len(h.kept)-1]
			for _, m := range h.kept {
				for _, q := range h.queries {
					what := fmt.Sprintf("seed %d, version %d to %d", seed, m.version, now.version)
					add(h.checkDeltas(what, m.bind(q), now.bind(q), q.Deltas(m.bind(q), now.bind(q))))
					if rng.IntN(4) == 0 {
						h.checkDeltas(what+", backwards", now.bind(q), m.bind(q), q.Deltas(now.bind(q), m.bind(q)))
					}
				}
			}
			for len(h.kept) > 4 {
				h.drop(rng.IntN(len(h.kept) - 1))
			}
		}
	}
	if sum.deltas < 10_000 || sum.deadEnds < 100 || sum.skips < 100 {
		t.Fatalf("only %+v: the cases are too plain", sum)
	}
	t.Logf("%+v", sum)
}

// deltas prints the deltas of the last version, in the order of the head, sorted.
func (h *history) deltas(q *Query, head []string) string {
	var lines []string
	n := len(h.kept)
	for d := q.Deltas(h.kept[n-2].bind(q), h.kept[n-1].bind(q)); d.Next(); {
		var cols []string
		for _, name := range head {
			v := query.Var(slices.Index(q.Plan.Query.Vars, name))
			cols = append(cols, h.terms[d.Value(v)].Lexical())
		}
		x, errX := d.Old()
		y, errY := d.New()
		if errX != nil || errY != nil {
			h.t.Fatal(errX, errY)
		}
		lines = append(lines, fmt.Sprintf("%s:%d>%d", strings.Join(cols, ","), x, y))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// step applies updates as one version that stays pinned.
func (h *history) step(updates ...string) {
	h.t.Helper()
	h.note(updates...)
	if err := h.s.Apply(); err != nil {
		h.t.Fatal(err)
	}
	h.keep()
}

func newHistoryOf(t *testing.T, text, tree string) (*history, *Query) {
	t.Helper()
	h := &history{lab: newLab(t)}
	p, err := plan.Compile(h.parse(text))
	if tree != "" {
		p, err = plan.CompileWithTree(h.parse(text), tree)
	}
	if err != nil {
		t.Fatal(err)
	}
	q := h.register(p)
	h.queries = []*Query{q}
	h.keep()
	return h, q
}

// TestTV1Deltas are the deltas of test vector TV1, over both of its plans.
func TestTV1Deltas(t *testing.T) {
	for _, tree := range []string{"", "[z] -> hasReply -> hasCreator#1, hasCreator#2 -> likedBy"} {
		h, q := newHistoryOf(t, running, tree)
		head := []string{"x", "y", "v", "z", "w"}
		h.step("+hasCreator t1 Max", "+hasCreator t2 Eva", "+hasReply t1 t2", "+hasReply t1 t2")
		h.expect("t0", h.deltas(q, head), "")
		h.step("+likedBy t2 Mia")
		h.expect("t1", h.deltas(q, head), "Max,Eva,t1,t2,Mia:0>2")
		h.step("-hasReply t1 t2")
		h.expect("t2", h.deltas(q, head), "Max,Eva,t1,t2,Mia:2>1")
		h.step("-hasReply t1 t2")
		h.expect("t3", h.deltas(q, head), "Max,Eva,t1,t2,Mia:1>0")
	}
}

// TestTV3Deltas are the deltas of test vector TV3; a full answer has x5 behind the
// four columns of the vector, a partner of x4 that exists once for each.
func TestTV3Deltas(t *testing.T) {
	h, q := newHistoryOf(t, `ans(x1, x2, x3, x4, x5) :- R1(x1, x2), R2(x2, x3), R3(x3, x4), R4(x4, x5).`,
		"[x3] -> R2 -> R1, R3 -> R4")
	head := []string{"x1", "x2", "x3", "x4"}
	var load []string
	for _, line := range []string{"R1 12 22 33", "R2 12 22 43 11 24 14", "R3 11 25 33 12 44", "R4 11 22 33 44"} {
		f := strings.Fields(line)
		for _, pair := range f[1:] {
			load = append(load, fmt.Sprintf("+%s %c %c", f[0], pair[0], pair[1]))
		}
	}
	short := func(s string) string { return strings.NewReplacer(",", "", ":0>1", "+", ":1>0", "-").Replace(s) }
	check := func(step, want string) {
		t.Helper()
		h.expect(step, short(h.deltas(q, head)), want)
	}
	h.step(load...)
	check("a", "1244+ 2244+")
	h.step("+R1 1 1")
	check("b", "1111+ 1112+ 1144+")
	h.step("-R4 1 1")
	check("c", "1111-")
	h.step("+R1 4 1")
	check("d", "4112+ 4144+")
}

// deltaTrees are queries over trees that the planner would not take, so that tuples
// are climbed to through indexes of the relation as well as through the trie of
// the parent.
var deltaTrees = []struct{ text, tree string }{
	{"Q(x,y) :- a(x,y).", ""},
	{"Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w).", "a -> b -> c"},
	{"Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w).", "c -> b -> a"},
	{"Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w) set.", "b -> a, c"},
	{"Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w) distinct.", "a -> b -> c"},
	{"Q(x,y,z,w,v) :- a(x,y), a(y,z), a(z,w), a(w,v).", "a#1 -> a#2 -> a#3 -> a#4"},
	{"Q(x,y,z,w,v) :- a(x,y), b(y,z), a(z,w), c(y,v).", "a#1 -> b -> a#2, c"},
	{"Q(x,y,z,w) :- a(x,y), b(z,w).", ""},
	{"Q(x,y,z,w,v) :- a(x,y), b(y,z), c(w,v).", ""},
	{`Q(x,y,z) :- a(x,y), b(y,"n3"), c(y,z).`, ""},
	{"Q(x,y,z) :- a(x,_), b(x,y), c(y,z), x != y.", ""},
	{"Q(y) :- a(x,y), b(y,z), c(y,w).", ""},
}

// TestDeltasTrees compares deltas with answers while relations change a little, are
// replaced, and are cleared in one go.
func TestDeltasTrees(t *testing.T) {
	for i, tc := range deltaTrees {
		h, q := newHistoryOf(t, tc.text, tc.tree)
		for _, rel := range []string{"a", "b", "c"} {
			h.relation(rel, 2)
		}
		h.keep()
		rng := rand.New(rand.NewPCG(uint64(i), 9))
		var inside Deltas
		deltas := 0
		for epoch := range 30 {
			clear := ""
			if rng.IntN(8) == 0 {
				clear = string("abc"[rng.IntN(3)])
				h.s.Clear(h.rels[clear])
				h.facts[clear] = map[string]int64{}
			}
			var updates []string
			for range 1 + rng.IntN(12) {
				rel := string("abc"[rng.IntN(3)])
				if rel == clear {
					continue
				}
				tuple := fmt.Sprintf("n%d n%d", rng.IntN(5), rng.IntN(5))
				op := "+"
				if h.facts[rel][tuple] > 0 && rng.IntN(2) == 0 && !slices.Contains(updates, "-"+rel+" "+tuple) {
					op = "-"
				}
				updates = append(updates, op+rel+" "+tuple)
			}
			h.note(updates...)
			last := h.kept[len(h.kept)-1]
			h.apply(func(q *Query) {
				h.s.deltas(q, &inside)
				deltas += h.checkDeltas(fmt.Sprintf("epoch %d, in the writer", epoch), last.bind(q), h.bind(q), &inside).deltas
			})
			h.keep()
			now := h.kept[len(h.kept)-1]
			for _, m := range h.kept {
				h.checkDeltas("forwards", m.bind(q), now.bind(q), q.Deltas(m.bind(q), now.bind(q)))
				h.checkDeltas("backwards", now.bind(q), m.bind(q), q.Deltas(now.bind(q), m.bind(q)))
			}
			for len(h.kept) > 4 {
				h.drop(rng.IntN(len(h.kept) - 1))
			}
		}
		if deltas < 20 {
			t.Errorf("%s has %d deltas", tc.text, deltas)
		}
	}
}

// pick draws one element.
func pick(rng *rand.Rand, list []string) string { return list[rng.IntN(len(list))] }

// many makes updates from a pattern with one number in it.
func many(pattern string, n int) (updates []string) {
	for i := range n {
		updates = append(updates, fmt.Sprintf(pattern, i))
	}
	return updates
}

// A walk over answers that are equal in the end, or that a filter keeps out, comes back
// after about as many tuples as its caller has patience for, and a group.
func TestDeltasPatience(t *testing.T) {
	for _, tc := range []struct{ query, tree string }{
		{"Q(x,u,y,v) :- a(x,u), b(y,v).", "a -> b"},
		{"Q(x,u,w,y,v) :- a(x,u), c(w,u), b(y,v).", "a -> c, b"},
		{"Q(x,u,w,t,y,v) :- a(x,u), c(w,t), b(y,v).", "a -> c -> b"},
	} {
		h, q := newHistoryOf(t, tc.query, tc.tree)
		h.step(slices.Concat(many("+a x%d u", 50), many("+c w%d u", 50), many("+b y%d v", 50), many("+b y%d v", 50))...)
		h.step(slices.Concat(many("+a x%d u", 50), many("-b y%d v", 50))...)
		n := len(h.kept)
		for _, filtered := range []bool{false, true} {
			d := q.Deltas(h.kept[n-2].bind(q), h.kept[n-1].bind(q))
			if filtered {
				fixed := make([]uint64, q.vars())
				fixed[q.vars()-1] = 1 << 40
				d.Fix(fixed)
			}
			d.Patience = 10
			pauses, before := 0, 0
			for d.Next() || d.Paused {
				if !d.Paused {
					t.Fatalf("%s: a delta of answers that are equal", tc.query)
				}
				if d.Steps-before > 10+2*50 {
					t.Errorf("%s, filtered %v: %d steps in one go", tc.query, filtered, d.Steps-before)
				}
				pauses, before = pauses+1, d.Steps
			}
			if !filtered && pauses < 20 {
				t.Errorf("%s: %d pauses in %d steps", tc.query, pauses, d.Steps)
			}
		}
	}
}

// TestDeltasCost: what a walk costs follows the answers that differ, not the facts;
// a key without a way up to the root is tried once; and an answer allocates nothing.
func TestDeltasCost(t *testing.T) {
	h, q := newHistoryOf(t, "Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w).", "a -> b -> c")
	run := func(what string, deltas, most int) {
		t.Helper()
		n := len(h.kept)
		d := q.Deltas(h.kept[n-2].bind(q), h.kept[n-1].bind(q))
		got := 0
		for d.Next() {
			got++
		}
		if got != deltas || d.Steps > most {
			t.Errorf("%s: %d deltas in %d steps (%d dead ends), want %d in at most %d", what, got, d.Steps, d.DeadEnds, deltas, most)
		}
	}
	h.step(slices.Concat(many("+b y%d hub", 1000), many("+a x%[1]d v%[1]d", 1000), many("+b v%[1]d z%[1]d", 1000), many("+c z%[1]d w%[1]d", 1000))...)
	h.step("+c z7 new")
	run("one new answer among a thousand", 1, 3)
	h.step("-c z7 new")
	run("it is gone again", 1, 3)
	h.step(many("+c hub w%d", 100)...)
	// Each of a hundred changes leads to a thousand tuples that lead nowhere. The
	// group being new, these have changed as well.
	run("a hub without a way up", 0, 3200)
	h.step(many("+c hub v%d", 100)...)
	run("a hub without a way up that was there", 0, 1200)
	h.step("+a x y7")
	run("the hub has a way up", 200, 202)
	h.step(many("-c hub v%d", 100)...)
	run("half of it is gone", 100, 1500)
	h.step()
	run("nothing has changed", 0, 0)

	h, q = newHistoryOf(t, "Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w).", "b -> a, c")
	h.step(slices.Concat(many("+b hub z%d", 1000), []string{"+a x hub"})...)
	h.step("+a new hub")
	run("a thousand tuples that have no partners in another child", 0, 2)

	h, q = newHistoryOf(t, "Q(x,y,z,w,v) :- a(x,y), b(y,z), c(z,w), d(w,v).", "a -> b -> c -> d")
	load := slices.Concat(many("+b y%d hub0", 1000), many("+b y%d hub1", 1000))
	for i := range 100 {
		load = append(load, fmt.Sprintf("+c hub%d w%d", i%2, i), fmt.Sprintf("+d w%d v", i))
	}
	h.step(load...)
	h.step(many("+d w%d new", 100)...)
	run("two hubs without a way up, by turns", 0, 2400)
}

// TestDeltasLarge compares deltas with answers where groups are subtries, most of
// which two versions have in common.
func TestDeltasLarge(t *testing.T) {
	for i, tc := range deltaTrees {
		if strings.Contains(tc.text, "a(x,y), b(z,w)") || strings.Contains(tc.text, "c(w,v)") {
			continue // products are too large
		}
		h, q := newHistoryOf(t, tc.text, tc.tree)
		rng := rand.New(rand.NewPCG(uint64(i), 11))
		some := func(n int) (updates []string) {
			for range n {
				rel, tuple := string("abc"[rng.IntN(3)]), fmt.Sprintf("n%d n%d", rng.IntN(400), rng.IntN(400))
				if len(updates)%3 > 0 {
					tuple = pick(rng, slices.Sorted(maps.Keys(h.facts[rel])))
				}
				op := "+"
				if h.facts[rel][tuple] > 0 && rng.IntN(3) > 0 && !slices.Contains(updates, "-"+rel+" "+tuple) {
					op = "-"
				}
				updates = append(updates, op+rel+" "+tuple)
			}
			return updates
		}
		for _, rel := range []string{"a", "b", "c"} {
			h.step(many("+"+rel+" n%[1]d n%[1]d", 400)...)
			h.step(many("+"+rel+" n%[1]d n7", 100)...)
		}
		h.step(some(1000)...)
		for range 8 {
			h.step(some(1 + rng.IntN(40))...)
			now := h.kept[len(h.kept)-1]
			for _, m := range h.kept[len(h.kept)-3:] {
				h.checkDeltas("forwards", m.bind(q), now.bind(q), q.Deltas(m.bind(q), now.bind(q)))
				h.checkDeltas("backwards", now.bind(q), m.bind(q), q.Deltas(now.bind(q), m.bind(q)))
			}
		}
	}
}

// TestDeltasAllocate: an answer allocates nothing, and neither does a walk in the
// writer once it has been through one like it.
func TestDeltasAllocate(t *testing.T) {
	h, q := newHistoryOf(t, "Q(x,y,z,w) :- a(x,y), b(y,z), c(z,w).", "b -> a, c")
	h.step(slices.Concat(many("+a x%d y", 300), many("+c z w%d", 300))...)
	h.step("+b y z")
	old, now := h.kept[1].bind(q), h.kept[2].bind(q)
	d := q.Deltas(old, now)
	d.Next()
	if n := testing.AllocsPerRun(1000, func() {
		if !d.Next() {
			t.Fatal("too few answers")
		}
	}); n > 0 {
		t.Errorf("an answer allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10, func() {
		old.Rebind(old.space, old.roots)
		d.Rebind(old, now)
		for range 1000 {
			if !d.Next() {
				t.Fatal("too few answers")
			}
		}
	}); n > 0 {
		t.Errorf("a walk in the memory of another allocates %v times", n)
	}
	h.note("-b y z")
	var inside Deltas
	h.apply(func(q *Query) {
		walk := func() {
			h.s.deltas(q, &inside)
			for range 1000 {
				if !inside.Next() {
					t.Fatal("too few answers")
				}
			}
		}
		walk()
		if n := testing.AllocsPerRun(10, walk); n > 0 {
			t.Errorf("a walk in the writer allocates %v times", n)
		}
	})
}

// TestDeltasRebound: one cursor walks pairs of versions that have nothing to do with each
// other, forth and back, also where more is gone than is kept for the second pass, and
// where it was left in the middle.
func TestDeltasRebound(t *testing.T) {
	h, q := newHistoryOf(t, "Q(x,y,z) :- a(x,y), b(y,z).", "b -> a")
	const n = goneMax/4 + 100
	h.step(slices.Concat(many("+a x%[1]d y%[1]d", n), many("+b y%[1]d z", n))...)
	h.step(many("-a x%[1]d y%[1]d", n)...)
	h.step(slices.Concat(many("+a new%[1]d y%[1]d", 50), many("-b y%[1]d z", 20))...)
	h.step(many("+b y%[1]d more", 30)...)
	d := q.Deltas(h.kept[0].bind(q), h.kept[1].bind(q))
	for i := range h.kept {
		for j := range h.kept {
			old, now := h.kept[i].bind(q), h.kept[j].bind(q)
			d.Rebind(old, now)
			d.Next()
			d.Rebind(old, now)
			h.checkDeltas(fmt.Sprint("from ", i, " to ", j), old, now, d)
		}
	}
}

// TestDeltasOverflow: products that do not fit are compared all the same.
func TestDeltasOverflow(t *testing.T) {
	h, q := newHistoryOf(t, "Q(x,y,z) :- a(x,y), b(y,z).", "")
	a, b := h.relation("a", 2), h.relation("b", 2)
	tuple := []uint64{h.TermID(term.String("k")), h.TermID(term.String("k"))}
	state := [2]int64{}
	for i, tc := range []struct {
		a, b, old, now int64 // old and now of the answer, -1 does not fit
		same           bool
	}{
		{1 << 40, 1 << 10, 0, 1 << 50, false},
		{1 << 40, 1 << 40, 1 << 50, -1, false},
		{1 << 41, 1 << 39, -1, -1, true},
		{1 << 41, 1 << 40, -1, -1, false},
		{3, 1 << 40, -1, 3 << 40, false},
		{1 << 40, 3, 3 << 40, 3 << 40, true},
		{0, 3, 3 << 40, 0, false},
	} {
		h.s.Change(a, tuple, state[0], tc.a)
		h.s.Change(b, tuple, state[1], tc.b)
		state = [2]int64{tc.a, tc.b}
		h.step()
		n := len(h.kept)
		d := q.Deltas(h.kept[n-2].bind(q), h.kept[n-1].bind(q))
		if d.Next() == tc.same {
			t.Fatalf("step %d: there are deltas: %v", i, tc.same)
		}
		if tc.same {
			continue
		}
		for _, end := range []struct {
			read func() (int64, error)
			want int64
		}{{d.Old, tc.old}, {d.New, tc.now}} {
			got, err := end.read()
			if (end.want < 0) != errors.Is(err, errs.ErrOverflow) || end.want >= 0 && (got != end.want || err != nil) {
				t.Fatalf("step %d: %d (%v), want %d", i, got, err, end.want)
			}
		}
		if d.Next() {
			t.Fatalf("step %d: more than one delta", i)
		}
	}
}
