package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestExplain runs the files of testdata/explain. The commands, each with a
// query in the form of reader_test.go as input, are
//
//	explain     the explanation as text, or the error
//	json        the explanation as JSON
//	dot         the drawing of its trees
//	compile     the tree, or the error that refuses the query
func TestExplain(t *testing.T) {
	datadriven.Walk(t, "testdata/explain", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			q, err := readQuery(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			var out string
			switch d.Cmd {
			case "explain", "json", "dot":
				var x *Explanation
				if x, err = Explain(q); err == nil {
					out = x.String()
				}
				if err == nil && d.Cmd == "dot" {
					out = x.DOT()
				}
				if err == nil && d.Cmd == "json" {
					var b []byte
					b, err = json.MarshalIndent(x, "", "  ")
					out = string(b) + "\n"
				}
			case "compile":
				var p *Plan
				if p, err = Compile(q); err == nil {
					out = p.Tree() + "\n"
				}
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out
		})
	})
}

// TestExplainLive writes what only a store can tell.
func TestExplainLive(t *testing.T) {
	x, err := Explain(read(t, `q(a) :- "r"(a, b), s(b), t(a)`))
	if err != nil {
		t.Fatal(err)
	}
	before := x.String()
	x.Unseen, x.Updates = []string{"s", "t"}, 400
	x.Nodes[0].Live = &LiveNode{Tuples: 7, Writes: 0.25, Nanoseconds: 1234}
	x.Clusters[0].Nodes[1].Live = &LiveNode{Tuples: 1 << 40, Writes: 3}
	var added []string
	for _, l := range strings.Split(x.String(), "\n") {
		if !strings.Contains(before, l) {
			added = append(added, l)
		}
	}
	want := []string{
		"never seen: s, t",
		"live: [a] has 7 tuples, 0.25 writes and 1.23e+03 ns for each of 400 updates",
		"live: s has 1099511627776 tuples, 3 writes and 0 ns for each of 400 updates",
	}
	if !slices.Equal(added, want) {
		t.Errorf("got %q, want %q", added, want)
	}
	dot := x.DOT()
	for _, w := range []string{
		`n0 [label="[a]\n7 tuples\n0.25 writes, 1.23e+03 ns", shape=ellipse];`,
		`label="sums for {\"\\\"r\\\"\", s}(a)";`,
	} {
		if !strings.Contains(dot, w) {
			t.Errorf("%s is not in %s", w, dot)
		}
	}
	b, err := json.Marshal(x)
	if err != nil || !strings.Contains(string(b), `"live":{"tuples":7,"writes_per_update":0.25,"nanoseconds_per_update":1234}`) ||
		!strings.Contains(string(b), `"unseen":["s","t"],"updates":400`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestExplainPayload holds the lines on weights, values and tracks, and the costs of
// states.
func TestExplainPayload(t *testing.T) {
	const qhier, full = " :- r@(x, y), s(x, y)", " :- r(x, y), s(x, z)"
	for _, tc := range []struct {
		query, update string
		lines         []string
	}{
		{"q(x)" + qhier + "\nsemiring mine", "O(1) under any updates, times the cost of the user's semiring for mine", []string{
			"weights: clusters keep no numbers of valuations", "values: value = mine", "track: mine of r@; a semiring of the user"}},
		{"q(x)" + qhier + "\nsemiring access(a < b < c)", "O(1) under any updates", []string{
			"weights: clusters keep no numbers of valuations", "values: value = access(a < b < c)",
			"track: access(a < b < c) of r@; positive; idempotent; exact; chains of at most 3; state O(1)"}},
		{"q(x, top(z 3), count(), min(y), max(y))" + full, "O(1) under any updates, times O(log n + k) for top(z, 3), times O(log n) for min(y) and max(y)", []string{
			"values: top(z 3) = top(z, 3); count() = the count; min(y); max(y)",
			"track: top(z, 3) of s.z; positive; rounded; state O(log n + k)",
			"track: min(y) of r.y; positive; idempotent; exact; state O(log n)",
			"track: max(y) of r.y; positive; idempotent; exact; state O(log n)"}},
		{"q(x, y, z)" + full + "\nsemiring why", "O(1) under any updates, times O(size) for why", []string{
			"values: value = why", "track: why of ones; positive; idempotent; exact; state O(size)"}},
		{"q(x, y, z)" + full + "\nset", "O(1) under any updates", []string{"weights: every fact once"}},
		{"q(x, y, z)" + full + "\nset\ndistinct", "O(1) under any updates", []string{"weights: every answer once; every fact once"}},
		{"q(x, y, z)" + full, "O(1) under any updates", nil},
	} {
		p, err := Compile(read(t, tc.query))
		if err != nil {
			t.Fatal(err)
		}
		x := p.Explain()
		var lines []string
		for _, l := range strings.Split(x.String(), "\n") {
			if what, _, _ := strings.Cut(l, ":"); what == "weights" || what == "values" || what == "track" {
				lines = append(lines, l)
			}
		}
		if x.Update != tc.update || !slices.Equal(lines, tc.lines) {
			t.Errorf("%s:\n got %s, %q\nwant %s, %q", tc.query, x.Update, lines, tc.update, tc.lines)
		}
	}
}

// TestFingerprint: plans that compute something else are told apart.
func TestFingerprint(t *testing.T) {
	seen := map[uint64]string{}
	const body = " :- r(a, b), s(b, c)"
	for _, text := range []string{
		"q(a)" + body, "q(a)" + body + "\ndistinct", "q(a)" + body + "\nset", "q(b)" + body, "q(a, b)" + body, "q(a, c)" + body, "q()" + body,
		"q(a)" + body + "\nsemiring why", "q(a)" + body + "\nsemiring poly", "q(a) :- r@(a, b), s(b, c)\nsemiring why", "q(a) :- r(a, b), s@(b, c)\nsemiring why",
		"q(a, count())" + body, "q(a, sum(b))" + body, "q(a, sum(c))" + body, "q(a, avg(c))" + body, "q(a, top(c 2))" + body, "q(a, top(c 3))" + body,
	} {
		p, err := Compile(read(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[p.Fingerprint()]; ok {
			t.Errorf("%s and %s have one fingerprint", other, text)
		}
		seen[p.Fingerprint()] = text
	}
}
