package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/triegs/triegs"
)

// Handler serves one store. It is safe for concurrent use.
type Handler struct {
	db   *triegs.DB
	opts Options
	mux  *http.ServeMux
	// foreign refuses what the page of another site makes a browser send.
	foreign *http.CrossOriginProtection

	over    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // the requests in open

	mu      sync.Mutex
	closed  bool
	open    map[*exchange]struct{}
	streams int
	names   map[string]*exchange // the streams with a name
	walks   map[string]*walk
}

// New returns a handler of db. Close it before db, which it does not close. The error
// is ErrValue for options without a meaning.
func New(db *triegs.DB, opts Options) (*Handler, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	h := &Handler{
		db: db, opts: opts, mux: http.NewServeMux(), foreign: http.NewCrossOriginProtection(),
		open: make(map[*exchange]struct{}), names: make(map[string]*exchange), walks: make(map[string]*walk),
	}
	h.over, h.end = context.WithCancel(context.Background())
	for pattern, m := range routes {
		h.mux.Handle(pattern, h.methods(m))
	}
	h.mux.Handle("/", h.methods(nil))
	return h, nil
}

// route is what answers one method of a path.
type route struct {
	verb  Verb
	serve func(*exchange) error
}

// routes are all, by path and method. HEAD and OPTIONS follow from them.
var routes = map[string]map[string]route{
	"/health":  {http.MethodGet: {Health, (*exchange).health}},
	"/stats":   {http.MethodGet: {Stats, (*exchange).stats}},
	"/queries": {http.MethodGet: {Read, (*exchange).queries}},
	"/queries/{name}": {
		http.MethodGet:    {Read, (*exchange).query},
		http.MethodPost:   {Register, (*exchange).register},
		http.MethodDelete: {Drop, (*exchange).drop},
	},
	"/queries/{name}/answers": {
		http.MethodGet:    {Read, (*exchange).answers},
		http.MethodDelete: {Read, (*exchange).letGo},
	},
	"/queries/{name}/count":   {http.MethodGet: {Read, (*exchange).count}},
	"/queries/{name}/lookup":  {http.MethodGet: {Read, (*exchange).lookup}},
	"/queries/{name}/updates": {http.MethodGet: {Follow, (*exchange).updates}},
	"/subscribers":            {http.MethodGet: {Stats, (*exchange).subscribers}},
	"/subscribers/{subscriber}": {
		http.MethodPost:   {Follow, (*exchange).acknowledge},
		http.MethodDelete: {Forget, (*exchange).forget},
	},
	"/append": {http.MethodPost: {Append, (*exchange).append}},
}

// methods serves the methods of a path; nil = there is no such path.
func (h *Handler) methods(m map[string]route) http.HandlerFunc {
	allow := []string{http.MethodOptions}
	for method := range m {
		if allow = append(allow, method); method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	allowed := strings.Join(allow, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		x := h.enter(w, r)
		if x == nil {
			return
		}
		defer x.leave()
		if r.ContentLength != 0 {
			// Before an answer net/http reads what is left of a body, and that may not come.
			_ = x.deadline(x.rc.SetReadDeadline, h.opts.ReadTimeout) // the connection is at its end then
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route, ok := m[method]
		switch {
		case m == nil:
			x.fail(&fault{status: http.StatusNotFound, code: "no_such_path", message: "there is nothing at this path"})
		case r.Method == http.MethodOptions:
			w.Header().Set("Allow", allowed)
			x.send(http.StatusNoContent, nil)
		case !ok:
			w.Header().Set("Allow", allowed)
			x.fail(&fault{status: http.StatusMethodNotAllowed, code: "method", message: "the path has the methods " + allowed})
		default:
			if err := x.run(route); err != nil {
				x.fail(err)
			}
		}
	}
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// closeGrace is how long Close leaves to clients that still read.
const closeGrace = time.Second

// Close ends all streams and pages, lets running requests come to their end within a
// second, and refuses further ones with 503. It returns when none runs any more. A
// second Close does nothing.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.closed = true
	walks := h.walks
	h.walks = make(map[string]*walk)
	h.mu.Unlock()
	h.end()
	late := time.AfterFunc(closeGrace, h.hurry)
	defer late.Stop()
	for _, w := range walks {
		w.end()
	}
	h.running.Wait()
	return nil
}

// hurry makes reads and writes fail that wait for a client.
func (h *Handler) hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for x := range h.open {
		x.cut()
	}
}

// enter begins a request. It is nil, and the request answered, after Close.
func (h *Handler) enter(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{h: h, w: w, r: r, rc: http.NewResponseController(w)}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		x.fail(triegs.ErrClosed)
		return nil
	}
	h.running.Add(1)
	h.open[x] = struct{}{}
	h.mu.Unlock()
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(h.over, func() { cancel(triegs.ErrClosed) })
	x.ctx, x.end = ctx, func(why error) { stop(); cancel(why) }
	return x
}

// Usage is how much of a handler's limits is in use.
type Usage struct {
	Streams int `json:"streams"`
	Pages   int `json:"pages"`
}

// Usage tells how many streams and walks over pages are open.
func (h *Handler) Usage() Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := Usage{Streams: h.streams}
	for _, w := range h.walks {
		if !w.finished.Load() {
			u.Pages++
		}
	}
	return u
}
