package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/input"
)

// fault is an error as a client is told of it.
type fault struct {
	status        int
	code, message string
	// line of the body, 0 = none in particular.
	line int
	// applied tells of an append that was not applied to its end.
	applied *applied
}

func (f *fault) Error() string { return f.message }

// json is the body of the answer.
func (f *fault) json() []byte {
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Line    int    `json:"line,omitempty"`
		} `json:"error"`
		Applied *applied `json:"applied,omitempty"`
	}
	body.Error.Code, body.Error.Message, body.Error.Line = f.code, f.message, f.line
	body.Applied = f.applied
	text, err := json.Marshal(body)
	if err != nil { // strings and numbers always can be
		return []byte(`{"error":{"code":"internal","message":""}}`)
	}
	return text
}

// codes are the sentinels with the status and the code that stand for them. The
// first that matches counts.
var codes = []struct {
	err    error
	status int
	code   string
}{
	{triegs.ErrClosed, http.StatusServiceUnavailable, "closed"},
	{triegs.ErrReadOnly, http.StatusForbidden, "read_only"},
	{triegs.ErrCorrupt, http.StatusInternalServerError, "corrupt"},
	{triegs.ErrNoSuchQuery, http.StatusNotFound, "no_such_query"},
	{triegs.ErrNoAnswer, http.StatusNotFound, "no_answer"},
	{triegs.ErrTooOld, http.StatusGone, "too_old"},
	{triegs.ErrTimeline, http.StatusGone, "timeline"},
	{triegs.ErrSnapshotExpired, http.StatusGone, "snapshot_expired"},
	{triegs.ErrSnapshotClosed, http.StatusGone, "snapshot_closed"},
	{triegs.ErrSlowSubscriber, http.StatusGone, "slow_subscriber"},
	{triegs.ErrNameInUse, http.StatusConflict, "name_in_use"},
	{triegs.ErrQueryExists, http.StatusConflict, "query_exists"},
	{triegs.ErrNoSuchFact, http.StatusConflict, "no_such_fact"},
	{triegs.ErrGap, http.StatusConflict, "gap"},
	{triegs.ErrBudget, http.StatusInsufficientStorage, "budget"},
	{triegs.ErrOverflow, http.StatusUnprocessableEntity, "overflow"},
	{triegs.ErrUnsupported, http.StatusUnprocessableEntity, "unsupported"},
	{triegs.ErrLate, http.StatusUnprocessableEntity, "late"},
	{triegs.ErrArity, http.StatusBadRequest, "arity"},
	{triegs.ErrTime, http.StatusBadRequest, "time"},
	{triegs.ErrSyntax, http.StatusBadRequest, "syntax"},
	{triegs.ErrValue, http.StatusBadRequest, "value"},
	{triegs.ErrFormat, http.StatusInternalServerError, "format"},
	{os.ErrDeadlineExceeded, http.StatusRequestTimeout, "timeout"},
	{context.Canceled, http.StatusServiceUnavailable, "canceled"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout"},
}

// faultOf is err as a client is told of it. What is none of the known ones is not
// described: its text may speak of files.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault{status: http.StatusRequestEntityTooLarge, code: "too_large", message: "the body is too large"}
	}
	f := &fault{status: http.StatusInternalServerError, code: "internal", message: "internal error"}
	if at, ok := errors.AsType[*input.Error](err); ok {
		f.line, err = at.Line, at.Err
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			f.status, f.code = c.status, c.code
			f.message = strings.ReplaceAll(err.Error(), "triegs: ", "")
			break
		}
	}
	return f
}

// refused is what Authorize has against a request.
func refused(err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		if r.Status == http.StatusUnauthorized {
			return &fault{status: r.Status, code: "unauthenticated", message: r.Message}
		}
		return &fault{status: http.StatusForbidden, code: "forbidden", message: r.Message}
	}
	return &fault{status: http.StatusForbidden, code: "forbidden", message: "not allowed"}
}

// badRequest is a fault of the request itself.
func badRequest(message string) error {
	return &fault{status: http.StatusBadRequest, code: "bad_request", message: message}
}
