package server

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

const (
	pageRows    = 1000    // of a page, unless the request says otherwise
	maxPageRows = 100_000 // that a request may ask for
	pageBytes   = 1 << 20 // behind which a page has no further row
)

// walk is an enumeration that is read by pages.
type walk struct {
	h       *Handler
	id      string // unguessable: who knows it may read on
	query   string
	columns []string

	// finished says that the last page was made: nothing is pinned any more, and the
	// walk is there only for those who ask for that page again.
	finished atomic.Bool

	mu      sync.Mutex // guards all below, for as long as a page is made
	over    bool
	snap    *triegs.Snapshot
	enc     *output.Encoder
	next    func() (*triegs.Row, error, bool)
	stop    func()
	ahead   []byte // the row behind the last page
	page    []byte // the last page
	number  uint64 // of the last page
	expiry  *time.Timer
	until   time.Time // when it expires unless it is read on
	longest time.Time // when it expires in any case
}

// pageHead is what a page has before its answers.
type pageHead struct {
	Query string `json:"query"`
	position
	Columns []string `json:"columns"`
}

// answers sends a page of answers.
func (x *exchange) answers() error {
	p, err := x.params("limit", "after")
	if err != nil {
		return err
	}
	limit := p.number("limit", pageRows, 1, maxPageRows)
	if p.bad != nil {
		return p.bad
	}
	if after := p.text("after"); after != "" {
		return x.nextPage(after, limit)
	}
	return x.firstPage(limit)
}

// firstPage begins a walk, and forgets it at once if one page is all.
func (x *exchange) firstPage(limit uint64) error {
	s, err := x.h.db.Snapshot()
	if err != nil {
		return err
	}
	q, err := s.Query(x.name())
	if err != nil || x.head() {
		_ = s.Close() // always nil
		if err == nil {
			x.send(http.StatusOK, []byte{})
		}
		return err
	}
	w := &walk{
		h: x.h, id: unguessable(), query: x.name(), columns: append([]string{}, q.Columns()...),
		snap: s, enc: output.NewEncoder(output.JSONL), longest: time.Now().Add(x.h.opts.PageAge),
	}
	w.enc.Rows(w.query, output.ShapeOf(q))
	w.next, w.stop = iter.Pull2(s.Answers(w.query))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.turn(limit); err != nil {
		w.close()
		return err
	}
	page := w.page
	if w.finished.Load() {
		w.close()
	} else if err := x.h.keep(w); err != nil {
		w.close()
		return err
	}
	x.send(http.StatusOK, page)
	return nil
}

// nextPage goes on with a walk.
func (x *exchange) nextPage(after string, limit uint64) error {
	w, number, err := x.walk(after)
	if err != nil {
		return err
	}
	page, err := w.at(number, limit, x.head())
	if err != nil {
		return err
	}
	x.send(http.StatusOK, page)
	return nil
}

// errGone is told of a cursor that leads nowhere, for whatever reason.
var errGone = &fault{status: http.StatusGone, code: "page_expired", message: "the pages are not kept any more: begin again without after"}

// walk finds what a cursor stands for.
func (x *exchange) walk(cursor string) (*walk, uint64, error) {
	id, n, ok := strings.Cut(cursor, ".")
	number, err := strconv.ParseUint(n, 10, 64)
	if !ok || err != nil {
		return nil, 0, badRequest(fmt.Sprintf("%.60q is no cursor of a page", cursor))
	}
	x.h.mu.Lock()
	w := x.h.walks[id]
	x.h.mu.Unlock()
	if w == nil || w.query != x.name() {
		return nil, 0, errGone
	}
	return w, number, nil
}

// at is the page with a number: the last one again, or the one behind it.
func (w *walk) at(number, limit uint64, look bool) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return nil, errGone
	case look:
		return []byte{}, nil
	case number == w.number+1 && !w.finished.Load():
		if err := w.turn(limit); err != nil {
			w.close()
			return nil, err
		}
	case number != w.number:
		return nil, errGone
	}
	w.extend()
	return w.page, nil
}

// turn makes the next page. w.mu is held.
func (w *walk) turn(limit uint64) error {
	page, err := json.Marshal(pageHead{w.query, positionOf(w.snap), w.columns})
	if err != nil {
		return err
	}
	page = append(page[:len(page)-1], `,"answers":[`...)
	n := uint64(0)
	add := func(row []byte) {
		if n > 0 {
			page = append(page, ',')
		}
		page = append(append(page, '\n'), row...)
		n++
	}
	if w.ahead != nil {
		add(w.ahead)
		w.ahead = nil
	}
	for {
		row, err, more := w.next()
		if !more {
			w.finish()
			break
		}
		line, err := oneRow(w.enc, nil, row, err)
		if err != nil {
			return err
		}
		if n == limit || n > 0 && len(page)+len(line) > pageBytes {
			w.ahead = line
			break
		}
		add(line)
	}
	page = append(page, ']')
	if w.number++; w.ahead != nil {
		page = fmt.Appendf(page, `,"next":"%s.%d"`, w.id, w.number+1)
	}
	w.page = append(page, "}\n"...)
	return nil
}

// unguessable is a name that only those have who were told.
func unguessable() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// keep lists a walk, so that it can be gone on with. w.mu is held.
func (h *Handler) keep(w *walk) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return triegs.ErrClosed
	}
	if len(h.walks) >= h.opts.MaxPages && !h.dropFinished() {
		return &fault{status: http.StatusServiceUnavailable, code: "busy", message: "too many pages are open"}
	}
	h.walks[w.id] = w
	w.expiry = time.AfterFunc(h.opts.PageIdle, w.expire)
	w.extend()
	return nil
}

// dropFinished forgets a walk whose last page was made. h.mu is held.
func (h *Handler) dropFinished() bool {
	for id, w := range h.walks {
		if w.finished.Load() {
			delete(h.walks, id)
			w.expiry.Stop()
			return true
		}
	}
	return false
}

// extend puts the expiry off. w.mu is held.
func (w *walk) extend() {
	now := time.Now()
	w.until = now.Add(w.h.opts.PageIdle)
	if w.until.After(w.longest) {
		w.until = w.longest
	}
	w.expiry.Reset(w.until.Sub(now))
}

// expire ends the walk, unless it was put off.
func (w *walk) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left := time.Until(w.until); left > 0 {
		w.expiry.Reset(left)
		return
	}
	w.close()
}

// end ends the walk.
func (w *walk) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close()
}

// close gives everything back. w.mu is held.
func (w *walk) close() {
	if w.over {
		return
	}
	w.over = true
	w.finish()
	w.page, w.ahead = nil, nil
	if w.expiry != nil {
		w.expiry.Stop()
		w.h.mu.Lock()
		delete(w.h.walks, w.id)
		w.h.mu.Unlock()
	}
}

// finish gives back what the enumeration needs. w.mu is held.
func (w *walk) finish() {
	if w.finished.CompareAndSwap(false, true) {
		w.stop()
		_ = w.snap.Close() // always nil
	}
}

// letGo ends a walk before its time.
func (x *exchange) letGo() error {
	p, err := x.params("after")
	if err != nil {
		return err
	}
	w, _, err := x.walk(p.text("after"))
	if err != nil {
		return err
	}
	w.end()
	x.send(http.StatusNoContent, nil)
	return nil
}
