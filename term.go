package triegs

import (
	"time"

	"github.com/triegs/triegs/internal/term"
)

// Term is a typed, immutable value: an IRI, a plain string, a language-tagged
// string, a typed literal, an integer, a float, a boolean, a time, bytes, or a
// blank node. Terms are comparable: two terms are equal with == iff they are
// the same term, and only then do they join. The zero Term means absent and is
// ErrValue inside a tuple.
//
// The constructors give canonical terms: Typed with the canonical lexical form
// of an xsd integer in int64, double, boolean, dateTime or base64Binary is the
// native kind, an xsd:string is the plain string, and language tags are in
// lower case. So ParseTerm(t.String()) == t for every term t.
type Term = term.Term

// Kind tells the kinds of terms apart; see Term.Kind.
type Kind = term.Kind

// The kinds of terms. KindAbsent is the kind of the zero Term.
const (
	KindAbsent     = term.KindAbsent
	KindIRI        = term.KindIRI
	KindString     = term.KindString     // a plain string
	KindLangString = term.KindLangString // a string with a language tag
	KindTyped      = term.KindTyped      // a literal of any other datatype, as written
	KindInt        = term.KindInt
	KindFloat      = term.KindFloat
	KindBool       = term.KindBool
	KindTime       = term.KindTime
	KindBytes      = term.KindBytes
	KindBlank      = term.KindBlank
)

// String returns the plain string s. The empty string is a term like any
// other.
func String(s string) Term { return term.String(s) }

// IRI returns the IRI s, without angle brackets.
func IRI(s string) Term { return term.IRI(s) }

// Int returns the integer i.
func Int(i int64) Term { return term.Int(i) }

// Float returns the float f. Floats are told apart by their bits: 0 and -0 are
// two terms. All NaNs are one.
func Float(f float64) Term { return term.Float(f) }

// Bool returns the boolean b.
func Bool(b bool) Term { return term.Bool(b) }

// Time returns the instant t as a term. Its location does not matter. An
// instant that int64 nanoseconds since 1970 cannot hold becomes the xsd:dateTime
// literal of it.
func Time(t time.Time) Term { return term.Time(t) }

// Bytes returns a copy of b as a term.
func Bytes(b []byte) Term { return term.Bytes(b) }

// Blank returns the blank node with the literal name id: the same id is the
// same node in every batch and after every restart.
func Blank(id string) Term { return term.Blank(id) }

// LangString returns the string s in the language lang.
func LangString(s, lang string) Term { return term.LangString(s, lang) }

// Typed returns the literal with the given lexical form and datatype IRI.
func Typed(lexical, datatype string) Term { return term.Typed(lexical, datatype) }

// ParseTerm reads one term in N-Triples syntax, the form that Term.String
// writes. It returns ErrSyntax for anything else, also for text after the
// term.
func ParseTerm(s string) (Term, error) { return term.Parse(s) }
