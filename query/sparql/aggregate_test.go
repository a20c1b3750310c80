package sparql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// shown writes the aggregates of a query with their columns.
func shown(q *query.Query) string {
	var out []string
	for _, a := range q.Aggregates {
		v := "-"
		if a.Var != query.NoVar {
			v = q.Vars[a.Var]
		}
		out = append(out, fmt.Sprintf("%d %s %q %v", a.Func, v, a.Column, a.Pos))
	}
	return strings.Join(out, "; ")
}

func TestAggregates(t *testing.T) {
	for _, c := range []struct{ text, columns, aggregates, form string }{
		{"SELECT ?x (COUNT(*) AS ?n) (SUM(?a) AS ?s) (COUNT(DISTINCT ?v) AS ?d) (AVG(?a) AS ?m) (MIN(?a) AS ?i) (MAX(?a) AS ?j)\n" +
			"WHERE { ?x :p ?a . ?a :q ?v } GROUP BY ?x",
			"x", `0 - "n" 1:11; 2 a "s" 1:28; 1 v "d" 1:44; 3 a "m" 1:71; 4 a "i" 1:87; 5 a "j" 1:103`,
			"q_(v0, count(), sum(v1), count(distinct v2), avg(v1), min(v1), max(v1)) :- <p>(v0, v1), <q>(v1, v2)."},
		{"select distinct(count(?a)as?n)?y(max(?y)AS ?m)$x { ?x :p ?a ; :q ?y } group by ?x ?y ?x",
			"y x", `0 - "n" 1:16; 5 y "m" 1:33`,
			"q_(v0, v1, count(), max(v0)) :- <p>(v1, v2), <q>(v1, v0)."},
		{"SELECT (COUNT(*) AS ?n) { [] :p [] }", "", `0 - "n" 1:8`, "q(count()) :- <p>(_, _)."},
		{"SELECT (COUNT(?x) AS ?n) (COUNT(*) AS ?m) { ?x :p ?y } WINDOW [RANGE 1m]", "", `0 - "n" 1:8; 0 - "m" 1:26`,
			"SELECT (COUNT(*) AS ?a0) (COUNT(*) AS ?a1) WHERE { ?v0 <p> ?v1 . } WINDOW [RANGE 1m]"},
		{"SELECT ?x (MIN(?y) AS ?m) { ?x :p ?y FILTER (?y = 1 || ?y = 2) } WINDOW [LAST 3] GROUP BY ?x VALUES ?x { 1 }",
			"x", `4 y "m" 1:11`,
			"SELECT ?v0 (MIN(?v1) AS ?a0) WHERE { ?v0 <p> ?v1 . FILTER (?v1 = 1 || ?v1 = 2) VALUES (?v0) { (1) } } WINDOW [LAST 3] GROUP BY ?v0"},
		{"SELECT (COUNT(DISTINCT ?y) AS ?m) { ?x :p ?y VALUES ?y { 1 } }", "", `1 y "m" 1:8`,
			"SELECT (COUNT(DISTINCT ?v0) AS ?a0) WHERE { ?v1 <p> ?v0 . VALUES (?v0) { (1) } }"},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := strings.Join(q.Columns, " "); got != c.columns || shown(q) != c.aggregates || q.Distinct {
			t.Errorf("%q:\n got %s; %s; distinct %v\nwant %s; %s", c.text, got, shown(q), q.Distinct, c.columns, c.aggregates)
		}
		form := q.Canonical()
		if form != c.form {
			t.Errorf("%q:\n got %s\nwant %s", c.text, form, c.form)
		}
		if !strings.HasPrefix(form, "SELECT") {
			continue // FuzzText reads rules back
		}
		if again, err := Parse(form); err != nil || again.Canonical() != form {
			t.Errorf("%q: %s does not parse back: %v", c.text, form, err)
		}
	}
}

func TestAggregateErrors(t *testing.T) {
	const un, syn = true, false
	for _, c := range []struct {
		text, at    string
		unsupported bool
		says        string
	}{
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y }", "1:8", syn, `"?x" is selected beside an aggregate and is not in GROUP BY`},
		{"SELECT ?x ?y (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x", "1:11", syn, `"?y" is selected beside`},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x ?y", "1:53", un, `GROUP BY variable "?y", which is not selected`},
		{"SELECT (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?y", "1:47", un, `GROUP BY variable "?y"`},
		{"SELECT (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?z", "1:47", un, `GROUP BY variable "?z"`},
		{"SELECT (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?n", "1:21", syn, `name of variable "?n"`},
		{"SELECT * { ?x :p ?y } GROUP BY ?x ?y", "1:23", un, "GROUP BY without an aggregate"},
		{"SELECT ?x { ?x :p ?y } GROUP BY ?x", "1:24", un, "GROUP BY without an aggregate"},
		{"SELECT * (COUNT(*) AS ?n) { ?x :p ?y }", "1:10", syn, `"{"`},
		{"SELECT (COUNT(*) AS ?n) * { ?x :p ?y }", "1:25", syn, `"{"`},
		{"SELECT (SUM(?z) AS ?n) { ?x :p ?y }", "1:8", syn, `aggregated variable "?z"`},
		{"SELECT (COUNT(?z) AS ?n) { ?x :p ?y }", "1:8", syn, `aggregated variable "?z"`},
		{"SELECT (COUNT(*) AS ?y) { ?x :p ?y }", "1:21", syn, `name of variable "?y"`},
		{"SELECT ?x (COUNT(*) AS ?x) { ?x :p ?y } GROUP BY ?x", "1:24", syn, "selected twice"},
		{"SELECT (COUNT(*) AS ?n) (SUM(?y) AS ?n) { ?x :p ?y }", "1:37", syn, "selected twice"},
		{"SELECT (COUNT(*) AS ?n) ?n { ?n :p ?y } GROUP BY ?n", "1:25", syn, "selected twice"},
		{"SELECT (COUNT(*)) { ?x :p ?y }", "1:17", syn, "AS"},
		{"SELECT (COUNT(*) AS n) { ?x :p ?y }", "1:21", syn, "a variable"},
		{"SELECT (COUNT(*) AS ?n { ?x :p ?y }", "1:24", syn, `")"`},
		{"SELECT (COUNT() AS ?n) { ?x :p ?y }", "1:15", syn, "a variable"},
		{"SELECT (COUNT(*, ?x) AS ?n) { ?x :p ?y }", "1:16", un, "an expression in an aggregate"},
		{"SELECT (COUNT(* AS ?n) { ?x :p ?y }", "1:17", syn, `")"`},
		{"SELECT (COUNT ?x AS ?n) { ?x :p ?y }", "1:15", syn, `"("`},
		{"SELECT (SUM(*) AS ?n) { ?x :p ?y }", "1:13", syn, "a variable"},
		{"SELECT (COUNT(DISTINCT *) AS ?n) { ?x :p ?y }", "1:24", un, "COUNT(DISTINCT *)"},
		{"SELECT (SUM(DISTINCT ?y) AS ?n) { ?x :p ?y }", "1:13", un, "DISTINCT in SUM"},
		{"SELECT (SUM(?y + 1) AS ?n) { ?x :p ?y }", "1:16", un, "an expression in an aggregate"},
		{"SELECT (SUM(?y+1) AS ?n) { ?x :p ?y }", "1:15", un, "an expression in an aggregate"},
		{"SELECT (SUM(2 * ?y) AS ?n) { ?x :p ?y }", "1:13", un, "an expression in an aggregate"},
		{"SELECT (SUM(ABS(?y)) AS ?n) { ?x :p ?y }", "1:13", un, "an expression in an aggregate"},
		{"SELECT (SUM(?y) / COUNT(*) AS ?n) { ?x :p ?y }", "1:17", un, "an expression over aggregates"},
		{"SELECT (SUM(?y) -1 AS ?n) { ?x :p ?y }", "1:17", un, "an expression over aggregates"},
		{"SELECT (SAMPLE(?y) AS ?n) { ?x :p ?y }", "1:8", un, `aggregate "SAMPLE"`},
		{"SELECT (GROUP_CONCAT(?y ; SEPARATOR=',') AS ?n) { ?x :p ?y }", "1:8", un, `aggregate "GROUP_CONCAT"`},
		{"SELECT (TOPK(?y, 3) AS ?n) { ?x :p ?y }", "1:8", un, `function "TOPK"`},
		{"SELECT (1 + 1 AS ?n) { ?x :p ?y }", "1:8", un, "an expression"},
		{"SELECT (true AS ?n) { ?x :p ?y }", "1:8", un, "an expression"},
		{"SELECT ((COUNT(*)) AS ?n) { ?x :p ?y }", "1:8", un, "an expression"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP ?x", "1:47", syn, "BY"},
		{"SELECT (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY", "1:46", syn, "a variable"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY (?x)", "1:50", un, "an expression in GROUP BY"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY STR(?x)", "1:50", un, "an expression in GROUP BY"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x :f(?x)", "1:53", un, "an expression in GROUP BY"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x HAVING (COUNT(*) > 1)", "1:53", un, "HAVING"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x ORDER BY ?n", "1:53", un, "ORDER"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x LIMIT 3", "1:53", un, "LIMIT"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x OFFSET 3", "1:53", un, "OFFSET"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x WINDOW [LAST 3]", "1:53", syn, "WINDOW stands directly behind the group"},
		{"SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x GROUP BY ?x", "1:53", syn, "the end of the query"},
		{"SELECT ?x { ?x :p ?y FILTER (COUNT(?y) > 1) }", "1:30", un, `function "COUNT"`},
	} {
		want := errs.ErrSyntax
		if c.unsupported {
			want = errs.ErrUnsupported
		}
		q, err := Parse(c.text)
		if q != nil || !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", c.text, err, want)
			continue
		}
		if !strings.HasPrefix(err.Error(), c.at+": ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %q, want %s and %q", c.text, err, c.at, c.says)
		}
	}
}
