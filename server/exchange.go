package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/triegs/triegs"
)

// exchange is a request and its answer.
type exchange struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	rc   *http.ResponseController
	ctx  context.Context // of the request, ended also by Handler.Close
	end  func(error)     // ends ctx
	gone chan struct{}   // closed when a stream has let go of its name
	sub  *triegs.Subscription

	mu    sync.Mutex // guards the deadlines, which cut sets from another goroutine
	ended bool
}

func (x *exchange) leave() {
	x.end(nil)
	x.h.mu.Lock()
	delete(x.h.open, x)
	x.h.mu.Unlock()
	x.h.running.Done()
}

// run serves the request, if it may be.
func (x *exchange) run(r route) error {
	if err := x.h.foreign.Check(x.r); err != nil {
		return &fault{status: http.StatusForbidden, code: "cross_origin", message: "a page of another origin must not do this"}
	}
	if ask := x.h.opts.Authorize; ask != nil {
		if err := ask(x.r, Action{r.verb, x.name(), x.subscriber()}); err != nil {
			return refused(err)
		}
	}
	if x.r.ContentLength != 0 && !r.verb.Writes() {
		return badRequest("the request must not have a body")
	}
	return r.serve(x)
}

// name is the query of the path, "" if it has none.
func (x *exchange) name() string { return x.r.PathValue("name") }

// subscriber is the name of the subscriber that the request is about, "" for none.
func (x *exchange) subscriber() string {
	if s := x.r.PathValue("subscriber"); s != "" {
		return s
	}
	return x.r.URL.Query().Get("as")
}

// head reports whether only the head of the answer is wanted.
func (x *exchange) head() bool { return x.r.Method == http.MethodHead }

// cut makes what waits for the client fail, from now on.
func (x *exchange) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	past := time.Unix(1, 0)
	_, _ = x.rc.SetReadDeadline(past), x.rc.SetWriteDeadline(past) // unsupported: nothing to cut
}

// deadline sets one of the deadlines to so long from now, 0 = none.
func (x *exchange) deadline(set func(time.Time) error, d time.Duration) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return context.Canceled
	}
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	if err := set(t); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// write sends bytes to the client, by the deadline.
func (x *exchange) write(b []byte) error {
	if err := x.deadline(x.rc.SetWriteDeadline, x.h.opts.WriteTimeout); err != nil {
		return err
	}
	if _, err := x.w.Write(b); err != nil {
		return err
	}
	if err := x.rc.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// send sends a whole answer; a nil body is none at all. A client that is gone or
// does not read is nobody's error.
func (x *exchange) send(status int, body []byte) {
	header := x.w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if body != nil {
		header.Set("Content-Type", "application/json")
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.w.WriteHeader(status)
	if x.head() {
		body = nil
	}
	if x.write(body) == nil {
		_ = x.deadline(x.rc.SetWriteDeadline, 0) // of the requests that follow on the connection
	}
}

// reply answers with a value as JSON.
func (x *exchange) reply(status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.send(status, append(body, '\n'))
	return nil
}

// fail answers with an error.
func (x *exchange) fail(err error) {
	f := faultOf(err)
	if f.status == http.StatusServiceUnavailable {
		x.w.Header().Set("Retry-After", "1")
	}
	if f.status == http.StatusUnauthorized {
		x.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	x.send(f.status, append(f.json(), '\n'))
}
