//go:build unix

package wal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/triegs/triegs/internal/errs"
)

func init() {
	children["hold"] = holdChild
	children["read-only"] = readOnlyChild
	children["write"] = writeChild
	children["limit"] = limitChild
	children["drop"] = dropChild
}

// holdChild opens the store for writing, says so, and on a line of input
// writes an entry and closes.
func holdChild(dir string) error {
	l, _, err := Open(context.Background(), dir, Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	return errors.Join(put(l, payload(l.Last()+1)), l.Close())
}

// dropRights makes the process an ordinary one if it is the superuser's, whom
// no permission stops.
func dropRights() error {
	if os.Getuid() != 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
}

// readOnlyChild opens the store read-only without the right to write and
// prints what it holds.
func readOnlyChild(dir string) error {
	if err := dropRights(); err != nil {
		return err
	}
	l, rep, err := Open(context.Background(), dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	n := 0
	err = l.Replay(context.Background(), 0, func(i uint64, b []byte) error {
		n++
		if string(b) != string(payload(i)) {
			return fmt.Errorf("entry %d is %q", i, b)
		}
		return nil
	})
	fmt.Printf("%d entries, %d bytes left out\n", n, rep.CutBytes)
	return errors.Join(err, l.Close())
}

// writeChild opens the store for writing without the right to, and prints
// which error that gives.
func writeChild(dir string) error {
	if err := dropRights(); err != nil {
		return err
	}
	l, _, err := Open(context.Background(), dir, Options{})
	if err == nil {
		return errors.Join(errors.New("opened"), l.Close())
	}
	fmt.Printf("permission: %v\n", errors.Is(err, os.ErrPermission))
	return nil
}

// limitChild writes entries under a limit of the file size until one fails in
// the middle, and prints the index of the last good one.
func limitChild(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	l, _, err := Open(context.Background(), dir, Options{})
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: uint64(entryOffset(1, 9) + 30), Max: ^uint64(0)}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	good := uint64(0)
	for err == nil {
		if err = put(l, payload(l.Last()+1)); err == nil {
			good = l.Last()
		}
	}
	fmt.Printf("good: %d\n", good)
	if !errors.Is(err, errs.ErrReadOnly) || !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("failed write: %w, want ErrReadOnly and the cause", err)
	}
	limit.Cur = limit.Max // room again
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := put(l, payload(9)); !errors.Is(err, errs.ErrReadOnly) {
		return fmt.Errorf("write after the failed one: %w, want ErrReadOnly", err)
	}
	n := uint64(0)
	if err := l.Replay(context.Background(), 0, func(i uint64, _ []byte) error { n = i; return nil }); err != nil || n != good {
		return fmt.Errorf("replay after the failed write: %d, %w", n, err)
	}
	if err := l.Close(); !errors.Is(err, errs.ErrReadOnly) {
		return fmt.Errorf("close after the failed write: %w, want ErrReadOnly", err)
	}
	return nil
}

// dropChild cuts the log where nothing may be removed any more, prints what that
// gives, and goes on.
func dropChild(dir string) error {
	if err := dropRights(); err != nil {
		return err
	}
	l, _, err := Open(context.Background(), dir, Options{})
	if err != nil {
		return err
	}
	logDir := filepath.Join(dir, logName)
	if err := os.Chmod(logDir, 0o555); err != nil {
		return err
	}
	n, _, err := l.DropThrough(context.Background(), l.Last())
	goesOn := put(l, payload(l.Last()+1)) == nil && l.Err() == nil
	fmt.Printf("permission: %v, segments %d, goes on: %v\n", errors.Is(err, os.ErrPermission), n, goesOn)
	return errors.Join(l.Close(), os.Chmod(logDir, 0o755))
}
