package vault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/internal/errs"
)

// glass is the file system that Pebble sees. For a reader it refuses every
// change, takes no lock, and serves pinned files from handles of its own.
type glass struct {
	vfs.FS
	readOnly bool
	broken   atomic.Bool // No change any more: its Pebble was given up.
	phantoms bool        // See List.

	mu   sync.Mutex
	pins map[string]vfs.File
	lock io.Closer // The writer's lock while it is held.
	open map[*written]struct{}
}

// written is a file that Pebble writes. Where an opening or a closing fails it
// forgets to close some of these, so the vault does.
type written struct {
	vfs.File
	g    *glass
	once sync.Once
	err  error
}

// keep notes a file that was opened for writing until it is closed.
func (g *glass) keep(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	w := &written{File: f, g: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[*written]struct{}{}
	}
	g.open[w] = struct{}{}
	return w, nil
}

// Close closes the file; a second one gives what the first has given.
func (w *written) Close() error {
	w.once.Do(func() {
		w.g.mu.Lock()
		delete(w.g.open, w)
		w.g.mu.Unlock()
		w.err = w.File.Close()
	})
	return w.err
}

// letGo closes the files that a closed or abandoned Pebble has left open.
func (g *glass) letGo() {
	g.mu.Lock()
	left := slices.Collect(maps.Keys(g.open))
	g.mu.Unlock()
	for _, w := range left {
		_ = w.Close()
	}
}

// refuses tells whether changes are refused.
func (g *glass) refuses() bool { return g.readOnly || g.broken.Load() }

// shatter takes the lock away from a Pebble that waits for ever behind its own
// Fatalf, so that another one can be opened. The old one can reach nothing
// afterwards but the files it has open, and a new one starts a new manifest
// before it changes anything.
func (g *glass) shatter() {
	g.broken.Store(true)
	_ = g.unlock()
}

// unlock releases the lock if it is held.
func (g *glass) unlock() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.lock
	g.lock = nil
	if c == nil {
		return nil
	}
	return c.Close()
}

// unlocker is the lock as Pebble holds it.
type unlocker struct{ g *glass }

// Close releases the lock, unless that was done already.
func (u unlocker) Close() error { return u.g.unlock() }

// refuse is the answer to a change through a read-only vault.
func refuse(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: errs.ErrReadOnly}
}

// Lock takes the kernel lock of a writer; readers need none.
func (g *glass) Lock(name string) (io.Closer, error) {
	if g.readOnly {
		return io.NopCloser(nil), nil
	}
	c, err := g.FS.Lock(name)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s: %w", errs.ErrLocked, name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lock = c
	return unlocker{g}, nil
}

// phantomsBelow and phantomsAbove are how far from the highest file number that
// is there missing tables are looked for. A commit takes some five numbers, a
// chain has at most a thousand elements.
const (
	phantomsBelow = 1 << 16
	phantomsAbove = 1 << 12
)

// List lists a directory. With phantoms it adds the names that missing tables
// may have: Pebble refuses to list the tables it should have if it does not
// find the file of one of them, and we must know which one.
func (g *glass) List(dir string) ([]string, error) {
	names, err := g.FS.List(dir)
	if err != nil || !g.phantoms {
		return names, err
	}
	have := map[uint64]bool{}
	top := uint64(0)
	for _, n := range names {
		digits := strings.TrimPrefix(strings.TrimPrefix(n, "MANIFEST-"), "OPTIONS-")
		if i := strings.IndexByte(digits, '.'); i >= 0 {
			digits = digits[:i]
		}
		num, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			continue
		}
		top = max(top, num)
		have[num] = have[num] || strings.HasSuffix(n, ".sst")
	}
	for num := top - min(top, phantomsBelow); num <= top+phantomsAbove; num++ {
		if !have[num] {
			names = append(names, tableName(num))
		}
	}
	return names, nil
}

// tableName gives the name of a table's file.
func tableName(num uint64) string { return fmt.Sprintf("%06d.sst", num) }

// Open serves a pinned file from the handle that holds it.
func (g *glass) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	g.mu.Lock()
	f := g.pins[name]
	g.mu.Unlock()
	if f != nil {
		return pinned{f}, nil
	}
	return g.FS.Open(name, opts...)
}

// pin opens a file and keeps it open until unpin.
func (g *glass) pin(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pins[name] != nil {
		return nil
	}
	f, err := g.FS.Open(name)
	if err != nil {
		return err
	}
	if g.pins == nil {
		g.pins = map[string]vfs.File{}
	}
	g.pins[name] = f
	return nil
}

// unpin closes what pin opened.
func (g *glass) unpin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.pins {
		_ = f.Close()
	}
	g.pins = nil
}

// pinned is a view of a file that somebody else closes.
type pinned struct{ vfs.File }

// Close leaves the file open.
func (pinned) Close() error { return nil }

// Create, Link, Remove, RemoveAll, Rename, ReuseForWrite, OpenReadWrite and
// MkdirAll are the changes that a reader must not make.

func (g *glass) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if g.refuses() {
		return nil, refuse("create", name)
	}
	if err := g.settle(name); err != nil {
		return nil, err
	}
	return g.keep(g.FS.Create(name, c))
}

// settle syncs the directory before the name of a marker comes or goes. Pebble
// makes a new manifest, makes its marker, removes the old marker, and then
// syncs the directory once; a file system that does not keep the order of
// names could keep the new marker and lose the manifest, or lose both markers.
func (g *glass) settle(name string) error {
	if !strings.HasPrefix(g.FS.PathBase(name), "marker.") {
		return nil
	}
	d, err := g.FS.OpenDir(g.FS.PathDir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (g *glass) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.refuses() {
		return nil, refuse("open for writing", name)
	}
	return g.keep(g.FS.OpenReadWrite(name, c, opts...))
}

func (g *glass) Link(from, to string) error {
	if g.refuses() {
		return refuse("link", to)
	}
	return g.FS.Link(from, to)
}

func (g *glass) Remove(name string) error {
	if g.refuses() {
		return refuse("remove", name)
	}
	if err := g.settle(name); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

func (g *glass) RemoveAll(name string) error {
	if g.refuses() {
		return refuse("remove", name)
	}
	return g.FS.RemoveAll(name)
}

func (g *glass) Rename(from, to string) error {
	if g.refuses() {
		return refuse("rename", to)
	}
	return g.FS.Rename(from, to)
}

func (g *glass) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if g.refuses() {
		return nil, refuse("rename", to)
	}
	return g.keep(g.FS.ReuseForWrite(from, to, c))
}

func (g *glass) MkdirAll(dir string, perm os.FileMode) error {
	if g.refuses() {
		return refuse("create", dir)
	}
	return g.FS.MkdirAll(dir, perm)
}

// Unwrap gives the file system behind the glass.
func (g *glass) Unwrap() vfs.FS { return g.FS }
