// Package rootvec holds the root vector: the one immutable value that says what
// every relation, view and position of an epoch is, and the place where it is
// published and pinned.
//
// # Invariants
//
//   - A vector is never written after it has been published, until nobody can
//     read it any more.
//   - Vectors are published in the order of their epochs, each by one store
//     under the lock that pinning takes, so a reader sees all of an epoch or
//     nothing of it.
//   - While a vector is pinned, every block reachable from its roots stays as
//     it is.
package rootvec

import (
	"sync/atomic"

	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/mvcc"
	"github.com/triegs/triegs/trie"
)

// Vector is the state of one epoch. A published vector is shared: treat every
// field as read-only.
type Vector struct {
	Epoch mvcc.Version
	Time  int64 // logical time in nanoseconds since 1970
	Space trie.Space
	// Roots has the root of each trie at its slot. Slots are given out by the
	// room of the views.
	Roots []uint64
	// Terms is the number of terms in the dictionary: ids above are of later
	// epochs.
	Terms uint64
	// Sources are the positions of all sources.
	Sources Sources
	// Catalog lists the relations and the registered queries of the epoch. It
	// is replaced, never changed.
	Catalog Catalog
	// Digest is the content digest of all base relations.
	Digest Digest

	refs int // pins, guarded by Current.mu
}

// Catalog is what the room of that name keeps in a vector.
type Catalog interface {
	// QueryCount is the number of registered queries.
	QueryCount() int
}

// Current is the published vector with the pins on it and on earlier ones.
type Current struct {
	mu     mvcc.Padded
	vector *Vector
	pins   mvcc.Pins
	spare  []*Vector
	epoch  atomic.Uint64 // of vector, to be read without the lock
	gone   atomic.Bool   // a pin was released since the last Pinned

	history history
}

// Publish makes v the vector that new readers get. The epoch of v must follow
// that of the vector before.
func (c *Current) Publish(v *Vector) {
	c.mu.Lock()
	old := c.vector
	if invariant.Enabled && old != nil && v.Epoch <= old.Epoch {
		invariant.Check(false, "epoch %d is published after %d", v.Epoch, old.Epoch)
	}
	c.vector = v
	if len(c.history.followers) > 0 || c.history.retain > 0 {
		c.follow(old, v)
	}
	if old != nil && old.refs == 0 {
		c.recycle(old)
	}
	c.epoch.Store(v.Epoch)
	c.mu.Unlock()
}

// recycle keeps a vector that nobody reads for the next epoch. c.mu is held.
func (c *Current) recycle(v *Vector) {
	v.Space, v.Sources, v.Catalog = nil, Sources{}, nil // they would keep memory alive
	if len(c.spare) < 4 {
		c.spare = append(c.spare, v)
	}
}

// Fresh returns a vector to be filled and published: a recycled one if there
// is one, so that steady publication allocates nothing.
func (c *Current) Fresh() *Vector {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.spare); n > 0 {
		v := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return v
	}
	return &Vector{}
}

// Discard gives back a vector from Fresh that is not going to be published.
func (c *Current) Discard(v *Vector) {
	c.mu.Lock()
	c.recycle(v)
	c.mu.Unlock()
}

// Epoch is the epoch of the published vector.
func (c *Current) Epoch() mvcc.Version { return c.epoch.Load() }

// Pin returns the published vector and keeps it, and all it reaches, until it
// is handed to Unpin.
func (c *Current) Pin() *Vector {
	c.mu.Lock()
	v := c.vector
	c.pin(v)
	c.mu.Unlock()
	return v
}

// pin is Pin and Again under c.mu.
func (c *Current) pin(v *Vector) {
	if v.refs++; v.refs == 1 {
		c.pins.Add(v.Epoch)
	}
}

// Again pins a vector that is pinned already once more.
func (c *Current) Again(v *Vector) {
	c.mu.Lock()
	if invariant.Enabled && v.refs == 0 {
		invariant.Check(false, "epoch %d is pinned again without a pin", v.Epoch)
	}
	v.refs++
	c.mu.Unlock()
}

// Unpin gives one pin on v back and reports whether it was the last on a vector
// that is no longer published, so that blocks may have come free.
func (c *Current) Unpin(v *Vector) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unpin(v)
}

// unpin is Unpin under c.mu.
func (c *Current) unpin(v *Vector) bool {
	if v.refs--; v.refs > 0 {
		return false
	}
	c.pins.Drop(v.Epoch)
	if v == c.vector {
		return false
	}
	c.gone.Store(true)
	c.recycle(v)
	return true
}

// Pinned appends the pinned epochs, ascending, to dst and returns them with the
// published epoch.
func (c *Current) Pinned(dst []mvcc.Version) (published mvcc.Version, pinned []mvcc.Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone.Store(false)
	return c.epoch.Load(), c.pins.Versions(dst)
}

// Released reports whether a pin on an older epoch was given back since the
// last call of Pinned.
func (c *Current) Released() bool { return c.gone.Load() }

// Oldest is the oldest pinned epoch.
func (c *Current) Oldest() (mvcc.Version, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pins.Oldest()
}
