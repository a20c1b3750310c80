package triegs

import (
	"fmt"
	"maps"
	"slices"

	"github.com/triegs/triegs/semiring"
)

// Semiring defines a commutative semiring whose values are terms, for
// Options.Semirings: a One, Add, Mul, and what is known of them. Queries name it as
// they name built-in ones, and the values of contributions of annotated atoms
// (atom@) are its values. See the fields for what the functions must keep to.
type Semiring = semiring.Definition

// checkSemirings reports every bad definition, with ErrValue.
func checkSemirings(all map[string]Semiring) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		def := all[name]
		if semiring.Reserved(name) {
			return fmt.Errorf("%w: option Semirings: %q is the name of a built-in one, or no identifier", ErrValue, name)
		}
		if err := def.Validate(); err != nil {
			return fmt.Errorf("option Semirings: %s: %w", name, err)
		}
	}
	return nil
}
