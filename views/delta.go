package views

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/semiring"
)

// Deltas is a cursor over the answers of a query that differ between two of its
// versions: those that are in one of them only, and those of which an output is
// another one, or the multiplicity where there are no outputs. Each comes once, in
// no order worth relying on. (Exact deltas between two versions of annotated
// views, Wang and Hu, in two passes over the nodes in pre-order: an answer belongs
// to the first of its tuples that has changed.)
//
// The first pass goes over what is new or another in the later version, the
// second over what is gone from the earlier one; each starts at a changed tuple,
// climbs to the root, and then goes down beside the way. Nothing is subtracted,
// so it serves annotations of all kinds.
//
// Cost: an answer is met at most once for each of its tuples that has changed,
// those included that are equal in the end, which are passed over. To these come
// dead ends: a tuple may have no way up to the root, because a node's tuples are
// known to have partners below only. A key with no way up is tried once. An answer
// allocates nothing but what an algebra takes to read its outputs. Both versions
// must be pinned; the cursor may be left at any time.
type Deltas struct {
	q        *Query
	old, now *Bound
	from     changes
	hops     []hop
	same     []bool // nodes without any change
	revalues []bool // nodes whose tuples may have other values
	dead     deadKeys

	// To compare the outputs of answers that have some, which touched leaves to the
	// caller: he is given every answer of which a weight or a value has changed.
	touched  bool
	value    func(query.Var) uint64
	was, are Values

	pass   pass
	seed   int  // node whose changes are walked
	begun  bool // they are
	seeds  seeds
	open   bool // a seed has more answers, perhaps
	base   factor
	climbs int          // levels that go up
	levels []deltaLevel // of the seed's node
	room   []deltaLevel // one for each node but one
	onPath []bool       // nodes that the seed's way up leads through

	binding []uint64 // by variable
	fixed   []uint64 // the ids that variables must have, 0 for any; nil if none must

	// Patience is about how many tuples Next looks at without an answer before it
	// comes back with Paused, so that its caller sees whether he is still wanted:
	// very many answers may be equal in the end. 0 = until there is one.
	Patience int
	// Paused says that Next was false for want of patience; it goes on where it was.
	Paused bool
	until  int // of Steps
	resume int // the level at which the walk was left by that, or -1

	// Steps counts the tuples that were looked at, and DeadEnds those of them, and
	// the keys, that led up to no answer, for tests of the cost and as a metric.
	Steps, DeadEnds int
	skips           int // tuples that start the pass themselves
}

// pass is what Deltas is at.
type pass uint8

const (
	passNew  pass = iota // what is new or another, in the later version
	passGone             // what is gone, in the earlier version
	passOver
)

// factor is a weight, or the product of some, in the version that is walked
// (here) and in the other (there). 0 is absent, -1 does not fit.
type factor struct{ here, there int64 }

func (f factor) times(g factor) factor {
	return factor{product(f.here, g.here), product(f.there, g.there)}
}

// product multiplies weights of which 0 is absent and -1 too large.
func product(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return multiply(a, b)
}

// Deltas starts a walk over the answers that differ between two versions of q,
// before the first one. Its cost is that of the plan, not of the data.
func (q *Query) Deltas(old, now *Bound) *Deltas {
	d := new(Deltas)
	d.reset(q, old, now, &structural{q: q, old: old, now: now})
	return d
}

// Rebind starts a walk from another pair of versions of the query of d, in the memory
// that d has: one like a walk before allocates nothing. What was fixed is so no more.
// It must not be used on the walks of Matching.
func (d *Deltas) Rebind(old, now *Bound) {
	f := d.from.(*structural)
	f.old, f.now, f.fixed = old, now, nil
	d.reset(d.q, old, now, f)
}

// deltas makes d walk the answers of q that the version under construction has
// changed so far, in the memory that d has. Of a query with tracks it gives all
// answers of which a weight or a value of a track has changed somewhere, whether
// that changes an output or not, for whoever folds answers. It is for the time between the
// propagation of q and the end of the version; tries that are no part of q may be
// written meanwhile.
func (s *Store) deltas(q *Query, d *Deltas) {
	c, ok := d.from.(*noted)
	if !ok {
		c = &noted{structural: structural{old: &Bound{earlier: true}, now: new(Bound)}}
	}
	c.q, c.stakes = q, nil
	space := s.arena.Space()
	c.old.bind(q, space, s.before)
	c.now.bind(q, space, s.roots)
	d.reset(q, c.old, c.now, c)
	d.touched = len(q.algebras) > 0
}

// reset puts d before the first answer.
func (d *Deltas) reset(q *Query, old, now *Bound, from changes) {
	if d.q != q {
		k := len(q.nodes)
		d.q, d.hops = q, q.hops()
		d.same, d.onPath, d.revalues = make([]bool, k), make([]bool, k), make([]bool, k)
		d.room = make([]deltaLevel, k-1)
		d.binding = make([]uint64, q.vars())
		d.dead, d.seeds = newDeadKeys(q), newSeeds(k)
		d.value = d.Value
	}
	d.old, d.now, d.from, d.touched, d.fixed = old, now, from, false, nil
	d.was.b, d.are.b = old, now
	for i := range q.nodes {
		d.revalues[i] = from.revalues(i)
		d.same[i] = old.nodes[i].root == now.nodes[i].root && !d.revalues[i]
	}
	d.dead.clear()
	d.seeds.reset()
	d.pass, d.seed, d.begun, d.open = passNew, 0, false, false
	if q.Plan.Never {
		d.pass = passOver
	}
	d.Steps, d.DeadEnds, d.skips = 0, 0, 0
	d.Paused, d.resume = false, -1
}

// Next moves to the next answer that differs and reports whether there is one, or
// whether it was found yet (see Patience).
func (d *Deltas) Next() bool {
	d.Paused, d.until = false, math.MaxInt
	if d.Patience > 0 {
		d.until = d.Steps + d.Patience
	}
	for d.patient() {
		j := len(d.levels) - 1
		if d.resume >= 0 {
			j, d.resume = d.resume, -1
		}
		if !d.open {
			if !d.nextSeed() {
				return false
			}
			if j = 0; len(d.levels) > 0 {
				d.open = true
				d.open = d.seek(0)
			}
		}
		if len(d.levels) == 0 {
			if d.differs() {
				return true
			}
			continue
		}
		if d.open = d.open && d.walk(j); d.Paused {
			d.open = true
		} else if d.open && d.differs() {
			return true
		}
	}
	return false
}

// patient reports whether Next may go on.
func (d *Deltas) patient() bool {
	d.Paused = d.Steps >= d.until
	return !d.Paused
}

// walk moves on at level j, and on from there to the next answer of the seed. It is
// false where there is none, or patience ends.
func (d *Deltas) walk(j int) bool {
	for {
		if !d.move(j) {
			if j--; j < 0 {
				return false
			}
			if !d.patient() {
				d.resume = j
				return false
			}
			continue
		}
		if j == d.climbs-1 {
			for i := range d.levels[:d.climbs] {
				d.levels[i].reached, d.levels[i].leads = true, true
			}
		}
		if j == len(d.levels)-1 {
			return true
		}
		if d.seek(j + 1) {
			j++
		} else if !d.patient() {
			d.resume = j
			return false
		}
	}
}

// nextSeed moves to the next changed tuple from which the pass starts, and binds
// its variables. It is false where there is none, or patience ends.
func (d *Deltas) nextSeed() bool {
	for d.pass < passOver {
		for ; d.seed < len(d.q.nodes); d.seed++ {
			if !d.begun {
				if d.begun = d.seekSeeds(); !d.begun {
					continue
				}
				d.arrange(d.seed)
			}
			for row := d.nextSeedRow(); row != nil; row = d.nextSeedRow() {
				if d.takeSeed(row) {
					return true
				}
				if !d.patient() {
					return false
				}
			}
			d.begun = false
		}
		d.pass++
		d.seed = 0
		d.dead.clear()
	}
	return false
}

// takeSeed binds the variables of a tuple that the pass starts from. It is false where
// one of them is fixed to another id.
func (d *Deltas) takeSeed(row []uint64) bool {
	n := &d.q.nodes[d.seed]
	d.Steps++
	d.base = factor{here: int64(row[n.columns]), there: int64(row[n.columns+1])}
	tuple := row[len(n.lead):]
	return d.bind(n.key, tuple) && d.bind(n.rest, tuple[len(n.key):])
}

// count is what a weight in the trie of the node counts.
func (n *node) count(weight int64) int64 {
	if n.unit && weight != 0 {
		return 1
	}
	return weight
}

// revalued reports whether a tuple of a node that is in both versions has another
// value.
func (d *Deltas) revalued(node int, tuple []uint64) bool {
	return d.revalues[node] && d.from.revalued(node, tuple)
}

// owns reports whether a tuple of a node before the seed's in pre-order, with its
// weights, starts the pass itself, so that what it is part of is met there.
func (d *Deltas) owns(l *deltaLevel, w factor) bool {
	if d.pass == passGone {
		return w.there == 0
	}
	return w.here != w.there || d.revalued(l.number, l.tuple)
}

// answer is the product of the weights of the answer.
func (d *Deltas) answer() factor {
	if n := len(d.levels); n > 0 {
		return d.levels[n-1].product
	}
	return d.base
}

// differs reports whether the answer met differs between the versions: in its
// presence, or in its outputs if it has some, or else in its multiplicity.
func (d *Deltas) differs() bool {
	f := d.answer()
	if d.pass == passGone || f.there == 0 || d.touched {
		return true
	}
	outputs := d.q.Plan.Payload.Outputs
	if len(outputs) == 0 {
		return d.recounted(f)
	}
	return slices.ContainsFunc(outputs, func(o plan.Output) bool { return d.differsIn(o, f) })
}

// differsIn reports whether an output of the answer differs, which is in both
// versions. One that cannot be read passes for different.
func (d *Deltas) differsIn(o plan.Output, f factor) bool {
	if o.Track < 0 {
		return d.recounted(f)
	}
	was, failed := d.was.track(o.Track, d.value)
	is, fails := d.are.track(o.Track, d.value)
	switch {
	case failed != nil || fails != nil:
		return true
	case !o.Average && slices.Equal(was, is):
		return false
	case !o.Average: // as read they may be the same, as the sizes of different sets
		algebra := d.q.algebras[o.Track]
		return !sameOutput(algebra.Export(was), algebra.Export(is))
	case f.here < 0 || f.there < 0:
		return true // an average cannot be read without the count
	}
	algebra := d.q.algebras[o.Track]
	x, y := semiring.Average(algebra.Export(was), f.there), semiring.Average(algebra.Export(is), f.here)
	return math.Float64bits(x) != math.Float64bits(y)
}

// sameOutput compares outputs, floats by their bits.
func sameOutput(x, y any) bool {
	switch a := x.(type) {
	case float64:
		b, ok := y.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case []any:
		b, ok := y.([]any)
		return ok && slices.EqualFunc(a, b, sameOutput)
	}
	return reflect.DeepEqual(x, y)
}

// recounted reports whether the multiplicity of the answer differs.
func (d *Deltas) recounted(f factor) bool {
	if f.here < 0 && f.there < 0 {
		return d.differFar()
	}
	return f.here != f.there
}

// differFar is recounted for products that do not fit in both versions.
func (d *Deltas) differFar() bool {
	here, there := big.NewInt(d.base.here), big.NewInt(d.base.there)
	for i := range d.levels {
		w := d.levels[i].weight
		here.Mul(here, big.NewInt(w.here))
		there.Mul(there, big.NewInt(w.there))
	}
	return here.Cmp(there) != 0
}

// Value is the id of a variable in the current answer.
func (d *Deltas) Value(v query.Var) uint64 { return d.binding[v] }

// Old is the multiplicity of the current answer in the earlier version, 0 if it
// is not there, or ErrOverflow.
func (d *Deltas) Old() (int64, error) {
	if d.pass == passGone {
		return d.fitting(d.answer().here)
	}
	return d.fitting(d.answer().there)
}

// New is the multiplicity of the current answer in the later version, 0 if it is
// not there, or ErrOverflow.
func (d *Deltas) New() (int64, error) {
	if d.pass == passGone {
		return 0, nil
	}
	return d.fitting(d.answer().here)
}

// fitting is the multiplicity of an answer, given the product of its weights.
func (d *Deltas) fitting(product int64) (int64, error) {
	switch {
	case d.q.flat:
		return presence(product != 0), nil
	case product < 0:
		return 0, fmt.Errorf("%w: the multiplicity of an answer", errs.ErrOverflow)
	}
	return product, nil
}
