package triegs

import (
	"fmt"
	"strings"
	"time"
)

// Metrics is a reading of the store's counters and memory accounts. Counters
// start at 0 when the store is opened, and count what is replayed then.
type Metrics struct {
	Epoch     Epoch     `json:"epoch"`
	Time      time.Time `json:"time"`
	Relations int       `json:"relations"`
	Queries   int       `json:"queries"`
	// Facts counts different facts, Contributions their live copies, Terms the
	// dictionary.
	Facts         int64  `json:"facts"`
	Contributions int64  `json:"contributions"`
	Terms         uint64 `json:"terms"`

	// Events were applied; Refused epochs left no trace; Ignored retractions
	// found nothing and were skipped; Replayed events lay below the position
	// of their source.
	Events   uint64 `json:"events"`
	Refused  uint64 `json:"refused"`
	Ignored  uint64 `json:"ignored"`
	Replayed uint64 `json:"replayed"`
	// Expired contributions were retracted because nothing saw them any more;
	// Waiting events wait for their time. Late counts those that came too late.
	// HeldBy is, in event-time mode, the source with the least watermark: logical
	// time waits for it. It is empty when no source is active.
	Expired uint64    `json:"expired"`
	Waiting int       `json:"waiting"`
	Late    LateStats `json:"late"`
	HeldBy  string    `json:"held_by"`
	// ViewWrites are tuples written to indexes and views, Woken tuples that
	// were recomputed because a partner group came or went.
	ViewWrites uint64 `json:"view_writes"`
	Woken      uint64 `json:"woken"`

	// Memory in bytes. Of the tries: LiveBytes are reachable from the current
	// epoch, PendingBytes wait for the next publication, RetainedBytes are kept
	// for pinned epochs, ReusableBytes are free. The tries of queries that are being
	// registered beside the writer, HydrationBytes, the dictionary and the live
	// contributions come on top.
	LiveBytes       int64 `json:"live_bytes"`
	PendingBytes    int64 `json:"pending_bytes"`
	RetainedBytes   int64 `json:"retained_bytes"`
	ReusableBytes   int64 `json:"reusable_bytes"`
	HydrationBytes  int64 `json:"hydration_bytes"`
	DictionaryBytes int64 `json:"dictionary_bytes"`
	FactBytes       int64 `json:"fact_bytes"`

	// Snapshots are open; OldestPin is the epoch of the oldest, if there is
	// one, OldestPinAge the age of the oldest by Options.Clock.
	Snapshots    int           `json:"snapshots"`
	OldestPin    Epoch         `json:"oldest_pin"`
	OldestPinAge time.Duration `json:"oldest_pin_age"`

	// Subscriptions are open; DB.Subscriptions has more of each. RetainedEpochs are
	// kept before the current one, for those that take each epoch and for tokens.
	Subscriptions  int `json:"subscriptions"`
	RetainedEpochs int `json:"retained_epochs"`

	// Subscribers are the durable names of subscriptions, as DB.Subscribers lists them.
	Subscribers []SubscriberInfo `json:"subscribers,omitempty"`

	// The log: epochs and bytes written, syncs of them.
	LogEntries uint64 `json:"log_entries"`
	LogBytes   uint64 `json:"log_bytes"`
	LogSyncs   uint64 `json:"log_syncs"`

	// Checkpoints tells of those since the store was opened.
	Checkpoints CheckpointStats `json:"checkpoints"`
}

// Metrics reads the counters. It waits for an epoch that is being applied. After
// Close it goes on telling the last state.
func (db *DB) Metrics() Metrics {
	st := db.engine.Stats()
	m := Metrics{
		Relations: st.Relations, Queries: st.Queries,
		Facts: st.Facts, Contributions: st.Contributions, Terms: st.Terms,
		Events: st.Events, Refused: st.Refused, Ignored: st.Ignored, Replayed: st.Skipped,
		Expired: st.Expired, Waiting: st.Waiting, Late: db.late.read(),
		ViewWrites: st.Writes, Woken: st.Woken,
		LiveBytes: st.Tries.Live, PendingBytes: st.Tries.Pending, RetainedBytes: st.Tries.Held,
		ReusableBytes: st.Tries.Reusable, HydrationBytes: st.Tries.Nurseries,
		DictionaryBytes: st.DictBytes, FactBytes: st.FactBytes,
	}
	v := db.engine.Current.Pin()
	m.Epoch = Epoch(v.Epoch)
	m.Time = wallTime(v.Time)
	if db.opts.EventTime {
		l, _ := db.lowest(v.Sources, db.opts.Clock(), "", false)
		m.HeldBy = l.source
	}
	db.engine.Current.Unpin(v)
	if db.store != nil && db.store.Log != nil {
		l := db.store.Log.Stats()
		m.LogEntries, m.LogBytes, m.LogSyncs = l.Entries, l.Bytes, l.Syncs
	}
	m.Checkpoints = db.checkpointStats()
	db.pinMetrics(&m)
	db.subscriptionMetrics(&m)
	return m
}

func (db *DB) pinMetrics(m *Metrics) {
	now := db.opts.Clock()
	db.snapshots.Lock()
	defer db.snapshots.Unlock()
	m.Snapshots = len(db.snapshots.open)
	first := true
	for s := range db.snapshots.open {
		if first || s.Epoch() < m.OldestPin {
			m.OldestPin = s.Epoch()
		}
		first = false
		m.OldestPinAge = max(m.OldestPinAge, now.Sub(s.born))
	}
}

// String is a short table of the metrics.
func (m Metrics) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s "+format+"\n", append([]any{name}, args...)...)
	}
	line("epoch", "%d", m.Epoch)
	line("relations", "%d", m.Relations)
	line("queries", "%d", m.Queries)
	line("facts", "%d (%d contributions)", m.Facts, m.Contributions)
	line("terms", "%d, %d reclaimed", m.Terms, m.Checkpoints.Terms)
	line("events", "%d applied, %d replayed, %d ignored", m.Events, m.Replayed, m.Ignored)
	line("refused", "%d epochs", m.Refused)
	line("time", "%s, %d waiting, %d expired", m.Time.Format(time.RFC3339Nano), m.Waiting, m.Expired)
	line("late", "%d accepted, %d dropped, %d refused, %d outside", m.Late.Accepted, m.Late.Dropped, m.Late.Refused, m.Late.Outside)
	line("views", "%d writes, %d woken", m.ViewWrites, m.Woken)
	line("tries", "%d bytes live, %d pending, %d retained, %d reusable", m.LiveBytes, m.PendingBytes, m.RetainedBytes, m.ReusableBytes)
	line("hydrations", "%d bytes", m.HydrationBytes)
	line("dictionary", "%d bytes", m.DictionaryBytes)
	line("contributions", "%d bytes", m.FactBytes)
	line("snapshots", "%d open, oldest at epoch %d", m.Snapshots, m.OldestPin)
	line("subscriptions", "%d open, %d epochs retained", m.Subscriptions, m.RetainedEpochs)
	for _, n := range m.Subscribers {
		line("subscriber", "%s", n)
	}
	line("log", "%d epochs, %d bytes, %d syncs", m.LogEntries, m.LogBytes, m.LogSyncs)
	line("checkpoints", "%s", m.Checkpoints)
	return b.String()
}
