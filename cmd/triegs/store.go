package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/triegs/triegs"
)

// withStore opens the store in dir, "" for one in memory, calls f and closes
// it. Events that the store skipped, and checkpoints that failed beside the
// command, are told on standard error.
func (a *app) withStore(dir string, opts triegs.Options, f func(db *triegs.DB) error) (err error) {
	skipped := map[string]int{}
	var unsaved error
	opts.OnEvent = func(n triegs.Notice) {
		switch n.Kind {
		case triegs.NoticeReplay:
			skipped[n.Source] += n.Count
		case triegs.NoticeCheckpointFailed:
			unsaved = n.Err
		}
	}
	p := a.newProgress()
	opts.OnProgress = p.opening
	db, err := triegs.OpenContext(a.ctx, dir, &opts)
	p.done()
	if err != nil {
		return err
	}
	defer func() {
		err = withClosing(err, db.Close())
		for source, n := range skipped {
			fmt.Fprintf(a.stderr, "triegs: source %s: %d events were in the store already\n", source, n)
		}
		// What the command itself asked for and did not get is its error.
		if unsaved != nil && !errors.Is(err, unsaved) {
			fmt.Fprintf(a.stderr, "triegs: no checkpoint, the log is kept: %s\n", message(unsaved))
		}
	}()
	return f(db)
}

// withClosing adds the error of Close to that of the command, unless it says the
// same: a log that failed under a command is what Close has to tell as well.
func withClosing(err, closing error) error {
	if err != nil && closing != nil && strings.Contains(err.Error(), closing.Error()) {
		return err
	}
	return errors.Join(err, closing)
}

// source says which store a reading command reads, and what of it.
type source struct {
	Dir        string `arg:"" help:"Directory of the store."`
	Checkpoint bool   `help:"Read the newest checkpoint alone, also of a store that another process has open."`
}

// reading opens a store without writing to it, and pins its last epoch.
func (a *app) reading(from source, f func(db *triegs.DB, snap *triegs.Snapshot) error) error {
	opts := triegs.Options{ReadOnly: true, LastCheckpoint: from.Checkpoint}
	return a.withStore(from.Dir, opts, func(db *triegs.DB) (err error) {
		snap, err := db.Snapshot()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, snap.Close()) }()
		return f(db, snap)
	})
}

// mustExist refuses a store that is not there, for commands that would make an
// empty one and then complain about what it does not hold.
func mustExist(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s: %w", dir, osCause(err))
	}
	return nil
}
