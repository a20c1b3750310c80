package checkpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// crashing is a file system in memory that is copied as a crash would leave
// it, before each operation that writes, with 0, 50 and 100 % of what was not
// synced.
type crashing struct {
	vfs.FS
	mem *vfs.MemFS

	links sync.Mutex

	mu     sync.Mutex // Pebble removes files on a goroutine of its own.
	on     bool
	clones []clone
	points int
}

// linking makes no link while a copy is made: the file system takes its two
// locks in another order in Link than elsewhere, which can end in a deadlock.
type linking struct {
	vfs.FS
	c *crashing
}

func (l *linking) Link(from, to string) error {
	l.c.links.Lock()
	defer l.c.links.Unlock()
	return l.FS.Link(from, to)
}

// clone is the disk after one crash.
type clone struct {
	name string
	fs   *vfs.MemFS
}

func newCrashing() *crashing { return crashingOn(vfs.NewCrashableMem()) }

func crashingOn(mem *vfs.MemFS) *crashing {
	c := &crashing{mem: mem}
	c.FS = errorfs.Wrap(&linking{FS: mem, c: c}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.on || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
			return nil
		}
		c.points++
		for _, percent := range []int{0, 50, 100} {
			cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(c.points), uint64(percent)))}
			c.links.Lock()
			left := mem.CrashClone(cfg)
			c.links.Unlock()
			c.clones = append(c.clones, clone{fmt.Sprintf("op %d (kind %d, %s), %d%%", c.points, op.Kind, op.Path, percent), left})
		}
		return nil
	}))
	return c
}

// sweep runs f and gives what crashes in it leave.
func (c *crashing) sweep(f func()) []clone {
	set := func(on bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.on = on
	}
	set(true)
	f()
	set(false)
	got := c.clones
	c.clones = nil
	return got
}

// survives checks the disk after a crash: the newest checkpoint is one of
// states (nil: none at all is right too), whole, the older one as well, and
// the next two checkpoints work.
func survives(dir string, fsys vfs.FS, states []model, none bool) (which int, err error) {
	ctx := context.Background()
	s, err := Open(ctx, dir, Options{FS: fsys, StoreID: storeID})
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	which = -1
	var m model
	list := s.List()
	if len(list) == 0 && !none {
		return which, fmt.Errorf("no checkpoint is left")
	}
	for k := 0; k < min(2, len(list)); k++ {
		got, err := read(ctx, s, list[k])
		if err != nil {
			return which, err
		}
		found := -1
		for i, want := range states {
			if differ(got, want) == "" {
				found = i
			}
		}
		switch {
		case found < 0:
			return which, fmt.Errorf("checkpoint %+v is none that was written", list[k])
		case k == 0:
			which, m = found, got
		case found != which-1:
			return which, fmt.Errorf("checkpoint %d is kept with %d", which, found)
		}
	}
	if older, ok := s.Older(); ok != (len(list) > 1) || ok && older != list[1] {
		return which, fmt.Errorf("older is %+v of %+v", older, list)
	}
	if names, err := fsys.List(dir + ".tmp"); err == nil {
		return which, fmt.Errorf("temporary files are left: %v", names)
	}
	for seed := range uint64(2) {
		if m, err = write(ctx, s, m, 1000+seed, 2, 900, 30); err != nil {
			return which, fmt.Errorf("the next checkpoint: %w", err)
		}
		got, err := read(ctx, s, s.List()[0])
		if err != nil {
			return which, err
		}
		if d := differ(got, m); d != "" {
			return which, fmt.Errorf("the next checkpoint: %s", d)
		}
	}
	return which, nil
}

// checkClones runs survives on each.
func checkClones(t *testing.T, what, dir string, clones []clone, states []model, none bool) {
	t.Helper()
	count := map[int]int{}
	for _, c := range clones {
		which, err := survives(dir, c.fs, states, none)
		if err != nil {
			t.Fatalf("%s, %s: %v", what, c.name, err)
		}
		count[which]++
	}
	t.Logf("%s: %d crash points, %d crashes; newest checkpoint afterwards (-1: none): %v", what, len(clones)/3, len(clones), count)
}

// TestCrashCommit sweeps over commits of every kind, with Pebble kept open,
// lingering and not.
func TestCrashCommit(t *testing.T) {
	for name, o := range openings {
		c := newCrashing()
		dir := "db/checkpoint"
		o.FS, o.StoreID = c, storeID
		s := mustOpen(t, dir, o)
		states := []model{{}}
		step := func(what string, nfacts, nterms int) {
			t.Helper()
			last := states[len(states)-1]
			clones := c.sweep(func() { last = mustWrite(t, s, last, uint64(len(states)), nfacts, 3000, nterms) })
			states = append(states, last)
			// An older one may be the newest but never an older than that.
			checkClones(t, fmt.Sprintf("%s, %s", name, what), dir, clones, states[1:], len(states) == 2)
		}
		step("first", 4, 300)
		step("incremental", 2, 100)
		step("incremental, two tables", 2, 25000)
		s.RequireFull()
		step("full", 4, 300)
		step("incremental that drops a generation", 2, 100)
		if got := s.Stats(); got.Full != 2 || got.Incremental != 3 || got.Elements != 2 {
			t.Fatalf("%+v", got)
		}
	}
}

// TestCrashOpen sweeps over Open after a crash in the middle of a write, which
// removes what that left, and over Close.
func TestCrashOpen(t *testing.T) {
	mem := vfs.NewCrashableMem()
	dir := "db/checkpoint"
	s := mustOpen(t, dir, Options{FS: mem, StoreID: storeID})
	m1 := mustWrite(t, s, model{}, 1, 3, 3000, 300)
	m2 := mustWrite(t, s, m1, 2, 3, 3000, 300)
	w, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Facts(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	c := crashingOn(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}))
	if names, err := c.List(dir + ".tmp"); err != nil || len(names) == 0 {
		t.Fatalf("the crash left nothing: %v, %v", names, err)
	}
	w.Abort()
	clones := c.sweep(func() {
		for _, keep := range []bool{false, true} {
			s, err := Open(t.Context(), dir, Options{FS: c, StoreID: storeID, KeepOpen: keep})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	checkClones(t, "open and close", dir, clones, []model{m1, m2}, false)
}

// TestCrashCopy sweeps over a backup into an empty directory, an incremental
// one, and one that replaces another chain.
func TestCrashCopy(t *testing.T) {
	src := mustOpen(t, "db/checkpoint", inMemory())
	m1 := mustWrite(t, src, model{}, 1, 3, 3000, 300)
	c := newCrashing()
	dest := mustOpen(t, "backup/checkpoint", Options{FS: c, StoreID: storeID})
	copyTo := func() {
		if _, err := src.CopyTo(t.Context(), dest, 0); err != nil {
			t.Fatal(err)
		}
	}
	clones := c.sweep(copyTo)
	checkClones(t, "first copy", "backup/checkpoint", clones, []model{m1}, true)
	m2 := mustWrite(t, src, m1, 2, 3, 3000, 300)
	m3 := mustWrite(t, src, m2, 3, 3, 3000, 300)
	clones = c.sweep(copyTo)
	oneOrThree(t, clones) // m2 comes with m3 or not at all
	checkClones(t, "incremental copy", "backup/checkpoint", clones, []model{m1, m2, m3}, false)
	src.RequireFull()
	m4 := mustWrite(t, src, m3, 4, 3, 3000, 300)
	clones = c.sweep(copyTo)
	oneOrThree(t, clones)
	checkClones(t, "copy that replaces", "backup/checkpoint", clones, []model{m1, m2, m3, m4}, false)
}

// oneOrThree checks that each clone has one element or three: elements that are
// copied together are let in together.
func oneOrThree(t *testing.T, clones []clone) {
	t.Helper()
	for _, cl := range clones {
		s, err := Open(t.Context(), "backup/checkpoint", Options{FS: cl.fs})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.List()); n != 1 && n != 3 {
			t.Fatalf("%s: %d elements", cl.name, n)
		}
		_ = s.Close()
	}
}
