package window

import (
	"math/bits"

	"github.com/triegs/triegs/internal/invariant"
)

// savedChunk is the size at which a chunk of saved states is closed, 64 KiB.
const savedChunk = 64 << 10

// Capture reads the state that the store has at the end of one epoch, in short
// slices between which later epochs run: whoever changes a fact that has not
// been read yet leaves its state behind first. All of its methods, and
// [Store.Capture], belong to the writer, between two epochs.
type Capture struct {
	s       *Store
	full    bool
	changed []bitmap // by relation: what has changed since the capture before
	rel     int      // where Next goes on
	word    int
	left    int

	// States left behind by the writer: closed chunks, and the open one.
	ready [][]byte
	saved encoder
	out   encoder
}

// Capture begins to read the state as it is now: all facts, or those that have
// changed since the last capture that was saved (or since [Store.Restore]).
// What changes from now on belongs to the capture after this one. There is one
// capture at a time, and Track has been called. The cost is that of copying one
// bit for each fact.
func (s *Store) Capture(full bool) *Capture {
	invariant.Check(s.tracking && s.capture == nil && len(s.dirty) == 0, "a capture at a wrong time")
	c := &Capture{s: s, full: full, changed: make([]bitmap, len(s.rels))}
	for i, r := range s.rels {
		c.changed[i], r.changed = r.changed, nil
		if full {
			r.pending = r.facts.handedOut()
		} else {
			r.pending = append(bitmap(nil), c.changed[i]...)
		}
		for _, w := range r.pending {
			c.left += bits.OnesCount64(w)
		}
	}
	s.capture = c
	return c
}

// handedOut returns the set of the records in use, and maybe free ones between
// them, in time linear in the pages.
func (s *slab) handedOut() (b bitmap) {
	for p, in := range s.info {
		if in.used > 0 {
			first := uint64(p) << s.shift
			b.setRange(first, first+uint64(in.fresh))
		}
	}
	return b
}

// Left returns how many facts are still to come, and how many that have gone.
// In a full capture it counts some too many.
func (c *Capture) Left() int { return c.left }

// Next appends one chunk with the states of up to about limit facts to dst, and
// tells whether there is more. With nothing to tell it appends nothing. A fact
// counts once for each of its contributions, and comes whole; so a chunk is
// larger than asked for where one fact is.
func (c *Capture) Next(dst []byte, limit int) (out []byte, more bool) {
	if len(c.ready) > 0 {
		dst = append(dst, c.ready[0]...)
		c.ready[0] = nil
		c.ready = c.ready[1:]
		return dst, c.more()
	}
	if len(c.saved.buf) > 0 {
		dst = append(dst, c.saved.buf...)
		c.saved.buf = c.saved.buf[:0]
		return dst, c.more()
	}
	c.out.begin(dst)
	limit = max(limit, 1)
	for c.rel < len(c.changed) && limit > 0 {
		limit = c.scan(limit)
	}
	out, c.out.buf = c.out.end(), nil
	return out, c.more()
}

func (c *Capture) more() bool {
	return c.left > 0 || len(c.ready) > 0 || len(c.saved.buf) > 0
}

// scan writes pending facts of the current relation and steps to the next
// relation when there are no more. It returns what is left of the limit.
func (c *Capture) scan(limit int) int {
	r := c.s.rels[c.rel]
	for ; c.word < len(r.pending); c.word++ {
		for w := r.pending[c.word]; w != 0; w &= w - 1 {
			if limit <= 0 {
				return 0
			}
			rec := uint32(c.word<<6 | bits.TrailingZeros64(w))
			r.pending[c.word] = w & (w - 1)
			c.left--
			limit -= c.write(&c.out, r, uint32(c.rel), rec)
		}
	}
	r.pending = nil
	c.rel, c.word = c.rel+1, 0
	return limit
}

// write encodes the state of a record, and returns how much work that was.
func (c *Capture) write(e *encoder, r *relation, rel, rec uint32) int {
	w := r.record(rec)
	if w == nil {
		if !c.full {
			e.gone(r, rel, rec)
		}
		return 1
	}
	return e.fact(c.s, r, rel, rec, w)
}

// save writes the state of a pending record that is about to change.
func (c *Capture) save(r *relation, rel, rec uint32) {
	r.pending[rec>>6] &^= 1 << (rec & 63)
	c.left--
	if len(c.saved.buf) == 0 {
		c.saved.begin(c.saved.buf)
	}
	c.write(&c.saved, r, rel, rec)
	if c.saved.end(); len(c.saved.buf) >= savedChunk {
		c.ready = append(c.ready, c.saved.buf)
		c.saved.buf = make([]byte, 0, savedChunk+savedChunk/8)
	}
}

// Done ends the capture, which may not be used afterwards. If it was not saved,
// or not read to its end, what has changed before it counts as changed again.
func (c *Capture) Done(saved bool) {
	s := c.s
	if s.capture != c {
		return
	}
	saved = saved && !c.more()
	for i, old := range c.changed {
		r := s.rels[i]
		r.pending = nil
		if !saved {
			r.changed.add(old)
		}
	}
	s.capture = nil
}

// bytes is the memory that the capture holds beside the bitmaps of relations.
func (c *Capture) bytes() int64 {
	if c == nil {
		return 0
	}
	n := int64(cap(c.saved.buf))
	for _, b := range c.ready {
		n += int64(cap(b))
	}
	for _, b := range c.changed {
		n += int64(cap(b)) * 8
	}
	return n
}
