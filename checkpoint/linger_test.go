package checkpoint

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

// timers are those of a Store, whose time passes when the test says so.
type timers struct {
	mu   sync.Mutex
	list []*timer
}

type timer struct {
	after time.Duration
	f     func()
	ended bool
}

func (c *timers) after(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{after: d, f: f}
	c.list = append(c.list, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := !t.ended
		t.ended = true
		return was
	}
}

// running counts the timers that were neither stopped nor have ended.
func (c *timers) running() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.list {
		if !t.ended {
			n++
		}
	}
	return n
}

// pass ends those that run.
func (c *timers) pass() {
	c.mu.Lock()
	var due []func()
	for _, t := range c.list {
		if !t.ended {
			t.ended = true
			due = append(due, t.f)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// passLate ends the newest one although it was stopped: it had begun before.
func (c *timers) passLate() {
	c.mu.Lock()
	f := c.list[len(c.list)-1].f
	c.mu.Unlock()
	f()
}

// opened counts how often a file system was locked, and how often it was let go.
type opened struct {
	vfs.FS
	locks, unlocks atomic.Int64
}

func (o *opened) Lock(name string) (io.Closer, error) {
	c, err := o.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	o.locks.Add(1)
	return unlocking{c, o}, nil
}

type unlocking struct {
	io.Closer
	o *opened
}

func (u unlocking) Close() error {
	u.o.unlocks.Add(1)
	return u.Closer.Close()
}

// want fails the test unless the directory was opened for writing so often
// and is open now or not.
func (o *opened) want(t *testing.T, when string, times int64, open bool) {
	t.Helper()
	if locks, is := o.locks.Load(), o.locks.Load() > o.unlocks.Load(); locks != times || is != open {
		t.Fatalf("%s: opened %d times, open %v; want %d, %v", when, locks, is, times, open)
	}
}

// lingeringStore gives a store in memory whose timers the test holds.
func lingeringStore(t *testing.T) (*Store, *opened, *timers) {
	t.Helper()
	fsys, clock := &opened{FS: vfs.NewMem()}, &timers{}
	s := mustOpen(t, "db/checkpoint", Options{FS: fsys, StoreID: storeID, Linger: time.Minute, after: clock.after})
	return s, fsys, clock
}

// TestLinger: Writers that follow each other open the directory once, and one
// behind the end of the time opens it again. It never is open beside a timer that
// has ended, nor does a timer run beside a Writer.
func TestLinger(t *testing.T) {
	s, fsys, clock := lingeringStore(t)
	m := mustWrite(t, s, model{}, 1, 2, 700, 20)
	fsys.want(t, "after the first", 1, true)
	if n := clock.running(); n != 1 || clock.list[0].after != time.Minute {
		t.Fatalf("%d timers, of %v", n, clock.list[0].after)
	}
	w, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := clock.running(); n != 0 {
		t.Fatalf("%d timers beside a Writer", n)
	}
	clock.passLate()
	fsys.want(t, "beside a Writer", 1, true)
	w.Abort()
	if n := clock.running(); n != 1 {
		t.Fatalf("%d timers after Abort", n)
	}
	m = mustWrite(t, s, m, 2, 2, 700, 20)
	m = mustWrite(t, s, m, 3, 2, 700, 20)
	fsys.want(t, "after three", 1, true)
	clock.pass()
	fsys.want(t, "after the time", 1, false)
	clock.passLate()
	holds(t, s, s.List()[0], m)
	m = mustWrite(t, s, m, 4, 2, 700, 20)
	fsys.want(t, "after one more", 2, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fsys.want(t, "after Close", 2, false)
	if n := clock.running(); n != 0 {
		t.Fatalf("%d timers after Close", n)
	}
	clock.passLate()
	s = mustOpen(t, "db/checkpoint", Options{FS: fsys, StoreID: storeID})
	holds(t, s, s.List()[0], m)
}

// TestLingerActivity: Pebble is open until a whole Linger has passed without a
// change, looked for four times in it; a change begins it anew, and so does a
// Writer. Close does not wait for it.
func TestLingerActivity(t *testing.T) {
	var changes atomic.Uint64
	fsys, clock := &opened{FS: vfs.NewMem()}, &timers{}
	s := mustOpen(t, "db/checkpoint", Options{
		FS: fsys, StoreID: storeID, Linger: time.Minute, after: clock.after, Activity: changes.Load,
	})
	m := mustWrite(t, s, model{}, 1, 2, 700, 20)
	// quiet has so many looks find that nothing has changed, and be waited for.
	quiet := func(when string, looks int) {
		t.Helper()
		for range looks {
			clock.pass()
			fsys.want(t, when, 1, true)
			if n := clock.running(); n != 1 {
				t.Fatalf("%s: %d timers", when, n)
			}
		}
	}
	for range 3 {
		quiet("before a change", 3)
		changes.Add(1)
		quiet("in the look that finds it", 1)
	}
	quiet("behind a change", 3)
	m = mustWrite(t, s, m, 2, 2, 700, 20)
	quiet("behind a Writer", 3)
	clock.pass()
	fsys.want(t, "after the time", 1, false)
	changes.Add(1)
	if n := clock.running(); n != 0 {
		t.Fatalf("%d timers after the time", n)
	}
	for _, timer := range clock.list {
		if timer.after != time.Minute/4 {
			t.Fatalf("a timer of %v", timer.after)
		}
	}
	m = mustWrite(t, s, m, 3, 2, 700, 20)
	changes.Add(1)
	clock.pass()
	fsys.want(t, "after one more", 2, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fsys.want(t, "after Close", 2, false)
	if n := clock.running(); n != 0 {
		t.Fatalf("%d timers after Close", n)
	}
	clock.passLate()
	s = mustOpen(t, "db/checkpoint", Options{FS: fsys, StoreID: storeID})
	holds(t, s, s.List()[0], m)
}

// TestLingerNot: without Linger, and after a write that failed, nothing stays
// open; with KeepOpen it does, and no timer runs.
func TestLingerNot(t *testing.T) {
	for _, c := range []struct {
		name         string
		linger       time.Duration
		keep, broken bool
		open         bool
	}{
		{"no time", 0, false, false, false},
		{"kept", time.Minute, true, false, true},
		{"failed", time.Minute, false, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var broken atomic.Bool
			fsys := &opened{FS: errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				// Where it cannot link it copies.
				in := op.Kind == errorfs.OpLink || op.Kind == errorfs.OpCreate && strings.HasPrefix(op.Path, "db/checkpoint/0")
				if broken.Load() && in && strings.HasSuffix(op.Path, ".sst") {
					return syscall.ENOSPC
				}
				return nil
			}))}
			clock := &timers{}
			s := mustOpen(t, "db/checkpoint", Options{
				FS: fsys, StoreID: storeID, KeepOpen: c.keep, Linger: c.linger, after: clock.after,
			})
			broken.Store(c.broken)
			if _, err := write(t.Context(), s, model{}, 1, 2, 700, 20); c.broken != errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			fsys.want(t, "after the first", 1, c.open)
			if n := clock.running(); n != 0 {
				t.Fatalf("%d timers", n)
			}
		})
	}
}

// TestLingerReaders: while Pebble lingers, those who read the directory see what
// was committed, in this process or elsewhere, and a term is found without opening
// it again. A term that is asked for while it closes is found too.
func TestLingerReaders(t *testing.T) {
	s, fsys, clock := lingeringStore(t)
	m := mustWrite(t, s, model{}, 1, 2, 700, 20)
	for i := range uint64(3) {
		m = mustWrite(t, s, m, 2+i, 2, 700, 20)
		other := mustOpen(t, "db/checkpoint", Options{FS: fsys, StoreID: storeID, ReadOnly: true})
		holds(t, other, other.List()[0], m)
		dest := mustOpen(t, "copy/checkpoint", Options{FS: vfs.NewMem(), StoreID: storeID})
		if _, err := s.CopyTo(t.Context(), dest, 0); err != nil {
			t.Fatal(err)
		}
		holds(t, dest, dest.List()[0], m)
	}
	stop := make(chan struct{})
	var asked sync.WaitGroup
	asked.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Form(m.header.LastTerm, nil); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range uint64(20) {
		clock.pass()
		if _, err := write(t.Context(), s, m, 100+i, 1, 100, 0); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	asked.Wait()
	fsys.want(t, "in the end", 21, true)
}

// TestLingerRace: the time ends at any moment of Writers, of a Close, and of
// copies into the store. Nothing finds the directory locked, and none is lost.
func TestLingerRace(t *testing.T) {
	fsys := vfs.NewMem()
	src := mustOpen(t, "src/checkpoint", Options{FS: fsys, StoreID: storeID})
	for round := range uint64(20) {
		dir := "db/checkpoint"
		clock := &timers{}
		s, err := Open(t.Context(), dir, Options{FS: fsys, StoreID: storeID, Linger: time.Minute, after: clock.after})
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var passing sync.WaitGroup
		for range 2 {
			passing.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						clock.pass()
						runtime.Gosched()
					}
				}
			})
		}
		m := model{}
		s.RequireFull()
		for i := range uint64(8) {
			if m, err = write(t.Context(), s, m, i, 1, 300, 5); err != nil {
				t.Errorf("round %d, %d: %v", round, i, err)
			}
		}
		src.RequireFull()
		mustWrite(t, src, model{}, round, 1, 300, 5)
		if _, err := src.CopyTo(t.Context(), s, 0); err != nil {
			t.Errorf("round %d: copy: %v", round, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("round %d: close: %v", round, err)
		}
		close(stop)
		passing.Wait()
	}
}

// stuckInClosing gives a store with one checkpoint whose vault hangs in the close
// that its timer has begun, until the test ends. ended waits for the timer.
func stuckInClosing(t *testing.T) (s *Store, m model, ended *sync.WaitGroup) {
	t.Helper()
	var hang atomic.Bool
	entered, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	fsys := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && hang.CompareAndSwap(true, false) {
			close(entered)
			<-release
		}
		return nil
	}))
	clock := &timers{}
	s = mustOpen(t, "db/checkpoint", Options{
		FS: fsys, StoreID: storeID, Linger: time.Minute, Timeout: 500 * time.Millisecond, after: clock.after,
	})
	m = mustWrite(t, s, model{}, 1, 2, 700, 20)
	hang.Store(true)
	ended = new(sync.WaitGroup)
	ended.Go(clock.pass)
	<-entered
	return s, m, ended
}

// TestLingerStuck: a vault that does not close when its time ends keeps Writers
// waiting as long as its deadline lasts, and no longer than their contexts; then
// each is told at once, and reading goes on.
func TestLingerStuck(t *testing.T) {
	s, m, ended := stuckInClosing(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.takeOver(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("while it closes: %v", err)
	}
	for range 3 {
		if _, err := s.Begin(t.Context()); !errors.Is(err, vault.ErrStuck) {
			t.Fatal(err)
		}
	}
	ended.Wait()
	holds(t, s, s.List()[0], m)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context()); !errors.Is(err, errs.ErrClosed) {
		t.Fatal(err)
	}
}

// TestLingerClose: Close waits for a timer that closes the vault, and tells how
// that went.
func TestLingerClose(t *testing.T) {
	s, _, ended := stuckInClosing(t)
	if err := s.Close(); !errors.Is(err, vault.ErrStuck) {
		t.Fatal(err)
	}
	ended.Wait()
	if err := s.Close(); !errors.Is(err, errs.ErrClosed) {
		t.Fatal(err)
	}
}

// manifest gives the name and the size of the newest manifest.
func manifest(t *testing.T, fsys vfs.FS, dir string) (name string, size int64) {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n, "MANIFEST-") && n > name {
			name = n
		}
	}
	info, err := fsys.Stat(fsys.PathJoin(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return name, info.Size()
}

// TestLingerManifest: what Pebble notes of each checkpoint does not grow for ever
// while a store lingers, and a crash where it begins anew loses nothing.
func TestLingerManifest(t *testing.T) {
	const dir, bound = "db/checkpoint", 16 << 10
	c := newCrashing()
	s := mustOpen(t, dir, Options{FS: c, StoreID: storeID, Linger: time.Hour})
	states := []model{{}, {}, mustWrite(t, s, model{}, 1, 1, 100, 3)}
	first, _ := manifest(t, c, dir)
	swept := false
	for i := uint64(2); i < 400; i++ {
		name, size := manifest(t, c, dir)
		if size > bound {
			t.Fatalf("%s has %d bytes", name, size)
		}
		if i%40 == 0 {
			s.RequireFull()
		}
		var next model
		clones := c.sweep(func() { next = mustWrite(t, s, states[2], i, 1, 100, 3) })
		states = append(states[1:], next)
		if now, _ := manifest(t, c, dir); now != name && !swept {
			checkClones(t, "a new manifest", dir, clones, states, false)
			swept = true
		}
	}
	if last, _ := manifest(t, c, dir); last == first || !swept {
		t.Fatalf("%s is still the manifest", last)
	}
	holds(t, s, s.List()[0], states[2])
}

// TestLingerEnds: with the clock of the operating system, what lingers is given
// back, and by Close before that.
func TestLingerEnds(t *testing.T) {
	for _, linger := range []time.Duration{time.Millisecond, time.Hour} {
		fds, goroutines := descriptors(), runtime.NumGoroutine()
		s := mustOpen(t, t.TempDir()+"/checkpoint", Options{StoreID: storeID, Linger: linger})
		m := mustWrite(t, s, model{}, 1, 2, 700, 20)
		mustWrite(t, s, m, 2, 2, 700, 20)
		if linger == time.Hour {
			if descriptors() < fds+1 && fds >= 0 || runtime.NumGoroutine() <= goroutines {
				t.Fatal("it does not linger")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		deadline := time.Now().Add(20 * time.Second)
		for runtime.NumGoroutine() > goroutines || descriptors() > fds {
			if time.Now().After(deadline) {
				t.Fatalf("%v: %d goroutines and %d descriptors, were %d and %d",
					linger, runtime.NumGoroutine(), descriptors(), goroutines, fds)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
