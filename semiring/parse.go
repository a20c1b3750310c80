package semiring

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// Env is what the making of an algebra depends on beside its name.
type Env struct {
	// Terms resolves ids, for "min" and "max" only.
	Terms Resolver
	// Extra are semirings of the user by name. A name that Reserved knows is not
	// looked for here.
	Extra map[string]Definition
}

// Bounds on what a name may ask for.
const (
	keepMax   = 1 << 20 // of topk
	levelsMax = 1 << 16 // of access
)

// Parse makes the algebra of a name:
//
//	spec    = factor { "*" factor }
//	factor  = "bool" | "count" | "int" | "real" | "maxplus" | "minplus" | "maxmax"
//	        | "maxmin" | "fuzzy" | "access(" level { "<" level } ")" | "cap(" N ")"
//	        | "topk(" N ")" | "why" | "poly" | name of a semiring of the user
//	level   = identifier | string in quotes, as in N-Triples
//
// with space anywhere between. Aggregates are made by the names "sum", "min",
// "max", "distinct" and "top(" N ")", which are no factors and which Canonical
// refuses. A name that does not read so is ErrSyntax, one that nothing is known of
// ErrUnsupported, a definition that does not validate ErrValue.
//
// Each call makes an algebra of its own: words of one mean nothing to another.
func Parse(spec string, env Env) (Algebra, error) {
	factors, err := parse(spec)
	if err != nil {
		return nil, err
	}
	if len(factors) > 1 {
		if f, ok := reserved(factors); ok {
			return nil, f.refused()
		}
	}
	made := make([]Algebra, len(factors))
	for i, f := range factors {
		if made[i], err = f.algebra(env); err != nil {
			return nil, err
		}
	}
	if len(made) == 1 {
		return made[0], nil
	}
	return &product{name: canonical(factors), factors: made}, nil
}

// Canonical is the one spelling of a name, without needing an Env. An identifier
// that is no name of a semiring here is let through: Parse decides whether
// there is such a semiring of the user, or Reserved tells that there can be none.
// Anything else that is no name is ErrSyntax, and so are the names of aggregates.
func Canonical(spec string) (string, error) {
	factors, err := parse(spec)
	if err != nil {
		return "", err
	}
	if f, ok := reserved(factors); ok {
		return "", f.refused()
	}
	return canonical(factors), nil
}

// Reserved reports whether a semiring of the user cannot have that name: it is
// taken, or no identifier.
func Reserved(name string) bool {
	_, ok := forms[name]
	return ok || !isIdentifier(name)
}

// form tells what may stand behind a name.
type form struct {
	number    int64 // the greatest number in parentheses, 0 if there is none
	levels    bool
	aggregate bool
}

var forms = map[string]form{
	"bool": {}, "count": {}, "int": {}, "real": {}, "maxplus": {}, "minplus": {}, "maxmax": {},
	"maxmin": {}, "fuzzy": {}, "why": {}, "poly": {},
	"access": {levels: true}, "cap": {number: math.MaxInt64}, "topk": {number: keepMax},
	"sum": {aggregate: true}, "min": {aggregate: true}, "max": {aggregate: true},
	"distinct": {aggregate: true}, "top": {number: keepMax, aggregate: true},
}

// factor is a name with its arguments.
type factor struct {
	name   string
	number int64
	levels []string
}

// reserved finds a factor that is an aggregate.
func reserved(factors []factor) (factor, bool) {
	for _, f := range factors {
		if forms[f.name].aggregate {
			return f, true
		}
	}
	return factor{}, false
}

func (f factor) refused() error {
	return fmt.Errorf("%w: %s is an aggregate, not a semiring", errs.ErrSyntax, f.name)
}

func canonical(factors []factor) string {
	var sb strings.Builder
	for i, f := range factors {
		if i > 0 {
			sb.WriteString(" * ")
		}
		sb.WriteString(f.String())
	}
	return sb.String()
}

// String is the canonical spelling.
func (f factor) String() string {
	form := forms[f.name]
	switch {
	case form.number > 0:
		return f.name + "(" + strconv.FormatInt(f.number, 10) + ")"
	case !form.levels:
		return f.name
	}
	levels := make([]string, len(f.levels))
	for i, l := range f.levels {
		levels[i] = l
		if !isIdentifier(l) {
			levels[i] = term.String(l).String()
		}
	}
	return f.name + "(" + strings.Join(levels, " < ") + ")"
}

// algebra makes one factor.
func (f factor) algebra(env Env) (Algebra, error) {
	switch f.name {
	case "bool":
		return truth{}, nil
	case "count", "int":
		return &integers{name: f.name, negative: f.name == "int"}, nil
	case "cap":
		return &integers{name: f.String(), bound: f.number}, nil
	case "real":
		return real{}, nil
	case "maxplus", "minplus":
		return &ordered{f.name, f.name == "maxplus", productPlus}, nil
	case "maxmax":
		return &ordered{f.name, true, productSame}, nil
	case "maxmin":
		return &ordered{f.name, true, productBoth}, nil
	case "fuzzy":
		return fuzzy{}, nil
	case "access":
		return &access{f.String(), f.levels}, nil
	case "topk", "top":
		return &topK{f.String(), int(f.number)}, nil
	case "why":
		return &why{}, nil
	case "poly":
		return &poly{}, nil
	case "sum":
		return sum{}, nil
	case "distinct":
		return distinct{}, nil
	case "min", "max":
		if env.Terms == nil {
			return nil, fmt.Errorf("%w: %s needs the terms of ids", errs.ErrValue, f.name)
		}
		return &extreme{f.name, f.name == "max", env.Terms}, nil
	}
	if def, ok := env.Extra[f.name]; ok {
		return newCustom(f.name, def)
	}
	return nil, fmt.Errorf("%w: there is no semiring %s", errs.ErrUnsupported, f.name)
}

// scanner reads a name from the left.
type scanner struct {
	whole, rest string
}

func parse(spec string) ([]factor, error) {
	s := scanner{spec, spec}
	var factors []factor
	for {
		f, err := s.factor()
		if err != nil {
			return nil, err
		}
		factors = append(factors, f)
		switch {
		case s.skip('*') && len(factors) < factorsMax:
		case s.rest == "":
			return factors, nil
		case len(factors) == factorsMax:
			return nil, s.fail("more than %d factors", factorsMax)
		default:
			return nil, s.fail("%s at the end", quote(s.rest))
		}
	}
}

func (s *scanner) fail(format string, args ...any) error {
	return fmt.Errorf("%w: semiring %s: %s", errs.ErrSyntax, quote(s.whole), fmt.Sprintf(format, args...))
}

// quote quotes a part of a name for a message, cut where it is long.
func quote(s string) string {
	const most = 40 // characters
	n := 0
	for i := range s {
		if n == most {
			return strconv.Quote(s[:i]) + "..."
		}
		n++
	}
	return strconv.Quote(s)
}

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t\r\n") }

// skip reads a character and the space around it.
func (s *scanner) skip(c byte) bool {
	s.space()
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	s.space()
	return true
}

// identifier reads one, or "".
func (s *scanner) identifier() string {
	s.space()
	n := identifierLen(s.rest)
	id := s.rest[:n]
	s.rest = s.rest[n:]
	return id
}

func (s *scanner) factor() (f factor, err error) {
	if f.name = s.identifier(); f.name == "" {
		return f, s.fail("a name is missing")
	}
	form := forms[f.name]
	arguments := form.levels || form.number > 0
	if s.skip('(') != arguments {
		if arguments {
			return f, s.fail("%s needs an argument in parentheses", f.name)
		}
		return f, s.fail("%s takes no argument", quote(f.name))
	}
	switch {
	case form.levels:
		f.levels, err = s.levels()
	case form.number > 0:
		f.number, err = s.number(form.number)
	default:
		return f, nil
	}
	if err == nil && !s.skip(')') {
		err = s.fail("a closing parenthesis is missing")
	}
	return f, err
}

func (s *scanner) number(most int64) (int64, error) {
	s.space()
	n := 0
	for n < len(s.rest) && '0' <= s.rest[n] && s.rest[n] <= '9' {
		n++
	}
	i, err := strconv.ParseInt(s.rest[:n], 10, 64)
	if err != nil || i < 1 || i > most {
		return 0, s.fail("the argument is no whole number from 1 to %d", most)
	}
	s.rest = s.rest[n:]
	return i, nil
}

func (s *scanner) levels() ([]string, error) {
	var levels []string
	seen := map[string]bool{}
	for {
		level, err := s.level()
		if err != nil {
			return nil, err
		}
		if seen[level] {
			return nil, s.fail("level %s occurs twice", quote(level))
		}
		seen[level] = true
		levels = append(levels, level)
		if !s.skip('<') {
			return levels, nil
		}
		if len(levels) == levelsMax {
			return nil, s.fail("more than %d levels", levelsMax)
		}
	}
}

func (s *scanner) level() (string, error) {
	s.space()
	if !strings.HasPrefix(s.rest, `"`) {
		if id := s.identifier(); id != "" {
			return id, nil
		}
		return "", s.fail("a level is missing: a name or a string")
	}
	t, n, err := term.ParsePrefix(s.rest)
	if err != nil {
		return "", s.fail("%v", err)
	}
	if t.Kind() != term.KindString {
		return "", s.fail("level %s is no plain string", quote(t.String()))
	}
	s.rest = s.rest[n:]
	return t.Lexical(), nil
}

func isIdentifier(s string) bool { return s != "" && identifierLen(s) == len(s) }

// identifierLen is the length of the identifier that s begins with: letters,
// digits and underscores, the first no digit, as names in rule text.
func identifierLen(s string) int {
	for i, r := range s {
		letter := r == '_' || unicode.IsLetter(r)
		inner := '0' <= r && r <= '9' || unicode.Is(unicode.Mn, r)
		if !letter && (i == 0 || !inner) {
			return i
		}
	}
	return len(s)
}
