package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

// outputFlags are the flags of commands that print rows.
type outputFlags struct {
	Output string `default:"tsv" enum:"tsv,jsonl" help:"tsv or jsonl."`
	Sort   bool   `help:"Sort the rows by the bytes of their printed fields. Holds them in memory."`
}

func (f *outputFlags) writer(a *app) *output.Writer {
	return output.New(a.stdout, output.Format(f.Output), f.Sort)
}

// printAnswers prints the answers of a registered query. It stops at the first
// answer that has an error, since a file with a hole looks complete.
func (a *app) printAnswers(w *output.Writer, snap *triegs.Snapshot, q *triegs.Query) error {
	if err := w.Begin(q.Name(), output.ShapeOf(q)); err != nil {
		return err
	}
	return a.printRows(w, q.Name(), snap.Answers(q.Name()))
}

// printRows prints the rows of a query up to the first error. What was printed
// before it is written out.
func (a *app) printRows(w *output.Writer, query string, rows iter.Seq2[*triegs.Row, error]) (err error) {
	defer func() { err = errors.Join(err, w.End()) }()
	for row, err := range rows {
		if err == nil {
			err = a.ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("query %s: %w", query, err)
		}
		if err := w.Row(row); err != nil {
			return err
		}
	}
	return nil
}

// printCount prints the line of --emit count.
func (a *app) printCount(w *output.Writer, snap *triegs.Snapshot, name string) error {
	distinct, total, err := snap.Count(a.ctx, name)
	if err != nil {
		return fmt.Errorf("query %s: %w", name, err)
	}
	return w.Count(name, distinct, total)
}

// printJSON prints v as one indented JSON value.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
