package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/triegs/triegs"
)

// withStore opens the store in dir, "" for one in memory, calls f and closes
// it. Events that the store left out, and checkpoints that failed beside the
// command, are told on standard error. Logical time moves only by what f does, unless
// opts have a Tick.
func (a *app) withStore(dir string, opts triegs.Options, f func(db *triegs.DB) error) (err error) {
	var left leftOut
	opts.OnEvent, opts.Tick = left.note, cmp.Or(opts.Tick, -1)
	p := a.newProgress()
	opts.OnProgress = p.opening
	db, err := triegs.OpenContext(a.ctx, dir, &opts)
	p.done()
	if err != nil {
		return err
	}
	defer func() {
		err = withClosing(err, db.Close())
		left.tell(a.stderr, db.Metrics().Late)
		// What the command itself asked for and did not get is its error.
		if left.unsaved != nil && !errors.Is(err, left.unsaved) {
			fmt.Fprintf(a.stderr, "triegs: no checkpoint, the log is kept: %s\n", message(left.unsaved))
		}
	}()
	return f(db)
}

// leftOut is what a store has left out without an error of any call.
type leftOut struct {
	replayed           map[string]int // by source
	missing, conflicts int
	unsaved            error
}

// note takes a notice of the store.
func (l *leftOut) note(n triegs.Notice) {
	switch n.Kind {
	case triegs.NoticeReplay:
		if l.replayed == nil {
			l.replayed = make(map[string]int)
		}
		l.replayed[n.Source] += n.Count
	case triegs.NoticeMissing:
		l.missing += n.Count
	case triegs.NoticeConflict:
		l.conflicts += n.Count
	case triegs.NoticeCheckpointFailed:
		l.unsaved = n.Err
	}
}

// tell writes a line for each kind of events that there were.
func (l *leftOut) tell(w io.Writer, late triegs.LateStats) {
	for _, source := range slices.Sorted(maps.Keys(l.replayed)) {
		fmt.Fprintf(w, "triegs: source %s: %d events were in the store already\n", source, l.replayed[source])
	}
	for _, kind := range []struct {
		n    uint64
		what string
	}{
		{late.Dropped, "events came too late and were dropped"},
		{late.Outside, "events came too late for every window"},
		{uint64(l.missing), "retractions found nothing"},
		{uint64(l.conflicts), "insertions have an ID that another fact had by then"},
	} {
		if kind.n > 0 {
			fmt.Fprintf(w, "triegs: %d %s\n", kind.n, kind.what)
		}
	}
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
