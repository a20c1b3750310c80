package wal

import (
	"errors"

	tidwall "github.com/tidwall/wal"
)

// Device is the log's way to its files. Options.Wrap puts a test's own in
// front of it; after the first error of Append, Sync or SyncDir the log calls
// Close and nothing else.
type Device interface {
	// Append writes one frame for each of the entries first, first+1, ... and
	// reports whether a new segment was made, whose name SyncDir must then
	// make durable.
	Append(first uint64, frames [][]byte) (switched bool, err error)
	// Sync makes everything appended durable.
	Sync() error
	// SyncDir makes the names of the segments durable.
	SyncDir() error
	// Close frees the files.
	Close() error
}

// batchKeep is how much of a batch's buffer is kept for the next one.
const batchKeep = 1 << 20

// fileDevice is the Device over tidwall/wal.
type fileDevice struct {
	dir   string
	log   *tidwall.Log
	batch *tidwall.Batch
	limit int   // segment size
	fill  int64 // bytes in the last segment
}

var _ Device = (*fileDevice)(nil)

// openDevice opens the segments for appending. The last one must hold fill
// bytes and whole entries only: the library refuses any other, and loses a
// file descriptor each time it does. Of the segments before it the library
// notes the names and no more: it reads them in Read and in its truncations,
// which are never called.
func openDevice(dir string, segmentBytes int, fill int64) (*fileDevice, error) {
	log, err := tidwall.Open(dir, &tidwall.Options{
		NoSync:           true, // the log syncs itself, once for a group
		SegmentSize:      segmentBytes,
		LogFormat:        tidwall.Binary,
		SegmentCacheSize: 1,
		NoCopy:           true,
		AllowEmpty:       true,
		DirPerms:         dirPerm,
		FilePerms:        filePerm,
	})
	if err != nil {
		return nil, err
	}
	return &fileDevice{dir: dir, log: log, batch: new(tidwall.Batch), limit: segmentBytes, fill: fill}, nil
}

// Append counts the bytes as the library does, because the library does not
// say when it makes a segment.
func (d *fileDevice) Append(first uint64, frames [][]byte) (bool, error) {
	switched := false
	if d.fill > int64(d.limit) {
		d.fill, switched = 0, true
	}
	total := 0
	for i, f := range frames {
		d.batch.Write(first+uint64(i), f)
		total += len(f)
		d.fill += int64(prefixLen(len(f)) + len(f))
		if d.fill >= int64(d.limit) {
			d.fill, switched = 0, true
		}
	}
	if err := d.log.WriteBatch(d.batch); err != nil {
		return switched, err
	}
	if total > batchKeep {
		d.batch = new(tidwall.Batch)
	}
	if switched {
		// The library keeps the sealed segment for readers; there are none.
		return true, d.log.ClearCache()
	}
	return false, nil
}

// Sync syncs the last segment; the library synced the others when they were
// full.
func (d *fileDevice) Sync() error { return d.log.Sync() }

// SyncDir syncs the directory of the segments.
func (d *fileDevice) SyncDir() error { return syncDir(d.dir) }

// Close closes the last segment. The library leaves it open when its sync
// fails, so it is asked again; the first error counts.
//
// The library keeps its descriptor when the sync inside its Close fails, and
// offers no other way to close it. Letting go of it leaves that to the garbage
// collector, however long the caller keeps the closed store.
func (d *fileDevice) Close() error {
	log := d.log
	d.log = nil
	err := log.Close()
	if err != nil {
		if again := log.Close(); errors.Is(again, tidwall.ErrClosed) {
			return nil
		}
	}
	return err
}

// prefixLen is the length of the library's length prefix (a uvarint).
func prefixLen(n int) int {
	size := 1
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}
