package randq

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/oracle"
)

// Parse reads what String writes. Blank lines and lines that begin with # are
// passed over.
func Parse(text string) (Case, error) {
	var c Case
	for i, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		if err := c.line(tokens(l)); err != nil {
			return Case{}, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return c, nil
}

// line adds one line to the case.
func (c *Case) line(ts []string) error {
	switch ts[0] {
	case "query":
		q, err := parseQuery(ts[1:])
		c.Queries = append(c.Queries, q)
		return err
	case "epoch":
		c.Epochs = append(c.Epochs, Batch{IgnoreMissing: len(ts) > 1})
		return nil
	case "+", "-":
		if len(c.Epochs) == 0 {
			return fmt.Errorf("an event before the first epoch")
		}
		e, err := parseEvent(ts)
		last := &c.Epochs[len(c.Epochs)-1]
		last.Events = append(last.Events, e)
		return err
	}
	return fmt.Errorf("unknown line %q", ts[0])
}

// tokens splits a line into terms, names, numbers and signs.
func tokens(l string) (out []string) {
	for i := 0; i < len(l); {
		j := i + 1
		switch {
		case l[i] == ' ':
			i++
			continue
		case l[i] == '"':
			j = quoted(l, i)
		case l[i] == '=' && j < len(l) && l[j] == '"':
			j = quoted(l, j)
		case l[i] == '<' && j < len(l) && l[j] != ' ' && l[j] != '=':
			j += strings.IndexByte(l[i:], '>')
		case strings.IndexByte("()[],.", l[i]) < 0:
			for j < len(l) && strings.IndexByte(" ()[],.", l[j]) < 0 {
				j++
			}
		}
		out = append(out, l[i:j])
		i = j
	}
	return out
}

// quoted finds the end of the literal that begins at i.
func quoted(l string, i int) int {
	j := i + 1
	for j < len(l) && l[j] != '"' {
		if l[j] == '\\' {
			j++
		}
		j++
	}
	j = min(j+1, len(l))
	if strings.HasPrefix(l[j:], "^^<") {
		return j + strings.IndexByte(l[j:], '>') + 1
	}
	for j < len(l) && strings.IndexByte(" (),.", l[j]) < 0 {
		j++ // a language tag
	}
	return j
}

// long undoes short.
func long(t string) string {
	if _, err := strconv.Atoi(t); err == nil {
		return `"` + t + xsdInteger
	}
	return t
}

// variable tells whether a token of a query is a name.
func variable(t string) bool { return t[0] >= 'a' && t[0] <= 'z' || t == "_" }

// parseQuery reads the words of a query line.
func parseQuery(ts []string) (Query, error) {
	var q Query
	if len(ts) > 0 && ts[0] == "sparql" {
		q.SPARQL, ts = true, ts[1:]
	}
	end := slices.Index(ts, ".")
	sign := slices.Index(ts, ":-")
	if sign < 3 || end < sign {
		return q, fmt.Errorf("not a rule: %q", ts)
	}
	q.Name = ts[0]
	if err := q.parseHead(ts[2 : sign-1]); err != nil {
		return q, err
	}
	if err := q.body(ts[sign+1 : end]); err != nil {
		return q, err
	}
	ts = ts[end+1:]
	for len(ts) > 0 {
		next := slices.Index(ts[1:], "values") + 1
		if next == 0 {
			next = len(ts)
		}
		q.Values = append(q.Values, parseValues(ts[1:next]))
		ts = ts[next:]
	}
	return q, nil
}

// body reads atoms, comparisons and options.
func (q *Query) body(ts []string) error {
	fresh := 0
	arg := func(t string) oracle.Arg {
		switch {
		case t == "_":
			fresh++
			return oracle.Arg{Var: fmt.Sprintf("_%d", fresh)}
		case variable(t) && !strings.HasPrefix(t, "_:"):
			return oracle.Arg{Var: t}
		}
		return oracle.Arg{Const: long(t)}
	}
	own := map[int]bool{}
	var err error
	for len(ts) > 0 && err == nil {
		switch {
		case ts[0] == ",":
			ts = ts[1:]
		case ts[0] == "window":
			q.Window, ts, err = parseWindow(ts[1:])
		case ts[0] == "last":
			q.Window, ts, err = parseWindow(ts)
		case ts[0] == "[" && len(q.Atoms) > 0:
			last := len(q.Atoms) - 1
			own[last] = true
			q.Atoms[last].Window, ts, err = ownWindow(ts[1:])
		case ts[0] == "distinct":
			q.Distinct, ts = true, ts[1:]
		case ts[0] == "semiring":
			q.Semiring, ts, err = parseSemiring(ts[1:])
		case ts[0] == "@" && len(q.Atoms) > 0:
			q.Atoms[len(q.Atoms)-1].Annotated, ts = true, ts[1:]
		case ts[0] == "set":
			q.Set, ts = true, ts[1:]
		case len(ts) > 1 && ts[1] == "(":
			a := oracle.Atom{Relation: ts[0]}
			end := slices.Index(ts, ")")
			if end < 0 {
				return fmt.Errorf("atom %s has no end", ts[0])
			}
			for _, t := range ts[2:end] {
				if t != "," {
					a.Args = append(a.Args, arg(t))
				}
			}
			q.Atoms, ts = append(q.Atoms, a), ts[end+1:]
		case len(ts) > 2:
			q.Filters = append(q.Filters, Compare{ts[0], ts[1], arg(ts[2])})
			ts = ts[3:]
		default:
			return fmt.Errorf("unexpected %q", ts)
		}
	}
	for i := range q.Atoms {
		if !own[i] {
			q.Atoms[i].Window = q.Window
		}
	}
	return err
}

// ownWindow reads the window of an atom behind its opening bracket.
func ownWindow(ts []string) (w oracle.Window, rest []string, err error) {
	if w, ts, err = parseWindow(ts); err == nil && (len(ts) == 0 || ts[0] != "]") {
		err = fmt.Errorf("the window of an atom has no end")
	}
	if err != nil {
		return w, nil, err
	}
	return w, ts[1:], nil
}

// parseValues reads names and rows with colons before them.
func parseValues(ts []string) (v oracle.Values) {
	for _, t := range ts {
		switch {
		case t == ":":
			v.Rows = append(v.Rows, nil)
		case len(v.Rows) == 0:
			v.Vars = append(v.Vars, t)
		default:
			last := len(v.Rows) - 1
			v.Rows[last] = append(v.Rows[last], long(t))
		}
	}
	return v
}

// parseEvent reads the words of an event.
func parseEvent(ts []string) (oracle.Event, error) {
	e := oracle.Event{Delete: ts[0] == "-"}
	for _, t := range ts[1:] {
		switch {
		case t[0] == '@':
			at, err := strconv.ParseInt(t[1:], 10, 64)
			if err != nil {
				return e, err
			}
			e.Time = at
		case t[0] == '#':
			e.ID = t[1:]
		case t[0] == '=':
			e.Value = long(t[1:])
		case e.Relation == "":
			e.Relation = t
		default:
			e.Tuple = append(e.Tuple, long(t))
		}
	}
	return e, nil
}
