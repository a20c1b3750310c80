// Package invariant holds the checks that run in test builds only.
//
// It owns the switch (the build tags "invariants" and "race"), the panic of a
// broken invariant, the scheduling seams, and the pattern that freed words are
// overwritten with. It never reports bad input: what a caller of the library
// can bring about is an error, and a panic of [Check] always means a fault in
// this module.
//
// Invariants: without a tag [Enabled] is a false constant, and every function
// here is empty and inlined away. Arguments are still evaluated by the caller,
// so an expensive check is guarded:
//
//	if invariant.Enabled {
//		invariant.Check(sum(parts) == whole, "parts sum to %d", sum(parts))
//	}
package invariant

// Poison is the word that freed storage is filled with when [Enabled]. It is
// far above any id or count that a test reaches and odd in every byte pair, so
// that a reader of freed storage fails at once and a dump shows why.
const Poison uint64 = 0xdead_f4ee_dead_f4ed
