package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/triegs/triegs/internal/errs"
)

// lockPoll is the time between two tries for the lock; the kernel offers no
// wait with a bound.
const lockPoll = 5 * time.Millisecond

// acquire takes the lock of the store in dir: exclusive for a writer, shared
// for a reader. A reader never creates the lock file; where there is none (a
// backup, a copy) it goes without a lock and acquire returns nil. The error
// matches errs.ErrLocked when the wait or ctx ends first, and then ctx's error
// too.
func acquire(ctx context.Context, dir string, shared bool, wait time.Duration) (*flock.Flock, error) {
	path := filepath.Join(dir, lockName)
	flag := os.O_CREATE | os.O_RDWR
	if shared {
		flag = os.O_RDONLY
	}
	fl := flock.New(path, flock.SetFlag(flag), flock.SetPermissions(filePerm))
	try := fl.TryLock
	if shared {
		try = fl.TryRLock
	}
	limit := time.NewTimer(max(wait, 0))
	defer limit.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		ok, err := try()
		switch {
		case shared && errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("lock file: %w", err)
		case ok:
			return fl, nil
		case wait < 0:
			return nil, lockedError(path)
		}
		select {
		case <-poll.C:
		case <-limit.C:
			return nil, lockedError(path)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", lockedError(path), ctx.Err())
		}
	}
}

// lockedError names the process that wrote its id into the lock file, if it
// still lives. A store held by readers only has no known holder.
func lockedError(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: %s", errs.ErrLocked, filepath.Dir(path))
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 0 || !alive(pid) {
		return fmt.Errorf("%w: %s", errs.ErrLocked, filepath.Dir(path))
	}
	return fmt.Errorf("%w: %s is held by process %d", errs.ErrLocked, filepath.Dir(path), pid)
}

// alive reports whether a process may still run; only a certain no is no.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = errors.Join(p.Signal(syscall.Signal(0)), p.Release()) // it may hold a descriptor
	return !errors.Is(err, os.ErrProcessDone)
}

// signLock writes this process's id into the lock file. The id helps a human;
// the lock is the kernel's. So a failure to write it (a full disk) is no
// reason to stop.
func signLock(dir string) {
	_ = os.WriteFile(filepath.Join(dir, lockName), fmt.Appendf(nil, "%d\n", os.Getpid()), filePerm)
}

// releaseLock wipes the id and frees the lock. The file stays: removing it
// would let two processes lock two files of the same name.
func releaseLock(fl *flock.Flock, dir string, signed bool) error {
	if fl == nil {
		return nil
	}
	if signed {
		_ = os.Truncate(filepath.Join(dir, lockName), 0)
	}
	return fl.Unlock()
}
