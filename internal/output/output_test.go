package output

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

type row struct {
	terms []triegs.Term
	n     int64

	values []any
}

func (r row) Term(i int) triegs.Term { return r.terms[i] }
func (r row) Multiplicity() int64    { return r.n }
func (r row) Value(i int) any        { return r.values[i] }

func TestTerms(t *testing.T) {
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	for _, tc := range []struct {
		term        triegs.Term
		plain, json string
	}{
		{triegs.String("Max"), "Max", `"Max"`},
		{triegs.String(""), "", `""`},
		{triegs.String("a\tb\nc\rd\\e\"f\x01é<&>"), `a\tb\nc\rd\\e"f` + "\x01é<&>", `"a\tb\nc\rd\\e\"f\u0001é<&>"`},
		{triegs.Int(-7), "-7", "-7"},
		{triegs.Float(12.5), "12.5", "12.5"},
		{triegs.Float(7), "7", "7.0"},
		{triegs.Float(math.Copysign(0, -1)), "-0", "-0.0"},
		{triegs.Float(1e300), "1e+300", "1e+300"},
		{triegs.Float(1.5e-7), "1.5e-07", "1.5e-07"},
		{triegs.Float(math.NaN()), "NaN", `{"literal":"NaN","datatype":"` + xsd + `double"}`},
		{triegs.Float(math.Inf(-1)), "-INF", `{"literal":"-INF","datatype":"` + xsd + `double"}`},
		{triegs.Bool(true), "true", "true"},
		{triegs.IRI("http://e/a"), "<http://e/a>", `{"iri":"http://e/a"}`},
		{triegs.Blank("b1"), "_:b1", `{"blank":"b1"}`},
		{triegs.LangString("chat", "EN"), `"chat"@en`, `{"literal":"chat","lang":"en"}`},
		{triegs.Typed("a\tb", "http://e/t"), `"a\tb"^^<http://e/t>`, `{"literal":"a\tb","datatype":"http://e/t"}`},
		{triegs.Time(time.Unix(0, 0)), `"1970-01-01T00:00:00Z"^^<` + xsd + `dateTime>`, `{"literal":"1970-01-01T00:00:00Z","datatype":"` + xsd + `dateTime"}`},
		{triegs.Bytes([]byte{1, 2}), `"AQI="^^<` + xsd + `base64Binary>`, `{"literal":"AQI=","datatype":"` + xsd + `base64Binary"}`},
	} {
		if got := string(AppendPlain(nil, tc.term)); got != tc.plain {
			t.Errorf("%s: plain %q, want %q", tc.term, got, tc.plain)
		}
		got := string(AppendJSON(nil, tc.term))
		if got != tc.json {
			t.Errorf("%s: JSON %s, want %s", tc.term, got, tc.json)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: %s is not JSON", tc.term, got)
		}
	}
}

// rows are in an order that sorting by whole lines would get wrong: \x01 comes
// before the tab.
var rows = []row{
	{[]triegs.Term{triegs.String("b"), triegs.Int(10)}, 1, nil},
	{[]triegs.Term{triegs.String("a\x01"), triegs.Int(1)}, 2, nil},
	{[]triegs.Term{triegs.String("a"), triegs.Int(9)}, 3, nil},
	{[]triegs.Term{triegs.String("a"), triegs.Int(10)}, 4, nil},
}

func TestWriter(t *testing.T) {
	for _, tc := range []struct {
		name             string
		format           Format
		sorted, counting bool
		want             string
	}{
		{"tsv", TSV, false, true, "query\tx\ty\tn\nq\tb\t10\t1\nq\ta\x01\t1\t2\nq\ta\t9\t3\nq\ta\t10\t4\n"},
		{"tsv sorted", TSV, true, true, "query\tx\ty\tn\nq\ta\t10\t4\nq\ta\t9\t3\nq\ta\x01\t1\t2\nq\tb\t10\t1\n"},
		{"tsv Boolean", TSV, true, false, "query\tx\ty\nq\ta\t10\nq\ta\t9\nq\ta\x01\t1\nq\tb\t10\n"},
		{"jsonl", JSONL, false, true, `{"query":"q","x":"b","y":10,"n":1}` + "\n" + `{"query":"q","x":"a\u0001","y":1,"n":2}` + "\n" +
			`{"query":"q","x":"a","y":9,"n":3}` + "\n" + `{"query":"q","x":"a","y":10,"n":4}` + "\n"},
		{"jsonl sorted Boolean", JSONL, true, false, `{"query":"q","x":"a","y":10}` + "\n" + `{"query":"q","x":"a","y":9}` + "\n" +
			`{"query":"q","x":"a\u0001","y":1}` + "\n" + `{"query":"q","x":"b","y":10}` + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			w := New(&b, tc.format, tc.sorted)
			// Twice, since a writer is used for one query after the other.
			for range 2 {
				if err := w.Begin("q", Shape{Columns: []string{"x", "y"}, Counting: tc.counting}); err != nil {
					t.Fatal(err)
				}
				for _, r := range rows {
					if err := w.Row(r); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.End(); err != nil {
					t.Fatal(err)
				}
			}
			if got := b.String(); got != tc.want+tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want+tc.want)
			}
		})
	}
}

// TestNullary writes answers without columns.
func TestNullary(t *testing.T) {
	for format, want := range map[Format]string{TSV: "query\tn\nq\t6\n", JSONL: `{"query":"q","n":6}` + "\n"} {
		var b strings.Builder
		w := New(&b, format, false)
		if err := errors.Join(w.Begin("q", Shape{Counting: true}), w.Row(row{n: 6}), w.End()); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: got %q, want %q", format, b.String(), want)
		}
	}
}

// TestKeyCollision keeps the names of columns that are called as our keys.
func TestKeyCollision(t *testing.T) {
	var b strings.Builder
	w := New(&b, JSONL, false)
	r := row{[]triegs.Term{triegs.Int(1), triegs.Int(2), triegs.Int(3)}, 4, nil}
	if err := errors.Join(w.Begin("q", Shape{Columns: []string{"n", "query", "_n"}, Counting: true}), w.Row(r), w.End()); err != nil {
		t.Fatal(err)
	}
	if want := `{"_query":"q","n":1,"query":2,"_n":3,"__n":4}` + "\n"; b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

func TestCount(t *testing.T) {
	for format, want := range map[Format]string{TSV: "a\\tb\t3\t7\n", JSONL: `{"query":"a\tb","distinct":3,"total":7}` + "\n"} {
		var b strings.Builder
		if err := New(&b, format, false).Count("a\tb", 3, 7); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: got %q, want %q", format, b.String(), want)
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("no space")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestWriteErrors checks that a failed write is reported at the latest by End.
func TestWriteErrors(t *testing.T) {
	w := New(fullDisk{}, TSV, false)
	var err error
	if err = w.Begin("q", Shape{Columns: []string{"x", "y"}, Counting: true}); err == nil {
		err = w.Row(rows[0])
	}
	if err == nil {
		err = w.End()
	}
	if !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	if err := New(fullDisk{}, JSONL, false).Count("q", 1, 1); !errors.Is(err, errFull) {
		t.Errorf("count: got %v", err)
	}
}

// TestRowAllocations pins that a row costs nothing but its text.
func TestRowAllocations(t *testing.T) {
	w := New(discard{}, TSV, false)
	if err := w.Begin("q", Shape{Columns: []string{"x", "y"}, Counting: true}); err != nil {
		t.Fatal(err)
	}
	var r Row = row{[]triegs.Term{triegs.String("person:1"), triegs.Float(2.5)}, 7, nil}
	if n := testing.AllocsPerRun(1000, func() { w.Row(r) }); n > 0 {
		t.Errorf("%v allocations a row", n)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// TestValues prints the values of aggregates and semirings behind the terms.
func TestValues(t *testing.T) {
	r := row{terms: []triegs.Term{triegs.String("a")}, values: []any{
		int64(3), 2.5, "secret", triegs.Time(time.Unix(0, 0)), []any{int64(2), 1.5}, [][]string{{"t1", "t2"}, {}}, nil,
	}}
	names := []string{"count()", "avg(x)", "level", "max(t)", "topk(x, 2)", "why", "none"}
	const date = `1970-01-01T00:00:00Z`
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	for format, want := range map[Format]string{
		TSV: "query\tx\t" + strings.Join(names, "\t") + "\n" +
			"q\ta\t3\t2.5\tsecret\t\"" + date + "\"^^<" + xsd + "dateTime>\t{2,1.5}\t{{t1,t2},{}}\t{}\n",
		JSONL: `{"query":"q","x":"a","count()":3,"avg(x)":2.5,"level":"secret","max(t)":{"literal":"` + date + `","datatype":"` + xsd +
			`dateTime"},"topk(x, 2)":[2,1.5],"why":[["t1","t2"],[]],"none":null}` + "\n",
	} {
		var out strings.Builder
		w := New(&out, format, false)
		if err := errors.Join(w.Begin("q", Shape{Columns: []string{"x"}, Values: names}), w.Row(r), w.End()); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: %s, want %s", format, out.String(), want)
		}
	}
}
