package dict

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

// faulty is a backing that can be told to fail, to lie and to take its time.
type faulty struct {
	mapBacking
	fail atomic.Pointer[error]
	lie  atomic.Pointer[[]byte]
	hold atomic.Pointer[chan struct{}] // reads wait until it is closed
}

func (b *faulty) Form(id uint64, dst []byte) ([]byte, error) {
	if p := b.hold.Load(); p != nil {
		<-*p
	}
	if p := b.fail.Load(); p != nil {
		return dst, *p
	}
	if p := b.lie.Load(); p != nil {
		return append(dst, *p...), nil
	}
	return b.mapBacking.Form(id, dst)
}

// longs are terms with long forms, of all sizes.
func longs(n int) (terms []term.Term) {
	for i := range n {
		terms = append(terms, term.IRI(fmt.Sprint("http://example.org/resource/", i, strings.Repeat("x", i%300))))
	}
	return append(terms, term.String(strings.Repeat("large", 100_000)), term.LangString("some text in english", "en"))
}

// spilled returns a dictionary of terms whose long forms are in a backing.
func spilled(t *testing.T, terms []term.Term, cacheBytes int64) (*Dict, *faulty) {
	t.Helper()
	d, b := New(), new(faulty)
	t.Cleanup(d.Close)
	intern(t, d, terms...)
	b.save(t, d, d.Len())
	if err := d.Spill(d.Len(), b, cacheBytes); err != nil {
		t.Fatal(err)
	}
	return d, b
}

// TestSpill: texts leave memory, and nothing else changes.
func TestSpill(t *testing.T) {
	terms := append(longs(2000), kinds()...)
	for _, cacheBytes := range []int64{0, 1, 4 << 10, 1 << 20, 1 << 30} {
		d, b := spilled(t, terms, cacheBytes)
		if n := d.slabs.bytes.Load(); n != 0 {
			t.Fatalf("slabs of %d bytes are left", n)
		}
		for range 2 {
			intern(t, d, terms...)
			check(t, d, terms)
		}
		verify(t, d)
		more := longs(2200)[2000:2200]
		intern(t, d, more...)
		if d.slabs.bytes.Load() == 0 || b.reads.Load() == 0 {
			t.Errorf("%d bytes of slabs, %d reads", d.slabs.bytes.Load(), b.reads.Load())
		}
		b.save(t, d, d.Len())
		if err := d.Spill(d.Len(), b, cacheBytes); err != nil {
			t.Fatal(err)
		}
		check(t, d, append(terms[:len(terms):len(terms)], more...))
		if err := d.Err(); err != nil || d.slabs.bytes.Load() != 0 {
			t.Errorf("error %v, slabs of %d bytes", err, d.slabs.bytes.Load())
		}
	}
}

// TestSpillInMemory: without a cache size nothing leaves memory.
func TestSpillInMemory(t *testing.T) {
	d := New()
	intern(t, d, longs(100)...)
	before := d.Bytes()
	if err := d.Spill(d.Len(), nil, -1); err != nil || d.Bytes() != before {
		t.Fatalf("%v, %d bytes, before %d", err, d.Bytes(), before)
	}
	check(t, d, longs(100))
	d.Close()
}

// TestSpillPart: ids above the limit stay in memory, in slabs without the others.
func TestSpillPart(t *testing.T) {
	terms := longs(3000)
	for _, through := range []uint64{0, 1, 1500, 2999, 3001} {
		d, b := New(), new(mapBacking)
		intern(t, d, terms...)
		b.save(t, d, through)
		if err := d.Spill(through, b, 0); err != nil {
			t.Fatal(err)
		}
		verify(t, d)
		check(t, d, terms)
		b.reads.Store(0)
		for id := through + 1; id <= d.Len(); id++ {
			d.Term(id)
		}
		if b.reads.Load() != 0 {
			t.Errorf("through %d: %d reads of what is in memory", through, b.reads.Load())
		}
		// Then the rest, after some have died.
		d.StartMark()
		for id := uint64(7); id <= d.Len(); id += 7 {
			d.Mark(id)
		}
		d.FinishMark()
		d.Sweep()
		verify(t, d)
		b.save(t, d, d.Len())
		if err := d.Spill(d.Len(), b, 0); err != nil || d.slabs.bytes.Load() != 0 {
			t.Fatalf("%v, slabs of %d bytes", err, d.slabs.bytes.Load())
		}
		verify(t, d)
	}
}

// TestSpillTruncate: ids that were spilled and taken back are used again.
func TestSpillTruncate(t *testing.T) {
	terms := longs(100)
	d, b := spilled(t, terms, 1<<20)
	for id := range d.Len() {
		d.Term(id + 1) // into the cache
	}
	d.Truncate(40)
	verify(t, d)
	other := []term.Term{term.String("something else that is long"), term.IRI("http://example.org/resource/41x")}
	intern(t, d, other...)
	want := append(terms[:40:40], other...)
	check(t, d, want)
	b.save(t, d, d.Len())
	if err := d.Spill(d.Len(), b, 1<<20); err != nil {
		t.Fatal(err)
	}
	check(t, d, want)
	verify(t, d)
}

// TestFailedReads: no answer is wrong, and the first cause is kept.
func TestFailedReads(t *testing.T) {
	broken := errors.New("the disk is broken")
	wrong := func(b []byte) func(*faulty) { return func(f *faulty) { f.lie.Store(&b) } }
	for _, tc := range []struct {
		name   string
		damage func(b *faulty)
		want   error
	}{
		{"error", func(b *faulty) { b.fail.Store(&broken) }, broken},
		{"nothing", wrong(nil), errs.ErrCorrupt},
		{"another length", wrong([]byte("xx")), errs.ErrCorrupt},
		{"other bytes", wrong(term.AppendBinary(nil, term.IRI("http://example.org/resource/X"))), errs.ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			terms := []term.Term{term.IRI("http://example.org/resource/0"), term.String("short")}
			d, b := spilled(t, terms, 0)
			tc.damage(b)
			if x := d.Term(1); !x.IsZero() {
				t.Errorf("the term is %v", x)
			}
			if got := d.AppendBinary([]byte("x"), 1); string(got) != "x" {
				t.Errorf("the form is %q", got)
			}
			if id, ok := d.Find(terms[0], 2); ok {
				t.Errorf("found as %d", id)
			}
			n, bytes := d.Len(), d.Bytes()
			ids := make([]uint64, 2)
			if id := d.Intern(terms[0]); id != 0 {
				t.Errorf("interned as %d", id)
			}
			if id := d.InternNew(terms[0]); id != 0 {
				t.Errorf("interned as the new %d", id)
			}
			if k := d.InternAll(ids, []term.Term{terms[1], terms[0]}); k != 1 || ids[0] != 2 {
				t.Errorf("%d interned as %v", k, ids)
			}
			if err := d.Each(1, 2, func(uint64, []byte) error { return nil }); !errors.Is(err, tc.want) {
				t.Errorf("walking: %v", err)
			}
			if d.Len() != n || d.Bytes() != bytes {
				t.Errorf("%d ids, before %d", d.Len(), n)
			}
			if err := d.Err(); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), "term 1") {
				t.Errorf("error %v", err)
			}
			// Everything else goes on.
			if d.Term(2) != terms[1] || d.Intern(terms[1]) != 2 || d.Intern(term.IRI("http://example.org/resource/1")) != 3 {
				t.Error("other terms are affected")
			}
			b.fail.Store(nil)
			b.lie.Store(nil)
			check(t, d, append(terms, term.IRI("http://example.org/resource/1")))
			if d.Err() == nil {
				t.Error("the error is forgotten")
			}
		})
	}
}

// TestSlowReads: who waits for the disk keeps nobody else waiting.
func TestSlowReads(t *testing.T) {
	terms := longs(50)
	d, b := spilled(t, terms, 1<<20)
	gate := make(chan struct{})
	b.hold.Store(&gate)
	var wg sync.WaitGroup
	for i, x := range terms {
		wg.Go(func() {
			if got := d.Term(uint64(i + 1)); got != x {
				t.Errorf("id %d is %v", i+1, got)
			}
			if id, ok := d.Find(x, uint64(len(terms))); !ok || id != uint64(i+1) {
				t.Errorf("%v is %d", x, id)
			}
		})
	}
	// The writer does all it can beside, but for looking at a spilled term.
	for i := range 3000 {
		d.Intern(term.String(fmt.Sprint("another one, and a long one: ", i)))
	}
	d.Truncate(1500)
	d.StartMark()
	for id := range uint64(60) {
		d.Mark(id)
	}
	d.FinishMark()
	d.Sweep()
	other := new(mapBacking)
	other.save(t, d, 0)
	b.mu.RLock()
	other.forms = b.forms
	b.mu.RUnlock()
	if err := d.Spill(uint64(len(terms)), other, 1<<20); err != nil {
		t.Fatal(err)
	}
	close(gate)
	wg.Wait()
	if d.Err() != nil || other.reads.Load() > 2*int64(len(terms)) {
		t.Errorf("error %v, %d reads", d.Err(), other.reads.Load())
	}
	verify(t, d)
}

// TestCache: what was read is not read again, as far as there is room.
func TestCache(t *testing.T) {
	terms := longs(500)
	d, b := spilled(t, terms, 4<<20)
	c := d.state.Load().store.cache.forms
	for id := range uint64(500) {
		d.Term(id + 1)
	}
	c.Wait()
	b.reads.Store(0)
	for id := range uint64(500) {
		if d.Term(id+1) != terms[id] {
			t.Fatalf("id %d", id+1)
		}
	}
	if n := b.reads.Load(); n > 50 {
		t.Errorf("%d reads of 500 terms that were read before", n)
	}
	// A cache that gives back another term's form, or damaged bytes, is not believed.
	for _, bad := range []cached{{2, append([]byte{tagA}, term.AppendBinary(nil, terms[1])...)}, {1, []byte{tagA}}, {1, nil}, {1, bytes.Repeat([]byte("x"), 31)}} {
		c.Set(1, bad, 1)
		c.Wait()
		if got := d.Term(1); got != terms[0] {
			t.Errorf("with %v in the cache id 1 is %v", bad, got)
		}
	}
	before := d.Bytes()
	d.Close()
	d.Close()
	if d.Term(7) != terms[6] || d.Intern(terms[8]) != 9 || d.Bytes() >= before {
		t.Errorf("after Close: %d bytes, before %d", d.Bytes(), before)
	}
	if err := d.Spill(d.Len(), b, 1<<20); err != nil || d.Term(7) != terms[6] {
		t.Errorf("another cache: %v", err)
	}
}

// TestCacheBounded: many terms through a small cache stay within its size.
func TestCacheBounded(t *testing.T) {
	d, _ := spilled(t, longs(20_000), 256<<10)
	rest := d.Bytes()
	for id := range d.Len() {
		d.Term(id + 1)
	}
	d.state.Load().store.cache.forms.Wait()
	if got := d.Bytes() - rest; got > 256<<10 {
		t.Errorf("the cache holds %d bytes", got)
	}
}

// TestCloseWhileReading: readers go on while the cache is closed and opened.
func TestCloseWhileReading(t *testing.T) {
	terms := longs(300)
	d, b := spilled(t, terms, 1<<20)
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := 0; !done.Load(); i++ {
				if id := i % len(terms); d.Term(uint64(id+1)) != terms[id] {
					t.Errorf("id %d is another term", id+1)
					return
				}
			}
		})
	}
	for range 30 {
		d.Close()
		if err := d.Spill(d.Len(), b, 1<<20); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
	}
	done.Store(true)
	wg.Wait()
}

// TestNoGoroutines: Close ends what Spill has begun.
func TestNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		d, b := New(), new(mapBacking)
		intern(t, d, longs(10)...)
		b.save(t, d, d.Len())
		for _, size := range []int64{1 << 20, 1 << 16, 0, 1 << 20} {
			if err := d.Spill(d.Len(), b, size); err != nil {
				t.Fatal(err)
			}
			d.Term(1)
		}
		d.Close()
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), before)
}
