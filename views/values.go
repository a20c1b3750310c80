package views

import (
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/semiring"
)

// Values reads the outputs of answers: aggregates, or the annotation in a
// semiring. It belongs to one goroutine. The value of a track at an answer is the
// product of its values at the nodes of the tree (Wang and Hu, appendix F), each
// of which is read off the state that the node's relation has for its part of the
// answer. Cost: a probe for each node and track, and what the algebra takes to
// read a value off a state.
type Values struct {
	b       *Bound
	read    valueReader
	key     []uint64
	product valueProduct
	factor  []uint64
}

// Values starts reading.
func (b *Bound) Values() *Values { return &Values{b: b} }

// Outputs is the number of values of an answer, 0 where it has a multiplicity
// only.
func (v *Values) Outputs() int { return len(v.b.q.Plan.Payload.Outputs) }

// Read returns output i of the answer in which each variable has the id that value
// gives, and whose multiplicity is n: int64, float64, string, term.Term, or a slice
// of those. A value that does not fit is ErrOverflow.
func (v *Values) Read(i int, value func(query.Var) uint64, n int64) (any, error) {
	o := v.b.q.Plan.Payload.Outputs[i]
	if o.Track < 0 {
		return n, nil
	}
	words, err := v.track(o.Track, value)
	if err != nil {
		return nil, err
	}
	out := v.b.q.algebras[o.Track].Export(words)
	if o.Average {
		return semiring.Average(out, n), nil
	}
	return out, nil
}

// track is the value of a track at an answer.
func (v *Values) track(t int, value func(query.Var) uint64) ([]uint64, error) {
	p := &v.product
	p.start(v.b.q.algebras[t], v.b.q.algebras[t].Traits())
	for i := range v.b.q.nodes {
		n := &v.b.q.nodes[i]
		var err error
		switch {
		case n.relation == nil:
		case n.relation.track(t) != nil:
			if v.factor, err = v.valueAt(v.factor[:0], n, t, value); err == nil {
				err = p.times(v.factor)
			}
		case !p.traits.Idempotent:
			err = p.ones(v.weight(i, value))
		}
		if err != nil {
			return nil, err
		}
	}
	return p.end()
}

// weight is what the node's part of the answer weighs.
func (v *Values) weight(i int, value func(query.Var) uint64) int64 {
	n := &v.b.q.nodes[i]
	if n.unit {
		return 1
	}
	v.key = n.appendKey(v.key[:0], value)
	return v.b.nodes[i].space.Get(v.b.nodes[i].root, v.key)
}

// valueAt appends the value of a track at the node's part of the answer.
func (v *Values) valueAt(dst []uint64, n *node, t int, value func(query.Var) uint64) ([]uint64, error) {
	v.key = v.key[:0]
	for _, x := range n.vars {
		v.key = append(v.key, value(x))
	}
	tr := n.relation.tracks[t]
	return v.read.value(dst, v.b.space, v.b.roots[tr.slot], tr, v.key)
}

// appendKey appends the tuple of the node's trie that belongs to an answer.
func (n *node) appendKey(dst []uint64, value func(query.Var) uint64) []uint64 {
	dst = append(dst, n.lead...)
	for _, v := range n.key {
		dst = append(dst, value(v))
	}
	for _, v := range n.rest {
		dst = append(dst, value(v))
	}
	return dst
}
