package wal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// TestREC10FullDisk fills a small file system, which only the superuser may
// mount.
func TestREC10FullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(disk, "db")
	l, _ := mustOpen(t, dir, Options{})
	write(t, l, 8)
	filler := filepath.Join(disk, "filler")
	fill := func() {
		t.Helper()
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling the disk: %v, want ENOSPC", err)
		}
	}
	fill()
	err := put(l, make([]byte, 20_000))
	if !errors.Is(err, errs.ErrReadOnly) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("entry 9 on a full disk: %v, want ErrReadOnly with ENOSPC", err)
	}
	check(t, l, 1, 8)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := put(l, payload(9)); !errors.Is(err, errs.ErrReadOnly) {
		t.Errorf("entry 9 again: %v, want ErrReadOnly", err)
	}
	if err := l.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want the cause", err)
	}
	rep := reopen(t, dir, 8)
	t.Logf("reopened with %d bytes of half an entry cut", rep.CutBytes)
	// A full disk at Open.
	for _, d := range []string{dir, filepath.Join(disk, "fresh")} {
		fill()
		openFails(t, d, Options{}, syscall.ENOSPC)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	reopen(t, dir, 9)
	reopen(t, filepath.Join(disk, "fresh"), 0)
}
