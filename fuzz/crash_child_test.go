package fuzz

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
)

// killsVar sets how many times the kill tests kill.
const killsVar = "TRIEGS_KILLS"

// crashVar makes the test binary play the process that is killed; its value is
// the directory of the store. The variables that begin with it tell the rest.
const crashVar = "TRIEGS_TEST_CRASH"

// stream is the input of the kill tests: event n of it is always the same, so
// that parent and child need to agree on an offset only. Every retraction finds
// what it retracts.
type stream struct {
	rng  *rand.Rand
	live oracle.Store // after the events so far
	next uint64       // offset of the next event
}

func newStream() *stream { return &stream{rng: rand.New(rand.NewPCG(7, 7))} }

// streamMost bounds the live contributions, so that the oracle stays quick.
const streamMost = 48

// event gives the next event.
func (s *stream) event() oracle.Event {
	e := s.choose()
	if _, err := s.live.Apply([]oracle.Event{e}, false); err != nil {
		panic(fmt.Sprintf("event %d of the stream: %v", s.next, err))
	}
	s.next++
	return e
}

// huge tells the events that bring a long term.
func huge(n uint64) bool { return n%hugeEvery == hugeEvery-1 }

const hugeEvery = 400

func (s *stream) choose() oracle.Event {
	live := s.live.Live()
	switch {
	case huge(s.next):
	case len(live) > streamMost, len(live) > 8 && s.rng.IntN(5) < 2:
		return s.retraction(live[s.rng.IntN(len(live))])
	case len(live) > 0 && s.rng.IntN(4) == 0: // a fact that is there, again
		e := live[s.rng.IntN(len(live))]
		e.Time = int64(s.next)
		if s.rng.IntN(2) == 0 {
			e.ID = "" // else a refresh, if it has an ID
		}
		return e
	}
	e := oracle.Event{Relation: []string{"R", "S", "T"}[s.rng.IntN(3)], Time: int64(s.next)}
	for range 2 {
		e.Tuple = append(e.Tuple, s.node())
	}
	if huge(s.next) {
		// A record that takes a while to write, so that a kill can tear it.
		e.Tuple[0] = `"` + strings.Repeat(fmt.Sprintf("%15d.", s.next), 1<<15) + `"`
	}
	if s.rng.IntN(3) == 0 {
		e.ID = fmt.Sprintf("id%d", s.next)
	}
	if s.rng.IntN(3) == 0 {
		e.Value = triegs.Int(int64(s.rng.IntN(3))).String()
	}
	return e
}

// node is one of a few, or now and then one that never was.
func (s *stream) node() string {
	if s.rng.IntN(20) == 0 {
		return fmt.Sprintf(`"new %d"`, s.next)
	}
	return triegs.Int(int64(s.rng.IntN(7))).String()
}

// retraction retracts like the given contribution: by its ID, its fact, or its
// fact and value.
func (s *stream) retraction(e oracle.Event) oracle.Event {
	out := oracle.Event{Delete: true, Relation: e.Relation, Tuple: e.Tuple}
	switch {
	case e.ID != "" && s.rng.IntN(2) == 0:
		out.ID = e.ID
		if s.rng.IntN(2) == 0 {
			out.Relation, out.Tuple = "", nil
		}
	case e.Value != "" && s.rng.IntN(2) == 0:
		out.Value = e.Value
	}
	return out
}

// take gives the next n events.
func (s *stream) take(n int) (out []oracle.Event) {
	for range n {
		out = append(out, s.event())
	}
	return out
}

// crashQueries are the queries that come and go while the child is killed.
var crashQueries = []string{
	"q0(x, y, z) :- R(x, y), S(y, z).",
	"q1(x, y, z) :- R(x, y), R(y, z).",
	"q2(a, b, c, d) :- R(a, b), S(b, c), T(b, d).",
	"q3(x, y, z) :- R(x, y), T(x, z) distinct.",
	"q4(x, y, z) :- S(x, y), T(y, z) set.",
}

// reporter tells the parent one line of what was acknowledged or is tried.
type reporter struct{ pipe *os.File }

func (r reporter) say(format string, args ...any) {
	if _, err := fmt.Fprintf(r.pipe, format+"\n", args...); err != nil {
		os.Exit(3) // nobody listens any more
	}
}

// crashChild runs f in the role of the child if this process has it, and never
// returns then.
func crashChild(t *testing.T, f func(dir string, stop uint64, rng *rand.Rand, r reporter) error) {
	dir := os.Getenv(crashVar)
	if dir == "" {
		return
	}
	seed, _ := strconv.ParseUint(os.Getenv(crashVar+"_SEED"), 10, 64)
	stop, _ := strconv.ParseUint(os.Getenv(crashVar+"_STOP"), 10, 64)
	r := reporter{os.NewFile(3, "report")}
	if err := f(dir, stop, rand.New(rand.NewPCG(seed, 1)), r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r.say("done")
	os.Exit(0)
}

// victim is a child process that was started and its end.
type victim struct {
	lines  []string // whole lines that it has said
	killed bool     // false if it came to its end before
}

// kill starts the test binary as the child of the named test and kills it: at a
// random moment after its start, or after a random number of lines. With a stop
// above zero it is left to come to its end.
func kill(t *testing.T, test, dir string, stop uint64, rng *rand.Rand) victim {
	t.Helper()
	return killAfter(t, test, dir, stop, rng, 60)
}

// killAfter is kill with the number of lines that the child may say at most.
func killAfter(t *testing.T, test, dir string, stop uint64, rng *rand.Rand, most int) victim {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.ExtraFiles = []*os.File{to}
	cmd.Env = append(os.Environ(), crashVar+"="+dir,
		fmt.Sprintf("%s_SEED=%d", crashVar, rng.Uint64()), fmt.Sprintf("%s_STOP=%d", crashVar, stop))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err = cmd.Start()
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	var v victim
	timer := time.NewTimer(time.Hour)
	if stop == 0 && rng.IntN(4) == 0 { // also before it says anything
		timer.Reset(time.Duration(rng.IntN(80_000)) * time.Microsecond)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewReader(from); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	most = rng.IntN(most)
	for open := true; open; {
		select {
		case line, ok := <-lines:
			if open = ok; !ok {
				break
			}
			v.lines = append(v.lines, line)
			switch {
			case stop > 0:
			case line == "big" && rng.IntN(2) == 0:
				timer.Reset(time.Duration(rng.IntN(2_000)) * time.Microsecond)
			case len(v.lines) == most+1:
				timer.Reset(time.Duration(rng.IntN(4_000)) * time.Microsecond)
			}
		case <-timer.C:
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			v.killed = true
		}
	}
	err = cmd.Wait()
	done := len(v.lines) > 0 && v.lines[len(v.lines)-1] == "done"
	if done != (err == nil) || !done && !v.killed {
		t.Fatalf("the child ended with %v after %d lines, killed: %v\n%s", err, len(v.lines), v.killed, stderr.String())
	}
	return v
}

// kills is how often to kill.
func kills(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv(killsVar)); err == nil && n > 0 {
		return n
	}
	return scaled(30, 8)
}

// appendFrom is the child of TestKill: it appends the stream from where the
// store is, in single events and batches, with repeats now and then, and lets
// queries come and go.
func appendFrom(dir string, stop uint64, rng *rand.Rand, r reporter) error {
	db, err := triegs.Open(dir, nil)
	if err != nil {
		return err
	}
	return errors.Join(feedFrom(context.Background(), db, stop, rng, func() error { return nil }, r), db.Close())
}

// feedFrom is what appendFrom does with the open store, with something else
// before each step.
func feedFrom(ctx context.Context, db *triegs.DB, stop uint64, rng *rand.Rand, before func() error, r reporter) error {
	s := newStream()
	at, _ := db.Offset("s")
	s.take(int(at))
	var behind []oracle.Event // the last events, to be sent again
	for stop == 0 || s.next < stop {
		if err := before(); err != nil {
			return err
		}
		if rng.IntN(12) == 0 {
			if err := changeQuery(ctx, db, rng, r); err != nil {
				return err
			}
		}
		n := 1
		if rng.IntN(3) == 0 {
			n = 1 + rng.IntN(40)
		}
		if stop > 0 {
			n = min(n, int(stop-s.next))
		}
		from := s.next
		fresh := s.take(n)
		again := behind[rng.IntN(len(behind)+1):]
		b := batch(append(slices.Clone(again), fresh...), int(s.next))
		b.Source, b.Offset = "s", from-uint64(len(again))
		if from/hugeEvery != s.next/hugeEvery {
			r.say("big")
		}
		e, err := db.Append(ctx, b)
		if err != nil {
			return fmt.Errorf("events %d to %d: %w", b.Offset, s.next, err)
		}
		r.say("ack %d %d", e, s.next)
		behind = fresh
		if len(behind) > 5 {
			behind = behind[len(behind)-5:]
		}
	}
	return nil
}

// changeQuery registers a query that is not there, or drops it.
func changeQuery(ctx context.Context, db *triegs.DB, rng *rand.Rand, r reporter) error {
	i := rng.IntN(len(crashQueries))
	name := fmt.Sprintf("q%d", i)
	if _, err := db.Query(name); err == nil {
		r.say("try drop %s", name)
		if err := db.Drop(ctx, name); err != nil {
			return err
		}
		r.say("gone %s", name)
		return nil
	}
	r.say("try register %s", name)
	q, err := db.Register(ctx, name, crashQueries[i])
	if err != nil {
		return err
	}
	r.say("there %s %d", name, q.Epoch())
	return nil
}

// acknowledged is what a child was told, summed over its lines.
type acknowledged struct {
	epoch   triegs.Epoch
	offset  uint64
	queries map[string]bool // by name: whether it must be there
	open    string          // the query of which it was not told the outcome
}

func (a *acknowledged) read(t *testing.T, lines []string) {
	t.Helper()
	a.open = ""
	for _, line := range lines {
		f := strings.Fields(line)
		switch f[0] {
		case "ack":
			e, _ := strconv.ParseUint(f[1], 10, 64)
			a.epoch = triegs.Epoch(e)
			a.offset, _ = strconv.ParseUint(f[2], 10, 64)
		case "try":
			a.open = f[2]
		case "there", "gone":
			a.queries[f[1]], a.open = f[0] == "there", ""
		case "done", "big", "note":
		default:
			t.Fatalf("the child said %q", line)
		}
	}
}

// reference is what the store must be: an in-memory store and the brute-force
// model, both after the events up to an offset.
type reference struct {
	*testing.T
	db     *triegs.DB
	stream *stream
}

// digest gives the content digest after the events below an offset, which never
// goes back.
func (r *reference) digest(offset uint64) triegs.Digest {
	r.Helper()
	if n := int(offset - r.stream.next); n > 0 {
		if _, err := r.db.Append(context.Background(), batch(r.stream.take(n), int(offset))); err != nil {
			r.Fatal(err)
		}
	}
	return digestOf(r.T, r.db)
}

func digestOf(t *testing.T, db *triegs.DB) triegs.Digest {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// check compares an opened store with the model, and with what was
// acknowledged.
func (r *reference) check(db *triegs.DB, a *acknowledged) {
	r.Helper()
	at, ok := db.Offset("s")
	s, err := db.Snapshot()
	if err != nil {
		r.Fatal(err)
	}
	defer s.Close()
	switch {
	case a.offset > 0 && !ok, at < a.offset:
		r.Fatalf("offset %d (known: %v), but %d was acknowledged", at, ok, a.offset)
	case at > a.offset+40:
		r.Fatalf("offset %d is more than a batch ahead of the acknowledged %d", at, a.offset)
	case s.Epoch() < a.epoch:
		r.Fatalf("epoch %d, but %d was acknowledged", s.Epoch(), a.epoch)
	case db.Recovery().Checkpoint+triegs.Epoch(db.Recovery().Epochs) != s.Epoch():
		r.Fatalf("epoch %d after a checkpoint of %d and the replay of %d", s.Epoch(), db.Recovery().Checkpoint, db.Recovery().Epochs)
	}
	if got, want := digestOf(r.T, db), r.digest(at); got != want {
		r.Fatalf("digest %v at offset %d, want %v", got, at, want)
	}
	for i, text := range crashQueries {
		name := fmt.Sprintf("q%d", i)
		_, err := db.Query(name)
		if there := err == nil; name == a.open {
			a.queries[name] = there // either is right; from now on it counts
		} else if there != a.queries[name] {
			r.Fatalf("query %s is there: %v, acknowledged: %v (%v)", name, there, a.queries[name], err)
		}
		if err != nil {
			continue
		}
		got, err := gather(s.Answers(name))
		if err != nil {
			r.Fatal(err)
		}
		q := rules(r.T, text)[0]
		if err := differ(got, q.Oracle().Eval(&r.stream.live)); err != nil {
			r.Fatalf("%s at offset %d: %v", text, at, err)
		}
	}
	if err := db.Verify(context.Background()); err != nil {
		r.Fatal(err)
	}
}

// A process that appends from a source is killed at random moments; each time
// the store opens at a state that holds what was acknowledged and is that of its
// offset exactly, and in the end it is what it would be without kills.
func TestKill(t *testing.T) {
	crashChild(t, appendFrom)
	mem, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	ref := &reference{t, mem, newStream()}
	acks := &acknowledged{queries: map[string]bool{}}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 5)) // moments, not inputs
	start, files := time.Now(), int64(0)
	n, silent, ahead, cut := kills(t), 0, 0, 0
	for i := range n + 1 {
		stop := uint64(0)
		if i == n {
			stop = acks.offset + 100
		}
		v := kill(t, t.Name(), dir, stop, rng)
		acks.read(t, v.lines)
		db, err := triegs.Open(dir, nil)
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		ref.check(db, acks)
		at, _ := db.Offset("s")
		if len(v.lines) == 0 {
			silent++
		}
		if at > acks.offset {
			ahead++
		}
		if db.Recovery().CutBytes > 0 {
			cut++
		}
		acks.offset = at
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // the first child also opens what the runtime keeps
			files = descriptors(t)
		}
	}
	settle(t, "descriptors", files, func() int64 { return descriptors(t) })
	// The same events in a store that nobody kills, in batches of another size.
	w := newWorld(t, t.TempDir(), &triegs.Options{Durability: triegs.SyncNone})
	for s := newStream(); s.next < acks.offset; {
		from := s.next
		b := batch(s.take(min(97, int(acks.offset-s.next))), int(s.next))
		b.Source, b.Offset = "s", from
		w.append(b)
	}
	if got, want := digestOf(t, w.db), ref.digest(acks.offset); got != want {
		t.Errorf("without kills the digest is %v, with them %v", got, want)
	}
	t.Logf("%d kills in %s: %d before the first line, %d with an epoch that was durable and not yet told, %d with a torn tail; %d events, %d epochs",
		n, time.Since(start).Round(time.Millisecond), silent, ahead, cut, acks.offset, acks.epoch)
}
