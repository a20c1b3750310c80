package views

import (
	"slices"

	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// route is how a change in one operand of a derived relation without tracks reaches
// the tuples of the join. Where only weights are kept, their change is a sum over
// the operands that have changed: what the operand gained, times what the operands
// before it weigh now and those behind it weighed before. So nothing that is known
// already is looked up, and no tuple of the join needs to be met only once.
type route struct {
	// wake has the tuples of the join that hold a changed tuple, as they are now,
	// or is nil where the changed tuple is that of the join.
	wake   *Index
	keep   []int // where the kept columns stand in the tuple of the join, in its own order
	probes []probe
}

// probe looks up the weight of an operand.
type probe struct {
	index    *Index
	at       []int // where its columns stand, in the order of the index
	before   bool  // as it was before the version under construction
	presence bool  // weights count as 1
}

// route finds the routes of d, if it has only weights.
func (d *derived) route() {
	if d.match != nil || len(d.tracks) > 0 || d.answers != nil {
		return
	}
	d.routes = make([]route, len(d.operands))
	for j := range d.operands {
		op, rt := &d.operands[j], &d.routes[j]
		rt.wake = op.wake
		// The column of the join for each column of the tuple that is met.
		cols := op.cols
		if op.wake != nil {
			cols = make([]int, len(op.wake.cols))
			for i, col := range op.wake.cols {
				cols[i] = d.operands[0].cols[col]
			}
		}
		for _, col := range d.keep {
			rt.keep = append(rt.keep, slices.Index(cols, col))
		}
		for i := range d.operands {
			if other := &d.operands[i]; i != j && (i > 0 || op.wake == nil) {
				p := probe{index: other.index, before: i > j, presence: d.presence(other)}
				for _, col := range other.index.cols {
					p.at = append(p.at, slices.Index(cols, other.cols[col]))
				}
				rt.probes = append(rt.probes, p)
			}
		}
	}
}

// presence reports whether weights of an operand count as 1.
func (d *derived) presence(op *operand) bool { return op.unit || d.support }

// worth is what a weight counts.
func worth(weight int64, presence bool) int64 {
	if presence {
		return min(weight, 1)
	}
	return weight
}

// foldCounts gathers and sorts the changes of the weights of d. It is false if a
// number on the way does not fit: that may be so although all weights do.
func (s *Store) foldCounts(d *derived) bool {
	for j := range d.operands {
		if r := d.operands[j].relation; r.touched && !s.followChanges(d, j, r) {
			return false
		}
	}
	return s.folding.counts.sort()
}

// followChanges follows the changes in operand j.
func (s *Store) followChanges(d *derived, j int, r *Relation) bool {
	presence, rt := d.presence(&d.operands[j]), &d.routes[j]
	for batch := range slices.Chunk(r.changes, warmBatch*(r.arity+2)) {
		s.warmRoute(rt, batch, r.arity)
		for i := 0; i < len(batch); i += r.arity + 2 {
			tuple, before, after := batch[i:i+r.arity], int64(batch[i+r.arity]), int64(batch[i+r.arity+1])
			gain := worth(after, presence) - worth(before, presence)
			switch {
			case !s.goOn():
				return false
			case gain == 0:
			case rt.wake == nil:
				if !s.follow(rt, tuple, gain) {
					return false
				}
			case !s.followWoken(rt, tuple, gain, d.presence(&d.operands[0])):
				return false
			}
		}
	}
	return true
}

// warmRoute fetches side by side what changes are going to look up first.
func (s *Store) warmRoute(rt *route, changes []uint64, arity int) {
	switch {
	case rt.wake != nil:
		space, root := s.at(rt.wake)
		for i := 0; i < len(changes); i += arity + 2 {
			s.warm += space.Warm(root, changes[i:i+arity])
		}
	case len(rt.probes) > 0:
		p := &rt.probes[0]
		space, root := s.atProbe(p)
		for i := 0; i < len(changes); i += arity + 2 {
			s.warm += space.Warm(root, s.probeKey(p, changes[i:i+arity]))
		}
	}
}

// followWoken follows a gain to the tuples of the join with a key.
func (s *Store) followWoken(rt *route, key []uint64, gain int64, presence bool) bool {
	space, root := s.at(rt.wake)
	k := len(rt.wake.cols)
	s.cursor.Seek(space, root, k, key)
	tuple := s.scratch(k)
	for s.cursor.Next() {
		s.Woken++
		s.cursor.Columns(tuple, 0)
		n, ok := semiring.MulSigned(gain, worth(s.cursor.Weight(), presence))
		if !ok || !s.goOn() || !s.follow(rt, tuple, n) {
			return false
		}
	}
	return true
}

// follow adds n times what the other operands weigh to the tuple that is kept of
// one of the join.
func (s *Store) follow(rt *route, tuple []uint64, n int64) (ok bool) {
	for i := range rt.probes {
		p := &rt.probes[i]
		space, root := s.atProbe(p)
		weight := space.Get(root, s.probeKey(p, tuple))
		if weight == 0 {
			return true
		}
		if n, ok = semiring.MulSigned(n, worth(weight, p.presence)); !ok {
			return false
		}
	}
	counts := &s.folding.counts
	from := len(counts.words)
	for _, at := range rt.keep {
		counts.words = append(counts.words, tuple[at])
	}
	counts.words = append(counts.words, uint64(n))
	return counts.mergeLast(from)
}

// atProbe is where a probe looks.
func (s *Store) atProbe(p *probe) (space trie.Space, root uint64) {
	if p.before {
		return s.atBefore(p.index)
	}
	return s.at(p.index)
}

// probeKey is the key that a probe looks up for a tuple, in scratch.
func (s *Store) probeKey(p *probe, tuple []uint64) []uint64 {
	key := s.key[:0]
	for _, at := range p.at {
		key = append(key, tuple[at])
	}
	s.key = key
	return key
}
