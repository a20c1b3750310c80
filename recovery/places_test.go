package recovery

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

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
