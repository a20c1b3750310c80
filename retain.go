package triegs

import (
	"fmt"
	"math"
	"time"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/recovery/positions"
	"github.com/triegs/triegs/rootvec"
)

// wanted is the epoch behind which a store wants its epochs one by one when it is
// opened: for the names, for RetainedEpochs, and from RetainFrom on.
func (db *DB) wanted(id wal.Identity, newest uint64, places map[string]positions.Place) uint64 {
	from := newest - min(newest, uint64(db.opts.RetainedEpochs))
	if t := db.opts.RetainFrom; t.store == id.Store && t.timeline == id.Timeline {
		from = min(from, uint64(t.epoch))
	}
	if db.opts.ReadOnly {
		return from // names go on in a store that takes their places
	}
	now := db.opts.Clock()
	for _, p := range places {
		if p.Epoch < from && db.serves(id, newest, p, now) {
			from = p.Epoch
		}
	}
	return from
}

// serves reports whether epochs are kept for a place.
func (db *DB) serves(id wal.Identity, newest uint64, p positions.Place, now time.Time) bool {
	r := db.opts.Retention
	switch {
	case p.Store != id.Store || p.Timeline != id.Timeline, p.Whole, p.Lost:
		return false
	case r.Epochs > 0 && newest > p.Epoch && newest-p.Epoch > r.Epochs:
		return false
	case r.Age > 0 && newest > p.Epoch && now.Sub(time.Unix(0, p.Acked)) > r.Age:
		return false
	}
	return true
}

// reached keeps what is wanted while the log is replayed.
func (db *DB) reached(id wal.Identity, e *epoch.Engine, places map[string]positions.Place, replayed uint64) {
	if db.engine != e { // it begins, perhaps anew
		db.engine = e
		e.Current.Retain(uint64(db.opts.RetainedEpochs))
		db.await(id, places)
	}
	at := e.Current.Epoch()
	if t := db.opts.RetainFrom; !t.IsZero() && at == uint64(t.epoch) {
		e.Current.Retain(math.MaxUint64)
	}
	for _, n := range db.subscribers.waiting[at] {
		n.park(e)
		n.log = replayed // placed makes it what it is from then on
	}
	db.subscribers.replayed = replayed
}

// await begins to wait for the epochs of the places.
func (db *DB) await(id wal.Identity, places map[string]positions.Place) {
	l := &db.subscribers
	l.by, l.waiting = make(map[string]*subscriber), make(map[uint64][]*subscriber)
	l.count.Store(int64(len(places)))
	for name, p := range places {
		n := &subscriber{name: name, place: p}
		l.by[name] = n
		if !db.opts.ReadOnly && db.serves(id, 0, p, time.Time{}) {
			l.waiting[p.Epoch] = append(l.waiting[p.Epoch], n)
		}
	}
}

// park puts a name at the current vector, which is of the epoch of its place.
func (n *subscriber) park(e *epoch.Engine) {
	h := &holding{query: n.place.Query}
	n.parked = rootvec.Follower{Each: n.place.Each, Buffer: math.MaxUint64, Holds: h.holds}
	n.at = e.Current.Follow(&n.parked, func(c rootvec.Catalog) {
		schema := c.(*epoch.Schema)
		if q, err := schema.Query(n.place.Query); err == nil && q.Epoch == n.place.Registered {
			n.q, n.view = q, schema.Views[n.place.Query]
		}
		h.view = n.view
	})
	if n.view == nil {
		n.lost = fmt.Errorf("%w: %q of epoch %d", ErrNoSuchQuery, n.place.Query, n.place.Registered)
	}
}

// placed ends the wait for the epochs of the places: what was not reached is lost, of
// which the listener is told.
func (db *DB) placed() {
	l := &db.subscribers
	l.Lock()
	var missed []Notice
	defer func() {
		l.Unlock()
		for _, n := range missed {
			db.notify(n)
		}
	}()
	l.waiting = nil
	for _, n := range l.by {
		p := &n.place
		switch {
		case p.Store != db.identity.Store || p.Timeline != db.identity.Timeline:
			n.lost = fmt.Errorf("%w: the place is of timeline %s of store %s", ErrTimeline, wal.ID(p.Timeline), wal.ID(p.Store))
		case p.Lost:
			n.lost = fmt.Errorf("%w: the place of the name was given up", ErrTooOld)
		case n.at == nil && !p.Whole && !db.opts.ReadOnly:
			n.lost = fmt.Errorf("%w: epoch %d could not be had again", ErrTooOld, p.Epoch)
			missed = append(missed, Notice{Kind: NoticeSubscriberLost, Subscriber: n.name, Epoch: Epoch(p.Epoch), Err: n.lost})
		case n.at != nil && db.engine.Current.Epoch() > n.at.Epoch:
			n.behind = time.Unix(0, p.Acked)
		}
		// The log up to the place is not kept for it. It may begin before what counts
		// as taken, and the difference wraps to what is behind it all the same.
		n.log += db.upkeep.tail - l.replayed
		if n.lost != nil {
			db.releaseLocked(n)
		}
	}
}

// retain says how many epochs are kept from now on.
func (db *DB) retain() {
	n := uint64(db.opts.RetainedEpochs)
	if t := db.opts.RetainFrom; db.known(t) == nil {
		last := db.engine.Current.Epoch()
		n = max(n, last-min(last, uint64(t.epoch)))
	}
	db.engine.Current.Retain(n)
}
