package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/triegs/triegs/epoch/wal"
)

// childDir is the environment variable that makes the test binary run
// limitedChild in a directory and exit.
const childDir = "TRIEGS_RECOVERY_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := limitedChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// onDisk opens a store in the file system of the operating system.
func onDisk(dir string, o Options) (*Store, error) {
	o.Now, o.Log.SegmentBytes = orWallClock(o.Now), 600
	s, _, err := Open(context.Background(), dir, o)
	if err == nil {
		s.Engine.Logged(s.Log)
	}
	return s, err
}

func orWallClock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// epochs applies epochs up to n.
func epochs(s *Store, n uint64) error {
	for next := s.Engine.Current.Epoch() + 1; next <= n; next++ {
		if err := do(context.Background(), s.Engine, next); err != nil {
			return err
		}
	}
	return nil
}

// limitedChild takes checkpoints and backups under limits of the size of a file
// from one that nothing fits in to one that all does, with epochs between them,
// whose files stay below all of the limits.
func limitedChild(dir string) error {
	ctx := context.Background()
	signal.Ignore(syscall.SIGXFSZ)
	limit := func(n uint64) error {
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: ^uint64(0)})
	}
	store, backup := filepath.Join(dir, "s"), filepath.Join(dir, "b")
	s, err := onDisk(store, Options{timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	failed, worked := 0, 0
	for n := uint64(1500); n < 12_000; n += 500 {
		if err := errors.Join(limit(n), epochs(s, s.Engine.Current.Epoch()+1)); err != nil {
			return err
		}
		before := s.Log.Bytes()
		_, err := s.Checkpoint(ctx)
		_, berr := s.Backup(ctx, backup, 0)
		for _, err := range []error{err, berr} {
			switch {
			case err == nil:
				worked++
			case errors.Is(err, syscall.EFBIG):
				failed++
			default:
				return fmt.Errorf("limit %d: %w, want nothing or EFBIG", n, err)
			}
		}
		if err != nil && s.Log.Bytes() < before {
			return fmt.Errorf("limit %d: the log was cut behind a checkpoint that failed", n)
		}
		if err := isAt(ctx, s.Engine, s.Engine.Current.Epoch()); err != nil {
			return err
		}
	}
	last := s.Engine.Current.Epoch()
	if err := errors.Join(limit(^uint64(0)), s.Close()); err != nil {
		return err
	}
	s, err = onDisk(store, Options{})
	if err != nil {
		return err
	}
	if err := isAt(ctx, s.Engine, last); err != nil {
		return err
	}
	err = epochs(s, last+1)
	if err == nil {
		_, err = s.Backup(ctx, backup, 0)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("without a limit: %w", err)
	}
	if failed == 0 || worked == 0 {
		return fmt.Errorf("%d checkpoints and backups failed, %d worked", failed, worked)
	}
	fmt.Printf("%d checkpoints and backups failed, %d worked\n", failed, worked)
	return nil
}

// TestFileSizeLimit runs limitedChild.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Skipf("no way to run the test binary again: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), childDir+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// smallDisk mounts a file system of a size, which only the superuser may, and
// gives functions to fill it up to so many bytes and to empty it again.
func smallDisk(t *testing.T, size string) (dir string, fill func(leave int64), free func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	fill = func(leave int64) {
		t.Helper()
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		room := int64(st.Bavail)*st.Bsize - leave
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil && room > 0 {
			_, err = f.Write(make([]byte, room))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	free = func() {
		t.Helper()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	return dir, fill, free
}

// TestFullDisk takes checkpoints and backups on a disk that has little room
// left, or loses it while they are written: they fail for lack of space, epochs
// go on as long as the log has room, and all works again when there is some.
func TestFullDisk(t *testing.T) {
	disk, fill, free := smallDisk(t, "8m")
	ctx := t.Context()
	armed := false
	o := Options{Now: time.Now, timeout: 5 * time.Second, reserve: -1}
	o.slice = func() {
		if armed {
			fill(8 << 10)
		}
	}
	dir, backup := filepath.Join(disk, "s"), filepath.Join(disk, "b")
	s, err := onDisk(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	enough := func(what string, n uint64) {
		t.Helper()
		if err := epochs(s, s.Engine.Current.Epoch()+n); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := isAt(ctx, s.Engine, s.Engine.Current.Epoch()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	failed := 0
	for round := range 10 {
		enough("room", 3)
		armed = round%2 == 0
		if !armed {
			fill(int64(8<<10 + round*3<<10))
		}
		if round > 5 {
			s.checkpoints.RequireFull()
		}
		before := s.Log.Bytes()
		within(t, "the checkpoint", func() { _, err = s.Checkpoint(ctx) })
		var berr error
		within(t, "the backup", func() { _, berr = s.Backup(ctx, backup, 0) })
		for what, err := range map[string]error{"checkpoint": err, "backup": berr} {
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("round %d, %s: %v, want nothing or ENOSPC", round, what, err)
			}
			if err != nil {
				failed++
			}
		}
		if err != nil && s.Log.Bytes() < before {
			t.Fatal("the log was cut behind a checkpoint that failed")
		}
		enough("a full disk", 1)
		armed = false
		free()
		if _, err := s.Backup(ctx, backup, 0); err != nil {
			t.Fatalf("round %d, room again: %v", round, err)
		}
	}
	if failed == 0 {
		t.Error("nothing failed")
	}
	last := s.Engine.Current.Epoch()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Where not even the note fits, nothing opens; then all is there.
	fill(0)
	if _, err := onDisk(dir, o); err == nil || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("opening on a full disk: %v", err)
	}
	if _, err := Restore(ctx, backup, filepath.Join(disk, "r"), o); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("restoring to a full disk: %v", err)
	}
	if _, err := os.Stat(filepath.Join(disk, "r")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half of a restored store is there: %v", err)
	}
	free()
	if s, err = onDisk(dir, o); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(isAt(ctx, s.Engine, last), s.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d checkpoints and backups failed for lack of space", failed)
	nothingOpen(t, disk)
}

// nothingOpen fails if this process has a file below dir open.
func nothingOpen(t *testing.T, dir string) {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors cannot be listed here: %v", err)
	}
	for _, n := range names {
		at, err := os.Readlink(filepath.Join("/proc/self/fd", n.Name()))
		if err == nil && strings.HasPrefix(at, dir) {
			t.Errorf("%s is still open", at)
		}
	}
}

// TestReserve: a disk with less room than is kept for the log refuses the
// checkpoint before anything is written.
func TestReserve(t *testing.T) {
	disk, fill, free := smallDisk(t, "24m")
	s, err := onDisk(filepath.Join(disk, "s"), Options{Log: wal.Options{Mode: wal.SyncEpoch}})
	if err == nil {
		err = epochs(s, 5)
	}
	if err != nil {
		t.Fatal(err)
	}
	fill(15 << 20)
	if _, err := s.Checkpoint(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a checkpoint with 15 MiB left: %v", err)
	}
	for _, name := range []string{checkpointsName, checkpointsName + ".tmp"} {
		if _, err := os.Stat(filepath.Join(disk, "s", name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	if err := epochs(s, 7); err != nil {
		t.Error(err)
	}
	free()
	saved, err := s.Checkpoint(t.Context())
	if err = errors.Join(err, s.Close()); err != nil || saved.Epoch != 7 {
		t.Fatalf("room again: %+v, %v", saved, err)
	}
}
