package triegs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// TestBadValueToCome appends what an aggregate or a semiring refuses before the
// query comes to see it: it is refused when it comes, or the query is, so that no
// later epoch is stopped by it.
func TestBadValueToCome(t *testing.T) {
	sec := func(s int64) time.Time { return time.Unix(s, 0) }
	for name, tc := range map[string]struct {
		text  string
		timed bool  // event-time mode
		at    int64 // event time, at logical time 1003
		good  bool  // nobody will see it
	}{
		"a window":          {text: "q(x, sum(a)) :- p(x, a) window 10s", at: 1100},
		"a slide":           {text: "q(x, sum(a)) :- p(x, a) window 10s slide 10s", at: 1002},
		"a value":           {text: "q(x) :- p(x, a)@ semiring minplus window 10s", at: 1100},
		"waiting":           {text: "q(x, sum(a)) :- p(x, a)", timed: true, at: 1100},
		"a waiting value":   {text: "q(x) :- p(x, a)@ semiring minplus", timed: true, at: 1100},
		"a waiting window":  {text: "q(x) :- p(x, a)@ semiring minplus window 10s", timed: true, at: 1100},
		"another selection": {text: `q(sum(a)) :- p("y", a) window 10s`, at: 1100, good: true},
		"a filter":          {text: "q(sum(a)) :- p(x, a), a > 3 window 10s", at: 1100, good: true},
		"no aggregate":      {text: "q(x, a) :- p(x, a) window 10s", at: 1100, good: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, first := range []bool{true, false} {
				db, err := triegs.Open("", &triegs.Options{EventTime: tc.timed, Tick: -1})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				ctx, offset := context.Background(), uint64(0)
				send := func(now int64, events ...triegs.Event) error {
					b := triegs.Batch{Source: "s", Offset: offset, Events: events, Time: sec(now)}
					if tc.timed {
						b.Watermark = sec(now)
					}
					_, err := db.Append(ctx, b)
					if err == nil {
						offset += uint64(len(events))
					}
					return err
				}
				bad := triegs.Edge("p", triegs.String("k"), triegs.String("bad"))
				bad.Time, bad.Value = sec(tc.at), triegs.String("bad")
				steps := []func() error{
					func() error { return send(1003, bad) },
					func() error { _, err := db.Register(ctx, "q", tc.text); return err },
				}
				if first {
					steps[0], steps[1] = steps[1], steps[0]
				}
				if err := send(1003); err != nil {
					t.Fatal(err)
				}
				if err := steps[0](); err != nil {
					t.Fatal(err)
				}
				err = steps[1]()
				if errors.Is(err, triegs.ErrValue) == tc.good || tc.good && err != nil {
					t.Errorf("query first %v: %v", first, err)
				}
				if first && !tc.good && !strings.Contains(err.Error(), "event 0") {
					t.Errorf("%v does not name the event", err)
				}
				for now := int64(1004); now < 1200; now += 7 {
					if err := send(now); err != nil {
						t.Fatalf("query first %v, at %d: %v", first, now, err)
					}
				}
				if err := db.Verify(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
