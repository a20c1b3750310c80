package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/triegs/triegs"
)

// onlyAsked keeps the store from taking checkpoints of its own accord: a
// command that was interrupted while it took one would begin another at its
// end.
const onlyAsked = -1

// checkpointCmd saves the state of a store.
type checkpointCmd struct {
	Dir string `arg:"" help:"Directory of the store."`
}

// Run runs the command.
func (c *checkpointCmd) Run(a *app) error {
	if err := mustExist(c.Dir); err != nil {
		return err
	}
	return a.withStore(c.Dir, triegs.Options{CheckpointBytes: onlyAsked}, func(db *triegs.DB) error {
		if err := db.Checkpoint(a.ctx); err != nil {
			return err
		}
		s := db.Metrics().Checkpoints
		if s.Taken == 0 {
			_, err := fmt.Fprintf(a.stdout, "epoch %d was saved already\n", s.Epoch)
			return err
		}
		_, err := fmt.Fprintf(a.stdout, "epoch %d is saved: %d bytes written\n", s.Epoch, s.Bytes)
		return err
	})
}

// backupCmd copies a store.
type backupCmd struct {
	Dir  string `arg:"" help:"Directory of the store."`
	Dest string `arg:"" help:"Directory of the backup: missing, empty, or an earlier backup of the store."`
	Rate int64  `placeholder:"BYTES" help:"Copy at most so many bytes a second. Default: no limit."`
}

// Run runs the command.
func (c *backupCmd) Run(a *app) error {
	if c.Rate < 0 {
		return usagef("--rate %d: want at least 0", c.Rate)
	}
	if err := mustExist(c.Dir); err != nil {
		return err
	}
	opts := triegs.Options{BackupBytesPerSecond: c.Rate, CheckpointBytes: onlyAsked}
	return a.withStore(c.Dir, opts, func(db *triegs.DB) error {
		err := db.Backup(a.ctx, c.Dest)
		if errors.Is(err, triegs.ErrFormat) {
			// The store is open and sound: it is the destination that is not a place
			// for a backup.
			return plainError(err)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "epoch %d is in %s\n", db.Metrics().Checkpoints.Epoch, c.Dest)
		return err
	})
}

// restoreCmd makes a store of a backup.
type restoreCmd struct {
	Backup string `arg:"" help:"Directory of the backup, or of a store that nobody has open."`
	Dest   string `arg:"" help:"Directory of the new store: missing or empty."`
}

// Run runs the command.
func (c *restoreCmd) Run(a *app) error {
	if err := vacant(c.Dest); err != nil {
		return err
	}
	if err := triegs.Restore(a.ctx, c.Backup, c.Dest); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s holds what was in %s\n", c.Dest, c.Backup)
	return err
}

// repairCmd makes a store of what is good of a damaged one.
type repairCmd struct {
	Dir    string `arg:"" help:"Directory of the damaged store. It is not changed."`
	Dest   string `arg:"" help:"Directory of the new store: missing or empty."`
	Output string `default:"text" enum:"text,json" help:"text or json."`
}

// Run runs the command.
func (c *repairCmd) Run(a *app) error {
	if err := vacant(c.Dest); err != nil {
		return err
	}
	r, err := triegs.Repair(a.ctx, c.Dir, c.Dest)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return a.printJSON(r)
	}
	_, err = io.WriteString(a.stdout, c.told(&r))
	return err
}

// plainError is err as bad input, whatever it matches: no store is corrupt.
func plainError(err error) error { return errors.New(err.Error()) }

// vacant refuses a destination that holds something before the library does,
// which cannot tell whether source or destination is at fault.
func vacant(dest string) error {
	names, err := os.ReadDir(dest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", dest, osCause(err))
	case len(names) > 0:
		return fmt.Errorf("%s is not empty: it holds %q", dest, names[0].Name())
	}
	return nil
}

// told is the report in words: what could not be used, where the new store is,
// and what is lost.
func (c *repairCmd) told(r *triegs.RepairReport) string {
	var out string
	for _, why := range r.Damaged {
		out += fmt.Sprintf("not used: %s\n", why)
	}
	if r.Reason != "" {
		out += fmt.Sprintf("the log ends where it is no longer good: %s\n", r.Reason)
	}
	from := "the log alone"
	if r.Checkpoint > 0 {
		from = fmt.Sprintf("the checkpoint of epoch %d and the log", r.Checkpoint)
	}
	out += fmt.Sprintf("%s is at epoch %d, from %s\n", c.Dest, r.Epoch, from)
	if r.Last > r.Epoch {
		return out + fmt.Sprintf("lost: epochs %d to %d\n", r.Epoch+1, r.Last)
	}
	return out + "lost: nothing that is known of\n"
}
