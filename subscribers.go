package triegs

import (
	"fmt"
	"maps"
	"slices"
)

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
