package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData is the folder of real inputs, beside the repository.
var sharedData = filepath.Join("..", "..", "..", "shared", "data")

// lsqb holds the full queries of LSQB (the Large-Scale Subgraph Query
// Benchmark, Mhedhbi et al., GRADES-NDA 2021) that are tested: every variable
// is output, so the total multiplicity is the count that LSQB asks for.
var lsqb = map[string]string{
	"q1": `q1(co, ci, p, f, m, c, t, tc) :- isPartOf(ci, co), isLocatedIn(p, ci), hasMember(f, p),
	containerOf(f, m), replyOf(c, m), hasTag(c, t), hasType(t, tc).`,
	"q4": `q4(t, p, l, m, c) :- hasTag(m, t), hasCreator(m, p), likes(l, m), replyOf(c, m).`,
}

// TestRealInput runs the command line over real inputs and compares the total
// multiplicities with those that were computed independently.
func TestRealInput(t *testing.T) {
	expected := readExpected(t)
	for _, tc := range []struct {
		data    string
		inputs  []string
		queries []string
		large   bool
	}{
		{"lsqb/example", []string{"lsqb/example"}, []string{"q1", "q4"}, false},
		{"lsqb/sf0.003", []string{"lsqb/sf0.003"}, []string{"q1", "q4"}, false},
		{"ldbc-snb-p250-initial", []string{"ldbc-snb-p250-initial"}, []string{"q1", "q4"}, false},
		{"ldbc-snb-p250-initial+updates", []string{"ldbc-snb-p250-initial", "ldbc-snb-p250-updates"}, []string{"q1", "q4"}, false},
		{"ldbc-snb-sf01", []string{"ldbc-snb-sf01"}, []string{"q4"}, true},
	} {
		t.Run(strings.ReplaceAll(tc.data, "/", "-"), func(t *testing.T) {
			if tc.large && testing.Short() {
				t.Skip("over a million edges")
			}
			args := []string{"run", "--emit", "count"}
			want := ""
			for _, q := range tc.queries {
				args = append(args, "--query", queryPath(t, q))
				want += q + "\t" + expected[tc.data+" "+q] + "\n"
			}
			for _, in := range tc.inputs {
				args = append(args, "--input", filepath.Join(sharedData, filepath.FromSlash(in)+".tsv.gz"))
			}
			if got := totals(play(t, args...)); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// TestRealInputInDirectory stops between the two files and goes on in another
// opening of the store.
func TestRealInputInDirectory(t *testing.T) {
	expected := readExpected(t)
	dir := filepath.Join(t.TempDir(), "store")
	queries := []string{"--query", queryPath(t, "q1"), "--query", queryPath(t, "q4")}
	for _, step := range []struct{ input, data string }{
		{"ldbc-snb-p250-initial", "ldbc-snb-p250-initial"},
		{"ldbc-snb-p250-updates", "ldbc-snb-p250-initial+updates"},
	} {
		args := append([]string{"run", "--emit", "count", "--dir", dir, "--input", filepath.Join(sharedData, step.input+".tsv.gz")}, queries...)
		want := "q1\t" + expected[step.data+" q1"] + "\nq4\t" + expected[step.data+" q4"] + "\n"
		if got := totals(play(t, args...)); got != want {
			t.Errorf("%s: got\n%swant\n%s", step.data, got, want)
		}
	}
	if got := play(t, "verify", dir); !strings.Contains(got, "queries: 2") {
		t.Errorf("verify printed %q", got)
	}
}

// readExpected reads the counts, by "data query".
func readExpected(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(sharedData, "lsqb", "expected.tsv"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the real inputs are not beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]string{}
	for line := range strings.Lines(string(b)) {
		cols := strings.Split(line, "\t")
		counts[cols[0]+" "+cols[1]] = cols[2]
	}
	return counts
}

// queryPath writes a query to a file of its own.
func queryPath(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".rule")
	if err := os.WriteFile(path, []byte(lsqb[name]), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// play runs a command line that must succeed and returns what it printed.
func play(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitDone {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	return stdout.String()
}

// totals keeps the name and the total of each line of --emit count.
func totals(counts string) string {
	var out strings.Builder
	for line := range strings.Lines(counts) {
		cols := strings.Split(line, "\t")
		out.WriteString(cols[0] + "\t" + cols[len(cols)-1])
	}
	return out.String()
}
