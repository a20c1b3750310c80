package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// salvaged runs a Salvage, checks that it gives out from, from+1, ... with the
// payloads that were written and changes no file, and returns the last of them.
func salvaged(t *testing.T, f files, dir string, from uint64) (SalvageReport, uint64) {
	t.Helper()
	f.store(t, dir)
	next := max(from, 1)
	if from == 0 && len(f.firsts()) > 0 {
		next = f.firsts()[0]
	}
	first := next
	rep, err := Salvage(dir, from, func(i uint64, b []byte) error {
		if i != next || !bytes.Equal(b, payload(i)) {
			return fmt.Errorf("entry %d is %q, want entry %d", i, b, next)
		}
		next++
		return nil
	})
	if err != nil || rep.Entries != next-first || rep.Entries > 0 && rep.First != first {
		t.Fatalf("%v, %+v, want %d entries from %d", err, rep, next-first, first)
	}
	if rep.Stop != nil && (rep.Stop.Index != next || rep.Stop.File == "" || rep.Stop.Err == nil) {
		t.Fatalf("stopped at %v, want entry %d", rep.Stop, next)
	}
	if load(t, dir).sum() != f.sum() {
		t.Fatal("a file was made or changed")
	}
	return rep, next - 1
}

// TestSalvage takes out what is good of logs that are damaged in each way.
func TestSalvage(t *testing.T) {
	_, after := seed(t, 40, Options{SegmentBytes: 1000})
	segs, firsts := after.segments(), after.firsts()
	newest, last := segs[len(segs)-1], firsts[len(firsts)-1]
	tail := after[newest]
	flip := func(i uint64) files { // entry i, wherever it is
		n := 0
		for n+1 < len(firsts) && firsts[n+1] <= i {
			n++
		}
		b := bytes.Clone(after[segs[n]])
		b[entryOffset(firsts[n], i)+offPayload] ^= 1
		return after.with(segs[n], b)
	}
	mid := firsts[1] + 2
	half := tail[:entryOffset(last, last+2)+5]
	for name, tc := range map[string]struct {
		f     files
		from  uint64
		got   uint64 // last entry given out
		known uint64
		whole bool // nothing stopped it
		later uint64
	}{
		"whole":                       {after, 0, 40, 40, true, 0},
		"whole, from 17":              {after, 17, 40, 40, true, 0},
		"from the next":               {after, 41, 40, 40, true, 0},
		"from far behind":             {after, 100, 99, 40, true, 0},
		"from what is not there":      {after.with(segs[0], nil), 1, 0, 40, false, 41 - firsts[1]},
		"cut front, from the first":   {after.with(segs[0], nil), 0, 40, 40, true, 0},
		"damaged entry":               {flip(mid), 0, mid - 1, 40, false, 40 - mid},
		"damaged, not asked for":      {flip(mid), mid + 1, 40, 40, true, 0},
		"damaged, asked for":          {flip(mid), mid, mid - 1, 40, false, 40 - mid},
		"damaged, earlier segment":    {flip(mid), firsts[2], 40, 40, true, 0},
		"damaged segment end":         {flip(firsts[2] - 1), 0, firsts[2] - 2, 40, false, 41 - firsts[2]},
		"segment gone":                {after.with(segs[1], nil), 0, firsts[1] - 1, 40, false, 41 - firsts[2]},
		"segment gone, not asked for": {after.with(segs[1], nil), firsts[2] + 1, 40, 40, true, 0},
		"segment empty":               {after.with(segs[1], []byte{}), 0, firsts[1] - 1, 40, false, 41 - firsts[2]},
		"end lost, note":              {after.with(newest, nil), 0, last - 1, 40, false, 0},
		"end lost, no note":           {after.with(newest, nil).with(noteName, nil), 0, last - 1, last - 1, true, 0},
		"end lost, bad note":          {after.with(newest, nil).with(noteName, []byte("x")), 0, last - 1, last - 1, true, 0},
		"torn end, note":              {after.with(newest, half), 0, last + 1, 40, false, 0},
		"torn end, no note":           {after.with(newest, half).with(noteName, nil), 0, last + 1, last + 1, false, 0},
		"zeros":                       {after.with(newest, append(bytes.Clone(tail), make([]byte, 99)...)), 0, 40, 40, false, 0},
		"truncation mark":             {after.with(logName+"/"+segmentName(3)+".START", []byte("x")), 0, 40, 40, true, 0},
	} {
		dir := filepath.Join(fastDir(t), "db")
		rep, got := salvaged(t, tc.f, dir, tc.from)
		if got != tc.got || rep.Last != tc.known || (rep.Stop == nil) != tc.whole || rep.Later != tc.later || rep.IdentityErr != nil {
			t.Errorf("%s: through %d, %+v; want through %d, known %d, later %d, whole %v",
				name, got, rep, tc.got, tc.known, tc.later, tc.whole)
		}
	}
}

// TestSalvageEveryByte flips a bit in every byte of a log: what comes out is
// what was written, up to the entry that was hit.
func TestSalvageEveryByte(t *testing.T) {
	_, after := seed(t, 5, Options{})
	seg := after.segments()[0]
	dir := filepath.Join(fastDir(t), "db")
	for pos := range after[seg] {
		b := bytes.Clone(after[seg])
		b[pos] ^= 0x10
		hit := uint64(1)
		for entryOffset(1, hit+1) <= pos {
			hit++
		}
		rep, got := salvaged(t, after.with(seg, b), dir, 0)
		if got != hit-1 || rep.Stop == nil || rep.Last != 5 || rep.Stop.Offset != int64(entryOffset(1, hit)) {
			t.Fatalf("byte %d: through %d, %+v, want through %d", pos, got, rep, hit-1)
		}
		// From the entry behind it the damage does not matter.
		if hit < 5 {
			if rep, got = salvaged(t, after.with(seg, b), dir, hit+1); got != 5 || rep.Stop != nil {
				t.Fatalf("byte %d, from %d: through %d, %+v", pos, hit+1, got, rep)
			}
		}
	}
}

// TestSalvageIdentity: without a whole identity the frames say whose they are;
// what is not a store, or of another version, is refused.
func TestSalvageIdentity(t *testing.T) {
	_, after := seed(t, 12, Options{SegmentBytes: 400})
	id, err := ReadIdentity(after.store(t, filepath.Join(fastDir(t), "db")))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(fastDir(t), "db")
	bad := bytes.Clone(after[storeName])
	bad[20]++
	for _, f := range []files{after.with(storeName, bad), after.with(storeName, nil), after.with(storeName, bad[:30])} {
		rep, got := salvaged(t, f, dir, 0)
		if got != 12 || rep.IdentityErr == nil || rep.Identity != (Identity{Log: id.Log}) {
			t.Errorf("through %d, %+v, want the log id %v", got, rep, id.Log)
		}
		b := append([]byte("damaged!"), f[f.segments()[0]]...)
		rep, got = salvaged(t, f.with(f.segments()[0], b), dir, f.firsts()[1])
		if got != 12 || rep.Identity.Log != id.Log {
			t.Errorf("first segment damaged: through %d, %+v", got, rep)
		}
	}
	later := bytes.Clone(after[storeName])
	later[8]++
	none := after.with(storeName, nil)
	for _, s := range after.segments() {
		none = none.with(s, []byte("no frame"))
	}
	never := func(uint64, []byte) error { t.Error("an entry was given out"); return nil }
	for name, f := range map[string]files{"later version": after.with(storeName, later), "no frames": none, "empty": {}} {
		if _, err := Salvage(f.store(t, dir), 0, never); !errors.Is(err, errs.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
	}
	if _, err := Salvage(filepath.Join(dir, "none"), 0, never); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	// Frames of another store are where this one's end.
	_, other := seed(t, 12, Options{SegmentBytes: 400})
	mixed := after.with(after.segments()[1], other[other.segments()[1]])
	rep, got := salvaged(t, mixed, dir, 0)
	if fe, ok := errors.AsType[*ForeignError](rep.Stop); !ok || got != after.firsts()[1]-1 || fe.Want != id.Log {
		t.Errorf("through %d, %+v", got, rep)
	}
}

// TestSalvageEnds: an error of the caller comes back as it is, and a store that
// is written to is left alone.
func TestSalvageEnds(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{})
	write(t, l, 3)
	if _, err := Salvage(dir, 0, nil); !errors.Is(err, errs.ErrLocked) {
		t.Errorf("beside a writer: %v, want ErrLocked", err)
	}
	mustClose(t, l)
	n := 0
	rep, err := Salvage(dir, 0, func(uint64, []byte) error {
		if n++; n == 2 {
			return errDisk
		}
		return nil
	})
	if err != errDisk || n != 2 || rep.Entries != 1 { //nolint:errorlint // the very error
		t.Errorf("%v after %d, %+v", err, n, rep)
	}
	l, _ = mustOpen(t, dir, Options{LockWait: -1}) // the lock is free again
	mustClose(t, l)
}

// FuzzSalvage gives any bytes as a segment: what comes out has the place and the
// checksum of an entry, and nothing panics.
func FuzzSalvage(f *testing.F) {
	_, after := seed(f, 4, Options{})
	seg := after.segments()[0]
	f.Add(after[seg], uint64(0))
	f.Add(after[seg][3:], uint64(3))
	f.Add(append(bytes.Clone(after[seg][:200]), after[seg]...), uint64(2))
	dir := filepath.Join(fastDir(f), "db")
	f.Fuzz(func(t *testing.T, b []byte, from uint64) {
		for _, f := range []files{after.with(seg, b), after.with(seg, b).with(storeName, nil)} {
			next := max(from, 1)
			rep, err := Salvage(f.store(t, dir), from, func(i uint64, p []byte) error {
				if i != next || len(p) == 0 {
					return fmt.Errorf("entry %d of %d bytes, want %d", i, len(p), next)
				}
				next++
				return nil
			})
			if err != nil && !errors.Is(err, errs.ErrFormat) || rep.Entries != next-max(from, 1) && err == nil {
				t.Fatalf("%v, %+v", err, rep)
			}
		}
	})
}
