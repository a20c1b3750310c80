package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/server"
)

// serveCmd offers a store over HTTP.
type serveCmd struct {
	Dir       string `arg:"" help:"Directory of the store; made if it is not there."`
	Listen    string `placeholder:"HOST:PORT" help:"Address to listen on; port 0 takes a free one. Default: port 7474 of this machine alone."`
	TokenFile string `placeholder:"FILE" help:"File with the secret that clients send as Authorization: Bearer SECRET. Without one, only this machine may be listened on."`
	Retain    int    `default:"1024" help:"Epochs that are kept, so that clients can go on from their tokens."`
	MaxLag    uint64 `placeholder:"N" help:"Epochs that a named subscriber may be behind before it loses its place, and what is kept for it is freed. Default: no limit."`
	MaxAge    span   `placeholder:"D" help:"The same by the time since it has acknowledged anything, while there is something newer."`
	ReadOnly  bool   `help:"Serve a closed store or a backup without writing to it."`
	lateFlags
}

const (
	servePort = "7474"
	// serveTick is how often windows move when no events come.
	serveTick = time.Second
	// serveGrace is how long requests have to come to their end when the server does.
	serveGrace = 5 * time.Second
	// secretMin is the length of a secret that cannot be tried out.
	secretMin = 16
)

// check refuses what cannot be run, before anything is opened.
func (c *serveCmd) check() error {
	if c.Retain < 0 {
		return usagef("--retain %d: want at least 0", c.Retain)
	}
	if c.Listen == "" {
		c.Listen = net.JoinHostPort("127.0.0.1", servePort)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return usagef("--listen %s: want HOST:PORT", c.Listen)
	}
	return c.lateFlags.check()
}

// Run runs the command until a signal ends it.
func (c *serveCmd) Run(a *app) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	secret, err := readSecret(c.TokenFile)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(a.ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", c.Listen, err)
	}
	defer listener.Close() // closed already where it was served on
	if secret == "" && !loopback(listener.Addr().String()) {
		return usagef("--listen %s: other machines reach it, so --token-file is wanted", c.Listen)
	}
	opts := triegs.Options{ReadOnly: c.ReadOnly, RetainedEpochs: c.Retain, Tick: serveTick}
	opts.Retention = triegs.Retention{Epochs: c.MaxLag, Age: time.Duration(c.MaxAge)}
	c.set(&opts)
	return a.withStore(c.Dir, opts, func(db *triegs.DB) error {
		// What is kept may be told epoch by epoch.
		return a.serve(db, listener, server.Options{Authorize: authorize(secret), Buffer: max(c.Retain, 1024)})
	})
}

// readSecret reads the secret of a file; "" where no file is asked for.
func readSecret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, osCause(err))
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < secretMin || strings.ContainsAny(secret, " \t\r\n") {
		return "", fmt.Errorf("%s: want one word of at least %d characters", path, secretMin)
	}
	return secret, nil
}

// authorize asks clients for the secret. Without one it takes only those that have
// called this machine by one of its own names: the page of another site, whose name
// was made to stand for this machine, calls it by that.
func authorize(secret string) func(*http.Request, server.Action) error {
	if secret == "" {
		return func(r *http.Request, _ server.Action) error {
			if !loopback(r.Host) {
				return &server.Refusal{Status: http.StatusForbidden, Message: "the server is for this machine alone"}
			}
			return nil
		}
	}
	want := sha256.Sum256([]byte("Bearer " + secret))
	return func(r *http.Request, _ server.Action) error {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			return nil
		}
		return &server.Refusal{Status: http.StatusUnauthorized, Message: "the header Authorization: Bearer SECRET is wanted"}
	}
}

// loopback reports whether an address, with a port or without, is one of this machine
// alone.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// serve serves a store until the context ends.
func (a *app) serve(db *triegs.DB, listener net.Listener, opts server.Options) (err error) {
	h, err := server.New(db, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	complaints := slog.NewTextHandler(a.stderr, nil)
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(complaints, slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(listener) }()
	_, err = fmt.Fprintf(a.stdout, "listening on http://%s\n", listener.Addr())
	if err == nil {
		select {
		case <-a.ctx.Done():
		case err := <-ended:
			return err
		}
	}
	_ = h.Close() // always nil; streams have no end of their own
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), serveGrace)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // what did not end in time is cut off
	}
	<-ended
	return err
}
