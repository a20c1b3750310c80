package views

import (
	"fmt"
	"math/big"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/trie"
)

// Values reads the outputs of answers: aggregates, or the annotation in a
// semiring. It belongs to one goroutine. The value of a track at an answer is the
// product of its values at the nodes of the tree (Wang and Hu, appendix F), each
// of which is read off the state that the node's relation has for its part of the
// answer. Cost: a probe for each node and track, and what the algebra takes to
// read a value off a state.
type Values struct {
	b             *Bound
	cursor        trie.Cursor
	state         stateReader
	key           []uint64
	product       []uint64
	factor, other []uint64
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
		return average(out, n), nil
	}
	return out, nil
}

// average divides a sum, rounding once where that is exact.
func average(sum any, n int64) float64 {
	switch s := sum.(type) {
	case int64:
		f, _ := new(big.Rat).SetFrac64(s, n).Float64()
		return f
	case float64:
		return s / float64(n)
	}
	return 0
}

// track is the value of a track at an answer.
func (v *Values) track(t int, value func(query.Var) uint64) ([]uint64, error) {
	algebra := v.b.q.algebras[t]
	traits := algebra.Traits()
	free := traits.Idempotent
	ones, any := int64(1), false
	v.product = v.product[:0]
	for i := range v.b.q.nodes {
		n := &v.b.q.nodes[i]
		if n.relation == nil {
			continue
		}
		if n.relation.track(t) == nil {
			if free {
				continue
			}
			var ok bool
			if ones, ok = mulOnes(ones, v.weight(i, value), traits); !ok {
				return nil, fmt.Errorf("%w: the number of ones in a value of %s", errs.ErrOverflow, algebra.Name())
			}
			continue
		}
		var err error
		if v.factor, err = v.valueAt(v.factor[:0], n, t, value); err != nil {
			return nil, err
		}
		if !any {
			v.product, any = append(v.product, v.factor...), true
			continue
		}
		if v.other, err = algebra.Mul(v.other[:0], v.product, v.factor); err != nil {
			return nil, err
		}
		v.product, v.other = v.other, v.product
	}
	if !any {
		v.product = algebra.One(v.product)
	}
	if ones == 1 || free {
		return v.product, nil
	}
	var err error
	v.other, err = algebra.Times(v.other[:0], v.product, ones)
	v.product, v.other = v.other, v.product
	return v.product, err
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
	v.cursor.Seek(v.b.space, v.b.roots[tr.slot], len(n.vars)+stateColumns, v.key)
	v.state = stateReader{&v.cursor, len(n.vars)}
	return tr.algebra.Collect(dst, &v.state)
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
