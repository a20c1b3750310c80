package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

// watchCmd prints what changes the answers of a query.
type watchCmd struct {
	Dir       string `arg:"" help:"Directory of a store, or the URL of a server (http://HOST:PORT), which is followed until a signal."`
	Name      string `arg:"" help:"Name of the query."`
	From      string `placeholder:"TOKEN" help:"Begin behind this position. Default: with the whole answer."`
	As        string `placeholder:"NAME" help:"Go on behind what was printed under this name before, which the store or the server remembers. A new name begins as without it."`
	Net       bool   `help:"One update from the beginning to the end, or as fast as it is read, instead of one of each epoch."`
	TokenFile string `placeholder:"FILE" help:"File with the secret of the server."`
	Output    string `default:"tsv" enum:"tsv,jsonl" help:"tsv or jsonl."`
}

// Run runs the command.
func (c *watchCmd) Run(a *app) error {
	var from triegs.Token
	if c.From != "" {
		var err error
		if from, err = triegs.ParseToken(c.From); err != nil {
			return &usageError{fmt.Errorf("--from: %w", err)}
		}
	}
	if strings.HasPrefix(c.Dir, "http://") || strings.HasPrefix(c.Dir, "https://") {
		return c.live(a)
	}
	if c.TokenFile != "" {
		return usagef("--token-file is for a server")
	}
	// Only a name has a place that is written.
	opts := triegs.Options{ReadOnly: c.As == "", RetainFrom: from}
	if c.As != "" {
		if err := mustExist(c.Dir); err != nil {
			return err
		}
	}
	return a.withStore(c.Dir, opts, func(db *triegs.DB) error { return c.retained(a, db, from) })
}

// retained prints what there is from a position to the end.
func (c *watchCmd) retained(a *app, db *triegs.DB, from triegs.Token) (err error) {
	opts := triegs.SubscribeOptions{Name: c.As, Mode: triegs.SnapshotFirst, PerEpoch: !c.Net}
	if c.As == "" {
		opts.Buffer = math.MaxInt // for a name nothing is left out anyway
	}
	if !from.IsZero() {
		opts.Mode, opts.Token = triegs.FromToken, from
	}
	end, err := newest(db)
	if err != nil {
		return err
	}
	s, err := db.Subscribe(a.ctx, c.Name, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d := &deltas{a: a, w: output.New(a.stdout, output.Format(c.Output), false)}
	q := s.Definition()
	if t := s.Token(); t.Epoch() >= end && !t.IsZero() {
		return d.mark(q, t)
	}
	for u, err := range s.Updates() {
		if err == nil {
			err = d.update(q, u)
		}
		if err == nil {
			err = d.mark(q, u.Token)
		}
		if err == nil && c.As != "" {
			err = s.Ack(u.Epoch) // behind the line, which is written
		}
		if err != nil {
			return fmt.Errorf("query %s: %w", c.Name, err)
		}
		if u.Epoch >= end {
			break
		}
	}
	return nil
}

// newest is the last epoch of a store.
func newest(db *triegs.DB) (triegs.Epoch, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return 0, err
	}
	epoch := snap.Epoch()
	return epoch, snap.Close()
}
