package fuzz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// watched is the query that the subscriber of the kill test follows, which nobody
// drops.
const watched = "watched"

// sink is what a subscriber has made of its updates. It is kept in a file that is
// replaced by each of them, so that the answers and the position are of one moment.
type sink struct {
	path    string
	Token   string
	Answers map[string]int64

	at      triegs.Token // of the text
	repeats int          // updates that it had before
}

func openSink(path string) (*sink, error) {
	k := &sink{path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(b, k)
	}
	if err == nil {
		k.at, err = triegs.ParseToken(k.Token)
	}
	return k, err
}

// take folds an update in. One that it had before its process was killed is passed
// over; anything else must be the next epoch.
func (k *sink) take(u *triegs.Update) error {
	switch {
	case u.Whole:
		k.Answers = map[string]int64{}
	case u.Epoch != u.From+1:
		return fmt.Errorf("epochs %d to %d come as one", u.From+1, u.Epoch)
	case u.Epoch <= k.at.Epoch():
		k.repeats++
		return nil
	case u.From != k.at.Epoch():
		return fmt.Errorf("epoch %d comes behind %d", u.Epoch, k.at.Epoch())
	}
	for c, err := range u.Changes() {
		if err != nil {
			return err
		}
		name := key(c.Row)
		if k.Answers[name] != c.Old {
			return fmt.Errorf("epoch %d: %q was %d, the change says %d", u.Epoch, name, k.Answers[name], c.Old)
		}
		if k.Answers[name] = c.New; c.New == 0 {
			delete(k.Answers, name)
		}
	}
	k.at, k.Token = u.Token, u.Token.String()
	b, err := json.Marshal(k)
	if err == nil {
		err = os.WriteFile(k.path+".next", b, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(k.path+".next", k.path)
}

// drain takes updates until the subscription ends, or epoch last was told, and
// acknowledges some of them.
func (k *sink) drain(s *triegs.Subscription, last triegs.Epoch, rng *rand.Rand) error {
	for u, err := range s.Updates() {
		if err == nil {
			err = k.take(u)
		}
		if err == nil && rng.IntN(4) == 0 {
			err = s.Ack(u.Epoch)
		}
		if errors.Is(err, triegs.ErrSnapshotClosed) {
			return nil // the end of the process
		}
		if err != nil {
			return fmt.Errorf("the sink at epoch %d: %w", k.at.Epoch(), err)
		}
		if u.Epoch >= last {
			return nil
		}
	}
	return nil
}

// follow begins, or goes on, to follow the query.
func follow(ctx context.Context, db *triegs.DB) (*triegs.Subscription, error) {
	if _, err := db.Query(watched); errors.Is(err, triegs.ErrNoSuchQuery) {
		if _, err := db.Register(ctx, watched, "watched(x, y, z) :- R(x, y), S(y, z)."); err != nil {
			return nil, err
		}
	}
	return db.Subscribe(ctx, watched, triegs.SubscribeOptions{Name: "sink", Mode: triegs.SnapshotFirst, PerEpoch: true})
}

// sinkPath is beside the store.
func sinkPath(dir string) string { return dir + "-sink" }

// watchFrom is the child of TestKillSubscriber: it does what appendFrom does, while
// a subscriber takes in what changes, and acknowledges.
func watchFrom(dir string, stop uint64, rng *rand.Rand, r reporter) error {
	ctx := context.Background()
	db, err := triegs.Open(dir, churnOptions(rng))
	if err != nil {
		return err
	}
	s, err := follow(ctx, db)
	if err != nil {
		return err
	}
	k, err := openSink(sinkPath(dir))
	if err != nil {
		return err
	}
	mine, done := rand.New(rand.NewPCG(rng.Uint64(), 3)), make(chan struct{})
	go func() {
		defer close(done)
		if err := k.drain(s, 1<<62, mine); err != nil { // the other goroutine may be far from its end
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	err = feedFrom(ctx, db, stop, rng, func() error {
		if rng.IntN(60) == 0 {
			return db.Checkpoint(ctx)
		}
		return nil
	}, r)
	_ = s.Close() // always nil
	<-done
	return errors.Join(err, db.Close())
}

// A process with a subscriber that has a name is killed at random moments. Each time
// the subscriber goes on behind what it had acknowledged, and what it has written
// down has every epoch once: in the end it is the answer.
func TestKillSubscriber(t *testing.T) {
	crashChild(t, watchFrom)
	n := scaled(10, 5)
	if os.Getenv(killsVar) != "" {
		n = kills(t)
	}
	mem, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	ref := &reference{t, mem, newStream()}
	acks := &acknowledged{queries: map[string]bool{}}
	dir := filepath.Join(t.TempDir(), "store")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 9)) // moments, not inputs
	start, met := time.Now(), map[string]int{}
	for i := range n + 1 {
		stop := uint64(0)
		if i == n {
			stop = acks.offset + 100
		}
		v := killAfter(t, t.Name(), dir, stop, rng, 400)
		acks.read(t, v.lines)
		db, err := triegs.Open(dir, churnOptions(rng))
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		ref.check(db, acks)
		acks.offset, _ = db.Offset("s")
		if db.Recovery().Passed > 0 {
			met["from before a checkpoint"]++
		}
		checkSink(t, db, dir, rng, met)
		acks.epoch = db.Metrics().Epoch
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills in %s, %d events, %d epochs: %v", n, time.Since(start).Round(time.Millisecond), acks.offset, acks.epoch, met)
}

// checkSink goes on with what a killed subscriber has left, up to the last epoch.
func checkSink(t *testing.T, db *triegs.DB, dir string, rng *rand.Rand, met map[string]int) {
	t.Helper()
	before := db.Subscribers()
	s, err := follow(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k, err := openSink(sinkPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Token().IsZero() { // else the whole answer comes again
		if len(before) != 1 || before[0].Epoch != s.Token().Epoch() || before[0].Epoch > k.at.Epoch() {
			t.Fatalf("%+v, it goes on at %d, the sink is at %d", before, s.Token().Epoch(), k.at.Epoch())
		}
		met["resumed"]++
		if k.at.Epoch() > before[0].Epoch {
			met["with more than was acknowledged"]++
		}
	}
	last := db.Metrics().Epoch
	if s.Token().IsZero() || s.Token().Epoch() < last {
		met["missed epochs"] += int(last - k.at.Epoch())
		if err := k.drain(s, last, rng); err != nil {
			t.Fatal(err)
		}
	}
	met["repeats"] += k.repeats
	snapshot, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	want, err := gather(snapshot.Answers(watched))
	if err != nil {
		t.Fatal(err)
	}
	if k.at.Epoch() != last || fmt.Sprint(k.Answers) != fmt.Sprint(want) {
		t.Fatalf("at epoch %d of %d the sink has %v, want %v", k.at.Epoch(), last, k.Answers, want)
	}
}
