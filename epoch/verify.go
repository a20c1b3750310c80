package epoch

import (
	"context"
	"fmt"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
	"github.com/triegs/triegs/window"
)

// Verify recomputes everything of a pinned vector from its base facts and
// compares: every index with every other of its relation, the content digest,
// and the views of every query. If the vector is that of the last applied epoch
// the base facts are compared with the live contributions as well; writers wait
// for that part. What differs is ErrCorrupt.
func (e *Engine) Verify(ctx context.Context, v *rootvec.Vector) error {
	s := v.Catalog.(*Schema)
	digest, err := e.digestOf(ctx, v)
	if err != nil {
		return err
	}
	if e.digests() && digest != v.Digest {
		return fmt.Errorf("%w: epoch %d has content digest %v, its facts have %v", errs.ErrCorrupt, v.Epoch, v.Digest, digest)
	}
	for _, q := range s.Queries() {
		fresh, err := e.evaluate(ctx, v, q.Plan, e.algebra)
		if err == nil {
			err = s.Views[q.Name].Bind(v.Space, v.Roots).Compare(ctx, fresh)
		}
		if err != nil {
			return differs(ctx, "query "+q.Name, err)
		}
	}
	return e.verifyFacts(ctx, v)
}

// Digest is the content digest of a pinned vector: the one that was kept up, or
// computed from the facts where that is not done.
func (e *Engine) Digest(ctx context.Context, v *rootvec.Vector) (rootvec.Digest, error) {
	if e.digests() {
		return v.Digest, nil
	}
	return e.digestOf(ctx, v)
}

// digestOf computes the content digest of a pinned vector from its facts, and
// checks that all indexes of a relation hold the same ones.
func (e *Engine) digestOf(ctx context.Context, v *rootvec.Vector) (digest rootvec.Digest, err error) {
	s := v.Catalog.(*Schema)
	var hasher rootvec.Hasher
	for i, r := range s.Relations() {
		tag := rootvec.NewRelation(r.Name, r.Arity)
		err := s.Shapes[i].each(ctx, v, func(fact []uint64, weight int64) {
			hasher.Fact(tag, len(fact))
			for c, id := range fact {
				a, b := e.dict.Hash(id)
				hasher.Column(c, a, b)
			}
			hasher.Move(&digest, 0, weight)
		})
		if err != nil {
			return digest, differs(ctx, "relation "+r.Name, err)
		}
	}
	return digest, nil
}

func differs(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s: %w", errs.ErrCorrupt, what, err)
}

// verifyFacts compares base facts with the live contributions.
func (e *Engine) verifyFacts(ctx context.Context, v *rootvec.Vector) error {
	if err := e.hold(ctx); err != nil {
		return err
	}
	defer e.free()
	if v.Epoch != e.last {
		return nil
	}
	s := v.Catalog.(*Schema)
	for i, r := range s.Relations() {
		shape, rel := &s.Shapes[i], uint32(i)
		base := e.facts.Facts(rel)
		if shape.Cover >= 0 {
			base = e.facts.FactsOutside(rel, shape.Cover)
		}
		if err := verifyIndex(ctx, v, shape.Base[0], base); err != nil {
			return differs(ctx, "relation "+r.Name, err)
		}
		for k := range shape.Streams {
			x := &shape.Streams[k]
			if err := verifyIndex(ctx, v, x.Indexes[0], e.facts.FactsIn(rel, k)); err != nil {
				return differs(ctx, fmt.Sprintf("relation %s, %v", r.Name, x.Window), err)
			}
		}
		if err := e.verifyValued(ctx, v, shape, rel); err != nil {
			return differs(ctx, "relation "+r.Name, err)
		}
	}
	return nil
}

// verifyValued compares what is read with values of a relation with the live
// contributions.
func (e *Engine) verifyValued(ctx context.Context, v *rootvec.Vector, shape *Shape, rel uint32) error {
	if (len(shape.Valued) > 0) != e.facts.Valued(rel) {
		return fmt.Errorf("%d windows show values, they are kept: %v", len(shape.Valued), e.facts.Valued(rel))
	}
	for k := range shape.Valued {
		x := &shape.Valued[k]
		facts := e.facts.ValuedFacts(rel)
		if !x.Window.IsZero() {
			facts = e.facts.ValuedFactsIn(rel, slices.Index(e.facts.Windows(rel), x.Window))
		}
		if err := verifyIndex(ctx, v, x.Indexes[0], facts); err != nil {
			return fmt.Errorf("%v with values: %w", x.Window, err)
		}
	}
	return nil
}

// verifyIndex compares an index with the facts that it should hold.
func verifyIndex(ctx context.Context, v *rootvec.Vector, x views.PinnedIndex, f window.Facts) error {
	key := make([]uint64, len(x.Cols))
	n := int64(0)
	for ; f.Next(); n++ {
		if n&0xfff == 0xfff && ctx.Err() != nil {
			return ctx.Err()
		}
		for at, col := range x.Cols {
			key[at] = f.Tuple()[col]
		}
		if w := v.Space.Get(v.Roots[x.Slot], key); w != f.Count() {
			return fmt.Errorf("fact %v has %d contributions, weight %d", f.Tuple(), f.Count(), w)
		}
	}
	all, err := v.Space.Check(v.Roots[x.Slot], len(x.Cols))
	if err == nil && all != n {
		err = fmt.Errorf("%d facts have contributions, the index has %d", n, all)
	}
	return err
}

// sums checks of all that is read with values that its indexes agree, and that each
// fact has no more contributions with one value than altogether, and all facts
// together as many.
func (s *Shape) sums(ctx context.Context, v *rootvec.Vector) error {
	for i := range s.Valued {
		x := &s.Valued[i]
		first, _, err := s.show(x.Window)
		if err != nil {
			return err
		}
		whole, left := first[0], int64(0)
		if err := views.CompareIndexes(ctx, v.Space, v.Roots, first[:1], func(_ []uint64, weight int64) { left += weight }); err != nil {
			return err
		}
		key := make([]uint64, len(whole.Cols))
		var wrong error
		err = views.CompareIndexes(ctx, v.Space, v.Roots, x.Indexes, func(fact []uint64, weight int64) {
			for at, col := range whole.Cols {
				key[at] = fact[col]
			}
			if left -= weight; weight > v.Space.Get(v.Roots[whole.Slot], key) && wrong == nil {
				wrong = fmt.Errorf("fact %v with value %d has weight %d, more than the fact", fact[:len(key)], fact[len(key)], weight)
			}
		})
		if err == nil {
			err = wrong
		}
		if err == nil && left != 0 {
			err = fmt.Errorf("%d contributions have no value", left)
		}
		if err != nil {
			return fmt.Errorf("%v with values: %w", x.Window, err)
		}
	}
	return nil
}

// each visits the facts of a relation with their weights, and checks that the
// indexes of each of its streams agree, and those that it shows with values.
func (s *Shape) each(ctx context.Context, v *rootvec.Vector, visit func(fact []uint64, weight int64)) error {
	for i := range s.Streams {
		if i == s.Cover {
			continue
		}
		if err := views.CompareIndexes(ctx, v.Space, v.Roots, s.Streams[i].Indexes, func([]uint64, int64) {}); err != nil {
			return fmt.Errorf("%v: %w", s.Streams[i].Window, err)
		}
	}
	if err := s.sums(ctx, v); err != nil {
		return err
	}
	first, rest := s.parts()
	if len(rest) == 0 || v.Roots[rest[0].Slot] == 0 {
		return views.CompareIndexes(ctx, v.Space, v.Roots, first, visit)
	}
	x := rest[0]
	key := make([]uint64, len(x.Cols))
	err := views.CompareIndexes(ctx, v.Space, v.Roots, first, func(fact []uint64, weight int64) {
		for at, col := range x.Cols {
			key[at] = fact[col]
		}
		visit(fact, weight+v.Space.Get(v.Roots[x.Slot], key))
	})
	if err != nil {
		return err
	}
	y := first[0]
	return views.CompareIndexes(ctx, v.Space, v.Roots, rest, func(fact []uint64, weight int64) {
		for at, col := range y.Cols {
			key[at] = fact[col]
		}
		if v.Space.Get(v.Roots[y.Slot], key) == 0 {
			visit(fact, weight)
		}
	})
}
