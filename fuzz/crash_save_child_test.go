package fuzz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// churnOptions are the options of a store that is saved all the time. Which ones
// depends on the process, so that each finds what another one has left.
func churnOptions(rng *rand.Rand) *triegs.Options {
	o := &triegs.Options{CheckpointBytes: []int64{4 << 10, 64 << 10, -1}[rng.IntN(3)]}
	if rng.IntN(2) == 0 {
		o.DictionaryCacheBytes = 1 + rng.Int64N(4096)
	}
	return o
}

// backups is the folder of the backups beside a store.
func backups(dir string) string { return dir + "-backups" }

// saveFrom is the child of TestKillSaved: it does what appendFrom does, while
// another goroutine takes checkpoints and makes backups, new ones and additions
// to earlier ones, and now and then a flood of terms comes and goes.
func saveFrom(dir string, stop uint64, rng *rand.Rand, r reporter) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := triegs.Open(dir, churnOptions(rng))
	if err != nil {
		return err
	}
	saver := rand.New(rand.NewPCG(rng.Uint64(), 2))
	saved := make(chan error, 1)
	go func() {
		err := saveForEver(ctx, db, dir, saver)
		if err != nil { // the other goroutine may be far from its end
			fmt.Fprintln(os.Stderr, "saving:", err)
			os.Exit(1)
		}
		saved <- nil
	}()
	err = feedFrom(ctx, db, stop, rng, func() error { return floodNow(ctx, db, rng, r) }, r)
	cancel()
	return errors.Join(err, <-saved, db.Close())
}

// floodNow brings, now and then, more new terms than make a store look for dead
// ones, and takes the facts back in the same epoch, so that a kill leaves all or
// nothing of it.
func floodNow(ctx context.Context, db *triegs.DB, rng *rand.Rand, r reporter) error {
	if rng.IntN(150) > 0 {
		return nil
	}
	const width, rows = 250, 270
	b := triegs.Batch{Time: time.Unix(0, 1)}
	for range rows {
		e := triegs.Event{Relation: "Flood"}
		for range width {
			e.Tuple = append(e.Tuple, triegs.String(fmt.Sprintf("flood %016x", rng.Uint64())))
		}
		b.Events = append(b.Events, e)
	}
	for _, e := range b.Events[:rows] {
		e.Op = triegs.Delete
		b.Events = append(b.Events, e)
	}
	if _, err := db.Append(ctx, b); err != nil {
		return err
	}
	r.say("note %d", db.Metrics().Checkpoints.Terms)
	return nil
}

// saveForEver saves until ctx ends.
func saveForEver(ctx context.Context, db *triegs.DB, dir string, rng *rand.Rand) error {
	for ctx.Err() == nil {
		var err error
		switch rng.IntN(4) {
		case 0, 1:
			err = db.Checkpoint(ctx)
		case 2: // a new one; the parent takes them away
			err = db.Backup(ctx, filepath.Join(backups(dir), fmt.Sprintf("new-%x", rng.Uint64())))
		case 3: // more for an earlier one
			err = db.Backup(ctx, filepath.Join(backups(dir), fmt.Sprintf("kept-%d", rng.IntN(2))))
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
	}
	return nil
}

// savedReference checks stores and backups of TestKillSaved. A backup may be of an
// earlier state than the reference has, so it remembers the digests.
type savedReference struct {
	*reference
	digests map[uint64]triegs.Digest // by offset
	epochs  map[triegs.Epoch]uint64  // the offset after an epoch, where the parent was told
	seen    map[string]bool          // backups that were looked at since they last changed
	counts  map[string]int
}

// note remembers what the child was told of its epochs.
func (r *savedReference) note(lines []string) {
	for _, line := range lines {
		f := strings.Fields(line)
		switch f[0] {
		case "ack":
			e, _ := strconv.ParseUint(f[1], 10, 64)
			r.epochs[triegs.Epoch(e)], _ = strconv.ParseUint(f[2], 10, 64)
		case "note":
			r.counts["floods"]++
			if f[1] != "0" {
				r.counts["floods after a reclamation"]++
			}
		}
	}
}

// digestAt gives the digest after the events below an offset. What was asked for
// once may be asked for again; anything else never goes back.
func (r *savedReference) digestAt(offset uint64) triegs.Digest {
	r.Helper()
	if _, ok := r.digests[offset]; !ok {
		r.digests[offset] = r.digest(offset)
	}
	return r.digests[offset]
}

// opening is a backup that is open.
type opening struct {
	path, print string
	db          *triegs.DB
	at          uint64 // the offset of its source
}

// checkBackups opens every backup that has its final name and has changed, and
// gives the highest offset of them.
func (r *savedReference) checkBackups(dir string) (most uint64) {
	r.Helper()
	list, err := os.ReadDir(backups(dir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Fatal(err)
	}
	var open []opening
	for _, entry := range list {
		path := filepath.Join(backups(dir), entry.Name())
		if strings.Contains(entry.Name(), ".partial-") {
			r.counts["partial"]++
			if err := os.RemoveAll(path); err != nil {
				r.Fatal(err)
			}
			continue
		}
		print := fingerprint(r.T, path)
		if r.seen[print] {
			continue
		}
		r.seen[print] = true
		db, err := triegs.Open(path, &triegs.Options{ReadOnly: true})
		if err != nil {
			r.Fatalf("backup %s: %v", path, err)
		}
		at, _ := db.Offset("s")
		open = append(open, opening{path, print, db, at})
	}
	slices.SortFunc(open, func(a, b opening) int { return cmp.Compare(a.at, b.at) })
	for _, o := range open {
		r.checkBackup(o)
		most = max(most, o.at)
		if strings.HasPrefix(filepath.Base(o.path), "new-") {
			if err := os.RemoveAll(o.path); err != nil {
				r.Fatal(err)
			}
		}
	}
	return most
}

// checkBackup checks a backup, which must be right in itself and of one epoch.
func (r *savedReference) checkBackup(o opening) {
	r.Helper()
	epoch := o.db.Metrics().Epoch
	if o.db.Recovery().Checkpoint != epoch {
		r.Fatalf("backup %s: %+v, epoch %d", o.path, o.db.Recovery(), epoch)
	}
	if want, ok := r.epochs[epoch]; ok && o.at != want {
		r.Fatalf("backup %s of epoch %d stands at %d, want %d", o.path, epoch, o.at, want)
	}
	if got, want := digestOf(r.T, o.db), r.digestAt(o.at); got != want {
		r.Fatalf("backup %s at offset %d: digest %v, want %v", o.path, o.at, got, want)
	}
	if err := errors.Join(o.db.Verify(context.Background()), o.db.Close()); err != nil {
		r.Fatalf("backup %s: %v", o.path, err)
	}
	if fingerprint(r.T, o.path) != o.print {
		r.Fatalf("opening backup %s changed it", o.path)
	}
	r.counts["backups"]++
}

// A process that appends, saves and copies its store all the time is killed at
// random moments. Each time the store opens at a state that holds what was
// acknowledged, every backup that has its name is whole, and in the end the store
// is what it would be without kills.
func TestKillSaved(t *testing.T) {
	crashChild(t, saveFrom)
	mem, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	ref := &savedReference{
		reference: &reference{t, mem, newStream()}, digests: map[uint64]triegs.Digest{},
		epochs: map[triegs.Epoch]uint64{}, seen: map[string]bool{}, counts: map[string]int{},
	}
	acks := &acknowledged{queries: map[string]bool{}}
	dir := filepath.Join(t.TempDir(), "store")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 8)) // moments, not inputs
	start, n := time.Now(), kills(t)
	for i := range n + 1 {
		stop := uint64(0)
		if i == n {
			stop = acks.offset + 100
		}
		v := killAfter(t, t.Name(), dir, stop, rng, 1500)
		acks.read(t, v.lines)
		ref.note(v.lines)
		most := ref.checkBackups(dir)
		ref.opened(dir, acks, churnOptions(rng))
		if most > acks.offset {
			t.Fatalf("a backup stands at %d, the store at %d", most, acks.offset)
		}
		if i%25 == 24 {
			t.Logf("%d kills in %s, %d events", i+1, time.Since(start).Round(time.Second), acks.offset)
		}
	}
	w := newWorld(t, filepath.Join(t.TempDir(), "quiet"), &triegs.Options{Durability: triegs.SyncNone})
	for s := newStream(); s.next < acks.offset; {
		from := s.next
		b := batch(s.take(min(97, int(acks.offset-s.next))), int(s.next))
		b.Source, b.Offset = "s", from
		w.append(b)
	}
	if got, want := digestOf(t, w.db), ref.digest(acks.offset); got != want {
		t.Errorf("without kills the digest is %v, with them %v", got, want)
	}
	if n >= 30 && (ref.counts["from a checkpoint"] == 0 || ref.counts["backups"] == 0) {
		t.Errorf("the kills met too little: %v", ref.counts)
	}
	t.Logf("%d kills in %s over %d events and %d epochs: %v", n, time.Since(start).Round(time.Millisecond), acks.offset, acks.epoch, ref.counts)
}

// opened opens the store after a kill and checks it.
func (r *savedReference) opened(dir string, acks *acknowledged, o *triegs.Options) {
	r.Helper()
	db, err := triegs.Open(dir, o)
	if err != nil {
		r.Fatalf("after %d acknowledged events: %v", acks.offset, err)
	}
	r.check(db, acks)
	rep := db.Recovery()
	at, _ := db.Offset("s")
	for what, is := range map[string]bool{
		"from a checkpoint": rep.Checkpoint > 0, "with a log behind it": rep.Checkpoint > 0 && rep.Epochs > 0,
		"torn": rep.CutBytes > 0, "ahead of the acknowledged": at > acks.offset,
	} {
		if is {
			r.counts[what]++
		}
	}
	acks.offset = at
	// What was killed does not block what comes.
	if err := db.Checkpoint(context.Background()); err != nil {
		r.Fatal(err)
	}
	if err := db.Close(); err != nil {
		r.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(names) > 0 {
		for _, name := range names {
			if left, _ := os.ReadDir(name); len(left) > 0 {
				r.Fatalf("%s holds %d files after a checkpoint", name, len(left))
			}
		}
	}
}
