package triegs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/recovery"
	"github.com/triegs/triegs/recovery/positions"
	"github.com/triegs/triegs/txn"
)

// DB is an open store. Its methods may be called from any goroutine; epochs are
// made one after another.
type DB struct {
	opts   *Options
	engine *epoch.Engine
	store  *recovery.Store // nil in memory
	report recovery.Report
	closed atomic.Bool
	upkeep upkeep
	live   liveness
	late   lateCounters

	// Of the epoch under construction, used by whoever holds the engine.
	txn    txn.Txn
	intake intake

	snapshots struct {
		sync.Mutex
		open map[*Snapshot]struct{}
	}
	subscriptions struct {
		sync.Mutex
		open map[*Subscription]struct{}
	}
	subscribers subscribers
	identity    wal.Identity    // of a store in memory one of its own
	positions   *positions.File // of names; of a store in memory in memory
	notices     sync.Mutex      // one call of OnEvent at a time
}

// Open opens the store in dir, creating it if there is none, and brings it to
// the last durable epoch: from the newest checkpoint and the log behind it. With
// dir "" the store is in memory: it starts empty, keeps nothing, and needs no
// durability. opts may be nil.
//
// Errors: ErrLocked (another owner, within Options.LockWait), ErrCorrupt (what
// is stored is not what was acknowledged), ErrFormat (not a store of this
// version), ErrValue (options), or an error of the operating system. A failed
// Open leaves nothing open. Cost is that of loading the checkpoint, which means
// sorting the facts once for each index, and of replaying the log behind it.
func Open(dir string, opts *Options) (*DB, error) {
	return OpenContext(context.Background(), dir, opts)
}

// OpenContext is Open that ends with ctx's error when ctx ends before the store
// is open.
func OpenContext(ctx context.Context, dir string, opts *Options) (*DB, error) {
	o := opts.withDefaults()
	if err := o.validate(); err != nil {
		return nil, edge(err)
	}
	db := &DB{opts: o}
	db.snapshots.open = make(map[*Snapshot]struct{})
	db.subscriptions.open = make(map[*Subscription]struct{})
	if dir == "" {
		if o.ReadOnly {
			return nil, edge(fmt.Errorf("%w: a store in memory cannot be read-only", ErrValue))
		}
		db.engine = epoch.New()
		db.identity = wal.Identity{Store: wal.NewID(), Timeline: wal.NewID()}
		db.engine.Semirings(o.Semirings)
		db.positions, _ = positions.Open("", positions.Options{}) // nothing to fail
	} else if err := db.recover(ctx, dir); err != nil {
		if err == ctx.Err() { //nolint:errorlint // exactly this
			return nil, err
		}
		return nil, edge(fmt.Errorf("opening %s: %w", dir, err))
	}
	// What was acknowledged cannot be refused any more, so the budget begins
	// to count here.
	db.engine.Budget(o.MemoryBudget)
	db.engine.Clock(time.Now)
	db.retain()
	db.placed()
	if o.EventTime { // whatever was in force when the store was written
		db.engine.SetTime(true, int64(o.Lateness))
	} else {
		db.engine.SetTime(false, 0)
	}
	db.live.init(o)
	db.upkeep.init()
	db.afterEpoch()
	return db, nil
}

func (db *DB) recover(ctx context.Context, dir string) error {
	o := db.opts
	store, report, err := recovery.Open(ctx, dir, recovery.Options{
		Log: wal.Options{
			Mode:     wal.Mode(o.Durability),
			Interval: o.SyncInterval,
			ReadOnly: o.ReadOnly,
			LockWait: o.LockWait,
		},
		LastCheckpoint: o.LastCheckpoint,
		Fallback:       o.Fallback,
		TermCache:      o.DictionaryCacheBytes,
		Semirings:      o.Semirings,
		Wanted:         db.wanted,
		Reached:        db.reached,
		Progress:       o.progress(),
		Now:            time.Now,
	})
	if err != nil {
		return err
	}
	db.store, db.engine, db.report = store, store.Engine, report
	db.identity, db.positions = store.Identity(), store.Positions
	db.upkeep.tail = uint64(report.Log.TailBytes)
	for _, why := range report.Damaged {
		o.Logger.Error("a damaged checkpoint was passed over", "reason", why)
	}
	if report.Missed != nil {
		o.Logger.Error("earlier epochs could not be had again", "reason", report.Missed)
	}
	if report.Log.Renewed {
		o.Logger.Error("the log ended before the checkpoint, the disk has lost it",
			"ended at", report.Log.EndedAt, "checkpoint", report.Checkpoint)
	}
	if report.Log.CutBytes > 0 {
		o.Logger.Warn("the log ended in the middle of an epoch that nobody was told of; it was cut",
			"file", report.Log.CutFile, "offset", report.Log.CutOffset, "bytes", report.Log.CutBytes)
	}
	if o.ReadOnly {
		db.engine.Fail(fmt.Errorf("%w: it was opened so", ErrReadOnly))
		return nil
	}
	db.engine.Logged(store.Log)
	return nil
}

// edge puts the name of the library in front of an error that leaves it.
// Errors of a context are returned as they are.
func edge(err error) error {
	if err == nil || err == context.Canceled || err == context.DeadlineExceeded { //nolint:errorlint // exactly these
		return err
	}
	return fmt.Errorf("triegs: %w", err)
}

// Append applies a batch atomically as one epoch and returns its number when
// readers can see it, which under SyncEpoch is when it is durable.
//
// The batch is checked whole before anything is published: ErrArity, ErrValue,
// ErrTime, ErrNoSuchFact, ErrOverflow, ErrGap and ErrBudget name the event, or
// where the views of a query refuse the net change of the batch, the query and
// its relations that the batch changes. They leave the store, its terms and its
// positions as they were. Events of a source below its position are skipped; if
// that is all of them there is no epoch, and the current one is returned. A batch
// without events is an epoch.
//
// When ctx ends before the epoch is logged there is no trace of it and ctx's
// error is returned; after that the epoch stands, its number is returned, and
// the error says so. After a failed write of the log every Append is
// ErrReadOnly.
//
// Cost: proportional to the net change of the batch and the tuples it wakes in
// the registered queries; an event allocates nothing beyond new terms.
func (db *DB) Append(ctx context.Context, b Batch) (Epoch, error) {
	one := [1]Batch{b}
	return db.appendAll(ctx, one[:])
}

// AppendAll is Append for several batches, of different sources for example, in
// one epoch: all of them become visible together, or none does. The logical
// time is the latest of the batches'.
func (db *DB) AppendAll(ctx context.Context, batches ...Batch) (Epoch, error) {
	return db.appendAll(ctx, batches)
}

func (db *DB) appendAll(ctx context.Context, batches []Batch) (Epoch, error) {
	ticket, told, err := db.apply(ctx, batches)
	if err != nil {
		return 0, edge(err)
	}
	for _, n := range told.notices {
		db.notify(n)
	}
	err = ticket.Wait(ctx)
	db.tellLate(told.late)
	db.afterEpoch() // behind the wait, when the log has the epoch
	switch {
	case err == nil:
		return Epoch(ticket.Epoch), nil
	case ctx.Err() != nil:
		return Epoch(ticket.Epoch), edge(err)
	}
	return 0, edge(err)
}

// told is what the listeners are to know of an epoch.
type told struct {
	notices []Notice
	late    []LateEvent
}

// apply takes batches through one epoch. What is told is about the epoch that the
// ticket names.
func (db *DB) apply(ctx context.Context, batches []Batch) (epoch.Ticket, told, error) {
	if err := db.check(ctx); err != nil {
		return epoch.Ticket{}, told{}, err
	}
	clock := db.opts.Clock()
	// The transaction and the intake are used by whoever holds the epoch.
	t, in := &db.txn, &db.intake
	if err := t.Begin(ctx, db.engine); err != nil {
		return epoch.Ticket{}, told{}, db.ended(err)
	}
	*in = intake{db: db, t: t, clock: clock, first: db.engine.Time(), at: db.engine.Time()}
	err := in.takeAll(batches)
	if err == nil && in.replayed {
		// What is told to be applied already may still wait for its sync.
		in.countMissing()
		out := in.told
		last := t.Leave()
		return epoch.Ticket{Epoch: last}, out, db.engine.WaitFor(ctx, last)
	}
	if err == nil {
		err = db.engine.Pass(in.at)
	}
	if err != nil {
		t.Rollback()
		return epoch.Ticket{}, told{}, err
	}
	in.countMissing()
	out, stats := in.told, in.stats
	ticket, err := t.Commit(ctx, in.at)
	if err != nil {
		return epoch.Ticket{}, told{}, db.ended(err)
	}
	db.late.add(stats)
	db.expirePins()
	for i := range out.notices {
		out.notices[i].Epoch = Epoch(ticket.Epoch)
	}
	return ticket, out, nil
}

// check is what every writing call asks first.
func (db *DB) check(ctx context.Context) error {
	if db.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// ended says of an engine that takes nothing any more why that is.
func (db *DB) ended(err error) error {
	if db.closed.Load() {
		return ErrClosed
	}
	return err
}

// nanoseconds is a time as the store keeps it.
func nanoseconds(t time.Time) (int64, error) {
	ns := t.UnixNano()
	if !time.Unix(0, ns).Equal(t) {
		return 0, fmt.Errorf("%w: %s is not within int64 nanoseconds of 1970", ErrTime, t.Format(time.RFC3339Nano))
	}
	return ns, nil
}

// notify tells the listener, one notice at a time.
func (db *DB) notify(n Notice) {
	if db.opts.OnEvent == nil {
		return
	}
	db.notices.Lock()
	defer db.notices.Unlock()
	db.opts.OnEvent(n)
}

// Register adds a continuous query under a name. The query starts from the
// facts that are there, in one epoch, as if it had been there from the
// beginning. The text is SPARQL when its first word is SELECT, PREFIX or BASE,
// otherwise a rule.
//
// It starts from what is retained: where only windowed queries have read a
// relation so far, what their windows had left behind is gone, also for a query
// without a window that is registered after them. Register that one first, or
// call Retain.
//
// Errors: ErrQueryExists, ErrValue (an empty name), ErrSyntax, ErrArity and
// ErrUnsupported with line:column (a query outside of the classes that are
// maintained names its class and what makes it so), ErrOverflow, ErrBudget, and
// those of Append. When ctx ends, or the store is closed (ErrClosed), before the
// query is there, there is no trace of it.
//
// Cost: that of sorting the relations for which the query needs an order that
// nobody has asked for yet. Where these have thousands of facts it is done beside
// the writers, which wait for no more than the changes of a few epochs; memory is
// that of the views and of sorting the largest of them. Writers do wait while a
// window, or values, that no registered query reads yet are gathered, and for a
// query over few facts.
func (db *DB) Register(ctx context.Context, name, text string, opts ...QueryOption) (*Query, error) {
	q, err := db.register(ctx, name, text, gatherQueryOptions(opts))
	if err != nil {
		return nil, edge(err)
	}
	return q, nil
}

func (db *DB) register(ctx context.Context, name, text string, o queryOptions) (*Query, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("%w: a query has a name", ErrValue)
	}
	p, err := catalog.Compile(text, o.catalog())
	if err != nil {
		return nil, err
	}
	beside, end, err := db.upkeep.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	beside = asked{beside, ctx}
	q := &catalog.Query{Name: name, Text: text, Set: o.set, Dist: o.distinct, Window: o.window, Plan: p}
	if err := db.engine.RegisterLive(ctx, beside, q); err != nil {
		if ctx.Err() == nil && beside.Err() != nil {
			return nil, ErrClosed // which is what has ended it
		}
		return nil, db.ended(err)
	}
	if _, err := db.commit(ctx, record.Register, math.MinInt64); err != nil {
		return nil, err
	}
	return &Query{q}, nil
}

// asked is a context that has ended when another one says so, of which it is made.
type asked struct {
	context.Context
	first context.Context
}

// Err is that of both.
func (c asked) Err() error {
	if err := c.first.Err(); err != nil {
		return err
	}
	return c.Context.Err()
}

// commit ends an epoch that holds the engine, at the given logical time or the
// one before if that is later, and waits for its publication. Where
// only the waiting fails the epoch stands, and its number comes with the error.
func (db *DB) commit(ctx context.Context, kind record.Kind, at int64) (Epoch, error) {
	ticket, err := db.engine.Commit(ctx, kind, at)
	if err != nil {
		return 0, db.ended(err)
	}
	db.expirePins()
	err = ticket.Wait(ctx)
	db.afterEpoch()
	return Epoch(ticket.Epoch), err
}

// Drop ends a query. Snapshots of earlier epochs go on answering it. Errors:
// ErrNoSuchQuery and those of Append.
func (db *DB) Drop(ctx context.Context, name string) error {
	return edge(db.single(ctx, record.Drop, func() (bool, error) {
		return true, db.engine.Drop(name)
	}))
}

// single runs an epoch with one action, which reports whether there is anything
// to publish.
func (db *DB) single(ctx context.Context, kind record.Kind, do func() (bool, error)) error {
	if err := db.check(ctx); err != nil {
		return err
	}
	if err := db.engine.Begin(ctx); err != nil {
		return db.ended(err)
	}
	worth, err := do()
	switch {
	case err != nil:
		db.engine.Rollback()
		return err
	case !worth:
		db.engine.Leave()
		return nil
	}
	_, err = db.commit(ctx, kind, math.MinInt64)
	return err
}

// Query finds a registered query in the current epoch. Errors: ErrNoSuchQuery,
// ErrClosed.
func (db *DB) Query(name string) (*Query, error) {
	s, err := db.schema()
	if err != nil {
		return nil, edge(err)
	}
	q, err := s.Query(name)
	if err != nil {
		return nil, edge(err)
	}
	return &Query{q}, nil
}

// Queries lists the registered queries of the current epoch by name; none after
// Close.
func (db *DB) Queries() []*Query {
	s, err := db.schema()
	if err != nil {
		return nil
	}
	var list []*Query
	for _, q := range s.Queries() {
		list = append(list, &Query{q})
	}
	return list
}

// schema is the published schema.
func (db *DB) schema() (*epoch.Schema, error) {
	if db.closed.Load() {
		return nil, ErrClosed
	}
	v := db.engine.Current.Pin()
	defer db.engine.Current.Unpin(v)
	return v.Catalog.(*epoch.Schema), nil
}

// Offset is the next offset that the source has to send, after the current
// epoch; ok is false if the source was never seen. After 0..150 it is 151.
func (db *DB) Offset(source string) (next uint64, ok bool) {
	v := db.engine.Current.Pin()
	defer db.engine.Current.Unpin(v)
	s, ok := v.Sources.Get(source)
	return s.Next, ok
}

// SourcePosition is where a source stands.
type SourcePosition struct {
	Next        uint64 // the offset to send next
	Incarnation string // as given to ResetSource, "" before the first reset
	Skipped     uint64 // offsets passed by SkipTo, over all incarnations
	// Watermark is how far in time the source has come, in event-time mode; zero
	// if it has not said anything yet.
	Watermark time.Time
}

// Source is the position of a source after the current epoch, with its
// incarnation and what was skipped; ok is false if it was never seen.
func (db *DB) Source(name string) (p SourcePosition, ok bool) {
	v := db.engine.Current.Pin()
	defer db.engine.Current.Unpin(v)
	s, ok := v.Sources.Get(name)
	p = SourcePosition{Next: s.Next, Incarnation: s.Incarnation, Skipped: s.Skipped}
	if s.HasWatermark {
		p.Watermark = wallTime(s.Watermark)
	}
	return p, ok
}

// SkipTo moves the position of a source forward to next without events, past a
// record that cannot be used for example; it is an epoch of its own, unless the
// source stands there already. Backwards is ErrValue.
func (db *DB) SkipTo(ctx context.Context, source string, next uint64) error {
	t := txn.Over(db.engine)
	return edge(db.single(ctx, record.Skip, func() (bool, error) { return t.SkipTo(source, next) }))
}

// ResetSource starts a source anew at offset 0 under a new incarnation, after
// its topic was made again for example; it is an epoch of its own. With the
// current incarnation it changes nothing.
func (db *DB) ResetSource(ctx context.Context, source, incarnation string) error {
	t := txn.Over(db.engine)
	return edge(db.single(ctx, record.Reset, func() (bool, error) { return t.Reset(source, incarnation) }))
}

// WaitFor returns when epoch e is published. Errors: ctx's, ErrClosed, and
// ErrReadOnly if the log has failed before e.
func (db *DB) WaitFor(ctx context.Context, e Epoch) error {
	if db.closed.Load() {
		return edge(ErrClosed)
	}
	if err := db.engine.WaitFor(ctx, uint64(e)); err != nil {
		return edge(db.ended(err))
	}
	return nil
}

// Close ends the store: what was appended is written and synced, a checkpoint or
// backup under way is ended, enumerations that still run end with ErrClosed at
// their next step, and the lock is free afterwards in every case. Where the log
// has grown by more than 1 MiB since the last checkpoint another one is taken
// (unless Options.CheckpointBytes is negative); should that fail nothing is lost,
// and the next Open replays the log. Snapshots and subscriptions that were left open are
// closed and reported as ErrLeaked. A second Close returns nil.
func (db *DB) Close() error {
	if !db.closed.CompareAndSwap(false, true) {
		return nil
	}
	db.upkeep.end()
	if db.store != nil && !db.opts.ReadOnly && db.opts.CheckpointBytes > 0 && db.logBytes() > closeBytes {
		_, _ = db.saveNow(context.Background()) // counted and told there
	}
	db.engine.Fail(ErrClosed)
	db.engine.Wait()
	leaked, subscribed := db.endSnapshots(), db.endSubscriptions()
	db.unpark()
	var complaints []error
	if db.store != nil {
		complaints = append(complaints, db.store.Close())
	}
	if leaked > 0 {
		complaints = append(complaints, fmt.Errorf("%w: %d snapshots", ErrLeaked, leaked))
	}
	if subscribed > 0 {
		complaints = append(complaints, fmt.Errorf("%w: %d subscriptions", ErrLeaked, subscribed))
	}
	return edge(errors.Join(complaints...))
}
