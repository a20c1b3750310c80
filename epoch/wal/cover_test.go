package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// firsts are the indexes that the segments begin with.
func (f files) firsts() []uint64 {
	var out []uint64
	for _, s := range f.segments() {
		var n uint64
		fmt.Sscanf(filepath.Base(s), "%d", &n)
		out = append(out, n)
	}
	return out
}

// TestCover: Cover is called once, with the identity and under the lock, and
// its error ends Open as if it had not been.
func TestCover(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{})
	id := l.Identity()
	write(t, l, 3)
	mustClose(t, l)
	if read, err := ReadIdentity(dir); err != nil || read != id || id.Store == id.Log || id.Log == id.Timeline {
		t.Fatalf("identity %+v, read %+v, %v", id, read, err)
	}
	for _, ro := range []bool{false, true} {
		calls := 0
		o := Options{ReadOnly: ro, LockWait: -1}
		o.Cover = func(_ context.Context, got Identity) (uint64, error) {
			calls++
			if got != id {
				t.Errorf("Cover is told of %+v, want %+v", got, id)
			}
			openFails(t, dir, Options{LockWait: -1}, errs.ErrLocked)
			return 2, nil
		}
		l, rep := mustOpen(t, dir, o)
		check(t, l, 3, 3)
		mustClose(t, l)
		if calls != 1 || rep.Covered != 2 || rep.Acked != 3 || rep.TailBytes != int64(entryOffset(3, 4)) {
			t.Errorf("%d calls, %+v", calls, rep)
		}
		before := load(t, dir).with(lockName, nil).sum()
		o.Cover = func(context.Context, Identity) (uint64, error) { return 0, errDisk }
		openFails(t, dir, o, errDisk)
		o.Cover = covers(1<<64 - 1)
		openFails(t, dir, o, errs.ErrValue)
		if load(t, dir).with(lockName, nil).sum() != before {
			t.Error("a failed Open changed a file")
		}
	}
	reopen(t, dir, 3)
}

// TestCoveredSegments: any of the segments that a checkpoint covers may be
// missing, damaged or empty, as removals that reached the disk out of order,
// and a bad disk, leave them; the log is what follows.
func TestCoveredSegments(t *testing.T) {
	_, after := seed(t, 40, Options{SegmentBytes: 500})
	segs, firsts := after.segments(), after.firsts()
	if len(segs) < 5 {
		t.Fatalf("only %d segments", len(segs))
	}
	dir := filepath.Join(fastDir(t), "db")
	subsets := 0
	for n := 1; n < len(segs); n++ {
		for _, covered := range []uint64{firsts[n] - 1, firsts[n]} {
			for gone := range 1 << min(n, 4) {
				f, left := after, n
				for i := range n {
					switch {
					case gone>>i&1 == 0:
					case (gone+i)%3 == 0:
						f = f.with(segs[i], []byte("damaged"))
					case (gone+i)%3 == 1:
						f = f.with(segs[i], []byte{})
					default:
						f, left = f.with(segs[i], nil), left-1
					}
				}
				subsets++
				for _, ro := range []bool{true, false} {
					l, rep := mustOpen(t, f.store(t, dir), Options{Cover: covers(covered), ReadOnly: ro})
					if rep.FirstIndex != firsts[n] || rep.LastIndex != 40 || rep.OldSegments != left || rep.Renewed || rep.NewTimeline {
						t.Fatalf("covered %d: %+v, want %d to 40 and %d old segments", covered, rep, firsts[n], left)
					}
					check(t, l, firsts[n], 40)
					if !ro {
						write(t, l, 1)
						if _, _, err := l.DropThrough(t.Context(), covered); err != nil {
							t.Fatal(err)
						}
						check(t, l, firsts[n], 41)
					}
					mustClose(t, l)
				}
				if got := load(t, dir); got.firsts()[0] != firsts[n] {
					t.Fatalf("covered %d: the log begins with %d after the cut, want %d", covered, got.firsts()[0], firsts[n])
				}
			}
		}
	}
	t.Logf("%d states of the old segments", subsets)
}

// TestCoverGaps: what a checkpoint does not cover must be there.
func TestCoverGaps(t *testing.T) {
	_, after := seed(t, 40, Options{SegmentBytes: 500})
	segs, firsts := after.segments(), after.firsts()
	dir := filepath.Join(fastDir(t), "db")
	for i := 1; i < len(segs); i++ {
		cut := after.with(segs[0], nil)
		for j := range i {
			cut = cut.with(segs[j], nil)
		}
		for _, covered := range []uint64{0, firsts[i-1], firsts[i] - 2} {
			ce := refused(t, cut.store(t, dir), Options{Cover: covers(covered)})
			if ce.Index != covered+1 || !strings.Contains(ce.Error(), fmt.Sprintf("begins at entry %d", firsts[i])) {
				t.Errorf("log from %d, covered %d: %v", firsts[i], covered, ce)
			}
		}
		if i == len(segs)-1 {
			continue
		}
		for _, covered := range []uint64{firsts[i] - 1, firsts[i], firsts[i+1] - 2} {
			hole := after.with(segs[i], nil)
			refused(t, hole.store(t, dir), Options{Cover: covers(covered)})
			b := bytes.Clone(after[segs[i]])
			b[offPayload]++
			refused(t, after.with(segs[i], b).store(t, dir), Options{Cover: covers(covered)})
		}
	}
}

// TestLogEndsBeforeCheckpoint: a log that lost entries which a checkpoint holds
// goes on behind it, on a new timeline, if nothing tells of more.
func TestLogEndsBeforeCheckpoint(t *testing.T) {
	_, after := seed(t, 40, Options{SegmentBytes: 1000})
	segs, firsts := after.segments(), after.firsts()
	newest := segs[len(segs)-1]
	last := firsts[len(firsts)-1] - 1
	whole := after[newest]
	empty := after
	for _, s := range segs {
		empty = empty.with(s, nil)
	}
	flipped := func(i uint64) files {
		b := bytes.Clone(whole)
		b[entryOffset(last+1, i)+offPayload] ^= 1
		return after.with(newest, b)
	}
	half := entryOffset(last+1, last+3)
	for name, tc := range map[string]struct {
		f     files
		ended uint64
	}{
		"last segment gone":       {after.with(newest, nil), last},
		"last segment empty":      {after.with(newest, []byte{}), last},
		"cut at an entry":         {after.with(newest, whole[:half]), last + 2},
		"cut in an entry":         {after.with(newest, whole[:half+7]), last + 2},
		"damaged entry":           {flipped(last + 2), last + 1},
		"zeros":                   {after.with(newest, make([]byte, 5000)), last},
		"no segment":              {empty, 0},
		"more segments than note": {after.with(newest, nil).with(noteName, nil), last},
	} {
		dir := filepath.Join(fastDir(t), "db")
		for _, covered := range []uint64{40, 41, 1000} {
			id, err := ReadIdentity(tc.f.store(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Cover: covers(covered), SegmentBytes: 1000}
			sum := load(t, dir).sum()
			ro := o
			ro.ReadOnly = true
			l, rep := mustOpen(t, dir, ro)
			if !rep.Renewed || rep.EndedAt != tc.ended || rep.NewTimeline || rep.LastIndex != covered || rep.FirstIndex != covered+1 || l.Identity() != id {
				t.Fatalf("%s, covered %d, read-only: %+v, want renewed after %d", name, covered, rep, tc.ended)
			}
			mustClose(t, l)
			if load(t, dir).sum() != sum {
				t.Fatalf("%s: a read-only open changed a file", name)
			}
			l, rep = mustOpen(t, dir, o)
			now := l.Identity()
			if !rep.Renewed || !rep.NewTimeline || now.Timeline == id.Timeline || now.Log != id.Log || now.Store != id.Store {
				t.Fatalf("%s, covered %d: %+v, identity %+v, was %+v", name, covered, rep, now, id)
			}
			write(t, l, 2)
			mustClose(t, l)
			l, rep = mustOpen(t, dir, o)
			check(t, l, covered+1, covered+2)
			if rep.Renewed || rep.NewTimeline || rep.LastIndex != covered+2 || l.Identity() != now {
				t.Fatalf("%s, covered %d, again: %+v", name, covered, rep)
			}
			if _, _, err := l.DropThrough(t.Context(), covered); err != nil {
				t.Fatal(err)
			}
			mustClose(t, l)
			if f := load(t, dir).firsts(); len(f) != 1 || f[0] != covered+1 {
				t.Fatalf("%s, covered %d: the log has segments %v", name, covered, f)
			}
		}
	}
	dir := filepath.Join(fastDir(t), "db")
	for name, f := range map[string]files{ // what tells of more
		"note":               after.with(newest, nil),
		"note, no segment":   empty,
		"acknowledged later": flipped(last+2).with(noteName, nil),
	} {
		for _, covered := range []uint64{last + 3, 39} {
			for _, ro := range []bool{true, false} {
				sum := load(t, f.store(t, dir)).with(lockName, nil).sum()
				refused(t, dir, Options{Cover: covers(covered), ReadOnly: ro})
				if load(t, dir).with(lockName, nil).sum() != sum {
					t.Errorf("%s, covered %d: a refused log was changed", name, covered)
				}
			}
		}
	}
	// A whole entry behind the checkpoint is not dropped for what is damaged
	// before it, although nobody may have been told of it.
	refused(t, flipped(39).with(noteName, nil).store(t, dir), Options{Cover: covers(39)})
}

// TestREC06CrashInRenewal crashes at each step of a log that goes on behind its
// checkpoint.
func TestREC06CrashInRenewal(t *testing.T) {
	_, after := seed(t, 5, Options{})
	seg := after.segments()[0]
	lost := after.with(seg, after[seg][:entryOffset(1, 4)+3])
	id, err := ReadIdentity(lost.store(t, filepath.Join(fastDir(t), "db")))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(fastDir(t), "db")
	o := Options{Cover: covers(7)}
	steps := openUntil(t, o, func() string { return lost.store(t, dir) }, func(dir string) {
		l, rep := mustOpen(t, dir, o)
		if rep.LastIndex != 7 || l.Identity().Timeline == id.Timeline || l.Identity().Log != id.Log {
			t.Fatalf("%+v, identity %+v, was %+v", rep, l.Identity(), id)
		}
		write(t, l, 1)
		mustClose(t, l)
		l, _ = mustOpen(t, dir, o)
		check(t, l, 8, 8)
		mustClose(t, l)
	})
	t.Logf("steps: %q", steps)
	if got := strings.Join(steps, "; "); !strings.Contains(got, "rename identity") || !strings.Contains(got, "begin a new segment") {
		t.Errorf("steps %q", steps)
	}
}

// TestREC08LastEntry: a checkpoint at the last entry, and one with later
// entries in the same segment.
func TestREC08LastEntry(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{})
	write(t, l, 5)
	if n, _, err := l.DropThrough(t.Context(), 5); n != 0 || err != nil {
		t.Errorf("the only segment: %d removed, %v", n, err)
	}
	mustClose(t, l)
	o := Options{Cover: covers(5)}
	for last := uint64(5); last < 9; last++ {
		l, rep := mustOpen(t, dir, o)
		if rep.LastIndex != last || l.Last() != last {
			t.Fatalf("%+v, last %d, want %d", rep, l.Last(), last)
		}
		check(t, l, 6, last) // each once, and nothing at or below 5
		write(t, l, 1)
		mustClose(t, l)
	}
}

// TestREC08DropThrough cuts the log through each index and goes on.
func TestREC08DropThrough(t *testing.T) {
	ctx := context.Background()
	_, after := seed(t, 30, Options{SegmentBytes: 400})
	firsts := after.firsts()
	for index := range uint64(31) {
		dir := after.store(t, filepath.Join(fastDir(t), "db"))
		l, _ := mustOpen(t, dir, Options{SegmentBytes: 400})
		was := l.Bytes()
		n, freed, err := l.DropThrough(ctx, index)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		var size int64
		for want+1 < len(firsts) && firsts[want+1] <= index+1 {
			size += int64(len(after[after.segments()[want]]))
			want++
		}
		if n != want || freed != size || l.Bytes() != was-size {
			t.Fatalf("through %d: %d segments, %d bytes, %d left; want %d and %d", index, n, freed, l.Bytes(), want, size)
		}
		first := firsts[want]
		if first > 1 {
			if err := l.Replay(ctx, first-1, nil); !errors.Is(err, errs.ErrValue) {
				t.Errorf("replay from %d: %v, want ErrValue", first-1, err)
			}
		}
		check(t, l, first, 30)
		write(t, l, 3)
		if again, _, err := l.DropThrough(ctx, index); again != 0 || err != nil {
			t.Errorf("through %d again: %d segments, %v", index, again, err)
		}
		check(t, l, first, 33)
		mustClose(t, l)
		if first > 1 {
			refused(t, dir, Options{Cover: covers(first - 2)})
		}
		l, rep := mustOpen(t, dir, Options{SegmentBytes: 400, Cover: covers(index)})
		if rep.LastIndex != 33 || rep.FirstIndex != first || rep.OldSegments != 0 {
			t.Fatalf("through %d: %+v", index, rep)
		}
		check(t, l, first, 33)
		mustClose(t, l)
	}
}

// TestDropThroughCrash stops the cut after each removal and before each, and
// leaves the log as it was then.
func TestDropThroughCrash(t *testing.T) {
	_, after := seed(t, 40, Options{SegmentBytes: 500})
	const covered = 33
	steps, segments := 0, 0
	for n := 0; ; n++ {
		dir := after.store(t, filepath.Join(fastDir(t), "db"))
		l, _ := mustOpen(t, dir, Options{SegmentBytes: 500, Cover: covers(covered)})
		step, _ := crashAt(n)
		l.step = step
		removed, freed, err := l.DropThrough(t.Context(), covered)
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if want := after.firsts(); len(load(t, dir).firsts()) != len(want)-removed || freed == 0 != (removed == 0) {
			t.Fatalf("step %d: %d segments removed, %d left of %d", n, removed, len(load(t, dir).firsts()), len(want))
		}
		crash := load(t, dir)
		// The log goes on, and so does the next cut.
		write(t, l, 1)
		l.step = func(string) error { return nil }
		if _, _, err := l.DropThrough(t.Context(), covered); err != nil || l.Err() != nil {
			t.Fatalf("step %d, then again: %v, %v", n, err, l.Err())
		}
		check(t, l, 33, 41)
		mustClose(t, l)
		l, rep := mustOpen(t, crash.store(t, dir), Options{Cover: covers(covered)})
		if rep.LastIndex != 40 {
			t.Fatalf("step %d: %+v", n, rep)
		}
		check(t, l, covered+1, 40)
		mustClose(t, l)
		if err == nil {
			steps, segments = n, removed
			break
		}
	}
	if segments < 4 || steps != segments+1 {
		t.Errorf("%d steps for %d segments, want one for each and one for the directory", steps, segments)
	}
}

// TestDropThroughRefusals: what cannot be cut, and that nothing happens then.
func TestDropThroughRefusals(t *testing.T) {
	dir := fastDir(t)
	d, w := wrap(dir)
	l, _ := mustOpen(t, dir, Options{Mode: SyncNone, SegmentBytes: 300, Wrap: w})
	write(t, l, 20)
	if err := l.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, l, 5)
	before := load(t, dir).sum()
	if err := dropErr(l.DropThrough(t.Context(), 21)); !errors.Is(err, errs.ErrValue) {
		t.Errorf("behind what is durable: %v, want ErrValue", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dropErr(l.DropThrough(ended, 20)); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	d.fail = func(string, int) bool { return true }
	if err := put(l, payload(26)); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if err := dropErr(l.DropThrough(t.Context(), 20)); !errors.Is(err, errs.ErrReadOnly) || !errors.Is(err, errDisk) {
		t.Errorf("a stopped log: %v, want ErrReadOnly with the cause", err)
	}
	if load(t, dir).sum() != before {
		t.Error("a refused cut changed a file")
	}
	_ = l.Close() // the failure, as above
	l, _ = mustOpen(t, dir, Options{})
	step := make(chan struct{})
	held := make(chan struct{})
	l.step = func(string) error { close(held); <-step; return nil }
	result := make(chan error)
	go func() { result <- dropErr(l.DropThrough(context.Background(), 20)) }()
	<-held
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	for l.closedErr() == nil {
	}
	select {
	case err := <-closed:
		t.Errorf("Close returned under a cut: %v", err)
	default:
	}
	l.step = func(string) error { return nil }
	close(step)
	if err := <-result; !errors.Is(err, errs.ErrClosed) {
		t.Errorf("a cut under Close: %v, want ErrClosed after one segment", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := len(load(t, dir).firsts()); n < 3 {
		t.Errorf("%d segments left, want all but one", n)
	}
}

// TestDropBesideAppends cuts while entries are written and replayed.
func TestDropBesideAppends(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 1000})
	var wg sync.WaitGroup
	running := new(atomic.Bool)
	running.Store(true)
	wg.Go(func() {
		defer running.Store(false)
		for range 2000 {
			if err := put(l, payload(l.Last()+1)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		for running.Load() {
			from := l.Durable() + 1
			next := from - min(from-1, 20)
			err := l.Replay(t.Context(), next, func(i uint64, b []byte) error {
				if i != next || !bytes.Equal(b, payload(i)) {
					return fmt.Errorf("entry %d is %q, want entry %d", i, b, next)
				}
				next++
				return nil
			})
			if err != nil && !errors.Is(err, errs.ErrValue) { // cut meanwhile
				t.Error(err)
				return
			}
		}
	})
	dropped := 0
	for running.Load() {
		n, _, err := l.DropThrough(t.Context(), l.Durable())
		if err != nil && !errors.Is(err, ErrBusy) {
			t.Error(err)
			break
		}
		dropped += n
	}
	wg.Wait()
	n, _, err := l.DropThrough(t.Context(), l.Durable())
	if dropped += n; err != nil {
		t.Error(err)
	}
	f := load(t, dir)
	var size int64
	for _, s := range f.segments() {
		size += int64(len(f[s]))
	}
	if l.Bytes() != size || l.Written() != uint64(entryOffset(1, 2001)) || dropped < 100 {
		t.Errorf("%d bytes, %d in the files, %d written; %d segments dropped", l.Bytes(), size, l.Written(), dropped)
	}
	mustClose(t, l)
	l, rep := mustOpen(t, dir, Options{Cover: covers(2000), SegmentBytes: 1000})
	if rep.LastIndex != 2000 || l.Bytes() != size || l.Written() != 0 {
		t.Errorf("%+v, %d bytes", rep, l.Bytes())
	}
	mustClose(t, l)
}

// TestREC10NoRightToDrop: the directory of the segments became unwritable.
func TestREC10NoRightToDrop(t *testing.T) {
	_, after := seed(t, 20, Options{SegmentBytes: 500})
	dir := after.store(t, filepath.Join(outside(t), "db"))
	chmodTree(t, dir, 0o755, 0o644)
	if got := runChild(t, "drop", dir); got != "permission: true, segments 0, goes on: true\n" {
		t.Errorf("child: %q", got)
	}
}

// TestNoLock looks at the store of a live writer.
func TestNoLock(t *testing.T) {
	dir := fastDir(t)
	openFails(t, dir, Options{NoLock: true}, errs.ErrValue)
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 2000})
	running := new(atomic.Bool)
	running.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer running.Store(false)
		for range 1500 {
			if err := put(l, payload(l.Last()+1)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	looks := 0
	for ; running.Load(); looks++ {
		durable := l.Durable()
		ro, rep, err := Open(t.Context(), dir, Options{ReadOnly: true, NoLock: true})
		if err != nil || rep.LastIndex < durable || ro.Identity() != l.Identity() {
			t.Errorf("%+v, %v; %d were durable", rep, err, durable)
			break
		}
		check(t, ro, 1, rep.LastIndex)
		mustClose(t, ro)
	}
	wg.Wait()
	mustClose(t, l)
	t.Logf("%d looks", looks)
	if _, err := ReadIdentity(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("identity of nothing: %v", err)
	}
	if _, err := ReadIdentity(fastDir(t)); !errors.Is(err, errs.ErrFormat) {
		t.Errorf("identity of an empty directory: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, storeName), []byte("TrieGS\x00\n\x01"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadIdentity(dir); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("identity of a cut file: %v", err)
	}
}
