// Package hypergraph decides the structural classes of conjunctive queries. A
// query is seen as a hypergraph: each atom is the set of its variables, and
// some variables are output. Everything here works on small integers and knows
// nothing of relations, texts or trees.
//
// # What it owns
//
// [Analyze] decides which of the classes acyclic, free-connex, strong-connex,
// q-hierarchical, exists-hierarchical, head-cluster and full hold, and for
// each class that fails it finds a [Core]: a few variables and atoms that
// prove the failure and can be shown to a user. [Extend] finds what keeps an
// acyclic query from being free-connex as the variables that would have to be
// output.
//
// # Guarantees
//
// Decisions are exact and depend on the input only: no hashing order, no
// randomness, no time. The input is never written. There is no limit on the
// number of variables or atoms, and no step takes exponential time; see
// [Analyze] for the cost.
//
// # Caveats
//
// The classes are properties of the hypergraph handed in. Variables that occur
// in one atom only and are not output should be projected away first by the
// caller if it can do so: the class of what is left may be a better one.
package hypergraph
