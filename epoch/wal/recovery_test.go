package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// TestREC01EveryByteCut cuts the log at every byte, with and without zeros
// after the cut. Nothing says that a later entry was acknowledged, so Open
// gives exactly the whole entries before the cut, and the log goes on.
func TestREC01EveryByteCut(t *testing.T) {
	before, _ := seed(t, 10, Options{})
	seg := before.segments()[0]
	whole := before[seg]
	unknown := before.with(noteName, nil)
	dir := filepath.Join(fastDir(t), "db")
	for cut := range len(whole) + 1 {
		for _, zeros := range []int{0, 4096} {
			torn := append(bytes.Clone(whole[:cut]), make([]byte, zeros)...)
			last := uint64(0) // zeros may happen to be what was cut off
			for last < 10 && bytes.HasPrefix(torn, whole[:entryOffset(1, last+2)]) {
				last++
			}
			base := unknown
			if last >= 9 {
				base = before // the note of entry 9 was on disk when 10 tore
			}
			base.with(seg, torn).store(t, dir)
			ro, rep := mustOpen(t, dir, Options{ReadOnly: true})
			check(t, ro, 1, last)
			mustClose(t, ro)
			want := int64(len(torn) - entryOffset(1, last+1))
			if rep.CutBytes != want || (want > 0) != (rep.CutFile != "") || (want > 0) != (rep.CutReason != nil) {
				t.Fatalf("cut %d, %d zeros: %+v, want %d bytes cut", cut, zeros, rep, want)
			}
			if got := reopen(t, dir, last); got != rep {
				t.Fatalf("cut %d, %d zeros: writable %+v, read-only %+v", cut, zeros, got, rep)
			}
		}
	}
}

// TestREC01Acknowledged cuts the last entry although the note says that it
// was acknowledged.
func TestREC01Acknowledged(t *testing.T) {
	_, after := seed(t, 10, Options{})
	seg := after.segments()[0]
	dir := filepath.Join(fastDir(t), "db")
	for cut := entryOffset(1, 10); cut < len(after[seg]); cut++ {
		after.with(seg, after[seg][:cut]).store(t, dir)
		if ce := refused(t, dir, Options{}); ce.Index != 10 || filepath.Base(ce.File) != segmentName(1) {
			t.Fatalf("cut %d: %v, want epoch 10 in the first segment", cut, ce)
		} else if missing := strings.Contains(ce.Error(), "missing"); missing != (cut == entryOffset(1, 10)) {
			t.Fatalf("cut %d: %v, want what is wrong with the bytes there are", cut, ce)
		}
		if got := load(t, dir)[seg]; len(got) != cut {
			t.Fatalf("cut %d: the refused log has now %d bytes", cut, len(got))
		}
	}
	reopen(t, after.store(t, dir), 10)
}

// TestREC02Zeros puts runs of zeros where a crash or a bad disk leaves them.
func TestREC02Zeros(t *testing.T) {
	before, after := seed(t, 10, Options{})
	seg := before.segments()[0]
	whole, at := before[seg], entryOffset(1, 10)
	dir := filepath.Join(fastDir(t), "db")

	rep := reopen(t, after.with(seg, append(bytes.Clone(whole), make([]byte, 4096)...)).store(t, dir), 10)
	if rep.CutBytes != 4096 {
		t.Errorf("zeros after the end: %+v, want 4096 bytes cut", rep)
	}
	lost := append(bytes.Clone(whole[:at]), make([]byte, len(whole)-at)...)
	rep = reopen(t, before.with(seg, lost).store(t, dir), 9)
	if rep.CutBytes != int64(len(whole)-at) || rep.CutOffset != int64(at) {
		t.Errorf("zeros over the last entry: %+v, want them cut", rep)
	}
	for n := 1; n < at; n += 7 {
		for name, b := range map[string][]byte{
			"over":   append(make([]byte, n), whole[n:]...),
			"before": append(make([]byte, n), whole...),
		} {
			before.with(noteName, nil).with(seg, b).store(t, dir)
			ce := refused(t, dir, Options{})
			if ce.Index == 0 || filepath.Base(ce.File) != segmentName(1) || name == "before" && ce.Offset != 0 {
				t.Fatalf("%d zeros %s the front: %v, want file and position", n, name, ce)
			}
		}
	}
}

// TestREC03BitFlips flips every bit of the last entry and of a middle one.
func TestREC03BitFlips(t *testing.T) {
	before, after := seed(t, 10, Options{})
	seg := before.segments()[0]
	whole := before[seg]
	dir := filepath.Join(fastDir(t), "db")
	flip := func(f files, pos, bit int) string {
		b := bytes.Clone(whole)
		b[pos] ^= 1 << bit
		return f.with(seg, b).store(t, dir)
	}
	for pos := entryOffset(1, 10); pos < len(whole); pos++ {
		for bit := range 8 {
			reopenAt(t, flip(before, pos, bit), 9)
			if ce := refused(t, flip(after, pos, bit), Options{}); ce.Index != 10 {
				t.Fatalf("byte %d: %v, want epoch 10", pos, ce)
			}
		}
	}
	for pos := entryOffset(1, 5); pos < entryOffset(1, 6); pos++ {
		for bit := range 8 {
			for _, ro := range []bool{false, true} {
				ce := refused(t, flip(before.with(noteName, nil), pos, bit), Options{ReadOnly: ro})
				if ce.Index != 5 || ce.Offset != int64(entryOffset(1, 5)) {
					t.Fatalf("byte %d: %v, want epoch 5 at offset %d", pos, ce, entryOffset(1, 5))
				}
			}
		}
	}
}

// reopenAt opens dir, which must hold 1..last, and closes it.
func reopenAt(t testing.TB, dir string, last uint64) Report {
	t.Helper()
	l, rep := mustOpen(t, dir, Options{})
	check(t, l, 1, last)
	mustClose(t, l)
	return rep
}

// TestREC03UnackedMiddle damages an entry that nobody was told of: what
// follows it goes with it.
func TestREC03UnackedMiddle(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{Mode: SyncNone})
	write(t, l, 10)
	killed := load(t, dir)
	mustClose(t, l)
	seg := killed.segments()[0]
	b := bytes.Clone(killed[seg])
	b[entryOffset(1, 5)+offPayload] ^= 1
	rep := reopen(t, killed.with(seg, b).store(t, filepath.Join(dir, "copy")), 4)
	if want := int64(len(b) - entryOffset(1, 5)); rep.CutBytes != want || rep.Acked != 0 {
		t.Errorf("%+v, want %d bytes cut", rep, want)
	}
}

// TestREC03WholeButWrong gives entries that are whole, but not where they
// belong or not as they are written.
func TestREC03WholeButWrong(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{Mode: SyncNone})
	write(t, l, 6)
	unacked := load(t, dir)
	mustClose(t, l)
	acked, _ := seed(t, 6, Options{})
	dir = filepath.Join(dir, "copy")
	for _, f := range []files{unacked, acked.with(noteName, nil)} {
		seg := f.segments()[0]
		b := f[seg]
		entry := func(i uint64) []byte { return b[entryOffset(1, i):entryOffset(1, i+1)] }
		join := func(parts ...[]byte) files { return f.with(seg, bytes.Join(parts, nil)) }
		front := b[:entryOffset(1, 4)]
		long := append([]byte{entry(4)[0] | 0x80, 0}, entry(4)[1:]...)
		for name, wrong := range map[string]files{
			"entry 4 removed":            join(front, entry(5), entry(6)),
			"entry 3 again":              join(front, entry(3), entry(4), entry(5), entry(6)),
			"entries 4 and 5 swapped":    join(front, entry(5), entry(4), entry(6)),
			"length prefix in two bytes": join(front, long, entry(5), entry(6)),
		} {
			wrong.store(t, dir)
			if f[noteName] == nil {
				if ce := refused(t, dir, Options{}); ce.Index != 4 || ce.Offset != int64(len(front)) {
					t.Errorf("acknowledged, %s: %v, want epoch 4 at %d", name, ce, len(front))
				}
			} else if rep := reopen(t, dir, 3); rep.CutOffset != int64(len(front)) {
				t.Errorf("unacknowledged, %s: %+v, want a cut at %d", name, rep, len(front))
			}
		}
	}
}

// TestREC04Segments takes segments away, empties them, and cuts them.
func TestREC04Segments(t *testing.T) {
	before, _ := seed(t, 40, Options{SegmentBytes: 1000})
	unknown := before.with(noteName, nil)
	segs := before.segments()
	if len(segs) < 3 {
		t.Fatalf("only %d segments", len(segs))
	}
	first := func(i int) (n uint64) {
		fmt.Sscanf(filepath.Base(segs[i]), "%d", &n)
		return n
	}
	dir := filepath.Join(fastDir(t), "db")
	for i := range len(segs) - 1 {
		gone := first(i)
		for _, tc := range []struct {
			name string
			f    files
			lost uint64
		}{
			{"missing", unknown.with(segs[i], nil), gone},
			{"emptied", unknown.with(segs[i], []byte{}), gone},
			{"cut at an entry", unknown.with(segs[i], before[segs[i]][:entryOffset(gone, gone+2)]), gone + 2},
			{"cut in an entry", unknown.with(segs[i], before[segs[i]][:entryOffset(gone, gone+2)+9]), gone + 2},
			{"longer", unknown.with(segs[i], append(bytes.Clone(before[segs[i]]), 0)), first(i + 1)},
		} {
			if ce := refused(t, tc.f.store(t, dir), Options{}); ce.Index != tc.lost {
				t.Errorf("segment %d %s: %v, want epoch %d", i, tc.name, ce, tc.lost)
			}
		}
	}
	// The same file under another name: two segments overlap.
	overlap := unknown.with(logName+"/"+segmentName(first(1)+1), before[segs[1]])
	refused(t, overlap.store(t, dir), Options{})
	for _, name := range []string{segmentName(3) + ".END", segmentName(3) + ".START"} {
		marked := unknown.with(logName+"/"+name, []byte{}).with(logName+"/"+segmentName(2)+".START", []byte{})
		refused(t, marked.store(t, dir), Options{})
	}
}

// TestREC05LastSegmentLost empties and removes the newest segment, with and
// without something that says that it was acknowledged.
func TestREC05LastSegmentLost(t *testing.T) {
	_, after := seed(t, 40, Options{SegmentBytes: 1000})
	segs := after.segments()
	newest := segs[len(segs)-1]
	var last uint64
	fmt.Sscanf(filepath.Base(newest), "%d", &last)
	last--
	dir := filepath.Join(fastDir(t), "db")
	for _, lost := range []files{after.with(newest, nil), after.with(newest, []byte{})} {
		ce := refused(t, lost.store(t, dir), Options{})
		if ce.Index != last+1 || !strings.Contains(ce.Error(), "acknowledged entries") {
			t.Errorf("with the note: %v, want epochs from %d on missing", ce, last+1)
		}
		refused(t, lost.store(t, dir), Options{Cover: covers(39)})
		refused(t, lost.store(t, dir), Options{Cover: covers(39), ReadOnly: true})
		unknown := lost.with(noteName, nil)
		rep := reopen(t, unknown.store(t, dir), last)
		if !rep.NoteMissing || rep.LastIndex != last {
			t.Errorf("without a note: %+v, want that said and last index %d", rep, last)
		}
	}
	none := after
	for _, s := range segs {
		none = none.with(s, nil)
	}
	refused(t, none.store(t, dir), Options{})
	// A note that a crash of the machine left half written protects nothing,
	// and harms nothing.
	for i := range noteSize {
		bad := bytes.Clone(after[noteName])
		bad[i] ^= 0x10
		if rep := reopenAt(t, after.with(noteName, bad).store(t, dir), 40); !rep.NoteMissing {
			t.Fatalf("note with byte %d changed: %+v", i, rep)
		}
		reopenAt(t, after.with(noteName, bad[:i]).store(t, dir), 40)
	}
}

// TestUnackedWrittenAgain: an entry that nobody acknowledged is written again
// before it counts as durable; the others are left alone.
func TestUnackedWrittenAgain(t *testing.T) {
	before, after := seed(t, 3, Options{})
	seg := after.segments()[0]
	dir := filepath.Join(fastDir(t), "db")
	path := filepath.Join(dir, seg)
	old := time.Unix(1_000_000_000, 0)
	for _, tc := range []struct {
		f     files
		again bool
	}{{before, true}, {before.with(noteName, nil), true}, {after, false}} {
		tc.f.store(t, dir)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		reopenAt(t, dir, 3)
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if written := !st.ModTime().Equal(old); written != tc.again {
			t.Errorf("written again: %v, want %v", written, tc.again)
		}
		if got := load(t, dir)[seg]; !bytes.Equal(got, after[seg]) {
			t.Errorf("the bytes changed")
		}
	}
}

// errCrash stops Open at a step, as a crash would.
var errCrash = errors.New("crash")

// crashAt returns a step function that stops Open at the n-th step, and a
// pointer to the name of that step.
func crashAt(n int) (func(string) error, *string) {
	at := new(string)
	return func(what string) error {
		if n == 0 {
			*at = what
			return fmt.Errorf("%w before: %s", errCrash, what)
		}
		n--
		return nil
	}, at
}

// openUntil crashes Open at each step in turn, and after each crash once more
// at each step, and calls ok after the Open that follows. It returns the names
// of the steps.
func openUntil(t *testing.T, o Options, fresh func() string, ok func(dir string)) []string {
	t.Helper()
	var steps []string
	for n := 0; ; n++ {
		finished := false
		for m := 0; ; m++ {
			dir := fresh()
			var at *string
			o.Step, at = crashAt(n)
			l, _, err := Open(context.Background(), dir, o)
			if err == nil {
				l.step = func(string) error { return nil }
				mustClose(t, l)
				finished = true
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatalf("crash at step %d: %v", n, err)
			}
			if m == 0 {
				steps = append(steps, *at)
			}
			o.Step, _ = crashAt(m)
			l, _, err = Open(context.Background(), dir, o)
			if err == nil {
				l.step = func(string) error { return nil }
				mustClose(t, l)
			} else if !errors.Is(err, errCrash) {
				t.Fatalf("crash at steps %d, %d: %v", n, m, err)
			}
			ok(dir)
			if err == nil {
				break
			}
		}
		if finished {
			return steps
		}
	}
}

// TestREC06CrashInRecovery crashes at each step of a repair, twice in a row.
func TestREC06CrashInRecovery(t *testing.T) {
	before, _ := seed(t, 10, Options{})
	seg := before.segments()[0]
	torn := before.with(seg, before[seg][:len(before[seg])-5])
	dir := filepath.Join(fastDir(t), "db")
	steps := openUntil(t, Options{}, func() string { return torn.store(t, dir) }, func(dir string) {
		for range 3 {
			reopenAt(t, dir, 9)
		}
		reopen(t, dir, 9)
	})
	t.Logf("steps of a repair: %q", steps)
	if len(steps) < 6 {
		t.Errorf("only %d steps", len(steps))
	}
}

// TestREC06CrashInCreation crashes at each step of making a store.
func TestREC06CrashInCreation(t *testing.T) {
	root := fastDir(t)
	dir := filepath.Join(root, "a", "b")
	steps := openUntil(t, Options{}, func() string {
		if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
			t.Fatal(err)
		}
		return dir
	}, func(dir string) { reopen(t, dir, 0) })
	t.Logf("steps of a creation: %q", steps)
}

// TestREC11ForeignLog puts the log of one store beside the identity of
// another.
func TestREC11ForeignLog(t *testing.T) {
	x, _ := seed(t, 3, Options{})
	y, _ := seed(t, 5, Options{})
	dir := filepath.Join(fastDir(t), "db")
	seg := x.segments()[0]
	for name, f := range map[string]files{
		"log":          x.with(seg, y[seg]),
		"note":         x.with(noteName, y[noteName]),
		"log and note": y.with(storeName, x[storeName]),
		"log, no note": y.with(storeName, x[storeName]).with(noteName, nil),
		"last entry":   x.with(seg, append(bytes.Clone(x[seg]), y[seg][entryOffset(1, 4):entryOffset(1, 5)]...)),
	} {
		for _, ro := range []bool{false, true} {
			sum := load(t, f.store(t, dir)).sum()
			err := openFails(t, dir, Options{ReadOnly: ro}, errs.ErrFormat)
			fe, ok := errors.AsType[*ForeignError](err)
			if !ok || fe.Want.String() == fe.Got.String() || !strings.Contains(err.Error(), "log belongs to another store") {
				t.Errorf("%s: %v, want a ForeignError", name, err)
			}
			if ro && load(t, dir).sum() != sum {
				t.Errorf("%s: read-only open changed a file", name)
			}
		}
	}
	// The identity removed: a log without a store.
	err := openFails(t, x.with(storeName, nil).store(t, dir), Options{}, errs.ErrFormat)
	if !strings.Contains(err.Error(), storeName) {
		t.Errorf("%v, want the missing file named", err)
	}
}

// TestDEL08LargeEntry writes an entry that is larger than two segments, tears
// it, and goes on after it.
func TestDEL08LargeEntry(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{})
	large := bytes.Repeat([]byte("0123456789abcdef"), 9<<20/16)
	write(t, l, 2)
	if err := put(l, large); err != nil {
		t.Fatal(err)
	}
	killed := load(t, dir)
	write(t, l, 2)
	mustClose(t, l)
	same := func(l *Log, last uint64) {
		t.Helper()
		var n uint64
		err := l.Replay(context.Background(), 0, func(i uint64, b []byte) error {
			n = i
			if i == 3 && !bytes.Equal(b, large) || i != 3 && !bytes.Equal(b, payload(i)) {
				return fmt.Errorf("entry %d is wrong (%d bytes)", i, len(b))
			}
			return nil
		})
		if err != nil || n != last {
			t.Fatalf("replay: %d, %v, want %d", n, err, last)
		}
	}
	l, _ = mustOpen(t, dir, Options{})
	same(l, 5)
	mustClose(t, l)
	l, rep := mustOpen(t, killed.store(t, filepath.Join(dir, "last")), Options{Cover: covers(4)})
	if !rep.Renewed || rep.EndedAt != 3 || l.Last() != 4 {
		t.Errorf("behind a checkpoint of entry 4: %+v, want a log that goes on there", rep)
	}
	mustClose(t, l)
	// The entry filled its segment, so the library synced it and began the next
	// one; a torn entry never got that far.
	seg, next := killed.segments()[0], killed.segments()[1]
	killed = killed.with(next, nil)
	for _, cut := range []int{1, 4 << 20, 9 << 20} {
		b := killed[seg]
		reopen(t, killed.with(noteName, nil).with(seg, b[:len(b)-cut]).store(t, filepath.Join(dir, "torn")), 2)
	}
	l, _ = mustOpen(t, dir, Options{})
	defer l.Close()
	for _, b := range [][]byte{nil, {}, make([]byte, MaxEntryBytes+1)} {
		if err := l.Enqueue(b, nil); !errors.Is(err, errs.ErrValue) {
			t.Errorf("entry of %d bytes: %v, want ErrValue", len(b), err)
		}
	}
}

// TestIdentity damages the identity file.
func TestIdentity(t *testing.T) {
	before, _ := seed(t, 2, Options{})
	dir := filepath.Join(fastDir(t), "db")
	whole := before[storeName]
	for cut := range whole {
		_, _, err := Open(context.Background(), before.with(storeName, whole[:cut]).store(t, dir), Options{})
		if !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("identity cut at %d: %v, want ErrCorrupt", cut, err)
		}
	}
	for pos := range whole {
		b := bytes.Clone(whole)
		b[pos] ^= 2
		_, _, err := Open(context.Background(), before.with(storeName, b).store(t, dir), Options{})
		want := errs.ErrCorrupt
		if pos < 12 {
			want = errs.ErrFormat
		}
		if !errors.Is(err, want) {
			t.Fatalf("identity with byte %d changed: %v, want %v", pos, err, want)
		}
	}
	later := bytes.Clone(whole)
	later[8] = 9
	err := openFails(t, before.with(storeName, later).store(t, dir), Options{}, errs.ErrFormat)
	if !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("%v: want both versions named", err)
	}
	flags := bytes.Clone(whole)
	flags[12] = 4
	err = openFails(t, before.with(storeName, resum(flags)).store(t, dir), Options{}, errs.ErrFormat)
	if !strings.Contains(err.Error(), "flags 0x4") {
		t.Errorf("%v: want the flags named", err)
	}
}
