package wal

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs/internal/errs"
)

// Names in the directory of a store.
const (
	storeName = "STORE"
	lockName  = "LOCK"
	noteName  = "ACKED"
	logName   = "log"
	probeName = "PROBE"
	tempExt   = ".tmp"
)

// FormatVersion is the version of the directory layout that this package
// writes and reads.
const FormatVersion = 1

const (
	storeMagic = "TrieGS\x00\n"
	storeSize  = 40
	noteMagic  = "TGack\x00\x00\x01"
	noteSize   = 40

	filePerm = 0o640
	dirPerm  = 0o750
)

// StoreID is drawn at random when a store is created. Every frame and the
// note carry it, so that a log put into the wrong directory is recognised.
type StoreID [16]byte

// String gives the id in hexadecimal.
func (id StoreID) String() string { return hex.EncodeToString(id[:]) }

// appendStore encodes the identity file.
func appendStore(dst []byte, id StoreID) []byte {
	at := len(dst)
	dst = append(dst, storeMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, FormatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0) // option flags: none defined
	dst = append(dst, id[:]...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
}

// parseStore decodes the identity file. Version and flags are looked at
// before length and checksum: a later version may have changed both.
func parseStore(path string, b []byte) (StoreID, error) {
	corrupt := func(why string) (StoreID, error) {
		return StoreID{}, &CorruptError{File: path, Err: errors.New(why)}
	}
	if len(b) < len(storeMagic)+8 {
		return corrupt(fmt.Sprintf("identity file has %d bytes, not %d", len(b), storeSize))
	}
	if string(b[:len(storeMagic)]) != storeMagic {
		return StoreID{}, fmt.Errorf("%w: %s is not the identity file of a store", errs.ErrFormat, path)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != FormatVersion {
		return StoreID{}, fmt.Errorf("%w: %s has format version %d, this build reads version %d",
			errs.ErrFormat, path, v, FormatVersion)
	}
	if len(b) != storeSize {
		return corrupt(fmt.Sprintf("identity file has %d bytes, not %d", len(b), storeSize))
	}
	if binary.LittleEndian.Uint64(b[32:]) != xxhash.Sum64(b[:32]) {
		return corrupt("checksum does not match")
	}
	if f := binary.LittleEndian.Uint32(b[12:]); f != 0 {
		return StoreID{}, fmt.Errorf("%w: %s (format version %d) has option flags %#x, this build (version %d) knows none",
			errs.ErrFormat, path, FormatVersion, f, FormatVersion)
	}
	return StoreID(b[16:32]), nil
}

// createStore draws an id and writes the identity file so that after a crash
// there is either the whole file or none.
func createStore(dir string, step func(string) error) (StoreID, error) {
	var id StoreID
	if _, err := rand.Read(id[:]); err != nil {
		return id, fmt.Errorf("store id: %w", err)
	}
	path := filepath.Join(dir, storeName)
	temp := path + tempExt
	if err := step("write identity"); err != nil {
		return id, err
	}
	if err := writeSynced(temp, appendStore(nil, id)); err != nil {
		return id, errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	if err := step("rename identity"); err != nil {
		return id, err
	}
	if err := os.Rename(temp, path); err != nil {
		return id, errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	if err := step("sync directory of identity"); err != nil {
		return id, err
	}
	return id, syncDir(dir)
}

// note is the open note file. It is written in place, in one call, and lies
// in one sector; it is not synced, because a note that is lost or stale only
// protects less.
type note struct {
	info os.FileInfo // of f, to see that the name still leads to it
	f    *os.File
	buf  [noteSize]byte
}

// readNote returns the index in the note, or ok false where there is no whole
// note (it is not synced, so a crash of the machine may leave anything). A
// whole note of another store is a *ForeignError.
func readNote(path string, id StoreID) (index uint64, ok bool, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false, ignoreMissing(err)
	}
	if len(b) != noteSize || string(b[:8]) != noteMagic ||
		binary.LittleEndian.Uint64(b[32:]) != xxhash.Sum64(b[:32]) {
		return 0, false, nil
	}
	if got := StoreID(b[8:24]); got != id {
		return 0, false, &ForeignError{File: path, Offset: 8, Want: id, Got: got}
	}
	return binary.LittleEndian.Uint64(b[24:]), true, nil
}

// openNote opens the note for writing and writes index, so that a full disk
// shows here and not at the first sync.
func openNote(path string, id StoreID, index uint64) (*note, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, filePerm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	n := &note{f: f, info: info}
	copy(n.buf[:], noteMagic)
	copy(n.buf[8:], id[:])
	if err := n.write(index); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return n, nil
}

// write overwrites the note. It fails when the file no longer has its name:
// then the directory of the store is gone or was replaced, and what is written
// to files that are still open would be acknowledged and lost.
func (n *note) write(index uint64) error {
	binary.LittleEndian.PutUint64(n.buf[24:], index)
	binary.LittleEndian.PutUint64(n.buf[32:], xxhash.Sum64(n.buf[:32]))
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

// writeSynced writes a new file and syncs it.
func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, filePerm)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ignoreMissing drops the error that a file does not exist.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
