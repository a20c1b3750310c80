package main

import (
	"errors"
	"fmt"

	"github.com/triegs/triegs"
)

// runCmd is the main job: events in, answers out.
type runCmd struct {
	Query []string `sep:"none" required:"" placeholder:"FILE" help:"File that holds one query. May be repeated."`
	Dir   string   `placeholder:"DIR" help:"Keep the store in this directory. Default: in memory."`
	Emit  string   `default:"answers" help:"answers, count or none."`
	Stats bool     `help:"Print the figures of the store on standard error at the end."`
	inputFlags
	outputFlags
}

// Run runs the command.
func (c *runCmd) Run(a *app) error {
	switch c.Emit {
	case "answers", "count", "none":
	case "deltas":
		return usagef("--emit deltas is not built yet")
	default:
		return usagef("--emit %s: want answers, count or none", c.Emit)
	}
	if err := c.check(); err != nil {
		return err
	}
	files := make([]*queryFile, len(c.Query))
	for i, path := range c.Query {
		var err error
		if files[i], err = readQuery(path); err != nil {
			return err
		}
	}
	return a.withStore(c.Dir, triegs.Options{}, func(db *triegs.DB) error {
		queries := make([]*triegs.Query, len(files))
		for i, f := range files {
			var err error
			if queries[i], err = a.reuse(db, f); err != nil {
				return err
			}
		}
		if err := a.load(db, &c.inputFlags, ""); err != nil {
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

// reuse registers the query of a file, unless the store has the same query, by
// name and text, already.
func (a *app) reuse(db *triegs.DB, f *queryFile) (*triegs.Query, error) {
	q, err := db.Query(f.name)
	if err == nil && q.Text() == f.text {
		return q, nil
	}
	if err != nil && !errors.Is(err, triegs.ErrNoSuchQuery) {
		return nil, err
	}
	q, err = db.Register(a.ctx, f.name, f.text)
	return q, f.locate(err)
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
	return a.withStore(c.Dir, triegs.Options{}, func(db *triegs.DB) error {
		return a.load(db, &c.inputFlags, c.Source)
	})
}

// registerCmd registers a query under a name of the user's choice.
type registerCmd struct {
	Dir   string `arg:"" help:"Directory of the store; made if it is not there."`
	Name  string `arg:"" help:"Name of the query."`
	Query string `required:"" placeholder:"FILE" help:"File that holds the query."`
}

// Run runs the command.
func (c *registerCmd) Run(a *app) error {
	f, err := readQuery(c.Query)
	if err != nil {
		return err
	}
	return a.withStore(c.Dir, triegs.Options{}, func(db *triegs.DB) error {
		_, err := db.Register(a.ctx, c.Name, f.text)
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
