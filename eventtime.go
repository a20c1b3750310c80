package triegs

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/rootvec"
)

// LatePolicy says what becomes of an event that is late: whose time lies more
// than Options.Lateness behind logical time.
type LatePolicy uint8

const (
	// LateAccept applies it: it enters the windows that still hold its time. It
	// is the zero LatePolicy, because an event is not lost unasked.
	LateAccept LatePolicy = iota
	// LateDrop leaves it out; the position of its source moves all the same.
	LateDrop
	// LateRefuse refuses the batch with ErrLate.
	LateRefuse
)

// String returns the name of the constant.
func (p LatePolicy) String() string {
	switch p {
	case LateAccept:
		return "LateAccept"
	case LateDrop:
		return "LateDrop"
	case LateRefuse:
		return "LateRefuse"
	}
	return fmt.Sprintf("LatePolicy(%d)", uint8(p))
}

// LateEvent is an event that came late, as Options.OnLate is told of it.
type LateEvent struct {
	Source string
	Offset uint64 // of the event in its source
	Event  Event
	Time   time.Time // logical time when it was judged
	// Dropped tells whether it was left out.
	Dropped bool
}

// LateStats counts late events since the store was opened.
type LateStats struct {
	// Accepted were applied, Dropped left out, Refused stood in refused batches
	// (one each, the first). Outside counts those that were not dropped, and that
	// no window of any query and no retention could hold any more.
	Accepted uint64 `json:"accepted"`
	Dropped  uint64 `json:"dropped"`
	Refused  uint64 `json:"refused"`
	Outside  uint64 `json:"outside"`
}

// lateCounters are LateStats as they are counted.
type lateCounters struct{ accepted, dropped, refused, outside atomic.Uint64 }

func (c *lateCounters) read() LateStats {
	return LateStats{c.accepted.Load(), c.dropped.Load(), c.refused.Load(), c.outside.Load()}
}

func (c *lateCounters) add(s LateStats) {
	c.accepted.Add(s.Accepted)
	c.dropped.Add(s.Dropped)
	c.outside.Add(s.Outside)
}

// liveness knows when each source was last heard of.
type liveness struct {
	mu     sync.Mutex
	opened time.Time
	heard  map[string]time.Time // nothing is heard of a source before its first batch
}

func (l *liveness) init(o *Options) {
	l.opened = o.Clock()
	l.heard = make(map[string]time.Time)
}

func (l *liveness) hear(source string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[source] = now
}

// idle reports whether nothing has come from a source for longer than the
// timeout, counted from Open for one that has not been heard of since.
func (l *liveness) idle(source string, now time.Time, timeout time.Duration) bool {
	if timeout == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.heard[source]
	if !ok {
		last = l.opened
	}
	return now.Sub(last) > timeout
}

// low is the least watermark of the active sources, and a source that has it.
// Where no source is active, or one has no watermark yet, it is the least time.
type low struct {
	time   int64
	source string
}

// lowest computes it from positions; except is a source that is left out.
func (db *DB) lowest(s rootvec.Sources, now time.Time, except string, without bool) (l low, any bool) {
	l.time = math.MaxInt64
	look := func(name string, at int64) {
		if without && name == except || db.live.idle(name, now, db.opts.IdleTimeout) {
			return
		}
		if !any || at < l.time || at == l.time && name < l.source {
			l = low{at, name}
		}
		any = true
	}
	for name, p := range s.All() {
		if p.HasWatermark {
			look(name, p.Watermark)
		}
	}
	for _, name := range db.opts.Sources {
		if p, ok := s.Get(name); !ok || !p.HasWatermark {
			look(name, math.MinInt64)
		}
	}
	return l, any
}

// eventTime is the logical time that watermarks allow, at least what it was.
// Where all sources are silent there is none to wait for: it is the greatest
// watermark, as it would be if they had fallen silent one after another.
func (db *DB) eventTime(s rootvec.Sources, now time.Time, was int64) int64 {
	if l, any := db.lowest(s, now, "", false); any {
		return max(was, l.time)
	}
	for _, p := range s.All() {
		if p.HasWatermark {
			was = max(was, p.Watermark)
		}
	}
	return was
}

// EventTime reports whether logical time follows watermarks; see Options.EventTime.
func (db *DB) EventTime() bool { return db.opts.EventTime }

// Advance moves logical time to t without events, as one epoch: contributions
// leave and enter windows and expire as they would with an event at t. In
// event-time mode what waits for a time up to t is applied. A time before the
// current one leaves it as it is; there is an epoch all the same.
//
// Errors: ErrTime, and those of Append. Where the views of a query refuse what time
// brings (ErrOverflow), time cannot pass that point, whoever moves it: the error names
// the query and its relations that change, and either the query is dropped or facts are
// retracted. Cost: that of what enters, leaves and
// expires, whatever the length of the gap.
func (db *DB) Advance(ctx context.Context, t time.Time) (Epoch, error) {
	ns, err := nanoseconds(t)
	if err != nil {
		return 0, edge(fmt.Errorf("advancing: %w", err))
	}
	e, err := db.advance(ctx, ns)
	return e, edge(err)
}

func (db *DB) advance(ctx context.Context, ns int64) (Epoch, error) {
	if err := db.check(ctx); err != nil {
		return 0, err
	}
	if err := db.engine.Begin(ctx); err != nil {
		return 0, db.ended(err)
	}
	if err := db.engine.Pass(ns); err != nil {
		db.engine.Rollback()
		return 0, err
	}
	missing, conflicts := db.engine.Ignored(), db.engine.Outcome().Conflicts
	ticket, err := db.commit(ctx, record.Advance, ns)
	if err != nil {
		return ticket, err
	}
	for _, n := range outcome(missing, conflicts) {
		n.Epoch = ticket
		db.notify(n)
	}
	return ticket, nil
}

// Retain says how long contributions to a relation are retained beside what the
// windows of queries need: at least as long as their event time is not more than
// span behind logical time. It is an epoch of its own and survives a restart; a
// span of 0 takes it back.
//
// Without it a relation is retained for ever if a query reads it without a
// window, or if no query reads it; else as long as the longest window.
//
// Errors: ErrValue (a negative span, a relation that is not there), and those of
// Append.
func (db *DB) Retain(ctx context.Context, relation string, span time.Duration) error {
	if span < 0 {
		return edge(fmt.Errorf("%w: a retention of %s", ErrValue, span))
	}
	return edge(db.single(ctx, record.Retain, func() (bool, error) {
		return true, db.engine.Retain(relation, int64(span))
	}))
}

// defaultTick: a window that is read by people may be a second late.
const defaultTick = time.Second

// ticks reports whether logical time has to move while no events come.
func (db *DB) ticks() bool {
	switch {
	case db.opts.Tick < 0 || db.opts.ReadOnly || db.engine.Err() != nil:
		return false
	case db.opts.EventTime:
		return db.opts.IdleTimeout > 0
	}
	return db.engine.Clocked() && db.engine.Due() != math.MaxInt64
}

// tick waits for a while, then moves time if that changes anything.
func (db *DB) tick() {
	ctx := db.upkeep.ctx
	timer := time.NewTimer(db.opts.Tick)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	if err := db.passTime(ctx); err != nil && ctx.Err() == nil {
		db.opts.Logger.Warn("logical time could not be moved", "error", err)
	}
}

// passTime moves logical time to where it is now, in an epoch if that changes
// anything.
func (db *DB) passTime(ctx context.Context) error {
	now := db.opts.Clock()
	if !db.opts.EventTime {
		ns, err := nanoseconds(now)
		if err == nil && db.engine.Due() <= ns {
			_, err = db.advance(ctx, ns)
		}
		return err
	}
	v := db.engine.Current.Pin()
	was := v.Time
	t := db.eventTime(v.Sources, now, was)
	db.engine.Current.Unpin(v)
	if t == was {
		return nil
	}
	_, err := db.advance(ctx, t)
	return err
}
