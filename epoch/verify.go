package epoch

import (
	"context"
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
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
		fresh, err := Evaluate(ctx, v, e.dict, q.Plan)
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
		err := views.CompareIndexes(ctx, v.Space, v.Roots, s.Indexes[i], func(fact []uint64, weight int64) {
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
		x := s.Indexes[i][0]
		key := make([]uint64, r.Arity)
		n := int64(0)
		for f := e.facts.Facts(uint32(i)); f.Next(); n++ {
			if n&0xfff == 0xfff && ctx.Err() != nil {
				return ctx.Err()
			}
			for at, col := range x.Cols {
				key[at] = f.Tuple()[col]
			}
			if w := v.Space.Get(v.Roots[x.Slot], key); w != f.Count() {
				return fmt.Errorf("%w: relation %s: fact %v has %d contributions, weight %d", errs.ErrCorrupt, r.Name, f.Tuple(), f.Count(), w)
			}
		}
		if all, err := v.Space.Check(v.Roots[x.Slot], r.Arity); err != nil || all != n {
			return fmt.Errorf("%w: relation %s: %d facts have contributions, the index has %d (%v)", errs.ErrCorrupt, r.Name, n, all, err)
		}
	}
	return nil
}
