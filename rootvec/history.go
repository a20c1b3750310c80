package rootvec

import (
	"slices"

	"github.com/triegs/triegs/mvcc"
)

// Follower is a place in the sequence of published vectors, from which somebody
// reads on. The vector at the place is pinned by whoever reads; what he has still to
// come to is kept for him here. Set what is exported before Follow; the rest belongs
// to Current.
type Follower struct {
	// Each is for one who takes every vector by itself, and Buffer how many may wait
	// for him; he is too slow when there are more, and none waits any longer. One who
	// does not goes to the newest.
	Each   bool
	Buffer uint64
	// Holds reports whether what is read is part of a catalog. The sequence ends for
	// the follower before the first vector with a catalog that is without it.
	Holds func(Catalog) bool

	at   mvcc.Version
	last *Vector // pinned: the last one that holds it, nil as long as new ones do
}

// history are the published vectors that are kept though nobody reads them now.
// It is part of Current, and guarded by its lock.
type history struct {
	kept      []*Vector // consecutive, up to the published one; each pinned once
	retain    uint64    // how many before the published one are kept in any case
	followers []*Follower
}

// Retain keeps n vectors before the published one from here on, for FollowFrom. With 0
// it lets go of those that no follower needs.
func (c *Current) Retain(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history.retain = n
	if n > 0 && len(c.history.kept) == 0 && c.vector != nil {
		c.push(c.vector)
	}
	c.trim()
}

// Follow attaches f at the published vector, which is pinned for the caller. begin
// is called with its catalog, before Holds ever is.
func (c *Current) Follow(f *Follower, begin func(Catalog)) *Vector {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin(c.vector.Catalog)
	c.attach(f, c.vector)
	return c.vector
}

// FollowFrom attaches f at an earlier vector, which is pinned for the caller. It is
// nil, and f not attached, if that is not kept, or not published yet; oldest is the
// earliest that is kept. begin is as in Follow.
func (c *Current) FollowFrom(f *Follower, epoch mvcc.Version, begin func(Catalog)) (v *Vector, oldest mvcc.Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest = c.vector.Epoch
	if kept := c.history.kept; len(kept) > 0 {
		oldest = kept[0].Epoch
	}
	switch {
	case epoch == c.vector.Epoch:
		v = c.vector
	case epoch < oldest || epoch > c.vector.Epoch:
		return nil, oldest
	default:
		v = c.history.kept[epoch-oldest]
	}
	begin(v.Catalog)
	c.attach(f, v)
	if !f.Holds(v.Catalog) {
		return v, oldest // it is over before it begins, whatever comes later
	}
	for i := v.Epoch; i < c.vector.Epoch; i++ {
		if !f.Holds(c.history.kept[i+1-oldest].Catalog) {
			f.last = c.history.kept[i-oldest]
			c.pin(f.last)
			break
		}
	}
	return v, oldest
}

// Branch attaches f where another follower stands, whose vector v somebody has pinned,
// and pins that once more. The sequence of f ends where that of the other does.
func (c *Current) Branch(f, from *Follower, v *Vector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attach(f, v)
	if from.last != nil {
		f.last = from.last
		c.pin(f.last)
	}
}

// Want says whether f takes every vector by itself from here on: those that have come
// behind it are kept only if it did before.
func (c *Current) Want(f *Follower, each bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Each = each
	c.trim()
}

func (c *Current) attach(f *Follower, v *Vector) {
	c.pin(v)
	f.at = v.Epoch
	c.history.followers = append(c.history.followers, f)
}

// Leave detaches f and reports whether blocks may have come free.
func (c *Current) Leave(f *Follower) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.history
	h.followers = slices.DeleteFunc(h.followers, func(o *Follower) bool { return o == f })
	freed := false
	if f.last != nil {
		freed = c.unpin(f.last)
		f.last = nil
	}
	return c.trim() || freed
}

// Step is where a follower finds himself.
type Step uint8

const (
	StepNone Step = iota // nothing newer yet
	StepNext             // there is something newer
	StepSlow             // and more than was kept for one who takes each by itself
	StepOver             // nothing newer will come
)

// Next is the vector that f comes to next, pinned for the caller: under StepNext
// that after his own or the newest, as he has chosen, under StepSlow the newest in
// any case. It stays where it is until Move.
func (c *Current) Next(f *Follower) (*Vector, Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := c.vector
	if f.last != nil {
		newest = f.last
	}
	switch {
	case f.at == newest.Epoch && (f.last != nil || !f.Holds(newest.Catalog)):
		return nil, StepOver
	case f.at >= newest.Epoch:
		return nil, StepNone
	}
	step := StepNext
	if f.Each {
		if newest.Epoch-f.at > f.Buffer {
			step = StepSlow
		} else if kept := c.history.kept; len(kept) > 0 && kept[0].Epoch <= f.at+1 {
			newest = kept[f.at+1-kept[0].Epoch]
		}
	}
	c.pin(newest)
	return newest, step
}

// Move puts f at a vector that Next has given, and reports whether blocks may have
// come free.
func (c *Current) Move(f *Follower, to mvcc.Version) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.at = to
	return c.trim()
}

// Lag is how many vectors f is behind.
func (c *Current) Lag(f *Follower) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.last != nil {
		return f.last.Epoch - f.at
	}
	return c.vector.Epoch - f.at
}

// Kept appends the epochs that are kept for followers and by Retain, ascending and
// without the published one.
func (c *Current) Kept(dst []mvcc.Version) []mvcc.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.history.kept {
		if v != c.vector {
			dst = append(dst, v.Epoch)
		}
	}
	return dst
}

// follow takes note of a vector that is being published after old. c.mu is held.
func (c *Current) follow(old, v *Vector) {
	h := &c.history
	if old != nil && v.Catalog != old.Catalog && v.Catalog.QueryCount() < old.Catalog.QueryCount() {
		for _, f := range h.followers {
			if f.last == nil && f.Holds(old.Catalog) && !f.Holds(v.Catalog) {
				f.last = old
				c.pin(old)
			}
		}
	}
	if h.retain > 0 || slices.ContainsFunc(h.followers, func(f *Follower) bool { return f.Each }) {
		c.push(v)
	}
	c.trim()
}

// push keeps a vector. c.mu is held.
func (c *Current) push(v *Vector) {
	c.pin(v)
	c.history.kept = append(c.history.kept, v)
}

// trim lets go of what nobody needs any more, and reports whether blocks may have
// come free. c.mu is held.
func (c *Current) trim() (freed bool) {
	h := &c.history
	if len(h.kept) == 0 {
		return false
	}
	newest := h.kept[len(h.kept)-1].Epoch
	need := newest + 1
	if h.retain > 0 {
		need = newest - min(newest, h.retain)
	}
	for _, f := range h.followers {
		end := newest
		if f.last != nil {
			end = f.last.Epoch
		}
		if f.Each && f.at < end && end-f.at <= f.Buffer {
			need = min(need, f.at+1)
		}
	}
	n := 0
	for n < len(h.kept) && h.kept[n].Epoch < need {
		freed = c.unpin(h.kept[n]) || freed
		h.kept[n] = nil
		n++
	}
	h.kept = h.kept[n:]
	return freed
}
