package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/triegs/triegs/epoch/wal"
)

// files is the content of a directory tree by relative path.
type files map[string][]byte

// disk is what a store stands on: checkpoints in a file system in memory that
// can be copied as a crash would leave it, the log in a real directory together
// with a model of what of it is on stable storage. While it is on, it keeps
// what a crash would leave before each change of either half.
type disk struct {
	root string // a real directory; its path leads to the checkpoints in mem, too
	mem  *vfs.MemFS
	fs   vfs.FS
	rng  *rand.Rand

	links sync.Mutex

	mu      sync.Mutex
	on      bool
	what    string // is being done
	last    string // step of the log
	sure    files  // of the real directory: names and contents on stable storage
	synced  map[string]int
	renamed *[2]string // a directory whose new name is not yet on stable storage
	points  int
	crashes []crash

	// What a crash may give: acked was acknowledged, or is known to be on stable
	// storage where that comes later, begun was begun.
	acked, begun atomic.Uint64
	relaxed      bool
}

// crash is a disk after a crash.
type crash struct {
	name         string
	log          files
	mem          *vfs.MemFS
	from         string // the root in mem
	acked, begun uint64
	percent      int
}

// fastDir returns a directory in memory where there is one, for tests that
// open thousands of stores and do not measure syncs.
func fastDir(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "triegs-recovery-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// newDisk is an empty disk at root, an existing empty directory.
func newDisk(t testing.TB, root string) *disk {
	t.Helper()
	d, err := diskOn(root, vfs.NewCrashableMem(), files{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func diskOn(root string, mem *vfs.MemFS, sure files) (*disk, error) {
	// The directory of the store is made by the log, in its half.
	if err := mem.MkdirAll(filepath.Join(root, "s"), 0o750); err != nil {
		return nil, err
	}
	for at := root; ; at = filepath.Dir(at) {
		dir, err := mem.OpenDir(at)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return nil, err
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	d := &disk{root: root, mem: mem, sure: sure, synced: map[string]int{}, rng: rand.New(rand.NewPCG(1, 2))}
	d.fs = &twin{d: d, FS: errorfs.Wrap(&linking{mem, &d.links}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			d.point(fmt.Sprintf("checkpoint side, op kind %d of %s", op.Kind, filepath.Base(op.Path)))
		}
		return nil
	}))}
	return d, nil
}

// put brings a disk after a crash to root, an existing empty directory.
func (c *crash) put(root string) (*disk, error) {
	for name, b := range c.log {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, b, 0o640); err != nil {
			return nil, err
		}
	}
	// The checkpoints follow the directory to its new name, durably.
	mem := c.mem.CrashClone(vfs.CrashCloneCfg{})
	if err := mem.MkdirAll(filepath.Dir(root), 0o750); err != nil {
		return nil, err
	}
	if err := mem.Rename(c.from, root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	d, err := diskOn(root, mem, maps.Clone(c.log))
	if err != nil {
		return nil, err
	}
	d.acked.Store(c.acked)
	d.begun.Store(c.begun)
	return d, nil
}

// options opens a store on the disk.
func (d *disk) options() Options {
	return Options{
		FS: d.fs, Now: wallClock,
		Log: wal.Options{SegmentBytes: 900, Step: d.step, Wrap: func(dev wal.Device) wal.Device { return &device{d, dev} }},
	}
}

// sweep runs f and gives what crashes in it leave.
func (d *disk) sweep(what string, f func()) []crash {
	set := func(on bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.on, d.what = on, what
	}
	set(true)
	f()
	d.point("the end")
	set(false)
	got := d.crashes
	d.crashes = nil
	return got
}

// point keeps what a crash would leave now.
func (d *disk) point(before string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pointLocked(before)
}

func (d *disk) pointLocked(before string) {
	if !d.on {
		return
	}
	d.points++
	acked := d.acked.Load() // before the log is read
	now := d.look()
	for _, percent := range []int{0, 50, 100} {
		d.links.Lock()
		mem := d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: d.rng})
		d.links.Unlock()
		d.crashes = append(d.crashes, crash{
			name: fmt.Sprintf("%s, point %d, before %s, %d%%", d.what, d.points, before, percent),
			log:  d.follow(d.left(now, percent), mem),
			mem:  mem,
			from: d.root, acked: acked, begun: d.begun.Load(), percent: percent,
		})
	}
}

// look reads the real directory.
func (d *disk) look() files {
	f := files{}
	_ = filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		name, err := filepath.Rel(d.root, path)
		if err != nil {
			return err
		}
		if b, err := os.ReadFile(path); err == nil {
			f[filepath.ToSlash(name)] = b
		}
		return nil
	})
	return f
}

// left is what a crash leaves of the real directory: what is sure, and a part
// of the rest.
func (d *disk) left(now files, percent int) files {
	if percent == 100 {
		return now
	}
	out := files{}
	names := slices.Sorted(maps.Keys(now))
	for name := range d.sure {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		is, there := now[name]
		was, sure := d.sure[name]
		lucky := percent > 0 && d.rng.IntN(2) == 0
		switch {
		case there && sure && len(is) > len(was) && isSegment(name):
			out[name] = is[:len(was)+(len(is)-len(was))*percent/100]
		case there && sure:
			out[name] = was
			if lucky {
				out[name] = is
			}
		case there && lucky && isSegment(name): // the name is there, the data in part
			n := d.synced[name]
			out[name] = is[:n+(len(is)-n)*percent/100]
		case there && lucky:
			out[name] = is
		case sure && !there && !lucky:
			out[name] = was
		}
	}
	return out
}

// follow gives a renamed directory the name that it has in the other half.
func (d *disk) follow(f files, mem *vfs.MemFS) files {
	if d.renamed == nil {
		return f
	}
	from, to := d.renamed[0], d.renamed[1]
	out := files{}
	for name, b := range f {
		if rest, ok := strings.CutPrefix(name, to+"/"); ok {
			if _, err := mem.Stat(filepath.Join(d.root, from)); err == nil {
				name = from + "/" + rest
			} else if _, err := mem.Stat(filepath.Join(d.root, to)); err != nil {
				continue
			}
		}
		out[name] = b
	}
	return out
}

func isSegment(name string) bool { return strings.HasPrefix(name, "s/log/") }

// step is called by the log before each of its changes.
func (d *disk) step(what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settleLocked()
	d.last = what
	d.pointLocked("step " + what)
	return nil
}

// settleLocked notes what the step before has made sure.
func (d *disk) settleLocked() {
	step := d.last
	d.last = ""
	switch {
	case step == "sync the last segment":
		d.syncedAll()
	case step == "sync the directory of segments":
		d.named(true, false)
	case step == "sync directories", strings.HasPrefix(step, "sync parent of log"):
		d.named(true, true)
	case strings.HasPrefix(step, "sync "):
		d.named(false, true)
	}
}

// syncedAll notes that the contents of all segments are on stable storage.
func (d *disk) syncedAll() {
	for name, b := range d.look() {
		if !isSegment(name) {
			continue
		}
		d.synced[name] = len(b)
		if _, ok := d.sure[name]; ok {
			d.sure[name] = b
		}
	}
}

// named notes that the names of segments, or of other files, are on stable
// storage. The other files are synced when they are written, but the note.
func (d *disk) named(segments, others bool) {
	now := d.look()
	for name := range d.sure {
		if _, ok := now[name]; !ok && (isSegment(name) && segments || !isSegment(name) && others) {
			delete(d.sure, name)
		}
	}
	for name, b := range now {
		switch {
		case isSegment(name) && segments:
			n := min(max(d.synced[name], len(d.sure[name])), len(b))
			d.sure[name] = b[:n]
		case !isSegment(name) && others && name != "s/ACKED" && name != "s/LOCK":
			d.sure[name] = b
		}
	}
}

// device is the log's way to its segments.
type device struct {
	d *disk
	wal.Device
}

func (v *device) Append(first uint64, frames [][]byte) (bool, error) {
	v.d.mu.Lock()
	v.d.settleLocked()
	v.d.pointLocked(fmt.Sprintf("writing entry %d", first))
	v.d.mu.Unlock()
	switched, err := v.Device.Append(first, frames)
	if switched { // the segments that are full were synced
		v.d.mu.Lock()
		defer v.d.mu.Unlock()
		now := v.d.look()
		var last string
		for name := range now {
			if isSegment(name) {
				last = max(last, name)
			}
		}
		for name, b := range now {
			if isSegment(name) && name != last {
				v.d.synced[name] = len(b)
				if _, ok := v.d.sure[name]; ok {
					v.d.sure[name] = b
				}
			}
		}
	}
	return switched, err
}

func (v *device) Sync() error {
	v.d.point("syncing the segment")
	err := v.Device.Sync()
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	v.d.syncedAll()
	return err
}

func (v *device) SyncDir() error {
	v.d.point("syncing the names of segments")
	err := v.Device.SyncDir()
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	v.d.named(true, false)
	return err
}

func (v *device) Close() error {
	v.d.point("closing the segment")
	return v.Device.Close()
}

// linking makes no link while a copy is made: the file system takes its two
// locks in another order in Link than elsewhere, which can end in a deadlock.
type linking struct {
	vfs.FS
	mu *sync.Mutex
}

func (l *linking) Link(from, to string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.FS.Link(from, to)
}

// twin is the file system of a disk that changes directories in both halves.
// Files below a directory of checkpoints are in memory only.
type twin struct {
	vfs.FS
	d *disk
}

// real reports whether a path is in the real directory as well.
func (w *twin) real(path string) bool {
	rest, ok := strings.CutPrefix(path, w.d.root)
	return ok && !strings.Contains(rest, "/"+checkpointsName)
}

func (w *twin) MkdirAll(dir string, perm os.FileMode) error {
	err := w.FS.MkdirAll(dir, perm)
	if err == nil && w.real(dir) {
		err = os.MkdirAll(dir, perm)
	}
	return err
}

func (w *twin) RemoveAll(path string) error {
	err := w.FS.RemoveAll(path)
	if err == nil && w.real(path) {
		err = os.RemoveAll(path)
	}
	return err
}

func (w *twin) List(dir string) ([]string, error) {
	if !w.real(dir) {
		return w.FS.List(dir)
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (w *twin) Stat(path string) (vfs.FileInfo, error) {
	if w.real(path) {
		return vfs.Default.Stat(path)
	}
	return w.FS.Stat(path)
}

func (w *twin) Rename(from, to string) error {
	err := w.FS.Rename(from, to)
	if err != nil || !w.real(from) {
		return err
	}
	d := w.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.Rename(from, to); err != nil {
		return err
	}
	name := func(path string) string { return strings.TrimPrefix(path, d.root+"/") }
	d.renamed = &[2]string{name(from), name(to)}
	for file := range d.look() { // all of it was made durable under the old name
		if strings.HasPrefix(file, name(to)+"/") {
			d.sure[file] = d.look()[file]
		}
	}
	return nil
}

func (w *twin) OpenDir(dir string) (vfs.File, error) {
	f, err := w.FS.OpenDir(dir)
	if err == nil && w.real(dir) {
		f = &twinDir{f, w.d}
	}
	return f, err
}

// twinDir is a directory whose sync counts in both halves.
type twinDir struct {
	vfs.File
	d *disk
}

func (f *twinDir) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		f.d.named(false, true)
		f.d.renamed = nil
	}
	return err
}
