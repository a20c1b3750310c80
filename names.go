package triegs

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/recovery/positions"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// maxName bounds the name of a subscription, in bytes.
const maxName = 1024

// subscriber is what a store keeps for a name.
type subscriber struct {
	name string

	// change is held by whoever changes the place, on the disk and then here. It is
	// taken before the lock of all subscribers, which guards the rest.
	change sync.Mutex

	place  positions.Place
	q      *catalog.Query
	view   *views.Query
	parked rootvec.Follower
	at     *rootvec.Vector // where parked is, of the acknowledged epoch; pinned, nil if nothing is kept
	told   []toldVector    // ascending, not acknowledged
	open   *Subscription   // that has the name
	taken  bool            // by a call that is under way
	lost   error           // why there is no place any more
	behind time.Time       // since when there is something newer, zero if there is not
	log    uint64          // bytes that it had taken when the place was
}

// subscribers are those of a store.
type subscribers struct {
	sync.Mutex
	by      map[string]*subscriber
	waiting map[uint64][]*subscriber // while the log is replayed, by their epochs
	// replayed is how much log Open has read behind the state that it has loaded.
	replayed uint64
	count    atomic.Int64
	checks   int
}

// holding tells a query from others of its name. It is apart from the subscriber,
// which changes while the writer asks it.
type holding struct {
	query string
	view  *views.Query
}

// holds reports whether a catalog has the query.
func (h *holding) holds(c rootvec.Catalog) bool {
	v, ok := c.(*epoch.Schema).Views[h.query]
	return ok && v == h.view
}

// claim takes a name for a call. A new one is made where there is none, if fresh.
func (db *DB) claim(name string, fresh bool) (*subscriber, error) {
	l := &db.subscribers
	l.Lock()
	defer l.Unlock()
	n := l.by[name]
	switch {
	case n == nil && !fresh:
		return nil, fmt.Errorf("%w: nobody has the name %q", ErrValue, name)
	case n == nil:
		n = &subscriber{name: name}
		if l.by == nil {
			l.by = make(map[string]*subscriber)
		}
		l.by[name] = n
		l.count.Add(1)
	case n.open != nil || n.taken:
		return nil, fmt.Errorf("%w: %q", ErrNameInUse, name)
	}
	n.taken = true
	return n, nil
}

// unclaim ends a call. A name that has no place is none.
func (db *DB) unclaim(n *subscriber, open *Subscription) {
	l := &db.subscribers
	l.Lock()
	defer l.Unlock()
	n.taken, n.open = false, open
	if n.place.Query == "" {
		delete(l.by, n.name)
		l.count.Add(-1)
	}
}

// beginNamed begins a subscription with a name.
func (s *Subscription) beginNamed() error {
	db := s.db
	if db.opts.ReadOnly {
		return fmt.Errorf("%w: a name has a place that is written", ErrReadOnly)
	}
	ctx, end, err := db.upkeep.begin(s.ctx)
	if err != nil {
		return err
	}
	defer end()
	n, err := db.claim(s.opts.Name, true)
	if err != nil {
		return err
	}
	n.change.Lock()
	s.follower.Buffer = math.MaxUint64
	if err = s.resume(ctx, n); err == nil {
		s.named = n
	}
	n.change.Unlock()
	if err != nil {
		db.unclaim(n, nil)
		return err
	}
	db.unclaim(n, s)
	return s.opens()
}

// resume brings the subscription to the place of its name, or makes one. n.change is
// held, and the name claimed.
func (s *Subscription) resume(ctx context.Context, n *subscriber) error {
	known := n.place.Query != ""
	if known {
		if err := s.knows(n); err != nil {
			return err
		}
		if !n.place.Whole {
			return s.goOn(ctx, n)
		}
		s.opts.Mode = SnapshotFirst
	}
	p := positions.Place{
		Query: s.name, Store: s.db.identity.Store, Timeline: s.db.identity.Timeline,
		Each: s.opts.PerEpoch, Whole: s.opts.Mode == SnapshotFirst,
	}
	h := &holding{query: s.name}
	n.parked = rootvec.Follower{Each: p.Each, Buffer: math.MaxUint64, Holds: h.holds}
	v, err := s.attach(&n.parked, func(c rootvec.Catalog) {
		s.find(c)
		h.view = s.view
	})
	if err != nil {
		return err
	}
	s.db.engine.Current.Branch(&s.follower, &n.parked, v)
	if err = s.begins(v); err == nil {
		p.Registered, p.Epoch = s.q.Epoch, v.Epoch
		p.Acked = s.db.opts.Clock().UnixNano()
		if known && p.Registered != n.place.Registered {
			err = fmt.Errorf("%w: %q of epoch %d, which %q is of", ErrNoSuchQuery, s.name, n.place.Registered, n.name)
		} else {
			err = s.db.place(ctx, n.name, p)
		}
		if err != nil {
			s.at.end(ErrClosed)
			s.at = nil
			s.leave()
		}
	}
	l := &s.db.subscribers
	l.Lock()
	defer l.Unlock()
	n.at = v
	if err != nil {
		s.db.releaseLocked(n)
		return err
	}
	n.place, n.q, n.view, n.log = p, s.q, s.view, s.db.grown()
	return nil
}

// knows reports why a name that there is cannot be gone on with.
func (s *Subscription) knows(n *subscriber) error {
	l := &s.db.subscribers
	l.Lock()
	defer l.Unlock()
	switch {
	case n.place.Query != s.name:
		return fmt.Errorf("%w: the name %q belongs to query %q", ErrValue, n.name, n.place.Query)
	case n.lost != nil:
		return fmt.Errorf("%w; %q has acknowledged epoch %d, the oldest that is kept is %d", n.lost, n.name, n.place.Epoch, s.db.oldest())
	}
	return nil
}

// oldest is the oldest epoch that is kept.
func (db *DB) oldest() uint64 {
	if kept := db.engine.Current.Kept(nil); len(kept) > 0 {
		return kept[0]
	}
	return db.engine.Current.Epoch()
}

// goOn begins behind what the name has acknowledged.
func (s *Subscription) goOn(ctx context.Context, n *subscriber) error {
	db := s.db
	s.opts.Mode = Follow
	s.q, s.view = n.q, n.view
	current := &db.engine.Current
	if p := n.place; p.Each != s.opts.PerEpoch {
		p.Each = s.opts.PerEpoch
		if err := db.place(ctx, n.name, p); err != nil {
			return err
		}
		db.subscribers.Lock()
		n.place = p
		current.Want(&n.parked, p.Each)
		db.subscribers.Unlock()
	}
	db.subscribers.Lock()
	v := n.at
	if v != nil {
		current.Branch(&s.follower, &n.parked, v)
	}
	db.subscribers.Unlock()
	if v == nil { // it has lost its place meanwhile
		return s.knows(n)
	}
	return s.begins(v)
}

// place makes a place durable.
func (db *DB) place(ctx context.Context, name string, p positions.Place) error {
	if db.store == nil {
		return db.positions.Put(name, p)
	}
	return db.store.Acknowledge(ctx, name, p)
}

// grown is what the log has taken.
func (db *DB) grown() uint64 {
	if db.store == nil || db.store.Log == nil {
		return 0
	}
	return db.taken()
}

// detach takes a subscription that has ended from its name. An Ack that is under way
// comes first.
func (db *DB) detach(s *Subscription) {
	n, l := s.named, &db.subscribers
	n.change.Lock()
	defer n.change.Unlock()
	l.Lock()
	defer l.Unlock()
	if n.open == s {
		n.open = nil
	}
	db.untellLocked(n)
	if n.place.Whole { // it begins with the answer as it will be then
		db.releaseLocked(n)
	}
}

// untellLocked gives up what was told and not acknowledged.
func (db *DB) untellLocked(n *subscriber) {
	freed := false
	for _, t := range n.told {
		freed = db.engine.Current.Unpin(t.v) || freed
	}
	n.told = nil
	if freed {
		db.engine.TryCollect()
	}
}

// releaseLocked frees what is kept for a name.
func (db *DB) releaseLocked(n *subscriber) {
	db.untellLocked(n)
	if n.at == nil {
		return
	}
	freed := db.engine.Current.Leave(&n.parked)
	if db.engine.Current.Unpin(n.at) || freed {
		db.engine.TryCollect()
	}
	n.at = nil
}

// unpark frees what is kept for all names, in memory: the store is closed.
func (db *DB) unpark() {
	l := &db.subscribers
	l.Lock()
	defer l.Unlock()
	for _, n := range l.by {
		db.releaseLocked(n)
	}
}

// Forget removes a name, and what is kept for it. Errors: ErrValue (nobody has it),
// ErrNameInUse (an open subscription has), ErrReadOnly, ErrClosed, those of writing.
func (db *DB) Forget(ctx context.Context, name string) error { return edge(db.forget(ctx, name)) }

func (db *DB) forget(ctx context.Context, name string) error {
	if err := db.check(ctx); err != nil {
		return err
	}
	_, end, err := db.upkeep.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	n, err := db.claim(name, false)
	if err != nil {
		return err
	}
	n.change.Lock()
	if err = db.positions.Forget(name); err == nil {
		db.subscribers.Lock()
		db.releaseLocked(n)
		n.place = positions.Place{}
		db.subscribers.Unlock()
	}
	n.change.Unlock()
	db.unclaim(n, nil)
	return err
}
