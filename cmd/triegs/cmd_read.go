package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

// answersCmd prints the answers of a registered query.
type answersCmd struct {
	source
	Name  string `arg:"" help:"Name of the query."`
	Count bool   `help:"Print the name, the number of answers and their total multiplicity instead."`
	outputFlags
}

// Run runs the command.
func (c *answersCmd) Run(a *app) error {
	return a.reading(c.source, func(db *triegs.DB, snap *triegs.Snapshot) error {
		q, err := db.Query(c.Name)
		if err != nil {
			return err
		}
		if c.Count {
			return a.printCount(c.writer(a), snap, c.Name)
		}
		return a.printAnswers(c.writer(a), snap, q)
	})
}

// selectCmd answers a query once.
type selectCmd struct {
	source
	Text string `arg:"" help:"The query, in either form."`
	outputFlags
}

// Run runs the command.
func (c *selectCmd) Run(a *app) error {
	x, err := triegs.Explain(c.Text)
	if err != nil {
		return err
	}
	name := x.Name
	if name == "" {
		name = "select"
	}
	q, err := a.describe(name, c.Text, new(windowFlags))
	if err != nil {
		return err
	}
	return a.reading(c.source, func(_ *triegs.DB, snap *triegs.Snapshot) error {
		w := c.writer(a)
		if err := w.Begin(name, output.ShapeOf(q)); err != nil {
			return err
		}
		return a.printRows(w, name, snap.Select(a.ctx, c.Text))
	})
}

// describe tells what the rows of a query text look like, by registering it in
// an empty store. The header has to be known also when there are no rows.
func (a *app) describe(name, text string, w *windowFlags) (q *triegs.Query, err error) {
	err = a.withStore("", triegs.Options{}, func(db *triegs.DB) (err error) {
		q, err = w.register(a.ctx, db, name, text)
		return err
	})
	return q, err
}

// explainCmd tells what a query is. With a directory, a query that is
// registered there with the same text is explained as it is kept up there, with
// what its views hold.
type explainCmd struct {
	Dir   string `arg:"" optional:"" help:"Directory of a store."`
	Query string `required:"" placeholder:"FILE" help:"File that holds the query."`

	Output string `default:"text" enum:"text,json,dot" help:"text, json, or dot: a drawing of the tree for Graphviz."`
}

// Run runs the command.
func (c *explainCmd) Run(a *app) error {
	f, err := readQuery(c.Query)
	if err != nil {
		return err
	}
	x, err := triegs.Explain(f.text)
	if err != nil {
		return f.locate(err)
	}
	if c.Dir != "" {
		err := a.reading(source{Dir: c.Dir}, func(db *triegs.DB, _ *triegs.Snapshot) error {
			x, err = db.Explain(a.ctx, f.text)
			return err
		})
		if err != nil {
			return err
		}
	}
	switch c.Output {
	case "json":
		return a.printJSON(x)
	case "dot":
		_, err = io.WriteString(a.stdout, x.DOT())
	default:
		_, err = fmt.Fprint(a.stdout, x)
	}
	return err
}

// statsCmd prints figures.
type statsCmd struct {
	source
	Output string `default:"text" enum:"text,json" help:"text or json."`
}

// Run runs the command.
func (c *statsCmd) Run(a *app) error {
	return a.reading(c.source, func(db *triegs.DB, snap *triegs.Snapshot) error {
		m, offsets, marks := db.Metrics(), snap.Offsets(), watermarks(db, snap)
		if c.Output == "json" {
			return a.printJSON(struct {
				Metrics    triegs.Metrics       `json:"metrics"`
				Offsets    map[string]uint64    `json:"offsets"`
				Watermarks map[string]time.Time `json:"watermarks"`
			}{m, offsets, marks})
		}
		if _, err := fmt.Fprint(a.stdout, m); err != nil {
			return err
		}
		return a.printSources(offsets, marks)
	})
}

// printSources prints where each source stands.
func (a *app) printSources(offsets map[string]uint64, marks map[string]time.Time) error {
	var out strings.Builder
	for _, source := range slices.Sorted(maps.Keys(offsets)) {
		fmt.Fprintf(&out, "source %s: next offset %d", source, offsets[source])
		if t, ok := marks[source]; ok {
			fmt.Fprintf(&out, ", watermark %s", t.Format(time.RFC3339Nano))
		}
		out.WriteByte('\n')
	}
	if t, ok := marks[""]; ok {
		fmt.Fprintf(&out, "without a source: watermark %s\n", t.Format(time.RFC3339Nano))
	}
	_, err := io.WriteString(a.stdout, out.String())
	return err
}

// watermarks are those of the sources that have one; "" stands for the events
// that came without a source.
func watermarks(db *triegs.DB, snap *triegs.Snapshot) map[string]time.Time {
	marks := map[string]time.Time{}
	for _, source := range append(slices.Collect(maps.Keys(snap.Offsets())), "") {
		if p, ok := db.Source(source); ok && !p.Watermark.IsZero() {
			marks[source] = p.Watermark
		}
	}
	return marks
}

// verifyCmd checks a store.
type verifyCmd struct {
	source
}

// Run runs the command.
func (c *verifyCmd) Run(a *app) error {
	return a.reading(c.source, func(db *triegs.DB, snap *triegs.Snapshot) error {
		if err := db.Verify(a.ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.stdout, "epoch %d: every view equals its definition, queries: %d\n", snap.Epoch(), len(db.Queries()))
		return err
	})
}
