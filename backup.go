package triegs

import (
	"context"
	"fmt"
	"time"

	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/recovery"
)

// Backup copies the store to dest while it goes on. The copy is complete at one
// epoch, that of a checkpoint taken at the call: facts, queries, positions and
// terms. It can be opened with Options.ReadOnly, and a store is made of it by
// Restore. At most Options.BackupBytesPerSecond are copied.
//
// dest is a missing or empty directory, which holds nothing under that name
// until the backup is whole, or an earlier backup of this store, to which only
// what is new is added, in one step. Anything else there is ErrFormat and stays
// as it is. Errors are further those of Checkpoint.
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
// timeline of its own: tokens of the old life are no longer good for it. All
// that is read is verified.
//
// Errors: ErrFormat (dest is not empty, backup is not a store), ErrCorrupt (the
// backup is damaged), ErrLocked, ctx's, or that of the operating system. In all
// of them dest stays as it was. Cost: loading the backup and writing it once.
func Restore(ctx context.Context, backup, dest string) error {
	_, err := recovery.Restore(ctx, backup, dest, recovery.Options{
		Log: wal.Options{LockWait: defaultLockWait}, Now: time.Now,
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
	// Damaged are checkpoints that could not be used, with the reason.
	Damaged []string `json:"damaged,omitempty"`
	// Last is the last epoch that is known to have been there. Reason says why
	// the epochs from Epoch+1 to Last could not be saved.
	Last   Epoch         `json:"last"`
	Reason string        `json:"reason,omitempty"`
	Took   time.Duration `json:"took"`
}

// Repair makes a new store in dest, a missing or empty directory, of what is
// provably good in the damaged store in dir, which it does not change: the
// newest checkpoint that verifies, and the epochs behind it up to the first one
// that is missing or damaged. It says what is lost.
//
// Errors: ErrFormat (dest is not empty, dir is not a store), ctx's, or that of
// the operating system.
func Repair(ctx context.Context, dir, dest string) (RepairReport, error) {
	s, err := recovery.Repair(ctx, dir, dest, recovery.Options{Now: time.Now})
	if err != nil {
		return RepairReport{}, edge(fmt.Errorf("repairing %s to %s: %w", dir, dest, err))
	}
	return RepairReport{
		Epoch: Epoch(s.Epoch), Checkpoint: Epoch(s.Checkpoint), Damaged: s.Damaged,
		Last: Epoch(s.Last), Reason: s.Reason, Took: s.Took,
	}, nil
}
