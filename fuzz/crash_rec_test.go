package fuzz

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/triegs/triegs"
)

// stage is what a store says of itself at one epoch.
type stage struct {
	epoch   triegs.Epoch
	answers map[string]int64 // of "q", nil before it is registered
	digest  triegs.Digest
	next    uint64 // of source "s"
	queries int
}

// stageOf reads the newest epoch.
func stageOf(t *testing.T, db *triegs.DB) (s stage) {
	t.Helper()
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	s.epoch = snap.Epoch()
	s.next = snap.Offsets()["s"]
	s.queries = len(db.Queries())
	if s.digest, err = snap.Digest(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Query("q"); err == nil {
		if s.answers, err = gather(snap.Answers("q")); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s stage) String() string {
	return fmt.Sprintf("epoch %d, digest %v, next offset %d, %d queries, %d answers", s.epoch, s.digest, s.next, s.queries, len(s.answers))
}

func (s stage) equal(o stage) bool {
	return s.epoch == o.epoch && s.digest == o.digest && s.next == o.next && s.queries == o.queries && maps.Equal(s.answers, o.answers)
}

// want fails unless the store is at the given stage and right in itself.
func (s stage) want(t *testing.T, what string, db *triegs.DB) {
	t.Helper()
	if got := stageOf(t, db); !got.equal(s) {
		t.Fatalf("%s: the store is at %v, want %v", what, got, s)
	}
	if err := db.Verify(context.Background()); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// recorded is a closed store with the stages that it went through.
type recorded struct {
	dir    string
	stages []stage // by epoch, 0 is the empty store
	pad    int     // length of a term that each epoch brings
}

// recordedBatch has the events of epoch e: an edge or two more, and now and
// then one less, and with a pad a long term beside them.
func recordedBatch(e, pad int) triegs.Batch {
	b := triegs.Batch{Source: "s", Time: time.Unix(int64(e), 0)}
	edge := func(i int) triegs.Event {
		return triegs.Edge("R", triegs.String(fmt.Sprint("n", i)), triegs.Int(int64(i%3)))
	}
	b.Events = []triegs.Event{edge(e), edge(e % 4)}
	if e > 3 {
		gone := edge(e - 1)
		gone.Op = triegs.Delete
		b.Events = append(b.Events, gone)
	}
	if pad > 0 {
		b.Events = append(b.Events, triegs.Event{Relation: "Pad", Tuple: []triegs.Term{triegs.String(fmt.Sprint(e, strings.Repeat("-", pad)))}})
	}
	return b
}

// grow appends epochs until the store is at the given one.
func grow(t *testing.T, db *triegs.DB, to, pad int, seen func(stage)) {
	t.Helper()
	ctx := context.Background()
	for {
		s := stageOf(t, db)
		seen(s)
		switch {
		case int(s.epoch) >= to:
			return
		case s.epoch == 0:
			if _, err := db.Register(ctx, "q", "q(x, y, z) :- R(x, y), R(z, y)."); err != nil {
				t.Fatal(err)
			}
		default:
			b := recordedBatch(int(s.epoch), pad)
			b.Offset = s.next
			if _, err := db.Append(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// newRecorded makes a store of some epochs.
func newRecorded(t *testing.T, epochs, pad int) *recorded {
	t.Helper()
	r := &recorded{dir: filepath.Join(t.TempDir(), "store"), pad: pad}
	opts := &triegs.Options{CheckpointBytes: -1} // all of it stays in the log
	if pad > 0 {
		opts.Durability = triegs.SyncNone
	}
	db, err := triegs.Open(r.dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if !db.Recovery().Created {
		t.Error("a new store is not reported as created")
	}
	grow(t, db, epochs, pad, func(s stage) { r.stages = append(r.stages, s) })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// copy makes a copy of the store and damages it.
func (r *recorded) copy(t *testing.T, damage ...func(dir string)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	for _, d := range damage {
		d(dir)
	}
	return dir
}

// noNote takes the note of what was acknowledged away: after a crash of the
// machine it may be an old one or none.
func noNote(dir string) {
	if err := os.Remove(filepath.Join(dir, "ACKED")); err != nil {
		panic(err)
	}
}

// segments lists the files of the log.
func segments(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "log", "*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("segments of %s: %v, %v", dir, list, err)
	}
	slices.Sort(list)
	return list
}

// rewrite changes a file.
func rewrite(path string, f func(b []byte) []byte) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, f(b), 0o600)
	}
	if err != nil {
		panic(err)
	}
}

// place is where a frame is in the last segment.
type place struct{ start, frame, end int }

// headerBytes are the bytes of a frame before its payload, sumBytes those after
// it; see docs/format/log.md.
const headerBytes, sumBytes = 44, 8

// places finds the frames of a segment.
func places(t *testing.T, path string) (out []place) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(b); {
		n, w := binary.Uvarint(b[at:])
		if w <= 0 || at+w+int(n) > len(b) {
			t.Fatalf("%s, offset %d: not an entry", path, at)
		}
		out = append(out, place{at, at + w, at + w + int(n)})
		at += w + int(n)
	}
	return out
}

// opens opens a damaged copy, checks the stage, appends an epoch, and opens it
// again.
func (r *recorded) opens(t *testing.T, what, dir string, epoch int, cut bool) {
	t.Helper()
	db, err := triegs.Open(dir, logOnly())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	r.stages[epoch].want(t, what, db)
	rep := db.Recovery()
	if (rep.CutBytes > 0) != cut || rep.Created || rep.Epochs != uint64(epoch) {
		t.Errorf("%s: report %+v; want a cut: %v, and %d epochs", what, rep, cut, epoch)
	}
	if cut {
		path := segments(t, dir)
		if filepath.Base(rep.CutFile) != filepath.Base(path[len(path)-1]) {
			t.Errorf("%s: the cut is reported in %s, want %s", what, rep.CutFile, path[len(path)-1])
		}
	}
	var next stage
	grow(t, db, epoch+1, r.pad, func(s stage) { next = s })
	if err := db.Close(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if db, err = triegs.Open(dir, logOnly()); err != nil {
		t.Fatalf("%s, second time: %v", what, err)
	}
	next.want(t, what+", second time", db)
	if rep := db.Recovery(); rep.CutBytes > 0 {
		t.Errorf("%s, second time: %d bytes cut", what, rep.CutBytes)
	}
	if err := db.Close(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// refuses tries to open a damaged copy for writing and for reading. Nothing may
// change, and nothing may stay open.
func (r *recorded) refuses(t *testing.T, what, dir string, want error, words ...string) {
	t.Helper()
	before := fingerprint(t, dir)
	for _, o := range []*triegs.Options{{}, {ReadOnly: true}, {LockWait: -1}} {
		db, err := triegs.Open(dir, o)
		if err == nil {
			at := stageOf(t, db)
			db.Close()
			t.Fatalf("%s: opened at %v, want %v", what, at, want)
		}
		if !errors.Is(err, want) {
			t.Fatalf("%s: got %v, want %v", what, err, want)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %q", what, err, w)
			}
		}
	}
	if after := fingerprint(t, dir); after != before {
		t.Errorf("%s: refused, and the files changed:\n%s\n%s", what, before, after)
	}
}

// fingerprint sums up all files of a directory but the one with the process id.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		b, err := os.ReadFile(path)
		out = append(out, fmt.Sprintf("%s %d %x", d.Name(), len(b), xxhash.Sum64(b)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "; ")
}

// quiet checks at the end of a test that it left no goroutine and no descriptor.
func quiet(t *testing.T) {
	t.Helper()
	goroutines, files := int64(runtime.NumGoroutine()), descriptors(t)
	t.Cleanup(func() {
		settle(t, "goroutines", goroutines, func() int64 { return int64(runtime.NumGoroutine()) })
		settle(t, "descriptors", files, func() int64 { return descriptors(t) })
	})
}

// A log that ends anywhere inside of its last entry opens at the epoch before,
// unless the note says that the entry was acknowledged.
func TestREC01(t *testing.T) {
	r := newRecorded(t, 10, 0)
	quiet(t)
	log := segments(t, r.dir)[0]
	list := places(t, log)
	last := list[len(list)-1]
	step := scaled(1, 17)
	for at := last.start; at <= last.end; at += step {
		cut := func(dir string) {
			if err := os.Truncate(segments(t, dir)[0], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		what := fmt.Sprintf("cut at %d of %d..%d", at, last.start, last.end)
		if at == last.end {
			r.opens(t, what, r.copy(t, noNote), 10, false)
			break
		}
		r.opens(t, what, r.copy(t, noNote, cut), 9, at > last.start)
		if (at-last.start)%8 == 0 {
			r.refuses(t, what+", acknowledged", r.copy(t, cut), triegs.ErrCorrupt)
		}
	}
}

// Zeros behind the log or over its last entry are cut off; in front of it they
// are corruption.
func TestREC02(t *testing.T) {
	r := newRecorded(t, 10, 0)
	quiet(t)
	log := segments(t, r.dir)[0]
	list := places(t, log)
	last := list[len(list)-1]
	zeros := make([]byte, 4096)
	behind := func(dir string) { rewrite(segments(t, dir)[0], func(b []byte) []byte { return append(b, zeros...) }) }
	over := func(dir string) {
		rewrite(segments(t, dir)[0], func(b []byte) []byte { clear(b[last.start:]); return b })
	}
	before := func(dir string) {
		rewrite(segments(t, dir)[0], func(b []byte) []byte { return append(bytes.Clone(zeros), b...) })
	}
	front := func(dir string) { rewrite(segments(t, dir)[0], func(b []byte) []byte { clear(b[:64]); return b }) }
	r.opens(t, "zeros behind", r.copy(t, behind), 10, true)
	r.opens(t, "zeros behind, no note", r.copy(t, noNote, behind), 10, true)
	r.opens(t, "zeros over the last entry, no note", r.copy(t, noNote, over), 9, true)
	r.refuses(t, "zeros over the last entry", r.copy(t, over), triegs.ErrCorrupt, filepath.Base(log), "offset")
	for what, damage := range map[string]func(string){"before": before, "over the front": front} {
		r.refuses(t, "zeros "+what, r.copy(t, damage), triegs.ErrCorrupt, filepath.Base(log), "offset 0")
		r.refuses(t, "zeros "+what+", no note", r.copy(t, noNote, damage), triegs.ErrCorrupt, filepath.Base(log), "offset 0")
	}
}

// A flipped bit is found wherever it is. Only in an entry that nobody was told
// of, with nothing behind it, it is a torn tail.
func TestREC03(t *testing.T) {
	r := newRecorded(t, 10, 0)
	quiet(t)
	log := segments(t, r.dir)[0]
	list := places(t, log)
	flip := func(at int) func(string) {
		return func(dir string) {
			rewrite(segments(t, dir)[0], func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
		}
	}
	last, middle := list[9], list[4]
	for _, at := range []int{last.frame + 2, last.frame + 30, last.frame + headerBytes, last.end - sumBytes - 1, last.end - 1} {
		r.opens(t, fmt.Sprintf("bit of the last entry at %d", at), r.copy(t, noNote, flip(at)), 9, true)
		r.refuses(t, fmt.Sprintf("bit of the last entry at %d, acknowledged", at), r.copy(t, flip(at)), triegs.ErrCorrupt)
	}
	for at := middle.start; at < middle.end; at += scaled(1, 11) {
		damage := []func(string){flip(at)}
		if at%2 == 0 {
			damage = append(damage, noNote)
		}
		r.refuses(t, fmt.Sprintf("bit of entry 5 at %d", at), r.copy(t, damage...), triegs.ErrCorrupt, filepath.Base(log), "entry 5")
	}
	// The other files of the store.
	for at := range 40 {
		store := r.copy(t, func(dir string) {
			rewrite(filepath.Join(dir, "STORE"), func(b []byte) []byte { b[at] ^= 4; return b })
		})
		if db, err := triegs.Open(store, nil); !errors.Is(err, triegs.ErrCorrupt) && !errors.Is(err, triegs.ErrFormat) {
			t.Errorf("bit of STORE at %d: got %v, %v, want a refusal", at, db, err)
		}
		r.opens(t, fmt.Sprintf("bit of ACKED at %d", at), r.copy(t, func(dir string) {
			rewrite(filepath.Join(dir, "ACKED"), func(b []byte) []byte { b[at] ^= 4; return b })
		}), 10, false)
		if testing.Short() && at == 8 {
			break
		}
	}
}

// An entry whose checksum is right and whose record is not what was applied is
// found by replaying it.
func TestForgedEntries(t *testing.T) {
	r := newRecorded(t, 10, 0)
	quiet(t)
	list := places(t, segments(t, r.dir)[0])
	middle := list[4]
	payload := middle.frame + headerBytes
	end := middle.end - sumBytes
	forge := func(at int, by byte) func(string) {
		return func(dir string) {
			rewrite(segments(t, dir)[0], func(b []byte) []byte {
				b[at] ^= by
				binary.LittleEndian.PutUint64(b[end:], xxhash.Sum64(b[middle.frame:end]))
				return b
			})
		}
	}
	refused := 0
	for at := payload; at < end; at++ {
		for _, by := range []byte{1, 2, 0x40, 0x80} {
			dir := r.copy(t, forge(at, by))
			db, err := triegs.Open(dir, nil)
			if err == nil {
				// What no digest covers, a time, an ID or a position, may differ;
				// the content may not.
				if got := stageOf(t, db); got.digest != r.stages[10].digest {
					t.Errorf("byte %d of the record ^ %#x: digest %v, want %v", at-payload, by, got.digest, r.stages[10].digest)
				}
				if err := errors.Join(db.Verify(context.Background()), db.Close()); err != nil {
					t.Errorf("byte %d of the record ^ %#x: %v", at-payload, by, err)
				}
				continue
			}
			refused++
			if !errors.Is(err, triegs.ErrCorrupt) {
				t.Errorf("byte %d of the record ^ %#x: got %v, want ErrCorrupt", at-payload, by, err)
			}
		}
		if testing.Short() {
			at += 6
		}
	}
	t.Logf("%d forged records refused", refused)
	if refused == 0 {
		t.Error("no forged record was refused")
	}
}

// Missing, empty and swapped segments.
func TestREC04REC05(t *testing.T) {
	r := newRecorded(t, 20, 800_000)
	quiet(t)
	log := segments(t, r.dir)
	if len(log) < 3 {
		t.Fatalf("the log has %d segments, the test needs 3", len(log))
	}
	name := func(i int) string { return filepath.Base(log[i]) }
	at := func(dir string, i int) string { return filepath.Join(dir, "log", name(i)) }
	end := len(log) - 1
	t.Run("a segment in the middle", func(t *testing.T) {
		remove := func(i int) func(string) {
			return func(dir string) {
				if err := os.Remove(at(dir, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range end {
			r.refuses(t, "missing "+name(i), r.copy(t, remove(i), noNote), triegs.ErrCorrupt)
		}
		r.refuses(t, "missing "+name(1), r.copy(t, remove(1)), triegs.ErrCorrupt, "entry")
		empty := func(dir string) { rewrite(at(dir, 1), func([]byte) []byte { return nil }) }
		r.refuses(t, "empty "+name(1), r.copy(t, empty, noNote), triegs.ErrCorrupt, "missing")
		swap := func(dir string) {
			for _, step := range [][2]string{{at(dir, 1), "x"}, {at(dir, 0), at(dir, 1)}, {"x", at(dir, 0)}} {
				for i := range step {
					if step[i] == "x" {
						step[i] = filepath.Join(dir, "x")
					}
				}
				if err := os.Rename(step[0], step[1]); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.refuses(t, "swapped", r.copy(t, swap, noNote), triegs.ErrCorrupt)
	})
	t.Run("the last segment", func(t *testing.T) {
		first, err := strconv.Atoi(strings.TrimLeft(name(end), "0"))
		if err != nil {
			t.Fatal(err)
		}
		gone := func(dir string) {
			if err := os.Remove(at(dir, end)); err != nil {
				t.Fatal(err)
			}
		}
		empty := func(dir string) { rewrite(at(dir, end), func([]byte) []byte { return nil }) }
		for what, damage := range map[string]func(string){"gone": gone, "empty": empty} {
			r.refuses(t, what+", acknowledged", r.copy(t, damage), triegs.ErrCorrupt, "acknowledged")
			r.opens(t, what+", no note", r.copy(t, damage, noNote), first-1, false)
		}
	})
}

// After any number of openings, with or without new epochs, the next epoch has
// the next number.
func TestREC08(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newWorld(t, dir, nil)
	for want := range triegs.Epoch(12) {
		if got := w.epoch(); got != want {
			t.Fatalf("epoch %d, want %d", got, want)
		}
		switch {
		case want == 5:
			w.register("q", "q(x, y) :- R(x, y).")
		default:
			w.do("+R(a,b)")
		}
		for range 1 + want%3 {
			w.reopen(dir, nil)
			if got := w.db.Recovery(); got.Epochs != uint64(want+1) || got.Created {
				t.Fatalf("report %+v, want %d epochs", got, want+1)
			}
		}
	}
	w.want("q", "(a,b):11")
}

// openLoop is the child of TestREC06: it repairs and closes, over and over.
func openLoop(dir string, _ uint64, _ *rand.Rand, r reporter) error {
	for {
		r.say("opening")
		db, err := triegs.Open(dir, nil)
		if err != nil {
			return err
		}
		r.say("opened")
		if err := db.Close(); err != nil {
			return err
		}
	}
}

// A recovery that is killed does not spoil the next one.
func TestREC06(t *testing.T) {
	crashChild(t, openLoop)
	r := newRecorded(t, 10, 0)
	list := places(t, segments(t, r.dir)[0])
	last := list[9]
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 6)) // moments, not inputs
	for range scaled(10, 3) {
		at := last.start + 1 + rng.IntN(last.end-last.start-1)
		torn := r.copy(t, noNote, func(dir string) {
			if err := os.Truncate(segments(t, dir)[0], int64(at)); err != nil {
				t.Fatal(err)
			}
		})
		for range 1 + rng.IntN(5) {
			kill(t, t.Name(), torn, 0, rng)
		}
		db, err := triegs.Open(torn, nil)
		if err != nil {
			t.Fatalf("torn at %d: %v", at, err)
		}
		r.stages[9].want(t, fmt.Sprintf("torn at %d", at), db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A log of another store, or without its store, is not replayed.
func TestREC11(t *testing.T) {
	r, other := newRecorded(t, 10, 0), newRecorded(t, 7, 0)
	quiet(t)
	remove := func(names ...string) func(string) {
		return func(dir string) {
			for _, n := range names {
				if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	bring := func(name string) func(string) {
		return func(dir string) {
			if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(other.dir, name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := func(name string) func(string) {
		return func(dir string) {
			b, err := os.ReadFile(filepath.Join(other.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			rewrite(filepath.Join(dir, name), func([]byte) []byte { return b })
		}
	}
	r.refuses(t, "another log", r.copy(t, remove("log"), bring("log"), noNote), triegs.ErrFormat, "another store")
	r.refuses(t, "another note", r.copy(t, file("ACKED")), triegs.ErrFormat, "another store")
	r.refuses(t, "another identity", r.copy(t, file("STORE"), noNote), triegs.ErrFormat, "another store")
	for _, gone := range [][]string{{"STORE"}, {"STORE", "ACKED"}, {"STORE", "ACKED", "LOCK"}} {
		r.refuses(t, fmt.Sprintf("without %v", gone), r.copy(t, remove(gone...)), triegs.ErrFormat)
	}
	// The log alone gone, while the note says that there was one.
	r.refuses(t, "no log", r.copy(t, remove("log")), triegs.ErrCorrupt)
	// A last entry of another store behind the own ones.
	tail := places(t, segments(t, other.dir)[0])[6]
	b, err := os.ReadFile(segments(t, other.dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	r.refuses(t, "another store's entry", r.copy(t, func(dir string) {
		rewrite(segments(t, dir)[0], func(own []byte) []byte { return append(own, b[tail.start:tail.end]...) })
	}), triegs.ErrFormat, "another store")
}
