package fuzz

import (
	"math"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
)

// winInput says what becomes of the events of a case before they reach the state:
// which of them are late, and how far the sources let time go.
type winInput struct {
	c       *winCase
	wall    int64                  // reading of the clock
	opened  int64                  // its reading when the store was opened
	heard   map[int]int64          // when each source was heard of since
	marks   map[int]int64          // watermarks by source
	spoken  map[int]bool           // sources that speak of watermarks
	sent    map[int][]oracle.Event // what each source has sent
	late    triegs.LateStats       // since the store was opened; Outside is not kept
	pending triegs.LateStats       // of the batch that was judged last
}

func newWinInput(c *winCase) winInput {
	in := winInput{c: c, marks: map[int]int64{}, spoken: map[int]bool{}, sent: map[int][]oracle.Event{}}
	in.open()
	return in
}

// open forgets what a store forgets when it is closed.
func (in *winInput) open() {
	in.opened, in.heard, in.late = in.wall, map[int]int64{}, triegs.LateStats{}
}

// behind is a time less the lateness.
func (in *winInput) behind(now int64) int64 { return plus(now, -in.c.lateness) }

// judge takes the events that are not left out, in the order in which they stand.
// now gives the time by which the next one is judged.
func (in *winInput) judge(events []oracle.Event, now func(e *oracle.Event) int64) (out []oracle.Event, err error) {
	var stats triegs.LateStats
	for _, e := range events {
		if at := now(&e); e.Time < in.behind(at) && (in.c.eventTime || !e.Delete) {
			switch in.c.policy {
			case triegs.LateRefuse:
				in.late.Refused++
				return nil, errLate
			case triegs.LateDrop:
				stats.Dropped++
				continue
			}
			stats.Accepted++
		}
		out = append(out, e)
	}
	in.pending = stats
	return out, nil
}

// accept counts what judge has found, once the batch is applied.
func (in *winInput) accept() {
	in.late.Accepted += in.pending.Accepted
	in.late.Dropped += in.pending.Dropped
}

// arrive takes a batch in event-time mode at a logical time. Its events are judged
// by the time that they themselves have brought, unless their source speaks of
// watermarks. A batch that was sent before is no batch, unless its watermark is
// newer.
func (in *winInput) arrive(a *winAct, first int64) (events []oracle.Event, replay bool, err error) {
	in.heard[a.source] = in.wall
	mark, known := in.marks[a.source]
	if !known {
		mark = math.MinInt64
	}
	if len(a.events) == 0 && in.resent(a) > 0 && (a.silent || a.at <= mark) {
		return nil, true, nil
	}
	spoken := in.spoken[a.source] || !a.silent
	others, any := in.lowest(a.source)
	if !any {
		others = math.MaxInt64
	}
	events, err = in.judge(a.events, func(e *oracle.Event) int64 {
		now := max(first, min(others, mark))
		if !spoken {
			mark = max(mark, e.Time)
		}
		return now
	})
	if err != nil {
		return nil, false, err
	}
	if !a.silent {
		mark = max(mark, a.at)
	}
	in.marks[a.source], in.spoken[a.source] = mark, spoken
	if a.source < in.c.sources { // the nameless one is not remembered
		in.sent[a.source] = append(in.sent[a.source], a.events...)
	}
	return events, false, nil
}

// resent is how many events come before those of a batch that came before.
func (in *winInput) resent(a *winAct) int { return min(a.again, len(in.sent[a.source])) }

// lowest is the least watermark of the active sources but one.
func (in *winInput) lowest(except int) (least int64, any bool) {
	least = math.MaxInt64
	for i := range in.c.sources + 1 {
		at, ok := in.marks[i]
		declared := in.c.declared && i < in.c.sources
		if i == except || in.idle(i) || !ok && !declared {
			continue
		}
		if any = true; !ok {
			at = math.MinInt64
		}
		least = min(least, at)
	}
	return least, any
}

// idle tells whether a source is not waited for.
func (in *winInput) idle(source int) bool {
	last, ok := in.heard[source]
	if !ok {
		last = in.opened
	}
	return in.c.idle > 0 && in.wall-last > in.c.idle
}
