package epoch

import (
	"context"
	"sync"

	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/views"
)

// algebras are those of the registered queries, by name, and the semirings of the
// user. The writer, hydrations and Verify ask for them.
type algebras struct {
	mu    sync.Mutex
	made  map[string]semiring.Algebra
	extra map[string]semiring.Definition
}

// Semirings gives the engine the semirings of the user by name, before the first
// query is registered or restored.
func (e *Engine) Semirings(extra map[string]semiring.Definition) { e.algebras.extra = extra }

// algebra is the algebra of registered queries: those with the same semiring share
// it, so that they can share views.
func (e *Engine) algebra(name string) (semiring.Algebra, error) {
	s := &e.algebras
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.made[name]; ok {
		return a, nil
	}
	a, err := e.ownAlgebra(name)
	if err != nil {
		return nil, err
	}
	if s.made == nil {
		s.made = make(map[string]semiring.Algebra)
	}
	s.made[name] = a
	return a, nil
}

// ownAlgebra makes an algebra for one answer, which goes with it: what an ad hoc
// query meets is so forgotten, and registered queries forget nothing it needs.
func (e *Engine) ownAlgebra(name string) (semiring.Algebra, error) {
	return semiring.Parse(name, semiring.Env{Terms: e.dict, Extra: e.algebras.extra})
}

// Algebra implements [views.Resolver].
func (r resolver) Algebra(name string) (semiring.Algebra, error) { return r.e.algebra(name) }

// Algebra implements [views.Resolver].
func (r pinnedResolver) Algebra(name string) (semiring.Algebra, error) { return r.algebra(name) }

// Evaluate answers a plan on a pinned vector, in memory of its own beyond the
// indexes that the epoch has. Errors: ErrArity, ErrOverflow, ErrUnsupported (a
// window that no registered query has), ctx's, and that of a term whose text
// could not be read.
func (e *Engine) Evaluate(ctx context.Context, v *rootvec.Vector, p *plan.Plan) (*views.Bound, error) {
	return e.evaluate(ctx, v, p, e.ownAlgebra)
}
