package triegs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// enlist adds a subscription to those that are open. It is false after Close.
func (db *DB) enlist(s *Subscription) bool {
	l := &db.subscriptions
	l.Lock()
	defer l.Unlock()
	// Close sets closed before it takes the list, so what passes here is in it.
	if db.closed.Load() {
		return false
	}
	if s.over.Load() == nil { // else its context has ended it already
		l.open[s] = struct{}{}
	}
	return true
}

// strike takes a subscription out of the list.
func (db *DB) strike(s *Subscription) {
	l := &db.subscriptions
	l.Lock()
	defer l.Unlock()
	delete(l.open, s)
}

// listed are the open subscriptions, in no order.
func (db *DB) listed() []*Subscription {
	l := &db.subscriptions
	l.Lock()
	defer l.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

// endSubscriptions ends all subscriptions and returns how many were open.
func (db *DB) endSubscriptions() (n int) {
	for _, s := range db.listed() {
		if s.end(ErrClosed) {
			n++
			db.notify(Notice{Kind: NoticeSubscriptionLeaked, Epoch: s.position()})
		}
	}
	return n
}

// expirePins ends the snapshots that are older than Options.MaxPinAge, and the
// subscriptions that were behind for longer.
func (db *DB) expirePins() {
	if db.opts.MaxPinAge == 0 {
		return
	}
	db.expireSnapshots()
	now := db.opts.Clock()
	for _, s := range db.listed() {
		if since := s.behindSince(now); now.Sub(since) <= db.opts.MaxPinAge {
			continue
		}
		e := s.position()
		if s.end(fmt.Errorf("%w: the subscription was behind for more than %s, epoch %d was told last", ErrSnapshotExpired, db.opts.MaxPinAge, e)) {
			db.notify(Notice{Kind: NoticeSubscriptionExpired, Epoch: e})
		}
	}
}

// behindSince is since when there has been something newer, now if that is new.
func (s *Subscription) behindSince(now time.Time) time.Time {
	lag := s.db.engine.Current.Lag(&s.follower)
	s.mu.Lock()
	defer s.mu.Unlock()
	if lag == 0 || s.behind.IsZero() {
		s.behind = now
	}
	return s.behind
}

// position is the epoch that was told last.
func (s *Subscription) position() Epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// SubscriptionInfo describes an open subscription.
type SubscriptionInfo struct {
	// Query is the name of the query, Epoch the epoch that was told last.
	Query string
	Epoch Epoch
	// Name is its durable name, "" if it has none.
	Name string
	// Lag is how many epochs there are behind it.
	Lag uint64
	// RetainedBytes is memory that its position keeps, and with PerEpoch the epochs
	// that wait, and that the current epoch does not need. What others keep as well is
	// told of each.
	RetainedBytes int64
}

// Subscriptions lists the open subscriptions, the one that is farthest behind first.
// It waits for an epoch that is being applied.
func (db *DB) Subscriptions() []SubscriptionInfo {
	current := &db.engine.Current
	var list []SubscriptionInfo
	var each []bool
	kept := current.Kept(nil)
	open := db.listed()
	slices.SortFunc(open, func(a, b *Subscription) int {
		return cmp.Or(cmp.Compare(a.position(), b.position()), cmp.Compare(a.name, b.name))
	})
	epochs := slices.Clone(kept)
	for _, s := range open {
		list = append(list, SubscriptionInfo{Query: s.name, Name: s.opts.Name, Epoch: s.position(), Lag: current.Lag(&s.follower)})
		each = append(each, s.opts.PerEpoch)
		epochs = append(epochs, uint64(s.position()))
	}
	held := db.engine.Held(epochs)
	for i := range list {
		list[i].RetainedBytes = held[len(kept)+i]
		for j, e := range kept {
			if each[i] && Epoch(e) > list[i].Epoch {
				list[i].RetainedBytes += held[j]
			}
		}
	}
	return list
}

func (db *DB) subscriptionMetrics(m *Metrics) {
	m.Subscriptions = len(db.listed())
	m.RetainedEpochs = len(db.engine.Current.Kept(nil))
	m.Subscribers = db.Subscribers()
}
