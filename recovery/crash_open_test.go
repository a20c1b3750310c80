package recovery

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// torn gives disks after crashes that leave work for the next opening: half of
// an epoch at the end of the log, and a checkpoint of which the tables are
// written in part, together and each alone.
func torn(t *testing.T) []crash {
	t.Helper()
	ctx := t.Context()
	d := newDisk(t, fastDir(t))
	s, _, err := openDisk(ctx, d, d.options())
	if err == nil {
		err = d.advance(ctx, s, 9)
	}
	if err == nil {
		_, err = s.Checkpoint(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []crash
	pick := func(what string, f func() error, match func(c *crash) bool) {
		t.Helper()
		all := d.sweep(what, func() { err = f() })
		i := slices.IndexFunc(all, func(c crash) bool { return match(&c) })
		if err != nil || i < 0 {
			t.Fatalf("%s: no such crash among %d, %v", what, len(all), err)
		}
		out = append(out, all[i])
	}
	halfEpoch := func(c *crash) bool {
		return c.percent == 50 && strings.Contains(c.name, "syncing the segment")
	}
	inTable := func(c *crash) bool {
		names, err := c.mem.List(filepath.Join(c.from, "s", checkpointsName+".tmp"))
		return c.percent == 100 && err == nil && len(names) > 0
	}
	pick("torn log", func() error { return d.advance(ctx, s, 12) }, halfEpoch)
	pick("torn checkpoint", func() error { _, err := s.Checkpoint(ctx); return err }, inTable)
	pick("torn log behind two checkpoints", func() error { return d.advance(ctx, s, 15) }, halfEpoch)
	both := out[2]
	both.name = "torn checkpoint and log"
	pick("torn", func() error { _, err := s.Checkpoint(ctx); return err }, inTable)
	both.mem = out[3].mem
	out[3] = both
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestREC06 crashes at each step of an opening after a crash, in the openings
// after that up to five times at the same step, and then looks whether the
// store is what it was.
func TestREC06(t *testing.T) {
	t.Parallel()
	for _, cache := range []int64{0, 1 << 10} {
		set := func(o *Options) { o.TermCache = cache }
		for _, first := range torn(t) {
			what := fmt.Sprintf("%s, cache %d", first.name, cache)
			openings := func(c *crash) []crash {
				d, err := c.put(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				return d.sweep("opening after "+c.name, func() {
					o := d.options()
					set(&o)
					s, r, err := openDisk(t.Context(), d, o)
					if err != nil {
						t.Fatalf("%s: %v", c.name, err)
					}
					if at := s.Engine.Current.Epoch(); at < c.acked || at > c.begun {
						t.Fatalf("%s: epoch %d, %+v", c.name, at, r)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				})
			}
			all := openings(&first)
			judgeAll(t, what, all, set)
			chains := 0
			for i := range all {
				if !*every && i%9 != 0 {
					continue
				}
				c := all[i]
				for range 4 {
					next := openings(&c)
					c = next[min(i, len(next)-1)]
					c.name = all[i].name
				}
				judgeAll(t, what+", five crashes, the first "+c.name, []crash{c}, set)
				chains++
			}
			t.Logf("%s: %d chains of five crashes", what, chains)
		}
	}
}

// TestREC08 opens, goes on and opens again where a checkpoint is of the last
// epoch, and where epochs behind it share a segment of the log with older ones.
func TestREC08(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, segment := range []int{1, 900, 1 << 20} {
		for _, saves := range [][]uint64{{5}, {4, 5}, {1, 5}} {
			for _, behind := range []uint64{0, 3} {
				t.Run(fmt.Sprintf("segments of %d, checkpoints %v, %d epochs behind", segment, saves, behind), func(t *testing.T) {
					d := newDisk(t, t.TempDir())
					o := d.options()
					o.Log.SegmentBytes = segment
					last := uint64(0)
					open := func(replayed uint64) *Store {
						t.Helper()
						s, r, err := openDisk(ctx, d, o)
						if err != nil {
							t.Fatal(err)
						}
						if r.Epochs != replayed {
							t.Errorf("%d epochs were replayed, not %d: %+v", r.Epochs, replayed, r)
						}
						if err := isAt(ctx, s.Engine, last); err != nil {
							t.Fatal(err)
						}
						return s
					}
					goOn := func(s *Store, n uint64) {
						t.Helper()
						last += n
						if err := d.advance(ctx, s, last); err != nil {
							t.Fatal(err)
						}
					}
					s := open(0)
					for _, at := range saves {
						goOn(s, at-last)
						saved, err := s.Checkpoint(ctx)
						if err = errors.Join(err, saved.CutErr); err != nil || saved.Epoch != at {
							t.Fatalf("%+v, %v", saved, err)
						}
					}
					goOn(s, behind)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(behind)
					goOn(s, 1)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(behind + 1)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

// TestREC08Restored begins with a log that is empty behind a checkpoint.
func TestREC08Restored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := newDisk(t, t.TempDir())
	s, _, err := openDisk(ctx, d, d.options())
	if err == nil {
		err = d.advance(ctx, s, 5)
	}
	if err == nil {
		_, err = s.Backup(ctx, filepath.Join(d.root, "b"), 0)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(d.root, "r")
	if _, err := Restore(ctx, filepath.Join(d.root, "b"), dir, d.options()); err != nil {
		t.Fatal(err)
	}
	for last := uint64(5); last < 8; last++ {
		s, r, err := Open(ctx, dir, d.options())
		if err != nil {
			t.Fatal(err)
		}
		if r.Checkpoint != 5 || r.Epochs != last-5 {
			t.Errorf("at %d: %+v", last, r)
		}
		s.Engine.Logged(s.Log)
		err = isAt(ctx, s.Engine, last)
		if err == nil {
			err = do(ctx, s.Engine, last+1)
		}
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
