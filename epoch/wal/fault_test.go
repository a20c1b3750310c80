package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// errDisk is the failure that the faulty device injects.
var errDisk = errors.New("injected failure")

// faulty is a Device that fails at chosen operations and records them.
type faulty struct {
	Device
	dir string // of the segments

	mu    sync.Mutex
	ops   []string
	fail  func(op string, n int) bool // n counts all operations
	torn  bool                        // a failing Append leaves half of its bytes
	hold  chan struct{}               // Sync waits for it to be closed
	begun chan struct{}               // told when a Sync begins, if there is room
}

// step records an operation and says whether it must fail.
func (d *faulty) step(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.ops)
	d.ops = append(d.ops, op)
	if d.fail != nil && d.fail(op, n) {
		return fmt.Errorf("%s: %w", op, errDisk)
	}
	return nil
}

// ran is the number of operations so far.
func (d *faulty) ran() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ops)
}

func (d *faulty) Append(first uint64, frames [][]byte) (bool, error) {
	if err := d.step("append"); err != nil {
		if d.torn {
			var b []byte
			for _, f := range frames {
				b = append(append(b, byte(len(f)|0x80), byte(len(f)>>7)), f...)
			}
			list, lerr := listLog(d.dir)
			if lerr != nil {
				return false, lerr
			}
			f, ferr := os.OpenFile(list.segs[len(list.segs)-1].path, os.O_APPEND|os.O_WRONLY, 0)
			if ferr != nil {
				return false, ferr
			}
			_, werr := f.Write(b[:len(b)/2])
			return false, errors.Join(err, werr, f.Close())
		}
		return false, err
	}
	switched, err := d.Device.Append(first, frames)
	if switched {
		d.mu.Lock()
		d.ops[len(d.ops)-1] = "append+"
		d.mu.Unlock()
	}
	return switched, err
}

func (d *faulty) Sync() error {
	d.mu.Lock()
	hold := d.hold
	d.mu.Unlock()
	select {
	case d.begun <- struct{}{}:
	default:
	}
	if hold != nil {
		<-hold
	}
	if err := d.step("sync"); err != nil {
		return err
	}
	return d.Device.Sync()
}

func (d *faulty) SyncDir() error {
	if err := d.step("syncdir"); err != nil {
		return err
	}
	return d.Device.SyncDir()
}

// wrap returns a faulty device and the option that puts it in place.
func wrap(dir string) (*faulty, func(Device) Device) {
	d := &faulty{dir: filepath.Join(dir, logName), begun: make(chan struct{}, 1)}
	return d, func(real Device) Device {
		d.Device = real
		return d
	}
}

// TestREC09FailedSync fails the sync of entry 7.
func TestREC09FailedSync(t *testing.T) {
	dir := fastDir(t)
	d, w := wrap(dir)
	l, _ := mustOpen(t, dir, Options{Wrap: w})
	write(t, l, 6)
	syncs := 0
	d.fail = func(op string, _ int) bool { // once: a second sync would succeed
		if op == "sync" {
			syncs++
		}
		return op == "sync" && syncs == 1
	}
	err := put(l, payload(7))
	if !errors.Is(err, errs.ErrReadOnly) || !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "sync entries 7 to 7") {
		t.Errorf("entry 7: %v, want ErrReadOnly with the cause", err)
	}
	for range 3 {
		if err := l.Enqueue(payload(8), func(error) { t.Error("done of a refused entry was called") }); !errors.Is(err, errs.ErrReadOnly) || !errors.Is(err, errDisk) {
			t.Errorf("entry 8: %v, want ErrReadOnly with the cause", err)
		}
		if err := l.Sync(context.Background()); !errors.Is(err, errs.ErrReadOnly) {
			t.Errorf("Sync: %v, want ErrReadOnly", err)
		}
	}
	check(t, l, 1, 6)
	if syncs != 1 || l.Durable() != 6 {
		t.Errorf("%d syncs since, durable %d, want one and 6", syncs, l.Durable())
	}
	if err := l.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close: %v, want the cause", err)
	}
	l, rep := mustOpen(t, dir, Options{})
	if rep.LastIndex != 6 && rep.LastIndex != 7 {
		t.Fatalf("%+v, want 6 or 7 entries", rep)
	}
	check(t, l, 1, rep.LastIndex)
	mustClose(t, l)
}

// TestPoisonReachesTheQueue: everything queued behind a failure fails with it,
// in order, and a caller that waits for room is let go.
func TestPoisonReachesTheQueue(t *testing.T) {
	dir := fastDir(t)
	d, w := wrap(dir)
	d.hold = make(chan struct{})
	d.fail = func(op string, _ int) bool { return op == "sync" }
	l, _ := mustOpen(t, dir, Options{Wrap: w, queue: 4000})
	var mu sync.Mutex
	var order []uint64
	enqueue := func(i uint64) error {
		return l.Enqueue(make([]byte, 1000), func(err error) {
			if !errors.Is(err, errDisk) || !errors.Is(err, errs.ErrReadOnly) {
				t.Errorf("entry %d: %v, want the failure", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
	}
	if err := enqueue(1); err != nil {
		t.Fatal(err)
	}
	<-d.begun // entry 1 is being synced, what comes now is queued behind it
	for i := uint64(2); i <= 4; i++ {
		if err := enqueue(i); err != nil {
			t.Fatal(err)
		}
	}
	blocked := make(chan error, 1)
	go func() { blocked <- enqueue(5) }()
	select {
	case err := <-blocked:
		t.Fatalf("a full queue let an entry in: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(d.hold)
	if err := <-blocked; !errors.Is(err, errDisk) {
		t.Errorf("the waiting caller: %v, want the failure", err)
	}
	_ = l.Close() // the failure, as above
	if want := []uint64{1, 2, 3, 4}; !slices.Equal(order, want) {
		t.Errorf("done in the order %v, want %v", order, want)
	}
}

// TestREC09EveryFailure fails the n-th operation of a run, for every n, once
// and for ever, with and without half a write; after a reopening the state is
// what was acknowledged, or that and entries that were under way.
func TestREC09EveryFailure(t *testing.T) {
	ctx := context.Background()
	for _, torn := range []bool{false, true} {
		for _, forever := range []bool{false, true} {
			for n := 0; ; n++ {
				dir := fastDir(t)
				d, w := wrap(dir)
				d.torn = torn
				d.fail = func(_ string, i int) bool { return i == n || forever && i > n }
				l, _ := mustOpen(t, dir, Options{Wrap: w, SegmentBytes: 300})
				l.step = d.step // the cut: a failure there stops nothing
				acked, sent, covered := uint64(0), uint64(0), uint64(0)
				var failed error
				for i := uint64(1); i <= 12; i++ {
					err := put(l, payload(i))
					if err == nil {
						acked = i
						if failed != nil {
							t.Fatalf("operation %d: entry %d was accepted after %v", n, i, failed)
						}
					} else if failed == nil {
						failed, sent = err, i
					}
					if i == 8 && failed == nil {
						covered = 6
						if _, _, err := l.DropThrough(ctx, covered); err != nil && !errors.Is(err, errDisk) {
							t.Fatalf("operation %d: cut: %v, want the failure", n, err)
						}
					}
				}
				if l.Durable() != acked {
					t.Fatalf("operation %d: durable %d, acknowledged %d", n, l.Durable(), acked)
				}
				if err := l.Close(); (err != nil) != (failed != nil) {
					t.Fatalf("operation %d: Close = %v after %v", n, err, failed)
				}
				if failed != nil && (!errors.Is(failed, errDisk) || !errors.Is(failed, errs.ErrReadOnly)) {
					t.Fatalf("operation %d: %v, want the failure", n, failed)
				}
				l, rep := mustOpen(t, dir, Options{Cover: covers(covered)})
				if rep.LastIndex < acked || rep.LastIndex > max(acked, sent) {
					t.Fatalf("operation %d: %+v, acknowledged %d, sent %d", n, rep, acked, sent)
				}
				check(t, l, covered+1, rep.LastIndex)
				write(t, l, 2)
				mustClose(t, l)
				if d.ran() <= n {
					t.Logf("half a write %v, for ever %v: %d operations failed in turn", torn, forever, n)
					break
				}
			}
		}
	}
}

// TestREC10FileLimit lets the kernel refuse the second half of a write.
func TestREC10FileLimit(t *testing.T) {
	dir := t.TempDir()
	if got := runChild(t, "limit", dir); got != "good: 8\n" {
		t.Fatalf("child: %q, want 8 good entries", got)
	}
	rep := reopen(t, dir, 8)
	if rep.CutBytes != 30 {
		t.Errorf("%+v, want the 30 bytes of half an entry cut", rep)
	}
}

// TestREC12HeldSync: while a sync is under way nothing of its entries is
// acknowledged or replayed, and a crash then takes back nothing that was.
func TestREC12HeldSync(t *testing.T) {
	dir := fastDir(t)
	d, w := wrap(dir)
	l, _ := mustOpen(t, dir, Options{Wrap: w})
	write(t, l, 3)
	<-d.begun
	hold := make(chan struct{})
	d.mu.Lock()
	d.hold = hold
	d.mu.Unlock()
	var done atomic.Int32
	for i := uint64(4); i <= 6; i++ {
		if err := l.Enqueue(payload(i), func(error) { done.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	<-d.begun
	time.Sleep(20 * time.Millisecond)
	if done.Load() != 0 || l.Durable() != 3 || l.Last() != 6 {
		t.Errorf("%d done, durable %d, last %d while the sync is held", done.Load(), l.Durable(), l.Last())
	}
	check(t, l, 1, 3)
	crash := load(t, dir)
	if i, ok, err := readNote(filepath.Join(dir, noteName), l.Identity().Log); i != 3 || !ok || err != nil {
		t.Errorf("the note says %d, %v, %v, want 3", i, ok, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := l.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync: %v, want the context's error", err)
	}
	close(hold)
	if err := l.Sync(context.Background()); err != nil || done.Load() != 3 || l.Durable() != 6 {
		t.Errorf("after the sync: %v, %d done, durable %d", err, done.Load(), l.Durable())
	}
	mustClose(t, l)
	// Every length that the crash may have left of what was not synced.
	seg := crash.segments()[0]
	for cut := entryOffset(1, 4); cut <= len(crash[seg]); cut++ {
		copied := crash.with(seg, crash[seg][:cut]).store(t, filepath.Join(dir, "copy"))
		l, rep := mustOpen(t, copied, Options{})
		if rep.LastIndex < 3 {
			t.Fatalf("cut at %d: %+v, want at least what was acknowledged", cut, rep)
		}
		check(t, l, 1, rep.LastIndex)
		mustClose(t, l)
	}
}

// TestSyncOrder: the names of a new segment are durable before the entry is
// acknowledged, in logs of any segment size; a reopened log and one whose front
// was cut count on.
func TestSyncOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	dir := fastDir(t)
	logDir := filepath.Join(dir, logName)
	count := func() int {
		list, err := listLog(logDir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list.segs)
	}
	made, covered := 0, uint64(0)
	for range 120 {
		d, w := wrap(dir)
		l, _ := mustOpen(t, dir, Options{Wrap: w, SegmentBytes: 100 * (1 + rng.IntN(9)), Cover: covers(covered)})
		for range 1 + rng.IntN(10) {
			if rng.IntN(5) == 0 {
				covered = l.Last() - min(l.Last()-covered, rng.Uint64N(3))
				if _, _, err := l.DropThrough(t.Context(), covered); err != nil {
					t.Fatal(err)
				}
			}
			segments := count()
			d.mu.Lock()
			d.ops = nil
			d.mu.Unlock()
			size := 99 - frameOverhead // 100 bytes in the file: segments that are exactly full
			if rng.IntN(3) == 0 {
				size = 1 + rng.IntN(400)
			}
			if err := put(l, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			want := []string{"append", "sync"}
			if now := count(); now != segments {
				made++
				want = []string{"append+", "sync", "syncdir"}
			}
			d.mu.Lock()
			if !slices.Equal(d.ops, want) {
				t.Fatalf("%v, want %v", d.ops, want)
			}
			d.mu.Unlock()
		}
		mustClose(t, l)
	}
	if made < 100 {
		t.Errorf("only %d segments were made", made)
	}
}

// TestSyncInterval runs the timer in a bubble of fake time.
func TestSyncInterval(t *testing.T) {
	dir := fastDir(t)
	synctest.Test(t, func(t *testing.T) {
		l, _ := mustOpen(t, dir, Options{Mode: SyncInterval, Interval: time.Second})
		write(t, l, 3)
		time.Sleep(time.Second - 1)
		synctest.Wait()
		if l.Durable() != 0 || l.Stats().Syncs != 0 {
			t.Errorf("durable %d before the interval is over", l.Durable())
		}
		check(t, l, 1, 3)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if l.Durable() != 3 || l.Stats().Syncs != 1 {
			t.Errorf("durable %d after the interval, %+v", l.Durable(), l.Stats())
		}
		time.Sleep(time.Hour) // nothing to sync, no timer
		synctest.Wait()
		write(t, l, 1)
		if err := l.Sync(t.Context()); err != nil || l.Durable() != 4 {
			t.Errorf("Sync: %v, durable %d", err, l.Durable())
		}
		write(t, l, 1)
		mustClose(t, l)
		if s := l.Stats(); s.Syncs != 3 || l.Durable() != 5 {
			t.Errorf("after Close: %+v, durable %d", s, l.Durable())
		}
	})
	reopen(t, dir, 5)
}

// TestSyncIntervalFailure: a sync that nobody waits for stops the log.
func TestSyncIntervalFailure(t *testing.T) {
	dir := fastDir(t)
	synctest.Test(t, func(t *testing.T) {
		d, w := wrap(dir)
		d.fail = func(op string, _ int) bool { return op == "sync" }
		l, _ := mustOpen(t, dir, Options{Mode: SyncInterval, Interval: time.Second, Wrap: w})
		write(t, l, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := l.Enqueue(payload(2), nil); !errors.Is(err, errDisk) || !errors.Is(l.Err(), errDisk) {
			t.Errorf("Enqueue: %v, Err: %v, want the failure", err, l.Err())
		}
		if err := l.Close(); !errors.Is(err, errDisk) {
			t.Errorf("Close: %v, want the failure", err)
		}
	})
}

// TestSyncNone: no sync but in Sync and Close.
func TestSyncNone(t *testing.T) {
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, Options{Mode: SyncNone})
	write(t, l, 20)
	if s := l.Stats(); s.Syncs != 0 || l.Durable() != 0 || s.Entries != 20 {
		t.Errorf("%+v, durable %d", s, l.Durable())
	}
	if err := l.Sync(t.Context()); err != nil || l.Durable() != 20 {
		t.Errorf("Sync: %v, durable %d", err, l.Durable())
	}
	write(t, l, 1)
	mustClose(t, l)
	if s := l.Stats(); s.Syncs != 2 {
		t.Errorf("%+v, want two syncs", s)
	}
	reopen(t, dir, 21)
}

// order notes in which order segments are made and their names synced.
type order struct {
	Device
	unnamed, most int
	bytes         int // of the largest write of several frames
}

func (o *order) Append(first uint64, frames [][]byte) (bool, error) {
	switched, err := o.Device.Append(first, frames)
	if switched {
		o.unnamed++
	}
	o.most = max(o.most, o.unnamed)
	total := 0
	for _, f := range frames {
		total += len(f)
	}
	if len(frames) > 1 {
		o.bytes = max(o.bytes, total)
	}
	return switched, err
}

func (o *order) SyncDir() error {
	o.unnamed = 0
	return o.Device.SyncDir()
}

// TestNamesOfSegments shows that at most one segment at a time has a name that
// is not durable, however seldom entries are synced.
func TestNamesOfSegments(t *testing.T) {
	for _, mode := range []Mode{SyncEpoch, SyncInterval, SyncNone} {
		var o *order
		l, _ := mustOpen(t, fastDir(t), Options{
			Mode: mode, Interval: time.Hour, SegmentBytes: 300,
			Wrap: func(d Device) Device { o = &order{Device: d}; return o },
		})
		write(t, l, 60)
		// A group of several segments: all of it is queued while a job runs.
		queued := make(chan struct{})
		held := make(chan error, 1)
		running := make(chan struct{})
		go func() {
			held <- l.do(context.Background(), func() error { close(running); <-queued; return nil })
		}()
		<-running
		for range 60 {
			if err := l.Enqueue(make([]byte, 40), nil); err != nil {
				t.Fatal(err)
			}
		}
		close(queued)
		if err := <-held; err != nil {
			t.Fatal(err)
		}
		if err := l.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		dirSyncs := l.Stats().DirSyncs
		mustClose(t, l)
		if o.bytes <= 150 || o.bytes > 300 {
			t.Errorf("mode %d: %d bytes were written at once, a segment is 300", mode, o.bytes)
		}
		if o.most != 1 || o.unnamed != 0 || dirSyncs < 5 {
			t.Errorf("mode %d: %d new segments were nameless at once, %d at the end, %d syncs of the directory", mode, o.most, o.unnamed, dirSyncs)
		}
	}
}
