package fuzz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// printed are answers by their tuples, with what is told of each.
type printed map[string]string

// overflowing is what is told of an answer that overflows.
const overflowing = "overflow"

// side prints what is told of an answer, whose kinds of values matter.
func side(r *triegs.Row, value func(i int) any) string {
	var parts []string
	for i := 0; ; i++ {
		v := value(i)
		if v == nil {
			return strings.Join(parts, " ")
		}
		parts = append(parts, kinded(v))
	}
}

// kinded prints a value with its kind, and those inside of it with theirs.
func kinded(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("%T:%v", v, v)
	}
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = kinded(x)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// answersOf prints the answers of a snapshot.
func answersOf(s *triegs.Snapshot, name string, width int) (printed, error) {
	out := printed{}
	for r, err := range s.Answers(name) {
		switch {
		case err == nil:
			out[headKey(r, width)] = side(r, r.Value)
		case r != nil && errors.Is(err, triegs.ErrOverflow):
			out[headKey(r, width)] = overflowing
		default:
			return nil, err
		}
	}
	return out, nil
}

// checkUpdate compares the changes of an update with the answers before and after.
// Answers that overflow are compared as far as they do not.
func checkUpdate(u *triegs.Update, width int, before, after printed) error {
	seen := map[string]bool{}
	for c, err := range u.Changes() {
		if c.Row == nil {
			return err
		}
		key := headKey(c.Row, width)
		if seen[key] {
			return fmt.Errorf("%q comes twice", key)
		}
		seen[key] = true
		over := err != nil
		if over && !errors.Is(err, triegs.ErrOverflow) {
			return err
		}
		was := side(c.Row, func(i int) any { v, _ := c.Values(i); return v })
		is := side(c.Row, func(i int) any { _, v := c.Values(i); return v })
		for _, x := range []struct{ got, want string }{{was, before[key]}, {is, after[key]}} {
			if x.got != x.want && (!over || x.want != overflowing || x.got != "") {
				return fmt.Errorf("%q goes from %q to %q (%v), want %q to %q", key, was, is, err, before[key], after[key])
			}
		}
		if was == is && !over {
			return fmt.Errorf("%q stays at %q", key, was)
		}
	}
	for _, side := range []printed{before, after} {
		for key := range side {
			if !seen[key] && before[key] != after[key] {
				return fmt.Errorf("%q is missing, from %q to %q", key, before[key], after[key])
			}
		}
	}
	return nil
}

// where keeps the answers with a term in a column.
func (p printed) where(column int, term string) printed {
	out := maps.Clone(p)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.Split(key, "\t")[column] != term })
	return out
}

// told is an epoch with its answers.
type told struct {
	token   triegs.Token
	answers map[string]printed // by query
}

// subscriber checks the deltas of one case.
type subscriber struct {
	db      *triegs.DB
	queries map[string]*randq.Query
	epochs  []told
	rng     *rand.Rand
	met     map[string]int // deltas, queries and what they are
	pace    int            // of logical time, ns for each epoch
}

// meet counts what a query is.
func (k *subscriber) meet(q *randq.Query, class string) {
	k.met["queries"]++
	k.met[class]++
	relations := map[string]bool{}
	windows, annotated := q.Window != (oracle.Window{}), false
	for _, a := range q.Atoms {
		if relations[a.Relation] {
			k.met["self-joins"]++
			break
		}
		relations[a.Relation] = true
	}
	for _, a := range q.Atoms {
		windows = windows || a.Window != (oracle.Window{})
		annotated = annotated || a.Annotated
	}
	for what, is := range map[string]bool{
		"windows": windows, "annotated": annotated, "aggregates": len(q.Aggregates) > 0, "sets": q.Set,
		"distinct": q.Distinct, "semirings": q.Semiring != "", "counts": len(q.Aggregates) == 0 && q.Semiring == "" && !q.Distinct,
	} {
		if is {
			k.met[what]++
		}
	}
}

// next takes the next update of a subscription.
func next(s *triegs.Subscription, use func(u *triegs.Update) error) error {
	for u, err := range s.Updates() {
		if err != nil {
			return err
		}
		return use(u)
	}
	return errors.New("the subscription is silent")
}

// note adds the newest epoch.
func (k *subscriber) note() error {
	s, err := k.db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	t := told{token: s.Token(), answers: map[string]printed{}}
	for name, q := range k.queries {
		if t.answers[name], err = answersOf(s, name, len(q.Head)); err != nil {
			return err
		}
	}
	k.epochs = append(k.epochs, t)
	return nil
}

// pair compares the deltas of a query between an earlier epoch and the newest, or
// from nothing, for all answers or those with a term in one column.
func (k *subscriber) pair(name string, from int) error {
	q, last := k.queries[name], k.epochs[len(k.epochs)-1]
	before, after := k.epochs[from].answers[name], last.answers[name]
	opts := triegs.SubscribeOptions{Mode: triegs.FromToken, Token: k.epochs[from].token}
	if k.rng.IntN(4) == 0 {
		opts, before = triegs.SubscribeOptions{Mode: triegs.SnapshotFirst}, nil
	}
	if n := len(q.Head); n > 0 && k.rng.IntN(2) == 0 {
		column, term := k.rng.IntN(n), `"never"`
		for key := range k.epochs[k.rng.IntN(len(k.epochs))].answers[name] {
			term = strings.Split(key, "\t")[column]
			break
		}
		registered, err := k.db.Query(name)
		if err != nil {
			return err
		}
		opts.Where = map[string]triegs.Term{registered.Columns()[column]: parsed(term)}
		before, after = before.where(column, term), after.where(column, term)
	}
	s, err := k.db.Subscribe(context.Background(), name, opts)
	if err != nil {
		return err
	}
	defer s.Close()
	if opts.Mode == triegs.FromToken && from == len(k.epochs)-1 {
		return nil // nothing to tell yet
	}
	err = next(s, func(u *triegs.Update) error {
		if u.Token != last.token {
			return fmt.Errorf("the update leads to epoch %d, want %d", u.Epoch, last.token.Epoch())
		}
		k.met["deltas"]++
		switch d := len(k.epochs) - 1 - from; {
		case opts.Mode == triegs.SnapshotFirst:
			k.met["from nothing"]++
		case d == 1:
			k.met["near"]++
		case d >= 30:
			k.met["far"]++
		}
		if opts.Where != nil {
			k.met["where"]++
		}
		return checkUpdate(u, len(q.Head), before, after)
	})
	if err != nil {
		return fmt.Errorf("%s: epoch %d to %d, where %v: %w", q.Text(), opts.Token.Epoch(), last.token.Epoch(), opts.Where, err)
	}
	return nil
}

// all follows a query through all epochs, each by itself.
func (k *subscriber) all(name string) error {
	s, err := k.db.Subscribe(context.Background(), name,
		triegs.SubscribeOptions{Mode: triegs.FromToken, Token: k.epochs[0].token, PerEpoch: true})
	if err != nil {
		return err
	}
	defer s.Close()
	for i, t := range k.epochs[1:] {
		err := next(s, func(u *triegs.Update) error {
			if u.Token != t.token {
				return fmt.Errorf("got epoch %d, want %d", u.Epoch, t.token.Epoch())
			}
			return checkUpdate(u, len(k.queries[name].Head), k.epochs[i].answers[name], t.answers[name])
		})
		if err != nil {
			return fmt.Errorf("%s: %w", k.queries[name].Text(), err)
		}
	}
	return nil
}

// run plays a case.
func (k *subscriber) run(c randq.Case) error {
	ctx := context.Background()
	for i := range c.Queries {
		q := &c.Queries[i]
		registered, err := k.db.Register(ctx, q.Name, q.Text(), options(q)...)
		if err != nil {
			return fmt.Errorf("register %s: %w", q.Text(), err)
		}
		k.queries[q.Name] = q
		k.meet(q, registered.Class())
	}
	if err := k.note(); err != nil {
		return err
	}
	for i, b := range c.Epochs {
		in := batch(b.Events, i*k.pace)
		in.IgnoreMissing = b.IgnoreMissing
		if _, err := k.db.Append(ctx, in); err != nil {
			continue // refused, which other tests are about
		}
		if err := k.note(); err != nil {
			return err
		}
		for name := range k.queries {
			for _, from := range []int{len(k.epochs) - 2, k.rng.IntN(len(k.epochs))} {
				if err := k.pair(name, from); err != nil {
					return err
				}
			}
		}
	}
	for name := range k.queries {
		if err := k.all(name); err != nil {
			return err
		}
	}
	return nil
}

// subscribedCase draws a case: every third with windows, every tenth with epochs
// that are far from each other.
func subscribedCase(seed uint64) randq.Case {
	size := annotatedSize(16)
	size.Windows = seed%3 == 0
	if seed%10 == 0 {
		size.Epochs = 80
	}
	return randq.New(seed, size)
}

// checkSubscriptions runs a case with all of its epochs retained.
func checkSubscriptions(c randq.Case, seed uint64) (met map[string]int, err error) {
	db, err := triegs.Open("", &triegs.Options{RetainedEpochs: 1000})
	if err != nil {
		return nil, err
	}
	k := &subscriber{
		db: db, queries: map[string]*randq.Query{}, rng: rand.New(rand.NewPCG(seed, 6)),
		met: map[string]int{}, pace: 1,
	}
	if seed%3 == 0 {
		k.pace = 10 // as fast as the times of the events
	}
	err = k.run(c)
	return k.met, errors.Join(err, db.Close())
}

// TestSubscriptionsRandom compares the deltas between random pairs of epochs, near
// and far, with the answers at both: random queries of all acyclic classes with any
// head, aggregates, semirings and windows, filtered or not; and the updates of every
// epoch.
func TestSubscriptionsRandom(t *testing.T) {
	stores := sized(2000, 300, 60) / queriesEach
	met := map[string]int{}
	for i := range stores {
		seed := uint64(60_000 + i)
		c := subscribedCase(seed)
		did, err := checkSubscriptions(c, seed)
		if err != nil {
			t.Fatal(reportWith(c, seed, err, func(c randq.Case) error {
				_, err := checkSubscriptions(c, seed)
				return err
			}))
		}
		for what, n := range did {
			met[what] += n
		}
	}
	t.Logf("%d stores: %v", stores, met)
	if met["deltas"] < 20*stores {
		t.Errorf("only %d deltas in %d stores", met["deltas"], stores)
	}
	for _, what := range []string{
		"self-joins", "windows", "annotated", "aggregates", "sets", "distinct", "semirings", "counts",
		"from nothing", "near", "far", "where",
	} {
		if met[what] == 0 {
			t.Errorf("nothing of %q was met", what)
		}
	}
}
