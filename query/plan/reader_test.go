package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

// The room of plans does not know the text forms, so its tests read queries in
// a small form of their own. The first line is a rule:
//
//	q(x, y) :- r(x, y, _), s(y, 7, "text")
//
// An atom may have a window behind it: [10m], [10m slide 1m] or [last 5], and r@
// reads the values of its contributions. The head may have the aggregates count(),
// distinct(x), sum(x), avg(x), min(x), max(x) and top(x 3).
//
// Every further line is a condition, taken for one filter of comparisons joined
// by &&, a table of rows of integers, or an option:
//
//	filter x > 3 && y != x
//	values x y | 1 2 | 3 4
//	semiring minplus
//	distinct

var atomForm = regexp.MustCompile(`([^\s(),]+)\(([^()]*)\)(\[[^\[\]]*\])?`)

// read reads a query, or fails the test.
func read(t testing.TB, text string) *query.Query {
	t.Helper()
	q, err := readQuery(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

var aggregateForm = regexp.MustCompile(`(count|distinct|sum|avg|min|max|top)\(([^()]*)\)`)

// aggregate reads an aggregate from the parts of aggregateForm.
func (r *queryReader) aggregate(m []string) {
	g := query.Aggregate{Var: query.NoVar, Column: m[0], Pos: r.q.HeadPos}
	words := strings.Fields(m[2])
	if len(words) > 0 {
		g.Var = r.arg(words[0]).Var
	}
	if len(words) > 1 {
		g.K, _ = strconv.Atoi(words[1])
	}
	g.Func = map[string]query.Func{
		"count": query.Count, "distinct": query.CountDistinct, "sum": query.Sum, "avg": query.Avg,
		"min": query.Min, "max": query.Max, "top": query.TopK,
	}[m[1]]
	r.q.Aggregates = append(r.q.Aggregates, g)
}

type queryReader struct{ q *query.Query }

func readQuery(text string) (*query.Query, error) {
	r := &queryReader{q: &query.Query{Text: text, HeadPos: query.Pos{Line: 1, Col: 1}}}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	head, body, ok := strings.Cut(lines[0], ":-")
	name, list, _ := strings.Cut(head, "(")
	if list = strings.TrimSpace(list); !ok || !strings.HasSuffix(list, ")") {
		return nil, fmt.Errorf("no rule")
	}
	r.q.Name = name
	list = aggregateForm.ReplaceAllStringFunc(strings.TrimSuffix(list, ")"), func(s string) string {
		r.aggregate(aggregateForm.FindStringSubmatch(s))
		return ""
	})
	for _, a := range r.args(list) {
		r.q.Head = append(r.q.Head, a.Var)
		r.q.Columns = append(r.q.Columns, r.q.Vars[a.Var])
	}
	for _, at := range atomForm.FindAllStringSubmatchIndex(body, -1) {
		a := query.Atom{
			Relation: body[at[2]:at[3]],
			Args:     r.args(body[at[4]:at[5]]),
			Pos:      query.Pos{Line: 1, Col: len(head) + 2 + at[0] + 1},
		}
		a.Relation, a.Annotated = strings.CutSuffix(a.Relation, "@")
		if at[6] >= 0 {
			var err error
			if a.Window, err = readWindow(strings.Fields(strings.Trim(body[at[6]:at[7]], "[]"))); err != nil {
				return nil, err
			}
		}
		r.q.Atoms = append(r.q.Atoms, a)
	}
	for i, l := range lines[1:] {
		pos := query.Pos{Line: i + 2, Col: 1}
		if rest, ok := strings.CutPrefix(l, "filter "); ok {
			r.filter(pos, rest)
		} else if rest, ok := strings.CutPrefix(l, "values"); ok {
			r.values(pos, rest)
		} else if rest, ok := strings.CutPrefix(l, "semiring "); ok {
			r.q.Semiring = rest
		} else if l == "distinct" {
			r.q.Distinct = true
		} else if l == "set" {
			r.q.Set = true
		} else {
			return nil, fmt.Errorf("line %q", l)
		}
	}
	return r.q, nil
}

func readWindow(words []string) (w query.Window, err error) {
	if words[0] == "last" {
		w.Last, err = strconv.ParseInt(words[1], 10, 64)
		return w, err
	}
	if w.Range, err = query.ParseSpan(words[0]); err == nil && len(words) > 2 {
		w.Slide, err = query.ParseSpan(words[2])
	}
	return w, err
}

func (r *queryReader) args(list string) (args []query.Arg) {
	for _, f := range strings.Split(list, ",") {
		if f = strings.TrimSpace(f); f != "" {
			args = append(args, r.arg(f))
		}
	}
	return args
}

func (r *queryReader) arg(s string) query.Arg {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return query.Arg{Var: query.NoVar, Const: term.Int(n)}
	}
	if text, err := strconv.Unquote(s); err == nil {
		return query.Arg{Var: query.NoVar, Const: term.String(text)}
	}
	if s == "_" {
		s = ""
	} else if v := slices.Index(r.q.Vars, s); v >= 0 {
		return query.Arg{Var: query.Var(v)}
	}
	r.q.Vars = append(r.q.Vars, s)
	return query.Arg{Var: query.Var(len(r.q.Vars) - 1)}
}

func (r *queryReader) filter(pos query.Pos, text string) {
	ops := map[string]query.Op{"=": query.OpEq, "!=": query.OpNe, "<": query.OpLt, ">": query.OpGt}
	f := query.Filter{Pos: pos, Expr: query.Expr{Op: query.OpAnd}}
	for _, c := range strings.Split(text, "&&") {
		w := strings.Fields(c)
		f.Expr.Subs = append(f.Expr.Subs, query.Expr{Op: ops[w[1]], Left: r.arg(w[0]), Right: r.arg(w[2])})
	}
	if len(f.Expr.Subs) == 1 {
		f.Expr = f.Expr.Subs[0]
	}
	r.q.Filters = append(r.q.Filters, f)
}

func (r *queryReader) values(pos query.Pos, text string) {
	parts := strings.Split(text, "|")
	t := query.Values{Pos: pos}
	for _, w := range strings.Fields(parts[0]) {
		t.Vars = append(t.Vars, r.arg(w).Var)
	}
	for _, p := range parts[1:] {
		var row []term.Term
		for _, w := range strings.Fields(p) {
			row = append(row, r.arg(w).Const)
		}
		t.Rows = append(t.Rows, row)
	}
	r.q.Values = append(r.q.Values, t)
}
