package triegs

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
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

// Retention bounds what is kept for the name of a subscription. One that is farther
// behind loses its place: what was kept for it is freed, OnEvent is told, and
// Subscribe is ErrTooOld until the name is forgotten. The zero value of a field is no
// limit.
type Retention struct {
	// Epochs is how many epochs there may be behind the last acknowledged one.
	Epochs uint64
	// Bytes is how much may be kept, in memory and of the log. It is looked at now and
	// then, so it may be exceeded by a few epochs.
	Bytes int64
	// Age is for how long there may be something newer, by Options.Clock, since the last
	// Ack; over a restart it counts from that.
	Age time.Duration
}

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

// toldVector is a vector that was told, pinned.
type toldVector struct {
	v     *rootvec.Vector
	quiet bool // it was passed, since nothing had changed
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
	t := toldVector{u.now.vector, quiet}
	l := &s.db.subscribers
	l.Lock()
	switch last := len(n.told) - 1; {
	case n.open != s || n.at == nil, t.v.Epoch == n.at.Epoch && !n.place.Whole:
	case last >= 0 && n.told[last].v.Epoch == t.v.Epoch:
	case last >= 0 && quiet && n.told[last].quiet: // one of several is enough
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
// Token; an earlier one than the last changes nothing. It makes no epoch.
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
	freed := current.Move(&n.parked, e)
	freed = current.Unpin(v) || freed
	i := 0
	for ; i < len(n.told) && n.told[i].v.Epoch <= e; i++ {
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
		if t.v.Epoch == e {
			s.db.engine.Current.Again(t.v)
			p.Epoch, p.Whole, p.Acked = e, false, s.db.opts.Clock().UnixNano()
			return t.v, p, nil
		}
	}
	return nil, p, fmt.Errorf("%w: epoch %d was not told to %q", ErrValue, e, n.name)
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

// SubscriberInfo describes a durable name of subscriptions.
type SubscriberInfo struct {
	// Name is the name, Query that of the query that it follows, Epoch the last that it
	// has acknowledged, or where it began.
	Name  string `json:"name"`
	Query string `json:"query"`
	Epoch Epoch  `json:"epoch"`
	// Lag is how many epochs there are behind it, up to the last one of the query.
	Lag uint64 `json:"lag"`
	// RetainedBytes is what is kept for it: memory that the current epoch does not need,
	// and log. What others keep as well is told of each.
	RetainedBytes int64 `json:"retained_bytes"`
	// Attached says that an open subscription has the name.
	Attached bool `json:"attached"`
	// Lost is why its place is gone, empty while it is there.
	Lost string `json:"lost,omitempty"`
}

// String is a line about the name.
func (i SubscriberInfo) String() string {
	state := "waiting for it"
	switch {
	case i.Lost != "":
		state = "lost: " + i.Lost
	case i.Attached:
		state = "attached"
	}
	return fmt.Sprintf("%q of query %s at epoch %d, %d behind, %d bytes retained, %s", i.Name, i.Query, i.Epoch, i.Lag, i.RetainedBytes, state)
}

// Subscribers lists the durable names by name. It waits for an epoch that is being
// applied.
func (db *DB) Subscribers() []SubscriberInfo {
	l := &db.subscribers
	if l.count.Load() == 0 {
		return nil
	}
	current := &db.engine.Current
	var list []SubscriberInfo
	var holders []*subscriber
	l.Lock()
	for _, name := range slices.Sorted(maps.Keys(l.by)) {
		n := l.by[name]
		if n.place.Query == "" {
			continue // being made
		}
		info := SubscriberInfo{Name: name, Query: n.place.Query, Epoch: Epoch(n.place.Epoch), Attached: n.open != nil}
		if info.Lag = current.Epoch() - min(current.Epoch(), n.place.Epoch); n.at != nil {
			info.Lag = current.Lag(&n.parked)
		}
		if n.lost != nil {
			info.Lost = n.lost.Error()
		}
		if n.at != nil {
			info.RetainedBytes = db.logBehind(n)
		}
		list, holders = append(list, info), append(holders, n)
	}
	l.Unlock()
	for i, n := range holders {
		list[i].RetainedBytes += db.memoryOf(n)
	}
	return list
}

// logBehind is how much log there is behind the place of a name.
func (db *DB) logBehind(n *subscriber) int64 {
	if db.store == nil || db.store.Log == nil {
		return 0
	}
	return min(int64(db.taken()-n.log), db.store.Log.Bytes())
}

// memoryOf is the memory that the place of a name keeps.
func (db *DB) memoryOf(n *subscriber) (sum int64) {
	l := &db.subscribers
	l.Lock()
	var epochs []uint64
	if n.at != nil {
		epochs = append(epochs, n.at.Epoch)
		if n.place.Each {
			for _, e := range db.engine.Current.Kept(nil) {
				if e > n.at.Epoch {
					epochs = append(epochs, e)
				}
			}
		}
	}
	l.Unlock()
	if len(epochs) == 0 {
		return 0
	}
	for _, bytes := range db.engine.Held(epochs) {
		sum += bytes
	}
	return sum
}

// memoryEvery is after how many epochs the memory of names is looked at, which takes
// a look at every epoch that is kept.
const memoryEvery = 64

// expireNames takes their place from names that are farther behind than
// Options.Retention allows.
func (db *DB) expireNames() {
	l := &db.subscribers
	if l.count.Load() == 0 || db.opts.Retention == (Retention{}) || db.opts.ReadOnly {
		return
	}
	now := db.opts.Clock()
	var lost []*subscriber
	var look []*subscriber
	l.Lock()
	l.checks++
	for _, n := range l.by {
		if n.at == nil || n.lost != nil || n.taken {
			continue
		}
		if why := db.exceeds(n, now); why != "" {
			db.loseLocked(n, why)
			lost = append(lost, n)
		} else if db.opts.Retention.Bytes > 0 && l.checks%memoryEvery == 0 {
			look = append(look, n)
		}
	}
	l.Unlock()
	for _, n := range look {
		bytes := db.memoryOf(n)
		l.Lock()
		if bytes += db.logBehind(n); bytes > db.opts.Retention.Bytes && n.at != nil && !n.taken {
			db.loseLocked(n, fmt.Sprintf("%d bytes were kept for it", bytes))
			lost = append(lost, n)
		}
		l.Unlock()
	}
	for _, n := range lost {
		db.tellLost(n)
	}
}

// exceeds tells what of Options.Retention a name exceeds, "" if nothing.
func (db *DB) exceeds(n *subscriber, now time.Time) string {
	r := db.opts.Retention
	// Not what is still to be told: the log stays for a place whose query was dropped.
	lag := db.engine.Current.Epoch() - n.at.Epoch
	switch {
	case lag == 0:
		n.behind = time.Time{}
		return ""
	case n.behind.IsZero():
		n.behind = now
	}
	switch {
	case r.Epochs > 0 && lag > r.Epochs:
		return fmt.Sprintf("%d epochs were kept for it", lag)
	case r.Age > 0 && now.Sub(n.behind) > r.Age:
		return fmt.Sprintf("nothing was acknowledged for %s", now.Sub(n.behind))
	case r.Bytes > 0 && db.logBehind(n) > r.Bytes:
		return fmt.Sprintf("%d bytes of log were kept for it", db.logBehind(n))
	}
	return ""
}

// loseLocked takes the place from a name.
func (db *DB) loseLocked(n *subscriber, why string) {
	n.lost = fmt.Errorf("%w: the place of the name was given up, %s", ErrTooOld, why)
	db.releaseLocked(n)
}

// tellLost ends the subscription of a name that has lost its place, writes that
// down, and tells the listener.
func (db *DB) tellLost(n *subscriber) {
	db.subscribers.Lock()
	open, why, at := n.open, n.lost, Epoch(n.place.Epoch)
	db.subscribers.Unlock()
	if open != nil {
		open.end(why)
	}
	if _, end, err := db.upkeep.begin(context.Background()); err == nil {
		db.writeLost(n)
		end()
	}
	db.notify(Notice{Kind: NoticeSubscriberLost, Subscriber: n.name, Epoch: at, Err: why})
}

// writeLost writes down that a name has lost its place, unless it was forgotten
// meanwhile.
func (db *DB) writeLost(n *subscriber) {
	n.change.Lock()
	defer n.change.Unlock()
	p := n.place
	if p.Query == "" {
		return
	}
	p.Lost = true
	if err := db.positions.Put(n.name, p); err != nil {
		db.opts.Logger.Warn("a lost subscriber could not be written down", "name", n.name, "error", err)
		return
	}
	db.subscribers.Lock()
	defer db.subscribers.Unlock()
	n.place = p
}
