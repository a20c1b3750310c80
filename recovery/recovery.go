// Package recovery is the way of a store's state from disk and back to it. Open
// brings an engine to the last durable epoch: from the newest checkpoint, then
// from the log behind it in the way in which its epochs were applied first.
// Checkpoint saves the state while epochs go on and cuts the log behind it;
// Backup, Restore and Repair carry it to other directories.
//
// The package decides what is read, written and deleted, and in which order. It
// knows neither the bytes of a checkpoint nor those of the log, and never
// interprets an event.
//
// # Invariants
//
//   - A checkpoint is committed only after the log is on stable storage through
//     its epoch, and the log is cut only behind the older of the two checkpoints
//     that are kept, and only behind the one from which it leads through all epochs
//     that are wanted one by one. That one stays as well.
//   - A position that a subscriber has acknowledged is written only after the log is
//     on stable storage through its epoch: it never leads the log.
//   - What is wanted and cannot be had again leaves the state as it is without it.
//   - Each relation of a loaded checkpoint has the content digest that it had
//     when it was saved, and each replayed epoch the one that was logged.
//   - Nothing appears under the name of a backup or of a restored store before
//     it is whole and on stable storage.
package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/checkpoint"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/recovery/positions"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/semiring"
)

// Options says how to open a store.
type Options struct {
	Log wal.Options // Cover is set by Open
	// FS is the file system of the checkpoints, nil for that of the operating
	// system.
	FS vfs.FS
	// LastCheckpoint opens the newest checkpoint alone, without the lock and
	// without the log, also while another process owns the store. The log must
	// be read-only.
	LastCheckpoint bool
	// Fallback allows the use of an older checkpoint, or of a log that is
	// complete, where the newest checkpoint is damaged.
	Fallback bool
	// TermCache bounds the memory for texts of terms that are in a checkpoint,
	// in bytes; 0 keeps all of them in memory.
	TermCache int64
	// Wanted, if it is not nil, gives the epoch behind which all epochs are wanted one
	// by one, though a checkpoint of epoch newest has them; newest or more for none.
	// Open asks it, and each checkpoint, which leaves in the log, and of the checkpoints,
	// what is needed to have them again. It may be called from any goroutine.
	Wanted func(id wal.Identity, newest uint64, places map[string]positions.Place) uint64
	// Reached, if it is not nil, is called with the state from which the log is
	// replayed, and behind each epoch of it, with the bytes of the log up to there.
	// Another engine begins anew: what was wanted could not be had.
	Reached func(id wal.Identity, e *epoch.Engine, places map[string]positions.Place, replayed uint64)
	// Progress, if it is not nil, is called when a phase begins, and now and
	// then while it goes on.
	Progress func(Progress)
	// Semirings are those of the user by name.
	Semirings map[string]semiring.Definition
	// Now measures; it decides nothing.
	Now func() time.Time

	// Of the checkpoints, for tests; 0 means what checkpoint.Options say.
	timeout time.Duration
	reserve int64
	linger  time.Duration // 0 means lingerDefault
	// slice, if it is not nil, is called before each slice of facts; for tests.
	slice func()
}

// Progress says how far the opening of a store is.
type Progress struct {
	Phase string // "terms", "facts", "views", "log"
	Epoch uint64 // reached so far
	Last  uint64 // of the log, 0 while that is not known
}

// Report says what opening a store has found and done.
type Report struct {
	Log        wal.Report
	Checkpoint uint64   // its epoch, 0 if none was loaded
	Passed     uint64   // the epoch of the newest one where another state was loaded, since what lies between was wanted
	Missed     error    // why what was wanted could not be had, though the newest checkpoint could
	Damaged    []string // checkpoints that were passed over, with the reason
	Replanned  []string // queries whose plan is another one than when they were saved
	Epochs     uint64   // replayed
	Events     uint64   // in them

	// How long it took to read terms and facts from the checkpoint, to build
	// indexes and views from them, to open and repair the log, to replay it.
	Terms, Facts, Views, Scan, Replay time.Duration
}

// Store is an open directory with the engine that was brought to its state.
type Store struct {
	Engine *epoch.Engine
	Log    *wal.Log // nil if the last checkpoint alone was opened
	// Positions are those of named subscribers, none if the last checkpoint alone was
	// opened.
	Positions *positions.File

	dir         string
	o           Options
	id          wal.Identity
	checkpoints *checkpoint.Store
	saver       saver
}

// Checkpoints is the folder of the checkpoints in that of a store.
const checkpointsName = "checkpoint"

// Identity says which store it is, and on which timeline.
func (s *Store) Identity() wal.Identity { return s.id }

// Open opens the store in dir and brings a fresh engine to its state. On error
// nothing stays open.
func Open(ctx context.Context, dir string, o Options) (*Store, Report, error) {
	s := &Store{dir: dir, o: o}
	s.saver.turn, s.saver.copies = make(chan struct{}, 1), make(chan struct{}, 1)
	var r Report
	err := s.open(ctx, &r)
	if err == nil {
		return s, r, nil
	}
	return nil, r, errors.Join(err, s.Close())
}

func (s *Store) open(ctx context.Context, r *Report) error {
	s.Positions, _ = positions.Open("", positions.Options{ReadOnly: true}) // nothing to fail
	if s.o.LastCheckpoint {
		id, err := wal.ReadIdentity(s.dir)
		if err != nil {
			return err
		}
		if _, err = s.load(ctx, id, r); err != nil {
			return err
		}
		switch n := len(s.checkpoints.List()); {
		case n == 0:
			return fmt.Errorf("%s holds no checkpoint yet: %w", s.dir, fs.ErrNotExist)
		case n == len(r.Damaged):
			return fmt.Errorf("%w: no checkpoint in %s can be used: %s", errs.ErrCorrupt, s.dir, strings.Join(r.Damaged, "; "))
		}
		return nil
	}
	start := s.o.Now()
	var loading time.Duration
	options := s.o.Log
	options.Cover = func(ctx context.Context, id wal.Identity) (uint64, error) {
		began := s.o.Now()
		defer func() { loading = s.o.Now().Sub(began) }()
		places, err := positions.Open(s.dir, positions.Options{ReadOnly: s.o.Log.ReadOnly, Step: s.o.Log.Step})
		if err != nil {
			return 0, err
		}
		s.Positions = places
		return s.load(ctx, id, r)
	}
	log, found, err := wal.Open(ctx, s.dir, options)
	r.Log, r.Scan = found, s.o.Now().Sub(start)-loading
	if err != nil {
		return err
	}
	s.Log, s.id = log, log.Identity()
	if err := s.replayWanted(ctx, r); err != nil {
		return err
	}
	// A checkpoint that was passed over tells how far the store has come, which
	// in a backup nothing else does.
	if known, at := s.known(), s.Engine.Current.Epoch(); at < known {
		return fmt.Errorf("%w: epochs %d to %d are in no log: %s", errs.ErrCorrupt, at+1, known, strings.Join(r.Damaged, "; "))
	}
	return nil
}

// known is the last epoch that a checkpoint is known to have been of, damaged or
// not.
func (s *Store) known() (last uint64) {
	if s.checkpoints != nil {
		for _, info := range s.checkpoints.List() {
			last = max(last, info.Epoch)
		}
	}
	return last
}

// load opens the checkpoints and loads the newest one that may be used. It
// returns the log entry that the state contains, 0 if there is none.
func (s *Store) load(ctx context.Context, id wal.Identity, r *Report) (covered uint64, err error) {
	s.id = id
	s.begin()
	s.checkpoints, err = checkpoint.Open(ctx, filepath.Join(s.dir, checkpointsName), checkpoint.Options{
		FS: s.o.FS, ReadOnly: s.o.Log.ReadOnly, StoreID: id.Log, KeepOpen: s.o.TermCache > 0,
		Timeout: s.o.timeout, Reserve: s.o.reserve,
		Linger: cmp.Or(s.o.linger, lingerDefault), Activity: s.logged,
	})
	if err != nil {
		return 0, err
	}
	if covered, err := s.loadWanted(ctx, r); covered > 0 || err != nil {
		return covered, err
	}
	return s.loadNewest(ctx, r)
}

// loadNewest loads the newest checkpoint that may be used, into a fresh engine.
func (s *Store) loadNewest(ctx context.Context, r *Report) (covered uint64, err error) {
	list := s.checkpoints.List()
	for i, info := range list {
		loaded, err := s.loadOne(ctx, info, true, r)
		if err == nil {
			s.saver.saved = info.Epoch
			return loaded, nil
		}
		if !errors.Is(err, errs.ErrCorrupt) {
			return 0, err
		}
		err = fmt.Errorf("the checkpoint of epoch %d: %w", info.Epoch, err)
		if !s.o.Fallback {
			return 0, fmt.Errorf("%w (%d older checkpoints are kept; a fallback to one of them, or to the log, must be asked for)", err, len(list)-1-i)
		}
		r.Damaged = append(r.Damaged, err.Error())
		s.Engine.Dict().Close()
		s.begin() // the other one holds half of a state
		// What will have changed since an older state is not what has changed
		// since the newest checkpoint.
		s.checkpoints.RequireFull()
	}
	return 0, nil
}

// begin makes a fresh engine, which from its first fact on remembers what
// changes: also one that is opened for reading may be saved elsewhere.
func (s *Store) begin() {
	s.Engine = epoch.New()
	s.Engine.Semirings(s.o.Semirings)
	s.Engine.Track()
}

// loadOne brings the fresh engine to the state of one checkpoint. Without spill all
// its terms stay in memory: the newest checkpoint may not have them.
func (s *Store) loadOne(ctx context.Context, info checkpoint.Info, spill bool, r *Report) (covered uint64, err error) {
	reader, err := s.checkpoints.Load(ctx, info)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	h := reader.Header()
	base, err := baseOf(&h, r)
	if err != nil {
		return 0, err
	}
	base.Terms = func(add func(id uint64, form []byte) error) error { return reader.Terms(ctx, add) }
	base.Facts = func(add func(chunk []byte) error) error { return reader.Facts(ctx, add) }
	var running *time.Duration
	began := s.o.Now()
	base.Phase = func(name string) {
		now := s.o.Now()
		if running != nil {
			*running = now.Sub(began)
		}
		began, running = now, map[string]*time.Duration{"terms": &r.Terms, "facts": &r.Facts, "views": &r.Views}[name]
		s.tell(Progress{Phase: name, Epoch: h.Epoch})
	}
	// Before they are read, so that they never are in memory all at once.
	if s.o.TermCache > 0 && spill {
		if err := s.Engine.SpillTerms(h.LastTerm, s.checkpoints, s.o.TermCache); err != nil {
			return 0, err
		}
	}
	if err := s.Engine.Restore(ctx, base); err != nil {
		return 0, err
	}
	*running = s.o.Now().Sub(began)
	r.Checkpoint = h.Epoch
	return h.LogIndex, nil
}

// baseOf turns a header into a base state without its terms and facts, and
// plans its queries.
func baseOf(h *checkpoint.Header, r *Report) (*epoch.Base, error) {
	b := &epoch.Base{
		Epoch: h.Epoch, Time: h.Time, LastTerm: h.LastTerm, Digest: h.Digest,
		Lateness: h.Lateness, Clocked: h.Clocked, EventTime: h.EventTime, Waiting: h.Waiting,
	}
	for _, rel := range h.Relations {
		b.Relations = append(b.Relations, epoch.BaseRelation{
			Name: rel.Name, Arity: rel.Arity, Facts: int(rel.Facts), Digest: rel.Digest, Next: rel.Next, Keep: rel.Keep,
		})
	}
	sources := make(map[string]rootvec.Source, len(h.Sources))
	for _, src := range h.Sources {
		sources[src.Name] = rootvec.Source{
			Incarnation: src.Incarnation, Next: src.Next, Skipped: src.Skipped,
			Watermark: src.Watermark, HasWatermark: src.HasWatermark, Explicit: src.Explicit,
		}
	}
	b.Sources = rootvec.SourcesOf(sources)
	for _, q := range h.Queries {
		w := query.Window(q.Window)
		p, err := catalog.Compile(q.Text, catalog.Options{Set: q.Set, Distinct: q.Distinct, Window: w})
		if err != nil {
			return nil, fmt.Errorf("%w: query %s: %w", epoch.Verdict(err), q.Name, err)
		}
		if p.Fingerprint() != q.Plan {
			r.Replanned = append(r.Replanned, q.Name)
		}
		b.Queries = append(b.Queries, &catalog.Query{
			Name: q.Name, Text: q.Text, Set: q.Set, Dist: q.Distinct, Window: w, Epoch: q.Epoch, Plan: p,
		})
	}
	return b, nil
}

// replay applies the log behind the checkpoint.
func (s *Store) replay(ctx context.Context, r *Report) error {
	start := s.o.Now()
	first := s.Engine.Last() + 1
	last := s.Log.Last()
	s.tell(Progress{Phase: "log", Epoch: first - 1, Last: last})
	places, replayed := s.Positions.All(), uint64(0)
	s.reached(places, replayed)
	err := s.Log.Replay(ctx, first, func(index uint64, payload []byte) error {
		rec, err := record.Decode(payload)
		if err != nil {
			return fmt.Errorf("log entry %d: %w", index, err)
		}
		r.Epochs++
		r.Events += uint64(len(rec.Events))
		if r.Epochs&0x3ff == 0 {
			s.tell(Progress{Phase: "log", Epoch: index, Last: last})
		}
		if err := s.Engine.Replay(ctx, rec); err != nil {
			return err
		}
		replayed += uint64(len(payload))
		s.reached(places, replayed)
		return nil
	})
	r.Replay = s.o.Now().Sub(start)
	return err
}

func (s *Store) tell(p Progress) {
	if s.o.Progress != nil {
		s.o.Progress(p)
	}
}

// Close ends the log and the checkpoints, in every case. A checkpoint under way
// has ended before; the caller sees to that.
func (s *Store) Close() error {
	var complaints []error
	if s.Log != nil {
		complaints = append(complaints, s.Log.Close())
	}
	if s.Positions != nil {
		complaints = append(complaints, s.Positions.Close())
	}
	if s.Engine != nil {
		s.Engine.Dict().Close()
	}
	if s.checkpoints != nil {
		complaints = append(complaints, s.checkpoints.Close())
	}
	return errors.Join(complaints...)
}
