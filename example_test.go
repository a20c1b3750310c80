package triegs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// A store in memory, a registered query, a batch of edges and its answers. Two
// equal edges count twice.
func Example() {
	if err := liked(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: "tweet1" "tweet2" "Mia" 2
}

func liked(ctx context.Context) error {
	db, err := triegs.Open("", nil) // A directory would make it durable.
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Register(ctx, "liked", `liked(x, y, w) :- hasReply(x, y), likedBy(y, w).`); err != nil {
		return err
	}
	s := triegs.String
	_, err = db.Append(ctx, triegs.Batch{Events: []triegs.Event{
		triegs.Edge("hasReply", s("tweet1"), s("tweet2")),
		triegs.Edge("hasReply", s("tweet1"), s("tweet2")),
		triegs.Edge("likedBy", s("tweet2"), s("Mia")),
	}})
	if err != nil {
		return err
	}
	snap, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for row, err := range snap.Answers("liked") {
		if err != nil {
			return err
		}
		fmt.Println(row.Term(0), row.Term(1), row.Term(2), row.Multiplicity())
	}
	return nil
}

// A window sees the payments of the last ten minutes. Time is that of the batches
// here; where they have none it is the clock, and old payments leave by themselves.
func Example_window() {
	if err := bursts(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 12:05 Bob got 2 from Ann
	// 12:12 Bob got 1 from Ann
	// 12:20 nothing
}

func bursts(ctx context.Context) error {
	db, err := triegs.Open("", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Register(ctx, "paid", "paid(who, whom) :- pay(who, whom) window 10m"); err != nil {
		return err
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pay := triegs.Edge("pay", triegs.String("Ann"), triegs.String("Bob"))
	for _, minute := range []int{0, 5} {
		at := noon.Add(time.Duration(minute) * time.Minute)
		if _, err := db.Append(ctx, triegs.Batch{Events: []triegs.Event{pay}, Time: at}); err != nil {
			return err
		}
	}
	for _, minute := range []int{5, 12, 20} {
		now := noon.Add(time.Duration(minute) * time.Minute)
		if _, err := db.Advance(ctx, now); err != nil {
			return err
		}
		snap, err := db.Snapshot()
		if err != nil {
			return err
		}
		defer snap.Close()
		switch row, err := snap.Lookup("paid", triegs.String("Ann"), triegs.String("Bob")); {
		case errors.Is(err, triegs.ErrNoAnswer):
			fmt.Println(now.Format("15:04"), "nothing")
		case err != nil:
			return err
		default:
			fmt.Println(now.Format("15:04"), "Bob got", row.Multiplicity(), "from Ann")
		}
	}
	return nil
}

// Numbers, sums and averages of minutes by caller, and the shortest way over two
// roads.
func Example_aggregates() {
	if err := aggregates(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 2 42 21 5
}

func aggregates(ctx context.Context) error {
	db, err := triegs.Open("", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Register(ctx, "talks", `talks(x, count(), sum(m), avg(m)) :- calls(x, _, m).`); err != nil {
		return err
	}
	if _, err := db.Register(ctx, "way", `way(x, z) :- road(x, y)@, road(y, z)@ semiring minplus.`); err != nil {
		return err
	}
	s := triegs.String
	_, err = db.Append(ctx, triegs.Batch{Events: []triegs.Event{
		{Relation: "calls", Tuple: []triegs.Term{s("Ann"), s("Bob"), triegs.Int(12)}},
		{Relation: "calls", Tuple: []triegs.Term{s("Ann"), s("Cem"), triegs.Int(30)}},
		{Relation: "road", Tuple: []triegs.Term{s("A"), s("B")}, Value: triegs.Int(4)},
		{Relation: "road", Tuple: []triegs.Term{s("B"), s("C")}, Value: triegs.Int(1)},
		{Relation: "road", Tuple: []triegs.Term{s("A"), s("D")}, Value: triegs.Int(2)},
		{Relation: "road", Tuple: []triegs.Term{s("D"), s("C")}, Value: triegs.Int(5)},
	}})
	if err != nil {
		return err
	}
	snap, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	ann, err := snap.Lookup("talks", s("Ann"))
	if err != nil {
		return err
	}
	way, err := snap.Lookup("way", s("A"), s("C"))
	if err != nil {
		return err
	}
	fmt.Println(ann.Value(0), ann.Value(1), ann.Value(2), way.Value(0))
	return nil
}

// A store on disk is backed up while it goes on, and another store is made of
// the backup. It knows how far its sources were, so a replay adds only what came
// after the backup.
func ExampleDB_Backup() {
	home, err := os.MkdirTemp("", "triegs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	if err := backUpAndRestore(context.Background(), home); err != nil {
		fmt.Println(err)
	}
	// Output:
	// backed up at epoch 1
	// restored at epoch 1, the source goes on at 2
	// after the replay at epoch 2 with 3 facts
}

func backUpAndRestore(ctx context.Context, home string) error {
	store, backup, restored := filepath.Join(home, "store"), filepath.Join(home, "backup"), filepath.Join(home, "restored")
	s := triegs.String
	events := []triegs.Event{
		triegs.Edge("pays", s("Ann"), s("Bob")),
		triegs.Edge("pays", s("Bob"), s("Cem")),
		triegs.Edge("pays", s("Cem"), s("Ann")),
	}

	db, err := triegs.Open(store, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Append(ctx, triegs.Batch{Source: "bank", Events: events[:2]}); err != nil {
		return err
	}
	if err := db.Backup(ctx, backup); err != nil {
		return err
	}
	fmt.Println("backed up at epoch", db.Metrics().Checkpoints.Epoch)
	// What comes now is not in the backup, until Backup brings it up to date.
	if _, err := db.Append(ctx, triegs.Batch{Source: "bank", Offset: 2, Events: events[2:]}); err != nil {
		return err
	}

	if err := triegs.Restore(ctx, backup, restored); err != nil {
		return err
	}
	again, err := triegs.Open(restored, nil)
	if err != nil {
		return err
	}
	defer again.Close()
	next, _ := again.Offset("bank")
	fmt.Printf("restored at epoch %d, the source goes on at %d\n", again.Recovery().Checkpoint, next)
	epoch, err := again.Append(ctx, triegs.Batch{Source: "bank", Events: events})
	if err != nil {
		return err
	}
	fmt.Printf("after the replay at epoch %d with %d facts\n", epoch, again.Metrics().Facts)
	return nil
}

// A consumer with a name goes on behind what it has acknowledged, also after a
// restart.
func ExampleSubscription_Ack() {
	dir, err := os.MkdirTemp("", "triegs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 { // as two processes, one after the other
		if err := consume(dir); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// +a
	// +b
	// +b
	// +c
}

// consume acknowledges the first update that it gets.
func consume(dir string) error {
	ctx := context.Background()
	db, err := triegs.Open(dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	names := []string{"c"}
	if _, err := db.Query("seen"); err != nil {
		if _, err := db.Register(ctx, "seen", "seen(x) :- node(x)."); err != nil {
			return err
		}
		names = []string{"a", "b"}
	}
	sub, err := db.Subscribe(ctx, "seen", triegs.SubscribeOptions{Name: "mirror", PerEpoch: true})
	if err != nil {
		return err
	}
	defer sub.Close()
	var last triegs.Epoch
	for _, name := range names {
		last, err = db.Append(ctx, triegs.Batch{Events: []triegs.Event{{Relation: "node", Tuple: []triegs.Term{triegs.String(name)}}}})
		if err != nil {
			return err
		}
	}
	acknowledged := false
	for u, err := range sub.Updates() {
		if err != nil {
			return err
		}
		for c, err := range u.Changes() {
			if err != nil {
				return err
			}
			fmt.Printf("+%s\n", c.Row.Term(0).Lexical())
		}
		if !acknowledged {
			if err := sub.Ack(u.Epoch); err != nil {
				return err
			}
			acknowledged = true
		}
		if u.Epoch == last {
			break
		}
	}
	return nil
}

// A consumer that is told what each epoch changes, and says how far it has come.
func Example_subscription() {
	if err := follow(); err != nil {
		fmt.Println(err)
	}
	// Output: "tweet1" "tweet2" "Mia" 0 1
}

func follow() error {
	ctx := context.Background()
	db, err := triegs.Open("", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Register(ctx, "liked", `liked(x, y, w) :- hasReply(x, y), likedBy(y, w).`); err != nil {
		return err
	}
	s := triegs.String
	sub, err := db.Subscribe(ctx, "liked", triegs.SubscribeOptions{Name: "mirror", PerEpoch: true})
	if err != nil {
		return err
	}
	defer sub.Close()
	last, err := db.Append(ctx, triegs.Batch{Events: []triegs.Event{
		triegs.Edge("hasReply", s("tweet1"), s("tweet2")),
		triegs.Edge("likedBy", s("tweet2"), s("Mia")),
	}})
	if err != nil {
		return err
	}
	for u, err := range sub.Updates() {
		if err != nil {
			return err
		}
		for c, err := range u.Changes() {
			if err != nil {
				return err
			}
			fmt.Println(c.Row.Term(0), c.Row.Term(1), c.Row.Term(2), c.Old, c.New)
		}
		if err := sub.Ack(u.Epoch); err != nil {
			return err
		}
		if u.Epoch == last {
			break
		}
	}
	return nil
}

// TestReadmeExample holds the programs of the README against the examples above,
// line by line.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	programs := strings.Split(string(readme), "```go\n")[1:]
	for _, p := range programs {
		program, _, ok := strings.Cut(p, "```")
		indented := "\t" + strings.ReplaceAll(strings.TrimSuffix(program, "\n"), "\n", "\n\t")
		if !ok || !strings.Contains(string(source), indented) {
			t.Errorf("no example is the README's program:\n%s", program)
		}
	}
	if len(programs) != 3 {
		t.Errorf("the README has %d programs", len(programs))
	}
}
