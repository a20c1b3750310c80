package triegs

import (
	"context"
	"fmt"
	"time"
)

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
