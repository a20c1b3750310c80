package views

import (
	"fmt"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// derived is a relation that is computed from others. Its operands are joined,
// and the weights of the tuples of the join that agree on the kept columns are
// added up. There are two kinds:
//
//   - the alias of a query that is more than a plain selection has one operand, a
//     base relation, whose facts pass a match;
//   - a node of the tree of a cluster has the relation of its alias, if it is not
//     generalized, and one operand for each child.
//
// This is V_p of annotated CROWN, and V_o at the root of a cluster (Wang and Hu,
// appendix F; they are one thing once what lies below an output node is taken as
// a relation of its own). What a tuple weighed before the version under
// construction is read from the roots of the version before, so that nothing but
// the result is kept: neither the tuples of the join nor their weights.
type derived struct {
	Relation
	signature string  // of what is computed: equal ones are one relation
	uses      int     // queries that need it
	used      []use   // indexes that it reads
	match     *match  // nil if everything passes
	reader    *reader // of the facts with the constants of match, if it has some
	operands  []operand
	width     int   // columns of the join
	keep      []int // columns of the join, in the order of the relation
	unit      bool  // a base fact weighs 1, whatever its multiplicity
	support   bool  // a tuple of the join weighs 1, whatever its operands weigh
	weighted  bool  // the weights of operands matter, not only whether there is one
	lifts     [][]int
	routes    []route // by operand, where only weights are kept
	// answers says that it holds answers, and of what; it has no operands then.
	answers *materialised
}

// operand is a relation in the join of a derived one.
type operand struct {
	relation *Relation
	index    *Index // in which tuples are looked up
	cols     []int  // the column of the join for each column of the relation
	unit     bool   // weights count as 1
	// wake has the tuples of the join, which the first operand holds all columns
	// of, ordered by cols; nil where cols are all columns of the join.
	wake *Index
}

// folding is scratch space of the relation that is being brought up to date.
type folding struct {
	counts rows   // changes of weights, of kept columns
	states []rows // changes of states, by track
	filled bool   // nothing was there before: the relation is being filled

	tuple         []uint64   // of the join
	keys          [][]uint64 // by operand: its tuple
	key           []uint64
	before, after []int64     // by operand: its weight
	value         [2][]uint64 // before and in the version under construction
	product       valueProduct
	factor, other []uint64
	parts         []semiring.Part
	read          valueReader
}

// inputs reports whether an operand has changed, and whether one has lost all
// of its tuples, so that the join is empty.
func (d *derived) inputs() (touched, cleared bool) {
	if d.reader != nil {
		return len(d.reader.rows) > 0, d.operands[0].relation.cleared
	}
	for i := range d.operands {
		touched = touched || d.operands[i].relation.touched
		cleared = cleared || d.operands[i].relation.cleared
	}
	return touched, cleared
}

// refold brings a derived relation up to date with the changes of its operands.
func (s *Store) refold(d *derived) error {
	touched, cleared := d.inputs()
	switch {
	case cleared:
		d.touched, d.cleared = true, true
		s.clearDerived(d)
		return nil
	case !touched:
		return nil
	}
	s.startFolding(d, false)
	if d.routes != nil {
		if s.foldCounts(d) {
			return s.writeFolded(d)
		}
		s.startFolding(d, false)
	}
	for j := range d.operands {
		if r := d.operands[j].relation; r.touched {
			if err := s.visitChanges(d, j, r); err != nil {
				return err
			}
		}
	}
	return s.finishFolding(d)
}

func (s *Store) clearDerived(d *derived) {
	s.clearIndexes(&d.Relation)
	for _, t := range d.tracks {
		if t != nil {
			s.clearTrie(t.slot, d.arity+stateColumns)
		}
	}
}

func (s *Store) startFolding(d *derived, filled bool) {
	f := &s.folding
	f.filled = filled
	f.counts.reuse(d.arity)
	for len(f.states) < len(d.tracks) {
		f.states = append(f.states, rows{})
	}
	for i := range d.tracks {
		f.states[i].reuse(d.arity + stateColumns)
	}
	for len(f.keys) < len(d.operands) {
		f.keys = append(f.keys, nil)
		f.before, f.after = append(f.before, 0), append(f.after, 0)
	}
	if cap(f.tuple) < d.width {
		f.tuple = make([]uint64, d.width)
	}
	f.tuple = f.tuple[:d.width]
}

// visitChanges visits the tuples of the join that a change in operand j concerns.
func (s *Store) visitChanges(d *derived, j int, r *Relation) error {
	if d.match != nil {
		return s.visitFacts(d, r)
	}
	op := &d.operands[j]
	for i := 0; i < len(r.changes); i += r.arity + 2 {
		row := r.changes[i : i+r.arity+2]
		before, after := int64(row[r.arity]), int64(row[r.arity+1])
		if !s.goOn() {
			return s.stopped
		}
		if !d.matters(op, before, after) && !s.shifted(r, row[:r.arity]) {
			continue
		}
		if err := s.visitKey(d, j, row[:r.arity]); err != nil {
			return err
		}
	}
	for i := 0; i < len(r.shifts); i += r.arity {
		if !s.goOn() {
			return s.stopped
		}
		if err := s.visitKey(d, j, r.shifts[i:i+r.arity]); err != nil {
			return err
		}
	}
	return nil
}

// visitFacts visits the changes that an alias reads.
func (s *Store) visitFacts(d *derived, r *Relation) error {
	stride := r.arity + 2
	fold := func(i int) error {
		row := r.changes[i*stride : (i+1)*stride]
		return s.foldFact(d, row[:r.arity], int64(row[r.arity]), int64(row[r.arity+1]))
	}
	if d.reader != nil {
		for _, i := range d.reader.rows {
			if err := fold(int(i)); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range len(r.changes) / stride {
		if !s.goOn() {
			return s.stopped
		}
		if err := fold(i); err != nil {
			return err
		}
	}
	return nil
}

// matters reports whether a change of the weight of an operand can change the
// weight of a tuple of the join.
func (d *derived) matters(op *operand, before, after int64) bool {
	if op.unit || !d.weighted {
		return (before == 0) != (after == 0)
	}
	return before != after
}

// visitKey visits the tuples of the join that hold a tuple of operand j.
func (s *Store) visitKey(d *derived, j int, key []uint64) error {
	op, tuple := &d.operands[j], s.folding.tuple
	if op.wake == nil {
		for i, col := range op.cols {
			tuple[col] = key[i]
		}
		return s.visit(d, j)
	}
	space, root := s.at(op.wake)
	s.cursor.Seek(space, root, len(op.wake.cols), key)
	for s.cursor.Next() {
		s.Woken++
		for i, col := range op.wake.cols {
			tuple[col] = s.cursor.Col(i)
		}
		if err := s.visit(d, j); err != nil {
			return err
		}
	}
	return nil
}

// visit replaces what a tuple of the join contributes. It is called for each
// operand that has changed; the first of them owns the tuple, and the others
// leave it alone.
func (s *Store) visit(d *derived, owner int) error {
	f := &s.folding
	was, is := !f.filled, true
	for i := range d.operands {
		op := &d.operands[i]
		key := f.keys[i][:0]
		for _, col := range op.cols {
			key = append(key, f.tuple[col])
		}
		f.keys[i] = key
		before, after := s.weights(op, key)
		if i < owner && (d.matters(op, before, after) || s.shifted(op.relation, key)) {
			return nil
		}
		f.before[i], f.after[i] = before, after
		was, is = was && before != 0, is && after != 0
	}
	if !was && !is {
		return nil
	}
	before, okBefore := d.weigh(f.before, was)
	after, ok := d.weigh(f.after, is)
	if !ok || !okBefore {
		return fmt.Errorf("%w: the weight of a tuple in the join of %d relations", errs.ErrOverflow, len(d.operands))
	}
	changed, err := s.contribute(d, was, is)
	if err != nil {
		return err
	}
	if before != after || changed {
		f.counts.words = append(d.project(f.counts.words, f.tuple), uint64(after-before))
	}
	return nil
}

// weights are what a tuple of an operand weighs before and in the version under
// construction.
func (s *Store) weights(op *operand, tuple []uint64) (before, after int64) {
	key := s.folding.key[:0]
	for _, col := range op.index.cols {
		key = append(key, tuple[col])
	}
	s.folding.key = key
	space, root := s.at(op.index)
	after = space.Get(root, key)
	before = after
	switch {
	case s.folding.filled:
		before = 0
	case op.relation.touched:
		space, root = s.atBefore(op.index)
		before = space.Get(root, key)
	}
	if op.unit {
		before, after = min(before, 1), min(after, 1)
	}
	return before, after
}

// weigh is the weight of a tuple of the join whose operands weigh so much.
func (d *derived) weigh(weights []int64, there bool) (int64, bool) {
	if !there {
		return 0, true
	}
	product := int64(1)
	if d.support {
		return product, true
	}
	for _, w := range weights[:len(d.operands)] {
		var ok bool
		if product, ok = semiring.Mul(product, w); !ok {
			return 0, false
		}
	}
	return product, true
}

// project appends the kept columns of a tuple of the join.
func (d *derived) project(dst, tuple []uint64) []uint64 {
	for _, col := range d.keep {
		dst = append(dst, tuple[col])
	}
	return dst
}

// foldFact adds what the change of one base fact means for an alias.
func (s *Store) foldFact(d *derived, fact []uint64, before, after int64) error {
	factor := d.match.factor(fact)
	if factor == 0 {
		return nil
	}
	if d.unit {
		before, after = min(before, 1), min(after, 1)
	}
	change, ok := semiring.MulSigned(after-before, factor)
	if !ok {
		return fmt.Errorf("%w: a fact times the rows of an inline table", errs.ErrOverflow)
	}
	if change == 0 {
		return nil
	}
	f := &s.folding
	f.counts.words = append(d.project(f.counts.words, fact), uint64(change))
	for i, t := range d.tracks {
		if t == nil {
			continue
		}
		value, err := s.lift(t, d.lifts[i], fact)
		if err != nil {
			return err
		}
		if err := s.spread(d, i, fact, value, change); err != nil {
			return err
		}
	}
	return nil
}

// lift is the product of the values in columns of a fact. A column without a term
// has the value one.
func (s *Store) lift(t *track, cols []int, fact []uint64) ([]uint64, error) {
	f := &s.folding
	p := &f.product
	p.start(t.algebra, t.traits)
	for _, col := range cols {
		id, value, err := fact[col], f.factor[:0], error(nil)
		if id == 0 {
			value = t.algebra.One(value)
		} else {
			value, err = t.algebra.Lift(value, id, s.terms.Term(id))
		}
		if err == nil {
			f.factor = value
			err = p.times(value)
		}
		if err != nil {
			return nil, err
		}
	}
	return p.end()
}

// spread adds n times a value to the state of track i for a tuple of the join.
func (s *Store) spread(d *derived, i int, tuple, value []uint64, n int64) error {
	f := &s.folding
	f.parts = d.tracks[i].algebra.Spread(f.parts[:0], value)
	out := &f.states[i]
	for _, p := range f.parts {
		change, ok := semiring.MulSigned(p.N, n)
		if !ok {
			return fmt.Errorf("%w: a value of %s times its multiplicity", errs.ErrOverflow, d.tracks[i].algebra.Name())
		}
		out.words = append(d.project(out.words, tuple), p.At.High, p.At.Low, uint64(change))
	}
	return nil
}

// contribute replaces the values that a tuple of the join adds to the tracks, and
// reports whether one is another than before.
func (s *Store) contribute(d *derived, was, is bool) (changed bool, err error) {
	f := &s.folding
	for i, t := range d.tracks {
		if t == nil {
			continue
		}
		if was {
			f.value[0], err = s.joined(f.value[0][:0], d, i, true)
		}
		if err == nil && is {
			f.value[1], err = s.joined(f.value[1][:0], d, i, false)
		}
		another := false
		if err == nil {
			another, err = s.replaceValue(d, i, was, is)
		}
		if err != nil {
			return false, err
		}
		changed = changed || another
	}
	return changed, nil
}

// replaceValue takes the value before, if there was one, out of the state of track i
// for the current tuple of the join, adds the one that is there now, and reports
// whether they differ.
func (s *Store) replaceValue(d *derived, i int, was, is bool) (changed bool, err error) {
	f := &s.folding
	if was && is && slices.Equal(f.value[0], f.value[1]) {
		return false, nil
	}
	if was {
		err = s.spread(d, i, f.tuple, f.value[0], -1)
	}
	if err == nil && is {
		err = s.spread(d, i, f.tuple, f.value[1], 1)
	}
	return true, err
}

// joined appends the value of a tuple of the join in track i, before or in the
// version under construction. An operand without the track stands for as many ones
// as it weighs.
func (s *Store) joined(dst []uint64, d *derived, i int, before bool) ([]uint64, error) {
	f := &s.folding
	weights := f.after
	if before {
		weights = f.before
	}
	p := &f.product
	p.start(d.tracks[i].algebra, d.tracks[i].traits)
	for j := range d.operands {
		r := d.operands[j].relation
		var err error
		if r.track(i) == nil {
			err = p.ones(weights[j])
		} else if f.factor, err = s.collect(f.factor[:0], r, i, f.keys[j], before); err == nil {
			err = p.times(f.factor)
		}
		if err != nil {
			return dst, err
		}
	}
	value, err := p.end()
	return append(dst, value...), err
}

// collect appends the value of track i at a tuple of r, before or in the version
// under construction.
func (s *Store) collect(dst []uint64, r *Relation, i int, tuple []uint64, before bool) ([]uint64, error) {
	t, f := r.tracks[i], &s.folding
	root := s.roots[t.slot]
	if before {
		root = s.before[t.slot]
	}
	return f.read.value(dst, s.arena.Space(), root, t, tuple)
}

// shifted reports whether a track has another value at a tuple of r, which is
// there before and in the version under construction.
func (s *Store) shifted(r *Relation, tuple []uint64) bool {
	return r.touched && !s.folding.filled && s.revalued(r, tuple)
}

// revalued is shifted for a relation that may be written at this moment.
func (s *Store) revalued(r *Relation, tuple []uint64) bool {
	f := &s.folding
	for i, t := range r.tracks {
		if t == nil || s.roots[t.slot] == s.before[t.slot] {
			continue
		}
		var failed, fails error
		f.other, failed = s.collect(f.other[:0], r, i, tuple, true)
		f.factor, fails = s.collect(f.factor[:0], r, i, tuple, false)
		switch {
		case failed != nil && fails != nil:
			// Neither has a value. A tuple whose state is the same has not changed, and
			// nobody else would visit it.
			if !s.sameState(r, t, tuple) {
				return true
			}
		case failed != nil || fails != nil || !slices.Equal(f.other, f.factor):
			return true
		}
	}
	return false
}

// sameState reports whether the state of a track at a tuple of r is the same before
// and in the version under construction.
func (s *Store) sameState(r *Relation, t *track, tuple []uint64) bool {
	k := r.arity + stateColumns
	var old, now trie.Cursor
	old.Seek(s.arena.Space(), s.before[t.slot], k, tuple)
	now.Seek(s.arena.Space(), s.roots[t.slot], k, tuple)
	for old.Next() {
		if !now.Next() || old.Weight() != now.Weight() || old.Col(k-2) != now.Col(k-2) || old.Col(k-1) != now.Col(k-1) {
			return false
		}
	}
	return !now.Next()
}

// finishFolding writes the gathered changes.
func (s *Store) finishFolding(d *derived) error {
	if !s.folding.counts.sort() {
		return d.overflow()
	}
	if err := s.writeStates(d); err != nil {
		return err
	}
	return s.writeFolded(d)
}

// writeFolded writes the gathered changes of weights, which are sorted: so what one
// write needs was mostly fetched by the one before.
func (s *Store) writeFolded(d *derived) error {
	x, counts := d.indexes[0], &s.folding.counts
	root := s.roots[x.slot]
	for i := range counts.Len() {
		row := counts.row(i)
		before, after, ok := s.addIndex(x, &root, s.reorderInto(x, row[:d.arity]), int64(row[d.arity]))
		if !ok {
			return d.overflow()
		}
		if err := s.fits(d, row[:d.arity], after); err != nil {
			return err
		}
		s.noteFolded(d, row[:d.arity], before, after)
	}
	s.roots[x.slot] = root
	s.writes += uint64(len(d.changes) / (d.arity + 2))
	s.applyIndexes(&d.Relation, d.indexes[1:])
	return nil
}

// fits refuses a tuple whose value in some track does not fit: it is kept although
// nobody may read it yet.
func (s *Store) fits(d *derived, tuple []uint64, weight int64) error {
	if weight == 0 {
		return nil
	}
	for i, t := range d.tracks {
		if t == nil || !t.traits.Overflows {
			continue
		}
		var err error
		if s.folding.other, err = s.collect(s.folding.other[:0], &d.Relation, i, tuple, false); err != nil {
			return err
		}
	}
	return nil
}

// noteFolded notes the change of a tuple of d for what stands above.
func (s *Store) noteFolded(d *derived, tuple []uint64, before, after int64) {
	if invariant.Enabled && after < 0 {
		invariant.Check(false, "tuple %v would weigh %d", tuple, after)
	}
	switch {
	case before != after:
		d.touched = true
		if n := len(d.changes) + d.arity + 2; n > cap(d.changes) {
			d.changes = slices.Grow(d.changes, n)
		}
		d.changes = append(append(d.changes, tuple...), uint64(before), uint64(after))
	case before != 0 && s.revalued(&d.Relation, tuple):
		d.touched = true
		d.shifts = append(d.shifts, tuple...)
	}
}

// writeStates adds the gathered changes to the states of all tracks.
func (s *Store) writeStates(d *derived) error {
	for i, t := range d.tracks {
		if t == nil {
			continue
		}
		out := &s.folding.states[i]
		if !out.sort() {
			return d.overflow()
		}
		root := s.roots[t.slot]
		for j := range out.Len() {
			row := out.row(j)
			if _, _, ok := s.arena.Add(&root, row[:out.k], int64(row[out.k]), -1); !ok {
				return fmt.Errorf("%w: the state of %s", errs.ErrOverflow, t.algebra.Name())
			}
			s.writes++
		}
		t.writes += out.Len()
		s.roots[t.slot] = root
	}
	return nil
}

func (d *derived) overflow() error {
	return fmt.Errorf("%w: sum over the tuples of %d columns that agree on %d", errs.ErrOverflow, d.width, d.arity)
}

// reorderInto writes tuple in the order of x into scratch.
func (s *Store) reorderInto(x *Index, tuple []uint64) []uint64 {
	key := s.key[:0]
	for _, c := range x.cols {
		key = append(key, tuple[c])
	}
	s.key = key
	return key
}

// fillDerived computes a derived relation from its operands.
func (s *Store) fillDerived(d *derived) error {
	s.startFolding(d, true)
	gather := s.fillJoin
	if d.answers != nil {
		gather = s.fillAnswers
	}
	if err := gather(d); err != nil {
		return err
	}
	if s.stopped != nil {
		return s.stopped
	}
	f := &s.folding
	if !f.counts.sort() {
		return d.overflow()
	}
	s.roots[d.indexes[0].slot] = s.arena.Build(f.counts.words, d.arity)
	for i, t := range d.tracks {
		if t == nil {
			continue
		}
		if !f.states[i].sort() {
			return d.overflow()
		}
		s.roots[t.slot] = s.arena.Build(f.states[i].there(), f.states[i].k)
	}
	if !slices.ContainsFunc(d.tracks, func(t *track) bool { return t != nil && t.traits.Overflows }) {
		return nil
	}
	for i := range f.counts.Len() {
		row := f.counts.row(i)
		if err := s.fits(d, row[:d.arity], int64(row[d.arity])); err != nil {
			return err
		}
	}
	return nil
}

// fillJoin gathers the join of the operands.
func (s *Store) fillJoin(d *derived) error {
	f := &s.folding
	from := &d.operands[0]
	space, root := s.at(from.index)
	k := len(from.index.cols)
	var c trie.Cursor
	c.Seek(space, root, k, nil)
	for s.filling(&c) {
		for i, col := range from.index.cols {
			f.tuple[from.cols[col]] = c.Col(i)
		}
		var err error
		if d.match != nil {
			err = s.foldFact(d, f.tuple, 0, c.Weight())
		} else {
			err = s.visit(d, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
