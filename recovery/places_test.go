package recovery

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
)

// Whoever waits for a turn with a context that ends does not have it, whatever
// comes first.
func TestTurn(t *testing.T) {
	turn := make(chan struct{}, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 200 {
		if err := take(gone, turn); !errors.Is(err, context.Canceled) || len(turn) != 0 {
			t.Fatalf("got %v with %d tokens taken", err, len(turn))
		}
	}
	if err := take(t.Context(), turn); err != nil || len(turn) != 1 {
		t.Fatalf("got %v with %d tokens taken", err, len(turn))
	}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := take(late, turn); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of a turn that somebody has: %v", err)
	}
}

// A place in a store is told from one beside it, however it is named.
func TestApart(t *testing.T) {
	root := t.TempDir()
	store := filepath.Join(root, "store")
	link, inner := filepath.Join(root, "link"), filepath.Join(root, "inner")
	if err := errors.Join(os.MkdirAll(filepath.Join(store, "log"), 0o700), os.Symlink(store, link),
		os.Symlink(filepath.Join(store, "log"), inner), os.Symlink(root, filepath.Join(store, "out"))); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dest string
		ok   bool
	}{
		{"", false}, {"log", false}, {"new", false}, {"new/deeper", false}, {"log/../x", false},
		{"../beside", true}, {"../store2", true}, {"../link", false}, {"../link/new", false}, {"../inner/a/b", false},
		{"..", true}, {"out/free", true}, {"out/store/x", false},
	} {
		// Not cleaned by Join: the name is given as it is.
		err := apart(store+"/"+tc.dest, store)
		if tc.ok != (err == nil) || err != nil && !errors.Is(err, errs.ErrFormat) {
			t.Errorf("%q: got %v, want a refusal: %v", tc.dest, err, !tc.ok)
		}
	}
	if err := apart(filepath.Join(root, "x"), filepath.Join(root, "missing")); err != nil {
		t.Errorf("of a store that is not there: %v", err)
	}
}

// What is made under the name of a link is made where that leads, in a directory
// that is there; and never in a store, whosever that is.
func TestFree(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, far := filepath.Join(root, "other"), filepath.Join(root, "far")
	s, _, err := Open(t.Context(), other, Options{Now: wallClock})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.MkdirAll(filepath.Join(far, "empty"), 0o700),
		os.Symlink(filepath.Join("far", "empty"), filepath.Join(root, "link")), os.Symlink("nowhere", filepath.Join(root, "dangling")),
		os.Symlink(filepath.Join(other, "log"), filepath.Join(root, "inner"))); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dest, want string
		err        error
	}{
		{"", "", errs.ErrValue},
		{"link", "far/empty", nil}, {"link/", "far/empty", nil}, {"link/new/er", "link/new/er", nil}, {"far/x", "far/x", nil},
		{"dangling", "", errs.ErrFormat}, {"other", "other", nil}, {"other/x", "", errs.ErrFormat}, {"other/log/x/y", "", errs.ErrFormat},
		{"inner/x", "", errs.ErrFormat},
	} {
		name := tc.dest
		if name != "" {
			name = root + "/" + name
		}
		got, err := free(name, filepath.Join(root, "store"))
		if !errors.Is(err, tc.err) || tc.err == nil && got != filepath.Join(root, filepath.FromSlash(tc.want)) {
			t.Errorf("%q: got %q, %v, want %q, %v", tc.dest, got, err, tc.want, tc.err)
		}
	}
	for what, take := range map[string]func(dest string) error{
		"restore": func(dest string) error {
			_, err := Restore(t.Context(), other, dest, Options{Now: wallClock})
			return err
		},
		"repair": func(dest string) error {
			_, err := Repair(t.Context(), other, dest, Options{Now: wallClock})
			return err
		},
	} {
		link, to := filepath.Join(root, what+" link"), filepath.Join(far, what)
		if err := errors.Join(os.Mkdir(to, 0o700), os.Symlink(to, link), take(link)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 || !wal.Holds(to) {
			t.Errorf("%s through a link: %v, %v", what, info, err)
		}
	}
}

// Two that make the same directory: one has it, the other is told that it is not
// empty.
func TestWholeAtOnce(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "d")
	fill := func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) }
	err := whole(vfs.Default, dest, func(dir string) error {
		return errors.Join(fill(dir), whole(vfs.Default, dest, fill))
	})
	if !errors.Is(err, errs.ErrFormat) {
		t.Errorf("got %v, want ErrFormat", err)
	}
	if left, err := os.ReadDir(filepath.Dir(dest)); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}
