package wal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

var rewriteGolden = flag.Bool("rewrite", false, "write the golden files anew")

// childMode is the environment variable that makes the test binary do one
// thing to the directory in childDir and exit.
const (
	childMode = "TRIEGS_WAL_TEST_CHILD"
	childDir  = "TRIEGS_WAL_TEST_DIR"
)

// children are the modes, where the system has what they need.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := children[mode](os.Getenv(childDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// child prepares a run of the test binary in a mode.
func child(t *testing.T, mode, dir string) *exec.Cmd {
	t.Helper()
	if children[mode] == nil {
		t.Skipf("the system has no child %q", mode)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skipf("no way to run the test binary again: %v", err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childMode+"="+mode, childDir+"="+dir)
	return cmd
}

// runChild runs the test binary in a mode to its end and returns its output.
func runChild(t *testing.T, mode, dir string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := child(t, mode, dir)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("child %s: %v\n%s", mode, err, &stderr)
	}
	return string(out)
}

// fastDir returns a directory in memory where there is one, for tests that
// open thousands of logs and do not measure syncs.
func fastDir(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "triegs-wal-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// payload is what the tests write as entry i.
func payload(i uint64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "epoch %d. ", i), 1+int(i%3))
}

func mustOpen(t testing.TB, dir string, o Options) (*Log, Report) {
	t.Helper()
	l, rep, err := Open(context.Background(), dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return l, rep
}

// covers is an Options.Cover that always says index.
func covers(index uint64) func(context.Context, Identity) (uint64, error) {
	return func(context.Context, Identity) (uint64, error) { return index, nil }
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// put appends one entry and waits until it is done.
func put(l *Log, b []byte) error {
	done := make(chan error, 1)
	if err := l.Enqueue(b, func(err error) { done <- err }); err != nil {
		return err
	}
	return <-done
}

// dropErr is the error of a DropThrough.
func dropErr(_ int, _ int64, err error) error { return err }

// write appends n entries, each alone.
func write(t testing.TB, l *Log, n int) {
	t.Helper()
	for range n {
		if err := put(l, payload(l.Last()+1)); err != nil {
			t.Fatalf("entry %d: %v", l.Last(), err)
		}
	}
}

// check replays the log and fails unless it holds exactly from..last.
func check(t testing.TB, l *Log, from, last uint64) {
	t.Helper()
	next := from
	err := l.Replay(context.Background(), from, func(i uint64, b []byte) error {
		if i != next || !bytes.Equal(b, payload(i)) {
			return fmt.Errorf("entry %d is %q, want entry %d, %q", i, b, next, payload(next))
		}
		next++
		return nil
	})
	if err != nil || next != last+1 {
		t.Fatalf("replay from %d ended before %d with %v, want %d", from, next, err, last+1)
	}
}

// reopen opens dir, checks that it holds 1..last, appends one entry, and
// opens again.
func reopen(t testing.TB, dir string, last uint64) Report {
	t.Helper()
	l, rep := mustOpen(t, dir, Options{})
	check(t, l, 1, last)
	write(t, l, 1)
	mustClose(t, l)
	l, second := mustOpen(t, dir, Options{})
	check(t, l, 1, last+1)
	mustClose(t, l)
	if second.CutBytes != 0 || rep.LastIndex != last || rep.Epochs != last {
		t.Fatalf("reports %+v and %+v, want %d epochs and nothing to cut the second time", rep, second, last)
	}
	return rep
}

// files is the content of a directory tree by relative path.
type files map[string][]byte

func load(t testing.TB, dir string) files {
	t.Helper()
	f := files{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f[filepath.ToSlash(rel)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// store writes the tree into a fresh directory.
func (f files) store(t testing.TB, dir string) string {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, logName), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, b := range f {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with returns a copy in which name holds b; nil removes it.
func (f files) with(name string, b []byte) files {
	out := files{}
	for k, v := range f {
		out[k] = v
	}
	out[name] = b
	if b == nil {
		delete(out, name)
	}
	return out
}

// segments are the names of the log's files in order.
func (f files) segments() []string {
	var names []string
	for name := range f {
		if strings.HasPrefix(name, logName+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sum is a checksum over names and contents.
func (f files) sum() string {
	h := sha256.New()
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(h, "%s %d %s", name, len(f[name]), f[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// seed writes n entries and returns the files as a kill would leave them,
// with the note of the entry before the last, and with the last note.
func seed(t testing.TB, n int, o Options) (before, after files) {
	t.Helper()
	dir := fastDir(t)
	l, _ := mustOpen(t, dir, o)
	write(t, l, n-1)
	note, err := os.ReadFile(filepath.Join(dir, noteName))
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, 1)
	after = load(t, dir)
	mustClose(t, l)
	return after.with(noteName, note), after
}

// entryOffset is where entry i begins in a segment that begins with first.
func entryOffset(first, i uint64) int {
	off := 0
	for ; first < i; first++ {
		n := len(payload(first)) + frameOverhead
		off += prefixLen(n) + n
	}
	return off
}

// refused opens dir and fails unless that gives a CorruptError.
func refused(t testing.TB, dir string, o Options) *CorruptError {
	t.Helper()
	l, _, err := Open(context.Background(), dir, o)
	if err == nil {
		_ = l.Close()
		t.Fatalf("Open of a damaged log succeeded")
	}
	ce, ok := errors.AsType[*CorruptError](err)
	if !ok || !errors.Is(err, errs.ErrCorrupt) {
		t.Fatalf("Open: %v, want a CorruptError that matches ErrCorrupt", err)
	}
	return ce
}

// openFails opens dir and returns the error, which must match want.
func openFails(t testing.TB, dir string, o Options, want error) error {
	t.Helper()
	l, _, err := Open(context.Background(), dir, o)
	if err == nil {
		_ = l.Close()
		t.Fatalf("Open succeeded, want %v", want)
	}
	if !errors.Is(err, want) {
		t.Fatalf("Open: %v, want %v", err, want)
	}
	return err
}

// openFiles counts the descriptors of this process.
func openFiles(t testing.TB) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("counts descriptors on Linux only")
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("no list of descriptors: %v", err)
	}
	return len(entries)
}

// settled waits until the number of goroutines is back at want.
func settled(want int) int {
	n := runtime.NumGoroutine()
	for range 200 {
		if n <= want {
			break
		}
		time.Sleep(5 * time.Millisecond)
		n = runtime.NumGoroutine()
	}
	return n
}
