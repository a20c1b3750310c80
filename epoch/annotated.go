package epoch

import "github.com/triegs/triegs/semiring"

// Semirings gives the engine the semirings of the user by name, before the first
// query is registered or restored.
func (e *Engine) Semirings(extra map[string]semiring.Definition) { e.extra = extra }

// Algebra implements [views.Resolver]: queries with the same semiring share it, so
// that they can share views.
func (r resolver) Algebra(name string) (semiring.Algebra, error) {
	if a, ok := r.e.algebras[name]; ok {
		return a, nil
	}
	a, err := semiring.Parse(name, semiring.Env{Terms: r.e.dict, Extra: r.e.extra})
	if err != nil {
		return nil, err
	}
	if r.e.algebras == nil {
		r.e.algebras = make(map[string]semiring.Algebra)
	}
	r.e.algebras[name] = a
	return a, nil
}

// Algebra implements [views.Resolver], with an algebra that goes with the answer.
func (r pinnedResolver) Algebra(name string) (semiring.Algebra, error) {
	return semiring.Parse(name, semiring.Env{Terms: r.dict, Extra: r.extra})
}
