package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/triegs/triegs/internal/errs"
)

// opening is a store on its way to being open; every resource it holds is
// either handed to the Log or freed by release.
type opening struct {
	dir  string
	o    Options
	id   Identity
	lock *flock.Flock
	rep  Report
}

// Open opens the store in dir and repairs its log: a torn tail that nobody was
// told of is cut, and everything that is kept is made durable. Unless o.ReadOnly is set, a missing
// directory is created with its parents, and an empty one becomes a store.
//
// Errors match errs.ErrLocked (another owner stayed for all of o.LockWait or
// until ctx ended, then ctx's error too), errs.ErrFormat (not a store, another
// version, another store's files), errs.ErrReadOnly (writing to a
// backup), errs.ErrCorrupt (with a *CorruptError),
// errs.ErrValue (options), or the operating system's error: a read-only open
// of what does not exist is fs.ErrNotExist. A failed Open leaves no descriptor,
// no goroutine and no lock behind.
//
// A read-only log shares its lock with other readers; beside a live writer it
// gets errs.ErrLocked, unless it is opened with o.NoLock. Where the store has no
// lock file (a copy) it opens without a lock.
func Open(ctx context.Context, dir string, o Options) (*Log, Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, Report{}, err
	}
	if err := ctx.Err(); err != nil {
		return nil, Report{}, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, Report{}, fmt.Errorf("open log: %w", err)
	}
	op := &opening{dir: dir, o: o}
	l, err := op.open(ctx)
	if err != nil {
		_ = releaseLock(op.lock, dir, !o.ReadOnly)
		return nil, op.rep, fmt.Errorf("open log: %w", err)
	}
	return l, op.rep, nil
}

// open does the work of Open; Open frees the lock when it fails.
func (op *opening) open(ctx context.Context) (*Log, error) {
	created, err := op.enter(ctx)
	if err != nil {
		return nil, err
	}
	op.rep.Created = created
	covered, err := op.cover(ctx)
	if err != nil {
		return nil, err
	}
	logDir := filepath.Join(op.dir, logName)
	acked, ok, err := readNote(filepath.Join(op.dir, noteName), op.id.Log)
	if err != nil {
		return nil, err
	}
	list, err := listLog(logDir)
	if err == nil {
		err = list.refuse()
	}
	if err != nil {
		return nil, err
	}
	sc, err := scan(logDir, list.segs, op.id.Log, acked, covered)
	if err != nil {
		return nil, err
	}
	op.rep = sc.report()
	op.rep.Created, op.rep.NoteMissing = created, !ok && !created
	if op.id.Backup { // later checkpoints were put into it, and no log
		op.rep.Renewed = false
	}
	if op.o.ReadOnly {
		size, err := list.size()
		if err != nil {
			return nil, err
		}
		return newReadOnly(op, sc, size), nil
	}
	if err := op.prepare(logDir, created); err != nil {
		return nil, err
	}
	if err := op.passOn(sc.renew); err != nil {
		return nil, err
	}
	if err := sc.mend(op.o.Step); err != nil {
		return nil, err
	}
	return op.start(logDir, sc)
}

// cover asks for the index through which a checkpoint holds every entry.
func (op *opening) cover(ctx context.Context) (uint64, error) {
	if op.o.Cover == nil {
		return 0, nil
	}
	covered, err := op.o.Cover(ctx, op.id)
	if err == nil && covered == math.MaxUint64 {
		err = fmt.Errorf("%w: no entry can follow entry %d", errs.ErrValue, covered)
	}
	return covered, err
}

// passOn draws a new timeline where the store may be behind what somebody has
// seen: the last owner acknowledged entries before they were durable and did
// not close, or the log lost some that were. It is durable before any entry of
// the new timeline is written.
func (op *opening) passOn(renewed bool) error {
	relaxed, err := marked(op.dir)
	if err != nil || !relaxed && !renewed {
		return err
	}
	id := op.id
	id.Timeline = NewID()
	if err := writeStore(op.dir, id, op.o.Step); err != nil {
		return err
	}
	op.id, op.rep.NewTimeline = id, true
	return nil
}

// enter makes sure that dir is a store, locks it, and reads or makes its
// identity. Nothing is created in a directory that turns out not to be ours.
func (op *opening) enter(ctx context.Context) (created bool, err error) {
	hasStore, err := inspect(op.dir)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && !op.o.ReadOnly:
		if err := makeDirs(op.dir, op.o.Step); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	case op.o.ReadOnly && !hasStore:
		return false, fmt.Errorf("%w: %s holds no store", errs.ErrFormat, op.dir)
	}
	if hasStore { // what will be refused is not even locked
		if err := op.identify(); err != nil {
			return false, err
		}
	}
	if !op.o.NoLock {
		op.lock, err = acquire(ctx, op.dir, op.o.ReadOnly, op.o.LockWait)
		if err != nil {
			return false, err
		}
	}
	if !op.o.ReadOnly {
		signLock(op.dir)
	}
	// Again, now that nobody else can be changing it.
	if hasStore, err = inspect(op.dir); err != nil {
		return false, err
	}
	if !hasStore {
		op.id = newIdentity()
		return true, writeStore(op.dir, op.id, op.o.Step)
	}
	return false, op.identify()
}

// identify reads the identity and refuses to write to a backup, whose log has
// the id of another that may go on.
func (op *opening) identify() (err error) {
	op.id, err = readStore(op.dir)
	if err == nil && op.id.Backup && !op.o.ReadOnly {
		err = fmt.Errorf("%w: %s is a backup: it is read, or restored to another place", errs.ErrReadOnly, op.dir)
	}
	return err
}

// inspect reports whether dir holds an identity file. A directory without one
// must be empty but for what a crash right after its making leaves.
func inspect(dir string) (hasStore bool, err error) {
	st, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	if !st.IsDir() {
		return false, fmt.Errorf("%w: %s is not a directory", errs.ErrFormat, dir)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	var foreign error
	store := filepath.Join(dir, storeName)
	for _, e := range names {
		switch e.Name() {
		case storeName:
			return true, nil
		case lockName, storeName + tempExt:
		case logName, noteName:
			foreign = fmt.Errorf("%w: %s holds a log but no identity file %s: the log belongs to another or a lost store",
				errs.ErrFormat, dir, storeName)
		default:
			foreign = fmt.Errorf("%w: %s is not a store and not empty: it holds %q", errs.ErrFormat, dir, e.Name())
		}
	}
	if foreign != nil {
		// The listing is not of one moment: another process may be making it.
		if _, err := os.Stat(store); err == nil {
			return true, nil
		}
	}
	return false, foreign
}

// makeDirs creates dir and its missing parents, each durable in its parent.
func makeDirs(dir string, step func(string) error) error {
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		if err := makeDirs(parent, step); err != nil {
			return err
		}
	}
	if err := step("make directory " + filepath.Base(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := step("sync parent of " + filepath.Base(dir)); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(parent))
}

// prepare makes the log directory if it is missing and proves that new files
// can be made before anything of the log is touched. A store that opens but
// stops at its first full segment is worse than one that does not open.
func (op *opening) prepare(logDir string, created bool) error {
	if _, err := os.Stat(logDir); errors.Is(err, fs.ErrNotExist) {
		if err := makeDirs(logDir, op.o.Step); err != nil {
			return err
		}
	}
	if !created {
		if err := probe(op.dir); err != nil {
			return err
		}
	}
	return probe(logDir)
}

// probe writes and removes a small file.
func probe(dir string) error {
	path := filepath.Join(dir, probeName)
	err := os.WriteFile(path, []byte("probe\n"), filePerm)
	return errors.Join(err, ignoreMissing(os.Remove(path)))
}

// start opens the files for writing and starts the writer.
func (op *opening) start(logDir string, sc scanned) (*Log, error) {
	if err := op.o.Step("open the segments"); err != nil {
		return nil, err
	}
	files, err := openDevice(logDir, op.o.SegmentBytes, sc.tailEnd)
	if err != nil {
		return nil, err
	}
	// A fresh log has a first segment now, and a repair may have renamed one.
	err = op.o.Step("sync directories")
	if err == nil {
		err = errors.Join(syncDir(logDir), syncDir(op.dir))
	}
	if err == nil {
		err = op.o.Step("write the note")
	}
	var n *note
	if err == nil {
		n, err = openNote(filepath.Join(op.dir, noteName), op.id.Log, sc.last)
	}
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	list, err := listLog(logDir)
	var size int64
	if err == nil {
		size, err = list.size()
	}
	if err == nil {
		err = op.mark()
	}
	if err != nil {
		return nil, errors.Join(err, n.close(), files.Close())
	}
	var dev Device = files
	if op.o.Wrap != nil {
		dev = op.o.Wrap(files)
	}
	return newLog(op, sc, dev, n, size), nil
}

// mark makes or removes the marker as the mode wants it, when nothing else of
// the opening is left to do.
func (op *opening) mark() error {
	if op.o.Mode == SyncEpoch {
		return unmark(op.dir, op.o.Step)
	}
	return mark(op.dir, op.o.Step)
}
