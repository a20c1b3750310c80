package recovery

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/triegs/triegs/internal/errs"
)

// apart refuses a place that is the directory of a store or lies in it, also by
// way of links: what is put there would be taken for a part of the store, or go
// with it.
func apart(dest, store string) error {
	home, err := os.Stat(store)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to be inside of
	}
	at, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	// A link leads elsewhere than its name says, so what exists of the path is
	// resolved first.
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			at = filepath.Join(real, rest)
			break
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
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
