package epoch

import (
	"fmt"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/semiring"
)

// ValuedRelation implements [views.Resolver]. No plan asks for it yet.
func (r resolver) ValuedRelation(string, query.Window) int { return 0 }

// ValuedRelation implements [views.Resolver]. No plan asks for it yet.
func (r pinnedResolver) ValuedRelation(string, query.Window) int { return 0 }

// Algebra implements [views.Resolver].
func (r resolver) Algebra(name string) (semiring.Algebra, error) {
	return nil, fmt.Errorf("%w: semiring %s", errs.ErrUnsupported, name)
}

// Algebra implements [views.Resolver].
func (r pinnedResolver) Algebra(name string) (semiring.Algebra, error) {
	return nil, fmt.Errorf("%w: semiring %s", errs.ErrUnsupported, name)
}
