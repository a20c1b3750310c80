package input

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// fuzzFormat checks what every reader promises for any bytes: no panic, errors
// that carry a line and match a sentinel, events that a store could take.
func fuzzFormat(f *testing.F, format string, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Open([]string{Stdin}, Options{Format: format, Batch: 3, Stdin: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		n := uint64(0)
		for {
			b, err := s.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				checkError(t, text, err)
				return
			}
			if b.Offset != n || len(b.Lines) != len(b.Events) {
				t.Fatalf("offset %d after %d events, %d lines", b.Offset, n, len(b.Lines))
			}
			n += uint64(len(b.Events))
			for i, e := range b.Events {
				checkEvent(t, e, b.Lines[i])
			}
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	gzipped := strings.HasPrefix(text, "\x1f\x8b")
	if e.Line < 1 && !gzipped || !gzipped && e.Line > strings.Count(text, "\n")+1 {
		t.Fatalf("line %d: %v", e.Line, err)
	}
	for _, s := range []error{triegs.ErrSyntax, triegs.ErrTime, triegs.ErrValue, triegs.ErrArity, triegs.ErrUnsupported} {
		if errors.Is(err, s) {
			return
		}
	}
	if !gzipped {
		t.Fatalf("no sentinel: %v", err)
	}
}

func checkEvent(t *testing.T, e triegs.Event, line int) {
	t.Helper()
	if line < 1 || (e.Relation == "" || len(e.Tuple) == 0) && !(e.Op == triegs.Delete && e.ID != "") {
		t.Fatalf("line %d: %+v", line, e)
	}
	for _, term := range append(e.Tuple, e.Value) {
		if term.IsZero() {
			continue
		}
		if err := term.Validate(); err != nil {
			t.Fatal(err)
		}
		if back, err := triegs.ParseTerm(term.String()); err != nil || back != term {
			t.Fatalf("%s comes back as %v, %v", term, back, err)
		}
	}
}

func FuzzTSV(f *testing.F) {
	fuzzFormat(f, "tsv", "0\tk\ta\tb\n", "-\t-15\tk\ta\tb\t7.5e3\n", "2026-03-29T01:59:59+01:00\tk\t\t\tx\r\n", "\ufeff1\tk\ta\tb", "x")
}

func FuzzCSV(f *testing.F) {
	fuzzFormat(f, "csv", "time,label,source,target,value\n0,k,a,\"\",1\n", "op,label,a:int,b:term\n-,k,1,\"\"\"x\"\"@en\"\n", "label,a\r\nk,\"x\r\ny\"\r\n", "label,a\nk,\"")
}

func FuzzJSONL(f *testing.F) {
	fuzzFormat(f, "jsonl", `{"op":"insert","relation":"pay","tuple":["a",7,1.5,true,{"iri":"u"},{"literal":"x","lang":"en"},{"blank":"b"}],"time":"2026-01-01T00:00:00Z","id":"e","value":1}`,
		`{"op":"delete","id":"\ud83d\ude1f"}`, "{\"relation\":\"r\",\"tuple\":[1]}\n{\"op\":\"commit\",\"time\":5}\n{\"op\":\"commit\"}\n", `{"op":"commit","watermark":1}`)
}

func FuzzNT(f *testing.F) {
	fuzzFormat(f, "nt", "<http://e/s> <http://e/p> \"x\"@en .\n", "_:a<http://e/p>\"\\u00e9\"^^<http://e/t>.#c", "# c\r_:a.b <u:p> _:c .\r\n", "@prefix a: <b> .")
}

// FuzzScanner holds the JSON reader against the standard library's: what ours
// reads must be JSON.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"relation":"r","tuple":[1,-0.5e+3,"\u00e9\n",true,{"iri":"u"}]}`, `{"a":01}`, `{"op":"commit"}`, `{"relation":"r","tuple":["\ud800"]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n") {
			return
		}
		r := newJSONLReader(newLineReader(strings.NewReader(line)))
		var rec record
		var terms slab
		if err := r.next(&rec, &terms); err == nil && !json.Valid([]byte(strings.TrimPrefix(line, "\ufeff"))) {
			t.Fatalf("%q is not JSON", line)
		}
	})
}
