package recovery

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
)

// free is the name of a directory that is to be made, or where that leads if it is
// a link: what it leads to must be there, since a directory is made there and not
// in the place of the link. The directory of a store that is given is refused, and
// whatever lies in that or in any other one: what is put there would be taken for
// a part of the store, or go with it.
func free(dest, store string) (string, error) {
	if dest == "" {
		return "", fmt.Errorf("%w: a directory has a name", errs.ErrValue)
	}
	if err := apart(dest, store); err != nil {
		return "", err
	}
	at, err := resolve(dest)
	if err != nil {
		return "", err
	}
	if isLink(at) {
		return "", fmt.Errorf("%w: %s is a link that leads nowhere", errs.ErrFormat, dest)
	}
	if isLink(filepath.Clean(dest)) {
		dest = at
	}
	for up := filepath.Dir(at); ; up = filepath.Dir(up) {
		if wal.Holds(up) {
			return "", fmt.Errorf("%w: %s lies in the store %s", errs.ErrFormat, dest, up)
		}
		if up == filepath.Dir(up) {
			return dest, nil
		}
	}
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// resolve gives an absolute path in which no link is left, as far as it exists.
// A link leads elsewhere than its name says.
func resolve(path string) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), nil
		}
		up := filepath.Dir(at)
		if up == at {
			return filepath.Join(at, rest), nil
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
}

// apart refuses a place that is the directory of a store or lies in it, also by
// way of links, and whatever is in the store.
func apart(dest, store string) error {
	home, err := os.Stat(store)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to be inside of
	}
	at, err := resolve(dest)
	if err != nil {
		return err
	}
	for {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, home) {
			return fmt.Errorf("%w: %s lies in the store %s", errs.ErrFormat, dest, store)
		}
		up := filepath.Dir(at)
		if up == at {
			return nil
		}
		at = up
	}
}
