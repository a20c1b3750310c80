package fuzz

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// redirect puts a device under the descriptor of the store's last segment, so
// that the next write or sync of it fails as that device does.
func redirect(t *testing.T, dir, device string) {
	t.Helper()
	list := segments(t, dir)
	want, err := filepath.EvalSymlinks(list[len(list)-1])
	if err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors cannot be listed here: %v", err)
	}
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no %s here: %v", device, err)
	}
	defer f.Close()
	done := false
	for _, n := range names {
		if at, err := os.Readlink(filepath.Join("/proc/self/fd", n.Name())); err != nil || at != want {
			continue
		}
		fd, err := strconv.Atoi(n.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Dup3(int(f.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		done = true
	}
	if !done {
		t.Fatalf("%s is not open", want)
	}
}

// After a write or a sync that fails, the caller is told, nobody sees the epoch,
// nothing is written any more, readers go on, and reopening gives what was
// acknowledged.
func TestREC09REC10REC12(t *testing.T) {
	for _, tc := range []struct {
		what, device string
		cause        error
		torn         bool // half of an entry is on the disk
	}{
		{"failed sync", "/dev/null", syscall.EINVAL, false},
		{"full disk", "/dev/full", syscall.ENOSPC, false},
		{"full disk after some bytes", "/dev/full", syscall.ENOSPC, true},
	} {
		t.Run(tc.what, func(t *testing.T) {
			r := newRecorded(t, 7, 0)
			quiet(t)
			db, err := triegs.Open(r.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			pinned, err := db.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			redirect(t, r.dir, tc.device)
			failTogether(t, db, r, tc.cause)
			wantReadOnly(t, db)
			if got, err := gather(pinned.Answers("q")); err != nil || len(got) != len(r.stages[7].answers) {
				t.Errorf("a pinned reader: %d answers, %v", len(got), err)
			}
			pinned.Close()
			if err := db.Close(); !errors.Is(err, tc.cause) {
				t.Errorf("close: got %v, want the cause", err)
			}
			if tc.torn {
				rewrite(segments(t, r.dir)[0], func(b []byte) []byte { return append(b, b[:60]...) })
			}
			r.opens(t, "reopened", r.dir, 7, tc.torn)
		})
	}
}

// failTogether lets many write at once while readers poll; the log fails under
// all of them.
func failTogether(t *testing.T, db *triegs.DB, r *recorded, cause error) {
	t.Helper()
	ctx := context.Background()
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			s, err := db.Snapshot()
			if err != nil {
				t.Error(err)
				return
			}
			if s.Epoch() != 7 {
				t.Errorf("a reader saw epoch %d, which was never durable", s.Epoch())
			}
			s.Close()
		}
	})
	calls := []func(i int) error{
		func(i int) error {
			_, err := db.Append(ctx, triegs.Batch{Source: "s", Offset: uint64(100 + i), Events: events(fmt.Sprintf("+R(x,w%d)", i))})
			return err
		},
		func(i int) error {
			_, err := db.Register(ctx, fmt.Sprint("p", i), "p(x, y, z) :- R(x, y), R(y, z).")
			return err
		},
		func(i int) error { return db.SkipTo(ctx, fmt.Sprint("new", i), 9) },
		func(int) error { return db.WaitFor(ctx, 8) },
	}
	for i := range 32 {
		writers.Go(func() {
			err := calls[i%len(calls)](i)
			if !errors.Is(err, triegs.ErrReadOnly) || !errors.Is(err, cause) {
				t.Errorf("call %d: got %v, want ErrReadOnly because of %v", i, err, cause)
			}
		})
	}
	within(t, 10*time.Second, "the writers", writers.Wait)
	close(stop)
	readers.Wait()
	if got := stageOf(t, db); !got.equal(r.stages[7]) {
		t.Errorf("readers are at %v, want %v", got, r.stages[7])
	}
}

// In the relaxed modes an epoch is seen before it is durable; when its write or
// sync fails, the store says so with the next call, and keeps a whole number of
// epochs.
func TestRelaxedModesFail(t *testing.T) {
	for _, mode := range []triegs.SyncMode{triegs.SyncInterval, triegs.SyncNone} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRecorded(t, 7, 0)
			quiet(t)
			db, err := triegs.Open(r.dir, &triegs.Options{Durability: mode})
			if err != nil {
				t.Fatal(err)
			}
			redirect(t, r.dir, "/dev/full")
			ctx := context.Background()
			deadline := time.Now().Add(10 * time.Second)
			for err == nil && time.Now().Before(deadline) {
				_, err = db.Append(ctx, triegs.Batch{Events: events("+R(x,y)")})
			}
			if !errors.Is(err, triegs.ErrReadOnly) || !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("got %v, want ErrReadOnly because of a full disk", err)
			}
			at := stageOf(t, db)
			if err := db.Verify(ctx); err != nil {
				t.Error(err)
			}
			if err := db.Close(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("close: got %v, want the cause", err)
			}
			t.Logf("readers were at %v", at)
			r.opens(t, "reopened", r.dir, 7, false)
		})
	}
}

// A disk that is full already gives the system's reason, no half-made store, and
// opens once there is room.
func TestIO05Full(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	dir := filepath.Join(disk, "store")
	for range 2 {
		if db, err := triegs.Open(dir, nil); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v, %v, want no space", db, err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, dir, nil)
	w.register("q", "q(x, y) :- R(x, y).")
	w.do("+R(a,b)")
	// It fills up while it is written.
	big := triegs.Batch{Source: "s", Events: []triegs.Event{triegs.Edge("R", triegs.String(strings.Repeat("x", 300_000)), triegs.Int(1))}}
	if _, err := w.db.Append(w.ctx, big); !errors.Is(err, triegs.ErrReadOnly) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want ErrReadOnly because of no space", err)
	}
	w.want("q", "(a,b):1")
	if err := w.db.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	// What is torn may be what fills it: room must come from elsewhere.
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	db, err := triegs.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
	w.want("q", "(a,b):1")
	w.wantNext("s", 0, false)
	if w.db.Recovery().CutBytes == 0 {
		t.Error("no cut is reported")
	}
	w.do("+R(a,c)")
	w.want("q", "(a,b):1 (a,c):1")
	if err := w.db.Close(); err != nil {
		t.Error(err)
	}
}
