// Package trie stores versioned sets of fixed-arity tuples of words, each with
// a non-zero int64 weight, in lexicographic order.
//
// A trie is named by one word, its root, and lives in an [Arena] of blocks
// without pointers. The version under construction writes blocks in place when
// they were born in it and copies them otherwise, so every root of a sealed
// version stays what it was. Whoever keeps a root must see to it that its
// version stays pinned (package mvcc): blocks are reused when no pin needs
// them.
//
// # Shape
//
// A trie over k columns is a burst trie on the digits of the first column,
// inside it on those of the second, and so on. A set of few tuples is one
// packed leaf block, sorted, column by column; a leaf that overflows bursts
// into a 64-way node on the first digit in which its tuples differ. A node
// holds only the children it has (a bitmap says which), and skips digits that
// all its tuples share. A single tuple of one column fits into the word that
// would refer to its block. Below the last digit of the last column the child
// word is the weight itself.
//
// So a group of tuples with a common prefix is a contiguous run of a leaf, or a
// subtree of its own; equal block references mean equal content, which is what
// [Diff] skips by.
//
// # Invariants
//
//   - No block reachable from a root of a sealed version is ever written.
//   - Weights are never zero: a tuple with weight zero is not there, an empty
//     block does not exist, so scans meet no tombstones.
//   - Tuples ascend strictly inside a leaf and across the children of a node.
//
// An Arena has one writer. Readers use a [Space] taken when their version was
// sealed, from any goroutine, and write nothing.
//
// # Nurseries
//
// A large trie need not be built by the writer: an [Arena.Nursery] takes slabs
// with numbers from the same table, so that a reference means the same block in
// both, and is written by a goroutine of its own that reads pinned versions. It
// has its own free lists and accounts until the arena adopts its slabs whole.
package trie
