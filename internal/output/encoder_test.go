package output

import (
	"bytes"
	"testing"

	"github.com/triegs/triegs"
)

// TestEncoderOverflow checks that a line whose number does not fit says so, with a key
// that makes way for a column.
func TestEncoderOverflow(t *testing.T) {
	e := NewEncoder(JSONL)
	shape := Shape{Columns: []string{"error", "y"}, Counting: true}
	e.Rows("q", shape)
	r := row{[]triegs.Term{triegs.String("b"), triegs.Int(10)}, 0, nil}
	if got, want := string(e.AppendRow([]byte("-"), r, true)), `-{"query":"q","error":"b","y":10,"n":0,"_error":"overflow"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.n = 3
	if got, want := string(e.AppendRow(nil, r, false)), `{"query":"q","error":"b","y":10,"n":3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	plain := NewEncoder(TSV)
	plain.Rows("q", shape)
	if got, want := string(plain.AppendRow(nil, r, true)), "q\tb\t10\t3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMark checks the line of a position.
func TestMark(t *testing.T) {
	token := new(triegs.Token).String()
	for _, tc := range []struct {
		format  Format
		columns []string
		want    string
	}{
		{TSV, []string{"x"}, "token\t0\tq\\n\t" + token + "\n"},
		{JSONL, []string{"x"}, `{"epoch":0,"query":"q\n","token":"` + token + "\"}\n"},
		{JSONL, []string{"token", "query"}, `{"epoch":0,"_query":"q\n","_token":"` + token + "\"}\n"},
	} {
		var b bytes.Buffer
		w := New(&b, tc.format, false)
		shape := Shape{Columns: tc.columns, Counting: true}
		w.BeginDeltas("q\n", shape)
		if err := w.Mark("q\n", shape, triegs.Token{}); err != nil {
			t.Fatal(err)
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		if b.String() != tc.want {
			t.Errorf("%s: got %q, want %q", tc.format, b.String(), tc.want)
		}
	}
}
