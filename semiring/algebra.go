package semiring

import "github.com/triegs/triegs/internal/term"

// Algebra is a commutative semiring whose values are annotations of tuples. A
// value is a list of words, whose length the algebra chooses and may vary from
// value to value; equal values have equal words. The zero is no value: it is
// annotated to what is not there, and never handed to a method.
//
// Sums are kept in a form from which parts can be taken away again: a state is a
// vector of integers over components, most of them 0, and each value spreads to
// such a vector. The state of a sum of values is the sum of their vectors, and
// Collect reads the value off it. (This is the deletable aggregate of Wang and
// Hu, section 4: an invertible sum has one component, a maximum has one for each
// value, a polynomial one for each monomial.)
//
// The methods may be called from several goroutines at once.
type Algebra interface {
	// Name is the algebra as Parse reads it.
	Name() string
	// Traits are the laws and costs beyond those of a semiring.
	Traits() Traits
	// One appends the neutral element of Mul.
	One(dst []uint64) []uint64
	// Lift appends the value that a term stands for; id is the term's id, which only
	// the algebras of min, max and distinct look at. A term that is no value is
	// ErrValue. After an error of this or another method dst is as it was.
	Lift(dst []uint64, id uint64, t term.Term) ([]uint64, error)
	// Mul appends the product of two values. One that does not fit is ErrOverflow.
	Mul(dst, a, b []uint64) ([]uint64, error)
	// Times appends the sum of n > 0 equal values, or ErrOverflow.
	Times(dst, a []uint64, n int64) ([]uint64, error)
	// Spread appends the vector of a value, its components ascending.
	Spread(dst []Part, a []uint64) []Part
	// Collect appends the value of a state that is the sum of at least one vector.
	// A state may have no component left although it is such a sum, as that of 1
	// and -1 has; the caller knows by other means whether anything is there. A value
	// that does not fit is ErrOverflow.
	Collect(dst []uint64, s State) ([]uint64, error)
	// Export turns a value into what a caller of the library sees: int64, float64,
	// string, term.Term, or a slice of those or of such slices.
	Export(a []uint64) any
}

// Component numbers a component of a state, ordered by High, then by Low.
type Component struct{ High, Low uint64 }

// Part is one component of a vector with its number, which is not 0.
type Part struct {
	At Component
	N  int64
}

// State iterates over the components of a state that are not 0, ascending.
type State interface {
	// Next moves to the first or next component and reports whether there is one.
	Next() bool
	// Part is the component that Next has moved to.
	Part() Part
}

// Traits describe an algebra for planning, for EXPLAIN and for tests of its laws.
type Traits struct {
	// Positive says that no sum or product of values is the zero.
	Positive bool
	// Idempotent says that a + a = a, so that multiplicities do not matter.
	Idempotent bool
	// Chain is the length of the longest strictly increasing chain in the natural
	// order, 0 if there is no bound, -1 if there is no natural order.
	Chain int
	// Exact says that results do not depend on the order of operations.
	Exact bool
	// Overflows says that a sum of values that fit may not fit, so that Collect fails
	// on its state. Its cost is constant then.
	Overflows bool
	// State tells the cost of taking a value out of a sum of n, as EXPLAIN prints
	// it: "O(1)", "O(log n)", "O(size)".
	State string
}
