// Package mvcc keeps count of versions: which are pinned by readers, and which
// retired blocks may be used again.
//
// A version is the number of the epoch that made it. Blocks are named by an
// opaque 32-bit reference; this package neither reads nor frees them itself.
//
// # Invariants
//
//   - A block born in version a and retired in version f is handed back only
//     when f has been published and no pinned version lies in [a, f).
//   - A version can be pinned only while it is the published one or already
//     pinned, so a version below the published one can never gain its first
//     pin.
//
// Pins may be used from any goroutine, a Reclaimer from one at a time.
package mvcc

import (
	"cmp"
	"slices"
	"sync"
)

// Version numbers a state: the epoch that published it. Versions grow.
type Version = uint64

// Pins is the multiset of pinned versions. The zero value is empty. It does no
// locking of its own: whoever owns the published version guards both with one
// lock, because pinning reads the one and writes the other.
type Pins struct {
	held []pin // ascending by version
}

type pin struct {
	version Version
	refs    int
}

// Add pins v once more and reports whether that was its first pin. Cost is
// logarithmic in the number of pinned versions, constant for the newest.
func (p *Pins) Add(v Version) (first bool) {
	i, ok := p.find(v)
	if ok {
		p.held[i].refs++
		return false
	}
	p.held = slices.Insert(p.held, i, pin{v, 1})
	return true
}

// Drop takes one pin off v and reports whether it was the last.
func (p *Pins) Drop(v Version) (last bool) {
	i, ok := p.find(v)
	if !ok {
		panic("mvcc: a version that is not pinned was released")
	}
	if p.held[i].refs--; p.held[i].refs > 0 {
		return false
	}
	p.held = slices.Delete(p.held, i, i+1)
	return true
}

func (p *Pins) find(v Version) (int, bool) {
	if n := len(p.held); n == 0 || p.held[n-1].version < v {
		return n, false
	}
	return slices.BinarySearchFunc(p.held, v, func(h pin, v Version) int {
		switch {
		case h.version < v:
			return -1
		case h.version > v:
			return 1
		}
		return 0
	})
}

// Len is the number of distinct pinned versions.
func (p *Pins) Len() int { return len(p.held) }

// Oldest is the smallest pinned version.
func (p *Pins) Oldest() (v Version, ok bool) {
	if len(p.held) == 0 {
		return 0, false
	}
	return p.held[0].version, true
}

// Versions appends the pinned versions in ascending order to dst.
func (p *Pins) Versions(dst []Version) []Version {
	for _, h := range p.held {
		dst = append(dst, h.version)
	}
	return dst
}

// block is a retired block: its reference, size, and the version that made it.
type block struct {
	ref   uint32
	words uint32
	born  Version
}

// Reclaimer holds retired blocks until nobody can read them any more. A block
// that readers still need waits under the newest pin that needs it, so memory
// is bounded by what the pinned versions reach and not by the versions in
// between (bbolt's rule, see the design of its freelist).
type Reclaimer struct {
	open    []block   // retired in the version under construction
	sealed  []batch   // retired in sealed versions that are not published yet
	buckets []bucket  // waiting for a pin, ascending by pin
	spare   [][]block // emptied slices, to allocate nothing in steady state
	words   struct{ pending, held int64 }
}

type batch struct {
	retired Version
	blocks  []block
}

type bucket struct {
	pin    Version
	words  int64
	blocks []block
}

// Retire hands over a block that the version under construction no longer
// reaches. Blocks born in that same version were never visible and must be
// freed at once instead.
func (r *Reclaimer) Retire(ref, words uint32, born Version) {
	r.open = append(r.open, block{ref, words, born})
	r.words.pending += int64(words)
}

// Seal ends version v: what was retired since the last call belongs to it.
func (r *Reclaimer) Seal(v Version) {
	if len(r.open) == 0 {
		return
	}
	r.sealed = append(r.sealed, batch{v, r.open})
	r.open = r.slice()
}

// Discard forgets what was retired since the last Seal: the version under
// construction is dropped and its predecessor goes on using those blocks.
func (r *Reclaimer) Discard() {
	for _, b := range r.open {
		r.words.pending -= int64(b.words)
	}
	r.open = r.open[:0]
}

// Collect calls free for every block that nobody can reach any more, given the
// published version and the pinned versions in ascending order. Cost is linear
// in the blocks retired since the last call, in the blocks held by pins that have
// gone, and, with little for each, in the pins.
func (r *Reclaimer) Collect(published Version, pins []Version, free func(ref uint32)) {
	r.release(pins, free)
	done := 0
	for _, b := range r.sealed {
		if b.retired > published {
			break
		}
		r.sort(b.blocks, below(pins, b.retired), pins, free)
		r.recycle(b.blocks)
		done++
	}
	if done > 0 {
		r.sealed = slices.Delete(r.sealed, 0, done)
	}
}

// release empties the buckets whose pin is gone: each block moves to the next
// older pin that needs it, or is freed. Buckets go from new to old, so a block
// settles in one call. Both are walked together: there may be many pins, and every
// epoch comes here.
func (r *Reclaimer) release(pins []Version, free func(ref uint32)) {
	last := len(pins) - 1
	for i := len(r.buckets) - 1; i >= 0; i-- {
		pin := r.buckets[i].pin
		for last >= 0 && pins[last] > pin {
			last--
		}
		if last >= 0 && pins[last] == pin {
			continue
		}
		b := r.buckets[i]
		r.buckets = slices.Delete(r.buckets, i, i+1)
		r.words.held -= b.words
		r.words.pending += b.words
		n := len(r.buckets)
		r.sort(b.blocks, last, pins, free)
		r.recycle(b.blocks)
		i += len(r.buckets) - n // sort may have made an older bucket before i
	}
}

// sort frees the blocks that no pin up to pins[last] needs and puts the others
// under that pin. All blocks were retired after pins[last] and before any
// younger pin.
func (r *Reclaimer) sort(blocks []block, last int, pins []Version, free func(ref uint32)) {
	for _, b := range blocks {
		r.words.pending -= int64(b.words)
		if last < 0 || b.born > pins[last] {
			free(b.ref)
			continue
		}
		r.hold(pins[last], b)
	}
}

func (r *Reclaimer) hold(pin Version, b block) {
	i := len(r.buckets)
	for i > 0 && r.buckets[i-1].pin > pin {
		i--
	}
	if i == 0 || r.buckets[i-1].pin != pin {
		r.buckets = slices.Insert(r.buckets, i, bucket{pin: pin, blocks: r.slice()})
		i++
	}
	k := &r.buckets[i-1]
	k.blocks = append(k.blocks, b)
	k.words += int64(b.words)
	r.words.held += int64(b.words)
}

func (r *Reclaimer) slice() []block {
	if n := len(r.spare); n > 0 {
		s := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return s
	}
	return nil
}

// recycle keeps a slice for later unless it is so large that keeping it would
// itself be a leak (the aftermath of one bulk epoch).
func (r *Reclaimer) recycle(s []block) {
	if cap(s) > 0 && cap(s) <= 1<<14 && len(r.spare) < 8 {
		r.spare = append(r.spare, s[:0])
	}
}

// below is the index of the largest pin under v, -1 if there is none.
func below(pins []Version, v Version) int {
	i, _ := slices.BinarySearch(pins, v)
	return i - 1
}

// Retained is the number of words that wait: for publication, and for pins.
func (r *Reclaimer) Retained() (pending, held int64) {
	return r.words.pending, r.words.held
}

// Held is the number of words that wait for pin v (they may be needed by older
// pins as well).
func (r *Reclaimer) Held(v Version) int64 {
	i, ok := slices.BinarySearchFunc(r.buckets, v, func(b bucket, v Version) int { return cmp.Compare(b.pin, v) })
	if !ok {
		return 0
	}
	return r.buckets[i].words
}

// Padded is a mutex alone on its cache line, for locks that readers and the
// writer both touch.
type Padded struct {
	_ [64]byte
	sync.Mutex
	_ [56]byte
}
