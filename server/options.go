package server

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/triegs/triegs"
)

// Verb is what a request wants to do.
type Verb string

// The verbs.
const (
	Health   Verb = "health"   // look whether the store is there
	Stats    Verb = "stats"    // read its figures
	Read     Verb = "read"     // read queries and their answers
	Follow   Verb = "follow"   // be told of updates
	Append   Verb = "append"   // append events
	Register Verb = "register" // register a query
	Drop     Verb = "drop"     // drop a query
	Forget   Verb = "forget"   // forget the name of a subscriber
)

// Writes reports whether the verb changes the store.
func (v Verb) Writes() bool { return v == Append || v == Register || v == Drop || v == Forget }

// Action is what a request wants to do, with which query, and for the name of which
// subscriber; "" = none in particular.
type Action struct {
	Verb       Verb
	Query      string
	Subscriber string
}

// Refusal is an error of Options.Authorize that chooses the status of the answer.
type Refusal struct {
	// Status is http.StatusUnauthorized or http.StatusForbidden.
	Status int
	// Message says why, to the client.
	Message string
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

// Options changes how a store is served; the zero value is the default of every
// field.
type Options struct {
	// Authorize is asked before each request, in its goroutine. nil lets it pass, a
	// *Refusal refuses it with its status and message, any other error with 403 and
	// without telling what it says. Default nil: everybody may do everything.
	Authorize func(*http.Request, Action) error

	// MaxStreams is how many streams of updates may be open. Default 256.
	MaxStreams int
	// Buffer is how many epochs may wait for a stream that takes each; behind more it
	// gets one update of all. See triegs.SubscribeOptions. Default 1024.
	Buffer int
	// MaxNames is how many names of subscribers the store may have for a new one to be
	// taken. What is kept for them is bounded by Retention in the options of the store.
	// Default 64.
	MaxNames int
	// MaxPages is how many walks over pages may be open, each of which pins an epoch
	// and keeps one page of 1 MiB at most, or of one row. Default 64.
	MaxPages int
	// PageIdle is how long the next page may be waited for. Default 1 min.
	PageIdle time.Duration
	// PageAge is how long a walk may take in all. Default 10 min.
	PageAge time.Duration

	// WriteTimeout is how long a client may take to make room for the next 32 KiB, or
	// for a whole answer of another kind. Default 30 s.
	WriteTimeout time.Duration
	// ReadTimeout is how long a client may take to send the next piece of a body.
	// Default 30 s.
	ReadTimeout time.Duration
	// Heartbeat is how long a stream may be silent. Default 15 s.
	Heartbeat time.Duration

	// MaxBody is how many bytes of events an append may have. One that asks for one
	// epoch is in memory as a whole, several times as large. Default 16 MiB.
	MaxBody int64
}

// withDefaults returns a copy with every zero field set.
func (o Options) withDefaults() Options {
	o.MaxStreams = cmp.Or(o.MaxStreams, 256)
	o.MaxNames = cmp.Or(o.MaxNames, 64)
	o.MaxPages = cmp.Or(o.MaxPages, 64)
	o.PageIdle = cmp.Or(o.PageIdle, time.Minute)
	o.PageAge = cmp.Or(o.PageAge, 10*time.Minute)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 30*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, 16<<20)
	return o
}

// validate refuses what has no meaning. It runs after withDefaults.
func (o Options) validate() error {
	if o.MaxStreams < 0 || o.Buffer < 0 || o.MaxNames < 0 || o.MaxPages < 0 || o.MaxBody < 0 {
		return fmt.Errorf("%w: limits of a server must not be negative", triegs.ErrValue)
	}
	if min(o.PageIdle, o.PageAge, o.WriteTimeout, o.ReadTimeout, o.Heartbeat) < 0 {
		return fmt.Errorf("%w: times of a server must not be negative", triegs.ErrValue)
	}
	return nil
}
