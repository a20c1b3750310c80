package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// resum puts the checksum of the rest into the last 8 bytes.
func resum(b []byte) []byte {
	body := len(b) - sumSize
	binary.LittleEndian.PutUint64(b[body:], xxhash.Sum64(b[:body]))
	return b
}

// TestFrameRefusals changes one field of a frame and corrects the checksum.
func TestFrameRefusals(t *testing.T) {
	whole := appendFrame(nil, ID{1}, 7, []byte("payload"))
	seal(whole, 6)
	if fr, err := parseFrame(whole); err != nil || fr.index != 7 || fr.acked != 6 || fr.log != (ID{1}) ||
		string(fr.payload) != "payload" {
		t.Fatalf("parseFrame = %+v, %v", fr, err)
	}
	for _, tc := range []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"magic", func(b []byte) []byte { b[0]++; return resum(b) }, errFrameMagic},
		{"version", func(b []byte) []byte { b[offVersion]++; return resum(b) }, errFrameVersion},
		{"length", func(b []byte) []byte { b[offLength]++; return resum(b) }, errFrameLength},
		{"high length", func(b []byte) []byte { b[offLength+3]++; return resum(b) }, errFrameLength},
		{"acked", func(b []byte) []byte { b[offAcked] = 7; return resum(b) }, errFrameAcked},
		{"sum", func(b []byte) []byte { b[len(b)-1]++; return b }, errFrameSum},
		{"payload", func(b []byte) []byte { b[offPayload]++; return b }, errFrameSum},
		{"empty payload", func(b []byte) []byte { return resum(b[:frameOverhead]) }, errFrameShort},
	} {
		if _, err := parseFrame(tc.edit(bytes.Clone(whole))); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

// FuzzFrame: what parseFrame accepts is what appendFrame and seal write.
func FuzzFrame(f *testing.F) {
	whole := appendFrame(nil, ID{1}, 7, []byte("payload"))
	seal(whole, 6)
	f.Add(whole, false)
	f.Add(whole[:20], true)
	f.Add(make([]byte, frameOverhead+1), true)
	f.Fuzz(func(t *testing.T, b []byte, sum bool) {
		if sum && len(b) >= sumSize { // let the fuzzer past the checksum
			b = resum(bytes.Clone(b))
		}
		fr, err := parseFrame(b)
		if err != nil {
			return
		}
		again := appendFrame(nil, fr.log, fr.index, fr.payload)
		seal(again, fr.acked)
		if !bytes.Equal(again, b) {
			t.Fatalf("%x becomes %x", b, again)
		}
		if acked, index := later(append([]byte("TGfr"), b...), fr.log); acked != fr.acked || index != fr.index {
			t.Fatalf("%x is not found again", b)
		}
	})
}

// FuzzSegment gives any bytes as the only segment of a store: they are refused
// with a typed error, or repaired to whole entries.
func FuzzSegment(f *testing.F) {
	id := ID{1, 2, 3}
	var whole []byte
	for i := uint64(1); i <= 3; i++ {
		fr := appendFrame(nil, id, i, payload(i))
		seal(fr, i-1)
		whole = append(binary.AppendUvarint(whole, uint64(len(fr))), fr...)
	}
	f.Add(whole)
	f.Add(whole[:100])
	f.Add(append([]byte{0, 0}, whole...))
	dir := fastDir(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, segmentName(1))
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		sc, err := scan(dir, []segment{{path, 1}}, id, 0, 0)
		if err != nil {
			ce, ok := errors.AsType[*CorruptError](err)
			if _, foreign := errors.AsType[*ForeignError](err); !foreign && (!ok || ce.File != path) {
				t.Fatalf("%v", err)
			}
			return
		}
		if sc.tailEnd > int64(len(b)) || (sc.torn != nil) != (sc.tailEnd < int64(len(b))) {
			t.Fatalf("%+v of %d bytes", sc, len(b))
		}
		if err := sc.mend(func(string) error { return nil }); err != nil {
			t.Fatal(err)
		}
		again, err := scan(dir, []segment{{path, 1}}, id, 0, 0)
		if err != nil || again.torn != nil || again.last != sc.last {
			t.Fatalf("second scan %+v, %v, first %+v", again, err, sc)
		}
	})
}
