package fuzz

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// timed is a store whose times are whole numbers of a unit.
type timed struct {
	*world
	unit      time.Duration
	eventTime bool
	options   triegs.Options
	dir       string
}

// setting is a way to run a case that must not matter.
type setting struct {
	unit      time.Duration
	eventTime bool
	disk      bool // with a restart after each step
	saved     bool // and a checkpoint before it
}

// String names the setting.
func (s setting) String() string {
	name := "arrival"
	if s.eventTime {
		name = "event time"
	}
	switch {
	case s.saved:
		name += ", saved"
	case s.disk:
		name += ", reopened"
	}
	return name + ", " + s.unit.String()
}

// settings are the ways in which the cases of windows run; with less of them the
// ones on disk are left out.
func settings(less bool) (out []setting) {
	for _, mode := range []bool{false, true} {
		out = append(out, setting{unit: time.Nanosecond, eventTime: mode}, setting{unit: time.Second, eventTime: mode})
		if !less {
			out = append(out, setting{time.Nanosecond, mode, true, false}, setting{time.Second, mode, true, true})
		}
	}
	return out
}

// still is the clock of a store whose time is moved by the test alone: it stands
// where the clamp makes nothing of it.
func still() time.Time { return time.Unix(0, -1<<62) }

// newTimed opens a store under a setting. What the options do not say is chosen
// so that nothing happens by itself.
func newTimed(t *testing.T, s setting, o triegs.Options) *timed {
	t.Helper()
	if o.Clock == nil {
		o.Clock = still
	}
	if o.Tick == 0 {
		o.Tick = -1
	}
	o.EventTime, o.CheckpointBytes = s.eventTime, -1
	dir := ""
	if s.disk {
		dir, o.Durability = filepath.Join(t.TempDir(), "store"), triegs.SyncNone
	}
	return &timed{newWorld(t, dir, &o), s.unit, s.eventTime, o, dir}
}

// at is the time n units after 1970.
func (w *timed) at(n int64) time.Time { return time.Unix(0, n*int64(w.unit)) }

// spans matches the lengths of time that a case gives in units.
var spans = regexp.MustCompile(`(\d+)u\b`)

// text gives a query text its unit.
func (w *timed) text(text string) string {
	return spans.ReplaceAllStringFunc(text, func(m string) string {
		n, _ := strconv.ParseInt(strings.TrimSuffix(m, "u"), 10, 64)
		return (time.Duration(n) * w.unit).String()
	})
}

// timedEvents reads "+R(a,b)@3#e1 -S(b)*2 -#e1": events with a time, else that of
// the batch, and an ID.
func (w *timed) timedEvents(text string, now int64) (out []triegs.Event) {
	for _, f := range strings.Fields(text) {
		f, copies, _ := strings.Cut(f, "*")
		f, id, _ := strings.Cut(f, "#")
		f, when, dated := strings.Cut(f, "@")
		at := now
		if dated {
			at, _ = strconv.ParseInt(when, 10, 64)
		}
		n := 1
		if copies != "" {
			n, _ = strconv.Atoi(copies)
		}
		e := triegs.Event{Op: triegs.Delete}
		if f != "-" {
			e = events(f)[0]
		}
		e.Time, e.ID = w.at(at), id
		for range n {
			out = append(out, e)
		}
	}
	return out
}

// put appends events at a logical time, which in event-time mode is the watermark
// of their source.
func (w *timed) put(now int64, text string) triegs.Epoch {
	w.Helper()
	return w.append(w.batch(now, text))
}

// batch is what put appends.
func (w *timed) batch(now int64, text string) triegs.Batch {
	b := triegs.Batch{Events: w.timedEvents(text, now)}
	if w.eventTime {
		b.Source, b.Watermark = "s", w.at(now)
		b.Offset, _ = w.db.Offset("s")
		return b
	}
	b.Time = w.at(now)
	return b
}

// advance moves time.
func (w *timed) advance(now int64) triegs.Epoch {
	w.Helper()
	e, err := w.db.Advance(w.ctx, w.at(now))
	if err != nil {
		w.Fatalf("advance to %d: %v", now, err)
	}
	return e
}

// wantNow checks the logical time.
func (w *timed) wantNow(now int64) {
	w.Helper()
	s := w.snapshot()
	defer s.Close()
	if got := s.Time(); !got.Equal(w.at(now)) {
		w.Fatalf("logical time %v, want %v (%d)", got.UnixNano(), w.at(now).UnixNano(), now)
	}
}

// run plays a script of lines "TIME [EVENTS] [| QUERY ANSWERS]..."; a step
// without events advances time.
func (w *timed) run(s setting, script string) {
	w.Helper()
	for line := range strings.Lines(script) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "%")
		if line == "" {
			continue
		}
		parts := strings.Split(line, "|")
		when, text, _ := strings.Cut(strings.TrimSpace(parts[0]), " ")
		now, err := strconv.ParseInt(when, 10, 64)
		if err != nil {
			w.Fatalf("line %q: %v", line, err)
		}
		if text == "" {
			w.advance(now)
		} else {
			w.put(now, text)
		}
		for range 2 {
			w.wantNow(now)
			for _, p := range parts[1:] {
				name, answers, _ := strings.Cut(strings.TrimSpace(p), " ")
				w.want(name, answers)
			}
			if w.Failed() || !s.disk {
				break
			}
			w.restart(s.saved)
		}
		if err := w.db.Verify(w.ctx); err != nil {
			w.Fatalf("line %q: %v", line, err)
		}
	}
}

// restart closes the store and opens it again.
func (w *timed) restart(saved bool) {
	w.Helper()
	if saved {
		if err := w.db.Checkpoint(w.ctx); err != nil {
			w.Fatal(err)
		}
	}
	w.reopen(w.dir, &w.options)
}

// playEverywhere runs one script under every setting.
func playEverywhere(t *testing.T, queries, script string) {
	t.Helper()
	for _, s := range settings(false) {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			w := newTimed(t, s, triegs.Options{})
			for line := range strings.Lines(queries) {
				if text := w.text(strings.TrimSpace(line)); text != "" {
					name, _, _ := strings.Cut(text, "(")
					w.register(name, text)
				}
			}
			w.run(s, script)
		})
	}
}

// The script itself is read as it should be.
func TestTimedScript(t *testing.T) {
	w := &timed{unit: time.Second}
	got := ""
	for _, e := range w.timedEvents("+R(a,b)@3#e1 -S(b)*2 -#e1", 7) {
		got += fmt.Sprintf("%v %s/%d @%d %s; ", e.Op, e.Relation, len(e.Tuple), e.Time.Unix(), e.ID)
	}
	if want := "insert R/2 @3 e1; delete S/1 @7 ; delete S/1 @7 ; delete /0 @7 e1; "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := w.text("q(x) :- R(x) window 10u slide 5u."); got != "q(x) :- R(x) window 10s slide 5s." {
		t.Errorf("got %q", got)
	}
}
