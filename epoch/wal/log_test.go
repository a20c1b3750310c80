package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// TestGroupCommit lets 64 callers append at once, each waiting for its entry.
func TestGroupCommit(t *testing.T) {
	const callers, each = 64, 50
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 64 << 10})
	var mu sync.Mutex
	next := uint64(0) // the done functions come in the order of the indexes
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				done := make(chan error, 1)
				b := fmt.Appendf(nil, "caller %d, entry %d", c, i)
				mu.Lock()
				err := l.Enqueue(b, nil)
				index := l.Last()
				mu.Unlock()
				if err == nil {
					err = l.Enqueue(b, func(err error) { done <- err })
				}
				if err == nil {
					err = <-done
				}
				if err != nil || l.Durable() < index {
					t.Errorf("caller %d: %v, durable %d of %d", c, err, l.Durable(), index)
					return
				}
			}
		})
	}
	wg.Wait()
	s := l.Stats()
	t.Logf("%d entries, %d syncs (%.3f an entry), %d directory syncs, largest batch %d",
		s.Entries, s.Syncs, float64(s.Syncs)/float64(s.Entries), s.DirSyncs, s.LargestBatch)
	if s.Entries != 2*callers*each || s.Syncs*4 > s.Entries {
		t.Errorf("%+v: want at most one sync for four entries", s)
	}
	mustClose(t, l)
	l, rep := mustOpen(t, dir, Options{})
	defer l.Close()
	err := l.Replay(context.Background(), 0, func(uint64, []byte) error { next++; return nil })
	if err != nil || next != s.Entries || rep.Epochs != s.Entries {
		t.Errorf("reopened with %d, %v, %+v", next, err, rep)
	}
}

// TestDoneOrder: done functions come in the order of the calls, the payload
// may be reused at once, and Close waits for all of them.
func TestDoneOrder(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 5000})
	var order []uint64 // touched by the writer only, until Close
	b := make([]byte, 8)
	for i := range uint64(5000) {
		binary.LittleEndian.PutUint64(b, i)
		if err := l.Enqueue(b, func(err error) {
			if err != nil {
				t.Errorf("entry %d: %v", i+1, err)
			}
			order = append(order, i)
		}); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
	for i, v := range order {
		if v != uint64(i) {
			t.Fatalf("done %d was called at place %d", v, i)
		}
	}
	if len(order) != 5000 {
		t.Fatalf("%d done functions were called", len(order))
	}
	l, _ = mustOpen(t, dir, Options{})
	defer l.Close()
	err := l.Replay(context.Background(), 0, func(i uint64, b []byte) error {
		if binary.LittleEndian.Uint64(b) != i-1 {
			return fmt.Errorf("entry %d is %x", i, b)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestClosed calls everything after Close.
func TestClosed(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{})
	write(t, l, 2)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := l.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	wg.Wait()
	ctx := context.Background()
	for name, err := range map[string]error{
		"Enqueue":     l.Enqueue([]byte("x"), nil),
		"Sync":        l.Sync(ctx),
		"DropThrough": dropErr(l.DropThrough(ctx, 1)),
		"Replay":      l.Replay(ctx, 0, nil),
	} {
		if !errors.Is(err, errs.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	if l.Last() != 2 || l.Durable() != 2 || l.Err() != nil || l.Stats().Entries != 2 {
		t.Errorf("after Close: last %d, durable %d, %v, %+v", l.Last(), l.Durable(), l.Err(), l.Stats())
	}
}

// TestLIFE07ConcurrentReplays runs 8 replays from different entries, over many
// segments, beside the writer.
func TestLIFE07ConcurrentReplays(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 2000})
	defer l.Close()
	write(t, l, 300)
	var wg sync.WaitGroup
	wg.Go(func() { write(t, l, 300) })
	for r := range uint64(8) {
		wg.Go(func() {
			for round := range uint64(20) {
				from, last := 1+r*37+round, l.Durable()
				next := from
				err := l.Replay(context.Background(), from, func(i uint64, b []byte) error {
					if i != next || !bytes.Equal(b, payload(i)) {
						return fmt.Errorf("entry %d is %q, want entry %d", i, b, next)
					}
					next++
					return nil
				})
				if err != nil || next <= last {
					t.Errorf("replay from %d: %v, ended before %d of %d", from, err, next, last)
					return
				}
			}
		})
	}
	wg.Wait()
	check(t, l, 1, 600)
}

// TestReplayEnds ends a replay in each way.
func TestReplayEnds(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 500})
	write(t, l, 30)
	errStopped := errors.New("enough")
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	count := func(stop func()) func(uint64, []byte) error {
		n = 0
		return func(uint64, []byte) error {
			if n++; n == 10 {
				stop()
			}
			return nil
		}
	}
	if err := l.Replay(ctx, 0, func(i uint64, _ []byte) error { return errStopped }); !errors.Is(err, errStopped) {
		t.Errorf("an error of the caller: %v", err)
	}
	if err := l.Replay(ctx, 0, count(cancel)); !errors.Is(err, context.Canceled) || n != 10 {
		t.Errorf("a cancelled context: %v after %d", err, n)
	}
	ctx = context.Background()
	var cut error
	if err := l.Replay(ctx, 0, count(func() { cut = dropErr(l.DropThrough(ctx, 10)) })); err != nil || !errors.Is(cut, ErrBusy) {
		t.Errorf("replay %v, cut under it %v, want ErrBusy", err, cut)
	}
	if n, _, err := l.DropThrough(ctx, 10); err != nil || n == 0 {
		t.Errorf("cut after it: %v, %d segments", err, n)
	}
	if err := l.Replay(ctx, 11, count(func() { _ = l.Close() })); !errors.Is(err, errs.ErrClosed) || n != 10 {
		t.Errorf("a closed log: %v after %d", err, n)
	}
}

// TestReplayDamage damages the files under an open log.
func TestReplayDamage(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 500})
	defer l.Close()
	write(t, l, 30)
	list, err := listLog(filepath.Join(dir, logName))
	if err != nil {
		t.Fatal(err)
	}
	mid := list.segs[1]
	b, err := os.ReadFile(mid.path)
	if err != nil {
		t.Fatal(err)
	}
	replay := func() *CorruptError {
		t.Helper()
		err := l.Replay(context.Background(), 0, func(uint64, []byte) error { return nil })
		ce, ok := errors.AsType[*CorruptError](err)
		if !ok {
			t.Fatalf("replay: %v, want a CorruptError", err)
		}
		return ce
	}
	bad := bytes.Clone(b)
	bad[offPayload+5]++
	if err := os.WriteFile(mid.path, bad, 0o644); err != nil {
		t.Fatal(err)
	}
	if ce := replay(); ce.Index != mid.first || ce.File != mid.path {
		t.Errorf("%v, want entry %d", ce, mid.first)
	}
	if err := os.Remove(mid.path); err != nil {
		t.Fatal(err)
	}
	if ce := replay(); ce.Index != mid.first {
		t.Errorf("%v, want entry %d", ce, mid.first)
	}
	if err := errors.Join(os.WriteFile(mid.path, b, 0o644), os.Remove(list.segs[len(list.segs)-1].path)); err != nil {
		t.Fatal(err)
	}
	if list.segs[len(list.segs)-1].first <= 30 {
		if ce := replay(); ce.Index != list.segs[len(list.segs)-1].first {
			t.Errorf("%v, want the last segment missed", ce)
		}
	}
}

// TestGolden opens the log of format version 1 that is kept under testdata.
func TestGolden(t *testing.T) {
	kept := filepath.Join("testdata", "v1")
	if *rewriteGolden {
		dir := fastDir(t)
		l, _ := mustOpen(t, dir, Options{SegmentBytes: 400})
		write(t, l, 10)
		f := load(t, dir).with(lockName, nil)
		mustClose(t, l)
		f.store(t, kept)
	}
	f := load(t, kept)
	dir := f.store(t, filepath.Join(fastDir(t), "db"))
	ro, rep := mustOpen(t, dir, Options{ReadOnly: true})
	check(t, ro, 1, 10)
	mustClose(t, ro)
	if rep != (Report{Epochs: 10, FirstIndex: 1, LastIndex: 10, TailBytes: 712, Acked: 10}) {
		t.Errorf("%+v", rep)
	}
	reopen(t, dir, 10)
	// And every byte is written as then.
	id, err := ReadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(appendStore(nil, id), f[storeName]) {
		t.Errorf("the identity file is written differently")
	}
	n, err := openNote(filepath.Join(dir, "note"), id.Log, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.close(); err != nil || !bytes.Equal(n.buf[:], f[noteName]) {
		t.Errorf("the note is written differently, %v", err)
	}
	var log, want []byte
	for _, s := range f.segments() {
		want = append(want, f[s]...)
	}
	for i := uint64(1); i <= 10; i++ {
		fr := appendFrame(nil, id.Log, i, payload(i))
		seal(fr, i-1)
		log = append(binary.AppendUvarint(log, uint64(len(fr))), fr...)
	}
	if !bytes.Equal(log, want) {
		t.Errorf("the entries are written differently")
	}
}

// TestEnqueueAllocs pins that an entry of usual size costs no allocation once
// the buffers have grown.
func TestEnqueueAllocs(t *testing.T) {
	l, _ := mustOpen(t, fastDir(t), Options{Mode: SyncNone})
	defer l.Close()
	b := make([]byte, 200)
	done := make(chan struct{}, 1)
	told := func(error) { done <- struct{}{} }
	n := testing.AllocsPerRun(2000, func() {
		if err := l.Enqueue(b, told); err != nil {
			t.Error(err)
		}
		<-done
	})
	if n > 0 {
		t.Errorf("%.2f allocations an entry", n)
	}
}

// TestLargeEntryIsFreed: nothing keeps the buffers of a large entry.
func TestLargeEntryIsFreed(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	start := heap()
	l, _ := mustOpen(t, fastDir(t), Options{})
	defer l.Close()
	if err := put(l, make([]byte, 32<<20)); err != nil {
		t.Fatal(err)
	}
	write(t, l, 2) // the buffers of the group before last are gone too
	if now := heap(); now > start+4<<20 {
		t.Errorf("%d bytes live, %d at the start", now, start)
	}
}

func benchmarkAppend(b *testing.B, mode Mode, parallel int) {
	l, _ := mustOpen(b, b.TempDir(), Options{Mode: mode})
	defer l.Close()
	payload := make([]byte, 200)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	b.SetParallelism(parallel)
	b.RunParallel(func(pb *testing.PB) {
		done := make(chan error, 1)
		told := func(err error) { done <- err }
		for pb.Next() {
			if err := l.Enqueue(payload, told); err != nil {
				b.Error(err)
				return
			}
			if err := <-done; err != nil {
				b.Error(err)
				return
			}
		}
	})
	s := l.Stats()
	b.ReportMetric(float64(s.Syncs)/float64(s.Entries), "syncs/entry")
}

// The time of one entry, alone and as one of many callers.
func BenchmarkAppendSync(b *testing.B)       { benchmarkAppend(b, SyncEpoch, 1) }
func BenchmarkAppendSyncGroup(b *testing.B)  { benchmarkAppend(b, SyncEpoch, 64) }
func BenchmarkAppendNoSync(b *testing.B)     { benchmarkAppend(b, SyncNone, 1) }
func BenchmarkAppendNoSyncMany(b *testing.B) { benchmarkAppend(b, SyncNone, 64) }

// BenchmarkOpenReplay opens a log of 32 MB and replays it.
func BenchmarkOpenReplay(b *testing.B) {
	dir := b.TempDir()
	l, _ := mustOpen(b, dir, Options{Mode: SyncNone})
	payload := make([]byte, 4000)
	for range 8000 {
		if err := l.Enqueue(payload, nil); err != nil {
			b.Fatal(err)
		}
	}
	mustClose(b, l)
	b.SetBytes(8000 * 4000)
	b.ReportAllocs()
	for b.Loop() {
		l, _ := mustOpen(b, dir, Options{})
		if err := l.Replay(context.Background(), 0, func(uint64, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
		mustClose(b, l)
	}
}
