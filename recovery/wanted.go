package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/triegs/triegs/checkpoint"
	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/recovery/positions"
)

// loadWanted loads the newest state from which the log leads through all epochs
// that are wanted, where that is not the newest checkpoint: an older one, or the
// empty state if the log is whole. It returns the log entry that the newest
// checkpoint holds, since that goes on to vouch for the end of the log; 0 if the
// newest one is to be loaded.
func (s *Store) loadWanted(ctx context.Context, r *Report) (covered uint64, err error) {
	list := s.checkpoints.List()
	if s.o.Wanted == nil || s.o.LastCheckpoint || len(list) == 0 || list[0].Err != nil {
		return 0, nil
	}
	newest := list[0]
	from := s.o.Wanted(s.id, newest.Epoch, s.Positions.All())
	if from >= newest.Epoch {
		return 0, nil
	}
	oldest, err := wal.Oldest(s.dir)
	if err != nil {
		return 0, err
	}
	base, ok := baseFor(list, from, oldest)
	if !ok || base.Epoch == newest.Epoch {
		return 0, nil
	}
	if base.Epoch > 0 {
		spill := base.Generation == newest.Generation // which has those of its front
		if err := s.loadBase(ctx, base, spill, r); err != nil || r.Checkpoint == 0 {
			return 0, err
		}
	}
	s.saver.saved, r.Passed = newest.Epoch, newest.Epoch
	// What will have changed since this state is not what has changed since the
	// newest checkpoint.
	s.checkpoints.RequireFull()
	return newest.LogIndex, nil
}

// loadBase loads an older checkpoint. If it turns out to be damaged the engine is a
// fresh one, and nothing is loaded: the newest one does not need it.
func (s *Store) loadBase(ctx context.Context, base checkpoint.Info, spill bool, r *Report) error {
	_, err := s.loadOne(ctx, base, spill, r)
	if errors.Is(err, errs.ErrCorrupt) {
		s.Engine.Dict().Close()
		s.begin()
		return nil
	}
	return err
}

// baseFor gives the newest checkpoint at or before an epoch behind which the log
// begins in time, if it begins with entry oldest. The zero Info is the empty state
// before the first epoch. Without any it is false.
func baseFor(list []checkpoint.Info, from, oldest uint64) (checkpoint.Info, bool) {
	if oldest == 0 {
		return checkpoint.Info{}, false
	}
	for _, in := range list {
		if in.Err == nil && in.Epoch <= from && in.LogIndex+1 >= oldest {
			return in, true
		}
	}
	return checkpoint.Info{}, oldest == 1
}

// replayWanted applies the log behind the state that was loaded. Where the part that
// only what is wanted needs is not good, the newest checkpoint is loaded and what
// was wanted is not there.
func (s *Store) replayWanted(ctx context.Context, r *Report) error {
	err := s.replay(ctx, r)
	if err == nil || r.Passed == 0 || s.Engine.Last() >= r.Passed || !lost(err) {
		return err
	}
	why := fmt.Errorf("the log before the checkpoint of epoch %d: %w", r.Passed, err)
	s.Engine.Dict().Close()
	s.begin()
	*r = Report{Log: r.Log, Scan: r.Scan, Missed: why}
	if _, err := s.loadNewest(ctx, r); err != nil {
		return errors.Join(err, why)
	}
	return s.replay(ctx, r)
}

// lost reports whether an error says that what is read is not there.
func lost(err error) bool {
	return errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrValue)
}

// reached tells of the state that the engine has.
func (s *Store) reached(places map[string]positions.Place, replayed uint64) {
	if s.o.Reached != nil {
		s.o.Reached(s.id, s.Engine, places, replayed)
	}
}

// needed gives the state from which the log leads through all epochs that are wanted
// when a checkpoint of epoch newest is there. It is false if nothing but that is
// needed, or nothing can help.
func (s *Store) needed(newest uint64) (checkpoint.Info, bool) {
	if s.o.Wanted == nil || s.Log == nil {
		return checkpoint.Info{}, false
	}
	from := s.o.Wanted(s.id, newest, s.Positions.All())
	oldest, err := wal.Oldest(s.dir)
	if from >= newest || err != nil {
		return checkpoint.Info{}, false
	}
	return baseFor(s.checkpoints.List(), from, oldest)
}

// Acknowledge makes a place durable, behind the log through its epoch. Errors are
// those of the log and of positions.File.Put.
func (s *Store) Acknowledge(ctx context.Context, name string, p positions.Place) error {
	if err := s.durable(ctx, p.Epoch); err != nil {
		return err
	}
	return s.Positions.Put(name, p)
}
