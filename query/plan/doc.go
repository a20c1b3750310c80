// Package plan turns a logical query into the join tree over which its answers
// are maintained and enumerated, and explains that tree and its price.
//
// # What it owns
//
// [Compile] normalises a query (one [Alias] for each atom; constants, repeated
// variables, private variables, filters and inline tables folded into it),
// decides the class of what is left, finds the clusters of aliases that variables
// which are not output hold together, and chooses the trees: one for each
// [Cluster], and one for the full query over clusters and the other aliases. It
// also says what is computed for each answer ([Payload]). [Explain] tells the same
// for queries of every class, also of those that are refused.
//
// # Guarantees
//
// A [Plan] is a function of the query alone: the same query gives the same
// plan, on every machine and in every version of the data. Acyclic queries are
// planned; one that is not free-connex has the least set of variables treated as
// output that makes it so. A cyclic query is refused with errs.ErrUnsupported and
// a sentence that names the variables and atoms that make it so.
//
// A tree has each alias once; the nodes of a variable are connected; Key is
// what a node shares with its parent; the schema of a generalized node is
// contained in at least two aliases or empty, and is the key of every one of
// its children (all of them are providers), of which there are at least two. What
// a node of a cluster does not have in its key it shares with a child. In the
// clusters of a strong-connex query every parent is contained in its children.
//
// # Caveats
//
// The package knows nothing of ids, data or statistics: every alias with a
// window is taken to change at the same rate, one without beside them hardly
// ever, and in a query without windows all of them at the same rate. A query
// beyond [MaxAtoms] or [MaxArgs] is refused.
package plan
