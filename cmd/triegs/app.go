package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/input"
)

// The exit codes of the contract.
const (
	exitDone    = 0
	exitInput   = 1
	exitUsage   = 2
	exitCorrupt = 3
	exitLocked  = 4
)

// app is what the commands share.
type app struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
}

// commands is the grammar of the command line.
type commands struct {
	Run      runCmd      `cmd:"" help:"Read events, keep queries up to date, print their answers."`
	Append   appendCmd   `cmd:"" help:"Append events to a store."`
	Register registerCmd `cmd:"" help:"Register a query in a store."`
	Drop     dropCmd     `cmd:"" help:"Drop a query of a store."`
	Advance  advanceCmd  `cmd:"" help:"Move the logical time of a store forward, so that what is due expires."`
	Answers  answersCmd  `cmd:"" help:"Print the answers of a registered query."`
	Select   selectCmd   `cmd:"" help:"Answer a query once, without registering it."`
	Explain  explainCmd  `cmd:"" help:"Tell what a query is and what it costs."`
	Stats    statsCmd    `cmd:"" help:"Print the figures of a store and the next offset of each source."`
	Verify   verifyCmd   `cmd:"" help:"Compute every view of a store anew and compare."`

	Checkpoint checkpointCmd `cmd:"" help:"Save the state of a store, so that opening it need not replay the log."`
	Backup     backupCmd     `cmd:"" help:"Copy a store as it is at one epoch, or bring an earlier copy up to date."`
	Restore    restoreCmd    `cmd:"" help:"Make a store of a backup."`
	Repair     repairCmd     `cmd:"" help:"Make a store of what is provably good of a damaged one."`

	Watch  watchCmd  `cmd:"" help:"Print what changes the answers of a query, with positions to go on from."`
	Forget forgetCmd `cmd:"" help:"Forget a name of watch --as, and what is kept for it."`
	Serve  serveCmd  `cmd:"" help:"Serve a store over HTTP."`

	Demo demoCmd `cmd:"" help:"Play the running example, in memory."`
}

// usageError is a command line that cannot be run.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// helpShown is what kong's exit hook panics with: it ends the parse, where kong
// itself would end the process.
type helpShown struct{ code int }

// run parses args and runs the command.
func (a *app) run(args []string) (err error) {
	parser, err := kong.New(&commands{},
		kong.Name("triegs"),
		kong.Description("Continuous queries over graph streams."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(code int) { panic(helpShown{code}) }),
		kong.Bind(a),
	)
	if err != nil {
		return err
	}
	kctx, shown, err := parse(parser, args)
	if shown {
		return nil
	}
	if err != nil {
		return &usageError{err}
	}
	return kctx.Run()
}

// parse parses args; shown tells that help was asked for and printed.
func parse(parser *kong.Kong, args []string) (kctx *kong.Context, shown bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helpShown); !ok {
				panic(r)
			}
			shown = true
		}
	}()
	kctx, err = parser.Parse(args)
	return kctx, false, err
}

// exitCode reports err and returns the code that stands for it.
func (a *app) exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(a.stderr, "triegs: %s\n", message(err))
	switch {
	case isUsage(err):
		return exitUsage
	case errors.Is(err, triegs.ErrCorrupt), errors.Is(err, triegs.ErrFormat):
		return exitCorrupt
	case errors.Is(err, triegs.ErrLocked):
		return exitLocked
	}
	return exitInput
}

func isUsage(err error) bool {
	if _, ok := errors.AsType[*usageError](err); ok {
		return true
	}
	_, ok := errors.AsType[*input.NotBuiltError](err)
	return ok
}

// message is the text of err without the library's prefix, which stands in
// front of the line already.
func message(err error) string {
	return strings.ReplaceAll(err.Error(), "triegs: ", "")
}
