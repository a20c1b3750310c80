package fuzz

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// diskUse is the size of all files of a directory.
func diskUse(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // it went meanwhile
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// deleted counts the files that are open and have no name any more.
func deleted(t *testing.T) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors cannot be listed here: %v", err)
	}
	for _, e := range list {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.HasSuffix(to, "(deleted)") {
			n++
		}
	}
	return n
}

// peak gives the most memory that objects took while f ran, live or not yet
// collected.
func peak(f func()) int64 {
	var most atomic.Int64
	look := func() {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		most.Store(max(most.Load(), int64(s[0].Value.Uint64())))
	}
	done := make(chan struct{})
	var w sync.WaitGroup
	w.Go(func() {
		for {
			look()
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	f()
	close(done)
	w.Wait()
	look()
	return most.Load()
}

// Building a view takes not much more memory than keeping it, also when it is
// built by opening from a checkpoint; writers go on while it is registered.
func TestMEM04(t *testing.T) {
	n := sized(5_000_000, 200_000, 40_000)
	dir := filepath.Join(t.TempDir(), "store")
	o := &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncNone}
	w := newWorld(t, dir, o)
	empty := heap()
	for at := 0; at < n; at += 20_000 {
		b := triegs.Batch{Time: time.Unix(1, 0)}
		for i := at; i < at+20_000; i++ {
			x := (i * 7919) % n
			b.Events = append(b.Events, triegs.Edge("R", triegs.Int(int64(i)), triegs.Int(int64(x))))
		}
		w.append(b)
	}
	base := heap() - empty
	registering := peak(func() { w.register("q", "q(x, y, z) :- R(x, y), R(y, z).") }) - empty
	steady := heap() - empty
	saving := peak(func() {
		if err := w.db.Checkpoint(w.ctx); err != nil {
			t.Fatal(err)
		}
	}) - empty
	digest := digestOf(t, w.db)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	w.db = nil
	without := heap()
	opening := peak(func() {
		db, err := triegs.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		w.db = db
	}) - without
	opened := heap() - without
	if got := digestOf(t, w.db); got != digest {
		t.Errorf("digest %v after opening, want %v", got, digest)
	}
	t.Logf("%d edges, MB: %d for the facts; %d at most while registering, then %d; %d at most while saving; %d at most while opening, then %d",
		n, base>>20, registering>>20, steady>>20, saving>>20, opening>>20, opened>>20)
	const room = 16 << 20
	for what, is := range map[string][2]int64{"registering": {registering, steady}, "opening": {opening, opened}, "saving": {saving, steady}} {
		// Live objects and as much garbage as the collector lets pile up.
		if is[0] > 3*is[1]+room {
			t.Errorf("%s took %d bytes at most, keeping takes %d", what, is[0], is[1])
		}
	}
	if opened > steady+steady/4+room {
		t.Errorf("opened it takes %d bytes, before it took %d", opened, steady)
	}
}

// slide is a set of edges of which the oldest goes when a new one comes; all
// nodes are new, or those of one cycle of edges before.
type slide struct {
	*world
	size, next, cycle int
	batch             triegs.Batch
}

// node is one of the two of an edge; the text is too long to be kept in place.
func (s *slide) node(i, end int) triegs.Term {
	if s.cycle > 0 {
		i %= s.cycle
	}
	return triegs.String(fmt.Sprintf("the node of edge %d at its end %d", i, end))
}

// step brings n edges and lets as many go.
func (s *slide) step(n int) {
	s.batch.Events = s.batch.Events[:0]
	for range n {
		s.batch.Events = append(s.batch.Events, triegs.Edge("R", s.node(s.next, 0), s.node(s.next, 1)))
		if old := s.next - s.size; old >= 0 {
			e := triegs.Edge("R", s.node(old, 0), s.node(old, 1))
			e.Op = triegs.Delete
			s.batch.Events = append(s.batch.Events, e)
		}
		s.next++
	}
	s.append(s.batch)
}

// Ten million terms go through ten thousand live edges: the dictionary, the heap
// and the disk stay what the live ones need, within a small factor.
func TestTERM08(t *testing.T) {
	for _, tc := range []struct {
		what string
		disk bool
		opts triegs.Options
	}{
		{"in memory", false, triegs.Options{}},
		{"on disk", true, triegs.Options{Durability: triegs.SyncNone, CheckpointBytes: 4 << 20}},
		{"on disk, texts too", true, triegs.Options{Durability: triegs.SyncNone, CheckpointBytes: 4 << 20, DictionaryCacheBytes: 1 << 20}},
	} {
		t.Run(tc.what, func(t *testing.T) {
			const live = 10_000
			edges := sized(5_000_000, 250_000, 200_000)
			dir := ""
			if tc.disk {
				dir = filepath.Join(t.TempDir(), "store")
			}
			before := heap()
			w := newWorld(t, dir, &tc.opts)
			w.register("q", "q(x, y) :- R(x, y).")
			s := &slide{world: w, size: live, batch: triegs.Batch{Time: time.Unix(1, 0)}}
			var dictionary, disk, grown int64
			var held []uint64
			var course []string // terms held and checkpoints taken, at each tenth of the way
			start := time.Now()
			for i := 0; s.next < edges; i++ {
				s.step(100)
				if i%50 == 49 { // the upkeep shares two cores with this loop
					runtime.Gosched()
					dictionary = max(dictionary, w.db.Metrics().DictionaryBytes)
				}
				if (i+1)%(edges/1000) == 0 {
					m := w.db.Metrics()
					held = append(held, m.Terms)
					course = append(course, fmt.Sprintf("%dk/%d", m.Terms/1000, m.Checkpoints.Taken))
				}
				if i%1000 == 999 && tc.disk {
					disk = max(disk, diskUse(t, dir))
				}
			}
			grown = heap() - before
			if tc.disk {
				waitForUpkeep(w, func() { s.step(100) })
			}
			m := w.db.Metrics()
			snap := w.snapshot()
			w.wantCount(snap, "q", live, live)
			snap.Close()
			t.Logf("%d terms in %s: dictionary at most %.1f MB, heap %.1f MB more, disk at most %.1f MB, log %.1f MB written; %d terms held, %d reclaimed, %d checkpoints",
				2*edges, time.Since(start).Round(time.Millisecond), mb(dictionary), mb(grown), mb(disk), mb(int64(m.LogBytes)), m.Terms, m.Checkpoints.Terms, m.Checkpoints.Taken)
			t.Logf("terms held and checkpoints at each tenth: %v", course)
			// A pass is made when 65536 terms have come, and takes those before it.
			// On a busy machine the upkeep falls behind this loop for a while, so
			// what is held peaks, and must come back.
			if least := slices.Min(held[len(held)/2:]); least > 2*live+3<<16 {
				t.Errorf("at least %d terms were held for %d live ones", least, 2*live)
			}
			if most := int64(40 << 20); dictionary > most || grown > 2*most {
				t.Errorf("the dictionary took %d bytes, the heap grew by %d", dictionary, grown)
			}
			if m.Checkpoints.Terms < uint64(edges)/2 {
				t.Errorf("of %d terms %d were reclaimed", 2*edges, m.Checkpoints.Terms)
			}
			if tc.disk && (disk > 64<<20 || m.Checkpoints.Taken < 1 || m.Checkpoints.Failed > 0) {
				t.Errorf("the disk took %d bytes at most, %+v", disk, m.Checkpoints)
			}
			if !tc.disk {
				return
			}
			w.reopen(dir, &tc.opts)
			snap = w.snapshot()
			defer snap.Close()
			w.wantCount(snap, "q", live, live)
			if _, err := snap.Lookup("q", s.node(s.next-1, 0), s.node(s.next-1, 1)); err != nil {
				t.Errorf("the newest edge: %v", err)
			}
			if _, err := snap.Lookup("q", s.node(1, 0), s.node(1, 1)); err == nil {
				t.Error("an edge that went is there")
			}
			// Its chain of checkpoints may hold as many dead terms as a half of it.
			if again := w.db.Metrics().Terms; again < 2*live || again > 400_000 {
				t.Errorf("%d terms are held after opening", again)
			}
		})
	}
}

func mb(n int64) float64 { return float64(n) / (1 << 20) }

// openTablesMax is how many tables of checkpoints a store keeps open at most.
const openTablesMax = 200

// Many checkpoints of a state that stays as large as it is take no more and more
// disk, and keep no more and more files open.
func TestMEM05(t *testing.T) {
	for _, cache := range []int64{0, 1 << 16} {
		t.Run(fmt.Sprintf("cache %d", cache), func(t *testing.T) {
			rounds := sized(1000, 120, 30)
			dir := filepath.Join(t.TempDir(), "store")
			w := newWorld(t, dir, &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncNone, DictionaryCacheBytes: cache})
			w.register("q", "q(x, y) :- R(x, y).")
			s := &slide{world: w, size: 20_000, batch: triegs.Batch{Time: time.Unix(1, 0)}}
			s.step(s.size)
			if err := w.db.Checkpoint(w.ctx); err != nil {
				t.Fatal(err)
			}
			one := diskUse(t, filepath.Join(dir, "checkpoint"))
			var disk, inLog int64
			var files, gone []int64
			start := time.Now()
			for range rounds {
				s.step(400)
				if err := w.db.Checkpoint(w.ctx); err != nil {
					t.Fatal(err)
				}
				disk = max(disk, diskUse(t, filepath.Join(dir, "checkpoint")))
				inLog = max(inLog, diskUse(t, filepath.Join(dir, "log")))
				files, gone = append(files, descriptors(t)), append(gone, int64(deleted(t)))
			}
			m := w.db.Metrics().Checkpoints
			t.Logf("%d checkpoints (%d full) in %s: the first took %.2f MB, all together at most %.2f MB, the log %.2f MB; %d to %d descriptors, at most %d of deleted files",
				m.Taken, m.Full, time.Since(start).Round(time.Millisecond), mb(one), mb(disk), mb(inLog), slices.Min(files), slices.Max(files), slices.Max(gone))
			if disk > 3*one+1<<20 {
				t.Errorf("the checkpoints took %d bytes, one takes %d", disk, one)
			}
			if inLog > 16<<20 {
				t.Errorf("the log took %d bytes", inLog)
			}
			// With texts on the disk the tables that were asked are kept open, up
			// to a fixed number.
			most := files[0] + 4
			if cache > 0 {
				most += openTablesMax
			}
			if slices.Max(files) > most || slices.Max(gone) > 8 {
				t.Errorf("descriptors %v, of deleted files %v", files, gone)
			}
		})
	}
}

// quantiles sorts durations and gives the middle, the 99th of a hundred, and the
// longest.
func quantiles(list []time.Duration) (p50, p99, most time.Duration) {
	if len(list) == 0 {
		return 0, 0, 0
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)*99/100], list[len(list)-1]
}

// Epochs go on while a large state is saved: none waits for as long as the
// checkpoint takes, and readers do not wait at all.
func TestMEM06(t *testing.T) {
	n := sized(3_000_000, 200_000, 50_000)
	w := newWorld(t, filepath.Join(t.TempDir(), "store"), &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncNone})
	for at := 0; at < n; at += 10_000 {
		b := triegs.Batch{Time: time.Unix(1, 0)}
		for i := at; i < at+10_000; i++ {
			b.Events = append(b.Events, triegs.Edge("R", triegs.String(fmt.Sprintf("a node with the number %d", i)), triegs.Int(int64(i%1000))))
		}
		w.append(b)
	}
	w.register("q", "q(x, y) :- R(x, y).")
	at := n
	commits := func(until func() bool) (list []time.Duration) {
		tick := time.NewTicker(500 * time.Microsecond) // 2000 epochs a second
		defer tick.Stop()
		for !until() {
			<-tick.C
			at++
			b := triegs.Batch{Time: time.Unix(1, 0), Events: []triegs.Event{triegs.Edge("R", triegs.Int(int64(at)), triegs.Int(int64(at%1000)))}}
			start := time.Now()
			w.append(b)
			list = append(list, time.Since(start))
		}
		return list
	}
	reads := func(until func() bool) (list []time.Duration) {
		node := triegs.String("a node with the number 17")
		for !until() {
			start := time.Now()
			snap := w.snapshot()
			if _, err := snap.Lookup("q", node, triegs.Int(17)); err != nil {
				t.Error(err)
			}
			snap.Close()
			list = append(list, time.Since(start))
			time.Sleep(time.Millisecond)
		}
		return list
	}
	measure := func(until func() bool) (commit, read []time.Duration) {
		var r sync.WaitGroup
		r.Go(func() { read = reads(until) })
		commit = commits(until)
		r.Wait()
		return commit, read
	}
	quiet := time.Now().Add(time.Second)
	alone, readAlone := measure(func() bool { return time.Now().After(quiet) })
	var saved atomic.Bool
	var took time.Duration
	go func() {
		start := time.Now()
		if err := w.db.Checkpoint(context.Background()); err != nil {
			t.Error(err)
		}
		took = time.Since(start)
		saved.Store(true)
	}()
	beside, readBeside := measure(saved.Load)
	a50, a99, aMost := quantiles(alone)
	b50, b99, bMost := quantiles(beside)
	r50, r99, rMost := quantiles(readAlone)
	s50, s99, sMost := quantiles(readBeside)
	t.Logf("a checkpoint of %d edges, %.1f MB, took %s", n, mb(w.db.Metrics().Checkpoints.Bytes), took.Round(time.Millisecond))
	t.Logf("an epoch: %s, p99 %s, at most %s alone; %s, p99 %s, at most %s beside it (%d)", a50, a99, aMost, b50, b99, bMost, len(beside))
	t.Logf("a lookup: %s, p99 %s, at most %s alone; %s, p99 %s, at most %s beside it (%d)", r50, r99, rMost, s50, s99, sMost, len(readBeside))
	if b99 > 10*a99+20*time.Millisecond {
		t.Errorf("p99 of an epoch is %s beside a checkpoint, %s without", b99, a99)
	}
	if took > 200*time.Millisecond && bMost > took/2+50*time.Millisecond {
		t.Errorf("an epoch waited %s for a checkpoint of %s", bMost, took)
	}
}

// Many epochs of one edge each, saved now and then: what is kept is what is live,
// and an open replays no more than what came after the last checkpoint.
func TestDEL09(t *testing.T) {
	n := sized(200_000, 20_000, 4_000)
	every := n / 20
	dir := filepath.Join(t.TempDir(), "store")
	o := &triegs.Options{CheckpointBytes: -1, Durability: triegs.SyncInterval}
	w := newWorld(t, dir, o)
	w.register("q", "q(x) :- R(x, y).")
	edge := func(i int, op triegs.Op) triegs.Event {
		return triegs.Event{Op: op, Relation: "R", Tuple: []triegs.Term{triegs.Int(int64(i % 50)), triegs.String("h")}}
	}
	var disk, bytes []int64
	goroutines := runtime.NumGoroutine()
	for i := range n {
		b := triegs.Batch{Time: time.Unix(int64(i), 0), Events: []triegs.Event{edge(i, triegs.Insert)}}
		if i >= 100 {
			b.Events = append(b.Events, edge(i-100, triegs.Delete))
		}
		w.append(b)
		if i%every == every-1 && i < n-1 {
			if err := w.db.Checkpoint(w.ctx); err != nil {
				t.Fatal(err)
			}
			disk, bytes = append(disk, diskUse(t, dir)), append(bytes, heap())
		}
	}
	check := func() {
		snap := w.snapshot()
		defer snap.Close()
		w.wantCount(snap, "q", 50, 100)
		for r, err := range snap.Answers("q") {
			if err != nil || r.Multiplicity() != 2 {
				t.Fatalf("answer %s x%d, %v, want each twice", lexical(r), r.Multiplicity(), err)
			}
		}
	}
	check()
	t.Logf("%d epochs: disk %d to %d bytes, heap %d to %d", n, slices.Min(disk), slices.Max(disk), slices.Min(bytes), slices.Max(bytes))
	if slices.Max(disk) > 10<<20 || slices.Max(bytes[1:]) > bytes[0]+8<<20 {
		t.Errorf("disk %v, heap %v", disk, bytes)
	}
	// The directory of the checkpoints stays open for two seconds.
	settle(t, "goroutines", int64(goroutines+2), func() int64 { return int64(runtime.NumGoroutine()) })
	w.reopen(dir, o)
	check()
	if rep := w.db.Recovery(); rep.Checkpoint == 0 || rep.Epochs > uint64(every) {
		t.Errorf("%+v, want at most %d epochs behind a checkpoint", rep, every)
	}
}
