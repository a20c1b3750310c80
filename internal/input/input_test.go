package input

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// show prints an event in one line: op, fact, then what else it has.
func show(e triegs.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s(", e.Op, e.Relation)
	for i, t := range e.Tuple {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.String())
	}
	b.WriteByte(')')
	if !e.Time.IsZero() {
		fmt.Fprintf(&b, " @%s", e.Time.Format(time.RFC3339Nano))
	}
	if e.ID != "" {
		fmt.Fprintf(&b, " id=%s", e.ID)
	}
	if !e.Value.IsZero() {
		fmt.Fprintf(&b, " value=%s", e.Value)
	}
	return b.String()
}

// readAll reads one input given as text.
func readAll(format, text string) ([]string, error) {
	s, err := Open([]string{Stdin}, Options{Format: format, Batch: 1000, Stdin: strings.NewReader(text),
		Scope: func(int) string { return "s." }})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out []string
	for {
		b, err := s.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for i, e := range b.Events {
			out = append(out, fmt.Sprintf("%d: %s", b.Lines[i], show(e)))
		}
	}
}

type formatCase struct {
	name, text string
	want       []string // "line: event"
	err        error    // want is then the place and a part of the message
}

func runFormat(t *testing.T, format string, cases []formatCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readAll(format, tc.text)
			if tc.err != nil {
				if !errors.Is(err, tc.err) {
					t.Fatalf("got %q, %v, want %v", got, err, tc.err)
				}
				for _, w := range tc.want {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%q is missing in %q", w, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if g, w := strings.Join(got, "\n"), strings.Join(tc.want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
		})
	}
}

func TestTSV(t *testing.T) {
	runFormat(t, "tsv", []formatCase{
		{"edge", "0\tknows\ta\tb\n", []string{`1: insert knows("a", "b") @1970-01-01T00:00:00Z`}, nil},
		{"no line end", "5\tknows\ta\tb", []string{`1: insert knows("a", "b") @1970-01-01T00:00:00.005Z`}, nil},
		{"crlf, empty lines, mark", "\ufeff1000\tk\ta\tb\r\n\r\n\n1000\tk\tc\td\r\n", []string{
			`1: insert k("a", "b") @1970-01-01T00:00:01Z`, `4: insert k("c", "d") @1970-01-01T00:00:01Z`}, nil},
		{"retraction", "-\t-15\tk\ta\tb\t7\n", []string{`1: delete k("a", "b") @1969-12-31T23:59:59.985Z value="7"^^<http://www.w3.org/2001/XMLSchema#integer>`}, nil},
		{"RFC 3339", "2026-03-29T01:59:59.5+01:00\tk\ta\tb\n", []string{`1: insert k("a", "b") @2026-03-29T00:59:59.5Z`}, nil},
		{"values", "0\tk\ta\tb\t1.5\n0\tk\ta\tb\thigh\n0\tk\ta\tb\t\n0\tk\ta\tb\tnan\n", []string{
			`1: insert k("a", "b") @1970-01-01T00:00:00Z value="1.5E0"^^<http://www.w3.org/2001/XMLSchema#double>`,
			`2: insert k("a", "b") @1970-01-01T00:00:00Z value="high"`,
			`3: insert k("a", "b") @1970-01-01T00:00:00Z`,
			`4: insert k("a", "b") @1970-01-01T00:00:00Z value="nan"`}, nil},
		{"nodes as written", "0\tk\t\\t \"x\" \t\n0\tk\t007\tNA\n", []string{
			`1: insert k("\\t \"x\" ", "") @1970-01-01T00:00:00Z`, `2: insert k("007", "NA") @1970-01-01T00:00:00Z`}, nil},
		{"empty", "", nil, nil},
		{"few columns", "0\tk\ta\tb\n0\tk\ta\n", []string{"stdin:2:", "3 columns"}, triegs.ErrSyntax},
		{"many columns", "0\tk\ta\tb\t1\t2\n", []string{"stdin:1:"}, triegs.ErrSyntax},
		{"few columns in a retraction", "-\t0\tk\ta\n", []string{"stdin:1:"}, triegs.ErrSyntax},
		{"empty label", "0\t\ta\tb\n", []string{"stdin:1:", "label"}, triegs.ErrValue},
		{"no time", "\tk\ta\tb\n", []string{"stdin:1:"}, triegs.ErrTime},
		{"word for a time", "soon\tk\ta\tb\n", []string{"stdin:1:", `"soon"`}, triegs.ErrTime},
		{"time too large", "9223372036855\tk\ta\tb\n", []string{"stdin:1:"}, triegs.ErrTime},
		{"time too small", "-9223372036855\tk\ta\tb\n", []string{"stdin:1:"}, triegs.ErrTime},
		{"time far too large", "99999999999999999999\tk\ta\tb\n", []string{"stdin:1:"}, triegs.ErrTime},
		{"value too large", "0\tk\ta\tb\t9223372036854775808\n", []string{"stdin:1:"}, triegs.ErrValue},
		{"float too large", "0\tk\ta\tb\t1e999\n", []string{"stdin:1:"}, triegs.ErrValue},
		{"not UTF-8", "0\tk\ta\tb\n0\tk\t\xff\tb\n", []string{"stdin:2:"}, triegs.ErrSyntax},
	})
}

// TestWIN14 reads the two times of the case, one second apart, in three zones
// of the machine; a time without an offset is refused.
func TestWIN14(t *testing.T) {
	old := time.Local
	defer func() { time.Local = old }()
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 9*3600), time.FixedZone("west", -5*3600)} {
		time.Local = zone
		runFormat(t, "tsv", []formatCase{
			{"spring", "2026-03-29T01:59:59+01:00\tk\ta\tb\n2026-03-29T03:00:00+02:00\tk\ta\tb\n", []string{
				`1: insert k("a", "b") @2026-03-29T00:59:59Z`, `2: insert k("a", "b") @2026-03-29T01:00:00Z`}, nil},
			{"no offset", "2026-03-29T01:59:59\tk\ta\tb\n", []string{"stdin:1:", "zone offset"}, triegs.ErrTime},
		})
		got, err := parseTime([]byte("2026-03-29T03:00:00+02:00"))
		if err != nil || got.Unix() != 1774746000 {
			t.Errorf("%s: got %v (%d), %v", zone, got, got.Unix(), err)
		}
	}
}

func TestTimeText(t *testing.T) {
	for _, bad := range []string{"2026-03-29", "2026-03-29 01:59:59Z", "2026-03-29T1:59:59Z", "2026-03-29T01:59:59,5Z",
		"2026-03-29T01:59:59+25:00", "2026-02-30T00:00:00Z", "1.5", "0x10", "1_000", "1600-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "0001-01-01T00:00:00Z"} {
		if got, err := parseTime([]byte(bad)); !errors.Is(err, triegs.ErrTime) {
			t.Errorf("%q: got %v, %v", bad, got, err)
		}
	}
	for text, ns := range map[string]int64{"0": 0, "-15": -15e6, "+7": 7e6, "9223372036854": 9223372036854e6, "1677-09-21T00:12:43.145224192Z": -1 << 63, "2262-04-11T23:47:16.854775807Z": 1<<63 - 1} {
		if got, err := parseTime([]byte(text)); err != nil || got.UnixNano() != ns {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestCSV(t *testing.T) {
	const head = "time,label,source,target,value\n"
	runFormat(t, "csv", []formatCase{
		{"edge", head + "0,knows,a,b,\n", []string{`2: insert knows("a", "b") @1970-01-01T00:00:00Z`}, nil},
		{"values", head + "0,k,a,b,3\n0,k,a,b,\"\"\n", []string{
			`2: insert k("a", "b") @1970-01-01T00:00:00Z value="3"^^<http://www.w3.org/2001/XMLSchema#integer>`,
			`3: insert k("a", "b") @1970-01-01T00:00:00Z value=""`}, nil},
		{"any order", "target,op,label,source,id\nb,-,k,a,e1\nb,,k,a,\nb,+,k,a,e2\n", []string{
			`2: delete k("a", "b") id=e1`, `3: insert k("a", "b")`, `4: insert k("a", "b") id=e2`}, nil},
		{"typed columns", "label,name,age:int,ok:bool,w:float,u:iri,t:time,x:term,value:string\nk,a,42,true,2,http://e/a,0,_:b,7\n", []string{
			`2: insert k("a", "42"^^<http://www.w3.org/2001/XMLSchema#integer>, "true"^^<http://www.w3.org/2001/XMLSchema#boolean>, "2.0E0"^^<http://www.w3.org/2001/XMLSchema#double>, <http://e/a>, "1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>, _:b) value="7"`}, nil},
		{"line breaks in quotes", "label,source,target\r\nk,\"a\r\nb\",\"c\n\"\"d\"\r\n\r\nk,e,f", []string{
			`2: insert k("a\r\nb", "c\n\"d")`, `6: insert k("e", "f")`}, nil},
		{"empty", "", nil, nil},
		{"header only", head, nil, nil},
		{"mark", "\ufefflabel,source,target\nk,a,b\n", []string{`2: insert k("a", "b")`}, nil},
		{"bare quote", head + "0,k,a\"b,c,\n", []string{"stdin:2:", "field 3"}, triegs.ErrSyntax},
		{"after the quote", head + "0,k,\"a\"b,c,\n", []string{"stdin:2:", "field 3"}, triegs.ErrSyntax},
		{"open quote", head + "0,k,a,b,\n0,k,\"a,c,\n\n", []string{"stdin:3:", "field 3"}, triegs.ErrSyntax},
		{"few fields", head + "0,k,a,b\n", []string{"stdin:2:"}, triegs.ErrSyntax},
		{"many fields", head + "0,k,a,b,,\n", []string{"stdin:2:"}, triegs.ErrSyntax},
		{"no label column", "time,lable,source,target\n", []string{"stdin:1:", "label"}, triegs.ErrSyntax},
		{"no node column", "time,label\n", []string{"stdin:1:"}, triegs.ErrSyntax},
		{"half an edge", "label,sorce,target\n", []string{"stdin:1:", "only one"}, triegs.ErrSyntax},
		{"column twice", "label,source,target,source\n", []string{"stdin:1:", "twice"}, triegs.ErrSyntax},
		{"unknown type", "label,age:number\n", []string{"stdin:1:", "number"}, triegs.ErrSyntax},
		{"typed label", "label:int,a,b\n", []string{"stdin:1:"}, triegs.ErrSyntax},
		{"nameless column", "label,,b\n", []string{"stdin:1:"}, triegs.ErrSyntax},
		{"bad op", "op,label,a\n*,k,x\n", []string{"stdin:2:"}, triegs.ErrValue},
		{"bad int", "label,age:int\nk,forty\n", []string{"stdin:2:", "age"}, triegs.ErrValue},
		{"bad float", "label,w:float\nk,nan\n", []string{"stdin:2:", "w"}, triegs.ErrValue},
		{"bad bool", "label,ok:bool\nk,True\n", []string{"stdin:2:", "ok"}, triegs.ErrValue},
		{"bad iri", "label,u:iri\nk,a b\n", []string{"stdin:2:"}, triegs.ErrValue},
		{"bad term", "label,u:term\nk,a\n", []string{"stdin:2:"}, triegs.ErrSyntax},
		{"bad time", head + "x,k,a,b,\n", []string{"stdin:2:"}, triegs.ErrTime},
		{"empty label", head + "0,,a,b,\n", []string{"stdin:2:", "label"}, triegs.ErrValue},
		{"quoted empty int", "label,age:int\nk,\"\"\n", []string{"stdin:2:"}, triegs.ErrValue},
	})
}

// TestTERM01 keeps the empty string, which is quoted, and no value, which is
// bare, apart.
func TestTERM01(t *testing.T) {
	runFormat(t, "csv", []formatCase{
		{"quoted", "label,source,target\nq,a,\"\"\n", []string{`2: insert q("a", "")`}, nil},
		{"bare", "label,source,target\nq,b,\"\"\nq,a,\n", []string{"stdin:3:", "target"}, triegs.ErrValue},
	})
}

// TestTERM10 keeps every node as it is written.
func TestTERM10(t *testing.T) {
	nodes := []string{"MY", "MZ", "NA", "null", "NULL", "nan", "007", " padded ", "a,b", "line\r\nbreak"}
	var text strings.Builder
	text.WriteString("label,source,target\n")
	for _, n := range nodes {
		field := n
		if strings.ContainsAny(n, ",\n") {
			field = `"` + n + `"`
		}
		fmt.Fprintf(&text, "q,s,%s\n", field)
	}
	s, err := Open([]string{Stdin}, Options{Format: "csv", Batch: 100, Stdin: strings.NewReader(text.String())})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[triegs.Term]bool{}
	for i, e := range b.Events {
		if e.Tuple[1] != triegs.String(nodes[i]) {
			t.Errorf("node %d: got %s, want %q", i, e.Tuple[1], nodes[i])
		}
		distinct[e.Tuple[1]] = true
	}
	if len(distinct) != 10 {
		t.Errorf("%d distinct nodes, want 10", len(distinct))
	}
}

func TestJSONL(t *testing.T) {
	runFormat(t, "jsonl", []formatCase{
		{"all keys", `{"op":"insert","relation":"pay","tuple":["a","b",12.5],"time":"2026-01-01T00:00:00Z","id":"e1","value":1}` + "\n", []string{
			`1: insert pay("a", "b", "1.25E1"^^<http://www.w3.org/2001/XMLSchema#double>) @2026-01-01T00:00:00Z id=e1 value="1"^^<http://www.w3.org/2001/XMLSchema#integer>`}, nil},
		{"terms", `{"relation":"r","tuple":["x",7,-0,7.0,1e2,true,false,{"iri":"http://e/a"},{"literal":"chat","lang":"EN"},{"literal":"x","datatype":"http://e/t"},{"literal":"5","datatype":"http://www.w3.org/2001/XMLSchema#integer"},{"literal":"p"},{"blank":"b1"}]}`, []string{
			`1: insert r("x", "7"^^<http://www.w3.org/2001/XMLSchema#integer>, "0"^^<http://www.w3.org/2001/XMLSchema#integer>, "7.0E0"^^<http://www.w3.org/2001/XMLSchema#double>, "1.0E2"^^<http://www.w3.org/2001/XMLSchema#double>, ` +
				`"true"^^<http://www.w3.org/2001/XMLSchema#boolean>, "false"^^<http://www.w3.org/2001/XMLSchema#boolean>, <http://e/a>, "chat"@en, "x"^^<http://e/t>, "5"^^<http://www.w3.org/2001/XMLSchema#integer>, "p", _:b1)`}, nil},
		{"time and value forms", `{"relation":"r","tuple":["x"],"time":-5,"value":"high"}`, []string{`1: insert r("x") @1969-12-31T23:59:59.995Z value="high"`}, nil},
		{"delete by id", ` { "op" : "delete" , "id" : "e1" } `, []string{`1: delete () id=e1`}, nil},
		{"delete by id and tuple", `{"op":"delete","id":"e1","relation":"r","tuple":[1]}`, []string{`1: delete r("1"^^<http://www.w3.org/2001/XMLSchema#integer>) id=e1`}, nil},
		{"escapes", `{"relation":"\u0072","tuple":["a\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE1F"],"id":"\u0061"}`, []string{"1: insert r(\"a\\\"\\\\/\\b\\f\\n\\r\\té😟\") id=a"}, nil},
		{"empty lines", "\n\r\n" + `{"relation":"r","tuple":[1]}` + "\n\n", []string{`3: insert r("1"^^<http://www.w3.org/2001/XMLSchema#integer>)`}, nil},
		{"watermark of an event", `{"relation":"r","tuple":[1],"watermark":5}`, []string{"stdin:1:", "watermark"}, triegs.ErrSyntax},
		{"watermark that is no time", `{"op":"commit","watermark":"soon"}`, []string{"stdin:1:", "watermark"}, triegs.ErrTime},
		{"watermark too large", `{"op":"commit","watermark":9223372036855}`, []string{"stdin:1:", "watermark"}, triegs.ErrTime},
		{"unknown key", `{"relation":"r","tupel":[1]}`, []string{"stdin:1:", "tupel"}, triegs.ErrSyntax},
		{"other letter case", `{"Relation":"r","tuple":[1]}`, []string{"stdin:1:"}, triegs.ErrSyntax},
		{"key twice", `{"relation":"r","tuple":[1],"tuple":[2]}`, []string{"stdin:1:", "twice"}, triegs.ErrSyntax},
		{"lone surrogate", `{"relation":"r","tuple":["\uD83D"]}`, []string{"stdin:1:", "surrogate"}, triegs.ErrSyntax},
		{"two high surrogates", `{"relation":"r","tuple":["\uD83D\uD83D"]}`, []string{"stdin:1:", "surrogate"}, triegs.ErrSyntax},
		{"null", `{"relation":"r","tuple":[null]}`, []string{"stdin:1:", "null"}, triegs.ErrValue},
		{"integer too large", `{"relation":"r","tuple":[9223372036854775808]}`, []string{"stdin:1:"}, triegs.ErrValue},
		{"float too large", `{"relation":"r","tuple":[1e999]}`, []string{"stdin:1:"}, triegs.ErrValue},
		{"empty tuple", `{"relation":"r","tuple":[]}`, []string{"stdin:1:"}, triegs.ErrArity},
		{"no tuple", `{"relation":"r"}`, []string{"stdin:1:", "no tuple"}, triegs.ErrSyntax},
		{"no relation", `{"tuple":[1]}`, []string{"stdin:1:", "no relation"}, triegs.ErrSyntax},
		{"insert by id alone", `{"id":"e1"}`, []string{"stdin:1:"}, triegs.ErrSyntax},
		{"empty id", `{"relation":"r","tuple":[1],"id":""}`, []string{"stdin:1:", "id"}, triegs.ErrValue},
		{"empty relation", `{"relation":"","tuple":[1]}`, []string{"stdin:1:", "relation"}, triegs.ErrValue},
		{"bad op", `{"op":"upsert","relation":"r","tuple":[1]}`, []string{"stdin:1:", "upsert"}, triegs.ErrValue},
		{"bad time", `{"relation":"r","tuple":[1],"time":1.5}`, []string{"stdin:1:", "time"}, triegs.ErrTime},
		{"bad value", `{"relation":"r","tuple":[1],"value":true}`, []string{"stdin:1:", "value"}, triegs.ErrValue},
		{"bad lang", `{"relation":"r","tuple":[{"literal":"x","lang":"1"}]}`, []string{"stdin:1:"}, triegs.ErrValue},
		{"bad iri", `{"relation":"r","tuple":[{"iri":"a b"}]}`, []string{"stdin:1:"}, triegs.ErrValue},
		{"two kinds of term", `{"relation":"r","tuple":[{"iri":"a","blank":"b"}]}`, []string{"stdin:1:"}, triegs.ErrSyntax},
		{"commit with a tuple", `{"op":"commit","tuple":[1]}`, []string{"stdin:1:", "commit"}, triegs.ErrSyntax},
		{"trailing comma", `{"relation":"r","tuple":[1,]}`, []string{"stdin:1:"}, triegs.ErrSyntax},
		{"leading zero", `{"relation":"r","tuple":[01]}`, []string{"stdin:1:"}, triegs.ErrSyntax},
		{"two objects", `{"relation":"r","tuple":[1]}{}`, []string{"stdin:1:", "column 29"}, triegs.ErrSyntax},
		{"cut off", `{"relation":"r","tuple":["a`, []string{"stdin:1:"}, triegs.ErrSyntax},
		{"array", `[]`, []string{"stdin:1:"}, triegs.ErrSyntax},
		{"not UTF-8", `{"relation":"r","tuple":["` + "\xff" + `"]}`, []string{"stdin:1:"}, triegs.ErrSyntax},
	})
}

func TestNT(t *testing.T) {
	runFormat(t, "nt", []formatCase{
		{"triple", "<http://e/s> <http://e/p> <http://e/o> .\n", []string{`1: insert http://e/p(<http://e/s>, <http://e/o>)`}, nil},
		{"comments and blanks", "# one\n\n \t<http://e/s>\t<http://e/p>  \"x\"@en-GB . # two\n#three", []string{`3: insert http://e/p(<http://e/s>, "x"@en-gb)`}, nil},
		{"no blanks", `_:a<http://e/p>"x"^^<http://e/t>.`, []string{`1: insert http://e/p(_:s.a, "x"^^<http://e/t>)`}, nil},
		{"label with dots", "_:a.b <http://e/p> _:c.d.\n", []string{`1: insert http://e/p(_:s.a.b, _:s.c.d)`}, nil},
		{"bare carriage return", "<http://e/s> <http://e/p> _:a .\r<http://e/s> <http://e/p> _:b .\r\n", []string{
			`1: insert http://e/p(<http://e/s>, _:s.a)`, `1: insert http://e/p(<http://e/s>, _:s.b)`}, nil},
		{"native kinds", "_:a <http://e/p> \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n", []string{`1: insert http://e/p(_:s.a, "7"^^<http://www.w3.org/2001/XMLSchema#integer>)`}, nil},
		{"literal subject", "\"x\" <http://e/p> <http://e/o> .\n", []string{"stdin:1:", "subject"}, triegs.ErrSyntax},
		{"blank predicate", "_:a _:p <http://e/o> .\n", []string{"stdin:1:", "predicate"}, triegs.ErrSyntax},
		{"no object", "_:a <http://e/p> .\n", []string{"stdin:1:", "object"}, triegs.ErrSyntax},
		{"nothing but a subject", "_:a", []string{"stdin:1:", "predicate"}, triegs.ErrSyntax},
		{"relative", "_:a <p> <http://e/o> .\n", []string{"stdin:1:", "absolute"}, triegs.ErrSyntax},
		{"relative datatype", "_:a <http://e/p> \"x\"^^<t> .\n", []string{"stdin:1:", "datatype"}, triegs.ErrSyntax},
		{"after the dot", "_:a <http://e/p> _:b . _:c\n", []string{"stdin:1:", "after the dot"}, triegs.ErrSyntax},
		{"not UTF-8", "_:a <http://e/p> \"\xff\" .\n", []string{"stdin:1:"}, triegs.ErrSyntax},
	})
}

// TestTERM04 reads one character written in three ways as one term.
func TestTERM04(t *testing.T) {
	terms := func(literals ...string) map[string]bool {
		var text strings.Builder
		for _, l := range literals {
			fmt.Fprintf(&text, "<http://e/s> <http://e/p> \"%s\" .\n", l)
		}
		got, err := readAll("nt", text.String())
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]bool{}
		for _, g := range got {
			_, event, _ := strings.Cut(g, " ")
			set[event] = true
		}
		return set
	}
	for want, literals := range map[int][]string{
		1: {"\u00e9", `\u00E9`, `\U000000E9`},
		2: {"\u00e9", "e\u0301", `\u00e9`, `e\u0301`},
	} {
		if got := terms(literals...); len(got) != want {
			t.Errorf("%q: %d terms, want %d: %v", literals, len(got), want, got)
		}
	}
	if got := terms("😟", `\U0001F61F`); len(got) != 1 {
		t.Errorf("emoji: %v", got)
	}
}

// TestTERM05 refuses what a lenient reader would take, with the line.
func TestTERM05(t *testing.T) {
	const good = "<http://e/s> <http://e/p> \"x\" .\n"
	for name, line := range map[string]string{
		"base":        "@base <http://e/> .",
		"prefix":      "@prefix e: <http://e/> .",
		"bare number": "<http://e/s> <http://e/p> 1 .",
		"label":       "_::a <http://e/p> <http://e/o> .",
		"language":    "<http://e/s> <http://e/p> \"x\"@1 .",
		"no dot":      "<http://e/s> <http://e/p> \"x\"",
		"quotes":      "<http://e/s> <http://e/p> \"x' .",
		"quotes 2":    "<http://e/s> <http://e/p> 'x' .",
		"surrogate":   `<http://e/s> <http://e/p> "\uD800" .`,
		"escape":      `<http://e/s> <http://e/p> "\z" .`,
		"blank iri":   "<http://e/ s> <http://e/p> \"x\" .",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readAll("nt", good+good+line+"\n"+good)
			if !errors.Is(err, triegs.ErrSyntax) || !strings.HasPrefix(err.Error(), "stdin:3: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestTERM06 scopes blank node labels by the file that they stand in.
func TestTERM06(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "1.nt"), filepath.Join(dir, "2.nt")
	write(t, one, "_:b0 <http://e/p> \"1\" .\n_:b0 <http://e/p> \"2\" .\n")
	write(t, two, "_:b0 <http://e/p> \"2\" .\n")
	s, err := Open([]string{one, two}, Options{Batch: 10, Scope: func(i int) string { return "l" + strconv.Itoa(i) + "-" }})
	if err != nil {
		t.Fatal(err)
	}
	var subjects []triegs.Term
	for {
		b, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			subjects = append(subjects, e.Tuple[0])
			if err := e.Tuple[0].Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	if len(subjects) != 3 || subjects[0] != subjects[1] || subjects[1] == subjects[2] {
		t.Errorf("subjects: %v", subjects)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func zip(content string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(content))
	w.Close()
	return b.String()
}

// TestBatches checks how inputs are cut, timed and numbered.
func TestBatches(t *testing.T) {
	dir := t.TempDir()
	path := func(name, content string) string {
		p := filepath.Join(dir, name)
		write(t, p, content)
		return p
	}
	ev := func(i int, at string) string { return fmt.Sprintf(`{"relation":"r","tuple":[%d]%s}`+"\n", i, at) }
	tsv := func(times ...int) (s string) {
		for _, ms := range times {
			s += fmt.Sprintf("%d\tk\ta\tb\n", ms)
		}
		return s
	}
	commits := ev(1, "") + ev(2, "") + ev(3, "") + `{"op":"commit"}` + "\n" + `{"op":"commit"}` + "\n" + ev(4, `,"time":9000`) + `{"op":"commit","time":5000}` + "\n" + `{"op":"commit","time":6000}` + "\n" + ev(5, "")
	marks := ev(1, `,"time":1000`) + `{"op":"commit","watermark":"1970-01-01T00:00:07+00:00"}` + "\n" + `{"op":"commit","watermark":8000,"time":5000}` + "\n" + ev(2, "")
	tests := []struct {
		name  string
		paths []string
		opts  Options
		want  []string // "offset+events time", then the watermark if there is one
	}{
		{"by number", []string{path("a.tsv", tsv(1000, 3000, 2000, 4000, 5000))}, Options{Batch: 2}, []string{"0+2 3", "2+2 4", "4+1 5"}},
		{"exact", []string{path("b.tsv", tsv(1000, 3000))}, Options{Batch: 2}, []string{"0+2 3"}},
		{"never over two inputs", []string{path("c.tsv", tsv(1000)), path("d.tsv", tsv(2000, 3000))}, Options{Batch: 10}, []string{"0+1 1", "1+2 3"}},
		{"before 1970", []string{path("e.tsv", tsv(-3000, -2000))}, Options{Batch: 10}, []string{"0+2 -2"}},
		{"gzip", []string{path("f.tsv.gz", zip(tsv(1000)))}, Options{Batch: 10}, []string{"0+1 1"}},
		{"gzip by its first bytes", []string{path("g.tsv", zip(tsv(1000))+zip(tsv(2000)))}, Options{Batch: 10}, []string{"0+2 2"}},
		{"unknown extension", []string{path("h.log", tsv(1000))}, Options{Batch: 10}, []string{"0+1 1"}},
		{"nt asks the clock", []string{path("i.nt", "_:a <http://e/p> _:b .\n")}, Options{Batch: 10}, []string{"0+1 none"}},
		{"commit lines", []string{path("j.jsonl", commits)}, Options{Batch: 2}, []string{"0+3 none", "3+1 5", "4+0 6", "4+1 none"}},
		{"commit lines and others", []string{path("k.jsonl", commits), path("l.tsv", tsv(1000, 2000, 3000))}, Options{Batch: 2},
			[]string{"0+3 none", "3+1 5", "4+0 6", "4+1 none", "5+2 2", "7+1 3"}},
		{"gzip with commit lines", []string{path("m.jsonl.gz", zip(commits))}, Options{Batch: 2}, []string{"0+3 none", "3+1 5", "4+0 6", "4+1 none"}},
		{"commit lines from stdin", []string{Stdin}, Options{Batch: 2, Format: "jsonl", Stdin: strings.NewReader(commits + ev(6, "") + ev(7, ""))},
			[]string{"0+2 none", "2+1 none", "3+1 5", "4+0 6", "4+3 none"}},
		{"watermarks", []string{path("r.jsonl", marks)}, Options{Batch: 2}, []string{"0+1 1 to 7", "1+0 5 to 8", "1+1 none"}},
		{"no inputs", nil, Options{Batch: 2}, nil},
		{"empty inputs", []string{path("n.tsv", ""), path("o.csv", ""), path("p.jsonl", "\n"), path("q.nt", "# nothing\n"), Stdin}, Options{Batch: 2}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Source = "src"
			s, err := Open(tt.paths, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var got []string
			for {
				b, err := s.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				at := "none"
				if !b.Time.IsZero() {
					at = strconv.FormatInt(b.Time.Unix(), 10)
				}
				if !b.Watermark.IsZero() {
					at += fmt.Sprintf(" to %d", b.Watermark.Unix())
				}
				got = append(got, fmt.Sprintf("%d+%d %s", b.Offset, len(b.Events), at))
				if b.Source != "src" {
					t.Errorf("source %q", b.Source)
				}
			}
			if g, w := strings.Join(got, ", "), strings.Join(tt.want, ", "); g != w {
				t.Errorf("got %s, want %s", g, w)
			}
		})
	}
}

// TestCommitPlace: what is wrong with a batch without events is told with the
// line of its commit.
func TestCommitPlace(t *testing.T) {
	text := `{"relation":"r","tuple":[1]}` + "\n" + `{"op":"commit"}` + "\n\n" + `{"op":"commit","watermark":5}` + "\n"
	s, err := Open([]string{Stdin}, Options{Format: "jsonl", Batch: 10, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []string{"stdin:1: why", "stdin:4: why"} {
		b, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got := b.At(0, errors.New("why")).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	plainGz := filepath.Join(dir, "plain.tsv.gz")
	write(t, plainGz, "0\tk\ta\tb\n")
	cut := filepath.Join(dir, "cut.tsv.gz")
	whole := zip("0\tk\ta\tb\n")
	write(t, cut, whole[:len(whole)-6])
	header := filepath.Join(dir, "header.tsv")
	write(t, header, "\x1f\x8b\x00")
	for name, tc := range map[string]struct {
		path string
		want error
	}{
		"missing":          {filepath.Join(dir, "none.tsv"), os.ErrNotExist},
		"not gzip":         {plainGz, triegs.ErrSyntax},
		"cut gzip":         {cut, triegs.ErrSyntax},
		"cut gzip header":  {header, triegs.ErrSyntax},
		"directory":        {dir, nil},
		"missing for scan": {filepath.Join(dir, "none.jsonl"), os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open([]string{tc.path}, Options{Batch: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for err == nil {
				_, err = s.Next()
			}
			if errors.Is(err, io.EOF) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if !strings.HasPrefix(err.Error(), tc.path+":") || strings.Count(err.Error(), tc.path) != 1 {
				t.Errorf("the file is not named once: %v", err)
			}
			if _, again := s.Next(); !errors.Is(again, err) {
				t.Errorf("the error does not stay: %v", again)
			}
		})
	}
	if _, err := Open(nil, Options{}); !errors.Is(err, triegs.ErrValue) {
		t.Errorf("batch 0: %v", err)
	}
}

func TestDetect(t *testing.T) {
	for _, tc := range []struct {
		path, name string
		want       Format
		notBuilt   string
		bad        bool
	}{
		{"a.tsv", "", TSV, "", false}, {"a.csv.gz", "", CSV, "", false}, {"a.jsonl", "", JSONL, "", false}, {"x/a.nt", "", NT, "", false},
		{"-", "", TSV, "", false}, {"a", "", TSV, "", false}, {"a.nt", "csv", CSV, "", false},
		{"a.ttl", "", 0, "ttl", false}, {"a.nq.gz", "", 0, "nq", false}, {"a.tsv", "nq", 0, "nq", false}, {"a.tsv", "xml", 0, "", true},
	} {
		got, err := Detect(tc.path, tc.name)
		nb, isNotBuilt := errors.AsType[*NotBuiltError](err)
		if got != tc.want || isNotBuilt != (tc.notBuilt != "") || isNotBuilt && nb.Name != tc.notBuilt || errors.Is(err, triegs.ErrValue) != tc.bad {
			t.Errorf("%q as %q: got %v, %v", tc.path, tc.name, got, err)
		}
	}
}

// TestBatchAt names the line of an event.
func TestBatchAt(t *testing.T) {
	b := &Batch{File: "a.tsv", Lines: []int{4, 7}}
	for i, want := range map[int]string{0: "a.tsv:4: ", 1: "a.tsv:7: ", -1: "a.tsv:4: ", 9: "a.tsv:4: "} {
		if err := b.At(i, triegs.ErrNoSuchFact); !errors.Is(err, triegs.ErrNoSuchFact) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("event %d: %v", i, err)
		}
	}
	if err := (&Batch{File: "a.tsv"}).At(0, triegs.ErrNoSuchFact); !strings.HasPrefix(err.Error(), "a.tsv: ") {
		t.Error(err)
	}
}

// TestLongLines reads terms that are longer than every buffer.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	got, err := readAll("tsv", "0\tk\ta\t"+long+"\n0\tk\ta\t"+long+"y\n0\tk\ta\tb")
	if err != nil || len(got) != 3 || len(got[0]) < 1<<20 || len(got[1]) != len(got[0])+1 {
		t.Errorf("%d events, %v", len(got), err)
	}
	got, err = readAll("csv", "label,a\nk,\""+long+"\n"+long+"\"\n")
	if err != nil || len(got) != 1 || len(got[0]) < 2<<20 {
		t.Errorf("%d events, %v", len(got), err)
	}
}

// TestTSVAllocations pins what a line costs: its two node strings.
func TestTSVAllocations(t *testing.T) {
	const lines = 4096
	text := strings.Repeat("1000\tknows\tperson:10995116278\tperson:2199023\n", lines)
	rd := newTSVReader(newLineReader(strings.NewReader(text)))
	var terms slab
	var rec record
	n := testing.AllocsPerRun(lines-1, func() {
		rec = record{}
		if err := rd.next(&rec, &terms); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2 {
		t.Errorf("%v allocations a line, want 2", n)
	}
}

func benchmark(b *testing.B, format Format, head, line string) {
	text := head + strings.Repeat(line, 100_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		rd := newReader(format, strings.NewReader(text), "s-")
		var terms slab
		var err error
		n := 0
		for ; err == nil; n++ {
			var rec record
			err = rd.next(&rec, &terms)
		}
		if !errors.Is(err, io.EOF) || n != 100_001 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(100_000*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkTSV(b *testing.B) {
	benchmark(b, TSV, "", "1262304000000\thasCreator\tpost:137438953\tperson:2199023\n")
}

func BenchmarkCSV(b *testing.B) {
	benchmark(b, CSV, "time,label,source,target\n", "1262304000000,hasCreator,post:137438953,person:2199023\n")
}

func BenchmarkJSONL(b *testing.B) {
	benchmark(b, JSONL, "", `{"relation":"pay","tuple":["account:137438953","account:2199023",12.5],"time":1262304000000}`+"\n")
}

func BenchmarkNT(b *testing.B) {
	benchmark(b, NT, "", "<http://example.org/post/137438953> <http://example.org/hasCreator> _:person2199023 .\n")
}
