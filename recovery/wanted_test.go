package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/recovery/positions"
)

// wanting opens a store in dir that wants all epochs behind from one by one, and
// gives those that were reached on the way.
func wanting(t *testing.T, dir string, from uint64, o Options) (*Store, Report, []uint64, error) {
	t.Helper()
	ctx := context.Background()
	var engine *epoch.Engine
	var reached []uint64
	o.Now, o.Log.SegmentBytes = wallClock, 700
	o.Wanted = func(wal.Identity, uint64, map[string]positions.Place) uint64 { return from }
	o.Reached = func(_ wal.Identity, e *epoch.Engine, _ map[string]positions.Place, _ uint64) {
		if e != engine {
			engine, reached = e, nil
		}
		reached = append(reached, e.Current.Epoch())
		if err := isAt(ctx, e, e.Current.Epoch()); err != nil {
			t.Error(err)
		}
	}
	s, r, err := Open(ctx, dir, o)
	if err == nil && !o.Log.ReadOnly {
		s.Engine.Logged(s.Log)
	}
	return s, r, reached, err
}

func (s *Store) must(t *testing.T, from, through uint64, every uint64) {
	t.Helper()
	ctx := context.Background()
	for n := from; n <= through; n++ {
		if err := do(ctx, s.Engine, n); err != nil {
			t.Fatal(err)
		}
		if n%every == 0 {
			if _, err := s.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What is wanted can be had again however many checkpoints and generations have
// come since; what is not wanted any more goes.
func TestWanted(t *testing.T) {
	for _, cache := range []int64{0, 1 << 16} {
		t.Run(fmt.Sprintf("cache %d", cache), func(t *testing.T) {
			dir := t.TempDir()
			o := Options{TermCache: cache}
			at := uint64(0)
			oldest, held := uint64(0), 0
			for _, from := range []uint64{0, 9, 9, 9, 9, 30, 100, 100} {
				s, r, reached, err := wanting(t, dir, from, o)
				if err != nil {
					t.Fatal(err)
				}
				if from < at && (!slices.Contains(reached, from) || reached[len(reached)-1] != at || len(reached) != int(at-reached[0])+1) {
					t.Fatalf("at %d, wanted from %d, reached %v", at, from, reached)
				}
				if (r.Passed > 0) != (from < at/4*4 && r.Checkpoint < r.Passed) || r.Missed != nil {
					t.Fatalf("passed %d, %v", r.Passed, r.Missed)
				}
				end := min(at+8, lastEpoch)
				if from > 50 {
					end = at + 2
				}
				s.must(t, at+1, end, 4)
				at = end
				if from == 9 {
					held = max(held, len(generations(s)))
				}
				if oldest, err = wal.Oldest(dir); err != nil || oldest > from+1 && from < 50 {
					t.Fatalf("wanted from %d, the log begins with %d, %v", from, oldest, err)
				}
				if _, err := s.Checkpoint(context.Background()); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if oldest < 30 || held < 2 {
				t.Errorf("the log begins with %d, %d generations were held", oldest, held)
			}
		})
	}
}

// generations are those of which there are checkpoints.
func generations(s *Store) (list []uint64) {
	for _, in := range s.checkpoints.List() {
		list = append(list, in.Generation)
	}
	return slices.Compact(list)
}

// The part of the log that only what is wanted needs may be in any state, also
// gone: the store is what it would be without.
func TestWantedDamage(t *testing.T) {
	dir := t.TempDir()
	s, _, _, err := wanting(t, dir, 3, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.must(t, 1, 20, 9)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*"))
	if err != nil || len(segments) < 5 {
		t.Fatalf("%v, %v", segments, err)
	}
	missed, refused := 0, 0
	for i, segment := range segments {
		for _, spoil := range []func(path string, b []byte) error{
			func(path string, b []byte) error { b[len(b)/2] ^= 0x10; return os.WriteFile(path, b, 0o600) },
			func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) },
			func(path string, _ []byte) error { return os.Remove(path) },
		} {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(segment)
			if err == nil {
				err = spoil(filepath.Join(copied, "log", filepath.Base(segment)), b)
			}
			if err != nil {
				t.Fatal(err)
			}
			without, _, _, plain := wanting(t, copied, 100, Options{Log: wal.Options{ReadOnly: true}})
			if plain == nil {
				plain = without.Close()
			}
			s, r, reached, err := wanting(t, copied, 3, Options{})
			if (err == nil) != (plain == nil) {
				t.Fatalf("segment %d: %v, without what is wanted %v", i, err, plain)
			}
			if err != nil {
				if !errors.Is(err, errs.ErrCorrupt) {
					t.Fatal(err)
				}
				refused++
				continue
			}
			if r.Missed != nil {
				missed++
				if !errors.Is(r.Missed, errs.ErrCorrupt) && !errors.Is(r.Missed, errs.ErrValue) || reached[0] != 18 {
					t.Fatalf("segment %d: reached %v, %v", i, reached, r.Missed)
				}
			}
			at := s.Engine.Current.Epoch()
			if err := isAt(context.Background(), s.Engine, at); err != nil || at < 18 {
				t.Fatal(at, err)
			}
			s.must(t, at+1, 24, 3)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if missed < 3 || refused == 0 {
		t.Errorf("%d times what was wanted was missed, %d times the store was refused", missed, refused)
	}
}

// A position never leads the log, also where epochs need not be durable, and is what
// it was where either cannot be written.
func TestAcknowledge(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	fail := ""
	boom := errors.New("disk")
	o := Options{Log: wal.Options{Mode: wal.SyncNone, Step: func(what string) error {
		if what == fail {
			return boom
		}
		return nil
	}}}
	s, _, _, err := wanting(t, dir, 100, o)
	if err != nil {
		t.Fatal(err)
	}
	s.must(t, 1, 9, 100)
	if s.Log.Durable() >= 7 {
		t.Fatalf("epoch %d is durable unasked", s.Log.Durable())
	}
	if err := s.Acknowledge(ctx, "a", positions.Place{Query: "q", Epoch: 7}); err != nil || s.Log.Durable() < 7 {
		t.Fatalf("%v, the log is durable through %d", err, s.Log.Durable())
	}
	for _, fail = range []string{"append to the subscribers", "sync the subscribers"} {
		if err := s.Acknowledge(ctx, "a", positions.Place{Query: "q", Epoch: 9}); !errors.Is(err, boom) {
			t.Errorf("%s: %v", fail, err)
		}
		if p, _ := s.Positions.Get("a"); p.Epoch != 7 {
			t.Errorf("%s: the position is %d", fail, p.Epoch)
		}
		fail = ""
		if err := s.Acknowledge(ctx, "b", positions.Place{Query: "q", Epoch: 8}); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Acknowledge(ctx, "a", positions.Place{Query: "q", Epoch: 8}); !errors.Is(err, errs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	s, _, _, err = wanting(t, dir, 100, Options{Log: wal.Options{ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	if all := s.Positions.All(); len(all) != 2 || all["b"].Epoch != 8 {
		t.Errorf("%v", all)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
