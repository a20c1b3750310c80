package triegs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs/recovery"
)

// upkeep is the work that is done beside the epochs: checkpoints that are due,
// the reclamation of terms, and the passing of time while no events come. Each has a goroutine of its own, while there is
// something to do.
type upkeep struct {
	mu      sync.Mutex
	saving  bool // its goroutine takes checkpoints
	marking bool // its goroutine looks for terms that nothing names
	ticking bool // its goroutine moves logical time
	closed  bool
	jobs    sync.WaitGroup // those goroutines, and calls of Checkpoint and Backup
	ctx     context.Context
	cancel  context.CancelFunc

	// Of checkpoints; since is written under mu, the others are read so as well.
	tail     uint64        // bytes of the log that Open has replayed
	since    atomic.Uint64 // bytes that the log had taken at the newest one, tail included
	failures int           // in a row
	retryAt  time.Time     // before it a failed one is not tried again
	stats    CheckpointStats
}

// CheckpointStats tells of the checkpoints of a store. Counters start at 0 when
// it is opened; a backup takes a checkpoint too and counts as one.
type CheckpointStats struct {
	// Taken were completed, Full of them hold all of the state and the others
	// what had changed since the one before. Failed attempts left no trace, and
	// Error is why the last attempt did, empty if it went well.
	Taken  uint64 `json:"taken"`
	Full   uint64 `json:"full"`
	Failed uint64 `json:"failed"`
	Error  string `json:"error"`
	// Epoch is that of the newest checkpoint, also if it was found by Open; 0 if
	// there is none. LogBytes is what the log has taken since, which is what
	// Open has to replay.
	Epoch    Epoch  `json:"epoch"`
	LogBytes uint64 `json:"log_bytes"`
	// Bytes and Duration are what the last one that was taken has written, and
	// how long it took, 0 before the first.
	Bytes    int64         `json:"bytes"`
	Duration time.Duration `json:"duration"`
	// Terms counts the terms that nothing named any more and that were given up
	// for it, with or without a checkpoint.
	Terms uint64 `json:"reclaimed_terms"`
}

// String is the checkpoints in a line.
func (c CheckpointStats) String() string {
	newest := fmt.Sprintf("none yet, %d bytes of log", c.LogBytes)
	if c.Epoch > 0 {
		newest = fmt.Sprintf("newest of epoch %d, %d bytes of log behind it", c.Epoch, c.LogBytes)
	}
	s := fmt.Sprintf("%s, %d taken (%d full), %d failed", newest, c.Taken, c.Full, c.Failed)
	if c.Error != "" {
		s += ", the last one: " + c.Error
	}
	return s
}

func (u *upkeep) init() { u.ctx, u.cancel = context.WithCancel(context.Background()) }

// begin counts a job in, unless the store is being closed. The context that it
// returns ends with ctx, and when the store is closed.
func (u *upkeep) begin(ctx context.Context) (joined context.Context, end func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, nil, ErrClosed
	}
	u.jobs.Add(1)
	joined, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(u.ctx, cancel)
	return joined, func() { stop(); cancel(); u.jobs.Done() }, nil
}

// end cancels all jobs and waits for them.
func (u *upkeep) end() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.cancel()
	u.jobs.Wait()
}

const (
	// closeBytes is how much log makes a checkpoint at Close worth while: less
	// is replayed faster than a checkpoint is written.
	closeBytes = 1 << 20

	// retryWait is how long a failed checkpoint is not tried again; it doubles
	// with each failure up to retryWaitMax.
	retryWait    = time.Second
	retryWaitMax = 5 * time.Minute
)

// taken is what the log has taken since Open, and what Open has replayed.
func (db *DB) taken() uint64 { return db.upkeep.tail + db.store.Log.Written() }

// logBytes is what the log has taken since the newest checkpoint.
func (db *DB) logBytes() uint64 {
	return db.taken() - db.upkeep.since.Load()
}

// afterEpoch starts what is due. It is called by whoever has made an epoch, and
// costs a few loads when nothing is.
func (db *DB) afterEpoch() {
	db.expireNames()
	if db.checkpointDue() {
		db.keepUp(&db.upkeep.saving, db.checkpointDue, func() {
			_, _ = db.saveNow(db.upkeep.ctx) // counted and told there, tried again later
		})
	}
	// Apart from the checkpoints: were terms reclaimed only between two of them,
	// what is saved would grow with the time that saving takes.
	if db.engine.TermsDue() {
		db.keepUp(&db.upkeep.marking, db.engine.TermsDue, db.reclaimTerms)
	}
	if db.ticks() {
		db.keepUp(&db.upkeep.ticking, db.ticks, db.tick)
	}
}

// keepUp does something in a goroutine as long as it is due. running says
// whether that goroutine is there already.
func (db *DB) keepUp(running *bool, due func() bool, do func()) {
	u := &db.upkeep
	u.mu.Lock()
	defer u.mu.Unlock()
	if *running || u.closed {
		return
	}
	*running = true
	u.jobs.Add(1)
	go func() {
		defer u.jobs.Done()
		for due() && u.ctx.Err() == nil {
			do()
		}
		u.mu.Lock()
		*running = false
		u.mu.Unlock()
		if due() { // since the last look, by an epoch that found this running
			db.afterEpoch()
		}
	}()
}

// reclaimTerms finds the terms that nothing names.
func (db *DB) reclaimTerms() {
	dead, err := db.engine.MarkTerms(db.upkeep.ctx)
	if err != nil && db.upkeep.ctx.Err() == nil {
		db.opts.Logger.Warn("terms could not be reclaimed", "error", err)
	}
	db.upkeep.mu.Lock()
	db.upkeep.stats.Terms += uint64(dead)
	db.upkeep.mu.Unlock()
}

func (db *DB) checkpointDue() bool {
	if db.store == nil || db.opts.CheckpointBytes < 0 || db.opts.ReadOnly {
		return false
	}
	if db.logBytes() < uint64(db.opts.CheckpointBytes) {
		return false
	}
	u := &db.upkeep
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failures == 0 || !time.Now().Before(u.retryAt)
}

// checkpointStats reads the counters.
func (db *DB) checkpointStats() CheckpointStats {
	u := &db.upkeep
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.stats
	if c.Epoch == 0 {
		c.Epoch = Epoch(max(db.report.Checkpoint, db.report.Passed))
	}
	if db.store != nil && db.store.Log != nil {
		c.LogBytes = db.logBytes()
	}
	return c
}

// saveNow takes a checkpoint and accounts for it.
func (db *DB) saveNow(ctx context.Context) (recovery.Saved, error) {
	written := db.taken()
	saved, err := db.store.Checkpoint(ctx)
	if err == nil || ctx.Err() == nil { // else the caller has changed his mind
		db.account(written, saved, err)
	}
	return saved, err
}

// account notes how a checkpoint went that began when the log had taken so many
// bytes.
func (db *DB) account(written uint64, saved recovery.Saved, err error) {
	u := &db.upkeep
	u.mu.Lock()
	if err != nil {
		u.stats.Failed++
		u.stats.Error = err.Error()
		u.retryAt = time.Now().Add(min(retryWait<<min(u.failures, 16), retryWaitMax))
		u.failures++
	} else {
		u.failures = 0
		u.since.Store(max(u.since.Load(), written))
		u.stats.Error, u.stats.Epoch = "", Epoch(saved.Epoch)
		if saved.Written {
			u.stats.Taken++
			u.stats.Bytes, u.stats.Duration = saved.Bytes, saved.Took
			if saved.Full {
				u.stats.Full++
			}
		}
	}
	u.mu.Unlock()
	switch {
	case err != nil:
		db.opts.Logger.Warn("a checkpoint failed; the log is kept", "error", err)
		db.notify(Notice{Kind: NoticeCheckpointFailed, Err: err})
	case saved.CutErr != nil:
		db.opts.Logger.Warn("the log could not be cut behind a checkpoint", "error", saved.CutErr)
	}
}

// Checkpoint saves the current state, so that the next Open loads it instead of
// replaying the log, and frees the log behind the checkpoint before. It returns
// when the checkpoint is on stable storage. Appends and readers go on meanwhile;
// one checkpoint runs at a time. Checkpoints are also taken as
// Options.CheckpointBytes says, and by Close.
//
// Errors: ErrClosed, ErrReadOnly, ErrUnsupported (a store in memory), ErrCorrupt,
// ctx's, or that of the operating system, for lack of space for example; none of
// them does harm to the store, its log, or the checkpoints before. Cost: in time
// and bytes that of what has changed since the last one; now and then all of it.
func (db *DB) Checkpoint(ctx context.Context) error {
	ctx, end, err := db.job(ctx)
	if err != nil {
		return edge(err)
	}
	defer end()
	_, err = db.saveNow(ctx)
	return edge(db.ended(err))
}

// job begins a call that writes to the directory beside the epochs.
func (db *DB) job(ctx context.Context) (context.Context, func(), error) {
	switch err := db.check(ctx); {
	case err != nil:
		return nil, nil, err
	case db.store == nil:
		return nil, nil, fmt.Errorf("%w: a store in memory has nothing to save to", ErrUnsupported)
	case db.opts.ReadOnly:
		return nil, nil, fmt.Errorf("%w: it was opened so", ErrReadOnly)
	}
	return db.upkeep.begin(ctx)
}
