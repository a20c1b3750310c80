package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/triegs/triegs/internal/errs"
)

// explain gives an error of Pebble its kind and says where it arose. It knows
// a file only if Pebble does.
func explain(op, dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case ours(err):
		return fmt.Errorf("%s %s: %w", op, dir, err)
	case pebble.IsCorruptionError(err):
		if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
			dir = info.Path
		}
		return fmt.Errorf("%s %s: %w: %w", op, dir, errs.ErrCorrupt, oneLine{err})
	case errors.Is(err, pebble.ErrClosed):
		return fmt.Errorf("%s %s: %w", op, dir, errs.ErrClosed)
	}
	return fmt.Errorf("%s %s: %w", op, dir, err)
}

// oneLine is an error without the lines that Pebble adds to the first one, which
// name its own machinery and would break the line of whoever logs it.
type oneLine struct{ error }

// Error gives the first line.
func (o oneLine) Error() string {
	line, _, _ := strings.Cut(o.error.Error(), "\n")
	return line
}

// Unwrap gives the error as it is.
func (o oneLine) Unwrap() error { return o.error }

// explainOpen is explain for errors of Open, where Pebble reports most damage
// of its own files without a mark: what neither the operating system nor the
// caller's context said is damage, and so is a file that is named but missing.
func explainOpen(dir string, err error) error {
	const op = "open checkpoints"
	if err == nil || ours(err) || pebble.IsCorruptionError(err) {
		return explain(op, dir, err)
	}
	if fromSystem(err) && !errors.Is(err, fs.ErrNotExist) {
		return explain(op, dir, err)
	}
	return fmt.Errorf("%s %s: %w: %w", op, dir, errs.ErrCorrupt, err)
}

// ours tells errors that have their kind already.
func ours(err error) bool {
	for _, s := range []error{errs.ErrCorrupt, errs.ErrFormat, errs.ErrLocked, errs.ErrReadOnly, errs.ErrClosed} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// fromSystem tells errors of the operating system and of contexts.
func fromSystem(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	var errno syscall.Errno
	return errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &call) || errors.As(err, &errno) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// guard runs f and turns a panic into an error. Pebble panics on states that
// it thinks impossible, which with damaged files they are not, and on a failed
// sync of a directory.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked{reason(r)}
		}
	}()
	return f()
}

// panicked is the error of a panic.
type panicked struct{ error }

// Unwrap gives what was panicked with.
func (p panicked) Unwrap() error { return p.error }

// reason makes an error of what Pebble panicked with.
func reason(r any) error {
	if err, ok := r.(error); ok && fromSystem(err) {
		return fmt.Errorf("pebble panicked: %w", err)
	}
	return fmt.Errorf("%w: pebble panicked: %v", errs.ErrCorrupt, r)
}
