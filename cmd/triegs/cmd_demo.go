package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/triegs/triegs"
)

// demoCmd plays the running example of the TrieGS paper: who replied to whom,
// and who liked the reply.
type demoCmd struct{}

const demoQuery = `replies(x, y, v, z, w) :- hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w).`

// demoSteps are the batches of the example, each one epoch.
var demoSteps = []struct {
	what   string
	events []triegs.Event
}{
	{"Max writes tweet1 and Eva tweet2; that tweet2 replies to tweet1 is reported twice.", []triegs.Event{
		edge("hasCreator", "tweet1", "Max"),
		edge("hasCreator", "tweet2", "Eva"),
		edge("hasReply", "tweet1", "tweet2"),
		edge("hasReply", "tweet1", "tweet2"),
	}},
	{"Mia likes tweet2.", []triegs.Event{
		edge("likedBy", "tweet2", "Mia"),
	}},
	{"One of the two reports expires: it is retracted.", []triegs.Event{
		retract("hasReply", "tweet1", "tweet2"),
	}},
}

func edge(label, src, dst string) triegs.Event {
	return triegs.Edge(label, triegs.String(src), triegs.String(dst))
}

func retract(label, src, dst string) triegs.Event {
	e := edge(label, src, dst)
	e.Op = triegs.Delete
	return e
}

// Run runs the command.
func (demoCmd) Run(a *app) error {
	// A buffer keeps the first write error for the end.
	out := bufio.NewWriter(a.stdout)
	err := a.withStore("", triegs.Options{}, func(db *triegs.DB) error {
		return demo(a.ctx, db, out)
	})
	return errors.Join(err, out.Flush())
}

// demo plays the steps. The reader is pinned before the last one.
func demo(ctx context.Context, db *triegs.DB, out io.Writer) (err error) {
	fmt.Fprintf(out, "%s\n", demoQuery)
	if _, err := db.Register(ctx, "replies", demoQuery); err != nil {
		return err
	}
	last := len(demoSteps) - 1
	for i := range last {
		if err := demoStep(ctx, db, out, i); err != nil {
			return err
		}
	}
	pinned, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pinned.Close()) }()
	fmt.Fprintf(out, "\nA reader pins epoch %d and keeps it.\n", pinned.Epoch())
	if err := demoStep(ctx, db, out, last); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe pinned reader is still at epoch %d.\n", pinned.Epoch())
	return demoAnswers(pinned, out)
}

// demoStep appends a batch and prints the answers of its epoch.
func demoStep(ctx context.Context, db *triegs.DB, out io.Writer, i int) (err error) {
	step := demoSteps[i]
	// The time is part of the example, so that it prints the same whenever it
	// is played.
	at := time.Date(2026, 1, 1, 12, i, 0, 0, time.UTC)
	epoch, err := db.Append(ctx, triegs.Batch{Events: step.events, Time: at})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nepoch %d: %s\n", epoch, step.what)
	snap, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return demoAnswers(snap, out)
}

// demoAnswers prints the answers of an epoch, one a line with its count.
func demoAnswers(snap *triegs.Snapshot, out io.Writer) error {
	n := 0
	for row, err := range snap.Answers("replies") {
		if err != nil {
			return err
		}
		terms := make([]string, len(row.Columns()))
		for i := range terms {
			terms[i] = row.Term(i).Lexical()
		}
		fmt.Fprintf(out, "  (%s) with %d\n", strings.Join(terms, ", "), row.Multiplicity())
		n++
	}
	if n == 0 {
		fmt.Fprintln(out, "  no answer")
	}
	return nil
}
