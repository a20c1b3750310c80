package fuzz

import (
	"fmt"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// soak is a stream through a window of time, one event a nanosecond. Edge i leaves
// node i for one that no edge before it has left, so that names are new all the
// time.
type soak struct {
	*world
	window int
}

func soakTo(i int) int { return i + 1 + i*7919%50 }

func soakNode(i int) triegs.Term {
	return triegs.IRI(fmt.Sprintf("https://data.example.org/nodes/%09d", i))
}

// send appends edges in epochs of a thousand.
func (s *soak) send(from, to int) {
	s.Helper()
	for ; from < to; from += 1000 {
		end := min(from+1000, to)
		b := triegs.Batch{Time: time.Unix(0, int64(end-1))}
		for i := from; i < end; i++ {
			e := triegs.Edge("link", soakNode(i), soakNode(soakTo(i)))
			e.Time = time.Unix(0, int64(i))
			b.Events = append(b.Events, e)
		}
		s.append(b)
	}
}

// check compares the paths of two edges after so many edges.
func (s *soak) check(edges int) {
	s.Helper()
	want := int64(0)
	for i := max(0, edges-s.window); i < edges; i++ {
		if soakTo(i) < edges {
			want++
		}
	}
	snap := s.snapshot()
	defer snap.Close()
	s.wantCount(snap, "hops", want, want)
}

// soakPart is what stands at the end of a tenth of a stream.
type soakPart struct {
	each             time.Duration
	log, heap, terms int64
	disk             int64
}

// A stream of new names through a window leaves nothing behind: memory, log,
// dictionary and disk are at the end what they were when the window was full.
func TestWindowSoak(t *testing.T) {
	n := sized(10_000_000, 400_000, 100_000)
	s := &soak{window: sized(100_000, 20_000, 5_000)}
	o := &triegs.Options{CheckpointBytes: int64(sized(64<<20, 2<<20, 1<<20))}
	dir := t.TempDir()
	s.world = newWorld(t, dir, o)
	s.register("hops", fmt.Sprintf("hops(x, y, z) :- link(x, y), link(y, z) window %dns.", s.window))
	empty := heap()
	var parts [10]soakPart
	for i := range parts {
		from, to, p := i*n/10, (i+1)*n/10, &parts[i]
		before, start := s.db.Metrics(), time.Now()
		s.send(from, to)
		p.each = time.Since(start) / time.Duration(to-from)
		m := s.db.Metrics()
		p.log, p.terms = int64(m.LogBytes-before.LogBytes), int64(m.Terms)
		p.heap, p.disk = heap()-empty, diskUse(t, dir)
		s.check(to)
		if m.Contributions != int64(s.window) || m.Expired != uint64(to-s.window) {
			t.Fatalf("after %d edges %d contributions, %d expired", to, m.Contributions, m.Expired)
		}
		t.Logf("%v an event, %d bytes of log, heap %d, disk %d, %d terms, checkpoints: %v", p.each, p.log, p.heap, p.disk, p.terms, m.Checkpoints)
	}
	first := &parts[0]
	// Terms are looked through when so many more have come, and there are as many
	// again while that is done.
	const spareTerms, termBytes = 4 << 16, 200
	for i := range parts {
		p := &parts[i]
		switch {
		case p.log > first.log+first.log/20:
			t.Errorf("part %d: %d bytes of log, %d in the first", i, p.log, first.log)
		case p.terms > int64(4*s.window+spareTerms):
			t.Errorf("part %d: %d terms for a window of %d", i, p.terms, s.window)
		case p.heap > first.heap+first.heap/2+spareTerms*termBytes:
			t.Errorf("part %d: %d bytes in use, %d behind the first", i, p.heap, first.heap)
		}
	}
	for range 2 { // the log is kept from the checkpoint before the newest on
		if err := s.db.Checkpoint(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.send(n, n+1000)
		n += 1000
	}
	if disk := diskUse(t, dir); disk > 1<<20+int64(200*s.window) {
		t.Errorf("%d bytes on disk behind a checkpoint of a window of %d", disk, s.window)
	} else {
		t.Logf("disk behind a checkpoint: %d", disk)
	}
	t.Logf("the last tenth took %.2f of the first an event", float64(parts[9].each)/float64(first.each))
	s.reopen(dir, o)
	s.check(n)
}
