package oracle

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/term"
)

// classes are the terms that Min and Max tell apart first, ascending; a test is
// not reached by what an earlier one takes. Whether a literal is a date is seen
// from whether a filter compares it with one.
var classes = []func(t term.Term) bool{
	func(t term.Term) bool { return t.Kind() == term.KindBlank },
	func(t term.Term) bool { return t.Kind() == term.KindIRI },
	func(t term.Term) bool { _, ok := exactOf(t); return ok },
	comparesWith(term.Bool(true)),
	comparesWith(term.Typed("2000-01-01T00:00:00Z", term.XSDDateTime)),
	comparesWith(term.Typed("2000-01-01T00:00:00", term.XSDDateTime)),
	comparesWith(term.Typed("2000-01-01", term.XSD+"date")),
	comparesWith(term.Typed("2000-01-01Z", term.XSD+"date")),
	func(t term.Term) bool { return t.Kind() == term.KindString },
	func(t term.Term) bool { return t.Kind() == term.KindLangString },
	func(t term.Term) bool { return t.Kind() == term.KindBytes },
	func(term.Term) bool { return true },
}

// comparesWith tells whether filters order terms and t.
func comparesWith(t term.Term) func(term.Term) bool {
	return func(other term.Term) bool {
		_, ok := term.CompareValues(other, t)
		return ok
	}
}

// compareTerms is the order of Min and Max over all terms: by class, then by
// value, numbers exactly and whatever their kind, texts before their languages
// and datatypes; what is equal so in the order of term.Compare.
func compareTerms(a, b term.Term) int {
	class := func(t term.Term) int {
		return slices.IndexFunc(classes, func(is func(term.Term) bool) bool { return is(t) })
	}
	if c := cmp.Compare(class(a), class(b)); c != 0 {
		return c
	}
	c := 0
	x, number := exactOf(a)
	switch {
	case number:
		y, _ := exactOf(b)
		c = x.compare(y)
	case a.Kind() == term.KindLangString, class(a) == len(classes)-1:
		c = strings.Compare(a.Lexical(), b.Lexical())
	default:
		c, _ = term.CompareValues(a, b)
	}
	if c != 0 {
		return c
	}
	return term.Compare(a, b)
}

// exact is the value of a numeric term.
type exact struct {
	rank  int // NaN, -INF, finite, INF
	value *big.Rat
	whole bool // an int64 written as one, not as a float
}

// compare is a total order, NaN first.
func (x exact) compare(y exact) int {
	if c := cmp.Compare(x.rank, y.rank); c != 0 {
		return c
	}
	return x.value.Cmp(y.value)
}

// The lexical forms of numbers in XSD.
var (
	wholeForm   = regexp.MustCompile(`^[+-]?[0-9]+$`)
	decimalForm = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`)
	doubleForm  = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// wholeTypes are the datatypes of whole numbers.
var wholeTypes = []string{
	"integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger",
	"nonPositiveInteger", "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
}

// exactOf reads a numeric term: integers, floats, and literals of the numeric
// datatypes of XSD.
func exactOf(t term.Term) (exact, bool) {
	if i, ok := t.AsInt(); ok {
		return exact{2, new(big.Rat).SetInt64(i), true}, true
	}
	if f, ok := t.AsFloat(); ok {
		return exactFloat(f), true
	}
	datatype, ok := strings.CutPrefix(t.Datatype(), term.XSD)
	if t.Kind() != term.KindTyped || !ok {
		return exact{}, false
	}
	text := t.Lexical()
	switch {
	case datatype == "double":
		return float(text, 64)
	case datatype == "float":
		return float(text, 32)
	case slices.Contains(wholeTypes, datatype) && wholeForm.MatchString(text),
		datatype == "decimal" && decimalForm.MatchString(text):
		r, ok := new(big.Rat).SetString(text)
		return exact{2, r, ok && r.IsInt() && r.Num().IsInt64()}, ok
	}
	return exact{}, false
}

// float reads a float in so many bits.
func float(text string, bits int) (exact, bool) {
	switch text {
	case "NaN":
		return exactFloat(math.NaN()), true
	case "INF", "+INF":
		return exactFloat(math.Inf(1)), true
	case "-INF":
		return exactFloat(math.Inf(-1)), true
	}
	f, _ := strconv.ParseFloat(text, bits) // beyond the range, an infinity
	return exactFloat(f), doubleForm.MatchString(text)
}

// exactFloat is a float as it is.
func exactFloat(f float64) exact {
	switch {
	case math.IsNaN(f):
		return exact{0, new(big.Rat), false}
	case math.IsInf(f, -1):
		return exact{1, new(big.Rat), false}
	case math.IsInf(f, 1):
		return exact{3, new(big.Rat), false}
	}
	return exact{2, new(big.Rat).SetFloat64(f), false}
}
