package vault

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// counted counts the files that are open for writing.
type counted struct {
	vfs.FS
	open atomic.Int64
}

func (c *counted) Create(name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, cat)
	if err == nil {
		c.open.Add(1)
		f = &countedFile{File: f, c: c}
	}
	return f, err
}

type countedFile struct {
	vfs.File
	c    *counted
	done atomic.Bool
}

func (f *countedFile) Close() error {
	if f.done.CompareAndSwap(false, true) {
		f.c.open.Add(-1)
	}
	return f.File.Close()
}

// TestFailedOpenClosesFiles fails each change of an opening, once and for ever:
// no file stays open, whether the store opens or not.
func TestFailedOpenClosesFiles(t *testing.T) {
	for _, ever := range []bool{false, true} {
		refused := 0
		for n := int64(1); ; n++ {
			var left atomic.Int64
			var what atomic.Pointer[string]
			left.Store(n)
			c := &counted{FS: vfs.NewMem()}
			dir := filepath.Join("db", "checkpoint")
			fsys := errorfs.Wrap(c, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
					return nil
				}
				if k := left.Add(-1); k > 0 || k < 0 && !ever {
					return nil
				}
				text := fmt.Sprintf("op kind %d of %s", op.Kind, op.Path)
				what.Store(&text)
				return syscall.ENOSPC
			}))
			v, err := Open(t.Context(), dir, Options{FS: fsys, Timeout: 2 * time.Second})
			if err == nil {
				_ = v.Close()
			} else {
				refused++
			}
			for range 100 { // Pebble removes files on a goroutine of its own.
				if c.open.Load() == 0 {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			if k := c.open.Load(); k != 0 {
				t.Fatalf("%s failed, %v: %d files stay open", *what.Load(), err, k)
			}
			if left.Load() > 0 {
				t.Logf("for ever %v: %d places, %d refused", ever, n-1, refused)
				break
			}
		}
	}
}
