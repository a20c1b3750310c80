package sparql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
)

func TestCanonicalForm(t *testing.T) {
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	for _, c := range []struct{ name, text, want string }{
		{"plain names",
			"SELECT ?x ?y WHERE { ?v :hasCreator ?x . ?v :hasReply ?y }",
			"q(v0, v1) :- <hasCreator>(v2, v0), <hasReply>(v2, v1)."},
		{"declared empty prefix wins",
			"PREFIX : <http://a/>\nSELECT ?x { ?x :r :n }",
			"q(v0) :- <http://a/r>(v0, <http://a/n>)."},
		{"plain name as a node", "SELECT ?x { ?x :r :n, <m> }", "q(v0) :- <r>(v0, <n>), <r>(v0, <m>)."},
		{"lists, a, final dot, distinct",
			"select distinct ?x where { ?x a :T ; :p ?y, $z ; . }",
			"q(v0) :- <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>(v0, <T>), <p>(v0, v1), <p>(v0, v2) distinct."},
		{"base",
			"BASE <http://a/b/c> PREFIX e: <../e#> BASE <d/> SELECT ?x { ?x <p> e:q . <> <#f> ?x }",
			"q(v0) :- <http://a/b/d/p>(v0, <http://a/e#q>), <http://a/b/d/#f>(<http://a/b/d/>, v0)."},
		{"literals",
			`PREFIX x: <` + xsd + `> SELECT ?s { ?s :p 'a', "b\n\u00e9"@EN-gb, """c"d""", '''e''f''', "1"^^x:integer, "1"^^<` + xsd + `int> }`,
			`q(v0) :- <p>(v0, "a"), <p>(v0, "b\né"@en-gb), <p>(v0, "c\"d"), <p>(v0, "e''f"), <p>(v0, 1), <p>(v0, "1"^^<` + xsd + `int>).`},
		{"numerals",
			`SELECT ?s { ?s :p 1, -2, +3, 1.5, .5, 1e3, 1.0E0, 5.e1, true, FALSE }`,
			`q(v0) :- <p>(v0, 1), <p>(v0, -2), <p>(v0, "+3"^^<` + xsd + `integer>), <p>(v0, "1.5"^^<` + xsd + `decimal>), ` +
				`<p>(v0, ".5"^^<` + xsd + `decimal>), <p>(v0, "1e3"^^<` + xsd + `double>), <p>(v0, "1.0E0"^^<` + xsd + `double>), ` +
				`<p>(v0, "5.e1"^^<` + xsd + `double>), <p>(v0, true), <p>(v0, false).`},
		{"number before the dot", "SELECT ?x { ?x :p 1. ?x :q 2 . }", "q_(v0) :- <p>(v0, 1), <q>(v0, 2)."},
		{"blank nodes are variables outside of *",
			"SELECT * { _:a :p ?x . ?x :q _:a, _:b . [] :r ?x }",
			"q_(v0) :- <p>(v1, v0), <q>(v0, v1), <q>(v0, _), <r>(_, v0)."},
		{"blank node property lists",
			"SELECT ?y { ?y :p [ :q ?z ; :r 1 ] . [ :s ?y ] . [ :t ?y ] :u ?z }",
			"q_(v0) :- <p>(v0, v1), <q>(v1, v2), <r>(v1, 1), <s>(_, v0), <t>(v3, v0), <u>(v3, v2)."},
		{"star without variables", "SELECT * { :a :p [] }", "q() :- <p>(<a>, _)."},
		{"simple filters",
			`SELECT ?x { ?x :age ?a FILTER (?a >= 18) FILTER(?a<?x) . FILTER ((?a) != -1.5) ?x :p ?b }`,
			`q(v0) :- <age>(v0, v1), <p>(v0, v2), v1 >= 18, v1 < v0, v1 != "-1.5"^^<` + xsd + `decimal>.`},
		{"less than is no IRI", "SELECT ?x { ?x :p ?y FILTER(?x<?y&&?y>?x) }",
			"SELECT ?v0 WHERE { ?v0 <p> ?v1 . FILTER (?v0 < ?v1 && ?v1 > ?v0) }"},
		{"conditions",
			`SELECT ?x { ?x :p ?y . FILTER (?x = 1 || (?y = 2 || !(?x < ?y)) && ?y IN (1, "a"@en, <b>)) }`,
			`SELECT ?v0 WHERE { ?v0 <p> ?v1 . FILTER (?v0 = 1 || (?v1 = 2 || !(?v0 < ?v1)) && ?v1 IN (1, "a"@en, <b>)) }`},
		{"brackets that tell nothing",
			`SELECT ?x { ?x :p ?y . FILTER ((?x = 1 && ?y = 2) && !(?x = 2 || ?y = 1) || ((?x = 3) || (?x = 4))) }`,
			`SELECT ?v0 WHERE { ?v0 <p> ?v1 . FILTER ((?v0 = 1 && ?v1 = 2) && !(?v0 = 2 || ?v1 = 1) || (?v0 = 3 || ?v0 = 4)) }`},
		{"filter behind brackets", "SELECT ?y { [ :p ?y ] FILTER (?y = 1) . [ :p ?y ] a :T }",
			"q(v0) :- <p>(_, v0), <p>(v1, v0), <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>(v1, <T>), v0 = 1."},
		{"not in, empty in", "SELECT ?x { ?x :p ?y . FILTER (?x NOT IN (1)) FILTER (?y in ()) }",
			"SELECT ?v0 WHERE { ?v0 <p> ?v1 . FILTER (!(?v0 IN (1))) FILTER (?v1 IN ()) }"},
		{"values",
			`SELECT ?x { VALUES ?x { :a "b" } ?x :p ?y VALUES (?y ?x) { (1 true) (1 true) } } VALUES ?y { }`,
			`SELECT ?v0 WHERE { ?v0 <p> ?v1 . VALUES (?v0) { (<a>) ("b") } VALUES (?v1 ?v0) { (1 true) (1 true) } VALUES (?v1) { } }`},
		{"names with dots, colons and escapes",
			`PREFIX a.b: <http://a/> SELECT ?x { ?x a.b:c.d:e ?y . ?y a.b:%41\,f a.b: . ?x :q1 a.b:g.}`,
			"q(v0) :- <http://a/c.d:e>(v0, v1), <http://a/%41,f>(v1, <http://a/>), <q1>(v0, <http://a/g>)."},
		{"letters of variables", "SELECT ?1a·\u0300_ { ?1a·\u0300_ :p $_é }", "q(v0) :- <p>(v0, v1)."},
		{"comments", "# a\nSELECT ?x # b\n{ ?x <r#s> ?y # c\n}", "q(v0) :- <r#s>(v0, v1)."},
		{"a relation called q", "SELECT ?x { ?x :q :q_ . ?x :q_ 1 }", "q__(v0) :- <q>(v0, <q_>), <q_>(v0, 1)."},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		form := q.Canonical()
		if form != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, form, c.want)
		}
		if strings.HasPrefix(form, "SELECT") {
			again, err := Parse(form)
			if err != nil || again.Canonical() != form {
				t.Errorf("%s: %s does not parse back: %v", c.name, form, err)
			}
		}
		if q.Text != c.text || q.Name != "" {
			t.Errorf("%s: text %q, name %q", c.name, q.Text, q.Name)
		}
	}
}

func TestErrors(t *testing.T) {
	const un, syn = true, false
	for _, c := range []struct {
		text, at    string
		unsupported bool
		says        string
	}{
		{"SELECT ?x ?y { ?x :p ?z }", "1:11", syn, `"?y" is in no triple pattern`},
		{"SELECT ?x ?x { ?x :p ?z }", "1:11", syn, "selected twice"},
		{"SELECT { ?x :p ?z }", "1:8", syn, "* or a variable"},
		{"SELECT ?x WHERE ?x", "1:17", syn, `"{"`},
		{"SELECT ?x { ?x :p ?y", "1:21", syn, "the end of the text"},
		{"SELECT ?x { ?x :p }", "1:19", syn, "a node of a triple pattern"},
		{"SELECT ?x { ?x :p ?y ?x :q ?z }", "1:22", syn, `"." or "}"`},
		{"SELECT ?x {\n ?x\n  \"p\" ?y }", "3:3", syn, "a predicate"},
		{"SELECT ?x { . }", "1:13", syn, `"."`},
		{"SELECT ?x { ?x :p ?y .. }", "1:23", syn, `"."`},
		{"SELECT ?x { ?x e:p ?y }", "1:16", syn, `"e:" is not declared`},
		{"SELECT ?x { ?x <> ?y }", "1:16", syn, "needs a name"},
		{"SELECT ?x { ?x :p <a b> }", "1:19", syn, "in IRI"},
		{`SELECT ?x { ?x :p "é }`, "1:19", syn, "not closed"},
		{"SELECT ?x { ?x :p 'a\n' }", "1:19", syn, "line break"},
		{`SELECT ?x { ?x :p "é\q" }`, "1:21", syn, "unknown escape"},
		{`SELECT ?x { ?x :p "\uD800" }`, "1:20", syn, "no Unicode character"},
		{`SELECT ?x { ?x :p "a"@1 }`, "1:22", syn, "language tag"},
		{`SELECT ?x { ?x :p "a"^^?t }`, "1:24", syn, "a datatype"},
		{`SELECT ?x { ?x :p "a"^^<> }`, "1:24", syn, "empty datatype"},
		{"SELECT ?x { ?x :p :a%4", "1:19", syn, "two hexadecimal digits"},
		{"SELECT ?x { ?x :p :a%4g }", "1:19", syn, "two hexadecimal digits"},
		{"SELECT ?x { ?x :p :a\\", "1:19", syn, "unknown escape in a name"},
		{"SELECT ?x { ?x :p :-a }", "1:20", syn, `"-"`},
		{"SELECT ?·a { ?x :p :a }", "1:8", syn, "* or a variable"},
		{"SELECT ?x { ?x :p ?y FILTER NOT (?y = 1) }", "1:29", un, `function "NOT"`},
		{"SELECT ?x { ?x :p _: }", "1:21", syn, "needs a label"},
		{"SELECT ?x { ?x :p _::a }", "1:21", syn, "needs a label"},
		{"SELECT ?x { ?x :p [ :q ?y }", "1:27", syn, `"]"`},
		{"SELECT ?x { ?x :p ?y FILTER ?y }", "1:29", syn, `"("`},
		{"SELECT ?x { ?x :p ?y FILTER (?y = ) }", "1:35", syn, "an operand"},
		{"SELECT ?x { ?x :p ?y FILTER (?y < 1 < 2) }", "1:37", syn, `")"`},
		{"SELECT ?x { ?x :p ?y FILTER (?y = foo) }", "1:35", syn, `unexpected word "foo"`},
		{"SELECT ?x { ?x :p ?y FILTER (?y = _:b) }", "1:35", syn, "an operand"},
		{"SELECT ?x { ?x :p ?y FILTER (?y NOT 3) }", "1:37", syn, "IN"},
		{"SELECT ?x { ?x :p ?y VALUES ?y { 1 _:b } }", "1:36", syn, "a value"},
		{"SELECT ?x { ?x :p ?y VALUES (?y ?x) { (1) } }", "1:39", syn, "a row of 1 values for 2"},
		{"SELECT ?x { ?x :p ?y VALUES (?y ?y) { } }", "1:33", syn, "twice"},
		{"SELECT ?x { _:a :p ?x VALUES ?x { 1 } _:a :q ?x }", "1:39", syn, "another basic graph pattern"},
		{"SELECT ?x { ?x :p ?y } ?z", "1:24", syn, "the end of the query"},
		{"SELECT ?x { ?x :p ?y } }", "1:24", syn, "the end of the query"},
		{"SELECT ?x { ?x :p ?y } WINDOW", "1:30", syn, `"["`},
		{"SELECT ?x { ?x :p ?y } WINDOW 10m", "1:31", syn, `"["`},
		{"SELECT ?x { ?x :p ?y } WINDOW []", "1:32", syn, "RANGE or LAST"},
		{"SELECT ?x { ?x :p ?y } WINDOW [10m]", "1:32", syn, "RANGE or LAST"},
		{"SELECT ?x { ?x :p ?y } WINDOW [STEP 10m]", "1:32", syn, "RANGE or LAST"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE ]", "1:38", syn, "RANGE wants a span"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE", "1:37", syn, "RANGE wants a span"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 10m", "1:41", syn, `"]"`},
		{"SELECT ?x { ?x :p ?y }\nWINDOW [\n RANGE 0m]", "3:8", syn, "not positive"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE -1m]", "1:38", syn, "not a span of time"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 10]", "1:38", syn, "not a span of time"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 106752d]", "1:38", syn, "longer than int64"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1m STEP 0s]", "1:46", syn, "STEP: the span"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1m STEP ]", "1:46", syn, "STEP wants a span"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1m STEP 1s STEP 1s]", "1:49", syn, "each once"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1m RANGE 1m]", "1:41", syn, "each once"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1m LAST 5]", "1:41", syn, "each once"},
		{"SELECT ?x { ?x :p ?y } WINDOW [LAST 5 STEP 1m]", "1:39", syn, "each once"},
		{"SELECT ?x { ?x :p ?y } WINDOW [LAST 5 6]", "1:39", syn, `"]"`},
		{"SELECT ?x { ?x :p ?y } WINDOW [LAST 0]", "1:37", syn, "a positive number"},
		{"SELECT ?x { ?x :p ?y } WINDOW [LAST -1]", "1:37", syn, "a positive number"},
		{"SELECT ?x { ?x :p ?y } WINDOW [LAST]", "1:36", syn, "a positive number"},
		{"SELECT ?x { ?x :p ?y } WINDOW [LAST 9223372036854775808]", "1:37", syn, "a positive number"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1m] WINDOW [RANGE 1m]", "1:42", syn, "a second WINDOW"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1m] VALUES ?x { 1 } WINDOW [LAST 1]", "1:58", syn, "a second WINDOW"},
		{"SELECT ?x { ?x :p ?y } VALUES ?x { 1 } WINDOW [RANGE 1m]", "1:40", syn, "directly behind the group"},
		{"SELECT ?x WINDOW [RANGE 1m] { ?x :p ?y }", "1:11", syn, `"{"`},
		{"BASE a SELECT ?x { ?x :p ?y }", "1:6", syn, "an IRI"},
		{"PREFIX a <b> SELECT ?x { ?x :p ?y }", "1:8", syn, "a prefix with its colon"},
		{"PREFIX a:b <b> SELECT ?x { ?x :p ?y }", "1:8", syn, "a prefix with its colon"},
		{"PREFIX a: b SELECT ?x { ?x :p ?y }", "1:11", syn, "an IRI"},
		{"WHERE { ?x :p ?y }", "1:1", syn, "SELECT"},
		{"", "1:1", syn, "SELECT"},
		{"SELECT ?x { ?x :p \u00ac }", "1:19", syn, "unexpected character"},

		{"SELECT * { }", "1:1", un, "without a triple pattern"},
		{"SELECT ?x (?y AS ?n) { ?x :p ?y }", "1:11", un, "aggregate in SELECT"},
		{"SELECT REDUCED ?x { ?x :p ?y }", "1:8", un, "REDUCED"},
		{"SELECT ?x FROM <g> { ?x :p ?y }", "1:11", un, "FROM"},
		{"SELECT ?x { ?x ?p ?y }", "1:16", un, `"?p" in the place of a predicate`},
		{"SELECT ?x { ?x :p/:q ?y }", "1:18", un, "property path (/)"},
		{"SELECT ?x { ?x :p|:q ?y }", "1:18", un, "property path (|)"},
		{"SELECT ?x { ?x :p* ?y }", "1:18", un, "property path (*)"},
		{"SELECT ?x { ?x :p+ ?y }", "1:18", un, "property path (+)"},
		{"SELECT ?x { ?x :p? ?y }", "1:18", un, "property path (?)"},
		{"SELECT ?x { ?x ^:p ?y }", "1:16", un, "property path"},
		{"SELECT ?x { ?x (:p) ?y }", "1:16", un, "property path"},
		{"SELECT ?x { ?x !:p ?y }", "1:16", un, "property path"},
		{"SELECT ?x { ?x :p (1 2) }", "1:19", un, "collection"},
		{"SELECT ?x { << ?x :p 1 >> :q ?y }", "1:13", un, "quoted triple"},
		{"SELECT ?x {\n ?x :p ?y OPTIONAL { ?x :q ?z } }", "2:11", un, "OPTIONAL"},
		{"SELECT ?x { { ?x :p ?y } UNION { ?x :q ?y } }", "1:13", un, "UNION"},
		{"SELECT ?x { { ?x :p ?y } }", "1:13", un, "a group inside the group"},
		{"SELECT ?x { ?x :p ?y { SELECT ?y { ?y :q ?z } } }", "1:22", un, "subquery"},
		{"SELECT ?x { GRAPH :g { ?x :p ?y } }", "1:13", un, "GRAPH"},
		{"SELECT ?x { ?x :p ?y MINUS { ?x :q ?z } }", "1:22", un, "MINUS"},
		{"SELECT ?x { ?x :p ?y BIND (1 AS ?z) }", "1:22", un, "BIND"},
		{"SELECT ?x { SERVICE :s { ?x :p ?y } }", "1:13", un, "SERVICE"},
		{"SELECT ?x { ?x :p ?y FILTER EXISTS { ?x :q ?z } }", "1:29", un, "EXISTS"},
		{"SELECT ?x { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z } }", "1:29", un, "NOT EXISTS"},
		{"SELECT ?x { ?x :p ?y FILTER (?y = 1 && NOT EXISTS { ?x :q ?z }) }", "1:40", un, "NOT EXISTS"},
		{"SELECT ?x { ?x :p ?y FILTER regex(?y, 'a') }", "1:29", un, `function "regex"`},
		{"SELECT ?x { ?x :p ?y FILTER (!bound(?y)) }", "1:31", un, `function "bound"`},
		{"SELECT ?x { ?x :p ?y FILTER :f(?y) }", "1:29", un, `function ":f"`},
		{"SELECT ?x { ?x :p ?y FILTER (<f>(?y) = 1) }", "1:30", un, `function "<f>"`},
		{"SELECT ?x { ?x :p ?y FILTER (?y + 1 = 2) }", "1:33", un, "arithmetic (+)"},
		{"SELECT ?x { ?x :p ?y FILTER (?y = 2 -1) }", "1:37", un, "arithmetic (-)"},
		{"SELECT ?x { ?x :p ?y FILTER (?y-1 = 2) }", "1:32", un, "arithmetic (-)"},
		{"SELECT ?x { ?x :p ?y FILTER (-?y = 2) }", "1:30", un, "arithmetic (-)"},
		{"SELECT ?x { ?x :p ?y FILTER (?y) }", "1:30", un, "a value in the place of a condition"},
		{"SELECT ?x { ?x :p ?y FILTER (!?y) }", "1:31", un, "a value in the place of a condition"},
		{"SELECT ?x { ?x :p ?y FILTER (?y = 1 || true) }", "1:40", un, "a value in the place of a condition"},
		{"SELECT ?x { ?x :p ?y FILTER ((?y = 1) = true) }", "1:30", un, "a condition in the place of a value"},
		{"SELECT ?x { ?x :p ?y FILTER (?y IN (1, ?x = 1)) }", "1:40", un, "a condition in the place of a value"},
		{"SELECT ?x { ?x :p ?y FILTER (1 = 1) }", "1:22", un, "FILTER without a variable"},
		{"SELECT ?x { ?x :p ?y FILTER (?z = 1) }", "1:22", un, `"?z", which is in no triple pattern`},
		{"SELECT ?x { ?x :p ?y VALUES ?z { 1 } }", "1:22", un, `"?z", which is in no triple pattern`},
		{"SELECT ?x { ?x :p ?y VALUES (?x ?y) { (1 UNDEF) } }", "1:42", un, "UNDEF"},
		{"SELECT ?x { ?x :p ?y VALUES () { () } }", "1:22", un, "VALUES without a variable"},
		{"SELECT ?x { ?x :p ?y } GROUP BY ?x", "1:24", un, "GROUP"},
		{"SELECT ?x { ?x :p ?y } HAVING (?x = 1)", "1:24", un, "HAVING"},
		{"SELECT ?x { ?x :p ?y } ORDER BY ?x", "1:24", un, "ORDER"},
		{"SELECT ?x { ?x :p ?y } LIMIT 5", "1:24", un, "LIMIT"},
		{"SELECT ?x { ?x :p ?y } OFFSET 5", "1:24", un, "OFFSET"},
		{"SELECT ?x { ?x :p ?y WINDOW [RANGE 10m STEP 1m] }", "1:22", un, "WINDOW"},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 10m] LIMIT 5", "1:43", un, "LIMIT"},
		{"PREFIX : <a> ASK { ?x :p ?y }", "1:14", un, "ASK"},
		{"PREFIX : <a> CONSTRUCT { } WHERE { ?x :p ?y }", "1:14", un, "CONSTRUCT"},
		{"PREFIX : <a> DESCRIBE ?x", "1:14", un, "DESCRIBE"},
		{"PREFIX : <a> INSERT DATA { :a :b :c }", "1:14", un, "INSERT"},
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

func TestVariables(t *testing.T) {
	q, err := Parse("SELECT * { ?b :p _:x . _:x :q ?a . [] :r ?b FILTER (?a > 1) }")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(q.Columns, []string{"b", "a"}) || !slices.Equal(q.Vars, []string{"b", "_:x", "a", ""}) {
		t.Errorf("columns %q, variables %q", q.Columns, q.Vars)
	}
	if got := fmt.Sprint(q.Atoms[2].Pos, q.Filters[0].Pos, q.HeadPos); got != "1:42 1:45 1:1" {
		t.Errorf("positions: %s", got)
	}
}

// TestLanguageTags is TERM-03: the letter case of a tag makes no difference.
func TestLanguageTags(t *testing.T) {
	q, err := Parse(`SELECT ?s { ?s :q "chat"@en, "chat"@En, "chat" }`)
	if err != nil {
		t.Fatal(err)
	}
	c := func(i int) term.Term { return q.Atoms[i].Args[1].Const }
	if c(0) != c(1) || c(0) != term.LangString("chat", "en") || c(2) != term.String("chat") {
		t.Errorf("constants: %v %v %v", c(0), c(1), c(2))
	}
}

// TestLarge is QRY-05: large and deep texts are read exactly or refused.
func TestLarge(t *testing.T) {
	var sb strings.Builder
	sb.WriteString("SELECT * {")
	for i := range 10_000 {
		fmt.Fprintf(&sb, " ?x%d :r ?x%d .", i, i+1)
	}
	q, err := Parse(sb.String() + "}")
	if err != nil || len(q.Atoms) != 10_000 || len(q.Head) != 10_001 {
		t.Errorf("10,000 patterns: %v", err)
	}
	many := "SELECT ?x { ?x :p 1" + strings.Repeat(", 1", query.MaxAtoms) + "}"
	if _, err := Parse(many); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("too many patterns: %v", err)
	}
	big := strings.Repeat("x", 1<<20)
	for _, quote := range []string{`"`, `'''`} {
		q, err = Parse("SELECT ?x { ?x :p " + quote + big + quote + " }")
		if err != nil || q.Atoms[0].Args[1].Const != term.String(big) {
			t.Errorf("1 MiB constant: %v", err)
		}
	}
	const body = "SELECT ?x { ?x :p ?y FILTER ("
	for _, start := range []string{"SELECT ?x { ", "SELECT ?x { ?x :p ", body, body + "?x IN (", "SELECT ?x { ?x :p ?y VALUES ("} {
		for _, deep := range []string{"(", "[", "!", "{", "<", "[ :p ", "!(", "?x IN (", "-", ":", "'"} {
			_, err := Parse(start + strings.Repeat(deep, 1<<18))
			if err == nil {
				t.Errorf("%q and %q over and over was accepted", start, deep)
			} else if len(err.Error()) > 300 {
				t.Errorf("%q and %q over and over: the message has %d bytes", start, deep, len(err.Error()))
			}
		}
	}
	for depth, want := range map[int]error{query.MaxDepth - 1: nil, query.MaxDepth: errs.ErrUnsupported} {
		text := body + strings.Repeat("(", depth) + "?x = 1" + strings.Repeat(")", depth) + ") }"
		if _, err := Parse(text); !errors.Is(err, want) {
			t.Errorf("depth %d: got %v, want %v", depth, err, want)
		}
	}
}

// TestCutTexts reads every beginning of some texts; none may panic.
func TestCutTexts(t *testing.T) {
	for _, text := range []string{
		"PREFIX é.x: <a#> BASE <b> SELECT DISTINCT ?é { ?é é.x:a.b%41\\~ [ a 'x'@en, 1.5e+3 ; :q _:b.c ], .5 . }",
		"SELECT * { ?x :p ?y FILTER (!(?x<?y) && ?x NOT IN (1, '''a''') || ?y=true) VALUES (?x ?y) { (1 <b>) } } # c",
		"SELECT ?x { ?x :p ?y } WINDOW [RANGE PT0.5S STEP 10\u00b5s] VALUES ?x { 1 }", "SELECT ?x { ?x :p ?y } window[last 7]",
		"SELECT DISTINCT ?x (COUNT(DISTINCT ?v) AS ?d) (AVG(?a) AS ?m) { ?x :p ?a . ?a :q ?v } WINDOW [LAST 2] GROUP BY ?x VALUES ?x { 1 }",
		"SELECT * { ?x :p 1e+", "SELECT * { ?x :p 1.", "SELECT", "SELECT ?x { ?x :p \"\"\"a\"\"", "SELECT ?x { ?x :p abc",
	} {
		for n := range len(text) + 1 {
			_, err := Parse(text[:n])
			if err != nil && !errors.Is(err, errs.ErrSyntax) && !errors.Is(err, errs.ErrUnsupported) {
				t.Fatalf("%q: %v", text[:n], err)
			}
		}
	}
}

// TestResolve has the examples of RFC 3986, section 5.4.
func TestResolve(t *testing.T) {
	for ref, want := range map[string]string{
		"g:h": "g:h", "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/", "/g": "http://a/g",
		"//g": "http://g", "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y", "#s": "http://a/b/c/d;p?q#s",
		"g#s": "http://a/b/c/g#s", "g?y#s": "http://a/b/c/g?y#s", ";x": "http://a/b/c/;x", "g;x": "http://a/b/c/g;x",
		"": "http://a/b/c/d;p?q", ".": "http://a/b/c/", "./": "http://a/b/c/", "..": "http://a/b/", "../": "http://a/b/",
		"../g": "http://a/b/g", "../..": "http://a/", "../../g": "http://a/g", "../../../g": "http://a/g",
		"/./g": "http://a/g", "/../g": "http://a/g", "g.": "http://a/b/c/g.", "..g": "http://a/b/c/..g",
		"./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/", "g/../h": "http://a/b/c/h", "g;x=1/../y": "http://a/b/c/y",
		"g?y/../x": "http://a/b/c/g?y/../x", "g#s/../x": "http://a/b/c/g#s/../x",
	} {
		if got := resolve("http://a/b/c/d;p?q", ref); got != want {
			t.Errorf("%q: got %s, want %s", ref, got, want)
		}
	}
	if got := resolve("http://a", "g"); got != "http://a/g" {
		t.Errorf("base without a path: %s", got)
	}
	if got := resolve("", "../g"); got != "../g" {
		t.Errorf("no base: %s", got)
	}
}

func FuzzSPARQL(f *testing.F) {
	for _, s := range []string{
		"SELECT ?x ?y WHERE { ?v :hasCreator ?x . ?v :hasReply ?y }",
		"PREFIX a: <http://a/>\nBASE <b> select distinct * { [ a:p ?x ; a 'é'@en ] . _:b <c> \"\"\"d\"\"\"^^a:t, 1.5, -1e3 ; }",
		"SELECT ?x { ?x :p ?y FILTER (?x < 1 && !(?y NOT IN (1, <b>)) || ?y>=true) } VALUES (?x ?y) { (1 2) }",
		"SELECT ?x { ?x :p ?y FILTER (?x = 1 || ?y = 2) } WINDOW [RANGE 1h30m STEP PT0.5S] VALUES ?x { 1 }",
		"SELECT ?x { ?x :p ?y } window[last 10] VALUES ?x { 1 }",
		"SELECT ?x { ?x ^:p/:q* ?y OPTIONAL { } { } UNION { } FILTER regex(?x) } GROUP BY ?x",
		"SELECT ?x (COUNT(*) AS ?n) (sum(?a) AS ?s) (COUNT(DISTINCT ?v) AS ?d) (AVG(?a) AS ?m) { ?x :p ?a . ?a :q ?v } GROUP BY ?x",
		"SELECT DISTINCT (MIN(?a) AS ?m) (MAX(?a)AS?n) ?y ?x { ?x :p ?a FILTER(?a=1||?x=2) . ?x :q ?y } window[last 3] GROUP BY ?x ?y VALUES ?x { 1 }",
		"SELECT (COUNT(?a) AS ?m) (COUNT(*) AS ?n) { ?x :p ?a }",
		"SELECT ?x (SUM(?a+1) AS ?s) (SAMPLE(?a) AS ?t) { ?x :p ?a } GROUP BY (?x) HAVING (COUNT(*) > 1)",
		"SELECT (COUNT(*) AS ?n) FROM <g> { << :a :b :c >> :d (1) . BIND (1 + ?x AS ?y) }",
		"SELECT ?x { VALUES ?x { UNDEF } ?x :a\\,b%20c ?y FILTER (?x<?y&&?y>?x) } # c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			if !errors.Is(err, errs.ErrSyntax) && !errors.Is(err, errs.ErrUnsupported) {
				t.Fatalf("%q: untyped error %v", text, err)
			}
			return
		}
		form := q.Canonical()
		if !strings.HasPrefix(form, "SELECT") {
			return // the rule form, which FuzzText reads back
		}
		again, err := Parse(form)
		if err != nil || again.Canonical() != form {
			t.Fatalf("%q: %s does not parse back: %v", text, form, err)
		}
		if len(again.Aggregates) != len(q.Aggregates) {
			t.Fatalf("%q: %s reads back with other aggregates", text, form)
		}
		if again.Window != q.Window || q.Window.Check() != nil {
			t.Fatalf("%q: window %v, read back %v", text, q.Window, again.Window)
		}
	})
}

// TestWindow checks the window of a query and of its patterns, and the normal
// form of both kinds.
func TestWindow(t *testing.T) {
	const m = int64(60e9)
	for _, c := range []struct {
		text string
		want query.Window
		form string
	}{
		{"SELECT ?x { ?x :p ?y . ?x :q ?y } WINDOW [RANGE 10m STEP 1m]", query.Window{Range: 10 * m, Slide: m},
			"q_(v0) :- <p>(v0, v1), <q>(v0, v1) window 10m slide 1m."},
		{"SELECT ?x { ?x :p 1, 2 } # c\n window # c\n [ range # c\n PT10M # c\n ] # c", query.Window{Range: 10 * m},
			"q(v0) :- <p>(v0, 1), <p>(v0, 2) window 10m."},
		{"SELECT ?x { ?x :p ?y } WINDOW[LAST 007]", query.Window{Last: 7}, "q(v0) :- <p>(v0, v1) last 7."},
		{"SELECT ?x { ?x :p ?y } WINDOW [RANGE 1.5m STEP 1d] VALUES ?x { 1 }", query.Window{Range: 3 * m / 2, Slide: 1440 * m},
			"SELECT ?v0 WHERE { ?v0 <p> ?v1 . VALUES (?v0) { (1) } } WINDOW [RANGE 1m30s STEP 24h]"},
		{"SELECT ?x { ?x :p ?y VALUES ?x { 1 } } WINDOW [RANGE 10\u00b5s]", query.Window{Range: 10_000},
			"SELECT ?v0 WHERE { ?v0 <p> ?v1 . VALUES (?v0) { (1) } } WINDOW [RANGE 10\u00b5s]"},
		{"SELECT ?x { ?x :p ?y FILTER (!(?x = 1)) } WINDOW [LAST 3]", query.Window{Last: 3},
			"SELECT ?v0 WHERE { ?v0 <p> ?v1 . FILTER (!(?v0 = 1)) } WINDOW [LAST 3]"},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if q.Window != c.want || q.Canonical() != c.form {
			t.Errorf("%q: %+v, %s", c.text, q.Window, q.Canonical())
		}
		for i, a := range q.Atoms {
			if a.Window != c.want || a.Own {
				t.Errorf("%q: pattern %d sees %+v, own %v", c.text, i, a.Window, a.Own)
			}
		}
	}
}
