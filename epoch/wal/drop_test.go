package wal

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// opensOf counts the descriptors of this process for a path.
func opensOf(t testing.TB, path string) (n int) {
	t.Helper()
	list, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range list {
		if to, err := os.Readlink(fd); err == nil && strings.TrimSuffix(to, " (deleted)") == path {
			n++
		}
	}
	return n
}

// TestDropThroughFrees: a cut returns before the space of its segments is given
// back, which are held open up to a bound. The next cut and Close wait for that,
// and no handle and no goroutine is left behind them.
func TestDropThroughFrees(t *testing.T) {
	dir, err := filepath.EvalSymlinks(fastDir(t))
	if err != nil {
		t.Fatal(err)
	}
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	l, _ := mustOpen(t, dir, Options{SegmentBytes: 300})
	write(t, l, 200)
	if n := len(load(t, dir).firsts()); n < heldMax+6 {
		t.Fatalf("%d segments are too few", n)
	}
	opens := 0 // of the segments that were removed, at their removal
	l.step = func(what string) error {
		if name, ok := strings.CutPrefix(what, "remove segment "); ok {
			opens += opensOf(t, filepath.Join(l.logDir, name))
		}
		return nil
	}
	freed := make(chan int)
	l.free = func(held []*os.File) {
		closeAll(held)
		freed <- len(held)
	}
	if n, _, err := l.DropThrough(t.Context(), load(t, dir).firsts()[3]-1); n != 3 || opens != 3 || err != nil {
		t.Fatalf("%d segments, %d of them held: %v", n, opens, err)
	}
	next := make(chan error, 1)
	opens = 0
	go func() { next <- dropErr(l.DropThrough(t.Context(), 200)) }()
	stays(t, "the next cut", next)
	if n := <-freed; n != 3 {
		t.Errorf("%d files given back, want 3", n)
	}
	if err := <-next; err != nil || opens != heldMax {
		t.Fatalf("%d segments held: %v", opens, err)
	}
	go func() { next <- l.Close() }()
	stays(t, "Close", next)
	if n := <-freed; n != heldMax {
		t.Errorf("%d files given back, want %d", n, heldMax)
	}
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	if n := openFiles(t); n != files {
		t.Errorf("%d handles behind Close, %d before", n, files)
	}
	if n := settled(goroutines); n > goroutines {
		t.Errorf("%d goroutines behind Close, %d before", n, goroutines)
	}
}

// stays fails if something has ended that waits.
func stays(t *testing.T, what string, end <-chan error) {
	t.Helper()
	select {
	case err := <-end:
		t.Fatalf("%s did not wait: %v", what, err)
	case <-time.After(20 * time.Millisecond):
	}
}
