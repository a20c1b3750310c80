package triegs

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/recovery"
)

// SyncMode says when an epoch is durable.
type SyncMode uint8

const (
	// SyncEpoch makes Append return, and readers see the epoch, only when it
	// is on stable storage. Concurrent appends share syncs. It is the zero
	// SyncMode, because losing acknowledged data must be asked for.
	SyncEpoch SyncMode = iota
	// SyncInterval makes Append return at once; the epoch is durable at the
	// next sync point, at most Options.SyncInterval later. A crash loses what
	// came after the last one, always whole epochs from the end.
	SyncInterval
	// SyncNone leaves it to the operating system when epochs reach the disk.
	// DB.Close still syncs.
	SyncNone
)

// String returns the name of the constant.
func (m SyncMode) String() string {
	switch m {
	case SyncEpoch:
		return "SyncEpoch"
	case SyncInterval:
		return "SyncInterval"
	case SyncNone:
		return "SyncNone"
	}
	return fmt.Sprintf("SyncMode(%d)", uint8(m))
}

const (
	// defaultSyncInterval: ten syncs a second are cheap on any disk, and what a
	// crash can take back stays below what a person would type again.
	defaultSyncInterval = 100 * time.Millisecond

	// defaultLockWait outlasts a process that is just closing, and is short
	// enough that a forgotten one is reported and not waited for.
	defaultLockWait = time.Second

	// defaultCheckpointBytes is replayed in about a second.
	defaultCheckpointBytes = 64 << 20
)

// Options configures a store. The zero value is the default of every field;
// Open copies the struct, so a later change to it has no effect.
type Options struct {
	// Durability says when an epoch is on stable storage. Default SyncEpoch:
	// what Append acknowledged survives a crash. Without effect for a store in
	// memory.
	Durability SyncMode

	// SyncInterval is the longest time between two sync points under the
	// SyncInterval mode, and is ErrValue with another mode. Default 100 ms.
	SyncInterval time.Duration

	// LockWait is how long Open waits for the lock of the directory before it
	// returns ErrLocked. Default 1 s; negative = one try.
	LockWait time.Duration

	// ReadOnly opens an existing store without writing to its directory; every
	// writing call returns ErrReadOnly. Default false.
	ReadOnly bool

	// EventTime makes logical time follow the events and not their arrival. Each
	// source has a watermark (Batch.Watermark); logical time is the least of those
	// of the active sources. An event waits, durably, until logical time reaches
	// its own, and what waits is applied in the order of event times, of equal
	// ones insertions first; so a retraction that finds nothing is never refused
	// but skipped and counted. Default false: logical time is that of the batch,
	// or the clock.
	EventTime bool

	// Lateness is how far behind logical time, as it was before the batch, an event
	// may be and still count as in time: within it the order of arrival makes no difference to the final
	// state. Default 0.
	Lateness time.Duration

	// LatePolicy says what becomes of an event that is later than that. Default
	// LateAccept.
	LatePolicy LatePolicy

	// IdleTimeout is how long, in event-time mode, logical time waits for a source
	// from which nothing comes. Where nothing comes from any, it goes on to the
	// greatest watermark. Default 0 = for ever; Metrics.HeldBy names the source
	// then.
	IdleTimeout time.Duration

	// Sources names sources for which logical time waits in event-time mode
	// before they have sent anything. Default none: a source counts from its
	// first batch on.
	Sources []string

	// Tick is how often the clock is looked at while no events come, so that
	// contributions leave windows and idle sources are noticed; an epoch is made
	// only where that changes something. In arrival mode that is done while
	// batches leave their time to the clock; where the last one had a time of its
	// own, only batches and Advance move time. Default 1 s; negative = never.
	Tick time.Duration

	// OnLate is told of each late event, after the epoch that applies or drops it
	// is published, under the rules of OnEvent. Default nil.
	OnLate func(LateEvent)

	// DenseSources makes a gap in the offsets of a source ErrGap. Default
	// false, because compacted and transactional topics have gaps.
	DenseSources bool

	// Clock gives the logical time of a batch that has none, and the age of
	// snapshots. It must be safe for concurrent use. Default time.Now; tests
	// and replays set their own.
	Clock func() time.Time

	// MemoryBudget is the number of bytes that the store's live and retained
	// blocks may take. An epoch that would go above it is refused with
	// ErrBudget, a retraction too while pinned epochs keep what it would free. A
	// store that is above it already still opens. Default 0 = no limit, because
	// only the program knows what else shares the memory.
	MemoryBudget int64

	// MaxPinAge is how long a Snapshot may be held; an older one expires with
	// ErrSnapshotExpired, so that a forgotten reader cannot keep old versions
	// for ever. A Subscription ends with the same error when it was behind the current
	// epoch for that long without taking an update. Default 0 = no limit: a pin is never taken away unasked.
	MaxPinAge time.Duration

	// RetainedEpochs is how many epochs before the current one are kept, so that a
	// subscription can go on from a Token of any of them. Each keeps the memory in
	// which it differs from the next, and that counts for MemoryBudget. Over a restart
	// they are kept as far as the checkpoints and the log reach back: Open then replays
	// them, from the log, instead of loading a state behind them, and the checkpoint after
	// that is a full one. Default 0: only the current one.
	RetainedEpochs int

	// Retention bounds what is kept for the names of subscriptions
	// (SubscribeOptions.Name). Default: no limit, since a name that is needed no more
	// can be forgotten.
	Retention Retention

	// RetainFrom has Open keep the epochs from that of the token on, as far as the
	// checkpoints and the log reach back, as if RetainedEpochs were as many. A token
	// of another store or timeline, or of an epoch that cannot be had any more, is not
	// an error of Open but one of Subscribe. Default: none.
	RetainFrom Token

	// CheckpointBytes is how much the log may take before a checkpoint is taken in
	// the background, which is about what a later Open has to replay; Close takes
	// one behind 1 MiB of log. One that fails tells OnEvent and is tried again by
	// an epoch a second later, then after longer and longer; the log is kept for
	// it. Default 64 MiB, replayed in about a second; negative = only when
	// Checkpoint or Backup is called.
	CheckpointBytes int64

	// DictionaryCacheBytes bounds the memory for the texts of terms that a
	// checkpoint holds: those of more than 15 bytes are read from the disk when
	// they are needed, and what is used often is kept in a cache of this size.
	// About 45 bytes a term stay in memory in any case. What cannot be read is
	// the error of the call that needs it, ErrCorrupt if the disk has lost it.
	// Default 0 = all texts
	// are in memory. Without effect for a store in memory.
	DictionaryCacheBytes int64

	// BackupBytesPerSecond bounds how fast Backup copies, so that it leaves the
	// disk to others. Default 0 = no limit.
	BackupBytesPerSecond int64

	// Fallback lets Open use an older checkpoint, or a log that is complete, if
	// the newest checkpoint is damaged and the state can be had in full all the
	// same; RecoveryReport.Damaged tells, and the next checkpoint is a full one.
	// Where it cannot, Open is ErrCorrupt in any case, and Repair saves what there
	// is. Default false: damage is ErrCorrupt, because a disk that has begun to
	// lose data wants attention.
	Fallback bool

	// LastCheckpoint, with ReadOnly, opens the newest checkpoint alone, without
	// the lock and without the log: also of a store that another process has
	// open. Later checkpoints are seen by another Open. Where there is none yet
	// the error is fs.ErrNotExist. Default false.
	LastCheckpoint bool

	// OnProgress is called by Open, in its goroutine, when it begins to load or
	// to replay, and now and then while it replays. Default nil.
	OnProgress func(RecoveryProgress)

	// Semirings are semirings of the program's own, by the name that query texts
	// give them (semiring NAME), an identifier that is no built-in name. A store
	// whose queries use some must be opened with all of those; where one is missing
	// Open fails with ErrFormat and says which. Default nil = the built-in ones.
	Semirings map[string]Semiring

	// Logger takes the few messages about rare events (a repaired log, a
	// checkpoint that failed). Default: silent, because a library does not print.
	Logger *slog.Logger

	// OnEvent is told of what is not an error of any call: see Notice. It is
	// called by the goroutine that met the event, one call at a time, and must
	// neither block nor call the DB. Default nil = nobody is told.
	OnEvent func(Notice)
}

// withDefaults returns a copy of o with every zero field set; o may be nil.
func (o *Options) withDefaults() *Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Durability == SyncInterval && c.SyncInterval == 0 {
		c.SyncInterval = defaultSyncInterval
	}
	if c.CheckpointBytes == 0 {
		c.CheckpointBytes = defaultCheckpointBytes
	}
	if c.LockWait == 0 {
		c.LockWait = defaultLockWait
	}
	if c.Tick == 0 {
		c.Tick = defaultTick
	}
	c.Sources = slices.Clone(c.Sources)
	c.Semirings = maps.Clone(c.Semirings)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &c
}

// validate reports every bad field at once, each complaint matching ErrValue.
// It runs after withDefaults.
func (o *Options) validate() error {
	var complaints []error
	bad := func(format string, args ...any) {
		complaints = append(complaints, fmt.Errorf("%w: option "+format, append([]any{ErrValue}, args...)...))
	}
	if o.Durability > SyncNone {
		bad("Durability (%s) is not a known mode", o.Durability)
	}
	if o.SyncInterval < 0 {
		bad("SyncInterval (%s) must not be negative", o.SyncInterval)
	}
	if o.SyncInterval > 0 && o.Durability != SyncInterval {
		bad("SyncInterval (%s) has no meaning with Durability %s", o.SyncInterval, o.Durability)
	}
	if o.MemoryBudget < 0 {
		bad("MemoryBudget (%d) must not be negative", o.MemoryBudget)
	}
	if o.RetainedEpochs < 0 {
		bad("RetainedEpochs (%d) must not be negative", o.RetainedEpochs)
	}
	if r := o.Retention; r.Bytes < 0 || r.Age < 0 {
		bad("Retention (%d bytes, %s) must not be negative", r.Bytes, r.Age)
	}
	if o.DictionaryCacheBytes < 0 {
		bad("DictionaryCacheBytes (%d) must not be negative", o.DictionaryCacheBytes)
	}
	if o.BackupBytesPerSecond < 0 {
		bad("BackupBytesPerSecond (%d) must not be negative", o.BackupBytesPerSecond)
	}
	if o.Lateness < 0 {
		bad("Lateness (%s) must not be negative", o.Lateness)
	}
	if o.LatePolicy > LateRefuse {
		bad("LatePolicy (%s) is not a known policy", o.LatePolicy)
	}
	if o.IdleTimeout < 0 {
		bad("IdleTimeout (%s) must not be negative", o.IdleTimeout)
	}
	if (o.IdleTimeout > 0 || len(o.Sources) > 0) && !o.EventTime {
		bad("IdleTimeout and Sources have no meaning without EventTime")
	}
	if o.LastCheckpoint && !o.ReadOnly {
		bad("LastCheckpoint wants ReadOnly")
	}
	if o.MaxPinAge < 0 {
		bad("MaxPinAge (%s) must not be negative", o.MaxPinAge)
	}
	return errors.Join(errors.Join(complaints...), checkSemirings(o.Semirings))
}

// progress is OnProgress as the opening calls it.
func (o *Options) progress() func(recovery.Progress) {
	if o.OnProgress == nil {
		return nil
	}
	return func(p recovery.Progress) {
		o.OnProgress(RecoveryProgress{Phase: p.Phase, Epoch: Epoch(p.Epoch), Last: Epoch(p.Last)})
	}
}

// NoticeKind tells notices apart.
type NoticeKind uint8

const (
	// NoticeReplay: Count events of Source, from Offset on, lay below Position
	// and were skipped.
	NoticeReplay NoticeKind = iota + 1
	// NoticeMissing: Count retractions of what is not there were skipped in
	// Epoch, as Batch.IgnoreMissing asked, or because they had waited for their
	// time.
	NoticeMissing
	// NoticeSnapshotExpired: a snapshot of Epoch reached Options.MaxPinAge.
	NoticeSnapshotExpired
	// NoticeSnapshotLeaked: a snapshot of Epoch was still open when the DB was
	// closed.
	NoticeSnapshotLeaked
	// NoticeCheckpointFailed: a checkpoint failed with Err. The log is kept, and
	// another one is tried later.
	NoticeCheckpointFailed
	// NoticeConflict: Count insertions that had waited for their time were left
	// out in Epoch, because their ID was that of another fact by then.
	NoticeConflict
	// NoticeSubscriptionExpired: a subscription that was told Epoch last was behind
	// for longer than Options.MaxPinAge.
	NoticeSubscriptionExpired
	// NoticeSubscriptionLeaked: a subscription that was told Epoch last was still
	// there when the DB was closed.
	NoticeSubscriptionLeaked
	// NoticeSubscriberLost: the name Subscriber, which had acknowledged Epoch, has lost
	// its place, for the reason Err.
	NoticeSubscriberLost
)

// String returns a short name of the kind.
func (k NoticeKind) String() string {
	switch k {
	case NoticeReplay:
		return "replay"
	case NoticeMissing:
		return "missing"
	case NoticeSnapshotExpired:
		return "snapshot expired"
	case NoticeSnapshotLeaked:
		return "snapshot leaked"
	case NoticeCheckpointFailed:
		return "checkpoint failed"
	case NoticeConflict:
		return "conflict"
	case NoticeSubscriptionExpired:
		return "subscription expired"
	case NoticeSubscriptionLeaked:
		return "subscription leaked"
	case NoticeSubscriberLost:
		return "subscriber lost"
	}
	return fmt.Sprintf("NoticeKind(%d)", uint8(k))
}

// Notice tells a program of something that went as the rules say and that it
// may still want to know. Fields without a meaning for the kind are zero.
type Notice struct {
	// Kind says what happened and which of the other fields are set.
	Kind NoticeKind
	// Epoch is the epoch concerned.
	Epoch Epoch
	// Source is the name of the source concerned.
	Source string
	// Subscriber is the name of the subscription concerned.
	Subscriber string
	// Position is the next offset that the store wants from Source.
	Position uint64
	// Offset is the first offset concerned.
	Offset uint64
	// Count is the number of events concerned.
	Count int
	// Err is why something failed.
	Err error
}

// QueryOption changes how Register reads a query, beyond its text.
type QueryOption func(*queryOptions)

// queryOptions is what the options of one Register call amount to.
type queryOptions struct {
	set      bool
	distinct bool
	window   query.Window
}

// catalog is what the catalog wants to know of them.
func (o queryOptions) catalog() catalog.Options {
	return catalog.Options{Set: o.set, Distinct: o.distinct, Window: o.window}
}

// Window lets the query see only contributions with event time in (t-span, t] at
// logical time t; with a slide other than 0 t counts only at its multiples since
// 1970. It is the window of every atom to which the text gives none of its own;
// a text with another window for the whole query is ErrValue, and so are spans
// that are not positive. In rule text the option `window 10m slide 1m` says the
// same, in SPARQL text WINDOW [RANGE 10m STEP 1m].
func Window(span, slide time.Duration) QueryOption {
	return func(o *queryOptions) {
		o.window.Range, o.window.Slide = int64(span), int64(slide)
		if span == 0 {
			o.window.Range = -1 // refused as what it is: no window at all is not asked for so
		}
	}
}

// Last lets the query see only the n newest contributions to each relation, in
// the order in which they were appended; one that is retracted is not made up
// for. In rule text the option `last n` says the same.
func Last(n int64) QueryOption {
	return func(o *queryOptions) {
		o.window.Last = n
		if n == 0 {
			o.window.Last = -1
		}
	}
}

// Set evaluates the query in set mode, as RDF wants it: a fact weighs 1 while
// it has a live contribution. In rule text the option `set` says the same.
func Set() QueryOption { return func(o *queryOptions) { o.set = true } }

// Distinct gives every answer once, without a multiplicity: the Boolean
// semiring. In rule text the option `distinct` says the same, in SPARQL text
// SELECT DISTINCT. A text with aggregates or with another semiring is ErrValue.
func Distinct() QueryOption { return func(o *queryOptions) { o.distinct = true } }

// gatherQueryOptions applies opts in order; a nil option changes nothing.
func gatherQueryOptions(opts []QueryOption) queryOptions {
	var o queryOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}
