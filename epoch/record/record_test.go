package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// samples are records that use every field, one a kind, and the edges.
func samples() []*Record {
	return []*Record{
		{Kind: Batch},
		{
			Epoch: 7, Time: 1_700_000_000_000_000_000, Kind: Batch,
			FirstTerm: 41, Terms: []term.Term{term.String("a"), term.IRI("http://x/y"), term.Int(-5),
				term.Float(2.5), term.Bool(true), term.Bytes([]byte{0, 255}), term.LangString("hi", "en"),
				term.Typed("x", "http://t"), term.Blank("b0")},
			FirstRelation: 3, Relations: []Relation{{"knows", 2}, {"", 0}, {"wide", math.MaxInt32}},
			Events: []Event{
				{Op: 1, Relation: 3, Tuple: []uint64{41, 42}, Time: 1_700_000_000_000_000_000},
				{Op: 1, Relation: 3, Tuple: []uint64{42, 41}, Time: 1_700_000_000_000_000_000, ID: "evt-001"},
				{Op: 2, Relation: 3, Time: 1_700_000_000_000_000_000, ID: "evt-002"},
				{Op: 6, Relation: 0, Tuple: []uint64{7}, Time: 1_699_999_999_000_000_000, Value: 43, ID: "evt-1"},
				{Op: 7, Relation: math.MaxUint32, Tuple: []uint64{1, 2, 3}, Time: math.MinInt64},
				{Op: 255, Relation: math.MaxUint32, Tuple: []uint64{math.MaxUint64, 0, 1 << 63}, Time: math.MaxInt64},
			},
			Sources: []Source{{Name: "kafka:0", Incarnation: "run-1", Next: 151, Skipped: 3}, {Next: math.MaxUint64},
				{Name: "low", Watermark: math.MinInt64, HasWatermark: true},
				{Name: "zero", Next: 1, HasWatermark: true, Explicit: true},
				{Name: "high", Skipped: math.MaxUint64, Watermark: math.MaxInt64, HasWatermark: true}},
			EventTime: true, Lateness: 60_000_000_000,
			Digest: [2]uint64{0x0123456789abcdef, math.MaxUint64},
		},
		{Epoch: 8, Time: -1, Kind: Register, Query: &Query{Name: "q", Text: "q(x) :- r(x, y).", Set: true, Distinct: true}},
		{Epoch: 9, Kind: Register, Query: &Query{Name: "q2", Text: "", Distinct: true}},
		{Epoch: 9, Kind: Register, Query: &Query{Name: "q3", Text: "t", Window: Window{Range: 900_000_000_000, Slide: 1}}},
		{Epoch: 9, Kind: Register, Query: &Query{Window: Window{Last: math.MaxInt64}}, EventTime: true, Lateness: math.MaxInt64},
		{Epoch: 10, Kind: Drop, Query: &Query{Name: "q"}},
		{Epoch: 11, Kind: Skip, Sources: []Source{{Name: "s", Incarnation: "i", Next: 9}}},
		{Epoch: math.MaxUint64, Time: math.MaxInt64, Kind: Reset, Sources: []Source{{Name: "s", Incarnation: "j"}}},
		{Epoch: 12, Time: 5, Kind: Advance, Sources: []Source{{Name: "s", Incarnation: "i", Next: 9, Watermark: 5, HasWatermark: true}}, EventTime: true, Lateness: 1},
		{Epoch: 13, Kind: Retain, Retain: &Retention{Relation: "knows", Span: 86_400_000_000_000}, Clocked: true},
		{Epoch: 13, Kind: Advance, EventTime: true},
		{Epoch: 14, Kind: Retain, Retain: &Retention{Relation: "", Span: 0}},
		{Epoch: 15, Kind: Retain, Query: &Query{}, Retain: &Retention{Span: math.MaxInt64}},
	}
}

// mustDecode decodes b and checks that it encodes back to b.
func mustDecode(t *testing.T, b []byte) *Record {
	t.Helper()
	r, err := Decode(b)
	if err != nil {
		t.Fatalf("Decode(%x): %v", b, err)
	}
	if again := r.Append(nil); !bytes.Equal(again, b) {
		t.Fatalf("Decode(%x) encodes to %x", b, again)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	for i, r := range samples() {
		got := mustDecode(t, r.Append(nil))
		if !reflect.DeepEqual(got, r) {
			t.Errorf("sample %d: got %+v, want %+v", i, got, r)
		}
	}
}

// randomRecord draws a record; the shapes are the engine's, the values any.
func randomRecord(rng *rand.Rand) *Record {
	r := &Record{Epoch: rng.Uint64() >> rng.UintN(64), Time: int64(rng.Uint64()), Kind: 1 + Kind(rng.UintN(uint(kindEnd)-1)),
		Digest: [2]uint64{rng.Uint64(), rng.Uint64()}}
	if n := rng.IntN(4); n > 0 {
		r.FirstTerm = rng.Uint64()
		for range n {
			r.Terms = append(r.Terms, term.Int(int64(rng.Uint64())), term.String(strings.Repeat("x", rng.IntN(9))))
		}
	}
	for range rng.IntN(3) {
		r.FirstRelation = rng.Uint32()
		r.Relations = append(r.Relations, Relation{fmt.Sprint("r", rng.IntN(9)), rng.IntN(5)})
	}
	for range rng.IntN(3) {
		s := Source{Name: fmt.Sprint("s", rng.IntN(9)), Incarnation: "i", Next: rng.Uint64(), Skipped: rng.Uint64() % 3}
		if s.HasWatermark = rng.IntN(2) == 0; s.HasWatermark {
			s.Watermark, s.Explicit = int64(rng.Uint64()), rng.IntN(2) == 0
		}
		r.Sources = append(r.Sources, s)
	}
	if rng.IntN(4) == 0 {
		size := func() int64 { return int64(rng.Uint64()>>1) >> rng.UintN(64) }
		r.Query = &Query{Name: "q", Text: "t", Set: rng.IntN(2) == 0, Window: Window{size(), size(), size()}}
		r.Retain = &Retention{Relation: "r", Span: size()}
		r.EventTime, r.Lateness, r.Clocked = true, size(), rng.IntN(2) == 0
	}
	for i := range rng.IntN(40) {
		e := Event{Op: uint8(rng.UintN(9)), Relation: rng.Uint32N(3), Time: r.Time + rng.Int64N(3)}
		for range rng.IntN(4) {
			e.Tuple = append(e.Tuple, rng.Uint64()>>rng.UintN(64))
		}
		if rng.IntN(3) == 0 {
			e.ID = strings.Repeat("long", rng.IntN(30)) + fmt.Sprint("e", i)
			e.Value = rng.Uint64() % 5
		}
		r.Events = append(r.Events, e)
	}
	return r
}

func TestRoundTripRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var buf []byte
	for i := range 3000 {
		r := randomRecord(rng)
		buf = r.Append(buf[:0])
		if got := mustDecode(t, buf); !reflect.DeepEqual(got, r) {
			t.Fatalf("record %d: got %+v, want %+v", i, got, r)
		}
	}
}

// TestDecodeDamaged cuts every sample at every byte and flips every bit: the
// result is a typed error or a record with the same bytes.
func TestDecodeDamaged(t *testing.T) {
	check := func(b []byte) (ok bool) {
		r, err := Decode(b)
		if err != nil {
			if r != nil || !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("Decode(%x) = %v, %v: want no record and ErrCorrupt", b, r, err)
			}
			return false
		}
		if again := r.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("Decode(%x) encodes to %x", b, again)
		}
		return true
	}
	for _, r := range samples() {
		whole := r.Append(nil)
		for cut := range whole {
			if check(whole[:cut:cut]) {
				t.Errorf("%x cut at %d of %d decodes", whole, cut, len(whole))
			}
			for bit := range 8 {
				b := bytes.Clone(whole)
				b[cut] ^= 1 << bit
				check(b)
			}
		}
		if check(append(bytes.Clone(whole), 0)) {
			t.Errorf("%x decodes with a byte after it", whole)
		}
	}
}

// TestDecodeLongForms gives the decoder spellings that Append never writes.
func TestDecodeLongForms(t *testing.T) {
	head := func(kind Kind) []byte {
		b := (&Record{Kind: kind}).Append(nil)
		return b[:len(b)-1] // the number of events
	}
	for _, tc := range []struct{ name, tail string }{
		{"op 6 as a byte", "01 02 07 06 02 04"},
		{"relation 0 written", "01 02 08 00 02 04"},
		{"relation beyond uint32", "01 02 08 8080808010 02 04"},
		{"time 0 written", "01 02 10 00 02 04"},
		{"value 0 written", "01 02 20 00 02 04"},
		{"empty ID written", "01 02 40 00 00 02 04"},
		{"ID that shares too little", "02 04 40 00 02 6161 02 04 40 00 01 61 02 04"},
		{"ID that takes what is not there", "01 02 40 01 01 61 02 04"},
		{"length 2 written", "01 02 80 02 02 04"},
		{"number in two bytes", "01 02 00 8200 04"},
		{"word not counted", "01 01 00 02 04"},
		{"word counted but absent", "01 02 80 01 02 04"},
		{"more events than bytes", "ffffffff0f 00"},
	} {
		tail, err := hex.DecodeString(strings.ReplaceAll(tc.tail, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Decode(append(head(Batch), tail...)); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: Decode = %+v, %v, want ErrCorrupt", tc.name, r, err)
		}
	}
	mustDecode(t, append(head(Batch), 1, 2, 0, 2, 4)) // the short form of them all
	for _, kind := range []Kind{0, kindEnd, 255} {
		if _, err := Decode(append(head(kind), 0)); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("kind %d: %v, want ErrCorrupt", kind, err)
		}
	}
	b := append(head(Batch), 0)
	b[0] = Version + 1
	if _, err := Decode(b); !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("version 2: %v, want ErrCorrupt that names it", err)
	}
}

// TestDecodeExtras gives the decoder extras and sources that Append never
// writes: a sound record behind them would decode.
func TestDecodeExtras(t *testing.T) {
	whole := (&Record{Kind: Batch}).Append(nil)
	head := whole[:len(whole)-3] // sources, extras, events
	for _, tc := range []struct{ name, tail string }{
		{"flags of a query without one", "00 0200 00"},
		{"window without a query", "00 08 01 00 00 00"},
		{"no window written", "00 09 00 00 00 00 00 00"},
		{"negative range", "00 09 00 00 ffffffffffffffffff01 00 00 00"},
		{"negative last", "00 09 00 00 00 00 80808080808080808001 00"},
		{"negative span", "00 10 00 80808080808080808001 00"},
		{"retention without a span", "00 10 00"},
		{"negative lateness", "00 20 ffffffffffffffffff01 00"},
		{"unknown flag", "00 80 00"},
		{"unknown flag beside a query", "00 81 00 00 00"},
		{"unknown flag of a source", "01 00 00 00 00 02 00 00"},
		{"yet unknown flag of a source", "01 00 00 00 00 04 00 00"},
		{"watermark in two bytes", "01 00 00 00 00 01 8000 00 00"},
		{"no watermark behind its flag", "01 00 00 00 00 01"},
	} {
		tail, err := hex.DecodeString(strings.ReplaceAll(tc.tail, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Decode(append(bytes.Clone(head), tail...)); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: Decode = %+v, %v, want ErrCorrupt", tc.name, r, err)
		}
	}
	// The nearest sound ones.
	for _, tail := range []string{"00 09 00 00 01 00 00 00", "00 10 00 00 00", "00 20 01 00", "00 20 00 00", "00 40 00", "01 00 00 00 00 03 00 00 00", "01 00 00 00 00 01 00 00 00"} {
		b, err := hex.DecodeString(strings.ReplaceAll(tail, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		mustDecode(t, append(bytes.Clone(head), b...))
	}
}

// TestExtrasCost pins what a record pays for what it does not have, and for a
// watermark near its time.
func TestExtrasCost(t *testing.T) {
	at := int64(1_700_000_000_000_000_000)
	plain := &Record{Kind: Batch, Time: at, Sources: []Source{{Name: "s"}}}
	base := len(plain.Append(nil))
	plain.Sources[0].Watermark = 5 // does not count
	if n := len(plain.Append(nil)); n != base {
		t.Errorf("no watermark: %d bytes instead of %d", n, base)
	}
	plain.Sources[0].Watermark, plain.Sources[0].HasWatermark = at+1_000_000_000, true
	if n := len(plain.Append(nil)) - base; n > 5 {
		t.Errorf("a watermark a second from the time takes %d bytes", n)
	}
}

// TestDecodeBounded counts what hostile sizes make Decode allocate.
func TestDecodeBounded(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	whole := (&Record{Kind: Batch}).Append(nil)
	head := len(whole) - 5 // terms, relations, sources, extras, events
	var inputs [][]byte
	for i := range 5 {
		b := append(bytes.Clone(whole[:head+i]), huge...)
		inputs = append(inputs, append(b, make([]byte, 100)...))
	}
	for i, b := range inputs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(b)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("input %d decodes", i)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("input %d of %d bytes: %d bytes allocated", i, len(b), n)
		}
	}
}

// edges is an epoch of n edges as a stream brings them: the ids that are new
// count up, the others repeat, every tenth event is named.
func edges(n int) *Record {
	rng := rand.New(rand.NewPCG(3, 4))
	r := &Record{Epoch: 12345, Time: 1_700_000_000_000_000_000, Kind: Batch,
		Sources: []Source{{Name: "edges", Incarnation: "1", Next: uint64(n)}}}
	next := uint64(20_000)
	for i := range n {
		if rng.IntN(2) == 0 {
			next++
		}
		e := Event{Op: 1, Relation: 1, Tuple: []uint64{next, rng.Uint64N(next)}, Time: r.Time}
		if i%10 == 0 {
			e.ID = fmt.Sprintf("event-%06d", i)
		}
		r.Events = append(r.Events, e)
	}
	return r
}

func TestSizeAndAllocs(t *testing.T) {
	r := edges(1000)
	b := r.Append(nil)
	per := float64(len(b)) / float64(len(r.Events))
	t.Logf("1,000 edges: %.2f bytes an event", per)
	if per > 6 {
		t.Errorf("%.2f bytes an event, want at most 6", per)
	}
	if n := testing.AllocsPerRun(100, func() { b = r.Append(b[:0]) }); n != 0 {
		t.Errorf("Append into a kept buffer: %.0f allocations", n)
	}
	// The record, its events, words, sources and their two names, and one for
	// each ID.
	if n := testing.AllocsPerRun(100, func() { _, _ = Decode(b) }); n > 6+100 {
		t.Errorf("Decode of 1,000 edges with 100 IDs: %.0f allocations", n)
	}
}

// TestTuplesAreApart pins that the tuples, which share one array (their
// allocations are counted above), cannot grow into each other.
func TestTuplesAreApart(t *testing.T) {
	r := mustDecode(t, edges(10).Append(nil))
	for i := range len(r.Events) - 1 {
		a, b := r.Events[i].Tuple, r.Events[i+1].Tuple
		if cap(a) != len(a) {
			t.Fatalf("tuple %d has room for %d words", i, cap(a))
		}
		if &a[0] == &b[0] {
			t.Fatalf("tuples %d and %d are the same", i, i+1)
		}
	}
}

// TestGolden pins the bytes of version 1 for ever.
func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "v1.hex")
	var want strings.Builder
	for _, r := range samples() {
		fmt.Fprintln(&want, hex.EncodeToString(r.Append(nil)))
	}
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("records are written differently than in %s", path)
	}
	lines := strings.Fields(string(got))
	for i, r := range samples() {
		b, err := hex.DecodeString(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		if d := mustDecode(t, b); !reflect.DeepEqual(d, r) {
			t.Errorf("stored record %d: got %+v, want %+v", i, d, r)
		}
	}
}

// FuzzRecord: what Decode accepts is what Append would have written.
func FuzzRecord(f *testing.F) {
	for _, r := range samples() {
		f.Add(r.Append(nil))
	}
	f.Add(edges(20).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("%v is not ErrCorrupt", err)
			}
			return
		}
		if again := r.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x encodes to %x", b, again)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	r := edges(1000)
	buf := r.Append(nil)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = r.Append(buf[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
}

func BenchmarkDecode(b *testing.B) {
	buf := edges(1000).Append(nil)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
}
