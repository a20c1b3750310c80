package wal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Replace gives a small file in the directory of a store new contents, so that after
// a crash there is the whole new file or what was there before; when it returns nil
// the new one is on stable storage. step is called before each change of the
// directory, with what is going to be done to what, and an error of it is that of
// Replace. After an error either file may be there.
func Replace(dir, name string, b []byte, what string, step func(string) error) error {
	path := filepath.Join(dir, name)
	temp := path + tempExt
	if err := step("write " + what); err != nil {
		return err
	}
	if err := writeSynced(temp, b); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	if err := step("rename " + what); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	if err := step("sync directory of " + what); err != nil {
		return err
	}
	return syncDir(dir)
}

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

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // it cannot, and need not
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ignoreMissing drops the error that a file does not exist.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
