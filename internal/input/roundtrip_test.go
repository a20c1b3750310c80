package input

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

// TestRoundTrip reads every kind of term back from what the output writes as
// jsonl, and from N-Triples syntax.
func TestRoundTrip(t *testing.T) {
	terms := []triegs.Term{
		triegs.String(""), triegs.String("a\tb\r\n\"\\\x00\x7fé😟"), triegs.Int(math.MinInt64), triegs.Int(0),
		triegs.Float(0), triegs.Float(math.Copysign(0, -1)), triegs.Float(math.NaN()), triegs.Float(math.Inf(1)),
		triegs.Float(math.MaxFloat64), triegs.Float(math.SmallestNonzeroFloat64), triegs.Float(0.1), triegs.Float(1e21),
		triegs.Bool(true), triegs.Bool(false), triegs.IRI("http://e/é"), triegs.Blank("b.1"), triegs.LangString("", "en-GB"),
		triegs.Typed("007", "http://www.w3.org/2001/XMLSchema#integer"), triegs.Typed("", "http://www.w3.org/2001/XMLSchema#date"),
		triegs.Time(time.Unix(-1, 5)), triegs.Bytes(nil), triegs.Bytes([]byte{0, 255}),
	}
	for _, want := range terms {
		rd := newJSONLReader(newLineReader(strings.NewReader(fmt.Sprintf(`{"relation":"r","tuple":[%s]}`, output.AppendJSON(nil, want)))))
		var rec record
		var slab slab
		if err := rd.next(&rec, &slab); err != nil || rec.ev.Tuple[0] != want {
			t.Errorf("jsonl: %s came back as %v, %v", want, rec.ev.Tuple, err)
		}
		nt := newNTReader(newLineReader(strings.NewReader("<u:s> <u:p> "+want.String()+" .")), "")
		rec = record{}
		if err := nt.next(&rec, &slab); err != nil || rec.ev.Tuple[1] != want {
			t.Errorf("N-Triples: %s came back as %v, %v", want, rec.ev.Tuple, err)
		}
	}
}
