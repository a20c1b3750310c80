// Package term owns the values of the store: what a term is, when two terms
// are the same, how a term is written in N-Triples syntax and in stored bytes,
// and how two terms compare by value in a filter.
//
// Invariants:
//   - Two terms join iff they are ==. The constructors canonicalise, so one
//     value that can be written in several ways (a plain string and an
//     xsd:string literal, language tags in any letter case, a canonical typed
//     literal and its native kind) is one Term.
//   - Parse(t.String()) == t for every term with t.Validate() == nil.
//   - AppendBinary gives equal bytes to equal terms and different bytes to
//     different ones.
//
// The package never interns, never assigns ids and knows nothing of queries.
package term

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/triegs/triegs/internal/errs"
)

// Kind tells the kinds of terms apart. The numbers are part of the stored
// format (the first byte of AppendBinary) and never change.
type Kind uint8

// The kinds. KindAbsent is the kind of the zero Term.
const (
	KindAbsent Kind = iota
	KindIRI
	KindString     // a plain string, which is also every xsd:string literal
	KindLangString // a string with a language tag
	KindTyped      // a literal of any other datatype, as written
	KindInt        // int64: the canonical xsd:integer literals that fit
	KindFloat      // float64: the canonical xsd:double literals
	KindBool       // the literals "true" and "false" of xsd:boolean
	KindTime       // int64 nanoseconds: the canonical xsd:dateTime literals that fit
	KindBytes      // the canonical xsd:base64Binary literals
	KindBlank
	kindEnd // one past the last kind
)

var kindNames = [kindEnd]string{
	"absent", "IRI", "string", "language-tagged string", "typed literal",
	"int", "float", "bool", "time", "bytes", "blank node",
}

// String names the kind for messages.
func (k Kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// The datatypes that have a native kind, and the one of language-tagged
// strings.
const (
	XSD          = "http://www.w3.org/2001/XMLSchema#" // the namespace itself
	XSDString    = XSD + "string"
	XSDInteger   = XSD + "integer"
	XSDDecimal   = XSD + "decimal"
	XSDDouble    = XSD + "double"
	XSDBoolean   = XSD + "boolean"
	XSDDateTime  = XSD + "dateTime"
	XSDBase64    = XSD + "base64Binary"
	RDFLangText  = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
	RDFType      = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
	canonicalNaN = 0x7FF8000000000001 // the bits of math.NaN()
)

// Term is an immutable value, comparable with ==. The zero Term means absent
// and is not a value of a tuple.
type Term struct {
	kind Kind
	n    uint64 // the value of Int, Float (bits), Bool (0, 1) and Time (ns)
	s    string // the text of the other kinds
	d    string // the language of LangString, the datatype of Typed
}

// String makes a plain string, which is the same term as an xsd:string literal.
func String(s string) Term { return Term{kind: KindString, s: s} }

// IRI makes an IRI. It is taken as it is: not resolved, not normalised, and it
// may be relative.
func IRI(s string) Term { return Term{kind: KindIRI, s: s} }

// Int makes an integer, the same term as the canonical xsd:integer literal.
func Int(i int64) Term { return Term{kind: KindInt, n: uint64(i)} }

// Float makes a float, the same term as the canonical xsd:double literal.
// Floats are told apart by their bits, so 0 and -0 are two terms; all NaNs
// are one.
func Float(f float64) Term {
	if f != f {
		return Term{kind: KindFloat, n: canonicalNaN}
	}
	return Term{kind: KindFloat, n: math.Float64bits(f)}
}

// Bool makes a truth value.
func Bool(b bool) Term {
	if b {
		return Term{kind: KindBool, n: 1}
	}
	return Term{kind: KindBool}
}

// Time makes an instant; its location is not kept. An instant whose
// nanoseconds since 1970 do not fit in int64 becomes the canonical xsd:dateTime
// literal (KindTyped), which still compares by value.
func Time(t time.Time) Term {
	if timeFits(t) {
		return Term{kind: KindTime, n: uint64(t.UnixNano())}
	}
	return Term{kind: KindTyped, s: string(appendTime(nil, t)), d: XSDDateTime}
}

// Bytes makes a byte string; b is copied.
func Bytes(b []byte) Term { return Term{kind: KindBytes, s: string(b)} }

// Blank makes the blank node of that label. The label is a name: whoever reads
// documents with labels of their own scopes them, within the label grammar of
// N-Triples (see Validate).
func Blank(id string) Term { return Term{kind: KindBlank, s: id} }

// LangString makes a string with a language tag, which is put in lower case.
func LangString(s, lang string) Term {
	return Term{kind: KindLangString, s: s, d: lowerASCII(lang)}
}

// Typed makes a literal of a datatype. An xsd:string literal is the plain
// string; a canonical lexical form of xsd:integer (within int64), xsd:double,
// xsd:boolean, xsd:dateTime (within int64 nanoseconds) or xsd:base64Binary is
// the term of the native kind; anything else is kept as written, also when it
// is no proper lexical form of its datatype.
func Typed(lexical, datatype string) Term {
	if t, ok := native(lexical, datatype); ok {
		return t
	}
	return Term{kind: KindTyped, s: lexical, d: datatype}
}

// native finds the native term whose canonical form is lexical.
func native(lexical, datatype string) (t Term, ok bool) {
	switch datatype {
	case XSDString:
		return String(lexical), true
	case XSDInteger:
		i, err := strconv.ParseInt(lexical, 10, 64)
		t = Int(i)
		ok = err == nil
	case XSDDouble:
		f, isFloat := parseDouble(lexical, 64)
		t, ok = Float(f), isFloat
	case XSDBoolean:
		return Bool(lexical == "true"), lexical == "true" || lexical == "false"
	case XSDDateTime:
		at, isTime := parseInstant(lexical, true)
		if !isTime || !at.zoned || at.rest != "" {
			return Term{}, false
		}
		u := time.Unix(at.sec, int64(at.nsec))
		t, ok = Time(u), timeFits(u)
	case XSDBase64:
		b, err := base64.StdEncoding.Strict().DecodeString(lexical)
		t, ok = Bytes(b), err == nil
	}
	if !ok {
		return Term{}, false
	}
	var buf [64]byte
	return t, string(t.appendLexical(buf[:0])) == lexical
}

// Kind tells what the term is.
func (t Term) Kind() Kind { return t.kind }

// IsZero reports whether the term is the absent one.
func (t Term) IsZero() bool { return t.kind == KindAbsent }

// AsInt returns the value of an Int.
func (t Term) AsInt() (int64, bool) { return int64(t.n), t.kind == KindInt }

// AsFloat returns the value of a Float; an Int is not converted.
func (t Term) AsFloat() (float64, bool) {
	if t.kind != KindFloat {
		return 0, false
	}
	return math.Float64frombits(t.n), true
}

// AsBool returns the value of a Bool.
func (t Term) AsBool() (value, ok bool) { return t.n == 1, t.kind == KindBool }

// AsTime returns the value of a Time, in UTC.
func (t Term) AsTime() (time.Time, bool) {
	if t.kind != KindTime {
		return time.Time{}, false
	}
	return time.Unix(0, int64(t.n)).UTC(), true
}

// AsBytes returns a copy of the value of a Bytes.
func (t Term) AsBytes() ([]byte, bool) {
	if t.kind != KindBytes {
		return nil, false
	}
	return []byte(t.s), true
}

// Lexical returns the text of the term without quotes, brackets, language or
// datatype: the IRI itself, the label of a blank node, the lexical form of a
// literal (the canonical one for native kinds). It allocates for native kinds
// only.
func (t Term) Lexical() string {
	switch t.kind {
	case KindIRI, KindString, KindLangString, KindTyped, KindBlank:
		return t.s
	}
	return string(t.appendLexical(nil))
}

// Lang returns the language tag of a LangString in lower case, else "".
func (t Term) Lang() string {
	if t.kind == KindLangString {
		return t.d
	}
	return ""
}

// Datatype returns the datatype IRI of a literal, and "" for an IRI, a blank
// node and the absent term.
func (t Term) Datatype() string {
	switch t.kind {
	case KindString:
		return XSDString
	case KindLangString:
		return RDFLangText
	case KindTyped:
		return t.d
	case KindInt:
		return XSDInteger
	case KindFloat:
		return XSDDouble
	case KindBool:
		return XSDBoolean
	case KindTime:
		return XSDDateTime
	case KindBytes:
		return XSDBase64
	}
	return ""
}

// Size is the number of bytes of text that the term holds on to.
func (t Term) Size() int { return len(t.s) + len(t.d) }

// Validate reports with ErrValue a term that N-Triples syntax cannot express,
// which a tuple may therefore not hold: the absent term; text that is not
// UTF-8; an IRI or datatype with a character that IRIs forbid (space, controls
// and any of <>"{}|^`\), an empty datatype; a language tag or a blank node
// label outside the N-Triples grammar. Control characters in strings are
// allowed and written with escapes. Bytes may hold anything. The cost is one
// pass over the text.
func (t Term) Validate() error {
	switch t.kind {
	case KindAbsent:
		return fmt.Errorf("%w: the term is absent", errs.ErrValue)
	case KindInt, KindFloat, KindBool, KindTime, KindBytes:
		return nil
	}
	if !utf8.ValidString(t.s) || !utf8.ValidString(t.d) {
		return fmt.Errorf("%w: %s is not UTF-8", errs.ErrValue, t.kind)
	}
	switch {
	case t.kind == KindIRI && badIRIByte(t.s) >= 0:
		return fmt.Errorf("%w: character %q in IRI", errs.ErrValue, t.s[badIRIByte(t.s)])
	case t.kind == KindTyped && t.d == "":
		return fmt.Errorf("%w: empty datatype", errs.ErrValue)
	case t.kind == KindTyped && badIRIByte(t.d) >= 0:
		return fmt.Errorf("%w: character %q in datatype", errs.ErrValue, t.d[badIRIByte(t.d)])
	case t.kind == KindLangString && (t.d == "" || langLen(t.d) != len(t.d)):
		return fmt.Errorf("%w: language tag %q", errs.ErrValue, t.d)
	case t.kind == KindBlank && (t.s == "" || labelLen(t.s) != len(t.s)):
		return fmt.Errorf("%w: blank node label %q", errs.ErrValue, t.s)
	}
	return nil
}

func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.Map(func(r rune) rune {
				if 'A' <= r && r <= 'Z' {
					return r + 'a' - 'A'
				}
				return r
			}, s)
		}
	}
	return s
}

var (
	minTime = time.Unix(0, math.MinInt64)
	maxTime = time.Unix(0, math.MaxInt64)
)

func timeFits(t time.Time) bool { return !t.Before(minTime) && !t.After(maxTime) }
