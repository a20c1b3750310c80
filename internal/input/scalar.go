package input

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/triegs/triegs"
)

// nsPerMs is the number of nanoseconds in a millisecond.
const nsPerMs = int64(time.Millisecond)

// The times that int64 nanoseconds since 1970 can hold.
var (
	minTime = time.Unix(0, math.MinInt64)
	maxTime = time.Unix(0, math.MaxInt64)
)

// parseTime reads integer milliseconds since 1970 or RFC 3339. RFC 3339 demands
// a zone offset, and so do we: reading a time without one as UTC, or worse in
// the machine's zone, would shift windows without a word. The result is in UTC,
// so the machine's zone never shows.
func parseTime(b []byte) (time.Time, error) {
	if isInteger(b) {
		ms, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil || ms > math.MaxInt64/nsPerMs || ms < math.MinInt64/nsPerMs {
			return time.Time{}, fmt.Errorf("%w: %s ms since 1970 does not fit in int64 nanoseconds", triegs.ErrTime, clip(b))
		}
		return time.UnixMilli(ms).UTC(), nil
	}
	var t time.Time
	if !isRFC3339(b) || t.UnmarshalText(b) != nil {
		return time.Time{}, fmt.Errorf("%w: %q is neither integer milliseconds nor RFC 3339 with a zone offset", triegs.ErrTime, clip(b))
	}
	if t.Before(minTime) || t.After(maxTime) {
		return time.Time{}, fmt.Errorf("%w: %s does not fit in int64 nanoseconds since 1970", triegs.ErrTime, b)
	}
	return t.UTC(), nil
}

// ParseTime reads a time as all inputs have it: integer milliseconds since 1970
// or RFC 3339 with its zone offset. The result is in UTC. Errors: ErrTime.
func ParseTime(text string) (time.Time, error) { return parseTime([]byte(text)) }

// isRFC3339 checks the shape of a time, which the time package is loose about:
// it takes hours of one digit and a comma before the fraction.
func isRFC3339(b []byte) bool {
	const shape = "0000-00-00T00:00:00"
	if len(b) <= len(shape) || bytes.IndexByte(b, ',') >= 0 {
		return false
	}
	for i := range len(shape) {
		isDigit := b[i] >= '0' && b[i] <= '9'
		if wantDigit := shape[i] == '0'; isDigit != wantDigit || !isDigit && b[i] != shape[i] {
			return false
		}
	}
	return true
}

// parseValue reads the value column of tsv and csv: a decimal number if it is
// one, else a plain string.
func parseValue(b []byte) (triegs.Term, error) {
	switch {
	case isInteger(b):
		return parseInt(b)
	case isDecimal(b):
		return parseFloat(b)
	}
	return triegs.String(string(b)), nil
}

func parseInt(b []byte) (triegs.Term, error) {
	i, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return triegs.Term{}, fmt.Errorf("%w: %s is not an integer in int64", triegs.ErrValue, clip(b))
	}
	return triegs.Int(i), nil
}

func parseFloat(b []byte) (triegs.Term, error) {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return triegs.Term{}, fmt.Errorf("%w: %s is not a number in float64", triegs.ErrValue, clip(b))
	}
	return triegs.Float(f), nil
}

// digits returns the index after the decimal digits that begin at i.
func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// signed returns the index after a sign at i, if there is one.
func signed(b []byte, i int) int {
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		return i + 1
	}
	return i
}

// isInteger tells whether b is digits after an optional sign.
func isInteger(b []byte) bool {
	i := signed(b, 0)
	j := digits(b, i)
	return j > i && j == len(b)
}

// isDecimal tells whether b is a decimal number. strconv.ParseFloat also takes
// nan, inf, hexadecimal and underscores, which are words here (TERM-10).
func isDecimal(b []byte) bool {
	i := signed(b, 0)
	j := digits(b, i)
	n := j - i
	if j < len(b) && b[j] == '.' {
		k := digits(b, j+1)
		n += k - j - 1
		j = k
	}
	if n == 0 {
		return false
	}
	if j < len(b) && (b[j] == 'e' || b[j] == 'E') {
		i = signed(b, j+1)
		if j = digits(b, i); j == i {
			return false
		}
	}
	return j == len(b)
}

// clip keeps a text that goes into a message short.
func clip(b []byte) string {
	const limit = 60
	if len(b) <= limit {
		return string(b)
	}
	return string(b[:limit]) + "..."
}
