package fuzz

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/triegs/triegs"
)

// script is the state of one data-driven file.
type script struct {
	t     *testing.T
	dir   string
	db    *triegs.DB
	snaps map[string]*triegs.Snapshot
}

// TestDataDriven runs the files under testdata/files; -rewrite updates them.
// Commands, with what they take below their line:
//
//	open [dir] [budget=N] [dense]       a store in memory, or in a directory
//	reopen                              close and open again
//	register name=N [set] [distinct]    a query text
//	drop name=N, queries
//	append [time=T] [source=S offset=N] [ignore-missing]
//	                                    + RELATION TERM... [@T] [#ID] [=VALUE]
//	                                    - [RELATION TERM...] [#ID] [=VALUE]
//	skip source=S next=N, reset source=S incarnation=I, offset source=S
//	snapshot name=N, release name=N
//	answers query=N [snapshot=N]        sorted
//	lookup query=N [snapshot=N]         a tuple of terms a line
//	count query=N [snapshot=N]
//	select [snapshot=N]                 a query text
//	explain                             a query text
//	verify, close
//
// A term is a bare word for a plain string, digits for an integer, or anything
// in N-Triples syntax. T counts seconds.
func TestDataDriven(t *testing.T) {
	datadriven.Walk(t, "testdata/files", func(t *testing.T, path string) {
		s := &script{t: t, snaps: map[string]*triegs.Snapshot{}}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out, err := s.command(td)
			if err != nil {
				out += "error: " + err.Error()
			}
			if out == "" {
				out = "ok"
			}
			return strings.TrimSuffix(out, "\n") + "\n"
		})
		if s.db != nil {
			s.db.Close()
		}
	})
}

// command runs one command.
func (s *script) command(td *datadriven.TestData) (string, error) {
	ctx := context.Background()
	if s.db == nil && td.Cmd != "open" && td.Cmd != "explain" {
		td.Fatalf(s.t, "nothing is open")
	}
	name := text(td, "name")
	switch td.Cmd {
	case "open", "reopen":
		return s.open(td)
	case "register":
		var opts []triegs.QueryOption
		if td.HasArg("set") {
			opts = append(opts, triegs.Set())
		}
		if td.HasArg("distinct") {
			opts = append(opts, triegs.Distinct())
		}
		q, err := s.db.Register(ctx, name, td.Input, opts...)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("published epoch=%d columns=%v", q.Epoch(), q.Columns()), nil
	case "drop":
		return "", s.db.Drop(ctx, name)
	case "queries":
		var out strings.Builder
		for _, q := range s.db.Queries() {
			fmt.Fprintf(&out, "%s (%s) since epoch %d\n", q.Name(), q.Class(), q.Epoch())
		}
		return out.String(), nil
	case "append":
		return s.append(td)
	case "skip":
		return "", s.db.SkipTo(ctx, text(td, "source"), number(td, "next"))
	case "reset":
		return "", s.db.ResetSource(ctx, text(td, "source"), text(td, "incarnation"))
	case "offset":
		next, ok := s.db.Offset(text(td, "source"))
		return fmt.Sprintf("next=%d seen=%v", next, ok), nil
	case "snapshot":
		snap, err := s.db.Snapshot()
		if err != nil {
			return "", err
		}
		s.snaps[name] = snap
		return fmt.Sprintf("pinned epoch=%d", snap.Epoch()), nil
	case "release":
		return "", s.snaps[name].Close()
	case "explain":
		e, err := triegs.Explain(td.Input)
		if err != nil {
			return "", err
		}
		return e.String(), nil
	case "verify":
		return "", s.db.Verify(ctx)
	case "close":
		return "", s.db.Close()
	case "answers", "lookup", "count", "select":
		return s.read(td)
	}
	td.Fatalf(s.t, "unknown command")
	return "", nil
}

// open opens the store of the file, for the first time or again.
func (s *script) open(td *datadriven.TestData) (string, error) {
	if td.Cmd == "reopen" {
		if err := s.db.Close(); err != nil && !errors.Is(err, triegs.ErrLeaked) {
			return "", err
		}
	} else if td.HasArg("dir") {
		s.dir = s.t.TempDir()
	}
	opts := &triegs.Options{DenseSources: td.HasArg("dense"), LockWait: -1, Clock: func() time.Time { return time.Unix(1, 0) }}
	if td.HasArg("budget") {
		opts.MemoryBudget = int64(number(td, "budget"))
	}
	db, err := triegs.Open(s.dir, opts)
	if err != nil {
		return "", err
	}
	s.db = db
	snap, err := db.Snapshot()
	if err != nil {
		return "", err
	}
	defer snap.Close()
	return fmt.Sprintf("epoch=%d", snap.Epoch()), nil
}

// append appends the events below the command.
func (s *script) append(td *datadriven.TestData) (string, error) {
	b := triegs.Batch{IgnoreMissing: td.HasArg("ignore-missing")}
	if td.HasArg("time") {
		b.Time = time.Unix(int64(number(td, "time")), 0)
	}
	if td.HasArg("source") {
		b.Source, b.Offset = text(td, "source"), number(td, "offset")
	}
	for _, line := range strings.Split(td.Input, "\n") {
		e, err := eventLine(line)
		if err != nil {
			td.Fatalf(s.t, "%s: %v", line, err)
		}
		b.Events = append(b.Events, e)
	}
	e, err := s.db.Append(context.Background(), b)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("published epoch=%d", e), nil
}

// read runs a command that reads a snapshot, named or new.
func (s *script) read(td *datadriven.TestData) (string, error) {
	ctx := context.Background()
	snap := s.snaps[text(td, "snapshot")]
	if snap == nil {
		var err error
		if snap, err = s.db.Snapshot(); err != nil {
			return "", err
		}
		defer snap.Close()
	}
	query := text(td, "query")
	out := fmt.Sprintf("epoch=%d\n", snap.Epoch())
	switch td.Cmd {
	case "answers":
		return out + rowLines(snap.Answers(query)), nil
	case "select":
		return out + rowLines(snap.Select(ctx, td.Input)), nil
	case "count":
		distinct, total, err := snap.Count(ctx, query)
		if err != nil {
			return out, err
		}
		return fmt.Sprintf("%sdistinct=%d total=%d", out, distinct, total), nil
	}
	for _, line := range strings.Split(td.Input, "\n") {
		tuple, err := termList(line)
		if err != nil {
			td.Fatalf(s.t, "%s: %v", line, err)
		}
		r, err := snap.Lookup(query, tuple...)
		if err != nil {
			out += fmt.Sprintf("error: %v\n", err)
			continue
		}
		out += rowLine(r) + "\n"
	}
	return out, nil
}

// rowLines writes rows sorted, an error in the place of its row.
func rowLines(rows iter.Seq2[*triegs.Row, error]) string {
	var lines []string
	for r, err := range rows {
		switch {
		case err != nil && r != nil:
			lines = append(lines, fmt.Sprintf("%s error: %v", tupleText(r), err))
		case err != nil:
			lines = append(lines, fmt.Sprintf("error: %v", err))
		default:
			lines = append(lines, rowLine(r))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// rowLine writes a row with its multiplicity.
func rowLine(r *triegs.Row) string { return fmt.Sprintf("%s x%d", tupleText(r), r.Multiplicity()) }

// tupleText writes the tuple of a row.
func tupleText(r *triegs.Row) string {
	parts := make([]string, len(r.Columns()))
	for i := range parts {
		parts[i] = termText(r.Term(i))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// termText is the short form of a term where there is one.
func termText(t triegs.Term) string {
	if _, ok := t.AsInt(); ok {
		return t.Lexical()
	}
	if lex := t.Lexical(); triegs.String(lex) == t && bare(lex) {
		return lex
	}
	return t.String()
}

// bare tells whether a word stands for a plain string.
func bare(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// termOf reads a word as a term.
func termOf(s string) (triegs.Term, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return triegs.Int(i), nil
	}
	if bare(s) {
		return triegs.String(s), nil
	}
	return triegs.ParseTerm(s)
}

// termList reads the terms of a line.
func termList(line string) (out []triegs.Term, err error) {
	for _, w := range wordsOf(line) {
		t, err := termOf(w)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// wordsOf splits a line at spaces outside of quotes.
func wordsOf(line string) (out []string) {
	var w strings.Builder
	quoted, escaped := false, false
	for _, r := range line + " " {
		switch {
		case r == ' ' && !quoted:
			if w.Len() > 0 {
				out = append(out, w.String())
			}
			w.Reset()
			continue
		case r == '"' && !escaped:
			quoted = !quoted
		}
		escaped = r == '\\' && !escaped
		w.WriteRune(r)
	}
	return out
}

// eventLine reads one event.
func eventLine(line string) (triegs.Event, error) {
	var e triegs.Event
	ws := wordsOf(line)
	if len(ws) < 2 || ws[0] != "+" && ws[0] != "-" {
		return e, errors.New("not an event")
	}
	if ws[0] == "-" {
		e.Op = triegs.Delete
	}
	for _, w := range ws[1:] {
		var err error
		switch {
		case w[0] == '@':
			var at int64
			at, err = strconv.ParseInt(w[1:], 10, 64)
			e.Time = time.Unix(at, 0)
		case w[0] == '#':
			e.ID = w[1:]
		case w[0] == '=':
			e.Value, err = termOf(w[1:])
		case e.Relation == "":
			e.Relation = w
		default:
			var t triegs.Term
			t, err = termOf(w)
			e.Tuple = append(e.Tuple, t)
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// text is the value of an argument, or "".
func text(td *datadriven.TestData, key string) string {
	if arg, ok := td.Arg(key); ok && len(arg.Vals) == 1 {
		return arg.Vals[0]
	}
	return ""
}

// number is the value of an argument that is a number, or 0.
func number(td *datadriven.TestData, key string) uint64 {
	n, _ := strconv.ParseUint(text(td, key), 10, 64)
	return n
}
