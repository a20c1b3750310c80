package fuzz

import (
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the engine that answers are compared with

	"github.com/triegs/triegs"
)

// sqlEdge is an atom of a subgraph query: edges of a label between two variables.
type sqlEdge struct{ label, src, dst string }

// subgraph is a query of LSQB that is acyclic and has no negation.
type subgraph struct {
	name  string
	edges []sqlEdge
}

var subgraphs = []subgraph{
	{"q1", []sqlEdge{
		{"isPartOf", "ci", "co"}, {"isLocatedIn", "p", "ci"}, {"hasMember", "f", "p"}, {"containerOf", "f", "m"},
		{"replyOf", "c", "m"}, {"hasTag", "c", "t"}, {"hasType", "t", "tc"},
	}},
	{"q4", []sqlEdge{{"hasTag", "m", "t"}, {"hasCreator", "m", "p"}, {"likes", "l", "m"}, {"replyOf", "c", "m"}}},
}

// variables lists the variables by first occurrence.
func (g *subgraph) variables() (out []string) {
	for _, e := range g.edges {
		for _, v := range []string{e.src, e.dst} {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// rule is the query with the given head.
func (g *subgraph) rule(name, head string) string {
	var atoms []string
	for _, e := range g.edges {
		atoms = append(atoms, fmt.Sprintf("%s(%s, %s)", e.label, e.src, e.dst))
	}
	return fmt.Sprintf("%s(%s) :- %s.", name, head, strings.Join(atoms, ", "))
}

// statement is the query in SQL: the number of embeddings, for each value of a
// variable unless that is "".
func (g *subgraph) statement(variable string) string {
	var tables, where []string
	column := map[string]string{}
	for i, e := range g.edges {
		tables = append(tables, fmt.Sprintf("%s AS e%d", e.label, i))
		for j, v := range []string{e.src, e.dst} {
			here := fmt.Sprintf("e%d.%s", i, []string{"src", "dst"}[j])
			if there, ok := column[v]; ok {
				where = append(where, there+" = "+here)
			} else {
				column[v] = here
			}
		}
	}
	from := " FROM " + strings.Join(tables, ", ") + " WHERE " + strings.Join(where, " AND ")
	if variable == "" {
		return "SELECT '', COUNT(*)" + from
	}
	return "SELECT " + column[variable] + ", COUNT(*)" + from + " GROUP BY " + column[variable]
}

// sqlGraph holds edges in tables (src, dst) by label, in the memory of an SQL
// engine.
type sqlGraph struct {
	*testing.T
	db *sql.DB
}

func newSQLGraph(t *testing.T, labels []string) *sqlGraph {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	g := &sqlGraph{t, db}
	g.exec("PRAGMA journal_mode = OFF") // nothing is rolled back
	for _, l := range labels {
		g.exec(fmt.Sprintf("CREATE TABLE %[1]s (src TEXT NOT NULL, dst TEXT NOT NULL); CREATE INDEX %[1]s_src ON %[1]s (src, dst); CREATE INDEX %[1]s_dst ON %[1]s (dst, src)", l))
	}
	return g
}

func (g *sqlGraph) exec(statement string) {
	g.Helper()
	if _, err := g.db.Exec(statement); err != nil {
		g.Fatalf("%s: %v", statement, err)
	}
}

// apply inserts the rows, or takes away one copy of each.
func (g *sqlGraph) apply(rows []streamRow, op triegs.Op) {
	g.Helper()
	tx, err := g.db.Begin()
	if err != nil {
		g.Fatal(err)
	}
	text := "INSERT INTO %[1]s VALUES (?, ?)"
	if op == triegs.Delete {
		text = "DELETE FROM %[1]s WHERE rowid = (SELECT rowid FROM %[1]s WHERE src = ? AND dst = ? LIMIT 1)"
	}
	prepared := map[string]*sql.Stmt{}
	for _, r := range rows {
		s := prepared[r.label]
		if s == nil {
			if s, err = tx.Prepare(fmt.Sprintf(text, r.label)); err != nil {
				g.Fatal(err)
			}
			prepared[r.label] = s
		}
		if _, err := s.Exec(r.src, r.dst); err != nil {
			g.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil { // closes the statements too
		g.Fatal(err)
	}
	g.exec("ANALYZE")
}

// counts runs a statement that gives a value and a number in each row.
func (g *sqlGraph) counts(statement string) map[string]int64 {
	g.Helper()
	rows, err := g.db.Query(statement)
	if err != nil {
		g.Fatalf("%s: %v", statement, err)
	}
	out := map[string]int64{}
	for rows.Next() {
		var value string
		var n int64
		if err := rows.Scan(&value, &n); err != nil {
			g.Fatal(err)
		}
		if n != 0 { // an aggregate without GROUP BY has a row for nothing
			out[value] = n
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		g.Fatal(err)
	}
	return out
}

// sharedTable reads a shared file of fields between tabs, or skips the test.
func sharedTable(t *testing.T, name string) [][]string {
	t.Helper()
	in := csv.NewReader(sharedFile(t, name))
	in.Comma = '\t'
	lines, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// recordedCounts reads the recorded numbers of embeddings, by "data query".
func recordedCounts(t *testing.T) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, f := range sharedTable(t, "data/lsqb/expected.tsv") {
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out[f[0]+" "+f[1]] = n
	}
	return out
}

// graphPart is a part of a graph that is loaded before the answers are compared.
type graphPart struct {
	file     string
	recorded string // the name under which its counts, with all parts before, are recorded
}

// subgraphRun feeds one graph to a store and to the SQL engine.
type subgraphRun struct {
	*world
	sql     *sqlGraph
	queries []subgraph
	live    []streamRow
	labels  []string
	groups  int // that were compared
	took    struct{ store, sql time.Duration }
}

// newSubgraphRun registers each query as a count, as a nullary answer, as a
// projection on every single variable and as a count by every single variable.
func newSubgraphRun(t *testing.T, queries []subgraph) *subgraphRun {
	r := &subgraphRun{world: newWorld(t, "", &triegs.Options{Clock: still}), queries: queries}
	for _, g := range queries {
		r.register(g.name+"_", g.rule(g.name+"_", ""))
		r.register(g.name+"_count", g.rule(g.name+"_count", "count()"))
		for _, v := range g.variables() {
			r.register(g.name+"_"+v, g.rule(g.name+"_"+v, v))
			r.register(g.name+"_"+v+"_count", g.rule(g.name+"_"+v+"_count", v+", count()"))
		}
		for _, e := range g.edges {
			if !slices.Contains(r.labels, e.label) {
				r.labels = append(r.labels, e.label)
			}
		}
	}
	r.sql = newSQLGraph(t, r.labels)
	return r
}

// feed applies rows to both, to the store in epochs of uneven sizes.
func (r *subgraphRun) feed(rows []streamRow, op triegs.Op) {
	r.Helper()
	draw := rand.New(rand.NewPCG(3, uint64(len(rows))))
	start := time.Now()
	for i := 0; i < len(rows); {
		n := min(1+draw.IntN(2+len(rows)/8), len(rows)-i)
		events := streamEvents(rows[i : i+n])
		for j := range events {
			events[j].Op = op
		}
		r.append(triegs.Batch{Events: events})
		i += n
	}
	fed := time.Now()
	r.sql.apply(rows, op)
	r.took.store += fed.Sub(start)
	r.took.sql += time.Since(fed)
}

// compare holds every registered answer against SQL, and the numbers of embeddings
// against recorded ones.
func (r *subgraphRun) compare(state string, recorded map[string]int64) {
	r.Helper()
	s := r.snapshot()
	defer s.Close()
	for _, g := range r.queries {
		for _, v := range append([]string{""}, g.variables()...) {
			start := time.Now()
			want := r.sql.counts(g.statement(v))
			r.took.sql += time.Since(start)
			start = time.Now()
			name, count := g.name+"_"+v, g.name+"_count"
			if v != "" {
				count = name + "_count"
			}
			if got := groupsOf(r.world, s, name); !maps.Equal(got, want) {
				r.Fatalf("%s by %q, %s: %s", g.name, v, state, firstOther(got, want))
			}
			if got := groupsOf(r.world, s, count); !maps.Equal(got, want) {
				r.Fatalf("count() of %s by %q, %s: %s", g.name, v, state, firstOther(got, want))
			}
			r.took.store += time.Since(start)
			r.groups += len(want)
			if n, ok := recorded[g.name]; ok && v == "" && want[""] != n {
				r.Errorf("%s, %s: %d embeddings, recorded are %d", g.name, state, want[""], n)
			}
		}
	}
}

// groupsOf reads a query of one variable or none: the multiplicity of each answer,
// or its first aggregate.
func groupsOf(w *world, s *triegs.Snapshot, name string) map[string]int64 {
	w.Helper()
	out := map[string]int64{}
	for row, err := range s.Answers(name) {
		if err != nil {
			w.Fatalf("answers of %s: %v", name, err)
		}
		key := ""
		if c := row.Columns(); len(c) > 0 && c[0] != "count()" {
			key = row.Term(0).Lexical()
		}
		if _, twice := out[key]; twice {
			w.Fatalf("%s: %q comes twice", name, key)
		}
		n, ok := row.Value(0).(int64)
		if !ok {
			w.Fatalf("%s: the value of %q is %v", name, key, row.Value(0))
		}
		out[key] = n
	}
	return out
}

// The counts of two queries of LSQB and their projections on every single variable
// are those of SQL, while graphs grow, shrink and grow again.
func TestLSQB(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts []graphPart
		most  int // rows of a part, unless the full sizes are asked for; 0 = all
	}{
		{"example", []graphPart{{"lsqb/example", "lsqb/example"}}, 0},
		{"sf0.003", []graphPart{{"lsqb/sf0.003", "lsqb/sf0.003"}}, 0},
		{"p250", []graphPart{
			{"ldbc-snb-p250-initial", "ldbc-snb-p250-initial"},
			{"ldbc-snb-p250-updates", "ldbc-snb-p250-initial+updates"},
		}, 0},
		{"sf01", []graphPart{{"ldbc-snb-sf01", "ldbc-snb-sf01"}}, 100_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name != "example" {
				t.Skip("under the race detector SQL takes minutes for it")
			}
			expected := recordedCounts(t)
			r := newSubgraphRun(t, subgraphs)
			for _, p := range c.parts {
				rows := slices.DeleteFunc(readStream(t, p.file), func(row streamRow) bool { return !slices.Contains(r.labels, row.label) })
				recorded := map[string]int64{}
				for _, g := range r.queries {
					n, ok := expected[p.recorded+" "+g.name]
					if ok {
						recorded[g.name] = n
					} else if g.name == "q4" { // of q1 one graph has no edges
						t.Fatalf("no count of %s in %s is recorded", g.name, p.recorded)
					}
				}
				if c.most > 0 && os.Getenv(fullVar) == "" {
					rows, recorded = rows[:c.most], nil
				}
				r.feed(rows, triegs.Insert)
				r.live = append(r.live, rows...)
				r.compare(p.file, recorded)
			}
			r.shrinkAndGrow()
			t.Logf("%d rows, %d groups compared, store %s, SQL %s", len(r.live), r.groups, r.took.store.Round(time.Millisecond), r.took.sql.Round(time.Millisecond))
		})
	}
}

// shrinkAndGrow takes away two fifths of the edges, puts half of these back, some
// of the rest a second time, and compares after each.
func (r *subgraphRun) shrinkAndGrow() {
	draw := rand.New(rand.NewPCG(8, uint64(len(r.live))))
	rows := slices.Clone(r.live)
	draw.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	gone := rows[:len(rows)*2/5]
	r.feed(gone, triegs.Delete)
	r.compare("two fifths taken away", nil)
	r.feed(gone[:len(gone)/2], triegs.Insert)
	r.feed(rows[len(rows)*9/10:], triegs.Insert)
	r.compare("half put back and a tenth twice", nil)
}
