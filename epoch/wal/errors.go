package wal

import (
	"errors"
	"fmt"

	"github.com/triegs/triegs/internal/errs"
)

// ErrBusy is returned by DropThrough while a Replay runs. The log is
// unharmed and the call may be made again.
var ErrBusy = errors.New("log is being replayed")

// CorruptError says where stored bytes are not what was written. It matches
// errs.ErrCorrupt and the cause in Err.
type CorruptError struct {
	// File is the path of the file, or of the directory where a file is gone.
	File string
	// Offset is the position in File in bytes.
	Offset int64
	// Index is the entry (one entry is one epoch) that is damaged or missing;
	// 0 where no entry is concerned.
	Index uint64
	// Err is what is wrong there.
	Err error
}

// Error names the file, the offset, the entry and the damage.
func (e *CorruptError) Error() string {
	if e.Index == 0 {
		return fmt.Sprintf("%v: %s, offset %d: %v", errs.ErrCorrupt, e.File, e.Offset, e.Err)
	}
	return fmt.Sprintf("%v: %s, offset %d, epoch entry %d: %v", errs.ErrCorrupt, e.File, e.Offset, e.Index, e.Err)
}

// Unwrap gives errs.ErrCorrupt and the cause.
func (e *CorruptError) Unwrap() []error { return []error{errs.ErrCorrupt, e.Err} }

// ForeignError says that a file in the directory was written by another
// store, or in another life of this one. It matches errs.ErrFormat.
type ForeignError struct {
	// File is the path of the file, Offset the position of the foreign id.
	File   string
	Offset int64
	// Want is the log id in the store's identity file, Got the one found.
	Want, Got ID
}

// Error names the file and both log ids.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%v: log belongs to another store or another life of it: %s, offset %d, has log id %s, this store has %s",
		errs.ErrFormat, e.File, e.Offset, e.Got, e.Want)
}

// Unwrap gives errs.ErrFormat.
func (e *ForeignError) Unwrap() error { return errs.ErrFormat }
