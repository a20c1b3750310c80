package triegs

import (
	"fmt"
	"math"
	"time"

	"github.com/triegs/triegs/txn"
)

// intake applies the batches of one call.
type intake struct {
	db       *DB
	t        *txn.Txn
	clock    time.Time
	first    int64 // logical time before it
	at       int64 // logical time of the epoch: in arrival mode the latest of its batches
	own      int64 // the time of events of the batch that have none, if it is timed
	timed    bool  // else they are as late as its source has come
	late     lateness
	event    txn.Event
	replayed bool // every batch was a replay
	told     told
	stats    LateStats
}

// lateness is what the events of one batch are judged by.
type lateness struct {
	source   string
	offset   uint64 // of the first event
	others   int64  // least watermark of the other sources
	mark     int64  // watermark of this one
	explicit bool   // which moves only when the source says so
}

func (in *intake) takeAll(batches []Batch) error {
	in.replayed = len(batches) > 0
	for i := range batches {
		err := in.take(&batches[i])
		if err != nil && len(batches) > 1 {
			err = fmt.Errorf("batch %d: %w", i, err)
		}
		if err != nil {
			return err
		}
	}
	if in.db.opts.EventTime {
		in.at = in.db.eventTime(in.db.engine.Sources(), in.clock, in.first)
	}
	return nil
}

func (in *intake) take(b *Batch) error {
	if err := in.begin(b); err != nil {
		return err
	}
	skip, replay := 0, false
	if b.Source != "" {
		p, err := in.t.From(b.Source, b.Offset, len(b.Events), in.db.opts.DenseSources)
		if err != nil {
			return err
		}
		// A batch without events is a replay as well if it lies below.
		replay = p.Skip == len(b.Events) && b.Offset < p.Next && !in.newer(b)
		if skip = p.Skip; skip > 0 {
			in.told.notices = append(in.told.notices, Notice{Kind: NoticeReplay, Source: b.Source, Position: p.Next, Offset: b.Offset, Count: skip})
		}
	}
	in.replayed = in.replayed && replay
	for i := skip; i < len(b.Events); i++ {
		if err := in.takeEvent(i, &b.Events[i], b.IgnoreMissing); err != nil {
			return err
		}
	}
	if err := in.t.Flush(); err != nil || replay {
		return err
	}
	return in.endOf(b)
}

// begin finds the time of the batch and what is late in it.
func (in *intake) begin(b *Batch) (err error) {
	in.late = lateness{source: b.Source, offset: b.Offset}
	at, timed := int64(0), !b.Time.IsZero()
	switch {
	case timed:
		at, err = nanoseconds(b.Time)
	case !in.db.opts.EventTime:
		at, err = nanoseconds(in.clock)
		in.db.engine.FollowClock()
	}
	if err != nil {
		return fmt.Errorf("batch time: %w", err)
	}
	if !in.db.opts.EventTime {
		in.own = max(in.first, at)
		in.at = max(in.at, in.own)
		return nil
	}
	in.db.live.hear(b.Source, in.clock)
	l := &in.late
	l.others, l.mark = math.MaxInt64, math.MinInt64
	if low, any := in.db.lowest(in.db.engine.Sources(), in.clock, b.Source, true); any {
		l.others = low.time
	}
	if s, _ := in.db.engine.Source(b.Source); s.HasWatermark {
		l.mark, l.explicit = s.Watermark, s.Explicit
	}
	l.explicit = l.explicit || !b.Watermark.IsZero()
	in.own, in.timed = at, timed
	return nil
}

// newer reports whether the batch says that its source has come further in time,
// which counts also where its events are there already.
func (in *intake) newer(b *Batch) bool {
	if !in.db.opts.EventTime || b.Watermark.IsZero() {
		return false
	}
	w, err := nanoseconds(b.Watermark)
	return err != nil || w > in.late.mark // an error is one of endOf
}

// endOf moves the watermark of the batch's source.
func (in *intake) endOf(b *Batch) error {
	if !in.db.opts.EventTime {
		return nil
	}
	mark := in.late.mark
	if !b.Watermark.IsZero() {
		w, err := nanoseconds(b.Watermark)
		if err != nil {
			return fmt.Errorf("watermark: %w", err)
		}
		mark = max(mark, w)
	}
	in.t.Watermark(b.Source, mark, in.late.explicit)
	return nil
}

func (in *intake) takeEvent(i int, e *Event, lenient bool) error {
	if e.Op > DeleteAll {
		return fmt.Errorf("event %d: %w: operation %d", i, ErrValue, e.Op)
	}
	ev := &in.event
	*ev = txn.Event{
		Delete: e.Op != Insert, All: e.Op == DeleteAll, Relation: e.Relation, Tuple: e.Tuple,
		ID: e.ID, Value: e.Value, Lenient: lenient, Wait: in.db.opts.EventTime,
	}
	var err error
	if ev.Time, err = in.timeOf(e); err != nil {
		return fmt.Errorf("event %d: %w", i, err)
	}
	if drop, err := in.judge(i, e, ev); err != nil || drop {
		return err
	}
	return in.t.Event(i, ev)
}

// timeOf is the event time of an event: its own, that of its batch, or, in
// event-time mode, that to which the source has come with the event before it.
func (in *intake) timeOf(e *Event) (int64, error) {
	switch {
	case !e.Time.IsZero():
		return nanoseconds(e.Time)
	case !in.db.opts.EventTime || in.timed:
		return in.own, nil
	}
	at := max(in.first, in.late.mark)
	if at == math.MinInt64 {
		return 0, fmt.Errorf("%w: neither it, its batch nor its source has a time yet", ErrTime)
	}
	return at, nil
}

// judge applies the rules for late events. Its cost is a comparison for one that
// is not.
func (in *intake) judge(i int, e *Event, ev *txn.Event) (drop bool, err error) {
	now := in.first
	if l := &in.late; ev.Wait {
		now = max(now, min(l.others, l.mark))
		if !l.explicit {
			l.mark = max(l.mark, ev.Time)
		}
	}
	if ev.Time >= now || ev.Delete && !ev.Wait {
		return false, nil
	}
	o := in.db.opts
	if ev.Time >= before(now, int64(o.Lateness)) {
		in.countOutside(ev)
		return false, nil
	}
	drop = o.LatePolicy == LateDrop
	switch {
	case o.LatePolicy == LateRefuse:
		in.db.late.refused.Add(1)
		return false, fmt.Errorf("event %d: %w: its time is %s, logical time %s",
			i, ErrLate, wallTime(ev.Time).Format(time.RFC3339Nano), wallTime(now).Format(time.RFC3339Nano))
	case drop:
		in.stats.Dropped++
	default:
		in.stats.Accepted++
		in.countOutside(ev)
	}
	if o.OnLate != nil {
		in.told.late = append(in.told.late, LateEvent{
			Source: in.late.source, Offset: in.late.offset + uint64(i), Event: *e, Time: wallTime(now), Dropped: drop,
		})
	}
	return drop, nil
}

// countOutside counts an event that nothing can see any more.
func (in *intake) countOutside(ev *txn.Event) {
	if !ev.Delete && in.db.engine.Outside(ev.Relation, ev.Time) {
		in.stats.Outside++
	}
}

// before is t minus a span, the least time where int64 cannot hold that.
func before(t, span int64) int64 {
	if t < math.MinInt64+span {
		return math.MinInt64
	}
	return t - span
}

// countMissing notes how many retractions have been skipped.
func (in *intake) countMissing() {
	e := in.db.engine
	in.told.notices = append(in.told.notices, outcome(e.Ignored(), e.Outcome().Conflicts)...)
}

// outcome are the notices of what was left out of an epoch.
func outcome(missing, conflicts uint64) (list []Notice) {
	if missing > 0 {
		list = append(list, Notice{Kind: NoticeMissing, Count: int(missing)})
	}
	if conflicts > 0 {
		list = append(list, Notice{Kind: NoticeConflict, Count: int(conflicts)})
	}
	return list
}

// tellLate tells the listener of late events.
func (db *DB) tellLate(list []LateEvent) {
	if len(list) == 0 {
		return
	}
	db.notices.Lock()
	defer db.notices.Unlock()
	for _, e := range list {
		db.opts.OnLate(e)
	}
}
