package term

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Numeric returns the value of a numeric term (see CompareValues): i where
// integer is set, else f. What is no int64 is rounded to the nearest float64, so
// that a decimal beyond the range of floats becomes an infinity. It does not
// allocate.
func Numeric(t Term) (i int64, f float64, integer, ok bool) {
	n, ok := numberOf(t)
	switch n.class {
	case isInt:
		return n.i, 0, ok, ok
	case isDecimal:
		return 0, n.dec.float(), false, true
	}
	return 0, n.f, false, ok
}

// float is the nearest float64, an infinity beyond their range.
func (d decimal) float() float64 {
	f, _ := strconv.ParseFloat(d.text, 64) // it is well formed, and out of range gives an infinity
	return f
}

// The classes of the order by value, in ascending order.
const (
	classAbsent = iota
	classBlank
	classIRI
	classNumber
	classBool
	classInstant // a time with a zone
	classLocal
	classDate
	classZonedDate
	classString
	classLangString
	classBytes
	classOther
)

// classBits is what OrderKey spends on the class.
const classBits = 4

// Order compares any two terms in one total order by value, which is 0 iff a ==
// b: the order of min and max. Blank nodes come first, then IRIs, numbers,
// truth values, instants, local times, dates without and with a zone, strings,
// language-tagged strings, bytes and other literals. Numbers of all kinds are
// compared exactly, NaN before all others; dates and times by instant; texts by
// their bytes, then by language or datatype. Values that are equal so stand in
// the order of Compare. It agrees with Less, save for decimals with a fraction,
// which Less rounds when it holds them against a float.
//
// It allocates only where a decimal meets the float that it rounds to.
func Order(a, b Term) int {
	if a == b {
		return 0
	}
	class := orderClass(a)
	if c := cmp.Compare(class, orderClass(b)); c != 0 {
		return c
	}
	c := 0
	switch class {
	case classNumber:
		na, _ := numberOf(a)
		nb, _ := numberOf(b)
		c = orderNumbers(na, nb)
	case classBool, classInstant, classLocal, classDate, classZonedDate:
		c, _ = CompareValues(a, b) // there is an order inside of these classes
	case classLangString, classOther:
		c = strings.Compare(a.s, b.s)
	}
	if c != 0 {
		return c
	}
	return Compare(a, b)
}

// OrderKey is a number that grows with the term in the order of Order; terms
// that are close have equal keys: numbers beyond about 49 bits of precision,
// instants within 16 ns, texts that agree in their first 7 bytes. It does not
// allocate.
func OrderKey(t Term) uint64 {
	class := orderClass(t)
	var key uint64
	switch class {
	case classNumber:
		key = numberKey(t)
	case classBool:
		key, _ = boolOf(t)
		key <<= classBits
	case classInstant, classLocal, classDate, classZonedDate:
		at, _, _ := instantOf(t)
		key = instantKey(at)
	case classString, classLangString, classIRI, classBlank, classBytes, classOther:
		var b [8]byte
		copy(b[:], t.s)
		key = binary.BigEndian.Uint64(b[:])
	}
	return uint64(class)<<(64-classBits) | key>>classBits
}

func orderClass(t Term) int {
	switch t.kind {
	case KindBlank:
		return classBlank
	case KindIRI:
		return classIRI
	case KindInt, KindFloat:
		return classNumber
	case KindBool:
		return classBool
	case KindTime:
		return classInstant
	case KindString:
		return classString
	case KindLangString:
		return classLangString
	case KindBytes:
		return classBytes
	case KindTyped:
		return typedClass(t)
	}
	return classAbsent
}

func typedClass(t Term) int {
	if _, ok := numberOf(t); ok {
		return classNumber
	}
	if _, ok := boolOf(t); ok {
		return classBool
	}
	at, date, ok := instantOf(t)
	switch {
	case !ok:
		return classOther
	case date && at.zoned:
		return classZonedDate
	case date:
		return classDate
	case at.zoned:
		return classInstant
	}
	return classLocal
}

// numberKey rounds, which keeps the order; no finite key is 0.
func numberKey(t Term) uint64 {
	i, f, integer, _ := Numeric(t)
	if integer {
		f = float64(i)
	}
	if f != f {
		return 0
	}
	return floatKey(math.Float64bits(f + 0)) // -0 + 0 is 0
}

// instantKey counts nanoseconds where int64 holds them.
func instantKey(at instant) uint64 {
	const second = 1_000_000_000
	switch {
	case at.sec < math.MinInt64/second:
		return 0
	case at.sec >= math.MaxInt64/second:
		return math.MaxUint64
	}
	return uint64(at.sec*second+int64(at.nsec)) ^ 1<<63
}

// orderNumbers compares exactly, NaN first.
func orderNumbers(a, b number) int {
	aNaN, bNaN := a.f != a.f, b.f != b.f
	switch {
	case aNaN && bNaN:
		return 0
	case aNaN:
		return -1
	case bNaN:
		return 1
	case a.class == isDecimal && b.class > isDecimal:
		return orderDecimalFloat(a.dec, b.f)
	case b.class == isDecimal && a.class > isDecimal:
		return -orderDecimalFloat(b.dec, a.f)
	}
	c, _ := compareNumbers(a, b) // exact without a decimal against a float
	return c
}

// orderDecimalFloat compares exactly. Rounding keeps the order, so only an equal
// result can hide a difference.
func orderDecimalFloat(d decimal, f float64) int {
	if c := cmp.Compare(d.float(), f); c != 0 {
		return c
	}
	if math.IsInf(f, 0) { // d is finite
		return cmp.Compare(0, f)
	}
	exact, ok := new(big.Rat).SetString(d.text)
	if !ok {
		return 0
	}
	return exact.Cmp(new(big.Rat).SetFloat64(f))
}
