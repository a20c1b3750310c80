package triegs

import (
	"fmt"
	"slices"
	"time"

	"github.com/triegs/triegs/recovery/positions"
	"github.com/triegs/triegs/rootvec"
)

// toldVector is a vector that was told, pinned. One that was passed quietly, since
// nothing had changed, stands for those from epoch first on that were before it.
type toldVector struct {
	v     *rootvec.Vector
	first uint64
	quiet bool
}

// note remembers that an update is told, or passed quietly, so that it can be
// acknowledged.
func (s *Subscription) note(u *Update, quiet bool) {
	n, current := s.named, &s.db.engine.Current
	if n == nil {
		return
	}
	s.mu.Lock()
	alive := s.ended() == nil && (s.at == u.now || s.to == u.now)
	if alive {
		current.Again(u.now.vector)
	}
	s.mu.Unlock()
	if !alive {
		return
	}
	t := toldVector{u.now.vector, u.now.vector.Epoch, quiet}
	l := &s.db.subscribers
	l.Lock()
	switch last := len(n.told) - 1; {
	case n.open != s || n.at == nil, t.v.Epoch == n.at.Epoch && !n.place.Whole:
	case last >= 0 && n.told[last].v.Epoch == t.v.Epoch:
	case last >= 0 && quiet && n.told[last].quiet: // one of several is enough
		t.first = n.told[last].first
		n.told[last], t.v = t, n.told[last].v
	default:
		n.told, t.v = append(n.told, t), nil
	}
	l.Unlock()
	if t.v != nil {
		s.unpin(t.v)
	}
}

// Ack says that everything up to epoch e has been taken in: the name of the
// subscription goes on behind it, from now on and after a restart, also one without
// Close. It may be called for an update as soon as it is told, and for the epoch of
// Token; an earlier one than the last changes nothing. With Quiet it may take in
// epochs behind e that were left out. It makes no epoch.
//
// Under SyncEpoch it returns when that is on stable storage; in the other modes it
// makes the log durable through e before, so that a position never leads it. Several
// that wait share a sync.
//
// Errors: ErrValue (an epoch that was not told, a subscription without a name), the
// error that has ended the subscription (ErrSnapshotClosed after Close), ErrTooOld
// (the name has lost its place), and those of writing, after which the position is
// the one before.
func (s *Subscription) Ack(e Epoch) error {
	err := s.ack(uint64(e))
	if err != nil {
		return edge(err)
	}
	return nil
}

func (s *Subscription) ack(e uint64) error {
	n, db := s.named, s.db
	if n == nil {
		return fmt.Errorf("%w: a subscription without a name has nothing to acknowledge", ErrValue)
	}
	n.change.Lock()
	defer n.change.Unlock()
	if err := s.ended(); err != nil {
		return err
	}
	v, p, err := s.acknowledged(e)
	if err != nil || v == nil {
		return err
	}
	log := db.grown()
	if err := db.place(s.ctx, n.name, p); err != nil {
		s.unpin(v)
		return err
	}
	l := &db.subscribers
	l.Lock()
	defer l.Unlock()
	n.place = p
	if n.at == nil {
		s.unpin(v)
		return n.lost
	}
	n.at, v = v, n.at
	n.behind, n.log = time.Time{}, log
	// Many may have been told, so what came free is looked for once.
	current := &db.engine.Current
	freed := current.Move(&n.parked, p.Epoch)
	freed = current.Unpin(v) || freed
	i := 0
	for ; i < len(n.told) && n.told[i].v.Epoch <= p.Epoch; i++ {
		freed = current.Unpin(n.told[i].v) || freed
	}
	n.told = slices.Delete(n.told, 0, i)
	if freed {
		db.engine.TryCollect()
	}
	return nil
}

// acknowledged finds the vector of an epoch that is acknowledged, pinned once more,
// and the place behind it. It is nil, without an error, if that is no news.
func (s *Subscription) acknowledged(e uint64) (*rootvec.Vector, positions.Place, error) {
	n, l := s.named, &s.db.subscribers
	l.Lock()
	defer l.Unlock()
	p := n.place
	switch {
	case n.lost != nil:
		return nil, p, n.lost
	case !p.Whole && e <= p.Epoch:
		return nil, p, nil
	}
	for _, t := range n.told {
		if t.first <= e && e <= t.v.Epoch {
			s.db.engine.Current.Again(t.v)
			p.Epoch, p.Whole, p.Acked = t.v.Epoch, false, s.db.opts.Clock().UnixNano()
			return t.v, p, nil
		}
	}
	return nil, p, fmt.Errorf("%w: epoch %d was not told to %q", ErrValue, e, n.name)
}
