// Package semiring owns the algebras that annotate answers and aggregate columns:
// their names (Parse, Canonical), their values, and the states from which parts of
// a sum can be taken away again. It knows nothing of tuples, tries or queries.
//
// The natural numbers in int64, by far the most frequent annotation, also have
// plain functions, Add and Mul.
//
// # Laws
//
// Each algebra is a commutative semiring with one, save for "sum" and for
// rounding, and each state is an exact sum: whatever was added and taken away
// before, a state with the same values left has the same components, and Collect
// reads the same value off it. Nothing saturates but cap, and nothing wraps: an
// operation that leaves int64 or float64 is ErrOverflow, and the caller refuses
// the epoch or the row.
//
// The zero of an algebra stands for what is absent and is no value. A number 0
// may be a value all the same: a fact is there when it has a contribution,
// whatever its annotation, so that count and fuzzy take a 0, and in int and real
// sums come to 0. Positive tells of those that only absent facts take there.
//
// # Table
//
// n is the number of different values in a sum. The properties: p positive, i
// idempotent (a + a = a), x exact (independent of the grouping of products for all
// values, not only for integers). Chain is the longest chain of the natural order.
//
//	name          values                    +          *          one      p i x  chain  state
//	bool          truth values              or         and        true     p i x  1      O(1)
//	count         0 .. 2^63-1, checked      +          *          1        p . x  none   O(1)
//	int           int64, checked            +          *          1        . . x  no     O(1)
//	real          finite float64            + exact    * rounded  1        . . .  no     O(1)
//	cap(N)        0 .. N                    + up to N  * up to N  1        p . x  N      O(1)
//	maxplus       numbers                   max        +          0        p i .  none   O(log n)
//	minplus       numbers                   min        +          0        p i .  none   O(log n)
//	maxmax        numbers and -inf          max        max        -inf     p i x  none   O(log n)
//	maxmin        numbers and +inf          max        min        +inf     p i x  none   O(log n)
//	fuzzy         float64 from 0 to 1       max        min        1        p i x  none   O(log n)
//	access(a < b) levels                    least      most       a        p i x  levels O(1)
//	topk(N)       N greatest, with repeats  merge      pairs      (0)      p . .  none   O(log n + N)
//	why           sets of witnesses         union      pairs      {{}}     p i x  none   O(size)
//	poly          N[X], checked             +          *          1        p . x  none   O(size)
//	A * B         pairs                     each       each       (1, 1)   of all        O(size)
//
// The aggregates, whose products have at most one factor that is no sum of ones:
//
//	sum           exact sums                +          n times    1        . . x  no     O(1)
//	min, max      terms                     min, max   the same   nothing  p i x  none   O(log n)
//	distinct      sets of terms             union      union      {}       p i x  none   O(size)
//	top(N)        as topk(N)
//
// State is the cost of reading a value off a state and of moving one part of it,
// in steps of a sorted index; min and max also compare all terms whose order keys
// (term.OrderKey) are equal to the best, as those of IRIs with a common prefix are.
//
// # Numbers
//
// A number is an int64 or a finite float64; what is neither (xsd:decimal) is
// rounded to a float64 when it is lifted, NaN and the infinities are ErrValue, and
// -0 becomes 0. Integers and floats are ordered by their exact values, an integer
// before the float that equals it, and keep their kind. Sums of two integers are
// checked, any other sum is a rounded float64. Rounding keeps the order of floats,
// and integers stay apart from it, so that the algebras of numbers with + obey
// their laws exactly among integers, and up to rounding with floats.
//
// Sums of floats, in real and in sum, are kept exactly and rounded to the nearest
// float64 once, when they are read. In real the values that go into the next
// product are rounded so; in sum the exact one is carried on.
//
// # Invariants
//
//   - Equal values of one instance of an algebra have equal words.
//   - Spread is a homomorphism up to Collect: collecting the sum of the vectors
//     of two values gives the value of their sum.
//   - Component.Low is below 2^56 in each algebra but a product.
//   - No method keeps or changes its arguments. Operations on values of one or two
//     words do not allocate, as long as dst has room.
package semiring
