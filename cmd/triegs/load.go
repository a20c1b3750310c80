package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/input"
)

// inputFlags are the flags of commands that read events.
type inputFlags struct {
	Input  []string `sep:"none" placeholder:"FILE" help:"File of events, - for standard input (default). May be repeated; read in order. Gzip is unpacked."`
	Format string   `placeholder:"FORMAT" help:"tsv, csv, jsonl or nt. Default: by extension, else tsv."`
	Batch  int      `default:"1000" help:"Events in an epoch. Counts for nothing in jsonl with commit lines."`
	lateFlags
}

// check refuses what cannot be run, before any store is touched.
func (f *inputFlags) check() error {
	if f.Batch < 1 {
		return usagef("--batch %d: want at least 1", f.Batch)
	}
	if _, err := input.Detect(input.Stdin, f.Format); err != nil {
		if _, ok := errors.AsType[*input.NotBuiltError](err); ok {
			return usagef("--format %s is not built yet", f.Format)
		}
		return usagef("--format %s: want tsv, csv, jsonl or nt", f.Format)
	}
	if len(f.Input) == 0 {
		f.Input = []string{input.Stdin}
	}
	for i, path := range f.Input {
		if _, err := input.Detect(path, f.Format); err != nil {
			return &usageError{fmt.Errorf("--input %s: %w", path, err)}
		}
		if path == input.Stdin && slices.Contains(f.Input[:i], path) {
			return usagef("--input - stands twice")
		}
	}
	return f.lateFlags.check()
}

// load appends all events of the inputs to db, and calls each, unless it is nil,
// after every epoch.
func (a *app) load(db *triegs.DB, f *inputFlags, source string, each func(triegs.Epoch) error) (err error) {
	scope, err := blankScope(db, source)
	if err != nil {
		return err
	}
	in, err := input.Open(f.Input, input.Options{
		Format: f.Format, Batch: f.Batch, Source: source, Scope: scope, Stdin: a.stdin,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	p := a.newProgress()
	defer p.done()
	marks := false
	for {
		b, err := in.Next()
		if errors.Is(err, io.EOF) {
			p.done()
			a.tellTimes(db, marks && f.Lateness == nil)
			return nil
		}
		if err != nil {
			return err
		}
		marks = marks || !b.Watermark.IsZero()
		if f.Lateness == nil && len(b.Events) == 0 && b.Time.IsZero() {
			continue // A watermark alone; the clock would move time to the present.
		}
		epoch, err := db.Append(a.ctx, b.Batch)
		if err != nil {
			return b.Locate(err)
		}
		p.update(in.Events(), epoch)
		if each != nil {
			if err := each(epoch); err != nil {
				return err
			}
		}
	}
}

// tellTimes tells, when all is read, what event time holds back, and that the
// input speaks of event time in vain.
func (a *app) tellTimes(db *triegs.DB, inVain bool) {
	if inVain {
		fmt.Fprintln(a.stderr, "triegs: watermarks count for nothing without --lateness")
	}
	if n := db.Metrics().Waiting; n > 0 {
		fmt.Fprintf(a.stderr, "triegs: %d events wait for logical time to come to them\n", n)
	}
}

// blankScope returns what keeps blank node labels of different documents apart.
// With a source, a label means the same node in everything the source sends in
// its incarnation, so that a replay sends the same events. Without one, each file of each load has
// labels of its own: the epoch before the load tells loads apart, because a
// load that stored anything has moved it.
func blankScope(db *triegs.DB, source string) (func(i int) string, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	epoch := snap.Epoch()
	if err := snap.Close(); err != nil {
		return nil, err
	}
	if source == "" {
		return func(i int) string { return fmt.Sprintf("l%d-%d-", epoch, i) }, nil
	}
	// A source's name may hold anything, a label may not. 64 bits of a hash
	// keep the names of sources, and their incarnations, apart.
	position, _ := db.Source(source)
	sum := sha256.Sum256([]byte(source + "\x00" + position.Incarnation))
	prefix := "s" + hex.EncodeToString(sum[:8]) + "-"
	return func(int) string { return prefix }, nil
}
