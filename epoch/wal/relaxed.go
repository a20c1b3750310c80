package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The marker says that entries of this store may have been acknowledged before
// they were durable. It is durable before the first of them is written and goes
// when the log was closed with everything on stable storage. Whoever opens the
// store and finds it cannot know what a crash took back.

// relaxedText tells a human what the marker is for; only its name counts.
const relaxedText = "open with relaxed durability\n"

// marked reports whether the marker is there.
func marked(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, relaxedName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// mark makes the marker durable, also one that is there: a crash may have come
// before it was.
func mark(dir string, step func(string) error) error {
	was, err := marked(dir)
	if err != nil {
		return err
	}
	if err := step("write the marker"); err != nil {
		return err
	}
	path := filepath.Join(dir, relaxedName)
	if err := writeSynced(path, []byte(relaxedText)); err != nil {
		if !was { // nothing was acknowledged yet, so nothing calls for a new timeline
			err = errors.Join(err, ignoreMissing(os.Remove(path)))
		}
		return fmt.Errorf("mark the store: %w", err)
	}
	if err := step("sync directory of the marker"); err != nil {
		return err
	}
	return syncDir(dir)
}

// unmark removes the marker, if there is one.
func unmark(dir string, step func(string) error) error {
	was, err := marked(dir)
	if err != nil || !was {
		return err
	}
	if err := step("remove the marker"); err != nil {
		return err
	}
	if err := ignoreMissing(os.Remove(filepath.Join(dir, relaxedName))); err != nil {
		return err
	}
	if err := step("sync directory without the marker"); err != nil {
		return err
	}
	return syncDir(dir)
}
