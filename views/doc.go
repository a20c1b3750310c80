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
// A free-connex query is a full one over relations that are derived from others:
// one for each cluster of atoms that hang together by variables that are no output.
// A derived relation is the join of its operands folded over some columns, kept up
// by adding what the tuples of the join weigh now and taking away what they weighed
// before; both are read off the tries, of this version and of the one before, so
// nothing else is kept. The derived relations of a cluster form a tree, whose edges
// are the annotated ones of the paper.
//
// Annotations other than counts are tracks: beside the weight of a tuple, the state
// of a sum in some algebra (package semiring) in one more trie, from whose tuples the
// value is read. Presence and counts never depend on them.
//
// The answers of an acyclic query that is not free-connex are kept, folded from
// those of its least free-connex extension.
//
// What is the same for several queries, whatever they call their variables, is kept
// once: indexes, derived relations, node views, answers.
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
//   - an alias that is not a plain selection by constants has a derived relation of
//     its own.
//
// # An epoch
//
// [Store.Apply] takes the net changes of all base relations, brings every index
// up to date, then every derived relation, operands first, then every node view,
// children first, and last the kept answers. A node recomputes each tuple that was
// touched or woken from the final state of its children, so the order of changes does
// not matter and batches and self-joins need no special care. A change is brought to
// the views whose constants it has, a group that comes or goes to those that have
// tuples for it, and the changes below kept answers to those that they may be part
// of, so that what an epoch costs depends on what it concerns and not on how many
// queries there are.
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
// # Hydration
//
// A query over many facts is filled by another goroutine, from a pinned version: a
// [Hydration] is a store of its own whose base relations are pinned, advanced by
// the net changes between two versions as by an epoch, and in the end adopted by
// the store, which compiles the query as always and takes each trie that is there
// already instead of filling it.
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
