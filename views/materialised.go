package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/semiring"
)

// materialised is what a derived relation has that holds the answers of a query
// that is acyclic and not free-connex: the answers of the least free-connex
// extension of the query, folded over its head. They are kept up from the exact
// deltas of the extension, with the multiplicities as counters (the first paper's
// AnsQ over the second paper's views).
type materialised struct {
	of     *Query // the extension
	head   []query.Var
	walk   Deltas
	stakes []*stake // by node of the extension
	owed   bool     // they may have changed in the version under construction
}

// materialise makes the answers of q, whose nodes are those of the extension so
// far, a relation, and q a query of one node that reads it.
func (c *compiler) materialise() error {
	q, head := c.q, c.p.Query.Head
	q.inner = &Query{Plan: c.p, body: &body{nodes: q.nodes, unit: q.unit, flat: q.flat, algebras: q.algebras}}
	q.nodes = nil
	d := &derived{answers: &materialised{of: q.inner, head: head}, width: len(head), keep: ascending(len(head)), support: !c.p.Payload.Counted}
	d.tracks = c.tracks(func(int) bool { return true })
	d, err := c.share(d)
	if err != nil {
		return err
	}
	if d.answers.stakes == nil {
		c.s.stakeOut(d)
	}
	q.nodes = []node{{view: &view{relation: &d.Relation, unit: q.unit}, parent: -1, vars: head}}
	c.leaf(&q.nodes[0], columnsOf(head))
	return nil
}

// tree are the nodes of the plan.
func (q *Query) tree() []node {
	if q.inner != nil {
		return q.inner.nodes
	}
	return q.nodes
}

// sign describes which answers are kept: the view at the root stands for all views
// below it, so only the places of the head's variables are left to say.
func (m *materialised) sign(b *strings.Builder) {
	fmt.Fprint(b, "answers ", m.of.nodes[0].serial)
	for _, v := range m.head {
		for i := range m.of.nodes {
			n := &m.of.nodes[i]
			if at := slices.Index(slices.Concat(n.key, n.rest), v); at >= 0 {
				fmt.Fprint(b, " ", i, ".", at)
				break
			}
		}
	}
}

// refoldAnswers brings kept answers up to date with the version under construction,
// behind the propagation. stakes are what changes have been dealt out to, by node; nil
// has all changes looked at.
func (s *Store) refoldAnswers(d *derived, stakes []*stake) error {
	if stakes == nil && !slices.ContainsFunc(d.answers.of.nodes, func(n node) bool { return n.relation != nil && n.relation.touched }) {
		return nil
	}
	defer d.work.stop(s, s.start())
	s.startFolding(d, false)
	w := &d.answers.walk
	s.noted(d).stakes = stakes
	before, after := w.old.Values(), w.now.Values()
	value := w.Value
	for w.Next() {
		if !s.goOn() {
			return s.stopped
		}
		old, failed := w.Old()
		now, fails := w.New()
		was, is := old != 0 || failed != nil, now != 0 || fails != nil
		err := cmp.Or(failed, fails)
		if d.support {
			old, now, err = presence(was), presence(is), nil
		}
		if err == nil {
			err = s.foldAnswer(d, value, pair[int64]{old, now}, pair[bool]{was, is}, pair[*Values]{before, after})
		}
		if err != nil {
			return err
		}
	}
	return s.finishFolding(d)
}

func presence(there bool) int64 {
	if there {
		return 1
	}
	return 0
}

// pair is something before and in the version under construction.
type pair[T any] struct{ before, after T }

// foldAnswer replaces what an answer of the extension adds to an answer of the
// query.
func (s *Store) foldAnswer(d *derived, value func(query.Var) uint64, weight pair[int64], there pair[bool], values pair[*Values]) error {
	f := &s.folding
	for i, v := range d.answers.head {
		f.tuple[i] = value(v)
	}
	changed := false
	for i := range d.tracks {
		old, now := f.value[0][:0], f.value[1][:0]
		if there.before {
			words, err := values.before.track(i, value)
			if err != nil {
				return err
			}
			old = append(old, words...)
		}
		if there.after {
			words, err := values.after.track(i, value)
			if err != nil {
				return err
			}
			now = append(now, words...)
		}
		f.value[0], f.value[1] = old, now
		another, err := s.replaceValue(d, i, there.before, there.after)
		if err != nil {
			return err
		}
		changed = changed || another
	}
	change, ok := semiring.Add(weight.after, -weight.before)
	if !ok {
		return d.overflow()
	}
	if change != 0 || changed {
		f.counts.words = append(append(f.counts.words, f.tuple...), uint64(change))
	}
	return nil
}

// fillAnswers gathers the answers of the extension.
func (s *Store) fillAnswers(d *derived) error {
	b := d.answers.of.Bind(s.arena.Space(), s.roots)
	values, a := b.Values(), b.Answers()
	value := a.Value
	for a.Next() && s.goOnFilling() {
		n, err := a.Multiplicity()
		if d.support {
			n, err = 1, nil
		}
		if err == nil {
			err = s.foldAnswer(d, value, pair[int64]{0, n}, pair[bool]{false, true}, pair[*Values]{nil, values})
		}
		if err != nil {
			return fmt.Errorf("%w: a kept answer", err)
		}
	}
	return nil
}

// goOnFilling asks every few thousand answers whether to go on.
func (s *Store) goOnFilling() bool {
	if s.steps++; s.steps&0xfff == 0 && s.stopped == nil {
		s.stopped = s.check()
	}
	return s.stopped == nil
}
