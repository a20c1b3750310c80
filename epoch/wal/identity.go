package wal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/internal/errs"
)

// Names in the directory of a store.
const (
	storeName   = "STORE"
	lockName    = "LOCK"
	noteName    = "ACKED"
	relaxedName = "RELAXED"
	logName     = "log"
	probeName   = "PROBE"
	tempExt     = ".tmp"
)

// FormatVersion is the version of the directory layout that this package
// writes and reads.
const FormatVersion = 1

const (
	storeMagic = "TrieGS\x00\n"
	storeSize  = 72
	storeSum   = storeSize - sumSize
	flagBackup = 1 << 0 // of the option flags
	noteMagic  = "TGack\x00\x00\x01"
	noteSize   = 40
	noteSum    = noteSize - sumSize

	filePerm = 0o640
	dirPerm  = 0o750
)

// ID is drawn at random and stands for a thing that no other thing of its kind
// must be taken for.
type ID [16]byte

// NewID draws an id.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[:]) // documented never to fail
	return id
}

// String gives the id in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Identity says which store a directory holds.
type Identity struct {
	// Store is the lineage: drawn when the store is created and kept by every
	// restored copy.
	Store ID
	// Log is drawn when the store is created and at every restore. The note and
	// every frame carry it, so that a log of another store, or of another life
	// of this one, is recognised.
	Log ID
	// Timeline is drawn when the store is created, at every restore, and when
	// it is opened again behind an epoch that somebody may have seen. Positions
	// of another timeline mean nothing in this one.
	Timeline ID
	// Backup marks a copy that is never written to: it has the ids of the store
	// it was taken from. Open for writing refuses it.
	Backup bool
}

// Fork is the identity of a restored copy: the same lineage, a log and a
// timeline of its own, not a backup.
func (id Identity) Fork() Identity { return Identity{Store: id.Store, Log: NewID(), Timeline: NewID()} }

// newIdentity draws the identity of a new store.
func newIdentity() Identity { return Identity{Store: NewID(), Log: NewID(), Timeline: NewID()} }

// appendStore encodes the identity file.
func appendStore(dst []byte, id Identity) []byte {
	var flags uint32
	if id.Backup {
		flags |= flagBackup
	}
	at := len(dst)
	dst = append(dst, storeMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, FormatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = append(dst, id.Store[:]...)
	dst = append(dst, id.Log[:]...)
	dst = append(dst, id.Timeline[:]...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
}

// parseStore decodes the identity file. The version is looked at before length
// and checksum, which a later version may have changed; an unknown flag
// is refused where the file is whole.
func parseStore(path string, b []byte) (Identity, error) {
	corrupt := func(why string) (Identity, error) {
		return Identity{}, &CorruptError{File: path, Err: errors.New(why)}
	}
	if len(b) < len(storeMagic)+8 {
		return corrupt(fmt.Sprintf("identity file has %d bytes, not %d", len(b), storeSize))
	}
	if len(bytes.Trim(b, "\x00")) == 0 { // as a crash may leave a file, not somebody else's
		return corrupt("identity file holds zeros")
	}
	if string(b[:len(storeMagic)]) != storeMagic {
		return Identity{}, fmt.Errorf("%w: %s is not the identity file of a store", errs.ErrFormat, path)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != FormatVersion {
		return Identity{}, fmt.Errorf("%w: %s has format version %d, this build reads version %d",
			errs.ErrFormat, path, v, FormatVersion)
	}
	if len(b) != storeSize {
		return corrupt(fmt.Sprintf("identity file has %d bytes, not %d", len(b), storeSize))
	}
	if binary.LittleEndian.Uint64(b[storeSum:]) != xxhash.Sum64(b[:storeSum]) {
		return corrupt("checksum does not match")
	}
	flags := binary.LittleEndian.Uint32(b[12:])
	if unknown := flags &^ flagBackup; unknown != 0 {
		return Identity{}, fmt.Errorf("%w: %s (format version %d) has option flags %#x, which this build (version %d) does not know",
			errs.ErrFormat, path, FormatVersion, unknown, FormatVersion)
	}
	return Identity{
		Store: ID(b[16:32]), Log: ID(b[32:48]), Timeline: ID(b[48:64]), Backup: flags&flagBackup != 0,
	}, nil
}

// ReadIdentity reads the identity of the store in dir without its lock, so it
// works beside a live writer. Errors match fs.ErrNotExist (no directory),
// errs.ErrFormat (not a store, another version) or errs.ErrCorrupt.
func ReadIdentity(dir string) (Identity, error) {
	has, err := inspect(dir)
	if err == nil && !has {
		err = fmt.Errorf("%w: %s holds no store", errs.ErrFormat, dir)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read identity: %w", err)
	}
	id, err := readStore(dir)
	if err != nil {
		return Identity{}, fmt.Errorf("read identity: %w", err)
	}
	return id, nil
}

// Holds reports whether dir is the directory of a store of this version whose
// identity file is whole. It reads that file and nothing else.
func Holds(dir string) bool {
	_, err := readStore(dir)
	return err == nil
}

// readStore reads the identity file in dir.
func readStore(dir string) (Identity, error) {
	path := filepath.Join(dir, storeName)
	b, err := os.ReadFile(path)
	if err != nil {
		return Identity{}, err
	}
	return parseStore(path, b)
}

// writeStore writes the identity file so that after a crash there is the whole
// new file or what was there before.
func writeStore(dir string, id Identity, step func(string) error) error {
	return Replace(dir, storeName, appendStore(nil, id), "identity", step)
}

// note is the open note file. It is written in place, in one call, and lies
// in one sector; it is not synced, because a note that is lost or stale only
// protects less.
type note struct {
	log  ID
	info os.FileInfo // of f, to see that the name still leads to it
	f    *os.File
	buf  [noteSize]byte
}

// appendNote encodes the note.
func appendNote(dst []byte, log ID, index uint64) []byte {
	at := len(dst)
	dst = append(dst, noteMagic...)
	dst = append(dst, log[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, index)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
}

// readNote returns the index in the note, or ok false where there is no whole
// note (it is not synced, so a crash of the machine may leave anything). A
// whole note of another log is a *ForeignError.
func readNote(path string, log ID) (index uint64, ok bool, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false, ignoreMissing(err)
	}
	if len(b) != noteSize || string(b[:8]) != noteMagic ||
		binary.LittleEndian.Uint64(b[noteSum:]) != xxhash.Sum64(b[:noteSum]) {
		return 0, false, nil
	}
	if got := ID(b[8:24]); got != log {
		return 0, false, &ForeignError{File: path, Offset: 8, Want: log, Got: got}
	}
	return binary.LittleEndian.Uint64(b[24:]), true, nil
}

// openNote opens the note for writing and writes index, so that a full disk
// shows here and not at the first sync.
func openNote(path string, log ID, index uint64) (*note, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, filePerm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	n := &note{log: log, f: f, info: info}
	if err := n.write(index); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return n, nil
}

// write overwrites the note. It fails when the file no longer has its name:
// then the directory of the store is gone or was replaced, and what is written
// to files that are still open would be acknowledged and lost.
func (n *note) write(index uint64) error {
	appendNote(n.buf[:0], n.log, index)
	if _, err := n.f.WriteAt(n.buf[:], 0); err != nil {
		return err
	}
	named, err := os.Lstat(n.f.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(named, n.info) {
		return fmt.Errorf("%s was replaced by another file", n.f.Name())
	}
	return nil
}

// close closes the note file.
func (n *note) close() error { return n.f.Close() }
