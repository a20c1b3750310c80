package main

import (
	"errors"
	"fmt"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

// deltas prints what changes the answers of queries, epoch by epoch.
type deltas struct {
	a       *app
	w       *output.Writer
	queries []*triegs.Query
	feeds   []*triegs.Subscription
}

// follow begins behind the current epoch.
func (c *runCmd) follow(a *app, db *triegs.DB, queries []*triegs.Query) (*deltas, error) {
	d := &deltas{a: a, w: c.writer(a), queries: queries}
	for _, q := range queries {
		s, err := db.Subscribe(a.ctx, q.Name(), triegs.SubscribeOptions{PerEpoch: true})
		if err != nil {
			return nil, errors.Join(err, d.close())
		}
		d.feeds = append(d.feeds, s)
	}
	return d, nil
}

func (d *deltas) close() error {
	var errs []error
	for _, s := range d.feeds {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// print prints what has changed up to an epoch that is published, of each query in
// turn.
func (d *deltas) print(to triegs.Epoch) error {
	for i, s := range d.feeds {
		if s.Token().Epoch() >= to {
			continue
		}
		for u, err := range s.Updates() {
			if err == nil {
				err = d.update(d.queries[i], u)
			}
			if err != nil {
				return fmt.Errorf("query %s: %w", s.Query(), err)
			}
			if u.Epoch >= to {
				break
			}
		}
	}
	return nil
}

// update prints one update. It stops at the first change that has an error.
func (d *deltas) update(q *triegs.Query, u *triegs.Update) (err error) {
	d.w.BeginDeltas(q.Name(), output.ShapeOf(q))
	defer func() { err = errors.Join(err, d.w.End()) }()
	for c, err := range u.Changes() {
		if err != nil {
			return fmt.Errorf("epoch %d: %w", u.Epoch, err)
		}
		if err := d.w.Change(u.Epoch, c); err != nil {
			return err
		}
	}
	return nil
}

// mark prints the position behind an update.
func (d *deltas) mark(q *triegs.Query, t triegs.Token) error {
	return errors.Join(d.w.Mark(q.Name(), output.ShapeOf(q), t), d.w.Flush())
}
