package fuzz

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// digests gives the content digests of a snapshot as text.
func digests(s *triegs.Snapshot) (string, error) {
	d, err := s.Digest()
	return fmt.Sprint(d), err
}

// history is how one list of events is fed to a store.
type history struct {
	batches [][]oracle.Event
	queries []randq.Query
	restart int // reopen after each restart-th epoch; 0 = never, in memory
	save    int // take a checkpoint after each save-th epoch; 0 = never
}

// state is what a history ends in: the answers of each query by its position,
// and the digests.
type state struct {
	answers []map[string]int64
	digest  string
}

// play runs a history and gives its last state.
func play(t *testing.T, h history) state {
	t.Helper()
	ctx := context.Background()
	dir := ""
	if h.restart > 0 {
		dir = t.TempDir()
	}
	opts := &triegs.Options{Durability: triegs.SyncNone}
	db, err := triegs.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.queries {
		if _, err := db.Register(ctx, h.queries[i].Name, h.queries[i].Text(), options(&h.queries[i])...); err != nil {
			t.Fatalf("%s: %v", h.queries[i].Text(), err)
		}
	}
	for i, events := range h.batches {
		if _, err := db.Append(ctx, batch(events, 1)); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		if h.save > 0 && i%h.save == h.save-1 {
			if err := db.Checkpoint(ctx); err != nil {
				t.Fatalf("checkpoint after batch %d: %v", i, err)
			}
		}
		if h.restart == 0 || i%h.restart != h.restart-1 {
			continue
		}
		before := read(t, db, h.queries)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if db, err = triegs.Open(dir, opts); err != nil {
			t.Fatalf("reopen after batch %d: %v", i, err)
		}
		same(t, fmt.Sprintf("reopening after batch %d", i), before, read(t, db, h.queries))
	}
	last := read(t, db, h.queries)
	if err := db.Verify(ctx); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return last
}

// read gives the newest state of a store.
func read(t *testing.T, db *triegs.DB, queries []randq.Query) state {
	t.Helper()
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	var s state
	for i := range queries {
		got, err := gather(snap.Answers(queries[i].Name))
		if err != nil {
			t.Fatalf("%s: %v", queries[i].Text(), err)
		}
		s.answers = append(s.answers, got)
	}
	if s.digest, err = digests(snap); err != nil {
		t.Fatal(err)
	}
	return s
}

// same fails unless two states are equal.
func same(t *testing.T, what string, want, got state) {
	t.Helper()
	for i := range want.answers {
		if !maps.Equal(want.answers[i], got.answers[i]) {
			t.Fatalf("%s changes query %d:\n got %v\nwant %v", what, i, got.answers[i], want.answers[i])
		}
	}
	if want.digest != got.digest {
		t.Fatalf("%s changes the digest: got %s, want %s", what, got.digest, want.digest)
	}
}

// flat lists the events of a case that apply, in order.
func flat(c randq.Case) (out []oracle.Event) {
	var model oracle.Store
	for _, b := range c.Epochs {
		if _, err := model.Clone().Apply(b.Events, b.IgnoreMissing); err != nil {
			continue
		}
		for _, e := range b.Events {
			if n, _ := model.Apply([]oracle.Event{e}, true); n == 0 {
				out = append(out, e)
			}
		}
	}
	return out
}

// cut splits a list at random places.
func cut(r *rand.Rand, events []oracle.Event, most int) (out [][]oracle.Event) {
	for len(events) > 0 {
		n := 1 + r.IntN(min(most, len(events)))
		out = append(out, events[:n])
		events = events[n:]
	}
	return out
}

// TestAgreeHistories feeds one list of events in ways that must not matter:
// as one epoch, one by one, with random cuts, with the atoms of the queries
// permuted and their variables renamed, with a restart after each k-th epoch,
// and with checkpoints between. Answers and digests must be the same.
func TestAgreeHistories(t *testing.T) {
	cases := 60
	if testing.Short() {
		cases = 10
	}
	const shards = 4
	for shard := range shards {
		t.Run(fmt.Sprintf("shard%d", shard), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(shard); seed < uint64(cases); seed += shards {
				agree(t, seed)
			}
		})
	}
}

// agree plays the histories of one seed.
func agree(t *testing.T, seed uint64) {
	t.Helper()
	c := randq.New(seed, randq.Size{Queries: 3, AtomsMax: 6, Epochs: 20})
	r := rand.New(rand.NewPCG(seed, 5))
	events := flat(c)
	var variants []randq.Query
	for i := range c.Queries {
		variants = append(variants, c.Queries[i].Variant(r, c.Queries[i].Name))
	}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, c.String())
		}
	}()
	whole := play(t, history{[][]oracle.Event{events}, c.Queries, 0, 0})
	same(t, "feeding one by one", whole, play(t, history{cut(r, events, 1), c.Queries, 0, 0}))
	same(t, "cutting at random", whole, play(t, history{cut(r, events, 9), c.Queries, 0, 0}))
	same(t, "permuting atoms", whole, play(t, history{cut(r, events, 30), variants, 0, 0}))
	same(t, "reopening", whole, play(t, history{cut(r, events, 30), c.Queries, 1 + int(seed%3), 0}))
	same(t, "loading checkpoints", whole, play(t, history{cut(r, events, 20), c.Queries, 1 + int(seed%4), 1 + int(seed%3)}))
}

// TestAgreeThereAndBack checks that what is inserted and retracted again leaves
// the digest of a store that never saw it.
func TestAgreeThereAndBack(t *testing.T) {
	for seed := range uint64(10) {
		c := randq.New(seed, randq.Size{Queries: 3, AtomsMax: 5, Epochs: 12})
		r := rand.New(rand.NewPCG(seed, 6))
		events := flat(c)
		var model oracle.Store
		if _, err := model.Apply(events, false); err != nil {
			t.Fatal(err)
		}
		rest := model.Live()
		r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		long := play(t, history{cut(r, events, 5), c.Queries, 0, 0})
		short := play(t, history{cut(r, rest, 5), c.Queries, 0, 0})
		same(t, "never inserting what goes again", long, short)
	}
}

// TestAgreeTexts checks that the two texts of a query have one meaning.
func TestAgreeTexts(t *testing.T) {
	done := 0
	for seed := uint64(0); done < 40; seed++ {
		c := randq.New(seed, randq.Size{Queries: 4, AtomsMax: 5, Epochs: 5})
		both := slices.DeleteFunc(slices.Clone(c.Queries), func(q randq.Query) bool { return !q.SPARQL || len(q.Values) > 0 })
		rules := slices.Clone(both)
		for i := range rules {
			rules[i].SPARQL = false
			if strings.HasPrefix(rules[i].Text(), "SELECT") {
				t.Fatal("not a rule")
			}
		}
		events := [][]oracle.Event{flat(c)}
		same(t, "the other text", play(t, history{events, both, 0, 0}), play(t, history{events, rules, 0, 0}))
		done += len(both)
	}
}
