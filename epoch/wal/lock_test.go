package wal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// TestIO01TwoProcesses: a second opener, in this or another process, is told
// who holds the store, and the first is not disturbed.
func TestIO01TwoProcesses(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hold", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	holder := fmt.Sprintf("process %d", cmd.Process.Pid)
	for _, ro := range []bool{false, true} {
		for _, wait := range []time.Duration{-1, 50 * time.Millisecond, 0} {
			limit := max(wait, 0)
			if wait == 0 {
				limit = DefaultLockWait
			}
			start := time.Now()
			err := openFails(t, dir, Options{ReadOnly: ro, LockWait: wait}, errs.ErrLocked)
			if d := time.Since(start); d < limit || d > limit+2*time.Second {
				t.Errorf("lock wait %s: returned after %s", wait, d)
			}
			if !strings.Contains(err.Error(), holder) {
				t.Errorf("%v: want %q named", err, holder)
			}
		}
	}
	if _, err := fmt.Fprintln(in); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the first owner failed: %v", err)
	}
	reopen(t, dir, 1)
}

// TestIO01KilledHolder: a kill frees the lock, and its id names nobody.
func TestIO01KilledHolder(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hold", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as meant
	ro, _ := mustOpen(t, dir, Options{ReadOnly: true, LockWait: -1})
	err = openFails(t, dir, Options{LockWait: -1}, errs.ErrLocked)
	if strings.Contains(err.Error(), "process") {
		t.Errorf("%v: names a process that is dead", err)
	}
	mustClose(t, ro)
	reopen(t, dir, 0)
}

// TestIO01OneProcess: the same within one process; readers share.
func TestIO01OneProcess(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, Options{})
	write(t, l, 2)
	for range 3 {
		err := openFails(t, dir, Options{LockWait: -1}, errs.ErrLocked)
		if !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
			t.Errorf("%v: want this process named", err)
		}
		openFails(t, dir, Options{LockWait: -1, ReadOnly: true}, errs.ErrLocked)
	}
	write(t, l, 1)
	mustClose(t, l)
	a, _ := mustOpen(t, dir, Options{ReadOnly: true})
	b, _ := mustOpen(t, dir, Options{ReadOnly: true})
	openFails(t, dir, Options{LockWait: -1}, errs.ErrLocked)
	check(t, a, 1, 3)
	check(t, b, 1, 3)
	mustClose(t, a)
	mustClose(t, b)
	// A waiting opener gets the lock when it is freed.
	l, _ = mustOpen(t, dir, Options{})
	time.AfterFunc(30*time.Millisecond, func() { _ = l.Close() })
	l2, _ := mustOpen(t, dir, Options{LockWait: time.Minute})
	mustClose(t, l2)
}

// TestIO02Context: a context ends the wait, and both reasons are told.
func TestIO02Context(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, Options{})
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, _, err := Open(ctx, dir, Options{LockWait: time.Hour})
	if d := time.Since(start); d < 150*time.Millisecond || d > 2*time.Second {
		t.Errorf("returned after %s", d)
	}
	if !errors.Is(err, errs.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("%v: want ErrLocked with the holder, and the context's error", err)
	}
	fresh := filepath.Join(dir, "none")
	if _, _, err := Open(ctx, fresh, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: want the context's error", err)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}

// nobody is a user without rights of its own.
const nobody = 65534

// outside makes a directory that any user may enter.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "triegs-wal-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// chmodTree sets the modes of everything below dir.
func chmodTree(t *testing.T, dir string, dirMode, fileMode os.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if os.Getuid() == 0 {
			if err := os.Lchown(path, nobody, nobody); err != nil {
				return err
			}
		}
		if d.IsDir() {
			return os.Chmod(path, dirMode)
		}
		return os.Chmod(path, fileMode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestIO03ReadOnly opens killed and torn stores where nothing may be written.
func TestIO03ReadOnly(t *testing.T) {
	before, after := seed(t, 5, Options{})
	seg := before.segments()[0]
	torn := before.with(seg, before[seg][:len(before[seg])-3])
	cut := len(torn[seg]) - entryOffset(1, 5)
	for name, tc := range map[string]struct {
		f    files
		want string
	}{
		"killed":  {after, "5 entries, 0 bytes left out\n"},
		"torn":    {torn, fmt.Sprintf("4 entries, %d bytes left out\n", cut)},
		"no lock": {after.with(lockName, nil), "5 entries, 0 bytes left out\n"},
		"no note": {after.with(noteName, nil), "5 entries, 0 bytes left out\n"},
		"no log":  {after.with(noteName, nil).with(seg, nil), "0 entries, 0 bytes left out\n"},
	} {
		dir := tc.f.store(t, filepath.Join(outside(t), "db"))
		chmodTree(t, dir, 0o555, 0o444)
		if got := runChild(t, "read-only", dir); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if after := load(t, dir); after.sum() != tc.f.sum() {
			t.Errorf("%s: the files changed", name)
		}
		chmodTree(t, dir, 0o755, 0o644)
	}
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, Options{})
	mustClose(t, l)
	l, _ = mustOpen(t, dir, Options{ReadOnly: true})
	if err := l.Enqueue([]byte("x"), nil); !errors.Is(err, errs.ErrReadOnly) {
		t.Errorf("Enqueue: %v, want ErrReadOnly", err)
	}
	if _, _, err := l.DropThrough(context.Background(), 0); !errors.Is(err, errs.ErrReadOnly) {
		t.Errorf("DropThrough: %v, want ErrReadOnly", err)
	}
	if err := l.Sync(context.Background()); err != nil {
		t.Errorf("Sync: %v", err)
	}
	mustClose(t, l)
	mustClose(t, l)
}

// TestIO04NotAStore opens what is not there or is not ours.
func TestIO04NotAStore(t *testing.T) {
	root := t.TempDir()
	missing := filepath.Join(root, "missing")
	openFails(t, missing, Options{ReadOnly: true}, fs.ErrNotExist)
	file := filepath.Join(root, "file")
	foreign := filepath.Join(root, "foreign")
	empty := filepath.Join(root, "empty")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o644), os.Mkdir(foreign, 0o755), os.Mkdir(empty, 0o755),
		os.WriteFile(filepath.Join(foreign, "notes.txt"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	sum := load(t, root).sum()
	for _, ro := range []bool{false, true} {
		openFails(t, file, Options{ReadOnly: ro}, errs.ErrFormat)
		openFails(t, foreign, Options{ReadOnly: ro}, errs.ErrFormat)
	}
	openFails(t, empty, Options{ReadOnly: true}, errs.ErrFormat)
	openFails(t, filepath.Join(file, "below"), Options{}, syscall.ENOTDIR)
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) || load(t, root).sum() != sum {
		t.Errorf("something was created")
	}
	reopen(t, empty, 0)
	// Once it is a store, a stray file in it harms nothing.
	if err := os.WriteFile(filepath.Join(empty, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	reopenAt(t, empty, 1)
}

// TestIO05NoRights opens for writing where no file can be made.
func TestIO05NoRights(t *testing.T) {
	_, after := seed(t, 3, Options{})
	root := outside(t)
	dir := filepath.Join(root, "db")
	readable := func() { chmodTree(t, root, 0o755, 0o644) }
	logDir := filepath.Join(dir, logName)
	for name, limit := range map[string]func() error{
		"store":       func() error { return os.Chmod(dir, 0o555) },
		"log":         func() error { return os.Chmod(logDir, 0o555) },
		"segment":     func() error { return os.Chmod(filepath.Join(logDir, segmentName(1)), 0o444) },
		"note":        func() error { return os.Chmod(filepath.Join(dir, noteName), 0o444) },
		"lock":        func() error { return os.Chmod(filepath.Join(dir, lockName), 0o444) },
		"unreadable":  func() error { return os.Chmod(filepath.Join(dir, storeName), 0) },
		"no lock yet": func() error { return errors.Join(os.Remove(filepath.Join(dir, lockName)), os.Chmod(dir, 0o555)) },
	} {
		after.store(t, dir)
		readable()
		if err := limit(); err != nil {
			t.Fatal(err)
		}
		before := load(t, dir).with(lockName, nil).sum()
		if got := runChild(t, "write", dir); got != "permission: true\n" {
			t.Errorf("%s: %q, want a permission error", name, got)
		}
		if load(t, dir).with(lockName, nil).sum() != before {
			t.Errorf("%s: files were made or changed", name)
		}
	}
	readable()
	reopen(t, dir, 3)
	readable()
	none := filepath.Join(root, "none")
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	if got := runChild(t, "write", none); got != "permission: true\n" {
		t.Errorf("directory that cannot be made: %q", got)
	}
}

// TestLIFE03Repeats opens and closes 200 times, with failing opens between,
// and counts what is left.
func TestLIFE03Repeats(t *testing.T) {
	dir, root := fastDir(t), fastDir(t)
	before, after := seed(t, 3, Options{})
	seg := after.segments()[0]
	torn := before.with(seg, before[seg][:len(before[seg])-3])
	corrupt := after.with(seg, after[seg][1:]).store(t, filepath.Join(root, "corrupt"))
	format := after.with(storeName, []byte("TrieGS\x00\n\xff\xff\xff\xffmore")).store(t, filepath.Join(root, "format"))
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	round := func(i int) {
		l, _ := mustOpen(t, dir, Options{Mode: Mode(i % 3)})
		openFails(t, dir, Options{LockWait: -1}, errs.ErrLocked)
		openFails(t, dir, Options{LockWait: -1, Mode: 9}, errs.ErrValue)
		openFails(t, corrupt, Options{}, errs.ErrCorrupt)
		openFails(t, corrupt, Options{ReadOnly: true}, errs.ErrCorrupt)
		openFails(t, format, Options{}, errs.ErrFormat)
		openFails(t, file, Options{}, errs.ErrFormat)
		for n := range 8 {
			step, _ := crashAt(n)
			openFails(t, filepath.Join(root, fmt.Sprint("fresh", i, n)), Options{Step: step}, errCrash)
			if n < 6 {
				openFails(t, torn.store(t, filepath.Join(root, "torn")), Options{Step: step}, errCrash)
			}
		}
		write(t, l, 1)
		mustClose(t, l)
		mustClose(t, l)
	}
	round(0)
	routines, descriptors := settled(3), openFiles(t)
	for i := range 199 {
		round(i + 1)
	}
	if n := settled(routines); n > routines {
		t.Errorf("%d goroutines, %d at the start", n, routines)
	}
	if n := openFiles(t); n != descriptors {
		t.Errorf("%d descriptors, %d at the start", n, descriptors)
	}
	reopenAt(t, dir, 200)
}

// TestOptions: every bad option is complained of at once, and nothing is made.
func TestOptions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	err := openFails(t, dir, Options{Mode: 9, Interval: -1, SegmentBytes: -1}, errs.ErrValue)
	for _, word := range []string{"mode", "interval", "segment"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v: no complaint of the %s", err, word)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}
