package triegs

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/triegs/triegs/rootvec"
)

// Update is one step of a subscription: all that has changed from one epoch to
// another, to be taken as a unit. It is valid until the next step of the loop; what
// is copied out of it stays.
type Update struct {
	// Epoch is the epoch that the update leads to, From the one it starts behind:
	// the changes are those of the epochs From+1 to Epoch, net. They are the same in
	// the first update under SnapshotFirst, which is Whole.
	Epoch, From Epoch
	// Whole says that the changes are all the answers at Epoch, from nothing.
	Whole bool
	// Time is the logical time of Epoch, zero before the first.
	Time time.Time
	// Offsets are the next offsets of all sources after Epoch.
	Offsets map[string]uint64
	// Token is the position behind the update.
	Token Token

	s        *Subscription
	old, now *Snapshot
	step     uint64 // of the subscription, while this update is told
}

// Snapshot is the state at Epoch, of all queries, until the next step of the loop:
// then it is closed. It needs no Close.
func (u *Update) Snapshot() *Snapshot { return u.s.show(u) }

// show makes the snapshot that the consumer gets of an update: another one than those
// that the subscription goes on with, so that he may close it and it may be closed
// behind the update.
func (s *Subscription) show(u *Update) *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.step != s.step.Load() || s.at != u.now && s.to != u.now:
		return u.now.closed(cmp.Or(s.ended(), error(ErrSnapshotClosed)))
	case s.shown == nil:
		s.db.engine.Current.Again(u.now.vector)
		s.shown = s.db.pinned(u.now.vector)
	}
	return s.shown
}

// closed is a snapshot of the same epoch that has ended.
func (s *Snapshot) closed(reason error) *Snapshot {
	c := &Snapshot{db: s.db, epoch: s.epoch, time: s.time, sources: s.sources}
	c.mu.released = true
	c.over.Store(&reason)
	return c
}

// Updates is the sequence of updates. It waits for epochs that have not come yet, and
// ends with the error that ends the subscription, without one after Close. The update
// is reused by the next step.
//
// The loop may be left and begun again: it goes on behind the last update that it
// has had, also where that was left in the middle or by a panic. One loop runs at a
// time; a second one beside it gets ErrValue.
func (s *Subscription) Updates() iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		if !s.ranging.CompareAndSwap(false, true) {
			yield(nil, edge(fmt.Errorf("%w: the subscription is being ranged over already", ErrValue)))
			return
		}
		defer s.ranging.Store(false)
		u := new(Update)
		for {
			more, err := s.advance(u)
			if err != nil {
				yield(nil, edge(err))
				return
			}
			if !more || !s.tell(u, yield) {
				return
			}
		}
	}
}

// tell gives an update to the consumer and moves on behind it, whatever he does.
func (s *Subscription) tell(u *Update, yield func(*Update, error) bool) bool {
	defer s.move(u)
	s.note(u, false)
	return yield(u, nil)
}

// advance waits for the next update. It is false, without an error, after Close. An
// update behind ones that were left out starts where the first of them did, so that
// each starts where the one before has led to.
func (s *Subscription) advance(u *Update) (bool, error) {
	from := Epoch(math.MaxUint64)
	for {
		if s.untold {
			s.begin(u)
		} else if err := s.wait(u); err != nil {
			s.end(err)
		}
		switch err := s.ended(); {
		case err == errUnsubscribed: //nolint:errorlint // exactly this
			return false, nil
		case err != nil:
			return false, err
		}
		if !u.Whole {
			from = min(from, u.From)
			u.From = from
		}
		if !s.opts.Quiet || u.Whole {
			return true, nil
		}
		changes, err := u.changes()
		switch {
		case err != nil && s.ended() != nil:
			continue // it says why itself
		case changes || err != nil:
			return err == nil, err
		}
		s.note(u, true)
		s.move(u)
	}
}

// wait goes to the next update, when there is something newer, or returns why there
// will not be. The caller looks whether the subscription has ended meanwhile.
func (s *Subscription) wait(u *Update) error {
	engine := s.db.engine
	for s.ended() == nil {
		// The channel is there, and the error looked at, before the look at what is
		// newer, so neither is missed.
		published, failed := engine.Published(), engine.Err()
		v, step := engine.Current.Next(&s.follower)
		switch {
		case step == rootvec.StepOver:
			return fmt.Errorf("%w: %q was dropped after epoch %d", ErrNoSuchQuery, s.name, s.epoch)
		case step == rootvec.StepSlow && s.opts.Slow == SlowEnd:
			s.unpin(v)
			return fmt.Errorf("%w: more than %d epochs wait, epoch %d was told last", ErrSlowSubscriber, s.opts.Buffer, s.epoch)
		case v != nil:
			s.take(u, v)
			return nil
		case failed != nil:
			return s.db.ended(failed)
		}
		select {
		case <-published:
		case <-s.done:
		}
	}
	return nil
}

func (s *Subscription) unpin(v *rootvec.Vector) {
	if s.db.engine.Current.Unpin(v) {
		s.db.engine.TryCollect()
	}
}

// begin makes u the update of the whole answer.
func (s *Subscription) begin(u *Update) {
	s.mu.Lock()
	now := s.at
	s.mu.Unlock()
	if now != nil { // else it has ended
		s.fill(u, nil, now)
	}
}

// take makes u the update that leads to a vector, which is pinned.
func (s *Subscription) take(u *Update, v *rootvec.Vector) {
	now := s.db.pinned(v)
	s.mu.Lock()
	old := s.at
	if old != nil {
		s.to = now
	}
	s.mu.Unlock()
	if old == nil { // it has ended meanwhile
		now.end(ErrSnapshotClosed)
		return
	}
	s.fill(u, old, now)
}

func (s *Subscription) fill(u *Update, old, now *Snapshot) {
	*u = Update{
		Epoch: now.epoch, From: now.epoch, Whole: old == nil,
		Time: now.Time(), Offsets: now.Offsets(), Token: now.Token(),
		s: s, old: old, now: now, step: s.step.Load(),
	}
	if old != nil {
		u.From = old.epoch
	}
}

// move makes the epoch of u the position. What the consumer has of u may not outlive
// the step, though the pin does.
func (s *Subscription) move(u *Update) {
	s.mu.Lock()
	shown := s.shown
	s.shown = nil
	s.step.Add(1)
	if u.Whole {
		s.untold = false
	} else {
		s.epoch, s.behind = u.Epoch, time.Time{}
		if s.at != nil {
			s.at, s.to = s.to, nil
		}
	}
	s.mu.Unlock()
	if shown != nil {
		shown.end(ErrSnapshotClosed)
	}
	if u.Whole {
		return
	}
	u.old.end(ErrSnapshotClosed)
	if s.ended() == nil && s.db.engine.Current.Move(&s.follower, uint64(u.Epoch)) {
		s.db.engine.TryCollect()
	}
}
