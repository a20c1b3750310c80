package main

import (
	"encoding/json"
	"fmt"

	"github.com/triegs/triegs"
)

// checkpointCmd saves the state of a store.
type checkpointCmd struct {
	Dir string `arg:"" help:"Directory of the store."`
}

// Run runs the command.
func (c *checkpointCmd) Run(a *app) error {
	if err := mustExist(c.Dir); err != nil {
		return err
	}
	return a.withStore(c.Dir, triegs.Options{}, func(db *triegs.DB) error {
		if err := db.Checkpoint(a.ctx); err != nil {
			return err
		}
		s := db.Metrics().Checkpoints
		_, err := fmt.Fprintf(a.stdout, "epoch %d is saved: %d bytes written\n", s.Epoch, s.Bytes)
		return err
	})
}

// backupCmd copies a store.
type backupCmd struct {
	Dir  string `arg:"" help:"Directory of the store."`
	Dest string `arg:"" help:"Directory of the backup: missing, empty, or an earlier backup of the store."`
	Rate int64  `placeholder:"BYTES" help:"Copy at most so many bytes a second."`
}

// Run runs the command.
func (c *backupCmd) Run(a *app) error {
	if err := mustExist(c.Dir); err != nil {
		return err
	}
	return a.withStore(c.Dir, triegs.Options{BackupBytesPerSecond: c.Rate}, func(db *triegs.DB) error {
		if err := db.Backup(a.ctx, c.Dest); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.stdout, "epoch %d is in %s\n", db.Metrics().Checkpoints.Epoch, c.Dest)
		return err
	})
}

// restoreCmd makes a store of a backup.
type restoreCmd struct {
	Backup string `arg:"" help:"Directory of the backup."`
	Dest   string `arg:"" help:"Directory of the new store: missing or empty."`
}

// Run runs the command.
func (c *restoreCmd) Run(a *app) error {
	if err := triegs.Restore(a.ctx, c.Backup, c.Dest); err != nil {
		return err
	}
	return a.withStore(c.Dest, triegs.Options{ReadOnly: true}, func(db *triegs.DB) error {
		_, err := fmt.Fprintf(a.stdout, "%s is at epoch %d\n", c.Dest, db.Recovery().Checkpoint)
		return err
	})
}

// repairCmd makes a store of what is good of a damaged one.
type repairCmd struct {
	Dir    string `arg:"" help:"Directory of the damaged store. It is not changed."`
	Dest   string `arg:"" help:"Directory of the new store: missing or empty."`
	Output string `default:"text" enum:"text,json" help:"text or json."`
}

// Run runs the command.
func (c *repairCmd) Run(a *app) error {
	r, err := triegs.Repair(a.ctx, c.Dir, c.Dest)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, why := range r.Damaged {
		fmt.Fprintf(a.stdout, "not used: %s\n", message(fmt.Errorf("%s", why)))
	}
	if r.Reason != "" {
		fmt.Fprintf(a.stdout, "the log could not be followed further: %s\n", r.Reason)
	}
	lost := "nothing is known to be lost"
	if r.Last > r.Epoch {
		lost = fmt.Sprintf("lost: epochs %d to %d", r.Epoch+1, r.Last)
	}
	_, err = fmt.Fprintf(a.stdout, "%s is at epoch %d (from the checkpoint of epoch %d); %s\n", c.Dest, r.Epoch, r.Checkpoint, lost)
	return err
}
