// Package errs holds the sentinel errors of triegs, one for each kind of
// failure. The root package exports them under the same names; every room
// wraps them with %w and adds what it knows (the event, the position in a
// query text, the file). The prefix "triegs: " is added at the edge of the
// public API and nowhere else.
package errs

import "errors"

// The sentinels. Their meaning is told at their exported names in the root
// package.
var (
	ErrArity           = errors.New("wrong arity")
	ErrTime            = errors.New("time out of range")
	ErrValue           = errors.New("bad value")
	ErrNoSuchFact      = errors.New("no such fact")
	ErrNoSuchQuery     = errors.New("no such query")
	ErrQueryExists     = errors.New("query exists")
	ErrNoAnswer        = errors.New("no such answer")
	ErrSyntax          = errors.New("syntax error")
	ErrUnsupported     = errors.New("not supported")
	ErrLate            = errors.New("event is late")
	ErrOverflow        = errors.New("count does not fit in int64")
	ErrLocked          = errors.New("store is locked")
	ErrReadOnly        = errors.New("store is read-only")
	ErrClosed          = errors.New("store is closed")
	ErrCorrupt         = errors.New("stored data is corrupt")
	ErrSnapshotClosed  = errors.New("snapshot is closed")
	ErrSnapshotExpired = errors.New("snapshot has expired")
	ErrSlowSubscriber  = errors.New("subscriber is too slow")
	ErrNameInUse       = errors.New("name is in use")
	ErrTimeline        = errors.New("position of another history")
	ErrTooOld          = errors.New("position is not kept any more")
	ErrGap             = errors.New("gap in the offsets of a source")
	ErrBudget          = errors.New("memory budget exceeded")
	ErrFormat          = errors.New("wrong store format")
	ErrLeaked          = errors.New("handles were left open")
)
