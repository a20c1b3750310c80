// Package dict owns the dictionary: which id stands for which term. Below it
// everything is integers.
//
// # Types
//
// [Dict] gives terms the ids 1, 2, 3, ... in the order in which the single
// writer interns them, finds the id of a term, and gives the term of an id
// back. It keeps two content hashes of each term, from which the digests of
// relations are made. [Backing] reads the texts of terms that have been written
// elsewhere and need not be in memory.
//
// # Guarantees
//
//   - Two terms have one id iff they are the same term; hashes only decide how
//     long it takes to tell. The one exception is what InternNew and Restore are
//     for: a newer id of a term whose older one nothing uses.
//   - An id is never reused. A term is forgotten by Sweep only, and only if
//     neither Mark nor Intern has named its id since StartMark. Its memory is
//     given back: what is held is bounded by a small multiple of the live terms.
//   - Readers take no lock and never wait for the writer, whatever it does. They
//     wait for the backing only where the text of a term is not in memory.
//   - A text that cannot be read gives no wrong answer: the term is absent, the
//     term to be interned is refused, and Err tells why.
//
// # Invariants
//
//   - A reader loads one immutable state for each call, and looks at nothing in
//     it that belongs to an id above its limit, which it has learnt from a
//     published root vector. The writer writes in place only what belongs to ids
//     above its last one; the rest it replaces by copies. So Truncate may reuse
//     ids, and Sweep may take away what a reader is looking at.
//   - An entry that is not zero is that of a held term; a slot of the table is
//     there for each held term that is no small integer.
//   - What grows with the number of terms is pointer-free except for one pointer
//     a page, so that the garbage collector has nothing to scan.
//   - What comes from a backing or a cache is compared with the content hashes
//     that were made when the term was interned, before it is used.
//
// # Caveats
//
// A term has at most [TermBytesMax] bytes of text, and at most [TermsMax] terms
// are held at a time. Lookups slow down with the number of eras, ranges of 2^32
// ids, in which terms have survived. Sweep makes the table again, about 50 ns
// for each term held, while the writer waits.
//
// The package writes no files, never validates the text of a term, and never
// compares terms by value.
package dict
