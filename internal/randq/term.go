package randq

import (
	"strconv"
	"strings"
)

// The ends of the N-Triples text of a number.
const (
	xsdInteger = `"^^<http://www.w3.org/2001/XMLSchema#integer>`
	xsdDouble  = `"^^<http://www.w3.org/2001/XMLSchema#double>`
)

// integer gives the N-Triples text of i.
func integer(i int) string { return `"` + strconv.Itoa(i) + xsdInteger }

// double gives the N-Triples text of a double of that lexical form.
func double(lexical string) string { return `"` + lexical + xsdDouble }

// terms is what domains are drawn from: mostly strings and integers, and some
// terms that are equal by value and yet are other terms.
var terms = []string{
	`"a"`, `"b"`, `"c"`, `"d"`, `"e"`, integer(0), integer(1), integer(2), integer(3), integer(-4),
	`"a"`, `"b"`, `"c"`, integer(1), integer(2),
	`"1.0E0` + xsdDouble, `"2.5E0` + xsdDouble, `"1"`, `""`, `"a"@en`, `<http://example.org/a>`, `_:a`, `"it\"s\n\\"`,
}

// ordered are the constants of filters: those whose order is plain.
var ordered = []string{`"a"`, `"b"`, `"c"`, integer(0), integer(1), integer(2), `"1.0E0` + xsdDouble, `"2.5E0` + xsdDouble}

// number gives the value of the text of a number.
func number(t string) (float64, bool) {
	for _, end := range []string{xsdInteger, xsdDouble} {
		if lex, ok := strings.CutSuffix(t, end); ok {
			f, err := strconv.ParseFloat(lex[1:], 64)
			return f, err == nil
		}
	}
	return 0, false
}

// plain tells whether t is the text of a plain string.
func plain(t string) bool { return strings.HasPrefix(t, `"`) && strings.HasSuffix(t, `"`) }

// holds decides a comparison: numbers by value across their kinds, plain
// strings by their bytes, all else by identity; between kinds only != holds.
// (The one escaped string of the domain is never compared for order with
// another escaped one, so the order of the texts is that of the strings.)
func holds(left, op, right string) bool {
	c, comparable := 0, false
	l, lok := number(left)
	r, rok := number(right)
	switch {
	case lok && rok:
		comparable = true
		if l < r {
			c = -1
		} else if l > r {
			c = 1
		}
	case plain(left) && plain(right):
		// Without the closing quote, which would sort a prefix after what
		// follows it.
		c, comparable = strings.Compare(left[:len(left)-1], right[:len(right)-1]), true
	}
	switch op {
	case "=":
		return left == right || comparable && c == 0
	case "!=":
		return left != right && !(comparable && c == 0)
	case "<":
		return comparable && c < 0
	case "<=":
		return comparable && c <= 0
	case ">":
		return comparable && c > 0
	}
	return comparable && c >= 0
}
