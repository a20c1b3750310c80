package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/checkpoint"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/recovery/positions"
)

// Backup takes a checkpoint and copies it to dest, where it is a store of its
// own at one epoch that can be opened for reading, and restored from. Where dest
// holds an earlier backup of this store only what is new since then is copied.
// Otherwise dest must be missing or empty (else ErrFormat); nothing stands under
// its name before the backup is whole. At most rate bytes a second are copied,
// 0 means no limit. Appends, readers and later checkpoints go on meanwhile.
func (s *Store) Backup(ctx context.Context, dest string, rate int64) (Saved, error) {
	start := s.o.Now()
	dest, err := free(dest, s.dir)
	if err != nil {
		return Saved{}, err
	}
	if err := take(ctx, s.saver.copies); err != nil {
		return Saved{}, err
	}
	defer func() { <-s.saver.copies }()
	if err := s.takeTurn(ctx); err != nil {
		return Saved{}, err
	}
	places := s.Positions.All() // before the checkpoint, which they must not lead
	saved, err := s.checkpoint(ctx)
	if err != nil {
		s.giveTurn()
		return saved, err
	}
	s.giveTurn()
	saved.Bytes, saved.Full, err = s.copyTo(ctx, dest, saved.Epoch, rate, places)
	saved.Took = s.o.Now().Sub(start)
	return saved, err
}

// copyTo brings the newest checkpoint, which is of epoch e or a later one, to
// dest, which holds nothing or an earlier backup. Later checkpoints may come
// meanwhile. The places of subscribers go with it, so that a store that is restored
// from it knows of them.
func (s *Store) copyTo(ctx context.Context, dest string, e uint64, rate int64, places map[string]positions.Place) (bytes int64, full bool, err error) {
	old, err := wal.ReadIdentity(dest)
	switch {
	case err == nil && old.Backup && old.Log == s.id.Log:
		bytes, err = s.copyInto(ctx, dest, e, rate)
		if err == nil {
			err = positions.Write(dest, places)
		}
		return bytes, false, err
	case err == nil:
		return 0, false, fmt.Errorf("%w: %s holds a store that is not a backup of this one", errs.ErrFormat, dest)
	}
	id := s.id
	id.Backup = true
	err = whole(s.files(), dest, func(dir string) error {
		if err := wal.Create(dir, id, e); err != nil {
			return err
		}
		if bytes, err = s.copyInto(ctx, dir, e, rate); err != nil {
			return err
		}
		return positions.Write(dir, places)
	})
	return bytes, true, err
}

// copyInto copies the newest checkpoint, which is of epoch e or a later one, to
// the store in dir. One that turns out to be damaged is not replaced by an older
// one.
func (s *Store) copyInto(ctx context.Context, dir string, e uint64, rate int64) (bytes int64, err error) {
	if list := s.checkpoints.List(); len(list) > 0 && list[0].Err != nil {
		return 0, list[0].Err
	}
	to, err := checkpoint.Open(ctx, filepath.Join(dir, checkpointsName), checkpoint.Options{
		FS: s.o.FS, StoreID: s.id.Log, Timeout: s.o.timeout, Reserve: s.o.reserve,
	})
	if err != nil {
		return 0, err
	}
	before := to.Stats().Bytes
	in, err := s.checkpoints.CopyTo(ctx, to, rate)
	if err == nil && in.Epoch < e {
		err = fmt.Errorf("%w: the checkpoint of epoch %d in %s has been found damaged", errs.ErrCorrupt, e, s.dir)
	}
	return to.Stats().Bytes - before, errors.Join(err, to.Close())
}

// files is the file system of checkpoints and of the directories that are made.
func (s *Store) files() vfs.FS {
	if s.o.FS == nil {
		return vfs.Default
	}
	return s.o.FS
}

// whole makes the directory dest by filling another one beside it and renaming
// that. dest must be missing or empty, else the error is ErrFormat and it is
// left alone.
func whole(fsys vfs.FS, dest string, fill func(dir string) error) (err error) {
	dest, err = filepath.Abs(dest)
	if err != nil {
		return err
	}
	if err := vacant(fsys, dest); err != nil {
		return err
	}
	parent := filepath.Dir(dest)
	if err := makeDirs(fsys, parent); err != nil {
		return err
	}
	dir := dest + ".partial-" + wal.NewID().String()[:12]
	if err := fsys.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, fsys.RemoveAll(dir))
		}
	}()
	if err := fill(dir); err != nil {
		return err
	}
	// An empty directory makes room; one that has filled since stays, and this
	// fails.
	err = fsys.Remove(dest)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = fsys.Rename(dir, dest)
	}
	if err != nil {
		if full := vacant(fsys, dest); full != nil {
			return full
		}
		return err
	}
	return syncDir(fsys, parent)
}

const dirPerm = 0o750

// makeDirs makes a directory with its missing parents, each durable in its own.
func makeDirs(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDirs(fsys, parent); err != nil {
		return err
	}
	if err := fsys.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	return syncDir(fsys, parent)
}

// vacant checks that nothing is at path, or an empty directory.
func vacant(fsys vfs.FS, path string) error {
	names, err := fsys.List(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %s: %w", errs.ErrFormat, path, err)
	case len(names) > 0:
		return fmt.Errorf("%w: %s is not empty: it holds %q", errs.ErrFormat, path, slices.Min(names))
	}
	return nil
}

func syncDir(fsys vfs.FS, path string) error {
	d, err := fsys.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Restore makes a store in dest, which must be missing or empty, from a backup
// or from a store that nobody has open. The new store begins at the epoch of
// what it was made from, with its facts, queries and positions, in a timeline
// and with a log of its own. What is read is verified on the way.
func Restore(ctx context.Context, source, dest string, o Options) (Report, error) {
	o.Log.ReadOnly = true
	dest, err := free(dest, source)
	if err != nil {
		return Report{}, err
	}
	if err := vacant((&Store{o: o}).files(), dest); err != nil {
		return Report{}, err
	}
	s, report, err := Open(ctx, source, o)
	if err != nil {
		return report, err
	}
	err = s.transplant(ctx, dest)
	return report, errors.Join(err, s.Close())
}

// transplant writes the state of an engine that nobody changes to dest, as a
// store in a new timeline.
func (s *Store) transplant(ctx context.Context, dest string) error {
	id := s.id.Fork()
	return whole(s.files(), dest, func(dir string) error {
		if err := wal.Create(dir, id, s.Engine.Current.Epoch()); err != nil {
			return err
		}
		to, err := checkpoint.Open(ctx, filepath.Join(dir, checkpointsName), checkpoint.Options{
			FS: s.o.FS, StoreID: id.Log, Timeout: s.o.timeout, Reserve: s.o.reserve,
		})
		if err != nil {
			return err
		}
		t := &Store{Engine: s.Engine, id: id, o: s.o, checkpoints: to}
		_, err = t.save(ctx)
		if err = errors.Join(err, to.Close()); err != nil {
			return err
		}
		// Of the timeline that they were of: whoever has one of these names is told.
		return positions.Write(dir, s.Positions.All())
	})
}

// Salvage says what Repair has found.
type Salvage struct {
	Epoch      uint64   // the state that was saved
	Checkpoint uint64   // the epoch of the checkpoint that it began from, 0 if none
	Damaged    []string // what was passed over, with the reason
	// Last is the last epoch known to have been there, and Reason why the log
	// could be followed only up to Epoch; empty if it ends there.
	Last   uint64
	Reason string
	Took   time.Duration
}

// Repair reads what is provably good of the store in source, which it does not
// change, and makes a store of it in dest, which must be missing or empty: the
// newest checkpoint that verifies, and the log behind it up to the first entry
// that is missing, damaged, or does not give the state that was logged. Errors
// are those of reading and writing as such; what is lost is told.
func Repair(ctx context.Context, source, dest string, o Options) (Salvage, error) {
	var out Salvage
	start := o.Now()
	o.Log.ReadOnly, o.Fallback = true, true
	s := &Store{dir: source, o: o}
	dest, err := free(dest, source)
	if err != nil {
		return out, err
	}
	if err := vacant(s.files(), dest); err != nil {
		return out, err
	}
	defer func() { _ = s.Close() }() // nothing was written there
	id, err := salvageIdentity(source, &out)
	if err != nil {
		return out, err
	}
	if s.Positions, err = positions.Open(source, positions.Options{ReadOnly: true}); err != nil {
		out.Damaged = append(out.Damaged, err.Error())
		s.Positions, _ = positions.Open("", positions.Options{ReadOnly: true}) // nothing to fail
	}
	var r Report
	if _, err := s.load(ctx, id, &r); err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return out, err
	} else if err != nil {
		r.Damaged = append(r.Damaged, err.Error())
		s.begin()
	}
	out.Checkpoint, out.Damaged = r.Checkpoint, append(out.Damaged, r.Damaged...)
	if err := s.follow(ctx, &out); err != nil {
		return out, err
	}
	out.Epoch = s.Engine.Current.Epoch()
	err = s.transplant(ctx, dest)
	out.Took = o.Now().Sub(start)
	return out, err
}

// salvageIdentity reads the identity of a store, from its log if the file of it
// is damaged.
func salvageIdentity(dir string, out *Salvage) (wal.Identity, error) {
	id, err := wal.ReadIdentity(dir)
	if err == nil {
		return id, nil
	}
	found, serr := wal.Salvage(dir, math.MaxUint64, func(uint64, []byte) error { return nil })
	if serr != nil || found.Identity.Log == (wal.ID{}) {
		return id, err
	}
	out.Damaged = append(out.Damaged, err.Error())
	id = found.Identity
	if id.Store == (wal.ID{}) {
		id.Store = wal.NewID() // nothing tells what it was
	}
	return id, nil
}

// follow replays the log behind the loaded checkpoint as far as it is good.
func (s *Store) follow(ctx context.Context, out *Salvage) error {
	var stopped error
	found, err := wal.Salvage(s.dir, s.Engine.Last()+1, func(index uint64, payload []byte) error {
		rec, err := record.Decode(payload)
		if err == nil {
			err = s.Engine.Replay(ctx, rec)
		}
		if err != nil {
			stopped = fmt.Errorf("log entry %d: %w", index, err)
		}
		return stopped
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if stopped != nil {
		out.Reason = stopped.Error()
	} else if err != nil {
		return err
	} else if found.Stop != nil {
		out.Reason = found.Stop.Error()
	}
	out.Last = max(found.Last, s.Engine.Last(), s.known())
	return nil
}
