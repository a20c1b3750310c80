package summary_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/summary"
)

// desk is a store with a query, a subscription to it and a summary.
type desk struct {
	*testing.T
	db  *triegs.DB
	sub *triegs.Subscription
	sum *summary.Summary
}

// newDesk opens a store whose clock stands still.
func newDesk(t *testing.T, text string, opts summary.Options, sub triegs.SubscribeOptions) *desk {
	t.Helper()
	db, err := triegs.Open("", &triegs.Options{Clock: func() time.Time { return second(0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // tells of the subscription only
	q, err := db.Register(t.Context(), "q", text)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, db: db}
	if d.sum, err = summary.New(q, opts); err != nil {
		t.Fatal(err)
	}
	sub.Mode = triegs.SnapshotFirst
	if d.sub, err = db.Subscribe(t.Context(), "q", sub); err != nil {
		t.Fatal(err)
	}
	return d
}

func second(n int64) time.Time { return time.Unix(n, 0) }

// term reads a term: 1 and 1.5 are numbers, @8 is a time in seconds.
func termOf(s string) triegs.Term {
	if n, err := strconv.ParseInt(strings.TrimPrefix(s, "@"), 10, 64); err == nil {
		if s[0] == '@' {
			return triegs.Time(second(n))
		}
		return triegs.Int(n)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return triegs.Float(f)
	}
	return triegs.String(s)
}

// events reads "+pay(a,1)*2 -pay(b,2.5)".
func events(text string) (out []triegs.Event) {
	for _, f := range strings.Fields(text) {
		body, copies, _ := strings.Cut(f[1:], "*")
		n, err := strconv.Atoi(copies)
		if err != nil {
			n = 1
		}
		relation, args, _ := strings.Cut(strings.TrimSuffix(body, ")"), "(")
		e := triegs.Event{Relation: relation}
		if f[0] == '-' {
			e.Op = triegs.Delete
		}
		for _, a := range strings.Split(args, ",") {
			e.Tuple = append(e.Tuple, termOf(a))
		}
		out = append(out, slices.Repeat([]triegs.Event{e}, n)...)
	}
	return out
}

// append makes an epoch of events at a logical time in seconds.
func (d *desk) append(at int64, text string) {
	d.Helper()
	if _, err := d.db.Append(d.Context(), triegs.Batch{Time: second(at), Events: events(text)}); err != nil {
		d.Fatal(err)
	}
}

// next applies the next update.
func (d *desk) next() error {
	for u, err := range d.sub.Updates() {
		if err != nil {
			return err
		}
		return d.sum.Apply(u)
	}
	return errors.New("the subscription is silent")
}

// line prints a group: "(a 1): 2 3.5".
func line(group []triegs.Term, values []any) string {
	words := make([]string, len(group))
	for i, t := range group {
		words[i] = t.Lexical()
	}
	return "(" + strings.Join(words, " ") + "):" + said(values)
}

func said(values []any) string {
	if values == nil {
		return " none"
	}
	var b strings.Builder
	for _, v := range values {
		switch v := v.(type) {
		case triegs.Term:
			if f, ok := v.AsFloat(); ok && v.Kind() == triegs.KindFloat {
				fmt.Fprintf(&b, " %vf", f)
				continue
			}
			b.WriteString(" " + v.Lexical())
		case float64:
			fmt.Fprintf(&b, " %vf", v)
		default:
			fmt.Fprintf(&b, " %v", v)
		}
	}
	return b.String()
}

// groups prints a summary: "(a): 1; (b): 2".
func groups(s *summary.Summary) string {
	var parts []string
	for g, v := range s.Groups() {
		parts = append(parts, line(g, v))
	}
	return strings.Join(parts, "; ")
}

// changed prints what has changed: "(a): 1 > 2".
func changed(s *summary.Summary) string {
	var parts []string
	for c := range s.Changed() {
		parts = append(parts, line(c.Group, c.Old)+" >"+said(c.New))
	}
	return strings.Join(parts, "; ")
}

// move is an epoch of a story.
type move struct {
	at      int64 // logical time in seconds
	events  string
	want    string
	changed string
}

const payments = "q(x, a, t) :- pay(x, a, t)."

func everything(column string) []summary.Aggregate {
	return []summary.Aggregate{
		summary.Count(), summary.Sum(column), summary.Avg(column), summary.Min(column), summary.Max(column),
	}
}

var stories = map[string]struct {
	query string
	opts  summary.Options
	moves []move
}{
	"all aggregates": {
		"q(x, a) :- pay(x, a).",
		summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a")},
		[]move{
			{0, "+pay(a,1)*2 +pay(a,4) +pay(b,7)", "(a): 3 6 2f 1 4; (b): 1 7 7f 7 7", "(a): none > 3 6 2f 1 4; (b): none > 1 7 7f 7 7"},
			{0, "-pay(a,1) +pay(b,0.5)", "(a): 2 5 2.5f 1 4; (b): 2 7.5f 3.75f 0.5f 7", "(a): 3 6 2f 1 4 > 2 5 2.5f 1 4; (b): 1 7 7f 7 7 > 2 7.5f 3.75f 0.5f 7"},
			{0, "-pay(b,0.5) -pay(a,1) -pay(a,4)", "(b): 1 7 7f 7 7", "(a): 2 5 2.5f 1 4 > none; (b): 2 7.5f 3.75f 0.5f 7 > 1 7 7f 7 7"},
			{0, "-pay(b,7) +pay(b,7)", "(b): 1 7 7f 7 7", ""},
			{0, "-pay(b,7)", "", "(b): 1 7 7f 7 7 > none"},
		},
	},
	"one group": {
		"q(x, a) :- pay(x, a).",
		summary.Options{Aggregates: []summary.Aggregate{summary.Max("x"), summary.Count()}},
		[]move{
			{0, "+pay(a,1) +pay(b,7)*3", "(): b 4", "(): none > b 4"},
			{0, "-pay(b,7)*3", "(): a 1", "(): b 4 > a 1"},
		},
	},
	"distinct": {
		"q(x, a) :- pay(x, a).",
		summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a"), Distinct: true},
		[]move{
			{0, "+pay(a,1)*3 +pay(a,3)", "(a): 2 4 2f 1 3", "(a): none > 2 4 2f 1 3"},
			{0, "-pay(a,1)*2", "(a): 2 4 2f 1 3", ""},
			{0, "-pay(a,1)", "(a): 1 3 3f 3 3", "(a): 2 4 2f 1 3 > 1 3 3f 3 3"},
		},
	},
	// The answer that came first leaves last: a queue would take it out at 12, and
	// tell that 3 is the least and the greatest.
	"expiry is not birth": {
		payments,
		summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a"), Times: []string{"t"}, Range: 10 * time.Second},
		[]move{
			{8, "+pay(k,5,@8)", "(k): 1 5 5f 5 5", "(k): none > 1 5 5f 5 5"},
			{9, "+pay(k,3,@2)", "(k): 2 8 4f 3 5", "(k): 1 5 5f 5 5 > 2 8 4f 3 5"},
			{11, "", "(k): 2 8 4f 3 5", ""},
			{12, "", "(k): 1 5 5f 5 5", "(k): 2 8 4f 3 5 > 1 5 5f 5 5"},
			{17, "+pay(k,9,@7)", "(k): 1 5 5f 5 5", ""},              // has expired before it came
			{17, "-pay(k,9,@7) -pay(k,3,@2)", "(k): 1 5 5f 5 5", ""}, // and so does not leave again
			{18, "+pay(k,1,@99)", "(k): 1 1 1f 1 1", "(k): 1 5 5f 5 5 > 1 1 1f 1 1"},
			{18, "-pay(k,1,@99)", "", "(k): 1 1 1f 1 1 > none"},
			{200, "", "", ""},
		},
	},
	// An answer dies with the older of its facts, whichever came first.
	"two times": {
		"q(x, t, u) :- r(x, t), s(x, u).",
		summary.Options{Aggregates: []summary.Aggregate{summary.Count()}, Times: []string{"t", "u"}, Range: 10 * time.Second},
		[]move{
			{5, "+r(a,@5)*2 +s(a,@3)", "(): 2", "(): none > 2"},
			{6, "+s(a,@6)", "(): 4", "(): 2 > 4"},
			{13, "", "(): 2", "(): 4 > 2"},
			{14, "-r(a,@5)", "(): 1", "(): 2 > 1"},
			{15, "", "", "(): 1 > none"},
		},
	},
	// The window of the query says when an answer goes: with its oldest fact.
	"window of the query": {
		"q(x, a, b) :- r(x, a), s(x, b) window 10s.",
		summary.Options{Aggregates: []summary.Aggregate{summary.Min("a"), summary.Max("b"), summary.Count()}},
		[]move{
			{0, "+r(k,1)", "", ""},
			{4, "+s(k,8)", "(): 1 8 1", "(): none > 1 8 1"},
			{8, "+r(k,2) +s(k,5)", "(): 1 8 4", "(): 1 8 1 > 1 8 4"},
			{10, "", "(): 2 8 2", "(): 1 8 4 > 2 8 2"},
			{14, "", "(): 2 5 1", "(): 2 8 2 > 2 5 1"},
			{18, "", "", "(): 2 5 1 > none"},
		},
	},
	// Groups of the query are answers of the summary, each once.
	"aggregates of aggregates": {
		"q(x, count(), max(a)) :- pay(x, a).",
		summary.Options{GroupBy: []string{"count()"}, Aggregates: []summary.Aggregate{
			summary.Count(), summary.Sum("count()"), summary.Sum("max(a)"), summary.Min("x")}},
		[]move{
			{0, "+pay(a,1)*2 +pay(b,7) +pay(c,5)", "(1): 2 2 12 b; (2): 1 2 1 a", "(1): none > 2 2 12 b; (2): none > 1 2 1 a"},
			{0, "+pay(b,3)", "(1): 1 1 5 c; (2): 2 4 8 a", "(1): 2 2 12 b > 1 1 5 c; (2): 1 2 1 a > 2 4 8 a"},
		},
	},
	"annotations": {
		"q(x, z) :- road(x, y), road(y, z) semiring int.",
		summary.Options{GroupBy: []string{"x"}, Aggregates: []summary.Aggregate{summary.Sum(summary.Annotation), summary.Max(summary.Annotation), summary.Count()}},
		[]move{
			{0, "+road(a,b) +road(b,c) +road(b,d)*2", "(a): 3 2 2", "(a): none > 3 2 2"},
			{0, "-road(b,c) +road(a,b)", "(a): 4 4 1", "(a): 3 2 2 > 4 4 1"},
		},
	},
	"nobody groups by nothing": {
		"q() :- pay(x, a).",
		summary.Options{Aggregates: []summary.Aggregate{summary.Count()}},
		[]move{{0, "+pay(a,1) +pay(b,1)", "(): 2", "(): none > 2"}, {0, "-pay(a,1) -pay(b,1)", "", "(): 2 > none"}},
	},
}

// What a summary tells after each epoch, and what it says has changed.
func TestStories(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, story.query, story.opts, triegs.SubscribeOptions{PerEpoch: true})
			if err := d.next(); err != nil || groups(d.sum) != "" {
				t.Fatalf("nothing gives %q, %v", groups(d.sum), err)
			}
			for i, m := range story.moves {
				d.append(m.at, m.events)
				if err := d.next(); err != nil {
					t.Fatalf("move %d: %v", i, err)
				}
				if got := groups(d.sum); got != m.want {
					t.Errorf("move %d: got %q, want %q", i, got, m.want)
				}
				if got := changed(d.sum); got != m.changed {
					t.Errorf("move %d: changed is %q, want %q", i, got, m.changed)
				}
				if s := d.sum; !s.Time().Equal(second(m.at)) || s.Token() != d.sub.Token() || s.Epoch() != s.Token().Epoch() || s.Len() != strings.Count(m.want, "(") {
					t.Errorf("move %d: at %v, epoch %d, with %d groups", i, s.Time(), s.Epoch(), s.Len())
				}
			}
		})
	}
}

// Expiry and Advance: answers leave by the function, also between updates, and a
// time beyond those that there are is never or at once.
func TestExpiry(t *testing.T) {
	opts := summary.Options{Aggregates: []summary.Aggregate{summary.Count(), summary.Min("a")}}
	opts.Expiry = func(r *triegs.Row) (time.Time, bool) {
		switch a, _ := r.Term(1).AsInt(); a {
		case 0:
			return time.Time{}, false
		case 1:
			return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), true
		case 2:
			return time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), true
		default:
			return second(a), true
		}
	}
	d := newDesk(t, "q(x, a) :- pay(x, a).", opts, triegs.SubscribeOptions{})
	d.append(1, "+pay(k,2) +pay(k,5) +pay(k,7) +pay(k,7) +pay(k,9)")
	steps := []struct {
		do   func() error
		want string
	}{
		{d.next, ""},
		{d.next, "(): 4 5"},
		{func() error { return d.sum.Advance(second(4)) }, "(): 4 5"},
		{func() error { return d.sum.Advance(second(6)) }, "(): 3 7"},
		{func() error { return d.sum.Advance(second(2)) }, "(): 3 7"}, // it never goes back
		{func() error { d.append(2, "+pay(k,6) +pay(k,0) +pay(k,1)"); return d.next() }, "(): 5 0"},
		{func() error { return d.sum.Advance(second(7)) }, "(): 3 0"},
		{func() error { return d.sum.Advance(time.Unix(0, math.MaxInt64-1)) }, "(): 2 0"},
	}
	for i, s := range steps {
		if err := s.do(); err != nil || groups(d.sum) != s.want {
			t.Fatalf("step %d: got %q, %v, want %q", i, groups(d.sum), err, s.want)
		}
	}
	if err := d.sum.Advance(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)); !errors.Is(err, triegs.ErrTime) {
		t.Errorf("to a time that does not fit: %v, want ErrTime", err)
	}
	if got, want := changed(d.sum), "(): 3 0 > 2 0"; got != want {
		t.Errorf("changed is %q, want %q", got, want)
	}
}

// Whoever starts again from a whole answer is told what differs.
func TestWholeAgain(t *testing.T) {
	d := newDesk(t, "q(x, a) :- pay(x, a).", summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a")}, triegs.SubscribeOptions{})
	d.append(0, "+pay(a,1) +pay(b,2) +pay(c,3)")
	if err := d.next(); err != nil { // the whole answer is that of the start
		t.Fatal(err)
	}
	if err := d.next(); err != nil {
		t.Fatal(err)
	}
	d.append(0, "-pay(a,1) +pay(c,4) +pay(d,5)")
	var err error
	if d.sub, err = d.db.Subscribe(t.Context(), "q", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst}); err != nil {
		t.Fatal(err)
	}
	if err := d.next(); err != nil {
		t.Fatal(err)
	}
	if got, want := changed(d.sum), "(a): 1 1 1f 1 1 > none; (c): 1 3 3f 3 3 > 2 7 3.5f 3 4; (d): none > 1 5 5f 5 5"; got != want {
		t.Errorf("changed is %q, want %q", got, want)
	}
	if got, want := groups(d.sum), "(b): 1 2 2f 2 2; (c): 2 7 3.5f 3 4; (d): 1 5 5f 5 5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if v, ok := d.sum.Get(triegs.String("d")); !ok || said(v) != " 1 5 5f 5 5" {
		t.Errorf("Get gives %v, %v", v, ok)
	}
	for _, key := range [][]triegs.Term{{triegs.String("a")}, {}, {triegs.String("d"), triegs.Int(5)}} {
		if v, ok := d.sum.Get(key...); ok {
			t.Errorf("Get(%v) gives %v", key, v)
		}
	}
	if got := d.sum.Columns(); !slices.Equal(got, []string{"x", "count()", "sum(a)", "avg(a)", "min(a)", "max(a)"}) {
		t.Errorf("columns are %q", got)
	}
}

// Options that mean nothing for the query are refused, all at once.
func TestNewRefuses(t *testing.T) {
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q, err := db.Register(t.Context(), "q", "q(x, t, count()) :- pay(x, a, t).")
	if err != nil {
		t.Fatal(err)
	}
	one := []summary.Aggregate{summary.Count()}
	never := func(*triegs.Row) (time.Time, bool) { return time.Time{}, false }
	for name, c := range map[string]struct {
		opts summary.Options
		want string
	}{
		"nothing":            {summary.Options{}, "no aggregates"},
		"column of a group":  {summary.Options{GroupBy: []string{"a"}, Aggregates: one}, `no column "a"`},
		"column of a sum":    {summary.Options{Aggregates: []summary.Aggregate{summary.Sum("b")}}, `no column "b"`},
		"annotation":         {summary.Options{Aggregates: []summary.Aggregate{summary.Sum(summary.Annotation)}}, "no semiring"},
		"zero aggregate":     {summary.Options{Aggregates: make([]summary.Aggregate, 1)}, "zero Aggregate"},
		"no range":           {summary.Options{Aggregates: one, Times: []string{"t"}}, "Range of 0s"},
		"no times":           {summary.Options{Aggregates: one, Range: 1}, "without Times"},
		"both":               {summary.Options{Aggregates: one, Range: 1, Times: []string{"t"}, Expiry: never}, "exclude"},
		"time of a group":    {summary.Options{Aggregates: one, Range: 1, Times: []string{"count()"}}, "no output variable"},
		"two faults, second": {summary.Options{GroupBy: []string{"a", "b"}}, `no column "b"`},
	} {
		if _, err := summary.New(q, c.opts); !errors.Is(err, triegs.ErrValue) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrValue with %q", name, err, c.want)
		}
	}
	if _, err := summary.New(nil, summary.Options{Aggregates: one}); !errors.Is(err, triegs.ErrValue) {
		t.Errorf("no query: %v, want ErrValue", err)
	}
}

// An update that cannot be applied leaves the summary as it was, with the group in
// the error, and what comes behind it is refused until a whole answer begins anew.
func TestApplyRefuses(t *testing.T) {
	const big = "4611686018427387904" // 2^62
	all := summary.Options{GroupBy: []string{"x"}, Aggregates: everything("a")}
	timed := all
	timed.Times, timed.Range = []string{"t"}, 10*time.Second
	for name, c := range map[string]struct {
		opts          summary.Options
		before, event string
		at            int64
		want          error
		says          string
	}{
		"sum":          {all, "+pay(k," + big + ",0)", "+pay(j,1,0) +pay(k," + big + ",1)", 0, triegs.ErrOverflow, `group ("k")`},
		"sum of many":  {all, "+pay(k," + big + ",0)", "-pay(k," + big + ",0) +pay(k," + big + ",1)*2", 0, triegs.ErrOverflow, `column "a"`},
		"floats":       {all, "+pay(k,1e308,0)", "+pay(k,1.7e308,0)", 0, triegs.ErrOverflow, `group ("k")`},
		"no number":    {all, "+pay(k,1,0)", "+pay(k,word,0) +pay(k,2,0)", 0, triegs.ErrValue, `column "a"`},
		"no time":      {timed, "+pay(k,1,@0)", "+pay(k,2,3) +pay(k,1,@1)", 0, triegs.ErrValue, `column "t"`},
		"what expires": {timed, "+pay(k,-" + big + ",@0) +pay(k," + big + ",@5)*2", "", 10, triegs.ErrOverflow, `group ("k")`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, payments, c.opts, triegs.SubscribeOptions{})
			d.append(0, c.before)
			if err := errors.Join(d.next(), d.next()); err != nil {
				t.Fatal(err)
			}
			was, epoch, at, news := groups(d.sum), d.sum.Epoch(), d.sum.Time(), changed(d.sum)
			d.append(c.at, c.event)
			err := d.next()
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v that names %s", err, c.want, c.says)
			}
			check := func() {
				t.Helper()
				if s := d.sum; groups(s) != was || s.Epoch() != epoch || !s.Time().Equal(at) || changed(s) != news {
					t.Errorf("%q at epoch %d and %v has become %q at %d and %v", was, epoch, at, groups(s), s.Epoch(), s.Time())
				}
			}
			check()
			d.append(c.at, "+pay(z,1,@9)")
			if err := d.next(); !errors.Is(err, triegs.ErrValue) || !strings.Contains(err.Error(), "stands at") {
				t.Errorf("behind a failed update: %v, want ErrValue", err)
			}
			check()
			if name == "what expires" {
				if err := d.sum.Advance(second(10)); !errors.Is(err, triegs.ErrOverflow) {
					t.Errorf("Advance: %v, want ErrOverflow", err)
				}
				check()
				if err := d.sum.Advance(second(15)); err != nil || groups(d.sum) != "" {
					t.Errorf("Advance behind it: %q, %v", groups(d.sum), err)
				}
			}
		})
	}
}

// A summary is for the updates of one subscription, from its whole answer on.
func TestApplyOthers(t *testing.T) {
	one := summary.Options{Aggregates: []summary.Aggregate{summary.Count()}}
	d := newDesk(t, "q(x, a) :- pay(x, a).", one, triegs.SubscribeOptions{})
	ctx := context.Background()
	late, err := d.db.Subscribe(ctx, "q", triegs.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.append(0, "+pay(a,1)")
	whole := d.sub
	d.sub = late
	if err := d.next(); !errors.Is(err, triegs.ErrValue) || !strings.Contains(err.Error(), "not begun") {
		t.Errorf("without a whole answer: %v, want ErrValue", err)
	}
	d.sub = whole
	for range 2 {
		if err := d.next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.db.Register(ctx, "p", "p(x, b) :- pay(x, b)."); err != nil {
		t.Fatal(err)
	}
	if d.sub, err = d.db.Subscribe(ctx, "p", triegs.SubscribeOptions{Mode: triegs.SnapshotFirst}); err != nil {
		t.Fatal(err)
	}
	if err := d.next(); !errors.Is(err, triegs.ErrValue) || groups(d.sum) != "(): 1" {
		t.Errorf("of another query: %v with %q, want ErrValue", err, groups(d.sum))
	}
	var kept *triegs.Update
	for u := range whole.Updates() {
		kept = u
		break
	}
	if kept == nil {
		t.Fatal("no update")
	}
	if err := d.sum.Apply(kept); err == nil || groups(d.sum) != "(): 1" {
		t.Errorf("behind its step: %v with %q, want an error", err, groups(d.sum))
	}
}

// An Expiry that says this and that is found out when the books do not balance.
func TestApplyUnsteadyExpiry(t *testing.T) {
	at := int64(10)
	opts := summary.Options{Aggregates: []summary.Aggregate{summary.Count(), summary.Min("a")}}
	opts.Expiry = func(*triegs.Row) (time.Time, bool) { at += 10; return second(at), true }
	d := newDesk(t, "q(x, a) :- pay(x, a).", opts, triegs.SubscribeOptions{})
	d.append(0, "+pay(a,1)")
	if err := errors.Join(d.next(), d.next(), d.sum.Advance(second(20))); err != nil {
		t.Fatal(err)
	}
	d.append(0, "-pay(a,1)")
	if err := d.next(); !errors.Is(err, triegs.ErrValue) || !strings.Contains(err.Error(), "does not have") {
		t.Errorf("got %v, want ErrValue", err)
	}
}
