package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/internal/errs"
)

// Format is the version of Pebble's files. It is named, not "newest": Pebble
// raises a directory to whatever it is asked for and there is no way back, so
// a raise must be a change of this line.
const Format = pebble.FormatValueSeparation

const (
	// timeoutDefault bounds one call. An ingest is a few links, two syncs and
	// one record; a minute is a disk that is gone.
	timeoutDefault = time.Minute

	// timeoutPoisoned bounds Close after a sticky error, when Pebble is likely
	// to wait for a goroutine that no longer is.
	timeoutPoisoned = time.Second

	// cacheBytes suffices, since loading is one scan.
	cacheBytes = 8 << 20

	// manifestBytes is when a new manifest is begun. One that is open for long takes
	// a hundred bytes and more of each ingest, and is read by each Open.
	manifestBytes = 8 << 10

	// blockBytes is the size of a block before compression.
	blockBytes = 32 << 10
)

// Options say how a directory is opened. The zero value is a writer on the
// file system of the operating system.
type Options struct {
	// FS is where the directory is; nil is vfs.Default.
	FS vfs.FS

	// ReadOnly opens without a lock and without a change.
	ReadOnly bool

	// Timeout bounds each call; 0 is one minute.
	Timeout time.Duration

	// Event is told of what Pebble complains about (background errors,
	// corruption, stalls, low disk space); nil drops it. It is called on any
	// goroutine and must not block.
	Event func(text string)
}

// fill gives each option left zero its default.
func (o *Options) fill() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Timeout == 0 {
		o.Timeout = timeoutDefault
	}
	if o.Event == nil {
		o.Event = func(string) {}
	}
}

// tables gives the options that decide how tables are written.
func tables() *pebble.Options {
	o := &pebble.Options{
		FormatMajorVersion:          Format,
		DisableWAL:                  true,
		DisableAutomaticCompactions: true,
		DisableTableStats:           true,
		// A missing or short file must not hide the good ones: the room above
		// looks at the files itself.
		DisableConsistencyCheck: true,
		CacheSize:               cacheBytes,
		MemTableSize:            1 << 20,
		MaxOpenFiles:            200,
		MaxManifestFileSize:     manifestBytes,
	}
	o.Experimental.FileCacheShards = 1
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockBytes
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return compression }
	}
	return o
}

// pebbleOptions gives the options of one open vault.
func (v *Vault) pebbleOptions() *pebble.Options {
	o := tables()
	o.FS = v.fs
	o.ReadOnly = v.o.ReadOnly
	o.Logger = logger{v}
	tell := func(format string, args ...any) { v.o.Event(fmt.Sprintf(format, args...)) }
	o.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) { tell("background error: %v", err) },
		DataCorruption:  func(i pebble.DataCorruptionInfo) { tell("corruption in %s: %v", i.Path, i.Details) },
		DiskSlow:        func(i pebble.DiskSlowInfo) { tell("disk is slow: %s", i) },
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) { tell("write stall: %s", i.Reason) },
		WriteStallEnd:   func() { tell("write stall is over") },
		LowDiskSpace:    func(i pebble.LowDiskSpaceInfo) { tell("low disk space: %s", i) },
	}
	return o
}

// logger is where Pebble says its last words.
type logger struct{ v *Vault }

// Infof drops the message: Pebble tells every step of every open.
func (logger) Infof(string, ...any) {}

// Errorf passes the message on as an event.
func (l logger) Errorf(format string, args ...any) { l.v.o.Event(fmt.Sprintf(format, args...)) }

// Fatalf makes the error sticky and ends this goroutine. It must not return,
// since Pebble would take the failed step for done; deferred unlocks run.
func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = explain("write checkpoints", l.v.dir, cause)
		}
	}
	l.v.mu.Lock()
	l.v.mu.fatal = true
	l.v.mu.Unlock()
	_ = l.v.fail(fmt.Errorf("checkpoint store stopped: %w", err))
	runtime.Goexit()
}

// Exists tells whether dir holds a Pebble store that this version can open. A
// directory that is missing, empty, or was left by a crash before its store
// was complete does not. It reads names only, and changes nothing.
//
// A store of a later version, or files that are not ours where none is, are
// errs.ErrFormat; tables without a store, or half of one, are errs.ErrCorrupt.
func Exists(fsys vfs.FS, dir string) (bool, error) {
	if fsys == nil {
		fsys = vfs.Default
	}
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list checkpoints: %w", err)
	}
	desc, err := pebble.Peek(dir, fsys)
	switch {
	case err != nil && fromSystem(err):
		return false, fmt.Errorf("look at checkpoints in %s: %w", dir, err)
	case err != nil:
		return false, fmt.Errorf("look at checkpoints in %s: %w: %w", dir, errs.ErrFormat, err)
	case desc.FormatMajorVersion > Format:
		return false, fmt.Errorf("checkpoints in %s: %w: version %d, this is %d", dir, errs.ErrFormat, desc.FormatMajorVersion, Format)
	}
	// Pebble writes the marker of the format last, when the rest of a new store
	// is durable. Before, a crash may leave the marker of a manifest without the
	// manifest, which Pebble would not open.
	complete := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, formatMarker) })
	if desc.Exists && complete {
		return true, nil
	}
	for _, n := range names {
		switch {
		case strings.HasSuffix(n, ".sst"):
			return false, fmt.Errorf("%s: %w: a table, and no manifest", fsys.PathJoin(dir, n), errs.ErrCorrupt)
		case !leftover(n):
			return false, fmt.Errorf("%s: %w: not a file of a checkpoint store", fsys.PathJoin(dir, n), errs.ErrFormat)
		}
	}
	if complete {
		return false, fmt.Errorf("checkpoints in %s: %w: no manifest", dir, errs.ErrCorrupt)
	}
	return false, nil
}

// formatMarker begins the name of the file that says what format a store has.
const formatMarker = "marker.format-version."

// wipe removes what would harm Open: all that a crash in the middle of making a
// store has left, and of a whole store the log files. They are empty, since
// nothing is ever written through them, but Pebble would flush what it read
// from them on a goroutine in the background, where it panics if the sync of
// the directory fails.
func wipe(fsys vfs.FS, dir string, whole bool) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if err == nil && leftover(n) && n != "LOCK" && (!whole || strings.HasSuffix(n, ".log")) {
			err = fsys.Remove(fsys.PathJoin(dir, n))
		}
	}
	return err
}

// leftover tells the names that a crash while a store is made may leave.
func leftover(name string) bool {
	for _, p := range []string{"MANIFEST-", "OPTIONS-", "marker.", "LOCK", "temporary."} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".dbtmp")
}
