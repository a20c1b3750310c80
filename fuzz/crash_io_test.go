package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// holdOpen is the child that owns a store until it is killed.
func holdOpen(dir string, _ uint64, _ *rand.Rand, r reporter) error {
	db, err := triegs.Open(dir, nil)
	if err != nil {
		return err
	}
	s := triegs.Batch{Source: "s", Time: time.Unix(1, 0)}
	s.Offset, _ = db.Offset("s")
	s.Events = []triegs.Event{triegs.Edge("R", triegs.String("held"), triegs.Int(int64(s.Offset)))}
	if _, err := db.Append(context.Background(), s); err != nil {
		return err
	}
	r.say("held %d", os.Getpid())
	time.Sleep(time.Hour)
	return db.Close()
}

// owner is another process that has a store open.
type owner struct {
	*testing.T
	cmd *exec.Cmd
}

// own lets another process open a store and waits until it has.
func own(t *testing.T, test, dir string) *owner {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	o := &owner{t, exec.Command(os.Args[0], "-test.run=^"+test+"$")}
	o.cmd.ExtraFiles = []*os.File{to}
	o.cmd.Env = append(os.Environ(), crashVar+"="+dir)
	err = o.cmd.Start()
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.kill)
	var pid int
	if _, err := fmt.Fscanf(from, "held %d\n", &pid); err != nil || pid != o.cmd.Process.Pid {
		t.Fatalf("the other process said %d (%v), it is %d", pid, err, o.cmd.Process.Pid)
	}
	return o
}

func (o *owner) kill() {
	if o.cmd.ProcessState != nil {
		return
	}
	o.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		o.Fatal(err)
	}
	_ = o.cmd.Wait() // it says that it was killed
}

// Of two processes the second gets an error in time that names the first, which
// is not disturbed; the lock goes with its holder.
func TestIO01IO02(t *testing.T) {
	crashChild(t, holdOpen)
	dir := newRecorded(t, 6, 0).dir
	quiet(t)
	o := own(t, t.Name(), dir)
	for _, tc := range []struct {
		opts     triegs.Options
		from, to time.Duration
	}{
		{triegs.Options{LockWait: -1}, 0, 150 * time.Millisecond},
		{triegs.Options{LockWait: 200 * time.Millisecond}, 200 * time.Millisecond, 700 * time.Millisecond},
		{triegs.Options{LockWait: 200 * time.Millisecond, ReadOnly: true}, 200 * time.Millisecond, 700 * time.Millisecond},
		{triegs.Options{}, time.Second, 2 * time.Second},
	} {
		start := time.Now()
		db, err := triegs.Open(dir, &tc.opts)
		took := time.Since(start)
		if !errors.Is(err, triegs.ErrLocked) {
			t.Fatalf("%+v: got %v, %v, want ErrLocked", tc.opts, db, err)
		}
		if !tc.opts.ReadOnly && !strings.Contains(err.Error(), fmt.Sprint(o.cmd.Process.Pid)) {
			t.Errorf("error %q does not name process %d", err, o.cmd.Process.Pid)
		}
		if took < tc.from || took > tc.to {
			t.Errorf("a lock wait of %s took %s", tc.opts.LockWait, took)
		}
	}
	o.kill()
	db, err := triegs.Open(dir, &triegs.Options{LockWait: -1})
	if err != nil {
		t.Fatalf("after the death of the holder: %v", err)
	}
	if next, _ := db.Offset("s"); next == 0 || db.Verify(context.Background()) != nil {
		t.Errorf("position %d", next)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// Two readers share; a writer waits for both.
	ro := &triegs.Options{ReadOnly: true, LockWait: -1}
	one, err := triegs.Open(dir, ro)
	if err != nil {
		t.Fatal(err)
	}
	two, err := triegs.Open(dir, ro)
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range []*triegs.DB{one, two} {
		if _, err := triegs.Open(dir, &triegs.Options{LockWait: -1}); !errors.Is(err, triegs.ErrLocked) {
			t.Errorf("a writer beside readers: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if db, err = triegs.Open(dir, &triegs.Options{LockWait: -1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A read-only store, also one that a writer was killed in or that ends in a torn
// tail, reads all and changes nothing.
func TestIO03(t *testing.T) {
	crashChild(t, holdOpen)
	r := newRecorded(t, 10, 0)
	quiet(t)
	own(t, t.Name(), r.dir).kill()
	list := places(t, segments(t, r.dir)[0])
	for _, tc := range []struct {
		what   string
		damage []func(string)
		epoch  int
		cut    bool
	}{
		{"killed", nil, 11, false},
		{"torn", []func(string){noNote, func(dir string) {
			if err := os.Truncate(segments(t, dir)[0], int64(list[10].start+20)); err != nil {
				t.Fatal(err)
			}
		}}, 10, true},
		{"without a lock file", []func(string){func(dir string) {
			if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
				t.Fatal(err)
			}
		}}, 11, false},
	} {
		dir := r.copy(t, tc.damage...)
		for _, sub := range []string{"", "log"} {
			if err := os.Chmod(filepath.Join(dir, sub), 0o555); err != nil {
				t.Fatal(err)
			}
		}
		before := fingerprint(t, dir)
		db, err := triegs.Open(dir, &triegs.Options{ReadOnly: true})
		if err != nil {
			t.Fatalf("%s: %v", tc.what, err)
		}
		got := stageOf(t, db)
		if got.epoch != triegs.Epoch(tc.epoch) || (db.Recovery().CutBytes > 0) != tc.cut {
			t.Errorf("%s: %v, report %+v; want epoch %d, a cut: %v", tc.what, got, db.Recovery(), tc.epoch, tc.cut)
		}
		if tc.epoch == 10 {
			r.stages[10].want(t, tc.what, db)
		}
		wantReadOnly(t, db)
		if err := errors.Join(db.Verify(context.Background()), db.Close()); err != nil {
			t.Errorf("%s: %v", tc.what, err)
		}
		if after := fingerprint(t, dir); after != before {
			t.Errorf("%s: the files changed:\n%s\n%s", tc.what, before, after)
		}
		if tc.what == "without a lock file" {
			if _, err := os.Stat(filepath.Join(dir, "LOCK")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a lock file was made: %v", err)
			}
		}
		for _, sub := range []string{"", "log"} {
			if err := os.Chmod(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// wantReadOnly checks that every writing call is refused and changes nothing,
// and that reading goes on.
func wantReadOnly(t *testing.T, db *triegs.DB) {
	t.Helper()
	ctx := context.Background()
	before := stageOf(t, db)
	for what, call := range map[string]func() error{
		"Append":    func() error { _, err := db.Append(ctx, triegs.Batch{Events: events("+R(c,d)")}); return err },
		"no events": func() error { _, err := db.Append(ctx, triegs.Batch{}); return err },
		"a replay": func() error {
			_, err := db.Append(ctx, triegs.Batch{Source: "s", Events: events("+R(c,d)")})
			return err
		},
		"AppendAll":   func() error { _, err := db.AppendAll(ctx); return err },
		"Register":    func() error { _, err := db.Register(ctx, "p", "p(x) :- R(x, y)."); return err },
		"Drop":        func() error { return db.Drop(ctx, "q") },
		"SkipTo":      func() error { return db.SkipTo(ctx, "s", 1<<40) },
		"ResetSource": func() error { return db.ResetSource(ctx, "s", "another") },
		"WaitFor":     func() error { return db.WaitFor(ctx, before.epoch+1) },
	} {
		if err := call(); !errors.Is(err, triegs.ErrReadOnly) {
			t.Errorf("%s: got %v, want ErrReadOnly", what, err)
		}
	}
	if err := db.WaitFor(ctx, before.epoch); err != nil {
		t.Errorf("waiting for the current epoch: %v", err)
	}
	before.want(t, "after refused calls", db)
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := gather(s.Select(ctx, "p(x, y) :- R(x, y).")); err != nil || len(got) == 0 {
		t.Errorf("select: %v, %v", got, err)
	}
}

// Opening what is not there, or not ours, creates nothing.
func TestIO04(t *testing.T) {
	quiet(t)
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	file := filepath.Join(dir, "file")
	foreign := filepath.Join(dir, "foreign")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Mkdir(foreign, 0o700),
		os.WriteFile(filepath.Join(foreign, "notes.txt"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	ro := &triegs.Options{ReadOnly: true}
	for _, tc := range []struct {
		what, path string
		opts       *triegs.Options
		want       error
	}{
		{"missing, to read", missing, ro, fs.ErrNotExist},
		{"missing parents, to read", filepath.Join(missing, "a", "b"), ro, fs.ErrNotExist},
		{"empty, to read", filepath.Join(dir, "empty"), ro, triegs.ErrFormat},
		{"a file, to read", file, ro, triegs.ErrFormat},
		{"a file", file, nil, triegs.ErrFormat},
		{"foreign, to read", foreign, ro, triegs.ErrFormat},
		{"foreign", foreign, nil, triegs.ErrFormat},
		{"in memory, to read", "", ro, triegs.ErrValue},
	} {
		before := fingerprint(t, dir)
		db, err := triegs.Open(tc.path, tc.opts)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, %v, want %v", tc.what, db, err, tc.want)
		}
		if after := fingerprint(t, dir); after != before {
			t.Errorf("%s: files came into being:\n%s\n%s", tc.what, before, after)
		}
	}
	for _, p := range []string{missing, filepath.Join(foreign, "LOCK"), filepath.Join(dir, "empty", "LOCK")} {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s came into being (%v)", p, err)
		}
	}
	// A file in the way of the path.
	if db, err := triegs.Open(filepath.Join(file, "store"), nil); err == nil {
		t.Errorf("opened %v below a file", db)
	}
	// Missing parents are made for a writer.
	db, err := triegs.Open(filepath.Join(dir, "new", "deep", "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A directory in which no file can be made does not open for writing, with the
// system's reason, and opens once it can.
func TestIO05(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	r := newRecorded(t, 5, 0)
	quiet(t)
	for _, sub := range []string{"", "log"} {
		path := filepath.Join(r.dir, sub)
		if err := os.Chmod(path, 0o555); err != nil {
			t.Fatal(err)
		}
		before := fingerprint(t, r.dir)
		if db, err := triegs.Open(r.dir, nil); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%q not writable: got %v, %v, want a permission error", sub, db, err)
		}
		if after := fingerprint(t, r.dir); after != before {
			t.Errorf("%q not writable: the files changed:\n%s\n%s", sub, before, after)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.opens(t, "writable again", r.dir, 5, false)
}

// The directory goes away under a live store: calls end, nobody dies, and Close
// returns.
func TestIO06(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed here")
	}
	quiet(t)
	r := newRecorded(t, 10, 0)
	db, err := triegs.Open(r.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	within(t, time.Minute, "writing without a directory", func() {
		big := strings.Repeat("x", 1<<20)
		var failed error
		last := triegs.Epoch(10)
		// An open file can be written after its name is gone; what needs a name
		// fails, at the next segment at the latest.
		for i := 0; i < 12 && failed == nil; i++ {
			var e triegs.Epoch
			e, failed = db.Append(ctx, triegs.Batch{Events: []triegs.Event{triegs.Edge("R", triegs.String(fmt.Sprint(big, i)), triegs.Int(1))}})
			if failed == nil {
				last = e
			}
		}
		if !errors.Is(failed, triegs.ErrReadOnly) {
			t.Errorf("writing without a directory: got %v, want ErrReadOnly", failed)
		}
		t.Logf("refused after epoch %d: %v", last, failed)
		if got := stageOf(t, db); got.epoch != last {
			t.Errorf("readers see epoch %d, %d was the last acknowledged", got.epoch, last)
		}
		if _, err := db.Append(ctx, triegs.Batch{}); !errors.Is(err, triegs.ErrReadOnly) {
			t.Errorf("afterwards: got %v, want ErrReadOnly", err)
		}
		if err := db.Verify(ctx); err != nil {
			t.Error(err)
		}
		t.Logf("close: %v", db.Close())
	})
	if _, err := os.Stat(r.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is back: %v", err)
	}
}
