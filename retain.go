package triegs

import (
	"math"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/recovery/positions"
)

// wanted is the epoch behind which a store wants its epochs one by one when it is
// opened.
func (db *DB) wanted(id wal.Identity, newest uint64, places map[string]positions.Place) uint64 {
	from := newest - min(newest, uint64(db.opts.RetainedEpochs))
	if t := db.opts.RetainFrom; t.store == id.Store && t.timeline == id.Timeline {
		from = min(from, uint64(t.epoch))
	}
	return from
}

// reached keeps what is wanted while the log is replayed.
func (db *DB) reached(id wal.Identity, e *epoch.Engine, places map[string]positions.Place) {
	if db.engine != e { // it begins, perhaps anew
		db.engine = e
		e.Current.Retain(uint64(db.opts.RetainedEpochs))
	}
	if t := db.opts.RetainFrom; !t.IsZero() && e.Current.Epoch() == uint64(t.epoch) {
		e.Current.Retain(math.MaxUint64)
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
