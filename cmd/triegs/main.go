// Command triegs is the command line of the TrieGS database.
//
//	triegs run --query FILE ...     read events, print the answers of queries
//	triegs append DIR ...           append events to a store
//	triegs register DIR NAME ...    register a query, drop removes it
//	triegs advance DIR TIME         move logical time, so that what is due expires
//	triegs answers DIR NAME         print the answers of a registered query
//	triegs select DIR TEXT          answer a query once
//	triegs explain --query FILE     tell what a query is and what it costs
//	triegs stats DIR, verify DIR    look at a store, check it
//	triegs checkpoint DIR           save the state, so that opening is fast
//	triegs backup DIR DEST          copy a store, or bring a copy up to date
//	triegs restore BACKUP DEST      make a store of a backup
//	triegs repair DIR DEST          make a store of what is good of a damaged one
//	triegs watch DIR NAME           print what changes the answers of a query
//	triegs serve DIR                serve a store over HTTP
//	triegs demo                     play the running example
//
// It knows the root package and package server only, beside those that read and write
// text: whatever it does, a program can do with the public API. It owns the contract of
// flags, output and exit codes. It never writes anything but results to standard
// output.
//
// Exit codes: 0 all done; 1 bad input, with file:line on standard error, and
// what was applied is whole batches before it; 2 usage, also for formats that are known
// and not built yet; 3 the store is corrupt, or its files are not ours; 4 the
// store is locked.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process where it stands, which a read from a
	// terminal would otherwise hold up. The log is made for it.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs one command line and returns the exit code. A second process differs
// in nothing else, so tests call it in theirs.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	return a.exitCode(a.run(args))
}
