package wal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/triegs/triegs/internal/errs"
)

// Create makes a store of the given identity in dir, an existing empty
// directory, for a restored copy or a backup. Its log is empty and goes on after
// entry last, so an Open whose Cover returns last finds a whole store. When
// Create returns nil everything is durable, dir's own name apart.
//
// The identity file is written last: before it is there, Open refuses dir with
// errs.ErrFormat. After an error dir holds some of the files and should be
// removed. An identity with an id that was not drawn is errs.ErrValue; a
// directory that is not empty, or no directory, is errs.ErrFormat; one that does
// not exist is fs.ErrNotExist.
func Create(dir string, id Identity, last uint64) error {
	err := create(dir, id, last, func(string) error { return nil })
	if err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// create calls step before each change that it makes on disk.
func create(dir string, id Identity, last uint64, step func(string) error) error {
	if id.Store == (ID{}) || id.Log == (ID{}) || id.Timeline == (ID{}) {
		return fmt.Errorf("%w: identity %+v is not complete", errs.ErrValue, id)
	}
	if last == math.MaxUint64 {
		return fmt.Errorf("%w: no entry can follow entry %d", errs.ErrValue, last)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := empty(dir); err != nil {
		return err
	}
	logDir := filepath.Join(dir, logName)
	if err := makeDirs(logDir, step); err != nil {
		return err
	}
	if err := step("begin a segment"); err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(logDir, segmentName(last+1)), nil); err != nil {
		return err
	}
	if err := step("write the note"); err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, noteName), appendNote(nil, id.Log, last)); err != nil {
		return err
	}
	if err := step("sync directories"); err != nil {
		return err
	}
	if err := errors.Join(syncDir(logDir), syncDir(dir)); err != nil {
		return err
	}
	return writeStore(dir, id, step)
}

// empty refuses what is not an empty directory.
func empty(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", errs.ErrFormat, dir)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: %s is not empty: it holds %q", errs.ErrFormat, dir, names[0].Name())
	}
	return nil
}
