// Package dict owns the dictionary: which id stands for which term. Below it
// everything is integers.
//
// # Types
//
// [Dict] gives terms the ids 1, 2, 3, ... in the order in which the single
// writer interns them, finds the id of a term, and gives the term of an id
// back. It keeps two content hashes of each term, from which the digests of
// relations are made.
//
// # Guarantees
//
//   - Two terms have one id iff they are the same term; hashes only decide how
//     long it takes to tell.
//   - An id that was published is never taken back and never reused, and terms
//     are never forgotten: the dictionary grows with the number of distinct
//     terms that were ever interned.
//   - Readers take no lock and never wait, whatever the writer does.
//
// # Invariants
//
//   - A reader looks at nothing that belongs to an id above its limit, which it
//     has learnt from a published root vector. So whatever it looks at was
//     complete before that publication, and Truncate may reuse the rest.
//   - What grows with the number of terms is pointer-free except for one pointer
//     a page, so that the garbage collector has nothing to scan.
//
// # Caveats
//
// A term has at most [TermBytesMax] bytes of text, a dictionary at most
// [TermsMax] terms.
//
// The package never reads or writes files, never validates the text of a term,
// and never compares terms by value.
package dict
