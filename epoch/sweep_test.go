package epoch

import (
	"context"
	"fmt"
	"testing"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/semiring"
)

// TestForgottenTokens deletes annotated facts, or drops the query that reads them:
// some epochs later the semiring holds nothing of them any more.
func TestForgottenTokens(t *testing.T) {
	const facts = 3000
	ctx, e := context.Background(), New()
	batch := func(op uint8, n int) {
		t.Helper()
		if err := e.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		rel, err := e.Relation("R", 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			ids := e.Words(3)
			for k, x := range []term.Term{term.Int(int64(i % 10)), term.Int(int64(i)), term.String(fmt.Sprint("token", i))} {
				if ids[k], err = e.Intern(x); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Event(&record.Event{Op: op, Relation: rel, Tuple: ids[:2], Value: ids[2]}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Commit(ctx, record.Batch, 0); err != nil {
			t.Fatal(err)
		}
	}
	held := func() int {
		a, err := e.algebra("why")
		if err != nil {
			t.Fatal(err)
		}
		return a.(semiring.Sweeper).Size()
	}
	for name, end := range map[string]func(){
		"deleted": func() { batch(OpDelete, facts) },
		"dropped": func() {
			if err := e.Begin(ctx); err != nil {
				t.Fatal(err)
			}
			if err := e.Drop("q"); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Commit(ctx, record.Drop, 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if _, err := e.schema.Query("q"); err != nil {
			register(t, e, "q", "q(x) :- R(x, y)@ semiring why.")
		}
		batch(OpInsert, facts)
		if n := held(); n < facts {
			t.Fatalf("%s: %d things are held for %d facts", name, n, facts)
		}
		end()
		for range 6 {
			batch(OpInsert, 0)
		}
		if n := held(); n != 0 {
			t.Errorf("%s: %d things are still held", name, n)
		}
		if name == "dropped" {
			batch(OpDelete, facts)
		}
	}
}

// TestTwin finds that a query with the text and options of another one has nothing
// to fill.
func TestTwin(t *testing.T) {
	e := New()
	e.HydrateFrom(0)
	register(t, e, "q", pairs)
	for name, tc := range map[string]struct {
		q    catalog.Query
		twin bool
	}{
		"equal":   {catalog.Query{Text: pairs}, true},
		"in sets": {catalog.Query{Text: pairs, Set: true}, false},
		"window":  {catalog.Query{Text: pairs, Window: query.Window{Range: 1}}, false},
		"another": {catalog.Query{Text: "q(x, y, z) :- S(x, y), R(y, z)."}, false},
	} {
		q := tc.q
		p, err := catalog.Compile(q.Text, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q.Name, q.Plan = name, p
		h, _, err := e.newHydration(context.Background(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if (h == nil) != tc.twin {
			t.Errorf("%s: filled beside the writer: %v", name, h != nil)
		}
		if h != nil {
			h.end()
		}
	}
}
