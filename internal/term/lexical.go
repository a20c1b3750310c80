package term

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"
)

// appendLexical appends the lexical form (see Lexical).
func (t Term) appendLexical(dst []byte) []byte {
	switch t.kind {
	case KindInt:
		return strconv.AppendInt(dst, int64(t.n), 10)
	case KindFloat:
		return appendDouble(dst, math.Float64frombits(t.n))
	case KindBool:
		return strconv.AppendBool(dst, t.n == 1)
	case KindTime:
		return appendTime(dst, time.Unix(0, int64(t.n)))
	case KindBytes:
		return base64.StdEncoding.AppendEncode(dst, []byte(t.s))
	}
	return append(dst, t.s...)
}

// appendDouble writes the canonical form of xsd:double (XSD 1.1 part 2,
// doubleCanonicalMap): one digit, a point, the fewest further digits that give
// the number back but at least one, E and the exponent.
func appendDouble(dst []byte, f float64) []byte {
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "INF"...)
	case math.IsInf(f, -1):
		return append(dst, "-INF"...)
	}
	var buf [32]byte
	b := strconv.AppendFloat(buf[:0], f, 'E', -1, 64) // d[.ddd]E±dd
	point, e := false, 0
	for b[e] != 'E' {
		point = point || b[e] == '.'
		e++
	}
	dst = append(dst, b[:e]...)
	if !point {
		dst = append(dst, '.', '0')
	}
	dst = append(dst, 'E')
	if b[e+1] == '-' {
		dst = append(dst, '-')
	}
	digits := b[e+2:]
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
	}
	return append(dst, digits...)
}

// parseDouble reads the lexical forms of xsd:double (bits 64) and xsd:float
// (bits 32), which are fewer than those of strconv: no hexadecimal, no
// underscores, other names of infinity. Numbers out of range become infinite.
func parseDouble(s string, bits int) (float64, bool) {
	switch s {
	case "NaN":
		return math.NaN(), true
	case "INF", "+INF":
		return math.Inf(1), true
	case "-INF":
		return math.Inf(-1), true
	}
	mantissa := s
	for i := range len(s) {
		if s[i] == 'e' || s[i] == 'E' {
			exp := s[i+1:]
			if exp != "" && (exp[0] == '+' || exp[0] == '-') {
				exp = exp[1:]
			}
			if exp == "" || digitsLen(exp) != len(exp) {
				return 0, false
			}
			mantissa = s[:i]
			break
		}
	}
	if _, ok := parseDecimal(mantissa); !ok {
		return 0, false
	}
	f, _ := strconv.ParseFloat(s, bits) // the only error left is of range
	return f, true
}

func digitsLen(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// appendTime writes the canonical form of xsd:dateTime: UTC with the letter Z
// and no trailing zeros in the fraction; years as in XSD 1.1, where 0000 is
// 1 BCE.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 {
		dst, year = append(dst, '-'), -year
	}
	dst = appendPadded(dst, year, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, int(month), 2)
	dst = append(dst, '-')
	dst = appendPadded(dst, day, 2)
	dst = append(dst, 'T')
	dst = appendPadded(dst, t.Hour(), 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, t.Minute(), 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, t.Second(), 2)
	if ns := t.Nanosecond(); ns != 0 {
		dst = append(dst, '.')
		dst = appendPadded(dst, ns, 9)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

// appendPadded writes v >= 0 with leading zeros up to width digits.
func appendPadded(dst []byte, v, width int) []byte {
	var buf [20]byte
	b := strconv.AppendInt(buf[:0], int64(v), 10)
	for n := len(b); n < width; n++ {
		dst = append(dst, '0')
	}
	return append(dst, b...)
}

// instant is the value of an xsd:dateTime or xsd:date literal: seconds since
// 1970 (as if UTC when it has no zone), nanoseconds, and the digits of the
// fraction beyond them without trailing zeros.
type instant struct {
	sec   int64
	nsec  int
	rest  string
	zoned bool
}

// maxYearDigits keeps the seconds of a year within int64 with room to spare.
const maxYearDigits = 9

// parseInstant reads an xsd:dateTime literal, or an xsd:date one when withTime
// is false.
func parseInstant(s string, withTime bool) (at instant, ok bool) {
	p := digits{s: s}
	sign := 1
	if p.skip('-') {
		sign = -1
	}
	n := digitsLen(p.s)
	if n < 4 || n > maxYearDigits || (n > 4 && p.s[0] == '0') {
		return at, false
	}
	year := p.number(n)
	p.want('-')
	month := p.number(2)
	p.want('-')
	day := p.number(2)
	var hour, minute, second int
	if withTime {
		p.want('T')
		hour = p.number(2)
		p.want(':')
		minute = p.number(2)
		p.want(':')
		second = p.number(2)
		if p.skip('.') {
			at.nsec, at.rest = p.fraction()
		}
	}
	offset := p.zone(&at.zoned)
	if p.bad || p.s != "" || month < 1 || month > 12 || day < 1 || minute > 59 || second > 59 {
		return at, false
	}
	midnight := hour == 24 && minute == 0 && second == 0 && at.nsec == 0 && at.rest == ""
	if hour > 23 && !midnight {
		return at, false
	}
	date := time.Date(sign*year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Day() != day {
		return at, false
	}
	at.sec = date.Unix() + int64(hour*3600+minute*60+second-offset)
	return at, true
}

// digits is a cursor over fixed-width fields; the first field that does not fit
// makes it bad for good.
type digits struct {
	s   string
	bad bool
}

func (p *digits) skip(c byte) bool {
	if p.s == "" || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

func (p *digits) want(c byte) {
	if !p.skip(c) {
		p.bad = true
	}
}

func (p *digits) number(width int) int {
	if digitsLen(p.s) < width {
		p.bad = true
		return 0
	}
	v := 0
	for i := range width {
		v = 10*v + int(p.s[i]-'0')
	}
	p.s = p.s[width:]
	return v
}

func (p *digits) fraction() (nsec int, rest string) {
	n := digitsLen(p.s)
	if n == 0 {
		p.bad = true
		return 0, ""
	}
	frac := p.s[:n]
	p.s = p.s[n:]
	for i := range 9 {
		nsec *= 10
		if i < len(frac) {
			nsec += int(frac[i] - '0')
		}
	}
	if len(frac) <= 9 {
		return nsec, ""
	}
	return nsec, trimZeros(frac[9:])
}

// zone reads an optional zone and returns its offset in seconds.
func (p *digits) zone(zoned *bool) int {
	if p.skip('Z') {
		*zoned = true
		return 0
	}
	sign := 1
	switch {
	case p.skip('-'):
		sign = -1
	case !p.skip('+'):
		return 0
	}
	*zoned = true
	h := p.number(2)
	p.want(':')
	m := p.number(2)
	if h > 14 || m > 59 || (h == 14 && m != 0) {
		p.bad = true
	}
	return sign * (h*3600 + m*60)
}

func trimZeros(s string) string {
	for s != "" && s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	return s
}
