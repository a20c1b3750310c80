package term

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Equal reports whether two terms are equal by value, as filters see it (see
// CompareValues). Its negation is the != of filters: values of different kinds
// differ, and NaN differs from itself.
func Equal(a, b Term) bool {
	c, ok := CompareValues(a, b)
	return ok && c == 0
}

// Less reports whether a comes before b by value, as filters see it; it is
// false for values that have no order between them.
func Less(a, b Term) bool {
	c, ok := CompareValues(a, b)
	return ok && c < 0
}

// CompareValues compares two terms by value; ok is false where there is no
// order between them.
//
//   - Numbers compare with each other whatever their kind: Int, Float, and
//     literals of xsd:decimal, xsd:double, xsd:float and the integer datatypes
//     of XSD. The comparison is exact; only a decimal with a fraction is
//     rounded to the precision of the float that it is compared with, as in
//     XPath, so that 0.1 written as a decimal equals 0.1 held as a float. NaN
//     compares with nothing.
//   - Times compare by instant, including xsd:dateTime literals in other forms;
//     those without a zone, and xsd:date literals, each among themselves.
//   - Truth values compare with xsd:boolean literals in other forms, false
//     before true.
//   - Strings, IRIs, blank nodes and bytes compare by their bytes within their
//     kind, language-tagged strings within one language.
//   - Other literals are equal to themselves only and have no order.
//
// It allocates only where a whole number beyond int64 meets the float that it
// rounds to.
func CompareValues(a, b Term) (c int, ok bool) {
	if a.kind == KindInt && b.kind == KindInt {
		return cmp.Compare(int64(a.n), int64(b.n)), true
	}
	na, aNumber := numberOf(a)
	nb, bNumber := numberOf(b)
	if aNumber || bNumber {
		if aNumber && bNumber {
			return compareNumbers(na, nb)
		}
		return 0, false
	}
	if a == b {
		return 0, true
	}
	if a.kind != b.kind || a.kind == KindTyped {
		return compareLiterals(a, b)
	}
	switch a.kind {
	case KindBool:
		return cmp.Compare(a.n, b.n), true
	case KindTime:
		return cmp.Compare(int64(a.n), int64(b.n)), true
	case KindLangString:
		if a.d != b.d {
			return 0, false
		}
	}
	return strings.Compare(a.s, b.s), true
}

// compareLiterals compares values of which at least one is a typed literal that
// is no number.
func compareLiterals(a, b Term) (c int, ok bool) {
	if va, okA := boolOf(a); okA {
		vb, okB := boolOf(b)
		return cmp.Compare(va, vb), okB
	}
	ta, dateA, okA := instantOf(a)
	tb, dateB, okB := instantOf(b)
	if !okA || !okB || dateA != dateB || ta.zoned != tb.zoned {
		return 0, false
	}
	if c := cmp.Compare(ta.sec, tb.sec); c != 0 {
		return c, true
	}
	if c := cmp.Compare(ta.nsec, tb.nsec); c != 0 {
		return c, true
	}
	return strings.Compare(ta.rest, tb.rest), true
}

func boolOf(t Term) (v uint64, ok bool) {
	switch {
	case t.kind == KindBool:
		return t.n, true
	case t.kind == KindTyped && t.d == XSDBoolean && (t.s == "0" || t.s == "1"):
		return uint64(t.s[0] - '0'), true
	}
	return 0, false
}

func instantOf(t Term) (at instant, date, ok bool) {
	switch {
	case t.kind == KindTime:
		const second = 1_000_000_000
		sec, nsec := int64(t.n)/second, int64(t.n)%second
		if nsec < 0 {
			sec, nsec = sec-1, nsec+second
		}
		return instant{sec: sec, nsec: int(nsec), zoned: true}, false, true
	case t.kind == KindTyped && t.d == XSDDateTime:
		at, ok = parseInstant(t.s, true)
		return at, false, ok
	case t.kind == KindTyped && t.d == XSD+"date":
		at, ok = parseInstant(t.s, false)
		return at, true, ok
	}
	return at, false, false
}

// number is the value of a numeric term: an int64, a float, or a decimal that
// is no int64.
type number struct {
	class numberClass
	i     int64
	f     float64
	dec   decimal
}

type numberClass uint8

const (
	isInt numberClass = iota
	isDecimal
	isFloat32
	isFloat64
)

// decimal is the exact value of a decimal numeral: integer digits without
// leading zeros, fraction digits without trailing zeros, and the text itself.
type decimal struct {
	neg  bool
	ip   string
	fp   string
	text string
}

// numberOf finds the value of a numeric term.
func numberOf(t Term) (number, bool) {
	switch t.kind {
	case KindInt:
		return number{i: int64(t.n)}, true
	case KindFloat:
		return number{class: isFloat64, f: math.Float64frombits(t.n)}, true
	case KindTyped:
		if strings.HasPrefix(t.d, XSD) {
			return typedNumber(t.s, t.d[len(XSD):])
		}
	}
	return number{}, false
}

func typedNumber(s, datatype string) (number, bool) {
	switch datatype {
	case "double":
		f, ok := parseDouble(s, 64)
		return number{class: isFloat64, f: f}, ok
	case "float":
		f, ok := parseDouble(s, 32)
		return number{class: isFloat32, f: f}, ok
	case "decimal":
	case "integer", "long", "int", "short", "byte",
		"nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
		"unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte":
		if strings.IndexByte(s, '.') >= 0 {
			return number{}, false
		}
	default:
		return number{}, false
	}
	d, ok := parseDecimal(s)
	if !ok {
		return number{}, false
	}
	if i, fits := d.integer(); fits && d.fp == "" {
		return number{i: i}, true
	}
	return number{class: isDecimal, dec: d}, true
}

// parseDecimal reads the lexical forms of xsd:decimal.
func parseDecimal(s string) (decimal, bool) {
	d := decimal{text: s}
	if s != "" && (s[0] == '+' || s[0] == '-') {
		d.neg = s[0] == '-'
		s = s[1:]
	}
	n := digitsLen(s)
	d.ip = s[:n]
	s = s[n:]
	if s != "" && s[0] == '.' {
		s = s[1:]
		d.fp = s[:digitsLen(s)]
		s = s[len(d.fp):]
	}
	if s != "" || d.ip == "" && d.fp == "" {
		return decimal{}, false
	}
	for d.ip != "" && d.ip[0] == '0' {
		d.ip = d.ip[1:]
	}
	d.fp = trimZeros(d.fp)
	return d, true
}

// integer is the integer part with its sign, if int64 holds it.
func (d decimal) integer() (int64, bool) {
	var u uint64
	if len(d.ip) > 19 {
		return 0, false
	}
	for i := range len(d.ip) {
		u = u*10 + uint64(d.ip[i]-'0') // 19 digits fit in uint64
	}
	switch {
	case d.neg && u <= 1<<63:
		return -int64(u), true
	case !d.neg && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}

func (d decimal) sign() int {
	switch {
	case d.ip == "" && d.fp == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func compareNumbers(a, b number) (c int, ok bool) {
	if a.class > b.class {
		c, ok = compareNumbers(b, a)
		return -c, ok
	}
	if b.f != b.f || a.f != a.f {
		return 0, false
	}
	switch {
	case b.class == isInt:
		return cmp.Compare(a.i, b.i), true
	case a.class == isInt && b.class == isDecimal:
		return -compareDecimalInt(b.dec, a.i), true
	case a.class == isInt:
		return compareIntFloat(a.i, b.f), true
	case b.class == isDecimal:
		return compareDecimals(a.dec, b.dec), true
	case a.class == isDecimal:
		return compareDecimalFloat(a.dec, b.f, b.class == isFloat32), true
	}
	return cmp.Compare(a.f, b.f), true
}

// compareIntFloat compares without rounding: the integer part of a float below
// 2^63 converts exactly, and so does its fraction.
func compareIntFloat(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	whole := int64(f)
	if whole != i {
		return cmp.Compare(i, whole)
	}
	return cmp.Compare(0, f-float64(whole))
}

// compareDecimalInt relies on d being no int64 itself: it has a fraction or is
// out of range.
func compareDecimalInt(d decimal, i int64) int {
	whole, fits := d.integer()
	if !fits || whole == i {
		return d.sign()
	}
	return cmp.Compare(whole, i)
}

func compareDecimals(a, b decimal) int {
	sa, sb := a.sign(), b.sign()
	if sa != sb || sa == 0 {
		return cmp.Compare(sa, sb)
	}
	c := cmp.Compare(len(a.ip), len(b.ip))
	if c == 0 {
		c = strings.Compare(a.ip, b.ip)
	}
	if c == 0 {
		c = strings.Compare(a.fp, b.fp)
	}
	return sa * c
}

// compareDecimalFloat rounds d to the float's precision. Rounding keeps the
// order, so only an equal result can hide a difference; for a d with a fraction
// that is wanted, for a whole d the digits decide.
func compareDecimalFloat(d decimal, f float64, single bool) int {
	bits := 64
	if single {
		bits = 32
	}
	rounded, _ := strconv.ParseFloat(d.text, bits) // out of range gives infinity
	if rounded != f || d.fp != "" {
		return cmp.Compare(rounded, f)
	}
	if math.IsInf(f, 0) { // d is finite
		return cmp.Compare(0, f)
	}
	var buf [320]byte // the largest float has 309 digits
	digits := strconv.AppendFloat(buf[:0], math.Abs(f), 'f', 0, 64)
	c := cmp.Compare(len(d.ip), len(digits))
	if c == 0 {
		c = strings.Compare(d.ip, string(digits))
	}
	return d.sign() * c
}

// Compare is a total order over all terms for sorting, which is 0 iff a == b:
// by kind in the order of the Kind constants, then by language or datatype,
// then integers, floats (-0 before 0, NaN last), truth values and times by
// value and texts by their bytes. It is not the order of filters.
func Compare(a, b Term) int {
	if c := cmp.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	switch a.kind {
	case KindInt, KindTime:
		return cmp.Compare(int64(a.n), int64(b.n))
	case KindFloat:
		return cmp.Compare(floatKey(a.n), floatKey(b.n))
	case KindBool:
		return cmp.Compare(a.n, b.n)
	}
	if c := strings.Compare(a.d, b.d); c != 0 {
		return c
	}
	return strings.Compare(a.s, b.s)
}

// floatKey maps float bits to integers in the same order.
func floatKey(bits uint64) uint64 {
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}
