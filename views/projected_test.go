package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/trie"
)

// contents prints a relation with what its first track holds, sorted: each tuple
// with its support and its value.
func (l *lab) contents(r *Relation) string {
	l.t.Helper()
	var lines []string
	var c trie.Cursor
	x := r.indexes[0]
	tuple := make([]uint64, r.arity)
	for c.Seek(l.s.arena.Space(), l.s.roots[x.slot], r.arity, nil); c.Next(); {
		for i, col := range x.cols {
			tuple[col] = c.Col(i)
		}
		value, err := l.s.collect(nil, r, 0, tuple, false)
		if err != nil {
			l.t.Fatal(err)
		}
		var cols []string
		for _, id := range tuple {
			cols = append(cols, l.terms[id].Lexical())
		}
		lines = append(lines, fmt.Sprintf("%s:(%d,%v)", strings.Join(cols, ","), c.Weight(), r.tracks[0].algebra.Export(value)))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// part finds the derived relation of a cluster or alias of the tree, and those it
// is made of.
func (l *lab) part(q *Query, holds func(plan.Node) bool) *derived {
	l.t.Helper()
	i := slices.IndexFunc(q.Plan.Nodes, holds)
	for _, d := range l.s.derived {
		if i >= 0 && &d.Relation == q.nodes[i].relation {
			return d
		}
	}
	l.t.Fatalf("no such part of %s", q.Plan.Tree())
	return nil
}

// operandOf finds the operand of a derived relation that does not hold all columns
// of the join.
func (l *lab) operandOf(d *derived) *Relation {
	l.t.Helper()
	for i := range d.operands {
		if d.operands[i].wake != nil {
			return d.operands[i].relation
		}
	}
	l.t.Fatalf("a join of %d relations that all hold all of it", len(d.operands))
	return nil
}

// contributions reads "+R a b =2" as events of contributions with values.
func contributions(t *testing.T, updates ...string) (out []oracle.Event) {
	t.Helper()
	for _, u := range updates {
		f := strings.Fields(u[1:])
		e := oracle.Event{Delete: u[0] == '-', Relation: f[0]}
		for _, w := range f[1:] {
			if value, is := strings.CutPrefix(w, "="); is {
				n := int64(0)
				if _, err := fmt.Sscan(value, &n); err != nil {
					t.Fatal(err)
				}
				e.Value = term.Int(n).String()
				continue
			}
			e.Tuple = append(e.Tuple, term.String(w).String())
		}
		out = append(out, e)
	}
	return out
}

// TestTV2Projection is test vector TV2: example F.3 of Wang and Hu, a projection
// with a cluster below an output node, with the contents of all views, over the
// integers and over max-plus.
func TestTV2Projection(t *testing.T) {
	load := []string{"+R1 a1 b1 =2", "+R2 b1 c1 =3", "+R2 b1 c2 =5", "+R3 c1 d1 =7", "+R3 c2 d2 =11", "+R4 d1 e1 =13", "+R4 d2 e2 =17"}
	type step struct {
		updates                 []string
		r1, r2, r3, r4, answers string
		maxplus                 string
	}
	const (
		both = "c1,d1:(1,7) c2,d2:(1,11)"
		four = "d1:(1,13) d2:(1,17)"
	)
	steps := []step{
		{load, "b1:(1,2)", "c1:(1,6) c2:(1,10)", both, four, "c1,d1=546 c2,d2=1870", "c1,d1=25 c2,d2=35"},
		{[]string{"+R1 a2 b1 =19"}, "b1:(2,21)", "c1:(1,63) c2:(1,105)", both, four, "c1,d1=5733 c2,d2=19635", "c1,d1=42 c2,d2=52"},
		{[]string{"-R1 a1 b1 =2"}, "b1:(1,19)", "c1:(1,57) c2:(1,95)", both, four, "c1,d1=5187 c2,d2=17765", "c1,d1=42 c2,d2=52"},
		{[]string{"+R4 d1 e3 =23"}, "b1:(1,19)", "c1:(1,57) c2:(1,95)", both, "d1:(2,36) d2:(1,17)", "c1,d1=14364 c2,d2=17765", "c1,d1=52 c2,d2=52"},
		{[]string{"-R4 d2 e2 =17"}, "b1:(1,19)", "c1:(1,57) c2:(1,95)", both, "d1:(2,36)", "c1,d1=14364", "c1,d1=52"},
		{[]string{"-R1 a2 b1 =19"}, "", "", both, "d1:(2,36)", "", ""},
	}
	// The tree has a node [x3] above R3 and the cluster, where the vector has R3 at
	// the top: the tuples of R3 with a partner in R4, and the x3 of answers.
	const two = "c1,d1:1 c2,d2:1"
	live := []string{two, two, two, two, "c1,d1:1", "c1,d1:1"}
	top := []string{"c1:1 c2:1", "c1:1 c2:1", "c1:1 c2:1", "c1:1 c2:1", "c1:1", ""}
	for _, semiring := range []string{"int", "maxplus"} {
		l := newLab(t)
		p, err := plan.Compile(l.parse(`q(x3, x4) :- R1(x1, x2)@, R2(x2, x3)@, R3(x3, x4)@, R4(x4, x5)@ semiring ` + semiring + `.`))
		if err != nil {
			t.Fatal(err)
		}
		l.expect("tree", p.Tree(), "[x3] → R3 → R4, {R1, R2}(x3)")
		q := l.register(p)
		alias := func(name string) *derived {
			return l.part(q, func(n plan.Node) bool { return n.Alias >= 0 && p.AliasName(n.Alias) == name })
		}
		cluster := l.part(q, func(n plan.Node) bool { return n.Cluster >= 0 })
		for i, s := range steps {
			woken := l.s.Woken
			if err := l.feed(contributions(t, s.updates...)); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%s, step %d: ", semiring, i)
			if semiring == "maxplus" {
				l.expect(what+"answers", l.valued(q), s.maxplus)
				l.recomputed(q)
				continue
			}
			l.expect(what+"V_p(R1)", l.contents(l.operandOf(cluster)), s.r1)
			l.expect(what+"V_o(R2)", l.contents(&cluster.Relation), s.r2)
			l.expect(what+"R3", l.contents(&alias("R3").Relation), s.r3)
			l.expect(what+"V_s(R3)", l.view(q, "R3"), live[i])
			l.expect(what+"V_s([x3])", l.view(q, "[x3]"), top[i])
			l.expect(what+"V_o(R4)", l.contents(&alias("R4").Relation), s.r4)
			l.expect(what+"answers", l.valued(q), s.answers)
			if i == 3 && l.s.Woken != woken { // another value of a leaf of the output wakes nobody
				t.Errorf("%s%d tuples woken", what, l.s.Woken-woken)
			}
			l.recomputed(q)
		}
	}
}

// valued prints all answers with their value, sorted.
func (l *lab) valued(q *Query) string {
	l.t.Helper()
	b := l.bind(q)
	values, a := b.Values(), b.Answers()
	var lines []string
	for a.Next() {
		var cols []string
		for _, v := range q.Plan.Query.Head {
			cols = append(cols, l.terms[a.Value(v)].Lexical())
		}
		v, err := values.Read(0, a.Value, 1)
		if err != nil {
			l.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s=%v", strings.Join(cols, ","), v))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// TestTV4Projected is test vector TV4 under projections, where counts and values
// go through the batches that break a work queue as well.
func TestTV4Projected(t *testing.T) {
	for _, text := range []string{
		`q(z) :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).`,
		`q(y) :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).`,
		`q() :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).`,
		`q(x, y) :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).`, // not free-connex
		`q(z, min(x)) :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).`,
	} {
		l := newLab(t)
		p, err := plan.Compile(l.parse(text))
		if err != nil {
			t.Fatal(err)
		}
		q := l.register(p)
		l.epoch("+hasCreator a x", "+hasCreator b y", "+hasReply a b", "+likedBy b w")
		if l.answers(q) == "" {
			t.Fatalf("%s: no answer", text)
		}
		l.epoch("-hasCreator a x", "-likedBy b w")
		l.expect(text, l.answers(q), "")
		l.recomputed(q)

		l.epoch("+hasCreator m u", "+hasReply m m", "+likedBy m w")
		if l.answers(q) == "" {
			t.Fatalf("%s: no answer of a loop", text)
		}
		l.recomputed(q)
		l.epoch("-hasCreator m u")
		l.expect(text, l.answers(q), "")
		l.recomputed(q)
	}
}
