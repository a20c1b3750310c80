package plan

import (
	"encoding/json"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestExplain runs the files of testdata/explain. The commands, each with a
// query in the form of reader_test.go as input, are
//
//	explain     the explanation as text, or the error
//	json        the explanation as JSON
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
			case "explain", "json":
				var x *Explanation
				if x, err = Explain(q); err == nil {
					out = x.String()
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
