package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/input"
)

// runCmd is the main job: events in, answers out.
type runCmd struct {
	Query []string `sep:"none" required:"" placeholder:"FILE" help:"File that holds one query. May be repeated."`
	Dir   string   `placeholder:"DIR" help:"Keep the store in this directory. Default: in memory."`
	Emit  string   `default:"answers" help:"answers, deltas (one line per change, as epochs are published), count or none."`
	Stats bool     `help:"Print the figures of the store on standard error at the end."`
	inputFlags
	windowFlags
	outputFlags
}

// Run runs the command.
func (c *runCmd) Run(a *app) error {
	switch c.Emit {
	case "answers", "deltas", "count", "none":
	default:
		return usagef("--emit %s: want answers, deltas, count or none", c.Emit)
	}
	if err := cmp.Or(c.inputFlags.check(), c.windowFlags.check()); err != nil {
		return err
	}
	files := make([]*queryFile, len(c.Query))
	for i, path := range c.Query {
		var err error
		if files[i], err = readQuery(path); err != nil {
			return err
		}
	}
	var opts triegs.Options
	c.set(&opts)
	return a.withStore(c.Dir, opts, func(db *triegs.DB) error {
		queries := make([]*triegs.Query, len(files))
		for i, f := range files {
			var err error
			if queries[i], err = a.reuse(db, f, &c.windowFlags); err != nil {
				return err
			}
		}
		if err := c.load(a, db, queries); err != nil {
			return err
		}
		if err := c.emit(a, db, queries); err != nil {
			return err
		}
		if c.Stats {
			fmt.Fprint(a.stderr, db.Metrics())
		}
		return nil
	})
}

// load appends the input, and prints what it changes where that is asked for.
func (c *runCmd) load(a *app, db *triegs.DB, queries []*triegs.Query) error {
	if c.Emit != "deltas" {
		return a.load(db, &c.inputFlags, "", nil)
	}
	d, err := c.follow(a, db, queries)
	if err != nil {
		return err
	}
	return errors.Join(a.load(db, &c.inputFlags, "", d.print), d.close())
}

// reuse registers the query of a file, unless the store has the same query, by
// name, text and windows, already.
func (a *app) reuse(db *triegs.DB, f *queryFile, w *windowFlags) (*triegs.Query, error) {
	q, err := db.Query(f.name)
	if err == nil && q.Text() == f.text {
		same, err := a.describe(f.name, f.text, w)
		if err != nil {
			return nil, f.locate(err)
		}
		if slices.Equal(windows(q), windows(same)) {
			return q, nil
		}
	}
	if err != nil && !errors.Is(err, triegs.ErrNoSuchQuery) {
		return nil, err
	}
	q, err = w.register(a.ctx, db, f.name, f.text)
	return q, f.locate(err)
}

// windows are those of the atoms of a query.
func windows(q *triegs.Query) (list []string) {
	for _, alias := range q.Explain().Aliases {
		list = append(list, alias.Window)
	}
	return list
}

// emit prints what --emit asks for, of all queries at one epoch.
func (c *runCmd) emit(a *app, db *triegs.DB, queries []*triegs.Query) (err error) {
	snap, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	w := c.writer(a)
	for _, q := range queries {
		switch c.Emit {
		case "answers":
			err = a.printAnswers(w, snap, q)
		case "count":
			err = a.printCount(w, snap, q.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendCmd appends events to a store.
type appendCmd struct {
	Dir    string `arg:"" help:"Directory of the store; made if it is not there."`
	Source string `placeholder:"NAME" help:"Number the events from 0 under this name and skip those that the store has: the same command goes on where it stopped."`
	inputFlags
}

// Run runs the command.
func (c *appendCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	var opts triegs.Options
	c.set(&opts)
	return a.withStore(c.Dir, opts, func(db *triegs.DB) error {
		return a.load(db, &c.inputFlags, c.Source, nil)
	})
}

// registerCmd registers a query under a name of the user's choice.
type registerCmd struct {
	Dir   string `arg:"" help:"Directory of the store; made if it is not there."`
	Name  string `arg:"" help:"Name of the query."`
	Query string `required:"" placeholder:"FILE" help:"File that holds the query."`
	windowFlags
}

// Run runs the command.
func (c *registerCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	f, err := readQuery(c.Query)
	if err != nil {
		return err
	}
	return a.withStore(c.Dir, triegs.Options{}, func(db *triegs.DB) error {
		_, err := c.register(a.ctx, db, c.Name, f.text)
		return f.locate(err)
	})
}

// dropCmd drops a query.
type dropCmd struct {
	Dir  string `arg:"" help:"Directory of the store."`
	Name string `arg:"" help:"Name of the query."`
}

// Run runs the command.
func (c *dropCmd) Run(a *app) error {
	if err := mustExist(c.Dir); err != nil {
		return err
	}
	return a.withStore(c.Dir, triegs.Options{}, func(db *triegs.DB) error {
		return db.Drop(a.ctx, c.Name)
	})
}

// forgetCmd forgets the name of a subscriber.
type forgetCmd struct {
	Dir  string `arg:"" help:"Directory of the store."`
	Name string `arg:"" help:"Name of the subscriber; stats lists them."`
}

// Run runs the command.
func (c *forgetCmd) Run(a *app) error {
	if err := mustExist(c.Dir); err != nil {
		return err
	}
	return a.withStore(c.Dir, triegs.Options{}, func(db *triegs.DB) error {
		return db.Forget(a.ctx, c.Name)
	})
}

// advanceCmd moves logical time.
type advanceCmd struct {
	Dir  string `arg:"" help:"Directory of the store."`
	Time string `arg:"" help:"Logical time: RFC 3339, or integer milliseconds since 1970 (a negative one behind --)."`
	eventTimeFlags
}

// Run runs the command.
func (c *advanceCmd) Run(a *app) error {
	t, err := input.ParseTime(c.Time)
	if err != nil {
		return &usageError{err}
	}
	if err := mustExist(c.Dir); err != nil {
		return err
	}
	var opts triegs.Options
	c.set(&opts)
	return a.withStore(c.Dir, opts, func(db *triegs.DB) error {
		before := db.Metrics()
		epoch, err := db.Advance(a.ctx, t)
		if err != nil {
			return err
		}
		m := db.Metrics()
		_, err = fmt.Fprintf(a.stdout, "epoch %d: logical time %s, %d contributions expired, %d events wait\n",
			epoch, m.Time.Format(time.RFC3339Nano), m.Expired-before.Expired, m.Waiting)
		return err
	})
}
