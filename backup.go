package triegs

import (
	"context"
	"fmt"
	"time"

	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/recovery"
)

// Backup copies the store to dest while appends and readers go on. The copy is
// complete at one epoch, that of the checkpoint that Backup takes first: facts,
// queries, source positions and terms. It is read with Options.ReadOnly, by
// Verify for example, and Restore makes a store of it; nothing can be appended
// to it.
//
// dest is a missing or empty directory, or an earlier backup of this store, to
// which only what is new is added. A new backup is made under another name
// beside dest and renamed when it is whole and on stable storage; an earlier one
// goes on to the new state in one step. So whatever goes wrong, dest is what it
// was. What a crash leaves beside it begins with its name and ".partial-" and
// may be deleted.
//
// Options.BackupBytesPerSecond bounds the copying, not the checkpoint. Errors:
// ErrFormat (anything else is in dest, or dest lies in the store), those of
// Checkpoint, and ErrCorrupt if what is copied is not what was written.
func (db *DB) Backup(ctx context.Context, dest string) error {
	ctx, end, err := db.job(ctx)
	if err != nil {
		return edge(err)
	}
	defer end()
	written := db.taken()
	saved, err := db.store.Backup(ctx, dest, db.opts.BackupBytesPerSecond)
	if saved.Written {
		db.account(written, saved, nil)
	}
	if err != nil {
		return edge(db.ended(fmt.Errorf("backup to %s: %w", dest, err)))
	}
	return nil
}

// Restore makes a store in dest, a missing or empty directory, from a backup, or
// from the directory of a store that is closed. The new store has the facts,
// queries and source positions of the backup's epoch and goes on from there in a
// life of its own: it is not the store that the backup was taken from, whose
// backups do not take it in, nor the other way around. All that is read is
// verified.
//
// Errors: ErrFormat (dest is not empty or lies in backup, backup is not a store),
// ErrCorrupt (the backup is damaged), ErrLocked (a store that is still open after
// a second), ctx's, or that of the operating system. In all of them dest stays as
// it was.
// Cost: loading the backup, in time and memory, and writing it once.
func Restore(ctx context.Context, backup, dest string) error {
	return RestoreWith(ctx, backup, dest, nil)
}

// RestoreWith is Restore of a store whose queries need semirings of the program's
// own, Options.Semirings; other options are not looked at.
func RestoreWith(ctx context.Context, backup, dest string, opts *Options) error {
	_, err := recovery.Restore(ctx, backup, dest, recovery.Options{
		Log: wal.Options{LockWait: defaultLockWait}, Now: time.Now, Semirings: opts.semirings(),
	})
	if err != nil {
		return edge(fmt.Errorf("restoring %s to %s: %w", backup, dest, err))
	}
	return nil
}

// RepairReport says what Repair has saved and what is lost.
type RepairReport struct {
	// Epoch is the one that the repaired store is at, Checkpoint that of the
	// checkpoint from which it was reached, 0 if from the log alone.
	Epoch      Epoch `json:"epoch"`
	Checkpoint Epoch `json:"checkpoint"`
	// Damaged are checkpoints, and the identity file, that could not be used,
	// each with the reason.
	Damaged []string `json:"damaged,omitempty"`
	// Last is the last epoch that is known to have been there: where it is above
	// Epoch, those from Epoch+1 to Last are lost. Reason says why the log was
	// not followed beyond Epoch; it may be an end that nobody was told of, which
	// is no loss.
	Last   Epoch  `json:"last"`
	Reason string `json:"reason,omitempty"`
	// Took is how long it took.
	Took time.Duration `json:"took"`
}

// Repair makes a new store in dest, a missing or empty directory, of what is
// provably good in the damaged store in dir, which it does not change: the
// newest checkpoint that verifies, and the epochs behind it up to the first one
// that is missing or damaged. The report says what is lost, which may be all:
// then the new store is empty, at epoch 0. Like a restored store it has a life of
// its own.
//
// Errors: ErrFormat (dest is not empty or lies in dir, dir is not a store of this
// version), ErrLocked (dir is open), ctx's, or that of the operating system. In
// all of them dest stays as it was.
func Repair(ctx context.Context, dir, dest string) (RepairReport, error) {
	return RepairWith(ctx, dir, dest, nil)
}

// RepairWith is Repair of a store whose queries need semirings of the program's own,
// Options.Semirings; other options are not looked at.
func RepairWith(ctx context.Context, dir, dest string, opts *Options) (RepairReport, error) {
	s, err := recovery.Repair(ctx, dir, dest, recovery.Options{Now: time.Now, Semirings: opts.semirings()})
	if err != nil {
		return RepairReport{}, edge(fmt.Errorf("repairing %s to %s: %w", dir, dest, err))
	}
	return RepairReport{
		Epoch: Epoch(s.Epoch), Checkpoint: Epoch(s.Checkpoint), Damaged: s.Damaged,
		Last: Epoch(s.Last), Reason: s.Reason, Took: s.Took,
	}, nil
}

// semirings are those of the options, which may be nil.
func (o *Options) semirings() map[string]Semiring {
	if o == nil {
		return nil
	}
	return o.Semirings
}
