package triegs

import "github.com/triegs/triegs/internal/errs"

// The sentinels. Every error of this package matches exactly one kind with
// errors.Is and says in its text where the fault is: the index of the event,
// the line and column of a query text, the file, the source. Context errors
// are returned as they are. Whatever was refused left the store as it was.
var (
	// ErrArity is returned when a relation is used with another number of
	// terms than at its first use, by an event or by a query atom.
	ErrArity = errs.ErrArity

	// ErrTime is returned for a time that int64 nanoseconds since 1970 cannot
	// hold, and for a time text that is not one.
	ErrTime = errs.ErrTime

	// ErrValue is returned for a bad argument or option: an absent term in a
	// tuple, an ID that another fact holds, a number out of its range, a
	// SkipTo that goes backwards.
	ErrValue = errs.ErrValue

	// ErrNoSuchFact is returned when a batch retracts a contribution that is
	// not live. The whole batch is refused, unless Batch.IgnoreMissing is set.
	ErrNoSuchFact = errs.ErrNoSuchFact

	// ErrNoSuchQuery is returned for the name of a query that was never
	// registered, that was dropped, or that is not in the pinned epoch.
	ErrNoSuchQuery = errs.ErrNoSuchQuery

	// ErrQueryExists is returned by Register for a name that is taken, also
	// when the text is the same.
	ErrQueryExists = errs.ErrQueryExists

	// ErrNoAnswer is returned by Snapshot.Lookup for a tuple that is not an
	// answer.
	ErrNoAnswer = errs.ErrNoAnswer

	// ErrSyntax is returned for a query or term text that cannot be read. The
	// message holds line:column, both counted from 1.
	ErrSyntax = errs.ErrSyntax

	// ErrUnsupported is returned for a query that is read but not evaluated.
	// The message names the construct and its position, or the query's class
	// and the core that puts it there. Checkpoint and Backup return it for a
	// store in memory.
	ErrUnsupported = errs.ErrUnsupported

	// ErrLate is returned by Append under LateRefuse for an event that is later
	// than Options.Lateness allows.
	ErrLate = errs.ErrLate

	// ErrOverflow is returned when a count does not fit in int64. Append and
	// Register refuse the epoch; an enumeration yields the row with this error
	// and goes on; Count fails.
	ErrOverflow = errs.ErrOverflow

	// ErrLocked is returned by Open, Restore and Repair when another handle owns
	// the directory and does not let go within Options.LockWait, or a second. The message names the holder's
	// process id where it is known.
	ErrLocked = errs.ErrLocked

	// ErrReadOnly is returned by every writing call of a store that was opened
	// read-only, or whose log failed to write or sync. In the second case the
	// cause is wrapped, readers go on, and opening again recovers. Open returns
	// it for a backup unless Options.ReadOnly is set.
	ErrReadOnly = errs.ErrReadOnly

	// ErrClosed is returned by every method of a closed DB except Close, and
	// by the next step of an enumeration that was running when it closed.
	ErrClosed = errs.ErrClosed

	// ErrCorrupt is returned when stored bytes are not what was written: a
	// checksum fails, an acknowledged epoch is missing, a recomputed digest or
	// view differs. A torn tail that was never acknowledged is not corruption:
	// Open cuts it off and DB.Recovery reports it.
	ErrCorrupt = errs.ErrCorrupt

	// ErrSnapshotClosed is returned by every method of a closed Snapshot
	// except Close.
	ErrSnapshotClosed = errs.ErrSnapshotClosed

	// ErrSnapshotExpired is returned by a Snapshot that was held for longer
	// than Options.MaxPinAge, and by a Subscription that was behind for longer.
	ErrSnapshotExpired = errs.ErrSnapshotExpired

	// ErrSlowSubscriber ends a Subscription with SlowEnd for which more epochs
	// would have to wait than its buffer takes. The message names the last epoch
	// that it was told.
	ErrSlowSubscriber = errs.ErrSlowSubscriber

	// ErrNameInUse is returned by Subscribe for a name that an open subscription
	// has, and by Forget.
	ErrNameInUse = errs.ErrNameInUse

	// ErrTimeline is returned for a Token of another store, or of a history of
	// this one that was given up: by a restore, or by a crash under a relaxed
	// durability. Subscribe returns it for a name whose place is of one.
	ErrTimeline = errs.ErrTimeline

	// ErrTooOld is returned for a Token of an epoch that is not kept any more, and
	// for a name that has lost its place.
	// The message names the oldest that is.
	ErrTooOld = errs.ErrTooOld

	// ErrGap is returned under Options.DenseSources when a batch starts above
	// the next offset of its source. The message names the first offset that
	// is missing.
	ErrGap = errs.ErrGap

	// ErrBudget is returned when an epoch would take the store above
	// Options.MemoryBudget. The epoch is refused whole.
	ErrBudget = errs.ErrBudget

	// ErrFormat is returned by Open for a directory that holds foreign files
	// or was written by another format version, and by Backup, Restore and Repair
	// for a destination that is neither empty nor a backup that can be added to.
	ErrFormat = errs.ErrFormat

	// ErrLeaked is returned by the Close that found snapshots still open, or subscriptions. The
	// store is closed and its lock is free all the same.
	ErrLeaked = errs.ErrLeaked
)
