package epoch

import (
	"context"
	"fmt"
	"testing"

	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/window"
)

// step applies one epoch of events on the relation r(x, y).
func step(t *testing.T, e *Engine, inserts, deletes [][2]string) {
	t.Helper()
	ctx := context.Background()
	if err := e.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	rel, err := e.Relation("r", 2)
	if err != nil {
		t.Fatal(err)
	}
	for op, pairs := range [][][2]string{OpInsert: inserts, OpDelete: deletes} {
		for _, p := range pairs {
			ev := record.Event{Op: uint8(op), Relation: rel}
			for _, name := range p {
				id, err := e.Intern(term.String(name))
				if err != nil {
					t.Fatal(err)
				}
				ev.Tuple = append(ev.Tuple, id)
			}
			if err := e.Event(&ev); err != nil {
				t.Fatal(err)
			}
		}
	}
	ticket, err := e.Commit(ctx, record.Batch, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

func pair(i int) [2]string { return [2]string{fmt.Sprint("source ", i), fmt.Sprint("target ", i)} }

// TestTermsDieWithTheirFacts slides a window of facts with new names over an
// engine and looks at what the dictionary keeps, with a reader of an old epoch
// that must go on reading its names.
func TestTermsDieWithTheirFacts(t *testing.T) {
	e := New()
	const window, n = 500, 60_000
	passes := 0
	var reader = e.Current.Pin()
	for i := range n {
		var out [][2]string
		if i >= window {
			out = append(out, pair(i-window))
		}
		step(t, e, [][2]string{pair(i)}, out)
		if i == window {
			e.Current.Unpin(reader)
			reader = e.Current.Pin()
		}
		if !e.TermsDue() {
			continue
		}
		passes++
		dead, err := e.MarkTerms(context.Background())
		if err != nil || dead == 0 {
			t.Fatalf("%d dead terms, %v", dead, err)
		}
		if held := e.dict.Live(); held < e.dict.Len() {
			t.Fatalf("%d of %d terms are held while a reader may need them", held, e.dict.Len())
		}
		a, ok := e.dict.Find(term.String("source 1"), reader.Terms)
		if !ok || e.dict.Term(a) != term.String("source 1") {
			t.Fatal("a reader lost a name")
		}
		e.Current.Unpin(reader)
		step(t, e, nil, nil)
		if held := e.dict.Live(); held > 4*window {
			t.Fatalf("%d terms are held for %d facts", held, window)
		}
		reader = e.Current.Pin()
	}
	e.Current.Unpin(reader)
	if passes == 0 {
		t.Fatal("no pass was due")
	}
	if got, want := e.dict.Len(), uint64(2*n); got != want {
		t.Fatalf("%d ids were handed out, want %d: ids are not used again", got, want)
	}
}

// TestTermsOfAGrowingStoreAreLeftAlone: nothing dies where nothing goes.
func TestTermsOfAGrowingStoreAreLeftAlone(t *testing.T) {
	e := New()
	for i := 0; i < 2*minNewTerms; i += 1000 {
		var in [][2]string
		for j := range 1000 {
			in = append(in, pair(i+j))
		}
		step(t, e, in, nil)
		if e.TermsDue() {
			t.Fatalf("a pass is due after %d insertions", i)
		}
	}
}

// TestTermsOfAShrinkingStoreGo: without any new term, deletion alone makes a
// pass due in the end.
func TestTermsOfAShrinkingStoreGo(t *testing.T) {
	e := New()
	const n = 2 * minNewTerms
	for i := 0; i < n; i += 1000 {
		var in [][2]string
		for j := range 1000 {
			in = append(in, pair(i+j))
		}
		step(t, e, in, nil)
	}
	e.terms.last = e.dict.Len() // as after an earlier pass
	for i := 0; i < n; i += 1000 {
		var out [][2]string
		for j := range 1000 {
			out = append(out, pair(i+j))
		}
		step(t, e, nil, out)
		if e.TermsDue() {
			if _, err := e.MarkTerms(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if held := e.dict.Live(); held > 3*minNewTerms {
		t.Fatalf("%d of %d terms are held by an empty store", held, 2*n)
	}
}

// unary applies one epoch of events on r(x).
func unary(t *testing.T, e *Engine, at int64, events ...record.Event) {
	t.Helper()
	ctx := context.Background()
	if err := e.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Relation("r", 1); err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := e.Event(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Commit(ctx, record.Batch, at); err != nil {
		t.Fatal(err)
	}
}

// terms interns texts as one epoch.
func terms(t *testing.T, e *Engine, texts ...string) (ids []uint64) {
	t.Helper()
	if err := e.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		id, err := e.Intern(term.String(text))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if _, err := e.Commit(context.Background(), record.Batch, e.Time()); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestTermsOfWhatComesBack is TERM-08 for events out of order: a contribution that
// an event takes away during a pass, before the walk comes to it, and that is back
// after an event which belongs before that one, has its value still, whether it
// comes back in the pass or after it.
func TestTermsOfWhatComesBack(t *testing.T) {
	for _, during := range []bool{true, false} {
		t.Run(fmt.Sprintf("during=%v", during), func(t *testing.T) {
			e := New()
			ids := terms(t, e, "x", "value")
			x, value := ids[:1], ids[1]
			// It did not wait, so that no event that waits names the value.
			unary(t, e, 300, record.Event{Op: OpInsert, Tuple: x, Time: 318, Value: value})
			e.SetTime(true, 100)
			unary(t, e, 310)
			comeBack := func() {
				unary(t, e, 330, record.Event{Op: OpWaitInsert, Tuple: x, Time: 315})
				for c := range e.facts.Scan(0) {
					if c.Value == value {
						return
					}
				}
				t.Fatal("it has not come back")
			}

			if err := e.startMarking(); err != nil {
				t.Fatal(err)
			}
			unary(t, e, 330, record.Event{Op: OpWaitDelete, Tuple: x, Time: 320})
			if n := e.facts.Len(0); n != 0 {
				t.Fatalf("%d facts are left", n)
			}
			e.facts.Walk(window.Place{}, 1<<20, e.dict.Mark)
			if during {
				comeBack()
			}
			e.endMarking()
			if !during {
				comeBack()
			}
			unary(t, e, 331)
			if got := e.dict.Term(value); got != term.String("value") {
				t.Errorf("the value is %v", got)
			}
		})
	}
}

// TestTermsOfRefreshedValues is TERM-08 for values: contributions that go on getting
// new ones bring a pass about, which leaves the values that they have.
func TestTermsOfRefreshedValues(t *testing.T) {
	e := New()
	const facts, n = 100, 150_000
	passes := 0
	for i := 0; i < n; i += facts {
		texts := []string{"x"}
		for k := range facts {
			texts = append(texts, fmt.Sprint("value ", i+k))
		}
		ids := terms(t, e, texts...)
		var events []record.Event
		for k := range facts {
			events = append(events, record.Event{Op: OpInsert, Tuple: ids[:1], Time: int64(k), Value: ids[k+1], ID: fmt.Sprint(k)})
		}
		unary(t, e, 1, events...)
		if !e.TermsDue() {
			continue
		}
		passes++
		if _, err := e.MarkTerms(context.Background()); err != nil {
			t.Fatal(err)
		}
		unary(t, e, 1)
		for k := range facts {
			if got := e.dict.Term(ids[k+1]); got != term.String(texts[k+1]) {
				t.Fatalf("value %d is %v", k, got)
			}
		}
		if held := e.dict.Live(); held > 3*facts {
			t.Fatalf("%d terms are held for %d contributions", held, facts)
		}
	}
	if passes == 0 {
		t.Fatal("no pass was due")
	}
}
