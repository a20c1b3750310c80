package summary_test

import (
	"context"
	"fmt"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/summary"
)

// What passes through each account within an hour, from the oldest payment of a pair
// on, although the query itself has no window.
func Example() {
	if err := flows(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 09:20 "Bob": nothing > 1 pairs, 40 at most
	// 09:40 "Bob": 1 pairs, 40 at most > 2 pairs, 70 at most
	// 10:05 "Bob": 2 pairs, 70 at most > 1 pairs, 40 at most
	// 10:30 "Bob": 1 pairs, 40 at most > nothing
}

func flows(ctx context.Context) error {
	db, err := triegs.Open("", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	q, err := db.Register(ctx, "flow", `flow(x, y, z, b, s, t) :- pays(x, y, a, s), pays(y, z, b, t).`)
	if err != nil {
		return err
	}
	sub, err := db.Subscribe(ctx, "flow", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst})
	if err != nil {
		return err
	}
	defer sub.Close()
	passing, err := summary.New(q, summary.Options{
		GroupBy:    []string{"y"},
		Aggregates: []summary.Aggregate{summary.Count(), summary.Max("b")},
		Times:      []string{"s", "t"},
		Range:      time.Hour,
	})
	if err != nil {
		return err
	}

	if err := tell(sub, passing); err != nil { // the whole answer, of which there is none
		return err
	}
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	pays := func(x, y string, amount, minute int) []triegs.Event {
		at := triegs.Time(day.Add(time.Duration(minute) * time.Minute))
		return []triegs.Event{{Relation: "pays", Tuple: []triegs.Term{triegs.String(x), triegs.String(y), triegs.Int(int64(amount)), at}}}
	}
	for _, step := range []struct {
		minute int
		events []triegs.Event
	}{
		{20, append(pays("Bob", "Cem", 40, 15), pays("Ann", "Bob", 50, 20)...)},
		// The payment to Dee is an old one, told of late: its pair comes last and
		// leaves first.
		{40, pays("Bob", "Dee", 70, 2)},
		{65, nil},
		{90, nil},
	} {
		now := day.Add(time.Duration(step.minute) * time.Minute)
		if _, err := db.Append(ctx, triegs.Batch{Time: now, Events: step.events}); err != nil {
			return err
		}
		if err := tell(sub, passing); err != nil {
			return err
		}
	}
	return nil
}

// tell applies one update and prints what it changes.
func tell(sub *triegs.Subscription, s *summary.Summary) error {
	values := func(v []any) string {
		if v == nil {
			return "nothing"
		}
		return fmt.Sprintf("%d pairs, %s at most", v[0], v[1].(triegs.Term).Lexical())
	}
	for u, err := range sub.Updates() {
		if err != nil {
			return err
		}
		if err := s.Apply(u); err != nil {
			return err
		}
		for c := range s.Changed() {
			fmt.Printf("%s %s: %s > %s\n", s.Time().Format("15:04"), c.Group[0], values(c.Old), values(c.New))
		}
		break
	}
	return nil
}
