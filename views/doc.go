// Package views keeps the indexes and node views of registered queries, passes
// the net changes of an epoch up their join trees, and reads answers from a
// root vector.
//
// # What is kept
//
// For a full acyclic query nothing is materialised beyond the base facts and,
// at each inner node of the join tree, the tuples that have a partner in every
// child ("live" tuples). No annotation travels: the multiplicity of an answer
// is the product of the weights at the nodes, formed while enumerating (Wang
// and Hu, annotated CROWN; for full queries every tree edge is Boolean).
//
// All of it stands in versioned tries:
//
//   - an [Index] is a relation in one order of its columns. A leaf of a join
//     tree is nothing but an index ordered by its constants, then the columns
//     shared with the parent, and so is shared by all queries that ask for that
//     order. The order by the columns shared with a child serves to find the
//     tuples that a change in the child wakes.
//   - an inner node has a trie of its live tuples, ordered by the columns
//     shared with its parent.
//   - an alias that is not a plain selection by constants has a relation of its
//     own, derived from the base relation fact by fact.
//
// # An epoch
//
// [Store.Apply] takes the net changes of all base relations, brings every index
// up to date, and then visits the nodes of each affected query bottom up. A
// node recomputes each tuple that was touched or woken from the final state of
// its children, so the order of changes does not matter and batches and
// self-joins need no special care.
//
// # Deltas
//
// [Query.Deltas] walks the answers that differ between two versions, near or far
// apart, from nothing but their tries: what has changed at a node is what the tries
// of both versions do not share. It climbs from a changed tuple to the root, through
// the trie of the parent where that begins with the key, and else through the index
// by which the parent is woken, past tuples that are dead. So a query that nobody
// takes deltas of pays nothing for them. Kept answers are brought up to date by the
// same walk inside the version under construction.
//
// # Invariants
//
//   - A node's trie holds exactly the candidate tuples for which every child
//     has a non-empty group, with the weight of the candidate.
//   - So a tuple of a node always has partners below: top-down enumeration
//     meets no dead end.
//   - Nothing outside the versioned tries carries state from one epoch to the
//     next, so a refused epoch is undone by going back to the old roots.
package views
