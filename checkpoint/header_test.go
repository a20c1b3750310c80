package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/internal/errs"
)

// sample is a header with every field set.
func sample() Header {
	return Header{
		Epoch: 12345, Time: -987654321, LogIndex: 12350, LastTerm: 1 << 40, Sequence: 3,
		StoreID: storeID, Timeline: [16]byte{9, 8},
		Relations: []Relation{{"knows", 2, 1 << 33, [2]uint64{1, 2}, 777, 3600_000_000_000}, {}},
		Queries: []Query{
			{"q", "SELECT ?x WHERE { ?x <p> ?y }", true, false, Window{}, 7, 0xfeedface},
			{"r", "q(X) :- p(X,Y).", false, true, Window{Range: 600_000_000_000, Slide: 1}, 9, 1},
			{Window: Window{Last: math.MaxInt64}},
		},
		Sources: []Source{
			{Name: "kafka", Incarnation: "inc-1", Next: 10, Skipped: 2},
			{Name: "late", Watermark: math.MinInt64, HasWatermark: true},
			{Name: "zero", HasWatermark: true, Explicit: true},
		},
		Digest: [2]uint64{3, 4}, Flags: 5, Lateness: 5_000_000_000, EventTime: true, Clocked: true, Waiting: []byte("events that wait"),
	}
}

func sampleTrailer() trailer {
	return trailer{
		place: place{7, 3}, prev: 0xabcdef,
		audit:  audit{chunks: 1, chunkBytes: 2, chunkSum: 3, blocks: 4, blockBytes: 5, blockSum: 6, terms: 7},
		header: sample(),
	}
}

// TestHeaderCodec: a header comes back as it was, and no byte of it can be
// changed, cut or added.
func TestHeaderCodec(t *testing.T) {
	for _, h := range []Header{{}, sample()} {
		p := h.AppendTo([]byte("front"))[5:]
		got, err := DecodeHeader(p)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Fatalf("%+v, %v; want %+v", got, err, h)
		}
		for i := range p {
			q := bytes.Clone(p)
			q[i] ^= 1
			if _, err := DecodeHeader(q); !errors.Is(err, errs.ErrCorrupt) && !(i == 0 && errors.Is(err, errs.ErrFormat)) {
				t.Fatalf("byte %d changed: %v", i, err)
			}
			if _, err := DecodeHeader(p[:i]); !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("cut at %d: %v", i, err)
			}
		}
		if _, err := DecodeHeader(append(p, 0)); !errors.Is(err, errs.ErrCorrupt) {
			t.Fatal(err)
		}
	}
}

// TestStrict: headers with a right checksum that no encoder writes.
func TestStrict(t *testing.T) {
	h := Header{}
	p := h.AppendTo(nil)
	p = p[:len(p)-sumLen]
	sum := func(p []byte) []byte { return binary.LittleEndian.AppendUint64(p, xxhash.Sum64(p)) }
	long := append([]byte{1, 0x80, 0x00}, p[2:]...) // The epoch in two bytes.
	more := append(bytes.Clone(p), 0)
	// A header that is empty ends with the numbers of its relations, queries and
	// sources, its lateness, the flags of its time and the length of what waits.
	tail := func(last ...byte) []byte { return append(bytes.Clone(p[:len(p)-6]), last...) }
	max63 := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	beyond := append(bytes.Clone(max63[:8]), 0xff, 0x01)
	query := func(flags byte, window ...byte) []byte {
		q := append([]byte{0, 1, 0, 0, flags}, window...)
		return tail(append(q, make([]byte, 1+8+4)...)...)
	}
	relation := func(keep []byte) []byte {
		r := append(make([]byte, 0, 64), 1, 0, 0, 0)
		r = append(append(r, make([]byte, 16+1)...), keep...)
		return tail(append(r, 0, 0, 0, 0, 0)...)
	}
	for _, q := range [][]byte{
		tail(0, 0, 0, 0, 0, 0), relation([]byte{0}), relation(max63), query(0), query(4, 0, 0, 1),
		tail(0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0), tail(0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 0, 0),
		tail(append(append([]byte{0, 0, 0}, max63...), 0, 0)...), tail(0, 0, 0, 0, 3, 0),
	} {
		if _, err := DecodeHeader(sum(q)); err != nil {
			t.Fatalf("%x, which the others are near to: %v", q, err)
		}
	}
	for name, q := range map[string][]byte{
		"long number": long, "left over": more, "count of sources": tail(0, 0, 100, 0, 0, 0),
		"retention": relation(beyond), "flag of a query": query(8), "window of zeros": query(4, 0, 0, 0),
		"window": query(4, append(beyond, 0, 0)...), "flag of a source": tail(0, 0, 1, 0, 0, 0, 0, 4, 0, 0, 0, 0),
		"told but no watermark": tail(0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0),
		"lateness":              tail(append(append([]byte{0, 0, 0}, beyond...), 0, 0)...),
		"flag of the time":      tail(0, 0, 0, 0, 4, 0),
		"waiting":               tail(0, 0, 0, 0, 0, 5, 1, 2, 3, 4),
	} {
		if _, err := DecodeHeader(sum(q)); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGolden: the bytes of version 1 are read for ever.
func TestGolden(t *testing.T) {
	const file = "testdata/trailer-v1.hex"
	tr := sampleTrailer()
	want := tr.appendTo(nil)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is missing; this version writes\n%x", file, want)
	}
	p, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeTrailer(p)
	if err != nil || !reflect.DeepEqual(got, tr) {
		t.Fatalf("%+v, %v", got, err)
	}
	if !bytes.Equal(p, want) {
		t.Errorf("this version writes other bytes:\n%x", want)
	}
}

func FuzzHeader(f *testing.F) {
	h := sample()
	f.Add(h.AppendTo(nil))
	f.Add((&Header{}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		p = resum(p)
		h, err := DecodeHeader(p)
		if err == nil && !bytes.Equal(h.AppendTo(nil), p) {
			t.Fatalf("two spellings of %+v", h)
		}
	})
}

func FuzzTrailer(f *testing.F) {
	tr := sampleTrailer()
	f.Add(tr.appendTo(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		p = resum(p)
		tr, err := decodeTrailer(p)
		if err == nil && !bytes.Equal(tr.appendTo(nil), p) {
			t.Fatalf("two spellings of %+v", tr)
		}
	})
}

func FuzzBlock(f *testing.F) {
	var b block
	for id := uint64(5); id < 40; id += 7 {
		b.add(id, []byte("form"))
	}
	f.Add(b.first, b.p)
	f.Add(^uint64(0), b.p)
	f.Fuzz(func(t *testing.T, first uint64, p []byte) {
		var again block
		n, last, err := walkBlock(first, p, func(id uint64, form []byte) bool {
			again.add(id, form)
			return true
		})
		if err == nil && (!bytes.Equal(again.p, p) || n != again.terms || last != again.last || first != again.first) {
			t.Fatalf("two spellings of a block of %d terms", n)
		}
	})
}

func FuzzKey(f *testing.F) {
	e := element{place: place{3, 4}, epoch: 1, sum: 2}
	f.Add(e.trailerKey())
	f.Add(e.key(nil, sectionTerms, 9))
	f.Fuzz(func(t *testing.T, k []byte) {
		at, section, rest, ok := parseKey(k)
		if !ok {
			return
		}
		e := element{place: at}
		if section == sectionTrailer {
			e.setTrailerKey(rest)
			if !bytes.Equal(e.trailerKey(), k) {
				t.Fatalf("two spellings of %x", k)
			}
			return
		}
		if !bytes.Equal(e.key(nil, section, binary.BigEndian.Uint64(rest)), k) {
			t.Fatalf("two spellings of %x", k)
		}
	})
}

// resum gives p a right checksum, so that what is behind it is reached.
func resum(p []byte) []byte {
	if len(p) < sumLen {
		return p
	}
	n := len(p) - sumLen
	p = bytes.Clone(p[:n])
	return binary.LittleEndian.AppendUint64(p, xxhash.Sum64(p))
}
